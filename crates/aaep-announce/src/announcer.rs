//! Decides what to say now. There is one announcer for each device; it decides from events, from the reports of its
//! device, and from the requests of the person.
//!
//! [`Announcer::handle`] takes one input and the current time, and returns orders for the device and outcomes for the
//! caller. [`Announcer::deadline`] returns when to call it again. The device has one utterance at a time; the others
//! wait here, where they can still be merged, reordered or summarized. Questions come first and interrupt the current
//! utterance, which is then said again from its beginning.

mod activity;
mod again;
mod claims;
mod clock;
mod context;
mod danger;
mod hear;
mod hubs;
mod io;
mod overview;
pub(crate) mod parts;
mod phrase;
mod question;
mod queue;
mod sessions;
mod tell;
mod tools;
mod truth;
mod turns;
mod wish;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use aaep::{ReplyToken, SessionId};

use crate::english::listening;
use crate::profile::Preferences;
use crate::utterance::{UtteranceId, UtteranceKind, Weight};
use crate::words::{keep_own_marks, own, split};
use again::SaidHistory;
use parts::sentence_parts;
use phrase::AnnouncedPhrase;
use question::AnnouncedAsk;
use queue::{QueuedUtterance, UtteranceQueue, UtteranceTopic};
use sessions::{HubSessionKey, TrackedSession, TrackedSessions};

pub use clock::time_after_presentation;
pub use danger::rank;
pub use io::{
    AnnouncerInput, AnnouncerOutcome, Answer, AnsweredBy, AskEnding, AskNumber, Asked, Decided,
    HubNumber, ListeningRequest,
};
pub use queue::{MAX_CRITICAL, MAX_QUESTIONS, MAX_WAITING};
pub use sessions::{KnownAgent, MAX_SESSIONS, MAX_TEXT, MAX_TEXTS, agent_name, told_name};

/// The longest utterance other than a question, in bytes. Longer text is split, so that news waits for at most one
/// part, and an interruption repeats only a little.
pub const MAX_UTTERANCE: usize = 300;
/// The same limit for a device that takes no time.
const MAX_INSTANT_UTTERANCE: usize = 600;
/// The announcer does not say the same words of a session twice within this time.
const SAME_WORDS_WITHIN: Duration = Duration::from_mins(1);

/// Whether the device works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeviceHealth {
    Works,
    /// It has not reported for far too long.
    Hangs,
    /// It reported that it does not work.
    Gone,
}

/// Decides what one device says.
#[derive(Debug, Clone)]
pub struct Announcer {
    preferences: Preferences,
    now: Duration,
    sessions: TrackedSessions,
    questions: BTreeMap<AskNumber, AnnouncedAsk>,
    /// How many questions have been asked so far.
    asked_count: u64,
    queue: UtteranceQueue,
    /// The utterance that the device is saying.
    current: Option<CurrentUtterance>,
    /// Utterances that the device was ordered to stop and has not reported on yet.
    stopping: Vec<CurrentUtterance>,
    next_id: UtteranceId,
    health: DeviceHealth,
    /// The names of the hubs as they are announced; empty while there is only one hub.
    hubs: Vec<String>,
    /// The hub that sent the current input, and the hub that was named last.
    hub: HubNumber,
    named_hub: Option<HubNumber>,
    /// The hubs whose connection is broken.
    broken: BTreeSet<HubNumber>,
    /// How many events were dropped because a producer sent too many, since this was last announced.
    events_left_out: u64,
    /// When to announce idle sessions, and how many were found.
    idle_found: Option<(Duration, u64)>,
    /// The reply tokens of the questions that were closed most recently.
    closed: VecDeque<ReplyToken>,
    /// The session that spoke last, and the name under which it was announced.
    speaker: Option<(HubSessionKey, String)>,
    /// The question to which the last utterance belongs.
    telling: Option<AskNumber>,
    /// Recent utterances, for repeating.
    said: SaidHistory,
    /// Whether a question is shown at once, and the agent's words before it only on request.
    context_on_request: bool,
    /// Whether this announcer replays the past, in which nothing can be answered.
    is_past: bool,
    decided: Decided,
}

/// An utterance that the device has.
#[derive(Debug, Clone)]
struct CurrentUtterance {
    id: UtteranceId,
    item: QueuedUtterance,
    since: Duration,
    has_begun: bool,
    /// The estimated duration with the parts that follow, and the longest duration before the device counts as hanging.
    expected: Duration,
    patience: Duration,
    /// Whether nothing of it comes after this.
    is_last_part: bool,
    /// The newest utterance that was known when it began.
    last_serial: u64,
    /// Whether it was stopped because it is no longer wanted, so that it is not said again.
    is_unwanted: bool,
}

impl Announcer {
    /// Creates an announcer for a person with these preferences.
    pub fn new(preferences: Preferences) -> Self {
        Announcer {
            preferences,
            now: Duration::ZERO,
            sessions: TrackedSessions::default(),
            questions: BTreeMap::new(),
            asked_count: 0,
            queue: UtteranceQueue::default(),
            current: None,
            stopping: Vec::new(),
            next_id: 1,
            health: DeviceHealth::Works,
            hubs: Vec::new(),
            hub: 0,
            named_hub: None,
            broken: BTreeSet::new(),
            events_left_out: 0,
            idle_found: None,
            closed: VecDeque::new(),
            speaker: None,
            telling: None,
            said: SaidHistory::default(),
            context_on_request: false,
            is_past: false,
            decided: Decided::default(),
        }
    }

    /// Creates an announcer for a replay: it says everything, however long that takes, and nothing can be answered.
    pub(crate) fn of_the_past(mut preferences: Preferences) -> Self {
        (preferences.behind_seconds, preferences.warning_seconds) = (u64::MAX, 0);
        preferences.long_tool_seconds = 0;
        preferences.sounds = false;
        Announcer { is_past: true, ..Announcer::new(preferences).without_pace() }
    }

    /// For a device that takes no time, such as lines: everything is announced in the order of arrival.
    pub fn without_pace(mut self) -> Self {
        self.queue.takes_no_time = true;
        self
    }

    /// For a device that is read by hand, such as braille: a question is shown at once, and the agent's words before
    /// it only on request.
    pub fn with_context_on_request(mut self) -> Self {
        self.context_on_request = true;
        self
    }

    /// Processes one input and decides what to do. `now` must never go back.
    pub fn handle(&mut self, now: Duration, input: AnnouncerInput<'_>) -> Decided {
        self.now = self.now.max(now);
        match input {
            AnnouncerInput::Event(event) => self.event(event),
            AnnouncerInput::Asked(asked) => self.asked(&asked),
            AnnouncerInput::Over { number, ending } => self.ask_ended(number, ending),
            AnnouncerInput::AnswerFailed { number, why } => self.answer_failed(number, why),
            AnnouncerInput::TimeChanged { number, remaining, is_paused, wanted } => {
                self.time_changed(number, remaining, is_paused, wanted);
            }
            AnnouncerInput::Gap { session_id, missed } => self.gap(session_id, missed),
            AnnouncerInput::LineBroken => self.connection_changed(true),
            AnnouncerInput::LineBack => self.connection_changed(false),
            AnnouncerInput::LeftOut(count) => self.left_out(count),
            AnnouncerInput::Notice(text) => self.notice(text),
            AnnouncerInput::Requested(text) => self.requested(text),
            AnnouncerInput::Feedback(text) => self.feedback(text),
            AnnouncerInput::TooSoon { number, text } => self.too_soon(number, text),
            AnnouncerInput::HubNotice(text) => self.hub_notice(text),
            AnnouncerInput::Device(report) => self.report(report),
            AnnouncerInput::Request(wish) => self.wish(wish),
            AnnouncerInput::Tick => {}
        }
        self.warn();
        self.mention_long_tools();
        self.tell_idle();
        self.notice_stall();
        self.go_on();
        std::mem::take(&mut self.decided)
    }

    /// When to call [`Announcer::handle`] next; use [`AnnouncerInput::Tick`] if nothing else has happened by then.
    pub fn deadline(&self) -> Option<Duration> {
        let stall = self.current.as_ref().map(|it| it.since.saturating_add(it.patience));
        let warnings = self.questions.values().filter_map(|it| self.warning_at(it));
        let is_free = self.current.is_none() && self.is_working();
        let progress = self.queue.waiting().filter(|_| is_free).filter_map(|it| self.due_at(it));
        let stall = stall.filter(|_| self.is_working());
        let found = self.mention_at().into_iter().chain(self.idle_at());
        stall.into_iter().chain(warnings).chain(progress).chain(found).min()
    }

    /// The preferences of the person.
    pub fn preferences(&self) -> &Preferences {
        &self.preferences
    }

    /// Changes the preferences from now on. Utterances that already wait were chosen by the old ones.
    pub fn prefer(&mut self, preferences: Preferences) {
        self.preferences = preferences;
    }

    /// The last text of an agent, exact and unescaped, and whether its end is missing. Without a session, that of the
    /// session that spoke last.
    pub fn exact_text(&self, session_id: Option<&SessionId>) -> Option<(&str, bool)> {
        let key = session_id.map(|id| self.key(id));
        self.sessions.last_text(key.as_ref()).map(|(_, it)| (it.exact.as_str(), it.is_cut))
    }

    /// The name under which the agent of a session is announced to this person.
    pub fn agent_label(&self, hub: HubNumber, session_id: &SessionId) -> Option<String> {
        let session = self.sessions.get(&HubSessionKey { hub, id: session_id.clone() })?;
        Some(session.label()).filter(|it| !it.is_empty())
    }

    /// The agents of all known sessions, the most recently active first.
    pub fn agents(&self) -> Vec<KnownAgent> {
        self.sessions.agents()
    }

    /// Whether the device works and has said everything.
    pub fn has_told_everything(&self) -> bool {
        self.is_working() && self.current.is_none() && self.queue.len() == 0
    }

    /// Whether the device works, as far as is known.
    pub fn is_working(&self) -> bool {
        self.health == DeviceHealth::Works
    }

    /// The number of waiting utterances.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// The number of known sessions.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Whether an utterance was skipped and is still available on request.
    pub(crate) fn offers(&self, serial: u64) -> bool {
        self.queue.offers(serial)
    }

    /// The serial number of an utterance that is being said (repeats have the same one), when its content became
    /// known, its session, and whether it is news.
    pub(crate) fn origin(
        &self,
        id: UtteranceId,
    ) -> Option<(u64, Duration, Option<SessionId>, bool)> {
        let item = &self.current.as_ref().filter(|it| it.id == id)?.item;
        let session_id = item.session_id.as_ref().map(|it| it.id.clone());
        Some((item.serial, item.arrived, session_id, item.is_news()))
    }

    /// Queues a phrase, split if it is long, unless the same words were just said.
    fn say(
        &mut self,
        session_id: Option<&HubSessionKey>,
        phrase: &AnnouncedPhrase,
        about: &UtteranceTopic,
    ) {
        if phrase.words.is_empty() || !self.is_wanted(phrase.kind, phrase.weight) {
            return;
        }
        if let UtteranceTopic::Tools(tools) = about
            && self.queue.merge(session_id, tools)
        {
            return;
        }
        if phrase.weight != Weight::Critical && self.was_just_told(session_id, &phrase.words) {
            return;
        }
        let is_whole = phrase.kind == UtteranceKind::Question
            || !matches!(
                about,
                UtteranceTopic::Nothing | UtteranceTopic::Started | UtteranceTopic::End
            );
        let parts = match phrase.kind {
            _ if is_whole => vec![phrase.words.as_str()],
            _ if self.queue.takes_no_time => split(&phrase.words, MAX_INSTANT_UTTERANCE),
            UtteranceKind::Reply => sentence_parts(&phrase.words, self.preferences.part_bytes()),
            _ => split(&phrase.words, self.preferences.part_bytes()),
        };
        let (parts, rest) = self.first_parts(phrase.kind, keep_own_marks(parts));
        let count = parts.len();
        let text = session_id.and_then(|it| self.sessions.get(it)).map_or(0, TrackedSession::text);
        for (at, words) in parts.into_iter().enumerate() {
            let mut item = QueuedUtterance::new(phrase.kind, phrase.weight, words, self.now);
            item.session_id = session_id.cloned();
            item.text_language = phrase.text_language.clone();
            item.about = about.clone();
            item.is_first = at == 0;
            item.text = text;
            if at + 1 == count && !rest.is_empty() {
                item.words.extend([" ", &own(listening::FOR_THE_REST)]);
            }
            self.queue.push(item, self.preferences.pace(), self.preferences.behind_seconds);
        }
        for words in rest {
            let mut item = QueuedUtterance::new(phrase.kind, phrase.weight, words, self.now);
            item.session_id = session_id.cloned();
            item.text_language = phrase.text_language.clone();
            self.queue.skip(item);
        }
    }

    /// Splits into the parts that are said now and the parts that are said only on request.
    fn first_parts(
        &self,
        kind: UtteranceKind,
        mut parts: Vec<String>,
    ) -> (Vec<String>, Vec<String>) {
        let most = usize::try_from(self.preferences.reply_parts).unwrap_or(usize::MAX);
        let is_cut =
            kind == UtteranceKind::Reply && most > 0 && !self.is_past && parts.len() > most;
        let rest = if is_cut { parts.split_off(most) } else { Vec::new() };
        (parts, rest)
    }

    /// Queues a sentence of our own about listening.
    fn say_ourselves(&mut self, kind: UtteranceKind, words: String, about: &UtteranceTopic) {
        let text_language = phrase::TextLanguage::default();
        self.say(
            None,
            &AnnouncedPhrase { kind, weight: Weight::Normal, words, text_language },
            about,
        );
    }

    fn is_wanted(&self, kind: UtteranceKind, weight: Weight) -> bool {
        if weight == Weight::Critical {
            return true;
        }
        let (only, essentials) = (self.preferences.only_decisions, self.preferences.essentials);
        match kind {
            UtteranceKind::Question
            | UtteranceKind::Settled
            | UtteranceKind::Error
            | UtteranceKind::Notice => true,
            UtteranceKind::Done => self.preferences.done && !only,
            UtteranceKind::Progress => self.preferences.progress && !(only || essentials),
            UtteranceKind::Reply | UtteranceKind::Doing => !(only || essentials),
        }
    }

    fn was_just_told(&mut self, session_id: Option<&HubSessionKey>, words: &str) -> bool {
        let now = self.now;
        let Some(session) = session_id.and_then(|it| self.sessions.get_mut(it)) else {
            return false;
        };
        let is_same = session
            .last_words
            .as_ref()
            .is_some_and(|(last, at)| last == words && now.saturating_sub(*at) < SAME_WORDS_WITHIN);
        if !is_same {
            session.last_words = Some((words.to_owned(), now));
        }
        is_same
    }

    fn label(&self, session_id: Option<&HubSessionKey>) -> String {
        let session = session_id.and_then(|it| self.sessions.get(it));
        session.map(TrackedSession::label).unwrap_or_default()
    }

    fn new_id(&mut self) -> UtteranceId {
        let id = self.next_id;
        self.next_id += 1;
        id
    }
}
