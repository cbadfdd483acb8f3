//! Listening rehearsed at a person's pace, and the report of it.

#[path = "common/support.rs"]
mod support;

use std::time::Duration;

use aaep::{Event, Message, Mode, read};
use aaep_announce::{
    AnsweredBy, AskEnding, ListeningReport, Order, Preferences, Profile, UtteranceKind, rehearse,
};
use serde_json::{Value, json};
use support::{completed, confirmation, event, event_of, resolution, seconds, text, tool};

/// The events of the sample session, each at its moment.
fn sample() -> Vec<(Duration, Event)> {
    let lines = include_str!("../../../samples/session.jsonl").lines();
    let events = lines.filter_map(|line| match read(line.as_bytes(), Mode::Tolerant).message {
        Some(Message::Event(event)) => Some(*event),
        _ => None,
    });
    let mut start = None;
    events
        .map(|event| {
            let at = moment(&event);
            let start = *start.get_or_insert(at);
            (at.saturating_sub(start), event)
        })
        .collect()
}

/// The time of day of an event.
fn moment(event: &Event) -> Duration {
    let text = event.envelope.timestamp.to_string();
    let time = text.split(['T', 'Z']).nth(1).expect("a time");
    let parts: Vec<f64> = time.split(':').map(|it| it.parse().expect("a number")).collect();
    Duration::from_secs_f64(parts[0] * 3600.0 + parts[1] * 60.0 + parts[2])
}

#[test]
fn the_sample_session_is_heard_as_a_person_would_hear_it() {
    let preferences = Preferences { sounds: false, ..Preferences::default() };
    let rehearsal = rehearse(&sample(), &preferences, 180);
    let heard: Vec<(&str, bool)> =
        rehearsal.said.iter().map(|it| (it.utterance.words.as_str(), it.is_whole)).collect();
    let question = "Photo Tidier asks: Delete 17 pictures from Pictures/July. They are gone for good; there is no copy \
                    elsewhere.";
    let how = "You have 4 minutes. Without an answer it is refused. Yes or no?";
    assert_eq!(
        heard,
        [
            ("Photo Tidier: Started. Photo Tidier is looking through your holiday pictures.", true),
            // Cut off by the question, and outdated when that was over.
            ("Planning the search.", false),
            // Answered before it was told to its end.
            (question, true),
            ("High risk. It cannot be undone.", true),
            (how, false),
            ("Accepted.", true),
            ("Found 17 blurred pictures among 412.", true),
            // The end does not wait.
            ("Done: 17 blurred pictures deleted. What came before that follows.", true),
            ("Deleting 17 pictures. High risk. It cannot be undone.", true),
            ("I removed 17 blurred pictures from July.", true),
            ("395 are left, and all of them are sharp.", true),
        ]
    );
}

#[test]
fn the_report_of_the_sample_session_has_nothing_missed_repeated_or_cut() {
    for profile in Profile::ALL {
        let report = ListeningReport::of(&sample(), &profile.preferences(), 180);
        assert_eq!(report.asks, 1, "{}", profile.name());
        assert_eq!(report.asks_missed, 0, "{}", profile.name());
        assert_eq!(report.slowest_ask_ms, Some(0), "{}", profile.name());
        assert_eq!(report.repeated_announcements, 0, "{}", profile.name());
        assert_eq!(report.cut_announcements, 0, "{}", profile.name());
        assert!(report.words_spoken > 0 && report.words_emitted > 0);
        assert!(report.listening_ms >= report.session_ms);
    }
}

#[test]
fn the_report_counts_what_it_says_it_counts() {
    let words = json!({ "chunk": "One two three four five six.", "position": 0, "complete": true });
    let events = [
        (seconds(0), event_of("Loom", "b", "output.streaming", &words)),
        (seconds(1), confirmation("rpl_1")),
        (seconds(40), resolution("rpl_1", "accept", "reply")),
        (seconds(100), completed("Over now.")),
    ];
    let preferences = Preferences { sounds: false, names: false, ..Preferences::default() };
    // At sixty words per minute a word takes a second.
    let report = ListeningReport::of(&events, &preferences, 60);
    assert_eq!((report.events, report.session_ms), (4, 100_000));
    assert_eq!(report.interrupted_announcements, 1, "the text was cut off and said again");
    assert_eq!(report.cut_announcements, 0);
    assert_eq!(report.ask_to_first_word_ms, [Some(0)]);
    let rehearsal = rehearse(&events, &preferences, 60);
    let question = rehearsal.said.iter().filter(|it| it.utterance.kind == UtteranceKind::Question);
    let question: usize = question.map(|it| it.utterance.words.split(' ').count()).sum();
    // The question, then the text again; then "Accepted." until the end is told.
    let quiet_from = (1 + question + 6).max(40) + 1;
    assert_eq!(report.longest_silence_ms, (100 - quiet_from as u64) * 1000);
    assert_eq!(report.behind_at_the_end_ms, 3000);
    assert_eq!(report.furthest_behind_ms, (1 + question as u64) * 1000);
    assert_eq!(report.words_spoken, question as u64 + 6 + 1 + 3);
}

#[test]
fn a_question_that_nobody_could_hear_in_time_is_missed() {
    let failed = event(
        "session.errored",
        &json!({ "error_category": "unknown", "summary_normal": format!("Failed {}", "word ".repeat(100)) }),
    );
    let mut ask = confirmation("rpl_1");
    if let aaep::Payload::AwaitingConfirmation(it) = &mut ask.payload {
        it.timeout_seconds = 5;
    }
    let events = [(seconds(0), failed), (seconds(1), ask)];
    let report = ListeningReport::of(&events, &Preferences::default(), 60);
    assert_eq!((report.asks, report.asks_missed), (1, 1));
    assert_eq!(report.slowest_ask_ms, None);
}

/// A question that may stay open for so many seconds.
fn short_question(token: &str, timeout_seconds: u64) -> Event {
    let mut ask = confirmation(token);
    if let aaep::Payload::AwaitingConfirmation(it) = &mut ask.payload {
        it.timeout_seconds = timeout_seconds;
    }
    ask
}

#[test]
fn how_a_question_really_ended_beats_its_time() {
    let events = [
        (seconds(0), short_question("rpl_1", 5)),
        (seconds(60), resolution("rpl_1", "accept", "reply")),
    ];
    let rehearsal = rehearse(&events, &Preferences::default(), 180);
    let ending = AskEnding::Accepted(AnsweredBy::You);
    assert_eq!(rehearsal.asks[0].over, Some((seconds(60), ending)), "it was given more time");
    assert!(rehearsal.said.iter().any(|it| it.utterance.words == "Accepted."));
}

#[test]
fn a_question_without_a_recorded_end_ends_with_its_time() {
    let later = |at: &str| {
        let deadline = json!({ "reply_token": "rpl_1", "at": at, "paused": false });
        let fields = json!({ "from_state": "awaiting_input", "to_state": "awaiting_input",
            "extensions": { "agentvoice": { "deadline": deadline } } });
        event("state.changed", &fields)
    };
    let alone = [(seconds(0), short_question("rpl_1", 60))];
    let over =
        |events: &[(Duration, Event)]| rehearse(events, &Preferences::default(), 180).asks[0].over;
    let ending = AskEnding::Rejected(AnsweredBy::Timeout);
    assert_eq!(over(&alone), Some((seconds(60), ending)));
    let [asked] = alone;
    let extended = [asked, (seconds(30), later("2026-11-02T06:21:40.000Z"))];
    assert_eq!(over(&extended), Some((seconds(130), ending)), "100 seconds from then on");
}

#[test]
fn time_that_runs_out_after_the_recording_is_not_being_behind() {
    let events = [(seconds(0), confirmation("rpl_1"))];
    let report = ListeningReport::of(&events, &Preferences::default(), 180);
    assert!(report.listening_ms > 290_000, "{report}");
    assert!(report.behind_at_the_end_ms < 30_000, "{report}");
}

#[test]
fn a_question_that_is_told_again_is_one_question() {
    let events = [(seconds(0), confirmation("rpl_1")), (seconds(9), confirmation("rpl_1"))];
    assert_eq!(ListeningReport::of(&events, &Preferences::default(), 180).asks, 1);
}

#[test]
fn that_something_is_asked_counts_where_the_question_was_not_recorded() {
    let waiting = event(
        "state.changed",
        &json!({ "from_state": "awaiting_input", "to_state": "awaiting_input", "urgency": "critical",
            "summary_normal": "Waiting for someone to confirm: Delete it." }),
    );
    let events = [
        (seconds(0), text("One two three four five six.")),
        (seconds(1), waiting),
        (seconds(20), resolution("rpl_1", "reject", "reply")),
    ];
    let rehearsal = rehearse(&events, &Preferences::default(), 60);
    assert_eq!(rehearsal.asks.len(), 1);
    assert_eq!(rehearsal.asks[0].first_word, Some(seconds(1)));
    assert_eq!(rehearsal.asks[0].over.map(|(at, _)| at), Some(seconds(20)));
    let report = ListeningReport::of(&events, &Preferences::default(), 60);
    assert_eq!((report.asks, report.asks_missed), (1, 0));
}

#[test]
fn words_that_come_in_pieces_are_counted_once() {
    let piece = |chunk: &str, complete: bool| {
        let fields =
            json!({ "chunk": chunk, "position": 0, "complete": complete, "output_id": "out_1" });
        (seconds(0), event("output.streaming", &fields))
    };
    let events = [
        piece("Un", false),
        piece("believ", false),
        piece("", false),
        piece("able, ", false),
        piece("but", false),
        piece(" true", true),
        // Another text, which goes on where no other ended.
        piece("So", true),
    ];
    let report = ListeningReport::of(&events, &Preferences::default(), 180);
    assert_eq!(report.words_emitted, 4);
}

#[test]
fn a_device_that_does_not_pace_is_never_behind() {
    let mut events: Vec<(Duration, Event)> =
        (0..500).map(|at| (seconds(at), text(&format!("Line {at}.")))).collect();
    events.push((seconds(500), tool("grep", "Searching.")));
    let report = ListeningReport::of(&events, &Preferences::default(), 0);
    assert_eq!((report.announcements, report.furthest_behind_ms), (501, 0));
}

#[test]
fn a_rehearsal_is_the_same_every_time_and_ends() {
    let orders = |_| rehearse(&sample(), &Preferences::default(), 120).orders;
    assert_eq!(orders(1), orders(2));
    assert!(orders(3).iter().any(|(_, order)| matches!(order, Order::Say(_))));
    assert!(rehearse(&[], &Preferences::default(), 120).orders.is_empty());
}

#[test]
fn the_report_can_be_read_by_people_and_by_programs() {
    let report = ListeningReport::of(&sample(), &Preferences::default(), 180);
    let text = report.to_string();
    assert!(text.contains("Questions missed: 0\n"), "{text}");
    assert!(!text.contains(char::is_control) || text.lines().count() > 10);
    let json: Value = serde_json::from_str(&report.to_json()).expect("JSON");
    assert_eq!(json["asks_missed"], 0);
    assert_eq!(json["words_per_minute"], 180);
}

#[test]
fn an_end_that_waits_for_more_than_one_sentence_is_a_fault_of_the_report() {
    let events = [
        (seconds(0), confirmation("rpl_1")),
        (
            seconds(1),
            event_of(
                "Loom",
                "b",
                "session.completed",
                &json!({ "summary_normal": "All is done." }),
            ),
        ),
        (seconds(2), resolution("rpl_1", "accept", "reply")),
    ];
    let preferences = Preferences { sounds: false, ..Preferences::default() };
    let mut rehearsal = rehearse(&events, &preferences, 180);
    let report = ListeningReport::of_rehearsal(&events, &rehearsal, 180);
    assert_eq!(report.late_ends, 0, "it comes between two sentences of the question");
    // As if a question were told in one piece, and the end after it.
    let question = &mut rehearsal.said[0];
    question.utterance.words = "Delete 17 pictures from the folder of July on this old machine of yours. They are gone for good, and \
                                there is no copy of them anywhere. High risk, and it cannot be undone by anyone."
        .to_owned();
    question.ended = seconds(12);
    let end = rehearsal.said.iter_mut().find(|it| it.utterance.words.contains("All is done."));
    end.expect("the end").began = seconds(12);
    let report = ListeningReport::of_rehearsal(&events, &rehearsal, 180);
    assert_eq!(report.late_ends, 1);
    assert!(
        !report.is_good() && report.to_string().contains("sentence: 1, and should be 0"),
        "{report}"
    );
}
