//! The thread that keeps the board and shows it through `AccessKit`.
//!
//! `AccessKit` has a thread of its own, which tells when the accessibility bus is turned on and off and which
//! button was pressed. It holds a lock meanwhile that we need too, so nothing that it calls here ever waits.

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

use super::board::Board;
use super::ears::Ears;
use super::tree::tree;
use super::{NAME, Settings};
use crate::device::{Device, Reporter, Told};
use crate::english::devices;
use crate::utterance::{Order, Report};

/// How many inputs may wait. Then orders are no longer taken, and buttons no longer heard.
const MAX_WAITING_INPUTS: usize = 64;

/// How often it is looked whether someone listens, while nobody does.
const LOOK_AGAIN: Duration = Duration::from_secs(3);

enum Input {
    Order(Order),
    NoMoreOrders,
    Pressed(u64),
    /// Something is to be looked at in [`Signs`].
    Look,
}

/// What `AccessKit` tells of the accessibility bus.
#[derive(Debug, Default)]
struct Signs {
    is_active: AtomicBool,
    is_gone: AtomicBool,
}

/// What `AccessKit` calls. The one that hears of activation is dropped when its thread gives up, too.
struct Handler {
    signs: Arc<Signs>,
    to: SyncSender<Input>,
    tells_end: bool,
}

impl Handler {
    fn tell(&self, input: Input) {
        // If so much waits, it is looked soon anyway, and a button that nobody hears is pressed again.
        let _ = self.to.try_send(input);
    }
}

impl ActivationHandler for Handler {
    fn request_initial_tree(&mut self) -> Option<TreeUpdate> {
        self.signs.is_active.store(true, Ordering::SeqCst);
        self.tell(Input::Look);
        None
    }
}

impl DeactivationHandler for Handler {
    fn deactivate_accessibility(&mut self) {
        self.signs.is_active.store(false, Ordering::SeqCst);
        self.tell(Input::Look);
    }
}

impl ActionHandler for Handler {
    fn do_action(&mut self, request: ActionRequest) {
        if request.action == Action::Click {
            self.tell(Input::Pressed(request.target_node.0));
        }
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        if self.tells_end {
            self.signs.is_gone.store(true, Ordering::SeqCst);
            self.tell(Input::Look);
        }
    }
}

/// Starts the device.
pub(super) fn start(settings: Settings, reports: Sender<Told>) -> io::Result<Device> {
    let (device, orders) = Device::new(NAME);
    let (sender, inputs) = mpsc::sync_channel(MAX_WAITING_INPUTS);
    let from_orders = sender.clone();
    thread::Builder::new()
        .name(format!("{NAME} orders"))
        .spawn(move || pass_orders_on(orders, &from_orders))?;
    let reporter = Reporter::new(NAME, reports);
    thread::Builder::new().name(NAME.to_owned()).spawn(move || {
        Running {
            settings,
            reporter,
            sender,
            signs: Arc::default(),
            ears: Ears::new(settings.patience),
            adapter: None,
            board: Board::new(settings),
            standing: Standing::Deaf(Instant::now()),
            is_in_trouble: false,
        }
        .run(&inputs);
    })?;
    Ok(device)
}

fn pass_orders_on(orders: Receiver<Order>, to: &SyncSender<Input>) {
    for order in orders {
        if to.send(Input::Order(order)).is_err() {
            return;
        }
    }
    // Whoever keeps the board may have ended already.
    let _ = to.send(Input::NoMoreOrders);
}

/// How it stands with those who listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Nobody does; it is looked again then.
    Deaf(Instant),
    /// Someone does; `AccessKit` has until then to be ready.
    Waking(Instant),
    /// Someone does, and can be told.
    Works,
    /// `AccessKit` has given up for good.
    Over,
}

struct Running {
    settings: Settings,
    reporter: Reporter,
    sender: SyncSender<Input>,
    signs: Arc<Signs>,
    ears: Ears,
    adapter: Option<Adapter>,
    board: Board,
    standing: Standing,
    is_in_trouble: bool,
}

impl Running {
    fn run(mut self, inputs: &Receiver<Input>) {
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
                Ok(Input::NoMoreOrders) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Input::Order(order)) => self.board.told(Instant::now(), order, &mut reports),
                Ok(Input::Pressed(node)) => self.board.pressed(Instant::now(), node, &mut reports),
                Ok(Input::Look) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn due(&self, now: Instant) -> Option<Instant> {
        match self.standing {
            Standing::Deaf(until) | Standing::Waking(until) => Some(until),
            Standing::Works => self.board.due(now),
            Standing::Over => None,
        }
    }

    /// Does what there is to do now.
    fn go_on(&mut self, reports: &mut Vec<Report>) {
        let now = Instant::now();
        if self.signs.is_gone.load(Ordering::SeqCst) && self.standing != Standing::Over {
            self.standing = Standing::Over;
            self.trouble(devices::desktop::BUS_HAS_ENDED.to_owned(), reports);
        }
        self.stand(now, reports);
        match self.standing {
            Standing::Works => {}
            Standing::Waking(_) => return,
            Standing::Deaf(_) | Standing::Over => return self.board.lost(reports),
        }
        if self.board.has_to_announce(now) {
            match self.ears.listen() {
                Ok(()) => self.board.announce(Instant::now(), reports),
                Err(why) => return self.lose(why, reports),
            }
        }
        self.board.passed(now, reports);
        if self.board.take_change() {
            self.show();
        }
    }

    /// Finds out whether someone listens, where that has to be found out.
    fn stand(&mut self, now: Instant, reports: &mut Vec<Report>) {
        let is_active = self.signs.is_active.load(Ordering::SeqCst);
        match self.standing {
            Standing::Deaf(until) if until <= now => match self.ears.listen() {
                Ok(()) => {
                    self.wake();
                    self.standing = Standing::Waking(Instant::now() + self.settings.patience);
                    self.stand(now, reports);
                }
                Err(why) => self.lose(why, reports),
            },
            Standing::Waking(_) if is_active => {
                self.standing = Standing::Works;
                self.is_in_trouble = false;
                self.show();
                reports.push(Report::Works);
            }
            Standing::Waking(until) if until <= now => {
                self.lose(devices::desktop::NOT_TAKEN_IN.to_owned(), reports);
            }
            Standing::Works if !is_active => {
                self.lose(devices::desktop::TURNED_OFF.to_owned(), reports);
            }
            _ => {}
        }
    }

    /// Lets `AccessKit` come to the accessibility bus. Only now, because it comes once and does not try again.
    fn wake(&mut self) {
        if self.adapter.is_some() {
            return;
        }
        let handler = |tells_end| Handler {
            signs: Arc::clone(&self.signs),
            to: self.sender.clone(),
            tells_end,
        };
        self.adapter = Some(Adapter::new(handler(true), handler(false), handler(false)));
    }

    /// Shows all of the board. What is new in it is announced.
    fn show(&mut self) {
        if let Some(adapter) = &mut self.adapter {
            adapter.update_if_active(|| tree(&self.board));
        }
    }

    fn lose(&mut self, why: String, reports: &mut Vec<Report>) {
        self.standing = Standing::Deaf(Instant::now() + LOOK_AGAIN);
        self.trouble(why, reports);
    }

    fn trouble(&mut self, why: String, reports: &mut Vec<Report>) {
        self.board.lost(reports);
        if !std::mem::replace(&mut self.is_in_trouble, true) {
            reports.push(Report::Trouble(why));
        }
    }
}
