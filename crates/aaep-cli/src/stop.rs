//! Someone wants the program to stop: Control-C, the system, or the end of the program that reads its output.

use std::io::{self, Write};

use tokio::sync::Notify;

/// The program that read our output is gone, and nothing else is told to anyone.
static READER_IS_GONE: Notify = Notify::const_new();

/// Output without which the program has nothing left to do: when its reader is gone, the program stops.
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

/// The ways in which a program is asked to stop.
#[cfg(unix)]
pub(crate) struct Stopped {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    /// Only where it is asked for: what runs under `nohup` goes on when its terminal is gone.
    hangup: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Stopped {
    /// From here on the program no longer ends by itself. Within a runtime only.
    pub(crate) fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Stopped {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: None,
        })
    }

    /// Closing the terminal is a way to stop it, too.
    pub(crate) fn or_hung_up(mut self) -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        self.hangup = Some(signal(SignalKind::hangup())?);
        Ok(self)
    }

    /// Waits until someone wants the program to stop.
    pub(crate) async fn wait(mut self) {
        let hung_up = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hung_up => {}
            () = READER_IS_GONE.notified() => {}
        }
    }
}

#[cfg(not(unix))]
pub(crate) struct Stopped;

#[cfg(not(unix))]
impl Stopped {
    #[expect(clippy::unnecessary_wraps, reason = "as on other systems")]
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Stopped)
    }

    #[expect(clippy::unnecessary_wraps, reason = "as on other systems")]
    pub(crate) fn or_hung_up(self) -> std::io::Result<Self> {
        Ok(self)
    }

    pub(crate) async fn wait(self) {
        // Where Control-C cannot be watched, the program ends in the system's own way.
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
