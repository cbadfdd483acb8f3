//! A subscriber on a stream that answers every ask at once.

use std::io::Read as _;
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use serde_json::{Value, json};

use super::decision;
use crate::serve::{HttpConnection, ServedHub};
use crate::timing::timestamp;
use crate::wire::{EventSocket, HubAddress, OpenedSubscription, SubscriberWire, WireFrame};

/// A connected subscriber; dropping it closes the connection.
pub(crate) struct AnsweringSubscriber {
    socket: EventSocket,
}

impl Drop for AnsweringSubscriber {
    fn drop(&mut self) {
        if let EventSocket::Tcp(stream) = &self.socket {
            // If the connection is already closed, nothing is left to do.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl AnsweringSubscriber {
    /// Subscribes, and opens this many connections to answer on.
    pub(crate) fn start(served: &ServedHub, connections: u64) -> Result<Self, String> {
        let place = HubAddress { address: served.address(), socket: served.socket() };
        let capabilities = json!({
            "coalesce_boundaries": ["none"], "event_filters": { "include": ["*"] },
            "supports_confirmation_reply": true,
        });
        let opened = SubscriberWire::Stream.open(&place, &capabilities, None, false)?;
        let OpenedSubscription { socket: EventSocket::Tcp(stream), subscription_id, read } = opened
        else {
            return Err("a stream is on TCP".to_owned());
        };
        stream.set_read_timeout(None).map_err(|error| error.to_string())?;
        let socket = EventSocket::Tcp(stream.try_clone().map_err(|error| error.to_string())?);
        let mut people = Vec::new();
        for _ in 0..connections {
            people.push(person(served.address(), subscription_id.clone())?);
        }
        thread::spawn(move || hear(stream, read, &people));
        Ok(AnsweringSubscriber { socket })
    }
}

/// Reads until the stream ends, and passes each ask on.
fn hear(mut stream: std::net::TcpStream, mut read: Vec<u8>, people: &[SyncSender<String>]) {
    let mut buffer = vec![0; 1 << 16];
    let mut next = 0;
    loop {
        let mut used = 0;
        while let Ok(Some((frame, length))) = SubscriberWire::Stream.frame(&read[used..]) {
            used += length;
            let WireFrame::Lines(lines) = frame else { return };
            let lines = lines.split(|byte| *byte == b'\n');
            for json in lines.filter_map(|line| line.strip_prefix(b"data: ")) {
                let Ok(event) = serde_json::from_slice::<Value>(json) else { return };
                let is_ask = event["type"] == "aaep:agent.awaiting.confirmation";
                if let Some(token) = event["reply_token"].as_str().filter(|_| is_ask) {
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

/// Opens a connection on which asks are answered.
fn person(address: SocketAddr, subscription_id: String) -> Result<SyncSender<String>, String> {
    let mut connection = HttpConnection::open(address)?;
    let (sender, asks) = mpsc::sync_channel(256);
    thread::spawn(move || answer(&mut connection, &subscription_id, &asks));
    Ok(sender)
}

fn answer(connection: &mut HttpConnection, subscription_id: &str, asks: &Receiver<String>) {
    while let Ok(token) = asks.recv() {
        // An ask without a number is accepted.
        let number = token.strip_prefix("rpl_ask").and_then(|it| it.split_once('n'));
        let number = number.and_then(|(_, number)| number.parse().ok());
        let reply = json!({
            "type": "confirmation.reply", "reply_token": token,
            "decision": number.map_or("accept", decision), "subscription_id": subscription_id,
            "timestamp": timestamp(),
        });
        // An answer that does not arrive shows in the outcome of its ask.
        let posted = connection.post("/aaep/v1/replies", "application/json", &reply.to_string());
        if posted.is_err() {
            return;
        }
    }
}
