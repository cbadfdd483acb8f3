//! TLS while the hub runs: changed files are loaded again, completely or not at all.
//!
//! New connections get the newest valid configuration. Invalid files are logged and change nothing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::ServerConfig;

use crate::hub::Clock;
use crate::tls::{Tls, TlsError, TlsFiles, TlsStamp};

/// How often the files are checked.
pub(crate) const CHECK_EVERY: Duration = Duration::from_secs(2);

/// The certificates of a running hub.
#[derive(Debug)]
pub(crate) struct ServerCertificates {
    files: TlsFiles,
    state: Mutex<CertificateState>,
}

#[derive(Debug)]
struct CertificateState {
    config: Arc<ServerConfig>,
    /// The stamp of the files when they were last tried, successfully or not.
    tried: TlsStamp,
}

impl ServerCertificates {
    pub(crate) fn load(files: TlsFiles, clock: Clock) -> Result<Self, TlsError> {
        let tls = files.build(unix_s(clock))?;
        warn(&tls);
        Ok(ServerCertificates {
            files,
            state: Mutex::new(CertificateState { config: tls.config, tried: tls.stamp }),
        })
    }

    /// The configuration for new connections.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.state().config)
    }

    /// Checks the files and loads them if they changed. Returns whether new certificates are in use.
    pub(crate) fn reload_if_changed(&self, clock: Clock) -> bool {
        let stamp = self.files.stamp();
        if stamp == self.state().tried {
            return false;
        }
        match self.files.build(unix_s(clock)) {
            Ok(tls) => {
                warn(&tls);
                *self.state() = CertificateState { config: tls.config, tried: tls.stamp };
                tracing::info!("The certificate was reloaded.");
                true
            }
            Err(error) => {
                self.state().tried = stamp;
                tracing::error!(%error, "The new certificate cannot be used. The one before stays at work.");
                false
            }
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, CertificateState> {
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
