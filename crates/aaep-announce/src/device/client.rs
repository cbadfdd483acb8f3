//! A device that is a server behind a socket: one loop for speech and for braille.
//!
//! There are three threads, so that none of them blocks another: one passes on orders, one dials and reads, and one
//! runs the conversation. A [`ServerConversation`] decides what is sent on the connection; it has no side effects
//! itself.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use super::socket::DeviceSocket;
use super::{Device, DeviceAbandoned, Reporter, TimedReport};
use crate::english::devices;
use crate::utterance::{DeviceReport, Order};

/// The most inputs that may wait for the conversation. Beyond that, the server is not read and orders are not taken.
const MAX_WAITING_INPUTS: usize = 64;

/// How much is read at once.
const MAX_READ_BYTES: usize = 16 * 1024;

/// The pause before the first new attempt, and the longest pause.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// After this time a working connection counts as good, and the next attempt after it comes soon.
const GOOD_WHILE: Duration = Duration::from_secs(10);

/// The lowest rate at which a server takes bytes. Speech-dispatcher reads byte by byte.
const SLOWEST_BYTES_PER_SECOND: u64 = 50_000;

/// How much longer a server may take for this many bytes.
pub(crate) fn time_for(bytes: usize) -> Duration {
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    Duration::from_millis(bytes.saturating_mul(1000) / SLOWEST_BYTES_PER_SECOND)
}

/// The logic of a connection, without the connection itself. An error says why it cannot continue, in words for
/// people.
pub(crate) trait ServerConversation {
    /// A new connection was established.
    fn connected(&mut self, now: Instant, out: &mut ConversationOutput);
    /// The server sent bytes.
    fn take_bytes(
        &mut self,
        now: Instant,
        bytes: &[u8],
        out: &mut ConversationOutput,
    ) -> Result<(), String>;
    /// An order was given, with or without a connection.
    fn take_order(&mut self, now: Instant, order: Order, out: &mut ConversationOutput);
    /// When to call [`ServerConversation::time_passed`].
    fn due(&self) -> Option<Instant>;
    /// The time of [`ServerConversation::due`] has come.
    fn time_passed(&mut self, now: Instant, out: &mut ConversationOutput) -> Result<(), String>;
    /// The connection is gone, or could not be established. Utterances in progress are cut.
    fn lost(&mut self, out: &mut ConversationOutput);
    /// There will be no more orders. The conversation may send last words to the server.
    fn finish(&mut self, out: &mut ConversationOutput);
}

/// What a conversation wants done.
#[derive(Debug, Default)]
pub(crate) struct ConversationOutput {
    /// Bytes to send.
    pub(crate) bytes: Vec<u8>,
    /// Reports to pass on.
    pub(crate) reports: Vec<DeviceReport>,
    /// Whether the server has proved to work.
    pub(crate) is_working: bool,
}

/// Opens a connection, or says why it cannot, in words for people.
pub(crate) type DialFunction = Arc<dyn Fn() -> Result<DeviceSocket, String> + Send + Sync>;

/// How to run a device behind a socket.
pub(crate) struct SocketDevice {
    /// The name of the device.
    pub(crate) name: &'static str,
    /// How to reach it.
    pub(crate) dial: DialFunction,
    /// How long connecting may take.
    pub(crate) dial_patience: Duration,
    /// How long sending may take.
    pub(crate) patience: Duration,
    /// The message if it takes longer than that.
    pub(crate) too_slow: &'static str,
    /// The message if the server ends the connection.
    pub(crate) closed: &'static str,
}

enum ClientInput {
    Order(Order),
    NoMoreOrders,
    Connected(u64, DeviceSocket),
    Heard(u64, Vec<u8>),
    Gone(u64, String),
}

/// Starts the threads of a device.
pub(crate) fn start(
    client: SocketDevice,
    conversation: impl ServerConversation + Send + 'static,
    reports: Sender<TimedReport>,
) -> io::Result<Device> {
    let (device, orders) = Device::new(client.name);
    let (sender, inputs) = mpsc::sync_channel(MAX_WAITING_INPUTS);
    let from_orders = sender.clone();
    let name = client.name;
    thread::Builder::new()
        .name(format!("{name} orders"))
        .spawn(move || pass_orders_on(&orders, &from_orders))?;
    let reporter = Reporter::new(name, reports);
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        ClientLoop {
            client,
            conversation,
            reporter,
            sender,
            connection: ConnectionState::None,
            attempt: 0,
            pause: FIRST_PAUSE,
        }
        .run(&inputs);
    })?;
    Ok(device)
}

fn pass_orders_on(orders: &Receiver<Order>, to: &SyncSender<ClientInput>) {
    for order in orders {
        if to.send(ClientInput::Order(order)).is_err() {
            return;
        }
    }
    // The conversation may have ended already.
    let _ = to.send(ClientInput::NoMoreOrders);
}

/// Dials, hands over the connection, and reads until it ends.
fn dial_and_read(dial: &DialFunction, attempt: u64, closed: &str, to: &SyncSender<ClientInput>) {
    let why = match dial().and_then(|socket| {
        let clone = socket.try_clone().map_err(|error| error.to_string())?;
        Ok((socket, clone))
    }) {
        Err(why) => why,
        Ok((mut socket, clone)) => {
            if to.send(ClientInput::Connected(attempt, clone)).is_err() {
                return;
            }
            match read(&mut socket, attempt, to) {
                Ok(()) => closed.to_owned(),
                Err(error) => devices::with_reason(closed, &error),
            }
        }
    };
    // The conversation may have ended already.
    let _ = to.send(ClientInput::Gone(attempt, why));
}

fn read(socket: &mut DeviceSocket, attempt: u64, to: &SyncSender<ClientInput>) -> io::Result<()> {
    let mut buffer = vec![0; MAX_READ_BYTES];
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                let bytes = buffer.get(..count).unwrap_or_default().to_vec();
                if to.send(ClientInput::Heard(attempt, bytes)).is_err() {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

enum ConnectionState {
    /// There is no connection, and no attempt to get one.
    None,
    /// There is no connection; the next attempt is at this time.
    Waiting(Instant),
    /// An attempt is in progress. At this time it is reported to take too long.
    Dialling(Option<Instant>),
    /// There is a connection. Since when the server works, once it does.
    Open(DeviceSocket, Option<Instant>),
}

struct ClientLoop<C> {
    client: SocketDevice,
    conversation: C,
    reporter: Reporter,
    sender: SyncSender<ClientInput>,
    connection: ConnectionState,
    /// The number of the current attempt. Messages from earlier attempts are ignored.
    attempt: u64,
    pause: Duration,
}

impl<C: ServerConversation> ClientLoop<C> {
    fn run(mut self, inputs: &Receiver<ClientInput>) {
        let mut is_in_trouble = false;
        self.dial(Instant::now());
        loop {
            let input = match self.due() {
                None => inputs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => inputs.recv_timeout(due.saturating_duration_since(Instant::now())),
            };
            let mut out = ConversationOutput::default();
            let now = Instant::now();
            let result = match input {
                Ok(ClientInput::NoMoreOrders) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(input) => self.take(now, input, &mut out),
                Err(RecvTimeoutError::Timeout) => self.time_passed(now, &mut out),
            };
            if self.carry_out(now, result, out, &mut is_in_trouble).is_err() {
                break;
            }
        }
        self.end();
    }

    fn due(&self) -> Option<Instant> {
        let connection = match &self.connection {
            ConnectionState::None | ConnectionState::Open(..) => None,
            ConnectionState::Waiting(until) => Some(*until),
            ConnectionState::Dialling(until) => *until,
        };
        connection.into_iter().chain(self.conversation.due()).min()
    }

    fn dial(&mut self, now: Instant) {
        self.attempt += 1;
        self.connection = ConnectionState::Dialling(Some(now + self.client.dial_patience));
        let (dial, attempt) = (Arc::clone(&self.client.dial), self.attempt);
        let (closed, sender) = (self.client.closed, self.sender.clone());
        let started = thread::Builder::new()
            .name(format!("{} line", self.client.name))
            .spawn(move || dial_and_read(&dial, attempt, closed, &sender));
        if started.is_err() {
            // The system cannot start a thread at the moment.
            self.connection = ConnectionState::Waiting(now + LONGEST_PAUSE);
        }
    }

    fn take(
        &mut self,
        now: Instant,
        input: ClientInput,
        out: &mut ConversationOutput,
    ) -> Result<(), String> {
        match input {
            ClientInput::Order(order) => self.conversation.take_order(now, order, out),
            ClientInput::Connected(attempt, socket) if attempt == self.attempt => {
                self.connection = ConnectionState::Open(socket, None);
                self.conversation.connected(now, out);
            }
            ClientInput::Heard(attempt, bytes) if attempt == self.attempt => {
                self.conversation.take_bytes(now, &bytes, out)?;
            }
            ClientInput::Gone(attempt, why) if attempt == self.attempt => {
                if matches!(self.connection, ConnectionState::Dialling(_)) {
                    self.connection = ConnectionState::None;
                }
                return Err(why);
            }
            ClientInput::Connected(_, late) => late.shutdown(),
            ClientInput::NoMoreOrders | ClientInput::Heard(..) | ClientInput::Gone(..) => {}
        }
        Ok(())
    }

    fn time_passed(&mut self, now: Instant, out: &mut ConversationOutput) -> Result<(), String> {
        match self.connection {
            ConnectionState::Waiting(until) if until <= now => self.dial(now),
            ConnectionState::Dialling(Some(until)) if until <= now => {
                // The dialling thread cannot be cancelled; the next attempt starts when it returns.
                self.connection = ConnectionState::Dialling(None);
                return Err(self.client.too_slow.to_owned());
            }
            _ => {}
        }
        match self.conversation.due() {
            Some(due) if due <= now => self.conversation.time_passed(now, out),
            _ => Ok(()),
        }
    }

    fn carry_out(
        &mut self,
        now: Instant,
        result: Result<(), String>,
        mut out: ConversationOutput,
        is_in_trouble: &mut bool,
    ) -> Result<(), DeviceAbandoned> {
        let sent = match (&mut self.connection, result) {
            (ConnectionState::Open(socket, _), Ok(())) if !out.bytes.is_empty() => socket
                .send(&out.bytes, self.client.patience + time_for(out.bytes.len()))
                .map_err(|error| match error.kind() {
                    io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                        self.client.too_slow.to_owned()
                    }
                    _ => self.client.closed.to_owned(),
                }),
            (_, result) => result,
        };
        if let (ConnectionState::Open(_, works_since @ None), Ok(()), true) =
            (&mut self.connection, &sent, out.is_working)
        {
            *works_since = Some(now);
            *is_in_trouble = false;
            self.report(vec![DeviceReport::Works])?;
        }
        self.report(std::mem::take(&mut out.reports))?;
        if let Err(why) = sent {
            self.lose(now);
            if !std::mem::replace(is_in_trouble, true) {
                self.report(vec![DeviceReport::Trouble(why)])?;
            }
            let mut out = ConversationOutput::default();
            self.conversation.lost(&mut out);
            self.report(out.reports)?;
        }
        Ok(())
    }

    fn report(&self, reports: Vec<DeviceReport>) -> Result<(), DeviceAbandoned> {
        for report in reports {
            if !self.reporter.report(report) {
                return Err(DeviceAbandoned);
            }
        }
        Ok(())
    }

    /// Gives up the connection and schedules the next attempt.
    fn lose(&mut self, now: Instant) {
        if let ConnectionState::Open(socket, works_since) = &self.connection {
            socket.shutdown();
            // Ignore anything that this connection still sends.
            self.attempt += 1;
            if works_since.is_some_and(|since| now.saturating_duration_since(since) >= GOOD_WHILE) {
                self.pause = FIRST_PAUSE;
            }
        }
        if !matches!(self.connection, ConnectionState::Dialling(None)) {
            self.connection = ConnectionState::Waiting(now + self.pause);
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn end(mut self) {
        if let ConnectionState::Open(socket, _) = &mut self.connection {
            let mut out = ConversationOutput::default();
            self.conversation.finish(&mut out);
            // Nobody is left to receive a failure.
            let _ = socket.send(&out.bytes, self.client.patience);
            socket.shutdown();
        }
    }
}
