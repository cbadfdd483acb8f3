//! The thread that speaks with the hub. It tries again while the hub is away, and never makes anyone else wait.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use aaep_bridge::{AskAnswer, ProxyAskNumber, opening_of};
use serde_json::{Value, json};

use super::inbox;
use super::note::ProxyNote;
use super::queue::{HubItem, HubQueue};
use crate::agent::{fresh_id, publish_within};
use crate::ask::BridgeAsk;
use crate::console::count;
use crate::http::{HubClient, HubRequest};

/// How long the hub may take for one request.
const HUB_TIMEOUT: Duration = Duration::from_secs(5);

/// The first and the longest pause between tries.
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// The most questions whose tokens are remembered.
const MAX_TOKENS: usize = 256;

/// An agent, as the hub meets it.
pub(crate) trait HubSide: Send + Sync {
    /// What waits for the hub.
    fn queue(&self) -> &HubQueue;

    /// The name under which the hub knows the agent.
    fn agent_id(&self) -> String;

    /// The person answered a question, or nobody did.
    fn answer(&self, number: ProxyAskNumber, answer: &AskAnswer);

    /// The person asks the agent to stop. Returns false if the session is not one of this agent.
    fn cancel(&self, session: &str) -> bool;

    /// Where the agent asks the person as well.
    fn window(&self) -> &'static str;

    /// What to say when the hub is away.
    fn away_words(&self) -> String {
        format!(
            "The AAEP hub does not answer or refuses this agent, which is not heard there now. Its questions in {} still \
             work. To start a hub: aaep serve",
            self.window()
        )
    }

    /// Tells the person here something about the connection.
    fn note(&self, note: &ProxyNote) {
        note.say();
    }

    /// A question could not be put.
    fn not_asked(&self, number: ProxyAskNumber) {
        self.answer(number, &AskAnswer::Nothing);
    }

    /// Whether a question is given up at once while the hub is away, because somebody waits for it.
    fn asks_at_once(&self) -> bool {
        false
    }
}

/// Starts the thread. What is returned is told when nothing is left to do.
pub(crate) fn start(proxy: Arc<dyn HubSide>, client: HubClient) -> Receiver<()> {
    let (done, told) = mpsc::channel();
    let mut speaker =
        HubSpeaker { proxy, client, tokens: BTreeMap::new(), is_away: false, has_inbox: false };
    thread::spawn(move || {
        speaker.run();
        let _ = done.send(());
    });
    told
}

/// What came of an attempt.
enum HubTry<V> {
    Done(V),
    Again,
    /// Somebody waits, so it is not tried again.
    TooLate,
    Pointless,
}

impl HubTry<()> {
    fn of(is_done: bool) -> Self {
        if is_done { HubTry::Done(()) } else { HubTry::Again }
    }
}

struct HubSpeaker {
    proxy: Arc<dyn HubSide>,
    client: HubClient,
    /// The reply tokens of the questions that were put.
    tokens: BTreeMap<ProxyAskNumber, String>,
    /// Whether it was said that the hub does not answer.
    is_away: bool,
    has_inbox: bool,
}

impl HubSpeaker {
    fn run(&mut self) {
        while let Some(item) = self.proxy.queue().next() {
            match item {
                HubItem::Events(events) => {
                    let events = self.with_dropped(events);
                    let is_told = self.until_done(|speaker| HubTry::of(speaker.publish(&events)));
                    if is_told.is_none() {
                        let lost = events.len() + self.proxy.queue().left();
                        self.proxy.note(&ProxyNote::LastNotTold(lost as u64));
                        return;
                    }
                }
                HubItem::Ask(number, ask) => self.ask(number, *ask),
                HubItem::Withdraw(number) => self.withdraw(number),
            }
        }
        let dropped = self.proxy.queue().take_dropped();
        if dropped > 0 {
            self.proxy.note(&ProxyNote::NotTold(dropped));
        }
    }

    /// Tries until the hub answers. `None` if it does not and the agent has ended, or the attempt is pointless.
    fn until_done<V>(&mut self, mut attempt: impl FnMut(&mut Self) -> HubTry<V>) -> Option<V> {
        let mut pause = PAUSE;
        let value = loop {
            let is_too_late = match attempt(self) {
                HubTry::Done(value) => break value,
                HubTry::Pointless => return None,
                HubTry::Again => false,
                HubTry::TooLate => true,
            };
            if !self.is_away {
                self.is_away = true;
                self.proxy.note(&ProxyNote::HubIsAway(self.proxy.away_words()));
            }
            if is_too_late {
                return None;
            }
            if self.proxy.asks_at_once() {
                self.proxy.queue().take_asks().into_iter().for_each(|it| self.proxy.not_asked(it));
            }
            if !self.proxy.queue().pause(pause) {
                return None;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        };
        if self.is_away {
            self.is_away = false;
            self.proxy.note(&ProxyNote::HubIsBack);
        }
        if !self.has_inbox {
            self.has_inbox = true;
            self.proxy.note(&ProxyNote::HubIsThere);
            inbox::start(&self.proxy, self.client.clone());
        }
        Some(value)
    }

    /// Adds how many events were left out because too many waited.
    fn with_dropped(&self, mut events: Vec<Value>) -> Vec<Value> {
        let dropped = self.proxy.queue().take_dropped();
        let Some(first) = events.first().filter(|_| dropped > 0) else { return events };
        let was = if dropped == 1 { "was" } else { "were" };
        let words = format!(
            "{} {was} left out here, because the hub did not take them in time.",
            count(dropped, "event")
        );
        self.proxy.note(&ProxyNote::Notice(words.clone()));
        let mut told = first.clone();
        if let Some(fields) = told.as_object_mut() {
            let kept = ["session_id", "producer", "@context", "extensions"];
            fields.retain(|name, _| kept.contains(&name.as_str()));
            if let Some(ours) = fields.get_mut("extensions").and_then(|it| it.as_object_mut()) {
                let project = ours["agentvoice"]["project"].clone();
                ours.clear();
                ours.insert("agentvoice".to_owned(), json!({ "project": project }));
            }
        }
        told["type"] = "aaep:agent.progress.updated".into();
        told["summary_normal"] = words.as_str().into();
        told["progress"] = json!({ "description": words });
        if let Ok(id) = fresh_id("evt_") {
            told["event_id"] = id.into();
        }
        let begins = first["type"] == "aaep:agent.session.started";
        events.insert(usize::from(begins), told);
        events
    }

    /// Publishes events. If the hub does not know their session, it begins it first. Returns false if the hub did not
    /// take them.
    fn publish(&self, events: &[Value]) -> bool {
        let Ok(answers) = publish_within(&self.client, events, HUB_TIMEOUT) else { return false };
        let is_unknown = |it: &&(&Value, &Result<Value, crate::agent::EventRefusal>)| {
            it.1.as_ref().is_err_and(|it| it.answer["error"] == "not_started")
        };
        let pairs: Vec<_> = events.iter().zip(&answers).collect();
        let unknown: Vec<Value> = pairs.iter().filter(is_unknown).map(|it| it.0.clone()).collect();
        let Some(first) = unknown.first() else { return true };
        let all: Vec<Value> = std::iter::once(opening_of(first)).chain(unknown).collect();
        publish_within(&self.client, &all, HUB_TIMEOUT).is_ok()
    }

    /// Puts a question, and leaves it to a thread of its own to wait for the answer.
    fn ask(&mut self, number: ProxyAskNumber, ask: BridgeAsk) {
        let is_taken = self.until_done(|speaker| {
            if speaker.proxy.queue().is_taken_back() {
                return HubTry::Pointless;
            }
            match speaker.put(&ask) {
                Some(is_taken) => HubTry::Done(is_taken),
                None if speaker.proxy.asks_at_once() => HubTry::TooLate,
                None => HubTry::Again,
            }
        });
        if is_taken != Some(true) {
            self.proxy.not_asked(number);
            return;
        }
        if self.tokens.len() >= MAX_TOKENS {
            self.tokens.pop_first();
        }
        self.tokens.insert(number, ask.reply_token().to_owned());
        let (proxy, client) = (Arc::clone(&self.proxy), self.client.clone());
        thread::spawn(move || proxy.answer(number, &ask.wait(&client)));
    }

    /// Sends a question. `None` if the hub did not answer; otherwise whether it takes it.
    fn put(&self, ask: &BridgeAsk) -> Option<bool> {
        let body = ask.event().to_string();
        let request = HubRequest {
            method: "POST",
            path: "/aaep/v1/asks?wait_seconds=0",
            body: Some(("application/json", body.as_bytes())),
            timeout: HUB_TIMEOUT,
        };
        let answer = self.client.send(&request).ok()?;
        if answer.is_success() {
            return Some(true);
        }
        if matches!(answer.status, 429 | 500..=599) {
            return None;
        }
        let is_unknown = answer.json().is_some_and(|it| it["error"] == "not_started");
        if !is_unknown {
            return Some(false);
        }
        publish_within(&self.client, &[opening_of(ask.event())], HUB_TIMEOUT).ok()?;
        self.client.send(&request).ok().map(|it| it.is_success())
    }

    fn withdraw(&mut self, number: ProxyAskNumber) {
        let Some(token) = self.tokens.remove(&number) else { return };
        let path = format!("/aaep/v1/asks/{token}");
        let request =
            HubRequest { method: "DELETE", path: &path, body: None, timeout: HUB_TIMEOUT };
        // If it was answered meanwhile, its answer counts for nothing here.
        self.until_done(|speaker| {
            HubTry::of(speaker.client.send(&request).is_ok_and(|it| it.status < 500))
        });
    }
}
