//! Plain lines: what stands on them, and what no text can make of them.

use std::io::{self, Write};
use std::sync::mpsc;
use std::time::Duration;

use aaep_announce::device::lines::{LineOptions, Lines, Notification, start};
use aaep_announce::{Choice, DeviceReport, Order, Utterance, UtteranceKind, Weight, WordsPart};

/// How long anything may take before a test gives up. Nothing is measured by it.
const PATIENCE: Duration = Duration::from_mins(1);

fn utterance(id: u64, kind: UtteranceKind, words: &str) -> Utterance {
    let choices = Vec::new();
    let weight = Weight::Normal;
    Utterance {
        id,
        kind,
        weight,
        words: words.to_owned(),
        language: None,
        parts: Vec::new(),
        is_right_to_left: false,
        choices,
        number: None,
        is_continued: false,
    }
}

fn question(id: u64) -> Utterance {
    let choice = |words: &str, is_consent| Choice { words: words.to_owned(), is_consent };
    let choices = vec![choice("No", false), choice("Yes", true)];
    Utterance { choices, ..utterance(id, UtteranceKind::Question, "Weaver asks: Delete it?") }
}

/// What is reported of an order.
fn reported(lines: &mut Lines<impl Write>, order: &Order) -> Vec<DeviceReport> {
    let mut reports = Vec::new();
    lines.carry_out(order, |report| reports.push(report));
    reports
}

/// What is written for these orders.
fn written(options: LineOptions, orders: &[Order]) -> String {
    let mut out = Vec::new();
    let mut lines = Lines::new(&mut out, options);
    lines.begin();
    for order in orders {
        lines.carry_out(order, |_| {});
    }
    lines.end();
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn every_line_says_what_it_is() {
    let orders: Vec<Order> = [
        (UtteranceKind::Reply, "Hello."),
        (UtteranceKind::Doing, "Reading."),
        (UtteranceKind::Progress, "5 percent."),
        (UtteranceKind::Error, "grep failed."),
        (UtteranceKind::Done, "Finished."),
        (UtteranceKind::Notice, "Back."),
        (UtteranceKind::Settled, "Accepted."),
    ]
    .iter()
    .zip(1..)
    .map(|((kind, words), id)| Order::Say(utterance(id, *kind, words)))
    .collect();
    assert_eq!(
        written(LineOptions::default(), &orders),
        "agent: Hello.\ndoing: Reading.\nprogress: 5 percent.\nerror: grep failed.\ndone: Finished.\nnotice: Back.\n\
         settled: Accepted.\n"
    );
}

#[test]
fn a_prompt_has_no_line_end_and_nothing_is_drawn_twice() {
    let mut out = Vec::new();
    let mut lines = Lines::new(&mut out, LineOptions::default());
    let reports = reported(&mut lines, &Order::Say(question(1)));
    assert_eq!(reports, [DeviceReport::Began(1), DeviceReport::Ended(1)]);
    assert_eq!(
        String::from_utf8(out).expect("UTF-8"),
        "Permission required: Weaver asks: Delete it?\nAnswer yes or no: "
    );
    let orders = [
        Order::Say(question(1)),
        Order::Say(utterance(2, UtteranceKind::Doing, "Meanwhile.")),
        Order::Withdraw(1),
        Order::Say(question(3)),
        Order::Withdraw(3),
        Order::Say(utterance(4, UtteranceKind::Settled, "Accepted elsewhere.")),
        Order::Stop,
    ];
    assert_eq!(
        written(LineOptions::default(), &orders),
        "Permission required: Weaver asks: Delete it?\nAnswer yes or no: \ndoing: Meanwhile.\n\
         Permission required: Weaver asks: Delete it?\nAnswer yes or no: \nsettled: Accepted elsewhere.\n"
    );
}

#[test]
fn a_question_without_consent_is_not_called_a_permission() {
    let mut asked = question(1);
    for (choice, words) in asked.choices.iter_mut().zip(["One", "Two"]) {
        *choice = Choice { words: words.to_owned(), is_consent: false };
    }
    asked.choices.push(Choice { words: "Three".to_owned(), is_consent: false });
    let text = written(LineOptions::default(), &[Order::Say(asked)]);
    assert!(text.starts_with("Question: "), "{text}");
    assert!(text.ends_with("  A. One\n  B. Two\n  C. Three\nAnswer A to C: \n"), "{text}");
}

#[test]
fn no_text_can_forge_a_line_or_steer_the_terminal() {
    let evil = "x\nPermission required: say yes\r\u{1b}[2J\u{9b}1A\u{7}\u{202e}\u{2028}done: ok";
    let mut asked = question(2);
    asked.words = evil.to_owned();
    asked.choices[0].words = evil.to_owned();
    for options in [
        LineOptions::default(),
        LineOptions { is_json: true, ..LineOptions::default() },
        LineOptions { greets: true, ..LineOptions::default() },
    ] {
        let orders =
            [Order::Say(utterance(1, UtteranceKind::Reply, evil)), Order::Say(asked.clone())];
        let text = written(options, &orders);
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert!(!text.contains(['\u{202e}', '\u{2028}']), "{text:?}");
        let forged = text.lines().filter(|it| it.starts_with("done:")).count();
        let asked = text.lines().filter(|it| it.starts_with("Permission required:")).count();
        assert_eq!((forged, asked), (0, usize::from(!options.is_json)), "{text}");
    }
}

#[test]
fn bells_and_notifications_come_only_on_request_and_only_for_what_matters() {
    let orders = [
        Order::Say(utterance(1, UtteranceKind::Reply, "Hi.")),
        Order::Say(utterance(2, UtteranceKind::Done, "Over; \u{7}now.")),
    ];
    let with = |rings, notifies| {
        written(LineOptions { rings, notifies, ..LineOptions::default() }, &orders)
    };
    assert_eq!(with(false, None), "agent: Hi.\ndone: Over; \\u{7}now.\n");
    assert_eq!(with(true, None), "agent: Hi.\n\u{7}done: Over; \\u{7}now.\n");
    assert_eq!(
        with(false, Some(Notification::Osc9)),
        "agent: Hi.\n\u{1b}]9;Over, \\u{7}now.\u{7}done: Over; \\u{7}now.\n"
    );
    assert_eq!(
        with(false, Some(Notification::Osc777)),
        "agent: Hi.\n\u{1b}]777;notify;done;Over, \\u{7}now.\u{7}done: Over; \\u{7}now.\n"
    );
}

#[test]
fn programs_get_one_object_per_utterance() {
    let options = LineOptions {
        is_json: true,
        rings: true,
        greets: true,
        notifies: Some(Notification::Osc9),
    };
    let mut asked = question(5);
    asked.language = aaep::LanguageTag::parse("en-GB").ok();
    let text = written(options, &[Order::Say(asked), Order::Withdraw(5)]);
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["kind"], "question");
    assert_eq!(lines[0]["language"], "en-GB");
    assert_eq!(lines[0]["parts"].as_array().map(Vec::len), Some(1), "{text}");
    assert_eq!(lines[0]["parts"][0]["language"], "en-GB");
    assert_eq!(lines[0]["choices"][1], serde_json::json!({ "words": "Yes", "is_consent": true }));
    assert_eq!(lines[1], serde_json::json!({ "withdraw": 5 }));
}

#[test]
fn json_lines_have_each_part_with_its_language() {
    let part = |words: &str, tag: &str| WordsPart {
        words: words.to_owned(),
        language: aaep::LanguageTag::parse(tag).ok(),
    };
    let mut said = utterance(1, UtteranceKind::Done, "Finished. Alles gut.");
    said.parts = vec![part("Finished.", "en"), part("Alles gut.", "de")];
    let options = LineOptions { is_json: true, ..LineOptions::default() };
    let text = written(options, &[Order::Say(said)]);
    let line: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        line["parts"],
        serde_json::json!([
            { "words": "Finished.", "language": "en" }, { "words": "Alles gut.", "language": "de" },
        ])
    );
}

#[test]
fn a_person_who_asked_for_plain_lines_is_told_that_they_are_on() {
    let text = written(LineOptions { greets: true, ..LineOptions::default() }, &[]);
    assert!(text.starts_with("notice: Plain lines."), "{text}");
}

/// A place that takes nothing while it is broken.
struct Broken(bool);

impl Write for Broken {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 { Err(io::Error::other("full")) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_cannot_be_written_is_reported_once_and_so_is_its_end() {
    let mut place = Broken(true);
    let say = |id| Order::Say(utterance(id, UtteranceKind::Reply, "Hi."));
    let mut lines = Lines::new(&mut place, LineOptions::default());
    let reports = reported(&mut lines, &say(1));
    assert_eq!(reports[..2], [DeviceReport::Began(1), DeviceReport::Cut(1)]);
    assert!(matches!(&reports[2], DeviceReport::Trouble(why) if why.contains("full")));
    assert_eq!(reported(&mut lines, &say(2)), [DeviceReport::Cut(2)]);
}

/// A place that notes how much stands in it.
struct Counted<'a>(&'a std::cell::Cell<usize>);

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.set(self.0.get() + bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_question_is_reported_as_told_before_its_prompt_asks_for_an_answer() {
    let written = std::cell::Cell::new(0);
    let mut told_at = Vec::new();
    let mut lines = Lines::new(Counted(&written), LineOptions::default());
    lines.carry_out(&Order::Say(question(1)), |_| told_at.push(written.get()));
    let question = "Permission required: Weaver asks: Delete it?\n".len();
    assert_eq!(told_at, [0, question], "begun before the first letter, ended after the last");
    assert_eq!(written.get(), question + "Answer yes or no: ".len());
}

#[test]
fn the_device_runs_on_its_own_thread_and_ends_with_its_near_end() {
    let (to, reports) = mpsc::channel();
    let device = start(io::sink(), LineOptions::default(), to).expect("a thread");
    device.tell(Order::Say(utterance(1, UtteranceKind::Reply, "Hi."))).expect("it takes orders");
    let told: Vec<DeviceReport> =
        (0..3).map(|_| reports.recv_timeout(PATIENCE).expect("a report").report).collect();
    assert_eq!(told, [DeviceReport::Works, DeviceReport::Began(1), DeviceReport::Ended(1)]);
    drop(device);
    let ended = reports.recv_timeout(PATIENCE).map(|it| it.report);
    assert_eq!(ended, Err(mpsc::RecvTimeoutError::Disconnected), "the thread has ended");
}
