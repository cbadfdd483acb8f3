//! Context before consent: what an agent said before it asks is not told after the answer.
//!
//! On a device that takes no time all of it comes before the question. A voice tells the last sentence, and the rest is kept
//! for a person who asks for more. On a display that is read by hand nothing stands before a question.

use super::Announcer;
use super::phrase::{Phrase, sentences};
use super::question::Question;
use super::queue::{About, Item};
use crate::profile::Replies;
use crate::utterance::{Kind, Weight};

impl Announcer {
    /// Tells what the asking agent said and the person has not heard, before its question.
    ///
    /// An agent may ask in a session of its own, as `aaep ask` does. If it said nothing there, what it said in one that is
    /// over comes before its question.
    pub(super) fn tell_context(&mut self, question: &Question) {
        let session_id = &self.sessions.speaking_session(&question.session_id);
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        let tongue = session.last_text().map(|it| it.tongue.clone()).unwrap_or_default();
        let words = session.take_unfinished();
        session.unhush();
        session.begin_text();
        if self.preferences.replies == Replies::Never || self.preferences.only_decisions {
            return;
        }
        let phrase = Phrase { kind: Kind::Reply, weight: Weight::Normal, words, tongue };
        self.say(Some(session_id), &phrase, &About::Nothing);
        if self.queue.takes_no_time {
            return;
        }
        let is_text = |it: &Item| it.kind == Kind::Reply && it.is_of(session_id);
        let stopped = self.stop_text(is_text);
        let mut unheard: Vec<Item> = self.queue.take(is_text).into();
        let last = unheard.pop();
        // What was begun is not left half said: it is told again, together with the last sentence.
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
        last.about = About::Context { number: question.number, has_more };
        self.queue.push(last, self.preferences.pace(), self.preferences.behind_seconds);
    }

    /// Stops text that is being said, so that it is not said again later; what was stopped.
    fn stop_text(&mut self, is_text: impl Fn(&Item) -> bool) -> Vec<Item> {
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
