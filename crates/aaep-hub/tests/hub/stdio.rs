//! A parent process that listens over JSON-RPC on standard input and output.

use std::time::Duration;

use aaep_hub::hub::Hub;
use aaep_hub::stdio::{self, StdioEnd};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::support::{confirmation, hub, me, publish, started, token};

/// Longer than anything takes here.
const PATIENCE: Duration = Duration::from_secs(20);

struct Parent {
    input: DuplexStream,
    lines: Lines<BufReader<DuplexStream>>,
    served: JoinHandle<StdioEnd>,
}

impl Parent {
    fn new(hub: &Hub) -> Self {
        let (input, theirs) = tokio::io::duplex(4096);
        let (output, ours) = tokio::io::duplex(4096);
        let served = tokio::spawn(stdio::serve(hub.clone(), theirs, output));
        Parent { input, lines: BufReader::new(ours).lines(), served }
    }

    async fn say(&mut self, line: &Value) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.expect("it reads");
    }

    async fn call(&mut self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        let id = id.into();
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.say(&call).await;
        loop {
            let line = self.next().await;
            if line.get("id") == Some(&id) {
                return line;
            }
        }
    }

    async fn next(&mut self) -> Value {
        let line = timeout(PATIENCE, self.lines.next_line()).await.expect("a line comes");
        let line: Value =
            serde_json::from_str(&line.expect("readable").expect("a line")).expect("JSON");
        assert_eq!(line["jsonrpc"], "2.0", "{line}");
        line
    }

    async fn next_of(&mut self, method: &str) -> Value {
        loop {
            let line = self.next().await;
            if line["method"] == method {
                return line["params"].clone();
            }
        }
    }

    async fn event_of(&mut self, kind: &str) -> Value {
        loop {
            let event = self.next_of("aaep.event").await;
            if event["type"] == format!("aaep:agent.{kind}").as_str() {
                return event;
            }
        }
    }

    async fn subscribe(&mut self) -> String {
        let answer = self.call("subscribe", "aaep.subscribe", request()).await;
        assert_eq!(answer["result"]["type"], "subscription.accepted", "{answer}");
        answer["result"]["subscription_id"].as_str().expect("an id").to_owned()
    }

    /// Closes the standard input of the hub, and waits for the end.
    async fn end(self) -> StdioEnd {
        drop(self.input);
        timeout(PATIENCE, self.served).await.expect("it ends").expect("no panic")
    }
}

fn request() -> Value {
    json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "parent",
        "capabilities": { "supports_confirmation_reply": true, "supports_clarification_reply": true },
    })
}

fn reply(subscription_id: &str, token: &str, decision: &str) -> Value {
    json!({
        "type": "confirmation.reply", "reply_token": token, "decision": decision,
        "subscription_id": subscription_id, "timestamp": "2020-01-01T00:00:00.000Z",
    })
}

const TOKEN: &str = "rpl_0123456789abcdef";

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_hears_and_answers_and_a_second_answer_does_not_count() {
    let hub = hub();
    let mut parent = Parent::new(&hub);
    let id = parent.subscribe().await;
    publish(&hub, started("sess_1")).await;
    assert_eq!(parent.event_of("session.started").await["session_id"], "sess_1");
    publish(&hub, confirmation("sess_1", TOKEN)).await;
    assert_eq!(parent.event_of("awaiting.confirmation").await["reply_token"], TOKEN);
    parent.say(&json!({ "jsonrpc": "2.0", "method": "aaep.reply", "params": reply(&id, TOKEN, "accept") })).await;
    let asked = hub.ask_state(&me(), &token(TOKEN), PATIENCE).await.expect("known");
    let settlement = asked.settlement.expect("settled");
    assert_eq!(json!([settlement.outcome, settlement.decided_by]), json!(["accept", "reply"]));
    // The error is a notification of its own for a notification, and the answer for a request.
    parent.say(&json!({ "jsonrpc": "2.0", "method": "aaep.reply", "params": reply(&id, TOKEN, "reject") })).await;
    assert_eq!(parent.next_of("agentvoice.error").await["error"], "invalid_token");
    let answer = parent.call(8, "aaep.reply", reply(&id, TOKEN, "reject")).await;
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["data"]["error"]),
        (&json!(-32000), &json!("invalid_token"))
    );
    assert!(matches!(parent.end().await, StdioEnd::Ended));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_have_the_ids_of_their_requests_whatever_came_before() {
    let hub = hub();
    let mut parent = Parent::new(&hub);
    let id = parent.subscribe().await;
    // This one is wrong, and expects no answer.
    parent.say(&json!({ "jsonrpc": "2.0", "method": "aaep.reply", "params": reply(&id, TOKEN, "accept") })).await;
    let change = json!({
        "type": "subscription.renegotiate", "subscription_id": id, "capabilities": { "max_events_per_second": 5 },
    });
    let answer = parent.call("r", "aaep.renegotiate", change).await;
    assert_eq!(answer["result"]["honored_capabilities"]["max_events_per_second"], 5, "{answer}");
    let answer = parent.call(json!(null), "aaep.ping", json!({})).await;
    assert_eq!(answer["result"], json!({}));
    let prompt =
        json!({ "type": "agentvoice:agent.prompt", "subscription_id": id, "text": "Go on." });
    let answer = parent.call(3, "agentvoice.send", prompt).await;
    assert_eq!(answer["error"]["data"]["error"], "not_accepted", "no agent is there: {answer}");
    let wrong = json!({ "type": "subscription.renegotiate", "subscription_id": 7 });
    let answer = parent.call(4, "aaep.renegotiate", wrong).await;
    assert_eq!(answer["error"]["data"]["error"], "not_valid", "{answer}");
    let wrong = json!({ "type": "subscription.request" });
    let answer = parent.call(5, "aaep.subscribe", wrong).await;
    assert_eq!(answer["result"]["type"], "subscription.rejected", "{answer}");
    assert_eq!(answer["result"]["reason_code"], "unknown", "{answer}");
    parent.end().await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_close_ends_the_subscription_alone_and_another_one_can_follow() {
    let hub = hub();
    let mut parent = Parent::new(&hub);
    let id = parent.subscribe().await;
    let close = json!({ "type": "subscription.close", "subscription_id": id });
    parent.say(&json!({ "jsonrpc": "2.0", "method": "aaep.close", "params": close })).await;
    assert_eq!(parent.next_of("aaep.close").await["code"], 4005);
    assert_eq!(parent.call(1, "aaep.ping", json!({})).await["result"], json!({}));
    let again = parent.subscribe().await;
    assert_ne!(again, id);
    publish(&hub, started("sess_1")).await;
    parent.event_of("session.started").await;
    parent.end().await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_subscription_is_a_result_and_can_be_tried_again() {
    let hub = hub();
    let mut parent = Parent::new(&hub);
    let mut wrong = request();
    wrong["aaep_version"] = "9.0.0".into();
    let answer = parent.call(1, "aaep.subscribe", wrong).await;
    assert_eq!(answer["result"]["reason_code"], "version_unsupported", "{answer}");
    parent.next_of("aaep.close").await;
    parent.subscribe().await;
    parent.end().await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_parent_sends_it_gets_json_rpc_and_nothing_breaks() {
    let hub = hub();
    let mut parent = Parent::new(&hub);
    parent
        .input
        .write_all(b"garbage\n[]\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\n")
        .await
        .expect("read");
    for code in [-32700, -32600, -32601] {
        assert_eq!(parent.next().await["error"]["code"], code);
    }
    parent.subscribe().await;
    // Lines that are too long, and bytes that are not text, are skipped.
    let long = vec![b'x'; 3 << 20];
    parent.input.write_all(&long).await.expect("read");
    parent.input.write_all(b"\n\xff\n").await.expect("read");
    assert_eq!(parent.next().await["error"]["code"], -32600);
    assert_eq!(parent.next().await["error"]["code"], -32700);
    assert_eq!(parent.call(9, "aaep.ping", json!({})).await["result"], json!({}));
    assert!(matches!(parent.end().await, StdioEnd::Ended));
    assert!(hub.trouble().is_none(), "the hub lives");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_that_does_not_read_holds_up_nobody_and_its_end_is_seen() {
    let hub = hub();
    let mut parent = Parent::new(&hub);
    parent.subscribe().await;
    publish(&hub, started("sess_1")).await;
    // More than any pipe holds; the other subscribers continue.
    for number in 0..400 {
        let words = format!("{number} {}", "long ".repeat(180));
        publish(&hub, crate::support::progress("sess_1", &words)).await;
    }
    assert!(matches!(parent.end().await, StdioEnd::Ended));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_hub_stops_the_parent_is_told() {
    let hub = hub();
    let mut parent = Parent::new(&hub);
    parent.subscribe().await;
    let stopping = tokio::spawn({
        let hub = hub.clone();
        async move { hub.stop().await }
    });
    let close = parent.next_of("aaep.close").await;
    assert_eq!(close["type"], "subscription.close", "{close}");
    assert_eq!(close["reason_code"], "producer_shutdown", "{close}");
    assert_eq!(parent.next_of("aaep.close").await["code"], 1001);
    stopping.await.expect("stopped");
    assert!(matches!(parent.end().await, StdioEnd::Stopped | StdioEnd::Ended));
}
