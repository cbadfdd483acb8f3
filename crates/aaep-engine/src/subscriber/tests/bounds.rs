//! Memory is bounded, and no open ask disappears without a notice.

use aaep::Payload;
use aaep::extension::{Delivery, Resolution};

use super::*;
use crate::subscriber::text::SubscriberTexts;
use crate::subscriber::{
    ANSWERED_KEPT_SECONDS, MAX_ANSWERED, MAX_CLOSED_ASKS, MAX_EVENT_IDS, MAX_OPEN_ASK_BYTES,
    MAX_OPEN_ASKS, MAX_SESSIONS, MAX_TEXT_BYTES, MAX_TEXTS, MAX_TEXTS_BYTES,
};

/// Whether every bound holds.
pub(super) fn is_within_bounds(subscriber: &SubscriberRules) -> bool {
    let (open, closed, answered) = subscriber.asks.sizes();
    let (texts, bytes) = subscriber.texts.size();
    open <= MAX_OPEN_ASKS
        && closed <= MAX_CLOSED_ASKS
        && answered <= MAX_ANSWERED
        && subscriber.seen.len() <= MAX_EVENT_IDS
        && subscriber.sessions().count() <= MAX_SESSIONS
        && texts <= MAX_TEXTS
        && bytes <= MAX_TEXTS_BYTES
}

#[test]
fn a_question_too_many_puts_the_oldest_aside_and_says_so() {
    let mut subscriber = listening();
    for number in 0..=MAX_OPEN_ASKS {
        let got = subscriber.get(1, &confirmation(&number.to_string(), 60));
        let forgotten = SubscriberChange::AskForgotten { reply_token: token("0") };
        assert_eq!(got.changes.contains(&forgotten), number == MAX_OPEN_ASKS, "{number}");
    }
    assert_eq!(subscriber.open_asks().count(), MAX_OPEN_ASKS);
    assert_eq!(subscriber.accept(2, "0"), Err(CannotReply::Forgotten));
}

#[test]
fn large_questions_are_bounded_by_their_bytes() {
    let mut subscriber = listening();
    let size = 900_000;
    let mut forgotten = 0;
    for number in 0..30 {
        let ask = confirmation(&number.to_string(), 60);
        let got = subscriber.get(1, &with(ask, "extra_context", json!({ "x": "x".repeat(size) })));
        let is_told =
            |change: &&SubscriberChange| matches!(change, SubscriberChange::AskForgotten { .. });
        forgotten += got.changes.iter().filter(is_told).count();
    }
    let open = subscriber.open_asks().count();
    assert_eq!(open + forgotten, 30);
    assert!(open * size <= MAX_OPEN_ASK_BYTES && open > 10);
}

#[test]
fn sessions_with_an_open_question_are_kept_and_ended_ones_go_first() {
    let mut subscriber = subscribed(&able());
    subscriber.get(1, &in_session(confirmation("q", 600), "asking"));
    subscriber.get(2, &in_session(started(), "silent"));
    subscriber.get(3, &in_session(started(), "ended"));
    subscriber.get(4, &in_session(completed(), "ended"));
    let mut gone = Vec::new();
    for number in 0..MAX_SESSIONS {
        let got = subscriber.get(5, &in_session(started(), &number.to_string()));
        gone.extend(got.changes.into_iter().filter_map(|change| match change {
            SubscriberChange::SessionForgotten { session_id } => Some(session_id),
            _ => None,
        }));
    }
    assert_eq!(gone[..2], [session("ended"), session("silent")]);
    assert_eq!(subscriber.sessions().count(), MAX_SESSIONS);
    assert!(subscriber.session(&session("asking")).is_some());
    assert_eq!(subscriber.open_tokens(), ["rpl_q"]);
}

#[test]
fn a_text_that_is_too_long_is_cut_and_says_so() {
    let mut subscriber = listening();
    let piece = "é…".repeat(7_501);
    for number in 0..7 {
        subscriber.get(1, &chunk(number * 15_002, &piece, false));
    }
    let text = subscriber.text(&session("1"), None).expect("a text");
    assert!(text.is_cut && text.text.len() <= MAX_TEXT_BYTES);
    assert!(text.text.chars().all(|c| c == 'é' || c == '…'));
    let before = text.text.len();
    subscriber.get(2, &chunk(7 * 15_002, "e", true));
    let text = subscriber.text(&session("1"), None).expect("a text");
    assert_eq!((text.text.len(), text.is_complete), (before, true), "nothing follows a hole");
}

#[test]
fn complete_texts_are_forgotten_before_open_ones() {
    let mut texts = SubscriberTexts::default();
    let chunk = |complete| aaep::event::action::OutputStreaming {
        chunk: "x".repeat(16_000),
        position: 0,
        complete,
        coalesce_hint: None,
        output_id: None,
        content_type: None,
        language: None,
        other: aaep::Object::new(),
    };
    texts.take(&session("open"), &chunk(false));
    for number in 0..MAX_TEXTS {
        texts.take(&session(&number.to_string()), &chunk(true));
    }
    let (count, bytes) = texts.size();
    assert!(count <= MAX_TEXTS && bytes <= MAX_TEXTS_BYTES);
    assert!(texts.get(&session("open"), None).is_some());
    assert!(texts.get(&session("0"), None).is_none());
}

#[test]
fn remembered_ids_and_closed_questions_are_bounded() {
    let mut subscriber = listening();
    let mut event = heard_event(&subscriber.get(1, &progress(1))).clone();
    for number in 0..MAX_EVENT_IDS + 10 {
        event.envelope.event_id = EventId::parse(&format!("evt_n{number}")).expect("id");
        subscriber.seen.look(&event);
    }
    assert_eq!(subscriber.seen.len(), MAX_EVENT_IDS);
    let settled = heard_event(&subscriber.get(1, &notice("q", "accept", "reply"))).clone();
    let resolution = Delivery::of(&settled).and_then(|it| it.resolution).expect("an outcome");
    for number in 0..MAX_CLOSED_ASKS + 10 {
        let reply_token = token(&number.to_string());
        let resolution = Resolution { reply_token, ..resolution.clone() };
        subscriber.asks.resolve(&session("1"), &resolution, &mut Vec::new());
    }
    assert_eq!(subscriber.asks.sizes().1, MAX_CLOSED_ASKS);
    assert!(is_within_bounds(&subscriber));
}

#[test]
fn when_no_further_answer_can_be_remembered_none_is_made_until_one_is_old() {
    let mut subscriber = listening();
    let Some(HeardMessage::Event(event)) = subscriber.get(0, &confirmation("q", 60)).heard else {
        panic!("no event")
    };
    for number in 0..MAX_ANSWERED {
        let mut event = event.clone();
        let Payload::AwaitingConfirmation(ask) = &mut event.payload else { panic!("no question") };
        ask.reply_token = token(&number.to_string());
        subscriber.asks.ask(at(0), (&event, 1), (true, false), &mut Vec::new());
        subscriber.asks.answer(at(0), &token(&number.to_string()));
    }
    subscriber.get(1, &confirmation("last", 60));
    assert_eq!(subscriber.accept(2, "last"), Err(CannotReply::TooManyAnswered));
    assert_eq!(subscriber.accept(2, "7"), Err(CannotReply::AlreadyAnswered));
    let later = (ANSWERED_KEPT_SECONDS + 60) * 1000;
    subscriber.get(later, &confirmation("later", 60));
    subscriber.accept(later + 1, "later").expect("a reply");
    assert!(is_within_bounds(&subscriber));
}

#[test]
fn long_names_are_cut() {
    let mut subscriber = subscribed(&able());
    let producer = json!({ "agent_id": "a".repeat(60_000), "agent_name": "é".repeat(20_000) });
    subscriber.get(1, &with(started(), "producer", producer));
    let known = subscriber.sessions().next().expect("a session");
    assert_eq!(known.agent_id.len(), super::super::MAX_NAME_CHARS);
}
