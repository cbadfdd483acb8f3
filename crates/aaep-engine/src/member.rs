//! One listener's way through the log of its audience: how far it is, what it may get now, and what
//! is merged when it is behind (§5.3.1.1, §5.3.1.11, §5.6.1, rulings 6 to 10).

mod merge;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use aaep::extension::Delivery;
use aaep::{CoreType, EventId, LanguageTag, Payload};

use crate::audience::{Audience, Entry, SessionKey, Superseded, TextKey, Unit, text_key};
use crate::boundary::count_words;
use crate::budget::Budget;
use crate::clock::SECOND_US;
use crate::frame::{Frame, encode};

/// How far announcing may be behind before more is held back and merged (§5.3.1.11): a listener
/// never has more than this much left to announce when it gets something that can wait.
pub const MAX_ANNOUNCING_US: u64 = 2 * SECOND_US;

/// From how many waiting tool events on they are summed up in one (ruling 10).
pub const MAX_WAITING_TOOLS: usize = 16;

/// How many of the events sent last are remembered, in case the connection lost them.
const REMEMBERED: usize = 64;

/// Where a listener is in the log of its audience.
#[derive(Debug, Default, Clone)]
pub(crate) struct Cursor {
    /// Everything before that can wait was sent or is superfluous.
    pub(crate) at: u64,
    /// Everything urgent before was sent.
    pub(crate) urgent_at: u64,
    /// Whether nothing is merged past something of another session: then any event tells how far the
    /// listener is. So it is for those without limits, who may lose many events at once.
    keeps_order: bool,
    /// What there is to remember; nothing for most, who take everything in order.
    memory: Option<Box<Memory>>,
}

/// What has to be remembered of a listener that did not just take everything in order.
#[derive(Debug, Default, Clone)]
struct Memory {
    rest: Rest,
    /// What was sent last out of order, or made for this listener alone.
    sent: VecDeque<Sent>,
}

/// What belongs to a place in the log beside the position.
#[derive(Debug, Default, Clone)]
struct Rest {
    /// What was told already of what comes after, with earlier units, or is withdrawn.
    ahead: BTreeSet<u64>,
    /// The first state left of those that were folded and not told yet, and how many they are, by
    /// session and agent.
    folded: BTreeMap<(SessionKey, Box<str>), (Box<str>, u64)>,
    /// Up to where the text of an output was told already, under other terms.
    told_text: BTreeMap<TextKey, u64>,
    /// The running sessions that it has not been told of yet (ruling 19).
    summaries: BTreeSet<SessionKey>,
}

impl Rest {
    fn is_empty(&self) -> bool {
        self.ahead.is_empty()
            && self.folded.is_empty()
            && self.told_text.is_empty()
            && self.summaries.is_empty()
    }
}

/// Something that was sent, and where the listener was right after it.
#[derive(Debug, Clone)]
struct Sent {
    id: EventId,
    at: u64,
    urgent_at: u64,
    rest: Rest,
    /// The event itself, if it was made for this listener alone and cannot be found in the log.
    own: Option<Arc<Frame>>,
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

    /// The listener gets an event that counts.
    pub(crate) fn spend(&mut self, now_us: u64, payload: &Payload) {
        if let Some(budget) = &mut self.budget {
            budget.spend(now_us);
        }
        self.announce(now_us, payload);
    }

    /// The listener has something more to announce.
    fn announce(&mut self, now_us: u64, payload: &Payload) {
        if let Some(pace) = self.pace_wpm {
            let takes_us = words_of(payload) as u64 * 60 * SECOND_US / pace.max(1);
            self.announcing_until_us = self.announcing_until_us.max(now_us) + takes_us;
        }
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

/// How a listener is told things: its audience, its limits, the moment, and the way out.
pub(crate) struct Telling<'a, F> {
    pub(crate) audience: &'a Audience,
    pub(crate) limits: Option<&'a mut Limits>,
    pub(crate) now_us: u64,
    pub(crate) primary: &'a LanguageTag,
    pub(crate) send: F,
}

impl Cursor {
    /// From this position of the log on.
    pub(crate) fn starting_at(at: u64) -> Self {
        Cursor { at, urgent_at: at, keeps_order: false, memory: None }
    }

    /// At the end of the log: only what comes from now on.
    pub(crate) fn at_end(audience: &Audience) -> Self {
        Cursor::starting_at(audience.end())
    }

    /// Whether the listener takes everything as it comes, with nothing to remember about text.
    pub(crate) fn is_plain(&self) -> bool {
        self.memory.as_ref().is_none_or(|memory| memory.rest.is_empty())
    }

    /// Tells what may be told now: urgent things first, then as much as the limits allow.
    pub(crate) fn proceed<F: FnMut(Arc<Frame>)>(
        &mut self,
        telling: &mut Telling<'_, F>,
    ) -> Progressed {
        if telling.audience.terms.keeps_every_event() {
            self.tell_everything(telling);
            return Progressed::CaughtUp;
        }
        self.keeps_order = telling.limits.is_none();
        self.tell_urgent(telling);
        let end = telling.audience.end();
        self.advance(telling, end)
    }

    /// Everything in its order, for whoever counts.
    fn tell_everything<F: FnMut(Arc<Frame>)>(&mut self, telling: &mut Telling<'_, F>) {
        let end = telling.audience.end();
        while let Some(unit) = telling.audience.unit(self.at) {
            // Under other terms, some of it may have been told before.
            let is_told = (unit.is_urgent && self.at < self.urgent_at)
                || self.take_ahead()
                || self.is_text_told(unit);
            if is_told {
                self.at += 1;
            } else if merge::is_partly_told(self, unit) {
                let told = merge::next(self, telling.audience, self.at + 1, telling.primary);
                if let Some(told) = told {
                    (telling.send)(told.frame);
                }
            } else {
                (telling.send)(telling.audience.frame(unit, telling.primary));
                self.at += 1;
            }
        }
        self.urgent_at = end;
        self.forget(telling.audience);
    }

    /// Everything urgent at once. Before a session ends critically, what is held of it is told as
    /// far as the limits allow; the rest is withdrawn, and the end says so (ruling 8).
    fn tell_urgent<F: FnMut(Arc<Frame>)>(&mut self, telling: &mut Telling<'_, F>) {
        let audience = telling.audience;
        while self.urgent_at < audience.end() {
            let at = self.urgent_at;
            let Some(unit) = audience.unit(at).filter(|unit| unit.is_urgent) else {
                self.urgent_at += 1;
                continue;
            };
            let mut frame = audience.frame(unit, telling.primary);
            if unit.event.event_type().core().is_some_and(CoreType::is_terminal) {
                self.advance(telling, at);
                let held = self.withdraw(unit.session, audience, at);
                if held > 0 && audience.terms.understands_our_extension() {
                    let mut event = (*unit.event).clone();
                    Delivery { held_back: Some(held), ..Delivery::new() }.put_on(&mut event);
                    frame = encode(&event, true, None, &audience.terms, telling.primary);
                }
            }
            self.urgent_at = at + 1;
            if let Some(limits) = telling.limits.as_deref_mut() {
                limits.announce(telling.now_us, &unit.event.payload);
            }
            self.remember(&frame.event_id, None);
            (telling.send)(frame);
        }
    }

    /// What is held of a session before this position is told no more; how many units that are.
    fn withdraw(&mut self, session: SessionKey, audience: &Audience, before: u64) -> u64 {
        let is_held = |at: &u64| {
            audience.unit(*at).is_some_and(|unit| {
                unit.session == session && !unit.is_urgent && !self.is_ahead(*at)
            })
        };
        let held: Vec<u64> = (self.at.max(audience.first())..before).filter(is_held).collect();
        if !held.is_empty() {
            let rest = self.rest();
            rest.ahead.extend(held.iter().copied());
            rest.folded.retain(|(of, _), _| *of != session);
            rest.told_text.retain(|(of, _), _| *of != session);
        }
        held.len() as u64
    }

    /// Tells what is held before this position, as far as the limits allow.
    fn advance<F: FnMut(Arc<Frame>)>(
        &mut self,
        telling: &mut Telling<'_, F>,
        until: u64,
    ) -> Progressed {
        loop {
            self.skip(telling.audience, until);
            if self.at >= until {
                self.forget(telling.audience);
                return Progressed::CaughtUp;
            }
            if let Some(limits) = telling.limits.as_deref_mut() {
                let next_us = limits.next_us(telling.now_us);
                if next_us > telling.now_us {
                    return Progressed::Until(next_us);
                }
            }
            let Some(told) = merge::next(self, telling.audience, until, telling.primary) else {
                continue;
            };
            if let Some(limits) = telling.limits.as_deref_mut() {
                limits.spend(telling.now_us, &told.payload);
            }
            self.remember(&told.frame.event_id, None);
            (telling.send)(told.frame);
        }
    }

    /// Steps over what needs not be told: urgent units are told at once, some were told with others,
    /// some are superfluous by now, some withdrawn.
    fn skip(&mut self, audience: &Audience, until: u64) {
        self.at = self.at.max(audience.first());
        while self.at < until
            && let Some(unit) = audience.unit(self.at)
        {
            if !(unit.is_urgent || self.take_ahead() || self.is_text_told(unit)) {
                match audience.superseded(self.at, unit) {
                    Superseded::No => return,
                    Superseded::ByLater => self.fold(unit),
                    Superseded::ByUrgent => self.unfold(unit),
                }
            }
            self.at += 1;
        }
    }

    /// Nothing is held: forgets what was remembered for the sake of what was.
    fn forget(&mut self, audience: &Audience) {
        let at_end = self.at >= audience.end();
        let Some(memory) = &mut self.memory else { return };
        if at_end {
            memory.rest.folded.clear();
        }
        if !memory.rest.told_text.is_empty() {
            let open: BTreeSet<TextKey> = audience.held_texts().map(|(key, ..)| key).collect();
            let first = self.at;
            let is_ahead = |key: &TextKey| {
                (first..audience.end()).filter_map(|at| audience.unit(at)).any(|unit| {
                    unit.text().is_some_and(|chunk| text_key(unit.session, chunk) == *key)
                })
            };
            memory.rest.told_text.retain(|key, _| open.contains(key) || is_ahead(key));
        }
        if memory.sent.is_empty() && memory.rest.is_empty() {
            self.memory = None;
        }
    }

    fn rest(&mut self) -> &mut Rest {
        &mut self.memory.get_or_insert_default().rest
    }

    /// Whether the unit here was told with an earlier one; then that needs not be remembered longer.
    fn take_ahead(&mut self) -> bool {
        let at = self.at;
        self.memory.as_mut().is_some_and(|memory| memory.rest.ahead.remove(&at))
    }

    /// Whether a unit was told with an earlier one, or is withdrawn.
    fn is_ahead(&self, at: u64) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.rest.ahead.contains(&at))
    }

    /// Up to where the text of an output was told already, under other terms.
    fn told_up_to(&self, key: &TextKey) -> Option<u64> {
        self.memory.as_ref()?.rest.told_text.get(key).copied()
    }

    /// Whether the text of a unit was told already, under other terms.
    fn is_text_told(&self, unit: &Unit) -> bool {
        let Some(chunk) = unit.text().filter(|chunk| !chunk.complete) else { return false };
        if self.memory.is_none() {
            return false;
        }
        let end = chunk.position + chunk.chunk.chars().count() as u64;
        self.told_up_to(&text_key(unit.session, chunk)).is_some_and(|told| end <= told)
    }

    /// Remembers the first state left of those that are folded into one.
    fn fold(&mut self, unit: &Unit) {
        if let Payload::StateChanged(change) = &unit.event.payload {
            let key = (unit.session, unit.agent().into());
            let from = || (change.from_state.as_str().into(), 1);
            self.rest().folded.entry(key).or_insert_with(from).1 += 1;
        }
    }

    /// An urgent event told a later state already: what was folded before is told no more.
    fn unfold(&mut self, unit: &Unit) {
        if let Some(memory) = &mut self.memory {
            memory.rest.folded.remove(&(unit.session, unit.agent().into()));
        }
    }

    /// Continues under other terms: where the listener was with one audience, it is with another.
    /// Nothing is lost or repeated, not even a half-told sentence, and not even if it turns out later
    /// that some of what was sent before did not arrive.
    pub(crate) fn carry_over(&self, old: &Audience, new: &Audience) -> Self {
        let none = Rest::default();
        let rest = self.memory.as_ref().map_or(&none, |memory| &memory.rest);
        let (at, urgent_at, rest) = carry((self.at, self.urgent_at, rest), old, new);
        let sent = self.memory.iter().flat_map(|memory| &memory.sent);
        let sent = sent.map(|it| {
            let (at, urgent_at, rest) = carry((it.at, it.urgent_at, &it.rest), old, new);
            Sent { id: it.id.clone(), at, urgent_at, rest, own: it.own.clone() }
        });
        let memory = Memory { rest, sent: sent.collect() };
        Cursor { at, urgent_at, keeps_order: self.keeps_order, memory: Some(Box::new(memory)) }
    }

    /// Remembers that an event was sent, for [`Cursor::resume`].
    pub(crate) fn remember(&mut self, id: &EventId, own: Option<Arc<Frame>>) {
        let (at, urgent_at) = (self.at, self.urgent_at);
        let memory = self.memory.get_or_insert_default();
        if memory.sent.len() == REMEMBERED {
            memory.sent.pop_front();
        }
        memory.sent.reserve_exact(1);
        let rest = memory.rest.clone();
        memory.sent.push_back(Sent { id: id.clone(), at, urgent_at, rest, own });
    }

    /// Whether an event is among those that were sent last.
    pub(crate) fn remembers(&self, id: &EventId) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.sent.iter().any(|sent| sent.id == *id))
    }

    /// Goes back to right after the event that the listener got last. Gives what was made for it
    /// alone since then and has to be sent again; none at all if nothing is known of that event.
    pub(crate) fn resume(
        &mut self,
        last: &EventId,
        audience: &Audience,
    ) -> Option<Vec<Arc<Frame>>> {
        if self.remembers(last) {
            let memory = self.memory.as_mut()?;
            let found = memory.sent.iter().rposition(|sent| sent.id == *last)?;
            let own = memory.sent.drain(found + 1..).filter_map(|sent| sent.own).collect();
            let sent = memory.sent.back()?;
            (self.at, self.urgent_at) = (sent.at, sent.urgent_at);
            memory.rest = sent.rest.clone();
            return Some(own);
        }
        // What was sent out of order before stays remembered: it may be the next to be named.
        let at = audience.position_of(last)? + 1;
        (self.at, self.urgent_at) = (at, at);
        if let Some(memory) = &mut self.memory {
            memory.rest = Rest::default();
        }
        Some(Vec::new())
    }

    /// Of sessions that ended critically, only the end is told: whether what was before it has been
    /// told is not known, and nothing may come after it.
    pub(crate) fn withdraw_ended(&mut self, audience: &Audience) {
        for at in self.urgent_at..audience.end() {
            let Some(unit) = audience.unit(at).filter(|unit| unit.is_urgent) else { continue };
            if unit.event.event_type().core().is_some_and(CoreType::is_terminal) {
                self.withdraw(unit.session, audience, at);
            }
        }
    }

    /// Goes to right after an event of an agent, whatever this audience was told of it.
    pub(crate) fn resume_after(&mut self, entry: &Entry, audience: &Audience) {
        *self = Cursor::starting_at(audience.position_after(entry.order));
        if let Payload::OutputStreaming(chunk) = &entry.event.payload {
            let end = chunk.position + chunk.chunk.chars().count() as u64;
            self.rest().told_text.insert(text_key(entry.session, chunk), end);
        }
    }

    /// These sessions are to be summed up for the listener, as soon as its limits allow.
    pub(crate) fn owe_summaries(&mut self, sessions: impl Iterator<Item = SessionKey>) {
        let mut sessions = sessions.peekable();
        if sessions.peek().is_some() {
            self.rest().summaries.extend(sessions);
        }
    }

    /// The next session to sum up.
    pub(crate) fn next_summary(&mut self) -> Option<SessionKey> {
        self.memory.as_mut()?.rest.summaries.pop_first()
    }

    pub(crate) fn owes_summaries(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| !memory.rest.summaries.is_empty())
    }

    /// Whether the log no longer reaches back to where the listener is.
    pub(crate) fn fell_behind(&self, audience: &Audience) -> bool {
        self.at < audience.first() || self.urgent_at < audience.first()
    }
}

/// The same place in the log of another audience.
fn carry(
    (at, urgent_at, rest): (u64, u64, &Rest),
    old: &Audience,
    new: &Audience,
) -> (u64, u64, Rest) {
    let held =
        |at: &u64| old.unit(*at).is_some_and(|unit| !unit.is_urgent && !rest.ahead.contains(at));
    let waiting: Vec<&Unit> = (at..old.end()).filter(held).filter_map(|at| old.unit(at)).collect();
    let orders: BTreeSet<u64> = waiting.iter().map(|unit| unit.order).collect();
    let told_before = |key: &TextKey| rest.told_text.get(key).copied().unwrap_or(0);
    let mut told_text: BTreeMap<TextKey, u64> = old
        .held_texts()
        .map(|(key, begin, _)| (begin.max(told_before(&key)), key))
        .map(|(at, key)| (key, at))
        .collect();
    for unit in waiting.iter().rev() {
        if let Some(chunk) = unit.text() {
            let key = text_key(unit.session, chunk);
            let begin = chunk.position.max(told_before(&key));
            told_text.insert(key, begin);
        }
    }
    // What the old terms shut out is told from here on only.
    for (key, _, end) in new.held_texts() {
        told_text.entry(key).or_insert(end);
    }
    let is_open = |unit: &Unit| match unit.text() {
        Some(chunk) => {
            let end = chunk.position + chunk.chunk.chars().count() as u64;
            let told = told_text.get(&text_key(unit.session, chunk));
            told.is_some_and(|told| end > *told || (chunk.complete && orders.contains(&unit.order)))
        }
        None => !unit.is_urgent && orders.contains(&unit.order),
    };
    let is_open_at = |at: &u64| new.unit(*at).is_some_and(is_open);
    let new_at = (new.first()..new.end()).find(is_open_at).unwrap_or(new.end());
    let ahead = (new_at..new.end()).filter(|at| !is_open_at(at)).collect();
    let new_urgent_at = match old.unit(urgent_at) {
        Some(unit) => new.position_after(unit.order.saturating_sub(1)),
        None => new.end(),
    };
    let (folded, summaries) = (rest.folded.clone(), rest.summaries.clone());
    (new_at, new_urgent_at, Rest { ahead, folded, told_text, summaries })
}

/// Roughly how many words a listener announces for an event.
fn words_of(payload: &Payload) -> usize {
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
