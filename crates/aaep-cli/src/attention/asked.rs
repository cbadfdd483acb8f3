//! A question as it was told to the person: its identity and its words.
//!
//! A reply token names a question, but a producer can put other words under the same token. So we keep hashes: one of
//! everything that no language changes, and one of the words in each language.

use std::collections::BTreeSet;

use aaep::event::human::{AwaitingClarification, AwaitingConfirmation};
use aaep::extension::Delivery;
use aaep::{Event, Payload, ReplyToken};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// How many characters of a question are kept so that the person can recognise it.
const FIRST_WORDS: usize = 80;

/// The most languages whose words are kept for one question.
const MAX_LANGUAGES: usize = 32;

/// The longest time a question can be open in the protocol.
const DAY_SECONDS: u64 = 86_400;

/// An ask as it is told to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PresentedAsk {
    pub(crate) reply_token: ReplyToken,
    pub(crate) agent: String,
    /// The first words of the question. Untrusted text.
    pub(crate) first_words: String,
    /// A hash of everything that is the same in every language.
    pub(crate) identity: String,
    /// A hash of the words in each language that the event has.
    pub(crate) words: Vec<String>,
    /// The longest time it can be open, in seconds.
    pub(crate) longest_seconds: u64,
}

impl PresentedAsk {
    /// The ask in an event, if it contains one.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        let (reply_token, timeout_seconds, own) = match &event.payload {
            Payload::AwaitingConfirmation(asked) => {
                (&asked.reply_token, asked.timeout_seconds, confirmation(asked))
            }
            Payload::AwaitingClarification(asked) => {
                (&asked.reply_token, asked.timeout_seconds, clarification(asked))
            }
            _ => return None,
        };
        let said = Delivery::of(event);
        let most_seconds = said.as_ref().and_then(|it| it.max_timeout_seconds);
        let identity = json!([
            event.event_type().as_str(),
            event.envelope.event_id,
            event.envelope.session_id,
            event.envelope.timestamp,
            event.envelope.producer.agent_id,
            reply_token,
            timeout_seconds,
            most_seconds,
            said.as_ref().and_then(|it| it.tool.as_ref()),
            said.as_ref().and_then(|it| it.action_digest.as_ref()),
            said.as_ref().and_then(|it| it.project.as_ref()),
            own,
        ]);
        let longest_seconds = most_seconds.unwrap_or(0).max(timeout_seconds).min(DAY_SECONDS);
        Some(PresentedAsk {
            reply_token: reply_token.clone(),
            agent: cut(&event.envelope.producer.agent_id),
            first_words: cut(what(event)),
            identity: hash(&identity),
            words: words(event),
            longest_seconds,
        })
    }
}

/// The question in one sentence. Untrusted text.
pub(crate) fn what(event: &Event) -> &str {
    match &event.payload {
        Payload::AwaitingConfirmation(asked) => &asked.action,
        Payload::AwaitingClarification(asked) => &asked.question,
        _ => event.summary(),
    }
}

/// How many words a question has in total. If words are long or not separated, every six characters count as one.
pub(crate) fn word_count(event: &Event) -> u64 {
    const CHARACTERS: usize = 6;
    let count = |text: &str| {
        text.split_whitespace().count().max(text.chars().count().div_ceil(CHARACTERS)) as u64
    };
    match &event.payload {
        Payload::AwaitingConfirmation(asked) => {
            let more = asked.extra_context.as_ref().and_then(|it| it.get("arguments"));
            let arguments = more.map(|it| count(&it.to_string()));
            count(&asked.action) + count(&asked.consequence) + arguments.unwrap_or(0)
        }
        Payload::AwaitingClarification(asked) => {
            let context = asked.context.as_deref().map(count);
            let choices = asked.choices.iter().flatten().map(|it| count(&it.label));
            count(&asked.question) + context.unwrap_or(0) + choices.sum::<u64>()
        }
        _ => 0,
    }
}

/// What a confirmation contains besides its words.
fn confirmation(asked: &AwaitingConfirmation) -> Value {
    json!([
        asked.default_decision,
        asked.risk_level,
        asked.irreversible,
        asked.reversibility,
        asked.allowed_replies,
    ])
}

/// What a clarification contains besides its words.
fn clarification(asked: &AwaitingClarification) -> Value {
    let choices = asked.choices.iter().flatten();
    let choices: Vec<_> = choices.map(|choice| (&choice.value, &choice.label)).collect();
    json!([asked.accepted_response_kinds, choices, asked.default_response])
}

/// The hashes of the words in the event's own language and in every other language it has.
fn words(event: &Event) -> Vec<String> {
    let languages: BTreeSet<_> = event.variants.iter().map(|it| it.language.as_str()).collect();
    let languages = languages.into_iter().map(Some).take(MAX_LANGUAGES - 1);
    let mut hashes = Vec::new();
    for language in [None].into_iter().chain(languages) {
        let text = |field: &str, own: &str| {
            let variant = event
                .variants
                .iter()
                .find(|it| it.field == field && Some(it.language.as_str()) == language);
            variant.map_or_else(|| own.to_owned(), |it| it.text.clone())
        };
        let told = match &event.payload {
            Payload::AwaitingConfirmation(asked) => {
                vec![text("action", &asked.action), text("consequence", &asked.consequence)]
            }
            Payload::AwaitingClarification(asked) => vec![text("question", &asked.question)],
            _ => continue,
        };
        let hash = hash(&json!(told));
        if !hashes.contains(&hash) {
            hashes.push(hash);
        }
    }
    hashes
}

fn hash(value: &Value) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in Sha256::digest(value.to_string().as_bytes()) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn cut(text: &str) -> String {
    let mut characters = text.chars();
    let mut short: String = characters.by_ref().take(FIRST_WORDS).collect();
    if characters.next().is_some() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Builds a confirmation event, with these fields replaced.
    pub(crate) fn confirmation(token: &str, fields: &Value) -> Event {
        let mut event = json!({
            "@context": [aaep::CORE_CONTEXT, aaep::extension::CONTEXT],
            "type": "aaep:agent.awaiting.confirmation",
            "event_id": "evt_1", "session_id": "sess_1", "timestamp": "2026-11-02T06:20:09.118Z",
            "producer": { "agent_id": "photos" }, "urgency": "critical", "reply_token": token,
            "action": "Delete 240 photos.", "consequence": "They are gone.",
            "timeout_seconds": 120, "default_decision": "reject",
        });
        for (key, value) in fields.as_object().into_iter().flatten() {
            event[key] = value.clone();
        }
        read(&event)
    }

    pub(crate) fn read(event: &Value) -> Event {
        match aaep::read(event.to_string().as_bytes(), aaep::Mode::Tolerant).message {
            Some(aaep::Message::Event(event)) => *event,
            other => panic!("no event: {other:?}"),
        }
    }

    pub(crate) fn asked(token: &str, fields: &Value) -> PresentedAsk {
        PresentedAsk::of(&confirmation(token, fields)).expect("a question")
    }

    #[test]
    fn the_same_event_is_the_same_question_and_another_is_not() {
        let first = asked("rpl_1", &json!({}));
        assert_eq!(first, asked("rpl_1", &json!({})));
        for (field, other) in [
            ("event_id", json!("evt_2")),
            ("session_id", json!("sess_2")),
            ("timestamp", json!("2026-11-02T06:20:09.119Z")),
            ("producer", json!({ "agent_id": "mail" })),
            ("reply_token", json!("rpl_2")),
            ("timeout_seconds", json!(121)),
            ("risk_level", json!("high")),
            ("irreversible", json!(true)),
            ("reversibility", json!("irreversible")),
            ("allowed_replies", json!(["reject"])),
            ("extensions", json!({ "agentvoice": { "tool": "delete" } })),
            ("extensions", json!({ "agentvoice": { "max_timeout_seconds": 600 } })),
        ] {
            let mut fields = json!({});
            fields[field] = other;
            assert_ne!(asked("rpl_1", &fields).identity, first.identity, "{fields}");
        }
    }

    #[test]
    fn other_words_are_other_words_of_the_same_question() {
        let first = asked("rpl_1", &json!({}));
        for (field, other) in
            [("action", "Delete everything."), ("consequence", "Nothing happens.")]
        {
            let mut fields = json!({});
            fields[field] = other.into();
            let other = asked("rpl_1", &fields);
            assert_eq!(other.identity, first.identity);
            assert_ne!(other.words, first.words, "{fields}");
        }
    }

    #[test]
    fn words_in_every_language_of_an_event_are_its_words() {
        let both = asked("rpl_1", &json!({ "action_fr": "Effacer.", "consequence_fr": "Fini." }));
        let french = asked("rpl_1", &json!({ "action": "Effacer.", "consequence": "Fini." }));
        assert_eq!(both.words.len(), 2);
        assert_eq!(both.identity, french.identity);
        assert!(both.words.contains(&french.words[0]), "as the hub tells it in French alone");
        assert!(both.words.contains(&asked("rpl_1", &json!({})).words[0]));
    }

    #[test]
    fn what_is_no_question_has_no_number_and_long_words_are_cut() {
        let started = json!({
            "@context": aaep::CORE_CONTEXT, "type": "aaep:agent.session.started",
            "event_id": "evt_1", "session_id": "sess_1", "timestamp": "2026-11-02T06:20:09.118Z",
            "producer": { "agent_id": "photos" }, "summary_normal": "I begin.",
        });
        assert_eq!(PresentedAsk::of(&read(&started)), None);
        let long = asked("rpl_1", &json!({ "action": "x".repeat(4000) }));
        assert_eq!(long.first_words.chars().count(), FIRST_WORDS + 3);
    }

    #[test]
    fn all_words_of_a_question_are_counted() {
        let few = confirmation("rpl_1", &json!({ "action": "Go on?", "consequence": "It goes." }));
        assert_eq!(word_count(&few), 4);
        let long = json!({
            "action": "Go on?", "consequence": "x".repeat(60),
            "extra_context": { "arguments": { "a": "b c d" } },
        });
        assert_eq!(word_count(&confirmation("rpl_1", &long)), 2 + 10 + 3);
    }
}
