//! Decides which asterisks and underscores of a line are emphasis, and which are text.
//!
//! Emphasis has two halves. A run without the other half, as in `foo*`, `2*3` or `*args`, is text and is said.

/// The most open marks at once.
const MAX_OPEN: usize = 32;

/// A run of the same mark that may begin emphasis.
struct EmphasisOpening {
    mark: char,
    length: usize,
    at: usize,
}

/// The positions of the runs that are emphasis, in order.
pub(super) fn marks(raw: &str, is_exact: bool) -> Vec<usize> {
    let mut found = Vec::new();
    let mut open: Vec<EmphasisOpening> = Vec::new();
    let mut in_code = false;
    let mut before = None;
    let mut rest = raw.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        match c {
            '`' => {
                while rest.next_if(|(_, next)| *next == '`').is_some() {}
                in_code = !in_code;
            }
            _ if in_code => {}
            '\\' => {
                rest.next_if(|(_, next)| next.is_ascii_punctuation());
            }
            '*' | '_' => {
                let mut length = 1;
                while rest.next_if(|(_, next)| *next == c).is_some() {
                    length += 1;
                }
                let after = rest.peek().map(|(_, next)| *next);
                let is_text =
                    is_glob(c, before, after, length) || is_exact && length == 1 || length > 3;
                let (opens, closes) =
                    if is_text { (false, false) } else { sides(c, before, after) };
                let half = open.iter().rposition(|it| it.mark == c && it.length == length);
                if let Some(half) = half.filter(|_| closes) {
                    let begin = open.get(half).map_or(at, |it| it.at);
                    open.truncate(half);
                    let inner = raw.get(begin + length..at).unwrap_or_default();
                    if !is_dunder(c, length, inner) {
                        found.extend([begin, at]);
                    }
                } else if opens && open.len() < MAX_OPEN {
                    open.push(EmphasisOpening { mark: c, length, at });
                }
            }
            _ => {}
        }
        before = Some(c);
    }
    found.sort_unstable();
    found
}

/// Whether a run here may begin emphasis, and whether it may end it.
fn sides(mark: char, before: Option<char>, after: Option<char>) -> (bool, bool) {
    let is_space = |c: Option<char>| c.is_none_or(char::is_whitespace);
    let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '/');
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    match mark {
        '_' => (!is_space(after) && !is_letter(before), !is_space(before) && !is_letter(after)),
        _ => (!is_space(after) && !is_word(before), !is_space(before)),
    }
}

/// Whether asterisks are wildcards, as in `*.rs`, `src/*` or `**/test`.
fn is_glob(mark: char, before: Option<char>, after: Option<char>, length: usize) -> bool {
    let is_name = length == 1 && after == Some('.') && before.is_none_or(char::is_whitespace);
    mark == '*' && (length <= 2 && (before == Some('/') || after == Some('/')) || is_name)
}

/// Whether it is a name such as `__init__`.
fn is_dunder(mark: char, length: usize, inner: &str) -> bool {
    mark == '_' && length == 2 && inner.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_other_half_is_text() {
        for text in [
            "rm -rf foo* bar*",
            "2*3*4 and 2**3",
            "*args, **kwargs",
            "__init__.py",
            "snake_case_name and _private",
            "*.rs or src/*",
            "`*a*` \\*b\\*",
        ] {
            assert_eq!(marks(text, false), Vec::<usize>::new(), "{text}");
        }
    }

    #[test]
    fn two_halves_are_marks() {
        assert_eq!(marks("**bold**text *soft*", false), [0, 6, 13, 18]);
        assert_eq!(marks("**重要**です", false), [0, 8]);
        assert_eq!(marks("**a *b* c** _d_", false), [0, 4, 6, 9, 12, 14]);
    }
}
