//! What a person's words mean as an answer. Pure and strict: only a few words give consent, and unclear words answer
//! nothing.

use aaep::event::human::{AwaitingClarification, Choice, ResponseKind};
use aaep::reply::Response;
use aaep::{Payload, printable};
use aaep_announce::choice_letters;

use crate::english::answers;

/// Words that give consent. "Ok" and "sure" are excluded because people say them too easily.
pub(crate) const CONSENT: [&str; 4] = ["yes", "accept", "allow", "approve"];

/// The words that refuse.
pub(crate) const REFUSAL: [&str; 5] = ["no", "n", "reject", "deny", "refuse"];

/// Words that ask for more time; a number of seconds or minutes may follow.
const MORE_TIME: [&str; 3] = ["later", "extend", "more time"];

/// How much more time to ask for when the person gives no amount.
pub(crate) const USUAL_SECONDS: u64 = 60;

/// The most time that can be requested at once: no ask stays open for longer than a day.
const MOST_SECONDS: u64 = 86_400;

/// What a person wants.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AnswerMeaning {
    Accept,
    Reject,
    Respond(Response),
    /// More time, in seconds.
    Extend(u64),
    Pause,
    Resume,
}

impl AnswerMeaning {
    /// Whether this answer can let something happen, so that the person must have been told the question completely.
    /// A plain no or a request for more time lets nothing happen.
    pub(crate) fn lets_happen(&self) -> bool {
        match self {
            AnswerMeaning::Accept => true,
            AnswerMeaning::Respond(response) => *response != Response::YesNo(false),
            AnswerMeaning::Reject
            | AnswerMeaning::Extend(_)
            | AnswerMeaning::Pause
            | AnswerMeaning::Resume => false,
        }
    }
}

/// The words have no certain meaning; the sentence says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnclearAnswer(pub(crate) String);

/// Interprets words as an answer to this question. With `as_they_stand`, words are never a request for time.
pub(crate) fn understand(
    payload: &Payload,
    words: &str,
    as_they_stand: bool,
) -> Result<AnswerMeaning, UnclearAnswer> {
    let words = words.trim();
    let plain = plain(words);
    let time = if as_they_stand { None } else { time(&plain) };
    match payload {
        Payload::AwaitingConfirmation(_) => match time {
            Some(meaning) => meaning,
            None if CONSENT.contains(&plain.as_str()) => Ok(AnswerMeaning::Accept),
            None if REFUSAL.contains(&plain.as_str()) => Ok(AnswerMeaning::Reject),
            None => Err(UnclearAnswer(answers::not_clear(&quoted(words), &CONSENT))),
        },
        Payload::AwaitingClarification(asked) => {
            let chosen = chosen(asked, &plain);
            match (time, chosen) {
                (Some(_), Ok(Some(_)) | Err(_)) => {
                    Err(UnclearAnswer(answers::choice_or_time(&quoted(words))))
                }
                (Some(meaning), Ok(None)) => meaning,
                (None, chosen) => respond(asked, words, &plain, chosen),
            }
        }
        _ => Err(UnclearAnswer(answers::NOT_A_QUESTION.to_owned())),
    }
}

fn respond(
    asked: &AwaitingClarification,
    words: &str,
    plain: &str,
    chosen: Result<Option<&Choice>, UnclearAnswer>,
) -> Result<AnswerMeaning, UnclearAnswer> {
    if let Some(choice) = chosen? {
        return Ok(AnswerMeaning::Respond(Response::Text(choice.value.clone())));
    }
    let takes = |kind| kinds(asked).contains(&kind);
    if takes(ResponseKind::YesNo) && (plain == "yes" || plain == "no") {
        return Ok(AnswerMeaning::Respond(Response::YesNo(plain == "yes")));
    }
    let number = serde_json::from_str::<serde_json::Number>(words).ok();
    if takes(ResponseKind::Numeric)
        && let Some(number) = number
    {
        return Ok(AnswerMeaning::Respond(Response::Number(number)));
    }
    // A number that is not a choice is a slip, not free text.
    let is_slip = takes(ResponseKind::MultipleChoice) && words.parse::<i64>().is_ok();
    if takes(ResponseKind::Freetext) && !words.is_empty() && !is_slip {
        return Ok(AnswerMeaning::Respond(Response::Text(words.to_owned())));
    }
    Err(UnclearAnswer(answers::not_an_answer(&quoted(words))))
}

/// The choice named by its letter, label, value or position; unclear if two choices match. Values and positions are
/// not told to the person, so they count only if no letter or label matches.
fn chosen<'a>(
    asked: &'a AwaitingClarification,
    plain: &str,
) -> Result<Option<&'a Choice>, UnclearAnswer> {
    if !kinds(asked).contains(&ResponseKind::MultipleChoice) {
        return Ok(None);
    }
    let choices = asked.choices.as_deref().unwrap_or_default();
    let letters = choice_letters(choices.iter().map(|it| it.label.as_str())).unwrap_or_default();
    let by_letter = letters.iter().position(|it| it.eq_ignore_ascii_case(plain));
    let by_letter = by_letter.and_then(|at| choices.get(at));
    let is_called = |it: &&Choice| self::plain(&it.label) == plain;
    let mut meant: Vec<&Choice> = choices.iter().filter(is_called).chain(by_letter).collect();
    if meant.is_empty() {
        // If a number is also a valid answer, a digit means that number.
        let place = if kinds(asked).contains(&ResponseKind::Numeric) { "" } else { plain };
        let place = place.parse::<usize>().ok().and_then(|it| choices.get(it.checked_sub(1)?));
        let is_value = |it: &&Choice| self::plain(&it.value) == plain;
        meant.extend(choices.iter().filter(is_value).chain(place));
    }
    meant.dedup_by(|one, other| one.value == other.value);
    match meant.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Err(UnclearAnswer(answers::several_choices(&quoted(plain)))),
    }
}

fn kinds(asked: &AwaitingClarification) -> &[ResponseKind] {
    asked.accepted_response_kinds.as_deref().unwrap_or(&[ResponseKind::Freetext])
}

/// Interprets words about time, if they are about time.
fn time(plain: &str) -> Option<Result<AnswerMeaning, UnclearAnswer>> {
    match plain {
        "pause" => return Some(Ok(AnswerMeaning::Pause)),
        "resume" => return Some(Ok(AnswerMeaning::Resume)),
        _ => {}
    }
    let amount = MORE_TIME.iter().find_map(|word| plain.strip_prefix(word))?;
    if amount.is_empty() {
        return Some(Ok(AnswerMeaning::Extend(USUAL_SECONDS)));
    }
    // "laterally" is not "later".
    let amount = amount.strip_prefix(' ')?;
    let seconds = seconds(amount).filter(|it| (1..=MOST_SECONDS).contains(it));
    Some(
        seconds
            .map(AnswerMeaning::Extend)
            .ok_or_else(|| UnclearAnswer(answers::HOW_MUCH_TIME.to_owned())),
    )
}

fn seconds(amount: &str) -> Option<u64> {
    let (number, unit) = amount.split_once(' ').unwrap_or((amount, "seconds"));
    let number: u64 = number.parse().ok()?;
    match unit {
        "second" | "seconds" => Some(number),
        "minute" | "minutes" => number.checked_mul(60),
        _ => None,
    }
}

/// Normalises words for comparison: lower case, single spaces, and without the full stop that dictation adds.
fn plain(words: &str) -> String {
    let lower = words.to_lowercase();
    let joined = lower.split_whitespace().collect::<Vec<_>>().join(" ");
    joined.trim_end_matches(['.', '!', ',']).to_owned()
}

fn quoted(words: &str) -> String {
    format!("\"{}\"", printable(words))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::attention::asked::tests::{confirmation, read};

    fn consent(words: &str) -> Result<AnswerMeaning, UnclearAnswer> {
        understand(&confirmation("rpl_1", &json!({})).payload, words, false)
    }

    fn clarify(
        kinds: &Value,
        choices: &Value,
        words: &str,
    ) -> Result<AnswerMeaning, UnclearAnswer> {
        understand(&clarification(kinds, choices), words, false)
    }

    fn clarification(kinds: &Value, choices: &Value) -> Payload {
        let mut event = json!({
            "@context": aaep::CORE_CONTEXT, "type": "aaep:agent.awaiting.clarification",
            "event_id": "evt_1", "session_id": "sess_1", "timestamp": "2026-11-02T06:20:09.118Z",
            "producer": { "agent_id": "mail" }, "urgency": "critical", "reply_token": "rpl_2",
            "question": "Which?", "timeout_seconds": 120,
        });
        for (key, value) in [("accepted_response_kinds", kinds), ("choices", choices)] {
            if !value.is_null() {
                event[key] = value.clone();
            }
        }
        read(&event).payload
    }

    fn text(words: &str) -> AnswerMeaning {
        AnswerMeaning::Respond(Response::Text(words.to_owned()))
    }

    #[test]
    fn only_the_words_on_the_list_are_consent() {
        for yes in ["yes", "Yes.", " YES ", "accept", "allow", "approve", "Approve!"] {
            assert_eq!(consent(yes), Ok(AnswerMeaning::Accept), "{yes:?}");
        }
        for no in ["no", "n", "No.", "reject", "deny", "refuse"] {
            assert_eq!(consent(no), Ok(AnswerMeaning::Reject), "{no:?}");
        }
    }

    #[test]
    fn what_is_not_clear_answers_nothing() {
        for unclear in [
            "",
            " ",
            "y",
            "ok",
            "okay",
            "sure",
            "yep",
            "yeah",
            "fine",
            "go",
            "go on",
            "do it",
            "yes?",
            "yes no",
            "yes please",
            "yes, delete it",
            "not yes",
            "no yes",
            "yesno",
            "true",
            "1",
            "aye",
            "oui",
            "ja",
            "y e s",
            "yes\u{200b}",
            "уes",
            "accept all",
            "noo",
            "never mind",
            "--yes",
            "/yes",
            "\u{1b}yes",
        ] {
            assert!(consent(unclear).is_err(), "{unclear:?}");
        }
        let Err(UnclearAnswer(why)) = consent("ok\u{1b}[2J") else { panic!("unclear") };
        assert!(why.contains("yes, accept, allow, approve") && !why.contains('\u{1b}'), "{why}");
    }

    #[test]
    fn more_time_is_asked_for_in_seconds_or_minutes() {
        for (words, seconds) in [
            ("later", 60),
            ("more time", 60),
            ("More time.", 60),
            ("extend 120", 120),
            ("later 5 minutes", 300),
            ("more time 1 minute", 60),
            ("later 30 seconds", 30),
        ] {
            assert_eq!(consent(words), Ok(AnswerMeaning::Extend(seconds)), "{words}");
        }
        for wrong in [
            "later 0",
            "later -1",
            "later soon",
            "later 99999999999",
            "later 2 hours x",
            "laterally",
            "extend 86401",
        ] {
            assert!(consent(wrong).is_err(), "{wrong}");
        }
        assert_eq!(consent("pause"), Ok(AnswerMeaning::Pause));
        assert_eq!(consent("resume"), Ok(AnswerMeaning::Resume));
    }

    #[test]
    fn words_that_are_meant_as_they_stand_are_never_about_time() {
        let free = clarification(&Value::Null, &Value::Null);
        assert_eq!(understand(&free, "later", false), Ok(AnswerMeaning::Extend(60)));
        assert_eq!(understand(&free, "Later", true), Ok(text("Later")));
        let asked = confirmation("rpl_1", &json!({})).payload;
        assert!(understand(&asked, "later", true).is_err());
    }

    #[test]
    fn free_words_are_taken_as_they_are() {
        let free = |words| clarify(&Value::Null, &Value::Null, words);
        assert_eq!(free(" The Lagos folder. "), Ok(text("The Lagos folder.")));
        assert_eq!(free("yes"), Ok(text("yes")));
        assert_eq!(free("12"), Ok(text("12")));
        assert!(free("  ").is_err());
    }

    #[test]
    fn yes_or_no_and_numbers_are_strict() {
        let yes_no = |words| clarify(&json!(["yes_no"]), &Value::Null, words);
        assert_eq!(yes_no("Yes."), Ok(AnswerMeaning::Respond(Response::YesNo(true))));
        assert_eq!(yes_no("no"), Ok(AnswerMeaning::Respond(Response::YesNo(false))));
        for unclear in ["y", "true", "accept", "maybe", "1"] {
            assert!(yes_no(unclear).is_err(), "{unclear}");
        }
        let number = |words| clarify(&json!(["numeric"]), &Value::Null, words);
        for (words, value) in [("12", json!(12)), ("-3.5", json!(-3.5)), (" 0 ", json!(0))] {
            let Ok(AnswerMeaning::Respond(Response::Number(found))) = number(words) else {
                panic!("{words} is a number");
            };
            assert_eq!(json!(found), value);
        }
        for unclear in ["twelve", "12 apples", "1,000", "0x10", "NaN", "infinity", "1 2", "yes"] {
            assert!(number(unclear).is_err(), "{unclear}");
        }
    }

    #[test]
    fn a_choice_is_meant_by_its_letter_its_words_its_value_or_its_place() {
        let choices = json!([
            { "value": "i", "label": "The Inbox" }, { "value": "a", "label": "Archive" },
        ]);
        let pick = |words| clarify(&json!(["multiple_choice"]), &choices, words);
        // Values are not told to the person, so a letter is never taken for the value of another choice.
        for first in ["a", "A.", "1", "the inbox", "The Inbox.", "i"] {
            assert_eq!(pick(first), Ok(text("i")), "{first}");
        }
        for second in ["b", "2", "archive"] {
            assert_eq!(pick(second), Ok(text("a")), "{second}");
        }
        for wrong in ["0", "3", "-1", "inbox", "yes", "", "1 2", "99999999999999999999999"] {
            assert!(pick(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_choice_that_could_be_two_or_a_word_about_time_is_unclear() {
        let years = json!([{ "value": "2", "label": "Two" }, { "value": "1", "label": "One" }]);
        let pick = |words| clarify(&json!(["multiple_choice"]), &years, words);
        assert!(pick("1").is_err(), "the first, or the one whose value is 1");
        assert_eq!(pick("two"), Ok(text("2")));
        let letters = json!([{ "value": "x", "label": "B" }, { "value": "y", "label": "A" }]);
        let pick = |words| clarify(&json!(["multiple_choice"]), &letters, words);
        assert_eq!((pick("a"), pick("b")), (Ok(text("y")), Ok(text("x"))), "as they are called");
        let both = json!(["multiple_choice", "numeric"]);
        let or_number = clarify(&both, &years, "2");
        assert!(or_number.is_ok_and(|it| it != text("1")), "not the second one");
        let times =
            json!([{ "value": "now", "label": "Now" }, { "value": "later", "label": "Later" }]);
        let pick = |words| clarify(&json!(["multiple_choice"]), &times, words);
        assert!(pick("later").is_err());
        assert_eq!(pick("b"), Ok(text("later")));
        assert_eq!(pick("pause"), Ok(AnswerMeaning::Pause));
    }

    #[test]
    fn a_number_that_is_no_choice_is_not_taken_for_words() {
        let choices = json!([{ "value": "a", "label": "A" }, { "value": "b", "label": "B" }]);
        let either = |words| clarify(&json!(["multiple_choice", "freetext"]), &choices, words);
        assert_eq!(either("2"), Ok(text("b")));
        assert!(either("3").is_err());
        assert_eq!(either("neither of them"), Ok(text("neither of them")));
    }
}
