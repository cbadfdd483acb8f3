//! Progress of a long command, on standard error: a bar where lines may be drawn over again, a
//! plain line now and then where a person asked for that, nothing where nobody is looking.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::console::{may_redraw, say};

/// How long a command may take before it says anything.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a bar is drawn, and how often a plain line is said.
const REDRAW: Duration = Duration::from_millis(200);
const REPEAT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Bar,
    Lines,
    Silent,
}

/// Tells how far a command is.
#[derive(Debug)]
pub(crate) struct Progress {
    style: Style,
    started: Instant,
    said: Option<Instant>,
    /// How many bytes there are, if that is known.
    total: Option<u64>,
}

impl Progress {
    pub(crate) fn new(total: Option<u64>) -> Self {
        let style = match (io::stderr().is_terminal(), may_redraw()) {
            (true, true) => Style::Bar,
            (true, false) => Style::Lines,
            (false, _) => Style::Silent,
        };
        Progress { style, started: Instant::now(), said: None, total }
    }

    /// Tells how far it is, if it is time to.
    pub(crate) fn tick(&mut self, bytes: u64, messages: u64) {
        let wait = match (self.style, self.said) {
            (Style::Silent, _) => return,
            (_, None) => PATIENCE,
            (Style::Bar, Some(_)) => REDRAW,
            (Style::Lines, Some(_)) => REPEAT,
        };
        if self.said.unwrap_or(self.started).elapsed() < wait {
            return;
        }
        self.said = Some(Instant::now());
        let percent =
            self.total.filter(|total| *total > 0).map(|total| bytes.min(total) * 100 / total);
        let text = describe(percent, messages);
        if self.style == Style::Lines {
            say(&text);
        } else {
            // A bar that cannot be drawn is no reason to stop.
            let _ = write!(io::stderr(), "\r\x1b[2K{}{text}", bar(percent));
        }
    }

    /// Takes the bar away, so that what follows starts on a clean line.
    pub(crate) fn clear(&mut self) {
        if self.style == Style::Bar && self.said.is_some() {
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
