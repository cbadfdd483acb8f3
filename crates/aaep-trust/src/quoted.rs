//! Quoting foreign text in our own sentences.

/// How many characters of a foreign string are quoted.
const MAX_QUOTED: usize = 80;

/// A foreign string in quotation marks, safe for a terminal, a log or speech output.
pub fn quoted(text: &str) -> String {
    let mut cut: String = text.chars().take(MAX_QUOTED).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    format!("\"{}\"", aaep::printable(&cut))
}
