//! What a screen reader finds: words that were just announced, and questions with their buttons. Pure: time is an
//! argument.
//!
//! Orca passes over an announcement that comes within a tenth of a second after another one of the same program,
//! and counts anew from the one that it passed over. So two of them are never closer than [`LEAST_GAP`], and what
//! is critical comes after a gap like everything else. Nor does Orca stop speaking for what is assertive, so long
//! words are announced in parts, at the pace of the person: a question waits for one part at most.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Settings;
use crate::announcer::AskNumber;
use crate::device::plain::one_line;
use crate::english::devices;
use crate::utterance::{Order, Report, Utterance, UtteranceId, Weight};
use crate::words::{split, spoken};

/// How long after an announcement the next one comes at the earliest.
pub(super) const LEAST_GAP: Duration = Duration::from_millis(150);

/// The longest part of what is not critical, in bytes.
const MAX_PART: usize = 160;

/// How many questions may be open. More than a person can keep in mind.
const MAX_OPEN_QUESTIONS: usize = 32;

/// The first number for a node that comes and goes. Those below it stay.
const FIRST_NODE: u64 = 16;

/// A live region and what it says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) words: String,
    pub(super) language: Option<String>,
    pub(super) is_right_to_left: bool,
}

/// A question that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    id: UtteranceId,
    number: Option<AskNumber>,
    /// The node that holds it all.
    pub(super) node: u64,
    pub(super) region: Region,
    pub(super) buttons: Vec<Button>,
    /// Whether its words were announced, so that someone can know what they answer.
    has_begun: bool,
}

/// A button of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Button {
    pub(super) node: u64,
    pub(super) words: String,
    does: Does,
}

/// What a button does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    /// It chooses the answer at this place.
    Choose(usize),
    MoreTime,
}

/// An utterance that was given to us.
#[derive(Debug)]
struct Item {
    id: UtteranceId,
    weight: Weight,
    /// What is announced next.
    region: Region,
    /// What is left for after that, each in one language; nothing when all of it was announced.
    parts: VecDeque<(String, Option<String>)>,
    /// When the part that was announced last counts as heard.
    until: Option<Instant>,
}

/// All that a screen reader finds.
#[derive(Debug)]
pub(super) struct Board {
    settings: Settings,
    polite: Region,
    assertive: Region,
    questions: Vec<Question>,
    /// Since when the questions are as they are.
    questions_since: Option<Instant>,
    current: Option<Item>,
    last_announced: Option<Instant>,
    next_node: u64,
    /// Whether something changed since it was last looked at.
    is_changed: bool,
}

impl Board {
    pub(super) fn new(settings: Settings) -> Self {
        Board {
            settings,
            polite: Region::default(),
            assertive: Region::default(),
            questions: Vec::new(),
            questions_since: None,
            current: None,
            last_announced: None,
            next_node: FIRST_NODE,
            is_changed: false,
        }
    }

    /// The live regions: what waits its turn, and what does not.
    pub(super) fn regions(&self) -> [&Region; 2] {
        [&self.polite, &self.assertive]
    }

    /// The questions that wait, the oldest first.
    pub(super) fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// Whether something changed since this was last asked.
    pub(super) fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// An order was given.
    pub(super) fn told(&mut self, now: Instant, order: Order, reports: &mut Vec<Report>) {
        match order {
            Order::Say(utterance) => self.say(now, &utterance, reports),
            // What the screen reader is speaking is the person's to stop; nothing more is announced of it.
            Order::Stop => self.cut(reports),
            Order::Withdraw(id) => self.withdraw(now, id, reports),
            // The screen reader has a pace of its own.
            Order::Sound(_) | Order::Pace(_) => {}
        }
    }

    fn say(&mut self, now: Instant, utterance: &Utterance, reports: &mut Vec<Report>) {
        self.cut(reports);
        let region = Region {
            words: one_line(&utterance.words),
            language: utterance.language.as_ref().map(|it| it.as_str().to_owned()),
            is_right_to_left: utterance.is_right_to_left,
        };
        if !utterance.choices.is_empty() && !self.put(now, utterance, &region) {
            reports.push(Report::Cut(utterance.id));
            return;
        }
        let (id, weight) = (utterance.id, utterance.weight);
        let most = if weight == Weight::Critical { usize::MAX } else { MAX_PART };
        // Announcements are spoken; what can be looked at stays as it is.
        let is_exact = utterance.kind.is_exact();
        let mut parts = VecDeque::new();
        for run in utterance.language_runs() {
            let words = one_line(&run.words);
            let heard = if is_exact { spoken(&words) } else { words };
            let language = run.language.as_ref().map(|it| it.as_str().to_owned());
            let split = split(&heard, most).into_iter();
            parts.extend(split.map(|it| (it.to_owned(), language.clone())));
        }
        self.current = Some(Item { id, weight, region, parts, until: None });
    }

    /// Puts a question up. A question that is told again is another one to whoever has the old one before them:
    /// its nodes are new.
    fn put(&mut self, now: Instant, utterance: &Utterance, region: &Region) -> bool {
        let is_same = |it: &Question| {
            it.id == utterance.id || it.number.is_some_and(|_| it.number == utterance.number)
        };
        self.questions.retain(|it| !is_same(it));
        if self.questions.len() >= MAX_OPEN_QUESTIONS {
            return false;
        }
        let node = self.new_node();
        let answers = utterance.choices.iter().enumerate();
        let answers = answers.map(|(at, choice)| (one_line(&choice.words), Does::Choose(at)));
        let more_time = (devices::desktop::MORE_TIME.to_owned(), Does::MoreTime);
        let buttons: Vec<_> = answers.chain(std::iter::once(more_time)).collect();
        let buttons = buttons
            .into_iter()
            .map(|(words, does)| Button { node: self.new_node(), words, does })
            .collect();
        self.questions.push(Question {
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

    /// A number that no node has had: what was on a node once is never answered through another.
    fn new_node(&mut self) -> u64 {
        let node = self.next_node;
        self.next_node += 1;
        node
    }

    fn questions_changed(&mut self, now: Instant) {
        self.questions_since = Some(now);
        self.is_changed = true;
    }

    fn withdraw(&mut self, now: Instant, id: UtteranceId, reports: &mut Vec<Report>) {
        if self.current.as_ref().is_some_and(|it| it.id == id) {
            self.cut(reports);
        }
        let before = self.questions.len();
        self.questions.retain(|it| it.id != id);
        if self.questions.len() != before {
            self.questions_changed(now);
        }
    }

    fn cut(&mut self, reports: &mut Vec<Report>) {
        reports.extend(self.current.take().map(|it| Report::Cut(it.id)));
    }

    /// When something is to be done next.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let current = self.current.as_ref()?;
        let until = current.until.unwrap_or(now);
        let is_said = current.parts.is_empty() && current.until.is_some();
        let from = self.announced_from().filter(|_| !is_said);
        Some(from.map_or(until, |from| from.max(until)))
    }

    /// From when on the next announcement may come.
    fn announced_from(&self) -> Option<Instant> {
        self.last_announced.map(|last| last + LEAST_GAP)
    }

    /// Whether there is something to announce, and its time has come.
    pub(super) fn has_to_announce(&self, now: Instant) -> bool {
        let is_next = |it: &Item| match it.until {
            None => true,
            Some(until) => until <= now && !it.parts.is_empty(),
        };
        self.current.as_ref().is_some_and(is_next)
            && self.announced_from().is_none_or(|from| from <= now)
    }

    /// Announces it.
    pub(super) fn announce(&mut self, now: Instant, reports: &mut Vec<Report>) {
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
            // Only a change is announced. A blank at the end is a change that nobody hears.
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
            reports.push(Report::Began(item.id));
        }
    }

    /// Time has passed.
    pub(super) fn passed(&mut self, now: Instant, reports: &mut Vec<Report>) {
        let is_over = |it: &mut Item| it.parts.is_empty() && it.until.is_some_and(|at| at <= now);
        reports.extend(self.current.take_if(is_over).map(|it| Report::Ended(it.id)));
    }

    /// A button was pressed. It counts only if its question waits and was announced, and if nothing else has just
    /// come or gone. Whether the person knows the question well enough to answer it is decided elsewhere; if not, it is
    /// told again.
    pub(super) fn pressed(&mut self, now: Instant, node: u64, reports: &mut Vec<Report>) {
        let is_settled = self
            .questions_since
            .is_some_and(|since| now.saturating_duration_since(since) >= self.settings.least_look);
        let of =
            |it: &Question| it.buttons.iter().find(|button| button.node == node).map(|it| it.does);
        let found = self.questions.iter().enumerate().find_map(|(at, it)| Some((at, of(it)?)));
        let Some((at, does)) = found.filter(|_| is_settled) else { return };
        let Some((id, true)) = self.questions.get(at).map(|it| (it.id, it.has_begun)) else {
            return;
        };
        match does {
            Does::MoreTime => reports.push(Report::MoreTime(id)),
            Does::Choose(choice) => {
                reports.push(Report::Chosen(id, choice));
                self.questions.remove(at);
                self.questions_changed(now);
            }
        }
    }

    /// Nobody listens. What was being said is cut; questions stay up.
    pub(super) fn lost(&mut self, reports: &mut Vec<Report>) {
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
