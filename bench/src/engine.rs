//! `engine`: what it costs to accept and shape an event, by the number of audiences and
//! subscribers, and how much memory an idle subscriber and a stalled one take.

use std::process::ExitCode;
use std::time::Instant;

use aaep::handshake::SubscriptionRequest;
use aaep::{Event, Message, Mode, Prefix, Timestamp, Uri};
use aaep_engine::terms::{Door, Offer};
use aaep_engine::{Engine, EngineConfig, EngineInput, Now, Output, PrincipalNumber, SubscriberKey};
use clap::Args;
use serde_json::json;

use crate::table::{BenchReport, BenchTarget, NamedAmount, ReportBlock, TargetBound};
use crate::timing::{ValueSpread, float};

#[derive(Args)]
pub(crate) struct EngineBenchOptions {
    /// Write the numbers to this file as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<std::path::PathBuf>,
    /// Measure the memory of one kind of world and print its bytes; for this program itself.
    #[arg(long, hide = true)]
    memory: Option<MemoryWorld>,
}

/// A world whose memory is measured in its own process, free of traces of other worlds.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum MemoryWorld {
    /// Many idle subscribers.
    Idle,
    /// Subscribers that take everything while many events go by.
    Calm,
    /// As many that take nothing.
    Stalled,
}

impl MemoryWorld {
    /// The bytes that such a world adds, measured by a child process.
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
        let mut world = EngineWorld::new();
        world.subscribe(&capabilities(0, None));
        let before = resident_bytes();
        match self {
            MemoryWorld::Idle => {
                for _ in 0..IDLE {
                    world.subscribe(&capabilities(0, Some(3)));
                }
            }
            MemoryWorld::Calm | MemoryWorld::Stalled => {
                for _ in 0..STALLED {
                    let subscriber = world.subscribe(&capabilities(1, None));
                    if self == MemoryWorld::Stalled {
                        world.engine.handle(world.now, EngineInput::Block { subscriber });
                    }
                }
                world.publish_many();
            }
        }
        resident_bytes() - before
    }
}

/// The number of idle subscribers whose memory is measured together.
const IDLE: u64 = 50_000;

/// The number of stalled subscribers whose memory is measured together.
const STALLED: u64 = 10_000;

/// The number of events timed for each crowd.
const EVENTS: u64 = 2000;

const AUDIENCES: [u64; 3] = [1, 8, 64];
const LISTENERS: [u64; 3] = [100, 1000, 10_000];

pub(crate) fn run(options: &EngineBenchOptions) -> ExitCode {
    if let Some(memory) = options.memory {
        println!("{}", memory.measure());
        return ExitCode::SUCCESS;
    }
    let mut report = BenchReport::default();
    let mut per_audience = Vec::new();
    let mut per_member = Vec::new();
    let mut once = true;
    for audiences in AUDIENCES {
        let mut block = ReportBlock::new(format!("{audiences} audiences, unlimited subscribers"));
        let mut smallest = None;
        for subscribers in LISTENERS {
            let crowd = CrowdCost::measure(audiences, subscribers);
            once &= crowd.encodings == EVENTS * audiences.min(subscribers);
            let mut amounts = crowd.spread.amounts();
            let each = crowd.spread.median / float(audiences.min(subscribers));
            amounts.push(NamedAmount::new("per audience", each, "ns"));
            amounts.push(NamedAmount::new(
                "encodings per event",
                float(crowd.encodings / EVENTS),
                "",
            ));
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
    let mut block = ReportBlock::new("Subscribers with nothing due, 10000 of them over their rate");
    block.line("Time per event more than without them", vec![NamedAmount::only(held, "ns")]);
    report.add(&block);
    let idle = MemoryWorld::Idle.of_child().map(|bytes| bytes / float(IDLE));
    let stalled = MemoryWorld::Stalled.of_child().zip(MemoryWorld::Calm.of_child());
    let stalled = stalled.map(|(stalled, calm)| (stalled - calm).max(0.0) / float(STALLED));
    let mut block = ReportBlock::new("Memory");
    block.line("An idle subscriber", vec![NamedAmount::only(idle.unwrap_or(f64::NAN), "bytes")]);
    let amount = NamedAmount::only(stalled.unwrap_or(f64::NAN), "bytes");
    block.line(
        "A subscriber stalled while 100000 events are offered, more than one that is not",
        vec![amount],
    );
    report.add(&block);
    let most = |numbers: &[f64]| numbers.iter().copied().fold(0.0, f64::max);
    report.judge(&[
        BenchTarget {
            what: "Median time per event and audience",
            wanted: TargetBound::AtMost(3000.0),
            unit: "ns",
            found: Some(most(&per_audience)),
        },
        BenchTarget {
            what: "Time per further unlimited subscriber",
            wanted: TargetBound::AtMost(60.0),
            unit: "ns",
            found: Some(most(&per_member)),
        },
        BenchTarget {
            what: "Encodings per event and audience",
            wanted: TargetBound::AtMost(1.0),
            unit: "",
            found: Some(if once { 1.0 } else { 2.0 }),
        },
        BenchTarget {
            what: "Memory of an idle subscriber",
            wanted: TargetBound::AtMost(512.0),
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

/// What it cost an engine to deliver events to a crowd.
struct CrowdCost {
    spread: ValueSpread,
    encodings: u64,
}

impl CrowdCost {
    fn measure(audiences: u64, subscribers: u64) -> Self {
        let mut world = EngineWorld::new();
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
        CrowdCost { spread: ValueSpread::of(times), encodings }
    }
}

/// How much longer an event takes with many subscribers that have held events but nothing due.
fn held_subscribers() -> f64 {
    let measure = |subscribers: u64| {
        let mut world = EngineWorld::new();
        world.subscribe(&capabilities(0, None));
        for _ in 0..subscribers {
            world.subscribe(&capabilities(0, Some(1)));
        }
        // Each subscriber receives its one event of this second; later events are held.
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
        ValueSpread::of(times).median
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
struct EngineWorld {
    engine: Engine,
    now: Now,
    session: String,
}

impl EngineWorld {
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
        let mut world = EngineWorld {
            engine: Engine::new(EngineConfig::new(offer, [1; 32])),
            now,
            session: "sess_bench".to_owned(),
        };
        let started = world.event(0, "session.started", &json!({ "summary_normal": "Measuring." }));
        world.publish(started);
        world
    }

    fn subscribe(&mut self, capabilities: &serde_json::Value) -> SubscriberKey {
        let request = json!({
            "type": "subscription.request", "aaep_version": "1.0.0",
            "subscriber_id": "bench", "capabilities": capabilities,
        });
        let request = Box::new(read_request(&request));
        let input = EngineInput::Subscribe {
            principal: PrincipalNumber(1),
            door: Door::Open,
            may_reply: true,
            request,
            hears: aaep_engine::HearingScope::All,
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
            EngineInput::Publish {
                principal: PrincipalNumber(1001),
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

    /// A call or a return of one tool, of about 500 bytes.
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

/// Sets the call id of a tool event.
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

/// The capabilities that lead to one of 64 audiences.
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
