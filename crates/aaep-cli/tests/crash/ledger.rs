//! Records what agents and subscribers were told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An event of a session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) session_id: String,
    pub(crate) event_id: String,
}

impl Place {
    pub(crate) fn new(session_id: impl Into<String>, event_id: impl Into<String>) -> Self {
        Place { session_id: session_id.into(), event_id: event_id.into() }
    }
}

/// The messages of one connection of a subscriber, and the life of the hub in which they came.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heard {
    pub(crate) life: u64,
    pub(crate) events: Vec<Place>,
    /// The texts among them.
    pub(crate) texts: Vec<Text>,
}

/// A chunk of an output: where it begins and ends, and whether it is the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) session_id: String,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) is_complete: bool,
}

/// What a subscriber wants to hear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Wants {
    /// Every event unchanged.
    #[default]
    Everything,
    /// The common terms: text in sentences, and only the newest progress.
    TheUsual,
}

/// Everything that a subscriber heard.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hearing {
    pub(crate) wants: Wants,
    /// How often it was told that something is missing.
    pub(crate) gaps: u64,
    pub(crate) connections: Vec<Heard>,
}

/// The state of a question, as its agent was told.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Settled {
    pub(crate) outcome: String,
    pub(crate) decided_by: String,
}

/// What is known of one question.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    /// Every deadline that was named while it was open.
    pub(crate) deadlines: BTreeSet<String>,
    /// The lives of the hub in which it was seen open.
    pub(crate) open_in: BTreeSet<u64>,
    /// Every outcome that was named.
    pub(crate) settled: BTreeSet<Settled>,
    /// The decisions that people sent, whether or not they arrived.
    pub(crate) said: BTreeSet<&'static str>,
    /// The decisions that the hub said count.
    pub(crate) counted: BTreeSet<&'static str>,
    /// The hub said that it is withdrawn.
    pub(crate) is_withdrawn: bool,
}

impl Asked {
    pub(crate) fn say(&mut self, decision: &'static str) {
        self.said.insert(decision);
    }

    pub(crate) fn count(&mut self, decision: &'static str) {
        self.counted.insert(decision);
    }

    pub(crate) fn settle(&mut self, settled: Settled) {
        self.settled.insert(settled);
    }
}

/// The whole record.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entries {
    /// The acknowledged events, in the order in which they were sent. An agent waits for each acknowledgement.
    pub(crate) acknowledged: Vec<Place>,
    /// How many acknowledgements were for repeated events.
    pub(crate) repeated: u64,
    /// The questions that were acknowledged, by token.
    pub(crate) asked: BTreeMap<String, Asked>,
    /// What each subscriber heard.
    pub(crate) heard: BTreeMap<String, Hearing>,
    /// Mistakes that were noticed immediately.
    pub(crate) faults: Vec<String>,
    /// How many forbidden requests were refused.
    pub(crate) refused: u64,
}

/// The record that all threads share.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Entries>);

impl Ledger {
    pub(crate) fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn acknowledged(&self, place: Place, is_repeated: bool) {
        let mut entries = self.entries();
        entries.acknowledged.push(place);
        entries.repeated += u64::from(is_repeated);
    }

    pub(crate) fn fault(&self, fault: String) {
        self.entries().faults.push(fault);
    }

    pub(crate) fn ask(&self, token: &str, write: impl FnOnce(&mut Asked)) {
        write(self.entries().asked.entry(token.to_owned()).or_default());
    }

    /// A subscriber has a connection.
    pub(crate) fn connected(&self, subscriber: &str, wants: Wants, life: u64) {
        let mut entries = self.entries();
        let hearing = entries.heard.entry(subscriber.to_owned()).or_default();
        hearing.wants = wants;
        hearing.connections.push(Heard { life, ..Heard::default() });
    }

    /// A subscriber was told that something is missing.
    pub(crate) fn gap(&self, subscriber: &str) {
        self.entries().heard.entry(subscriber.to_owned()).or_default().gaps += 1;
    }

    /// An event came on the newest connection of a subscriber.
    pub(crate) fn heard(&self, subscriber: &str, place: Place, text: Option<Text>) {
        let mut entries = self.entries();
        let hearing = entries.heard.entry(subscriber.to_owned()).or_default();
        if let Some(heard) = hearing.connections.last_mut() {
            heard.events.push(place);
            heard.texts.extend(text);
        }
    }

    /// How many subscribers have had a connection in this life of the hub.
    pub(crate) fn listen_in(&self, life: u64) -> usize {
        let entries = self.entries();
        let has = |it: &&Hearing| it.connections.last().is_some_and(|last| last.life == life);
        entries.heard.values().filter(has).count()
    }

    /// Whether all of this many subscribers have heard this event.
    pub(crate) fn have_all_heard(&self, subscribers: usize, event_id: &str) -> bool {
        let entries = self.entries();
        let has = |hearing: &&Hearing| {
            let mut events = hearing.connections.iter().flat_map(|it| &it.events);
            events.any(|it| it.event_id == event_id)
        };
        entries.heard.values().filter(has).count() == subscribers
    }
}

/// Counts, which show that something happened in the test.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) kills: u64,
    pub(crate) kills_while_starting: u64,
    pub(crate) acknowledged: u64,
    pub(crate) repeated: u64,
    pub(crate) refused: u64,
    pub(crate) deliveries: u64,
    pub(crate) connections: u64,
    /// How often each subscriber was told that something is missing.
    pub(crate) gaps: BTreeMap<String, u64>,
    pub(crate) asks_open_over_a_kill: u64,
    pub(crate) outcomes: BTreeMap<Settled, u64>,
}

impl Seen {
    pub(crate) fn of(entries: &Entries, kills: u64, kills_while_starting: u64) -> Self {
        let heard = || entries.heard.values().flat_map(|it| &it.connections);
        let mut outcomes = BTreeMap::new();
        for settled in entries.asked.values().flat_map(|ask| &ask.settled) {
            *outcomes.entry(settled.clone()).or_default() += 1;
        }
        Seen {
            kills,
            kills_while_starting,
            acknowledged: entries.acknowledged.len() as u64,
            repeated: entries.repeated,
            refused: entries.refused,
            deliveries: heard().map(|it| it.events.len() as u64).sum(),
            connections: heard().count() as u64,
            gaps: entries
                .heard
                .iter()
                .filter(|(_, it)| it.gaps > 0)
                .map(|(name, it)| (name.clone(), it.gaps))
                .collect(),
            asks_open_over_a_kill: entries.asked.values().filter(|it| it.open_in.len() > 1).count()
                as u64,
            outcomes,
        }
    }

    pub(crate) fn add(&mut self, other: &Seen) {
        self.kills += other.kills;
        self.kills_while_starting += other.kills_while_starting;
        self.acknowledged += other.acknowledged;
        self.repeated += other.repeated;
        self.refused += other.refused;
        self.deliveries += other.deliveries;
        self.connections += other.connections;
        for (name, count) in &other.gaps {
            *self.gaps.entry(name.clone()).or_default() += count;
        }
        self.asks_open_over_a_kill += other.asks_open_over_a_kill;
        for (settled, count) in &other.outcomes {
            *self.outcomes.entry(settled.clone()).or_default() += count;
        }
    }

    pub(crate) fn assert_that_all_of_it_happened(&self) {
        let count = |outcome: &str, decided_by: &str| {
            let (outcome, decided_by) = (outcome.to_owned(), decided_by.to_owned());
            self.outcomes.get(&Settled { outcome, decided_by }).copied().unwrap_or(0)
        };
        for (what, count) in [
            ("kills while starting", self.kills_while_starting),
            ("acknowledged events", self.acknowledged),
            ("acknowledgements that were lost and asked for again", self.repeated),
            ("refusals", self.refused),
            ("deliveries", self.deliveries),
            ("questions that were open over a kill", self.asks_open_over_a_kill),
            ("accepted questions", count("accept", "reply")),
            ("rejected questions", count("reject", "reply")),
            ("questions whose time ran out", count("reject", "timeout")),
            ("questions that were withdrawn", count("withdrawn", "withdrawn")),
        ] {
            assert!(count > 0, "there were no {what}, so nothing is proven about them: {self}");
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} kills ({} while starting), {} events acknowledged ({} of them again after a cut), {} \
             deliveries on {} connections, told of gaps: {:?}, {} questions open over a kill, {} refusals, outcomes:",
            self.kills,
            self.kills_while_starting,
            self.acknowledged,
            self.repeated,
            self.deliveries,
            self.connections,
            self.gaps,
            self.asks_open_over_a_kill,
            self.refused
        )?;
        for (settled, count) in &self.outcomes {
            write!(f, " {count} {} by {}", settled.outcome, settled.decided_by)?;
        }
        Ok(())
    }
}
