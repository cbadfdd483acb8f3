//! The current address of the hub, for all threads that speak to it.

use std::net::SocketAddr;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Holds the current address of the hub.
#[derive(Debug, Default)]
pub(crate) struct Board {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    address: Option<SocketAddr>,
    /// How often the hub was started.
    life: u64,
    /// Agents begin nothing new and finish their sessions.
    is_winding_down: bool,
    /// All threads end.
    is_over: bool,
}

impl Board {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn up(&self, address: SocketAddr) {
        let mut state = self.state();
        state.address = Some(address);
        state.life += 1;
        self.changed.notify_all();
    }

    pub(crate) fn down(&self) {
        self.state().address = None;
    }

    pub(crate) fn wind_down(&self) {
        self.state().is_winding_down = true;
    }

    pub(crate) fn is_winding_down(&self) -> bool {
        self.state().is_winding_down
    }

    pub(crate) fn end(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.state().is_over
    }

    /// The address and the life of the hub, once it runs. `None` when the test ends.
    pub(crate) fn address(&self) -> Option<(SocketAddr, u64)> {
        let mut state = self.state();
        loop {
            if state.is_over {
                return None;
            }
            if let Some(address) = state.address {
                return Some((address, state.life));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
