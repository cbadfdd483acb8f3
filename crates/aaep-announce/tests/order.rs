//! Which of several questions is told first: the riskier one, for certain.

#[path = "common/support.rs"]
mod support;

use aaep::Event;
use aaep_announce::{AnnouncerInput, AskEnding, DeviceReport, Order};
use serde_json::json;
use support::{Room, event};

fn risky(token: &str, risk: Option<&str>, is_final: bool) -> Event {
    let mut fields = json!({
        "action": format!("Do {}.", token.trim_start_matches("rpl_")), "consequence": "",
        "reply_token": token, "timeout_seconds": 300, "default_decision": "reject",
        "irreversible": is_final,
    });
    if let Some(risk) = risk {
        fields["risk_level"] = risk.into();
    }
    event("awaiting.confirmation", &fields)
}

/// What is asked, in the order in which it was told.
fn order(heard: &[String]) -> Vec<String> {
    let action = |it: &String| it.split("Do ").nth(1)?.split('.').next().map(str::to_owned);
    heard.iter().filter(|it| !it.contains(" questions wait.")).filter_map(action).collect()
}

#[test]
fn of_two_questions_at_the_same_instant_the_riskier_is_told_first() {
    for (first, second) in [("low", "high"), ("high", "low")] {
        let mut room = Room::quiet();
        room.ask(1, &risky(&format!("rpl_{first}"), Some(first), false));
        room.ask(2, &risky(&format!("rpl_{second}"), Some(second), false));
        assert_eq!(order(&room.listen()), ["high", "low"]);
    }
}

#[test]
fn a_question_of_unknown_risk_is_told_before_one_of_medium_risk() {
    for unknown in [None, Some("tiny")] {
        for is_first in [true, false] {
            let mut room = Room::quiet();
            let mut asks =
                [risky("rpl_unknown", unknown, false), risky("rpl_medium", Some("medium"), false)];
            if !is_first {
                asks.reverse();
            }
            for (number, event) in (1..).zip(&asks) {
                room.ask(number, event);
            }
            assert_eq!(order(&room.listen()), ["unknown", "medium"], "{unknown:?}");
        }
    }
}

#[test]
fn questions_that_wait_are_told_by_risk_and_then_by_age() {
    let mut room = Room::quiet();
    room.ask(1, &risky("rpl_first", Some("low"), false));
    let id = room.id();
    // It makes way once, so that the person hears of the others, and then it waits like them.
    room.report(DeviceReport::Began(id));
    for (number, event) in (2..).zip([
        risky("rpl_small", Some("low"), false),
        risky("rpl_unsaid", None, false),
        risky("rpl_great", Some("high"), false),
        risky("rpl_greater", Some("high"), true),
        risky("rpl_greatest", Some("high"), true),
    ]) {
        room.ask(number, &event);
    }
    let expected = ["greater", "greatest", "great", "unsaid", "first", "small"];
    assert_eq!(order(&room.listen()), expected);
}

#[test]
fn a_question_that_is_overtaken_again_and_again_is_told_all_the_same() {
    let mut room = Room::quiet();
    room.ask(1, &risky("rpl_0", Some("low"), false));
    let ranks =
        [("low", true), ("medium", false), ("medium", true), ("high", false), ("high", true)];
    for (number, (risk, is_final)) in (2..).zip(ranks) {
        room.ask(number, &risky(&format!("rpl_{}", number - 1), Some(risk), is_final));
        for id in std::mem::take(&mut room.stopped) {
            room.report(DeviceReport::Cut(id));
        }
    }
    assert!(room.orders.contains(&Order::Stop), "some were overtaken");
    assert_eq!(order(&room.listen()), ["5", "4", "3", "2", "1", "0"]);
}

#[test]
fn a_question_that_nobody_knew_about_any_more_is_told_when_it_is_asked_again() {
    let mut room = Room::quiet();
    room.ask(1, &risky("rpl_a", Some("high"), true));
    assert_eq!(order(&room.listen()), ["a"]);
    room.ask(1, &risky("rpl_a", Some("high"), true));
    assert!(room.listen().is_empty(), "it is the same question");
    room.handle(AnnouncerInput::Over { number: 1, ending: AskEnding::Unknown });
    room.listen();
    room.ask(1, &risky("rpl_a", Some("high"), true));
    assert_eq!(order(&room.listen()), ["a"]);
    assert!(room.announcer.waiting() == 0);
}
