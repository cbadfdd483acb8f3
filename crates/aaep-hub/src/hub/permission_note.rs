//! The note in the handshake that tells a local program that it may not answer, and what the person can do
//! about it (rulings 3 and 37).

use aaep::handshake::{SubscriptionAccepted, SubscriptionRequest};

use crate::access::Principal;

/// The longest program name that is put into a command for the person to type.
const MAX_NAME_BYTES: usize = 64;

/// The longest text of all notes together (§5.4.2).
const MAX_NOTES_CHARS: usize = 1000;

/// The note for a local program that wants to answer but may not.
pub(super) fn for_program(
    principal: &Principal,
    may_reply: bool,
    request: &SubscriptionRequest,
) -> Option<String> {
    let is_refused = principal.is_local_program() && !may_reply;
    let wishes = &request.capabilities;
    let wants_to_answer = [wishes.supports_confirmation_reply, wishes.supports_clarification_reply]
        .contains(&Some(true));
    let name = match request.subscriber_id.as_str() {
        name if is_word(name) => name,
        _ => "NAME, with the subscriber_id of this program as NAME",
    };
    (is_refused && wants_to_answer).then(|| {
        format!("This program may listen, but not answer. To let it answer, run: aaep allow {name}")
    })
}

/// Appends the note to the existing ones. If both together are too long, the note replaces them.
pub(super) fn add(note: Option<String>, accepted: &mut SubscriptionAccepted) {
    let Some(note) = note else { return };
    let notes = match accepted.negotiation_notes.take() {
        Some(before) if before.chars().count() + note.len() < MAX_NOTES_CHARS => {
            format!("{before} {note}")
        }
        _ => note,
    };
    accepted.negotiation_notes = Some(notes);
}

/// Whether a name can be typed into a command without quoting.
fn is_word(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.bytes().all(is_plain)
        && !name.starts_with('-')
}
