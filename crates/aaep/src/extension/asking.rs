//! How a subscriber requests more time to answer: its capabilities, and its messages (§6.4.2,
//! §5.3.2).
//!
//! §6.4.2 lets subscribers request longer timeouts through extension capabilities. These are ours,
//! and they are off unless a subscriber names them. The messages refer to an ask by its token,
//! which is never a credential. Which subscribers may send them is decided elsewhere, as for
//! replies.

use serde_json::Value as Json;

use super::PREFIX;
use crate::capabilities::Capabilities;
use crate::event::DAY_S;
use crate::form::{ReplyToken, SubscriptionId};
use crate::object::{object, values};
use crate::read::{ANY, FieldType, MessageReader, Mode, Object, between};

values! {
    /// When the time to answer begins.
    open AskClock {
        /// When the ask is made, as in §6.4.
        Asked = "asked",
        /// When the ask is presented to the person.
        Presented = "presented",
    }
}

object! {
    /// What a subscriber can say of this extension in its capabilities, under the prefix.
    AskCapabilities in "5.3.2", others Refused {
        /// From when on the subscriber wants the time to answer to be counted; from asking if absent.
        optional ask_clock: AskClock;
        /// Whether the person may ask for more time or a pause; no if absent.
        optional extend: bool;
    }
}

impl AskCapabilities {
    /// No capability set: the behaviour of the specification.
    pub fn new() -> Self {
        AskCapabilities { ask_clock: None, extend: None, other: Object::new() }
    }

    /// The capabilities of this extension, as far as they can be understood.
    pub fn of(capabilities: &Capabilities) -> Self {
        capabilities
            .other
            .get(PREFIX)
            .map_or_else(AskCapabilities::new, AskCapabilities::understand)
    }

    /// The part of the data that can be understood. The rest is ignored, so that a newer subscriber
    /// is not rejected because of it.
    pub fn understand(data: &Json) -> Self {
        let text = data.to_string();
        let read = crate::json::JsonDocument::parse(text.as_bytes()).ok().and_then(|document| {
            AskCapabilities::read(document.root(), &ANY, &mut MessageReader::new(Mode::Tolerant))
        });
        let mut known = read.unwrap_or_default();
        known.ask_clock = known.ask_clock.filter(|clock| !matches!(clock, AskClock::Other(_)));
        known.other = Object::new();
        known
    }
}

impl Default for AskCapabilities {
    fn default() -> Self {
        AskCapabilities::new()
    }
}

object! {
    /// A subscriber has presented a question to the person: it was spoken, or stands on the display.
    AskPresented in "6.4.2", type "agentvoice:ask.presented", others Refused {
        /// The token of the question, exactly as it came.
        required reply_token: ReplyToken, in "6.2.1";
        /// The subscription on which the question came.
        required subscription_id: SubscriptionId;
    }
}

object! {
    /// A person needs more time to answer.
    AskExtend in "6.4.2", type "agentvoice:ask.extend", others Refused {
        /// The token of the question, exactly as it came.
        required reply_token: ReplyToken, in "6.2.1";
        /// The subscription on which the question came.
        required subscription_id: SubscriptionId;
        /// How many seconds more; never beyond the maximum that the agent stated.
        required by_seconds: u64 = between(1, DAY_S);
    }
}

object! {
    /// A person wants the time to answer to stand still, at most until the maximum that the agent
    /// stated.
    AskPause in "6.4.2", type "agentvoice:ask.pause", others Refused {
        /// The token of the question, exactly as it came.
        required reply_token: ReplyToken, in "6.2.1";
        /// The subscription on which the question came.
        required subscription_id: SubscriptionId;
    }
}

object! {
    /// The time to answer goes on after a pause.
    AskResume in "6.4.2", type "agentvoice:ask.resume", others Refused {
        /// The token of the question, exactly as it came.
        required reply_token: ReplyToken, in "6.2.1";
        /// The subscription on which the question came.
        required subscription_id: SubscriptionId;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn understood(data: Json) -> (Option<AskClock>, Option<bool>) {
        let mut capabilities = Capabilities::new();
        capabilities.other.insert(PREFIX.to_owned(), data);
        let known = AskCapabilities::of(&capabilities);
        assert!(known.other.is_empty());
        (known.ask_clock, known.extend)
    }

    #[test]
    fn what_is_not_understood_is_off_and_the_rest_stands() {
        assert_eq!(AskCapabilities::of(&Capabilities::new()), AskCapabilities::new());
        let presented = Some(AskClock::Presented);
        let full = json!({ "ask_clock": "presented", "extend": true });
        assert_eq!(understood(full), (presented.clone(), Some(true)));
        let newer = json!({ "ask_clock": "presented", "extend": "yes", "shimmer": [1] });
        assert_eq!(understood(newer), (presented, None));
        assert_eq!(understood(json!({ "ask_clock": "later" })), (None, None));
        for nonsense in [json!(null), json!(7), json!("presented"), json!([true])] {
            assert_eq!(understood(nonsense), (None, None));
        }
    }
}
