//! Turns any words into one harmless line.
//!
//! Words for a device should already be one line without control characters. This is a second safeguard, because a
//! line break or an invisible mark that slips through would be a command to a server, or would make words look
//! different from what they are.

/// The words on one line: each run of line breaks, tabs and control characters becomes one blank, and characters that
/// only control how text is drawn are removed. Joiners stay, because scripts need them.
pub(crate) fn one_line(words: &str) -> String {
    let mut line = String::with_capacity(words.len());
    for c in words.chars() {
        if c.is_control() || c.is_whitespace() {
            if !line.is_empty() && !line.ends_with(' ') {
                line.push(' ');
            }
        } else if !only_steers(c) {
            line.push(c);
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// Whether a character has no sound and no cells, and only changes how others are drawn.
fn only_steers(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// A short quotation of foreign text for one of our sentences: printable, and never long.
pub(crate) fn quoted(text: &str) -> String {
    const MAX_CHARACTERS: usize = 120;
    let short: String = text.chars().take(MAX_CHARACTERS).collect();
    aaep::printable(&short).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_one_line_without_control_characters() {
        assert_eq!(
            one_line("one\r\n.\r\ntwo\u{0}\u{1b}[2J\tthree\u{2028}four\u{85}"),
            "one . two [2J three four"
        );
        assert_eq!(one_line("  \r\n "), "");
    }

    #[test]
    fn marks_that_only_steer_drawing_are_left_out_and_joiners_stay() {
        assert_eq!(one_line("no\u{202e}sey\u{2066}!\u{feff}\u{e0041}"), "nosey!");
        assert_eq!(one_line("می\u{200c}خواهم"), "می\u{200c}خواهم");
    }

    #[test]
    fn foreign_text_in_our_sentences_is_short_and_printable() {
        let text = quoted(&"\u{1b}x".repeat(1000));
        assert!(!text.contains('\u{1b}') && text.len() < 1000, "{text}");
    }
}
