//! What the announcer knows about each session: its agent, its texts, and what really happened.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use aaep::event::action::{CoalesceBoundary, OutputStreaming};
use aaep::extension::PREFIX;
use aaep::{Event, OutputId, SessionId};

use super::activity::AgentActivity;
use super::io::HubNumber;
use super::phrase::{FieldWording, TextLanguage};
use super::truth::SessionFacts;
use crate::english::{IN_PROJECT, OWN_LABELS, listening, numbered};
use crate::profile::{Preferences, Replies};
use crate::words::{MAX_SAID, PieceEnd, Stream, cut, one_line, own};

/// The most sessions that are known at once.
pub const MAX_SESSIONS: usize = 64;
/// The most open outputs of a session.
const MAX_OUTPUTS: usize = 8;
/// How many texts of a session are remembered.
pub const MAX_TEXTS: usize = 4;
/// After this many outputs in a row, each output counts as a text of its own, as in a log.
const MAX_TEXT_OUTPUTS: usize = 8;
/// How much of each text is remembered, in bytes.
pub const MAX_TEXT: usize = 32 * 1024;
/// The longest agent name that is announced, in bytes.
const MAX_NAME: usize = 60;
/// The longest agent id that is remembered, in bytes. A longer one cannot be used to address an agent.
const MAX_AGENT_ID: usize = 256;
/// A session that was quiet for this long no longer shares its name with new sessions.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(30);

/// What can stand between a speaker and their words.
const SPEAKER_MARKS: [char; 5] = [':', '\u{ff1a}', '\u{2236}', '\u{2013}', '\u{2014}'];

/// A session of a hub. Two hubs can use the same id, and one must not speak for the other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HubSessionKey {
    pub(super) hub: HubNumber,
    pub(super) id: SessionId,
}

/// An agent in a session, as it is announced to the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownAgent {
    /// The hub of the session.
    pub hub: HubNumber,
    /// The session.
    pub session_id: SessionId,
    /// The agent id of the protocol. Foreign text.
    pub agent_id: String,
    /// The name of the agent. Several agents can have the same one.
    pub name: String,
    /// The label of the agent: its name, with a number if another session had the same name before. It stays as long as
    /// the session lives.
    pub label: String,
    /// Whether the session has not ended.
    pub is_live: bool,
}

/// What is known about one session.
#[derive(Debug, Clone)]
pub(super) struct TrackedSession {
    name: String,
    /// The agent id of the protocol.
    agent_id: String,
    /// Its number among the sessions with this name.
    ordinal: u32,
    /// Whether the name includes the project.
    has_project: bool,
    /// Whether the person has heard its name, which then stays.
    is_named: bool,
    is_live: bool,
    last_heard: Duration,
    outputs: VecDeque<StreamedOutput>,
    texts: VecDeque<AgentText>,
    /// How many texts it has begun. A text is everything that an agent says between two actions.
    text: u64,
    /// How many outputs the newest text has.
    text_outputs: usize,
    pub(super) truth: SessionFacts,
    pub(super) activity: AgentActivity,
    /// The last words that were queued for it, and when.
    pub(super) last_words: Option<(String, Duration)>,
    /// When its state last changed.
    pub(super) state_since: Duration,
    /// When its progress was last announced.
    pub(super) progress_told: Option<Duration>,
}

/// An output that has not ended.
#[derive(Debug, Clone)]
struct StreamedOutput {
    id: Option<OutputId>,
    stream: Stream,
    /// Words that are kept until the output is complete, and whether some did not fit.
    held: String,
    is_cut: bool,
    /// Whether the person does not want to hear the rest.
    is_hushed: bool,
}

/// The exact text of an agent.
#[derive(Debug, Clone)]
pub(super) struct AgentText {
    id: Option<OutputId>,
    is_complete: bool,
    pub(super) exact: String,
    /// Whether its end is missing.
    pub(super) is_cut: bool,
    pub(super) text_language: TextLanguage,
}

#[derive(Debug, Clone, Default)]
pub(super) struct TrackedSessions {
    known: BTreeMap<HubSessionKey, TrackedSession>,
    /// The session whose agent said something last.
    last_reply: Option<HubSessionKey>,
}

/// Whether the words of an agent begin with a label of our own, as if they were ours.
pub(super) fn begin_like_a_label(words: &str) -> bool {
    let is_like =
        |beginning: String| OWN_LABELS.iter().any(|it| beginning.starts_with(&letters(it)));
    named_speaker(words).is_some_and(is_like)
}

/// The letters of the beginning that may name a speaker.
fn named_speaker(words: &str) -> Option<String> {
    let (beginning, _) = words.split_once(SPEAKER_MARKS)?;
    (beginning.len() <= MAX_NAME * 3).then(|| letters(beginning))
}

/// The letters and digits of some words, in lower case: marks and blanks make no other name.
fn letters(words: &str) -> String {
    words.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

impl TrackedSessions {
    /// Returns the session of an event, and adds it if it is new.
    pub(super) fn enter(
        &mut self,
        now: Duration,
        id: &HubSessionKey,
        event: &Event,
    ) -> &mut TrackedSession {
        let is_known = self.known.get(id).map(|it| it.has_project || it.is_named);
        let has_project = project(event).is_some();
        // A subscriber that joined late may learn the project of an agent only later. A name that was told stays.
        if is_known.is_none() || is_known == Some(false) && has_project {
            let known = self.known.remove(id);
            self.make_room();
            let name = agent_name(event);
            let ordinal = self.free_ordinal(now, &name);
            let mut session = known.unwrap_or_else(|| TrackedSession::new(String::new(), 1));
            (session.name, session.ordinal) = (name, ordinal);
            session.has_project = has_project;
            let agent_id = cut(&event.envelope.producer.agent_id, MAX_AGENT_ID);
            agent_id.clone_into(&mut session.agent_id);
            self.known.insert(id.clone(), session);
        }
        let session =
            self.known.entry(id.clone()).or_insert_with(|| TrackedSession::new(String::new(), 1));
        session.last_heard = now;
        session.is_live = true;
        session
    }

    pub(super) fn get(&self, id: &HubSessionKey) -> Option<&TrackedSession> {
        self.known.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &HubSessionKey) -> Option<&mut TrackedSession> {
        self.known.get_mut(id)
    }

    /// The last text of this session, or of the session that spoke last.
    pub(super) fn last_text(
        &self,
        id: Option<&HubSessionKey>,
    ) -> Option<(&HubSessionKey, &AgentText)> {
        let (id, session) = self.known.get_key_value(id.or(self.last_reply.as_ref())?)?;
        Some((id, session.texts.back()?))
    }

    /// The session in which the agent of this session last spoke: this one, or an ended one if it has said nothing in
    /// this one.
    pub(super) fn speaking_session(&self, id: &HubSessionKey) -> HubSessionKey {
        let Some(asking) = self.known.get(id).filter(|it| it.texts.is_empty()) else {
            return id.clone();
        };
        let is_same = |(key, it): &(&HubSessionKey, &TrackedSession)| {
            key.hub == id.hub
                && !it.is_live
                && !it.texts.is_empty()
                && (&it.agent_id, &it.name) == (&asking.agent_id, &asking.name)
        };
        let newest = self.known.iter().filter(is_same).max_by_key(|(_, it)| it.last_heard);
        newest.map_or_else(|| id.clone(), |(key, _)| key.clone())
    }

    pub(super) fn spoke(&mut self, id: &HubSessionKey) {
        if self.last_reply.as_ref() != Some(id) {
            self.last_reply = Some(id.clone());
        }
    }

    /// Whether the words begin with the name of an agent, as if that agent spoke.
    pub(super) fn begin_like_a_name(&self, words: &str) -> bool {
        let Some(beginning) = named_speaker(words) else { return false };
        self.known.values().any(|it| {
            // The name without the project is already enough to impersonate an agent.
            let name = letters(it.name.split(IN_PROJECT).next().unwrap_or_default());
            !name.is_empty() && beginning.starts_with(&name)
        })
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Sessions that have not ended.
    pub(super) fn live(&self) -> impl Iterator<Item = (&HubSessionKey, &TrackedSession)> {
        self.known.iter().filter(|(_, it)| it.is_live)
    }

    pub(super) fn live_mut(
        &mut self,
    ) -> impl Iterator<Item = (&HubSessionKey, &mut TrackedSession)> {
        self.known.iter_mut().filter(|(_, it)| it.is_live)
    }

    /// All agents, the most recently active first.
    pub(super) fn agents(&self) -> Vec<KnownAgent> {
        let mut known: Vec<(&HubSessionKey, &TrackedSession)> = self.known.iter().collect();
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

    /// The person does not want to hear the rest of any open output.
    pub(super) fn hush(&mut self) {
        let outputs = self.known.values_mut().flat_map(|it| &mut it.outputs);
        outputs.for_each(|it| it.is_hushed = true);
    }

    /// Forgets the quietest session, ended ones first, of the hub that has the most. A hub cannot push out the
    /// sessions of another.
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

impl TrackedSession {
    fn new(name: String, ordinal: u32) -> Self {
        TrackedSession {
            name,
            agent_id: String::new(),
            ordinal,
            has_project: false,
            is_named: false,
            is_live: true,
            last_heard: Duration::ZERO,
            outputs: VecDeque::new(),
            texts: VecDeque::new(),
            text: 0,
            text_outputs: 0,
            truth: SessionFacts::default(),
            activity: AgentActivity::default(),
            last_words: None,
            state_since: Duration::ZERO,
            progress_told: None,
        }
    }

    /// The name, with a number if another session had the same name before.
    pub(super) fn label(&self) -> String {
        match self.ordinal {
            _ if self.name.is_empty() => String::new(),
            1 => self.name.clone(),
            ordinal => numbered(&self.name, ordinal),
        }
    }

    /// The person hears its label now.
    pub(super) fn name_is_told(&mut self) {
        self.is_named = true;
    }

    pub(super) fn is_live(&self) -> bool {
        self.is_live
    }

    pub(super) fn last_heard(&self) -> Duration {
        self.last_heard
    }

    /// Adds a chunk of text and returns the words that can be announced now.
    pub(super) fn hear(
        &mut self,
        piece: &OutputStreaming,
        text_language: &TextLanguage,
        preferences: &Preferences,
    ) -> String {
        self.remember(piece, text_language);
        let end = match (&piece.coalesce_hint, preferences.replies) {
            _ if piece.complete => PieceEnd::Completion,
            (Some(CoalesceBoundary::Sentence | CoalesceBoundary::Paragraph), _)
            | (Some(CoalesceBoundary::Word), Replies::Words) => PieceEnd::Sentence,
            (_, Replies::Words) => PieceEnd::Words,
            _ => PieceEnd::Anywhere,
        };
        let at = self.outputs.iter().position(|it| it.id == piece.output_id);
        let open = at.and_then(|at| self.outputs.remove(at));
        let mut output = open.unwrap_or_else(|| {
            let stream = Stream::new(FieldWording::of(preferences, text_language).style);
            let (id, held) = (piece.output_id.clone(), String::new());
            StreamedOutput { id, stream, held, is_cut: false, is_hushed: false }
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

    fn remember(&mut self, piece: &OutputStreaming, text_language: &TextLanguage) {
        let at = self.texts.iter().position(|it| !it.is_complete && it.id == piece.output_id);
        let known = at.and_then(|at| self.texts.remove(at));
        if known.is_none() {
            self.text_outputs += 1;
            self.text += u64::from(self.text_outputs > MAX_TEXT_OUTPUTS);
        }
        let text = known.unwrap_or_else(|| AgentText {
            id: piece.output_id.clone(),
            is_complete: false,
            exact: String::new(),
            is_cut: false,
            text_language: text_language.clone(),
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

    /// The number of the newest text.
    pub(super) fn text(&self) -> u64 {
        self.text
    }

    /// Starts a new text.
    pub(super) fn begin_text(&mut self) {
        self.text += 1;
        self.text_outputs = 0;
    }

    /// Whether the person does not want to hear the rest of the output that this chunk belongs to.
    pub(super) fn is_hushed(&self, piece: &OutputStreaming) -> bool {
        self.outputs.iter().any(|it| it.is_hushed && it.id == piece.output_id)
    }

    /// Announces the agent's text again from now on.
    pub(super) fn unhush(&mut self) {
        self.outputs.iter_mut().for_each(|it| it.is_hushed = false);
    }

    /// The newest remembered text.
    pub(super) fn last_text(&self) -> Option<&AgentText> {
        self.texts.back()
    }

    /// Takes the words of open outputs that were not announced yet. The outputs stay open.
    pub(super) fn take_unfinished(&mut self) -> String {
        let open = self.outputs.iter_mut().filter(|it| !it.is_hushed);
        let words: Vec<String> =
            open.map(StreamedOutput::so_far).filter(|it| !it.is_empty()).collect();
        words.join(" ")
    }

    /// Closes all outputs and returns their words that were not announced yet.
    pub(super) fn close_outputs(&mut self) -> String {
        self.texts.iter_mut().for_each(|it| it.is_complete = true);
        let rest: Vec<String> =
            self.outputs.drain(..).map(|mut it| it.rest()).filter(|it| !it.is_empty()).collect();
        rest.join(" ")
    }

    pub(super) fn end(&mut self) {
        self.is_live = false;
        self.truth = SessionFacts::default();
        self.activity = AgentActivity::default();
    }
}

impl StreamedOutput {
    /// Keeps words until the output is complete, as far as there is room.
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

    /// The words that were not announced yet, when the output ends.
    fn rest(&mut self) -> String {
        self.flush(PieceEnd::Completion)
    }

    /// The words that were not announced yet, while the output continues.
    fn so_far(&mut self) -> String {
        self.flush(PieceEnd::Sentence)
    }

    fn flush(&mut self, end: PieceEnd) -> String {
        let last = self.stream.push_marked("", end);
        let held = self.take_held();
        format!("{held} {last}").trim().to_owned()
    }
}

/// The announced name of an agent, the same everywhere: with its project, if the event has one.
pub fn agent_name(event: &Event) -> String {
    let producer = &event.envelope.producer;
    let name = told_name(producer.agent_name.as_deref().unwrap_or(&producer.agent_id));
    let project = project(event).filter(|it| !name.contains(it.as_str()));
    match project {
        Some(project) if !name.is_empty() => format!("{name}{IN_PROJECT}{project}"),
        _ => name,
    }
}

/// The project of an agent, if the event has one.
fn project(event: &Event) -> Option<String> {
    let own = event.extensions.as_ref()?.0.iter().find(|(prefix, _)| prefix.as_str() == PREFIX)?;
    let project = told_name(own.1.get("project")?.as_str()?);
    Some(project).filter(|it| !it.is_empty())
}

/// Makes a name safe to announce: short, on one line, and without characters that could end it.
pub fn told_name(name: &str) -> String {
    let name = one_line(cut(name, MAX_NAME * 4));
    let name: String = name.chars().filter(|c| !matches!(c, ':' | '"' | '`')).collect();
    cut(&name, MAX_NAME).trim().to_owned()
}
