//! Slow work runs in a few separate threads: connecting, and sending messages by POST.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::Value;

use super::subscriber::PolledLine;
use crate::serve::HttpConnection;
use crate::wire::{HubAddress, OpenedSubscription, ResumeFrom, SubscriberWire};

/// The number of threads that connect subscribers.
const OPENING: usize = 12;

/// The number of threads that send messages, so that these do not wait for others to connect.
const SAYING: usize = 4;

/// A job for one of the threads.
pub(super) enum SoakJob {
    /// Connects a subscriber.
    Open {
        subscriber: usize,
        wire: SubscriberWire,
        capabilities: Value,
        resume: Option<ResumeFrom>,
        has_small_buffer: bool,
    },
    /// Sends a message for a subscriber on a stream. If the subscriber leaves with it, its
    /// connection closes afterwards.
    Say { message: Value, line: Option<PolledLine> },
}

/// The result of a job.
pub(super) enum JobResult {
    Opened { subscriber: usize, opened: Result<OpenedSubscription, String> },
    Said(Result<(), String>),
}

/// The queues of the threads.
pub(super) struct JobQueue {
    opening: Sender<SoakJob>,
    saying: Sender<SoakJob>,
}

impl JobQueue {
    /// Starts the threads, which wake the receiver of the results.
    pub(super) fn start(place: &HubAddress, waker: mio::Waker) -> (Self, Receiver<JobResult>) {
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
        (JobQueue { opening: threads(OPENING), saying: threads(SAYING) }, done)
    }

    /// Hands in a job. Returns whether a thread will do it.
    pub(super) fn hand_in(&self, job: SoakJob) -> bool {
        match job {
            SoakJob::Open { .. } => self.opening.send(job).is_ok(),
            SoakJob::Say { .. } => self.saying.send(job).is_ok(),
        }
    }
}

fn work(
    place: &HubAddress,
    waiting: &Mutex<Receiver<SoakJob>>,
    sender: &Sender<JobResult>,
    waker: &mio::Waker,
) {
    loop {
        let job = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let done = match job {
            Ok(SoakJob::Open { subscriber, wire, capabilities, resume, has_small_buffer }) => {
                let opened = wire.open(place, &capabilities, resume.as_ref(), has_small_buffer);
                JobResult::Opened { subscriber, opened }
            }
            Ok(SoakJob::Say { message, line }) => {
                let said = say(place, &message);
                drop(line);
                JobResult::Said(said)
            }
            Err(_) => return,
        };
        // If the receiver is gone, there is nobody to wake.
        if sender.send(done).is_err() || waker.wake().is_err() {
            return;
        }
    }
}

fn say(place: &HubAddress, message: &Value) -> Result<(), String> {
    let mut connection = HttpConnection::open(place.address)?;
    connection.post("/aaep/v1/replies", "application/json", &message.to_string()).map(drop)
}
