//! The hub: `aaep serve` in its own process, with its store on the disk and its limits raised.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::crowd::SubscriberCrowd;
use super::listen::ORDINARY;
use super::server::FanoutServer;
use super::wire::{FanoutWire, ListenTarget, MeasuredAddress, ServerKind};
use super::{EVENT_BYTES, FanoutSample};
use crate::process::ProcessUsage;
use crate::serve::{HttpConnection, ServedHub};

/// How long a subscriber must receive nothing before its events count as complete.
const QUIET: Duration = Duration::from_millis(150);

/// The longest that the hub may take to become quiet.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often to try to capture a single event.
const TRIES: usize = 5;

/// The content of the published events.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PublishedContent {
    /// Progress reports.
    Progress,
    /// Text, a sentence in each event.
    Sentences,
}

/// A running hub.
pub(super) struct HubServer {
    served: ServedHub,
    /// The connection on which the agent publishes.
    publisher: HttpConnection,
    wire: FanoutWire,
    saying: PublishedContent,
    /// The number of bytes added to an event so that it has the right length.
    padding: usize,
    sessions: u64,
    /// The number of characters of text in the session so far.
    position: usize,
}

impl HubServer {
    /// Starts a hub with room for this many subscribers. Also returns an event exactly as a subscriber receives it.
    pub(super) fn start(
        wire: FanoutWire,
        subscribers: usize,
        saying: PublishedContent,
    ) -> Result<(Self, FanoutSample), String> {
        let served = ServedHub::start(subscribers)?;
        let publisher = HttpConnection::open(served.address())?;
        let mut hub =
            HubServer { served, publisher, wire, saying, padding: 1, sessions: 0, position: 0 };
        let address = hub.address();
        let place = ListenTarget { kind: ServerKind::Hub, wire, address: &address };
        let mut subscriber = place.listen(&SubscriberCrowd::One.capabilities(0), true)?;
        rustix::io::ioctl_fionbio(&subscriber, true).map_err(|error| error.to_string())?;
        hub.begin()?;
        let short = hub.one(&mut subscriber)?;
        let missing = EVENT_BYTES.checked_sub(short.json.len());
        hub.padding += missing.ok_or("an event is too long already")?;
        let sample = hub.one(&mut subscriber)?;
        if sample.json.len().abs_diff(EVENT_BYTES) > 4 {
            return Err(format!("an event has {} bytes", sample.json.len()));
        }
        Ok((hub, sample))
    }

    /// Publishes one event and returns it as a subscriber received it; tries again if another event interfered.
    fn one(&mut self, subscriber: &mut File) -> Result<FanoutSample, String> {
        let mut why = String::new();
        for _ in 0..TRIES {
            quiet(subscriber, None)?;
            self.tell(1)?;
            match quiet(subscriber, Some(ORDINARY)).and_then(FanoutSample::of) {
                Ok(sample) => return Ok(sample),
                Err(wrong) => why = wrong,
            }
        }
        Err(why)
    }

    fn publish(&mut self, event: &Value) -> Result<(), String> {
        let text = event.to_string();
        self.publisher.post("/aaep/v1/publish", "application/json", &text).map(drop)
    }

    fn session(&self) -> String {
        format!("sess_bench{}", self.sessions)
    }

    fn event(&mut self) -> Value {
        let mut event =
            json!({ "session_id": self.session(), "producer": { "agent_id": "bench" } });
        let words = format!("Some ^ {}. ", "x".repeat(self.padding));
        match self.saying {
            PublishedContent::Progress => {
                event["type"] = "aaep:agent.progress.updated".into();
                event["progress"] = json!({ "percent": 50 });
                event["summary_normal"] = words.into();
            }
            PublishedContent::Sentences => {
                event["type"] = "aaep:agent.output.streaming".into();
                event["output_id"] = "out_bench".into();
                event["complete"] = false.into();
                event["position"] = self.position.into();
                self.position += words.len();
                event["chunk"] = words.into();
            }
        }
        event
    }
}

impl FanoutServer for HubServer {
    fn kind(&self) -> ServerKind {
        ServerKind::Hub
    }

    fn address(&self) -> MeasuredAddress {
        match self.wire {
            FanoutWire::Unix => MeasuredAddress::Unix(self.served.socket()),
            FanoutWire::Sse | FanoutWire::WebSocket => MeasuredAddress::Tcp(self.served.address()),
        }
    }

    /// Begins another session with room for more events, on a new connection, because the hub
    /// closes connections that were idle for a while.
    fn begin(&mut self) -> Result<(), String> {
        self.publisher = HttpConnection::open(self.served.address())?;
        self.sessions += 1;
        self.position = 0;
        let started = json!({
            "type": "aaep:agent.session.started", "session_id": self.session(),
            "producer": { "agent_id": "bench" }, "summary_normal": "A round begins.",
        });
        self.publish(&started)
    }

    fn tell(&mut self, events: usize) -> Result<(), String> {
        let mut body = String::new();
        for _ in 0..events {
            let event = self.event();
            writeln!(body, "{event}").map_err(|error| error.to_string())?;
        }
        self.publisher.post("/aaep/v1/publish", "application/x-ndjson", &body).map(drop)
    }

    fn tell_critical(&mut self) -> Result<(), String> {
        let words = format!("| {}", "x".repeat(100));
        let event = json!({
            "type": "aaep:agent.tool.invoked", "session_id": self.session(),
            "producer": { "agent_id": "bench" }, "tool": "bench.critical", "urgency": "critical",
            "summary_normal": words,
        });
        self.publish(&event)
    }

    fn usage(&self) -> Result<ProcessUsage, String> {
        self.served.usage()
    }

    fn stop(self: Box<Self>) -> Result<(), String> {
        self.served.stop()
    }
}

/// Waits until the wanted byte, if any, has arrived and nothing more arrives. Returns the bytes received.
fn quiet(subscriber: &mut File, wanted: Option<u8>) -> Result<Vec<u8>, String> {
    let began = Instant::now();
    let mut came = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    while began.elapsed() < PATIENCE {
        thread::sleep(QUIET);
        match subscriber.read(&mut buffer) {
            Ok(0) => return Err("the hub ended a connection".to_owned()),
            Ok(count) => came.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(_) if wanted.is_none_or(|it| came.contains(&it)) => return Ok(came),
            Err(_) => {}
        }
    }
    Err("the hub does not become quiet, or says nothing".to_owned())
}
