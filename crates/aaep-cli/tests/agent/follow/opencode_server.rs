//! A server that speaks as that of OpenCode was recorded to.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::PATIENCE;

pub(crate) struct PlayedServer {
    pub(crate) port: u16,
    stream: Arc<Mutex<Option<TcpStream>>>,
    heard: Receiver<()>,
    posts: Receiver<(String, Value)>,
}

impl PlayedServer {
    /// So many connections are never answered.
    pub(crate) fn start(hanging: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let stream = Arc::new(Mutex::new(None));
        let (signal, heard) = mpsc::channel();
        let (deliver, posts) = mpsc::channel();
        let own = Arc::clone(&stream);
        thread::spawn(move || {
            let mut kept = Vec::new();
            for (number, connection) in listener.incoming().flatten().enumerate() {
                if number < hanging {
                    kept.push(connection);
                } else {
                    serve(connection, &own, &signal, &deliver);
                }
            }
        });
        PlayedServer { port, stream, heard, posts }
    }

    /// Waits until somebody hears its events.
    pub(crate) fn is_heard(&self) {
        self.heard.recv_timeout(PATIENCE).expect("somebody");
    }

    fn says(&self, kind: &str, properties: &Value) {
        let event = json!({ "id": "evt_1", "type": kind, "properties": properties });
        let mut stream = self.stream.lock().expect("a lock");
        let stream = stream.as_mut().expect("somebody hears");
        write!(stream, "data: {event}\n\n").expect("it reads");
    }

    pub(crate) fn begins(&self) {
        self.says(
            "session.created",
            &json!({ "sessionID": "ses_1",
            "info": { "id": "ses_1", "directory": "/home/ada/work/shop" } }),
        );
        self.says(
            "message.updated",
            &json!({ "sessionID": "ses_1",
            "info": { "id": "msg_1", "role": "user" } }),
        );
        self.says(
            "message.part.updated",
            &json!({ "sessionID": "ses_1", "part": {
            "id": "prt_1", "messageID": "msg_1", "type": "text", "text": "Tidy up." } }),
        );
        self.says("session.status", &json!({ "sessionID": "ses_1", "status": { "type": "busy" } }));
    }

    /// Asks whether it may remove the build folder.
    pub(crate) fn asks(&self, number: u32) {
        let call = format!("c{number}");
        self.says("message.part.updated", &json!({ "sessionID": "ses_1", "part": {
            "id": format!("prt_c{number}"), "messageID": "msg_2", "type": "tool", "tool": "bash",
            "callID": call, "state": { "status": "running", "input": { "command": "rm -rf build" } } } }));
        self.says(
            "permission.asked",
            &json!({ "id": format!("per_{number}"), "sessionID": "ses_1",
            "permission": "bash", "patterns": ["rm -rf build"], "metadata": {}, "always": ["rm *"],
            "tool": { "messageID": "msg_2", "callID": call } }),
        );
    }

    pub(crate) fn replied(&self, number: u32, reply: &str) {
        self.says(
            "permission.replied",
            &json!({ "sessionID": "ses_1",
            "requestID": format!("per_{number}"), "reply": reply }),
        );
    }

    /// The next request that changes something.
    pub(crate) fn post(&self) -> (String, Value) {
        self.posts.recv_timeout(PATIENCE).expect("a request")
    }

    pub(crate) fn has_no_more_posts(&self) -> bool {
        self.posts.recv_timeout(Duration::from_millis(200)).is_err()
    }

    /// Its stream ends.
    pub(crate) fn dies(&self) {
        let stream = self.stream.lock().expect("a lock").take().expect("somebody hears");
        let _ = stream.shutdown(Shutdown::Both);
    }
}

fn serve(
    mut connection: TcpStream,
    stream: &Mutex<Option<TcpStream>>,
    signal: &Sender<()>,
    deliver: &Sender<(String, Value)>,
) {
    let mut reader = BufReader::new(connection.try_clone().expect("a handle"));
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return;
    }
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let path = words.next().unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        let mut head = String::new();
        reader.read_line(&mut head).expect("a line");
        if head.trim().is_empty() {
            break;
        }
        if let Some(value) = head.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    if path == "/event" {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        connection.write_all(head.as_bytes()).expect("it reads");
        let mut current = stream.lock().expect("a lock");
        if current.is_none() {
            *current = Some(connection);
            let _ = signal.send(());
        }
        return;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let answer = match (method.as_str(), path.as_str()) {
        ("POST", _) => {
            let _ = deliver.send((path, serde_json::from_slice(&body).expect("JSON")));
            "true"
        }
        (_, "/session/status") => "{}",
        _ => "[]",
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{answer}",
        answer.len()
    );
    let _ = connection.write_all(head.as_bytes());
}
