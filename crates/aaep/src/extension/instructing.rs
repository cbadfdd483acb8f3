//! What people can tell an agent, what an agent accepts, and how a subscriber states where it left
//! off.
//!
//! A subscriber prompts, cancels or steers; the hub passes that as an instruction to an agent that
//! declared to accept it. No agent is forced: it answers with events, or not at all. Which
//! subscribers may send these messages is decided elsewhere, as for replies. Nothing here counts as
//! an answer to an ask.

use super::PREFIX;
use crate::event::LONG;
use crate::form::{EventId, Prefix, ReasonName, ReplyToken, SessionId, SubscriptionId};
use crate::handshake::SubscriptionRequest;
use crate::object::{object, values};
use crate::read::{ANY, FieldType, MessageReader, Mode, between};

values! {
    /// What an agent can be told.
    open Accepts {
        /// To begin something, in a person's words.
        Prompt = "prompt",
        /// To stop what it does in a session.
        Cancel = "cancel",
        /// To go on in another way, in a person's words.
        Steer = "steer",
    }
}

object! {
    /// A person wants an agent to begin something. The hub chooses the session.
    AgentPrompt in "7.5", type "agentvoice:agent.prompt", others Refused {
        /// The subscription on which the person listens.
        required subscription_id: SubscriptionId;
        /// The agent that is meant; the one that the hub prompts by default if absent.
        optional agent_id: String = between(1, 256);
        /// What the person wants, in their own words.
        required text: String = between(1, LONG);
    }
}

object! {
    /// A person wants an agent to stop what it does in a session.
    SessionCancel in "7.5", type "agentvoice:session.cancel", others Refused {
        /// The subscription on which the person listens.
        required subscription_id: SubscriptionId;
        /// The session that should end.
        required session_id: SessionId;
        /// Why, for machines.
        optional reason: ReasonName;
    }
}

object! {
    /// A person wants an agent to go on in another way.
    SessionSteer in "7.5", type "agentvoice:session.steer", others Refused {
        /// The subscription on which the person listens.
        required subscription_id: SubscriptionId;
        /// The session that is meant.
        required session_id: SessionId;
        /// What the person wants, in their own words.
        required text: String = between(1, LONG);
    }
}

object! {
    /// An agent says who it is and what it can be told. What it no longer names, it is not told.
    AgentHello in "7.5", type "agentvoice:agent.hello", others Refused {
        /// The agent, as in the `producer` of its events.
        required agent_id: String = between(1, 256);
        /// What it can be told; nothing if empty.
        required accepts: Vec<Accepts> = ANY.unique();
    }
}

object! {
    /// An agent no longer needs an answer to its question (§6.8). The question ends without consent.
    AskWithdraw in "6.8", type "agentvoice:ask.withdraw", others Refused {
        /// The token of the question.
        required reply_token: ReplyToken, in "6.2.1";
    }
}

object! {
    /// Where a subscriber left off, in `extensions.agentvoice.resume` of its request. Never a
    /// credential: the hub looks whose subscription it was.
    Resume in "7.5", others Refused {
        /// The subscription that it had.
        required subscription_id: SubscriptionId;
        /// The last event that it received; none if there was none.
        optional last_event_id: EventId;
    }
}

impl Resume {
    /// Where a request wants to continue. If this cannot be understood it is ignored: the
    /// subscriber then gets a new subscription, and loses only the chance to resume.
    pub fn of(request: &SubscriptionRequest) -> Option<Self> {
        let data = request.extensions.as_ref()?.0.get(&Prefix::parse(PREFIX).ok()?)?;
        let text = data.get("resume")?.to_string();
        let document = crate::json::JsonDocument::parse(text.as_bytes()).ok()?;
        Resume::read(document.root(), &ANY, &mut MessageReader::new(Mode::Tolerant))
    }

    /// Puts the data into a request.
    ///
    /// # Panics
    /// Never: the prefix is a constant of the right form.
    pub fn put_in(&self, request: &mut SubscriptionRequest) {
        let prefix = Prefix::parse(PREFIX).expect("a constant of the right form");
        let data = request.extensions.get_or_insert_default().0.entry(prefix);
        let wish = serde_json::to_value(self).unwrap_or_default();
        data.or_default().insert("resume".to_owned(), wish);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::message::{Message, read};

    fn request(extensions: Option<Json>) -> SubscriptionRequest {
        let mut request = json!({
            "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "reader",
            "capabilities": {},
        });
        if let Some(extensions) = extensions {
            request["extensions"] = extensions;
        }
        match read(request.to_string().as_bytes(), Mode::Strict).into_result() {
            Ok(Message::SubscriptionRequest(request)) => *request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_says_where_it_left_off() {
        let wish = json!({ "subscription_id": "sub_Lamp77", "last_event_id": "evt_Shelf1" });
        let asked = request(Some(json!({ "agentvoice": { "resume": wish }, "lumen": {} })));
        let resume = Resume::of(&asked).expect("a wish");
        assert_eq!(resume.subscription_id.as_str(), "sub_Lamp77");
        assert_eq!(resume.last_event_id.as_ref().map(EventId::as_str), Some("evt_Shelf1"));

        let mut written = request(Some(json!({ "lumen": {} })));
        resume.put_in(&mut written);
        assert_eq!(written, asked);
        let mut bare = request(None);
        resume.put_in(&mut bare);
        assert_eq!(Resume::of(&bare), Some(resume));
    }

    #[test]
    fn a_wish_that_is_not_understood_is_none() {
        assert_eq!(Resume::of(&request(None)), None);
        for data in [
            json!({}),
            json!({ "resume": null }),
            json!({ "resume": "sub_Lamp77" }),
            json!({ "resume": {} }),
            json!({ "resume": { "subscription_id": "Lamp77" } }),
            json!({ "resume": { "subscription_id": ["sub_Lamp77"] } }),
        ] {
            let asked = request(Some(json!({ "agentvoice": data })));
            assert_eq!(Resume::of(&asked), None, "{asked:?}");
        }
    }

    #[test]
    fn a_newer_wish_is_understood_as_far_as_possible() {
        let wish = json!({ "subscription_id": "sub_Lamp77", "last_event_id": 7, "mood": "calm" });
        let asked = request(Some(json!({ "agentvoice": { "resume": wish } })));
        let resume = Resume::of(&asked).expect("a wish");
        assert_eq!(resume.subscription_id.as_str(), "sub_Lamp77");
        assert_eq!(resume.last_event_id, None);
    }
}
