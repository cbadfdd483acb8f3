//! The thread that keeps the board and shows it through `AccessKit`.
//!
//! `AccessKit` has its own thread, which reports when the accessibility bus is turned on and off and which button was
//! pressed. It holds a lock meanwhile that we need too, so nothing that it calls here ever blocks.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use accesskit::{
    Action, ActionHandler, ActionRequest, ActivationHandler, DeactivationHandler, TreeUpdate,
};
use accesskit_unix::Adapter;

use super::board::AccessibleBoard;
use super::ears::AccessibilityBus;
use super::tree::tree;
use super::{NAME, Settings};
use crate::device::{Device, Reporter, TimedReport};
use crate::english::devices;
use crate::utterance::{DeviceReport, Order};

/// The most inputs that may wait. Beyond that, orders are not taken and buttons are ignored.
const MAX_WAITING_INPUTS: usize = 64;

/// How often to check for a screen reader while there is none.
const LOOK_AGAIN: Duration = Duration::from_secs(3);

enum DesktopInput {
    Order(Order),
    NoMoreOrders,
    Pressed(u64),
    /// [`AccessKitSigns`] has changed.
    Look,
}

/// What `AccessKit` reports about the accessibility bus.
#[derive(Debug, Default)]
struct AccessKitSigns {
    is_active: AtomicBool,
    is_gone: AtomicBool,
}

/// The callbacks of `AccessKit`. The handler for activation is also dropped when the thread of `AccessKit` gives up.
struct AccessKitHandler {
    signs: Arc<AccessKitSigns>,
    to: SyncSender<DesktopInput>,
    tells_end: bool,
}

impl AccessKitHandler {
    fn tell(&self, input: DesktopInput) {
        // If the queue is full, the loop looks soon anyway, and a person presses an ignored button again.
        let _ = self.to.try_send(input);
    }
}

impl ActivationHandler for AccessKitHandler {
    fn request_initial_tree(&mut self) -> Option<TreeUpdate> {
        self.signs.is_active.store(true, Ordering::SeqCst);
        self.tell(DesktopInput::Look);
        None
    }
}

impl DeactivationHandler for AccessKitHandler {
    fn deactivate_accessibility(&mut self) {
        self.signs.is_active.store(false, Ordering::SeqCst);
        self.tell(DesktopInput::Look);
    }
}

impl ActionHandler for AccessKitHandler {
    fn do_action(&mut self, request: ActionRequest) {
        if request.action == Action::Click {
            self.tell(DesktopInput::Pressed(request.target_node.0));
        }
    }
}

impl Drop for AccessKitHandler {
    fn drop(&mut self) {
        if self.tells_end {
            self.signs.is_gone.store(true, Ordering::SeqCst);
            self.tell(DesktopInput::Look);
        }
    }
}

pub(super) fn start(settings: Settings, reports: Sender<TimedReport>) -> io::Result<Device> {
    let (device, orders) = Device::new(NAME);
    let (sender, inputs) = mpsc::sync_channel(MAX_WAITING_INPUTS);
    let from_orders = sender.clone();
    thread::Builder::new()
        .name(format!("{NAME} orders"))
        .spawn(move || pass_orders_on(orders, &from_orders))?;
    let reporter = Reporter::new(NAME, reports);
    thread::Builder::new().name(NAME.to_owned()).spawn(move || {
        DesktopLoop {
            settings,
            reporter,
            sender,
            signs: Arc::default(),
            bus: AccessibilityBus::new(settings.patience),
            adapter: None,
            board: AccessibleBoard::new(settings),
            listening: ListeningState::Deaf(Instant::now()),
            is_in_trouble: false,
        }
        .run(&inputs);
    })?;
    Ok(device)
}

fn pass_orders_on(orders: Receiver<Order>, to: &SyncSender<DesktopInput>) {
    for order in orders {
        if to.send(DesktopInput::Order(order)).is_err() {
            return;
        }
    }
    // The loop may have ended already.
    let _ = to.send(DesktopInput::NoMoreOrders);
}

/// Whether a screen reader listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListeningState {
    /// None does; the next check is at this time.
    Deaf(Instant),
    /// One does; `AccessKit` must be ready by this time.
    Waking(Instant),
    /// One does, and gets announcements.
    Works,
    /// `AccessKit` has given up for good.
    Over,
}

struct DesktopLoop {
    settings: Settings,
    reporter: Reporter,
    sender: SyncSender<DesktopInput>,
    signs: Arc<AccessKitSigns>,
    bus: AccessibilityBus,
    adapter: Option<Adapter>,
    board: AccessibleBoard,
    listening: ListeningState,
    is_in_trouble: bool,
}

impl DesktopLoop {
    fn run(mut self, inputs: &Receiver<DesktopInput>) {
        let mut reports = Vec::new();
        loop {
            self.go_on(&mut reports);
            if reports.drain(..).any(|report| !self.reporter.report(report)) {
                return;
            }
            let input = match self.due(Instant::now()) {
                None => inputs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => inputs.recv_timeout(due.saturating_duration_since(Instant::now())),
            };
            match input {
                Ok(DesktopInput::NoMoreOrders) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(DesktopInput::Order(order)) => {
                    self.board.take_order(Instant::now(), order, &mut reports);
                }
                Ok(DesktopInput::Pressed(node)) => {
                    self.board.pressed(Instant::now(), node, &mut reports);
                }
                Ok(DesktopInput::Look) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn due(&self, now: Instant) -> Option<Instant> {
        match self.listening {
            ListeningState::Deaf(until) | ListeningState::Waking(until) => Some(until),
            ListeningState::Works => self.board.due(now),
            ListeningState::Over => None,
        }
    }

    /// Does everything that is due now.
    fn go_on(&mut self, reports: &mut Vec<DeviceReport>) {
        let now = Instant::now();
        if self.signs.is_gone.load(Ordering::SeqCst) && self.listening != ListeningState::Over {
            self.listening = ListeningState::Over;
            self.trouble(devices::desktop::BUS_HAS_ENDED.to_owned(), reports);
        }
        self.check_listening(now, reports);
        match self.listening {
            ListeningState::Works => {}
            ListeningState::Waking(_) => return,
            ListeningState::Deaf(_) | ListeningState::Over => return self.board.lost(reports),
        }
        if self.board.has_to_announce(now) {
            match self.bus.check_listener() {
                Ok(()) => self.board.announce(Instant::now(), reports),
                Err(why) => return self.lose(why, reports),
            }
        }
        self.board.time_passed(now, reports);
        if self.board.take_change() {
            self.show();
        }
    }

    /// Checks whether a screen reader listens, if that is due.
    fn check_listening(&mut self, now: Instant, reports: &mut Vec<DeviceReport>) {
        let is_active = self.signs.is_active.load(Ordering::SeqCst);
        match self.listening {
            ListeningState::Deaf(until) if until <= now => match self.bus.check_listener() {
                Ok(()) => {
                    self.wake();
                    self.listening =
                        ListeningState::Waking(Instant::now() + self.settings.patience);
                    self.check_listening(now, reports);
                }
                Err(why) => self.lose(why, reports),
            },
            ListeningState::Waking(_) if is_active => {
                self.listening = ListeningState::Works;
                self.is_in_trouble = false;
                self.show();
                reports.push(DeviceReport::Works);
            }
            ListeningState::Waking(until) if until <= now => {
                self.lose(devices::desktop::NOT_TAKEN_IN.to_owned(), reports);
            }
            ListeningState::Works if !is_active => {
                self.lose(devices::desktop::TURNED_OFF.to_owned(), reports);
            }
            _ => {}
        }
    }

    /// Connects `AccessKit` to the accessibility bus. This is done only now, because it connects once and does not
    /// retry.
    fn wake(&mut self) {
        if self.adapter.is_some() {
            return;
        }
        let handler = |tells_end| AccessKitHandler {
            signs: Arc::clone(&self.signs),
            to: self.sender.clone(),
            tells_end,
        };
        self.adapter = Some(Adapter::new(handler(true), handler(false), handler(false)));
    }

    /// Shows the whole board. The screen reader announces the changes.
    fn show(&mut self) {
        if let Some(adapter) = &mut self.adapter {
            adapter.update_if_active(|| tree(&self.board));
        }
    }

    fn lose(&mut self, why: String, reports: &mut Vec<DeviceReport>) {
        self.listening = ListeningState::Deaf(Instant::now() + LOOK_AGAIN);
        self.trouble(why, reports);
    }

    fn trouble(&mut self, why: String, reports: &mut Vec<DeviceReport>) {
        self.board.lost(reports);
        if !std::mem::replace(&mut self.is_in_trouble, true) {
            reports.push(DeviceReport::Trouble(why));
        }
    }
}
