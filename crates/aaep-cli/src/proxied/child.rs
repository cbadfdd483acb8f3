//! The program that was started, from its start to its exit code.

use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::console::{self, CommandFailure};
use crate::stop::StopSignals;

/// How long a program has to end by itself when we are asked to stop.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// Starts a program whose input and output are ours. `what` says what it is to the person.
pub(crate) fn start(what: &str, command: &mut Command) -> Result<Child, CommandFailure> {
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    started.map_err(|error| {
        let name = console::name_of(Path::new(command.get_program()));
        let failure = format!("cannot start the {what} {name}: {}", console::reason(&error));
        CommandFailure::new(failure, "Check the command after the two dashes.")
    })
}

/// Learns when this program is asked to stop. The other one is then ended in order.
pub(crate) fn watch_signals() -> Result<Receiver<()>, CommandFailure> {
    let failure = |error: std::io::Error| {
        let what = format!("cannot watch for signals: {}", console::reason(&error));
        CommandFailure::new(what, "Start it again.")
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failure)?;
    let signals = {
        let _inside = runtime.enter();
        StopSignals::new().and_then(StopSignals::or_hung_up).map_err(failure)?
    };
    let (stopped, receiver) = mpsc::channel();
    thread::spawn(move || {
        runtime.block_on(signals.wait());
        let _ = stopped.send(());
    });
    Ok(receiver)
}

/// Waits until the program has ended. `None` if the system does not say how. `close` closes its input when we are asked
/// to stop.
pub(crate) fn wait(
    child: &mut Child,
    close: impl Fn(),
    stopped: &Receiver<()>,
) -> Option<ExitStatus> {
    const PAUSE: Duration = Duration::from_millis(20);
    let mut patience: Option<Duration> = None;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) => {}
            Err(_) => return None,
        }
        match stopped.recv_timeout(PAUSE) {
            Ok(()) => {
                close();
                patience = Some(END_TIMEOUT);
            }
            Err(RecvTimeoutError::Disconnected) => thread::sleep(PAUSE),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Some(left) = &mut patience {
            *left = left.saturating_sub(PAUSE);
            if left.is_zero() {
                let _ = child.kill();
            }
        }
    }
}

/// How the program ended, for people.
pub(crate) fn end_words(what: &str, status: Option<ExitStatus>) -> String {
    let ended = match status {
        Some(status) if status.success() => "was closed in the middle of its work".to_owned(),
        Some(status) => match status.code() {
            Some(code) => format!("ended in the middle of its work, with exit code {code}"),
            None => "was stopped in the middle of its work".to_owned(),
        },
        None => "ended in the middle of its work".to_owned(),
    };
    format!("The {what} {ended}.")
}

/// The exit code of the program, as a shell says it.
pub(crate) fn exit_code(status: Option<ExitStatus>) -> ExitCode {
    let Some(status) = status else { return ExitCode::from(console::COULD_NOT) };
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    let code = status.code().or(signal.map(|it| 128 + it)).unwrap_or(1);
    ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1))
}
