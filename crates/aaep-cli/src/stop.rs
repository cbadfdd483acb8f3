//! Requests to stop the program: Control-C, the system, or the end of the program that reads its output.

use std::io::{self, Write};

use tokio::sync::Notify;

/// Notified when the program that read our output is gone and nothing else reaches anyone.
static READER_IS_GONE: Notify = Notify::const_new();

/// Output that is the program's only purpose: when its reader is gone, the program stops.
pub(crate) struct StopsWithReader<W>(pub(crate) W);

impl<W: Write> Write for StopsWithReader<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).inspect_err(stop_if_reader_is_gone)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().inspect_err(stop_if_reader_is_gone)
    }
}

fn stop_if_reader_is_gone(error: &io::Error) {
    if error.kind() == io::ErrorKind::BrokenPipe {
        READER_IS_GONE.notify_one();
    }
}

/// The signals that ask a program to stop.
#[cfg(unix)]
pub(crate) struct StopSignals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    /// Only on request: a program under `nohup` continues when its terminal is gone.
    hangup: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl StopSignals {
    /// From here on, the signals no longer end the program by themselves. Needs a runtime.
    pub(crate) fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(StopSignals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: None,
        })
    }

    /// Also stops when the terminal is closed.
    pub(crate) fn or_hung_up(mut self) -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        self.hangup = Some(signal(SignalKind::hangup())?);
        Ok(self)
    }

    /// Waits until the program is asked to stop.
    pub(crate) async fn wait(self) {
        let StopSignals { mut interrupt, terminate, hangup } = self;
        tokio::select! {
            _ = interrupt.recv() => {}
            () = ended(terminate, hangup) => {}
        }
    }

    /// Waits until the program is asked to stop by something other than Control-C.
    pub(crate) async fn wait_without_interrupt(self) {
        ended(self.terminate, self.hangup).await;
    }
}

#[cfg(unix)]
async fn ended(
    mut terminate: tokio::signal::unix::Signal,
    mut hangup: Option<tokio::signal::unix::Signal>,
) {
    let hung_up = async {
        match &mut hangup {
            Some(hangup) => hangup.recv().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = hung_up => {}
        () = READER_IS_GONE.notified() => {}
    }
}

/// From here on, a file that may not grow any more (`ulimit -f`) is an error of its writer and does not end the program.
/// Needs a runtime.
#[cfg(unix)]
pub(crate) fn outlive_file_limits() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    // The handler stays when this is dropped.
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).map(drop)
}

/// Other systems report such a file without a signal.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "as on other systems")]
pub(crate) fn outlive_file_limits() -> std::io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
pub(crate) struct StopSignals;

#[cfg(not(unix))]
impl StopSignals {
    #[expect(clippy::unnecessary_wraps, reason = "as on other systems")]
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(StopSignals)
    }

    #[expect(clippy::unnecessary_wraps, reason = "as on other systems")]
    pub(crate) fn or_hung_up(self) -> std::io::Result<Self> {
        Ok(self)
    }

    pub(crate) async fn wait_without_interrupt(self) {
        READER_IS_GONE.notified().await;
    }

    pub(crate) async fn wait(self) {
        // If Control-C cannot be watched, the system ends the program in its own way.
        let interrupted = async {
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = interrupted => {}
            () = READER_IS_GONE.notified() => {}
        }
    }
}
