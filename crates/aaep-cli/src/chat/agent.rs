//! The agent's process behind the proxy, and the thread that writes to it, so that the person never waits for it.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use aaep_bridge::AskPolicy;
use aaep_bridge::ProxyAskNumber;
use aaep_bridge::acp::{AcpBridge, AcpSide};
use serde_json::Value;

use super::front::{self, FrontReceiver};
use crate::acp::proxy::{AcpProxy, ProxySetup};
use crate::agent::fresh_id;
use crate::console::CommandFailure;
use crate::english::chatting;
use crate::hook::{machine_name, risk_table};
use crate::hubs::HubFlags;
use crate::proxied::{child, hub, queue};

/// How many of the last lines that the agent wrote besides its messages are kept, and how long each may be.
const MAX_LAST_LINES: usize = 5;
const MAX_LINE_BYTES: u64 = 1000;

/// How many messages may wait for an agent. One that reads none of them is ended.
const MAX_WAITING_MESSAGES: usize = 4096;

/// Something for the agent.
pub(super) enum ToAgent {
    Say(Value),
    Choose(ProxyAskNumber, String),
}

/// How an agent ended, if the system says so.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AgentEnd(pub(super) Option<ExitStatus>);

/// The agent, for the loop.
pub(super) struct RunningAgent {
    to: SyncSender<ToAgent>,
    is_full: Cell<bool>,
    pub(super) news: FrontReceiver,
    /// Told how the agent ended.
    pub(super) ended: tokio::sync::oneshot::Receiver<AgentEnd>,
    /// Closes the agent's input, and ends it if it does not end by itself.
    stop: Sender<()>,
    proxy: Arc<AcpProxy>,
    told: Receiver<()>,
    last_lines: Arc<Mutex<VecDeque<String>>>,
}

/// Starts an agent.
pub(super) fn start(
    name: &str,
    command: &[OsString],
    policy: AskPolicy,
    hub: &HubFlags,
) -> Result<RunningAgent, CommandFailure> {
    let client = hub.agent_client()?;
    let table = risk_table()?;
    let run: String = fresh_id("")?.chars().take(8).collect();
    let (program, arguments) =
        command.split_first().ok_or((chatting::NO_COMMAND, chatting::NAME_COMMAND))?;
    let mut command = Command::new(program);
    command.args(arguments).stderr(Stdio::piped());
    // Control-C is for this program, which then asks the agent to stop.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut agent = child::start("agent", &mut command)?;
    let (Some(input), Some(output)) = (agent.stdin.take(), agent.stdout.take()) else {
        return Err((chatting::NO_INPUT, chatting::START_AGAIN).into());
    };
    let (front, news) = front::front();
    let bridge = AcpBridge::new(name, false, &run).in_chat().on_machine(machine_name(hub));
    let setup = ProxySetup { table, policy };
    let proxy = Arc::new(AcpProxy::new(bridge, setup, input, Box::new(front)));
    let told = hub::start(Arc::clone(&proxy) as Arc<dyn hub::HubSide>, client);
    let last_lines = Arc::new(Mutex::new(VecDeque::new()));
    if let Some(errors) = agent.stderr.take() {
        let kept = Arc::clone(&last_lines);
        thread::spawn(move || keep_last_lines(errors, &kept));
    }
    let (stop, stopped) = mpsc::channel();
    let (end, ended) = tokio::sync::oneshot::channel();
    let running = Arc::clone(&proxy);
    thread::spawn(move || {
        // If the loop has ended, this does not matter.
        let _ = end.send(run_until_end(agent, output, &running, &stopped));
    });
    let (to, orders) = mpsc::sync_channel(MAX_WAITING_MESSAGES);
    let writing = Arc::clone(&proxy);
    thread::spawn(move || {
        for order in orders {
            match order {
                ToAgent::Say(message) => writing.say(&message),
                ToAgent::Choose(menu, option) => writing.choose(menu, &option),
            }
        }
    });
    let is_full = Cell::new(false);
    Ok(RunningAgent { to, is_full, news, ended, stop, proxy, told, last_lines })
}

/// Passes on what the agent writes until it has ended, and says how it ended.
fn run_until_end(
    mut agent: Child,
    output: impl Read + Send + 'static,
    proxy: &Arc<AcpProxy>,
    stopped: &Receiver<()>,
) -> AgentEnd {
    let (last_line, drained) = mpsc::channel();
    let reading = Arc::clone(proxy);
    thread::spawn(move || {
        reading.pump(AcpSide::Agent, output);
        reading.close_agent();
        let _ = last_line.send(());
    });
    let status = child::wait(&mut agent, || proxy.close_agent(), stopped);
    proxy.lines.drain(&drained);
    proxy.end(&child::end_words("agent", status));
    AgentEnd(status)
}

/// Keeps the last lines that the agent wrote on its standard error.
fn keep_last_lines(errors: impl Read, kept: &Mutex<VecDeque<String>>) {
    let mut errors = BufReader::new(errors);
    loop {
        let mut line = Vec::new();
        match errors.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line).trim().to_owned();
        if text.is_empty() {
            continue;
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(text);
        if kept.len() > MAX_LAST_LINES {
            kept.pop_front();
        }
    }
}

impl RunningAgent {
    /// Writes to the agent, in order. Never waits.
    pub(super) fn write(&self, order: ToAgent) {
        // An agent that is gone is noticed where it is waited for.
        let is_full = matches!(self.to.try_send(order), Err(mpsc::TrySendError::Full(_)));
        if is_full && !self.is_full.replace(true) {
            self.stop();
        }
    }

    /// Asks the agent to end.
    pub(super) fn stop(&self) {
        let _ = self.stop.send(());
    }

    /// The last lines that it wrote besides its messages. Foreign text.
    pub(super) fn last_lines(&self) -> Vec<String> {
        self.last_lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Waits until the hub was told everything, for a short time. Returns false if it was not.
    pub(super) fn has_told_hub(&self) -> bool {
        self.proxy.queue.close();
        self.told.recv_timeout(queue::CLOSE_TIMEOUT).is_ok()
    }
}
