//! Someone who listens on a stream and answers every question at once.

use std::io::Read as _;
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use serde_json::{Value, json};

use super::decision;
use crate::serve::{Connection, Served};
use crate::timing::timestamp;
use crate::wire::{Frame, Opened, Place, Socket, Wire};

/// The connection stays as long as this does.
pub(crate) struct Subscriber {
    socket: Socket,
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        if let Socket::Tcp(stream) = &self.socket {
            // One that is closed already is as wanted.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl Subscriber {
    /// Listens, with so many connections to answer on.
    pub(crate) fn start(served: &Served, connections: u64) -> Result<Self, String> {
        let place = Place { address: served.address(), socket: served.socket() };
        let capabilities = json!({
            "coalesce_boundaries": ["none"], "event_filters": { "include": ["*"] },
            "supports_confirmation_reply": true,
        });
        let opened = Wire::Stream.open(&place, &capabilities, None, false)?;
        let Opened { socket: Socket::Tcp(stream), subscription_id, read } = opened else {
            return Err("a stream is on TCP".to_owned());
        };
        stream.set_read_timeout(None).map_err(|error| error.to_string())?;
        let socket = Socket::Tcp(stream.try_clone().map_err(|error| error.to_string())?);
        let mut people = Vec::new();
        for _ in 0..connections {
            people.push(person(served.address(), subscription_id.clone())?);
        }
        thread::spawn(move || hear(stream, read, &people));
        Ok(Subscriber { socket })
    }
}

/// Hears until the stream ends, and passes each question on.
fn hear(mut stream: std::net::TcpStream, mut read: Vec<u8>, people: &[SyncSender<String>]) {
    let mut buffer = vec![0; 1 << 16];
    let mut next = 0;
    loop {
        let mut used = 0;
        while let Ok(Some((frame, length))) = Wire::Stream.frame(&read[used..]) {
            used += length;
            let Frame::Lines(lines) = frame else { return };
            let lines = lines.split(|byte| *byte == b'\n');
            for json in lines.filter_map(|line| line.strip_prefix(b"data: ")) {
                let Ok(event) = serde_json::from_slice::<Value>(json) else { return };
                let is_question = event["type"] == "aaep:agent.awaiting.confirmation";
                if let Some(token) = event["reply_token"].as_str().filter(|_| is_question) {
                    next = (next + 1) % people.len();
                    if people[next].send(token.to_owned()).is_err() {
                        return;
                    }
                }
            }
        }
        read.drain(..used);
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => read.extend_from_slice(&buffer[..count]),
            _ => return,
        }
    }
}

/// A connection on which questions are answered.
fn person(address: SocketAddr, subscription_id: String) -> Result<SyncSender<String>, String> {
    let mut connection = Connection::open(address)?;
    let (sender, questions) = mpsc::sync_channel(256);
    thread::spawn(move || answer(&mut connection, &subscription_id, &questions));
    Ok(sender)
}

fn answer(connection: &mut Connection, subscription_id: &str, questions: &Receiver<String>) {
    while let Ok(token) = questions.recv() {
        // Whoever asks without a number is told yes.
        let number = token.strip_prefix("rpl_ask").and_then(|it| it.split_once('n'));
        let number = number.and_then(|(_, number)| number.parse().ok());
        let reply = json!({
            "type": "confirmation.reply", "reply_token": token,
            "decision": number.map_or("accept", decision), "subscription_id": subscription_id,
            "timestamp": timestamp(),
        });
        // An answer that does not arrive shows in the outcome of its question.
        let posted = connection.post("/aaep/v1/replies", "application/json", &reply.to_string());
        if posted.is_err() {
            return;
        }
    }
}
