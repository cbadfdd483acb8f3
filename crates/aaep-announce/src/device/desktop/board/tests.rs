//! The board, with simulated time.

use super::*;
use crate::utterance::{Choice, UtteranceKind};

const LOOK: Duration = Duration::from_millis(700);

/// A board, the time, and all its reports.
struct PlayedBoard {
    board: AccessibleBoard,
    now: Instant,
    reports: Vec<DeviceReport>,
    /// The words of both regions at each announcement, and when.
    announced: Vec<(Instant, [String; 2])>,
}

impl PlayedBoard {
    fn new() -> Self {
        // A word takes half a second.
        let board = AccessibleBoard::new(Settings { least_look: LOOK, ..Settings::new(120) });
        PlayedBoard { board, now: Instant::now(), reports: Vec::new(), announced: Vec::new() }
    }

    fn tell(&mut self, order: Order) {
        self.board.take_order(self.now, order, &mut self.reports);
        self.go_on();
    }

    fn say(&mut self, id: UtteranceId, weight: Weight, words: &str) {
        self.tell(Order::Say(utterance(id, weight, words)));
    }

    fn go_on(&mut self) {
        if self.board.has_to_announce(self.now) {
            self.board.announce(self.now, &mut self.reports);
            self.announced.push((self.now, self.board.regions().map(|it| it.words.clone())));
        }
        self.board.time_passed(self.now, &mut self.reports);
    }

    /// Advances the time and does everything when it is due.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.board.due(self.now).filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.go_on();
        }
        self.now = end;
        self.go_on();
    }

    fn press(&mut self, node: u64) {
        self.board.pressed(self.now, node, &mut self.reports);
    }

    /// The button with these words, of the question at this index.
    fn button(&self, at: usize, words: &str) -> u64 {
        let question = &self.board.questions()[at];
        question.buttons.iter().find(|it| it.words == words).expect(words).node
    }

    fn take(&mut self) -> Vec<DeviceReport> {
        std::mem::take(&mut self.reports)
    }
}

fn utterance(id: UtteranceId, weight: Weight, words: &str) -> Utterance {
    Utterance {
        id,
        kind: UtteranceKind::Reply,
        weight,
        words: words.to_owned(),
        language: None,
        parts: Vec::new(),
        is_right_to_left: false,
        choices: Vec::new(),
        number: None,
        is_continued: false,
    }
}

fn question(id: UtteranceId, number: AskNumber) -> Order {
    let choice = |words: &str, is_consent| Choice { words: words.to_owned(), is_consent };
    Order::Say(Utterance {
        kind: UtteranceKind::Question,
        choices: vec![choice("No", false), choice("Yes", true)],
        number: Some(number),
        ..utterance(id, Weight::Critical, &format!("Delete {number}?"))
    })
}

#[test]
fn words_end_after_the_time_that_they_take_to_hear() {
    let mut played = PlayedBoard::new();
    played.say(1, Weight::Normal, "Three short words.");
    assert_eq!(played.take(), [DeviceReport::Began(1)]);
    played.pass(Duration::from_millis(1499));
    assert_eq!(played.take(), []);
    played.pass(Duration::from_millis(1));
    assert_eq!(played.take(), [DeviceReport::Ended(1)]);
}

#[test]
fn no_announcement_comes_soon_after_another_and_critical_words_are_assertive() {
    let mut played = PlayedBoard::new();
    played.say(1, Weight::Normal, "Something long is being said.");
    played.pass(Duration::from_millis(60));
    played.tell(Order::Stop);
    played.say(2, Weight::Critical, "Stop!");
    assert_eq!(
        played.take(),
        [DeviceReport::Began(1), DeviceReport::Cut(1)],
        "it waits for the gap"
    );
    played.pass(Duration::from_millis(30));
    // An utterance that was never announced does not delay the next one.
    played.tell(Order::Stop);
    played.say(3, Weight::Critical, "Stop now!");
    played.pass(Duration::from_secs(5));
    assert_eq!(
        played.take(),
        [DeviceReport::Cut(2), DeviceReport::Began(3), DeviceReport::Ended(3)]
    );
    let [(first, _), (second, regions)] = played.announced.as_slice() else {
        panic!("{:?}", played.announced)
    };
    assert_eq!(*second - *first, LEAST_GAP);
    assert_eq!(*regions, ["Something long is being said.", "Stop now!"]);
}

#[test]
fn long_words_are_announced_in_parts_and_a_question_waits_for_one_of_them_at_most() {
    let mut played = PlayedBoard::new();
    let sentence =
        "This is a sentence of quite a few words, and each of them takes its time to be heard.";
    let words = [sentence; 4].join(" ");
    played.say(1, Weight::Normal, &words);
    played.pass(Duration::from_secs(12));
    let polite = |played: &PlayedBoard| -> Vec<String> {
        played.announced.iter().map(|(_, [polite, _])| polite.trim_end().to_owned()).collect()
    };
    assert_eq!(polite(&played), [sentence, sentence]);
    played.tell(Order::Stop);
    played.tell(question(2, 1));
    assert_eq!(
        played.take(),
        [DeviceReport::Began(1), DeviceReport::Cut(1), DeviceReport::Began(2)]
    );
    played.pass(Duration::from_mins(1));
    assert_eq!(played.announced.len(), 3, "the rest is not announced");
    played.take();
    played.say(3, Weight::Normal, &words);
    played.pass(Duration::from_mins(1));
    assert_eq!(
        played.take(),
        [DeviceReport::Began(3), DeviceReport::Ended(3)],
        "it is one utterance"
    );
    assert_eq!(polite(&played).len(), 7);
    // Critical words are announced whole.
    played.say(4, Weight::Critical, &words);
    assert_eq!(played.board.regions()[1].words, words);
}

#[test]
fn the_same_words_again_are_a_change() {
    let mut played = PlayedBoard::new();
    for id in 1..=3 {
        played.say(id, Weight::Normal, "Done.");
        played.pass(Duration::from_secs(1));
    }
    let words: Vec<&str> =
        played.announced.iter().map(|(_, [polite, _])| polite.as_str()).collect();
    assert_eq!(words, ["Done.", "Done. ", "Done."]);
}

#[test]
fn a_button_answers_its_question_once() {
    let mut played = PlayedBoard::new();
    played.tell(question(1, 1));
    played.pass(LOOK);
    let (no, yes) = (played.button(0, "No"), played.button(0, "Yes"));
    assert_eq!(played.take(), [DeviceReport::Began(1)]);
    played.pass(LOOK);
    played.press(yes);
    assert_eq!(played.take(), [DeviceReport::Ended(1), DeviceReport::Chosen(1, 1)]);
    played.pass(LOOK);
    played.press(yes);
    played.press(no);
    assert_eq!(played.take(), []);
    assert!(played.board.questions().is_empty());
}

#[test]
fn more_time_can_be_asked_for_and_answers_nothing() {
    let mut played = PlayedBoard::new();
    played.tell(question(1, 1));
    played.pass(LOOK);
    played.take();
    let more_time = played.button(0, "More time");
    played.press(more_time);
    assert_eq!(played.take(), [DeviceReport::MoreTime(1)]);
    assert_eq!(played.board.questions().len(), 1);
}

#[test]
fn a_button_of_a_question_that_is_over_answers_nothing() {
    let mut played = PlayedBoard::new();
    played.tell(question(1, 1));
    played.pass(Duration::from_secs(2));
    let old = played.button(0, "Yes");
    played.tell(Order::Withdraw(1));
    // Another question may get the same number later.
    played.tell(question(2, 1));
    played.pass(Duration::from_secs(2));
    played.take();
    let new = played.button(0, "Yes");
    assert!(old != new, "a node is never used for another question");
    played.press(old);
    assert_eq!(played.take(), []);
    played.press(new);
    assert_eq!(played.take(), [DeviceReport::Chosen(2, 1)]);
}

#[test]
fn a_button_counts_only_after_its_question_was_announced() {
    let mut played = PlayedBoard::new();
    played.say(1, Weight::Normal, "Words.");
    played.board.take_order(played.now, question(2, 1), &mut played.reports);
    let yes = played.button(0, "Yes");
    played.now += LOOK;
    played.press(yes);
    assert!(!played.reports.iter().any(|it| matches!(it, DeviceReport::Chosen(..))));
    played.go_on();
    played.press(yes);
    assert!(played.reports.contains(&DeviceReport::Chosen(2, 1)));
}

#[test]
fn a_button_counts_only_a_while_after_questions_came_or_went() {
    let mut played = PlayedBoard::new();
    played.tell(question(1, 1));
    let first = played.button(0, "Yes");
    played.press(first);
    played.pass(Duration::from_secs(5));
    played.tell(question(2, 2));
    played.press(first);
    played.pass(Duration::from_secs(5));
    let second = played.button(1, "Yes");
    played.tell(Order::Withdraw(1));
    played.pass(LOOK.saturating_sub(Duration::from_millis(1)));
    played.press(second);
    assert!(!played.reports.iter().any(|it| matches!(it, DeviceReport::Chosen(..))));
    played.pass(Duration::from_millis(1));
    played.press(second);
    assert!(played.reports.contains(&DeviceReport::Chosen(2, 1)));
}

#[test]
fn a_question_that_is_told_again_is_there_once_and_its_old_buttons_are_gone() {
    let mut played = PlayedBoard::new();
    played.tell(question(1, 7));
    played.pass(Duration::from_secs(5));
    let old = played.button(0, "Yes");
    played.tell(question(2, 7));
    played.pass(Duration::from_secs(5));
    assert_eq!(played.board.questions().len(), 1);
    played.take();
    played.press(old);
    assert_eq!(played.take(), []);
    // All ids of a question are withdrawn when it is over; unknown ids change nothing.
    played.tell(Order::Withdraw(1));
    assert_eq!(played.board.questions().len(), 1);
    played.tell(Order::Withdraw(2));
    assert!(played.board.questions().is_empty());
}

#[test]
fn the_board_holds_a_bounded_number_of_questions_and_one_more_is_not_half_told() {
    let mut played = PlayedBoard::new();
    let most = u32::try_from(MAX_OPEN_QUESTIONS).expect("small");
    for number in 1..=most + 1 {
        played.tell(question(number.into(), number));
        played.pass(Duration::from_secs(5));
    }
    assert_eq!(played.board.questions().len(), MAX_OPEN_QUESTIONS);
    assert_eq!(played.reports.last(), Some(&DeviceReport::Cut((most + 1).into())));
}

#[test]
fn words_without_a_sound_are_over_at_once_and_announce_nothing() {
    let mut played = PlayedBoard::new();
    played.say(1, Weight::Normal, "\u{202e}\r\n");
    assert_eq!(played.take(), [DeviceReport::Began(1), DeviceReport::Ended(1)]);
    assert_eq!(played.board.regions().map(|it| it.words.as_str()), ["", ""]);
}

#[test]
fn when_nobody_listens_words_are_cut_and_questions_stay() {
    let mut played = PlayedBoard::new();
    played.tell(question(1, 1));
    played.take();
    played.board.lost(&mut played.reports);
    assert_eq!(played.take(), [DeviceReport::Cut(1)]);
    assert_eq!(played.board.questions().len(), 1);
}

#[test]
fn a_button_that_is_pressed_while_its_question_is_announced_does_not_end_it() {
    let mut played = PlayedBoard::new();
    let Order::Say(mut asked) = question(1, 1) else { panic!("a question") };
    asked.words = "Delete all 240 photos of the last summer?".to_owned();
    played.tell(Order::Say(asked));
    played.pass(LOOK);
    let yes = played.button(0, "Yes");
    played.take();
    played.press(yes);
    assert_eq!(played.take(), [DeviceReport::Chosen(1, 1)], "it was not announced to its end");
    played.pass(Duration::from_secs(10));
    assert_eq!(played.take(), [DeviceReport::Ended(1)]);
}

#[test]
fn what_is_asked_is_announced_with_its_marks_and_can_be_read_as_it_is() {
    let mut played = PlayedBoard::new();
    let Order::Say(mut asked) = question(1, 1) else { panic!("a question") };
    asked.words = "Pay DE89370400440532013000 ~~not~~ now?".to_owned();
    played.tell(Order::Say(asked));
    let [_, assertive] = played.board.regions();
    assert_eq!(
        assertive.words,
        "Pay D E 8 9, 3 7 0 4, 0 0 4 4, 0 5 3 2, 0 1 3 0, 0 0 tilde tilde not tilde tilde now?"
    );
    let question = &played.board.questions()[0];
    assert_eq!(question.region.words, "Pay DE89370400440532013000 ~~not~~ now?");
}

#[test]
fn each_language_is_announced_for_itself() {
    let mut played = PlayedBoard::new();
    let part = |words: &str, tag: &str| crate::words::WordsPart {
        words: words.to_owned(),
        language: aaep::LanguageTag::parse(tag).ok(),
    };
    let mut said = utterance(1, Weight::Critical, "Weaver asks: Alles? Yes or no?");
    said.parts = vec![part("Weaver asks:", "en"), part("Alles?", "de"), part("Yes or no?", "en")];
    played.tell(Order::Say(said.clone()));
    let mut heard = Vec::new();
    while let Some(due) = played.board.due(played.now) {
        let region = played.board.regions()[1].clone();
        heard.push((region.words, region.language));
        played.now = played.now.max(due);
        played.go_on();
    }
    heard.dedup();
    let tag = |tag: &str| Some(tag.to_owned());
    assert_eq!(
        heard,
        [
            ("Weaver asks:".to_owned(), tag("en")),
            ("Alles?".to_owned(), tag("de")),
            ("Yes or no?".to_owned(), tag("en"))
        ]
    );
    assert_eq!(played.reports, [DeviceReport::Began(1), DeviceReport::Ended(1)]);
    // Words in one language, or in an unknown one, are one announcement.
    said.parts = vec![part("Weaver asks:", "en"), part("Alles? Yes or no?", "?")];
    assert_eq!(said.language_runs().len(), 1);
    assert_eq!(said.language_runs()[0].language, None);
    said.parts = vec![part("Weaver asks:", "en"), part("Alles? Yes or no?", "en-GB")];
    assert_eq!(said.language_runs().len(), 1);
}

#[test]
fn the_next_sentence_of_a_question_keeps_its_buttons_and_its_label_grows() {
    let mut played = PlayedBoard::new();
    played.tell(question(1, 7));
    played.pass(LOOK * 3);
    let no = played.button(0, "No");
    let Order::Say(next) = question(2, 7) else { unreachable!("it is said") };
    let next = Utterance { is_continued: true, words: "High risk.".to_owned(), ..next };
    played.tell(Order::Say(next));
    played.pass(LOOK);
    assert_eq!(played.board.questions().len(), 1);
    assert_eq!(played.button(0, "No"), no, "a person may be on it");
    assert_eq!(played.board.questions()[0].region.words, "Delete 7? High risk.");
    played.take();
    played.press(no);
    assert_eq!(played.take(), [DeviceReport::Chosen(2, 0)]);
}
