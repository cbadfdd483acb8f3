//! The turns of the loop: wait, read, carry out commands, write, and send heartbeats.
//!
//! Everything that a turn brings for a connection is written together at its end. No step blocks.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};
use slab::Slab;

use super::backlog::BacklogItem;
use super::connection::{WireConnection, WithdrawalState};
use super::heartbeat::HeartbeatSweep;
use super::socket::{LoopSocket, Socket};
use super::{
    Command, ConnectionKey, Flow, GoneReason, MAX_CONNECTIONS, Reports, WireReport, WireSettings,
    WireSubscriber,
};
use crate::packet::Protocol;
use crate::{chunk, sse};

/// The token of the waker; a connection's token is its index.
pub(super) const WAKE: Token = Token(usize::MAX);

/// How many batches are carried out before their results are written.
const MAX_BATCHES_PER_TURN: usize = 64;

const MAX_EVENTS_PER_TURN: usize = 1024;

const READ_BUFFER_BYTES: usize = 64 << 10;

/// How long a loop whose handles are all gone keeps writing.
const ORPHAN_GRACE: Duration = Duration::from_secs(1);

pub(super) struct EventLoop {
    pub(super) poll: Poll,
    commands: Receiver<Vec<Command>>,
    is_woken: Arc<AtomicBool>,
    reports: Box<dyn Reports>,
    pub(super) settings: WireSettings,
    pub(super) connections: Slab<WireConnection>,
    pub(super) by_key: HashMap<ConnectionKey, usize>,
    by_subscriber: HashMap<WireSubscriber, usize>,
    /// The connections to write to at the end of the turn.
    touched: Vec<usize>,
    /// The connections that had more to read than a turn allows.
    pub(super) unread: Vec<ConnectionKey>,
    /// The connections that are ending, and when their time limit ends.
    pub(super) ending: VecDeque<(u32, ConnectionKey)>,
    /// The one buffer that everything is read into.
    pub(super) read_buffer: Box<[u8]>,
    pub(super) sweep: HeartbeatSweep,
    started: Instant,
    pub(super) now_ms: u32,
    /// When to drop all remaining connections.
    stop_at: Option<Instant>,
    has_more_commands: bool,
}

impl EventLoop {
    pub(super) fn new(
        poll: Poll,
        commands: Receiver<Vec<Command>>,
        is_woken: Arc<AtomicBool>,
        settings: WireSettings,
        reports: Box<dyn Reports>,
    ) -> Self {
        Self {
            poll,
            commands,
            is_woken,
            reports,
            sweep: HeartbeatSweep::new(&settings),
            settings,
            connections: Slab::new(),
            by_key: HashMap::new(),
            by_subscriber: HashMap::new(),
            touched: Vec::new(),
            unread: Vec::new(),
            ending: VecDeque::new(),
            read_buffer: vec![0; READ_BUFFER_BYTES].into_boxed_slice(),
            started: Instant::now(),
            now_ms: 0,
            stop_at: None,
            has_more_commands: false,
        }
    }

    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(MAX_EVENTS_PER_TURN);
        loop {
            match self.poll.poll(&mut events, self.poll_timeout()) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => break,
                _ => self.update_clock(),
            }
            for key in std::mem::take(&mut self.unread) {
                if let Some(index) = self.by_key.get(&key) {
                    self.read(*index);
                }
            }
            for event in &events {
                let Token(index) = event.token();
                if event.token() == WAKE || !self.connections.contains(index) {
                    continue;
                }
                if event.is_writable() && self.connections[index].is_blocked {
                    self.flush(index);
                }
                if event.is_readable() || event.is_read_closed() || event.is_error() {
                    self.read(index);
                }
            }
            self.run_commands();
            self.write_all();
            self.send_due_heartbeats();
            self.drop_late_connections();
            if self.stop_at.is_some_and(|at| self.connections.is_empty() || Instant::now() >= at) {
                break;
            }
        }
        self.has_more_commands = true;
        while std::mem::take(&mut self.has_more_commands) {
            self.run_commands();
        }
        self.leave_all(GoneReason::Stopped);
    }

    /// How long to wait for the next event.
    fn poll_timeout(&self) -> Option<Duration> {
        if self.has_more_commands || !self.unread.is_empty() {
            return Some(Duration::ZERO);
        }
        let until_stop = self.stop_at.map(|at| at.saturating_duration_since(Instant::now()));
        let until_sweep = (!self.connections.is_empty()).then(|| self.sweep.wait(self.now_ms));
        [until_stop, until_sweep].into_iter().flatten().min()
    }

    fn update_clock(&mut self) {
        // It wraps after 49 days. Only differences of seconds are computed, which wrap too.
        let milliseconds = self.started.elapsed().as_millis() & u128::from(u32::MAX);
        self.now_ms = u32::try_from(milliseconds).expect("masked to its width");
    }

    fn write_all(&mut self) {
        let mut touched = std::mem::take(&mut self.touched);
        for index in touched.drain(..) {
            self.flush(index);
        }
        // Nothing is touched while writing; the list is put back to reuse its memory.
        self.touched = touched;
    }

    fn run_commands(&mut self) {
        self.is_woken.store(false, Ordering::SeqCst);
        self.has_more_commands = true;
        for _ in 0..MAX_BATCHES_PER_TURN {
            match self.commands.try_recv() {
                Ok(batch) => batch.into_iter().for_each(|command| self.run_command(command)),
                Err(TryRecvError::Empty) => {
                    self.has_more_commands = false;
                    return;
                }
                Err(TryRecvError::Disconnected) => {
                    self.has_more_commands = false;
                    self.stop(ORPHAN_GRACE);
                    return;
                }
            }
        }
    }

    fn run_command(&mut self, command: Command) {
        match command {
            Command::Deliver { packet, to } => {
                for subscriber in to {
                    if let Some(index) = self.by_subscriber.get(&subscriber) {
                        self.deliver(*index, &packet);
                    }
                }
            }
            Command::Send { connection, packet } => {
                if let Some(index) = self.by_key.get(&connection) {
                    self.push(*index, BacklogItem::Packet(packet));
                }
            }
            Command::Add { connection, socket, protocol, read_ahead } => {
                self.add(connection, socket, protocol, &read_ahead);
            }
            Command::Attach { connection, subscriber } => self.attach(connection, subscriber),
            Command::Detach { subscriber } => {
                if let Some(index) = self.by_subscriber.remove(&subscriber) {
                    self.connections[index].lose_subscriber();
                }
            }
            Command::Withdraw { connection } => {
                if let Some(index) = self.by_key.get(&connection) {
                    self.withdraw(*index);
                }
            }
            Command::GoOn { connection } => {
                if let Some(index) = self.by_key.get(&connection) {
                    self.go_on(*index);
                }
            }
            Command::TellWhenWritten { subscriber } => {
                if let Some(index) = self.by_subscriber.get(&subscriber).copied() {
                    self.connections[index].must_tell_written = true;
                    self.touch(index);
                }
            }
            Command::Resume { connection } => {
                if let Some(index) = self.by_key.get(&connection) {
                    self.resume(*index);
                }
            }
            Command::Close { connection, code, reason, after_flush } => {
                if let Some(index) = self.by_key.get(&connection) {
                    self.end(*index, code, &reason, after_flush, GoneReason::ClosedByUs);
                }
            }
            Command::Stop { grace } => self.stop(grace),
        }
    }

    fn add(&mut self, key: ConnectionKey, socket: Socket, protocol: Protocol, read_ahead: &[u8]) {
        let refusal = match (self.stop_at, self.connections.len()) {
            (Some(_), _) => Some(GoneReason::Stopped),
            (None, MAX_CONNECTIONS..) => Some(GoneReason::Full),
            _ => None,
        };
        if let Some(why) = refusal {
            self.report(WireReport::Gone { connection: key, subscriber: None, why });
            return;
        }
        if let Some(older) = self.by_key.get(&key) {
            // Keys are unique unless the caller invented one; the newer connection counts.
            self.leave(*older, GoneReason::ClosedByUs);
        }
        let index = self.connections.vacant_key();
        let is_tls = matches!(socket, Socket::Tls(_));
        let stream = LoopSocket::new(socket).and_then(|mut stream| {
            stream.register(self.poll.registry(), Token(index)).map(|()| stream)
        });
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) => {
                let why = GoneReason::Failed(error.kind());
                self.report(WireReport::Gone { connection: key, subscriber: None, why });
                return;
            }
        };
        let max_bytes = self.settings.max_message_bytes;
        let connection = WireConnection::new(stream, key, protocol, max_bytes, self.now_ms);
        self.connections.insert(connection);
        self.by_key.insert(key, index);
        if self.settings.retry_ms > 0
            && let Some(bytes) = retry(protocol, self.settings.retry_ms)
        {
            self.push(index, BacklogItem::Own(bytes));
        }
        self.take(index, read_ahead);
        // The poll does not know about bytes that TLS has already decrypted or has yet to write.
        if is_tls && self.by_key.contains_key(&key) {
            self.touch(index);
            self.unread.push(key);
        }
    }

    fn attach(&mut self, connection: ConnectionKey, subscriber: WireSubscriber) {
        let open = |index: &usize| self.connections[*index].is_open();
        let Some(index) = self.by_key.get(&connection).copied().filter(open) else {
            self.report(WireReport::Gone {
                connection,
                subscriber: Some(subscriber),
                why: GoneReason::Unknown,
            });
            return;
        };
        let other = self.by_subscriber.insert(subscriber, index).filter(|other| *other != index);
        if let Some(other) = other {
            self.connections[other].lose_subscriber();
        }
        let previous =
            self.connections[index].subscriber.filter(|previous| *previous != subscriber);
        if let Some(previous) = previous {
            self.by_subscriber.remove(&previous);
            self.connections[index].lose_subscriber();
        }
        self.connections[index].subscriber = Some(subscriber);
        if self.connections[index].is_blocked {
            self.report(WireReport::Blocked { connection, subscriber });
        }
    }

    fn stop(&mut self, grace: Duration) {
        let at = Instant::now() + grace;
        self.stop_at = Some(self.stop_at.map_or(at, |earlier| earlier.min(at)));
        let places: Vec<usize> = self.connections.iter().map(|(index, _)| index).collect();
        for index in places {
            self.end(index, 1001, "The hub is stopping.", true, GoneReason::Stopped);
        }
    }

    /// Appends an item to the queue of an open connection.
    pub(super) fn push(&mut self, index: usize, item: BacklogItem) {
        let connection = &mut self.connections[index];
        if !connection.is_open() {
            return;
        }
        connection.push(item);
        let is_over = connection.backlog.is_over();
        if is_over && !connection.is_blocked {
            self.flush(index);
        } else {
            self.touch(index);
        }
        if is_over && self.connections.get(index).is_some_and(|it| it.backlog.is_over()) {
            self.connections[index].stream.forget_unsent();
            self.leave(index, GoneReason::TooSlow);
        }
    }

    /// Marks a connection to be written at the end of the turn, unless the kernel has no room.
    pub(super) fn touch(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if !connection.is_touched && !connection.is_blocked {
            connection.is_touched = true;
            self.touched.push(index);
        }
    }

    pub(super) fn flush(&mut self, index: usize) {
        let Some(connection) = self.connections.get_mut(index) else { return };
        connection.is_touched = false;
        connection.written_ms = self.now_ms;
        if let Err(error) = connection.write_out() {
            self.leave(index, GoneReason::Failed(error.kind()));
            return;
        }
        let is_blocked = connection.has_unsent();
        let has_changed = is_blocked != connection.is_blocked;
        connection.is_blocked = is_blocked;
        let must_tell = has_changed || connection.must_tell_written;
        if has_changed
            && let Err(error) =
                connection.stream.ask_writable(self.poll.registry(), Token(index), is_blocked)
        {
            self.leave(index, GoneReason::Failed(error.kind()));
            return;
        }
        let key = connection.key;
        match connection.subscriber.filter(|_| connection.is_open()) {
            Some(subscriber) if is_blocked && has_changed => {
                self.report(WireReport::Blocked { connection: key, subscriber });
                if self.connections[index].backlog.has_critical_behind_others() {
                    self.withdraw(index);
                }
            }
            Some(subscriber)
                if !is_blocked
                    && must_tell
                    && connection.withdrawal != WithdrawalState::Unacknowledged =>
            {
                connection.must_tell_written = false;
                self.report(WireReport::Unblocked { connection: key, subscriber });
            }
            _ => {}
        }
        if !is_blocked {
            self.all_is_written(index);
        }
    }

    /// Detaches the subscriber of this connection, so that nothing is delivered to it any more.
    pub(super) fn forget_subscriber(&mut self, index: usize) -> Option<WireSubscriber> {
        let subscriber = self.connections[index].subscriber.take();
        if let Some(subscriber) = &subscriber {
            self.by_subscriber.remove(subscriber);
        }
        subscriber
    }

    pub(super) fn report(&mut self, report: WireReport) -> Flow {
        self.reports.report(report)
    }
}

/// The reconnection time, as a subscriber of server-sent events is told.
fn retry(protocol: Protocol, milliseconds: u32) -> Option<Box<[u8]>> {
    let mut line = Vec::new();
    sse::retry(milliseconds, &mut line);
    match protocol {
        Protocol::SsePlain { .. } => Some(line.into_boxed_slice()),
        Protocol::SseChunked { .. } => {
            let mut framed = Vec::new();
            chunk::chunk(&line, &mut framed);
            Some(framed.into_boxed_slice())
        }
        Protocol::WebSocket | Protocol::Framed(_) => None,
    }
}
