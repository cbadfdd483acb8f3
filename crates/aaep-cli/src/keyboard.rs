//! Reads what a person types, line by line, with the moment at which they began each line (ruling 33).
//!
//! A terminal normally hides a line until Enter, and with it the moment at which the person began to type. So this
//! module reads single keys and echoes them as the terminal would, without drawing anything twice. A line from a pipe
//! begins when its first byte can have been there. Nothing here decides what a line means.

mod editor;
#[cfg(unix)]
mod terminal;
#[cfg(unix)]
mod typing_clock;

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use tokio::sync::mpsc::{self, Receiver, Sender};

use editor::{KeyEffect, LineEditor};

/// How many lines may be queued.
const MAX_WAITING_LINES: usize = 16;

/// Whether the terminal shows an unfinished line.
static IS_HALF_TYPED: AtomicBool = AtomicBool::new(false);

/// Writes on a new line if the person is typing, and notes the moment before.
#[derive(Debug)]
pub(crate) struct TypingAwareWriter<W>(pub(crate) W);

impl<W: Write> Write for TypingAwareWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Whatever was typed by now was typed before the person could read this.
        note_moment();
        if IS_HALF_TYPED.swap(false, Ordering::SeqCst) && !bytes.starts_with(b"\n") {
            self.0.write_all(b"\n")?;
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A line that a person typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypedLine {
    pub(crate) text: String,
    /// When they began it, or an earlier moment if that cannot be known.
    pub(crate) begun: Instant,
}

/// The keyboard, or a pipe that replaces it.
#[derive(Debug)]
pub(crate) struct KeyboardInput {
    pub(crate) lines: Receiver<TypedLine>,
    mode: TerminalMode,
}

/// The terminal's mode while keys are read. Dropping it restores the terminal.
#[derive(Debug)]
pub(crate) struct TerminalMode(());

impl Drop for TerminalMode {
    fn drop(&mut self) {
        give_terminal_back();
    }
}

/// Restores the terminal, if it was taken.
pub(crate) fn give_terminal_back() {
    #[cfg(unix)]
    terminal::give_back();
}

/// Notes this moment, which decides what typed words can refer to. No line begun before it is dated after it.
pub(crate) fn note_moment() -> Instant {
    #[cfg(unix)]
    let moment = terminal::note_moment();
    // On other systems, every line is dated as early as it can have been begun.
    #[cfg(not(unix))]
    let moment = Instant::now();
    moment
}

impl KeyboardInput {
    /// Reads standard input from now on. The lines end when standard input ends. Needs a runtime.
    pub(crate) fn new() -> Self {
        let (sender, lines) = mpsc::channel(MAX_WAITING_LINES);
        #[cfg(unix)]
        let read = {
            let is_terminal = terminal::is_terminal();
            let echo = if is_terminal { terminal::echo() } else { None };
            if is_terminal {
                terminal::take();
                tokio::spawn(terminal::stop_in_order());
            }
            move || terminal::read_keys(is_terminal, echo, &sender)
        };
        #[cfg(not(unix))]
        let read = move || read_lines(LineEditor::new(false), &sender);
        // Without the thread nothing can be typed, but other ways to answer remain.
        let _ = thread::Builder::new().name("typed".to_owned()).spawn(read);
        KeyboardInput { lines, mode: TerminalMode(()) }
    }

    /// A keyboard whose lines come from elsewhere in the program.
    pub(crate) fn of_lines(lines: Receiver<TypedLine>) -> Self {
        KeyboardInput { lines, mode: TerminalMode(()) }
    }

    /// The lines, and the mode that must be kept as long as they are read.
    pub(crate) fn split(self) -> (Receiver<TypedLine>, TerminalMode) {
        (self.lines, self.mode)
    }
}

/// Without the time of each key press, a line can have begun as soon as the line before it ended.
#[cfg(not(unix))]
fn read_lines(mut editor: LineEditor, to: &Sender<TypedLine>) {
    use std::io::Read as _;
    let mut before = Instant::now();
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = std::io::stdin().read(&mut bytes) {
        if !pass_on(&mut editor, before, bytes.get(..count).unwrap_or_default(), to, |_| {}) {
            return;
        }
        before = Instant::now();
    }
}

/// Takes bytes that arrived at this moment; returns whether more may follow.
fn pass_on(
    editor: &mut LineEditor,
    at: Instant,
    bytes: &[u8],
    to: &Sender<TypedLine>,
    mut echo: impl FnMut(&[u8]),
) -> bool {
    for byte in bytes {
        let KeyEffect { shown, line, is_end } = editor.take(at, *byte);
        echo(&shown);
        if !shown.is_empty() {
            IS_HALF_TYPED.store(editor.is_half_typed(), Ordering::SeqCst);
        }
        if is_end || line.is_some_and(|line| to.blocking_send(line).is_err()) {
            return false;
        }
    }
    true
}
