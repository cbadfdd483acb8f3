//! Standard input, byte by byte, with the moment at which each byte can have come.
//!
//! On a terminal, lines and echo are turned off, since only then a key is told when it is pressed; the echo is made
//! here. Signals stay with the terminal, so Control-C and Control-Z do what they always do. While the terminal cannot be
//! taken, as in the background, it hides lines until Enter: they are dated from the end of the line before, and it is
//! tried again to take it.

use std::fs::File;
use std::io::{self, IsTerminal as _, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpgrp, getpid, kill_process};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::Sender;

use super::editor::Editor;
use super::typing_clock::{FoundBytes, TypingClock};
use super::{TypedLine, pass_on};

/// How long it is waited before standard input is looked at again that could not be looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// How often it is tried to take a terminal that could not be taken.
const TRY_AGAIN: Duration = Duration::from_millis(200);

/// The terminal as it was when it was first taken, to be given back so.
static BEFORE: OnceLock<Termios> = OnceLock::new();

/// How it stands with the terminal.
static HOLD: Mutex<TerminalHold> = Mutex::new(TerminalHold::Wanted);

/// Dates what is typed. None as long as nobody reads it.
static CLOCK: Mutex<Option<TypingClock>> = Mutex::new(None);

/// How often the terminal was taken or given back, or was about to be.
static SWITCHES: AtomicU64 = AtomicU64::new(0);

/// Where the reader is woken when that happens.
static WAKE: OnceLock<PipeWriter> = OnceLock::new();

/// Whether the terminal is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TerminalHold {
    /// It could not be taken yet.
    Wanted,
    Taken,
    /// It was given back, and is not taken before someone says so.
    GivenBack,
}

/// How the terminal tells what is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReadingMode {
    /// Whether each byte can be read as soon as it is typed.
    is_by_key: bool,
    switches: u64,
}

impl ReadingMode {
    fn now(is_terminal: bool) -> Self {
        let switches = SWITCHES.load(Ordering::SeqCst);
        let is_by_key = !is_terminal || *hold() == TerminalHold::Taken && shows_keys();
        ReadingMode { is_by_key, switches }
    }
}

fn hold() -> MutexGuard<'static, TerminalHold> {
    HOLD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The clock, for a moment: nobody who has it waits.
fn with_clock<T>(act: impl FnOnce(&mut TypingClock) -> T) -> T {
    let mut clock = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
    act(clock.get_or_insert_with(|| TypingClock::new(Instant::now())))
}

/// Notes this moment: whatever lies unread is dated before it, however late it is read.
pub(super) fn note_moment() -> Instant {
    with_clock(|clock| {
        let is_terminal = is_terminal();
        let mode = ReadingMode::now(is_terminal);
        let is_nothing_there = matches!(wait(Some(Duration::ZERO), None), Ok(Woken::Idle));
        let is_told = mode.is_by_key && mode == ReadingMode::now(is_terminal);
        let moment = Instant::now();
        clock.note(moment, is_nothing_there && is_told);
        moment
    })
}

/// Whether the terminal tells every key, and not only whole lines.
fn shows_keys() -> bool {
    tcgetattr(io::stdin()).is_ok_and(|it| !it.local_modes.contains(LocalModes::ICANON))
}

/// Whether standard input is a terminal.
pub(super) fn is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Takes the terminal, if it is ours to take: turns lines and echo off. A program in the background must not do so.
pub(super) fn take() {
    take_while(&mut hold());
}

/// Takes the terminal if that has failed so far.
fn take_if_wanted() {
    let mut hold = hold();
    if *hold == TerminalHold::Wanted {
        take_while(&mut hold);
    }
}

/// The terminal has changed hands. Without a reader nobody needs to know.
fn wake_reader() {
    let _ = WAKE.get().map(|mut it| it.write_all(&[0]));
}

fn take_while(hold: &mut TerminalHold) {
    *hold = if has_taken() { TerminalHold::Taken } else { TerminalHold::Wanted };
}

fn has_taken() -> bool {
    // In the background it may be as another program set it.
    let Ok(found) = tcgetattr(io::stdin()) else { return false };
    if !is_in_foreground() {
        return false;
    }
    let mut keys = BEFORE.get_or_init(|| found).clone();
    keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    keys.special_codes[SpecialCodeIndex::VMIN] = 1;
    keys.special_codes[SpecialCodeIndex::VTIME] = 0;
    SWITCHES.fetch_add(1, Ordering::SeqCst);
    let is_set = tcsetattr(io::stdin(), OptionalActions::Now, &keys).is_ok();
    wake_reader();
    is_set
}

pub(super) fn give_back() {
    let mut hold = hold();
    *hold = TerminalHold::GivenBack;
    if let Some(before) = BEFORE.get().filter(|_| is_in_foreground()) {
        SWITCHES.fetch_add(1, Ordering::SeqCst);
        // There is nobody to tell if it fails.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        wake_reader();
    }
}

/// Where keys are shown: at the terminal itself, wherever standard output goes.
pub(super) fn echo() -> Option<File> {
    let own = || io::stdin().as_fd().try_clone_to_owned().ok().map(File::from);
    File::options().write(true).open("/dev/tty").ok().or_else(own)
}

/// Control-Z: the terminal is as it was while the program is stopped, and taken again when it goes on.
pub(super) async fn stop_in_order() {
    let stop = signal(SignalKind::from_raw(Signal::TSTP.as_raw()));
    let go_on = signal(SignalKind::from_raw(Signal::CONT.as_raw()));
    let (Ok(mut stop), Ok(mut go_on)) = (stop, go_on) else { return };
    loop {
        tokio::select! {
            Some(()) = stop.recv() => {
                give_back();
                // If it cannot be stopped, it goes on.
                let _ = kill_process(getpid(), Signal::STOP);
                take();
            }
            Some(()) = go_on.recv() => take(),
            else => return,
        }
    }
}

fn is_in_foreground() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

/// What was waited for.
enum Woken {
    /// Something can be read, or nothing ever will.
    Typed,
    /// The terminal changed hands.
    Switched,
    /// The time is over.
    Idle,
}

/// Reads until nobody types any more.
pub(super) fn read_keys(is_terminal: bool, mut echo: Option<File>, to: &Sender<TypedLine>) {
    let mut editor = Editor::new(is_terminal);
    let mut bytes = [0; 4096];
    let mut wake = woken_by();
    // Whether what is there now may have been hidden before.
    let mut is_switched = true;
    loop {
        if is_terminal {
            take_if_wanted();
        }
        let before = with_clock(|it| *it);
        let (mode, looked) = (ReadingMode::now(is_terminal), Instant::now());
        let were_there = match wait(Some(Duration::ZERO), None) {
            Ok(Woken::Typed) => true,
            Ok(_) => {
                if mode.is_by_key {
                    with_clock(|it| it.found_nothing(before, looked));
                    is_switched = false;
                }
                let patience = if mode.is_by_key { None } else { Some(TRY_AGAIN) };
                match wait(patience, wake.as_mut()) {
                    Ok(Woken::Typed) => false,
                    Ok(Woken::Switched) => {
                        is_switched = true;
                        continue;
                    }
                    Ok(Woken::Idle) => continue,
                    Err(_) => return,
                }
            }
            Err(_) => return,
        };
        let (before, at) = (with_clock(|it| *it), Instant::now());
        let Ok(count @ 1..) =
            rustix::io::retry_on_intr(|| rustix::io::read(io::stdin(), &mut bytes))
        else {
            return;
        };
        let mode_after = ReadingMode::now(is_terminal);
        let was_hidden = is_terminal && is_switched && were_there;
        let is_by_key = mode.is_by_key && mode == mode_after && !was_hidden;
        is_switched = mode != mode_after;
        let found = FoundBytes { at, were_there, is_by_key };
        let came = with_clock(|it| it.date(before, found, count < bytes.len()));
        editor.set_terminal(is_terminal && mode_after.is_by_key);
        let show = |shown: &[u8]| {
            // While the terminal hides lines, it shows what is typed by itself.
            if let Some(terminal) = echo.as_mut().filter(|_| is_by_key) {
                // A key that cannot be shown counts all the same.
                let _ = terminal.write_all(shown);
            }
        };
        if !pass_on(&mut editor, came, bytes.get(..count).unwrap_or_default(), to, show) {
            return;
        }
    }
}

/// What becomes readable when the terminal changes hands. Without it, that is noticed with the next key.
fn woken_by() -> Option<PipeReader> {
    let (reader, writer) = io::pipe().ok()?;
    WAKE.set(writer).ok().map(|()| reader)
}

/// Waits until something was typed, as long as it may.
fn wait(patience: Option<Duration>, wake: Option<&mut PipeReader>) -> rustix::io::Result<Woken> {
    let patience = patience.and_then(|it| Timespec::try_from(it).ok());
    loop {
        let stdin = io::stdin();
        let typed = PollFd::new(&stdin, PollFlags::IN);
        let woken = wake.as_deref().map(|it| PollFd::new(it, PollFlags::IN));
        let mut inputs: Vec<PollFd<'_>> = woken.into_iter().chain([typed]).collect();
        match poll(&mut inputs, patience.as_ref()) {
            Ok(0) => return Ok(Woken::Idle),
            Ok(_) => {
                let is_switched =
                    inputs.len() > 1 && inputs.first().is_some_and(|it| !it.revents().is_empty());
                drop(inputs);
                return Ok(match wake {
                    Some(wake) if is_switched => {
                        // Once or several times: it is all the same.
                        let _ = wake.read(&mut [0; 64]);
                        Woken::Switched
                    }
                    _ => Woken::Typed,
                });
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => std::thread::sleep(LOOK_AGAIN),
            Err(error) => return Err(error),
        }
    }
}
