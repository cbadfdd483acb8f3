//! The hub: `aaep serve` as a process of its own, with its store on the disk and its limits raised.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::readers::{Readers, lines};
use super::{EVENT_BYTES, Server};
use crate::process::Usage;
use crate::serve::{Connection, Served};

/// How long the first events may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long nothing must come before what came counts as all.
const QUIET: Duration = Duration::from_millis(500);

/// A hub that runs.
pub(super) struct Hub {
    served: Served,
    /// Where agents publish.
    publisher: Connection,
    /// How much is added to an event so that it has the right length.
    padding: usize,
    sessions: u64,
}

impl Hub {
    /// Starts it with so many listeners. The third is how much memory the listeners take.
    pub(super) fn start(listeners: usize) -> Result<(Self, Readers, f64), String> {
        let served = Served::start(listeners)?;
        let address = served.address();
        let publisher = Connection::open(address)?;
        let mut hub = Hub { served, publisher, padding: 1, sessions: 0 };
        let before = hub.usage()?.bytes;
        let sockets = (0..listeners).map(|_| listen(address)).collect::<Result<Vec<_>, _>>()?;
        thread::sleep(QUIET);
        let memory = hub.usage()?.bytes - before;
        let readers = Readers::start(sockets)?;
        hub.begin_session()?;
        Ok((hub, readers, memory))
    }

    /// An event exactly as a listener gets it, with the right length of JSON.
    pub(super) fn frame(&mut self, readers: &Readers) -> Result<Vec<u8>, String> {
        let short = self.one(readers)?;
        let length = data_of(&short).ok_or("the hub sent no event")?.len();
        self.padding += EVENT_BYTES.checked_sub(length).ok_or("an event is too long already")?;
        let frame = self.one(readers)?;
        let length = data_of(&frame).ok_or("the hub sent no event")?.len();
        if length.abs_diff(EVENT_BYTES) > 2 {
            return Err(format!("an event has {length} bytes"));
        }
        readers.end_sample();
        readers.count_by(lines(&frame));
        Ok(frame)
    }

    /// Publishes one event and gives what the first listener got of it.
    fn one(&mut self, readers: &Readers) -> Result<Vec<u8>, String> {
        Hub::quiet(readers)?;
        self.tell(1)?;
        Hub::quiet(readers)
    }

    /// Waits until nothing comes any more, and gives what came to the first listener meanwhile.
    fn quiet(readers: &Readers) -> Result<Vec<u8>, String> {
        let began = Instant::now();
        let mut came = Vec::new();
        loop {
            thread::sleep(QUIET);
            let now = readers.sample();
            if now.is_empty() {
                return Ok(came);
            }
            came.extend(now);
            if began.elapsed() > PATIENCE {
                return Err("the hub does not become quiet".to_owned());
            }
        }
    }

    /// The events from now on are of another session, which has room for them.
    pub(super) fn begin_session(&mut self) -> Result<(), String> {
        self.sessions += 1;
        let started = json!({
            "type": "aaep:agent.session.started", "session_id": self.session(),
            "producer": { "agent_id": "bench" }, "summary_normal": "A round begins.",
        });
        let before =
            self.publisher.post("/aaep/v1/publish", "application/json", &started.to_string());
        before?;
        // It is heard before anything is counted.
        thread::sleep(QUIET);
        Ok(())
    }

    /// Lets it stop by itself.
    pub(super) fn stop(self) -> Result<(), String> {
        self.served.stop()
    }

    fn session(&self) -> String {
        format!("sess_bench{}", self.sessions)
    }

    fn event(&self) -> Value {
        json!({
            "type": "aaep:agent.progress.updated", "session_id": self.session(),
            "producer": { "agent_id": "bench" }, "progress": { "percent": 50 },
            "summary_normal": "x".repeat(self.padding),
        })
    }
}

impl Server for Hub {
    fn tell(&mut self, events: usize) -> Result<(), String> {
        let event = self.event().to_string();
        let mut body = String::new();
        for _ in 0..events {
            writeln!(body, "{event}").map_err(|error| error.to_string())?;
        }
        self.publisher.post("/aaep/v1/publish", "application/x-ndjson", &body).map(drop)
    }

    fn usage(&self) -> Result<Usage, String> {
        self.served.usage()
    }
}

/// The JSON in an event as it came.
fn data_of(frame: &[u8]) -> Option<&[u8]> {
    let lines = frame.split(|byte| *byte == b'\n');
    lines.filter_map(|line| line.strip_prefix(b"data: ")).next_back()
}

/// A listener that hears everything as it comes.
fn listen(address: SocketAddr) -> Result<TcpStream, String> {
    let request = json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "bench",
        "capabilities": {
            "coalesce_boundaries": ["none"], "event_filters": { "include": ["*"] },
        },
    });
    let mut connection = Connection::open(address)?;
    let accepted =
        connection.post("/aaep/v1/subscriptions", "application/json", &request.to_string())?;
    let accepted: Value = serde_json::from_str(&accepted).map_err(|error| error.to_string())?;
    let id = accepted["subscription_id"].as_str().ok_or("no subscription")?;
    connection.send(&format!(
        "GET /aaep/v1/events?subscription_id={id} HTTP/1.1\r\nhost: {address}\r\n\
         accept: text/event-stream\r\n\r\n"
    ))?;
    match connection.head()? {
        (200, _) => Ok(connection.stream.into_inner()),
        (status, _) => Err(format!("a stream was refused with {status}")),
    }
}
