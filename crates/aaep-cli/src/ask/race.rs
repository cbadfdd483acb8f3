//! Withdraws the ask when someone stops the program while it waits (§6.8).
//!
//! Either the outcome counts or the withdrawal, never both: the first one to finish the race continues, and the other
//! does nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::SentAsk;
use crate::console::{CommandFailure, reason};
use crate::english::{asking, failures};
use crate::stop::StopSignals;

/// A race between the outcome and a signal to stop.
#[derive(Debug, Clone, Default)]
pub(super) struct StopRace {
    is_over: Arc<AtomicBool>,
}

impl StopRace {
    /// Finishes the race for the outcome. If a signal came first, this never returns: the program ends as soon as the
    /// ask is withdrawn.
    pub(super) fn finish(&self) {
        while !self.claim() {
            thread::park();
        }
    }

    fn claim(&self) -> bool {
        !self.is_over.swap(true, Ordering::SeqCst)
    }
}

/// Withdraws the ask on Control-C, or when the system terminates the program.
pub(super) fn withdraw_when_stopped(asked: &Arc<SentAsk>) -> Result<StopRace, CommandFailure> {
    let race = StopRace::default();
    let (theirs, asked) = (race.clone(), Arc::clone(asked));
    let failure = |error: std::io::Error| {
        CommandFailure::new(failures::no_control_c(&reason(&error)), asking::ASK_AGAIN)
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failure)?;
    // Take over the signals before anything is asked.
    let stopped = {
        let _inside = runtime.enter();
        StopSignals::new().map_err(failure)?
    };
    thread::Builder::new()
        .name("stop".to_owned())
        .spawn(move || {
            runtime.block_on(stopped.wait());
            if theirs.claim() {
                asked.withdraw();
                std::process::exit(1);
            }
        })
        .map_err(failure)?;
    Ok(race)
}
