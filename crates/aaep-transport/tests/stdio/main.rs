//! A subscriber and a child process that speaks JSON-RPC, or something else.
#![cfg(unix)]

use std::time::Duration;

use aaep_transport::link::{DialError, DialOptions, Link, LinkEnd, Target, dial};
use serde_json::{Value, json};
use tokio::time::timeout;

/// Longer than anything here takes.
const NEVER: Duration = Duration::from_secs(30);

async fn shell(script: &str) -> Link {
    start(&["/bin/sh", "-c", script]).await.expect("a child")
}

async fn start(command: &[&str]) -> Result<Link, DialError> {
    let command = command.iter().map(|&word| word.to_owned()).collect();
    dial(&Target::Stdio(command), &DialOptions::default()).await
}

async fn next(link: &mut Link) -> Result<Value, LinkEnd> {
    let next = timeout(NEVER, link.receiver.next()).await.expect("something comes");
    next.map(|text| serde_json::from_str(&text).expect("JSON"))
}

const EVENT: &str = r#"{"jsonrpc":"2.0","method":"aaep.event","params":{"type":"aaep:x","n":1}}"#;

#[tokio::test]
async fn messages_go_both_ways_and_the_end_of_the_child_is_told() {
    let accepted = r#"{"jsonrpc":"2.0","id":1,"result":{"type":"subscription.accepted"}}"#;
    let script = format!(
        "read line; case \"$line\" in *aaep.subscribe*) echo '{accepted}';; esac; echo '{EVENT}'; exit 3"
    );
    let mut link = shell(&script).await;
    link.sender.send("{\"type\":\n\"subscription.request\"}".to_owned()).await.expect("open");
    assert_eq!(next(&mut link).await, Ok(json!({ "type": "subscription.accepted" })));
    assert_eq!(next(&mut link).await, Ok(json!({ "type": "aaep:x", "n": 1 })));
    let Err(LinkEnd::Cut(why)) = next(&mut link).await else { panic!("a cut") };
    assert!(why.contains("exit code 3"), "{why}");
}

#[tokio::test]
async fn a_ping_of_the_child_is_answered() {
    let ping = r#"{"jsonrpc":"2.0","id":"a","method":"aaep.ping"}"#;
    let script = format!(
        "echo '{ping}'; read line; case \"$line\" in *'\"id\":\"a\",\"result\":{{}}'*) echo '{EVENT}';; esac"
    );
    let mut link = shell(&script).await;
    assert_eq!(next(&mut link).await, Ok(json!({ "type": "aaep:x", "n": 1 })));
}

#[tokio::test]
async fn lines_that_mean_nothing_are_passed_over() {
    let mut link = shell(&format!("echo Loading; echo '{{}}'; echo; echo '{EVENT}'")).await;
    assert_eq!(next(&mut link).await, Ok(json!({ "type": "aaep:x", "n": 1 })));
}

#[tokio::test]
async fn standard_error_of_a_child_is_not_read_as_messages() {
    let other = EVENT.replace("\"n\":1", "\"n\":2");
    let mut link = shell(&format!("echo '{other}' >&2; echo '{EVENT}'; cat > /dev/null")).await;
    assert_eq!(next(&mut link).await, Ok(json!({ "type": "aaep:x", "n": 1 })));
}

#[tokio::test]
async fn a_line_without_an_end_ends_the_link_and_not_the_memory() {
    let mut link = shell("head -c 10485760 /dev/zero | tr '\\0' x; sleep 60").await;
    assert!(matches!(next(&mut link).await, Err(LinkEnd::Violation(_))));
}

#[tokio::test]
async fn bytes_that_are_not_utf_8_end_the_link() {
    let mut link = shell("printf '\\377\\n'; sleep 60").await;
    assert!(matches!(next(&mut link).await, Err(LinkEnd::Violation(_))));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_at_once() {
    let Err(DialError::Unreachable { place, .. }) = start(&["/nonexistent/agent"]).await else {
        panic!("there is no such program")
    };
    assert_eq!(place, "/nonexistent/agent");
    assert!(start(&[]).await.is_err());
}

/// Waits until no process has this in its arguments.
async fn gone(mark: &str) {
    let is_there = || {
        let processes = std::fs::read_dir("/proc").expect("processes").flatten();
        let mut lines = processes.filter_map(|it| {
            let state = std::fs::read_to_string(it.path().join("stat")).ok()?;
            // A process that ended and was not waited for yet counts as gone.
            let is_dead =
                state.rsplit(')').next().is_some_and(|it| it.trim_start().starts_with('Z'));
            std::fs::read(it.path().join("cmdline")).ok().filter(|_| !is_dead)
        });
        lines.any(|line| String::from_utf8_lossy(&line).contains(mark))
    };
    let ended = async {
        while is_there() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(NEVER, ended).await.expect("the process ends");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_child_ends_with_its_link_whether_it_wants_or_not() {
    let polite = format!("aaep-polite-{}", std::process::id());
    let mut link = start(&["/bin/sh", "-c", &format!("echo '{EVENT}'; cat > /dev/null"), &polite])
        .await
        .expect("a child");
    next(&mut link).await.expect("it runs");
    drop(link);
    gone(&polite).await;
    let stubborn = format!("aaep-stubborn-{}", std::process::id());
    let script = format!("trap '' HUP TERM PIPE INT; echo '{EVENT}'; while :; do sleep 1; done");
    let mut link = start(&["/bin/sh", "-c", &script, &stubborn]).await.expect("a child");
    next(&mut link).await.expect("it runs");
    drop(link);
    gone(&stubborn).await;
}

#[tokio::test]
async fn a_child_that_never_reads_is_heard_all_the_same() {
    let mut link = shell(&format!("sleep 1; echo '{EVENT}'; sleep 60")).await;
    let sender = link.sender.clone();
    let flood = tokio::spawn(async move {
        let message = json!({ "type": "agentvoice:agent.prompt", "text": "x".repeat(60_000) });
        while sender.send(message.to_string()).await.is_ok() {}
    });
    assert_eq!(next(&mut link).await, Ok(json!({ "type": "aaep:x", "n": 1 })));
    drop(link);
    flood.abort();
}
