//! What a person types, line by line, and when they began each line (ruling 33).
//!
//! A terminal normally hides a line until Enter, and with it the moment at which someone began to type. So keys are
//! read one by one here, and what the terminal would show is shown in the same way: nothing is drawn twice. From a
//! pipe a line begins when its first byte can have been there. Nothing here decides what a line means.

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

use editor::{Editor, Key};

/// How many lines may wait.
const MAX_WAITING_LINES: usize = 16;

/// Whether the terminal shows a line that was begun and not ended.
static IS_HALF_TYPED: AtomicBool = AtomicBool::new(false);

/// Writes on a line of its own where the person is typing, and notes the moment before.
#[derive(Debug)]
pub(crate) struct BesideTyping<W>(pub(crate) W);

impl<W: Write> Write for BesideTyping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // What was typed by now was typed by someone who had not read it.
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
    /// When they began it, or earlier where that cannot be known.
    pub(crate) begun: Instant,
}

/// The keyboard, or a pipe in its place.
#[derive(Debug)]
pub(crate) struct Keyboard {
    pub(crate) lines: Receiver<TypedLine>,
    mode: TerminalMode,
}

/// How the terminal is while keys are read. Dropping it gives the terminal back as it was.
#[derive(Debug)]
pub(crate) struct TerminalMode(());

impl Drop for TerminalMode {
    fn drop(&mut self) {
        give_terminal_back();
    }
}

/// Gives the terminal back as it was, if it was taken.
pub(crate) fn give_terminal_back() {
    #[cfg(unix)]
    terminal::give_back();
}

/// This moment, which decides what typed words can be meant for. No line that was begun before it is dated after it.
pub(crate) fn note_moment() -> Instant {
    #[cfg(unix)]
    let moment = terminal::note_moment();
    // Elsewhere every line is dated as early as it can have been begun.
    #[cfg(not(unix))]
    let moment = Instant::now();
    moment
}

impl Keyboard {
    /// Reads standard input from now on. When nobody types any more, there are no more lines. Within a runtime only.
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
        let read = move || read_lines(Editor::new(false), &sender);
        // Without the thread nothing can be typed; other ways to answer are left.
        let _ = thread::Builder::new().name("typed".to_owned()).spawn(read);
        Keyboard { lines, mode: TerminalMode(()) }
    }

    /// A keyboard that somebody else types on.
    pub(crate) fn of_lines(lines: Receiver<TypedLine>) -> Self {
        Keyboard { lines, mode: TerminalMode(()) }
    }

    /// Its lines alone, and what has to be kept as long as they are wanted.
    pub(crate) fn split(self) -> (Receiver<TypedLine>, TerminalMode) {
        (self.lines, self.mode)
    }
}

/// Where nobody tells when a key was pressed, a line can have begun as soon as the one before it had ended.
#[cfg(not(unix))]
fn read_lines(mut editor: Editor, to: &Sender<TypedLine>) {
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

/// Takes bytes that came at this moment; whether there may be more.
fn pass_on(
    editor: &mut Editor,
    at: Instant,
    bytes: &[u8],
    to: &Sender<TypedLine>,
    mut echo: impl FnMut(&[u8]),
) -> bool {
    for byte in bytes {
        let Key { shown, line, is_end } = editor.take(at, *byte);
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
