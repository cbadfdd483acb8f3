//! What a message is that is too long to be read: its id and its method, found while its bytes pass.

use serde_json::Value;

/// The longest name or value that is kept.
const MAX_TOKEN_BYTES: usize = 512;

/// Looks at the outermost fields of a message, in constant memory.
#[derive(Debug, Default)]
pub struct EnvelopeScanner {
    depth: u64,
    in_text: bool,
    is_escaped: bool,
    token: Vec<u8>,
    is_cut: bool,
    name: Vec<u8>,
    id: Vec<u8>,
    method: Vec<u8>,
}

impl EnvelopeScanner {
    /// Looks at more bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.push_byte(*byte);
        }
    }

    fn push_byte(&mut self, byte: u8) {
        if self.in_text {
            self.keep(byte);
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_text = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_text = true;
                self.keep(byte);
            }
            b'{' | b'[' => {
                // What is inside is not looked at.
                self.is_cut |= self.depth == 1;
                self.depth += 1;
            }
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end_field();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => {
                self.name = std::mem::take(&mut self.token);
                self.is_cut = false;
            }
            b',' if self.depth == 1 => self.end_field(),
            byte if byte.is_ascii_whitespace() => {}
            byte => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth != 1 {
            return;
        }
        if self.token.len() < MAX_TOKEN_BYTES {
            self.token.push(byte);
        } else {
            self.is_cut = true;
        }
    }

    fn end_field(&mut self) {
        let token = std::mem::take(&mut self.token);
        if !std::mem::take(&mut self.is_cut) {
            match self.name.as_slice() {
                b"\"id\"" => self.id = token,
                b"\"method\"" => self.method = token,
                _ => {}
            }
        }
        self.name.clear();
    }

    /// The id, or nothing that is an id.
    pub fn id(&self) -> Value {
        let id: Value = serde_json::from_slice(&self.id).unwrap_or(Value::Null);
        if id.is_number() || id.is_string() { id } else { Value::Null }
    }

    /// The method, if it is a request or a notification.
    pub fn method(&self) -> Option<String> {
        serde_json::from_slice(&self.method).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scanned(text: &str) -> (Value, Option<String>) {
        let mut scanner = EnvelopeScanner::default();
        text.as_bytes().chunks(3).for_each(|it| scanner.push(it));
        (scanner.id(), scanner.method())
    }

    #[test]
    fn only_the_outermost_fields_count_wherever_they_are() {
        let call =
            r#"{"params":{"id":9,"method":"x","t":"}\",{"},"method":"tools/call","id":"a-1"}"#;
        assert_eq!(scanned(call), (json!("a-1"), Some("tools/call".to_owned())));
        let answer = r#" { "result" : { "id" : 7 } , "id" : 12 } "#;
        assert_eq!(scanned(answer), (json!(12), None));
        for nothing in ["", "[{\"id\":1}]", "{\"id\":{\"a\":1}}", "{\"id\":[1", "\"id\":1,"] {
            assert_eq!(scanned(nothing), (Value::Null, None), "{nothing}");
        }
        let long = format!("{{\"id\":\"{}\",\"method\":\"ping\"}}", "x".repeat(1000));
        assert_eq!(scanned(&long), (Value::Null, Some("ping".to_owned())));
    }
}
