//! Standard input and output (B.6): the hub is a child of the subscriber.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::world::{PATIENCE, Wire, World, request};

pub(crate) struct StandardStreams;

impl Wire for StandardStreams {
    const IS_CHILD: bool = true;
    const IS_VOUCHED_FOR: bool = true;

    fn target(world: &World) -> String {
        // A hub that has just been left may still have the store; then it is tried again.
        let command = world.command().join(" ");
        format!("stdio:/bin/sh -c \"until {command} --stdio; do sleep 0.1; done\"")
    }

    async fn speak_wrongly(world: &World) {
        let mut parent = Parent::subscribed(world).await;
        for (bytes, code) in [
            (b"not JSON\n".as_slice(), -32700),
            (b"\xff\xfe\n", -32700),
            (b"[]\n", -32600),
            (b"{\"jsonrpc\":\"2.0\",\"method\":7}\n", -32600),
        ] {
            parent.input.write_all(bytes).await.expect("sent");
            let answer = parent.hear(|line| line.get("error").is_some()).await;
            assert_eq!(answer["error"]["code"], code, "{answer}");
        }
        world.publish("session.started", json!({})).await;
        parent.event_of("session.started").await;
    }

    async fn close_half(world: &World) -> Box<dyn std::any::Any> {
        let Parent { input, mut lines, mut child } = {
            let mut parent = Parent::subscribed(world).await;
            world.publish("session.started", json!({})).await;
            world.ask().await;
            parent.event_of("awaiting.confirmation").await;
            parent
        };
        drop(input);
        // The hub stops, and nobody has accepted anything.
        let ends = async {
            while let Ok(Some(line)) = lines.next_line().await {
                assert!(!line.contains("\"outcome\":\"accept\""), "{line}");
            }
            child.wait().await.expect("it ends")
        };
        let status = tokio::time::timeout(PATIENCE, ends).await.expect("it ends");
        assert!(status.success(), "{status}");
        Box::new(lines)
    }
}

struct Parent {
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    child: Child,
}

impl Parent {
    async fn subscribed(world: &World) -> Self {
        let words = world.command();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg("--stdio").kill_on_drop(true);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("aaep runs");
        let input = child.stdin.take().expect("its input");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let mut parent = Parent { input, lines, child };
        let call =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "aaep.subscribe", "params": request() });
        parent.input.write_all(format!("{call}\n").as_bytes()).await.expect("sent");
        let answer = parent.hear(|line| line["id"] == 1).await;
        assert_eq!(answer["result"]["type"], "subscription.accepted", "{answer}");
        parent
    }

    /// The next line that is meant.
    async fn hear(&mut self, is_meant: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
            let line = line.expect("a line comes").expect("readable").expect("a line");
            let line: Value = serde_json::from_str(&line).expect("JSON");
            if is_meant(&line) {
                return line;
            }
        }
    }

    async fn event_of(&mut self, kind: &str) {
        let kind = format!("aaep:agent.{kind}");
        self.hear(|line| line["params"]["type"] == kind.as_str()).await;
    }
}
