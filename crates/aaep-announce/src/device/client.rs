//! A device that is a server behind a socket: one loop for speech and for braille.
//!
//! Three threads, so that nobody waits for anybody: one passes orders on, one dials and reads, and one holds the
//! conversation. What is said on the connection is decided by a [`Conversation`], which touches nothing itself.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use super::socket::Socket;
use super::{Device, Reporter, Told};
use crate::english::devices;
use crate::utterance::{Order, Report};

/// How many inputs may wait for the conversation: then the server is no longer read and orders are no longer taken.
const MAX_WAITING_INPUTS: usize = 64;

/// How much is read at once.
const MAX_READ_BYTES: usize = 16 * 1024;

/// How long it is waited before the first new attempt, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// After how long a working connection counts as good, so that the next attempt after it is soon.
const GOOD_WHILE: Duration = Duration::from_secs(10);

/// How much a server takes in a second at least. Speech-dispatcher reads byte by byte.
const SLOWEST_BYTES_PER_SECOND: u64 = 50_000;

/// How much longer a server may take for so many bytes.
pub(crate) fn time_for(bytes: usize) -> Duration {
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    Duration::from_millis(bytes.saturating_mul(1000) / SLOWEST_BYTES_PER_SECOND)
}

/// What happens on a connection, without the connection. An error is why it cannot go on, in words for people.
pub(crate) trait Conversation {
    /// A new connection is there.
    fn connected(&mut self, now: Instant, out: &mut Out);
    /// The server said something.
    fn heard(&mut self, now: Instant, bytes: &[u8], out: &mut Out) -> Result<(), String>;
    /// An order was given, on a connection or not.
    fn told(&mut self, now: Instant, order: Order, out: &mut Out);
    /// When [`Conversation::passed`] is wanted.
    fn due(&self) -> Option<Instant>;
    /// Time has passed.
    fn passed(&mut self, now: Instant, out: &mut Out) -> Result<(), String>;
    /// The connection is gone, or there is none. What was being said is cut.
    fn lost(&mut self, out: &mut Out);
    /// Nobody gives orders any more; there may be last words to the server.
    fn ends(&mut self, out: &mut Out);
}

/// What a conversation wants done.
#[derive(Debug, Default)]
pub(crate) struct Out {
    /// To be sent.
    pub(crate) bytes: Vec<u8>,
    /// To be reported.
    pub(crate) reports: Vec<Report>,
    /// Whether the server has turned out to work.
    pub(crate) is_working: bool,
}

/// Gets a connection, or says why there is none, in words for people.
pub(crate) type Dial = Arc<dyn Fn() -> Result<Socket, String> + Send + Sync>;

/// How a device behind a socket is run.
pub(crate) struct Client {
    /// What it is called.
    pub(crate) name: &'static str,
    /// How it is reached.
    pub(crate) dial: Dial,
    /// How long reaching it may take.
    pub(crate) dial_patience: Duration,
    /// How long sending to it may take.
    pub(crate) patience: Duration,
    /// What is said when it takes longer than that.
    pub(crate) too_slow: &'static str,
    /// What is said when the server ends the connection.
    pub(crate) closed: &'static str,
}

enum Input {
    Order(Order),
    NoMoreOrders,
    Connected(u64, Socket),
    Heard(u64, Vec<u8>),
    Gone(u64, String),
}

/// Starts the threads of a device.
pub(crate) fn start(
    client: Client,
    conversation: impl Conversation + Send + 'static,
    reports: Sender<Told>,
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
        Running {
            client,
            conversation,
            reporter,
            sender,
            line: Line::None,
            attempt: 0,
            pause: FIRST_PAUSE,
        }
        .run(&inputs);
    })?;
    Ok(device)
}

fn pass_orders_on(orders: &Receiver<Order>, to: &SyncSender<Input>) {
    for order in orders {
        if to.send(Input::Order(order)).is_err() {
            return;
        }
    }
    // Whoever holds the conversation may have ended already.
    let _ = to.send(Input::NoMoreOrders);
}

/// Dials, hands the connection over, and reads until it ends.
fn dial_and_read(dial: &Dial, attempt: u64, closed: &str, to: &SyncSender<Input>) {
    let why = match dial().and_then(|socket| {
        let clone = socket.try_clone().map_err(|error| error.to_string())?;
        Ok((socket, clone))
    }) {
        Err(why) => why,
        Ok((mut socket, clone)) => {
            if to.send(Input::Connected(attempt, clone)).is_err() {
                return;
            }
            match read(&mut socket, attempt, to) {
                Ok(()) => closed.to_owned(),
                Err(error) => devices::with_reason(closed, &error),
            }
        }
    };
    // Whoever holds the conversation may have ended already.
    let _ = to.send(Input::Gone(attempt, why));
}

fn read(socket: &mut Socket, attempt: u64, to: &SyncSender<Input>) -> io::Result<()> {
    let mut buffer = vec![0; MAX_READ_BYTES];
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                let bytes = buffer.get(..count).unwrap_or_default().to_vec();
                if to.send(Input::Heard(attempt, bytes)).is_err() {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// How it stands with the connection.
enum Line {
    /// None, and nothing is tried.
    None,
    /// None until then.
    Waiting(Instant),
    /// Being dialled; whoever waits is told at that moment that it takes too long.
    Dialling(Option<Instant>),
    /// There, and whether and since when the server works.
    Open(Socket, Option<Instant>),
}

struct Running<C> {
    client: Client,
    conversation: C,
    reporter: Reporter,
    sender: SyncSender<Input>,
    line: Line,
    /// Which attempt is the current one. What comes of earlier ones is too late.
    attempt: u64,
    pause: Duration,
}

/// Nobody wants to know any more.
struct Over;

impl<C: Conversation> Running<C> {
    fn run(mut self, inputs: &Receiver<Input>) {
        let mut is_in_trouble = false;
        self.dial(Instant::now());
        loop {
            let input = match self.due() {
                None => inputs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => inputs.recv_timeout(due.saturating_duration_since(Instant::now())),
            };
            let mut out = Out::default();
            let now = Instant::now();
            let result = match input {
                Ok(Input::NoMoreOrders) | Err(RecvTimeoutError::Disconnected) => break,
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
        let line = match &self.line {
            Line::None | Line::Open(..) => None,
            Line::Waiting(until) => Some(*until),
            Line::Dialling(until) => *until,
        };
        line.into_iter().chain(self.conversation.due()).min()
    }

    fn dial(&mut self, now: Instant) {
        self.attempt += 1;
        self.line = Line::Dialling(Some(now + self.client.dial_patience));
        let (dial, attempt) = (Arc::clone(&self.client.dial), self.attempt);
        let (closed, sender) = (self.client.closed, self.sender.clone());
        let started = thread::Builder::new()
            .name(format!("{} line", self.client.name))
            .spawn(move || dial_and_read(&dial, attempt, closed, &sender));
        if started.is_err() {
            // The system has no thread to spare just now.
            self.line = Line::Waiting(now + LONGEST_PAUSE);
        }
    }

    fn take(&mut self, now: Instant, input: Input, out: &mut Out) -> Result<(), String> {
        match input {
            Input::Order(order) => self.conversation.told(now, order, out),
            Input::Connected(attempt, socket) if attempt == self.attempt => {
                self.line = Line::Open(socket, None);
                self.conversation.connected(now, out);
            }
            Input::Heard(attempt, bytes) if attempt == self.attempt => {
                self.conversation.heard(now, &bytes, out)?;
            }
            Input::Gone(attempt, why) if attempt == self.attempt => {
                if matches!(self.line, Line::Dialling(_)) {
                    self.line = Line::None;
                }
                return Err(why);
            }
            Input::Connected(_, late) => late.shutdown(),
            Input::NoMoreOrders | Input::Heard(..) | Input::Gone(..) => {}
        }
        Ok(())
    }

    fn time_passed(&mut self, now: Instant, out: &mut Out) -> Result<(), String> {
        match self.line {
            Line::Waiting(until) if until <= now => self.dial(now),
            Line::Dialling(Some(until)) if until <= now => {
                // The thread that dials cannot be called back; a new attempt is made when it returns.
                self.line = Line::Dialling(None);
                return Err(self.client.too_slow.to_owned());
            }
            _ => {}
        }
        match self.conversation.due() {
            Some(due) if due <= now => self.conversation.passed(now, out),
            _ => Ok(()),
        }
    }

    fn carry_out(
        &mut self,
        now: Instant,
        result: Result<(), String>,
        mut out: Out,
        is_in_trouble: &mut bool,
    ) -> Result<(), Over> {
        let sent = match (&mut self.line, result) {
            (Line::Open(socket, _), Ok(())) if !out.bytes.is_empty() => socket
                .send(&out.bytes, self.client.patience + time_for(out.bytes.len()))
                .map_err(|error| match error.kind() {
                    io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                        self.client.too_slow.to_owned()
                    }
                    _ => self.client.closed.to_owned(),
                }),
            (_, result) => result,
        };
        if let (Line::Open(_, works_since @ None), Ok(()), true) =
            (&mut self.line, &sent, out.is_working)
        {
            *works_since = Some(now);
            *is_in_trouble = false;
            self.report(vec![Report::Works])?;
        }
        self.report(std::mem::take(&mut out.reports))?;
        if let Err(why) = sent {
            self.lose(now);
            if !std::mem::replace(is_in_trouble, true) {
                self.report(vec![Report::Trouble(why)])?;
            }
            let mut out = Out::default();
            self.conversation.lost(&mut out);
            self.report(out.reports)?;
        }
        Ok(())
    }

    fn report(&self, reports: Vec<Report>) -> Result<(), Over> {
        for report in reports {
            if !self.reporter.report(report) {
                return Err(Over);
            }
        }
        Ok(())
    }

    /// Gives the connection up and decides when to try again.
    fn lose(&mut self, now: Instant) {
        if let Line::Open(socket, works_since) = &self.line {
            socket.shutdown();
            // What this connection still says is too late.
            self.attempt += 1;
            if works_since.is_some_and(|since| now.saturating_duration_since(since) >= GOOD_WHILE) {
                self.pause = FIRST_PAUSE;
            }
        }
        if !matches!(self.line, Line::Dialling(None)) {
            self.line = Line::Waiting(now + self.pause);
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn end(mut self) {
        if let Line::Open(socket, _) = &mut self.line {
            let mut out = Out::default();
            self.conversation.ends(&mut out);
            // Nobody is left who could be told that it failed.
            let _ = socket.send(&out.bytes, self.client.patience);
            socket.shutdown();
        }
    }
}
