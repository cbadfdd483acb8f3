//! Makes ids and reply tokens from a seed: unique, and as hard to guess as the seed (§6.2.1).

use aaep::{EventId, OutputId, ReplyToken, SessionId, SubscriptionId, ToolCallId};
use sha2::{Digest as _, Sha256};

use crate::keys::SessionKey;

/// The prefix of a tool call id that was made here.
const MADE_CALL: &str = "call_made";

/// The prefix of an output id that was made here.
const MADE_OUTPUT: &str = "out_made";

/// Whether a tool call id has the form of those made here. Agents are not prevented from using such
/// an id.
pub(crate) fn is_made_call(id: &ToolCallId) -> bool {
    is_made(id.as_str(), MADE_CALL)
}

/// Whether an output id has the form of those made here.
pub(crate) fn is_made_output(id: &OutputId) -> bool {
    is_made(id.as_str(), MADE_OUTPUT)
}

fn is_made(id: &str, prefix: &str) -> bool {
    let digits = id.strip_prefix(prefix).unwrap_or_default();
    digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Makes ids. Without the seed, the next id cannot be guessed from earlier ones: each is 128 bits
/// of SHA-256 over the seed and a counter.
#[derive(Debug, Clone)]
pub(crate) struct IdGenerator {
    seed: [u8; 32],
    counter: u64,
}

impl IdGenerator {
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        IdGenerator { seed, counter: 0 }
    }

    /// A generator whose ids differ from those before a restart, even if the seed is the same.
    pub(crate) fn after_stop(seed: [u8; 32], unix_us: i64) -> Self {
        let hash = Sha256::new().chain_update(seed).chain_update(unix_us.to_le_bytes());
        IdGenerator::new(hash.finalize().into())
    }

    pub(crate) fn event(&mut self) -> EventId {
        EventId::parse(&self.next("evt_")).expect("the form of an id")
    }

    /// The id of an event for one subscriber alone. It does not advance the counter, so the ids of
    /// other subscribers do not depend on it.
    pub(crate) fn personal_event(
        &self,
        subscription: &SubscriptionId,
        session: SessionKey,
        (now_us, number): (u64, u64),
    ) -> EventId {
        let hash = Sha256::new()
            .chain_update(self.seed)
            .chain_update(subscription.as_str())
            .chain_update(session.to_bytes())
            .chain_update(now_us.to_le_bytes())
            .chain_update(number.to_le_bytes());
        let id = format!("evt_{}", hex(&hash.finalize()[..16]));
        EventId::parse(&id).expect("the form of an id")
    }

    pub(crate) fn session(&mut self) -> SessionId {
        SessionId::parse(&self.next("sess_")).expect("the form of an id")
    }

    pub(crate) fn subscription(&mut self) -> SubscriptionId {
        SubscriptionId::parse(&self.next("sub_")).expect("the form of an id")
    }

    pub(crate) fn reply_token(&mut self) -> ReplyToken {
        ReplyToken::parse(&self.next("rpl_")).expect("the form of a token")
    }

    /// An id for a tool call to which the agent gave none.
    pub(crate) fn tool_call(&mut self) -> ToolCallId {
        ToolCallId::parse(&self.next(MADE_CALL)).expect("the form of an id")
    }

    /// An id for an output to which the agent gave none.
    pub(crate) fn output(&mut self) -> OutputId {
        OutputId::parse(&self.next(MADE_OUTPUT)).expect("the form of an id")
    }

    fn next(&mut self, prefix: &str) -> String {
        self.counter += 1;
        let hash = Sha256::new().chain_update(self.seed).chain_update(self.counter.to_le_bytes());
        format!("{prefix}{}", hex(&hash.finalize()[..16]))
    }
}

/// A digest of an event id: enough to recognize the id, in less space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IdDigest([u8; 16]);

impl IdDigest {
    pub(crate) fn of(id: &EventId) -> Self {
        let hash: [u8; 32] = Sha256::digest(id.as_str()).into();
        let mut digest = [0; 16];
        digest.copy_from_slice(&hash[..16]);
        IdDigest(digest)
    }
}

/// The id of an event that an audience gets in place of others. It is the same whenever the same
/// events are shaped for the same audience, so a subscriber can resume from it.
pub(crate) fn derived_event_id(source: &EventId, part: u64, audience: u64) -> EventId {
    let hash = Sha256::new()
        .chain_update(source.as_str())
        .chain_update(part.to_le_bytes())
        .chain_update(audience.to_le_bytes());
    let id = format!("evt_{}", hex(&hash.finalize()[..16]));
    EventId::parse(&id).expect("the form of an id")
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
        .map(char::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_repeat_only_with_their_seed() {
        let mut ids = IdGenerator::new([7; 32]);
        let first = ids.reply_token();
        assert_ne!(first, ids.reply_token());
        assert_eq!(first, IdGenerator::new([7; 32]).reply_token());
        assert_ne!(first, IdGenerator::new([8; 32]).reply_token());
        assert_eq!(first.as_str().len(), 4 + 32);
    }

    #[test]
    fn a_derived_id_depends_on_all_that_it_stands_for() {
        let source = EventId::parse("evt_1").expect("id");
        let id = derived_event_id(&source, 0, 1);
        assert_eq!(id, derived_event_id(&source, 0, 1));
        assert_ne!(id, derived_event_id(&source, 1, 1));
        assert_ne!(id, derived_event_id(&source, 0, 2));
    }
}
