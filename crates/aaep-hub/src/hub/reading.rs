//! Reads what subscribers send, so that every handshake gets a proper answer, however malformed it is.
//!
//! Two messages are recognised by their type alone: a `subscription.request` that cannot be read is answered
//! with `subscription.rejected` (ruling 12), and a `subscription.close` that names its subscription closes it,
//! whatever else is wrong with it (ruling 25). Every other message must be valid in strict mode.

use std::fmt;

use aaep::handshake::SubscriptionRejected;
use aaep::{Message, Mode, ReplyToken, SubscriptionId, Violation};
use aaep_engine::terms::{Offer, reject_malformed};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::subscribers::close_of;

/// How many characters of a trace id are logged.
const MAX_TRACE_CHARACTERS: usize = 128;

/// A subscriber's message after reading.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SubscriberMessage {
    /// A valid message.
    Valid(Message),
    /// A `subscription.request` that cannot be read.
    MalformedRequest(MalformedRequest),
    /// Any other message that cannot be read.
    Malformed(Vec<Violation>),
}

/// The token of the ask that a message answers, if it is a reply.
pub(super) fn reply_token_of(message: &Message) -> Option<&ReplyToken> {
    match message {
        Message::ConfirmationReply(reply) => Some(&reply.reply_token),
        Message::ClarificationReply(reply) => Some(&reply.reply_token),
        _ => None,
    }
}

impl SubscriberMessage {
    /// The token of the ask that it answers, if it is a reply.
    pub(crate) fn reply_token(&self) -> Option<&ReplyToken> {
        match self {
            SubscriberMessage::Valid(message) => reply_token_of(message),
            _ => None,
        }
    }

    /// Whether it requests a subscription, readable or not.
    pub(crate) fn is_request(&self) -> bool {
        matches!(
            self,
            SubscriberMessage::Valid(Message::SubscriptionRequest(_))
                | SubscriberMessage::MalformedRequest(_)
        )
    }
}

/// A `subscription.request` that cannot be read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MalformedRequest {
    version: Option<String>,
    correlation_id: Option<String>,
    violations: Vec<Violation>,
}

impl MalformedRequest {
    /// Builds the rejection. The specification has no field in it for the request's trace id, so that goes to
    /// our log.
    pub(crate) fn reject(self, offer: &Offer) -> SubscriptionRejected {
        let trace: String = self
            .correlation_id
            .iter()
            .flat_map(|it| it.chars())
            .take(MAX_TRACE_CHARACTERS)
            .collect();
        tracing::debug!(correlation_id = %aaep::printable(&trace), "A malformed subscription.request was rejected.");
        reject_malformed(offer, self.version.as_deref(), self.violations)
    }
}

/// Reads a message of a subscriber.
pub(crate) fn read_subscriber(bytes: &[u8]) -> SubscriberMessage {
    let violations = match aaep::read(bytes, Mode::Strict).into_result() {
        Ok(message) => return SubscriberMessage::Valid(message),
        Err(violations) => violations,
    };
    let Ok(outline) = serde_json::from_slice::<MessageOutline>(bytes) else {
        return SubscriberMessage::Malformed(violations);
    };
    if outline.has_type("subscription.request") {
        let (version, correlation_id) = (outline.version.only(), outline.correlation_id.only());
        return SubscriberMessage::MalformedRequest(MalformedRequest {
            version,
            correlation_id,
            violations,
        });
    }
    let id = outline.subscription_id.only().filter(|_| outline.has_only_type("subscription.close"));
    match id.and_then(|id| SubscriptionId::parse(&id).ok()) {
        Some(id) => SubscriberMessage::Valid(Message::SubscriptionClose(Box::new(close_of(id)))),
        None => SubscriberMessage::Malformed(violations),
    }
}

/// The few members of an object that identify it, wherever they are, however deep or large the others are.
#[derive(Debug, Default)]
struct MessageOutline {
    types: Vec<String>,
    version: MemberValue,
    correlation_id: MemberValue,
    subscription_id: MemberValue,
}

/// The value of a member that may occur more than once.
#[derive(Debug, Default)]
enum MemberValue {
    #[default]
    Missing,
    Once(String),
    /// It is not text, or it occurs with two different values, so its meaning is unclear.
    Unclear,
}

impl MemberValue {
    fn add(&mut self, text: Option<String>) {
        *self = match (std::mem::take(self), text) {
            (MemberValue::Missing, Some(text)) => MemberValue::Once(text),
            (MemberValue::Once(before), Some(text)) if before == text => MemberValue::Once(before),
            _ => MemberValue::Unclear,
        };
    }

    fn only(&self) -> Option<String> {
        match self {
            MemberValue::Once(text) => Some(text.clone()),
            MemberValue::Missing | MemberValue::Unclear => None,
        }
    }
}

impl MessageOutline {
    fn has_type(&self, name: &str) -> bool {
        self.types.iter().any(|it| it == name)
    }

    fn has_only_type(&self, name: &str) -> bool {
        !self.types.is_empty() && self.types.iter().all(|it| it == name)
    }
}

impl<'de> Deserialize<'de> for MessageOutline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OutlineVisitor;
        impl<'de> Visitor<'de> for OutlineVisitor {
            type Value = MessageOutline;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(
                self,
                mut members: M,
            ) -> Result<MessageOutline, M::Error> {
                let mut outline = MessageOutline::default();
                while let Some(name) = members.next_key::<String>()? {
                    let named = match name.as_str() {
                        "type" => {
                            let MaybeText(text) = members.next_value()?;
                            // A value that is not text becomes empty text, which is not the name of any
                            // message.
                            outline.types.push(text.unwrap_or_default());
                            outline.types.dedup();
                            continue;
                        }
                        "aaep_version" => &mut outline.version,
                        "correlation_id" => &mut outline.correlation_id,
                        "subscription_id" => &mut outline.subscription_id,
                        _ => {
                            members.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    let MaybeText(text) = members.next_value()?;
                    named.add(text);
                }
                Ok(outline)
            }
        }
        deserializer.deserialize_map(OutlineVisitor)
    }
}

/// A value that is text, or anything else.
struct MaybeText(Option<String>);

impl<'de> Deserialize<'de> for MaybeText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyValueVisitor;
        impl<'de> Visitor<'de> for AnyValueVisitor {
            type Value = MaybeText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }

            fn visit_str<E>(self, text: &str) -> Result<MaybeText, E> {
                Ok(MaybeText(Some(text.to_owned())))
            }

            fn visit_bool<E>(self, _: bool) -> Result<MaybeText, E> {
                Ok(MaybeText(None))
            }

            fn visit_i64<E>(self, _: i64) -> Result<MaybeText, E> {
                Ok(MaybeText(None))
            }

            fn visit_u64<E>(self, _: u64) -> Result<MaybeText, E> {
                Ok(MaybeText(None))
            }

            fn visit_f64<E>(self, _: f64) -> Result<MaybeText, E> {
                Ok(MaybeText(None))
            }

            fn visit_unit<E>(self) -> Result<MaybeText, E> {
                Ok(MaybeText(None))
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<MaybeText, S::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(MaybeText(None))
            }

            fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<MaybeText, M::Error> {
                while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(MaybeText(None))
            }
        }
        deserializer.deserialize_any(AnyValueVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::default_offer;

    fn rejected(text: &str) -> SubscriptionRejected {
        match read_subscriber(text.as_bytes()) {
            SubscriberMessage::MalformedRequest(request) => request.reject(&default_offer()),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn whatever_names_itself_a_request_is_rejected_as_one() {
        let deep = format!(
            "{{\"type\":\"subscription.request\",\"capabilities\":{}1{}}}",
            "[".repeat(5000),
            "]".repeat(5000)
        );
        let long =
            format!("{{\"a\":\"{}\",\"type\":\"subscription.request\"}}", "x".repeat(900_000));
        let many = format!(
            "{{\"type\":\"subscription.request\",{}\"b\":1}}",
            "\"\\u001b[2J\\u202e\":1,".repeat(2000)
        );
        for text in [
            "{\"type\":\"subscription.request\"}",
            "{\"type\":\"subscription.request\",\"aaep_version\":1}",
            "{\"type\":\"subscription.request\",\"type\":7,\"aaep_version\":\"1.0.0\"}",
            "{\"type\":\"x\",\"type\":\"subscription.request\",\"capabilities\":null}",
            "{\"type\":\"subscription.request\",\"correlation_id\":[{\"a\":[]}]}",
            &deep,
            &long,
            &many,
        ] {
            let rejected = rejected(text);
            assert_eq!(rejected.reason_code.as_str(), "unknown");
            assert!(rejected.reason_message.chars().count() <= 4096);
            assert!(!rejected.reason_message.contains(['\u{1b}', '\u{202e}']), "{rejected:?}");
            assert!(aaep::check(&rejected).is_empty(), "{rejected:?}");
        }
    }

    #[test]
    fn a_version_that_is_not_spoken_is_the_reason_whatever_else_is_wrong() {
        for version in ["2.0.0", "0.9.0", "1.0.0-draft", "one", "1", "", "\\u001b[2J"] {
            let text =
                format!("{{\"type\":\"subscription.request\",\"aaep_version\":\"{version}\"}}");
            let rejected = rejected(&text);
            assert_eq!(rejected.reason_code.as_str(), "version_unsupported", "{version}");
            assert!(!rejected.reason_message.contains('\u{1b}'));
            assert!(aaep::check(&rejected).is_empty(), "{rejected:?}");
        }
        let spoken = rejected("{\"type\":\"subscription.request\",\"aaep_version\":\"1.0.0\"}");
        assert_eq!(spoken.reason_code.as_str(), "unknown");
        assert!(spoken.reason_message.contains("/subscriber_id"), "{spoken:?}");
    }

    #[test]
    fn what_does_not_name_itself_a_request_is_none() {
        for text in [
            "",
            "{",
            "{\"type\":\"subscription.request\"",
            "{\"type\":\"subscription.request\"} x",
            "[{\"type\":\"subscription.request\"}]",
            "\"subscription.request\"",
            "{\"type\":\"subscription.requests\"}",
            "{\"type\":[\"subscription.request\"]}",
            "{\"inner\":{\"type\":\"subscription.request\"}}",
        ] {
            let read = read_subscriber(text.as_bytes());
            assert!(matches!(read, SubscriberMessage::Malformed(_)), "{text}: {read:?}");
        }
    }

    #[test]
    fn a_close_that_names_one_subscription_closes_it_whatever_else_is_wrong() {
        for rest in [
            "\"reason_code\":\"USER_EXIT\"",
            "\"reason_code\":7",
            "\"reason_message\":\"\"",
            "\"reason_message\":null",
            "\"timestamp\":\"2020-01-01T00:00:00Z\"",
            "\"aaep_version\":{},\"@context\":[[]],\"extensions\":3",
            "\"reason_code\":\"a\",\"reason_code\":\"b\"",
            "\"subscription_id\":\"sub_1\"",
            "\"type\":\"subscription.close\"",
        ] {
            let text =
                format!("{{\"type\":\"subscription.close\",\"subscription_id\":\"sub_1\",{rest}}}");
            match read_subscriber(text.as_bytes()) {
                SubscriberMessage::Valid(Message::SubscriptionClose(close)) => {
                    assert_eq!(close.subscription_id.as_str(), "sub_1", "{rest}");
                }
                other => panic!("{rest}: {other:?}"),
            }
        }
        for text in [
            "{\"type\":\"subscription.close\"}",
            "{\"type\":\"subscription.close\",\"subscription_id\":7}",
            "{\"type\":\"subscription.close\",\"subscription_id\":\"\"}",
            "{\"type\":\"subscription.close\",\"subscription_id\":\"sub_1\",\"subscription_id\":\"sub_2\"}",
            "{\"type\":\"subscription.close\",\"type\":\"x\",\"subscription_id\":\"sub_1\"}",
        ] {
            let read = read_subscriber(text.as_bytes());
            assert!(matches!(read, SubscriberMessage::Malformed(_)), "{text}: {read:?}");
        }
    }
}
