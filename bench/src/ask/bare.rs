//! The least that an ask takes: from the agent to the middle, stored, to the subscriber, back to
//! the middle, stored, to the agent. The same messages travel over as many sockets, and nothing
//! parses them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::group::{GroupDisk, GroupWriter, WriteRequest};
use crate::rounds::RepeatedTurn;

/// About as many bytes as the hub stores of an ask, and of its outcome.
const ASK_BYTES: usize = 600;
const ANSWER_BYTES: usize = 300;

type BareAsk = [u8; ASK_BYTES];
type BareReply = [u8; ANSWER_BYTES];

/// The sockets of all agents, of which a run uses the first ones.
pub(super) struct BareSockets {
    agents: Vec<Arc<Mutex<TcpStream>>>,
}

impl BareSockets {
    pub(super) fn start(folder: &Path, most: u64) -> Result<Self, String> {
        let writer = GroupWriter::start(GroupDisk::file(folder)?);
        let (middle, subscriber) = pair()?;
        let middle = Arc::new(Mutex::new(middle));
        let mut agents = Vec::new();
        let mut replies = Vec::new();
        for number in 0..most {
            let (agent, to_agent) = pair()?;
            let (reply, from_subscriber) = pair()?;
            let to_agent = Arc::new(Mutex::new(to_agent));
            take_asks(&to_agent, &middle, &writer, number)?;
            take_answers(from_subscriber, &to_agent, &writer);
            agents.push(Arc::new(Mutex::new(agent)));
            replies.push(reply);
        }
        thread::spawn(move || answer(subscriber, replies));
        Ok(BareSockets { agents })
    }

    /// The turns of this many agents, each of which asks on its own socket.
    pub(super) fn turns(&self, agents: u64) -> Result<Vec<RepeatedTurn>, String> {
        let count = usize::try_from(agents).map_err(|error| error.to_string())?;
        let turn = |agent: &Arc<Mutex<TcpStream>>| -> RepeatedTurn {
            let agent = Arc::clone(agent);
            Box::new(move || {
                let mut stream = agent.lock().unwrap_or_else(PoisonError::into_inner);
                let asked = stream.write_all(&[b'q'; ASK_BYTES]);
                let mut settled: BareReply = [0; ANSWER_BYTES];
                asked
                    .and_then(|()| stream.read_exact(&mut settled))
                    .map_err(|error| error.to_string())
            })
        };
        Ok(self.agents.iter().take(count).map(turn).collect())
    }
}

/// Opens a connection and returns its two ends.
fn pair() -> Result<(TcpStream, TcpStream), String> {
    let connect = || {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let one = TcpStream::connect(listener.local_addr()?)?;
        let (other, _) = listener.accept()?;
        one.set_nodelay(true)?;
        other.set_nodelay(true)?;
        Ok((one, other))
    };
    connect().map_err(|error: std::io::Error| error.to_string())
}

fn send(stream: &Mutex<TcpStream>, bytes: &[u8]) {
    // A peer that has gone away needs no message.
    let _ = stream.lock().unwrap_or_else(PoisonError::into_inner).write_all(bytes);
}

/// Stores each ask of an agent, and then sends it to the subscriber with the agent's number.
fn take_asks(
    agent: &Arc<Mutex<TcpStream>>,
    subscriber: &Arc<Mutex<TcpStream>>,
    writer: &GroupWriter,
    number: u64,
) -> Result<(), String> {
    let agent = agent.lock().unwrap_or_else(PoisonError::into_inner).try_clone();
    let mut agent = agent.map_err(|error| error.to_string())?;
    let (subscriber, writer) = (Arc::clone(subscriber), writer.clone());
    thread::spawn(move || {
        let mut ask: BareAsk = [0; ASK_BYTES];
        while agent.read_exact(&mut ask).is_ok() {
            let mut told = ask;
            told[..8].copy_from_slice(&number.to_be_bytes());
            let subscriber = Arc::clone(&subscriber);
            let then = Box::new(move || send(&subscriber, &told));
            if writer.store(WriteRequest { bytes: Arc::new(ask), then }).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Stores each answer of the subscriber, and then sends it to the agent.
fn take_answers(
    mut from_subscriber: TcpStream,
    agent: &Arc<Mutex<TcpStream>>,
    writer: &GroupWriter,
) {
    let (agent, writer) = (Arc::clone(agent), writer.clone());
    thread::spawn(move || {
        let mut answer: BareReply = [0; ANSWER_BYTES];
        while from_subscriber.read_exact(&mut answer).is_ok() {
            let agent = Arc::clone(&agent);
            let then = Box::new(move || send(&agent, &answer));
            if writer.store(WriteRequest { bytes: Arc::new(answer), then }).is_err() {
                return;
            }
        }
    });
}

/// Answers each ask on the connection of its agent, as the subscriber.
fn answer(mut subscriber: TcpStream, mut replies: Vec<TcpStream>) {
    let mut ask: BareAsk = [0; ASK_BYTES];
    while subscriber.read_exact(&mut ask).is_ok() {
        let number = ask.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let reply = usize::try_from(number).ok().and_then(|number| replies.get_mut(number));
        let Some(reply) = reply else { return };
        if reply.write_all(&[b'a'; ANSWER_BYTES]).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_comes_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let bare = BareSockets::start(folder.path(), 3).expect("it starts");
        for mut turn in bare.turns(3).expect("three agents") {
            turn().expect("an answer");
            turn().expect("another");
        }
        let stored = std::fs::metadata(folder.path().join("append")).expect("a file").len();
        assert_eq!(stored, 6 * (ASK_BYTES + ANSWER_BYTES) as u64);
    }
}
