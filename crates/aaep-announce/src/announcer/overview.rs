//! Several questions at once: first that they wait, who asks and what; then each of them whole.
//!
//! A question takes long to tell. An agent that asks at the same moment must not go unheard until then.

use std::cmp::Reverse;
use std::time::Duration;

use super::io::{AskNumber, Outcome};
use super::question::{Question, Telling};
use super::queue::{About, Item};
use super::{Announcer, Current};
use crate::english::asks;
use crate::utterance::{Kind, Weight};
use crate::words::cut;

/// How many questions are named in an overview. Of the others it is said how many there are.
const MAX_NAMED: usize = 5;
/// How much of an action is named, in bytes. All of it is told with its question.
const MAX_ACTION: usize = 100;
/// A question that takes no longer than this is told to its end first.
const SHORT_REST: Duration = Duration::from_secs(3);

impl Announcer {
    /// The overview that has to be told now: at least two questions wait, and of one of them nothing was told.
    pub(super) fn overview(&mut self) -> Option<Item> {
        if self.queue.takes_no_time {
            return None;
        }
        let stopped = self.stopping.iter().filter(|it| !it.is_unwanted).map(|it| &it.item);
        let numbers = stopped.chain(self.queue.waiting()).filter_map(|it| match it.about {
            About::Question(number) => Some(number),
            _ => None,
        });
        let mut waiting: Vec<&Question> =
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
        for number in &numbers {
            if let Some(question) = self.questions.get_mut(number) {
                question.is_named = true;
            }
        }
        let mut item = Item::new(Kind::Question, Weight::Critical, words, self.now);
        item.about = About::Overview(numbers);
        // The name of the agent that asks first is said again with its question.
        self.speaker = None;
        Some(item)
    }

    /// Whether the question that is being told makes way for an overview, because another one is asked. It does so once.
    pub(super) fn makes_way_for_overview(&self, current: &Current) -> bool {
        let (About::Question(_) | About::Context { .. }) = current.item.about else {
            return false;
        };
        if current.item.was_cut || self.queue.takes_no_time {
            return false;
        }
        let own = current.item.about.question();
        let is_unknown = |it: &Item| match it.about {
            About::Question(number) if Some(number) != own => {
                self.questions.get(&number).is_some_and(is_unknown)
            }
            _ => false,
        };
        let rest = current.takes.saturating_sub(self.now.saturating_sub(current.since));
        rest > SHORT_REST && self.queue.waiting().any(is_unknown)
    }

    /// An overview is being told: the person knows of these questions from now on.
    pub(super) fn overview_began(&mut self, numbers: &[AskNumber]) {
        for number in numbers {
            if let Some(question) = self.questions.get_mut(number)
                && !question.has_begun()
            {
                question.told = Telling::Begun;
                self.decided.outcomes.push(Outcome::Presenting(*number));
            }
        }
    }
}

/// Whether nothing of it was told yet.
fn is_unknown(question: &Question) -> bool {
    !(question.is_named || question.has_begun() || question.is_answered)
}

/// What is asked, as the beginning of it if it is long.
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
