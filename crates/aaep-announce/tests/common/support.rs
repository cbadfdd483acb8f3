//! Events to try, and a device that a test plays.

#![allow(dead_code, reason = "each test file uses its part of this one")]

use std::time::Duration;

use aaep::{Event, Message, Mode, read};
use aaep_announce::{
    Announcer, AnnouncerInput, AnnouncerOutcome, Asked, Decided, DeviceReport, Order, Preferences,
    Utterance, UtteranceId,
};
use serde_json::{Value, json};

/// An event of agent and session, such as `tool.invoked` with its fields.
pub(crate) fn event_of(agent: &str, session: &str, kind: &str, fields: &Value) -> Event {
    let name = if kind.contains(':') { kind.to_owned() } else { format!("aaep:agent.{kind}") };
    let critical =
        ["session.errored", "awaiting.confirmation", "awaiting.clarification", "handoff.requested"];
    let mut event = json!({
        "@context": ["https://aaep-protocol.org/context/v1", aaep::extension::CONTEXT],
        "type": name, "event_id": "evt_1", "session_id": format!("sess_{session}"),
        "timestamp": "2026-11-02T06:20:00.000Z", "producer": { "agent_id": agent },
        "urgency": if critical.contains(&kind) { "critical" } else { "normal" },
    });
    for (key, value) in fields.as_object().expect("an object") {
        event[key] = value.clone();
    }
    match read(event.to_string().as_bytes(), Mode::Tolerant).message {
        Some(Message::Event(event)) => *event,
        other => panic!("{other:?}"),
    }
}

/// An event of the usual agent.
pub(crate) fn event(kind: &str, fields: &Value) -> Event {
    event_of("Weaver", "a", kind, fields)
}

pub(crate) fn text(chunk: &str) -> Event {
    event("output.streaming", &json!({ "chunk": chunk, "position": 0, "complete": true }))
}

pub(crate) fn tool(name: &str, summary: &str) -> Event {
    event("tool.invoked", &json!({ "tool": name, "summary_normal": summary }))
}

pub(crate) fn state(to: &str, summary: &str) -> Event {
    event(
        "state.changed",
        &json!({ "from_state": "idle", "to_state": to, "summary_normal": summary }),
    )
}

pub(crate) fn completed(summary: &str) -> Event {
    event("session.completed", &json!({ "summary_normal": summary }))
}

/// A confirmation that is asked with the tool `delete_files`.
pub(crate) fn confirmation(token: &str) -> Event {
    event(
        "awaiting.confirmation",
        &json!({
            "action": "Delete 17 pictures from /home/ada/work/july.",
            "consequence": "They are gone for good.", "reply_token": token, "timeout_seconds": 300,
            "default_decision": "reject", "risk_level": "high", "irreversible": true,
            "extensions": { "agentvoice": { "tool": "delete_files" } },
        }),
    )
}

pub(crate) fn resolution(token: &str, outcome: &str, decided_by: &str) -> Event {
    event(
        "state.changed",
        &json!({
            "from_state": "awaiting_input", "to_state": "thinking",
            "extensions": { "agentvoice": { "resolution": {
                "reply_token": token, "outcome": outcome, "decided_by": decided_by,
            } } },
        }),
    )
}

pub(crate) fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// An announcer whose device the test plays. Time stands still unless the test moves it.
pub(crate) struct Room {
    pub(crate) announcer: Announcer,
    pub(crate) now: Duration,
    /// What the device is saying.
    pub(crate) speaking: Option<Utterance>,
    /// What it was told to stop and has not reported on.
    pub(crate) stopped: Vec<UtteranceId>,
    pub(crate) orders: Vec<Order>,
    pub(crate) outcomes: Vec<AnnouncerOutcome>,
}

impl Room {
    pub(crate) fn new(preferences: Preferences) -> Self {
        Room {
            announcer: Announcer::new(preferences),
            now: Duration::ZERO,
            speaking: None,
            stopped: Vec::new(),
            orders: Vec::new(),
            outcomes: Vec::new(),
        }
    }

    /// One without sounds that is read by hand, so that a question is one utterance.
    pub(crate) fn by_hand() -> Self {
        let preferences = Preferences { sounds: false, ..Preferences::default() };
        let announcer = Announcer::new(preferences.clone()).with_context_on_request();
        Room { announcer, ..Room::new(preferences) }
    }

    /// One without sounds, so that orders are words.
    pub(crate) fn quiet() -> Self {
        Room::new(Preferences { sounds: false, ..Preferences::default() })
    }

    pub(crate) fn handle(&mut self, input: AnnouncerInput<'_>) -> Decided {
        let decided = self.announcer.handle(self.now, input);
        self.carry_out(decided)
    }

    /// The same from this hub.
    pub(crate) fn handle_from(&mut self, hub: usize, input: AnnouncerInput<'_>) -> Decided {
        let decided = self.announcer.handle_from(self.now, hub, input);
        self.carry_out(decided)
    }

    fn carry_out(&mut self, decided: Decided) -> Decided {
        for order in &decided.orders {
            match order {
                Order::Say(utterance) => {
                    assert!(self.speaking.is_none(), "two at once: {utterance:?}");
                    assert!(!utterance.words.is_empty());
                    self.speaking = Some(utterance.clone());
                }
                Order::Stop => self.stopped.extend(self.speaking.take().map(|it| it.id)),
                Order::Withdraw(_) | Order::Sound(_) | Order::Pace(_) => {}
            }
        }
        self.orders.extend(decided.orders.clone());
        self.outcomes.extend(decided.outcomes.clone());
        decided
    }

    pub(crate) fn hear(&mut self, event: &Event) -> Decided {
        self.handle(AnnouncerInput::Event(event))
    }

    pub(crate) fn ask(&mut self, number: u32, event: &Event) -> Decided {
        let remaining = seconds(300);
        self.handle(AnnouncerInput::Asked(Asked { number, event, remaining, can_answer: true }))
    }

    pub(crate) fn report(&mut self, report: DeviceReport) -> Decided {
        if let DeviceReport::Ended(id) | DeviceReport::Cut(id) | DeviceReport::Shown(id) = report {
            self.speaking.take_if(|it| it.id == id);
            self.stopped.retain(|it| *it != id);
        }
        self.handle(AnnouncerInput::Device(report))
    }

    /// The device says what it has whole, and then the next thing, until nothing is left.
    pub(crate) fn listen(&mut self) -> Vec<String> {
        let mut heard = Vec::new();
        for id in std::mem::take(&mut self.stopped) {
            self.report(DeviceReport::Cut(id));
        }
        while let Some(utterance) = self.speaking.take() {
            match heard.last_mut() {
                Some(last) if self.is_next_part(&utterance) => {
                    *last = format!("{last} {}", utterance.words);
                }
                _ => heard.push(utterance.words),
            }
            self.report(DeviceReport::Began(utterance.id));
            self.report(DeviceReport::Ended(utterance.id));
        }
        heard
    }

    /// Whether this goes on with what was said directly before it.
    fn is_next_part(&self, utterance: &Utterance) -> bool {
        let mut said = self.orders.iter().rev().filter_map(|it| match it {
            Order::Say(said) => Some(said),
            _ => None,
        });
        let is_it = said.next().is_some_and(|it| it.id == utterance.id);
        is_it
            && utterance.is_continued
            && said.next().is_some_and(|it| it.number == utterance.number)
    }

    /// What the device is saying.
    pub(crate) fn words(&self) -> &str {
        self.speaking.as_ref().map_or("", |it| &it.words)
    }

    pub(crate) fn id(&self) -> UtteranceId {
        self.speaking.as_ref().expect("something is being said").id
    }
}
