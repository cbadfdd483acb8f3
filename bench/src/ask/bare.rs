//! The least that a question takes: from the agent to the middle, stored, to the subscriber, back to the middle,
//! stored, to the agent. The same messages over as many sockets, and nobody looks into them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::group::{Disk, Item, Writer};
use crate::rounds::Turn;

/// About what the hub stores of a question, and of how it was settled.
const QUESTION_BYTES: usize = 600;
const ANSWER_BYTES: usize = 300;

type Question = [u8; QUESTION_BYTES];
type Answer = [u8; ANSWER_BYTES];

/// The sockets, of which the first so many are used.
pub(super) struct Bare {
    agents: Vec<Arc<Mutex<TcpStream>>>,
}

impl Bare {
    pub(super) fn start(folder: &Path, most: u64) -> Result<Self, String> {
        let writer = Writer::start(Disk::file(folder)?);
        let (middle, subscriber) = pair()?;
        let middle = Arc::new(Mutex::new(middle));
        let mut agents = Vec::new();
        let mut replies = Vec::new();
        for number in 0..most {
            let (agent, to_agent) = pair()?;
            let (reply, from_subscriber) = pair()?;
            let to_agent = Arc::new(Mutex::new(to_agent));
            take_questions(&to_agent, &middle, &writer, number)?;
            take_answers(from_subscriber, &to_agent, &writer);
            agents.push(Arc::new(Mutex::new(agent)));
            replies.push(reply);
        }
        thread::spawn(move || answer(subscriber, replies));
        Ok(Bare { agents })
    }

    /// Agents that ask, each on its own socket.
    pub(super) fn turns(&self, agents: u64) -> Result<Vec<Turn>, String> {
        let count = usize::try_from(agents).map_err(|error| error.to_string())?;
        let turn = |agent: &Arc<Mutex<TcpStream>>| -> Turn {
            let agent = Arc::clone(agent);
            Box::new(move || {
                let mut stream = agent.lock().unwrap_or_else(PoisonError::into_inner);
                let asked = stream.write_all(&[b'q'; QUESTION_BYTES]);
                let mut settled: Answer = [0; ANSWER_BYTES];
                asked
                    .and_then(|()| stream.read_exact(&mut settled))
                    .map_err(|error| error.to_string())
            })
        };
        Ok(self.agents.iter().take(count).map(turn).collect())
    }
}

/// Two ends of a connection.
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
    // Whoever is gone needs nothing.
    let _ = stream.lock().unwrap_or_else(PoisonError::into_inner).write_all(bytes);
}

/// What an agent asks is stored, and then told to the subscriber with the number of the agent.
fn take_questions(
    agent: &Arc<Mutex<TcpStream>>,
    subscriber: &Arc<Mutex<TcpStream>>,
    writer: &Writer,
    number: u64,
) -> Result<(), String> {
    let agent = agent.lock().unwrap_or_else(PoisonError::into_inner).try_clone();
    let mut agent = agent.map_err(|error| error.to_string())?;
    let (subscriber, writer) = (Arc::clone(subscriber), writer.clone());
    thread::spawn(move || {
        let mut question: Question = [0; QUESTION_BYTES];
        while agent.read_exact(&mut question).is_ok() {
            let mut told = question;
            told[..8].copy_from_slice(&number.to_be_bytes());
            let subscriber = Arc::clone(&subscriber);
            let then = Box::new(move || send(&subscriber, &told));
            if writer.store(Item { bytes: Arc::new(question), then }).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// What the subscriber answers is stored, and then told to the agent.
fn take_answers(mut from_subscriber: TcpStream, agent: &Arc<Mutex<TcpStream>>, writer: &Writer) {
    let (agent, writer) = (Arc::clone(agent), writer.clone());
    thread::spawn(move || {
        let mut answer: Answer = [0; ANSWER_BYTES];
        while from_subscriber.read_exact(&mut answer).is_ok() {
            let agent = Arc::clone(&agent);
            let then = Box::new(move || send(&agent, &answer));
            if writer.store(Item { bytes: Arc::new(answer), then }).is_err() {
                return;
            }
        }
    });
}

/// The subscriber answers each question on the connection of its agent.
fn answer(mut subscriber: TcpStream, mut replies: Vec<TcpStream>) {
    let mut question: Question = [0; QUESTION_BYTES];
    while subscriber.read_exact(&mut question).is_ok() {
        let number = question.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
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
        let bare = Bare::start(folder.path(), 3).expect("it starts");
        for mut turn in bare.turns(3).expect("three agents") {
            turn().expect("an answer");
            turn().expect("another");
        }
        let stored = std::fs::metadata(folder.path().join("append")).expect("a file").len();
        assert_eq!(stored, 6 * (QUESTION_BYTES + ANSWER_BYTES) as u64);
    }
}
