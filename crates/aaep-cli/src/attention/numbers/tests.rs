//! A number never comes to refer to another question by accident.

use serde_json::json;

use super::*;
use crate::attention::asked::tests::asked;

const HUB: &str = "unix:";
const NOW: i64 = 1_790_000_000;

fn question(token: &str) -> PresentedAsk {
    asked(token, &json!({}))
}

/// Numbers of which this many were assigned, all to questions that are over.
fn after(count: usize) -> AskNumbers {
    let mut numbers = AskNumbers::default();
    for at in 0..count {
        let asked = question(&format!("rpl_before{at}"));
        numbers.give(NOW, HUB, &asked).expect("a number");
        numbers.mark_over(NOW, &asked.reply_token);
    }
    numbers
}

/// When the numbers of questions that end now may be reused.
fn later() -> i64 {
    NOW + i64::try_from(REST_SECONDS).expect("minutes")
}

#[test]
fn numbers_begin_at_1_and_a_question_keeps_its_own() {
    let mut numbers = AskNumbers::default();
    assert_eq!(numbers.give(NOW, HUB, &question("rpl_a")), Some(1));
    assert_eq!(numbers.give(NOW, HUB, &question("rpl_b")), Some(2));
    assert_eq!(numbers.give(NOW + 5, HUB, &question("rpl_a")), Some(1));
    assert_eq!(numbers.give(NOW, "http://127.0.0.1:7117", &question("rpl_a")), Some(1));
    assert!(numbers.is_sound());
}

#[test]
fn a_number_whose_question_is_over_is_not_given_again_before_all_others_were() {
    let mut numbers = after(1);
    let all: Vec<u16> = (0..99)
        .map(|at| {
            let asked = question(&format!("rpl_later{at}"));
            let number = numbers.give(later(), HUB, &asked).expect("a number");
            numbers.mark_over(later(), &asked.reply_token);
            number
        })
        .collect();
    let expected: Vec<u16> = (2..=99).chain([1]).collect();
    assert_eq!(all, expected);
}

#[test]
fn a_number_is_not_given_again_while_someone_may_be_typing_an_answer_to_its_question() {
    let mut numbers = AskNumbers::default();
    let first = question("rpl_first");
    assert_eq!(numbers.give(NOW, HUB, &first), Some(1));
    numbers.mark_over(NOW, &first.reply_token);
    // An agent asks and withdraws until number 1 is next.
    for at in 0..98 {
        let filler = question(&format!("rpl_filler{at}"));
        numbers.give(NOW + 1, HUB, &filler);
        numbers.mark_over(NOW + 1, &filler.reply_token);
    }
    let harmful = question("rpl_harmful");
    assert_eq!(numbers.clone().give(NOW + 2, HUB, &harmful), Some(100), "a longer one");
    assert_eq!(numbers.clone().give(later() - 1, HUB, &harmful), Some(100));
    assert_eq!(numbers.question(1).map(|it| it.reply_token.as_str()), Some("rpl_first"));
    assert_eq!(numbers.clone().give(later(), HUB, &harmful), Some(1));
    // Only the query noticed the end of the first one.
    let mut numbers = AskNumbers::default();
    numbers.give(NOW, HUB, &first);
    numbers.only_open(NOW + 1, HUB, &[]);
    assert!(numbers.question(1).is_some_and(|it| it.holds_number(NOW + 2)));
    assert!(numbers.question(1).is_some_and(|it| !it.holds_number(later() + 1)));
}

#[test]
fn when_every_number_is_taken_none_is_given_and_long_ones_are_let_go() {
    let mut numbers = AskNumbers::default();
    for at in 0..600 {
        let asked = question(&format!("rpl_{at}"));
        let number = numbers.give(NOW, HUB, &asked);
        assert_eq!(number, (at < HIGHEST).then_some(at + 1));
        numbers.mark_over(NOW, &asked.reply_token);
    }
    assert!(numbers.is_sound());
    assert_eq!(numbers.give(later(), HUB, &question("rpl_next")), Some(1));
    assert_eq!(numbers.questions.len(), 99, "only short numbers go on standing for what is over");
}

#[test]
fn a_number_is_never_given_again_while_its_question_is_open() {
    let mut numbers = AskNumbers::default();
    let waiting = question("rpl_waiting");
    assert_eq!(numbers.give(NOW, HUB, &waiting), Some(1));
    for at in 0..500 {
        let asked = question(&format!("rpl_{at}"));
        assert_ne!(numbers.give(NOW, HUB, &asked), Some(1), "{at}");
        numbers.mark_over(NOW, &asked.reply_token);
    }
    assert_eq!(numbers.question(1).map(|it| it.reply_token.as_str()), Some("rpl_waiting"));
    assert_eq!(numbers.give(NOW, HUB, &waiting), Some(1));
}

#[test]
fn with_every_number_open_the_next_has_none_until_one_is_over() {
    let mut numbers = AskNumbers::default();
    for at in 0..HIGHEST {
        assert!(numbers.give(NOW, HUB, &question(&format!("rpl_{at}"))).is_some());
    }
    let one_more = question("rpl_more");
    assert_eq!(numbers.give(NOW, HUB, &one_more), None);
    assert_eq!(numbers.give(NOW, HUB, &question("rpl_7")), Some(8), "those that have one keep it");
    numbers.mark_over(NOW, &question("rpl_41").reply_token);
    assert_eq!(numbers.give(NOW, HUB, &one_more), None, "not at once");
    assert_eq!(numbers.give(later(), HUB, &one_more), Some(42));
}

#[test]
fn a_question_that_nobody_saw_end_is_over_when_its_time_is() {
    let mut numbers = AskNumbers::default();
    for at in 0..99 {
        numbers.give(NOW, HUB, &question(&format!("rpl_{at}")));
    }
    let next = question("rpl_next");
    assert_eq!(numbers.clone().give(NOW + 120, HUB, &next), Some(100), "all may be open");
    let over = NOW + 120 + SLACK_SECONDS;
    assert_eq!(numbers.clone().give(over, HUB, &next), Some(100), "they have ended only just");
    assert_eq!(numbers.give(over + later() - NOW, HUB, &next), Some(1));
}

#[test]
fn another_question_under_the_same_token_has_another_number() {
    let mut numbers = AskNumbers::default();
    let harmless = asked("rpl_a", &json!({ "risk_level": "low" }));
    let harmful = asked("rpl_a", &json!({ "risk_level": "high" }));
    assert_eq!(numbers.give(NOW, HUB, &harmless), Some(1));
    assert_eq!(numbers.give(NOW, HUB, &harmful), Some(2));
    let first = numbers.question(1).expect("it stays");
    assert_eq!(first.check(&harmless), Ok(()));
    assert_eq!(first.check(&harmful), Err(AskMismatch::Question));
    assert_eq!(first.check(&question("rpl_b")), Err(AskMismatch::Question));
}

#[test]
fn words_that_the_person_was_not_told_are_not_answered() {
    let mut numbers = AskNumbers::default();
    let told = question("rpl_a");
    let reworded = asked("rpl_a", &json!({ "action": "Delete everything." }));
    assert_eq!(numbers.give(NOW, HUB, &told), Some(1));
    assert_eq!(numbers.question(1).expect("one").check(&reworded), Err(AskMismatch::Words));
    assert_eq!(numbers.give(NOW, HUB, &reworded), Some(1), "told once more, in these words");
    assert_eq!(numbers.question(1).expect("one").check(&reworded), Ok(()));
    let wordless = PresentedAsk { words: Vec::new(), ..told };
    assert_eq!(numbers.question(1).expect("one").check(&wordless), Err(AskMismatch::Words));
}

#[test]
fn who_looks_at_an_address_sees_what_is_over_there_and_only_there() {
    let mut numbers = AskNumbers::default();
    let (here, gone, elsewhere) = (question("rpl_a"), question("rpl_b"), question("rpl_c"));
    numbers.give(NOW, HUB, &here);
    numbers.give(NOW, HUB, &gone);
    numbers.give(NOW, "https://example.org", &elsewhere);
    numbers.only_open(NOW + 1, HUB, std::slice::from_ref(&here));
    let is_open = |number: u16| numbers.question(number).expect("one").is_open;
    assert_eq!([1, 2, 3].map(is_open), [true, false, true]);
}

#[test]
fn a_question_that_came_while_someone_looked_stays_open() {
    let mut numbers = AskNumbers::default();
    numbers.give(NOW + 1, HUB, &question("rpl_new"));
    numbers.only_open(NOW + 1, HUB, &[]);
    assert!(numbers.question(1).expect("one").is_open);
}

#[test]
fn numbers_survive_being_written_and_read() {
    let mut numbers = after(3);
    numbers.give(NOW, HUB, &question("rpl_open"));
    let text = serde_json::to_string(&numbers).expect("JSON");
    assert_eq!(serde_json::from_str::<AskNumbers>(&text).expect("the same"), numbers);
}

#[test]
fn what_we_would_not_have_written_is_not_sound() {
    let written = serde_json::to_value(after(2)).expect("JSON");
    let read = |value| serde_json::from_value::<AskNumbers>(value);
    assert!(read(written.clone()).expect("the same").is_sound());
    for (pointer, wrong) in [
        ("/last", json!(100)),
        ("/questions/1/reply_token", json!("rm -r")),
        ("/questions/1/identity", json!("")),
        ("/questions/1/words", json!(["x"])),
        ("/questions/1/first_words", json!("x".repeat(5000))),
    ] {
        let mut value = written.clone();
        *value.pointer_mut(pointer).expect("a field") = wrong;
        assert!(!read(value).expect("the same form").is_sound(), "{pointer}");
    }
    let mut foreign = written.clone();
    foreign["questions"]["0"] = written["questions"]["1"].clone();
    assert!(!read(foreign).expect("the same form").is_sound());
    let mut unknown = written;
    unknown["more"] = json!(1);
    assert!(read(unknown).is_err());
}

#[test]
fn a_question_was_presented_from_the_moment_on_at_which_it_was_told_to_its_end() {
    let mut numbers = AskNumbers::default();
    let asked = question("rpl_a");
    numbers.presented(1000, &asked);
    assert_eq!(numbers.give(NOW, HUB, &asked), Some(1));
    let presented =
        |numbers: &AskNumbers, by| numbers.question(1).is_some_and(|it| it.was_presented(by));
    assert!(!presented(&numbers, i64::MAX), "it had no number, so nobody could mean it by one");
    numbers.presented(1000, &asked);
    assert!(!presented(&numbers, 999) && presented(&numbers, 1000));
    numbers.presented(2000, &asked);
    numbers.give(NOW, HUB, &asked);
    assert!(presented(&numbers, 1000), "the first time counts, and a new look changes nothing");
}

#[test]
fn a_question_in_other_words_has_to_be_told_again() {
    let mut numbers = AskNumbers::default();
    let first = question("rpl_a");
    numbers.give(NOW, HUB, &first);
    numbers.presented(1000, &first);
    let other = asked("rpl_a", &json!({ "action": "Delete everything." }));
    assert_eq!(numbers.give(NOW, HUB, &other), Some(1));
    assert!(numbers.question(1).is_some_and(|it| !it.was_presented(i64::MAX)));
    numbers.presented(2000, &other);
    assert!(numbers.question(1).is_some_and(|it| it.was_presented(2000)));
}

#[test]
fn numbers_of_the_version_before_are_read_and_were_not_presented() {
    let mut numbers = AskNumbers::default();
    numbers.give(NOW, HUB, &question("rpl_a"));
    let before = serde_json::to_string(&numbers).expect("JSON");
    assert!(!before.contains("presented"), "{before}");
    let read: AskNumbers = serde_json::from_str(&before).expect("numbers");
    assert!(read.question(1).is_some_and(|it| !it.was_presented(i64::MAX)));
}
