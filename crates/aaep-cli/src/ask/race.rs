//! What happens when someone stops the program while it waits: the question is withdrawn (§6.8).
//!
//! Either the outcome counts or the withdrawal, never both: whoever finishes the race first goes on,
//! and the other does nothing any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::Asked;
use crate::console::Failure;
use crate::stop::Stopped;

/// Who was first, the outcome or the wish to stop.
#[derive(Debug, Clone, Default)]
pub(super) struct Race {
    is_over: Arc<AtomicBool>,
}

impl Race {
    /// Ends the race for the outcome. If the wish to stop was first, this never returns: the program
    /// ends as soon as the question is withdrawn.
    pub(super) fn finish(&self) {
        while !self.is_first() {
            thread::park();
        }
    }

    fn is_first(&self) -> bool {
        !self.is_over.swap(true, Ordering::SeqCst)
    }
}

/// Withdraws the question on Control-C, or when the system ends the program.
pub(super) fn withdraw_when_stopped(asked: &Arc<Asked>) -> Result<Race, Failure> {
    let race = Race::default();
    let (theirs, asked) = (race.clone(), Arc::clone(asked));
    let failure = |error: std::io::Error| {
        let what = format!("cannot watch for Control-C: {}", crate::console::reason(&error));
        Failure::new(what, "Ask again.")
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failure)?;
    // The signals are ours from here on, before anything is asked.
    let stopped = {
        let _inside = runtime.enter();
        Stopped::new().map_err(failure)?
    };
    thread::Builder::new()
        .name("stop".to_owned())
        .spawn(move || {
            runtime.block_on(stopped.wait());
            if theirs.is_first() {
                asked.withdraw();
                std::process::exit(1);
            }
        })
        .map_err(failure)?;
    Ok(race)
}
