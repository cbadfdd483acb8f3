//! What is said to a speech server, and what its answers mean. Pure: bytes and orders in, bytes and reports out.
//!
//! One command at a time, and the next only after the answer: words are sent only to a server that has said that
//! it takes words, or they would be commands to it.

use std::collections::VecDeque;
use std::time::Instant;

use super::Settings;
use super::codec::{self, Line, Lines};
use super::language::Languages;
use super::rate;
use super::saying::{Event, Priority, Saying};
use super::task::{Asked, Task, greeting, set};
use super::voices::Voices;
use crate::device::client::{Conversation, Out, time_for};
use crate::device::plain::quoted;
use crate::english::devices;
use crate::utterance::{Order, Pace, Report, Utterance, UtteranceId};

/// How many lines of an answer are kept, and how many events that came before the answer to their message.
const MAX_KEPT_LINES: usize = 8;
const MAX_EARLY_EVENTS: usize = 16;

/// How many times longer than other answers the list of voices may take.
const PATIENCE_FOR_VOICES: u32 = 10;

/// How many utterances may be under way. There is one at a time, so more means that something is wrong.
const MAX_SAYINGS: usize = 64;

/// How much may be left to ask of a server that does not answer, before wishes are left out.
const MAX_TASKS: usize = 2 * MAX_SAYINGS;

/// How it stands with the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing is known yet: orders wait.
    Starting,
    /// It does not work: orders are cut at once, so that nothing waits.
    Lost,
    Open,
}

/// The conversation with a speech server.
#[derive(Debug)]
pub(super) struct Talk {
    settings: Settings,
    state: State,
    is_connected: bool,
    lines: Lines,
    tasks: VecDeque<Task>,
    asked: Option<(Asked, Instant)>,
    answer: Vec<String>,
    event: Vec<String>,
    early: VecDeque<(u64, Event)>,
    sayings: Vec<Saying>,
    languages: Languages,
    /// What the server is set to now.
    priority: Option<Priority>,
}

impl Talk {
    /// A conversation that has not begun.
    pub(super) fn new(settings: Settings) -> Self {
        let languages = Languages::new(settings.language.clone());
        Talk {
            settings,
            languages,
            state: State::Starting,
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

    /// Asks the next thing, unless an answer is still to come.
    fn go_on(&mut self, now: Instant, out: &mut Out) {
        while self.asked.is_none() {
            let Some(task) = self.tasks.pop_front() else { return };
            match task {
                Task::Set(words, otherwise) => {
                    self.ask(now, Asked::Setting(otherwise), &words, out);
                }
                Task::AskLanguage => self.ask(now, Asked::Language, "GET LANGUAGE", out),
                Task::AskVoices => {
                    self.ask(now, Asked::Voices(Voices::default()), "LIST SYNTHESIS_VOICES", out);
                    // The server first gathers the whole list, which may be thirteen thousand lines.
                    if let Some((_, until)) = &mut self.asked {
                        *until += self.settings.patience * PATIENCE_FOR_VOICES;
                    }
                }
                Task::Greeted => {
                    self.state = State::Open;
                    out.is_working = true;
                }
                Task::Cancel => self.ask(now, Asked::Cancel, "CANCEL SELF", out),
                Task::Say(id) => self.prepare(now, id, out),
                Task::Pace(wanted) => self.pace(now, wanted, out),
            }
        }
    }

    /// Goes on at another rate. One that is not known is asked for first.
    fn pace(&mut self, now: Instant, wanted: Pace, out: &mut Out) {
        match (self.settings.rate, wanted) {
            (None, Pace::Slower | Pace::Faster) => {
                self.tasks.push_front(Task::Pace(wanted));
                self.ask(now, Asked::Rate, "GET RATE", out);
            }
            (before, _) => {
                let before = before.unwrap_or_default();
                let after = rate::changed(before, wanted);
                let percent = rate::percent(before, after);
                out.reports.push(Report::Paced { wanted, percent });
                // It stays so on the next connection.
                self.settings.rate = Some(after);
                self.tasks.push_front(set("RATE", after));
            }
        }
    }

    fn ask(&mut self, now: Instant, asked: Asked, words: &str, out: &mut Out) {
        out.bytes.extend_from_slice(&codec::command(words));
        self.asked = Some((asked, now + self.settings.patience));
    }

    /// Sets the language and the priority where they differ, then asks to speak.
    fn prepare(&mut self, now: Instant, id: UtteranceId, out: &mut Out) {
        let Some(saying) = self.sayings.iter_mut().find(|it| it.id == id) else { return };
        saying.prepare(&mut self.languages);
        let (priority, language) = (saying.priority, saying.voice.clone());
        let language = language.filter(|it| self.languages.current.as_ref() != Some(it));
        if let Some(language) = language {
            self.tasks.push_front(Task::Say(id));
            let words = format!("SET SELF LANGUAGE {language}");
            self.ask(now, Asked::ForLanguage(language), &words, out);
        } else if self.priority != Some(priority) {
            self.tasks.push_front(Task::Say(id));
            let words = format!("SET SELF PRIORITY {}", priority.word());
            self.ask(now, Asked::ForPriority(priority), &words, out);
        } else {
            self.ask(now, Asked::ToSpeak(id), "SPEAK", out);
        }
    }

    fn answered(&mut self, now: Instant, line: &Line, out: &mut Out) -> Result<(), String> {
        let Some((asked, until)) = &mut self.asked else {
            return Err(devices::speech::UNEXPECTED_ANSWER.to_owned());
        };
        if !line.is_last {
            if let Asked::Voices(voices) = asked {
                // The list is long, and counts as an answer as long as it goes on.
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
            Some(Asked::Setting(otherwise)) => {
                if let (false, Some(words)) = (is_good, otherwise) {
                    out.reports.push(Report::Notice(words));
                }
            }
            Some(Asked::Language) => {
                self.languages.begin(answer.first().filter(|_| is_good));
            }
            Some(Asked::Voices(voices)) => self.got_voices(voices, out),
            // A server that refuses keeps what it has. Asking it again would not help.
            Some(Asked::ForLanguage(language)) => self.languages.current = Some(language),
            Some(Asked::ForPriority(priority)) => self.priority = Some(priority),
            Some(Asked::ToSpeak(id)) => self.may_speak(now, id, line.code, out)?,
            Some(Asked::Words(id)) => self.words_taken(now, id, is_good, &answer, out)?,
            Some(Asked::Cancel) => self.cancelled(out),
            Some(Asked::Rate) => {
                let rate = answer.first().and_then(|it| it.trim().parse().ok());
                self.settings.rate = Some(rate.unwrap_or_default());
            }
        }
        Ok(())
    }

    fn got_voices(&mut self, voices: Voices, out: &mut Out) {
        if let Some(voice) = self.settings.voice.as_deref()
            && !voices.is_empty()
            && !voices.has_wanted()
        {
            out.reports.push(Report::Notice(devices::speech::no_voice_called(&quoted(voice))));
        }
        self.languages.voices = Some(voices);
    }

    fn may_speak(
        &mut self,
        now: Instant,
        id: UtteranceId,
        code: u16,
        out: &mut Out,
    ) -> Result<(), String> {
        match code {
            230 => {
                let words = self.sayings.iter().find(|it| it.id == id).map_or("", |it| &it.words);
                let patience = self.settings.patience + time_for(words.len());
                out.bytes.extend_from_slice(&codec::message(words));
                self.asked = Some((Asked::Words(id), now + patience));
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
        out: &mut Out,
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

    /// The server has stopped all that it had from us.
    fn cancelled(&mut self, out: &mut Out) {
        let gone: Vec<UtteranceId> =
            self.sayings.iter().filter(|it| it.message.is_some()).map(|it| it.id).collect();
        for id in gone {
            self.cut(id, out);
        }
    }

    fn cut(&mut self, id: UtteranceId, out: &mut Out) {
        if let Some(at) = self.sayings.iter().position(|it| it.id == id) {
            self.sayings.remove(at);
            out.reports.push(Report::Cut(id));
        }
    }

    /// Takes a line of an event. The first line is the number of the message, the last says what happened.
    fn event_line(&mut self, now: Instant, line: &Line, out: &mut Out) {
        if !line.is_last {
            if self.event.len() < MAX_KEPT_LINES {
                self.event.push(line.text.clone());
            }
            return;
        }
        let lines = std::mem::take(&mut self.event);
        let Some(message) = lines.first().and_then(|it| it.trim().parse().ok()) else { return };
        let event = match line.code {
            701 => Event::Begin,
            702 => Event::End,
            703 => Event::Cancel,
            _ => return,
        };
        if self.sayings.iter().any(|it| it.message == Some(message)) {
            self.happened(now, message, event, out);
        } else if matches!(self.asked, Some((Asked::Words(_), _)))
            && self.early.len() < MAX_EARLY_EVENTS
        {
            self.early.push_back((message, event));
        }
    }

    fn happened(&mut self, now: Instant, message: u64, event: Event, out: &mut Out) {
        let Some(at) = self.sayings.iter().position(|it| it.message == Some(message)) else {
            return;
        };
        let Some(saying) = self.sayings.get_mut(at) else { return };
        let id = saying.id;
        if event != Event::Cancel && saying.begin(now) {
            out.reports.push(Report::Began(id));
        }
        match event {
            Event::Begin => {}
            Event::End if saying.end() => {
                self.sayings.remove(at);
                out.reports.push(Report::Ended(id));
            }
            Event::End => self.tasks.push_front(Task::Say(id)),
            Event::Cancel => self.cut(id, out),
        }
    }

    fn say(&mut self, utterance: Utterance, out: &mut Out) {
        let id = utterance.id;
        match Saying::new(utterance) {
            Some(saying) => {
                self.tasks.push_back(Task::Say(id));
                self.sayings.push(saying);
            }
            None => out.reports.extend([Report::Began(id), Report::Ended(id)]),
        }
    }

    fn stop(&mut self, out: &mut Out) {
        let waiting: Vec<UtteranceId> = self
            .tasks
            .iter()
            .filter_map(|task| match task {
                Task::Say(id) => Some(*id),
                _ => None,
            })
            .collect();
        self.tasks.retain(|task| !matches!(task, Task::Say(_)));
        for id in waiting {
            self.cut(id, out);
        }
        if !self.sayings.is_empty() && !matches!(self.tasks.back(), Some(Task::Cancel)) {
            self.tasks.push_back(Task::Cancel);
        }
    }
}

impl Conversation for Talk {
    fn connected(&mut self, now: Instant, out: &mut Out) {
        self.is_connected = true;
        self.lines = Lines::default();
        // What was ordered before comes after the greeting.
        let mut tasks = greeting(&self.settings, self.languages.voices.is_some());
        tasks.append(&mut self.tasks);
        self.tasks = tasks;
        self.go_on(now, out);
    }

    fn heard(&mut self, now: Instant, bytes: &[u8], out: &mut Out) -> Result<(), String> {
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

    fn told(&mut self, now: Instant, order: Order, out: &mut Out) {
        match order {
            Order::Say(utterance)
                if self.state == State::Lost || self.sayings.len() >= MAX_SAYINGS =>
            {
                out.reports.push(Report::Cut(utterance.id));
            }
            Order::Say(utterance) => self.say(utterance, out),
            Order::Stop => self.stop(out),
            // Who hears nothing cannot hear how fast it is.
            Order::Pace(_) if self.state == State::Lost || self.tasks.len() >= MAX_TASKS => {}
            Order::Pace(wanted) => self.tasks.push_back(Task::Pace(wanted)),
            // A question that was spoken needs no taking away, and sounds are for another device.
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

    fn passed(&mut self, now: Instant, out: &mut Out) -> Result<(), String> {
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
            // It may still be in the server's queue, and would come when nobody expects it.
            self.tasks.push_back(Task::Cancel);
        }
        self.go_on(now, out);
        Ok(())
    }

    fn lost(&mut self, out: &mut Out) {
        self.state = State::Lost;
        self.is_connected = false;
        self.tasks.clear();
        self.asked = None;
        self.answer.clear();
        self.event.clear();
        self.early.clear();
        self.priority = None;
        out.reports.extend(self.sayings.drain(..).map(|it| Report::Cut(it.id)));
    }

    fn ends(&mut self, out: &mut Out) {
        if !matches!(self.asked, Some((Asked::ToSpeak(_), _))) {
            out.bytes.extend_from_slice(&codec::command("CANCEL SELF"));
            out.bytes.extend_from_slice(&codec::command("QUIT"));
        }
    }
}

#[cfg(test)]
mod tests;
