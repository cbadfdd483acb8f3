//! The conversation with a simulated BRLTTY, packet by packet.

use super::*;
use crate::device::socket::DeviceAddress;
use crate::utterance::{Choice, Pace, Utterance, UtteranceId, UtteranceKind, Weight};

const CELLS: u32 = 40;

struct PlayedBraille {
    talk: BrailleConversation,
    now: Instant,
}

fn packet(kind: u8, numbers: &[u32]) -> Vec<u8> {
    let body: Vec<u8> = numbers.iter().flat_map(|it| it.to_be_bytes()).collect();
    let size = u32::try_from(body.len()).expect("small");
    [size.to_be_bytes().to_vec(), u32::from(kind).to_be_bytes().to_vec(), body].concat()
}

fn done() -> Vec<u8> {
    packet(b'A', &[])
}

fn cells(count: u32) -> Vec<u8> {
    packet(b's', &[count, 1])
}

fn route(cell: u32) -> Vec<u8> {
    packet(b'k', &[0, 0x2001_0000 | cell])
}

fn on() -> Vec<u8> {
    packet(b'k', &[0, 0x2000_0018])
}

/// The types of the sent packets, and the text of the last window.
fn sent(out: &ConversationOutput) -> (String, String) {
    let (mut kinds, mut text) = (String::new(), String::new());
    let mut rest = out.bytes.as_slice();
    while let Some((head, body)) = rest.split_at_checked(8) {
        let size = usize::try_from(u32::from_be_bytes(head[..4].try_into().expect("four")))
            .expect("small");
        kinds.push(char::from(head[7]));
        if head[7] == b'w' {
            let end = size - 10;
            text = String::from_utf8(body[16..end].to_vec()).expect("UTF-8").trim_end().to_owned();
        }
        rest = &body[size..];
    }
    (kinds, text)
}

impl PlayedBraille {
    fn new() -> Self {
        let settings = Settings::new(DeviceAddress::Tcp("nowhere".to_owned(), 1));
        let settings = Settings { least_look: Duration::from_millis(500), ..settings };
        let mut played = PlayedBraille {
            talk: BrailleConversation::new(settings, Box::new(|| None)),
            now: Instant::now(),
        };
        played.greet();
        played
    }

    fn greet(&mut self) {
        self.talk.connected(self.now, &mut ConversationOutput::default());
        assert_eq!(sent(&self.hears(&packet(b'v', &[8]))).0, "v");
        assert_eq!(sent(&self.hears(&packet(b'a', &[codec::NONE]))).0, "s");
    }

    fn hears(&mut self, bytes: &[u8]) -> ConversationOutput {
        let mut out = ConversationOutput::default();
        self.talk.take_bytes(self.now, bytes, &mut out).expect("it goes on");
        out
    }

    fn take_order(&mut self, order: Order) -> ConversationOutput {
        let mut out = ConversationOutput::default();
        self.talk.take_order(self.now, order, &mut out);
        out
    }

    fn later(&mut self, milliseconds: u64) -> ConversationOutput {
        self.now += Duration::from_millis(milliseconds);
        let mut out = ConversationOutput::default();
        if self.talk.due().is_some_and(|due| due <= self.now) {
            self.talk.time_passed(self.now, &mut out).expect("it goes on");
        }
        out
    }

    /// A question, shown as far as its answers, which are written but not confirmed.
    fn question_written(id: UtteranceId) -> Self {
        let mut played = PlayedBraille::new();
        assert!(played.hears(&cells(CELLS)).is_working);
        assert_eq!(sent(&played.take_order(Order::Say(question(id)))).0, "t");
        assert_eq!(sent(&played.hears(&done())).0, "m");
        assert_eq!(sent(&played.hears(&done())).0, "u");
        assert_eq!(sent(&played.hears(&done())), ("ws".to_owned(), "1/2 Delete?".to_owned()));
        assert_eq!(played.hears(&cells(CELLS)).reports, [DeviceReport::Began(id)]);
        let out = played.hears(&on());
        assert_eq!(sent(&out), ("ws".to_owned(), ANSWERS.to_owned()));
        assert_eq!(out.reports, [DeviceReport::Ended(id)]);
        played
    }

    fn question_shown(id: UtteranceId) -> Self {
        let mut played = Self::question_written(id);
        assert_eq!(played.hears(&cells(CELLS)).reports, []);
        played
    }
}

const ANSWERS: &str = "2/2 no                               yes";
const NO: u32 = 4;
const YES: u32 = 38;

fn utterance(id: UtteranceId, words: &str) -> Utterance {
    Utterance {
        id,
        kind: UtteranceKind::Reply,
        weight: Weight::Critical,
        words: words.to_owned(),
        language: None,
        parts: Vec::new(),
        is_right_to_left: false,
        choices: Vec::new(),
        number: None,
        is_continued: false,
    }
}

fn question(id: UtteranceId) -> Utterance {
    let choice = |words: &str, is_consent| Choice { words: words.to_owned(), is_consent };
    Utterance {
        kind: UtteranceKind::Question,
        choices: vec![choice("yes", true), choice("no", false)],
        ..utterance(id, "Delete?")
    }
}

#[test]
fn a_key_that_comes_before_the_answers_are_known_to_be_shown_chooses_nothing() {
    let mut played = PlayedBraille::question_written(1);
    played.later(2000);
    // The key was pressed before the window was there, however long ago it was written.
    assert_eq!(played.hears(&route(YES)).reports, []);
    assert_eq!(played.hears(&cells(CELLS)).reports, []);
    assert_eq!(played.hears(&route(YES)).reports, [], "too soon after it was shown");
    played.later(499);
    assert_eq!(played.hears(&route(YES)).reports, [], "still too soon");
    played.later(1);
    assert_eq!(played.hears(&route(YES)).reports, [DeviceReport::Chosen(1, 0)]);
}

#[test]
fn an_answer_is_taken_once_and_the_display_is_given_back() {
    let mut played = PlayedBraille::question_shown(1);
    played.later(500);
    let out = played.hears(&route(NO));
    assert_eq!(
        (out.reports.as_slice(), sent(&out).0.as_str()),
        (&[DeviceReport::Chosen(1, 1)][..], "L")
    );
    assert_eq!(played.hears(&[route(NO), route(YES), done(), route(YES)].concat()).reports, []);
}

#[test]
fn withdrawn_means_that_no_key_chooses_any_more() {
    let mut played = PlayedBraille::question_shown(1);
    played.later(500);
    assert_eq!(sent(&played.take_order(Order::Withdraw(1))).0, "L");
    assert_eq!(played.hears(&[route(YES), done(), route(YES)].concat()).reports, []);
}

#[test]
fn another_question_takes_the_place_and_a_key_meant_for_the_first_chooses_nothing() {
    let mut played = PlayedBraille::question_shown(1);
    played.later(500);
    assert_eq!(
        sent(&played.take_order(Order::Say(question(2)))),
        ("ws".to_owned(), "1/2 Delete?".to_owned())
    );
    assert_eq!(played.hears(&route(YES)).reports, []);
    assert_eq!(played.hears(&cells(CELLS)).reports, [DeviceReport::Began(2)]);
    played.later(500);
    let none = [DeviceReport::NoChoice(2)];
    assert_eq!(played.hears(&route(YES)).reports, none, "these are the words of the second");
    played.hears(&[on(), cells(CELLS)].concat());
    played.later(500);
    assert_eq!(played.hears(&route(NO)).reports, [DeviceReport::Chosen(2, 1)]);
    // The first question comes back, from its words on.
    assert_eq!(played.hears(&[cells(CELLS), route(YES)].concat()).reports, []);
    played.later(500);
    assert_eq!(played.hears(&route(YES)).reports, [DeviceReport::NoChoice(1)]);
    played.hears(&[on(), cells(CELLS)].concat());
    played.later(500);
    assert_eq!(played.hears(&route(YES)).reports, [DeviceReport::Chosen(1, 0)]);
}

#[test]
fn keys_ask_for_more_time_for_the_last_thing_and_for_the_one_before() {
    let key = |code: u32| packet(b'k', &[0, code]);
    let (again, home, before, more_time) =
        (key(0x2000_0009), key(0x2000_001d), key(0x2000_001e), key(0x2000_000a));
    let mut played = PlayedBraille::question_shown(1);
    assert_eq!(played.hears(&more_time).reports, [DeviceReport::MoreTime(1)]);
    assert_eq!(played.hears(&again).reports, [DeviceReport::Repeat]);
    assert_eq!(played.hears(&home).reports, [DeviceReport::Repeat]);
    assert_eq!(played.hears(&before).reports, [DeviceReport::Back]);
    played.later(500);
    assert_eq!(
        played.hears(&route(20)).reports,
        [DeviceReport::NoChoice(1)],
        "between the answers"
    );
    assert_eq!(played.hears(&route(YES)).reports, [DeviceReport::Chosen(1, 0)]);
}

#[test]
fn a_display_that_changes_its_size_is_laid_out_again_before_a_key_counts() {
    let mut played = PlayedBraille::question_written(1);
    // The confirmation reports fewer cells: the written window is not what is on the display.
    let out = played.hears(&cells(20));
    assert_eq!(sent(&out), ("ws".to_owned(), "1/2 Delete?".to_owned()));
    played.later(1000);
    assert_eq!(played.hears(&route(18)).reports, []);
    played.hears(&cells(20));
    assert_eq!(sent(&played.hears(&on())).1, "2/2 no           yes");
    played.hears(&cells(20));
    played.later(500);
    assert_eq!(played.hears(&route(18)).reports, [DeviceReport::Chosen(1, 0)]);
}

#[test]
fn a_display_that_is_not_there_yet_is_asked_for_again_and_then_told() {
    let mut played = PlayedBraille::new();
    assert!(!played.hears(&cells(0)).is_working);
    assert_eq!(sent(&played.later(100)).0, "s");
    assert!(!played.hears(&cells(0)).is_working);
    played.now += Duration::from_secs(10);
    assert!(played.talk.time_passed(played.now, &mut ConversationOutput::default()).is_err());
    let mut played = PlayedBraille::new();
    played.hears(&cells(0));
    played.later(100);
    assert!(played.hears(&cells(CELLS)).is_working);
}

#[test]
fn questions_asked_while_there_is_no_server_are_cut_and_come_with_it() {
    let mut played = PlayedBraille::new();
    played.talk.lost(&mut ConversationOutput::default());
    assert_eq!(
        played.take_order(Order::Say(utterance(1, "Words."))).reports,
        [DeviceReport::Cut(1)]
    );
    assert_eq!(played.take_order(Order::Say(question(2))).reports, [DeviceReport::Cut(2)]);
    assert_eq!(played.take_order(Order::Say(question(3))).reports, [DeviceReport::Cut(3)]);
    played.take_order(Order::Withdraw(3));
    played.greet();
    assert_eq!(sent(&played.hears(&cells(CELLS))).0, "t");
    played.hears(&[done(), done()].concat());
    assert_eq!(sent(&played.hears(&done())).1, "1/2 Delete?");
    assert_eq!(played.hears(&cells(CELLS)).reports, [], "it was reported before");
    played.hears(&[on(), cells(CELLS)].concat());
    played.later(500);
    assert_eq!(played.hears(&route(YES)).reports, [DeviceReport::Chosen(2, 0)]);
}

#[test]
fn a_server_that_refuses_or_answers_out_of_turn_is_left() {
    for bytes in [packet(b'E', &[5]), packet(b'e', &[5]), done(), packet(b'v', &[8])] {
        let mut played = PlayedBraille::question_written(1);
        assert!(
            played.talk.take_bytes(played.now, &bytes, &mut ConversationOutput::default()).is_err(),
            "{bytes:?}"
        );
    }
    let settings = Settings::new(DeviceAddress::Tcp("nowhere".to_owned(), 1));
    let mut played = PlayedBraille {
        talk: BrailleConversation::new(settings, Box::new(|| None)),
        now: Instant::now(),
    };
    played.talk.connected(played.now, &mut ConversationOutput::default());
    assert!(
        played
            .talk
            .take_bytes(played.now, &packet(b'v', &[99]), &mut ConversationOutput::default())
            .is_err()
    );
}

#[test]
fn open_questions_are_kept_within_a_bound() {
    let mut played = PlayedBraille::question_shown(0);
    for id in 1..1000 {
        let reports = played.take_order(Order::Say(question(id))).reports;
        assert_eq!(reports.contains(&DeviceReport::Cut(id)), id >= 32, "{id}");
    }
}

#[test]
fn words_that_are_not_critical_do_not_come_over_a_question_that_is_being_read() {
    let mut played = PlayedBraille::question_shown(1);
    let words = |id| Utterance { weight: Weight::Normal, ..utterance(id, "Words.") };
    assert_eq!(played.take_order(Order::Say(words(2))).reports, [DeviceReport::Cut(2)]);
    played.later(20_000);
    let out = played.take_order(Order::Say(words(3)));
    assert_eq!(
        (sent(&out).1.as_str(), out.reports.as_slice()),
        ("Words.", &[][..]),
        "nobody reads it now"
    );
    played.hears(&cells(CELLS));
    // The question comes back when the words are over.
    assert_eq!(sent(&played.hears(&on())).1, "1/2 Delete?");
}

#[test]
fn the_pace_of_reading_changes_within_its_bounds_and_a_voice_is_something_else() {
    let mut played = PlayedBraille::new();
    assert!(played.hears(&cells(CELLS)).is_working);
    let paced = |wanted, percent| vec![DeviceReport::Paced { wanted, percent }];
    assert_eq!(played.take_order(Order::Pace(Pace::Rate(50))).reports, []);
    assert_eq!(played.take_order(Order::Pace(Pace::Faster)).reports, paced(Pace::Faster, 120));
    for _ in 0..100 {
        played.take_order(Order::Pace(Pace::Slower));
    }
    assert_eq!(played.take_order(Order::Pace(Pace::Slower)).reports, paced(Pace::Slower, 100));
    assert_eq!(played.take_order(Order::Pace(Pace::Faster)).reports, paced(Pace::Faster, 200));
    played.talk.lost(&mut ConversationOutput::default());
    assert_eq!(played.take_order(Order::Pace(Pace::Faster)).reports, [], "nobody could read it");
}

#[test]
fn a_question_is_on_the_display_exactly_and_whole_however_long_it_is() {
    let mut played = PlayedBraille::new();
    played.hears(&cells(CELLS));
    let words = format!("Pay DE89370400440532013000 ~~not~~ __init__ {} end", "x".repeat(20_000));
    played.take_order(Order::Say(Utterance { words: words.clone(), ..question(1) }));
    played.hears(&done());
    played.hears(&done());
    let mut window = sent(&played.hears(&done())).1;
    let mut read = String::new();
    while !window.contains("yes") {
        assert!(played.hears(&cells(CELLS)).reports.iter().all(|it| *it == DeviceReport::Began(1)));
        // Each window begins with its number.
        read.push_str(window.split_once(' ').expect("a number").1);
        window = sent(&played.hears(&on())).1;
    }
    let dense = |text: &str| text.replace(' ', "");
    assert_eq!(dense(&read), dense(&words));
}

#[test]
fn a_question_whose_time_is_over_was_not_read_until_the_person_reads_on() {
    let mut played = PlayedBraille::new();
    played.hears(&cells(CELLS));
    played.take_order(Order::Say(question(1)));
    played.hears(&done());
    played.hears(&done());
    played.hears(&done());
    assert_eq!(played.hears(&cells(CELLS)).reports, [DeviceReport::Began(1)]);
    assert_eq!(played.later(60_000).reports, [DeviceReport::Shown(1)]);
    assert_eq!(played.hears(&on()).reports, [DeviceReport::Ended(1)]);
}

#[test]
fn after_news_a_question_comes_back_at_the_window_where_it_was() {
    let words = "The first window has as many words as this. ".repeat(6);
    let long = |id, is_continued| Utterance {
        words: words.clone(),
        number: Some(7),
        is_continued,
        ..question(id)
    };
    for is_continued in [true, false] {
        let mut played = PlayedBraille::question_shown(1);
        played.take_order(Order::Withdraw(1));
        played.hears(&done());
        played.take_order(Order::Say(long(2, false)));
        played.hears(&[done(), done(), done()].concat());
        played.hears(&cells(CELLS));
        let (_, second) = sent(&played.hears(&on()));
        assert!(second.starts_with("2/"), "{second}");
        played.hears(&cells(CELLS));
        let out = played.take_order(Order::Stop);
        assert_eq!(out.reports, [DeviceReport::Cut(2)]);
        let news = played.take_order(Order::Say(utterance(3, "Finished.")));
        assert_eq!(sent(&news).1, "Finished.");
        played.hears(&cells(CELLS));
        played.hears(&on());
        played.hears(&cells(CELLS));
        let again = sent(&played.take_order(Order::Say(long(4, is_continued)))).1;
        let first = if is_continued { "2/" } else { "1/" };
        assert!(again.starts_with(first), "{again}");
    }
}
