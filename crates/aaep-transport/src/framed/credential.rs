//! A credential as the first message on a local socket, which has no headers.
//!
//! A peer that has a credential sends it before anything else, in one small message. It is not a protocol message
//! and gets no answer: the connection is then served as its holder's, or refused.

use serde::{Deserialize, Serialize};

use super::{Decoder, Framing};

const TYPE: &str = "agentvoice:credential";

/// The longest credential message, including its framing.
pub const MAX_CREDENTIAL_FRAME_BYTES: u32 = 12 << 10;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CredentialMessage {
    r#type: String,
    credential: String,
}

/// The bytes of a message that carries this credential.
pub fn credential_frame(framing: Framing, credential: &str) -> Vec<u8> {
    let message = CredentialMessage { r#type: TYPE.to_owned(), credential: credential.to_owned() };
    let mut bytes = Vec::new();
    framing.message(&serde_json::to_vec(&message).unwrap_or_default(), &mut bytes);
    bytes
}

/// The credential at the front of the received bytes, and how many bytes its message takes. `None` if something
/// else is there, or the message is incomplete.
pub fn leading_credential(framing: Framing, bytes: &[u8]) -> Option<(String, usize)> {
    let mut rest = bytes;
    let message = Decoder::new(framing, MAX_CREDENTIAL_FRAME_BYTES).next(&mut rest).ok()??;
    let message: CredentialMessage = serde_json::from_str(&message).ok()?;
    (message.r#type == TYPE).then(|| (message.credential, bytes.len() - rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_found_and_what_follows_is_left() {
        for framing in [Framing::Length, Framing::Lines] {
            let mut bytes = credential_frame(framing, "aaep_secret");
            let said = bytes.len();
            framing.message(b"{\"type\":\"subscription.request\"}", &mut bytes);
            let found = leading_credential(framing, &bytes);
            assert_eq!(found, Some(("aaep_secret".to_owned(), said)));
            for cut in 0..said {
                assert_eq!(leading_credential(framing, &bytes[..cut]), None, "{cut}");
            }
        }
    }

    #[test]
    fn another_message_is_not_a_credential() {
        for text in [
            r#"{"type":"subscription.request","credential":"aaep_x"}"#,
            r#"{"type":"agentvoice:credential"}"#,
            r#"{"type":"agentvoice:credential","credential":"a","more":1}"#,
            "[]",
        ] {
            let mut bytes = Vec::new();
            Framing::Lines.message(text.as_bytes(), &mut bytes);
            assert_eq!(leading_credential(Framing::Lines, &bytes), None, "{text}");
        }
    }
}
