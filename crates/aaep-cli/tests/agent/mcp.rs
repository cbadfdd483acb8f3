//! `aaep mcp` between a scripted client and a scripted server of tools, with a real hub.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Hub, Person, aaep};

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_mins(1);

/// A server that writes down every byte it reads. It removes nothing, but says so. With an address as second argument,
/// it speaks HTTP there instead.
const SERVER: &str = r#"
import http.server, json, sys, threading
log = open(sys.argv[1], "ab", buffering=0)

def answers(message):
    """What the server says to a message, in order."""
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        yield {"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}}, "serverInfo": {"name": "Honest", "version": "1"}}}
    elif method == "tools/list":
        yield {"jsonrpc": "2.0", "id": id, "result": {"tools": [{"name": "look",
            "annotations": {"readOnlyHint": True}}, {"name": "remove",
            "annotations": {"readOnlyHint": True, "destructiveHint": True}}]}}
    elif method == "tools/call" and message["params"]["name"] == "ask":
        yield {"jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": {
            "message": "Which one?", "requestedSchema": {"type": "object", "required": ["which"],
            "properties": {"which": {"type": "string", "enum": ["lamp", "desk"]}}}}}
    elif method == "tools/call" and message["params"]["name"] == "want":
        given = message["params"].get("inputResponses")
        if given is None:
            yield {"jsonrpc": "2.0", "id": id, "result": {"resultType": "input_required",
                "requestState": "s", "inputRequests": {"which": {"method": "elicitation/create",
                "params": {"message": "Which one?", "requestedSchema": {"type": "object",
                "properties": {"which": {"type": "boolean"}}, "required": ["which"]}}}}}}
        else:
            yield {"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete",
                "content": [{"type": "text", "text": json.dumps(given)}]}}
    elif method == "tools/call" and message["params"]["name"] == "die":
        sys.exit(3)
    elif method == "tools/call":
        token = message["params"].get("_meta", {}).get("progressToken")
        if token is not None:
            yield {"jsonrpc": "2.0", "method": "notifications/progress", "params": {
                "progressToken": token, "progress": 1, "total": 2, "message": "Half"}}
        yield {"jsonrpc": "2.0", "id": id, "result": {
            "content": [{"type": "text", "text": "It is gone."}]}}
    elif method is None and id == 0 and "result" in message:
        yield {"jsonrpc": "2.0", "id": 9, "result": {
            "content": [{"type": "text", "text": json.dumps(message["result"])}]}}

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *rest):
        pass
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        log.write(body)
        message = json.loads(body)
        if message.get("method") == "test/refuse":
            return self.say(403, b"", "text/plain")
        if message.get("method") == "test/page":
            return self.say(200, b"<html>Sign in</html>", "text/html")
        if message.get("method") == "test/break":
            return self.say(200, b"data: \n\n", "text/event-stream")
        if message.get("id") is None:
            return self.say(202, b"", None)
        if message["method"] != "initialize" and self.headers["mcp-session-id"] != "s-1":
            return self.say(400, b"", None)
        said = list(answers(message))
        if len(said) > 1:
            stream = "".join(f"data: {json.dumps(it)}\n\n" for it in said)
            return self.say(200, stream.encode(), "text/event-stream")
        self.say(200, json.dumps(said[0] if said else {}, indent=2).encode(), "application/json")
    def do_GET(self):
        self.say(405, b"", None)
    def do_DELETE(self):
        log.write(b"DELETE\n")
        self.say(200, b"", None)
    def say(self, status, body, kind):
        self.send_response(status)
        if kind:
            self.send_header("content-type", kind)
        self.send_header("mcp-session-id", "s-1")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

if len(sys.argv) > 2:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()

out = sys.stdout.buffer
for line in sys.stdin.buffer:
    log.write(line)
    try:
        message = json.loads(line)
    except ValueError:
        out.write(line)
        out.flush()
        continue
    if isinstance(message, dict):
        for said in answers(message):
            out.write(json.dumps(said, ensure_ascii=False).encode() + b"\n")
            out.flush()
"#;

/// A client that uses the scripted server through `aaep mcp`.
struct Desk {
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    folder: TempDir,
    remote: Option<Child>,
}

impl Desk {
    fn start(hub: Option<&Hub>, arguments: &[&str]) -> Self {
        Desk::start_with(hub, arguments, false)
    }

    fn start_with(hub: Option<&Hub>, arguments: &[&str], is_remote: bool) -> Self {
        // Nothing listens there.
        let nowhere = "http://127.0.0.1:9";
        let folder = tempfile::tempdir().expect("a folder");
        let (script, log) = (folder.path().join("server.py"), folder.path().join("log"));
        fs::write(&script, SERVER).expect("written");
        let mut command = aaep(&["mcp", "--name", "shop"]);
        command.env("AAEP_HUB", hub.map_or(nowhere, |it| it.origin.as_str()));
        for name in ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"] {
            command.env(name, folder.path());
        }
        command.args(arguments);
        let mut remote = None;
        if is_remote {
            let mut server = std::process::Command::new("python3");
            server.arg(&script).arg(&log).arg("http").stdout(Stdio::piped());
            let mut server = server.spawn().expect("python3 runs");
            let mut port = String::new();
            let mut said = BufReader::new(server.stdout.take().expect("its output"));
            said.read_line(&mut port).expect("a port");
            command.arg("--url").arg(format!("http://127.0.0.1:{}/mcp", port.trim()));
            remote = Some(server);
        } else {
            command.args(["--", "python3"]).arg(&script).arg(&log);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("aaep runs");
        let mut output = BufReader::new(process.stdout.take().expect("its output"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                let length = output.read_until(b'\n', &mut line).unwrap_or(0);
                if length == 0 || sender.send(line).is_err() {
                    return;
                }
            }
        });
        let input = process.stdin.take();
        let mut desk = Desk { process, input, lines, folder, remote };
        desk.writes(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "desk", "title": "Desk", "version": "1" } } }));
        assert_eq!(desk.reads()["result"]["serverInfo"]["name"], "Honest");
        desk.writes(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        desk
    }

    fn writes(&mut self, message: &Value) {
        self.writes_bytes(format!("{message}\n").as_bytes());
    }

    fn writes_bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("an open input");
        input.write_all(bytes).and_then(|()| input.flush()).expect("it reads");
    }

    fn calls(&mut self, id: u64, tool: &str) {
        self.writes(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": tool, "arguments": { "item": "lamp" }, "_meta": { "progressToken": "t" } } }));
    }

    fn reads_bytes(&self) -> Vec<u8> {
        self.lines.recv_timeout(PATIENCE).expect("a line")
    }

    fn reads(&self) -> Value {
        serde_json::from_slice(&self.reads_bytes()).expect("JSON")
    }

    fn reads_answer(&self, id: u64) -> Value {
        loop {
            let message = self.reads();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// How often the server saw a tool.
    fn seen(&self, tool: &str) -> usize {
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        log.matches(&format!("\"name\":\"{tool}\"")).count()
    }

    /// Closes the input, and returns the exit code and what was said on standard error.
    fn ends(&mut self) -> (Option<i32>, String) {
        self.input = None;
        let mut said = String::new();
        let mut errors = self.process.stderr.take().expect("its errors");
        errors.read_to_string(&mut said).expect("text");
        (self.process.wait().expect("it ends").code(), said)
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        for process in std::iter::once(&mut self.process).chain(&mut self.remote) {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn asked(person: &Person) -> Value {
    let question = person.hears("awaiting.confirmation");
    assert_eq!(question["action"], "Use remove of shop with item “lamp”.");
    question
}

fn is_tool_error(answer: &Value, words: &str) -> bool {
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    answer["result"]["isError"] == true && text.contains(words)
}

/// The same over standard input and output, and over HTTP.
fn both(check: impl Fn(&Hub, &Person, &mut Desk)) {
    for is_remote in [false, true] {
        let hub = Hub::start();
        let person = hub.person();
        let mut desk = Desk::start_with(Some(&hub), &[], is_remote);
        check(&hub, &person, &mut desk);
        let (code, said) = desk.ends();
        assert_eq!((code, said.as_str()), (Some(0), ""), "over HTTP: {is_remote}");
        if is_remote {
            let log = fs::read_to_string(desk.folder.path().join("log")).expect("a log");
            assert!(log.ends_with("DELETE\n"), "{log}");
        }
    }
}

#[test]
fn a_no_keeps_the_call_from_the_server_and_the_model_reads_why() {
    both(|_, person, desk| {
        desk.writes(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
        desk.reads_answer(2);
        desk.calls(3, "remove");
        assert_eq!(
            person.hears("session.started")["summary_normal"],
            "Desk uses the tools of shop."
        );
        let question = asked(person);
        assert_eq!(question["risk_level"], "high");
        // Everything else goes on meanwhile.
        desk.writes(&json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/list" }));
        desk.reads_answer(4);
        assert!(person.decides(&question, "reject"));
        assert!(is_tool_error(&desk.reads_answer(3), "The person said no."));
        let told = person.hears("progress.updated");
        assert_eq!(told["summary_normal"], "Was not run. Uses remove: item “lamp”.");
        assert_eq!(desk.seen("remove"), 0);
    });
}

#[test]
fn a_yes_lets_exactly_this_call_through_once() {
    both(|_, person, desk| {
        desk.calls(3, "remove");
        let question = asked(person);
        assert!(person.decides(&question, "accept"));
        let invoked = person.hears("tool.invoked");
        let digest = |event: &Value| event["extensions"]["agentvoice"]["action_digest"].clone();
        assert!(digest(&invoked).is_string());
        assert_eq!(digest(&invoked), digest(&question));
        assert_eq!(person.hears("progress.updated")["progress"]["percent"], 50.0);
        assert_eq!(desk.reads_answer(3)["result"]["content"][0]["text"], "It is gone.");
        assert_eq!(person.hears("tool.completed")["summary_normal"], "Done: It is gone.");
        desk.calls(4, "remove");
        assert!(person.decides(&asked(person), "reject"));
        assert!(is_tool_error(&desk.reads_answer(4), "The person said no."));
        assert_eq!(desk.seen("remove"), 1);
    });
}

#[test]
fn a_program_that_gives_up_takes_the_question_back() {
    let hub = Hub::start();
    let person = hub.person();
    let mut desk = Desk::start(Some(&hub), &[]);
    desk.calls(3, "remove");
    let question = asked(&person);
    desk.writes(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": 3 } }));
    assert_eq!(person.hears_how_it_was_settled().0, "withdrawn");
    assert!(!person.decides(&question, "accept"));
    assert_eq!(desk.seen("remove"), 0);
}

#[test]
fn a_server_that_dies_in_the_middle_leaves_no_question_open() {
    let hub = Hub::start();
    let person = hub.person();
    let mut desk = Desk::start(Some(&hub), &["--policy", "risky"]);
    desk.calls(3, "remove");
    let question = asked(&person);
    desk.calls(4, "die");
    let other = person.hears("awaiting.confirmation");
    assert!(person.decides(&other, "accept"));
    assert_eq!(desk.process.wait().expect("it ends").code(), Some(3));
    assert!(!person.decides(&question, "accept"));
    let end = person.hears("session.errored");
    assert_eq!(
        end["summary_normal"],
        "The server ended in the middle of its work, with exit code 3."
    );
}

#[test]
fn without_a_hub_nothing_risky_runs_and_the_rest_works() {
    let mut desk = Desk::start(None, &[]);
    desk.calls(3, "remove");
    desk.calls(4, "look");
    for id in [3, 4] {
        assert!(is_tool_error(&desk.reads_answer(id), "hub is not running"));
    }
    desk.writes(&json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/list" }));
    desk.reads_answer(5);
    let (code, said) = desk.ends();
    assert_eq!(code, Some(0));
    assert!(said.contains("Tools that you would be asked about do not run."), "{said}");
    assert_eq!((desk.seen("remove"), desk.seen("look")), (0, 0));
    // With tell, it is as if we were not there.
    let mut desk = Desk::start(None, &["--policy", "tell"]);
    desk.calls(3, "remove");
    assert_eq!(desk.reads_answer(3)["result"]["content"][0]["text"], "It is gone.");
}

#[test]
fn the_first_answer_to_a_form_counts() {
    let hub = Hub::start();
    let person = hub.person();
    let mut desk = Desk::start(Some(&hub), &[]);
    desk.calls(9, "ask");
    assert!(person.decides(&person.hears("awaiting.confirmation"), "accept"));
    let question = person.hears("awaiting.clarification");
    assert_eq!(question["question"], "shop asks you: Which one? which.");
    assert_eq!(desk.reads()["method"], "elicitation/create");
    assert!(person.answers(&question, "choice-2"));
    let answer = desk.reads();
    let (answer, closing) = if answer["method"] == "notifications/cancelled" {
        (desk.reads(), answer)
    } else {
        (answer, desk.reads())
    };
    assert_eq!(closing["params"]["requestId"], 0);
    let text = answer["result"]["content"][0]["text"].as_str().expect("text");
    assert_eq!(
        serde_json::from_str::<Value>(text).expect("JSON"),
        json!({ "action": "accept", "content": { "which": "desk" } })
    );
    // What the program answers late does not reach the server.
    desk.writes(&json!({ "jsonrpc": "2.0", "id": 0, "result": { "action": "decline" } }));
    assert_eq!(desk.ends().0, Some(0));
    let log = fs::read_to_string(desk.folder.path().join("log")).expect("a log");
    assert!(!log.contains("decline"), "{log}");
}

#[test]
fn without_a_handshake_the_program_gets_only_the_end() {
    let hub = Hub::start();
    let person = hub.person();
    let mut desk = Desk::start(Some(&hub), &[]);
    let call = |id: u64| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": "want", "arguments": {}, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28" } } })
    };
    desk.writes(&call(20));
    assert!(person.decides(&person.hears("awaiting.confirmation"), "accept"));
    let question = person.hears("awaiting.clarification");
    assert!(person.answers(&question, "yes"));
    let answer = desk.reads();
    assert_eq!((&answer["id"], &answer["result"]["resultType"]), (&json!(20), &json!("complete")));
    let text = answer["result"]["content"][0]["text"].as_str().expect("text");
    assert_eq!(
        serde_json::from_str::<Value>(text).expect("JSON"),
        json!({ "which": { "action": "accept", "content": { "which": true } } })
    );
    // If the person leaves it to the program, that gets what the server wrote.
    desk.writes(&call(21));
    assert!(person.decides(&person.hears("awaiting.confirmation"), "accept"));
    assert!(person.answers(&person.hears("awaiting.clarification"), "leave"));
    assert_eq!(desk.reads()["result"]["resultType"], "input_required");
}

#[test]
fn bytes_pass_as_they_are_and_giants_end_in_an_answer() {
    let hub = Hub::start();
    let mut desk = Desk::start(Some(&hub), &[]);
    for line in ["not json\n", "{\"half\": \n", "\u{fffd}\n", "\n"] {
        desk.writes_bytes(line.as_bytes());
        assert_eq!(desk.reads_bytes(), line.as_bytes());
    }
    // Who would be asked about what nobody can read?
    desk.writes_bytes(b"{\"id\":7,\"method\":\"tools/call\",\"method\":\"ping\"}\n");
    assert_eq!(desk.reads()["error"]["code"], -32_700);
    let giant = format!(
        "{{\"params\":{{\"name\":\"remove\",\"arguments\":{{\"x\":\"{}\"}}}},\"method\":\"tools/call\",\"id\":8}}\n",
        "x".repeat(9 * 1024 * 1024)
    );
    desk.writes_bytes(giant.as_bytes());
    assert!(is_tool_error(&desk.reads_answer(8), "too long"));
    let (code, said) = desk.ends();
    assert_eq!((code, said.lines().count()), (Some(0), 2), "{said}");
    assert_eq!(desk.seen("remove"), 0);
}

#[test]
fn a_server_over_http_that_refuses_or_breaks_off_never_ends_in_silence() {
    let hub = Hub::start();
    let mut desk = Desk::start_with(Some(&hub), &["--policy", "tell"], true);
    for (id, method, words) in [
        (4, "test/page", "not JSON"),
        (5, "test/refuse", "HTTP status 403"),
        (6, "test/break", "broke before its answer"),
    ] {
        desk.writes(&json!({ "jsonrpc": "2.0", "id": id, "method": method }));
        let answer = desk.reads_answer(id);
        let said = answer["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(said.contains(words), "{answer}");
    }
    let mut server = desk.remote.take().expect("a server");
    server.kill().and_then(|()| server.wait()).expect("it ends");
    desk.calls(7, "look");
    assert!(desk.reads_answer(7)["error"]["message"].is_string());
}

#[test]
fn a_wrong_command_line_is_said_before_anything_starts() {
    for (arguments, words) in [
        (&["mcp"][..], "required"),
        (&["mcp", "--url", "http://example.org/mcp"][..], "https"),
        (&["mcp", "--url", "not an address"][..], "not the address of a server"),
        (&["mcp", "--url", "https://example.org", "--token-from", "NO_SUCH_NAME"][..], "not set"),
        (&["mcp", "--", "/no/such/server"][..], "cannot start the server"),
    ] {
        let output = aaep(arguments).stdin(Stdio::null()).output().expect("aaep runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    }
}
