//! Lines for a file or standard output, written in a thread of their own, each whole or not at all.
//!
//! Whoever reads the output slowly slows the recording, and does not keep a signal from being noticed.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::console::{Failure, reason};

/// How many lines may wait to be written.
const MAX_WAITING_LINES: usize = 64;

/// How long the last lines may take to be written.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the lines go.
pub(super) struct Lines {
    sender: mpsc::Sender<String>,
    ended: oneshot::Receiver<Result<(), Failure>>,
    failure: Option<Failure>,
}

enum Place {
    File(File),
    Output,
}

impl Lines {
    /// Begins to write, into a new file or to standard output.
    pub(super) fn start(path: Option<PathBuf>) -> Result<Self, Failure> {
        let (place, path) = match path {
            Some(path) => {
                let file = OpenOptions::new().write(true).create_new(true).open(&path);
                let next =
                    "Choose a name that is not taken yet, in a folder that you can write to.";
                let file = file.map_err(|error| Failure::of_file("make", &path, &error, next))?;
                (Place::File(file), Some(path))
            }
            None => (Place::Output, None),
        };
        let (sender, mut lines) = mpsc::channel::<String>(MAX_WAITING_LINES);
        let (end, ended) = oneshot::channel();
        std::thread::spawn(move || {
            let mut written = Ok(());
            let (mut place, mut length) = (place, 0_u64);
            while written.is_ok()
                && let Some(line) = lines.blocking_recv()
            {
                written = place.write(&line, &mut length);
            }
            let _ = end.send(written.map_err(|error| failure(path, &error)));
        });
        Ok(Lines { sender, ended, failure: None })
    }

    /// Writes a line, waiting for room; whether that is still possible.
    pub(super) async fn write(&mut self, line: String) -> bool {
        self.sender.send(line).await.is_ok()
    }

    /// Waits until nothing can be written any more.
    pub(super) async fn failed(&mut self) {
        let stopped = || Failure::new("the events can no longer be written", "Try again.");
        let ended = (&mut self.ended).await.unwrap_or_else(|_| Err(stopped()));
        self.failure = Some(ended.err().unwrap_or_else(stopped));
    }

    /// Waits for the last lines.
    pub(super) async fn finish(self) -> Result<(), Failure> {
        let Lines { sender, ended, failure } = self;
        drop(sender);
        if let Some(failure) = failure {
            return Err(failure);
        }
        match timeout(PATIENCE, ended).await {
            Ok(ended) => ended.unwrap_or(Ok(())),
            Err(_) => Err(Failure::new(
                "nobody takes the last events",
                "See why the program that reads them does not go on.",
            )),
        }
    }
}

fn failure(path: Option<PathBuf>, error: &io::Error) -> Failure {
    if let Some(path) = path {
        let next = "The lines before are whole. Make room, and record into another file.";
        return Failure::of_file("write", &path, error, next);
    }
    let what = format!("cannot write the events: {}", reason(error));
    Failure::new(what, "Send the output somewhere with room.").of_writing(error.kind())
}

impl Place {
    fn write(&mut self, line: &str, length: &mut u64) -> io::Result<()> {
        match self {
            Place::File(file) => {
                if let Err(error) = file.write_all(line.as_bytes()) {
                    // No half line stays behind.
                    let _ = file.set_len(*length);
                    return Err(error);
                }
                *length += line.len() as u64;
                Ok(())
            }
            Place::Output => {
                let mut output = io::stdout().lock();
                output.write_all(line.as_bytes()).and_then(|()| output.flush())
            }
        }
    }
}
