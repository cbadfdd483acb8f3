//! What is known of each session: whose it is, what it says, what really happened in it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use aaep::event::action::{CoalesceBoundary, OutputStreaming};
use aaep::extension::PREFIX;
use aaep::{Event, OutputId, SessionId};

use super::activity::Activity;
use super::io::HubNumber;
use super::phrase::{Tongue, Wording};
use super::truth::Truth;
use crate::english::{IN_PROJECT, listening, numbered};
use crate::profile::{Preferences, Replies};
use crate::words::{End, MAX_SAID, Stream, cut, one_line, own};

/// How many sessions are known at once.
pub const MAX_SESSIONS: usize = 64;
/// How many outputs of a session are open at once.
const MAX_OUTPUTS: usize = 8;
/// How many texts of a session are remembered.
pub const MAX_TEXTS: usize = 4;
/// What an agent says in more outputs than this is no longer one text: each of them is one, as in a log.
const MAX_TEXT_OUTPUTS: usize = 8;
/// How much of each text is remembered, in bytes.
pub const MAX_TEXT: usize = 32 * 1024;
/// The longest name of an agent that is told, in bytes.
const MAX_NAME: usize = 60;
/// The longest id of an agent that is remembered, in bytes: the longest by which one can be told anything.
const MAX_AGENT_ID: usize = 256;
/// A session of which nothing was heard for so long does not share its name with new ones.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(30);

/// A session of a hub. Two hubs can use the same id, and one must not speak for the other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SessionKey {
    pub(super) hub: HubNumber,
    pub(super) id: SessionId,
}

/// An agent in a session, as the person hears of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownAgent {
    /// Where it is.
    pub hub: HubNumber,
    /// The session.
    pub session_id: SessionId,
    /// The agent, as the protocol names it. Foreign text.
    pub agent_id: String,
    /// Its name, which others may have too.
    pub name: String,
    /// What it is called: its name, with a number where others have the same.
    pub label: String,
    /// Whether the session goes on.
    pub is_live: bool,
}

/// One session.
#[derive(Debug, Clone)]
pub(super) struct Session {
    name: String,
    /// As the protocol names it.
    agent_id: String,
    /// Which one of those with this name it is.
    ordinal: u32,
    /// Whether there was another one of this name at the same time.
    has_namesake: bool,
    /// Whether its name says where it works.
    has_project: bool,
    is_live: bool,
    last_heard: Duration,
    outputs: VecDeque<Output>,
    texts: VecDeque<Text>,
    /// How many texts it has begun: what it says between one thing that it does and the next is one text.
    text: u64,
    /// How many outputs that text has.
    text_outputs: usize,
    pub(super) truth: Truth,
    pub(super) activity: Activity,
    /// The last words that were to be said of it, and when.
    pub(super) last_words: Option<(String, Duration)>,
    /// When its state changed last.
    pub(super) state_since: Duration,
    /// When its progress was told last.
    pub(super) progress_told: Option<Duration>,
}

/// An output that has not ended.
#[derive(Debug, Clone)]
struct Output {
    id: Option<OutputId>,
    stream: Stream,
    /// Words that are told when it is complete, and whether there were too many.
    held: String,
    is_cut: bool,
    /// Whether the person wants to hear no more of it now.
    is_hushed: bool,
}

/// What an agent said, exactly.
#[derive(Debug, Clone)]
pub(super) struct Text {
    id: Option<OutputId>,
    is_complete: bool,
    pub(super) exact: String,
    /// Whether its end is missing.
    pub(super) is_cut: bool,
    pub(super) tongue: Tongue,
}

/// All sessions.
#[derive(Debug, Clone, Default)]
pub(super) struct Sessions {
    known: BTreeMap<SessionKey, Session>,
    /// The session whose agent said something last.
    last_reply: Option<SessionKey>,
}

impl Sessions {
    /// The session of an event, known from now on.
    pub(super) fn enter(&mut self, now: Duration, id: &SessionKey, event: &Event) -> &mut Session {
        let is_known = self.known.get(id).map(|it| it.has_project);
        let has_project = project(event).is_some();
        // A subscriber that joined in the midst may learn only later where an agent works.
        if is_known.is_none() || is_known == Some(false) && has_project {
            let known = self.known.remove(id);
            self.make_room();
            let name = agent_name(event);
            let ordinal = self.free_ordinal(now, &name);
            let namesakes =
                self.known.values_mut().filter(|it| it.name.eq_ignore_ascii_case(&name));
            if ordinal > 1 {
                namesakes.for_each(|it| it.has_namesake = true);
            }
            let mut session = known.unwrap_or_else(|| Session::new(String::new(), 1));
            (session.name, session.ordinal, session.has_namesake) = (name, ordinal, false);
            session.has_project = has_project;
            let agent_id = cut(&event.envelope.producer.agent_id, MAX_AGENT_ID);
            agent_id.clone_into(&mut session.agent_id);
            self.known.insert(id.clone(), session);
        }
        let session =
            self.known.entry(id.clone()).or_insert_with(|| Session::new(String::new(), 1));
        session.last_heard = now;
        session.is_live = true;
        session
    }

    pub(super) fn get(&self, id: &SessionKey) -> Option<&Session> {
        self.known.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &SessionKey) -> Option<&mut Session> {
        self.known.get_mut(id)
    }

    /// What an agent said last, of this session or of any.
    pub(super) fn last_text(&self, id: Option<&SessionKey>) -> Option<(&SessionKey, &Text)> {
        let (id, session) = self.known.get_key_value(id.or(self.last_reply.as_ref())?)?;
        Some((id, session.texts.back()?))
    }

    /// The session in which the agent of this one spoke last: this one, or one that is over if it said nothing in this one.
    pub(super) fn speaking_session(&self, id: &SessionKey) -> SessionKey {
        let Some(asking) = self.known.get(id).filter(|it| it.texts.is_empty()) else {
            return id.clone();
        };
        let is_same = |(key, it): &(&SessionKey, &Session)| {
            key.hub == id.hub
                && !it.is_live
                && !it.texts.is_empty()
                && (&it.agent_id, &it.name) == (&asking.agent_id, &asking.name)
        };
        let newest = self.known.iter().filter(is_same).max_by_key(|(_, it)| it.last_heard);
        newest.map_or_else(|| id.clone(), |(key, _)| key.clone())
    }

    pub(super) fn spoke(&mut self, id: &SessionKey) {
        if self.last_reply.as_ref() != Some(id) {
            self.last_reply = Some(id.clone());
        }
    }

    /// Whether words begin like the name of any agent that speaks here.
    pub(super) fn begin_like_a_name(&self, words: &str) -> bool {
        let Some((beginning, _)) = words.split_once(':') else { return false };
        beginning.len() <= MAX_NAME * 3
            && self.known.values().any(|it| {
                // The name alone is enough to pretend, without where the agent works.
                let name = it.name.split(IN_PROJECT).next().unwrap_or_default().to_lowercase();
                !name.is_empty() && beginning.trim().to_lowercase().starts_with(&name)
            })
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Those that have not ended.
    pub(super) fn live(&self) -> impl Iterator<Item = (&SessionKey, &Session)> {
        self.known.iter().filter(|(_, it)| it.is_live)
    }

    pub(super) fn live_mut(&mut self) -> impl Iterator<Item = (&SessionKey, &mut Session)> {
        self.known.iter_mut().filter(|(_, it)| it.is_live)
    }

    /// All of them as they are called, those of which something was heard last first.
    pub(super) fn agents(&self) -> Vec<KnownAgent> {
        let mut known: Vec<(&SessionKey, &Session)> = self.known.iter().collect();
        known.sort_by_key(|(_, it)| std::cmp::Reverse(it.last_heard));
        known
            .into_iter()
            .map(|(key, it)| KnownAgent {
                hub: key.hub,
                session_id: key.id.clone(),
                agent_id: it.agent_id.clone(),
                name: it.name.clone(),
                label: it.label(),
                is_live: it.is_live,
            })
            .collect()
    }

    /// The person wants to hear no more of what agents are saying now.
    pub(super) fn hush(&mut self) {
        let outputs = self.known.values_mut().flat_map(|it| &mut it.outputs);
        outputs.for_each(|it| it.is_hushed = true);
    }

    /// Forgets the session that was quiet for longest, an ended one first, of the hub that has the most: none
    /// makes the sessions of another be forgotten.
    fn make_room(&mut self) {
        while self.known.len() >= MAX_SESSIONS {
            let mut counts: BTreeMap<HubNumber, usize> = BTreeMap::new();
            self.known.keys().for_each(|it| *counts.entry(it.hub).or_default() += 1);
            let fullest = counts.into_iter().max_by_key(|(_, count)| *count).map(|(hub, _)| hub);
            let of_it = self.known.iter().filter(|(id, _)| Some(id.hub) == fullest);
            let oldest = of_it.min_by_key(|(_, it)| (it.is_live, it.last_heard));
            let Some(oldest) = oldest.map(|(id, _)| id.clone()) else { return };
            self.known.remove(&oldest);
        }
    }

    fn free_ordinal(&self, now: Duration, name: &str) -> u32 {
        let is_taken = |ordinal: u32| {
            self.known.values().any(|it| {
                let is_current = it.is_live && now.saturating_sub(it.last_heard) < FORGOTTEN_AFTER;
                is_current && it.ordinal == ordinal && it.name.eq_ignore_ascii_case(name)
            })
        };
        let most = u32::try_from(MAX_SESSIONS).unwrap_or(u32::MAX);
        (1..=most).find(|ordinal| !is_taken(*ordinal)).unwrap_or(most)
    }
}

impl Session {
    fn new(name: String, ordinal: u32) -> Self {
        Session {
            name,
            agent_id: String::new(),
            ordinal,
            has_namesake: false,
            has_project: false,
            is_live: true,
            last_heard: Duration::ZERO,
            outputs: VecDeque::new(),
            texts: VecDeque::new(),
            text: 0,
            text_outputs: 0,
            truth: Truth::default(),
            activity: Activity::default(),
            last_words: None,
            state_since: Duration::ZERO,
            progress_told: None,
        }
    }

    /// What it is called, with a number if others are called the same.
    pub(super) fn label(&self) -> String {
        match self.ordinal {
            _ if self.name.is_empty() => String::new(),
            1 if !self.has_namesake => self.name.clone(),
            ordinal => numbered(&self.name, ordinal),
        }
    }

    pub(super) fn is_live(&self) -> bool {
        self.is_live
    }

    /// When something was heard of it last.
    pub(super) fn last_heard(&self) -> Duration {
        self.last_heard
    }

    /// Takes a piece of text; the words that can be told now.
    pub(super) fn hear(
        &mut self,
        piece: &OutputStreaming,
        tongue: &Tongue,
        preferences: &Preferences,
    ) -> String {
        self.remember(piece, tongue);
        let end = match (&piece.coalesce_hint, preferences.replies) {
            _ if piece.complete => End::Completion,
            (Some(CoalesceBoundary::Sentence | CoalesceBoundary::Paragraph), _)
            | (Some(CoalesceBoundary::Word), Replies::Words) => End::Sentence,
            (_, Replies::Words) => End::Words,
            _ => End::Anywhere,
        };
        let at = self.outputs.iter().position(|it| it.id == piece.output_id);
        let open = at.and_then(|at| self.outputs.remove(at));
        let mut output = open.unwrap_or_else(|| {
            let stream = Stream::new(Wording::of(preferences, tongue).style);
            let (id, held) = (piece.output_id.clone(), String::new());
            Output { id, stream, held, is_cut: false, is_hushed: false }
        });
        let mut words = output.stream.push_marked(&piece.chunk, end);
        if preferences.replies == Replies::Whole {
            output.hold(&words);
            words = if piece.complete { output.take_held() } else { String::new() };
        }
        if !piece.complete {
            self.outputs.push_back(output);
            if self.outputs.len() > MAX_OUTPUTS
                && let Some(mut oldest) = self.outputs.pop_front()
            {
                words = format!("{} {words}", oldest.rest());
            }
        }
        words
    }

    fn remember(&mut self, piece: &OutputStreaming, tongue: &Tongue) {
        let at = self.texts.iter().position(|it| !it.is_complete && it.id == piece.output_id);
        let known = at.and_then(|at| self.texts.remove(at));
        if known.is_none() {
            self.text_outputs += 1;
            self.text += u64::from(self.text_outputs > MAX_TEXT_OUTPUTS);
        }
        let text = known.unwrap_or_else(|| Text {
            id: piece.output_id.clone(),
            is_complete: false,
            exact: String::new(),
            is_cut: false,
            tongue: tongue.clone(),
        });
        self.texts.push_back(text);
        if self.texts.len() > MAX_TEXTS {
            self.texts.pop_front();
        }
        let Some(text) = self.texts.back_mut() else { return };
        let room = MAX_TEXT.saturating_sub(text.exact.len());
        let fits = if text.is_cut { "" } else { cut(&piece.chunk, room) };
        text.exact.push_str(fits);
        text.is_cut |= fits.len() < piece.chunk.len();
        text.is_complete = piece.complete;
    }

    /// Which of its texts is the newest.
    pub(super) fn text(&self) -> u64 {
        self.text
    }

    /// What the agent says from now on is another text.
    pub(super) fn begin_text(&mut self) {
        self.text += 1;
        self.text_outputs = 0;
    }

    /// Whether the person wants to hear no more of the output that a piece belongs to.
    pub(super) fn is_hushed(&self, piece: &OutputStreaming) -> bool {
        self.outputs.iter().any(|it| it.is_hushed && it.id == piece.output_id)
    }

    /// What the agent says from now on is told again.
    pub(super) fn unhush(&mut self) {
        self.outputs.iter_mut().for_each(|it| it.is_hushed = false);
    }

    /// The text that was remembered last.
    pub(super) fn last_text(&self) -> Option<&Text> {
        self.texts.back()
    }

    /// The words of open outputs that were not told, up to where they are.
    pub(super) fn take_unfinished(&mut self) -> String {
        let open = self.outputs.iter_mut().filter(|it| !it.is_hushed);
        let words: Vec<String> = open.map(Output::so_far).filter(|it| !it.is_empty()).collect();
        words.join(" ")
    }

    /// No more text comes of what is open; the words of it that were not told.
    pub(super) fn close_outputs(&mut self) -> String {
        self.texts.iter_mut().for_each(|it| it.is_complete = true);
        let rest: Vec<String> =
            self.outputs.drain(..).map(|mut it| it.rest()).filter(|it| !it.is_empty()).collect();
        rest.join(" ")
    }

    /// The session has ended.
    pub(super) fn end(&mut self) {
        self.is_live = false;
        self.truth = Truth::default();
        self.activity = Activity::default();
    }
}

impl Output {
    /// Keeps words until the output is complete, as long as there is room.
    fn hold(&mut self, words: &str) {
        self.is_cut |= self.held.len() + words.len() > MAX_SAID;
        if !words.is_empty() && !self.is_cut {
            if !self.held.is_empty() {
                self.held.push(' ');
            }
            self.held.push_str(words);
        }
    }

    fn take_held(&mut self) -> String {
        let mut held = std::mem::take(&mut self.held);
        if std::mem::take(&mut self.is_cut) {
            held.extend([" ", &*own(listening::TOO_LONG_TO_TELL)]);
        }
        held
    }

    /// What was not told of it.
    fn rest(&mut self) -> String {
        self.flush(End::Completion)
    }

    /// The same while it goes on.
    fn so_far(&mut self) -> String {
        self.flush(End::Sentence)
    }

    fn flush(&mut self, end: End) -> String {
        let last = self.stream.push_marked("", end);
        let held = self.take_held();
        format!("{held} {last}").trim().to_owned()
    }
}

/// The name of an agent as it is told, everywhere the same: with where it works, if it says so.
pub fn agent_name(event: &Event) -> String {
    let producer = &event.envelope.producer;
    let name = told_name(producer.agent_name.as_deref().unwrap_or(&producer.agent_id));
    let project = project(event).filter(|it| !name.contains(it.as_str()));
    match project {
        Some(project) if !name.is_empty() => format!("{name}{IN_PROJECT}{project}"),
        _ => name,
    }
}

/// Where the agent of an event works, as far as the event says it.
fn project(event: &Event) -> Option<String> {
    let own = event.extensions.as_ref()?.0.iter().find(|(prefix, _)| prefix.as_str() == PREFIX)?;
    let project = told_name(own.1.get("project")?.as_str()?);
    Some(project).filter(|it| !it.is_empty())
}

/// A name as it is told: short, on one line, and without anything that ends it.
pub fn told_name(name: &str) -> String {
    let name = one_line(cut(name, MAX_NAME * 4));
    let name: String = name.chars().filter(|c| !matches!(c, ':' | '"' | '`')).collect();
    cut(&name, MAX_NAME).trim().to_owned()
}
