//! Questions in sentences: between two of them, news of other agents is told (ends, failures, settled questions).
//!
//! A voice gets a question one part at a time and goes on after the news where it was. On a display that is read by
//! hand, a question stays in one piece, and it comes back at the window at which the news replaced it. Consent needs
//! every part to its end, one after the other (ruling 33): an interruption within a part begins again from the first.

use std::time::Duration;

use super::io::AskNumber;
use super::parts::exact_parts;
use super::question::AnnouncedAsk;
use super::queue::{QueuedUtterance, UtteranceTopic};
use super::{Announcer, CurrentUtterance};
use crate::english::asks;
use crate::utterance::Choice;
use crate::words::keep_own_marks;

impl Announcer {
    /// The parts of an utterance in their current words, and its choices, or `None` if it is outdated.
    pub(super) fn parts_of(&self, item: &QueuedUtterance) -> Option<(Vec<String>, Vec<Choice>)> {
        let is_whole = self.queue.takes_no_time || self.context_on_request || self.is_past;
        let question = |number: &AskNumber| self.questions.get(number).filter(|it| !it.is_answered);
        let split = |words: &str| {
            if is_whole {
                vec![words.to_owned()]
            } else {
                keep_own_marks(exact_parts(words, self.preferences.part_bytes()))
            }
        };
        Some(match &item.about {
            UtteranceTopic::Question(number) => {
                let question = question(number)?;
                let takes_no_time = self.queue.takes_no_time;
                if self.is_past {
                    return Some((vec![question.past()], Vec::new()));
                }
                let parts = if is_whole {
                    vec![question.words(self.now, takes_no_time)]
                } else {
                    question.parts(self.now, self.preferences.part_bytes())
                };
                (parts, question.choices())
            }
            UtteranceTopic::Warning(number) => {
                let question = question(number)?;
                let [left, how] = question.warning(self.now);
                let parts = if is_whole { vec![format!("{left} {how}")] } else { vec![left, how] };
                (parts, question.choices())
            }
            UtteranceTopic::Context { number, .. } => {
                question(number)?;
                (split(&item.words), Vec::new())
            }
            UtteranceTopic::Overview(numbers) => {
                numbers.iter().all(|it| question(it).is_some()).then_some(())?;
                (split(&item.words), Vec::new())
            }
            UtteranceTopic::Time(number) => {
                let is_many = self.may_be_several();
                let number_of = if is_many { asks::about(*number) } else { String::new() };
                let said = question(number)?.time_now(self.now, &item.words);
                (vec![format!("{number_of} {said}").trim_start().to_owned()], Vec::new())
            }
            _ => (vec![item.words.clone()], Vec::new()),
        })
    }

    /// The device has said the current part to its end: the next one comes next, unless there is news.
    pub(super) fn part_ended(&mut self) {
        let Some(mut said) = self.current.take() else { return };
        self.queue.sentence_ended();
        said.item.parts_said += 1;
        if !self.is_outdated(&said.item) {
            self.queue.put_next_part(said.item);
        }
    }

    /// Whether the current question is interrupted for news, because it is read by hand and may stay for long.
    pub(super) fn makes_way_for_news(&self, current: &CurrentUtterance) -> bool {
        self.context_on_request && current.item.is_question() && self.queue.has_news()
    }

    /// Stops the current question, which the device shows again after the news where the person was.
    pub(super) fn stop_for_news(&mut self) {
        if let Some(current) = &mut self.current {
            current.item.keeps_place = true;
        }
        self.stop(false);
        self.queue.sentence_ended();
    }
}

impl AnnouncedAsk {
    /// The words of the question for a voice, in parts of about a sentence. Only the last one changes with the time.
    fn parts(&self, now: Duration, most: usize) -> Vec<String> {
        let asked = self.asked_briefly();
        let mut parts = keep_own_marks(exact_parts(&asked, most));
        parts.push(self.time_and_how(now));
        parts
    }
}
