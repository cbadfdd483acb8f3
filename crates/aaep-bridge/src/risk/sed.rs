//! Whether a script for `sed` only prints and replaces. Others can run commands and write files.

/// Whether the script has only commands that print, delete or replace in what is printed. Anything that is not
/// understood is not.
pub(super) fn is_plain(script: &str) -> bool {
    let mut rest = script.chars().peekable();
    loop {
        while rest.next_if(|it| it.is_whitespace() || matches!(it, ';' | '{' | '}')).is_some() {}
        if rest.peek().is_none() {
            return true;
        }
        if skip_address(&mut rest).is_none() {
            return false;
        }
        match rest.next() {
            Some(
                'p' | 'd' | 'q' | 'l' | 'n' | 'N' | 'D' | 'P' | 'G' | 'H' | 'g' | 'h' | 'x' | '=',
            ) => {}
            Some('s') => {
                let Some(delimiter) = rest.next() else { return false };
                if skip_until(&mut rest, delimiter).and(skip_until(&mut rest, delimiter)).is_none()
                {
                    return false;
                }
                while rest
                    .next_if(|it| matches!(it, 'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9'))
                    .is_some()
                {}
            }
            _ => return false,
        }
        // The next command needs something that separates it.
        if rest.peek().is_some_and(|it| !it.is_whitespace() && !matches!(it, ';' | '}')) {
            return false;
        }
    }
}

type Script<'s> = std::iter::Peekable<std::str::Chars<'s>>;

fn skip_address(rest: &mut Script<'_>) -> Option<()> {
    while let Some(next) = rest.peek().copied() {
        match next {
            '0'..='9' | ',' | '$' | '!' | '+' | '~' | ' ' => {
                rest.next();
            }
            '/' => {
                rest.next();
                skip_until(rest, '/')?;
            }
            _ => break,
        }
    }
    Some(())
}

/// Skips to behind the next delimiter that is not escaped.
fn skip_until(rest: &mut Script<'_>, delimiter: char) -> Option<()> {
    loop {
        match rest.next()? {
            '\\' => {
                rest.next()?;
            }
            // A line feed ends a script of one line; what follows would be read as a command.
            '\n' => return None,
            it if it == delimiter => return Some(()),
            _ => {}
        }
    }
}
