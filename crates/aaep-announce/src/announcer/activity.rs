//! What every agent is doing: tools that run for long are mentioned now and then, and a person can ask for all of it.

use std::collections::VecDeque;
use std::time::Duration;

use aaep::ToolCallId;
use aaep::event::action::{ToolCompleted, ToolInvoked};

use super::Announcer;
use super::phrase::{Phrase, Tongue, sentences};
use super::queue::About;
use super::sessions::SessionKey;
use crate::english::{asks, duration, events};
use crate::utterance::{Kind, Weight};
use crate::words::{own, without_own_marks};

/// How many running tools of a session are remembered.
const MAX_RUNNING_TOOLS: usize = 16;
/// When a tool that runs is mentioned, in multiples of the first time; later each time after twice as long.
const MENTIONS: [u32; 4] = [1, 2, 4, 10];
/// The place of the last of them.
const LAST_MENTION: u32 = 3;
/// Sessions that are found idle within this time of each other are told together.
const IDLE_TOGETHER: Duration = Duration::from_secs(1);
/// How often it is mentioned at most.
const MAX_MENTIONS: u32 = 12;

/// A tool that has not returned.
#[derive(Debug, Clone)]
struct RunningTool {
    call_id: Option<ToolCallId>,
    tool: String,
    /// What is said of it.
    words: String,
    tongue: Tongue,
    since: Duration,
    mentions: u32,
}

/// What an agent is doing.
#[derive(Debug, Clone, Default)]
pub(super) struct Activity {
    running: VecDeque<RunningTool>,
    /// What was said of its state last, and since when.
    state: Option<(String, Duration)>,
}

impl Activity {
    /// A tool runs from now on.
    pub(super) fn tool_began(
        &mut self,
        now: Duration,
        tool: &ToolInvoked,
        phrase: Option<&Phrase>,
    ) {
        let words = phrase.map_or_else(|| tool.tool.as_str().to_owned(), |it| it.words.clone());
        self.running.push_back(RunningTool {
            call_id: tool.tool_call_id.clone(),
            tool: tool.tool.as_str().to_owned(),
            words,
            tongue: phrase.map(|it| it.tongue.clone()).unwrap_or_default(),
            since: now,
            mentions: 0,
        });
        if self.running.len() > MAX_RUNNING_TOOLS {
            self.running.pop_front();
        }
    }

    /// A tool returned: the one of that call, or the oldest of that name.
    pub(super) fn tool_ended(&mut self, tool: &ToolCompleted) {
        let is_call = |it: &RunningTool| it.call_id.is_some() && it.call_id == tool.tool_call_id;
        let is_name = |it: &RunningTool| it.tool == tool.tool.as_str();
        let at = self.running.iter().position(is_call);
        let at = at.or_else(|| self.running.iter().position(is_name));
        at.and_then(|at| self.running.remove(at));
    }

    /// The agent is in another state, of which this is said. Tools of which nobody will say that they returned are over.
    pub(super) fn state(&mut self, now: Duration, words: String, is_calling: bool) {
        self.state = (!words.is_empty()).then_some((words, now));
        if !is_calling {
            self.forget_unnamed();
        }
    }

    /// The agent does something else, so that tools without a name for their call have returned.
    pub(super) fn forget_unnamed(&mut self) {
        self.running.retain(|it| it.call_id.is_some());
    }

    /// What it is doing, and since when.
    fn now(&self) -> Option<(&str, Duration)> {
        let tool = self.running.back().map(|it| (it.words.as_str(), it.since));
        tool.or_else(|| self.state.as_ref().map(|(words, since)| (words.as_str(), *since)))
    }

    fn next_mention(&self, first: Duration) -> Option<Duration> {
        self.running.iter().filter_map(|it| it.next_mention(first)).min()
    }
}

impl RunningTool {
    fn next_mention(&self, first: Duration) -> Option<Duration> {
        let doubled = self.mentions.saturating_sub(LAST_MENTION).min(MAX_MENTIONS);
        let at = self.mentions.min(LAST_MENTION);
        let listed = usize::try_from(at).ok().and_then(|at| MENTIONS.get(at)).copied();
        let factor = listed.unwrap_or(1).saturating_mul(1 << doubled);
        let is_wanted = !first.is_zero() && self.mentions < MAX_MENTIONS;
        is_wanted.then(|| self.since.saturating_add(first.saturating_mul(factor)))
    }
}

impl Announcer {
    /// A session is open in which nothing happens, as a hub tells those who join. Its agent may be gone long since, so it
    /// is only counted.
    pub(super) fn found_idle(&mut self) {
        let (_, count) = self.idle_found.unwrap_or((Duration::ZERO, 0));
        self.idle_found = Some((self.now.saturating_add(IDLE_TOGETHER), count + 1));
    }

    /// When it is told how many sessions are idle.
    pub(super) fn idle_at(&self) -> Option<Duration> {
        self.idle_found.map(|(at, _)| at)
    }

    /// Tells in one sentence of all sessions that were found idle.
    pub(super) fn tell_idle(&mut self) {
        let due = self.idle_found.take_if(|(at, _)| *at <= self.now);
        let Some((_, count)) = due.filter(|_| self.preferences.states) else { return };
        self.say_ourselves(Kind::Notice, events::idle(count), &About::Nothing);
    }

    /// When a tool that runs for long is mentioned next.
    pub(super) fn mention_at(&self) -> Option<Duration> {
        let first = Duration::from_secs(self.preferences.long_tool_seconds);
        self.sessions.live().filter_map(|(_, it)| it.activity.next_mention(first)).min()
    }

    /// Mentions tools that run for long.
    pub(super) fn mention_long_tools(&mut self) {
        let (now, first) = (self.now, Duration::from_secs(self.preferences.long_tool_seconds));
        let mut due: Vec<(SessionKey, Phrase)> = Vec::new();
        for (session_id, session) in self.sessions.live_mut() {
            for tool in &mut session.activity.running {
                let mut is_due = false;
                while tool.next_mention(first).is_some_and(|at| at <= now) {
                    (tool.mentions, is_due) = (tool.mentions + 1, true);
                }
                if is_due {
                    let since = duration(now.saturating_sub(tool.since));
                    let still = own(&events::still_after(&since));
                    let words = sentences(&[&tool.words, &still]);
                    let (kind, weight) = (Kind::Doing, Weight::Background);
                    let tongue = tool.tongue.clone();
                    due.push((session_id.clone(), Phrase { kind, weight, words, tongue }));
                }
            }
        }
        for (session_id, phrase) in due {
            self.queue.remove(|it| it.about == About::StillRunning && it.is_of(&session_id));
            self.say(Some(&session_id), &phrase, &About::StillRunning);
        }
    }

    /// Says what every agent is doing.
    pub(super) fn status(&mut self) {
        let now = self.now;
        let lines: Vec<String> = self
            .sessions
            .live()
            .map(|(session_id, session)| {
                let asked = self.questions.values().filter(|it| it.session_id == *session_id);
                let asked: Vec<String> = asked
                    .filter(|it| !it.is_answered)
                    .map(|it| asks::waits_for_answer(it.number))
                    .collect();
                let quiet = duration(now.saturating_sub(session.last_heard()));
                let doing = match session.activity.now() {
                    _ if !asked.is_empty() => asked.join(" "),
                    Some((words, since)) => {
                        let since = duration(now.saturating_sub(since));
                        sentences(&[&without_own_marks(words), &events::for_so_long(&since)])
                    }
                    None => events::silent_for(&quiet),
                };
                format!("{}: {doing}", self.label(Some(session_id)))
            })
            .collect();
        if lines.is_empty() {
            return self.requested(events::NOBODY_AT_WORK);
        }
        for line in lines {
            self.requested(&line);
        }
    }
}
