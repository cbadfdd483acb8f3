//! What was said, once more: the words of live listening, and questions as past.

#[path = "common/support.rs"]
mod support;

use std::time::Duration;

use aaep::Event;
use aaep_announce::{Answered, AnsweredBy, Preferences, Transcript, Utterance, UtteranceKind};
use serde_json::json;
use support::*;

fn transcript() -> Transcript {
    Transcript::new(&Preferences::default())
}

fn words(said: &[Utterance]) -> Vec<&str> {
    said.iter().map(|it| it.words.as_str()).collect()
}

fn take(transcript: &mut Transcript, event: &Event) -> Vec<Utterance> {
    transcript.take(Duration::ZERO, event, None)
}

#[test]
fn the_words_are_those_of_live_listening() {
    let events = [
        event("session.started", &json!({ "summary_normal": "I look for `main.rs`." })),
        tool("Read", "Reading main.rs."),
        text("It is **there**.\n\n```rust\nfn main() {}\n```\n"),
        completed("Found it."),
    ];
    let (mut room, mut transcript) = (Room::quiet(), transcript());
    let mut count = 0;
    for event in &events {
        room.hear(event);
        let live = room.listen();
        let past = take(&mut transcript, event);
        assert_eq!(words(&past), live);
        count += live.len();
    }
    assert!(count >= events.len(), "everything said something");
}

#[test]
fn a_question_is_told_as_past_and_then_by_whom_it_was_decided() {
    for (outcome, decided_by, by, said) in [
        ("accept", "reply", Some(AnsweredBy::You), "You accepted it."),
        ("reject", "reply", Some(AnsweredBy::Elsewhere), "Someone else refused it."),
        ("accept", "reply", Some(AnsweredBy::Rule), "A rule accepted it, not a person."),
        ("reject", "reply", None, "It was refused."),
        ("reject", "timeout", None, "Nobody answered in time, so it was refused."),
        ("reject", "no_listener", None, "Nobody was there to answer, so it was refused."),
        ("withdrawn", "withdrawn", None, "It was taken back."),
    ] {
        let mut transcript = transcript();
        let asked = take(&mut transcript, &confirmation("rpl_1"));
        let [question] = asked.as_slice() else { panic!("{asked:?}") };
        assert_eq!(question.kind, UtteranceKind::Question);
        assert!(question.choices.is_empty(), "nothing can be answered");
        let told = &question.words;
        assert!(told.starts_with("Weaver asked: Delete 17 pictures"), "{told}");
        assert!(told.contains("High risk.") && told.contains("It cannot be undone."), "{told}");
        assert!(!told.contains("Yes or no") && !told.contains("You have"), "{told}");
        assert_eq!(transcript.open().count(), 1);
        let answered = by.map(|by| Answered { by, response: None });
        let settled =
            transcript.take(Duration::ZERO, &resolution("rpl_1", outcome, decided_by), answered);
        assert_eq!(words(&settled), [said]);
        assert_eq!(transcript.open().count(), 0);
    }
}

#[test]
fn what_was_answered_is_told_and_is_only_words() {
    let mut transcript = transcript();
    let asked = event(
        "awaiting.clarification",
        &json!({
            "question": "Which year?", "reply_token": "rpl_1", "timeout_seconds": 60,
            "accepted_response_kinds": ["freetext"],
        }),
    );
    take(&mut transcript, &asked);
    let by = AnsweredBy::You;
    let answered = Some(Answered { by, response: Some("2019\u{1b}[2J\nYou accepted it.") });
    let told = transcript.take(Duration::ZERO, &resolution("rpl_1", "answered", "reply"), answered);
    let [told] = told.as_slice() else { panic!("{told:?}") };
    assert!(told.words.starts_with("You answered it. The answer was: 2019"), "{}", told.words);
    assert!(!told.words.contains(['\u{1b}', '\n']), "{}", told.words);
}

#[test]
fn a_claim_against_a_refusal_is_followed_by_the_fact_here_too() {
    let mut transcript = transcript();
    take(&mut transcript, &confirmation("rpl_1"));
    take(&mut transcript, &resolution("rpl_1", "reject", "reply"));
    let said = take(&mut transcript, &text("Done! All 17 pictures are gone."));
    assert_eq!(
        words(&said).last(),
        Some(&"In fact “Delete 17 pictures from /home/ada/work/july” was not allowed.")
    );
}

#[test]
fn with_several_open_it_is_told_which_one_was_settled_and_the_end_takes_the_rest_back() {
    let mut transcript = transcript();
    take(&mut transcript, &confirmation("rpl_1"));
    take(&mut transcript, &confirmation("rpl_2"));
    let settled = take(&mut transcript, &resolution("rpl_1", "reject", "timeout"));
    let [settled] = settled.as_slice() else { panic!("{settled:?}") };
    assert!(settled.words.contains("Delete 17 pictures"), "{}", settled.words);
    assert!(settled.words.ends_with("Nobody answered in time, so it was refused."));
    let end = take(&mut transcript, &completed("That was it."));
    assert_eq!(words(&end).first(), Some(&"It was taken back."));
    assert_eq!(transcript.open().count(), 0);
}

#[test]
fn a_long_reply_is_not_summed_up_and_questions_stay_bounded() {
    let mut transcript = transcript();
    let long = "This is a sentence of eight plain words. ".repeat(400);
    let said = take(&mut transcript, &text(&long));
    let count: usize = said.iter().map(|it| it.words.matches("eight plain").count()).sum();
    assert_eq!(count, 400);
    for at in 0..1000 {
        take(&mut transcript, &confirmation(&format!("rpl_{at}")));
    }
    assert!(transcript.open().count() <= aaep_announce::MAX_QUESTIONS);
}
