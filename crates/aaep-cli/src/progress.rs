//! Progress of a long command, on standard error: a bar if lines may be redrawn, an occasional plain line if the
//! person asked for plain output, nothing if it is not a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::console::{may_redraw, say};

/// How long a command may take before it reports progress.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a bar is redrawn, and how often a plain line is printed.
const REDRAW: Duration = Duration::from_millis(200);
const REPEAT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProgressStyle {
    Bar,
    Lines,
    Silent,
}

/// Reports the progress of a command.
#[derive(Debug)]
pub(crate) struct CommandProgress {
    style: ProgressStyle,
    started: Instant,
    said: Option<Instant>,
    /// The total number of bytes, if it is known.
    total: Option<u64>,
}

impl CommandProgress {
    pub(crate) fn new(total: Option<u64>) -> Self {
        let style = match (io::stderr().is_terminal(), may_redraw()) {
            (true, true) => ProgressStyle::Bar,
            (true, false) => ProgressStyle::Lines,
            (false, _) => ProgressStyle::Silent,
        };
        CommandProgress { style, started: Instant::now(), said: None, total }
    }

    /// Reports progress if it is time.
    pub(crate) fn tick(&mut self, bytes: u64, messages: u64) {
        let wait = match (self.style, self.said) {
            (ProgressStyle::Silent, _) => return,
            (_, None) => PATIENCE,
            (ProgressStyle::Bar, Some(_)) => REDRAW,
            (ProgressStyle::Lines, Some(_)) => REPEAT,
        };
        if self.said.unwrap_or(self.started).elapsed() < wait {
            return;
        }
        self.said = Some(Instant::now());
        let percent =
            self.total.filter(|total| *total > 0).map(|total| bytes.min(total) * 100 / total);
        let text = describe(percent, messages);
        if self.style == ProgressStyle::Lines {
            say(&text);
        } else {
            // A bar that cannot be drawn is not a reason to stop.
            let _ = write!(io::stderr(), "\r\x1b[2K{}{text}", bar(percent));
        }
    }

    /// Removes the bar, so that the next output starts on a clean line.
    pub(crate) fn clear(&mut self) {
        if self.style == ProgressStyle::Bar && self.said.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }
}

fn describe(percent: Option<u64>, messages: u64) -> String {
    let checked = crate::console::count(messages, "message");
    match percent {
        Some(percent) => format!("{percent} percent, {checked} checked"),
        None => format!("{checked} checked"),
    }
}

fn bar(percent: Option<u64>) -> String {
    let Some(percent) = percent else { return String::new() };
    let filled = usize::try_from(percent / 5).unwrap_or(0).min(20);
    format!("[{}{}] ", "#".repeat(filled), " ".repeat(20 - filled))
}
