//! Context before consent: an agent's words from before a question are never announced after the answer.
//!
//! On a device that takes no time, all of them come before the question. A voice says the last sentence, and the rest
//! is kept for a person who asks for more. On a display that is read by hand, nothing comes before a question.

use super::Announcer;
use super::phrase::{AnnouncedPhrase, sentences};
use super::question::AnnouncedAsk;
use super::queue::{QueuedUtterance, UtteranceTopic};
use crate::profile::Replies;
use crate::utterance::{UtteranceKind, Weight};

impl Announcer {
    /// Announces the words of the asking agent that the person has not heard, before its question.
    ///
    /// An agent may ask in a separate session, as `aaep ask` does. If it said nothing there, its words from an ended
    /// session come before the question.
    pub(super) fn tell_context(&mut self, question: &AnnouncedAsk) {
        let session_id = &self.sessions.speaking_session(&question.session_id);
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        let text_language =
            session.last_text().map(|it| it.text_language.clone()).unwrap_or_default();
        let words = session.take_unfinished();
        session.unhush();
        session.begin_text();
        if self.preferences.replies == Replies::Never || self.preferences.only_decisions {
            return;
        }
        let phrase = AnnouncedPhrase {
            kind: UtteranceKind::Reply,
            weight: Weight::Normal,
            words,
            text_language,
        };
        self.say(Some(session_id), &phrase, &UtteranceTopic::Nothing);
        if self.queue.takes_no_time {
            return;
        }
        let is_text =
            |it: &QueuedUtterance| it.kind == UtteranceKind::Reply && it.is_of(session_id);
        let stopped = self.stop_text(is_text);
        let mut unheard: Vec<QueuedUtterance> = self.queue.take(is_text).into();
        let last = unheard.pop();
        // An interrupted text is not left unfinished: it is said again, together with the last sentence.
        let Some(mut last) = stopped.into_iter().chain(last).reduce(|mut one, next| {
            one.words = sentences(&[&one.words, &next.words]);
            one
        }) else {
            return;
        };
        let has_more = !unheard.is_empty();
        for item in unheard {
            self.queue.skip(item);
        }
        if self.context_on_request {
            return self.queue.skip(last);
        }
        (last.weight, last.rank, last.was_cut) = (Weight::Critical, question.rank, false);
        last.about = UtteranceTopic::Context { number: question.number, has_more };
        last.is_first = true;
        self.queue.push(last, self.preferences.pace(), self.preferences.behind_seconds);
    }

    /// Stops the text that is being said, so that it is not said again later. Returns the stopped utterances.
    fn stop_text(&mut self, is_text: impl Fn(&QueuedUtterance) -> bool) -> Vec<QueuedUtterance> {
        let mut stopped = Vec::new();
        for it in self.stopping.iter_mut().filter(|it| !it.is_unwanted && is_text(&it.item)) {
            it.is_unwanted = true;
            stopped.push(it.item.clone());
        }
        if let Some(current) = self.current.as_ref().filter(|it| is_text(&it.item)) {
            stopped.push(current.item.clone());
            self.stop(true);
        }
        stopped
    }
}
