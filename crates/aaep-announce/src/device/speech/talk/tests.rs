//! The conversation with a simulated speech server, line by line.

use std::time::Duration;

use super::*;
use crate::device::socket::DeviceAddress;
use crate::utterance::{UtteranceKind, Weight};

struct PlayedSpeech {
    talk: SpeechConversation,
    now: Instant,
}

impl PlayedSpeech {
    /// A conversation that was greeted by a server with one English voice.
    fn new() -> Self {
        let settings = Settings::new(DeviceAddress::Tcp("nowhere".to_owned(), 1));
        let mut played =
            PlayedSpeech { talk: SpeechConversation::new(settings), now: Instant::now() };
        let mut out = ConversationOutput::default();
        played.talk.connected(played.now, &mut out);
        assert_eq!(sent(&out), "SET SELF CLIENT_NAME someone:aaep:main\r\n");
        assert_eq!(played.hears("208 OK\r\n").0, "SET SELF NOTIFICATION ALL ON\r\n");
        assert_eq!(played.hears("220 OK\r\n").0, "GET LANGUAGE\r\n");
        assert_eq!(played.hears("251-en\r\n251 OK\r\n").0, "LIST SYNTHESIS_VOICES\r\n");
        assert_eq!(played.hears("249-v\ten\tnone\r\n249 OK\r\n").0, "");
        played
    }

    fn try_hear(&mut self, text: &str) -> Result<(String, Vec<DeviceReport>), String> {
        let mut out = ConversationOutput::default();
        self.talk.take_bytes(self.now, text.as_bytes(), &mut out)?;
        Ok((sent(&out), out.reports))
    }

    fn hears(&mut self, text: &str) -> (String, Vec<DeviceReport>) {
        self.try_hear(text).expect("it goes on")
    }

    fn take_order(&mut self, order: Order) -> (String, Vec<DeviceReport>) {
        let mut out = ConversationOutput::default();
        self.talk.take_order(self.now, order, &mut out);
        (sent(&out), out.reports)
    }

    fn later(&mut self, seconds: u64) -> Result<(String, Vec<DeviceReport>), String> {
        self.now += Duration::from_secs(seconds);
        let mut out = ConversationOutput::default();
        self.talk.time_passed(self.now, &mut out)?;
        Ok((sent(&out), out.reports))
    }

    /// Says something, up to the point where the server is asked to accept words.
    fn asks_to_speak(&mut self, id: UtteranceId, weight: Weight) {
        let (sent, _) = self.take_order(Order::Say(utterance(id, weight)));
        if sent.starts_with("SET SELF PRIORITY") {
            assert_eq!(self.hears("202 OK\r\n").0, "SPEAK\r\n");
        } else {
            assert_eq!(sent, "SPEAK\r\n");
        }
        assert_eq!(self.hears("230 OK\r\n").0, "STOP ALL\r\n.\r\n");
    }
}

fn sent(out: &ConversationOutput) -> String {
    String::from_utf8(out.bytes.clone()).expect("text")
}

fn utterance(id: UtteranceId, weight: Weight) -> Utterance {
    Utterance {
        id,
        kind: UtteranceKind::Reply,
        weight,
        words: "STOP ALL".to_owned(),
        language: None,
        parts: Vec::new(),
        is_right_to_left: false,
        choices: Vec::new(),
        number: None,
        is_continued: false,
    }
}

#[test]
fn events_that_come_before_the_number_of_their_message_are_not_lost() {
    let mut played = PlayedSpeech::new();
    played.asks_to_speak(1, Weight::Normal);
    assert_eq!(played.hears("701-8\r\n701-1\r\n701 BEGIN\r\n702-8\r\n702-1\r\n702 END\r\n").1, []);
    let (_, reports) = played.hears("225-8\r\n225 OK MESSAGE QUEUED\r\n");
    assert_eq!(reports, [DeviceReport::Began(1), DeviceReport::Ended(1)]);
}

#[test]
fn events_of_other_messages_change_nothing() {
    let mut played = PlayedSpeech::new();
    played.asks_to_speak(1, Weight::Normal);
    played.hears("702-7\r\n702-1\r\n702 END\r\n225-8\r\n225 OK\r\n");
    let (_, reports) = played.hears(
        "702-7\r\n702-1\r\n702 END\r\n702-x\r\n702-1\r\n702 END\r\n702 END\r\n700-8\r\n700-1\r\n700-m\r\n700 MARK\r\n",
    );
    assert_eq!(reports, []);
    assert_eq!(
        played.hears("702-8\r\n702-1\r\n702 END\r\n").1,
        [DeviceReport::Began(1), DeviceReport::Ended(1)]
    );
    assert_eq!(played.hears("702-8\r\n702-1\r\n702 END\r\n").1, [], "ended is ended");
}

#[test]
fn an_answer_that_nobody_asked_for_ends_the_conversation_before_words_become_commands() {
    let mut played = PlayedSpeech::new();
    assert!(played.try_hear("230 OK RECEIVING DATA\r\n").is_err());
    let mut played = PlayedSpeech::new();
    let (sent, _) = played.take_order(Order::Say(utterance(1, Weight::Normal)));
    assert_eq!(sent, "SET SELF PRIORITY message\r\n");
    played.hears("202 OK\r\n");
    assert!(played.try_hear("202 OK\r\n").is_err(), "words are sent after 230 and nothing else");
}

#[test]
fn an_event_between_the_lines_of_an_answer_is_an_event() {
    let mut played = PlayedSpeech::new();
    played.asks_to_speak(1, Weight::Normal);
    played.hears("225-8\r\n701-8\r\n");
    let (_, reports) = played.hears("701-1\r\n225 OK\r\n701 BEGIN\r\n");
    assert_eq!(reports, [DeviceReport::Began(1)]);
}

#[test]
fn stopping_between_the_words_and_their_number_stops_them() {
    let mut played = PlayedSpeech::new();
    played.asks_to_speak(1, Weight::Normal);
    assert_eq!(played.take_order(Order::Stop).0, "", "the answer comes first");
    assert_eq!(played.hears("225-8\r\n225 OK\r\n").0, "CANCEL SELF\r\n");
    assert_eq!(played.hears("213 OK CANCELED\r\n").1, [DeviceReport::Cut(1)]);
    assert_eq!(played.hears("703-8\r\n703-1\r\n703 CANCELED\r\n").1, [], "cut is cut");
}

#[test]
fn a_server_that_does_not_answer_in_time_is_given_up() {
    let mut played = PlayedSpeech::new();
    played.take_order(Order::Say(utterance(1, Weight::Normal)));
    assert!(played.later(4).is_ok());
    assert!(played.later(4).is_err());
    let mut out = ConversationOutput::default();
    played.talk.lost(&mut out);
    assert_eq!(out.reports, [DeviceReport::Cut(1)]);
    assert_eq!(
        played.take_order(Order::Say(utterance(2, Weight::Critical))).1,
        [DeviceReport::Cut(2)]
    );
    assert_eq!(played.talk.due(), None);
}

#[test]
fn words_that_never_begin_or_never_end_do_not_hold_everything_up() {
    let mut played = PlayedSpeech::new();
    played.asks_to_speak(1, Weight::Normal);
    played.hears("225-8\r\n225 OK\r\n");
    assert!(played.later(20).is_ok(), "others may be speaking");
    assert!(played.later(20).is_err(), "it never begins");
    let mut played = PlayedSpeech::new();
    played.asks_to_speak(1, Weight::Normal);
    played.hears("225-8\r\n225 OK\r\n701-8\r\n701-1\r\n701 BEGIN\r\n");
    assert!(played.later(3600).is_err(), "it never ends");
}

#[test]
fn background_words_that_the_server_passed_over_are_cut_and_taken_back() {
    let mut played = PlayedSpeech::new();
    played.asks_to_speak(1, Weight::Background);
    played.hears("225-8\r\n225 OK\r\n");
    let (sent, reports) = played.later(5).expect("it goes on");
    assert_eq!(
        (sent.as_str(), reports.as_slice()),
        ("CANCEL SELF\r\n", &[DeviceReport::Cut(1)][..])
    );
}

fn paced(wanted: Pace, percent: u32) -> Vec<DeviceReport> {
    vec![DeviceReport::Paced { wanted, percent }]
}

#[test]
fn a_step_begins_at_the_rate_of_the_server_and_stays_on_the_next_connection() {
    let mut played = PlayedSpeech::new();
    assert_eq!(played.take_order(Order::Pace(Pace::Faster)), ("GET RATE\r\n".to_owned(), vec![]));
    let (sent, reports) = played.hears("251-20\r\n251 OK GET RETURNED\r\n");
    assert_eq!((sent.as_str(), reports), ("SET SELF RATE 30\r\n", paced(Pace::Faster, 111)));
    played.hears("203 OK RATE SET\r\n");
    // The rate is known now, and not requested again.
    let (sent, reports) = played.take_order(Order::Pace(Pace::Slower));
    assert_eq!((sent.as_str(), reports), ("SET SELF RATE 20\r\n", paced(Pace::Slower, 89)));
    let mut out = ConversationOutput::default();
    played.talk.lost(&mut out);
    assert_eq!(played.take_order(Order::Pace(Pace::Slower)), (String::new(), vec![]));
    played.talk.connected(played.now, &mut out);
    played.hears("208 OK\r\n");
    assert_eq!(played.hears("220 OK\r\n").0, "SET SELF RATE 20\r\n");
}

#[test]
fn a_rate_is_never_beyond_its_bounds_whatever_the_server_says() {
    for answer in ["251-9999\r\n251 OK\r\n", "251-fast\r\n251 OK\r\n", "300 ERR\r\n"] {
        let mut played = PlayedSpeech::new();
        played.take_order(Order::Pace(Pace::Faster));
        let (sent, reports) = played.hears(answer);
        assert_eq!((sent.as_str(), reports), ("SET SELF RATE 10\r\n", paced(Pace::Faster, 115)));
        let refused = "The speech server refuses the setting rate 10.".to_owned();
        assert_eq!(played.hears("409 ERR\r\n").1, [DeviceReport::Notice(refused)]);
    }
    let mut played = PlayedSpeech::new();
    assert_eq!(played.take_order(Order::Pace(Pace::Rate(i8::MAX))).0, "SET SELF RATE 100\r\n");
    played.hears("203 OK\r\n");
    assert_eq!(played.take_order(Order::Pace(Pace::Faster)).1, paced(Pace::Faster, 100));
}

#[test]
fn the_word_for_another_pace_is_spoken_at_that_pace() {
    let mut played = PlayedSpeech::new();
    assert_eq!(played.take_order(Order::Pace(Pace::Rate(40))).0, "SET SELF RATE 40\r\n");
    assert_eq!(
        played.take_order(Order::Say(utterance(1, Weight::Normal))).0,
        "",
        "the rate comes first"
    );
    assert_eq!(played.hears("203 OK\r\n").0, "SET SELF PRIORITY message\r\n");
}

#[test]
fn wishes_without_a_connection_are_kept_within_a_bound() {
    let settings = Settings::new(DeviceAddress::Tcp("nowhere".to_owned(), 1));
    let mut played = PlayedSpeech { talk: SpeechConversation::new(settings), now: Instant::now() };
    (0..1000).for_each(|_| drop(played.take_order(Order::Pace(Pace::Faster))));
    assert_eq!(played.talk.tasks.len(), MAX_TASKS);
}

#[test]
fn orders_without_a_connection_are_kept_within_a_bound() {
    let settings = Settings::new(DeviceAddress::Tcp("nowhere".to_owned(), 1));
    let mut played = PlayedSpeech { talk: SpeechConversation::new(settings), now: Instant::now() };
    let cut: Vec<DeviceReport> = (0..1000)
        .flat_map(|id| played.take_order(Order::Say(utterance(id, Weight::Critical))).1)
        .collect();
    assert_eq!(cut.len(), 1000 - MAX_SAYINGS);
}

#[test]
fn whatever_a_server_says_the_conversation_goes_on_or_ends_in_order() {
    let lines = [
        "225-8\r\n",
        "225 OK\r\n",
        "230 OK\r\n",
        "701-8\r\n",
        "702 END\r\n",
        "300 NO\r\n",
        "20",
        "\r\n",
        "x\n",
    ];
    // Every sequence of three lines, in every state of an utterance.
    let count = lines.len();
    for number in 0..count * count * count {
        let [one, two, three] =
            [number / count / count, number / count % count, number % count].map(|at| lines[at]);
        for is_speaking in [false, true] {
            let mut played = PlayedSpeech::new();
            if is_speaking {
                played.asks_to_speak(1, Weight::Normal);
            }
            let mut reports = Vec::new();
            let mut is_lost = false;
            for line in [one, two, three] {
                match played.try_hear(line) {
                    Ok((_, more)) => reports.extend(more),
                    Err(_) => is_lost = true,
                }
                if is_lost {
                    break;
                }
            }
            let mut out = ConversationOutput::default();
            played.talk.lost(&mut out);
            reports.extend(out.reports);
            let ends = reports
                .iter()
                .filter(|it| matches!(it, DeviceReport::Ended(1) | DeviceReport::Cut(1)))
                .count();
            assert_eq!(ends, usize::from(is_speaking), "{one:?} {two:?} {three:?}: {reports:?}");
        }
    }
}

#[test]
fn what_is_asked_is_spoken_with_its_marks_and_whole() {
    let mut played = PlayedSpeech::new();
    let words = "Pay DE89370400440532013000? ~~Do not~~ edit __init__.".to_owned();
    played.take_order(Order::Say(Utterance {
        kind: UtteranceKind::Question,
        words,
        ..utterance(1, Weight::Critical)
    }));
    played.hears("202 OK\r\n");
    assert_eq!(
        played.hears("230 OK\r\n").0,
        "Pay D E 8 9, 3 7 0 4, 0 0 4 4, 0 5 3 2, 0 1 3 0, 0 0? tilde tilde Do not tilde tilde edit \
         underscore underscore init underscore underscore dot\r\n.\r\n"
    );
}
