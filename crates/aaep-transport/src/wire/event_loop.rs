//! The turns of the loop: wait, read, obey, write, look after the idle.
//!
//! Everything that a turn brings for a connection is written at its end, at once. No step waits.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};
use slab::Slab;

use super::backlog::Item;
use super::connection::{Connection, Withdrawal};
use super::heartbeat::Sweep;
use super::socket::{Socket, Stream};
use super::{Command, ConnectionKey, Flow, MAX_CONNECTIONS, Report, Reports, Why, WireSettings};
use crate::packet::Protocol;
use crate::{chunk, sse};

/// The token of the waker; connections have the index of their place.
pub(super) const WAKE: Token = Token(usize::MAX);

/// How many batches are obeyed before what they brought is written.
const MAX_BATCHES_PER_TURN: usize = 64;

const MAX_EVENTS_PER_TURN: usize = 1024;

const READ_BUFFER_BYTES: usize = 64 << 10;

/// How long a loop that nobody can tell anything any more goes on writing.
const ORPHAN_GRACE: Duration = Duration::from_secs(1);

pub(super) struct EventLoop {
    pub(super) poll: Poll,
    commands: Receiver<Vec<Command>>,
    is_woken: Arc<AtomicBool>,
    reports: Box<dyn Reports>,
    pub(super) settings: WireSettings,
    pub(super) connections: Slab<Connection>,
    pub(super) by_key: HashMap<ConnectionKey, usize>,
    by_subscriber: HashMap<u32, usize>,
    /// Those to write to at the end of the turn.
    touched: Vec<usize>,
    /// Those that had more to read than a turn allows.
    pub(super) unread: Vec<ConnectionKey>,
    /// Those that are ending, and when the patience with them ends.
    pub(super) ending: VecDeque<(u32, ConnectionKey)>,
    /// The one buffer that everything is read into.
    pub(super) read_buffer: Box<[u8]>,
    pub(super) sweep: Sweep,
    started: Instant,
    pub(super) now_ms: u32,
    /// When to leave whatever is still there.
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
            sweep: Sweep::new(&settings),
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
            match self.poll.poll(&mut events, self.patience()) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => break,
                _ => self.look_at_the_clock(),
            }
            for key in std::mem::take(&mut self.unread) {
                if let Some(place) = self.by_key.get(&key) {
                    self.read(*place);
                }
            }
            for event in &events {
                let Token(place) = event.token();
                if event.token() == WAKE || !self.connections.contains(place) {
                    continue;
                }
                if event.is_writable() && self.connections[place].is_blocked {
                    self.flush(place);
                }
                if event.is_readable() || event.is_read_closed() || event.is_error() {
                    self.read(place);
                }
            }
            self.obey_all();
            self.write_all();
            self.look_after_the_idle();
            self.leave_the_late();
            if self.stop_at.is_some_and(|at| self.connections.is_empty() || Instant::now() >= at) {
                break;
            }
        }
        self.has_more_commands = true;
        while std::mem::take(&mut self.has_more_commands) {
            self.obey_all();
        }
        self.leave_all(Why::Stopped);
    }

    /// How long to wait for something to happen.
    fn patience(&self) -> Option<Duration> {
        if self.has_more_commands || !self.unread.is_empty() {
            return Some(Duration::ZERO);
        }
        let until_stop = self.stop_at.map(|at| at.saturating_duration_since(Instant::now()));
        let until_sweep = (!self.connections.is_empty()).then(|| self.sweep.wait(self.now_ms));
        [until_stop, until_sweep].into_iter().flatten().min()
    }

    fn look_at_the_clock(&mut self) {
        // It wraps after 49 days. Only differences of seconds are ever taken, wrapping too.
        let milliseconds = self.started.elapsed().as_millis() & u128::from(u32::MAX);
        self.now_ms = u32::try_from(milliseconds).expect("masked to its width");
    }

    fn write_all(&mut self) {
        let mut touched = std::mem::take(&mut self.touched);
        for place in touched.drain(..) {
            self.flush(place);
        }
        // Nothing is touched while writing; the list is kept for its memory.
        self.touched = touched;
    }

    fn obey_all(&mut self) {
        self.is_woken.store(false, Ordering::SeqCst);
        self.has_more_commands = true;
        for _ in 0..MAX_BATCHES_PER_TURN {
            match self.commands.try_recv() {
                Ok(batch) => batch.into_iter().for_each(|command| self.obey(command)),
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

    fn obey(&mut self, command: Command) {
        match command {
            Command::Deliver { packet, to } => {
                for subscriber in to {
                    if let Some(place) = self.by_subscriber.get(&subscriber) {
                        self.deliver(*place, &packet);
                    }
                }
            }
            Command::Send { connection, packet } => {
                if let Some(place) = self.by_key.get(&connection) {
                    self.push(*place, Item::Packet(packet));
                }
            }
            Command::Add { connection, socket, protocol, read_ahead } => {
                self.add(connection, socket, protocol, &read_ahead);
            }
            Command::Attach { connection, subscriber } => self.attach(connection, subscriber),
            Command::Detach { subscriber } => {
                if let Some(place) = self.by_subscriber.remove(&subscriber) {
                    self.connections[place].lose_subscriber();
                }
            }
            Command::Withdraw { connection } => {
                if let Some(place) = self.by_key.get(&connection) {
                    self.withdraw(*place);
                }
            }
            Command::GoOn { connection } => {
                if let Some(place) = self.by_key.get(&connection) {
                    self.go_on(*place);
                }
            }
            Command::TellWhenWritten { subscriber } => {
                if let Some(place) = self.by_subscriber.get(&subscriber).copied() {
                    self.connections[place].must_tell_written = true;
                    self.touch(place);
                }
            }
            Command::Resume { connection } => {
                if let Some(place) = self.by_key.get(&connection) {
                    self.resume(*place);
                }
            }
            Command::Close { connection, code, reason, after_flush } => {
                if let Some(place) = self.by_key.get(&connection) {
                    self.end(*place, code, &reason, after_flush, Why::ClosedByUs);
                }
            }
            Command::Stop { grace } => self.stop(grace),
        }
    }

    fn add(&mut self, key: ConnectionKey, socket: Socket, protocol: Protocol, read_ahead: &[u8]) {
        let refusal = match (self.stop_at, self.connections.len()) {
            (Some(_), _) => Some(Why::Stopped),
            (None, MAX_CONNECTIONS..) => Some(Why::Full),
            _ => None,
        };
        if let Some(why) = refusal {
            self.report(Report::Gone { connection: key, subscriber: None, why });
            return;
        }
        if let Some(older) = self.by_key.get(&key) {
            // Keys are unique unless the caller made one up; the newer connection counts.
            self.leave(*older, Why::ClosedByUs);
        }
        let place = self.connections.vacant_key();
        let is_tls = matches!(socket, Socket::Tls(_));
        let stream = Stream::new(socket).and_then(|mut stream| {
            stream.register(self.poll.registry(), Token(place)).map(|()| stream)
        });
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) => {
                let why = Why::Failed(error.kind());
                self.report(Report::Gone { connection: key, subscriber: None, why });
                return;
            }
        };
        let max_bytes = self.settings.max_message_bytes;
        let connection = Connection::new(stream, key, protocol, max_bytes, self.now_ms);
        self.connections.insert(connection);
        self.by_key.insert(key, place);
        if self.settings.retry_ms > 0
            && let Some(bytes) = retry(protocol, self.settings.retry_ms)
        {
            self.push(place, Item::Own(bytes));
        }
        self.take(place, read_ahead);
        // What TLS has already decrypted, or has yet to write, the poll knows nothing of.
        if is_tls && self.by_key.contains_key(&key) {
            self.touch(place);
            self.unread.push(key);
        }
    }

    fn attach(&mut self, connection: ConnectionKey, subscriber: u32) {
        let open = |place: &usize| self.connections[*place].is_open();
        let Some(place) = self.by_key.get(&connection).copied().filter(open) else {
            self.report(Report::Gone {
                connection,
                subscriber: Some(subscriber),
                why: Why::Unknown,
            });
            return;
        };
        let other = self.by_subscriber.insert(subscriber, place).filter(|other| *other != place);
        if let Some(other) = other {
            self.connections[other].lose_subscriber();
        }
        let previous =
            self.connections[place].subscriber.filter(|previous| *previous != subscriber);
        if let Some(previous) = previous {
            self.by_subscriber.remove(&previous);
            self.connections[place].lose_subscriber();
        }
        self.connections[place].subscriber = Some(subscriber);
        if self.connections[place].is_blocked {
            self.report(Report::Blocked { connection, subscriber });
        }
    }

    fn stop(&mut self, grace: Duration) {
        let at = Instant::now() + grace;
        self.stop_at = Some(self.stop_at.map_or(at, |earlier| earlier.min(at)));
        let places: Vec<usize> = self.connections.iter().map(|(place, _)| place).collect();
        for place in places {
            self.end(place, 1001, "The hub is stopping.", true, Why::Stopped);
        }
    }

    /// Puts something at the end of what waits for an open connection.
    pub(super) fn push(&mut self, place: usize, item: Item) {
        let connection = &mut self.connections[place];
        if !connection.is_open() {
            return;
        }
        connection.push(item);
        let is_over = connection.backlog.is_over();
        if is_over && !connection.is_blocked {
            self.flush(place);
        } else {
            self.touch(place);
        }
        if is_over && self.connections.get(place).is_some_and(|it| it.backlog.is_over()) {
            self.connections[place].stream.forget_unsent();
            self.leave(place, Why::TooSlow);
        }
    }

    /// Has something written at the end of the turn, unless the kernel has yet to make room.
    pub(super) fn touch(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        if !connection.is_touched && !connection.is_blocked {
            connection.is_touched = true;
            self.touched.push(place);
        }
    }

    pub(super) fn flush(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        connection.is_touched = false;
        connection.written_ms = self.now_ms;
        if let Err(error) = connection.write_out() {
            self.leave(place, Why::Failed(error.kind()));
            return;
        }
        let is_blocked = connection.has_unsent();
        let has_changed = is_blocked != connection.is_blocked;
        connection.is_blocked = is_blocked;
        let must_tell = has_changed || connection.must_tell_written;
        if has_changed
            && let Err(error) =
                connection.stream.ask_writable(self.poll.registry(), Token(place), is_blocked)
        {
            self.leave(place, Why::Failed(error.kind()));
            return;
        }
        let key = connection.key;
        match connection.subscriber.filter(|_| connection.is_open()) {
            Some(subscriber) if is_blocked && has_changed => {
                self.report(Report::Blocked { connection: key, subscriber });
                if self.connections[place].backlog.has_critical_behind_others() {
                    self.withdraw(place);
                }
            }
            Some(subscriber)
                if !is_blocked && must_tell && connection.withdrawal != Withdrawal::Untold =>
            {
                connection.must_tell_written = false;
                self.report(Report::Unblocked { connection: key, subscriber });
            }
            _ => {}
        }
        if !is_blocked {
            self.all_is_written(place);
        }
    }

    /// Nothing will be delivered to the subscriber of this connection any more.
    pub(super) fn forget_subscriber(&mut self, place: usize) -> Option<u32> {
        let subscriber = self.connections[place].subscriber.take();
        if let Some(subscriber) = &subscriber {
            self.by_subscriber.remove(subscriber);
        }
        subscriber
    }

    pub(super) fn report(&mut self, report: Report) -> Flow {
        self.reports.report(report)
    }
}

/// When to connect again, as a subscriber of server-sent events is told.
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
