//! What is on the display now, and what a key means there. Pure: the time is an argument.
//!
//! A question stays until it is answered or withdrawn. Other words may replace it once it has had its time, and it
//! comes back after them. A key counts only for a window that is known to have been on the display when the key was
//! pressed.

use std::time::{Duration, Instant};

use super::codec::Key;
use super::pages::{BraillePage, pages};
use crate::announcer::AskNumber;
use crate::utterance::{self, Choice, DeviceReport, Order, Utterance, UtteranceId, Weight};

/// The most open questions. This is more than a person can keep in mind.
const MAX_OPEN_QUESTIONS: usize = 32;

/// The shortest time for a window, however few cells it has.
const SHORTEST_LOOK: Duration = Duration::from_millis(1500);

/// How many times longer a window stays once the person has moved by hand.
const BY_HAND: u32 = 4;

/// For this long after a key, a question counts as being read, and only critical words may replace it.
const STILL_READING: Duration = Duration::from_secs(10);

/// A step changes the pace by one part in this many.
const PACE_STEP: u16 = 5;

/// The fastest pace, as in the settings.
const MAX_CELLS_PER_SECOND: u16 = 200;

/// How fast the person reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadingPace {
    /// Cells in a second; `None` if only the person's keys move on.
    pub(super) cells_per_second: Option<u16>,
    /// How long an answer must have been on the display before it can be chosen.
    pub(super) least_look: Duration,
}

/// What was reported about an utterance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadingStage {
    Open,
    /// Its time is over or it was cut, so that others may be shown.
    Over,
    /// The person has read on to its end.
    Read,
}

/// An utterance on the display, or waiting to come back to it.
#[derive(Debug)]
struct DisplayedUtterance {
    id: UtteranceId,
    number: Option<AskNumber>,
    weight: Weight,
    words: String,
    choices: Vec<Choice>,
    pages: Vec<BraillePage>,
    at: usize,
    has_begun: bool,
    stage: ReadingStage,
    is_by_hand: bool,
    /// When the time of this window, or of a whole question, is over.
    until: Option<Instant>,
}

impl DisplayedUtterance {
    fn lay_out(&mut self, cells: usize) {
        self.pages = pages(&self.words, &self.choices, cells);
        self.at = 0;
    }

    fn page(&self) -> Option<&BraillePage> {
        self.pages.get(self.at)
    }

    fn is_question(&self) -> bool {
        !self.choices.is_empty()
    }

    fn is_over(&self) -> bool {
        self.stage != ReadingStage::Open
    }

    /// The reading time of this window, or of a whole question.
    fn time(&self, pace: ReadingPace) -> Option<Duration> {
        let cells_per_second = pace.cells_per_second?;
        let text = if self.is_question() { &self.words } else { &self.page()?.text };
        let cells = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        let time = Duration::from_secs_f64(f64::from(cells) / f64::from(cells_per_second.max(1)));
        let times = if self.is_by_hand { BY_HAND } else { 1 };
        Some(time.max(SHORTEST_LOOK).saturating_mul(times))
    }
}

/// The state of the display.
#[derive(Debug)]
pub(super) struct BrailleReader {
    pace: ReadingPace,
    cells: usize,
    text: Option<DisplayedUtterance>,
    /// The open questions; the last one is shown.
    questions: Vec<DisplayedUtterance>,
    /// The version of the wanted content, so that an old confirmation is not mistaken for a new one.
    version: u64,
    /// Since when the wanted content is known to be on the display.
    shown: Option<Instant>,
    last_key: Option<Instant>,
    last_was_question: bool,
}

impl BrailleReader {
    pub(super) fn new(pace: ReadingPace) -> Self {
        BrailleReader {
            pace,
            cells: 0,
            text: None,
            questions: Vec::new(),
            version: 0,
            shown: None,
            last_key: None,
            last_was_question: false,
        }
    }

    /// The wanted content of the display; `None` if the display is not needed.
    pub(super) fn wanted(&self) -> Option<&str> {
        self.item()?.page().map(|page| page.text.as_str())
    }

    /// The number of cells.
    pub(super) fn cells(&self) -> usize {
        self.cells
    }

    /// Whether the last content of the display was a question.
    pub(super) fn last_was_question(&self) -> bool {
        self.last_was_question
    }

    fn item(&self) -> Option<&DisplayedUtterance> {
        self.text.as_ref().or(self.questions.last())
    }

    fn item_mut(&mut self) -> Option<&mut DisplayedUtterance> {
        self.text.as_mut().or(self.questions.last_mut())
    }

    /// Sets the number of cells. If it changed, everything is laid out again.
    pub(super) fn resize(&mut self, cells: usize) {
        if self.cells == cells {
            return;
        }
        self.cells = cells;
        self.changed();
        for item in self.text.iter_mut().chain(&mut self.questions) {
            item.lay_out(cells);
        }
    }

    /// The wanted content has changed: no key counts until it is known to be on the display.
    fn changed(&mut self) {
        self.version += 1;
        self.shown = None;
    }

    /// The content to write and its version, unless it is already on the display.
    pub(super) fn to_write(&self) -> Option<(&str, u64)> {
        match self.shown {
            Some(_) => None,
            None => self.wanted().map(|text| (text, self.version)),
        }
    }

    /// The content with this version is on the display from now on.
    pub(super) fn is_shown(&mut self, now: Instant, version: u64, reports: &mut Vec<DeviceReport>) {
        if version != self.version {
            return;
        }
        self.shown = Some(now);
        self.last_was_question = self.item().is_some_and(DisplayedUtterance::is_question);
        let pace = self.pace;
        let Some(item) = self.item_mut() else { return };
        if !std::mem::replace(&mut item.has_begun, true) && !item.is_over() {
            reports.push(DeviceReport::Began(item.id));
        }
        if !item.is_over() && (!item.is_question() || item.until.is_none()) {
            item.until = item.time(pace).map(|time| now + time);
        }
    }

    pub(super) fn take_order(
        &mut self,
        now: Instant,
        order: Order,
        words: String,
        reports: &mut Vec<DeviceReport>,
    ) {
        match order {
            Order::Say(utterance) => self.say(now, utterance, words, reports),
            Order::Stop => self.stop(reports),
            Order::Withdraw(id) => self.withdraw(id, reports),
            Order::Pace(wanted) => self.pace(wanted, reports),
            Order::Sound(_) => {}
        }
    }

    /// Changes the pace. A speech rate means nothing here.
    fn pace(&mut self, wanted: utterance::Pace, reports: &mut Vec<DeviceReport>) {
        let Some(before) = self.pace.cells_per_second else { return };
        let step = (before / PACE_STEP).max(1);
        let after = match wanted {
            utterance::Pace::Slower => before.saturating_sub(step),
            utterance::Pace::Faster => before.saturating_add(step),
            utterance::Pace::Rate(_) => return,
        };
        let after = after.clamp(1, MAX_CELLS_PER_SECOND);
        self.pace.cells_per_second = Some(after);
        let percent = u32::from(after) * 100 / u32::from(before.max(1));
        reports.push(DeviceReport::Paced { wanted, percent });
    }

    fn say(
        &mut self,
        now: Instant,
        utterance: Utterance,
        words: String,
        reports: &mut Vec<DeviceReport>,
    ) {
        let is_critical = utterance.weight == Weight::Critical;
        let is_question = !utterance.choices.is_empty();
        let is_full = is_question && self.questions.len() >= MAX_OPEN_QUESTIONS;
        if is_full || !(is_critical || is_question || self.is_free(now)) {
            reports.push(DeviceReport::Cut(utterance.id));
            return;
        }
        self.withdraw(utterance.id, reports);
        self.drop_text(reports);
        let mut item = DisplayedUtterance {
            id: utterance.id,
            number: utterance.number,
            weight: utterance.weight,
            words,
            choices: utterance.choices,
            pages: Vec::new(),
            at: 0,
            has_begun: false,
            stage: ReadingStage::Open,
            is_by_hand: false,
            until: None,
        };
        item.lay_out(self.cells);
        if utterance.is_continued {
            self.keep_place(&mut item);
        }
        if let Some(below) = self.questions.last_mut() {
            cut(below, reports);
        }
        if is_question {
            self.questions.push(item);
        } else {
            self.text = Some(item);
        }
        self.changed();
    }

    /// Goes on at the window at which something else replaced the question, unless what came before it is different.
    fn keep_place(&mut self, item: &mut DisplayedUtterance) {
        let is_it = |it: &DisplayedUtterance| it.number.is_some() && it.number == item.number;
        let Some(at) = self.questions.iter().position(is_it) else { return };
        let known = self.questions.remove(at);
        let texts = |it: &DisplayedUtterance| {
            it.pages.get(..=known.at).map(|them| them.iter().map(|it| it.text.clone()).collect())
        };
        let (before, after): (Option<Vec<String>>, Option<Vec<String>>) =
            (texts(&known), texts(item));
        let is_end = known.at + 1 == item.pages.len();
        if before.is_some() && before == after && !is_end {
            (item.at, item.is_by_hand) = (known.at, known.is_by_hand);
        }
    }

    /// Whether words that are not critical may be shown now.
    fn is_free(&self, now: Instant) -> bool {
        let is_reading =
            self.last_key.is_some_and(|key| now.saturating_duration_since(key) < STILL_READING);
        match self.item() {
            None => true,
            Some(item) if item.is_question() => item.is_over() && !is_reading,
            Some(item) => item.weight < Weight::Critical,
        }
    }

    /// Removes the words that are not a question, and goes back to the question below them.
    fn drop_text(&mut self, reports: &mut Vec<DeviceReport>) {
        if let Some(mut item) = self.text.take() {
            cut(&mut item, reports);
            self.go_back_to_question();
        }
    }

    /// Shows the question again where the person left it, or from its first page if that was at its answers: they have
    /// to know again what they answer.
    fn go_back_to_question(&mut self) {
        if self.questions.last().is_some_and(|it| it.at + 1 < it.pages.len()) {
            self.changed();
        } else {
            self.come_back();
        }
    }

    /// Shows the question again from its first page.
    fn come_back(&mut self) {
        if let Some(item) = self.questions.last_mut() {
            item.at = 0;
        }
        self.changed();
    }

    fn stop(&mut self, reports: &mut Vec<DeviceReport>) {
        self.drop_text(reports);
        if let Some(item) = self.questions.last_mut() {
            cut(item, reports);
        }
    }

    fn withdraw(&mut self, id: UtteranceId, reports: &mut Vec<DeviceReport>) {
        let Some(at) = self.questions.iter().position(|it| it.id == id) else { return };
        let was_shown = self.text.is_none() && at + 1 == self.questions.len();
        let mut item = self.questions.remove(at);
        cut(&mut item, reports);
        if was_shown {
            self.come_back();
        }
    }

    /// A key was pressed.
    pub(super) fn key(&mut self, now: Instant, key: Key, reports: &mut Vec<DeviceReport>) {
        let Some(shown) = self.shown else { return };
        self.last_key = Some(now);
        match key {
            Key::On => self.go_on(true, reports),
            Key::Back => self.go_back(),
            Key::Cell(cell) if now.saturating_duration_since(shown) >= self.pace.least_look => {
                self.choose(cell, reports);
            }
            Key::Again => reports.push(DeviceReport::Repeat),
            Key::Before => reports.push(DeviceReport::Back),
            Key::MoreTime => {
                let question = self.questions.last().filter(|_| self.text.is_none());
                reports.extend(question.map(|it| DeviceReport::MoreTime(it.id)));
            }
            Key::Cell(_) | Key::Other => {}
        }
    }

    fn go_on(&mut self, is_by_hand: bool, reports: &mut Vec<DeviceReport>) {
        let Some(item) = self.item_mut() else { return };
        item.is_by_hand |= is_by_hand;
        if item.at + 1 < item.pages.len() {
            item.at += 1;
            if item.is_question() && item.at + 1 == item.pages.len() {
                end(item, reports);
            }
            self.changed();
        } else if let Some(mut item) = self.text.take() {
            end(&mut item, reports);
            self.go_back_to_question();
        }
    }

    fn go_back(&mut self) {
        let Some(item) = self.item_mut() else { return };
        item.is_by_hand = true;
        if item.at > 0 {
            item.at -= 1;
            self.changed();
        }
    }

    fn choose(&mut self, cell: usize, reports: &mut Vec<DeviceReport>) {
        if self.text.is_some() {
            return;
        }
        let Some(item) = self.questions.last_mut() else { return };
        let Some(choice) = item.page().and_then(|page| page.choice_at(cell)) else {
            return reports.push(DeviceReport::NoChoice(item.id));
        };
        end(item, reports);
        reports.push(DeviceReport::Chosen(item.id, choice));
        self.questions.pop();
        self.come_back();
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.shown?;
        self.item().filter(|item| !item.is_over())?.until
    }

    /// Processes the passing of time.
    pub(super) fn time_passed(&mut self, now: Instant, reports: &mut Vec<DeviceReport>) {
        if self.due().is_none_or(|due| due > now) {
            return;
        }
        match self.item_mut() {
            Some(item) if item.is_question() => shown(item, reports),
            Some(_) => self.go_on(false, reports),
            None => {}
        }
    }

    /// The display is gone. Current words are cut; questions stay open and come back with the display.
    pub(super) fn lost(&mut self, reports: &mut Vec<DeviceReport>) {
        if let Some(mut item) = self.text.take() {
            cut(&mut item, reports);
        }
        for item in &mut self.questions {
            cut(item, reports);
        }
        self.come_back();
    }
}

/// The person has read the utterance to its end, perhaps after its time was over.
fn end(item: &mut DisplayedUtterance, reports: &mut Vec<DeviceReport>) {
    if std::mem::replace(&mut item.stage, ReadingStage::Read) != ReadingStage::Read {
        reports.push(DeviceReport::Ended(item.id));
    }
}

/// The time of the utterance is over.
fn shown(item: &mut DisplayedUtterance, reports: &mut Vec<DeviceReport>) {
    if !item.is_over() {
        item.stage = ReadingStage::Over;
        reports.push(DeviceReport::Shown(item.id));
    }
}

fn cut(item: &mut DisplayedUtterance, reports: &mut Vec<DeviceReport>) {
    if !item.is_over() {
        item.stage = ReadingStage::Over;
        reports.push(DeviceReport::Cut(item.id));
    }
}
