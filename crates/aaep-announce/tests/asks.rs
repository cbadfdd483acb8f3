//! What a device is given of an ask: nothing of it is left out, shortened or changed. And what counts as consent
//! there (ruling 33): an answer to an ask that was presented to its end.

#[path = "common/support.rs"]
mod support;
#[path = "common/undo.rs"]
mod undo;

use aaep::Event;
use aaep::event::human::Decision;
use aaep_announce::device::braille;
use aaep_announce::device::lines::{LineOptions, Lines, Notification};
use aaep_announce::device::speech::codec;
use aaep_announce::words::spoken;
use aaep_announce::{
    AnnouncerInput, AnnouncerOutcome, Answer, AskEnding, DeviceReport, ListeningRequest, Order,
    Preferences, Transcript, Utterance,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{Room, confirmation, event, event_of, resolution, seconds, text};
use undo::{heard, holds, shown};

/// A confirmation with this action, consequence, tool and argument.
fn asked(action: &str, consequence: &str, argument: &Value) -> Event {
    event(
        "awaiting.confirmation",
        &json!({
            "action": action, "consequence": consequence, "reply_token": "rpl_1", "timeout_seconds": 300,
            "default_decision": "reject", "extra_context": { "arguments": argument },
            "extensions": { "agentvoice": { "tool": "run__it" } },
        }),
    )
}

/// What a device that shows it in one piece is given of it.
fn given(event: &Event) -> Utterance {
    let mut room = Room::by_hand();
    room.ask(1, event);
    room.speaking.expect("the question")
}

/// What a voice is given of it, sentence by sentence.
fn given_to_voice(event: &Event) -> Vec<Utterance> {
    let mut room = Room::quiet();
    room.ask(1, event);
    room.listen();
    let said = room.orders.into_iter().filter_map(|it| match it {
        Order::Say(utterance) => Some(utterance),
        _ => None,
    });
    said.collect()
}

fn lines(utterance: &Utterance, options: LineOptions) -> String {
    let mut out = Vec::new();
    Lines::new(&mut out, options).carry_out(&Order::Say(utterance.clone()), |_| {});
    String::from_utf8(out).expect("UTF-8")
}

/// The lines that a speech server is sent.
fn speech(event: &Event) -> String {
    let line = |utterance: &Utterance| {
        let sent = String::from_utf8(codec::message(&spoken(&utterance.words))).expect("UTF-8");
        sent.strip_suffix("\r\n.\r\n").expect("a message").to_owned()
    };
    given_to_voice(event).iter().map(line).collect::<Vec<_>>().join(" ")
}

/// What comes under the fingers, without the numbers of the windows.
fn windows(utterance: &Utterance, cells: usize) -> String {
    let windows = braille::question_windows(utterance, cells);
    let count = windows.len();
    let without_number = |(at, window): (usize, &String)| {
        let number = format!("{}/{count} ", at + 1);
        // A small display has no numbers.
        window.strip_prefix(&number).filter(|_| cells > 16).unwrap_or(window).to_owned()
    };
    windows.iter().enumerate().map(without_number).collect()
}

/// What a screen reader announces and what stands there.
#[cfg(all(feature = "desktop", target_os = "linux"))]
fn on_the_desktop(event: &Event) -> Vec<(&'static str, String)> {
    let texts = given_to_voice(event);
    let texts = texts.iter().map(aaep_announce::device::desktop::question_texts);
    let (announced, stands): (Vec<String>, Vec<String>) = texts.map(|[a, b]| (a, b)).unzip();
    let (announced, stands) = (announced.join(" "), stands.join(" "));
    vec![("an announcement", heard(&announced)), ("the desktop", shown(&stands))]
}

#[cfg(not(all(feature = "desktop", target_os = "linux")))]
fn on_the_desktop(_: &Event) -> Vec<(&'static str, String)> {
    Vec::new()
}

fn is_told_whole(action: &str, consequence: &str, argument: &str) -> Result<(), TestCaseError> {
    let event = asked(action, consequence, &json!({ "to": argument }));
    let utterance = given(&event);
    let json: Value = serde_json::from_str(&lines(
        &utterance,
        LineOptions { is_json: true, ..Default::default() },
    ))
    .expect("JSON");
    let argument = json!({ "to": argument }).to_string();
    let mut told = vec![
        ("every device", shown(&utterance.words)),
        ("lines", shown(&lines(&utterance, LineOptions::default()))),
        ("lines for programs", shown(json["words"].as_str().expect("words"))),
        ("speech", heard(&speech(&event))),
        ("a transcript", shown(&past(&event))),
        ("braille of 12 cells", shown(&windows(&utterance, 12))),
        ("braille of 40 cells", shown(&windows(&utterance, 40))),
    ];
    told.extend(on_the_desktop(&event));
    for (device, told) in told {
        for text in [action, consequence, "run__it", &argument] {
            prop_assert!(holds(&told, text), "{device}: {text:?} is not in {told:?}");
        }
    }
    Ok(())
}

fn past(event: &Event) -> String {
    let said = Transcript::new(&Preferences::default()).take(seconds(1), event, None);
    said.into_iter().map(|it| it.words).collect()
}

#[test]
fn what_was_told_wrongly_is_told_whole() {
    for (action, said) in [
        (
            "Pay 900 euros to DE89370400440532013000.",
            "Pay 900 euros to D E 8 9, 3 7 0 4, 0 0 4 4, 0 5 3 2, 0 1 3 0, 0 0.",
        ),
        ("~~Do not~~ delete all", "tilde tilde Do not tilde tilde delete all."),
        ("Edit __init__", "Edit underscore underscore init underscore underscore"),
        (
            "Merge 550e8400-e29b-41d4-a716-446655440000",
            "Merge 5 5 0 e, 8 4 0 0 dash e 2 9 b dash 4 1 d 4 dash a 7 1 6 dash 4 4 6 6, 5 5 4 4, 0 0 0 0.",
        ),
        ("rm -rf ./build\nrm -rf /", "rm dash rf dot slash build line break rm dash rf slash"),
        ("Send to \u{202e}gro.live\u{1b}[2J", "Send to right-to-left override gro dot live escape"),
    ] {
        let told = speech(&asked(action, "It happens.", &json!(null)));
        assert!(told.contains(said), "{told}");
        is_told_whole(action, "It happens.", action).expect("whole");
    }
}

#[test]
fn blanks_that_differ_are_told_differently_on_every_device() {
    for action in
        ["rm a  b", "rm a\tb", " rm a", "rm a ", "rm a\u{a0}b", "rm a\u{3000}b", "rm a\n  b"]
    {
        is_told_whole(action, "It happens.", action).expect("whole");
    }
    let [one, two] = ["rm a b", "rm a  b"].map(|it| asked(it, "Gone.", &json!(null)));
    assert_ne!(given(&one).words, given(&two).words);
    assert!(speech(&two).contains("rm a 2 spaces b"), "{}", speech(&two));
}

#[test]
fn what_the_agent_does_not_state_is_told_as_not_stated() {
    let told = given(&asked("Delete all.", "Gone.", &json!(null))).words;
    assert!(
        told.contains("The risk is not stated. Whether it can be undone is not stated."),
        "{told}"
    );
    for (field, value, said) in [
        ("irreversible", json!(false), "It can be undone."),
        ("irreversible", json!(true), "It cannot be undone."),
        ("reversibility", json!("reversible_with_effort"), "It is hard to undo."),
        (
            "reversibility",
            json!("somehow"),
            "Whether it can be undone is said in a word that is not known here.",
        ),
        ("risk_level", json!("low"), "Low risk."),
    ] {
        let mut fields = json!({
            "action": "Delete all.", "consequence": "Gone.", "reply_token": "rpl_1", "timeout_seconds": 300,
            "default_decision": "reject",
        });
        fields[field] = value;
        let told = given(&event("awaiting.confirmation", &fields)).words;
        assert!(told.contains(said), "{told}");
        let is_about_risk = field == "risk_level";
        assert_eq!(told.contains("The risk is not stated."), !is_about_risk, "{told}");
        assert_eq!(told.contains("undone is not stated."), is_about_risk, "{told}");
    }
}

#[test]
fn a_notification_has_the_whole_question_or_nothing_of_it() {
    let options = LineOptions { notifies: Some(Notification::Osc9), ..LineOptions::default() };
    let short = lines(&given(&asked("Delete a,b.", "Gone.", &json!(1))), options);
    let notification = short.split('\u{7}').next().expect("a notification");
    assert!(notification.contains("Delete a,b. Gone."), "{short}");
    for action in ["Run a; rm -rf /".to_owned(), "x".repeat(300)] {
        let text = lines(&given(&asked(&action, "Gone.", &json!(1))), options);
        let notification = text.split('\u{7}').next().expect("a notification");
        assert_eq!(notification, "\u{1b}]9;A question waits for you in the terminal.", "{text}");
    }
}

#[test]
fn a_reminder_has_the_whole_action_or_the_number() {
    let long = format!("Delete {}", "everything and ".repeat(20));
    for (action, reminder) in [("Delete __a__", "Delete __a__"), (&long, "Question 1.")] {
        let mut room = Room::quiet();
        room.ask(1, &asked(action, "Gone.", &json!(1)));
        room.listen();
        room.now = seconds(270);
        room.handle(AnnouncerInput::Tick);
        assert!(room.words().contains(reminder), "{}", room.words());
        assert!(!room.words().contains("everything"), "{}", room.words());
    }
}

#[test]
fn what_is_said_about_an_ask_that_was_never_heard_has_all_of_it() {
    let mut room = Room::quiet();
    let action = "Pay DE89370400440532013000 from ~/__a__/ .";
    room.handle(AnnouncerInput::Device(DeviceReport::Trouble("gone".to_owned())));
    room.ask(1, &asked(action, "Gone.", &json!(1)));
    room.handle(AnnouncerInput::Over { number: 1, ending: AskEnding::Withdrawn });
    room.handle(AnnouncerInput::Device(DeviceReport::Works));
    let heard = room.listen().join(" ");
    assert!(heard.contains(&format!("{action}: It is no longer asked.")), "{heard}");
}

proptest! {
    // Without vowels, so that no word of the text is by chance the name of a mark, such as at or dot.
    #[test]
    fn from_what_any_device_was_given_the_ask_can_be_recovered(
        action in "[b-df-hj-np-tv-zB-Z0-9 _~*`'\"()\\[\\]{}<>=+/\\\\|.,;:?!@#$%^&—“”≤≠„‹›×÷±‐\u{2011}世é\u{1b}\u{202e}\u{200b}\n\t\u{a0}\u{3000}-]{1,80}",
        consequence in "([a-f0-9]{1,40}|-{1,9}|[A-Z]{2}[0-9]{6,30}|[.,:/]{1,3}| |0[0-9]{1,9}){1,12}",
        argument in "[b-df-hj-np-tv-zA-Z0-9 !-@{-~]{0,40}",
    ) {
        prop_assume!(!action.trim().is_empty() && !consequence.trim().is_empty());
        is_told_whole(&action, &consequence, &argument)?;
    }
}

fn chosen(room: &Room) -> Vec<&AnnouncerOutcome> {
    room.outcomes.iter().filter(|it| matches!(it, AnnouncerOutcome::Chosen { .. })).collect()
}

const TOO_SOON: &str = "You have not come to the end of this question. Nothing was answered.";

#[test]
fn a_yes_at_a_device_counts_only_once_the_question_was_told_to_its_end() {
    let mut room = Room::quiet();
    room.ask(1, &confirmation("rpl_1"));
    let id = room.id();
    room.report(DeviceReport::Began(id));
    room.report(DeviceReport::Chosen(id, 1));
    assert_eq!(chosen(&room), Vec::<&AnnouncerOutcome>::new(), "three words were spoken");
    // The person is told so at once, and asked again from the beginning.
    assert_eq!(room.words(), TOO_SOON);
    let heard = room.listen();
    assert!(heard[1].starts_with("Weaver asks: Delete 17 pictures"), "{heard:?}");
    room.report(DeviceReport::Chosen(id, 1));
    let answer = Answer::Decision(Decision::Accept);
    assert_eq!(chosen(&room), [&AnnouncerOutcome::Chosen { number: 1, answer }]);
}

#[test]
fn a_no_at_a_device_counts_as_soon_as_the_question_is_being_told() {
    let mut room = Room::quiet();
    room.ask(1, &confirmation("rpl_1"));
    let id = room.id();
    room.report(DeviceReport::Began(id));
    room.report(DeviceReport::Chosen(id, 0));
    let answer = Answer::Decision(Decision::Reject);
    assert_eq!(chosen(&room), [&AnnouncerOutcome::Chosen { number: 1, answer }]);
}

#[test]
fn what_was_stopped_or_only_shown_was_not_told_to_its_end() {
    for is_stopped in [true, false] {
        let mut room = Room::quiet();
        room.ask(1, &confirmation("rpl_1"));
        let id = room.id();
        room.report(DeviceReport::Began(id));
        if is_stopped {
            room.handle(AnnouncerInput::Request(ListeningRequest::Hush));
            room.report(DeviceReport::Cut(id));
        } else {
            room.report(DeviceReport::Shown(id));
        }
        assert_eq!(
            room.outcomes,
            [AnnouncerOutcome::Presenting(1), AnnouncerOutcome::Presented(1)]
        );
        room.report(DeviceReport::Chosen(id, 1));
        assert_eq!(chosen(&room), Vec::<&AnnouncerOutcome>::new());
        assert_eq!(room.words(), TOO_SOON);
    }
}

#[test]
fn a_person_who_reads_on_to_the_end_later_was_told_the_whole_question() {
    let mut room = Room::by_hand();
    room.ask(1, &confirmation("rpl_1"));
    let id = room.id();
    room.report(DeviceReport::Shown(id));
    assert!(!room.outcomes.contains(&AnnouncerOutcome::PresentedWhole(1)));
    room.report(DeviceReport::Ended(id));
    assert!(room.outcomes.contains(&AnnouncerOutcome::PresentedWhole(1)));
    room.report(DeviceReport::Chosen(id, 1));
    assert_eq!(chosen(&room).len(), 1);
}

#[test]
fn a_reminder_is_not_the_question() {
    let mut room = Room::quiet();
    room.ask(1, &confirmation("rpl_1"));
    let id = room.id();
    room.report(DeviceReport::Began(id));
    room.report(DeviceReport::Shown(id));
    room.now = seconds(270);
    room.handle(AnnouncerInput::Tick);
    let reminder = room.id();
    room.report(DeviceReport::Ended(reminder));
    room.report(DeviceReport::Chosen(reminder, 1));
    assert_eq!(
        chosen(&room),
        Vec::<&AnnouncerOutcome>::new(),
        "nobody was told what follows from it"
    );
}

#[test]
fn feedback_is_told_at_once_and_what_it_interrupts_is_told_again_whole() {
    let mut room = Room::quiet();
    let story = json!({ "chunk": "A long story.", "position": 0, "complete": true });
    room.hear(&event_of("Loom", "b", "output.streaming", &story));
    let story = room.id();
    room.ask(1, &confirmation("rpl_1"));
    room.report(DeviceReport::Cut(story));
    let question = room.id();
    room.report(DeviceReport::Began(question));
    room.handle(AnnouncerInput::Feedback("Nothing was answered."));
    assert_eq!(room.words(), "Nothing was answered.");
    assert_eq!(room.stopped, [question]);
    let heard = room.listen();
    assert_eq!(heard.len(), 3);
    assert!(heard[1].contains("Delete 17 pictures"), "{heard:?}");
    assert_eq!(heard[2], "Loom: A long story.");
    room.handle(AnnouncerInput::Request(ListeningRequest::Repeat));
    assert_eq!(room.listen(), ["A long story."], "it is never repeated");
}

#[test]
fn feedback_never_reaches_the_next_question() {
    let mut room = Room::quiet();
    room.handle(AnnouncerInput::Device(DeviceReport::Trouble("gone".to_owned())));
    room.handle(AnnouncerInput::Feedback("That is not an answer to this question."));
    room.ask(1, &confirmation("rpl_1"));
    room.handle(AnnouncerInput::Device(DeviceReport::Works));
    let heard = room.listen().join(" ");
    assert!(heard.contains("Delete 17 pictures"), "{heard}");
    assert!(!heard.contains("That is not an answer"), "not at once, so not at all: {heard}");
    // One that was interrupted is not told later either.
    room.handle(AnnouncerInput::Feedback("First."));
    let first = room.id();
    room.handle(AnnouncerInput::Feedback("Second."));
    room.report(DeviceReport::Cut(first));
    assert_eq!(room.listen(), ["Second."]);
    room.hear(&resolution("rpl_1", "accept", "reply"));
}

#[test]
fn a_key_without_an_answer_says_so_and_answers_nothing() {
    let mut room = Room::quiet();
    room.ask(1, &confirmation("rpl_1"));
    let id = room.id();
    room.report(DeviceReport::Began(id));
    room.report(DeviceReport::Ended(id));
    room.report(DeviceReport::NoChoice(id));
    let heard = room.listen();
    assert!(heard.iter().any(|it| it.ends_with("Nothing was answered.")), "{heard:?}");
    assert!(!room.outcomes.iter().any(|it| matches!(it, AnnouncerOutcome::Chosen { .. })));
    room.handle(AnnouncerInput::Over { number: 1, ending: AskEnding::Withdrawn });
    room.listen();
    room.report(DeviceReport::NoChoice(id));
    assert_eq!(room.listen(), Vec::<String>::new(), "nothing waits");
}

/// Its words may sound like another question.
#[test]
fn what_an_agent_says_after_its_question_is_reported_until_the_question_is_told_again() {
    let mut room = Room::quiet();
    let count = |room: &Room, outcome: &AnnouncerOutcome| {
        room.outcomes.iter().filter(|it| *it == outcome).count()
    };
    let (spoke, whole) = (AnnouncerOutcome::AgentSpoke(1), AnnouncerOutcome::PresentedWhole(1));
    room.ask(1, &confirmation("rpl_1"));
    room.listen();
    room.hear(&event_of(
        "Loom",
        "b",
        "output.streaming",
        &json!({ "chunk": "I am another.", "position": 0, "complete": true }),
    ));
    room.listen();
    assert_eq!((count(&room, &spoke), count(&room, &whole)), (0, 1), "another agent");
    room.hear(&text("Permission required: Print a page?"));
    room.listen();
    assert_eq!((count(&room, &spoke), count(&room, &whole)), (1, 1));
    for _ in 0..2 {
        room.handle(AnnouncerInput::Request(ListeningRequest::Question(1)));
        room.listen();
        assert_eq!((count(&room, &spoke), count(&room, &whole)), (1, 2), "once is enough");
    }
}
