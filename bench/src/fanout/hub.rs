//! The hub: `aaep serve` as a process of its own, with its store on the disk and its limits raised.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::crowd::Crowd;
use super::listen::ORDINARY;
use super::server::Server;
use super::wire::{Address, Kind, Place, Wire};
use super::{EVENT_BYTES, Sample};
use crate::process::Usage;
use crate::serve::{Connection, Served};

/// How long nothing must come before what came counts as all.
const QUIET: Duration = Duration::from_millis(150);

/// How long the hub may take to become quiet.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often it is tried to get one event alone.
const TRIES: usize = 5;

/// What the events are about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Saying {
    /// How far something is.
    Progress,
    /// Text, a sentence in each event.
    Sentences,
}

/// A hub that runs.
pub(super) struct Hub {
    served: Served,
    /// Where agents publish.
    publisher: Connection,
    wire: Wire,
    saying: Saying,
    /// How much is added to an event so that it has the right length.
    padding: usize,
    sessions: u64,
    /// How many characters of text the session has.
    position: usize,
}

impl Hub {
    /// Starts it with room for so many subscribers, and shows an event exactly as one of them gets it.
    pub(super) fn start(
        wire: Wire,
        subscribers: usize,
        saying: Saying,
    ) -> Result<(Self, Sample), String> {
        let served = Served::start(subscribers)?;
        let publisher = Connection::open(served.address())?;
        let mut hub = Hub { served, publisher, wire, saying, padding: 1, sessions: 0, position: 0 };
        let address = hub.address();
        let place = Place { kind: Kind::Hub, wire, address: &address };
        let mut subscriber = place.listen(&Crowd::One.capabilities(0), true)?;
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

    /// Publishes one event and shows what a subscriber got of it; again, if something else came between.
    fn one(&mut self, subscriber: &mut File) -> Result<Sample, String> {
        let mut why = String::new();
        for _ in 0..TRIES {
            quiet(subscriber, None)?;
            self.tell(1)?;
            match quiet(subscriber, Some(ORDINARY)).and_then(Sample::of) {
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
            Saying::Progress => {
                event["type"] = "aaep:agent.progress.updated".into();
                event["progress"] = json!({ "percent": 50 });
                event["summary_normal"] = words.into();
            }
            Saying::Sentences => {
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

impl Server for Hub {
    fn kind(&self) -> Kind {
        Kind::Hub
    }

    fn address(&self) -> Address {
        match self.wire {
            Wire::Unix => Address::Unix(self.served.socket()),
            Wire::Sse | Wire::WebSocket => Address::Tcp(self.served.address()),
        }
    }

    /// The events from now on are of another session, which has room for them. They come on another
    /// connection, because the hub ends those on which nothing was said for a while.
    fn begin(&mut self) -> Result<(), String> {
        self.publisher = Connection::open(self.served.address())?;
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

    fn usage(&self) -> Result<Usage, String> {
        self.served.usage()
    }

    fn stop(self: Box<Self>) -> Result<(), String> {
        self.served.stop()
    }
}

/// Waits until this has come, if anything, and nothing comes any more; gives what came.
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
