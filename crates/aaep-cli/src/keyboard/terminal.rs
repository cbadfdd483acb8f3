//! Standard input, byte by byte, with the moment at which each byte can have come.
//!
//! On a terminal, lines and echo are turned off, since only then a key is told when it is pressed; the echo is made
//! here. Signals stay with the terminal, so Control-C and Control-Z do what they always do.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpgrp, getpid, kill_process};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::Sender;

use super::editor::Editor;
use super::{TypedLine, pass_on};

/// How long it is waited before standard input is looked at again that could not be looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The terminal as it was, to be given back so.
static BEFORE: OnceLock<Termios> = OnceLock::new();

/// Takes the terminal, if standard input is one and is ours to take.
pub(super) fn take_first() -> bool {
    if !io::stdin().is_terminal() {
        return false;
    }
    let Ok(before) = tcgetattr(io::stdin()) else { return false };
    BEFORE.get_or_init(|| before);
    take()
}

/// Turns lines and echo off. A program in the background must not do so.
fn take() -> bool {
    let Some(before) = BEFORE.get().filter(|_| is_in_foreground()) else { return false };
    let mut keys = before.clone();
    keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    keys.special_codes[SpecialCodeIndex::VMIN] = 1;
    keys.special_codes[SpecialCodeIndex::VTIME] = 0;
    tcsetattr(io::stdin(), OptionalActions::Now, &keys).is_ok()
}

pub(super) fn give_back() {
    if let Some(before) = BEFORE.get().filter(|_| is_in_foreground()) {
        // There is nobody to tell if it fails.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
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
            Some(()) = go_on.recv() => { take(); }
            else => return,
        }
    }
}

fn is_in_foreground() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

/// Reads until nobody types any more.
pub(super) fn read_keys(mut editor: Editor, mut echo: Option<File>, to: &Sender<TypedLine>) {
    let mut bytes = [0; 4096];
    // All that was there at this moment has been read.
    let mut read_at = Instant::now();
    loop {
        // What is there already can have come at any time since then; what is waited for comes now.
        let came = match is_there(Some(Duration::ZERO)) {
            Ok(true) => read_at,
            Ok(false) => match is_there(None) {
                Ok(_) => Instant::now(),
                Err(_) => return,
            },
            Err(_) => return,
        };
        let before = Instant::now();
        let Ok(count @ 1..) =
            rustix::io::retry_on_intr(|| rustix::io::read(io::stdin(), &mut bytes))
        else {
            return;
        };
        if count < bytes.len() {
            read_at = before;
        }
        let show = |shown: &[u8]| {
            if let Some(terminal) = &mut echo {
                // A key that cannot be shown counts all the same.
                let _ = terminal.write_all(shown);
            }
        };
        if !pass_on(&mut editor, came, bytes.get(..count).unwrap_or_default(), to, show) {
            return;
        }
    }
}

/// Whether something can be read, or nothing ever will; waits as long as it may.
fn is_there(patience: Option<Duration>) -> rustix::io::Result<bool> {
    let patience = patience.map(|_| Timespec { tv_sec: 0, tv_nsec: 0 });
    loop {
        let stdin = io::stdin();
        let mut input = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut input, patience.as_ref()) {
            Ok(count) => return Ok(count > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => std::thread::sleep(LOOK_AGAIN),
            Err(error) => return Err(error),
        }
    }
}
