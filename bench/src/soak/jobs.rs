//! What takes time is done by a few threads of their own: connecting, and what is said by POST.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::Value;

use super::subscriber::Line;
use crate::serve::Connection;
use crate::wire::{Opened, Place, Resume, Wire};

/// How many threads let subscribers come.
const OPENING: usize = 12;

/// How many threads say something for subscribers, who do not wait for others to come.
const SAYING: usize = 4;

/// Something to be done.
pub(super) enum Job {
    /// A subscriber comes.
    Open {
        subscriber: usize,
        wire: Wire,
        capabilities: Value,
        resume: Option<Resume>,
        has_small_buffer: bool,
    },
    /// A subscriber on a stream says something; where it leaves with that, its connection goes afterwards.
    Say { message: Value, line: Option<Line> },
}

/// What was done.
pub(super) enum Done {
    Opened { subscriber: usize, opened: Result<Opened, String> },
    Said(Result<(), String>),
}

/// Where jobs are handed in.
pub(super) struct Jobs {
    opening: Sender<Job>,
    saying: Sender<Job>,
}

impl Jobs {
    /// Starts the threads. Whoever waits for what is done is woken.
    pub(super) fn start(place: &Place, waker: mio::Waker) -> (Self, Receiver<Done>) {
        let (sender, done) = mpsc::channel();
        let waker = Arc::new(waker);
        let threads = |count: usize| {
            let (jobs, waiting) = mpsc::channel();
            let waiting = Arc::new(Mutex::new(waiting));
            for _ in 0..count {
                let (place, waiting) = (place.clone(), Arc::clone(&waiting));
                let (sender, waker) = (sender.clone(), Arc::clone(&waker));
                thread::spawn(move || work(&place, &waiting, &sender, &waker));
            }
            jobs
        };
        (Jobs { opening: threads(OPENING), saying: threads(SAYING) }, done)
    }

    /// Whether it will be done.
    pub(super) fn hand_in(&self, job: Job) -> bool {
        match job {
            Job::Open { .. } => self.opening.send(job).is_ok(),
            Job::Say { .. } => self.saying.send(job).is_ok(),
        }
    }
}

fn work(place: &Place, waiting: &Mutex<Receiver<Job>>, sender: &Sender<Done>, waker: &mio::Waker) {
    loop {
        let job = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let done = match job {
            Ok(Job::Open { subscriber, wire, capabilities, resume, has_small_buffer }) => {
                let opened = wire.open(place, &capabilities, resume.as_ref(), has_small_buffer);
                Done::Opened { subscriber, opened }
            }
            Ok(Job::Say { message, line }) => {
                let said = say(place, &message);
                drop(line);
                Done::Said(said)
            }
            Err(_) => return,
        };
        // Without anyone who waits, there is no one to wake either.
        if sender.send(done).is_err() || waker.wake().is_err() {
            return;
        }
    }
}

fn say(place: &Place, message: &Value) -> Result<(), String> {
    let mut connection = Connection::open(place.address)?;
    connection.post("/aaep/v1/replies", "application/json", &message.to_string()).map(drop)
}
