//! An audience: all subscribers whose terms shape events alike (§5.6, §5.9).
//!
//! Filtering, wording, coalescing and encoding happen once per audience and event. What comes out is
//! a log of [`Unit`]s, a pure function of the events and the terms: subscribers only differ in how far
//! they are in it. Pace and rate are personal and live in `member`.

mod rebuild;
mod text;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use aaep::event::action::OutputStreaming;
use aaep::event::human::{AwaitingClarification, AwaitingConfirmation};
use aaep::event::reasoning::{StateChanged, state};
use aaep::{
    CognitiveLoad, Envelope, Event, EventId, EventType, LanguageTag, Object, Payload, Producer,
    SessionId, Timestamp, Urgency,
};

use crate::boundary::Boundaries;
use crate::frame::{Frame, encode};
use crate::ids::derived_event_id;
use crate::io::AgentTags;
pub(crate) use crate::io::Hears;
use crate::member::Joined;
use crate::terms::Terms;
pub(crate) use rebuild::Past;
use text::Texts;
pub(crate) use text::{extensions_of_text, is_text_alike};

/// How many units an audience remembers. Who is further behind has a gap, and is told so.
pub const MAX_UNITS: usize = 2048;

/// How many units an audience may have at first, from what happened before.
const MAX_PRIMED_UNITS: usize = 16 * MAX_UNITS;

/// How many bytes of text an audience may hold however little room there is, so that text is cut for want of room
/// only where very much of it is open.
const MIN_TEXT_BYTES: usize = 64 * 1024;

/// Where a log begins, so that there is room before it for what happened earlier.
const FIRST_POSITION: u64 = 1 << 32;

/// A session, by the number that the engine gave it.
pub(crate) type SessionKey = u64;

/// An output, by its session and id.
pub(crate) type TextKey = (SessionKey, Option<Box<str>>);

/// A subscriber, by the number that the engine gave it.
pub type SubscriberKey = u32;

/// An event as the engine takes it in.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Its place among all events of all sessions.
    pub(crate) order: u64,
    pub(crate) session: SessionKey,
    pub(crate) tags: AgentTags,
    pub(crate) event: Arc<Event>,
    pub(crate) sequence_number: u64,
    /// Told to everyone at once, past filter and rate: critical events, and how a question ended.
    pub(crate) is_urgent: bool,
    /// How many bytes it takes.
    pub(crate) weight: usize,
}

/// What kind of thing a unit tells, as far as merging is concerned (ruling 10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A piece of an output; pieces of one output can be joined.
    Text,
    /// The newest progress wins.
    Progress,
    /// States can be folded: from the first one left to the last one entered.
    State,
    /// A tool that can be summed up with others when there are too many.
    PlainTool,
    /// Anything else stays an event of its own.
    Other,
    /// Its session was deleted: there is nothing to tell any more.
    Deleted,
}

/// Something to tell an audience.
#[derive(Debug)]
pub(crate) struct Unit {
    /// The place of the last event that it tells of, among all events.
    pub(crate) order: u64,
    pub(crate) session: SessionKey,
    pub(crate) event: Arc<Event>,
    pub(crate) kind: Kind,
    pub(crate) is_urgent: bool,
    /// How many of the agent's events it stands for.
    pub(crate) stands_for: u64,
    /// The place among all events of the one with which it was made.
    made_at: u64,
    /// How many bytes it takes, its frame not counted.
    weight: usize,
    pub(crate) sequence_number: Option<u64>,
    frame: OnceCell<Arc<Frame>>,
}

/// The subscribers of an audience, by what a new unit means for them.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    /// No rate, no pace, nothing held: every unit at once.
    pub(crate) unlimited: Vec<SubscriberKey>,
    /// A rate or a pace, and nothing held.
    pub(crate) ready: BTreeSet<SubscriberKey>,
    /// A rate or a pace, connected, with or without something held.
    pub(crate) connected: BTreeSet<SubscriberKey>,
    /// All that belong to the audience, connected or not.
    pub(crate) members: BTreeSet<SubscriberKey>,
    /// How many of them are connected. Without any, nothing is shaped and nothing kept.
    pub(crate) present: usize,
}

/// One audience.
#[derive(Debug)]
pub(crate) struct Audience {
    pub(crate) terms: Terms,
    pub(crate) hears: Hears,
    /// Tells its derived ids from those of other audiences.
    pub(crate) number: u64,
    pub(crate) subscribers: Subscribers,
    texts: Texts,
    log: VecDeque<Unit>,
    /// The position of the first unit that is remembered.
    first: u64,
    /// All that was made with events from this place on is remembered.
    from: u64,
    /// Since which place nothing is shaped, because nobody is there.
    asleep_since: Option<u64>,
    /// From this place on, the same events give the same units again: no session left memory that had some before.
    pure_from: u64,
    /// The last event of the sessions that left memory since nothing is shaped.
    gone: Option<u64>,
    /// How many bytes the log takes.
    bytes: Cell<usize>,
    /// How many bytes may be taken: half of them by the log, half by text that is held.
    pub(crate) room_bytes: usize,
    /// What part of the room for all logs it may take (`engine::rooms`).
    pub(crate) weight: u64,
    /// The outputs that were cut for want of room, or begun without what was held: until they are complete, the same
    /// events would not give the same units again.
    impure: BTreeSet<TextKey>,
    /// Where the newest progress of a session is, and the newest state of each agent in it.
    latest_progress: BTreeMap<SessionKey, u64>,
    latest_state: BTreeMap<(SessionKey, Box<str>), u64>,
    /// Where an urgent event last told the state of an agent: states before are not told after it.
    urgent_state: BTreeMap<(SessionKey, Box<str>), u64>,
    /// Where each session starts.
    starts: BTreeMap<SessionKey, u64>,
    /// Where the questions are, by their places among all events.
    questions: BTreeMap<u64, u64>,
    /// The text that was joined last.
    pub(crate) joined: RefCell<Option<Joined>>,
}

impl Audience {
    pub(crate) fn new(terms: Terms, hears: Hears, number: u64) -> Self {
        let texts = Texts::new(&terms);
        Audience {
            terms,
            hears,
            number,
            subscribers: Subscribers::default(),
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
            urgent_state: BTreeMap::new(),
            starts: BTreeMap::new(),
            questions: BTreeMap::new(),
            joined: RefCell::new(None),
        }
    }

    /// Shapes an event; what is to be told is appended to the log. Returns where that begins. The caller trims the
    /// log when it has told what there is to tell.
    pub(crate) fn take(&mut self, entry: &Entry) -> u64 {
        let begin = self.end();
        if self.asleep_since.is_some() || !self.hears.includes(&entry.tags) {
            return begin;
        }
        let event = &entry.event;
        let core = event.event_type().core();
        self.note_purity(entry);
        // Nobody is asked, and no session ends, before the text that went before was told (rulings 7 and 8).
        if core.is_some_and(aaep::CoreType::is_terminal) || is_before_ask(event) {
            for unit in self.texts.cut_session(entry.session, self.number) {
                self.push(unit, entry.order);
            }
        }
        if entry.is_urgent {
            let told = self.substitute(event);
            self.push(Unit::new(entry, told, Kind::Other, self.number_of(entry)), entry.order);
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

    /// Where the text begins and ends that is held of each open output, waiting for its boundary.
    pub(crate) fn held_texts(&self) -> impl Iterator<Item = (TextKey, u64, u64)> + '_ {
        self.texts.held()
    }

    /// Whether the terms let an event pass that is not urgent (§5.3.1.7, §5.3.1.10).
    fn wants(&self, event: &Event) -> bool {
        let is_background = event.envelope.urgency == Some(Urgency::Background);
        let is_too_much = self.terms.cognitive_load == CognitiveLoad::Low && is_background;
        !is_too_much && self.terms.wants(&event.event_type())
    }

    /// Whether the terms let text pass.
    pub(crate) fn wants_text(&self) -> bool {
        self.terms.wants(&EventType::Core(aaep::CoreType::OutputStreaming))
    }

    fn number_of(&self, entry: &Entry) -> Option<u64> {
        self.terms.keeps_every_event().then_some(entry.sequence_number)
    }

    /// A question goes only to those who can answer; the others hear that there is one (ruling 1).
    fn substitute(&self, event: &Arc<Event>) -> Arc<Event> {
        let can_answer = match &event.payload {
            Payload::AwaitingConfirmation(_) => self.terms.confirmation_reply,
            Payload::AwaitingClarification(_) => self.terms.clarification_reply,
            _ => true,
        };
        if can_answer {
            Arc::clone(event)
        } else {
            Arc::new(waiting_for_someone(event, self.number))
        }
    }

    /// An output that is complete cannot make a difference any more.
    fn note_purity(&mut self, entry: &Entry) {
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

    /// Where more text is held than there is room for, the one that waits longest is told as far as it came.
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
            (Kind::Progress, _) => drop(self.latest_progress.insert(unit.session, at)),
            (Kind::State, _) => drop(self.latest_state.insert(key(), at)),
            (_, Payload::StateChanged(_)) => drop(self.urgent_state.insert(key(), at)),
            (_, Payload::AwaitingConfirmation(_) | Payload::AwaitingClarification(_)) => {
                self.questions.insert(unit.order, at);
            }
            _ => {}
        }
        self.bytes.set(self.bytes.get() + unit.bytes());
        self.log.push_back(unit);
    }

    /// Forgets the oldest that is too much, after it grew by so many units: twice as fast as it grows, in case it
    /// was made with more than it keeps. Of the bytes, all that is too much.
    pub(crate) fn trim(&mut self, grown: u64) {
        let mut left = grown.saturating_mul(2);
        while self.log.len() > MAX_UNITS && left > 0 {
            left = left.saturating_sub(self.forget_oldest());
        }
        while self.bytes.get() > self.room_bytes / 2 && self.forget_oldest() > 0 {}
    }

    /// How many bytes the log takes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// Forgets all that was made with one event, the oldest; how many units these were.
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

    /// Takes the words of a session out of the log. Its units keep their places, so that everyone stays where they
    /// are; whoever still was to be told one of them is told that something is missing.
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

    /// Drops what points to units that are no longer remembered.
    fn forget_old(&mut self) {
        let first = self.first;
        self.latest_progress.retain(|_, at| *at >= first);
        self.latest_state.retain(|_, at| *at >= first);
        self.urgent_state.retain(|_, at| *at >= first);
        self.starts.retain(|_, at| *at >= first);
        self.questions.retain(|_, at| *at >= first);
    }

    /// Whether the log has everything from this place among all events on.
    pub(crate) fn reaches_back_to(&self, order: u64) -> bool {
        self.from <= order
    }

    /// The position behind the last unit.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.log.len() as u64
    }

    /// The position of the first unit that is still remembered.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    pub(crate) fn unit(&self, at: u64) -> Option<&Unit> {
        self.log.get(usize::try_from(at.checked_sub(self.first)?).ok()?)
    }

    /// Whether a later unit makes this one superfluous for someone who is behind.
    pub(crate) fn superseded(&self, at: u64, unit: &Unit) -> Superseded {
        let later = |position: Option<&u64>| position.is_some_and(|it| *it > at);
        match unit.kind {
            Kind::Progress if later(self.latest_progress.get(&unit.session)) => Superseded::ByLater,
            Kind::State => {
                let key = (unit.session, Box::from(unit.agent()));
                if later(self.urgent_state.get(&key)) {
                    Superseded::ByUrgent
                } else if later(self.latest_state.get(&key)) {
                    Superseded::ByLater
                } else {
                    Superseded::No
                }
            }
            _ => Superseded::No,
        }
    }

    /// The encoded unit, made when first asked for.
    pub(crate) fn frame(&self, unit: &Unit, primary: &LanguageTag) -> Arc<Frame> {
        let frame = unit.frame.get_or_init(|| {
            let number = unit.sequence_number;
            let frame = encode(&unit.event, unit.is_urgent, number, &self.terms, primary);
            self.bytes.set(self.bytes.get() + frame.json.len());
            frame
        });
        Arc::clone(frame)
    }

    /// The unit as it is told to who counts and was told something later before.
    pub(crate) fn frame_without_number(&self, unit: &Unit, primary: &LanguageTag) -> Arc<Frame> {
        encode(&unit.event, unit.is_urgent, None, &self.terms, primary)
    }

    /// Whether an event with this id stands for the unit at this position.
    pub(crate) fn stands_for(&self, at: u64, id: &EventId) -> bool {
        self.unit(at).is_some_and(|unit| unit.ids(self.number).contains(id))
    }

    /// The place among all events right behind what comes before this position.
    pub(crate) fn order_before(&self, at: u64) -> u64 {
        match at.checked_sub(1).and_then(|at| self.unit(at)) {
            Some(last) => last.order + 1,
            // What is no longer remembered was made with events before this.
            None => self.from,
        }
    }

    /// Whether a unit may have been told before others that come before it: it is urgent, or it may have gone along with
    /// something urgent of its session (ruling 7).
    pub(crate) fn may_have_overtaken(&self, at: u64, unit: &Unit) -> bool {
        let mut later = (at + 1..self.end()).filter_map(|at| self.unit(at));
        unit.is_urgent || later.any(|later| later.is_urgent && later.session == unit.session)
    }

    /// Where a session starts, if that is still remembered.
    pub(crate) fn start_of(&self, session: SessionKey) -> Option<u64> {
        self.starts.get(&session).copied().filter(|at| *at >= self.first)
    }

    /// Where the question is that has this place among all events.
    pub(crate) fn position_of_question(&self, order: u64) -> Option<u64> {
        self.questions.get(&order).copied().filter(|at| *at >= self.first)
    }

    /// Where the unit with this id is, or the last unit that an event with this id stood for.
    pub(crate) fn position_of(&self, id: &EventId) -> Option<u64> {
        let is_it =
            |unit: &Unit| unit.event.envelope.event_id == *id && unit.session != SessionKey::MAX;
        let is_merged = |unit: &Unit| merged_id(&unit.event.envelope.event_id, self.number) == *id;
        let at = self.log.iter().rposition(is_it);
        let at = at.or_else(|| self.log.iter().rposition(is_merged))?;
        Some(self.first + at as u64)
    }
}

/// The output that a chunk belongs to.
pub(crate) fn text_key(session: SessionKey, chunk: &OutputStreaming) -> TextKey {
    (session, chunk.output_id.as_ref().map(|id| Box::from(id.as_str())))
}

/// The id of an event that a subscriber gets for several units, the last of which has this id.
pub(crate) fn merged_id(last: &EventId, audience: u64) -> EventId {
    derived_event_id(last, u64::MAX, audience)
}

/// Whether someone who is behind needs not be told a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Superseded {
    No,
    /// A later one tells what it would.
    ByLater,
    /// An urgent one, which was told at once, has gone beyond it.
    ByUrgent,
}

impl Unit {
    /// The chunk, if the unit is one.
    pub(crate) fn text(&self) -> Option<&OutputStreaming> {
        match &self.event.payload {
            Payload::OutputStreaming(chunk) => Some(chunk),
            _ => None,
        }
    }

    /// The ids under which a subscriber may get it: its own, and that of a merged one that ends here.
    pub(crate) fn ids(&self, audience: u64) -> [EventId; 2] {
        let own = &self.event.envelope.event_id;
        [merged_id(own, audience), own.clone()]
    }

    /// How many bytes it takes.
    fn bytes(&self) -> usize {
        self.weight + self.frame.get().map_or(0, |frame| frame.json.len())
    }

    /// Whether its session was deleted.
    pub(crate) fn is_deleted(&self) -> bool {
        self.kind == Kind::Deleted
    }

    /// Stands for what left memory: whoever comes to it is told that something is missing.
    fn gone(order: u64) -> Self {
        const RIGHT: &str = "a constant of the right form";
        let event_id = EventId::parse("evt_gone").expect(RIGHT);
        let session_id = SessionId::parse("sess_gone").expect(RIGHT);
        let timestamp = Timestamp::from_unix_us(0).expect(RIGHT);
        let envelope = Envelope::new(event_id, session_id, timestamp, Producer::new("gone"));
        let event = Arc::new(Event::new(envelope, state_without_words(state::IDLE)));
        let weight = crate::weight::weight(&event);
        let entry = Entry {
            order,
            session: SessionKey::MAX,
            tags: AgentTags::default(),
            event: Arc::clone(&event),
            sequence_number: 0,
            is_urgent: false,
            weight,
        };
        Unit::new(&entry, event, Kind::Deleted, None)
    }

    /// Nothing is left of it but its ids, by which someone may say where they were.
    fn delete(&mut self) {
        let Envelope { event_id, session_id, timestamp, .. } = self.event.envelope.clone();
        let producer = Producer::new(self.agent());
        let envelope = Envelope::new(event_id, session_id, timestamp, producer);
        self.event = Arc::new(Event::new(envelope, state_without_words(state::IDLE)));
        self.kind = Kind::Deleted;
        self.weight = size_of::<Unit>() + crate::weight::weight(&self.event);
        self.frame.take();
    }

    /// The agent that it is about.
    pub(crate) fn agent(&self) -> &str {
        &self.event.envelope.producer.agent_id
    }

    pub(crate) fn new(
        entry: &Entry,
        event: Arc<Event>,
        kind: Kind,
        sequence_number: Option<u64>,
    ) -> Self {
        Unit {
            order: entry.order,
            session: entry.session,
            event,
            kind,
            is_urgent: entry.is_urgent,
            stands_for: 1,
            made_at: entry.order,
            weight: size_of::<Unit>() + entry.weight,
            sequence_number,
            frame: OnceCell::new(),
        }
    }
}

/// Whether an event asks the person something, or says that its agent is about to.
pub(crate) fn is_before_ask(event: &Event) -> bool {
    let waits = matches!(&event.payload,
        Payload::StateChanged(change) if change.to_state == state::AWAITING_INPUT);
    waits || is_ask(event)
}

/// Whether an event asks the person something.
fn is_ask(event: &Event) -> bool {
    matches!(event.payload, Payload::AwaitingConfirmation(_) | Payload::AwaitingClarification(_))
}

fn kind_of(payload: &Payload) -> Kind {
    match payload {
        Payload::OutputStreaming(_) => Kind::Text,
        Payload::ProgressUpdated(_) => Kind::Progress,
        Payload::StateChanged(_) => Kind::State,
        Payload::ToolInvoked(tool) if tool.irreversible != Some(true) => Kind::PlainTool,
        Payload::ToolCompleted(tool) if tool.status == aaep::event::action::ToolStatus::Success => {
            Kind::PlainTool
        }
        _ => Kind::Other,
    }
}

/// What someone hears who cannot answer a question: that the agent waits, and for what (ruling 1).
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

fn state_without_words(state: &str) -> StateChanged {
    StateChanged {
        from_state: state.to_owned(),
        to_state: state.to_owned(),
        summary_terse: None,
        summary_normal: None,
        summary_detailed: None,
        expected_duration_ms: None,
        other: Object::new(),
    }
}

/// A text within the bound of a summary.
pub(crate) fn cut(text: String) -> String {
    const LONG: usize = 16_384;
    match text.char_indices().nth(LONG) {
        Some((at, _)) => text[..at].to_owned(),
        None => text,
    }
}
