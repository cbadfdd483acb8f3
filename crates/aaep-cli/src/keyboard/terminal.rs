//! Reads standard input byte by byte, with the moment at which each byte can have been typed.
//!
//! On a terminal, this turns off line mode and echo, because only then a key press is reported at once, and echoes
//! the keys itself. Signals stay with the terminal, so Control-C and Control-Z work as usual. While the terminal
//! cannot be taken, for example in the background, it hides lines until Enter. Those lines are dated from the end of
//! the line before, and the program keeps trying to take the terminal.

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

use super::editor::LineEditor;
use super::typing_clock::{FoundBytes, TypingClock};
use super::{TypedLine, pass_on};

/// How long to wait after standard input could not be polled.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// How often to try to take a terminal that could not be taken.
const TRY_AGAIN: Duration = Duration::from_millis(200);

/// The terminal's mode before it was first taken, to be restored.
static BEFORE: OnceLock<Termios> = OnceLock::new();

/// Whether the terminal is taken.
static HOLD: Mutex<TerminalHold> = Mutex::new(TerminalHold::Wanted);

/// Dates what is typed. `None` until the first use.
static CLOCK: Mutex<Option<TypingClock>> = Mutex::new(None);

/// How often the terminal was taken or restored, or was about to be.
static SWITCHES: AtomicU64 = AtomicU64::new(0);

/// Wakes the reader when that happens.
static WAKE: OnceLock<PipeWriter> = OnceLock::new();

/// Whether this program has taken the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TerminalHold {
    /// It could not be taken yet.
    Wanted,
    Taken,
    /// It was restored, and must not be taken again until `take` is called.
    GivenBack,
}

/// How the terminal reports what is typed.
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

/// Locks the clock briefly: nothing waits while holding it.
fn with_clock<T>(act: impl FnOnce(&mut TypingClock) -> T) -> T {
    let mut clock = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
    act(clock.get_or_insert_with(|| TypingClock::new(Instant::now())))
}

/// Notes this moment: bytes that are unread now are dated before it, however late they are read.
pub(super) fn note_moment() -> Instant {
    with_clock(|clock| {
        let is_terminal = is_terminal();
        let mode = ReadingMode::now(is_terminal);
        let is_nothing_there = matches!(wait(Some(Duration::ZERO), None), Ok(TerminalWake::Idle));
        let is_told = mode.is_by_key && mode == ReadingMode::now(is_terminal);
        let moment = Instant::now();
        clock.note(moment, is_nothing_there && is_told);
        moment
    })
}

/// Whether the terminal reports every key, rather than only whole lines.
fn shows_keys() -> bool {
    tcgetattr(io::stdin()).is_ok_and(|it| !it.local_modes.contains(LocalModes::ICANON))
}

/// Whether standard input is a terminal.
pub(super) fn is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Takes the terminal if possible: turns line mode and echo off. A program in the background must not do this.
pub(super) fn take() {
    update_hold(&mut hold());
}

/// Takes the terminal if that has failed so far.
fn take_if_wanted() {
    let mut hold = hold();
    if *hold == TerminalHold::Wanted {
        update_hold(&mut hold);
    }
}

/// Wakes the reader after the terminal was taken or restored. Without a reader, nothing happens.
fn wake_reader() {
    let _ = WAKE.get().map(|mut it| it.write_all(&[0]));
}

fn update_hold(hold: &mut TerminalHold) {
    *hold = if try_take() { TerminalHold::Taken } else { TerminalHold::Wanted };
}

fn try_take() -> bool {
    // In the background, another program may have set its mode.
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
        // If this fails, there is nobody to tell.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        wake_reader();
    }
}

/// Where keys are echoed: the terminal itself, wherever standard output goes.
pub(super) fn echo() -> Option<File> {
    let own = || io::stdin().as_fd().try_clone_to_owned().ok().map(File::from);
    File::options().write(true).open("/dev/tty").ok().or_else(own)
}

/// Handles Control-Z: restores the terminal while the program is stopped, and takes it again when it continues.
pub(super) async fn stop_in_order() {
    let stop = signal(SignalKind::from_raw(Signal::TSTP.as_raw()));
    let go_on = signal(SignalKind::from_raw(Signal::CONT.as_raw()));
    let (Ok(mut stop), Ok(mut go_on)) = (stop, go_on) else { return };
    loop {
        tokio::select! {
            Some(()) = stop.recv() => {
                give_back();
                // If it cannot be stopped, it continues.
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

/// Why a wait ended.
enum TerminalWake {
    /// Something can be read, or the input has ended.
    Typed,
    /// The terminal was taken or restored.
    Switched,
    /// The time is over.
    Idle,
}

/// Reads until the input ends.
pub(super) fn read_keys(is_terminal: bool, mut echo: Option<File>, to: &Sender<TypedLine>) {
    let mut editor = LineEditor::new(is_terminal);
    let mut bytes = [0; 4096];
    let mut wake = woken_by();
    // Whether bytes that are there now may have been hidden before.
    let mut is_switched = true;
    loop {
        if is_terminal {
            take_if_wanted();
        }
        let before = with_clock(|it| *it);
        let (mode, looked) = (ReadingMode::now(is_terminal), Instant::now());
        let were_there = match wait(Some(Duration::ZERO), None) {
            Ok(TerminalWake::Typed) => true,
            Ok(_) => {
                if mode.is_by_key {
                    with_clock(|it| it.found_nothing(before, looked));
                    is_switched = false;
                }
                let patience = if mode.is_by_key { None } else { Some(TRY_AGAIN) };
                match wait(patience, wake.as_mut()) {
                    Ok(TerminalWake::Typed) => false,
                    Ok(TerminalWake::Switched) => {
                        is_switched = true;
                        continue;
                    }
                    Ok(TerminalWake::Idle) => continue,
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
            // While the terminal hides lines, it echoes them itself.
            if let Some(terminal) = echo.as_mut().filter(|_| is_by_key) {
                // A key that cannot be echoed still counts.
                let _ = terminal.write_all(shown);
            }
        };
        if !pass_on(&mut editor, came, bytes.get(..count).unwrap_or_default(), to, show) {
            return;
        }
    }
}

/// A pipe that becomes readable when the terminal is taken or restored. Without it, the reader notices that at the
/// next key.
fn woken_by() -> Option<PipeReader> {
    let (reader, writer) = io::pipe().ok()?;
    WAKE.set(writer).ok().map(|()| reader)
}

/// Waits until something is typed, or until the time is over.
fn wait(
    patience: Option<Duration>,
    wake: Option<&mut PipeReader>,
) -> rustix::io::Result<TerminalWake> {
    let patience = patience.and_then(|it| Timespec::try_from(it).ok());
    loop {
        let stdin = io::stdin();
        let typed = PollFd::new(&stdin, PollFlags::IN);
        let woken = wake.as_deref().map(|it| PollFd::new(it, PollFlags::IN));
        let mut inputs: Vec<PollFd<'_>> = woken.into_iter().chain([typed]).collect();
        match poll(&mut inputs, patience.as_ref()) {
            Ok(0) => return Ok(TerminalWake::Idle),
            Ok(_) => {
                let is_switched =
                    inputs.len() > 1 && inputs.first().is_some_and(|it| !it.revents().is_empty());
                drop(inputs);
                return Ok(match wake {
                    Some(wake) if is_switched => {
                        // One wake-up is enough for several switches.
                        let _ = wake.read(&mut [0; 64]);
                        TerminalWake::Switched
                    }
                    _ => TerminalWake::Typed,
                });
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => std::thread::sleep(LOOK_AGAIN),
            Err(error) => return Err(error),
        }
    }
}
