//! An audience: all subscribers whose terms shape events alike (§5.6, §5.9).
//!
//! The engine filters, words, coalesces and encodes each event once for each audience. The result
//! is a log of [`Unit`]s, a pure function of the events and the terms: subscribers differ only in
//! how far they are in the log. Pace and rate are personal and live in `member`.

mod rebuild;
mod text;
mod unit;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use aaep::event::action::OutputStreaming;
use aaep::event::human::{AwaitingClarification, AwaitingConfirmation};
use aaep::event::reasoning::{StateChanged, state};
use aaep::{
    CognitiveLoad, Envelope, Event, EventId, EventType, LanguageTag, Payload, SessionId, Urgency,
};

use crate::boundary::Boundaries;
use crate::clock::date_not_before;
use crate::engine::DeliveryLists;
use crate::frame::{Frame, encode};
use crate::ids::derived_event_id;
pub(crate) use crate::io::HearingScope;
use crate::io::{AgentTags, Author};
pub(crate) use crate::keys::{SessionKey, SubscriberKey};
use crate::member::JoinedText;
use crate::terms::Terms;
pub(crate) use rebuild::PastEvents;
use text::HeldOutputs;
pub(crate) use text::{extensions_of_text, is_text_alike};
pub(crate) use unit::{Unit, UnitKind, is_before_ask, merged_id};
use unit::{kind_of, state_without_words};

/// How many units an audience keeps. A subscriber that is further behind has a gap, and is told so.
pub const MAX_UNITS: usize = 2048;

/// How many units a new log may start with, made from past events.
const MAX_PRIMED_UNITS: usize = 16 * MAX_UNITS;

/// How many bytes of text an audience may always hold. With this minimum, text is cut for lack of memory only
/// when a great deal of text is open.
const MIN_TEXT_BYTES: usize = 64 * 1024;

/// The position of the first unit of a new log. It leaves positions before it free for older events that are
/// added later.
const FIRST_POSITION: u64 = 1 << 32;

/// An output, identified by its session and its id.
pub(crate) type TextKey = (SessionKey, Option<Box<str>>);

/// An event that the engine accepted, as it is kept in the history of its session.
#[derive(Debug, Clone)]
pub(crate) struct HistoryEntry {
    /// Its number among all events of all sessions: its *global order*.
    pub(crate) order: u64,
    pub(crate) session: SessionKey,
    pub(crate) tags: AgentTags,
    pub(crate) event: Arc<Event>,
    pub(crate) sequence_number: u64,
    pub(crate) author: Author,
    /// The latest timestamp of its session so far.
    pub(crate) latest_us: i64,
    /// How many bytes of memory it is counted as.
    pub(crate) weight: usize,
}

/// The subscribers with equal terms, and the log of what they are told.
#[derive(Debug)]
pub(crate) struct Audience {
    pub(crate) terms: Terms,
    pub(crate) hears: HearingScope,
    /// Distinguishes its derived ids from those of other audiences.
    pub(crate) number: u64,
    pub(crate) lists: DeliveryLists,
    /// All members of the audience, connected or not.
    pub(crate) members: BTreeSet<SubscriberKey>,
    /// How many members are connected. While this is zero, nothing is shaped and nothing is kept.
    pub(crate) present: usize,
    texts: HeldOutputs,
    log: VecDeque<Unit>,
    /// The position of the first unit that is kept.
    first: u64,
    /// The log is complete from this global order on.
    from: u64,
    /// The global order from which on nothing is shaped, because nobody is connected.
    asleep_since: Option<u64>,
    /// From this global order on, the same events give the same units again: no session that left memory had
    /// later events.
    pure_from: u64,
    /// The last event of the sessions that left memory while nothing was shaped.
    gone: Option<u64>,
    /// How many bytes the log takes.
    bytes: Cell<usize>,
    /// How many bytes the audience may take: half for the log, half for held text.
    pub(crate) room_bytes: usize,
    /// Its part of the memory for all logs (`engine::log_space`).
    pub(crate) weight: u64,
    /// The outputs that were cut for lack of memory, or that began without their held text. Until they are
    /// complete, the same events would not give the same units again.
    impure: BTreeSet<TextKey>,
    /// The position of the newest progress of each session, and of the newest state of each agent in it.
    latest_progress: BTreeMap<SessionKey, u64>,
    latest_state: BTreeMap<(SessionKey, Box<str>), u64>,
    /// The position at which a critical event last told the state of an agent. Earlier states are not
    /// delivered after it.
    critical_state: BTreeMap<(SessionKey, Box<str>), u64>,
    /// The position at which each session starts.
    starts: BTreeMap<SessionKey, u64>,
    /// The positions of asks, by their global order.
    asks: BTreeMap<u64, u64>,
    /// The text that was joined last.
    pub(crate) joined: RefCell<Option<JoinedText>>,
}

impl Audience {
    pub(crate) fn new(terms: Terms, hears: HearingScope, number: u64) -> Self {
        let texts = HeldOutputs::new(&terms);
        Audience {
            terms,
            hears,
            number,
            lists: DeliveryLists::default(),
            members: BTreeSet::new(),
            present: 0,
            texts,
            log: VecDeque::new(),
            first: FIRST_POSITION,
            from: 0,
            asleep_since: None,
            pure_from: 0,
            gone: None,
            bytes: Cell::new(0),
            room_bytes: usize::MAX,
            weight: 0,
            impure: BTreeSet::new(),
            latest_progress: BTreeMap::new(),
            latest_state: BTreeMap::new(),
            critical_state: BTreeMap::new(),
            starts: BTreeMap::new(),
            asks: BTreeMap::new(),
            joined: RefCell::new(None),
        }
    }

    /// Shapes an event and appends the result to the log. Returns the position at which the result begins.
    /// The caller trims the log after delivery.
    pub(crate) fn take(&mut self, entry: &HistoryEntry) -> u64 {
        let begin = self.end();
        if self.asleep_since.is_some() || !self.hears.includes(&entry.tags) {
            return begin;
        }
        let event = &entry.event;
        let core = event.event_type().core();
        self.note_purity(entry);
        self.texts.note_time(entry);
        // The text before an ask, or before the end of a session, is delivered first (rulings 7 and 8).
        if core.is_some_and(aaep::CoreType::is_terminal) || is_before_ask(event) {
            for unit in self.texts.cut_session(entry.session, self.number) {
                self.push(unit, entry.order);
            }
        }
        if entry.event.is_critical() {
            let told = self.substitute(entry);
            self.push(Unit::new(entry, told, UnitKind::Other, self.number_of(entry)), entry.order);
        } else if self.wants(event) {
            let is_text = matches!(event.payload, Payload::OutputStreaming(_));
            if is_text && !self.terms.keeps_every_event() {
                for unit in self.texts.take(entry, self.number, self.number_of(entry)) {
                    self.push(unit, entry.order);
                }
                self.cut_for_room(entry.order);
            } else {
                let kind = kind_of(&event.payload);
                let told = match &event.payload {
                    Payload::OutputStreaming(chunk) => {
                        let boundaries = Boundaries::from_list(&self.terms.boundaries);
                        let ends_at = if chunk.complete {
                            boundaries.at_completion()
                        } else {
                            boundaries.finest()
                        };
                        text::with_hint(event, chunk, boundaries, ends_at)
                    }
                    _ => Arc::clone(event),
                };
                self.push(Unit::new(entry, told, kind, self.number_of(entry)), entry.order);
            }
        }
        begin
    }

    /// Where the held text of each open output begins and ends.
    pub(crate) fn held_texts(&self) -> impl Iterator<Item = (TextKey, u64, u64)> + '_ {
        self.texts.held()
    }

    /// Whether the terms let a non-critical event pass (§5.3.1.7, §5.3.1.10).
    fn wants(&self, event: &Event) -> bool {
        let is_background = event.envelope.urgency == Some(Urgency::Background);
        let is_too_much = self.terms.cognitive_load == CognitiveLoad::Low && is_background;
        !is_too_much && self.terms.wants(&event.event_type())
    }

    pub(crate) fn wants_text(&self) -> bool {
        self.terms.wants(&EventType::Core(aaep::CoreType::OutputStreaming))
    }

    fn number_of(&self, entry: &HistoryEntry) -> Option<u64> {
        self.terms.keeps_every_event().then_some(entry.sequence_number)
    }

    /// Replaces an ask for audiences that cannot answer it: they hear only that there is one (ruling 1).
    fn substitute(&self, entry: &HistoryEntry) -> Arc<Event> {
        let event = &entry.event;
        let can_answer = match &event.payload {
            Payload::AwaitingConfirmation(_) => self.terms.confirmation_reply,
            Payload::AwaitingClarification(_) => self.terms.clarification_reply,
            _ => true,
        };
        if can_answer {
            Arc::clone(event)
        } else {
            let mut waiting = waiting_for_someone(event, self.number);
            date_not_before(&mut waiting.envelope, entry.latest_us);
            Arc::new(waiting)
        }
    }

    /// Removes outputs that are complete from the impure ones: they can no longer make a difference.
    fn note_purity(&mut self, entry: &HistoryEntry) {
        if self.impure.is_empty() {
            return;
        }
        match &entry.event.payload {
            Payload::OutputStreaming(chunk) if chunk.complete => {
                self.impure.remove(&text_key(entry.session, chunk));
            }
            _ if entry.event.event_type().core().is_some_and(aaep::CoreType::is_terminal) => {
                self.impure.retain(|(session, _)| *session != entry.session);
            }
            _ => return,
        }
        self.pure_from = self.pure_from.max(entry.order + 1);
    }

    /// While more text is held than fits, cuts the output that has waited longest and delivers its text so far.
    fn cut_for_room(&mut self, made_at: u64) {
        while self.texts.bytes() > MIN_TEXT_BYTES.max(self.room_bytes / 2) {
            let Some((key, units)) = self.texts.cut_oldest(self.number) else { return };
            self.impure.insert(key);
            for unit in units {
                self.push(unit, made_at);
            }
        }
    }

    fn push(&mut self, mut unit: Unit, made_at: u64) {
        unit.made_at = made_at;
        let at = self.end();
        let key = || (unit.session, Box::from(unit.agent()));
        match (&unit.kind, &unit.event.payload) {
            (_, Payload::SessionStarted(_)) => drop(self.starts.insert(unit.session, at)),
            (UnitKind::Progress, _) => drop(self.latest_progress.insert(unit.session, at)),
            (UnitKind::State, _) => drop(self.latest_state.insert(key(), at)),
            (_, Payload::StateChanged(_)) => drop(self.critical_state.insert(key(), at)),
            (_, Payload::AwaitingConfirmation(_) | Payload::AwaitingClarification(_)) => {
                self.asks.insert(unit.order, at);
            }
            _ => {}
        }
        self.bytes.set(self.bytes.get() + unit.bytes());
        self.log.push_back(unit);
    }

    /// Forgets the oldest units beyond the limits, after the log grew by `grown` units. A log that was
    /// rebuilt with more than it keeps shrinks twice as fast as it grows; bytes beyond the limit are freed at
    /// once.
    pub(crate) fn trim(&mut self, grown: u64) {
        let mut left = grown.saturating_mul(2);
        while self.log.len() > MAX_UNITS && left > 0 {
            left = left.saturating_sub(self.forget_oldest());
        }
        while self.bytes.get() > self.room_bytes / 2 && self.forget_oldest() > 0 {}
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// Forgets all units that the oldest event caused. Returns how many they were.
    fn forget_oldest(&mut self) -> u64 {
        let before = self.first;
        while let Some(unit) = self.log.pop_front() {
            self.bytes.set(self.bytes.get().saturating_sub(unit.bytes()));
            self.first += 1;
            self.from = self.from.max(unit.made_at + 1);
            if self.first.is_multiple_of(MAX_UNITS as u64) {
                self.forget_old();
            }
            if self.log.front().is_none_or(|next| next.made_at != unit.made_at) {
                break;
            }
        }
        self.first - before
    }

    /// Removes the words of a session from the log. Its units keep their positions, so that no cursor moves.
    /// A subscriber that had yet to receive one of them is told of a gap.
    pub(crate) fn delete_session(&mut self, session_id: &SessionId) {
        let is_meant = |unit: &&mut Unit| unit.event.envelope.session_id == *session_id;
        let mut freed = 0;
        for unit in self.log.iter_mut().filter(is_meant) {
            let before = unit.bytes();
            unit.delete();
            freed += before.saturating_sub(unit.bytes());
        }
        self.bytes.set(self.bytes.get().saturating_sub(freed));
        self.joined.take();
    }

    /// Drops map entries that point to units that are no longer kept.
    fn forget_old(&mut self) {
        let first = self.first;
        self.latest_progress.retain(|_, at| *at >= first);
        self.latest_state.retain(|_, at| *at >= first);
        self.critical_state.retain(|_, at| *at >= first);
        self.starts.retain(|_, at| *at >= first);
        self.asks.retain(|_, at| *at >= first);
    }

    /// Whether the log is complete from this global order on.
    pub(crate) fn reaches_back_to(&self, order: u64) -> bool {
        self.from <= order
    }

    /// The position after the last unit.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.log.len() as u64
    }

    /// The position of the first unit that is kept.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    pub(crate) fn unit(&self, at: u64) -> Option<&Unit> {
        self.log.get(usize::try_from(at.checked_sub(self.first)?).ok()?)
    }

    /// Whether a later unit makes this one superfluous for a subscriber that is behind.
    pub(crate) fn superseded(&self, at: u64, unit: &Unit) -> SupersededBy {
        let later = |position: Option<&u64>| position.is_some_and(|it| *it > at);
        match unit.kind {
            UnitKind::Progress if later(self.latest_progress.get(&unit.session)) => {
                SupersededBy::LaterUnit
            }
            UnitKind::State => {
                let key = (unit.session, Box::from(unit.agent()));
                if later(self.critical_state.get(&key)) {
                    SupersededBy::CriticalUnit
                } else if later(self.latest_state.get(&key)) {
                    SupersededBy::LaterUnit
                } else {
                    SupersededBy::Nothing
                }
            }
            _ => SupersededBy::Nothing,
        }
    }

    /// The encoded unit. It is encoded once, when first needed.
    pub(crate) fn frame(&self, unit: &Unit, primary: &LanguageTag) -> Arc<Frame> {
        let frame = unit.frame.get_or_init(|| {
            let number = unit.sequence_number;
            let frame = encode(&unit.event, unit.is_critical, number, &self.terms, primary);
            self.bytes.set(self.bytes.get() + frame.json.len());
            frame
        });
        Arc::clone(frame)
    }

    /// Whether an event with this id stands for the unit at this position.
    pub(crate) fn stands_for(&self, at: u64, id: &EventId) -> bool {
        self.unit(at).is_some_and(|unit| unit.has_id(self.number, id))
    }

    /// The global order right after the unit before this position.
    pub(crate) fn order_before(&self, at: u64) -> u64 {
        match at.checked_sub(1).and_then(|at| self.unit(at)) {
            Some(last) => last.order + 1,
            // Units that are no longer kept were caused by events before this.
            None => self.from,
        }
    }

    /// Whether a unit may have been delivered before earlier ones: it is critical, or it may have been
    /// delivered as context of a critical event of its session (ruling 7).
    pub(crate) fn may_have_overtaken(&self, at: u64, unit: &Unit) -> bool {
        let mut later = (at + 1..self.end()).filter_map(|at| self.unit(at));
        unit.is_critical || later.any(|later| later.is_critical && later.session == unit.session)
    }

    /// The position at which a session starts, if it is kept.
    pub(crate) fn start_of(&self, session: SessionKey) -> Option<u64> {
        self.starts.get(&session).copied().filter(|at| *at >= self.first)
    }

    /// The position of the ask with this global order.
    pub(crate) fn position_of_ask(&self, order: u64) -> Option<u64> {
        self.asks.get(&order).copied().filter(|at| *at >= self.first)
    }

    /// The position of the unit with this id, or of the last unit that a merged event with this id stood for.
    pub(crate) fn position_of(&self, id: &EventId) -> Option<u64> {
        let is_it = |unit: &Unit| {
            unit.event.envelope.event_id == *id && unit.session != SessionKey::DELETED
        };
        let is_merged = |unit: &Unit| merged_id(&unit.event.envelope.event_id, self.number) == *id;
        let at = self.log.iter().rposition(is_it);
        let at = at.or_else(|| self.log.iter().rposition(is_merged))?;
        Some(self.first + at as u64)
    }
}

pub(crate) fn text_key(session: SessionKey, chunk: &OutputStreaming) -> TextKey {
    (session, chunk.output_id.as_ref().map(|id| Box::from(id.as_str())))
}

/// Why a subscriber that is behind need not receive a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SupersededBy {
    Nothing,
    /// A later unit says the same and more.
    LaterUnit,
    /// A critical unit, delivered at once, already told a later state.
    CriticalUnit,
}

/// The event for subscribers that cannot answer an ask: the agent waits, and for what (ruling 1).
fn waiting_for_someone(event: &Event, audience: u64) -> Event {
    let (what, terse) = match &event.payload {
        Payload::AwaitingConfirmation(AwaitingConfirmation { action, summary_terse, .. }) => {
            (format!("Waiting for someone to confirm: {action}"), summary_terse.clone())
        }
        Payload::AwaitingClarification(AwaitingClarification {
            question, summary_terse, ..
        }) => (format!("Waiting for someone to answer: {question}"), summary_terse.clone()),
        _ => ("Waiting for someone.".to_owned(), None),
    };
    let envelope = Envelope {
        event_id: derived_event_id(&event.envelope.event_id, 0, audience),
        urgency: Some(Urgency::Critical),
        ..event.envelope.clone()
    };
    let payload = StateChanged {
        summary_terse: terse,
        summary_normal: Some(cut(what)),
        ..state_without_words(state::AWAITING_INPUT)
    };
    Event::new(envelope, payload)
}

/// Cuts a text to the maximum length of a summary.
pub(crate) fn cut(text: String) -> String {
    const LONG: usize = 16_384;
    match text.char_indices().nth(LONG) {
        Some((at, _)) => text[..at].to_owned(),
        None => text,
    }
}
