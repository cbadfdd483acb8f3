//! The forms of a replay: what each tells, and in which order.

use aaep::{Payload, printable};
use aaep_announce::words::exact;
use aaep_announce::{Utterance, UtteranceKind};
use jiff::tz::TimeZone;
use serde_json::json;

use super::decisions::decisions;
use super::history::{
    HistoryStart, MAX_SESSIONS, MAX_TOLD, ReplayHistory, SpokenUtterance, notice,
};
use super::place::{self, PlacesFile};
use super::play::ReplayedUtterance;
use super::reply::{AgentReplies, AgentReply};
use super::since;
use crate::archive::ArchivedSession;
use crate::console::{CommandFailure, ascii_json_line};
use crate::english::{AGENT_WITHOUT_NAME, replaying};
use crate::keys::{moment, now_unix_ms, tell};
use crate::listen::devices;
use crate::settings::UserSettings;

/// How many sessions are listed.
const MAX_LISTED: usize = 20;

/// Turns are not counted in the list for sessions with more events than this.
const MAX_COUNTED_EVENTS: u64 = 2048;

/// After a pause of this many microseconds, the time is told again.
const PAUSE_US: i64 = 5 * 60 * 1_000_000;

/// How much of a turn is told in the list of turns, in characters.
const MAX_TURN_WORDS: usize = 160;

/// The history, and what is needed to tell it.
pub(super) struct ReplayContext {
    history: ReplayHistory,
    address: String,
    now_unix_ms: i64,
    zone: TimeZone,
}

impl ReplayContext {
    pub(super) fn open(
        address: &str,
        token: Option<&str>,
        settings: &UserSettings,
    ) -> Result<Self, CommandFailure> {
        let preferences = devices::preferences(settings);
        let history = ReplayHistory::open(address, token, settings.clone(), preferences)?;
        let (address, zone) = (address.to_owned(), TimeZone::system());
        Ok(ReplayContext { history, address, now_unix_ms: now_unix_ms(), zone })
    }

    pub(super) fn moment_of(&self, text: &str) -> Result<i64, CommandFailure> {
        since::since(text, self.now_unix_ms, &self.zone).ok_or_else(|| {
            CommandFailure::new(replaying::not_a_time(&printable(text)), replaying::SAY_A_TIME)
        })
    }

    fn when(&self, unix_us: i64) -> String {
        since::when(unix_us, self.now_unix_ms, &self.zone)
    }

    /// What happened since the person left, or since a moment, session by session.
    pub(super) fn left(
        &self,
        since: Option<i64>,
    ) -> Result<Vec<ReplayedUtterance>, CommandFailure> {
        let (from, when) = if let Some(unix_us) = since {
            let when = self.when(unix_us);
            (HistoryStart::Time(unix_us), replaying::the_time(&when).to_owned())
        } else {
            let is_listening = place::is_listening(&self.address);
            let places = PlacesFile::own()?.look()?;
            let place = places.left(&self.address, is_listening);
            let place = place.ok_or_else(|| replaying::never_left(is_listening))?;
            let at = place.at_unix_ms.saturating_mul(1000);
            (self.history.after(place)?, replaying::you_left(&self.when(at)))
        };
        let concerned = self.concerned(&from);
        let mut all = Vec::new();
        for session in concerned.iter().take(MAX_SESSIONS).rev() {
            let (said, left_out) = self.history.said(session, &from, None)?;
            if !said.is_empty() {
                all.push(ReplayedUtterance::about(&self.sentence(session)));
                all.extend(self.lines(session, said, left_out));
            }
        }
        all.insert(0, ReplayedUtterance::about(&replaying::since(&when, all.is_empty())));
        all.extend(left_out_sessions(concerned.len()));
        all.extend(self.questions());
        Ok(all)
    }

    /// The last thing that was told.
    pub(super) fn last(
        &self,
        which: Option<&str>,
    ) -> Result<Vec<ReplayedUtterance>, CommandFailure> {
        let mut last: Option<(&ArchivedSession, i64, Vec<SpokenUtterance>)> = None;
        for session in self.meant(which)? {
            // The last utterance found is newer than everything in this session and the following ones.
            let before = last.as_ref().map_or(i64::MIN, |(_, unix_us, _)| *unix_us);
            if before >= session.last_unix_us {
                break;
            }
            let mut newest = None;
            self.history.tell(session, &HistoryStart::Beginning, |row, said| {
                newest = Some((row.unix_us, row.turn, said));
            })?;
            if let Some((unix_us, turn, said)) = newest.filter(|it| it.0 > before) {
                let said =
                    said.into_iter().map(|utterance| SpokenUtterance { unix_us, turn, utterance });
                last = Some((session, unix_us, said.collect()));
            }
        }
        let Some((session, _, mut said)) = last else { return Ok(nothing()) };
        // On its own, the utterance does not name its agent.
        if let Some(first) = said.first_mut() {
            first.utterance.words = with_name(session, &first.utterance.words);
        }
        let mut all = self.lines(session, said, 0);
        all.extend(self.questions());
        Ok(all)
    }

    /// The last reply of an agent.
    fn last_reply(
        &self,
        which: Option<&str>,
    ) -> Result<Option<(&ArchivedSession, AgentReply)>, CommandFailure> {
        let mut last: Option<(&ArchivedSession, AgentReply)> = None;
        for session in self.meant(which)? {
            if last.as_ref().is_some_and(|(_, it)| it.unix_us >= session.last_unix_us) {
                break;
            }
            let mut replies = AgentReplies::default();
            self.history.each(session, |row| {
                if let Payload::OutputStreaming(piece) = &row.event.payload {
                    replies.take(row.unix_us, row.turn, piece);
                }
                Ok(true)
            })?;
            let before = last.as_ref().map_or(i64::MIN, |(_, it)| it.unix_us);
            let newer = replies.last().filter(|it| it.unix_us > before);
            last = newer.map(|it| (session, it)).or(last);
        }
        Ok(last)
    }

    pub(super) fn reply(
        &self,
        which: Option<&str>,
        is_exact: bool,
    ) -> Result<Vec<ReplayedUtterance>, CommandFailure> {
        let Some((session, reply)) = self.last_reply(which)? else { return Ok(nothing()) };
        let style = self.history.preferences().style();
        let style = if is_exact { style.exactly() } else { style };
        let said = reply.parts(style).into_iter().enumerate().map(|(at, words)| {
            let words = if at == 0 { with_name(session, &words) } else { words };
            let language = reply.language.clone();
            let utterance = Utterance { kind: UtteranceKind::Reply, language, ..notice(&words) };
            SpokenUtterance { unix_us: reply.unix_us, turn: reply.turn, utterance }
        });
        Ok(self.lines(session, said, 0))
    }

    /// Prints the last reply exactly, except for terminal control characters.
    pub(super) fn exactly(&self, which: Option<&str>, as_json: bool) -> Result<(), CommandFailure> {
        let Some((session, reply)) = self.last_reply(which)? else {
            return if as_json { Ok(()) } else { tell(replaying::NOTHING_YET) };
        };
        if as_json {
            return tell(&ascii_json_line(&json!({
                "at": moment(reply.unix_us.div_euclid(1000)),
                "session_id": session.id,
                "agent": session.agent,
                "turn": reply.turn,
                "text": reply.text,
                "is_whole": !reply.is_cut,
            })));
        }
        reply.text.lines().try_for_each(|line| tell(&printable(line)))?;
        if reply.is_cut { tell(replaying::REST_TOO_LONG) } else { Ok(()) }
    }

    pub(super) fn decisions(
        &self,
        which: Option<&str>,
        from: &HistoryStart,
    ) -> Result<Vec<ReplayedUtterance>, CommandFailure> {
        let sessions = self.meant(which)?;
        let concerned: Vec<&ArchivedSession> =
            sessions.into_iter().filter(|it| from.concerns(it)).collect();
        let (mut all, mut left_out) = (Vec::new(), 0);
        for session in concerned.iter().take(MAX_SESSIONS) {
            let (decisions, more) = decisions(&self.history, session, from)?;
            all.extend(decisions);
            left_out += more;
        }
        all.sort_by_key(|it| it.unix_us);
        let beyond = all.len().saturating_sub(MAX_TOLD);
        all.drain(..beyond);
        left_out += beyond as u64;
        let mut told: Vec<ReplayedUtterance> = left_out_things(left_out).into_iter().collect();
        let timed = all.into_iter().map(|mut it| {
            it.told.utterance.words = self.at(it.unix_us, &it.told.utterance.words);
            it.told
        });
        told.extend(timed);
        if told.is_empty() {
            told.push(ReplayedUtterance::about(replaying::NOTHING_ASKED));
        }
        told.extend(left_out_sessions(concerned.len()));
        Ok(told)
    }

    pub(super) fn session(
        &self,
        which: &str,
        from: &HistoryStart,
        turn: Option<u32>,
    ) -> Result<Vec<ReplayedUtterance>, CommandFailure> {
        let (_, session) = self.history.find(which)?;
        let (said, left_out) = self.history.said(session, from, turn)?;
        if let (true, Some(turn)) = (said.is_empty(), turn) {
            let (what, next) = replaying::no_such_turn(&name(session), &session.id, turn);
            return Err(CommandFailure::new(what, next));
        }
        let mut all = vec![ReplayedUtterance::about(&self.sentence(session))];
        all.extend(self.lines(session, said, left_out));
        all.extend(self.questions());
        Ok(all)
    }

    /// The turns of a session, each with its last utterance.
    pub(super) fn turns(&self, which: &str) -> Result<Vec<ReplayedUtterance>, CommandFailure> {
        let (_, session) = self.history.find(which)?;
        let mut turns: Vec<(u64, i64, SpokenUtterance)> = Vec::new();
        let mut left_out = 0;
        self.history.tell(session, &HistoryStart::Beginning, |row, said| {
            for utterance in said {
                let said = SpokenUtterance { unix_us: row.unix_us, turn: row.turn, utterance };
                match turns.last_mut().filter(|(_, _, it)| it.turn == row.turn) {
                    Some((things, _, last)) => (*things, *last) = (*things + 1, said),
                    None => turns.push((1, row.unix_us, said)),
                }
                if turns.len() > MAX_TOLD {
                    turns.remove(0);
                    left_out += 1;
                }
            }
        })?;
        let mut all = vec![ReplayedUtterance::about(&self.sentence(session))];
        all.extend(left_out_things(left_out));
        all.extend(turns.into_iter().map(|(things, unix_us, mut said)| {
            let ended: String = said.utterance.words.chars().take(MAX_TURN_WORDS).collect();
            said.utterance.kind = UtteranceKind::Notice;
            said.utterance.words = replaying::turn(said.turn, &self.when(unix_us), things, &ended);
            ReplayedUtterance::of(session, unix_us, said.turn, said.utterance)
        }));
        Ok(all)
    }

    pub(super) fn list(&self) -> Result<Vec<ReplayedUtterance>, CommandFailure> {
        let sessions = &self.history.sessions;
        if sessions.is_empty() {
            return Ok(nothing());
        }
        let mut all = Vec::new();
        for (at, session) in sessions.iter().take(MAX_LISTED).enumerate() {
            let (mut turns, mut about) = (None, String::new());
            let is_counted = session.events <= MAX_COUNTED_EVENTS;
            self.history.each(session, |row| {
                turns = Some(row.turn).filter(|_| is_counted);
                if about.is_empty() {
                    about = in_short(row.event.summary());
                }
                Ok(is_counted || about.is_empty())
            })?;
            let words = replaying::listed(at + 1, &self.sentence(session), turns, &about);
            let mut told = ReplayedUtterance::about(&words);
            told.json = json!({
                "number": at + 1,
                "session_id": session.id,
                "agent": session.agent,
                "began_at": moment(session.first_unix_us.div_euclid(1000)),
                "last_event_at": moment(session.last_unix_us.div_euclid(1000)),
                "ended_at": session.ended_unix_us.map(|it| moment(it.div_euclid(1000))),
                "events": session.events,
                "turns": turns,
                "about": about,
            });
            all.push(told);
        }
        let more = sessions.len().saturating_sub(MAX_LISTED);
        if more > 0 {
            all.push(ReplayedUtterance::about(&replaying::more_sessions(more as u64)));
        }
        Ok(all)
    }

    /// A sentence that identifies a session.
    fn sentence(&self, session: &ArchivedSession) -> String {
        let (began, last) = (self.when(session.first_unix_us), self.when(session.last_unix_us));
        let ended = session.ended_unix_us.map(|it| self.when(it));
        replaying::session(&name(session), &began, ended.as_deref(), &last)
    }

    /// The sessions that are meant, newest first.
    fn meant(&self, which: Option<&str>) -> Result<Vec<&ArchivedSession>, CommandFailure> {
        match which {
            Some(which) => Ok(vec![self.history.find(which)?.1]),
            None => Ok(self.history.sessions.iter().take(MAX_SESSIONS).collect()),
        }
    }

    fn concerned(&self, from: &HistoryStart) -> Vec<&ArchivedSession> {
        self.history.sessions.iter().filter(|it| from.concerns(it)).collect()
    }

    /// Adds the time to utterances where it helps: to the first, to questions, and after a pause.
    fn lines(
        &self,
        session: &ArchivedSession,
        said: impl IntoIterator<Item = SpokenUtterance>,
        left_out: u64,
    ) -> Vec<ReplayedUtterance> {
        let mut all: Vec<ReplayedUtterance> = left_out_things(left_out).into_iter().collect();
        let mut last_us = None;
        for said in said {
            let SpokenUtterance { unix_us, turn, mut utterance } = said;
            let mut told = ReplayedUtterance::of(session, unix_us, turn, utterance.clone());
            let is_late = last_us.is_none_or(|last: i64| unix_us.saturating_sub(last) >= PAUSE_US);
            if is_late || utterance.kind == UtteranceKind::Question {
                utterance.words = self.at(unix_us, &utterance.words);
                last_us = Some(unix_us);
                told.utterance = utterance;
            }
            all.push(told);
        }
        all
    }

    fn at(&self, unix_us: i64, words: &str) -> String {
        replaying::at_time(&self.when(unix_us), words)
    }

    /// How many questions are pending, if any.
    fn questions(&self) -> Option<ReplayedUtterance> {
        let open = self.history.questions();
        (open > 0).then(|| ReplayedUtterance::about(&replaying::questions(open)))
    }
}

fn nothing() -> Vec<ReplayedUtterance> {
    vec![ReplayedUtterance::about(replaying::NOTHING_YET)]
}

/// The beginning of a session's summary, on one line and as a sentence.
fn in_short(summary: &str) -> String {
    const MAX_CHARACTERS: usize = 100;
    let summary = exact(summary.trim());
    let short: String = summary.chars().take(MAX_CHARACTERS).collect();
    match short.chars().last() {
        Some(_) if short.len() < summary.len() => replaying::shortened(&short),
        None | Some('.' | '!' | '?') => short,
        Some(_) => format!("{short}."),
    }
}

fn name(session: &ArchivedSession) -> String {
    session.agent.as_deref().map_or(AGENT_WITHOUT_NAME.into(), printable).into_owned()
}

/// Adds the agent's name before words that do not begin with it.
fn with_name(session: &ArchivedSession, words: &str) -> String {
    let name = name(session);
    let rest = words.strip_prefix(name.as_str());
    if rest.is_some_and(|it| it.starts_with([':', ' '])) {
        return words.to_owned();
    }
    format!("{name}: {words}")
}

fn left_out_things(left_out: u64) -> Option<ReplayedUtterance> {
    (left_out > 0).then(|| ReplayedUtterance::about(&replaying::things_left_out(left_out)))
}

fn left_out_sessions(all: usize) -> Option<ReplayedUtterance> {
    let left_out = all.saturating_sub(MAX_SESSIONS) as u64;
    (left_out > 0).then(|| ReplayedUtterance::about(&replaying::sessions_left_out(left_out)))
}
