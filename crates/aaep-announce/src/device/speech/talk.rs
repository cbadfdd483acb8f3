//! The conversation with a speech server. Pure: bytes and orders in, bytes and reports out.
//!
//! Commands are sent one at a time, each only after the previous answer. Words are sent only after the server has
//! said that it expects words; otherwise it would take them for commands.

use std::collections::VecDeque;
use std::time::Instant;

use super::Settings;
use super::codec::{self, Lines, SsipLine};
use super::language::SpeechLanguages;
use super::rate;
use super::saying::{MessageEvent, SpeechPriority, SpeechUtterance};
use super::task::{SpeechRequest, SpeechTask, greeting, set};
use super::voices::ServerVoices;
use crate::device::client::{ConversationOutput, ServerConversation, time_for};
use crate::device::plain::quoted;
use crate::english::devices;
use crate::utterance::{DeviceReport, Order, Pace, Utterance, UtteranceId};

/// The most lines that are kept of an answer, and the most events that are kept until their message is known.
const MAX_KEPT_LINES: usize = 8;
const MAX_EARLY_EVENTS: usize = 16;

/// How many times longer than other answers the list of voices may take.
const PATIENCE_FOR_VOICES: u32 = 10;

/// The most utterances in progress. There is normally one at a time, so more mean that something is wrong.
const MAX_SAYINGS: usize = 64;

/// The most pending tasks for a server that does not answer. Beyond that, requests for another pace are dropped.
const MAX_TASKS: usize = 2 * MAX_SAYINGS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpeechServerState {
    /// Nothing is known yet: orders wait.
    Starting,
    /// The server does not work: utterances are cut at once, so that nothing waits for them.
    Lost,
    Open,
}

/// The conversation with a speech server.
#[derive(Debug)]
pub(super) struct SpeechConversation {
    settings: Settings,
    state: SpeechServerState,
    is_connected: bool,
    lines: Lines,
    tasks: VecDeque<SpeechTask>,
    asked: Option<(SpeechRequest, Instant)>,
    answer: Vec<String>,
    event: Vec<String>,
    early: VecDeque<(u64, MessageEvent)>,
    sayings: Vec<SpeechUtterance>,
    languages: SpeechLanguages,
    /// The current priority of the server.
    priority: Option<SpeechPriority>,
}

impl SpeechConversation {
    /// Creates a conversation that has not begun.
    pub(super) fn new(settings: Settings) -> Self {
        let languages = SpeechLanguages::new(settings.language.clone());
        SpeechConversation {
            settings,
            languages,
            state: SpeechServerState::Starting,
            is_connected: false,
            lines: Lines::default(),
            tasks: VecDeque::new(),
            asked: None,
            answer: Vec::new(),
            event: Vec::new(),
            early: VecDeque::new(),
            sayings: Vec::new(),
            priority: None,
        }
    }

    /// Sends the next request, unless an answer is pending.
    fn go_on(&mut self, now: Instant, out: &mut ConversationOutput) {
        while self.asked.is_none() {
            let Some(task) = self.tasks.pop_front() else { return };
            match task {
                SpeechTask::Set(words, otherwise) => {
                    self.ask(now, SpeechRequest::Setting(otherwise), &words, out);
                }
                SpeechTask::AskLanguage => {
                    self.ask(now, SpeechRequest::Language, "GET LANGUAGE", out);
                }
                SpeechTask::AskVoices => {
                    self.ask(
                        now,
                        SpeechRequest::Voices(ServerVoices::default()),
                        "LIST SYNTHESIS_VOICES",
                        out,
                    );
                    // The server first collects the whole list, which may have thirteen thousand lines.
                    if let Some((_, until)) = &mut self.asked {
                        *until += self.settings.patience * PATIENCE_FOR_VOICES;
                    }
                }
                SpeechTask::Greeted => {
                    self.state = SpeechServerState::Open;
                    out.is_working = true;
                }
                SpeechTask::Cancel => self.ask(now, SpeechRequest::Cancel, "CANCEL SELF", out),
                SpeechTask::Say(id) => self.prepare(now, id, out),
                SpeechTask::Pace(wanted) => self.pace(now, wanted, out),
            }
        }
    }

    /// Changes the rate. If the current rate is unknown, it is requested first.
    fn pace(&mut self, now: Instant, wanted: Pace, out: &mut ConversationOutput) {
        match (self.settings.rate, wanted) {
            (None, Pace::Slower | Pace::Faster) => {
                self.tasks.push_front(SpeechTask::Pace(wanted));
                self.ask(now, SpeechRequest::Rate, "GET RATE", out);
            }
            (before, _) => {
                let before = before.unwrap_or_default();
                let after = rate::changed(before, wanted);
                let percent = rate::percent(before, after);
                out.reports.push(DeviceReport::Paced { wanted, percent });
                // The next connection uses this rate too.
                self.settings.rate = Some(after);
                self.tasks.push_front(set("RATE", after));
            }
        }
    }

    fn ask(
        &mut self,
        now: Instant,
        asked: SpeechRequest,
        words: &str,
        out: &mut ConversationOutput,
    ) {
        out.bytes.extend_from_slice(&codec::command(words));
        self.asked = Some((asked, now + self.settings.patience));
    }

    /// Sets the language and the priority if they differ, then asks to speak.
    fn prepare(&mut self, now: Instant, id: UtteranceId, out: &mut ConversationOutput) {
        let Some(saying) = self.sayings.iter_mut().find(|it| it.id == id) else { return };
        saying.prepare(&mut self.languages);
        let (priority, language) = (saying.priority, saying.voice.clone());
        let language = language.filter(|it| self.languages.current.as_ref() != Some(it));
        if let Some(language) = language {
            self.tasks.push_front(SpeechTask::Say(id));
            let words = format!("SET SELF LANGUAGE {language}");
            self.ask(now, SpeechRequest::ForLanguage(language), &words, out);
        } else if self.priority != Some(priority) {
            self.tasks.push_front(SpeechTask::Say(id));
            let words = format!("SET SELF PRIORITY {}", priority.word());
            self.ask(now, SpeechRequest::ForPriority(priority), &words, out);
        } else {
            self.ask(now, SpeechRequest::ToSpeak(id), "SPEAK", out);
        }
    }

    fn answered(
        &mut self,
        now: Instant,
        line: &SsipLine,
        out: &mut ConversationOutput,
    ) -> Result<(), String> {
        let Some((asked, until)) = &mut self.asked else {
            return Err(devices::speech::UNEXPECTED_ANSWER.to_owned());
        };
        if !line.is_last {
            if let SpeechRequest::Voices(voices) = asked {
                // The list is long. Each of its lines extends the time limit.
                *until = now + self.settings.patience;
                if !voices.add(&line.text, self.settings.voice.as_deref()) {
                    return Err(devices::speech::ENDLESS_VOICES.to_owned());
                }
            } else if self.answer.len() < MAX_KEPT_LINES {
                self.answer.push(line.text.clone());
            }
            return Ok(());
        }
        let answer = std::mem::take(&mut self.answer);
        let is_good = (200..300).contains(&line.code);
        match self.asked.take().map(|(asked, _)| asked) {
            None => {}
            Some(SpeechRequest::Setting(otherwise)) => {
                if let (false, Some(words)) = (is_good, otherwise) {
                    out.reports.push(DeviceReport::Notice(words));
                }
            }
            Some(SpeechRequest::Language) => {
                self.languages.begin(answer.first().filter(|_| is_good));
            }
            Some(SpeechRequest::Voices(voices)) => self.got_voices(voices, out),
            // A server that refuses keeps its language. Asking again would not help.
            Some(SpeechRequest::ForLanguage(language)) => self.languages.current = Some(language),
            Some(SpeechRequest::ForPriority(priority)) => self.priority = Some(priority),
            Some(SpeechRequest::ToSpeak(id)) => self.may_speak(now, id, line.code, out)?,
            Some(SpeechRequest::Words(id)) => self.words_taken(now, id, is_good, &answer, out)?,
            Some(SpeechRequest::Cancel) => self.cancelled(out),
            Some(SpeechRequest::Rate) => {
                let rate = answer.first().and_then(|it| it.trim().parse().ok());
                self.settings.rate = Some(rate.unwrap_or_default());
            }
        }
        Ok(())
    }

    fn got_voices(&mut self, voices: ServerVoices, out: &mut ConversationOutput) {
        if let Some(voice) = self.settings.voice.as_deref()
            && !voices.is_empty()
            && !voices.has_wanted()
        {
            out.reports
                .push(DeviceReport::Notice(devices::speech::no_voice_called(&quoted(voice))));
        }
        self.languages.voices = Some(voices);
    }

    fn may_speak(
        &mut self,
        now: Instant,
        id: UtteranceId,
        code: u16,
        out: &mut ConversationOutput,
    ) -> Result<(), String> {
        match code {
            230 => {
                let words = self.sayings.iter().find(|it| it.id == id).map_or("", |it| &it.words);
                let patience = self.settings.patience + time_for(words.len());
                out.bytes.extend_from_slice(&codec::message(words));
                self.asked = Some((SpeechRequest::Words(id), now + patience));
                Ok(())
            }
            300.. => {
                self.cut(id, out);
                Ok(())
            }
            _ => Err(devices::speech::UNEXPECTED_ANSWER.to_owned()),
        }
    }

    fn words_taken(
        &mut self,
        now: Instant,
        id: UtteranceId,
        is_good: bool,
        answer: &[String],
        out: &mut ConversationOutput,
    ) -> Result<(), String> {
        let early = std::mem::take(&mut self.early);
        if !is_good {
            self.cut(id, out);
            return Ok(());
        }
        let Some(message) = answer.first().and_then(|it| it.trim().parse().ok()) else {
            return Err(devices::speech::DOES_NOT_NUMBER.to_owned());
        };
        if let Some(saying) = self.sayings.iter_mut().find(|it| it.id == id) {
            saying.taken(now, message);
        }
        for (number, event) in early {
            if number == message {
                self.happened(now, message, event, out);
            }
        }
        Ok(())
    }

    /// The server has stopped all our messages.
    fn cancelled(&mut self, out: &mut ConversationOutput) {
        let gone: Vec<UtteranceId> =
            self.sayings.iter().filter(|it| it.message.is_some()).map(|it| it.id).collect();
        for id in gone {
            self.cut(id, out);
        }
    }

    fn cut(&mut self, id: UtteranceId, out: &mut ConversationOutput) {
        if let Some(at) = self.sayings.iter().position(|it| it.id == id) {
            self.sayings.remove(at);
            out.reports.push(DeviceReport::Cut(id));
        }
    }

    /// Takes a line of an event. The first line is the number of the message, the last says what happened.
    fn event_line(&mut self, now: Instant, line: &SsipLine, out: &mut ConversationOutput) {
        if !line.is_last {
            if self.event.len() < MAX_KEPT_LINES {
                self.event.push(line.text.clone());
            }
            return;
        }
        let lines = std::mem::take(&mut self.event);
        let Some(message) = lines.first().and_then(|it| it.trim().parse().ok()) else { return };
        let event = match line.code {
            701 => MessageEvent::Begin,
            702 => MessageEvent::End,
            703 => MessageEvent::Cancel,
            _ => return,
        };
        if self.sayings.iter().any(|it| it.message == Some(message)) {
            self.happened(now, message, event, out);
        } else if matches!(self.asked, Some((SpeechRequest::Words(_), _)))
            && self.early.len() < MAX_EARLY_EVENTS
        {
            self.early.push_back((message, event));
        }
    }

    fn happened(
        &mut self,
        now: Instant,
        message: u64,
        event: MessageEvent,
        out: &mut ConversationOutput,
    ) {
        let Some(at) = self.sayings.iter().position(|it| it.message == Some(message)) else {
            return;
        };
        let Some(saying) = self.sayings.get_mut(at) else { return };
        let id = saying.id;
        if event != MessageEvent::Cancel && saying.begin(now) {
            out.reports.push(DeviceReport::Began(id));
        }
        match event {
            MessageEvent::Begin => {}
            MessageEvent::End if saying.end() => {
                self.sayings.remove(at);
                out.reports.push(DeviceReport::Ended(id));
            }
            MessageEvent::End => self.tasks.push_front(SpeechTask::Say(id)),
            MessageEvent::Cancel => self.cut(id, out),
        }
    }

    fn say(&mut self, utterance: Utterance, out: &mut ConversationOutput) {
        let id = utterance.id;
        match SpeechUtterance::new(utterance) {
            Some(saying) => {
                self.tasks.push_back(SpeechTask::Say(id));
                self.sayings.push(saying);
            }
            None => out.reports.extend([DeviceReport::Began(id), DeviceReport::Ended(id)]),
        }
    }

    fn stop(&mut self, out: &mut ConversationOutput) {
        let waiting: Vec<UtteranceId> = self
            .tasks
            .iter()
            .filter_map(|task| match task {
                SpeechTask::Say(id) => Some(*id),
                _ => None,
            })
            .collect();
        self.tasks.retain(|task| !matches!(task, SpeechTask::Say(_)));
        for id in waiting {
            self.cut(id, out);
        }
        if !self.sayings.is_empty() && !matches!(self.tasks.back(), Some(SpeechTask::Cancel)) {
            self.tasks.push_back(SpeechTask::Cancel);
        }
    }
}

impl ServerConversation for SpeechConversation {
    fn connected(&mut self, now: Instant, out: &mut ConversationOutput) {
        self.is_connected = true;
        self.lines = Lines::default();
        // Earlier orders come after the greeting.
        let mut tasks = greeting(&self.settings, self.languages.voices.is_some());
        tasks.append(&mut self.tasks);
        self.tasks = tasks;
        self.go_on(now, out);
    }

    fn take_bytes(
        &mut self,
        now: Instant,
        bytes: &[u8],
        out: &mut ConversationOutput,
    ) -> Result<(), String> {
        self.lines.push(bytes);
        while let Some(line) =
            self.lines.next_line().map_err(|_| devices::speech::DAMAGED_ANSWER.to_owned())?
        {
            if line.is_event() {
                self.event_line(now, &line, out);
            } else {
                self.answered(now, &line, out)?;
            }
        }
        self.go_on(now, out);
        Ok(())
    }

    fn take_order(&mut self, now: Instant, order: Order, out: &mut ConversationOutput) {
        match order {
            Order::Say(utterance)
                if self.state == SpeechServerState::Lost || self.sayings.len() >= MAX_SAYINGS =>
            {
                out.reports.push(DeviceReport::Cut(utterance.id));
            }
            Order::Say(utterance) => self.say(utterance, out),
            Order::Stop => self.stop(out),
            // Without speech, a person cannot hear a change of pace.
            Order::Pace(_)
                if self.state == SpeechServerState::Lost || self.tasks.len() >= MAX_TASKS => {}
            Order::Pace(wanted) => self.tasks.push_back(SpeechTask::Pace(wanted)),
            // A spoken question need not be withdrawn, and sounds are for another device.
            Order::Withdraw(_) | Order::Sound(_) => {}
        }
        if self.is_connected {
            self.go_on(now, out);
        }
    }

    fn due(&self) -> Option<Instant> {
        let asked = self.asked.as_ref().map(|(_, until)| *until);
        self.sayings.iter().filter_map(|it| it.until).chain(asked).min()
    }

    fn time_passed(&mut self, now: Instant, out: &mut ConversationOutput) -> Result<(), String> {
        if self.asked.as_ref().is_some_and(|(_, until)| *until <= now) {
            return Err(devices::speech::NO_ANSWER.to_owned());
        }
        let late: Vec<(UtteranceId, bool)> = self
            .sayings
            .iter()
            .filter(|it| it.is_late(now))
            .map(|it| (it.id, it.priority.may_be_dropped() && !it.is_speaking))
            .collect();
        for (id, was_dropped) in late {
            if !was_dropped {
                return Err(devices::speech::NOT_TO_THEIR_END.to_owned());
            }
            self.cut(id, out);
            // It may still be in the server's queue, and would be spoken when nobody expects it.
            self.tasks.push_back(SpeechTask::Cancel);
        }
        self.go_on(now, out);
        Ok(())
    }

    fn lost(&mut self, out: &mut ConversationOutput) {
        self.state = SpeechServerState::Lost;
        self.is_connected = false;
        self.tasks.clear();
        self.asked = None;
        self.answer.clear();
        self.event.clear();
        self.early.clear();
        self.priority = None;
        out.reports.extend(self.sayings.drain(..).map(|it| DeviceReport::Cut(it.id)));
    }

    fn finish(&mut self, out: &mut ConversationOutput) {
        if !matches!(self.asked, Some((SpeechRequest::ToSpeak(_), _))) {
            out.bytes.extend_from_slice(&codec::command("CANCEL SELF"));
            out.bytes.extend_from_slice(&codec::command("QUIT"));
        }
    }
}

#[cfg(test)]
mod tests;
