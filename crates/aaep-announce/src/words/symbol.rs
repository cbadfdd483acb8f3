//! Characters that are pictures: symbols with a meaning, emoji, frames, spinners.
//!
//! A picture with a meaning is said by its name. Only pictures on a closed list are omitted: [`is_drawing`] and
//! [`is_decoration`]. Any other picture stays, and the voice names it.

use std::borrow::Cow;

use super::own::own;
use crate::english::marks;

/// Pictures that only decorate. This list is closed: any other picture is said.
const DECORATION: &str = "🎉🎊✨🚀💡🔧🔨🛠📝📄📃📁📂📦🔍🔎💻🖥⌨📊🎯🙌👏🙏🤖🧪🧹📌📍🔗📚📖📋🗂🗒🏗⚙🧩💬💭👋🤔👀🌟💫⚡🎨🪄🧠👩👨🧑\
                          😀😃😄😁😆😅😊🙂😉😎🤗🥳🤩";

/// The pictures of spinners, which turn in one place.
const SPINNER: &str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏⣾⣽⣻⢿⡿⣟⣯⣷⠁⠂⠄⡀⢀⠠⠐⠈";

/// Whether a character only draws: frames, blocks and bullets.
fn is_drawing(c: char) -> bool {
    matches!(
        c,
        '\u{2500}'
            ..='\u{259f}'
                | '▪'
                | '▫'
                | '◦'
                | '•'
                | '‣'
                | '⁃'
                | '\u{204c}'
                | '\u{204d}'
                | '∙'
                | '⎿'
                | '⏺'
    )
}

/// Whether a picture only decorates.
fn is_decoration(c: char) -> bool {
    DECORATION.contains(c)
}

/// Whether a character modifies the picture before it: its style, its skin tone, a key around it.
fn is_part_of_picture(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{20e3}' | '\u{1f3fb}'..='\u{1f3ff}')
}

/// Whether a character is a picture that the voice names.
fn is_picture(c: char) -> bool {
    matches!(c, '\u{1f000}'..='\u{1faff}' | '\u{2300}'..='\u{23ff}' | '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}')
}

/// The name of a picture with a meaning.
fn name(c: char) -> Option<Cow<'static, str>> {
    let number = match c {
        '\u{2776}'..='\u{277f}' => u32::from(c) - 0x2775,
        '\u{2780}'..='\u{2789}' => u32::from(c) - 0x277f,
        '\u{278a}'..='\u{2793}' => u32::from(c) - 0x2789,
        _ => {
            let known = marks::PICTURES.iter().find(|(pictures, _)| pictures.contains(c));
            return known.map(|(_, name)| Cow::Borrowed(*name));
        }
    };
    Some(Cow::Owned(number.to_string()))
}

/// Whether a line begins with a picture with a meaning, so that it is separated from the line before it.
pub(super) fn begins_with_a_mark(line: &str) -> bool {
    line.chars().next().is_some_and(|c| !c.is_ascii() && name(c).is_some())
}

/// The meaning of a picture that is alone, if it means yes or no.
pub(super) fn meaning(text: &str) -> Option<&'static str> {
    match text.trim().trim_end_matches('\u{fe0f}') {
        "✓" | "✔" | "✅" | "☑" | "👍" => Some(marks::YES),
        "✗" | "✘" | "❌" | "☒" | "👎" => Some(marks::NO),
        _ => None,
    }
}

/// What happened to the character before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PrecedingCharacter {
    Text,
    /// A picture that was omitted or named.
    Replaced,
    /// A picture that stays.
    Picture,
}

/// The text with the names of pictures with a meaning, and without those that only draw or decorate.
pub(super) fn named_pictures(text: &str, keeps_emoji: bool) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let (mut before, mut last) = (PrecedingCharacter::Text, ' ');
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let after = rest.clone().next().unwrap_or(' ');
        let is_joiner = matches!(c, '\u{200c}' | '\u{200d}') && before != PrecedingCharacter::Text;
        let is_alone = last.is_whitespace() && after.is_whitespace();
        if is_part_of_picture(c) || is_joiner {
            if keeps_emoji || before == PrecedingCharacter::Picture {
                out.push(c);
            }
        } else if is_drawing(c)
            || is_alone && SPINNER.contains(c)
            || !keeps_emoji && is_decoration(c)
        {
            // A picture between two words separates them.
            if before != PrecedingCharacter::Replaced {
                out.push(' ');
            }
            before = PrecedingCharacter::Replaced;
        } else if let Some(name) = name(c).filter(|_| !keeps_emoji && !c.is_ascii()) {
            let is_heading = out.trim_start().is_empty() && begins_with_a_word(rest.clone());
            let name = if is_heading { format!("{name}:") } else { name.into_owned() };
            out.extend([" ", &*own(&name), " "]);
            before = PrecedingCharacter::Replaced;
        } else {
            before =
                if is_picture(c) { PrecedingCharacter::Picture } else { PrecedingCharacter::Text };
            out.push(c);
        }
        last = c;
    }
    out
}

fn begins_with_a_word(mut rest: std::str::Chars<'_>) -> bool {
    let first = rest.find(|c| !c.is_whitespace() && !is_part_of_picture(*c));
    first.is_some_and(|c| !matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | ')') && !is_picture(c))
}

#[cfg(test)]
mod tests {
    use super::super::own::is_own_mark;
    use super::*;

    #[test]
    fn no_picture_both_means_something_and_is_left_out() {
        for (pictures, name) in marks::PICTURES {
            for c in pictures.chars() {
                assert!(!is_drawing(c) && !is_decoration(c) && !SPINNER.contains(c), "{c} {name}");
            }
        }
    }

    #[test]
    fn pictures_that_mean_something_are_said_and_others_stay() {
        for (text, said) in [
            ("❌ billing", " cross mark:  billing"),
            ("billing ❌", "billing  cross mark "),
            ("⚠️ 3 left", " warning:  3 left"),
            ("❶ first", " 1:  first"),
            ("🇩🇪 12 🦀", "🇩🇪 12 🦀"),
            ("⠓⠑⠇⠇⠕ ⠋ x", "⠓⠑⠇⠇⠕   x"),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
        ] {
            let named = named_pictures(text, false);
            let plain: String = named.chars().filter(|c| !is_own_mark(*c)).collect();
            assert_eq!(plain, said, "{text}");
        }
    }
}
