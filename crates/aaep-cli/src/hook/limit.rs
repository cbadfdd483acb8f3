//! A limit for the whole call: an agent that waits no longer for a hook would run the tool.

use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use aaep_bridge::HookAnswer;

/// How long before the agent gives up we do.
const MARGIN: Duration = Duration::from_secs(5);

/// Ends the program with a refusal when the time is over.
pub(super) struct TimeLimit {
    speaking: Arc<Mutex<()>>,
}

impl TimeLimit {
    /// Starts the time. If there is no thread for it, the agent's own limit is the only one.
    pub(super) fn begin(time: Duration, late: HookAnswer) -> Self {
        let speaking = Arc::new(Mutex::new(()));
        let held = Arc::clone(&speaking);
        let wait = move || {
            thread::sleep(time.saturating_sub(MARGIN));
            let _speaks = held.lock();
            let code =
                if super::tell_agent(&late).is_ok() && late.refusal.is_none() { 0 } else { 2 };
            process::exit(code);
        };
        let _ = thread::Builder::new().name("limit".to_owned()).spawn(wait);
        TimeLimit { speaking }
    }

    /// Nothing is said any more because of the time.
    pub(super) fn end(&self) -> MutexGuard<'_, ()> {
        self.speaking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
