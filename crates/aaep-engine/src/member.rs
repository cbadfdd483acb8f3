//! One listener's way through the log of its audience: how far it is, what it may get now, and what
//! is merged when it is behind (§5.3.1.1, §5.3.1.11, §5.6.1, rulings 6 to 10).

mod merge;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use aaep::event::reasoning::StateChanged;
use aaep::{EventId, LanguageTag, Payload};

use crate::audience::{Audience, Entry, Kind, SessionKey, TextKey, Unit, text_key};
use crate::boundary::count_words;
use crate::budget::Budget;
use crate::clock::SECOND_US;
use crate::frame::Frame;

/// How far announcing may be behind before more is held back and merged (§5.3.1.11): a listener
/// never has more than this much left to announce when it gets something that can wait.
pub const MAX_ANNOUNCING_US: u64 = 2 * SECOND_US;

/// From how many waiting tool events on they are summed up in one (ruling 10).
pub const MAX_WAITING_TOOLS: usize = 16;

/// How many of the events sent last are remembered, in case the connection lost them.
const REMEMBERED: usize = 64;

/// Where a listener is in the log of its audience.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    /// Everything before was sent or is superfluous.
    pub(crate) at: u64,
    /// What there is to remember; nothing for most, who take everything in order.
    memory: Option<Box<Memory>>,
}

/// What has to be remembered of a listener that did not just take everything in order.
#[derive(Debug, Default)]
struct Memory {
    /// What was sent already of what comes after, because it was merged with earlier units.
    ahead: BTreeSet<u64>,
    /// The first state left of those that were folded and not told yet, by session and agent.
    folded: BTreeMap<(SessionKey, Box<str>), Box<str>>,
    /// What was sent last out of order, or made for this listener alone.
    sent: VecDeque<Sent>,
    /// Up to where the text of an output was told already, under other terms.
    told_text: BTreeMap<TextKey, u64>,
}

/// Something that was sent.
#[derive(Debug)]
struct Sent {
    id: EventId,
    /// The units that it told.
    units: Vec<u64>,
    /// Where the listener was when it was sent.
    at: u64,
}

/// What a listener keeps a rate and a pace with.
#[derive(Debug)]
pub(crate) struct Limits {
    budget: Option<Budget>,
    pace_wpm: Option<u64>,
    /// When the listener has announced what it got, as far as can be guessed.
    announcing_until_us: u64,
}

impl Limits {
    /// None for a listener that takes everything as it comes.
    pub(crate) fn of(
        max_events_per_second: Option<u64>,
        pace_wpm: Option<u64>,
    ) -> Option<Box<Self>> {
        if max_events_per_second.is_none() && pace_wpm.is_none() {
            return None;
        }
        let budget = max_events_per_second.map(Budget::new);
        Some(Box::new(Limits { budget, pace_wpm, announcing_until_us: 0 }))
    }

    /// Other limits from now on; what was spent stays spent.
    pub(crate) fn change(&mut self, max_events_per_second: Option<u64>, pace_wpm: Option<u64>) {
        self.pace_wpm = pace_wpm;
        match (&mut self.budget, max_events_per_second) {
            (Some(budget), Some(max)) => budget.set_max(max),
            (budget, max) => *budget = max.map(Budget::new),
        }
    }

    /// When the next event that can wait may be sent; now, if it may.
    pub(crate) fn next_us(&mut self, now_us: u64) -> u64 {
        let by_budget = self.budget.as_mut().map_or(now_us, |budget| budget.next_us(now_us));
        by_budget.max(self.announcing_until_us.saturating_sub(MAX_ANNOUNCING_US)).max(now_us)
    }

    fn spend(&mut self, now_us: u64, words: usize) {
        if let Some(budget) = &mut self.budget {
            budget.spend(now_us);
        }
        self.announce(now_us, words);
    }

    /// The listener has so many more words to announce.
    pub(crate) fn announce(&mut self, now_us: u64, words: usize) {
        if let Some(pace) = self.pace_wpm {
            let takes_us = words as u64 * 60 * SECOND_US / pace.max(1);
            self.announcing_until_us = self.announcing_until_us.max(now_us) + takes_us;
        }
    }

    pub(crate) fn has_pace(&self) -> bool {
        self.pace_wpm.is_some()
    }
}

/// How far a listener got with what it may get now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progressed {
    /// Nothing is held.
    CaughtUp,
    /// Something is held until then.
    Until(u64),
}

impl Cursor {
    /// From this position of the log on.
    pub(crate) fn starting_at(at: u64) -> Self {
        Cursor { at, ..Cursor::default() }
    }

    /// At the end of the log: only what comes from now on.
    pub(crate) fn at_end(audience: &Audience) -> Self {
        Cursor::starting_at(audience.end())
    }

    /// Sends what is waiting, as far as the limits allow.
    pub(crate) fn advance(
        &mut self,
        audience: &Audience,
        mut limits: Option<&mut Limits>,
        now_us: u64,
        primary: &LanguageTag,
        send: &mut impl FnMut(Arc<Frame>),
    ) -> Progressed {
        loop {
            self.skip(audience);
            if self.at >= audience.end() {
                self.forget(audience);
                return Progressed::CaughtUp;
            }
            if let Some(limits) = limits.as_deref_mut() {
                let next_us = limits.next_us(now_us);
                if next_us > now_us {
                    return Progressed::Until(next_us);
                }
            }
            let Some(told) = merge::next(self, audience, primary) else { continue };
            if let Some(limits) = limits.as_deref_mut() {
                limits.spend(now_us, told.words);
                self.remember(&told.frame.event_id, told.units);
            }
            send(told.frame);
        }
    }

    /// Steps over what needs not be told: urgent units were told at once, some were told with
    /// others, some are superfluous by now, some withdrawn.
    fn skip(&mut self, audience: &Audience) {
        self.at = self.at.max(audience.first());
        while let Some(unit) = audience.unit(self.at) {
            let was_told = unit.is_urgent || self.take_ahead() || self.is_text_told(unit);
            if !was_told && !audience.is_withdrawn(self.at, unit) {
                if !audience.is_superseded(self.at, unit) {
                    return;
                }
                self.fold(
                    unit.session,
                    &unit.event.payload,
                    &unit.event.envelope.producer.agent_id,
                );
            }
            self.at += 1;
        }
    }

    /// Nothing is held: forgets what was remembered for the sake of what was.
    fn forget(&mut self, audience: &Audience) {
        let Some(memory) = &mut self.memory else { return };
        memory.folded.clear();
        if !memory.told_text.is_empty() {
            let open: BTreeSet<TextKey> = audience.held_texts().map(|(key, _)| key).collect();
            memory.told_text.retain(|key, _| open.contains(key));
        }
        if memory.sent.is_empty() && memory.told_text.is_empty() && memory.ahead.is_empty() {
            self.memory = None;
        }
    }

    fn memory(&mut self) -> &mut Memory {
        self.memory.get_or_insert_default()
    }

    /// Whether the unit here was told with an earlier one; then that needs not be remembered longer.
    fn take_ahead(&mut self) -> bool {
        let at = self.at;
        self.memory.as_mut().is_some_and(|memory| memory.ahead.remove(&at))
    }

    /// Whether a unit was told with an earlier one.
    fn is_ahead(&self, at: u64) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.ahead.contains(&at))
    }

    /// Up to where the text of an output was told already, under other terms.
    fn told_up_to(&self, key: &TextKey) -> Option<u64> {
        self.memory.as_ref()?.told_text.get(key).copied()
    }

    /// Whether the text of a unit was told already, under other terms.
    fn is_text_told(&self, unit: &Unit) -> bool {
        let Payload::OutputStreaming(chunk) = &unit.event.payload else { return false };
        if self.memory.is_none() || chunk.complete {
            return false;
        }
        let end = chunk.position + chunk.chunk.chars().count() as u64;
        self.told_up_to(&text_key(unit.session, chunk)).is_some_and(|told| end <= told)
    }

    /// Continues under other terms: where the listener was with one audience, it is with another.
    /// Nothing is lost or repeated, not even a half-told sentence.
    pub(crate) fn carry_over(&self, old: &Audience, new: &Audience) -> Self {
        let held =
            |at: &u64| old.unit(*at).is_some_and(|unit| !unit.is_urgent && !self.is_ahead(*at));
        let waiting: Vec<u64> = (self.at..old.end()).filter(held).collect();
        let orders: BTreeSet<u64> =
            waiting.iter().filter_map(|at| old.unit(*at)).map(|unit| unit.order).collect();
        let mut told_text: BTreeMap<TextKey, u64> = old.held_texts().collect();
        for unit in waiting.iter().rev().filter_map(|at| old.unit(*at)) {
            if let Payload::OutputStreaming(chunk) = &unit.event.payload {
                let key = text_key(unit.session, chunk);
                let begin = chunk.position.max(self.told_up_to(&key).unwrap_or(0));
                told_text.insert(key, begin);
            }
        }
        let is_open = |unit: &Unit| match &unit.event.payload {
            Payload::OutputStreaming(chunk) => {
                let end = chunk.position + chunk.chunk.chars().count() as u64;
                let told = told_text.get(&text_key(unit.session, chunk));
                told.is_some_and(|told| end > *told || chunk.complete)
            }
            _ => orders.contains(&unit.order),
        };
        let is_open_at = |at: &u64| new.unit(*at).is_some_and(is_open);
        let at = (new.first()..new.end()).find(is_open_at).unwrap_or(new.end());
        let ahead = (at..new.end()).filter(|at| !is_open_at(at)).collect();
        let folded = self.memory.as_ref().map(|memory| memory.folded.clone()).unwrap_or_default();
        let memory = Memory { ahead, folded, sent: VecDeque::new(), told_text };
        Cursor { at, memory: Some(Box::new(memory)) }
    }

    /// Remembers the first state left of those that are folded into one.
    fn fold(&mut self, session: SessionKey, payload: &Payload, agent: &str) {
        if let Payload::StateChanged(StateChanged { from_state, .. }) = payload {
            let key = (session, Box::from(agent));
            self.memory().folded.entry(key).or_insert_with(|| from_state.as_str().into());
        }
    }

    /// How many units are held that a critical end of their session withdraws (ruling 8).
    pub(crate) fn held_of(&self, session: SessionKey, audience: &Audience, before: u64) -> u64 {
        let is_held = |at: &u64| {
            audience.unit(*at).is_some_and(|unit| {
                unit.session == session && !unit.is_urgent && !self.is_ahead(*at)
            })
        };
        (self.at.max(audience.first())..before).filter(is_held).count() as u64
    }

    /// Remembers what was sent, for [`Cursor::rewind`].
    pub(crate) fn remember(&mut self, id: &EventId, units: Vec<u64>) {
        let at = self.at;
        let sent = &mut self.memory().sent;
        if sent.len() == REMEMBERED {
            sent.pop_front();
        }
        sent.reserve_exact(1);
        sent.push_back(Sent { id: id.clone(), units, at });
    }

    /// Remembers an event that was made for this listener alone, who is at this position.
    pub(crate) fn remember_at(&mut self, id: &EventId, at: u64) {
        self.at = at;
        self.remember(id, Vec::new());
    }

    /// Goes back to right after the event that the listener got last. Returns the urgent units that
    /// it did not get; none at all if nothing is known of that event any more.
    pub(crate) fn rewind(
        &mut self,
        last: &EventId,
        is_limited: bool,
        audience: &Audience,
    ) -> Option<Vec<u64>> {
        let is_last = |sent: &Sent| sent.id == *last;
        let found = self.memory.as_ref().and_then(|memory| memory.sent.iter().rposition(is_last));
        if let Some(found) = found {
            let memory = self.memory.get_or_insert_default();
            if !is_limited {
                self.at = memory.sent[found].at;
                memory.sent.truncate(found + 1);
                return Some(Vec::new());
            }
            let not_received = memory.sent.drain(found + 1..).flat_map(|sent| sent.units);
            let is_urgent = |at: &u64| audience.unit(*at).is_some_and(|unit| unit.is_urgent);
            let (urgent, held): (Vec<u64>, Vec<u64>) = not_received.partition(is_urgent);
            if let Some(first) = held.iter().min() {
                // What lies between and was told stays told.
                memory.ahead.extend((*first..self.at).filter(|at| !held.contains(at)));
                self.at = self.at.min(*first);
            }
            for at in &held {
                memory.ahead.remove(at);
            }
            return Some(urgent);
        }
        let at = audience.position_of(last)?;
        self.at = at + 1;
        self.memory = None;
        let is_urgent = |at: &u64| audience.unit(*at).is_some_and(|unit| unit.is_urgent);
        Some((self.at..audience.end()).filter(is_urgent).collect())
    }

    /// Goes to right after an event of an agent, whatever this audience was told of it.
    pub(crate) fn resume_after(&mut self, entry: &Entry, audience: &Audience) {
        *self = Cursor::starting_at(audience.position_after(entry.order));
        if let Payload::OutputStreaming(chunk) = &entry.event.payload {
            let end = chunk.position + chunk.chunk.chars().count() as u64;
            self.memory().told_text.insert(text_key(entry.session, chunk), end);
        }
    }

    /// Whether the log no longer reaches back to where the listener is.
    pub(crate) fn fell_behind(&self, audience: &Audience) -> Option<u64> {
        audience.first().checked_sub(self.at).filter(|missed| *missed > 0)
    }
}

/// Roughly how many words a listener announces for an event.
pub(crate) fn words_of(payload: &Payload) -> usize {
    let text = match payload {
        Payload::OutputStreaming(it) => Some(&it.chunk),
        Payload::SessionStarted(it) => Some(&it.summary_normal),
        Payload::SessionCompleted(it) => Some(&it.summary_normal),
        Payload::SessionErrored(it) => Some(&it.summary_normal),
        Payload::SessionCancelled(it) => Some(&it.summary_normal),
        Payload::StateChanged(it) => it.summary_normal.as_ref(),
        Payload::ProgressUpdated(it) => it.summary_normal.as_ref(),
        Payload::ToolInvoked(it) => Some(&it.summary_normal),
        Payload::ToolCompleted(it) => it.summary_normal.as_ref(),
        Payload::AwaitingConfirmation(it) => it.summary_normal.as_ref().or(Some(&it.action)),
        Payload::AwaitingClarification(it) => Some(&it.question),
        Payload::HandoffRequested(it) => Some(&it.reason),
        Payload::Extension(_) => None,
    };
    // Something is said even where there are no words: the name of a state or a tool.
    text.map_or(3, |text| count_words(text, None)).max(1)
}

/// Whether a unit can be summed up with other tools.
fn is_plain_tool(kind: &Kind) -> bool {
    *kind == Kind::PlainTool
}
