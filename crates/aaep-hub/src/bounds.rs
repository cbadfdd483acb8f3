//! Every limit on the size and number of stored things, in one place.
//!
//! Input is compared with its limit before it is accepted, and its sender is told. Everything that the hub
//! derives from accepted input fits the limits of the store; the assertions below check that at compile
//! time. So the store never refuses accepted input, and a session never runs out of room for another event.

use crate::access::{MAX_EVENTS_AT_ONCE, MAX_HEARS, MAX_NAME_CHARS};

/// The longest event of an agent, as JSON. A strict reader accepts no more (§3.7).
pub const MAX_EVENT_BYTES: usize = aaep::MAX_MESSAGE_BYTES;

/// The longest JSON that is stored for one fact: an event, a resolution, the words of an audit entry. An
/// event that the hub makes repeats the envelope of one event, the producer of another, and the names of a
/// third.
pub const MAX_JSON_BYTES: usize = aaep::MAX_BYTES;

/// The longest terms of a subscription. All terms are in memory after a start.
pub const MAX_TERMS_BYTES: usize = aaep::MAX_BYTES;

/// The longest `agent_id`.
pub const MAX_AGENT_ID_BYTES: usize = aaep_engine::MAX_AGENT_ID_BYTES;

/// The longest id of a principal: the kind of credential, and a name of at most [`MAX_NAME_CHARS`]
/// characters.
pub const MAX_PRINCIPAL_BYTES: usize = "certificate:".len() + 4 * MAX_NAME_CHARS;

/// The longest name that is stored, and the longest idempotency key.
pub const MAX_NAME_BYTES: usize = 2048;

/// The longest idempotency key of a request.
pub const MAX_KEY_BYTES: usize = 255;

/// The longest response that is kept under an idempotency key: three ids for each event.
pub const MAX_ANSWER_BYTES: usize = MAX_EVENTS_AT_ONCE as usize * MAX_ANSWER_LINE_BYTES;

/// One event in such a response: three ids of at most 69 bytes, their names, and punctuation.
const MAX_ANSWER_LINE_BYTES: usize = 3 * 69 + 64;

/// The most settled asks that are remembered. The oldest are forgotten first.
pub const MAX_SETTLED_ASKS: u64 = 65_536;

/// The most subscriptions at once.
pub const MAX_SUBSCRIPTIONS: u64 = 16_384;

/// The most principals that have a number.
pub const MAX_NAMES: u64 = 65_536;

/// The most responses that are kept under idempotency keys. The oldest are forgotten first.
pub const MAX_IDEMPOTENCY_KEYS: u64 = 16_384;

/// The most responses that are kept for each principal.
pub const MAX_IDEMPOTENCY_KEYS_EACH: usize = 1024;

/// The most changes that the owner collects before they are stored. One more input may follow.
pub const MAX_CHANGES: usize = 98_304;

/// The most changes that one ask causes when it is asked and settled at once: two events of the hub around
/// its own, its deadline, its outcome, two entries of the audit log, a principal, and two names, its own and the one
/// that people hear, each of which pushes another one out or is taken over, which makes an event and an entry.
const CHANGES_OF_AN_ASK: usize = 18;

const _: () = {
    // Everything that the hub derives from accepted input fits into the store.
    assert!(4 * MAX_EVENT_BYTES <= MAX_JSON_BYTES);
    assert!(MAX_PRINCIPAL_BYTES <= MAX_NAME_BYTES);
    assert!(MAX_AGENT_ID_BYTES <= MAX_NAME_BYTES);
    assert!(MAX_KEY_BYTES <= MAX_NAME_BYTES);
    // The whole request, and the agents that a subscriber may hear, by agent and principal.
    let heard = MAX_HEARS * (MAX_AGENT_ID_BYTES + MAX_PRINCIPAL_BYTES + 64);
    assert!(aaep::MAX_MESSAGE_BYTES + heard + 4096 <= MAX_TERMS_BYTES);
    // Each byte of a name may take six in a line of the audit log.
    assert!(2 * 6 * MAX_NAME_BYTES + 2048 <= crate::audit::MAX_LINE_BYTES);
    // One request, or the end of all asks, on top of a full turn, is one commit.
    let request = MAX_EVENTS_AT_ONCE as usize * CHANGES_OF_AN_ASK;
    assert!(MAX_CHANGES / 6 + request <= MAX_CHANGES);
    let ends = aaep_engine::MAX_OPEN_ASKS as u64 * 4 + MAX_SUBSCRIPTIONS;
    assert!(ends <= MAX_CHANGES as u64 / 2);
    assert!(aaep_engine::MAX_USED_TOKENS as u64 <= MAX_SETTLED_ASKS);
};
