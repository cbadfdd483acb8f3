//! Reads a hub's stored events in pages and tells them in the words of live listening.
//!
//! A session can have a hundred thousand events. Memory holds at most one page and the utterances to tell.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use aaep::{Event, Message, Mode, SessionId, printable};
use aaep_announce::{
    Answered, AnsweredBy, Preferences, Transcript, Utterance, UtteranceKind, Weight,
};
use serde_json::Value;

use super::place::ListeningPlace;
use super::turns::TurnCounter;
use crate::archive::{ArchivedAnswer, ArchivedSession, SessionArchive};
use crate::attention::language::in_language;
use crate::attention::look;
use crate::console::CommandFailure;
use crate::english::{answers, replaying};
use crate::hubs::reach::client;
use crate::settings::UserSettings;

/// The most utterances that are told. If there are more, the last ones are told.
pub(super) const MAX_TOLD: usize = 1000;

/// How many sessions are read, newest first.
pub(super) const MAX_SESSIONS: usize = 64;

/// The stored sessions of a hub that the person may hear.
pub(super) struct ReplayHistory {
    archive: SessionArchive,
    /// The sessions, most recently active first.
    pub(super) sessions: Vec<ArchivedSession>,
    /// The event ids of the asks that are open now.
    open: HashSet<String>,
    settings: UserSettings,
    preferences: Preferences,
}

/// A stored event.
pub(super) struct HistoryEvent {
    pub(super) order: u64,
    pub(super) unix_us: i64,
    pub(super) turn: u32,
    pub(super) event: Event,
    pub(super) answer: Option<ArchivedAnswer>,
}

/// An utterance about a stored event.
#[derive(Debug, Clone)]
pub(super) struct SpokenUtterance {
    pub(super) unix_us: i64,
    pub(super) turn: u32,
    pub(super) utterance: Utterance,
}

/// From where on events are wanted.
#[derive(Debug, Clone)]
pub(super) enum HistoryStart {
    Beginning,
    /// From a moment on, by the hub's clock.
    Time(i64),
    /// After an event, by its place among all events of the hub, except for critical events that were told ahead of
    /// it.
    After {
        order: u64,
        unix_us: i64,
        ahead: HashSet<String>,
    },
}

impl HistoryStart {
    pub(super) fn includes(&self, row: &HistoryEvent) -> bool {
        match self {
            HistoryStart::Beginning => true,
            HistoryStart::Time(unix_us) => row.unix_us >= *unix_us,
            HistoryStart::After { order, ahead, .. } => {
                row.order > *order && !ahead.contains(row.event.envelope.event_id.as_str())
            }
        }
    }

    /// Whether a session can contain events from this start on.
    pub(super) fn concerns(&self, session: &ArchivedSession) -> bool {
        match self {
            HistoryStart::Beginning => true,
            HistoryStart::Time(unix_us) | HistoryStart::After { unix_us, .. } => {
                session.last_unix_us >= *unix_us
            }
        }
    }
}

impl ReplayHistory {
    /// Queries the hub at an address.
    pub(super) fn open(
        address: &str,
        token: Option<&str>,
        settings: UserSettings,
        preferences: Preferences,
    ) -> Result<Self, CommandFailure> {
        let archive = SessionArchive::Hub(client(address, token)?);
        let mut sessions = Vec::new();
        archive.each_session(|session| {
            sessions.push(session.clone());
            Ok(())
        })?;
        sessions.sort_by_key(|it| std::cmp::Reverse(it.last_unix_us));
        let waiting = look::look(address, token)?.waiting;
        let open =
            waiting.iter().map(|it| it.event.envelope.event_id.as_str().to_owned()).collect();
        Ok(ReplayHistory { archive, sessions, open, settings, preferences })
    }

    /// How many asks are open now.
    pub(super) fn questions(&self) -> u64 {
        self.open.len() as u64
    }

    /// The session that the person means, and its number: by that number, by its id, or by the name of its agent,
    /// which means that agent's newest session.
    pub(super) fn find(&self, which: &str) -> Result<(usize, &ArchivedSession), CommandFailure> {
        let number = which.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let by_number = number.and_then(|at| self.sessions.get(at).map(|it| (at, it)));
        let by_id = || self.sessions.iter().enumerate().find(|(_, it)| it.id == which);
        let by_agent = || {
            let is_it = |agent: &str| plain(agent) == plain(which);
            let mut all = self.sessions.iter().enumerate();
            all.find(|(_, it)| it.agent.as_deref().is_some_and(is_it))
        };
        let found = by_id().or(by_number).or_else(by_agent);
        found.map(|(at, session)| (at + 1, session)).ok_or_else(|| {
            let (what, next) = replaying::no_such_session(&printable(which));
            CommandFailure::new(what, next)
        })
    }

    /// Finds the person's place in the hub's order. If its event is no longer stored, its time is used.
    pub(super) fn after(&self, place: &ListeningPlace) -> Result<HistoryStart, CommandFailure> {
        let by_time = HistoryStart::Time(place.at_unix_ms.saturating_mul(1000));
        let Some(spot) = &place.event else { return Ok(by_time) };
        let Some(session) = self.sessions.iter().find(|it| it.id == spot.session_id) else {
            return Ok(by_time);
        };
        let (mut found, mut is_near) = (None, false);
        self.each(session, |row| {
            let at = row.event.envelope.timestamp.unix_us();
            let is_it = row.event.envelope.event_id.as_str() == spot.event_id;
            // A text that was told in parts has other ids. Of several events with its timestamp, it may be the first:
            // telling something twice is better than not telling it.
            if is_it || (at <= spot.unix_us && !is_near) {
                found = Some((row.order, row.unix_us));
            }
            is_near |= at == spot.unix_us;
            Ok(!is_it)
        })?;
        let ahead = || place.ahead.iter().cloned().collect();
        let after =
            found.map(|(order, unix_us)| HistoryStart::After { order, unix_us, ahead: ahead() });
        Ok(after.unwrap_or(by_time))
    }

    /// Visits the events of a session in the person's language, as long as `take` returns true.
    pub(super) fn each(
        &self,
        session: &ArchivedSession,
        mut take: impl FnMut(HistoryEvent) -> Result<bool, CommandFailure>,
    ) -> Result<(), CommandFailure> {
        let Ok(id) = SessionId::parse(&session.id) else { return Ok(()) };
        let languages = self.settings.listen.language_tags().unwrap_or_default();
        let mut turns = TurnCounter::default();
        let mut from_order = 0;
        loop {
            let page = self.archive.events(&id, from_order)?;
            let Some(last) = page.last() else { return Ok(()) };
            from_order = last.order.saturating_add(1);
            for stored in page {
                let Some(event) = stored.json.as_ref().and_then(read) else { continue };
                let turn = turns.take(&event, stored.by_hub);
                let event = in_language(event, &languages);
                let (order, unix_us, answer) = (stored.order, stored.unix_us, stored.answer);
                if !take(HistoryEvent { order, unix_us, turn, event, answer })? {
                    return Ok(());
                }
            }
        }
    }

    /// Tells a session from its beginning, because later events need the earlier ones, and passes on the utterances
    /// from `from` on.
    pub(super) fn tell(
        &self,
        session: &ArchivedSession,
        from: &HistoryStart,
        mut take: impl FnMut(&HistoryEvent, Vec<Utterance>),
    ) -> Result<(), CommandFailure> {
        let mut transcript = Transcript::new(&self.preferences);
        self.each(session, |row| {
            let response = row.answer.as_ref().and_then(|it| it.response.as_ref()).map(text_of);
            let answered = row
                .answer
                .as_ref()
                .map(|it| Answered { by: by(it), response: response.as_deref() });
            let at = row.unix_us.saturating_sub(session.first_unix_us);
            let at = Duration::from_micros(u64::try_from(at).unwrap_or(0));
            let mut said = transcript.take(at, &row.event, answered);
            if self.open.contains(row.event.envelope.event_id.as_str()) {
                said.push(notice(replaying::STILL_OPEN));
            }
            if from.includes(&row) && !said.is_empty() {
                take(&row, said);
            }
            Ok(true)
        })
    }

    /// The utterances of a session, or of one turn: as many of the last ones as can be told, and how many were left
    /// out.
    pub(super) fn said(
        &self,
        session: &ArchivedSession,
        from: &HistoryStart,
        turn: Option<u32>,
    ) -> Result<(VecDeque<SpokenUtterance>, u64), CommandFailure> {
        let (mut all, mut left_out) = (VecDeque::new(), 0);
        self.tell(session, from, |row, said| {
            if turn.is_some_and(|turn| turn != row.turn) {
                return;
            }
            for utterance in said {
                all.push_back(SpokenUtterance { unix_us: row.unix_us, turn: row.turn, utterance });
                if all.len() > MAX_TOLD {
                    all.pop_front();
                    left_out += 1;
                }
            }
        })?;
        Ok((all, left_out))
    }

    pub(super) fn preferences(&self) -> &Preferences {
        &self.preferences
    }
}

/// An utterance of our own.
pub(super) fn notice(words: &str) -> Utterance {
    Utterance {
        id: 0,
        kind: UtteranceKind::Notice,
        weight: Weight::Normal,
        words: words.to_owned(),
        language: None,
        parts: Vec::new(),
        is_right_to_left: false,
        choices: Vec::new(),
        number: None,
        is_continued: false,
    }
}

fn by(answer: &ArchivedAnswer) -> AnsweredBy {
    match (answer.is_automatic, answer.by_you) {
        (true, _) => AnsweredBy::Rule,
        (false, true) => AnsweredBy::You,
        (false, false) => AnsweredBy::Elsewhere,
    }
}

fn text_of(response: &Value) -> String {
    match response {
        Value::String(text) => text.clone(),
        Value::Bool(true) => answers::YES.to_owned(),
        Value::Bool(false) => answers::NO.to_owned(),
        other => other.to_string(),
    }
}

/// Normalises a name: ignores differences that cannot be heard.
fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace(['-', '_'], " ")
}

fn read(json: &Value) -> Option<Event> {
    match aaep::read(json.to_string().as_bytes(), Mode::Tolerant).message? {
        Message::Event(event) => Some(*event),
        _ => None,
    }
}
