//! What waits to be said: merged, passed over and summed up, and never more than its bounds.

use std::collections::VecDeque;
use std::time::Duration;

use super::io::{AskNumber, HubNumber};
use super::phrase::Tongue;
use super::sessions::SessionKey;
use super::tools::Tools;
use crate::english::listening;
use crate::utterance::{Kind, Weight};

/// How many utterances wait that are not critical.
pub const MAX_WAITING: usize = 256;
/// How many critical ones wait that are no questions, such as errors.
pub const MAX_CRITICAL: usize = 64;
/// How many questions are open at most; the same as a subscriber holds.
pub const MAX_QUESTIONS: usize = 256;

/// One text of an agent may take this many times longer than everything else that waits, as long as no other text waits.
const TEXT_PATIENCE: u64 = 6;
/// How many skipped utterances are kept for someone who wants to hear them.
const MAX_SKIPPED: usize = 256;
/// What was left out is told at most once in this time, as long as there is something else to tell.
const LEFT_OUT_PAUSE: Duration = Duration::from_secs(30);

/// Something that waits to be said.
#[derive(Debug, Clone)]
pub(super) struct Item {
    /// The same for as long as it waits, is said, and is said again.
    pub(super) serial: u64,
    pub(super) kind: Kind,
    pub(super) weight: Weight,
    pub(super) session_id: Option<SessionKey>,
    pub(super) words: String,
    pub(super) tongue: Tongue,
    pub(super) about: About,
    /// When what it tells became known.
    pub(super) arrived: Duration,
    /// How often it went to the device in vain.
    pub(super) tries: u8,
    /// Whether the person heard a part of it, and so is to hear all of it.
    pub(super) was_cut: bool,
    /// Whether it is the first part of what it tells.
    pub(super) is_first: bool,
    /// Of a question: the larger, the sooner it is told.
    pub(super) rank: (u8, u8),
    /// Which text of its session it is a part of.
    pub(super) text: u64,
    /// Whether it is said again because the person wanted that.
    pub(super) is_again: bool,
}

/// What an utterance is about, beyond its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum About {
    /// Itself.
    Nothing,
    /// A question.
    Question(AskNumber),
    /// What an agent said directly before it asks, and whether it said more that was not heard.
    Context { number: AskNumber, has_more: bool },
    /// Several questions that wait: who asks what.
    Overview(Vec<AskNumber>),
    /// What was not told of a long question.
    Rest(AskNumber),
    /// A question whose time is nearly over.
    Warning(AskNumber),
    /// How much time there is for a question, after that has changed.
    Time(AskNumber),
    /// That a session began: not told after its end.
    Started,
    /// The state of an agent: only the newest counts.
    State,
    /// Tools of no great consequence, which are counted when there are many.
    Tools(Tools),
    /// That a tool still runs: only the newest counts.
    StillRunning,
    /// What really happened, against what was claimed.
    Fact,
    /// That an agent has finished, and what speaks against what it claims then.
    End,
    /// What the person asked for just now.
    Requested,
    /// The line to a hub.
    Line(HubNumber),
    /// How much was left out.
    LeftOut,
    /// What came of something that the person typed: told at once, or never.
    Feedback,
    /// What came of a question whose name is left out, as long as no other was asked.
    Ask(AskName),
}

/// How a question is named when another one was asked since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AskName {
    pub(super) name: String,
    pub(super) tongue: Tongue,
    /// How many questions had been asked.
    pub(super) asked: u64,
}

impl About {
    /// The question that it is about.
    pub(super) fn question(&self) -> Option<AskNumber> {
        match self {
            About::Question(number)
            | About::Context { number, .. }
            | About::Rest(number)
            | About::Warning(number)
            | About::Time(number) => Some(*number),
            _ => None,
        }
    }
}

impl Item {
    /// One about nothing but itself.
    pub(super) fn new(kind: Kind, weight: Weight, words: String, arrived: Duration) -> Self {
        let (tongue, about) = (Tongue::default(), About::Nothing);
        Item {
            serial: 0,
            kind,
            weight,
            session_id: None,
            words,
            tongue,
            about,
            arrived,
            tries: 0,
            was_cut: false,
            is_first: true,
            rank: (0, 0),
            text: 0,
            is_again: false,
        }
    }

    pub(super) fn is_of(&self, session_id: &SessionKey) -> bool {
        self.session_id.as_ref() == Some(session_id)
    }

    fn is_question(&self) -> bool {
        matches!(self.about, About::Question(_) | About::Context { .. } | About::Warning(_))
    }

    /// Whether nothing but the sentence that is being said, and what is critical, comes before it.
    fn is_news(&self) -> bool {
        self.kind == Kind::Settled || matches!(self.about, About::End | About::Fact)
    }

    /// Whether the person asked for it, or for what it tells.
    fn is_requested(&self) -> bool {
        matches!(self.about, About::Requested | About::Time(_))
    }

    /// How long it takes to say at so many words per minute.
    fn seconds(&self, pace: u64) -> u64 {
        // A word has six bytes or so; counting words would take longer than it is worth.
        (self.words.len() as u64 * 10).div_ceil(pace.max(1))
    }
}

/// What was left out because there was too much of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct LeftOut {
    steps: u64,
    replies: u64,
    errors: u64,
    others: u64,
}

/// What waits to be said.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    critical: VecDeque<Item>,
    rest: VecDeque<Item>,
    left_out: LeftOut,
    left_out_told: Option<Duration>,
    /// What was skipped, for someone who wants to hear it.
    skipped: VecDeque<Item>,
    /// The session whose words were told last.
    reading: Option<SessionKey>,
    last_serial: u64,
    /// Whether the device takes no time, so that everything is told in the order in which it came.
    pub(super) takes_no_time: bool,
}

impl Queue {
    /// Adds something, and brings what waits back into its bounds.
    pub(super) fn push(&mut self, mut item: Item, pace: u64, behind_seconds: u64) {
        self.number(&mut item);
        if item.weight == Weight::Critical {
            return self.push_critical(item);
        }
        if item.kind == Kind::Progress {
            self.rest.retain(|it| it.kind != Kind::Progress || it.session_id != item.session_id);
        }
        self.make_room_for(&item, behind_seconds);
        let at = match item.kind {
            _ if self.takes_no_time => self.rest.len(),
            // How a question was settled, and that an agent has finished, comes before what was waiting.
            Kind::Settled => self.rest.iter().take_while(|it| it.kind == Kind::Settled).count(),
            _ if item.about == About::Fact => self.after_claim(item.session_id.as_ref()),
            _ if item.is_news() => self.after_news(),
            _ if item.is_requested() => self.after_requested(),
            Kind::Error => self.make_way_for_news(item.session_id.as_ref()),
            _ => self.rest.len(),
        };
        self.rest.insert(at, item);
        self.keep_up(pace, behind_seconds);
    }

    /// Leaves out what has waited for very long, where another agent has something newer to tell. Whoever is being read is
    /// heard to the end, however long that takes.
    fn make_room_for(&mut self, item: &Item, behind_seconds: u64) {
        if item.session_id.is_none() || item.weight < Weight::Normal {
            return;
        }
        let patience = Duration::from_secs(behind_seconds.saturating_mul(TEXT_PATIENCE));
        let is_stale = |it: &Item| {
            item.arrived.saturating_sub(it.arrived) > patience
                && it.session_id != item.session_id
                && it.session_id != self.reading
                // A claim must not be told without the fact against it.
                && !(it.was_cut || it.is_news())
        };
        let waiting = std::mem::take(&mut self.rest);
        let (stale, rest) = waiting.into_iter().partition::<VecDeque<Item>, _>(is_stale);
        self.rest = rest;
        for it in stale {
            self.leave_out(it);
        }
    }

    /// Behind the news that wait.
    fn after_news(&self) -> usize {
        self.rest.iter().take_while(|it| it.is_news()).count()
    }

    /// Behind what the person asked for before.
    fn after_requested(&self) -> usize {
        let is_before = |it: &&Item| it.is_news() || it.is_requested();
        self.rest.iter().take_while(is_before).count()
    }

    /// Where a fact waits: nothing comes between it and the claim that it speaks against.
    fn after_claim(&self, session_id: Option<&SessionKey>) -> usize {
        let claim = self.rest.iter().rposition(|it| it.session_id.as_ref() == session_id);
        claim.map_or(0, |at| at + 1)
    }

    /// Where the failure of a tool waits: behind what its agent did before, but before what anyone has to say at
    /// length. One sentence of that goes first, so that a tool that fails again and again silences nobody. Small
    /// steps of the session that would be told later than what came of them are passed over.
    fn make_way_for_news(&mut self, session_id: Option<&SessionKey>) -> usize {
        let is_own = |it: &Item| it.session_id.as_ref() == session_id;
        let is_step = |it: &Item| it.weight < Weight::Normal && !it.was_cut;
        let is_text = |it: &Item| it.kind == Kind::Reply || it.about == About::Fact;
        let own = self.rest.iter().rposition(|it| is_own(it) && !is_step(it) && !is_text(it));
        let mut at = own.map_or(0, |at| at + 1).max(self.after_requested());
        let errors =
            |at: usize| self.rest.iter().skip(at).take_while(|it| it.kind == Kind::Error).count();
        at += errors(at);
        if self.rest.get(at).is_some_and(|it| it.kind == Kind::Reply) {
            at += 1;
            at += self.rest.iter().skip(at).take_while(|it| it.about == About::Fact).count();
            at += errors(at);
        }
        let later = self.rest.split_off(at);
        self.rest.extend(later.into_iter().filter(|it| !(is_own(it) && is_step(it))));
        at
    }

    /// Puts back what was cut off, before everything else of its weight but riskier questions.
    pub(super) fn put_back(&mut self, mut item: Item) {
        self.number(&mut item);
        item.was_cut = true;
        if item.weight == Weight::Critical {
            let is_before = |it: &&Item| it.is_question() && it.rank > item.rank;
            let before = self.critical.iter().take_while(is_before).count();
            self.critical.insert(if item.is_question() { before } else { 0 }, item);
        } else if self.rest.len() < MAX_WAITING {
            let at = if item.is_news() { 0 } else { self.after_news() };
            self.rest.insert(at, item);
        } else {
            self.leave_out(item);
        }
    }

    fn number(&mut self, item: &mut Item) {
        if item.serial == 0 {
            self.last_serial += 1;
            item.serial = self.last_serial;
        }
    }

    fn push_critical(&mut self, item: Item) {
        let others = self.critical.iter().filter(|it| !it.is_question()).count();
        if self.takes_no_time && others + self.rest.len() < MAX_CRITICAL {
            // What came before it is told before it.
            self.critical.extend(self.rest.drain(..));
            return self.critical.push_back(item);
        }
        if !item.is_question() && others >= MAX_CRITICAL {
            self.left_out.errors += 1;
            return;
        }
        // Questions come before errors. Of those that wait, the riskiest is told first, and of those as risky the oldest.
        let is_less = |it: &Item| match it.about {
            About::Feedback | About::Overview(_) => false,
            _ => !it.is_question() || it.rank < item.rank,
        };
        let at = self.critical.iter().position(is_less).filter(|_| item.is_question());
        self.critical.insert(at.unwrap_or(self.critical.len()), item);
    }

    /// Counts a tool together with the one of its kind that was the last of its session to wait.
    pub(super) fn merge(&mut self, session_id: Option<&SessionKey>, tools: &Tools) -> bool {
        let last = self.rest.iter_mut().rev().find(|it| it.session_id.as_ref() == session_id);
        let Some(last) = last else { return false };
        let About::Tools(waiting) = &mut last.about else { return false };
        if !waiting.merge(tools) {
            return false;
        }
        last.words = waiting.said();
        true
    }

    /// Leaves out the least important, oldest first, until what waits is not too much.
    fn keep_up(&mut self, pace: u64, behind_seconds: u64) {
        let mut seconds: u64 = self.rest.iter().map(|it| it.seconds(pace)).sum();
        while self.rest.len() > MAX_WAITING || seconds > behind_seconds.max(1) {
            // The newest is always kept: someone who listens slowly is told at least that.
            let waiting = self.rest.iter().take(self.rest.len().saturating_sub(1));
            let importance = |item: &Item| match item.kind {
                _ if item.was_cut => 4,
                Kind::Progress => 0,
                Kind::Doing if item.weight == Weight::Background => 1,
                Kind::Doing => 2,
                Kind::Reply => 3,
                Kind::Notice => 4,
                Kind::Done | Kind::Settled | Kind::Error | Kind::Question => 5,
            };
            let least = waiting.enumerate().min_by_key(|(at, item)| (importance(item), *at));
            let Some((at, importance)) = least.map(|(at, item)| (at, importance(item))) else {
                return;
            };
            // One text alone is wanted for longer, and ends and errors are kept as long as there is room.
            let is_kept = match importance {
                _ if self.takes_no_time => true,
                3 if self.is_one_text() => seconds <= behind_seconds.saturating_mul(TEXT_PATIENCE),
                0..=3 => false,
                _ => true,
            };
            if is_kept && self.rest.len() <= MAX_WAITING {
                return;
            }
            let Some(item) = self.rest.remove(at) else { return };
            seconds = seconds.saturating_sub(item.seconds(pace));
            self.leave_out(item);
        }
    }

    /// Whether nothing but one text of one agent waits of what agents say.
    fn is_one_text(&self) -> bool {
        let mut replies = self.rest.iter().filter(|it| it.kind == Kind::Reply);
        let Some(first) = replies.next() else { return true };
        replies.all(|it| it.session_id == first.session_id && it.text == first.text)
    }

    /// Keeps what was skipped, the newest of it.
    pub(super) fn skip(&mut self, item: Item) {
        self.skipped.push_back(item);
        if self.skipped.len() > MAX_SKIPPED {
            self.skipped.pop_front();
        }
    }

    pub(super) fn offers(&self, serial: u64) -> bool {
        self.skipped.iter().any(|it| it.serial == serial)
    }

    /// Keeps what an agent said before a question that is over, to be told on request.
    pub(super) fn skip_context(&mut self, asked: AskNumber) {
        let is_it =
            |it: &Item| matches!(it.about, About::Context { number, .. } if number == asked);
        let waiting = std::mem::take(&mut self.critical);
        let (context, rest) = waiting.into_iter().partition::<VecDeque<Item>, _>(is_it);
        self.critical = rest;
        for mut item in context {
            (item.weight, item.about) = (Weight::Normal, About::Nothing);
            self.skip(item);
        }
    }

    /// What was skipped waits again, before what agents have to say since. Says whether there was anything.
    pub(super) fn tell_skipped(&mut self) -> bool {
        if self.skipped.is_empty() {
            return false;
        }
        self.left_out = LeftOut::default();
        let skipped = std::mem::take(&mut self.skipped);
        for item in skipped.into_iter().rev() {
            self.put_back(item);
        }
        true
    }

    fn leave_out(&mut self, item: Item) {
        match (&item.about, item.kind) {
            // Only the newest counts anyway.
            (
                About::LeftOut
                | About::State
                | About::StillRunning
                | About::Line(_)
                | About::Feedback
                | About::Time(_),
                _,
            )
            | (_, Kind::Progress) => return,
            (About::Tools(tools), _) => self.left_out.steps += tools.count(),
            (_, Kind::Doing) => self.left_out.steps += 1,
            (_, Kind::Reply) => self.left_out.replies += 1,
            (_, Kind::Error) => self.left_out.errors += 1,
            _ => self.left_out.others += 1,
        }
        self.skip(item);
    }

    /// What is to be said next, if it may be said now.
    pub(super) fn pop(&mut self, now: Duration, is_due: impl Fn(&Item) -> bool) -> Option<Item> {
        if let Some(item) = self.critical.pop_front() {
            return Some(item);
        }
        let is_news = self.rest.front().is_some_and(Item::is_news);
        let is_told = |at: Duration| now.saturating_sub(at) < LEFT_OUT_PAUSE;
        if !is_news && !self.left_out_told.is_some_and(is_told) {
            let notice = self.tell_left_out(now);
            if notice.is_some() {
                return notice;
            }
        }
        let Some(at) = self.rest.iter().position(is_due) else { return self.tell_left_out(now) };
        let next = self.rest.remove(at);
        if let Some(item) = next.as_ref().filter(|it| it.kind == Kind::Reply) {
            self.reading.clone_from(&item.session_id);
        }
        next
    }

    /// What was left out since that was told last.
    fn tell_left_out(&mut self, now: Duration) -> Option<Item> {
        let words = std::mem::take(&mut self.left_out).said()?;
        self.left_out_told = Some(now);
        let mut item = Item::new(Kind::Notice, Weight::Normal, words, now);
        item.about = About::LeftOut;
        Some(item)
    }

    /// Whether something waits for which this is cut off: what is critical comes before what is not, and of questions
    /// the riskier one before one that has not begun to be told.
    pub(super) fn overtakes(&self, item: &Item, has_begun: bool) -> bool {
        if self.takes_no_time {
            return false;
        }
        if item.weight < Weight::Critical {
            return !self.critical.is_empty();
        }
        let is_riskier = |it: &Item| it.is_question() && it.rank > item.rank;
        item.is_question() && !has_begun && self.critical.front().is_some_and(is_riskier)
    }

    /// Takes what is not critical out of what waits.
    pub(super) fn take(&mut self, is_wanted: impl Fn(&Item) -> bool) -> VecDeque<Item> {
        let waiting = std::mem::take(&mut self.rest);
        let (taken, rest) = waiting.into_iter().partition(is_wanted);
        self.rest = rest;
        taken
    }

    /// Takes away what no longer needs to be said; how much that was.
    pub(super) fn remove(&mut self, is_outdated: impl Fn(&Item) -> bool) -> usize {
        let before = self.critical.len() + self.rest.len();
        self.critical.retain(|it| !is_outdated(it));
        self.rest.retain(|it| !is_outdated(it));
        before - self.critical.len() - self.rest.len()
    }

    /// Skips everything but critical things, how questions were settled, and ends.
    pub(super) fn hush(&mut self) {
        let waiting = std::mem::take(&mut self.rest);
        let is_kept = |it: &Item| it.is_news() && it.about != About::Fact;
        let (news, others) = waiting.into_iter().partition::<VecDeque<Item>, _>(is_kept);
        self.rest = news;
        for item in others {
            self.leave_out(item);
        }
        self.left_out = LeftOut::default();
    }

    pub(super) fn waiting(&self) -> impl Iterator<Item = &Item> {
        self.critical.iter().chain(&self.rest)
    }

    pub(super) fn len(&self) -> usize {
        self.critical.len() + self.rest.len()
    }
}

impl LeftOut {
    fn said(self) -> Option<String> {
        let listed = listening::kinds_left_out(self.errors, self.replies, self.steps, self.others)?;
        Some(listening::too_much(&listed))
    }
}
