//! Foreign text in a sentence of ours.

/// How many characters of a foreign string are quoted.
const MAX_QUOTED: usize = 80;

/// A foreign string in quotation marks, fit for a terminal, a log or a voice.
pub fn quoted(text: &str) -> String {
    let mut cut: String = text.chars().take(MAX_QUOTED).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    format!("\"{}\"", aaep::printable(&cut))
}
