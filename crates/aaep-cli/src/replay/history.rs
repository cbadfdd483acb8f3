//! What a hub has stored, read in pages and told in the words of live listening.
//!
//! A session can have a hundred thousand events. At no time is more of it held than a page, and what is to be told.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use aaep::{Event, Message, Mode, SessionId, printable};
use aaep_announce::{Answered, By, Kind, Preferences, Transcript, Utterance, Weight};
use serde_json::Value;

use super::place::Place;
use super::turns::Turns;
use crate::archive::{Archive, GivenAnswer, Session};
use crate::attention::language::in_language;
use crate::attention::look;
use crate::console::Failure;
use crate::hubs::reach::client;
use crate::settings::Settings;

/// How many things are told at most. Of more than that, the last ones are.
pub(super) const MAX_TOLD: usize = 1000;

/// How many sessions are looked at, the newest first.
pub(super) const MAX_SESSIONS: usize = 64;

/// What a hub has stored that the person may hear.
pub(super) struct History {
    archive: Archive,
    /// The sessions, the one first in which something happened last.
    pub(super) sessions: Vec<Session>,
    /// The ids of the events with questions that are open now.
    open: HashSet<String>,
    settings: Settings,
    preferences: Preferences,
}

/// An event of the past.
pub(super) struct Row {
    pub(super) order: u64,
    pub(super) unix_us: i64,
    pub(super) turn: u32,
    pub(super) event: Event,
    pub(super) answer: Option<GivenAnswer>,
}

/// Something that was said.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) unix_us: i64,
    pub(super) turn: u32,
    pub(super) utterance: Utterance,
}

/// From where on something is wanted.
#[derive(Debug, Clone)]
pub(super) enum From {
    Beginning,
    /// From a moment on, by the clock of the hub.
    Time(i64),
    /// After an event, by its place among all events of the hub, without those that were told ahead of it.
    After {
        order: u64,
        unix_us: i64,
        ahead: HashSet<String>,
    },
}

impl From {
    pub(super) fn includes(&self, row: &Row) -> bool {
        match self {
            From::Beginning => true,
            From::Time(unix_us) => row.unix_us >= *unix_us,
            From::After { order, ahead, .. } => {
                row.order > *order && !ahead.contains(row.event.envelope.event_id.as_str())
            }
        }
    }

    /// Whether a session can have something of it.
    pub(super) fn concerns(&self, session: &Session) -> bool {
        match self {
            From::Beginning => true,
            From::Time(unix_us) | From::After { unix_us, .. } => session.last_unix_us >= *unix_us,
        }
    }
}

impl History {
    /// Looks at the hub at an address.
    pub(super) fn open(
        address: &str,
        token: Option<&str>,
        settings: Settings,
        preferences: Preferences,
    ) -> Result<Self, Failure> {
        let archive = Archive::Hub(client(address, token)?);
        let mut sessions = Vec::new();
        archive.each_session(|session| {
            sessions.push(session.clone());
            Ok(())
        })?;
        sessions.sort_by_key(|it| std::cmp::Reverse(it.last_unix_us));
        let waiting = look::look(address, token)?.waiting;
        let open =
            waiting.iter().map(|it| it.event.envelope.event_id.as_str().to_owned()).collect();
        Ok(History { archive, sessions, open, settings, preferences })
    }

    /// How many questions are open now.
    pub(super) fn questions(&self) -> u64 {
        self.open.len() as u64
    }

    /// The session that a person means, and its number: by that number, by its id, or by the name of its agent, of
    /// which it is the newest.
    pub(super) fn find(&self, which: &str) -> Result<(usize, &Session), Failure> {
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
            let what = format!("there is no session {} that you may hear", printable(which));
            Failure::new(what, "To hear which there are: aaep replay list")
        })
    }

    /// The place of a person in the order of the hub. If its event is not stored any more, its time has to do.
    pub(super) fn after(&self, place: &Place) -> Result<From, Failure> {
        let by_time = From::Time(place.at_unix_ms.saturating_mul(1000));
        let Some(spot) = &place.event else { return Ok(by_time) };
        let Some(session) = self.sessions.iter().find(|it| it.id == spot.session_id) else {
            return Ok(by_time);
        };
        let (mut found, mut is_near) = (None, false);
        self.each(session, |row| {
            let at = row.event.envelope.timestamp.unix_us();
            let is_it = row.event.envelope.event_id.as_str() == spot.event_id;
            // A text that was told in parts has other ids. Of several events with its timestamp it may be the first:
            // rather something is told twice than not at all.
            if is_it || (at <= spot.unix_us && !is_near) {
                found = Some((row.order, row.unix_us));
            }
            is_near |= at == spot.unix_us;
            Ok(!is_it)
        })?;
        let ahead = || place.ahead.iter().cloned().collect();
        let after = found.map(|(order, unix_us)| From::After { order, unix_us, ahead: ahead() });
        Ok(after.unwrap_or(by_time))
    }

    /// Goes through the events of a session, in the language of the person, for as long as they are wanted.
    pub(super) fn each(
        &self,
        session: &Session,
        mut take: impl FnMut(Row) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let Ok(id) = SessionId::parse(&session.id) else { return Ok(()) };
        let languages = self.settings.listen.language_tags().unwrap_or_default();
        let mut turns = Turns::default();
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
                if !take(Row { order, unix_us, turn, event, answer })? {
                    return Ok(());
                }
            }
        }
    }

    /// Tells a session from its beginning, so that everything is understood, and gives what was said of each event
    /// from there on.
    pub(super) fn tell(
        &self,
        session: &Session,
        from: &From,
        mut take: impl FnMut(&Row, Vec<Utterance>),
    ) -> Result<(), Failure> {
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
                said.push(notice("It is still open. To answer it: aaep attention"));
            }
            if from.includes(&row) && !said.is_empty() {
                take(&row, said);
            }
            Ok(true)
        })
    }

    /// What was said in a session, or in one turn of it: as much of its end as can be told, and how much was left out.
    pub(super) fn said(
        &self,
        session: &Session,
        from: &From,
        turn: Option<u32>,
    ) -> Result<(VecDeque<Said>, u64), Failure> {
        let (mut all, mut left_out) = (VecDeque::new(), 0);
        self.tell(session, from, |row, said| {
            if turn.is_some_and(|turn| turn != row.turn) {
                return;
            }
            for utterance in said {
                all.push_back(Said { unix_us: row.unix_us, turn: row.turn, utterance });
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

/// Something of our own.
pub(super) fn notice(words: &str) -> Utterance {
    Utterance {
        id: 0,
        kind: Kind::Notice,
        weight: Weight::Normal,
        words: words.to_owned(),
        language: None,
        parts: Vec::new(),
        is_right_to_left: false,
        choices: Vec::new(),
        number: None,
    }
}

/// Who answered.
fn by(answer: &GivenAnswer) -> By {
    match (answer.is_automatic, answer.by_you) {
        (true, _) => By::Rule,
        (false, true) => By::You,
        (false, false) => By::Elsewhere,
    }
}

fn text_of(response: &Value) -> String {
    match response {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    }
}

/// A name without what one does not hear of it.
fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace(['-', '_'], " ")
}

fn read(json: &Value) -> Option<Event> {
    match aaep::read(json.to_string().as_bytes(), Mode::Tolerant).message? {
        Message::Event(event) => Some(*event),
        _ => None,
    }
}
