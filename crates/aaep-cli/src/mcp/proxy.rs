//! The proxy itself: lines from one side to the other, and what the bridge makes of them.

use std::io::{self, BufRead, BufReader, Read, Stdout};
use std::process::ChildStdin;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use aaep_bridge::mcp::{EnvelopeScanner, McpBridge, McpForward, McpPlan, McpSetup, McpSide};
use aaep_bridge::risk::RiskTable;
use aaep_bridge::{AskAnswer, AskPolicy, ProxyAskNumber};
use tokio::sync::mpsc::Sender;

use crate::keys::now_unix_ms;
use crate::proxied::hub::HubSide;
use crate::proxied::lines::{PassedLines, ReadLine, SharedOutput, read_line};
use crate::proxied::note::ProxyNote;
use crate::proxied::queue::HubQueue;

/// Where lines for the server go.
pub(super) enum ServerInput {
    /// To a program that we started.
    Child(SharedOutput<ChildStdin>),
    /// To a server over HTTP.
    Remote(Mutex<Option<Sender<Vec<u8>>>>),
}

impl ServerInput {
    pub(super) fn child(input: ChildStdin) -> Self {
        ServerInput::Child(SharedOutput::new(input))
    }

    pub(super) fn remote(sender: Sender<Vec<u8>>) -> Self {
        ServerInput::Remote(Mutex::new(Some(sender)))
    }

    /// Writes a line. Returns false if nobody reads any more.
    fn write(&self, line: &[u8]) -> bool {
        match self {
            ServerInput::Child(output) => output.write(line),
            ServerInput::Remote(sender) => {
                let sender = sender.lock().unwrap_or_else(PoisonError::into_inner).clone();
                sender.is_some_and(|it| send(&it, line.to_vec()))
            }
        }
    }

    fn close(&self) {
        match self {
            ServerInput::Child(output) => output.close(),
            ServerInput::Remote(sender) => {
                *sender.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
        }
    }
}

/// Hands a line over. What the thread of the connection itself has to send never waits for that thread.
fn send(sender: &Sender<Vec<u8>>, line: Vec<u8>) -> bool {
    if tokio::runtime::Handle::try_current().is_ok() {
        return sender.try_send(line).is_ok();
    }
    sender.blocking_send(line).is_ok()
}

/// A server, its client, and what waits for the hub.
pub(super) struct McpProxy {
    bridge: Mutex<McpBridge>,
    table: RiskTable,
    policy: AskPolicy,
    server: OnceLock<ServerInput>,
    client: SharedOutput<Stdout>,
    queue: HubQueue,
    /// The lines of the server.
    pub(super) lines: PassedLines,
    closed: OnceLock<()>,
}

impl McpProxy {
    pub(super) fn new(bridge: McpBridge, table: RiskTable, policy: AskPolicy) -> Self {
        McpProxy {
            bridge: Mutex::new(bridge),
            table,
            policy,
            server: OnceLock::new(),
            client: SharedOutput::new(io::stdout()),
            queue: HubQueue::default(),
            lines: PassedLines::default(),
            closed: OnceLock::new(),
        }
    }

    /// Says where lines for the server go. This is done once, before anything passes.
    pub(super) fn set_server(&self, server: ServerInput) {
        let _ = self.server.set(server);
    }

    fn setup(&self) -> McpSetup<'_> {
        McpSetup { table: &self.table, policy: self.policy, now_ms: now_unix_ms() }
    }

    fn bridge(&self) -> MutexGuard<'_, McpBridge> {
        self.bridge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn to_server(&self, line: &[u8]) -> bool {
        self.server.get().is_some_and(|it| it.write(line))
    }

    /// Passes on what the client writes, until it ends.
    pub(super) fn pump_client(&self, input: impl Read) {
        let mut input = BufReader::with_capacity(64 * 1024, input);
        let mut line = Vec::new();
        loop {
            let is_passed = match read_line(&mut input, &mut line) {
                Ok(ReadLine::End) | Err(_) => break,
                Ok(ReadLine::Whole) => self.pass(McpSide::Client, &line),
                Ok(ReadLine::Beginning) => self.pass_long_of_client(&line, &mut input),
            };
            if !is_passed {
                break;
            }
        }
        self.run(|bridge, _| bridge.client_left());
        self.close_server();
    }

    /// Passes on what the server writes, until it ends or nobody reads it.
    pub(super) fn pump_server(&self, input: impl Read) {
        let mut input = BufReader::with_capacity(64 * 1024, input);
        let mut line = Vec::new();
        loop {
            let is_read = match read_line(&mut input, &mut line) {
                Ok(ReadLine::End) | Err(_) => return,
                Ok(ReadLine::Whole) => self.pass(McpSide::Server, &line),
                Ok(ReadLine::Beginning) => {
                    self.lines.note(true);
                    let mut scanning = ScanningReader::new(&line, &mut input);
                    let is_written = self.client.write_long(&line, &mut scanning);
                    let id = scanning.scanner.id();
                    self.run(|bridge, _| bridge.hear_long_answer(&id));
                    is_written
                }
            };
            self.lines.note(false);
            if !is_read {
                return;
            }
        }
    }

    /// A line of the client that is too long to be judged goes on only if the person is not asked about tools.
    fn pass_long_of_client(&self, beginning: &[u8], input: &mut impl BufRead) -> bool {
        let mut scanning = ScanningReader::new(beginning, input);
        if self.policy == AskPolicy::Tell
            && let Some(ServerInput::Child(output)) = self.server.get()
        {
            self.note(&ProxyNote::TooLong);
            return output.write_long(beginning, &mut scanning);
        }
        let is_read = scanning.skip_line();
        let (id, method) = (scanning.scanner.id(), scanning.scanner.method());
        self.run(|bridge, _| bridge.hear_too_long(&id, method.as_deref()));
        is_read
    }

    /// Passes on a line. Returns false if nobody reads it.
    pub(super) fn pass(&self, from: McpSide, line: &[u8]) -> bool {
        let plan = self.plan(|bridge, setup| bridge.hear(from, line, setup));
        if from == McpSide::Server {
            self.lines.note(true);
        }
        let forwarded = match &plan.forward {
            McpForward::Unchanged => Some(line),
            McpForward::Nothing => None,
            McpForward::Instead(other) => Some(other.as_slice()),
        };
        let is_read = forwarded.is_none_or(|line| match from {
            McpSide::Client => self.to_server(line),
            McpSide::Server => self.client.write(line),
        });
        self.send(&plan);
        is_read
    }

    /// Lets the bridge decide, and puts what is for the hub into the queue while nobody else changes the bridge.
    fn plan(&self, decide: impl FnOnce(&mut McpBridge, &McpSetup<'_>) -> McpPlan) -> McpPlan {
        let setup = self.setup();
        let mut bridge = self.bridge();
        let mut plan = decide(&mut bridge, &setup);
        self.enqueue(&mut plan);
        let asks = std::mem::take(&mut plan.asks);
        for ask in asks {
            let number = ask.number;
            if !self.queue.ask(ask) {
                let mut given_up = bridge.not_asked(number);
                self.enqueue(&mut given_up);
                plan.to_client.append(&mut given_up.to_client);
                plan.to_server.append(&mut given_up.to_server);
            }
        }
        plan
    }

    fn enqueue(&self, plan: &mut McpPlan) {
        for number in &plan.withdrawn {
            self.queue.withdraw(*number);
        }
        for event in std::mem::take(&mut plan.events) {
            self.queue.tell(event);
        }
    }

    fn run(&self, decide: impl FnOnce(&mut McpBridge, &McpSetup<'_>) -> McpPlan) {
        let plan = self.plan(decide);
        self.send(&plan);
    }

    /// Writes what the bridge has for both sides.
    fn send(&self, plan: &McpPlan) {
        // Nobody to write to is noticed where its lines are read.
        for line in &plan.to_server {
            self.to_server(line);
        }
        for line in &plan.to_client {
            self.client.write(line);
        }
        if let Some(notice) = &plan.notice {
            self.note(&ProxyNote::Notice(notice.clone()));
        }
    }

    /// The server is gone.
    pub(super) fn end(&self, words: &str) {
        self.plan(|bridge, setup| bridge.end(words, setup));
    }

    /// Closes the input of the server, so that it ends.
    pub(super) fn close_server(&self) {
        if let Some(server) = self.server.get() {
            server.close();
        }
        let _ = self.closed.set(());
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.get().is_some()
    }
}

impl HubSide for McpProxy {
    fn queue(&self) -> &HubQueue {
        &self.queue
    }

    fn agent_id(&self) -> String {
        self.bridge().agent_id().to_owned()
    }

    fn answer(&self, number: ProxyAskNumber, answer: &AskAnswer) {
        self.run(|bridge, setup| bridge.answer(number, answer, setup));
    }

    fn not_asked(&self, number: ProxyAskNumber) {
        self.run(|bridge, _| bridge.not_asked(number));
    }

    fn asks_at_once(&self) -> bool {
        true
    }

    fn window(&self) -> &'static str {
        "the program"
    }

    fn away_words(&self) -> String {
        "The AAEP hub does not answer or refuses this server, which is not heard there now. Tools that you would be asked \
         about do not run. To start a hub: aaep serve"
            .to_owned()
    }

    fn cancel(&self, session: &str) -> bool {
        let is_ours = self.bridge().is_working_in(session);
        if is_ours {
            self.run(|bridge, _| bridge.cancel(session));
        }
        is_ours
    }
}

/// Looks at what a long line is while its bytes pass.
struct ScanningReader<'r, R> {
    input: &'r mut R,
    scanner: EnvelopeScanner,
}

impl<'r, R: BufRead> ScanningReader<'r, R> {
    fn new(beginning: &[u8], input: &'r mut R) -> Self {
        let mut scanner = EnvelopeScanner::default();
        scanner.push(beginning);
        ScanningReader { input, scanner }
    }

    /// Reads to the end of the line. Returns false if there is no more.
    fn skip_line(&mut self) -> bool {
        loop {
            let piece = match self.fill_buf() {
                Ok(piece) => piece,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return false,
            };
            let end = piece.iter().position(|it| *it == b'\n');
            let length = end.map_or(piece.len(), |it| it + 1);
            self.consume(length);
            if end.is_some() || length == 0 {
                return end.is_some();
            }
        }
    }
}

impl<R: BufRead> Read for ScanningReader<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(into)?;
        self.consume(length);
        Ok(length)
    }
}

impl<R: BufRead> BufRead for ScanningReader<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    fn consume(&mut self, length: usize) {
        if let Ok(piece) = self.input.fill_buf() {
            self.scanner.push(&piece[..length.min(piece.len())]);
        }
        self.input.consume(length);
    }
}
