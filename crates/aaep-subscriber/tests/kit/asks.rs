//! Questions: answered once, never for the person, and honest about what became of them.

use std::time::Duration;

use aaep::extension::{AskOutcome, DecidedBy};
use aaep::reply::Response;
use aaep_subscriber::{AskState, CannotReply, News, SayError, WhyWithdrawn, Wishes};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::producer::{
    confirmation, connected, event, next, next_ask, next_ended, notice, progress, until,
};

const SECOND: Duration = Duration::from_secs(1);

fn resolved(outcome: AskOutcome, decided_by: DecidedBy) -> AskState {
    AskState::Resolved { outcome, decided_by }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_sent_once_and_its_outcome_is_known() {
    let (mut subscriber, _producer, mut line) = connected(Wishes::new("reader")).await;
    line.says(&confirmation(1, 60)).await;
    let ask = next_ask(&mut subscriber).await;
    assert_eq!(ask.confirmation().expect("a confirmation").action, "Delete the database.");
    let words = ask.words();
    assert!(
        words.starts_with("Delete the database.") && words.ends_with("it is refused."),
        "{words}"
    );
    assert!(words.contains("undone"), "{words}");
    assert_eq!(ask.state(), AskState::Open);
    assert!(ask.remaining() <= 60 * SECOND && ask.remaining() > 59 * SECOND);
    ask.accept().await.expect("said");
    let reply = line.hears().await;
    assert_eq!(reply["type"], "confirmation.reply");
    assert_eq!((&reply["reply_token"], &reply["decision"]), (&json!("rpl_n1"), &json!("accept")));
    assert_eq!(ask.state(), AskState::Answered);
    let again = SayError::CannotReply(CannotReply::AlreadyAnswered);
    assert_eq!(ask.accept().await, Err(again.clone()));
    assert_eq!(ask.clone().reject().await, Err(again));
    assert!(line.hears_nothing_for(10 * SECOND).await);
    line.says(&notice(2, 1, "accept", "reply")).await;
    assert_eq!(ask.settled().await, resolved(AskOutcome::Accept, DecidedBy::Reply));
    assert_eq!(next_ended(&mut subscriber).await.reply_token(), ask.reply_token());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_where_the_person_says_nothing() {
    let (mut subscriber, _producer, mut line) = connected(Wishes::new("reader")).await;
    line.says(&confirmation(1, 5)).await;
    let ask = next_ask(&mut subscriber).await;
    let began = Instant::now();
    assert_eq!(ask.closed().await, AskState::Expired);
    assert!(began.elapsed() >= 4 * SECOND);
    assert_eq!(next_ended(&mut subscriber).await.state(), AskState::Expired);
    let late = SayError::CannotReply(CannotReply::Expired);
    assert_eq!(ask.accept().await, Err(late));
    drop(ask);
    assert!(line.hears_nothing_for(60 * SECOND).await, "silence is not consent");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_dropped_is_not_answered() {
    let (mut subscriber, _producer, mut line) = connected(Wishes::new("reader")).await;
    line.says(&confirmation(1, 5)).await;
    drop(next_ask(&mut subscriber).await);
    assert!(line.hears_nothing_for(60 * SECOND).await);
}

#[tokio::test(start_paused = true)]
async fn a_question_is_withdrawn_while_the_person_thinks() {
    let (mut subscriber, _producer, mut line) = connected(Wishes::new("reader")).await;
    line.says(&confirmation(1, 60)).await;
    let ask = next_ask(&mut subscriber).await;
    let thinking = tokio::spawn({
        let ask = ask.clone();
        async move { ask.closed().await }
    });
    sleep(SECOND).await;
    line.says(&notice(2, 1, "withdrawn", "withdrawn")).await;
    let why = AskState::Withdrawn(WhyWithdrawn::Said);
    assert_eq!(thinking.await.expect("thought"), why);
    assert_eq!(next_ended(&mut subscriber).await.state(), why);
    let answer = ask.accept().await;
    assert_eq!(answer, Err(SayError::CannotReply(CannotReply::Withdrawn(WhyWithdrawn::Said))));
    assert!(line.hears_nothing_for(SECOND).await);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_was_answered_elsewhere_says_so() {
    let (mut subscriber, _producer, mut line) = connected(Wishes::new("reader")).await;
    line.says(&confirmation(1, 60)).await;
    let ask = next_ask(&mut subscriber).await;
    line.says(&notice(2, 1, "reject", "reply")).await;
    assert_eq!(ask.closed().await, resolved(AskOutcome::Reject, DecidedBy::Reply));
    assert!(matches!(
        ask.accept().await,
        Err(SayError::CannotReply(CannotReply::Resolved { outcome: AskOutcome::Reject, .. }))
    ));
    assert!(line.hears_nothing_for(SECOND).await);
}

#[tokio::test(start_paused = true)]
async fn a_forged_notice_from_another_session_settles_nothing() {
    let (mut subscriber, _producer, mut line) = connected(Wishes::new("reader")).await;
    line.says(&confirmation(1, 60)).await;
    let ask = next_ask(&mut subscriber).await;
    let mut forged = notice(2, 1, "accept", "reply");
    forged["session_id"] = json!("sess_thief");
    line.says(&forged).await;
    let all = until(&mut subscriber, |news| matches!(news, News::Event(_))).await;
    assert!(all.iter().any(|it| matches!(it, News::Violation(_))), "{all:?}");
    assert_eq!(ask.state(), AskState::Open);
    ask.reject().await.expect("still open");
    assert_eq!(line.hears().await["decision"], "reject");
}

#[tokio::test(start_paused = true)]
async fn an_answer_given_while_the_line_is_broken_is_sent_when_it_is_back() {
    let (mut subscriber, mut producer, line) = connected(Wishes::new("reader")).await;
    line.says(&confirmation(1, 60)).await;
    let ask = next_ask(&mut subscriber).await;
    drop(line);
    until(&mut subscriber, |news| matches!(news, News::Reconnecting { .. })).await;
    assert_eq!(ask.state(), AskState::Unreached);
    let answering = tokio::spawn({
        let ask = ask.clone();
        async move { ask.accept().await }
    });
    sleep(Duration::from_millis(1)).await;
    let other = ask.clone();
    let second = timeout(SECOND / 10, other.reject()).await.expect("at once");
    assert_eq!(second, Err(SayError::CannotReply(CannotReply::AlreadyAnswered)));
    let (mut line, _) = producer.grant("two").await;
    let reply = line.hears().await;
    assert_eq!((&reply["reply_token"], &reply["decision"]), (&json!("rpl_n1"), &json!("accept")));
    assert_eq!(reply["subscription_id"], "sub_two");
    assert_eq!(answering.await.expect("answered"), Ok(()));
    assert!(line.hears_nothing_for(10 * SECOND).await, "once");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_waits_for_the_line_too_long_is_never_sent() {
    let (mut subscriber, mut producer, line) = connected(Wishes::new("reader")).await;
    line.says(&confirmation(1, 3)).await;
    let ask = next_ask(&mut subscriber).await;
    drop(line);
    until(&mut subscriber, |news| matches!(news, News::Reconnecting { .. })).await;
    assert_eq!(ask.accept().await, Err(SayError::CannotReply(CannotReply::Expired)));
    let (mut line, _) = producer.grant("two").await;
    assert!(line.hears_nothing_for(10 * SECOND).await);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_taken_back_before_the_line_is_back_is_never_sent() {
    let (mut subscriber, mut producer, line) = connected(Wishes::new("reader")).await;
    line.says(&confirmation(1, 60)).await;
    let ask = next_ask(&mut subscriber).await;
    drop(line);
    until(&mut subscriber, |news| matches!(news, News::Reconnecting { .. })).await;
    assert!(timeout(SECOND / 10, ask.accept()).await.is_err(), "it waits");
    let (mut line, _) = producer.grant("two").await;
    assert!(line.hears_nothing_for(10 * SECOND).await);
    ask.reject().await.expect("the person thought again");
    assert_eq!(line.hears().await["decision"], "reject");
}

#[tokio::test(start_paused = true)]
async fn after_a_cut_an_answer_that_may_not_have_arrived_says_so_and_is_not_repeated() {
    let (mut subscriber, mut producer, mut line) = connected(Wishes::new("reader")).await;
    line.says(&confirmation(1, 60)).await;
    let ask = next_ask(&mut subscriber).await;
    ask.accept().await.expect("said");
    line.hears().await;
    drop(line);
    let ended = next_ended(&mut subscriber).await;
    assert_eq!((ended.state(), ask.state()), (AskState::Unknown, AskState::Unknown));
    let (mut line, _) = producer.grant("two").await;
    // The producer asks again, so the answer was lost. It is the person's to know, not ours to repeat.
    line.says(&confirmation(1, 60)).await;
    assert!(line.hears_nothing_for(10 * SECOND).await);
    let again = ask.accept().await;
    assert_eq!(again, Err(SayError::CannotReply(CannotReply::AlreadyAnswered)));
    line.says(&notice(2, 1, "reject", "timeout")).await;
    assert_eq!(ask.settled().await, resolved(AskOutcome::Reject, DecidedBy::Timeout));
    assert!(line.hears_nothing_for(10 * SECOND).await);
}

#[tokio::test(start_paused = true)]
async fn what_was_settled_while_the_line_was_broken_is_told_when_it_is_back() {
    let (mut subscriber, mut producer, line) = connected(Wishes::new("reader")).await;
    line.says(&confirmation(1, 60)).await;
    let ask = next_ask(&mut subscriber).await;
    drop(line);
    let (line, _) = producer.grant("two").await;
    line.says(&notice(2, 1, "accept", "reply")).await;
    assert_eq!(ask.settled().await, resolved(AskOutcome::Accept, DecidedBy::Reply));
}

/// What a hub says when it refuses something, and which reply that was.
fn refusal(error: &str, reply_token: Option<&str>) -> serde_json::Value {
    let mut refusal = json!({ "type": "agentvoice:error", "error": error, "message": "No room." });
    if let Some(token) = reply_token {
        refusal["reply_token"] = token.into();
    }
    refusal
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_count_is_told_and_can_be_given_again() {
    for error in ["not_taken", "not_counted", "invalid_token"] {
        let (mut subscriber, _producer, mut line) = connected(Wishes::new("reader")).await;
        line.says(&confirmation(1, 60)).await;
        line.says(&confirmation(2, 60)).await;
        let (other, ask) = (next_ask(&mut subscriber).await, next_ask(&mut subscriber).await);
        other.accept().await.expect("said");
        ask.accept().await.expect("said");
        line.hears().await;
        line.hears().await;
        line.says(&refusal(error, Some("rpl_n2"))).await;
        let News::AnswerNotCounted { ask: told, error: code, message } =
            next(&mut subscriber).await
        else {
            panic!("{error} is told")
        };
        assert_eq!((told.reply_token(), &*code, &*message), (ask.reply_token(), error, "No room."));
        assert_eq!((ask.state(), other.state()), (AskState::Open, AskState::Answered));
        ask.reject().await.expect("said again");
        assert_eq!(line.hears().await["decision"], "reject");
        line.says(&notice(3, 2, "reject", "reply")).await;
        assert_eq!(ask.settled().await, resolved(AskOutcome::Reject, DecidedBy::Reply));
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_refusal_that_leaves_it_open_nobody_is_told_that_an_answer_counts() {
    for (refused, is_other_doubtful) in [
        (refusal("stopping", Some("rpl_n2")), false),
        (refusal("something_new", Some("rpl_n2")), false),
        (refusal("not_taken", None), true),
        (refusal("something_new", None), true),
    ] {
        let (mut subscriber, _producer, line) = connected(Wishes::new("reader")).await;
        line.says(&confirmation(1, 60)).await;
        line.says(&confirmation(2, 60)).await;
        let (other, ask) = (next_ask(&mut subscriber).await, next_ask(&mut subscriber).await);
        other.accept().await.expect("said");
        ask.accept().await.expect("said");
        line.says(&refused).await;
        until(&mut subscriber, |news| matches!(news, News::Refused { .. })).await;
        assert_eq!(ask.state(), AskState::Unknown, "{refused}");
        let expected = if is_other_doubtful { AskState::Unknown } else { AskState::Answered };
        assert_eq!(other.state(), expected, "{refused}");
        let again = Err(SayError::CannotReply(CannotReply::AlreadyAnswered));
        assert_eq!(ask.accept().await, again, "it may count");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_refuses_an_instruction_puts_no_answer_in_doubt() {
    let (mut subscriber, _producer, mut line) = connected(Wishes::new("reader")).await;
    line.says(&confirmation(1, 60)).await;
    let ask = next_ask(&mut subscriber).await;
    ask.accept().await.expect("said");
    line.hears().await;
    line.says(&refusal("not_accepted", None)).await;
    assert!(matches!(next(&mut subscriber).await, News::Refused { .. }));
    assert_eq!(ask.state(), AskState::Answered);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_the_producer_does_not_take_is_not_called_sent() {
    let (mut subscriber, _producer, mut line) = connected(Wishes::new("reader")).await;
    line.says(&confirmation(1, 60)).await;
    let ask = next_ask(&mut subscriber).await;
    ask.accept().await.expect("said");
    line.hears().await;
    let error = json!({ "type": "agentvoice:error", "error": "invalid_token", "message": "No." });
    line.says(&error).await;
    assert_eq!(next_ended(&mut subscriber).await.state(), AskState::Unknown);
    assert!(
        matches!(next(&mut subscriber).await, News::Refused { error, .. } if error == "invalid_token")
    );
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_goes_leaves_no_question_open() {
    let (mut subscriber, _producer, mut line) = connected(Wishes::new("reader")).await;
    line.says(&confirmation(1, 60)).await;
    line.says(&confirmation(2, 60)).await;
    let (answered, open) = (next_ask(&mut subscriber).await, next_ask(&mut subscriber).await);
    answered.accept().await.expect("said");
    line.hears().await;
    drop(subscriber);
    assert_eq!(open.closed().await, AskState::Withdrawn(WhyWithdrawn::SubscriptionEnded));
    assert_eq!(answered.settled().await, AskState::Unknown);
    assert_eq!(open.accept().await, Err(SayError::Ended));
    let said = line.hears_the_end().await;
    assert!(said.iter().all(|it| it["type"] == "subscription.close"), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn a_clarification_takes_the_answers_that_it_offers() {
    let (mut subscriber, _producer, mut line) = connected(Wishes::new("reader")).await;
    let fields = json!({
        "question": "Which day?", "reply_token": "rpl_n1", "timeout_seconds": 60,
        "urgency": "critical", "summary_normal": "Which day?",
        "accepted_response_kinds": ["multiple_choice"],
        "choices": [{ "value": "mon", "label": "Monday" }, { "value": "tue", "label": "Tuesday" }],
    });
    line.says(&event(1, "awaiting.clarification", &fields)).await;
    let ask = next_ask(&mut subscriber).await;
    assert!(ask.answer(Response::Text("sun".to_owned())).await.is_err());
    assert!(ask.accept().await.is_err(), "yes is no answer to which day");
    ask.answer(Response::Text("tue".to_owned())).await.expect("said");
    assert_eq!(line.hears().await["response"], "tue");
}

#[tokio::test(start_paused = true)]
async fn people_get_more_time_where_the_producer_grants_it() {
    let (mut subscriber, _producer, mut line) = connected(Wishes::new("reader")).await;
    line.says(&confirmation(1, 10)).await;
    let ask = next_ask(&mut subscriber).await;
    ask.presented().await.expect("said");
    assert_eq!(line.hears().await["type"], "agentvoice:ask.presented");
    ask.extend(30).await.expect("said");
    let wish = line.hears().await;
    assert_eq!((&wish["type"], &wish["by_seconds"]), (&json!("agentvoice:ask.extend"), &json!(30)));
    ask.pause().await.expect("said");
    assert_eq!(line.hears().await["type"], "agentvoice:ask.pause");
    ask.resume().await.expect("said");
    assert_eq!(line.hears().await["type"], "agentvoice:ask.resume");
    let deadline =
        json!({ "reply_token": "rpl_n1", "at": "2026-05-24T14:22:51.342Z", "paused": true });
    let mut told = notice(2, 1, "accept", "reply");
    told["extensions"] = json!({ "agentvoice": { "deadline": deadline } });
    told["from_state"] = json!("awaiting_input");
    told["to_state"] = json!("awaiting_input");
    line.says(&told).await;
    until(&mut subscriber, |news| matches!(news, News::AskTimeChanged(_))).await;
    assert!(ask.is_paused() && ask.remaining() > 30 * SECOND, "{:?}", ask.remaining());
    assert_eq!(ask.state(), AskState::Open);
}

#[tokio::test(start_paused = true)]
async fn a_token_for_two_questions_can_answer_neither() {
    let (mut subscriber, _producer, mut line) = connected(Wishes::new("reader")).await;
    line.says(&confirmation(1, 60)).await;
    let ask = next_ask(&mut subscriber).await;
    let mut other = confirmation(2, 60);
    other["reply_token"] = json!("rpl_n1");
    line.says(&other).await;
    assert_eq!(ask.closed().await, AskState::Withdrawn(WhyWithdrawn::TokenReused));
    assert!(ask.accept().await.is_err());
    line.says(&progress(3)).await;
    assert!(line.hears_nothing_for(SECOND).await);
}
