//! The utterances that wait: merged, reordered, summarized, and always within limits.

use std::collections::VecDeque;
use std::time::Duration;

use aaep::ActionStakes;

use super::io::{AskNumber, HubNumber};
use super::phrase::TextLanguage;
use super::sessions::HubSessionKey;
use super::tools::WaitingTools;
use crate::english::listening;
use crate::utterance::{UtteranceKind, Weight};

/// The most waiting utterances that are not critical.
pub const MAX_WAITING: usize = 256;
/// The most waiting critical utterances that are not questions, such as errors.
pub const MAX_CRITICAL: usize = 64;
/// The most open questions; the same limit as in a subscriber.
pub const MAX_QUESTIONS: usize = 256;

/// After this much news in a row, a question goes on with a sentence.
const MAX_NEWS_IN_A_ROW: usize = 3;
/// One text of an agent may take this many times longer than everything else that waits, if no other text waits.
const TEXT_PATIENCE: u64 = 6;
/// How many skipped utterances are kept for a person who wants to hear them.
const MAX_SKIPPED: usize = 256;
/// Left-out utterances are announced at most once in this time while something else waits.
const LEFT_OUT_PAUSE: Duration = Duration::from_secs(30);

/// An utterance that waits to be said.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each changes for itself")]
pub(super) struct QueuedUtterance {
    /// Stays the same while it waits, is said, and is said again.
    pub(super) serial: u64,
    pub(super) kind: UtteranceKind,
    pub(super) weight: Weight,
    pub(super) session_id: Option<HubSessionKey>,
    pub(super) words: String,
    pub(super) text_language: TextLanguage,
    pub(super) about: UtteranceTopic,
    /// When its content became known.
    pub(super) arrived: Duration,
    /// How often the device interrupted it without an order.
    pub(super) tries: u8,
    /// Whether the person heard a part of it, so that it must be said again whole.
    pub(super) was_cut: bool,
    /// Whether it is the first or only part of its text.
    pub(super) is_first: bool,
    /// For a question: a larger rank is announced sooner.
    pub(super) rank: Option<ActionStakes>,
    /// The number of the text of its session to which it belongs.
    pub(super) text: u64,
    /// Whether the person asked to hear it again.
    pub(super) is_again: bool,
    /// How many of its parts were said to their end since it was last begun.
    pub(super) parts_said: usize,
    /// Whether the device keeps the place at which it was interrupted.
    pub(super) keeps_place: bool,
}

/// What an utterance is about, in addition to its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UtteranceTopic {
    /// Nothing else.
    Nothing,
    Question(AskNumber),
    /// What an agent said directly before it asked, and whether it said more that the person has not heard.
    Context {
        number: AskNumber,
        has_more: bool,
    },
    /// Several waiting questions: which agent asks what.
    Overview(Vec<AskNumber>),
    /// The part of a long question that was not said.
    Rest(AskNumber),
    /// A question whose time is nearly over.
    Warning(AskNumber),
    /// A change of the time to answer a question.
    Time(AskNumber),
    /// The start of a session. It is not announced after the end.
    Started,
    /// The state of an agent. Only the newest one counts.
    State,
    /// Minor tools, which are counted if there are many.
    Tools(WaitingTools),
    /// A tool that still runs. Only the newest one counts.
    StillRunning,
    /// What really happened, in contradiction to a claim.
    Fact,
    /// The end of a session, and what contradicts the final claim of its agent.
    End,
    /// Something that the person just requested.
    Requested,
    /// The connection to a hub.
    Line(HubNumber),
    /// How much was left out.
    LeftOut,
    /// The result of something that the person typed. It is said at once or never.
    Feedback,
    /// News about a question that is not named, as long as no other question is asked.
    Ask(AskName),
}

/// How to name a question once another question has been asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AskName {
    pub(super) name: String,
    pub(super) text_language: TextLanguage,
    /// How many questions had been asked when this was queued.
    pub(super) asked_count: u64,
}

impl UtteranceTopic {
    /// The question that it belongs to.
    pub(super) fn question(&self) -> Option<AskNumber> {
        match self {
            UtteranceTopic::Question(number)
            | UtteranceTopic::Context { number, .. }
            | UtteranceTopic::Rest(number)
            | UtteranceTopic::Warning(number)
            | UtteranceTopic::Time(number) => Some(*number),
            _ => None,
        }
    }
}

impl QueuedUtterance {
    /// Creates one without a topic.
    pub(super) fn new(
        kind: UtteranceKind,
        weight: Weight,
        words: String,
        arrived: Duration,
    ) -> Self {
        let (text_language, about) = (TextLanguage::default(), UtteranceTopic::Nothing);
        QueuedUtterance {
            serial: 0,
            kind,
            weight,
            session_id: None,
            words,
            text_language,
            about,
            arrived,
            tries: 0,
            was_cut: false,
            is_first: true,
            rank: None,
            text: 0,
            is_again: false,
            parts_said: 0,
            keeps_place: false,
        }
    }

    pub(super) fn is_of(&self, session_id: &HubSessionKey) -> bool {
        self.session_id.as_ref() == Some(session_id)
    }

    pub(super) fn is_question(&self) -> bool {
        matches!(
            self.about,
            UtteranceTopic::Question(_)
                | UtteranceTopic::Context { .. }
                | UtteranceTopic::Warning(_)
        )
    }

    /// Whether only the current sentence, and the first sentence of a new question, come before it.
    pub(super) fn is_news(&self) -> bool {
        match self.about {
            UtteranceTopic::Overview(_) | UtteranceTopic::Feedback => false,
            UtteranceTopic::End | UtteranceTopic::Fact => true,
            _ if self.weight == Weight::Critical => !self.is_question(),
            _ => self.kind == UtteranceKind::Settled,
        }
    }

    /// Whether the person asked for it.
    pub(super) fn is_requested(&self) -> bool {
        matches!(self.about, UtteranceTopic::Requested | UtteranceTopic::Time(_))
    }

    /// How long it takes at this many words per minute.
    fn seconds(&self, pace: u64) -> u64 {
        // A word has about six bytes. Counting the words exactly would cost more than it is worth.
        (self.words.len() as u64 * 10).div_ceil(pace.max(1))
    }
}

/// Counts what was left out because too much was waiting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct LeftOutCounts {
    steps: u64,
    replies: u64,
    errors: u64,
    others: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct UtteranceQueue {
    critical: VecDeque<QueuedUtterance>,
    rest: VecDeque<QueuedUtterance>,
    left_out: LeftOutCounts,
    left_out_told: Option<Duration>,
    /// Skipped utterances, for a person who wants to hear them.
    skipped: VecDeque<QueuedUtterance>,
    /// The session that spoke last.
    reading: Option<HubSessionKey>,
    last_serial: u64,
    /// Whether news waited while a sentence was said to its end, so that it comes before the next one.
    is_news_due: bool,
    /// Whether a sentence of a question came before the news that waits.
    question_came_first: bool,
    /// How much news came since the last sentence of a question.
    news_in_a_row: usize,
    /// Whether the device takes no time, so that everything is announced in the order of arrival.
    pub(super) takes_no_time: bool,
}

impl UtteranceQueue {
    /// Adds an utterance, then drops others until the queue is within its limits.
    pub(super) fn push(&mut self, mut item: QueuedUtterance, pace: u64, behind_seconds: u64) {
        self.number(&mut item);
        if item.weight == Weight::Critical {
            return self.push_critical(item);
        }
        if item.kind == UtteranceKind::Progress {
            self.rest.retain(|it| {
                it.kind != UtteranceKind::Progress || it.session_id != item.session_id
            });
        }
        self.make_room_for(&item, behind_seconds);
        let at = match item.kind {
            _ if self.takes_no_time => self.rest.len(),
            // Settlements and ends come before everything that already waited.
            UtteranceKind::Settled => {
                self.rest.iter().take_while(|it| it.kind == UtteranceKind::Settled).count()
            }
            _ if item.about == UtteranceTopic::Fact => self.after_claim(item.session_id.as_ref()),
            _ if item.is_news() => self.after_news(),
            _ if item.is_requested() => self.after_requested(),
            UtteranceKind::Error => self.make_way_for_news(item.session_id.as_ref()),
            _ => self.rest.len(),
        };
        self.rest.insert(at, item);
        self.keep_up(pace, behind_seconds);
    }

    /// Leaves out utterances that waited for very long when another agent has something newer. The agent that is
    /// being read is read to the end, however long that takes.
    fn make_room_for(&mut self, item: &QueuedUtterance, behind_seconds: u64) {
        if item.session_id.is_none() || item.weight < Weight::Normal {
            return;
        }
        let patience = Duration::from_secs(behind_seconds.saturating_mul(TEXT_PATIENCE));
        let is_stale = |it: &QueuedUtterance| {
            item.arrived.saturating_sub(it.arrived) > patience
                && it.session_id != item.session_id
                && it.session_id != self.reading
                // A claim must not be announced without the fact that contradicts it.
                && !(it.was_cut || it.is_news())
        };
        let waiting = std::mem::take(&mut self.rest);
        let (stale, rest) = waiting.into_iter().partition::<VecDeque<QueuedUtterance>, _>(is_stale);
        self.rest = rest;
        for it in stale {
            self.leave_out(it);
        }
    }

    /// The position after the waiting news.
    fn after_news(&self) -> usize {
        self.rest.iter().take_while(|it| it.is_news()).count()
    }

    /// The position after earlier requests of the person.
    fn after_requested(&self) -> usize {
        let is_before = |it: &&QueuedUtterance| it.is_news() || it.is_requested();
        self.rest.iter().take_while(is_before).count()
    }

    /// The position of a fact: directly after the claim that it contradicts.
    fn after_claim(&self, session_id: Option<&HubSessionKey>) -> usize {
        let claim = self.rest.iter().rposition(|it| it.session_id.as_ref() == session_id);
        claim.map_or(0, |at| at + 1)
    }

    /// The position of a tool failure: after earlier actions of its agent, but before long texts of any agent. One
    /// sentence of such a text goes first, so that a tool that fails repeatedly silences nobody. Small steps of the
    /// session that would come after their own result are dropped.
    fn make_way_for_news(&mut self, session_id: Option<&HubSessionKey>) -> usize {
        let is_own = |it: &QueuedUtterance| it.session_id.as_ref() == session_id;
        let is_step = |it: &QueuedUtterance| it.weight < Weight::Normal && !it.was_cut;
        let is_text = |it: &QueuedUtterance| {
            it.kind == UtteranceKind::Reply || it.about == UtteranceTopic::Fact
        };
        let own = self.rest.iter().rposition(|it| is_own(it) && !is_step(it) && !is_text(it));
        let mut at = own.map_or(0, |at| at + 1).max(self.after_requested());
        let errors = |at: usize| {
            self.rest.iter().skip(at).take_while(|it| it.kind == UtteranceKind::Error).count()
        };
        at += errors(at);
        if self.rest.get(at).is_some_and(|it| it.kind == UtteranceKind::Reply) {
            at += 1;
            at +=
                self.rest.iter().skip(at).take_while(|it| it.about == UtteranceTopic::Fact).count();
            at += errors(at);
        }
        let later = self.rest.split_off(at);
        self.rest.extend(later.into_iter().filter(|it| !(is_own(it) && is_step(it))));
        at
    }

    /// Puts back an interrupted utterance, before everything of its weight except riskier questions.
    pub(super) fn put_back(&mut self, mut item: QueuedUtterance) {
        self.number(&mut item);
        // An interrupted question is said again whole.
        (item.was_cut, item.parts_said) = (true, 0);
        if item.weight == Weight::Critical {
            let is_before = |it: &&QueuedUtterance| it.is_question() && it.rank > item.rank;
            let before = self.critical.iter().take_while(is_before).count();
            self.critical.insert(if item.is_question() { before } else { 0 }, item);
        } else if self.rest.len() < MAX_WAITING {
            let at = if item.is_news() { 0 } else { self.after_news() };
            self.rest.insert(at, item);
        } else {
            self.leave_out(item);
        }
    }

    /// The next part of an utterance comes before everything else that waits, except news.
    pub(super) fn put_next_part(&mut self, item: QueuedUtterance) {
        self.critical.push_front(item);
    }

    /// Says these questions from their beginning, even if the person heard a part of them.
    pub(super) fn restart_questions(&mut self, is_it: impl Fn(AskNumber) -> bool) {
        let questions =
            self.critical.iter_mut().filter(|it| it.about.question().is_some_and(&is_it));
        questions.for_each(|it| it.parts_said = 0);
    }

    /// A sentence was said to its end: news that waited for it comes next.
    pub(super) fn sentence_ended(&mut self) {
        self.is_news_due = !self.takes_no_time && self.has_news();
        self.question_came_first &= self.is_news_due;
    }

    pub(super) fn has_news(&self) -> bool {
        self.rest.front().is_some_and(QueuedUtterance::is_news)
            || self.critical.iter().any(QueuedUtterance::is_news)
    }

    /// Whether news comes next, even before questions. A new question comes first with one sentence, or after one
    /// piece of news if a sentence of another question came before that.
    pub(super) fn is_news_due(&self) -> bool {
        let comes_first = |it: &QueuedUtterance| {
            let is_new = it.is_question() && it.parts_said == 0 && !it.keeps_place;
            let has_waited = !self.question_came_first || self.news_in_a_row > 0;
            it.about == UtteranceTopic::Feedback || is_new && has_waited
        };
        self.is_news_due
            && self.has_news()
            && self.news_in_a_row < MAX_NEWS_IN_A_ROW
            && !self.critical.front().is_some_and(comes_first)
    }

    /// A sentence of a question begins.
    pub(super) fn question_begins(&mut self) {
        (self.question_came_first, self.news_in_a_row) = (self.has_news(), 0);
    }

    fn pop_news(&mut self) -> Option<QueuedUtterance> {
        self.news_in_a_row += 1;
        match self.critical.iter().position(QueuedUtterance::is_news) {
            Some(at) => self.critical.remove(at),
            None => self.rest.pop_front_if(|it| it.is_news()),
        }
    }

    /// The serial number of the newest utterance.
    pub(super) fn last_serial(&self) -> u64 {
        self.last_serial
    }

    fn number(&mut self, item: &mut QueuedUtterance) {
        if item.serial == 0 {
            self.last_serial += 1;
            item.serial = self.last_serial;
        }
    }

    fn push_critical(&mut self, item: QueuedUtterance) {
        let others = self.critical.iter().filter(|it| !it.is_question()).count();
        if self.takes_no_time && others + self.rest.len() < MAX_CRITICAL {
            // Earlier utterances are announced before it.
            self.critical.extend(self.rest.drain(..));
            return self.critical.push_back(item);
        }
        if !item.is_question() && others >= MAX_CRITICAL {
            self.left_out.errors += 1;
            return;
        }
        // Questions come before errors. The riskiest question is announced first, and among equal ones the oldest.
        let is_less = |it: &QueuedUtterance| match it.about {
            UtteranceTopic::Feedback | UtteranceTopic::Overview(_) => false,
            _ => !it.is_question() || it.rank < item.rank,
        };
        let at = self.critical.iter().position(is_less).filter(|_| item.is_question());
        self.critical.insert(at.unwrap_or(self.critical.len()), item);
    }

    /// Merges a tool into the last waiting utterance of its session, if both are of the same kind.
    pub(super) fn merge(
        &mut self,
        session_id: Option<&HubSessionKey>,
        tools: &WaitingTools,
    ) -> bool {
        let last = self.rest.iter_mut().rev().find(|it| it.session_id.as_ref() == session_id);
        let Some(last) = last else { return false };
        let UtteranceTopic::Tools(waiting) = &mut last.about else { return false };
        if !waiting.merge(tools) {
            return false;
        }
        last.words = waiting.said();
        true
    }

    /// Leaves out the least important utterances, the oldest first, until not too much waits.
    fn keep_up(&mut self, pace: u64, behind_seconds: u64) {
        let mut seconds: u64 = self.rest.iter().map(|it| it.seconds(pace)).sum();
        while self.rest.len() > MAX_WAITING || seconds > behind_seconds.max(1) {
            // The newest one is always kept: a person who listens slowly hears at least that.
            let waiting = self.rest.iter().take(self.rest.len().saturating_sub(1));
            let importance = |item: &QueuedUtterance| match item.kind {
                _ if item.was_cut => 4,
                UtteranceKind::Progress => 0,
                UtteranceKind::Doing if item.weight == Weight::Background => 1,
                UtteranceKind::Doing => 2,
                UtteranceKind::Reply => 3,
                UtteranceKind::Notice => 4,
                UtteranceKind::Done
                | UtteranceKind::Settled
                | UtteranceKind::Error
                | UtteranceKind::Question => 5,
            };
            let least = waiting.enumerate().min_by_key(|(at, item)| (importance(item), *at));
            let Some((at, importance)) = least.map(|(at, item)| (at, importance(item))) else {
                return;
            };
            // A single text may wait for longer. Ends and errors are kept as long as there is room.
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

    /// Whether all waiting words of agents are one text of one agent.
    fn is_one_text(&self) -> bool {
        let mut replies = self.rest.iter().filter(|it| it.kind == UtteranceKind::Reply);
        let Some(first) = replies.next() else { return true };
        replies.all(|it| it.session_id == first.session_id && it.text == first.text)
    }

    /// Keeps a skipped utterance; the oldest ones are dropped.
    pub(super) fn skip(&mut self, item: QueuedUtterance) {
        self.skipped.push_back(item);
        if self.skipped.len() > MAX_SKIPPED {
            self.skipped.pop_front();
        }
    }

    pub(super) fn offers(&self, serial: u64) -> bool {
        self.skipped.iter().any(|it| it.serial == serial)
    }

    /// Keeps the context of a question that is over, to be said on request.
    pub(super) fn skip_context(&mut self, asked: AskNumber) {
        let is_it = |it: &QueuedUtterance| match it.about {
            UtteranceTopic::Context { number, .. } => number == asked,
            _ => false,
        };
        let waiting = std::mem::take(&mut self.critical);
        let (context, rest) = waiting.into_iter().partition::<VecDeque<QueuedUtterance>, _>(is_it);
        self.critical = rest;
        for mut item in context {
            (item.weight, item.about) = (Weight::Normal, UtteranceTopic::Nothing);
            self.skip(item);
        }
    }

    /// Queues all skipped utterances again, before newer words of agents. Returns whether there were any.
    pub(super) fn tell_skipped(&mut self) -> bool {
        if self.skipped.is_empty() {
            return false;
        }
        self.left_out = LeftOutCounts::default();
        let skipped = std::mem::take(&mut self.skipped);
        for item in skipped.into_iter().rev() {
            self.put_back(item);
        }
        true
    }

    fn leave_out(&mut self, item: QueuedUtterance) {
        match (&item.about, item.kind) {
            // Only the newest of these counts.
            (
                UtteranceTopic::LeftOut
                | UtteranceTopic::State
                | UtteranceTopic::StillRunning
                | UtteranceTopic::Line(_)
                | UtteranceTopic::Feedback
                | UtteranceTopic::Time(_),
                _,
            )
            | (_, UtteranceKind::Progress) => return,
            (UtteranceTopic::Tools(tools), _) => self.left_out.steps += tools.count(),
            (_, UtteranceKind::Doing) => self.left_out.steps += 1,
            (_, UtteranceKind::Reply) => self.left_out.replies += 1,
            (_, UtteranceKind::Error) => self.left_out.errors += 1,
            _ => self.left_out.others += 1,
        }
        self.skip(item);
    }

    /// Takes the next utterance, if it may be said now. With `waits_for_answer`, nothing is said about what was left out.
    pub(super) fn pop(
        &mut self,
        now: Duration,
        waits_for_answer: bool,
        is_due: impl Fn(&QueuedUtterance) -> bool,
    ) -> Option<QueuedUtterance> {
        if self.is_news_due() {
            return self.pop_news();
        }
        if let Some(item) = self.critical.pop_front() {
            if !item.is_news() {
                self.question_begins();
            }
            return Some(item);
        }
        let is_news = self.rest.front().is_some_and(QueuedUtterance::is_news);
        let is_told = |at: Duration| now.saturating_sub(at) < LEFT_OUT_PAUSE;
        if !(is_news || waits_for_answer || self.left_out_told.is_some_and(is_told)) {
            let notice = self.tell_left_out(now);
            if notice.is_some() {
                return notice;
            }
        }
        let Some(at) = self.rest.iter().position(is_due) else {
            return if waits_for_answer { None } else { self.tell_left_out(now) };
        };
        let next = self.rest.remove(at);
        if let Some(item) = next.as_ref().filter(|it| it.kind == UtteranceKind::Reply) {
            self.reading.clone_from(&item.session_id);
        }
        next
    }

    /// Announces what was left out since the last such announcement.
    fn tell_left_out(&mut self, now: Duration) -> Option<QueuedUtterance> {
        let words = std::mem::take(&mut self.left_out).said()?;
        self.left_out_told = Some(now);
        let mut item = QueuedUtterance::new(UtteranceKind::Notice, Weight::Normal, words, now);
        item.about = UtteranceTopic::LeftOut;
        Some(item)
    }

    /// Whether a waiting utterance interrupts this one. Critical ones interrupt others, and a riskier question
    /// interrupts a question that has not begun. News is interrupted only by what came after it began, because it was
    /// its turn before the rest of a question.
    pub(super) fn overtakes(
        &self,
        item: &QueuedUtterance,
        has_begun: bool,
        last_serial: u64,
    ) -> bool {
        if self.takes_no_time {
            return false;
        }
        if item.weight < Weight::Critical {
            let is_after = |it: &QueuedUtterance| !item.is_news() || it.serial > last_serial;
            return self.critical.iter().any(is_after);
        }
        let is_riskier = |it: &QueuedUtterance| it.is_question() && it.rank > item.rank;
        let has_begun = has_begun || item.parts_said > 0;
        item.is_question() && !has_begun && self.critical.front().is_some_and(is_riskier)
    }

    /// Takes matching utterances out of the queue, except critical ones.
    pub(super) fn take(
        &mut self,
        is_wanted: impl Fn(&QueuedUtterance) -> bool,
    ) -> VecDeque<QueuedUtterance> {
        let waiting = std::mem::take(&mut self.rest);
        let (taken, rest) = waiting.into_iter().partition(is_wanted);
        self.rest = rest;
        taken
    }

    /// Removes outdated utterances and returns how many there were.
    pub(super) fn remove(&mut self, is_outdated: impl Fn(&QueuedUtterance) -> bool) -> usize {
        let before = self.critical.len() + self.rest.len();
        self.critical.retain(|it| !is_outdated(it));
        self.rest.retain(|it| !is_outdated(it));
        before - self.critical.len() - self.rest.len()
    }

    /// Skips everything except critical utterances, settlements and ends.
    pub(super) fn hush(&mut self) {
        let waiting = std::mem::take(&mut self.rest);
        let is_kept = |it: &QueuedUtterance| it.is_news() && it.about != UtteranceTopic::Fact;
        let (news, others) = waiting.into_iter().partition::<VecDeque<QueuedUtterance>, _>(is_kept);
        self.rest = news;
        for item in others {
            self.leave_out(item);
        }
        self.left_out = LeftOutCounts::default();
    }

    pub(super) fn waiting(&self) -> impl Iterator<Item = &QueuedUtterance> {
        self.critical.iter().chain(&self.rest)
    }

    pub(super) fn len(&self) -> usize {
        self.critical.len() + self.rest.len()
    }
}

impl LeftOutCounts {
    fn said(self) -> Option<String> {
        let listed = listening::kinds_left_out(self.errors, self.replies, self.steps, self.others)?;
        Some(listening::too_much(&listed))
    }
}
