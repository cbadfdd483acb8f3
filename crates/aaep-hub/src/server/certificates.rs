//! TLS while the hub runs: files that changed are loaded anew, whole or not at all.
//!
//! New connections get the newest configuration that was good. Files that are wrong are logged and change
//! nothing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::ServerConfig;

use crate::hub::Clock;
use crate::tls::{Tls, TlsError, TlsFiles, TlsStamp};

/// How often the files are looked at.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The certificates of a running hub.
#[derive(Debug)]
pub(crate) struct Certificates {
    files: TlsFiles,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    config: Arc<ServerConfig>,
    /// What the files were like when they were last tried, well or not.
    tried: TlsStamp,
}

impl Certificates {
    /// Loads the files.
    pub(crate) fn load(files: TlsFiles, clock: Clock) -> Result<Self, TlsError> {
        let tls = files.build(unix_s(clock))?;
        warn(&tls);
        Ok(Certificates {
            files,
            state: Mutex::new(State { config: tls.config, tried: tls.stamp }),
        })
    }

    /// What new connections are made with.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.state().config)
    }

    /// Looks at the files and loads them if they changed. Says whether new ones are at work.
    pub(crate) fn look(&self, clock: Clock) -> bool {
        let stamp = self.files.stamp();
        if stamp == self.state().tried {
            return false;
        }
        match self.files.build(unix_s(clock)) {
            Ok(tls) => {
                warn(&tls);
                *self.state() = State { config: tls.config, tried: tls.stamp };
                tracing::info!("The certificate was loaded anew.");
                true
            }
            Err(error) => {
                self.state().tried = stamp;
                tracing::error!(%error, "The new certificate cannot be used. The one before stays at work.");
                false
            }
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn warn(tls: &Tls) {
    for warning in &tls.warnings {
        tracing::warn!(%warning, "The certificate needs attention.");
    }
}

fn unix_s(clock: Clock) -> i64 {
    clock.now().unix_us / 1_000_000
}
