//! Carries out the requests of the person who listens.

use std::cmp::Ordering;

use super::Announcer;
use super::io::{AnnouncerOutcome, AskNumber, ListeningRequest};
use super::parts::exact_parts;
use super::phrase::{AnnouncedPhrase, FieldWording};
use super::question::AnnouncedAsk;
use super::queue::{QueuedUtterance, UtteranceTopic};
use crate::english::{asks, listening};
use crate::profile::PACES;
use crate::utterance::{Order, Pace, UtteranceKind, Weight};
use crate::words::{exact, keep_own_marks, own, split, words_marked};

impl Announcer {
    pub(super) fn wish(&mut self, wish: ListeningRequest) {
        match wish {
            ListeningRequest::Hush => {
                self.stop(true);
                self.queue.hush();
                self.sessions.hush();
            }
            ListeningRequest::Skip => self.stop(true),
            ListeningRequest::Repeat => self.repeat(),
            ListeningRequest::Back => self.back(),
            ListeningRequest::Question(number) => self.question_again(number),
            ListeningRequest::Status => self.status(),
            ListeningRequest::More => self.more(),
            ListeningRequest::LastReply => self.last_reply(false),
            ListeningRequest::ExactText => self.last_reply(true),
            // Only the device knows its pace.
            ListeningRequest::Pace(pace) => self.decided.orders.push(Order::Pace(pace)),
            ListeningRequest::OnlyDecisions(only) => {
                self.preferences.only_decisions = only;
                let words = if only { listening::ONLY_DECISIONS } else { listening::EVERYTHING };
                if only {
                    self.queue.remove(|it| {
                        it.weight < Weight::Critical
                            && matches!(
                                it.kind,
                                UtteranceKind::Reply
                                    | UtteranceKind::Doing
                                    | UtteranceKind::Progress
                                    | UtteranceKind::Done
                            )
                    });
                }
                self.answer(words.to_owned());
            }
        }
    }

    /// Says something about listening before everything else that waits.
    fn answer(&mut self, words: String) {
        let mut item = QueuedUtterance::new(UtteranceKind::Notice, Weight::Normal, words, self.now);
        // Such an answer is not worth repeating.
        item.is_again = true;
        self.queue.put_back(item);
    }

    /// Says at once the result of something that the person did. The current utterance is said again after it.
    pub(super) fn feedback(&mut self, text: &str) {
        if !self.is_working() {
            return;
        }
        self.stop(false);
        self.queue.remove(|it| it.about == UtteranceTopic::Feedback);
        let mut item =
            QueuedUtterance::new(UtteranceKind::Notice, Weight::Critical, exact(text), self.now);
        item.about = UtteranceTopic::Feedback;
        self.queue.put_back(item);
    }

    /// Says the last thing again: the current utterance from its beginning, or the one before.
    fn repeat(&mut self) {
        if let Some(current) = &self.current {
            let item = current.item.clone();
            self.stop(true);
            return self.again(item);
        }
        match self.said.last().cloned() {
            Some(item) => self.again(item),
            None => self.answer(listening::NOTHING_SAID.to_owned()),
        }
    }

    /// Says what was held back: the rest of an open question first, and then skipped utterances.
    fn more(&mut self) {
        let is_untold = |it: &&mut AnnouncedAsk| {
            it.has_begun() && !(it.is_answered || it.is_rest_told) && it.rest().is_some()
        };
        if let Some(question) = self.questions.values_mut().find(is_untold) {
            question.is_rest_told = true;
            let question = question.clone();
            let rest = question.rest().unwrap_or_default();
            let parts = if self.queue.takes_no_time || self.context_on_request {
                vec![rest.to_owned()]
            } else {
                keep_own_marks(exact_parts(rest, super::MAX_UTTERANCE))
            };
            for (at, part) in parts.into_iter().enumerate().rev() {
                let mut item =
                    QueuedUtterance::new(UtteranceKind::Question, Weight::Normal, part, self.now);
                item.session_id = Some(question.session_id.clone());
                item.text_language = question.text_language.clone();
                item.about = UtteranceTopic::Rest(question.number);
                item.is_first = at == 0;
                self.queue.put_back(item);
            }
        } else if !self.queue.tell_skipped() {
            self.answer(listening::NOTHING_SKIPPED.to_owned());
        }
    }

    /// Says what was said before the last thing. The current utterance is said again whole after it.
    fn back(&mut self) {
        let is_again = self.current.as_ref().map(|it| it.item.is_again);
        let Some(item) = self.said.step_back(is_again == Some(false)).cloned() else {
            return self.answer(listening::NOTHING_BEFORE.to_owned());
        };
        self.stop(is_again == Some(true));
        self.again(item);
    }

    fn again(&mut self, mut item: QueuedUtterance) {
        let is_open = match item.about {
            UtteranceTopic::Question(number)
            | UtteranceTopic::Warning(number)
            | UtteranceTopic::Time(number) => {
                // The whole question, not only the warning about its time.
                item.about = UtteranceTopic::Question(number);
                self.questions.contains_key(&number)
            }
            _ => true,
        };
        if is_open {
            (item.serial, item.tries, item.arrived) = (0, 0, self.now);
            item.is_again = true;
            self.queue.put_back(item);
        } else {
            self.answer(asks::IS_OVER.to_owned());
        }
    }

    /// Says a question again whole, unless it already waits to be said.
    fn question_again(&mut self, number: AskNumber) {
        let Some(question) = self.questions.get(&number).filter(|it| !it.is_answered).cloned()
        else {
            return;
        };
        let is_it = |item: &QueuedUtterance| item.about == UtteranceTopic::Question(number);
        let waits = self.queue.waiting().any(is_it)
            || self.stopping.iter().any(|it| is_it(&it.item) && !it.is_unwanted);
        if !waits {
            self.queue_ask(&question, UtteranceTopic::Question(number));
        }
    }

    /// Says the last text of an agent from its beginning.
    fn last_reply(&mut self, is_exact: bool) {
        let Some((session_id, text)) = self.sessions.last_text(None) else {
            return self.answer(listening::NO_REPLY_YET.to_owned());
        };
        let (session_id, text_language) = (session_id.clone(), text.text_language.clone());
        let style = FieldWording::of(&self.preferences, &text_language).style;
        let mut said = words_marked(&text.exact, if is_exact { style.exactly() } else { style });
        if text.is_cut {
            said.extend([" ", &*own(listening::TOO_LONG_TO_REMEMBER)]);
        }
        self.stop(true);
        self.queue.remove(|it| it.kind == UtteranceKind::Reply && it.is_of(&session_id));
        let phrase = AnnouncedPhrase {
            kind: UtteranceKind::Reply,
            weight: Weight::Normal,
            words: said,
            text_language,
        };
        for part in keep_own_marks(split(&phrase.words, super::MAX_UTTERANCE)).into_iter().rev() {
            let mut item = QueuedUtterance::new(phrase.kind, phrase.weight, part, self.now);
            item.session_id = Some(session_id.clone());
            item.text_language = phrase.text_language.clone();
            self.queue.put_back(item);
        }
    }

    /// Confirms that the device changed its pace. The confirmation is the first utterance at the new pace.
    pub(super) fn paced(&mut self, wanted: Pace, percent: u32) {
        let words = match (percent.cmp(&100), wanted) {
            (Ordering::Less, _) => listening::SLOWER,
            (Ordering::Greater, _) => listening::FASTER,
            (Ordering::Equal, Pace::Slower) => listening::NOT_SLOWER,
            (Ordering::Equal, Pace::Faster) => listening::NOT_FASTER,
            (Ordering::Equal, Pace::Rate(_)) => listening::THAT_FAST_ALREADY,
        };
        self.answer(words.to_owned());
        if percent != 100 {
            let pace = self.preferences.pace().saturating_mul(u64::from(percent)) / 100;
            let pace = pace.clamp(*PACES.start(), *PACES.end());
            self.preferences.words_per_minute = pace;
            self.decided.outcomes.push(AnnouncerOutcome::Pace(pace));
        }
    }
}
