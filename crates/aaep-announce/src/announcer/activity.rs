//! What every agent is doing. Tools that run for long are mentioned now and then, and a person can ask for the status
//! of all agents.

use std::collections::VecDeque;
use std::time::Duration;

use aaep::ToolCallId;
use aaep::event::action::{ToolCompleted, ToolInvoked};

use super::Announcer;
use super::phrase::{AnnouncedPhrase, TextLanguage, sentences};
use super::queue::UtteranceTopic;
use super::sessions::HubSessionKey;
use crate::english::{asks, duration, events};
use crate::utterance::{UtteranceKind, Weight};
use crate::words::{own, without_own_marks};

/// How many running tools of a session are remembered.
const MAX_RUNNING_TOOLS: usize = 16;
/// When a running tool is mentioned, in multiples of the first time. After the last one, each interval is twice as
/// long.
const MENTIONS: [u32; 4] = [1, 2, 4, 10];
/// The index of the last entry.
const LAST_MENTION: u32 = 3;
/// Sessions that are found idle within this time are announced together.
const IDLE_TOGETHER: Duration = Duration::from_secs(1);
/// The most mentions of one tool.
const MAX_MENTIONS: u32 = 12;

/// A tool that has not returned.
#[derive(Debug, Clone)]
struct TrackedTool {
    call_id: Option<ToolCallId>,
    tool: String,
    /// The words for it.
    words: String,
    text_language: TextLanguage,
    since: Duration,
    mentions: u32,
}

#[derive(Debug, Clone, Default)]
pub(super) struct AgentActivity {
    running: VecDeque<TrackedTool>,
    /// The words for its state, and since when.
    state: Option<(String, Duration)>,
}

impl AgentActivity {
    pub(super) fn tool_began(
        &mut self,
        now: Duration,
        tool: &ToolInvoked,
        phrase: Option<&AnnouncedPhrase>,
    ) {
        let words = phrase.map_or_else(|| tool.tool.as_str().to_owned(), |it| it.words.clone());
        self.running.push_back(TrackedTool {
            call_id: tool.tool_call_id.clone(),
            tool: tool.tool.as_str().to_owned(),
            words,
            text_language: phrase.map(|it| it.text_language.clone()).unwrap_or_default(),
            since: now,
            mentions: 0,
        });
        if self.running.len() > MAX_RUNNING_TOOLS {
            self.running.pop_front();
        }
    }

    /// Removes the tool that returned: the one with this call id, or the oldest of this name.
    pub(super) fn tool_ended(&mut self, tool: &ToolCompleted) {
        let is_call = |it: &TrackedTool| it.call_id.is_some() && it.call_id == tool.tool_call_id;
        let is_name = |it: &TrackedTool| it.tool == tool.tool.as_str();
        let at = self.running.iter().position(is_call);
        let at = at.or_else(|| self.running.iter().position(is_name));
        at.and_then(|at| self.running.remove(at));
    }

    /// Records a new state of the agent and the words for it. Tools whose return cannot be recognized are removed.
    pub(super) fn state(&mut self, now: Duration, words: String, is_calling: bool) {
        self.state = (!words.is_empty()).then_some((words, now));
        if !is_calling {
            self.forget_unnamed();
        }
    }

    /// Removes tools without a call id, because the agent does something else now and they must have returned.
    pub(super) fn forget_unnamed(&mut self) {
        self.running.retain(|it| it.call_id.is_some());
    }

    /// The words for the current activity, and since when.
    fn now(&self) -> Option<(&str, Duration)> {
        let tool = self.running.back().map(|it| (it.words.as_str(), it.since));
        tool.or_else(|| self.state.as_ref().map(|(words, since)| (words.as_str(), *since)))
    }

    fn next_mention(&self, first: Duration) -> Option<Duration> {
        self.running.iter().filter_map(|it| it.next_mention(first)).min()
    }
}

impl TrackedTool {
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
    /// Counts an open session without activity, which a hub reports to a subscriber that joins. Its agent may be long
    /// gone, so it is only counted.
    pub(super) fn found_idle(&mut self) {
        let (_, count) = self.idle_found.unwrap_or((Duration::ZERO, 0));
        self.idle_found = Some((self.now.saturating_add(IDLE_TOGETHER), count + 1));
    }

    /// When to announce the number of idle sessions.
    pub(super) fn idle_at(&self) -> Option<Duration> {
        self.idle_found.map(|(at, _)| at)
    }

    /// Announces all sessions that were found idle in one sentence.
    pub(super) fn tell_idle(&mut self) {
        let due = self.idle_found.take_if(|(at, _)| *at <= self.now);
        let Some((_, count)) = due.filter(|_| self.preferences.states) else { return };
        self.say_ourselves(UtteranceKind::Notice, events::idle(count), &UtteranceTopic::Nothing);
    }

    /// When to mention a running tool next.
    pub(super) fn mention_at(&self) -> Option<Duration> {
        let first = Duration::from_secs(self.preferences.long_tool_seconds);
        self.sessions.live().filter_map(|(_, it)| it.activity.next_mention(first)).min()
    }

    /// Mentions tools that run for long.
    pub(super) fn mention_long_tools(&mut self) {
        let (now, first) = (self.now, Duration::from_secs(self.preferences.long_tool_seconds));
        let mut due: Vec<(HubSessionKey, AnnouncedPhrase)> = Vec::new();
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
                    let (kind, weight) = (UtteranceKind::Doing, Weight::Background);
                    let text_language = tool.text_language.clone();
                    due.push((
                        session_id.clone(),
                        AnnouncedPhrase { kind, weight, words, text_language },
                    ));
                }
            }
        }
        for (session_id, phrase) in due {
            self.queue
                .remove(|it| it.about == UtteranceTopic::StillRunning && it.is_of(&session_id));
            self.say(Some(&session_id), &phrase, &UtteranceTopic::StillRunning);
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
