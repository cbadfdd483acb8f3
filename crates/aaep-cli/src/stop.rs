//! Someone wants the program to stop: Control-C, or the system.

/// The ways in which a program is asked to stop.
#[cfg(unix)]
pub(crate) struct Stopped {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Stopped {
    /// From here on the program no longer ends by itself. Within a runtime only.
    pub(crate) fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Stopped {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits until someone wants the program to stop.
    pub(crate) async fn wait(mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
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

    pub(crate) async fn wait(self) {
        // Where Control-C cannot be watched, the program ends in the system's own way.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
