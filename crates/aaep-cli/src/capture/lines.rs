//! Writes lines to a file or standard output, in a thread of its own, each completely or not at all.
//!
//! A slow reader of the output slows the recording down, but does not delay the handling of signals.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::console::{CommandFailure, reason};

/// How many lines may be queued.
const MAX_WAITING_LINES: usize = 64;

/// How long writing the last lines may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The queue of lines to write.
pub(super) struct CaptureLines {
    sender: mpsc::Sender<String>,
    ended: oneshot::Receiver<Result<(), CommandFailure>>,
    failure: Option<CommandFailure>,
}

enum CaptureTarget {
    File(File),
    Output,
}

impl CaptureLines {
    /// Starts writing, into a new file or to standard output.
    pub(super) fn start(path: Option<PathBuf>) -> Result<Self, CommandFailure> {
        let (place, path) = match path {
            Some(path) => {
                let file = OpenOptions::new().write(true).create_new(true).open(&path);
                let next =
                    "Choose a name that is not taken yet, in a folder that you can write to.";
                let file =
                    file.map_err(|error| CommandFailure::of_file("make", &path, &error, next))?;
                (CaptureTarget::File(file), Some(path))
            }
            None => (CaptureTarget::Output, None),
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
        Ok(CaptureLines { sender, ended, failure: None })
    }

    /// Writes a line, waiting for room in the queue; returns whether writing is still possible.
    pub(super) async fn write(&mut self, line: String) -> bool {
        self.sender.send(line).await.is_ok()
    }

    /// Waits until nothing can be written any more.
    pub(super) async fn failed(&mut self) {
        let stopped = || CommandFailure::new("the events can no longer be written", "Try again.");
        let ended = (&mut self.ended).await.unwrap_or_else(|_| Err(stopped()));
        self.failure = Some(ended.err().unwrap_or_else(stopped));
    }

    /// Waits until the last lines are written.
    pub(super) async fn finish(self) -> Result<(), CommandFailure> {
        let CaptureLines { sender, ended, failure } = self;
        drop(sender);
        if let Some(failure) = failure {
            return Err(failure);
        }
        match timeout(PATIENCE, ended).await {
            Ok(ended) => ended.unwrap_or(Ok(())),
            Err(_) => Err(CommandFailure::new(
                "nobody takes the last events",
                "See why the program that reads them does not go on.",
            )),
        }
    }
}

fn failure(path: Option<PathBuf>, error: &io::Error) -> CommandFailure {
    if let Some(path) = path {
        let next = "The lines before are whole. Make room, and record into another file.";
        return CommandFailure::of_file("write", &path, error, next);
    }
    let what = format!("cannot write the events: {}", reason(error));
    CommandFailure::new(what, "Send the output somewhere with room.").of_writing(error.kind())
}

impl CaptureTarget {
    fn write(&mut self, line: &str, length: &mut u64) -> io::Result<()> {
        match self {
            CaptureTarget::File(file) => {
                if let Err(error) = file.write_all(line.as_bytes()) {
                    // Leave no partial line behind.
                    let _ = file.set_len(*length);
                    return Err(error);
                }
                *length += line.len() as u64;
                Ok(())
            }
            CaptureTarget::Output => {
                let mut output = io::stdout().lock();
                output.write_all(line.as_bytes()).and_then(|()| output.flush())
            }
        }
    }
}
