//! What a person types, line by line.
//!
//! On a terminal every line comes with the moment at which it was begun, so that what was begun before a question is
//! not taken for its answer. From a pipe a line is taken when one is needed: a script plays a person there, and the
//! photos are not real.

use std::io::{self, BufRead, IsTerminal, Read};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Instant;

use super::Heard;
use crate::keyboard::{self, TypedLine};

/// The longest line that is taken.
const MAX_LINE_BYTES: u64 = 4096;

/// The keyboard, or a pipe in its place.
#[derive(Debug)]
pub(super) struct Keyboard {
    /// From a pipe: that a line is needed.
    wishes: Option<Sender<()>>,
    _mode: Option<keyboard::TerminalMode>,
}

impl Keyboard {
    pub(super) fn new(heard: Sender<Heard>) -> Self {
        if io::stdin().is_terminal() {
            let (mut lines, mode) = keyboard::Keyboard::new().split();
            thread::spawn(move || {
                while let Some(line) = lines.blocking_recv() {
                    if heard.send(Heard::Typed(line)).is_err() {
                        return;
                    }
                }
                let _ = heard.send(Heard::KeyboardGone);
            });
            return Keyboard { wishes: None, _mode: Some(mode) };
        }
        let (wishes, needs) = mpsc::channel();
        thread::spawn(move || while needs.recv().is_ok() && pass_on_a_line(&heard) {});
        Keyboard { wishes: Some(wishes), _mode: None }
    }

    /// A line is needed now.
    pub(super) fn read_a_line(&mut self) {
        if let Some(wishes) = &self.wishes {
            // If the reader is gone, it has said so.
            let _ = wishes.send(());
        }
    }
}

/// Passes on one line; whether there may be more.
fn pass_on_a_line(heard: &Sender<Heard>) -> bool {
    let begun = Instant::now();
    let mut line = Vec::new();
    let mut input = io::stdin().lock().take(MAX_LINE_BYTES);
    match input.read_until(b'\n', &mut line) {
        Ok(count) if count > 0 => {
            let text = String::from_utf8_lossy(&line).into_owned();
            heard.send(Heard::Typed(TypedLine { text, begun })).is_ok()
        }
        _ => {
            let _ = heard.send(Heard::KeyboardGone);
            false
        }
    }
}
