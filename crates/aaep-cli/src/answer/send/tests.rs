//! Tests of answers: what the person is told about them.

use aaep_subscriber::{Dial, DialFailure, Dialled, WhereFrom, connect_with};
use aaep_transport::link::{Bearer, link};
use serde_json::{Value, json};

use super::*;

/// A hub in memory, which has one link.
struct OneLink(Option<aaep_transport::link::Link>);

impl Dial for OneLink {
    async fn dial(&mut self, _from: WhereFrom) -> Result<Dialled, DialFailure> {
        let link = self.0.take();
        link.map(|link| Dialled { link, is_resumed: false })
            .ok_or(DialFailure { why: "Nobody is there.".to_owned(), is_final: true })
    }
}

async fn hears(hub: &mut Bearer) -> Value {
    serde_json::from_str(&hub.outgoing().await.expect("a message")).expect("JSON")
}

/// The result of a yes that the hub takes, and then says this about.
async fn result_of_yes(hub_says: Value) -> AnswerResult {
    let (link, mut hub) = link();
    let granting = async {
        let request = hears(&mut hub).await;
        let accepted = json!({
            "type": "subscription.accepted", "subscription_id": "sub_1",
            "aaep_version": "1.0.0", "producer": { "agent_id": "weaver" },
            "honored_capabilities": request["capabilities"],
        });
        hub.incoming(accepted.to_string()).await;
        let asked = json!({
            "@context": ["https://aaep-protocol.org/context/v1", aaep::extension::CONTEXT],
            "type": "aaep:agent.awaiting.confirmation", "event_id": "evt_1", "session_id": "sess_1",
            "timestamp": "2026-05-24T14:22:11.342Z", "producer": { "agent_id": "weaver" },
            "urgency": "critical", "action": "Delete it.", "consequence": "It is gone.",
            "reply_token": "rpl_1",
            "timeout_seconds": 60, "default_decision": "reject", "summary_normal": "Delete it?",
        });
        hub.incoming(asked.to_string()).await;
    };
    let wishes = Wishes::new("answer");
    let (connected, ()) = tokio::join!(connect_with(OneLink(Some(link)), wishes), granting);
    let mut subscriber = connected.expect("a subscription");
    let ask = loop {
        let news = timeout(ASK_PATIENCE, subscriber.next()).await.expect("a question in time");
        if let Some(News::Ask(ask)) = news {
            break ask;
        }
    };
    let saying = async {
        assert_eq!(hears(&mut hub).await["decision"], "accept");
        hub.incoming(hub_says.to_string()).await;
    };
    let (result, ()) =
        tokio::join!(reply(2, &mut subscriber, &ask, &AnswerMeaning::Accept), saying);
    result
}

fn refusal(error: &str, reply_token: Option<&str>) -> Value {
    json!({
        "type": "agentvoice:error", "error": error, "message": "The disk is full.",
        "reply_token": reply_token,
    })
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_count_is_told_as_such() {
    for error in ["not_taken", "not_counted", "invalid_token"] {
        let told = "Your answer does not count. The disk is full. To hear whether question 2 still waits: aaep attention";
        let result = result_of_yes(refusal(error, Some("rpl_1"))).await;
        assert_eq!(result, AnswerResult::NotDone(told.to_owned()), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_refusal_that_leaves_it_open_the_person_is_told_how_to_find_out() {
    for refused in [refusal("stopping", Some("rpl_1")), refusal("not_taken", None)] {
        let result = result_of_yes(refused.clone()).await;
        assert_eq!(result, AnswerResult::Unknown(answers::NOT_KNOWN.to_owned()), "{refused}");
    }
    assert!(answers::NOT_KNOWN.contains("aaep attention"));
}

#[test]
fn only_what_the_person_said_and_the_producer_took_is_told_as_theirs() {
    let own = |meaning: &AnswerMeaning, outcome: AskOutcome| {
        resolved(meaning, &outcome, &DecidedBy::Reply, false)
    };
    assert_eq!(
        own(&AnswerMeaning::Accept, AskOutcome::Accept),
        AnswerResult::Settled("You allowed it.".into())
    );
    assert_eq!(
        own(&AnswerMeaning::Reject, AskOutcome::Reject),
        AnswerResult::Settled("You refused it.".into())
    );
    let blue = AnswerMeaning::Respond(Response::Text("blue\u{1b}".to_owned()));
    let AnswerResult::Settled(said) = own(&blue, AskOutcome::Answered) else {
        panic!("it is theirs")
    };
    assert!(said.starts_with("You answered: blue") && !said.contains('\u{1b}'), "{said}");
    for (meaning, outcome, decided_by, is_refused) in [
        (&AnswerMeaning::Accept, AskOutcome::Reject, DecidedBy::Reply, false),
        (&AnswerMeaning::Reject, AskOutcome::Accept, DecidedBy::Reply, false),
        (&AnswerMeaning::Accept, AskOutcome::Accept, DecidedBy::Reply, true),
        (&AnswerMeaning::Accept, AskOutcome::Accept, DecidedBy::Timeout, false),
        (&AnswerMeaning::Reject, AskOutcome::Reject, DecidedBy::NoListener, false),
        (&AnswerMeaning::Accept, AskOutcome::Withdrawn, DecidedBy::Withdrawn, false),
        (&blue, AskOutcome::Answered, DecidedBy::Reply, true),
        (&blue, AskOutcome::Unanswered, DecidedBy::Timeout, false),
    ] {
        let came = resolved(meaning, &outcome, &decided_by, is_refused);
        assert!(matches!(came, AnswerResult::Over(_)), "{meaning:?} {outcome}: {came:?}");
    }
}

#[test]
fn an_answer_from_elsewhere_is_said_as_such() {
    let said = |outcome, decided_by| answers::ended_without_it(&outcome, &decided_by);
    assert_eq!(said(AskOutcome::Reject, DecidedBy::Reply), "It was refused before.");
    assert_eq!(
        said(AskOutcome::Reject, DecidedBy::Timeout),
        "It was refused, because the time to answer was over."
    );
    assert_eq!(said(AskOutcome::Withdrawn, DecidedBy::Withdrawn), "The agent no longer asks this.");
}
