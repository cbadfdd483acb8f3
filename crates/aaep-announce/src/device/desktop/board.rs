//! The content for a screen reader: the latest announcements, and questions with their buttons. Pure: the time is an
//! argument.
//!
//! Orca ignores an announcement that comes within a tenth of a second after another one of the same program, and then
//! counts again from the ignored one. So two announcements are never closer than [`LEAST_GAP`], and critical ones
//! wait for this gap too. Orca does not stop speaking for an assertive announcement either, so long words are
//! announced in parts, at the pace of the person: a question waits for one part at most.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Settings;
use crate::announcer::AskNumber;
use crate::device::plain::one_line;
use crate::english::devices;
use crate::utterance::{DeviceReport, Order, Utterance, UtteranceId, Weight};
use crate::words::{split, spoken};

/// The shortest time between two announcements.
pub(super) const LEAST_GAP: Duration = Duration::from_millis(150);

/// The longest part of an announcement that is not critical, in bytes.
const MAX_PART: usize = 160;

/// The most open questions. This is more than a person can keep in mind.
const MAX_OPEN_QUESTIONS: usize = 32;

/// The first number for a temporary node. Smaller numbers are permanent.
const FIRST_NODE: u64 = 16;

/// A live region and its words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LiveRegion {
    pub(super) words: String,
    pub(super) language: Option<String>,
    pub(super) is_right_to_left: bool,
}

/// An open question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BoardAsk {
    id: UtteranceId,
    number: Option<AskNumber>,
    /// The node that contains it.
    pub(super) node: u64,
    pub(super) region: LiveRegion,
    pub(super) buttons: Vec<AskButton>,
    /// Whether its words were announced, so that the person can know what they answer.
    has_begun: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AskButton {
    pub(super) node: u64,
    pub(super) words: String,
    action: ButtonAction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ButtonAction {
    /// Chooses the answer at this index.
    Choose(usize),
    MoreTime,
}

/// The utterance in progress.
#[derive(Debug)]
struct BoardUtterance {
    id: UtteranceId,
    weight: Weight,
    /// The announcement that comes next.
    region: LiveRegion,
    /// The parts after that, each in one language; empty when all of them were announced.
    parts: VecDeque<(String, Option<String>)>,
    /// When the last announced part counts as heard.
    until: Option<Instant>,
}

/// Everything that a screen reader finds.
#[derive(Debug)]
pub(super) struct AccessibleBoard {
    settings: Settings,
    polite: LiveRegion,
    assertive: LiveRegion,
    questions: Vec<BoardAsk>,
    /// Since when the questions are unchanged.
    questions_since: Option<Instant>,
    current: Option<BoardUtterance>,
    last_announced: Option<Instant>,
    next_node: u64,
    /// Whether something changed since the last call of `take_change`.
    is_changed: bool,
}

impl AccessibleBoard {
    pub(super) fn new(settings: Settings) -> Self {
        AccessibleBoard {
            settings,
            polite: LiveRegion::default(),
            assertive: LiveRegion::default(),
            questions: Vec::new(),
            questions_since: None,
            current: None,
            last_announced: None,
            next_node: FIRST_NODE,
            is_changed: false,
        }
    }

    /// The live regions: polite and assertive.
    pub(super) fn regions(&self) -> [&LiveRegion; 2] {
        [&self.polite, &self.assertive]
    }

    /// The open questions, the oldest first.
    pub(super) fn questions(&self) -> &[BoardAsk] {
        &self.questions
    }

    /// Whether something changed since the last call.
    pub(super) fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// Carries out an order.
    pub(super) fn take_order(
        &mut self,
        now: Instant,
        order: Order,
        reports: &mut Vec<DeviceReport>,
    ) {
        match order {
            Order::Say(utterance) => self.say(now, &utterance, reports),
            // Only the person can stop the screen reader; the rest is not announced.
            Order::Stop => self.cut(reports),
            Order::Withdraw(id) => self.withdraw(now, id, reports),
            // The screen reader has its own pace.
            Order::Sound(_) | Order::Pace(_) => {}
        }
    }

    fn say(&mut self, now: Instant, utterance: &Utterance, reports: &mut Vec<DeviceReport>) {
        self.cut(reports);
        let region = LiveRegion {
            words: one_line(&utterance.words),
            language: utterance.language.as_ref().map(|it| it.as_str().to_owned()),
            is_right_to_left: utterance.is_right_to_left,
        };
        if !utterance.choices.is_empty() && !self.put(now, utterance, &region) {
            reports.push(DeviceReport::Cut(utterance.id));
            return;
        }
        let (id, weight) = (utterance.id, utterance.weight);
        let most = if weight == Weight::Critical { usize::MAX } else { MAX_PART };
        // Announcements are spoken; labels on the screen keep the exact text.
        let is_exact = utterance.kind.is_exact();
        let mut parts = VecDeque::new();
        for run in utterance.language_runs() {
            let words = one_line(&run.words);
            let heard = if is_exact { spoken(&words) } else { words };
            let language = run.language.as_ref().map(|it| it.as_str().to_owned());
            let split = split(&heard, most).into_iter();
            parts.extend(split.map(|it| (it.to_owned(), language.clone())));
        }
        self.current = Some(BoardUtterance { id, weight, region, parts, until: None });
    }

    /// Adds a question. A repeated question gets new nodes, because a person may still be on the old ones. The next
    /// part of a question belongs to the same nodes.
    fn put(&mut self, now: Instant, utterance: &Utterance, region: &LiveRegion) -> bool {
        let is_same = |it: &BoardAsk| {
            it.id == utterance.id || it.number.is_some_and(|_| it.number == utterance.number)
        };
        if let Some(known) =
            self.questions.iter_mut().find(|it| utterance.is_continued && is_same(it))
        {
            known.id = utterance.id;
            known.region.words.extend([" ", &region.words]);
            self.is_changed = true;
            return true;
        }
        self.questions.retain(|it| !is_same(it));
        if self.questions.len() >= MAX_OPEN_QUESTIONS {
            return false;
        }
        let node = self.new_node();
        let answers = utterance.choices.iter().enumerate();
        let answers =
            answers.map(|(at, choice)| (one_line(&choice.words), ButtonAction::Choose(at)));
        let more_time = (devices::desktop::MORE_TIME.to_owned(), ButtonAction::MoreTime);
        let buttons: Vec<_> = answers.chain(std::iter::once(more_time)).collect();
        let buttons = buttons
            .into_iter()
            .map(|(words, action)| AskButton { node: self.new_node(), words, action })
            .collect();
        self.questions.push(BoardAsk {
            id: utterance.id,
            number: utterance.number,
            node,
            region: region.clone(),
            buttons,
            has_begun: false,
        });
        self.questions_changed(now);
        true
    }

    /// A number that no node has had, so that an answer never goes to another question.
    fn new_node(&mut self) -> u64 {
        let node = self.next_node;
        self.next_node += 1;
        node
    }

    fn questions_changed(&mut self, now: Instant) {
        self.questions_since = Some(now);
        self.is_changed = true;
    }

    fn withdraw(&mut self, now: Instant, id: UtteranceId, reports: &mut Vec<DeviceReport>) {
        if self.current.as_ref().is_some_and(|it| it.id == id) {
            self.cut(reports);
        }
        let before = self.questions.len();
        self.questions.retain(|it| it.id != id);
        if self.questions.len() != before {
            self.questions_changed(now);
        }
    }

    fn cut(&mut self, reports: &mut Vec<DeviceReport>) {
        reports.extend(self.current.take().map(|it| DeviceReport::Cut(it.id)));
    }

    /// When to act next.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let current = self.current.as_ref()?;
        let until = current.until.unwrap_or(now);
        let is_said = current.parts.is_empty() && current.until.is_some();
        let from = self.announced_from().filter(|_| !is_said);
        Some(from.map_or(until, |from| from.max(until)))
    }

    /// The earliest time of the next announcement.
    fn announced_from(&self) -> Option<Instant> {
        self.last_announced.map(|last| last + LEAST_GAP)
    }

    /// Whether an announcement is due.
    pub(super) fn has_to_announce(&self, now: Instant) -> bool {
        let is_next = |it: &BoardUtterance| match it.until {
            None => true,
            Some(until) => until <= now && !it.parts.is_empty(),
        };
        self.current.as_ref().is_some_and(is_next)
            && self.announced_from().is_none_or(|from| from <= now)
    }

    /// Makes the announcement that is due.
    pub(super) fn announce(&mut self, now: Instant, reports: &mut Vec<DeviceReport>) {
        if !self.has_to_announce(now) {
            return;
        }
        let Some(item) = &mut self.current else { return };
        (item.region.words, item.region.language) = item.parts.pop_front().unwrap_or_default();
        let time = time_for(&item.region.words, self.settings.words_per_minute);
        let is_first = item.until.replace(now + time).is_none();
        let place = match item.weight {
            Weight::Critical => &mut self.assertive,
            Weight::Progress | Weight::Background | Weight::Normal => &mut self.polite,
        };
        if !item.region.words.is_empty() {
            let mut region = item.region.clone();
            // A screen reader announces only changes. A blank at the end is an inaudible change.
            if place.words == region.words {
                region.words.push(' ');
            }
            *place = region;
            self.last_announced = Some(now);
            self.is_changed = true;
        }
        for question in self.questions.iter_mut().filter(|it| it.id == item.id) {
            question.has_begun = true;
        }
        if is_first {
            reports.push(DeviceReport::Began(item.id));
        }
    }

    /// Ends the utterance if its time is over.
    pub(super) fn time_passed(&mut self, now: Instant, reports: &mut Vec<DeviceReport>) {
        let is_over =
            |it: &mut BoardUtterance| it.parts.is_empty() && it.until.is_some_and(|at| at <= now);
        reports.extend(self.current.take_if(is_over).map(|it| DeviceReport::Ended(it.id)));
    }

    /// A button was pressed. It counts only if its question is open and was announced, and if no question has just
    /// come or gone. The announcer decides whether the person knows the question well enough to answer it; if not, it
    /// repeats the question.
    pub(super) fn pressed(&mut self, now: Instant, node: u64, reports: &mut Vec<DeviceReport>) {
        let is_settled = self
            .questions_since
            .is_some_and(|since| now.saturating_duration_since(since) >= self.settings.least_look);
        let of = |it: &BoardAsk| {
            it.buttons.iter().find(|button| button.node == node).map(|it| it.action)
        };
        let found = self.questions.iter().enumerate().find_map(|(at, it)| Some((at, of(it)?)));
        let Some((at, action)) = found.filter(|_| is_settled) else { return };
        let Some((id, true)) = self.questions.get(at).map(|it| (it.id, it.has_begun)) else {
            return;
        };
        match action {
            ButtonAction::MoreTime => reports.push(DeviceReport::MoreTime(id)),
            ButtonAction::Choose(choice) => {
                reports.push(DeviceReport::Chosen(id, choice));
                self.questions.remove(at);
                self.questions_changed(now);
            }
        }
    }

    /// Nobody listens. The current utterance is cut; questions stay.
    pub(super) fn lost(&mut self, reports: &mut Vec<DeviceReport>) {
        self.cut(reports);
    }
}

/// How long it takes to hear these words.
fn time_for(words: &str, words_per_minute: u64) -> Duration {
    let count = words.split_whitespace().count() as u64;
    Duration::from_millis(count.saturating_mul(60_000) / words_per_minute.max(1))
}

#[cfg(test)]
mod tests;
