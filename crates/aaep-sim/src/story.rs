//! The story of a world in plain sentences; only the last lines are kept.

use std::collections::VecDeque;
use std::fmt;

/// The most lines that are kept.
const MAX_LINES: usize = 20_000;

/// The story of one run.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct WorldStory {
    lines: VecDeque<String>,
    left_out: u64,
}

impl WorldStory {
    /// Adds a line with its time.
    pub fn tell(&mut self, now_us: u64, what: &str) {
        if self.lines.len() == MAX_LINES {
            self.lines.pop_front();
            self.left_out += 1;
        }
        let (seconds, rest) = (now_us / 1_000_000, now_us % 1_000_000);
        self.lines.push_back(format!("{seconds}.{rest:06} s: {what}"));
    }

    /// The lines that are kept, oldest first.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }
}

impl fmt::Display for WorldStory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.left_out > 0 {
            writeln!(f, "{} earlier lines are left out.", self.left_out)?;
        }
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
