//! `engine`: what it costs to take an event in and shape it, by the number of audiences and of
//! subscribers, and what an idle subscriber and a stalled one weigh.

use std::process::ExitCode;
use std::time::Instant;

use aaep::handshake::SubscriptionRequest;
use aaep::{Event, Message, Mode, Prefix, Timestamp, Uri};
use aaep_engine::terms::{Door, Offer};
use aaep_engine::{Config, Engine, Input, Now, Output};
use clap::Args;
use serde_json::json;

use crate::table::{Amount, Block, Report, Target, Wanted};
use crate::timing::{Spread, float};

#[derive(Args)]
pub(crate) struct Options {
    /// Write the numbers to this file as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<std::path::PathBuf>,
    /// Measure the memory of one kind of world and print its bytes; for this program itself.
    #[arg(long, hide = true)]
    memory: Option<Memory>,
}

/// A world whose memory is measured in a process of its own, so that no other world left its traces.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Memory {
    /// Many idle subscribers.
    Idle,
    /// Subscribers that take everything while many events go by.
    Calm,
    /// As many that take nothing.
    Stalled,
}

impl Memory {
    /// The bytes that such a world adds, as a child of this process measures it.
    fn of_child(self) -> Option<f64> {
        let name = clap::ValueEnum::to_possible_value(&self)?.get_name().to_owned();
        let program = std::env::current_exe().ok()?;
        let output = std::process::Command::new(program)
            .args(["engine", "--memory", &name])
            .output()
            .ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    }

    fn measure(self) -> f64 {
        let mut world = World::new();
        world.subscribe(&capabilities(0, None));
        let before = resident_bytes();
        match self {
            Memory::Idle => {
                for _ in 0..IDLE {
                    world.subscribe(&capabilities(0, Some(3)));
                }
            }
            Memory::Calm | Memory::Stalled => {
                for _ in 0..STALLED {
                    let subscriber = world.subscribe(&capabilities(1, None));
                    if self == Memory::Stalled {
                        world.engine.handle(world.now, Input::Block { subscriber });
                    }
                }
                world.publish_many();
            }
        }
        resident_bytes() - before
    }
}

/// How many idle subscribers are weighed together.
const IDLE: u64 = 50_000;

/// How many stalled subscribers are weighed together.
const STALLED: u64 = 10_000;

/// How many events are timed for each crowd.
const EVENTS: u64 = 2000;

const AUDIENCES: [u64; 3] = [1, 8, 64];
const LISTENERS: [u64; 3] = [100, 1000, 10_000];

pub(crate) fn run(options: &Options) -> ExitCode {
    if let Some(memory) = options.memory {
        println!("{}", memory.measure());
        return ExitCode::SUCCESS;
    }
    let mut report = Report::default();
    let mut per_audience = Vec::new();
    let mut per_member = Vec::new();
    let mut once = true;
    for audiences in AUDIENCES {
        let mut block = Block::new(format!("{audiences} audiences, unlimited subscribers"));
        let mut smallest = None;
        for subscribers in LISTENERS {
            let crowd = Crowd::measure(audiences, subscribers);
            once &= crowd.encodings == EVENTS * audiences.min(subscribers);
            let mut amounts = crowd.spread.amounts();
            let each = crowd.spread.median / float(audiences.min(subscribers));
            amounts.push(Amount::new("per audience", each, "ns"));
            amounts.push(Amount::new("encodings per event", float(crowd.encodings / EVENTS), ""));
            block.line(format!("{subscribers} subscribers"), amounts);
            match smallest {
                None => {
                    per_audience.push(each);
                    smallest = Some((subscribers, crowd.spread.median));
                }
                Some((fewer, time)) => {
                    let further = (crowd.spread.median - time) / float(subscribers - fewer);
                    per_member.push(further);
                }
            }
        }
        report.add(&block);
    }
    let held = held_subscribers();
    let mut block = Block::new("Subscribers with nothing due, 10000 of them over their rate");
    block.line("Time per event more than without them", vec![Amount::only(held, "ns")]);
    report.add(&block);
    let idle = Memory::Idle.of_child().map(|bytes| bytes / float(IDLE));
    let stalled = Memory::Stalled.of_child().zip(Memory::Calm.of_child());
    let stalled = stalled.map(|(stalled, calm)| (stalled - calm).max(0.0) / float(STALLED));
    let mut block = Block::new("Memory");
    block.line("An idle subscriber", vec![Amount::only(idle.unwrap_or(f64::NAN), "bytes")]);
    let amount = Amount::only(stalled.unwrap_or(f64::NAN), "bytes");
    block.line(
        "A subscriber stalled while 100000 events are offered, more than one that is not",
        vec![amount],
    );
    report.add(&block);
    let most = |numbers: &[f64]| numbers.iter().copied().fold(0.0, f64::max);
    report.judge(&[
        Target {
            what: "Median time per event and audience",
            wanted: Wanted::AtMost(3000.0),
            unit: "ns",
            found: Some(most(&per_audience)),
        },
        Target {
            what: "Time per further unlimited subscriber",
            wanted: Wanted::AtMost(60.0),
            unit: "ns",
            found: Some(most(&per_member)),
        },
        Target {
            what: "Encodings per event and audience",
            wanted: Wanted::AtMost(1.0),
            unit: "",
            found: Some(if once { 1.0 } else { 2.0 }),
        },
        Target {
            what: "Memory of an idle subscriber",
            wanted: Wanted::AtMost(512.0),
            unit: "bytes",
            found: idle,
        },
    ]);
    let Some(path) = &options.json else { return ExitCode::SUCCESS };
    match std::fs::write(path, format!("{:#}\n", report.to_json())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report.say(format!("\nNot written to {}: {error}.", path.display()));
            ExitCode::from(3)
        }
    }
}

/// An engine with a crowd, and what it took to tell it something.
struct Crowd {
    spread: Spread,
    encodings: u64,
}

impl Crowd {
    fn measure(audiences: u64, subscribers: u64) -> Self {
        let mut world = World::new();
        for number in 0..subscribers {
            world.subscribe(&capabilities(number % audiences, None));
        }
        let mut times = Vec::new();
        let mut encodings = 0;
        for number in 0..EVENTS {
            let event = world.tool_event(number);
            let start = Instant::now();
            let outputs = world.publish(event);
            times.push(start.elapsed().as_secs_f64() * 1e9);
            encodings +=
                outputs.iter().filter(|it| matches!(it, Output::Deliver { .. })).count() as u64;
        }
        Crowd { spread: Spread::of(times), encodings }
    }
}

/// How much longer an event takes with many subscribers that hold something and are not due.
fn held_subscribers() -> f64 {
    let measure = |subscribers: u64| {
        let mut world = World::new();
        world.subscribe(&capabilities(0, None));
        for _ in 0..subscribers {
            world.subscribe(&capabilities(0, Some(1)));
        }
        // Everyone gets its one event of this second; from here on they are held.
        for number in 0..3 {
            let event = world.tool_event(number);
            world.publish(event);
        }
        let mut times = Vec::new();
        for number in 3..EVENTS {
            let event = world.tool_event(number);
            let start = Instant::now();
            world.publish(event);
            times.push(start.elapsed().as_secs_f64() * 1e9);
        }
        Spread::of(times).median
    };
    let (none, many) = (measure(0), measure(10_000));
    (many - none).max(0.0)
}

/// Resident memory of this process, in bytes.
fn resident_bytes() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    float(kilobytes.unwrap_or(0) * 1024)
}

/// An engine and one running session.
struct World {
    engine: Engine,
    now: Now,
    session: String,
}

impl World {
    fn new() -> Self {
        let offer = Offer {
            producer: aaep::Producer::new("bench"),
            versions: vec![aaep::Version::parse("1.0.0").expect("a version")],
            languages: vec![aaep::LanguageTag::parse("en-GB").expect("a tag")],
            max_events_per_second: None,
            extensions: vec![(
                Uri::parse(aaep::extension::CONTEXT).expect("a URI"),
                Prefix::parse(aaep::extension::PREFIX).expect("a prefix"),
            )],
            conformance_levels: vec![1, 2, 3],
            max_concurrent_subscriptions: 1_000_000,
            manifest_uri: None,
            signed_manifest: None,
            only_offered_languages: false,
        };
        let now = Now { monotonic_us: 0, unix_us: 1_793_600_400_000_000 };
        let mut world = World {
            engine: Engine::new(Config::new(offer, [1; 32])),
            now,
            session: "sess_bench".to_owned(),
        };
        let started = world.event(0, "session.started", &json!({ "summary_normal": "Measuring." }));
        world.publish(started);
        world
    }

    fn subscribe(&mut self, capabilities: &serde_json::Value) -> u32 {
        let request = json!({
            "type": "subscription.request", "aaep_version": "1.0.0",
            "subscriber_id": "bench", "capabilities": capabilities,
        });
        let request = Box::new(read_request(&request));
        let input = Input::Subscribe {
            principal: 1,
            door: Door::Open,
            may_reply: true,
            request,
            hears: aaep_engine::Hears::All,
            resume: None,
        };
        for output in self.engine.handle(self.now, input) {
            if let Output::Accepted { subscriber, .. } = output {
                return subscriber;
            }
        }
        unreachable!("the offer takes everyone")
    }

    fn publish(&mut self, event: Event) -> Vec<Output> {
        self.now.monotonic_us += 10;
        self.now.unix_us += 10;
        self.engine.handle(
            self.now,
            Input::Publish {
                principal: 1001,
                tags: aaep_engine::AgentTags::default(),
                event: Box::new(event),
            },
        )
    }

    fn publish_many(&mut self) {
        for number in 0..100_000 {
            let event = self.tool_event(number);
            self.publish(event);
        }
    }

    /// Calls and returns of one tool, about 500 bytes each.
    fn tool_event(&self, number: u64) -> Event {
        let call = format!("call_{}", number / 2);
        let text = "Looks through the timetable of the next three days for a train with a ramp, a seat near the door and enough time to change on foot.";
        if number.is_multiple_of(2) {
            let payload = json!({ "tool": "timetable.search", "summary_normal": text, "args_summary": "from Leeds, after nine" });
            self.event(number + 1, "tool.invoked", &payload)
        } else {
            let payload = json!({ "tool": "timetable.search", "status": "success", "summary_normal": text, "duration_ms": 4100 });
            self.event(number + 1, "tool.completed", &payload)
        }
        .with_call(&call)
    }

    fn event(&self, number: u64, name: &str, payload: &serde_json::Value) -> Event {
        let timestamp = Timestamp::from_unix_ms(1_793_600_400_000).expect("a moment");
        let mut event = json!({
            "@context": aaep::CORE_CONTEXT, "type": format!("aaep:agent.{name}"),
            "event_id": format!("evt_{number:x}"), "session_id": self.session,
            "timestamp": timestamp.as_str(), "producer": { "agent_id": "travel-desk", "agent_version": "1.7.2" },
            "localization_hints": { "primary_language": "en-GB" },
        });
        for (key, value) in payload.as_object().into_iter().flatten() {
            event[key] = value.clone();
        }
        match aaep::read(event.to_string().as_bytes(), Mode::Strict).into_result() {
            Ok(Message::Event(event)) => *event,
            other => unreachable!("{other:?}"),
        }
    }
}

/// A tool event of a named call.
trait WithCall {
    fn with_call(self, call: &str) -> Self;
}

impl WithCall for Event {
    fn with_call(mut self, call: &str) -> Self {
        let id = aaep::ToolCallId::parse(call).ok();
        match &mut self.payload {
            aaep::Payload::ToolInvoked(tool) => tool.tool_call_id = id,
            aaep::Payload::ToolCompleted(tool) => tool.tool_call_id = id,
            _ => {}
        }
        self
    }
}

fn read_request(request: &serde_json::Value) -> SubscriptionRequest {
    match aaep::read(request.to_string().as_bytes(), Mode::Strict).into_result() {
        Ok(Message::SubscriptionRequest(request)) => *request,
        other => unreachable!("{other:?}"),
    }
}

/// Terms of one of 64 audiences.
fn capabilities(audience: u64, rate: Option<u64>) -> serde_json::Value {
    let verbosity = ["terse", "normal", "detailed", "normal"][(audience % 4) as usize];
    let boundary = ["sentence", "word", "paragraph", "completion"][(audience / 4 % 4) as usize];
    let load = ["medium", "high"][(audience / 16 % 2) as usize];
    let mut capabilities = json!({
        "preferred_verbosity": verbosity, "coalesce_boundaries": [boundary], "cognitive_load": load,
        "languages": ["en-GB"],
        "event_filters": { "exclude": [format!("bench:{}.{}", audience / 32, audience % 4)] },
    });
    if let Some(rate) = rate {
        capabilities["max_events_per_second"] = rate.into();
    }
    capabilities
}
