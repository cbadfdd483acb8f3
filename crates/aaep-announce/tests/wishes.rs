//! What a person can wish for, and how a device that fails is borne with.

#[path = "common/support.rs"]
mod support;

use aaep::event::human::Decision;
use aaep_announce::{
    AnnouncerInput, AnnouncerOutcome, Answer, AskEnding, DeviceReport, Earcon, ListeningRequest,
    Order, Pace, Preferences,
};
use serde_json::json;
use support::{Room, completed, confirmation, event, text, tool};

#[test]
fn an_answer_at_the_device_comes_out_once_and_is_the_right_one() {
    let mut room = Room::by_hand();
    room.ask(4, &confirmation("rpl_1"));
    let id = room.id();
    room.report(DeviceReport::Chosen(id, 1));
    assert_eq!(room.outcomes, [], "nobody has heard the question yet");
    room.report(DeviceReport::Began(id));
    room.report(DeviceReport::Chosen(id, 2));
    room.report(DeviceReport::Chosen(id + 100, 1));
    assert_eq!(
        room.outcomes,
        [AnnouncerOutcome::Presenting(4)],
        "no such answer, no such question"
    );
    room.report(DeviceReport::Ended(id));
    room.report(DeviceReport::Chosen(id, 1));
    room.report(DeviceReport::Chosen(id, 0));
    room.report(DeviceReport::Chosen(id, 1));
    let accept = AnnouncerOutcome::Chosen { number: 4, answer: Answer::Decision(Decision::Accept) };
    let told = [
        AnnouncerOutcome::Presenting(4),
        AnnouncerOutcome::Presented(4),
        AnnouncerOutcome::PresentedWhole(4),
        accept,
    ];
    assert_eq!(room.outcomes, told);
}

#[test]
fn more_time_is_wanted_only_of_a_question_that_was_heard_and_waits() {
    let mut room = Room::quiet();
    room.ask(4, &confirmation("rpl_1"));
    let id = room.id();
    room.report(DeviceReport::MoreTime(id));
    assert_eq!(room.outcomes, [], "nobody has heard the question yet");
    room.report(DeviceReport::Began(id));
    room.report(DeviceReport::MoreTime(id + 100));
    assert_eq!(room.outcomes, [AnnouncerOutcome::Presenting(4)], "no such question");
    room.report(DeviceReport::MoreTime(id));
    assert_eq!(room.outcomes, [AnnouncerOutcome::Presenting(4), AnnouncerOutcome::MoreTime(4)]);
    room.report(DeviceReport::Chosen(id, 0));
    let before = room.outcomes.clone();
    room.report(DeviceReport::MoreTime(id));
    assert_eq!(room.outcomes, before, "what is answered needs no time");
}

#[test]
fn hush_is_quiet_at_once_and_keeps_no_question_from_the_person() {
    let mut room = Room::quiet();
    room.hear(&text("One. Two."));
    room.hear(&text("Three."));
    let decided = room.report(DeviceReport::Hush);
    assert_eq!(decided.orders, [Order::Stop]);
    assert_eq!(room.listen(), [""; 0]);
    room.ask(1, &confirmation("rpl_1"));
    let first = room.id();
    room.report(DeviceReport::Began(first));
    room.report(DeviceReport::Hush);
    room.ask(2, &confirmation("rpl_2"));
    room.report(DeviceReport::Cut(first));
    let heard = room.listen();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(heard[0].contains("asks, question 2: "), "{heard:?}");
    assert!(
        room.outcomes.contains(&AnnouncerOutcome::Presented(1)),
        "who hushes a question has noticed it"
    );
}

#[test]
fn skip_goes_on_with_the_next_thing() {
    let mut room = Room::quiet();
    room.hear(&text("One."));
    room.hear(&text("Two."));
    let one = room.id();
    room.handle(AnnouncerInput::Request(ListeningRequest::Skip));
    room.report(DeviceReport::Cut(one));
    assert_eq!(room.listen(), ["Two."]);
}

#[test]
fn the_last_thing_is_said_again_on_request() {
    let mut room = Room::quiet();
    room.handle(AnnouncerInput::Request(ListeningRequest::Repeat));
    assert_eq!(room.listen(), ["Nothing was said yet."]);
    room.hear(&text("One."));
    room.listen();
    room.report(DeviceReport::Repeat);
    assert_eq!(room.listen(), ["One."]);
    room.ask(1, &confirmation("rpl_1"));
    let first = room.id();
    room.listen();
    room.report(DeviceReport::Repeat);
    let again = room.id();
    assert_ne!(first, again);
    assert!(room.speaking.as_ref().is_some_and(|it| it.choices.len() == 2));
    room.listen();
    room.handle(AnnouncerInput::Over { number: 1, ending: AskEnding::Withdrawn });
    assert!(
        room.orders.contains(&Order::Withdraw(first))
            && room.orders.contains(&Order::Withdraw(again))
    );
    room.listen();
    room.handle(AnnouncerInput::Request(ListeningRequest::Repeat));
    assert_eq!(room.listen(), ["It is no longer asked."]);
}

#[test]
fn the_last_reply_can_be_heard_again_and_exactly() {
    let mut room = Room::quiet();
    room.handle(AnnouncerInput::Request(ListeningRequest::LastReply));
    assert_eq!(room.listen(), ["Nothing was said by an agent yet."]);
    let exact = "In /home/ada/a/b.rs:\n```rust\nfn main() {}\n```";
    room.hear(&text(exact));
    room.hear(&completed("Ok."));
    assert_eq!(
        room.listen(),
        ["Weaver: In /home/ada/a/b.rs: Rust code: fn main() {}.", "Finished. Ok."]
    );
    room.handle(AnnouncerInput::Request(ListeningRequest::LastReply));
    assert_eq!(room.listen(), ["In /home/ada/a/b.rs: Rust code: fn main() {}."]);
    room.handle(AnnouncerInput::Request(ListeningRequest::ExactText));
    assert_eq!(room.listen(), ["In /home/ada/a/b.rs: Rust code: fn main() {}."]);
    assert_eq!(room.announcer.exact_text(None), Some((exact, false)));
}

#[test]
fn the_memory_of_texts_is_bounded_and_says_so() {
    let mut room = Room::quiet();
    for _ in 0..100 {
        let piece = json!({ "chunk": "All work and no play. ".repeat(500), "position": 0, "complete": false });
        room.hear(&event("output.streaming", &piece));
        room.listen();
    }
    let (text, is_cut) = room.announcer.exact_text(None).expect("a text");
    assert!(text.len() <= aaep_announce::MAX_TEXT && is_cut);
    room.handle(AnnouncerInput::Request(ListeningRequest::LastReply));
    assert!(
        room.listen()
            .last()
            .is_some_and(|it| it.ends_with("The rest is too long to be remembered."))
    );
}

#[test]
fn the_pace_changes_within_its_bounds() {
    let mut room = Room::quiet();
    let wanted = Pace::Faster;
    let decided = room.handle(AnnouncerInput::Request(ListeningRequest::Pace(wanted)));
    assert_eq!(decided.orders, [Order::Pace(wanted)]);
    assert!(room.outcomes.is_empty() && room.listen().is_empty(), "only the device knows");
    room.report(DeviceReport::Paced { wanted, percent: 110 });
    assert_eq!(room.outcomes, [AnnouncerOutcome::Pace(198)]);
    assert_eq!(room.listen(), ["Faster."]);
    for (percent, bound) in [(1, 50), (0, 50), (u32::MAX, 1000)] {
        room.report(DeviceReport::Paced { wanted, percent });
        assert_eq!(room.announcer.preferences().pace(), bound);
    }
    room.listen();
}

#[test]
fn a_pace_that_cannot_change_is_told_and_changes_nothing() {
    for (wanted, words) in [
        (Pace::Slower, "It does not go slower."),
        (Pace::Faster, "It does not go faster."),
        (Pace::Rate(3), "It is that fast already."),
    ] {
        let mut room = Room::quiet();
        room.report(DeviceReport::Paced { wanted, percent: 100 });
        assert_eq!(room.listen(), [words]);
        assert!(room.outcomes.is_empty());
        assert_eq!(room.announcer.preferences().pace(), 180);
    }
}

#[test]
fn only_decisions_are_told_when_that_is_wished() {
    let mut room = Room::quiet();
    room.handle(AnnouncerInput::Request(ListeningRequest::OnlyDecisions(true)));
    assert_eq!(room.listen(), ["Only decisions."]);
    room.hear(&text("Chatter."));
    room.hear(&tool("x", "Doing."));
    room.hear(&completed("Done."));
    room.ask(1, &confirmation("rpl_1"));
    let heard = room.listen();
    assert!(heard.len() == 1 && heard[0].contains("Delete 17"), "{heard:?}");
    room.handle(AnnouncerInput::Request(ListeningRequest::OnlyDecisions(false)));
    room.hear(&text("Chatter again."));
    assert_eq!(room.listen(), ["Everything.", "Chatter again."]);
}

#[test]
fn a_broken_line_is_told_once_and_so_is_its_return() {
    let mut room = Room::quiet();
    for _ in 0..5 {
        room.handle(AnnouncerInput::LineBroken);
    }
    assert_eq!(room.listen(), ["The line to the agents broke. Trying again."]);
    room.handle(AnnouncerInput::LineBack);
    assert_eq!(room.listen(), ["The line to the agents is back."]);
    let session = aaep::SessionId::parse("sess_a").expect("an id");
    room.handle(AnnouncerInput::Gap { session_id: &session, missed: Some(12) });
    assert_eq!(room.listen(), ["12 events were missed."]);
    room.hear(&text("Talking."));
    room.handle(AnnouncerInput::LineBroken);
    room.handle(AnnouncerInput::LineBack);
    assert_eq!(room.listen(), ["Weaver: Talking."], "what passed before it was told is not told");
}

#[test]
fn what_a_producer_sent_in_vain_is_added_up() {
    let mut room = Room::quiet();
    room.hear(&text("Talking."));
    for _ in 0..10 {
        room.handle(AnnouncerInput::LeftOut(100));
    }
    assert_eq!(
        room.listen(),
        ["Weaver: Talking.", "The agents sent too much. Events left out: 1,000."]
    );
}

#[test]
fn a_device_in_trouble_gets_nothing_and_loses_nothing() {
    let mut room = Room::quiet();
    room.hear(&text("One."));
    room.ask(1, &confirmation("rpl_1"));
    room.report(DeviceReport::Trouble("The server is gone.".to_owned()));
    room.speaking = None;
    assert_eq!(room.outcomes, [AnnouncerOutcome::Trouble("The server is gone.".to_owned())]);
    room.hear(&text("Two."));
    room.report(DeviceReport::Trouble("The server is gone.".to_owned()));
    assert_eq!(room.words(), "");
    assert_eq!(room.outcomes.len(), 1, "told once");
    assert_eq!(
        room.report(DeviceReport::Cut(1)).outcomes,
        [],
        "giving words back does not show that it works"
    );
    assert_eq!(room.report(DeviceReport::Works).outcomes, [AnnouncerOutcome::Works]);
    let heard = room.listen();
    assert_eq!(heard[0], "Weaver says before it asks: One.");
    assert!(heard[1].contains("Delete 17"), "{heard:?}");
    assert_eq!(heard[2..], ["Two."]);
}

#[test]
fn a_device_that_says_nothing_for_minutes_counts_as_broken() {
    let mut room = Room::quiet();
    room.hear(&text("One."));
    room.now = room.announcer.deadline().expect("patience ends");
    let decided = room.handle(AnnouncerInput::Tick);
    assert_eq!(decided.outcomes, [AnnouncerOutcome::Trouble("It does not answer.".to_owned())]);
    assert_eq!(room.announcer.deadline(), None);
    let late = room.stopped.pop().expect("what hung");
    assert_eq!(room.report(DeviceReport::Began(late)).outcomes, [AnnouncerOutcome::Works]);
    assert_eq!(room.words(), "One.");
}

#[test]
fn a_device_that_cuts_everything_off_is_not_asked_for_ever() {
    let mut room = Room::quiet();
    room.hear(&text("One."));
    let mut times = 0;
    while let Some(utterance) = room.speaking.take() {
        times += 1;
        assert!(times < 10);
        room.report(DeviceReport::Cut(utterance.id));
    }
    assert_eq!(times, 3);
}

#[test]
fn reports_that_make_no_sense_change_nothing() {
    let mut room = Room::quiet();
    room.hear(&text("One."));
    let id = room.id();
    for report in [
        DeviceReport::Began(99),
        DeviceReport::Ended(99),
        DeviceReport::Cut(99),
        DeviceReport::Chosen(id, 0),
    ] {
        assert_eq!(room.report(report).orders, []);
    }
    assert_eq!(room.listen(), ["Weaver: One."]);
    assert_eq!(room.report(DeviceReport::Ended(id)).orders, [], "a second end");
}

#[test]
fn sounds_come_before_words_and_only_if_they_are_wanted() {
    let mut room = Room::new(Preferences::default());
    let decided = room.hear(&completed("Done."));
    assert!(matches!(decided.orders.as_slice(), [Order::Sound(Earcon::Done), Order::Say(_)]));
    let mut room = Room::quiet();
    assert!(matches!(room.hear(&completed("Done.")).orders.as_slice(), [Order::Say(_)]));
}

#[test]
fn a_device_that_does_not_pace_hears_everything_in_order() {
    let mut room = Room::quiet();
    let mut heard = Vec::new();
    for at in 0..1000 {
        room.hear(&text(&format!("Sentence {at}.")));
        heard.extend(room.listen());
    }
    assert_eq!(heard.len(), 1000);
    assert_eq!(heard[999], "Sentence 999.");
}
