//! What to say now: one announcer per device decides it, from events, from what the device reports, and from
//! what the person wishes.
//!
//! [`Announcer::handle`] takes one input at a moment and gives orders for the device and outcomes for its caller;
//! [`Announcer::deadline`] says when to call again. The device has one utterance at a time. What waits stays here,
//! where it can still be merged, overtaken or summed up. Questions come first, and cut off what is being said;
//! what was cut off is said again whole.

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
mod parts;
mod phrase;
mod question;
mod queue;
mod sessions;
mod tell;
mod tools;
mod truth;
mod wish;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use aaep::{ReplyToken, SessionId};

use crate::english::listening;
use crate::profile::Preferences;
use crate::utterance::{Kind, UtteranceId, Weight};
use crate::words::{keep_own_marks, own, split};
use again::SaidHistory;
use parts::sentence_parts;
use phrase::Phrase;
use question::Question;
use queue::{About, Item, Queue};
use sessions::{Session, SessionKey, Sessions};

pub use clock::time_after_presentation;
pub use danger::rank;
pub use io::{Answer, AskNumber, Asked, By, Decided, Ending, HubNumber, Input, Outcome, Wish};
pub use queue::{MAX_CRITICAL, MAX_QUESTIONS, MAX_WAITING};
pub use sessions::{KnownAgent, MAX_SESSIONS, MAX_TEXT, MAX_TEXTS, agent_name, told_name};

/// The longest utterance other than a question, in bytes. A longer text is told in parts, so that news wait for one of them
/// at most, and little has to be said again when it is cut off.
pub const MAX_UTTERANCE: usize = 300;
/// The same for a device that takes no time.
const MAX_INSTANT_UTTERANCE: usize = 600;
/// The same words of one session are not told twice within this time.
const SAME_WORDS_WITHIN: Duration = Duration::from_mins(1);

/// Whether the device works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeviceHealth {
    Works,
    /// It says nothing for far too long.
    Hangs,
    /// It said itself that it does not work.
    Gone,
}

/// Decides what one device says.
#[derive(Debug, Clone)]
pub struct Announcer {
    preferences: Preferences,
    now: Duration,
    sessions: Sessions,
    questions: BTreeMap<AskNumber, Question>,
    /// How many questions have been asked.
    asked: u64,
    queue: Queue,
    /// What the device is saying.
    current: Option<Current>,
    /// What the device was told to stop and has not reported on.
    stopping: Vec<Current>,
    next_id: UtteranceId,
    health: DeviceHealth,
    /// The names of the hubs, as they are told; none while there is only one.
    hubs: Vec<String>,
    /// The hub from which something was heard last, and the one that was named last.
    hub: HubNumber,
    named_hub: Option<HubNumber>,
    /// The hubs to which the line is broken.
    broken: BTreeSet<HubNumber>,
    /// How many events a producer sent in vain since that was told.
    events_left_out: u64,
    /// How many sessions were found open in which nothing happens, and when that is told.
    idle_found: Option<(Duration, u64)>,
    /// The tokens of the questions that were over last.
    closed: VecDeque<ReplyToken>,
    /// The session of which was spoken last, and the name that was told.
    speaker: Option<(SessionKey, String)>,
    /// What was said last, to be said again.
    said: SaidHistory,
    /// Whether a question comes at once, and what its agent said before it on request.
    context_on_request: bool,
    /// Whether it tells what is over: nothing is to be answered any more.
    is_past: bool,
    decided: Decided,
}

/// An utterance at the device.
#[derive(Debug, Clone)]
struct Current {
    id: UtteranceId,
    item: Item,
    since: Duration,
    has_begun: bool,
    /// How long it takes, as far as is known, and how long it may take.
    takes: Duration,
    patience: Duration,
    /// Whether it was stopped because nobody wants it any more.
    is_unwanted: bool,
}

impl Announcer {
    /// One for a person with these preferences.
    pub fn new(preferences: Preferences) -> Self {
        Announcer {
            preferences,
            now: Duration::ZERO,
            sessions: Sessions::default(),
            questions: BTreeMap::new(),
            asked: 0,
            queue: Queue::default(),
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
            said: SaidHistory::default(),
            context_on_request: false,
            is_past: false,
            decided: Decided::default(),
        }
    }

    /// One that tells what is over: whole, however long it takes, and nothing in it can be answered.
    pub(crate) fn of_the_past(mut preferences: Preferences) -> Self {
        (preferences.behind_seconds, preferences.warning_seconds) = (u64::MAX, 0);
        preferences.long_tool_seconds = 0;
        preferences.sounds = false;
        Announcer { is_past: true, ..Announcer::new(preferences).without_pace() }
    }

    /// The same for a device that takes no time, such as lines: everything is told in the order in which it came.
    pub fn without_pace(mut self) -> Self {
        self.queue.takes_no_time = true;
        self
    }

    /// The same for a device that is read by hand, such as braille: a question comes at once, and what its agent said
    /// before it is told on request.
    pub fn with_context_on_request(mut self) -> Self {
        self.context_on_request = true;
        self
    }

    /// Takes something in at this moment, which never goes back, and decides.
    pub fn handle(&mut self, now: Duration, input: Input<'_>) -> Decided {
        self.now = self.now.max(now);
        match input {
            Input::Event(event) => self.event(event),
            Input::Asked(asked) => self.asked(&asked),
            Input::Over { number, ending } => self.over(number, ending),
            Input::AnswerFailed { number, why } => self.answer_failed(number, why),
            Input::TimeChanged { number, remaining, is_paused, wanted } => {
                self.time_changed(number, remaining, is_paused, wanted);
            }
            Input::Gap { session_id, missed } => self.gap(session_id, missed),
            Input::LineBroken => self.line(true),
            Input::LineBack => self.line(false),
            Input::LeftOut(count) => self.left_out(count),
            Input::Notice(text) => self.notice(text),
            Input::Requested(text) => self.requested(text),
            Input::Feedback(text) => self.feedback(text),
            Input::TooSoon { number, text } => self.too_soon(number, text),
            Input::HubNotice(text) => self.hub_notice(text),
            Input::Device(report) => self.report(report),
            Input::Wish(wish) => self.wish(wish),
            Input::Tick => {}
        }
        self.warn();
        self.mention_long_tools();
        self.tell_idle();
        self.notice_stall();
        self.go_on();
        std::mem::take(&mut self.decided)
    }

    /// When [`Announcer::handle`] is to be called next, with [`Input::Tick`] if nothing else happened.
    pub fn deadline(&self) -> Option<Duration> {
        let stall = self.current.as_ref().map(|it| it.since.saturating_add(it.patience));
        let warnings = self.questions.values().filter_map(|it| self.warning_at(it));
        let is_free = self.current.is_none() && self.is_working();
        let progress = self.queue.waiting().filter(|_| is_free).map(|it| self.due_at(it));
        let stall = stall.filter(|_| self.is_working());
        let found = self.mention_at().into_iter().chain(self.idle_at());
        stall.into_iter().chain(warnings).chain(progress).chain(found).min()
    }

    /// What the person wants to hear.
    pub fn preferences(&self) -> &Preferences {
        &self.preferences
    }

    /// Other preferences from now on. What waits was chosen by the old ones.
    pub fn prefer(&mut self, preferences: Preferences) {
        self.preferences = preferences;
    }

    /// What an agent said last, exactly and unescaped: of this session, or of the one that spoke last. And whether its
    /// end is missing.
    pub fn exact_text(&self, session_id: Option<&SessionId>) -> Option<(&str, bool)> {
        let key = session_id.map(|id| self.key(id));
        self.sessions.last_text(key.as_ref()).map(|(_, it)| (it.exact.as_str(), it.is_cut))
    }

    /// The name under which this person hears of the agent of a session.
    pub fn agent_label(&self, hub: HubNumber, session_id: &SessionId) -> Option<String> {
        let session = self.sessions.get(&SessionKey { hub, id: session_id.clone() })?;
        Some(session.label()).filter(|it| !it.is_empty())
    }

    /// The agents that the person hears of, those of which something was heard last first.
    pub fn agents(&self) -> Vec<KnownAgent> {
        self.sessions.agents()
    }

    /// Whether the device works, and everything that it was to say is said.
    pub fn has_told_everything(&self) -> bool {
        self.is_working() && self.current.is_none() && self.queue.len() == 0
    }

    /// Whether the device works, as far as is known.
    pub fn is_working(&self) -> bool {
        self.health == DeviceHealth::Works
    }

    /// How many utterances wait.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// How many sessions are known.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Whether something was skipped and can still be heard on request.
    pub(crate) fn offers(&self, serial: u64) -> bool {
        self.queue.offers(serial)
    }

    /// What stays the same of what is being said when it is said again, since when it has been known, and whose it is.
    pub(crate) fn origin(&self, id: UtteranceId) -> Option<(u64, Duration, Option<SessionId>)> {
        let current = self.current.as_ref().filter(|it| it.id == id)?;
        let session_id = current.item.session_id.as_ref().map(|it| it.id.clone());
        Some((current.item.serial, current.item.arrived, session_id))
    }

    /// Lets something wait, in parts if it is long, unless the same was just told.
    fn say(&mut self, session_id: Option<&SessionKey>, phrase: &Phrase, about: &About) {
        if phrase.words.is_empty() || !self.is_wanted(phrase.kind, phrase.weight) {
            return;
        }
        if let About::Tools(tools) = about
            && self.queue.merge(session_id, tools)
        {
            return;
        }
        if phrase.weight != Weight::Critical && self.was_just_told(session_id, &phrase.words) {
            return;
        }
        let is_whole = phrase.kind == Kind::Question
            || !matches!(about, About::Nothing | About::Started | About::End);
        let parts = match phrase.kind {
            _ if is_whole => vec![phrase.words.as_str()],
            _ if self.queue.takes_no_time => split(&phrase.words, MAX_INSTANT_UTTERANCE),
            Kind::Reply => sentence_parts(&phrase.words, self.preferences.part_bytes()),
            _ => split(&phrase.words, self.preferences.part_bytes()),
        };
        let (parts, rest) = self.first_parts(phrase.kind, keep_own_marks(parts));
        let count = parts.len();
        let text = session_id.and_then(|it| self.sessions.get(it)).map_or(0, Session::text);
        for (at, words) in parts.into_iter().enumerate() {
            let mut item = Item::new(phrase.kind, phrase.weight, words, self.now);
            item.session_id = session_id.cloned();
            item.tongue = phrase.tongue.clone();
            item.about = about.clone();
            item.is_first = at == 0;
            item.text = text;
            if at + 1 == count && !rest.is_empty() {
                item.words.extend([" ", &own(listening::FOR_THE_REST)]);
            }
            self.queue.push(item, self.preferences.pace(), self.preferences.behind_seconds);
        }
        for words in rest {
            let mut item = Item::new(phrase.kind, phrase.weight, words, self.now);
            item.session_id = session_id.cloned();
            item.tongue = phrase.tongue.clone();
            self.queue.skip(item);
        }
    }

    /// The parts that are told, and those that are told on request.
    fn first_parts(&self, kind: Kind, mut parts: Vec<String>) -> (Vec<String>, Vec<String>) {
        let most = usize::try_from(self.preferences.reply_parts).unwrap_or(usize::MAX);
        let is_cut = kind == Kind::Reply && most > 0 && !self.is_past && parts.len() > most;
        let rest = if is_cut { parts.split_off(most) } else { Vec::new() };
        (parts, rest)
    }

    /// Something of our own about listening.
    fn say_ourselves(&mut self, kind: Kind, words: String, about: &About) {
        let tongue = phrase::Tongue::default();
        self.say(None, &Phrase { kind, weight: Weight::Normal, words, tongue }, about);
    }

    fn is_wanted(&self, kind: Kind, weight: Weight) -> bool {
        if weight == Weight::Critical {
            return true;
        }
        let (only, essentials) = (self.preferences.only_decisions, self.preferences.essentials);
        match kind {
            Kind::Question | Kind::Settled | Kind::Error | Kind::Notice => true,
            Kind::Done => self.preferences.done && !only,
            Kind::Progress => self.preferences.progress && !(only || essentials),
            Kind::Reply | Kind::Doing => !(only || essentials),
        }
    }

    fn was_just_told(&mut self, session_id: Option<&SessionKey>, words: &str) -> bool {
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

    fn label(&self, session_id: Option<&SessionKey>) -> String {
        let session = session_id.and_then(|it| self.sessions.get(it));
        session.map(Session::label).unwrap_or_default()
    }

    fn new_id(&mut self) -> UtteranceId {
        let id = self.next_id;
        self.next_id += 1;
        id
    }
}
