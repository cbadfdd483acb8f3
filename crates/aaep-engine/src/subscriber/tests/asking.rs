//! Asks: opened, closed in every possible way, and answered at most once.

use aaep::extension::{AskOutcome, DecidedBy};
use aaep::reply::Response;

use super::*;
use crate::subscriber::{ClarificationDetails, NotAllowed};

fn answer(
    subscriber: &mut SubscriberRules,
    name: &str,
    response: Response,
) -> Result<aaep::reply::ClarificationReply, CannotReply> {
    subscriber.clarify(at(5), &token(name), response, ClarificationDetails::default())
}

#[test]
fn a_question_opens_with_the_time_that_is_left() {
    let mut subscriber = listening();
    let got = subscriber.get(1000, &confirmation("q", 60));
    assert!(got.changes.contains(&opened("q")));
    let ask = subscriber.open_asks().next().expect("a question");
    assert_eq!((ask.session_id.clone(), ask.can_reply), (session("1"), true));
    assert_eq!(ask.remaining_us(at(11_000)), 50_000_000);
    assert_eq!(subscriber.deadline(), Some(61_000_000));
}

#[test]
fn the_reply_carries_the_token_as_it_came_and_nothing_invented() {
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("Zz09aA", 60));
    let reply = subscriber.accept(2500, "Zz09aA").expect("a reply");
    assert_eq!(reply.reply_token.as_str(), "rpl_Zz09aA");
    assert_eq!(reply.subscription_id, subscription("1"));
    assert_eq!(reply.timestamp.as_str(), moment(2500));
    assert_eq!((reply.decided_by.clone(), reply.decision_rationale.clone()), (None, None));
    assert_eq!(aaep::check(&reply), []);
}

#[test]
fn a_question_is_answered_once() {
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    subscriber.accept(2, "q").expect("a reply");
    assert_eq!(subscriber.accept(3, "q"), Err(CannotReply::AlreadyAnswered));
    assert_eq!(subscriber.open_asks().count(), 0);
    let again = subscriber.get(4, &confirmation("q", 60));
    assert!(is_repeated(&again) && again.changes.is_empty(), "a resumed stream does not reopen it");
    let got = subscriber.get(5, &notice("q", "accept", "reply"));
    let told = SubscriberChange::AskResolved {
        reply_token: token("q"),
        outcome: AskOutcome::Accept,
        decided_by: DecidedBy::Reply,
    };
    assert!(got.changes.contains(&told), "the person learns that the answer counted");
    assert_eq!(subscriber.accept(6, "q"), Err(CannotReply::AlreadyAnswered));
}

#[test]
fn an_answer_that_does_not_count_can_be_given_again() {
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    let before = subscriber.open_asks().next().cloned().expect("a question");
    assert!(!subscriber.reply_not_counted(before.clone()), "nothing was answered yet");
    subscriber.accept(2, "q").expect("a reply");
    assert!(subscriber.reply_not_counted(before.clone()));
    assert!(!subscriber.reply_not_counted(before.clone()), "it is open again");
    assert_eq!(subscriber.open_asks().count(), 1);
    subscriber.accept(3, "q").expect("another reply");
    subscriber.get(4, &notice("q", "accept", "reply"));
    assert!(!subscriber.reply_not_counted(before), "its outcome is known");
    assert_eq!(subscriber.accept(5, "q"), Err(CannotReply::AlreadyAnswered));
}

#[test]
fn nothing_is_answered_that_nobody_asked() {
    let mut subscriber = listening();
    assert_eq!(subscriber.accept(1, "made"), Err(CannotReply::UnknownAsk));
}

#[test]
fn silence_makes_no_reply_and_the_question_expires_on_our_clock() {
    let mut subscriber = listening();
    let ask = with(confirmation("q", 60), "timestamp", moment(-59_000));
    subscriber.get(1000, &ask);
    assert_eq!(subscriber.tick(at(60_999)), []);
    assert_eq!(
        subscriber.tick(at(61_000)),
        [SubscriberChange::AskExpired { reply_token: token("q") }]
    );
    assert_eq!(subscriber.accept(61_000, "q"), Err(CannotReply::Expired));
    assert_eq!(subscriber.deadline(), None);
}

#[test]
fn an_ask_that_comes_late_has_only_the_time_that_is_left() {
    let mut subscriber = listening();
    let mut ask = confirmation("q", 60);
    ask["extensions"] = json!({ "agentvoice": { "seconds_left": 20 } });
    subscriber.get(1000, &ask);
    assert_eq!(subscriber.tick(at(20_999)), []);
    let expired = SubscriberChange::AskExpired { reply_token: token("q") };
    assert_eq!(subscriber.tick(at(21_000)), [expired]);
}

#[test]
fn more_time_a_pause_and_less_time_are_followed_on_our_clock() {
    let told = |ms: u64, at_ms: i64, paused: bool| {
        let deadline = json!({ "reply_token": "rpl_q", "at": moment(at_ms), "paused": paused });
        let fields = json!({
            "progress": { "percent": ms }, "timestamp": moment(at_ms - 90_000),
            "extensions": { "agentvoice": { "deadline": deadline } },
        });
        event("progress.updated", fields)
    };
    let mut subscriber = listening();
    subscriber.get(0, &confirmation("q", 10));
    for (ms, paused) in [(9_000, false), (95_000, true)] {
        let got = subscriber.get(ms, &told(ms / 1000, 500_000, paused));
        assert_eq!(got.changes, [SubscriberChange::AskTimeChanged { reply_token: token("q") }]);
        assert_eq!(subscriber.deadline(), Some((ms + 90_000) * 1000));
        assert_eq!(subscriber.open_asks().next().map(|ask| ask.is_paused), Some(paused));
    }
    // Another session cannot change it, and an ask that is over stays over.
    let foreign = with(told(3, 500_000, false), "session_id", "sess_2");
    subscriber.get(96_000, &foreign);
    assert_eq!(subscriber.deadline(), Some(185_000 * 1000));
    assert_eq!(
        subscriber.tick(at(185_000)),
        [SubscriberChange::AskExpired { reply_token: token("q") }]
    );
    assert_eq!(subscriber.get(186_000, &told(4, 500_000, false)).changes, []);
    assert_eq!(subscriber.accept(186_000, "q"), Err(CannotReply::Expired));
}

#[test]
fn a_late_answer_is_refused_even_before_the_tick() {
    let mut subscriber = listening();
    subscriber.get(0, &confirmation("q", 1));
    assert_eq!(subscriber.accept(1000, "q"), Err(CannotReply::Expired));
    let got = subscriber.get(1500, &progress(1));
    assert_eq!(got.changes[0], SubscriberChange::AskExpired { reply_token: token("q") });
    assert!(is_repeated(&subscriber.get(1600, &confirmation("q", 1))));
    assert_eq!(subscriber.accept(1700, "q"), Err(CannotReply::Expired));
}

#[test]
fn a_question_that_someone_else_answered_is_taken_away() {
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    let got = subscriber.get(2, &notice("q", "reject", "reply"));
    let (outcome, decided_by) = (AskOutcome::Reject, DecidedBy::Reply);
    let told = SubscriberChange::AskResolved {
        reply_token: token("q"),
        outcome: outcome.clone(),
        decided_by: decided_by.clone(),
    };
    assert!(got.changes.contains(&told));
    assert_eq!(subscriber.accept(3, "q"), Err(CannotReply::Resolved { outcome, decided_by }));
}

#[test]
fn a_question_that_is_withdrawn_by_notice_is_taken_away() {
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    let got = subscriber.get(2, &notice("q", "withdrawn", "withdrawn"));
    assert!(got.changes.contains(&withdrawn("q", WhyWithdrawn::Said)));
    assert_eq!(subscriber.accept(3, "q"), Err(CannotReply::Withdrawn(WhyWithdrawn::Said)));
}

#[test]
fn a_notice_takes_away_only_the_question_that_it_names() {
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    subscriber.get(2, &confirmation("r", 60));
    subscriber.get(3, &notice("q", "accept", "reply"));
    assert_eq!(subscriber.open_tokens(), ["rpl_r"]);
}

#[test]
fn an_agent_that_goes_on_withdraws_its_own_questions_only() {
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    let of_other = with(confirmation("r", 60), "producer", json!({ "agent_id": "b" }));
    subscriber.get(2, &of_other);
    subscriber.get(3, &in_session(confirmation("s", 60), "2"));
    let got = subscriber.get(4, &changed("awaiting_input", "thinking"));
    assert!(got.changes.contains(&withdrawn("q", WhyWithdrawn::WentOn)));
    assert_eq!(subscriber.open_tokens(), ["rpl_r", "rpl_s"]);
    assert_eq!(subscriber.accept(5, "q"), Err(CannotReply::Withdrawn(WhyWithdrawn::WentOn)));
}

#[test]
fn a_state_change_that_the_question_overtook_does_not_withdraw_it() {
    let terms = Capabilities { max_events_per_second: Some(2), ..able() };
    let mut subscriber = subscribed(&terms);
    subscriber.get(1, &with(confirmation("q", 60), "timestamp", moment(500)));
    let late = with(changed("awaiting_input", "thinking"), "timestamp", moment(400));
    subscriber.get(2, &late);
    assert_eq!(subscriber.open_tokens(), ["rpl_q"]);
    let newer = with(changed("awaiting_input", "deciding"), "timestamp", moment(600));
    subscriber.get(3, &newer);
    assert_eq!(subscriber.open_asks().count(), 0);
}

#[test]
fn the_end_of_the_session_withdraws_its_questions() {
    for end in [
        completed(),
        event("session.cancelled", json!({ "cancelled_by": "user", "summary_normal": "Off." })),
        event("session.errored", json!({ "error_category": "unknown", "summary_normal": "Off." })),
    ] {
        let mut subscriber = listening();
        subscriber.get(1, &confirmation("q", 60));
        let got = subscriber.get(2, &end);
        assert!(got.changes.contains(&withdrawn("q", WhyWithdrawn::SessionEnded)));
        let why = CannotReply::Withdrawn(WhyWithdrawn::SessionEnded);
        assert_eq!(subscriber.accept(3, "q"), Err(why));
    }
}

#[test]
fn a_token_that_comes_with_a_second_question_answers_neither() {
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    let got = subscriber.get(2, &confirmation("q", 90));
    assert_eq!(codes(&got), ["token_reused"]);
    assert!(got.changes.contains(&withdrawn("q", WhyWithdrawn::TokenReused)));
    heard_event(&got);
    assert_eq!(subscriber.accept(3, "q"), Err(CannotReply::Withdrawn(WhyWithdrawn::TokenReused)));
}

#[test]
fn an_answered_token_that_comes_again_is_not_answered_again() {
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    subscriber.accept(2, "q").expect("a reply");
    let got = subscriber.get(3, &confirmation("q", 90));
    assert_eq!((codes(&got), subscriber.open_asks().count()), (vec!["token_reused"], 0));
    assert_eq!(subscriber.accept(4, "q"), Err(CannotReply::AlreadyAnswered));
}

#[test]
fn a_session_cannot_settle_the_question_of_another() {
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    let got = subscriber.get(2, &in_session(notice("q", "accept", "reply"), "2"));
    assert_eq!(codes(&got), ["foreign_resolution"]);
    assert_eq!(subscriber.open_tokens(), ["rpl_q"]);
}

#[test]
fn an_outcome_heard_before_its_question_keeps_it_closed() {
    let mut subscriber = listening();
    subscriber.get(1, &notice("q", "accept", "reply"));
    let got = subscriber.get(2, &confirmation("q", 60));
    assert!(!got.changes.contains(&opened("q")));
    assert!(matches!(subscriber.accept(3, "q"), Err(CannotReply::Resolved { .. })));
}

#[test]
fn only_what_the_question_offers_can_be_answered() {
    let mut subscriber = listening();
    let ask = with(confirmation("q", 60), "allowed_replies", json!(["reject"]));
    subscriber.get(1, &ask);
    assert_eq!(subscriber.accept(2, "q"), Err(CannotReply::NotAllowed(NotAllowed::Decision)));
    let no =
        subscriber.confirm(at(3), &token("q"), Decision::Reject, ConfirmationDetails::default());
    no.expect("nothing was used up");
}

#[test]
fn a_reject_is_never_held_back_whatever_the_question_offers() {
    for allowed in [json!(["accept"]), json!(["maybe"])] {
        let mut subscriber = listening();
        subscriber.get(1, &with(confirmation("q", 60), "allowed_replies", allowed.clone()));
        let details = ConfirmationDetails::default();
        let no = subscriber.confirm(at(2), &token("q"), Decision::Reject, details);
        assert_eq!(no.map(|it| it.decision), Ok(Decision::Reject), "{allowed}");
    }
}

#[test]
fn a_rule_accepts_only_what_a_rule_may() {
    let by_rule = || ConfirmationDetails {
        decided_by: Some(aaep::reply::automatic("all")),
        ..Default::default()
    };
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    let yes = subscriber.confirm(at(2), &token("q"), Decision::Accept, by_rule());
    assert_eq!(yes, Err(CannotReply::NotAllowed(NotAllowed::Rule)));
    subscriber.accept(3, "q").expect("nothing was used up: the person can answer");
    let mut subscriber = listening();
    let low = with(confirmation("q", 60), "risk_level", json!("low"));
    subscriber.get(1, &low);
    subscriber.confirm(at(2), &token("q"), Decision::Accept, by_rule()).expect("a rule may");
}

#[test]
fn a_clarification_takes_the_kinds_that_it_names() {
    let mut subscriber = listening();
    let choices =
        json!([{ "value": "mo", "label": "Monday" }, { "value": "tu", "label": "Tuesday" }]);
    let fields =
        json!({ "accepted_response_kinds": ["multiple_choice", "yes_no"], "choices": choices });
    subscriber.get(1, &clarification("c", fields));
    let not = Err(CannotReply::NotAllowed(NotAllowed::Response));
    assert_eq!(answer(&mut subscriber, "c", Response::Text("we".to_owned())), not);
    assert_eq!(answer(&mut subscriber, "c", Response::Number(3.into())), not);
    assert_eq!(subscriber.accept(5, "c"), Err(CannotReply::NotAllowed(NotAllowed::Kind)));
    let reply = answer(&mut subscriber, "c", Response::Text("tu".to_owned())).expect("a reply");
    assert_eq!(reply.reply_token, token("c"));
    assert_eq!(aaep::check(&reply), []);
    let again = answer(&mut subscriber, "c", Response::YesNo(true));
    assert_eq!(again, Err(CannotReply::AlreadyAnswered));
}

#[test]
fn a_clarification_that_names_no_kind_takes_words() {
    let mut subscriber = listening();
    subscriber.get(1, &clarification("c", json!({})));
    let not = Err(CannotReply::NotAllowed(NotAllowed::Response));
    assert_eq!(answer(&mut subscriber, "c", Response::YesNo(true)), not);
    let empty = answer(&mut subscriber, "c", Response::Text(String::new()));
    assert!(matches!(empty, Err(CannotReply::Malformed(_))), "nothing said is no answer");
    answer(&mut subscriber, "c", Response::Text("Monday".to_owned())).expect("a reply");
}

#[test]
fn a_reply_that_would_not_be_valid_uses_nothing_up() {
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    let details = ConfirmationDetails {
        decided_by: Some(format!("user:{}", "x".repeat(300))),
        ..ConfirmationDetails::default()
    };
    let got = subscriber.confirm(at(2), &token("q"), Decision::Accept, details);
    assert!(matches!(got, Err(CannotReply::Malformed(_))), "{got:?}");
    let never = Now { monotonic_us: 3000, unix_us: i64::MAX };
    let details = ConfirmationDetails::default();
    let got = subscriber.confirm(never, &token("q"), Decision::Accept, details);
    assert_eq!(got, Err(CannotReply::NoSuchMoment));
    subscriber.accept(4, "q").expect("a reply");
}

#[test]
fn a_subscriber_unable_to_answer_hears_the_question_and_answers_nothing() {
    let mut subscriber = subscribed(&Capabilities::new());
    let got = subscriber.get(1, &confirmation("q", 60));
    assert_eq!(codes(&got), ["ask_without_reply_support"]);
    heard_event(&got);
    assert_eq!(subscriber.open_asks().map(|ask| ask.can_reply).collect::<Vec<_>>(), [false]);
    assert_eq!(subscriber.accept(2, "q"), Err(CannotReply::NotAllowed(NotAllowed::Terms)));
}

#[test]
fn a_question_before_the_handshake_waits_for_it() {
    let mut subscriber = SubscriberRules::new(config());
    subscriber.request(able()).expect("a request");
    let got = subscriber.get(1, &confirmation("q", 60));
    assert_eq!(codes(&got), ["not_subscribed"]);
    assert_eq!(subscriber.accept(2, "q"), Err(CannotReply::NotSubscribed));
    subscriber.get(3, &accepted(&able()));
    subscriber.accept(4, "q").expect("a reply");
}

#[test]
fn another_session_cannot_settle_a_question_before_it_is_asked() {
    let mut subscriber = listening();
    subscriber.get(1, &in_session(notice("q", "accept", "reply"), "2"));
    let got = subscriber.get(2, &confirmation("q", 60));
    assert!(got.changes.contains(&opened("q")));
    subscriber.accept(3, "q").expect("a reply");
}

#[test]
fn where_events_are_numbered_the_numbers_say_what_is_newer() {
    let numbered = |document, number: u64| with(document, "sequence_number", number);
    let mut subscriber = subscribed(&able());
    subscriber.get(1, &numbered(started(), 0));
    subscriber.get(2, &numbered(confirmation("q", 60), 2));
    let late = with(changed("awaiting_input", "thinking"), "timestamp", moment(5));
    subscriber.get(3, &numbered(late, 1));
    assert_eq!(subscriber.open_tokens(), ["rpl_q"]);
    subscriber.get(4, &numbered(changed("awaiting_input", "deciding"), 3));
    assert_eq!(subscriber.open_asks().count(), 0);
}

#[test]
fn the_outcome_of_an_answer_is_told_once() {
    let mut subscriber = listening();
    subscriber.get(1, &confirmation("q", 60));
    subscriber.accept(2, "q").expect("a reply");
    let is_told = |got: &Received| {
        got.changes.iter().any(|change| matches!(change, SubscriberChange::AskResolved { .. }))
    };
    assert!(is_told(&subscriber.get(3, &notice("q", "accept", "reply"))));
    let again = with(notice("q", "accept", "reply"), "event_id", "evt_again");
    assert!(!is_told(&subscriber.get(4, &again)));
    let mut other = listening();
    other.get(1, &confirmation("q", 60));
    other.accept(2, "q").expect("a reply");
    let foreign = other.get(3, &in_session(notice("q", "reject", "reply"), "2"));
    assert_eq!((codes(&foreign), is_told(&foreign)), (vec!["foreign_resolution"], false));
}

#[test]
fn no_question_opens_after_the_subscription_is_over() {
    let mut subscriber = listening();
    subscriber.close(None, None).expect("a message");
    let got = subscriber.get(1, &confirmation("q", 60));
    heard_event(&got);
    assert_eq!(subscriber.open_asks().count(), 0);
}

#[test]
fn a_question_before_the_handshake_cannot_be_answered_if_the_terms_then_forbid_it() {
    let mut subscriber = SubscriberRules::new(config());
    subscriber.request(able()).expect("a request");
    subscriber.get(1, &confirmation("q", 60));
    let honored = Capabilities { supports_confirmation_reply: Some(false), ..able() };
    subscriber.get(2, &accepted(&honored));
    assert_eq!(subscriber.accept(3, "q"), Err(CannotReply::NotAllowed(NotAllowed::Terms)));
}
