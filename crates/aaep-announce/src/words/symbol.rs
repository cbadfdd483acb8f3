//! Characters that are pictures: emoji, frames, spinners.

/// Whether a character is an emoji, a part of one, or a picture that is used as one.
pub(super) fn is_emoji(c: char) -> bool {
    matches!(c,
        '\u{1f000}'..='\u{1faff}' | '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}'
        | '\u{2300}'..='\u{23ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{20e3}' | '\u{203c}' | '\u{2049}'
        | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}')
}

/// Whether a character only draws: frames, blocks, bullets, and the pictures of spinners.
pub(super) fn is_drawing(c: char) -> bool {
    matches!(c,
        '\u{2500}'..='\u{259f}' | '\u{25a0}'..='\u{25ff}' | '\u{2800}'..='\u{28ff}'
        | '\u{2022}' | '\u{2023}' | '\u{2043}' | '\u{204c}' | '\u{204d}' | '\u{2219}')
}

/// What a picture that stands alone means, where it means yes or no.
pub(super) fn meaning(text: &str) -> Option<&'static str> {
    match text.trim().trim_end_matches('\u{fe0f}') {
        "✓" | "✔" | "✅" | "☑" | "👍" => Some("yes"),
        "✗" | "✘" | "❌" | "☒" | "👎" => Some("no"),
        _ => None,
    }
}

/// The text without pictures. A joiner goes with the picture that it joins.
pub(super) fn without_pictures(text: &str, keeps_emoji: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut after_picture = false;
    for c in text.chars() {
        let is_joiner = matches!(c, '\u{200c}' | '\u{200d}');
        let is_picture = is_drawing(c) || (!keeps_emoji && is_emoji(c));
        if is_picture || (is_joiner && after_picture) {
            // A picture between two words parts them.
            if !after_picture {
                out.push(' ');
            }
            after_picture = true;
        } else {
            after_picture = false;
            out.push(c);
        }
    }
    out
}
