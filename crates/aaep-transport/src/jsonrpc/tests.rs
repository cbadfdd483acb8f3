//! Tests both ends of JSON-RPC with each other, and with faulty peers.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::link::LinkEnd;

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn said(wish: SubscriberLine) -> Value {
    match wish {
        SubscriberLine::Say(line) => value(&line),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_conversation_as_the_specification_shows_it() {
    let (mut producer, mut subscriber) = (ProducerEnd::new(), SubscriberEnd::new());
    let request = json!({ "type": "subscription.request", "aaep_version": "1.0.0" }).to_string();
    let line = subscriber.say(&request);
    assert_eq!(
        value(&line),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "aaep.subscribe", "params": value(&request) })
    );
    assert_eq!(producer.hear(&line), SubscriberLine::Subscription(request));
    let accepted = json!({ "type": "subscription.accepted", "subscription_id": "sub_1" });
    let (line, _) = producer.say(&accepted.to_string());
    assert_eq!(value(&line), json!({ "jsonrpc": "2.0", "id": 1, "result": accepted }));
    assert_eq!(subscriber.hear(&line), ProducerLine::Message(accepted.to_string()));
    let event = json!({ "type": "aaep:agent.session.started", "event_id": "evt_1" });
    let (line, _) = producer.say(&event.to_string());
    assert_eq!(value(&line), json!({ "jsonrpc": "2.0", "method": "aaep.event", "params": event }));
    assert_eq!(subscriber.hear(&line), ProducerLine::Message(event.to_string()));
    let reply = json!({ "type": "confirmation.reply", "decision": "accept" }).to_string();
    let line = subscriber.say(&reply);
    assert_eq!(value(&line)["method"], "aaep.reply");
    assert_eq!(value(&line).get("id"), None, "a reply is a notification");
    assert_eq!(producer.hear(&line), SubscriberLine::Tell { id: None, message: reply });
    let close = json!({ "type": "subscription.close", "subscription_id": "sub_1" }).to_string();
    let line = subscriber.say(&close);
    assert_eq!(value(&line)["method"], "aaep.close");
    assert_eq!(producer.hear(&line), SubscriberLine::Subscription(close.clone()));
    assert_eq!(subscriber.hear(&producer.say(&close).0), ProducerLine::Message(close));
}

#[test]
fn every_message_of_a_subscriber_has_a_method_that_the_producer_takes() {
    for (kind, method, is_request) in [
        ("clarification.reply", REPLY, false),
        ("agentvoice:ask.extend", REPLY, false),
        ("agentvoice:ask.presented", REPLY, false),
        ("agentvoice:agent.prompt", SEND, true),
        ("agentvoice:session.cancel", SEND, true),
    ] {
        let (mut producer, mut subscriber) = (ProducerEnd::new(), SubscriberEnd::new());
        let message = json!({ "type": kind }).to_string();
        let line = subscriber.say(&message);
        assert_eq!(
            (value(&line)["method"].as_str(), value(&line).get("id").is_some()),
            (Some(method), is_request)
        );
        let SubscriberLine::Tell { id, message: told } = producer.hear(&line) else {
            panic!("{kind}")
        };
        assert_eq!((told, id.is_some()), (message, is_request));
    }
}

#[test]
fn ids_are_kept_as_they_are() {
    for id in ["1", "-7", "1.0", "12345678901234567890123", "\"a\\u0041\"", "null"] {
        let mut producer = ProducerEnd::new();
        let ping = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"aaep.ping\"}}");
        let expected = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}");
        assert_eq!(producer.hear(&ping), SubscriberLine::Say(expected.clone()));
        assert_eq!(SubscriberEnd::new().hear(&ping), ProducerLine::Say(expected));
    }
    for id in ["true", "[1]", "{}", &format!("\"{}\"", "x".repeat(MAX_ID_BYTES))] {
        let ping = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"aaep.ping\"}}");
        let answer = said(ProducerEnd::new().hear(&ping));
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&Value::Null, &json!(INVALID_REQUEST))
        );
    }
}

#[test]
fn what_is_wrong_gets_the_code_that_json_rpc_has_for_it() {
    let subscribe = |rest: &str| {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"aaep.subscribe\"{rest}}}")
    };
    for (line, id, code) in [
        ("no json".to_owned(), json!(null), PARSE_ERROR),
        ("{\"jsonrpc\":".to_owned(), json!(null), PARSE_ERROR),
        ("\u{1b}[2J".to_owned(), json!(null), PARSE_ERROR),
        (
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"aaep.ping\"}]".to_owned(),
            json!(null),
            INVALID_REQUEST,
        ),
        ("{\"id\":1,\"method\":\"aaep.ping\"}".to_owned(), json!(1), INVALID_REQUEST),
        (
            "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"aaep.ping\"}".to_owned(),
            json!(1),
            INVALID_REQUEST,
        ),
        ("{\"jsonrpc\":\"2.0\",\"id\":1}".to_owned(), json!(1), INVALID_REQUEST),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"aaep.ping\"}".to_owned(),
            json!(null),
            INVALID_REQUEST,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"aaep.fly\"}".to_owned(),
            json!(1),
            METHOD_NOT_FOUND,
        ),
        (subscribe(""), json!(3), INVALID_PARAMS),
        (subscribe(",\"params\":[\"subscription.request\"]"), json!(3), INVALID_PARAMS),
        (subscribe(",\"params\":{\"type\":\"confirmation.reply\"}"), json!(3), INVALID_PARAMS),
    ] {
        let answer = said(ProducerEnd::new().hear(&line));
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{line}");
        assert!(!answer.to_string().contains('\u{1b}'), "{answer}");
    }
}

#[test]
fn a_wrong_notification_is_complained_about_without_an_id() {
    let line = "{\"jsonrpc\":\"2.0\",\"method\":\"aaep.\\u001b[2J\"}";
    let answer = said(ProducerEnd::new().hear(line));
    assert_eq!((answer.get("id"), &answer["method"]), (None, &json!(ERROR)));
    assert_eq!(answer["params"]["type"], "agentvoice:error");
    assert!(!answer["params"]["message"].as_str().expect("words").contains('\u{1b}'), "{answer}");
    let line = "{\"jsonrpc\":\"2.0\",\"method\":\"aaep.subscribe\",\"params\":{\"type\":\"subscription.request\"}}";
    assert_eq!(said(ProducerEnd::new().hear(line))["method"], ERROR, "its answer would be lost");
}

#[test]
fn a_refused_reply_is_told_whether_or_not_it_had_an_id() {
    let (producer, mut subscriber) = (ProducerEnd::new(), SubscriberEnd::new());
    let refused =
        json!({ "type": "agentvoice:error", "error": "invalid_token", "message": "Too late." });
    let line = producer.answer(None, &refused.to_string()).expect("a complaint");
    assert_eq!(subscriber.hear(&line), ProducerLine::Message(refused.to_string()));
    let line = producer.answer(Some(&RpcId::number(4)), &refused.to_string()).expect("an answer");
    let error = &value(&line)["error"];
    assert_eq!(
        (&error["code"], &error["message"], &error["data"]),
        (&json!(REFUSED), &json!("Too late."), &refused)
    );
    assert_eq!(producer.answer(None, "{}"), None, "a reply that counts needs no words");
    assert_eq!(
        value(&producer.answer(Some(&RpcId::number(4)), "{}").expect("one"))["result"],
        json!({})
    );
}

#[test]
fn answers_to_subscriptions_go_to_their_requests_in_order() {
    let mut producer = ProducerEnd::new();
    for id in ["\"first\"", "2"] {
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"aaep.subscribe\",\"params\":{{\"type\":\"subscription.request\"}}}}"
        );
        assert!(matches!(producer.hear(&line), SubscriberLine::Subscription(_)));
    }
    let event = json!({ "type": "aaep:agent.state.changed" }).to_string();
    assert_eq!(value(&producer.say(&event).0)["method"], "aaep.event", "an event is no answer");
    let error =
        json!({ "type": "agentvoice:error", "error": "not_valid", "message": "No." }).to_string();
    let first = value(&producer.say(&error).0);
    assert_eq!((&first["id"], &first["error"]["code"]), (&json!("first"), &json!(REFUSED)));
    let closed = json!({ "type": crate::wire::CLOSED, "code": 1001, "reason": "Bye." }).to_string();
    let (end, is_last) = producer.say(&closed);
    assert!(is_last);
    assert_eq!(
        SubscriberEnd::new().hear(&end),
        ProducerLine::End(LinkEnd::Closed { code: Some(1001), reason: "Bye.".to_owned() })
    );
    let left = producer.gone();
    assert_eq!(left.len(), 1);
    assert_eq!(
        (&value(&left[0])["id"], &value(&left[0])["error"]["code"]),
        (&json!(2), &json!(INTERNAL_ERROR))
    );
    assert!(producer.gone().is_empty());
    let cut = producer.cut();
    assert_eq!(cut.len(), 1);
    let end = SubscriberEnd::new().hear(&cut[0]);
    assert!(matches!(end, ProducerLine::End(LinkEnd::Closed { code: Some(1006), .. })), "{end:?}");
}

#[test]
fn a_close_is_answered_by_the_end_and_a_wrong_one_by_what_is_wrong() {
    let close = |id: &str| {
        format!(
            "{{\"jsonrpc\":\"2.0\",{id}\"method\":\"aaep.close\",\"params\":{{\"type\":\"subscription.close\"}}}}"
        )
    };
    let error =
        json!({ "type": "agentvoice:error", "error": "no_such_subscription", "message": "No." })
            .to_string();
    let mut producer = ProducerEnd::new();
    assert!(matches!(producer.hear(&close("")), SubscriberLine::Subscription(_)));
    let renegotiate = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"aaep.renegotiate\",\"params\":{\"type\":\"subscription.renegotiate\"}}";
    assert!(matches!(producer.hear(renegotiate), SubscriberLine::Subscription(_)));
    assert_eq!(value(&producer.say(&error).0)["method"], ERROR, "the close had no id");
    let accepted = json!({ "type": "subscription.accepted" }).to_string();
    assert_eq!(value(&producer.say(&accepted).0)["id"], 7, "each has its own answer");
    assert!(matches!(producer.hear(&close("\"id\":8,")), SubscriberLine::Subscription(_)));
    assert_eq!(
        producer.gone().iter().map(|line| value(line)).collect::<Vec<_>>(),
        [json!({ "jsonrpc": "2.0", "id": 8, "result": {} })]
    );
    assert_eq!(
        value(&producer.unread(crate::framed::FrameViolation::TooBig))["error"]["code"],
        INVALID_REQUEST
    );
}

#[test]
fn requests_that_wait_are_bounded() {
    let mut producer = ProducerEnd::new();
    let line = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"aaep.subscribe\",\"params\":{\"type\":\"subscription.request\"}}";
    for _ in 0..MAX_WAITING_REQUESTS {
        assert!(matches!(producer.hear(line), SubscriberLine::Subscription(_)));
    }
    assert_eq!(said(producer.hear(line))["error"]["code"], INTERNAL_ERROR);
    let mut subscriber = SubscriberEnd::new();
    for _ in 0..=MAX_WAITING_REQUESTS {
        subscriber.say("{\"type\":\"agentvoice:agent.prompt\"}");
    }
    assert!(
        matches!(
            subscriber.hear("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"),
            ProducerLine::Wrong(_)
        ),
        "forgotten"
    );
    assert_eq!(
        subscriber.hear("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}"),
        ProducerLine::Nothing
    );
}

#[test]
fn a_foreign_producer_may_refuse_by_error_and_end_in_its_own_words() {
    let accepted = || {
        let mut subscriber = SubscriberEnd::new();
        subscriber.say("{\"type\":\"subscription.request\"}");
        subscriber
    };
    let line =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-1,\"message\":\"Not \\u001b[2Jyou.\"}}";
    let ProducerLine::End(end) = accepted().hear(line) else { panic!("an end") };
    assert!(matches!(end, LinkEnd::Refused { .. }));
    assert!(end.to_string().contains("you.") && !end.to_string().contains('\u{1b}'), "{end}");
    let rejected = "{\"type\":\"subscription.rejected\",\"reason_code\":\"rate_limit\"}";
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{{\"code\":-1,\"message\":\"\",\"data\":{rejected}}}}}"
    );
    assert_eq!(accepted().hear(&line), ProducerLine::Message(rejected.to_owned()));
    let mut subscriber = accepted();
    subscriber.say("{\"type\":\"subscription.renegotiate\"}");
    let line = "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32601,\"message\":\"What?\"}}";
    let ProducerLine::Message(complaint) = subscriber.hear(line) else { panic!("a complaint") };
    assert_eq!(
        (&value(&complaint)["type"], &value(&complaint)["message"]),
        (&json!("agentvoice:error"), &json!("What?"))
    );
    assert!(matches!(subscriber.hear(line), ProducerLine::Wrong(_)), "an answer counts once");
    let line = "{\"jsonrpc\":\"2.0\",\"method\":\"aaep.close\",\"params\":{\"reason\":\"Done.\"}}";
    assert_eq!(
        subscriber.hear(line),
        ProducerLine::End(LinkEnd::Closed { code: None, reason: "Done.".to_owned() })
    );
}

#[test]
fn a_producer_that_prints_to_the_wrong_place_is_borne_with_for_a_while() {
    let mut subscriber = SubscriberEnd::new();
    let unknown = "{\"jsonrpc\":\"2.0\",\"method\":\"vendor.progress\",\"params\":{}}";
    let asked = "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"vendor.ask\"}";
    for _ in 0..1000 {
        assert_eq!(subscriber.hear(unknown), ProducerLine::Nothing);
        let ProducerLine::Say(line) = subscriber.hear(asked) else { panic!("an answer") };
        assert_eq!(value(&line)["error"]["code"], METHOD_NOT_FOUND);
    }
    let mut borne = 0;
    let end = loop {
        match subscriber.hear("Loading model...") {
            ProducerLine::Wrong(_) => borne += 1,
            other => break other,
        }
        assert!(borne < 1000, "it is bounded");
    };
    assert!(
        borne > 10 && matches!(end, ProducerLine::End(LinkEnd::Violation(_))),
        "{borne} {end:?}"
    );
}

proptest! {
    #[test]
    fn whatever_comes_both_ends_live_and_say_only_json_rpc(
        lines in prop::collection::vec(any_line(), 0..20),
    ) {
        let (mut producer, mut subscriber) = (ProducerEnd::new(), SubscriberEnd::new());
        subscriber.say("{\"type\":\"subscription.request\"}");
        for line in &lines {
            if let SubscriberLine::Say(answer) = producer.hear(line) {
                prop_assert!(RpcLine::read(&answer).is_ok(), "{}", answer);
            }
            if let ProducerLine::Say(answer) = subscriber.hear(line) {
                prop_assert!(RpcLine::read(&answer).is_ok(), "{}", answer);
            }
        }
    }
}

/// Arbitrary lines, and lines that are almost right.
fn any_line() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "\"jsonrpc\":\"2.0\"",
        "\"id\":1",
        "\"id\":null",
        "\"id\":\"x\"",
        "\"method\":\"aaep.ping\"",
        "\"method\":\"aaep.event\"",
        "\"method\":\"aaep.subscribe\"",
        "\"method\":\"x\"",
        "\"result\":null",
        "\"params\":{\"type\":\"subscription.request\"}",
        "\"error\":{\"code\":1,\"message\":\"m\"}",
        "\"params\":[]",
    ]);
    let near =
        prop::collection::vec(part, 0..5).prop_map(|parts| format!("{{{}}}", parts.join(",")));
    prop_oneof![near, ".*"]
}
