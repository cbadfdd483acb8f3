//! Questions of the server to the person, in both kinds of revisions.

use aaep_bridge::{AskAnswer, AskPolicy};
use serde_json::{Value, json};

use crate::stream_check::assert_sound;
use crate::wire::{Wire, call, result, stateless_call};

fn elicit(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": form() })
}

fn form() -> Value {
    json!({ "mode": "form", "message": "How should it be sent?", "requestedSchema": {
        "type": "object", "properties": { "way": { "type": "string", "enum": ["post", "van"] } },
        "required": ["way"] } })
}

#[test]
fn if_the_listener_answers_first_the_client_is_told_to_close_its_question() {
    let mut wire = Wire::new(AskPolicy::AskWhenRisky);
    let request = elicit(&json!(5));
    wire.server(request.clone());
    let question = wire.told.last().expect("a question");
    assert_eq!(question["question"], "shop asks you: How should it be sent? way.");
    assert_eq!(question["choices"][1], json!({ "value": "choice-2", "label": "van" }));
    wire.says(":choice-2");
    assert_eq!(
        wire.to_server(),
        [json!({ "jsonrpc": "2.0", "id": 5,
            "result": { "action": "accept", "content": { "way": "van" } } })]
    );
    let seen = wire.to_client();
    assert_eq!(seen[0], request);
    assert_eq!(seen[1]["method"], "notifications/cancelled");
    assert_eq!(seen[1]["params"]["requestId"], 5);
    // The same number again is not asked, because the late answer could be taken for one to it.
    wire.server(request.clone());
    assert_eq!((wire.asked.len(), wire.client.len()), (1, 2));
    assert_eq!(wire.to_server()[1]["result"]["action"], "cancel");
    // What the client answers late does not reach the server.
    wire.client(json!({ "jsonrpc": "2.0", "id": 5, "result": { "action": "decline" } }));
    assert_eq!(wire.server.len(), 2);
    assert_sound(&wire.told);
}

#[test]
fn if_the_client_answers_first_the_question_here_is_withdrawn() {
    let mut wire = Wire::new(AskPolicy::AskWhenRisky);
    wire.server(elicit(&json!("e")));
    let answer = json!({ "jsonrpc": "2.0", "id": "e", "result": { "action": "cancel" } });
    wire.client(answer.clone());
    assert_eq!(wire.withdrawn, wire.asked);
    wire.says(":choice-1");
    assert_eq!(wire.to_server(), [answer]);
    assert_eq!(wire.last_words(), "state.changed: It was answered in the program.");
}

#[test]
fn if_nobody_answers_here_the_client_still_can() {
    for answer in [AskAnswer::Nothing, AskAnswer::NobodyThere, AskAnswer::Words("leave".to_owned())]
    {
        let mut wire = Wire::new(AskPolicy::AskWhenRisky);
        wire.server(elicit(&json!(5)));
        wire.person(wire.asked[0], &answer);
        assert_eq!((wire.server.len(), wire.client.len()), (0, 1));
        assert_eq!(
            wire.last_words(),
            "state.changed: shop was not answered here. Answer in the program."
        );
        wire.client(json!({ "jsonrpc": "2.0", "id": 5, "result": { "action": "decline" } }));
        assert_eq!(wire.server.len(), 1);
        assert_sound(&wire.told);
    }
}

#[test]
fn a_page_to_open_is_told_with_its_host_and_only_the_client_answers() {
    let mut wire = Wire::new(AskPolicy::AskWhenRisky);
    wire.server(json!({ "jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {
        "mode": "url", "message": "Sign in.", "elicitationId": "x",
        "url": "https://bank.example@evil.example/sign-in?q=1" } }));
    let words = wire.last_words();
    assert!(words.contains("a page of evil.example in your browser"), "{words}");
    assert_eq!((wire.asked.len(), wire.client.len()), (0, 1));
}

#[test]
fn a_server_that_takes_its_question_back_closes_it_here() {
    let mut wire = Wire::new(AskPolicy::AskWhenRisky);
    wire.server(elicit(&json!(5)));
    wire.server(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": 5 } }));
    assert_eq!(wire.withdrawn, wire.asked);
    // The same id can be used again, and the new question is another one.
    wire.server(elicit(&json!(5)));
    wire.server(elicit(&json!(5)));
    assert_eq!((wire.asked.len(), wire.withdrawn.len()), (3, 2));
    let mut told = Wire::new(AskPolicy::Tell);
    told.server(elicit(&json!(5)));
    assert_eq!(told.asked.len(), 0);
    assert!(told.last_words().contains("asks you in the program. Answer there."));
}

fn wants(id: &Value, requests: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": { "resultType": "input_required",
        "inputRequests": requests, "requestState": "opaque" } })
}

fn one_form() -> Value {
    json!({ "way": { "method": "elicitation/create", "params": form() } })
}

/// A call that was allowed, and whose server wants to know something first.
fn wanting(requests: &Value) -> Wire {
    let mut wire = Wire::new(AskPolicy::AskWhenRisky);
    wire.client(stateless_call(&json!(1), "send", &json!({ "item": "lamp" })));
    wire.says("yes");
    wire.server(wants(&json!(1), requests));
    wire
}

#[test]
fn without_a_handshake_the_call_is_made_again_with_the_answer() {
    let mut wire = wanting(&one_form());
    // The client does not know yet that something is wanted.
    assert_eq!((wire.client.len(), wire.asked.len()), (0, 2));
    wire.says(":choice-1");
    let again = wire.to_server()[1].clone();
    let first = wire.to_server()[0].clone();
    assert_ne!(again["id"], first["id"]);
    assert_eq!(
        again["params"]["inputResponses"]["way"],
        json!({ "action": "accept", "content": { "way": "post" } })
    );
    assert_eq!(again["params"]["requestState"], "opaque");
    for field in ["name", "arguments", "_meta"] {
        assert_eq!(again["params"][field], first["params"][field], "{field}");
    }
    wire.server(result(&again["id"], "Sent."));
    assert_eq!(wire.to_client(), [result(&json!(1), "Sent.")]);
    assert_eq!(wire.last_words(), "tool.completed: Done: Sent.");
    assert_sound(&wire.told);
}

#[test]
fn without_an_answer_here_the_client_gets_what_the_server_wrote() {
    type Answer = fn(&mut Wire);
    let line = wants(&json!(1), &one_form());
    let answers: [Answer; 4] = [
        |wire| drop(wire.person(wire.asked[1], &AskAnswer::NobodyThere)),
        |wire| drop(wire.hub_is_away(wire.asked[1])),
        |wire| drop(wire.says(":leave")),
        Wire::client_leaves,
    ];
    for answer in answers {
        let mut wire = wanting(&one_form());
        answer(&mut wire);
        assert_eq!(wire.client, [format!("{line}\n").into_bytes()]);
        assert_eq!(wire.server.len(), 1);
    }
    // A client that gave up gets nothing.
    let mut wire = wanting(&one_form());
    wire.client(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": 1 } }));
    wire.says(":choice-1");
    assert_eq!((wire.client.len(), wire.server.len(), wire.withdrawn.len()), (0, 1, 1));
}

#[test]
fn what_only_the_client_can_give_goes_to_the_client() {
    let mut requests = one_form();
    requests["roots"] = json!({ "method": "roots/list" });
    let wire = wanting(&requests);
    assert_eq!((wire.client.len(), wire.asked.len()), (1, 1));
    assert!(wire.last_words().contains("needs something first. Answer in the program."));
}

#[test]
fn the_clients_own_retry_of_an_allowed_call_is_the_same_call_exactly_once() {
    let mut wire = wanting(&json!({ "roots": { "method": "roots/list" } }));
    let mut retry = stateless_call(&json!(2), "send", &json!({ "item": "lamp" }));
    retry["params"]["inputResponses"] = json!({ "roots": { "roots": [] } });
    retry["params"]["requestState"] = "opaque".into();
    // Another state, or other arguments, are another call.
    let mut other = retry.clone();
    other["params"]["requestState"] = "else".into();
    wire.client(other);
    let mut other = retry.clone();
    other["params"]["arguments"]["item"] = "house".into();
    wire.client(other);
    assert_eq!((wire.asked.len(), wire.server.len()), (3, 1));
    wire.client(retry.clone());
    assert_eq!((wire.asked.len(), wire.server.len()), (3, 2));
    wire.client(retry);
    assert_eq!((wire.asked.len(), wire.server.len()), (4, 2));
}

#[test]
fn a_call_that_was_made_again_can_be_cancelled_and_want_more() {
    let mut wire = wanting(&one_form());
    wire.says(":choice-1");
    let again = wire.to_server()[1]["id"].clone();
    wire.server(wants(&again, &one_form()));
    wire.says(":leave");
    // The client knows the call under its own id.
    assert_eq!(wire.to_client()[0]["id"], 1);

    let mut wire = wanting(&one_form());
    wire.says(":choice-1");
    let again = wire.to_server()[1]["id"].clone();
    wire.server(wants(&again, &json!({ "roots": { "method": "roots/list" } })));
    assert_eq!(wire.to_client()[0]["id"], 1);

    let mut wire = wanting(&one_form());
    wire.says(":choice-1");
    let again = wire.to_server()[1]["id"].clone();
    wire.client(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": 1 } }));
    assert_eq!(wire.to_server()[2]["params"]["requestId"], again);
    wire.server(result(&again, "Sent."));
    assert_eq!(wire.client.len(), 0);
}

#[test]
fn a_form_is_not_consent_to_a_call() {
    let mut wire = Wire::new(AskPolicy::AskWhenRisky);
    wire.server(elicit(&json!(5)));
    wire.client(call(&json!(1), "send", &json!({})));
    wire.person(wire.asked[0], &AskAnswer::Words("choice-1".to_owned()));
    assert_eq!(wire.to_server().len(), 1);
    assert_eq!(wire.to_server()[0]["id"], 5);
}
