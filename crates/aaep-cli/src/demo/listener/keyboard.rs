//! What a person types, line by line.
//!
//! On a terminal every line is taken when it is typed, so that what was typed before a question is not
//! taken for its answer. From a pipe a line is taken when one is needed.

use std::io::{self, BufRead, IsTerminal, Read};
use std::sync::mpsc::{self, Sender};
use std::thread;

use super::Heard;

/// The longest line that is taken.
const MAX_LINE_BYTES: u64 = 4096;

/// The keyboard, or a pipe in its place.
#[derive(Debug)]
pub(super) struct Keyboard {
    wishes: Option<Sender<()>>,
}

impl Keyboard {
    pub(super) fn new(heard: Sender<Heard>) -> Self {
        if io::stdin().is_terminal() {
            thread::spawn(move || while pass_on_a_line(&heard) {});
            return Keyboard { wishes: None };
        }
        let (wishes, needs) = mpsc::channel();
        thread::spawn(move || while needs.recv().is_ok() && pass_on_a_line(&heard) {});
        Keyboard { wishes: Some(wishes) }
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
    let mut line = Vec::new();
    let mut input = io::stdin().lock().take(MAX_LINE_BYTES);
    match input.read_until(b'\n', &mut line) {
        Ok(count) if count > 0 => {
            heard.send(Heard::Typed(String::from_utf8_lossy(&line).into_owned())).is_ok()
        }
        _ => {
            let _ = heard.send(Heard::KeyboardGone);
            false
        }
    }
}
