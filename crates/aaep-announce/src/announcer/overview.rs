//! An overview of several questions: first how many wait, and which agent asks what; then each question whole.
//!
//! A question takes long to say. Another agent that asks at the same moment must not go unheard until then.

use std::cmp::Reverse;

use super::io::{AnnouncerOutcome, AskNumber};
use super::question::{AnnouncedAsk, PresentationProgress};
use super::queue::{QueuedUtterance, UtteranceTopic};
use super::sessions::TrackedSession;
use super::tell::SHORT_REST;
use super::{Announcer, CurrentUtterance};
use crate::english::asks;
use crate::utterance::{UtteranceKind, Weight};
use crate::words::cut;

/// How many questions an overview names. The others are only counted.
const MAX_NAMED: usize = 5;
/// How much of an action is named, in bytes. The question itself has all of it.
const MAX_ACTION: usize = 100;

impl Announcer {
    /// The overview to say now, if at least two questions wait and one of them was not announced at all.
    pub(super) fn overview(&mut self) -> Option<QueuedUtterance> {
        if self.queue.takes_no_time {
            return None;
        }
        let stopped = self.stopping.iter().filter(|it| !it.is_unwanted).map(|it| &it.item);
        let numbers = stopped.chain(self.queue.waiting()).filter_map(|it| match it.about {
            UtteranceTopic::Question(number) => Some(number),
            _ => None,
        });
        let mut waiting: Vec<&AnnouncedAsk> =
            numbers.filter_map(|it| self.questions.get(&it)).filter(|it| !it.is_answered).collect();
        if waiting.len() < 2 || !waiting.iter().any(|it| is_unknown(it)) {
            return None;
        }
        waiting.sort_by_key(|it| (Reverse(it.rank), it.number));
        let mut parts = vec![asks::wait(waiting.len())];
        for question in waiting.iter().take(MAX_NAMED) {
            let who = self.label(Some(&question.session_id));
            parts.push(asks::one_of_them(question.number, &who, &action(&question.name)));
        }
        if waiting.len() > MAX_NAMED {
            parts.push(asks::and_more(waiting.len() - MAX_NAMED));
        }
        let words = parts.join(" ");
        let numbers: Vec<AskNumber> = waiting.iter().map(|it| it.number).collect();
        // Each question is told whole after this.
        self.queue.restart_questions(|_| true);
        self.queue.remove(|it| matches!(it.about, UtteranceTopic::Overview(_)));
        for number in &numbers {
            if let Some(question) = self.questions.get_mut(number) {
                question.is_named = true;
                let session = self.sessions.get_mut(&question.session_id);
                session.into_iter().for_each(TrackedSession::name_is_told);
            }
        }
        let mut item =
            QueuedUtterance::new(UtteranceKind::Question, Weight::Critical, words, self.now);
        item.about = UtteranceTopic::Overview(numbers);
        // The question itself names its agent again.
        self.speaker = None;
        Some(item)
    }

    /// Whether the current question is interrupted for an overview because another one was asked. This happens only
    /// once.
    pub(super) fn makes_way_for_overview(&self, current: &CurrentUtterance) -> bool {
        let (UtteranceTopic::Question(_) | UtteranceTopic::Context { .. }) = current.item.about
        else {
            return false;
        };
        if current.item.was_cut || self.queue.takes_no_time {
            return false;
        }
        let own = current.item.about.question();
        let is_unknown = |it: &QueuedUtterance| match it.about {
            UtteranceTopic::Question(number) if Some(number) != own => {
                self.questions.get(&number).is_some_and(is_unknown)
            }
            _ => false,
        };
        self.rest_of(current) > SHORT_REST && self.queue.waiting().any(is_unknown)
    }

    /// The overview has begun: the person knows about these questions from now on.
    pub(super) fn overview_began(&mut self, numbers: &[AskNumber]) {
        for number in numbers {
            if let Some(question) = self.questions.get_mut(number)
                && !question.has_begun()
            {
                question.presentation = PresentationProgress::Begun;
                self.decided.outcomes.push(AnnouncerOutcome::Presenting(*number));
            }
        }
    }
}

/// Whether no part of it was announced yet.
fn is_unknown(question: &AnnouncedAsk) -> bool {
    !(question.is_named || question.has_begun() || question.is_answered)
}

/// The action, shortened if it is long.
fn action(name: &str) -> String {
    let name = name.trim();
    if name.len() > MAX_ACTION {
        let head = cut(name, MAX_ACTION);
        let head = head.rsplit_once(' ').map_or(head, |(head, _)| head);
        return asks::beginning(head);
    }
    let end = if name.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{name}{end}")
}
