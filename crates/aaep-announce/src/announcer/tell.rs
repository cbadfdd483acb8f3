//! Gives utterances to the device, and processes its reports.

use std::time::Duration;

use super::io::{AnnouncerOutcome, AskNumber};
use super::question::{AnnouncedAsk, PresentationProgress};
use super::queue::{QueuedUtterance, UtteranceTopic};
use super::sessions::begin_like_a_label;
use super::{Announcer, CurrentUtterance, DeviceHealth};
use crate::english::{asks, at, listening};
use crate::utterance::{
    DeviceReport, Earcon, Order, Utterance, UtteranceId, UtteranceKind, Weight,
};
use crate::words::{own, own_language, parts, spoken, without_own_marks};

/// If what is being said takes no longer than this, it is said to its end first.
pub(super) const SHORT_REST: Duration = Duration::from_secs(3);
/// How often an utterance is given to a device that interrupts it without an order.
const MAX_TRIES: u8 = 3;
/// The most stopped utterances whose report is awaited.
const MAX_STOPPING: usize = 16;
/// The most utterances of one question that can be answered.
const MAX_IDS: usize = 16;
/// How long a device may take, in addition to a multiple of the estimated duration, before it counts as hanging.
const PATIENCE: Duration = Duration::from_mins(1);
/// This multiple.
const PATIENCE_FACTOR: u32 = 4;

impl Announcer {
    /// Gives the device its next utterance, if it can take one.
    pub(super) fn go_on(&mut self) {
        if !self.is_working() {
            return;
        }
        match &self.current {
            None => {}
            Some(current) if self.makes_way_for_news(current) => self.stop_for_news(),
            Some(current) if self.is_nearly_told(current) => return,
            Some(current)
                if self.queue.overtakes(&current.item, current.has_begun, current.last_serial)
                    || self.makes_way_for_overview(current) =>
            {
                self.stop(false);
            }
            Some(_) => return,
        }
        while self.current.is_none() {
            if !self.queue.is_news_due()
                && let Some(overview) = self.overview()
            {
                self.queue.question_begins();
                self.give_to_device(overview);
                continue;
            }
            let mut queue = std::mem::take(&mut self.queue);
            let waits = self.waits_for_answer();
            let next =
                queue.pop(self.now, waits, |it| self.due_at(it).is_some_and(|at| at <= self.now));
            self.queue = queue;
            match next {
                Some(item) => self.give_to_device(item),
                None => return,
            }
        }
    }

    /// Whether only news, questions and what the person asked for is said now.
    fn waits_for_answer(&self) -> bool {
        self.preferences.one_thing_at_a_time
            && !self.queue.takes_no_time
            && self.questions.values().any(|it| !it.is_answered)
    }

    /// The earliest time at which an utterance may be said, or `None` until a question is answered. Otherwise only
    /// progress has to wait.
    pub(super) fn due_at(&self, item: &QueuedUtterance) -> Option<Duration> {
        let is_wanted = item.weight == Weight::Critical
            || item.is_news()
            || item.is_requested()
            || item.is_again
            || item.kind == UtteranceKind::Notice
            || item.about.question().is_some();
        if !is_wanted && self.waits_for_answer() {
            return None;
        }
        if item.kind != UtteranceKind::Progress {
            return Some(Duration::ZERO);
        }
        let session = item.session_id.as_ref().and_then(|it| self.sessions.get(it));
        let told = session.and_then(|it| it.progress_told);
        let pause = Duration::from_secs(self.preferences.progress_seconds);
        Some(told.map_or(Duration::ZERO, |told| told.saturating_add(pause)))
    }

    fn give_to_device(&mut self, mut item: QueuedUtterance) {
        self.name_ask(&mut item);
        let Some((mut pieces, choices)) = self.parts_of(&item) else { return };
        let words_after = pieces.split_off(pieces.len().min(item.parts_said + 1)).join(" ");
        let words = self.with_agent_name(&item, pieces.pop().unwrap_or_default());
        // Words about listening are ours, except for quotations in them.
        let is_ours = matches!(item.kind, UtteranceKind::Settled | UtteranceKind::Notice);
        let language =
            item.text_language.language.clone().or_else(|| own_language().filter(|_| is_ours));
        let (parts, words) = (parts(&words, language.as_ref()), without_own_marks(&words));
        let id = self.new_id();
        self.said.begin(&item);
        self.telling = item.about.question();
        let number = match item.about {
            UtteranceTopic::Question(number) | UtteranceTopic::Warning(number) => Some(number),
            _ => None,
        };
        let is_last_part = words_after.is_empty();
        if let Some(number) = number {
            let is_whole = is_last_part && matches!(item.about, UtteranceTopic::Question(_));
            self.remember_id(number, id, is_whole);
        }
        let is_continued = item.parts_said > 0 || item.keeps_place;
        item.keeps_place = false;
        if item.about == UtteranceTopic::LeftOut {
            self.events_left_out = 0;
        }
        self.note_agent_spoke(&item);
        if item.kind == UtteranceKind::Progress
            && let Some(session) = item.session_id.as_ref().and_then(|it| self.sessions.get_mut(it))
        {
            session.progress_told = Some(self.now);
        }
        let sound = match item.kind {
            _ if matches!(item.about, UtteranceTopic::Context { .. }) => Some(Earcon::NeedsYou),
            UtteranceKind::Question => Some(Earcon::NeedsYou),
            UtteranceKind::Error => Some(Earcon::Error),
            UtteranceKind::Done => Some(Earcon::Done),
            _ => None,
        };
        if let Some(sound) =
            sound.filter(|_| self.preferences.sounds && item.is_first && !is_continued)
        {
            self.decided.orders.push(Order::Sound(sound));
        }
        let heard = if item.kind.is_exact() { spoken(&words) } else { words.clone() };
        let seconds = self.time_for(&heard);
        let patience = seconds.saturating_mul(PATIENCE_FACTOR).saturating_add(PATIENCE);
        // A person who reads a question by hand keeps it under their fingers, except for news.
        let is_above_question =
            item.is_news() && self.context_on_request && !self.questions.is_empty();
        self.decided.orders.push(Order::Say(Utterance {
            id,
            kind: item.kind,
            weight: if is_above_question { Weight::Critical } else { item.weight },
            words,
            language: item.text_language.language.clone(),
            parts,
            is_right_to_left: item.text_language.is_right_to_left,
            choices,
            number,
            is_continued,
        }));
        self.current = Some(CurrentUtterance {
            id,
            item,
            since: self.now,
            has_begun: false,
            expected: seconds.saturating_add(self.time_for(&words_after)),
            patience,
            is_last_part,
            last_serial: self.queue.last_serial(),
            is_unwanted: false,
        });
    }

    /// Notes which questions of the same session these words of an agent follow.
    fn note_agent_spoke(&mut self, item: &QueuedUtterance) {
        let Some(session_id) = item.session_id.as_ref().filter(|_| item.kind.is_of_agent()) else {
            return;
        };
        for asked in self.questions.values_mut().filter(|it| it.session_id == *session_id) {
            if asked.presentation == PresentationProgress::Whole {
                asked.is_spoken_over = true;
                self.decided.outcomes.push(AnnouncerOutcome::AgentSpoke(asked.number));
            }
        }
    }

    /// Whether the current utterance is news that a voice has nearly said.
    fn is_nearly_told(&self, current: &CurrentUtterance) -> bool {
        !self.context_on_request
            && current.has_begun
            && current.item.is_news()
            && current.item.weight < Weight::Critical
            && self.rest_of(current) <= SHORT_REST
    }

    /// How long the rest of the current utterance takes, with the parts that follow.
    pub(super) fn rest_of(&self, current: &CurrentUtterance) -> Duration {
        current.expected.saturating_sub(self.now.saturating_sub(current.since))
    }

    /// How long the person takes to hear these words.
    fn time_for(&self, words: &str) -> Duration {
        let count = words.split_whitespace().count() as u64;
        Duration::from_secs(count * 60 / self.preferences.pace())
    }

    /// Names the question that an utterance refers to, if another question was asked meanwhile.
    fn name_ask(&self, item: &mut QueuedUtterance) {
        if let UtteranceTopic::Ask(ask) = &item.about
            && ask.asked_count != self.asked_count
        {
            item.words = format!("{} {}", ask.name, item.words);
            item.text_language = ask.text_language.clone();
            item.about = UtteranceTopic::Nothing;
        }
    }

    /// Remembers the newest utterance ids of a question.
    fn remember_id(&mut self, number: AskNumber, id: UtteranceId, is_whole: bool) {
        let Some(question) = self.questions.get_mut(&number) else { return };
        question.ids.push(id);
        if is_whole {
            question.whole_ids.push(id);
        }
        if question.ids.len() > MAX_IDS {
            let oldest = question.ids.remove(0);
            question.whole_ids.retain(|it| *it != oldest);
            self.decided.orders.push(Order::Withdraw(oldest));
        }
    }

    /// Puts the name of the agent before the words, if another agent spoke before, or if it is a question.
    fn with_agent_name(&mut self, item: &QueuedUtterance, words: String) -> String {
        let Some(session_id) = &item.session_id else { return words };
        let label = self.label(Some(session_id));
        let plain = without_own_marks(&words);
        let hub = self.hub_to_name(session_id.hub, &label, &plain).map(str::to_owned);
        let number = match item.about {
            UtteranceTopic::Question(number)
            | UtteranceTopic::Rest(number)
            | UtteranceTopic::Warning(number) => Some(number),
            _ => None,
        };
        let number = number.filter(|_| !self.is_past && self.may_be_several());
        let begins_like_a_name = self.sessions.begin_like_a_name(&plain)
            || item.kind.is_of_agent() && begin_like_a_label(&plain);
        let is_continued = item.parts_said > 0 || !item.is_first;
        let is_next_part = item.about.question().is_some_and(|it| self.telling == Some(it));
        if is_continued && is_next_part && hub.is_none() && !begins_like_a_name {
            return words;
        }
        let who = match (hub, label.as_str()) {
            (None, "") => {
                let number = number.map(|it| own(&asks::about(it)));
                return number.map_or(words.clone(), |it| format!("{it} {words}"));
            }
            (None, label) => label.to_owned(),
            (Some(hub), label) => at(&hub, label),
        };
        let speaker = (session_id.clone(), label.clone());
        let is_other = who != label || self.speaker.as_ref() != Some(&speaker);
        let is_question = item.kind == UtteranceKind::Question;
        let is_context = matches!(item.about, UtteranceTopic::Context { .. });
        let must = is_question || is_context || begins_like_a_name;
        if !(must || self.preferences.names && is_other) {
            return words;
        }
        self.named_hub = Some(session_id.hub);
        self.speaker = Some(speaker);
        if let Some(session) = self.sessions.get_mut(session_id) {
            session.name_is_told();
        }
        let who = match (&item.about, is_question && !label.is_empty(), self.is_past) {
            (UtteranceTopic::Context { .. }, ..) | (_, true, false) if is_continued => {
                asks::goes_on(&who, number)
            }
            (UtteranceTopic::Context { has_more, .. }, ..) => {
                asks::says_before_it_asks(&who, *has_more)
            }
            (_, true, true) => asks::asked(&who),
            (_, true, false) => asks::asks(&who, number),
            (_, false, _) => format!("{who}:"),
        };
        format!("{} {words}", own(&who))
    }

    /// Whether several questions are open, or may soon be, because several agents are active.
    pub(super) fn may_be_several(&self) -> bool {
        self.questions.len() > 1 || self.sessions.live().nth(1).is_some()
    }

    /// Stops the current utterance: to say it again later, or because it is not wanted.
    pub(super) fn stop(&mut self, is_unwanted: bool) {
        let Some(mut current) = self.current.take() else { return };
        self.decided.orders.push(Order::Stop);
        if is_unwanted {
            self.queue.sentence_ended();
        }
        current.is_unwanted = is_unwanted;
        self.stopping.push(current);
        if self.stopping.len() > MAX_STOPPING {
            self.stopping.remove(0);
        }
    }

    /// Processes a report of the device.
    pub(super) fn report(&mut self, report: DeviceReport) {
        // A device that reported itself gone still returns what it had not said. For a device that hung, such a
        // report is a sign of life.
        let shows_life = match report {
            DeviceReport::Cut(_) | DeviceReport::Notice(_) | DeviceReport::Paced { .. } => {
                self.health != DeviceHealth::Gone
            }
            DeviceReport::Trouble(_) => false,
            _ => true,
        };
        match report {
            DeviceReport::Trouble(why) => return self.trouble(why, DeviceHealth::Gone),
            DeviceReport::Hush => self.wish(super::ListeningRequest::Hush),
            DeviceReport::Repeat => self.wish(super::ListeningRequest::Repeat),
            DeviceReport::Back => self.wish(super::ListeningRequest::Back),
            DeviceReport::NoChoice(id) => self.no_choice(id),
            DeviceReport::Began(id) => self.began(id),
            DeviceReport::Ended(id) => self.ended(id),
            DeviceReport::Shown(id) => self.shown(id),
            DeviceReport::Cut(id) => self.cut(id),
            DeviceReport::Chosen(id, at) => self.chosen(id, at),
            DeviceReport::MoreTime(id) => self.more_time(id),
            DeviceReport::Paced { wanted, percent } => self.paced(wanted, percent),
            DeviceReport::Notice(what) => self.notice(&what),
            DeviceReport::Works => {}
        }
        if shows_life && !self.is_working() {
            self.works();
        }
    }

    fn began(&mut self, id: UtteranceId) {
        let at_device = self.current.iter_mut().chain(&mut self.stopping);
        let Some(current) = at_device.into_iter().find(|it| it.id == id) else { return };
        current.has_begun = true;
        if let UtteranceTopic::Overview(numbers) = &current.item.about {
            let numbers = numbers.clone();
            return self.overview_began(&numbers);
        }
        if let UtteranceTopic::Question(number)
        | UtteranceTopic::Context { number, .. }
        | UtteranceTopic::Warning(number) = current.item.about
            && let Some(question) = self.questions.get_mut(&number)
            && !question.has_begun()
        {
            question.presentation = PresentationProgress::Begun;
            self.decided.outcomes.push(AnnouncerOutcome::Presenting(number));
        }
    }

    fn ended(&mut self, id: UtteranceId) {
        // A device without a pace may report only the end.
        self.began(id);
        if self.current.as_ref().is_some_and(|it| it.id == id && !it.is_last_part) {
            return self.part_ended();
        }
        let whole = self.questions.values().find(|it| it.whole_ids.contains(&id));
        if let Some(number) = whole.map(|it| it.number) {
            self.presented(number, PresentationProgress::Whole);
        }
        self.shown(id);
    }

    /// The device has finished the utterance, whether or not the person perceived it to its end.
    fn shown(&mut self, id: UtteranceId) {
        self.began(id);
        let Some(mut said) = self.take(id) else { return };
        self.queue.sentence_ended();
        said.item.parts_said = 0;
        if let UtteranceTopic::Question(number) | UtteranceTopic::Warning(number) = said.item.about
        {
            self.presented(number, PresentationProgress::Left);
        }
        if said.item.about != UtteranceTopic::Feedback {
            self.said.add(said.item);
        }
    }

    fn cut(&mut self, id: UtteranceId) {
        let is_by_us = self.stopping.iter().any(|it| it.id == id);
        let Some(mut cut) = self.take(id) else { return };
        if cut.is_unwanted {
            if let UtteranceTopic::Question(number) | UtteranceTopic::Warning(number) =
                cut.item.about
                && cut.has_begun
            {
                self.presented(number, PresentationProgress::Left);
            }
            self.said.add(cut.item);
            return;
        }
        // The device is not to blame for interruptions by questions, however many there are.
        cut.item.tries += u8::from(!is_by_us);
        if self.is_outdated(&cut.item) {
            return;
        }
        if cut.item.tries < MAX_TRIES {
            self.queue.put_back(cut.item);
        } else if cut.item.weight < Weight::Critical {
            // Not lost: the person can ask for it.
            self.queue.skip(cut.item);
        }
    }

    /// Whether an interrupted utterance need not be said again.
    pub(super) fn is_outdated(&self, item: &QueuedUtterance) -> bool {
        let session = item.session_id.as_ref().and_then(|it| self.sessions.get(it));
        let has_ended = session.is_some_and(|it| !it.is_live());
        match (&item.about, item.kind) {
            (about, _) if about.question().is_some() => {
                about.question().is_none_or(|number| !self.questions.contains_key(&number))
            }
            (UtteranceTopic::Overview(numbers), _) => {
                !numbers.iter().all(|it| self.questions.contains_key(it))
            }
            (_, UtteranceKind::Progress) | (UtteranceTopic::Feedback, _) => true,
            (UtteranceTopic::State, _) => {
                has_ended || session.is_some_and(|it| it.state_since > item.arrived)
            }
            (UtteranceTopic::Tools(_) | UtteranceTopic::StillRunning, _) => has_ended,
            _ => false,
        }
    }

    fn take(&mut self, id: UtteranceId) -> Option<CurrentUtterance> {
        if self.current.as_ref().is_some_and(|it| it.id == id) {
            return self.current.take();
        }
        let at = self.stopping.iter().position(|it| it.id == id)?;
        Some(self.stopping.remove(at))
    }

    /// The person chose an answer. It counts once, and only if the presentation of the question had begun; anything
    /// but a plain no counts only if it had reached its end (ruling 33). Otherwise the person is told so and asked
    /// again.
    fn chosen(&mut self, id: UtteranceId, at: usize) {
        let question = self.questions.values_mut().find(|it| it.ids.contains(&id));
        let Some(question) = question.filter(|it| it.has_begun() && !it.is_answered) else {
            return;
        };
        let Some(answer) = question.answer(at) else { return };
        let number = question.number;
        if !answer.is_no() && question.presentation < PresentationProgress::Whole {
            return self.too_soon(number, asks::TOO_SOON);
        }
        question.is_answered = true;
        let ids = std::mem::take(&mut question.ids);
        if self.current.as_ref().is_some_and(|it| it.id == id) {
            self.stop(true);
        }
        self.decided.orders.extend(ids.into_iter().map(Order::Withdraw));
        self.presented(number, PresentationProgress::Left);
        self.decided.outcomes.push(AnnouncerOutcome::Chosen { number, answer });
    }

    /// The person pressed a key at a question that does not choose an answer.
    fn no_choice(&mut self, id: UtteranceId) {
        let question = self.questions.values().find(|it| it.ids.contains(&id));
        if question.is_some_and(|it| !it.is_answered) {
            self.feedback(asks::NO_CHOICE);
        }
    }

    /// The person answered a question before its end, so it is said again whole.
    pub(super) fn too_soon(&mut self, number: AskNumber, text: &str) {
        self.feedback(text);
        self.queue.restart_questions(|it| it == number);
        let is_it = |item: &QueuedUtterance| item.about == UtteranceTopic::Question(number);
        let waits = self.queue.waiting().any(is_it)
            || self.stopping.iter().any(|it| is_it(&it.item) && !it.is_unwanted);
        let question =
            self.questions.get(&number).filter(|it| it.presentation < PresentationProgress::Whole);
        if let Some(question) = question.filter(|_| !waits).cloned() {
            self.queue_ask(&question, UtteranceTopic::Question(number));
        }
    }

    /// The person wants more time for an unanswered question that they have begun to hear.
    fn more_time(&mut self, id: UtteranceId) {
        let question = self.questions.values().find(|it| it.ids.contains(&id));
        let question = question.filter(|it| it.has_begun() && !it.is_answered);
        self.decided.outcomes.extend(question.map(|it| AnnouncerOutcome::MoreTime(it.number)));
    }

    /// The device does not work: its utterances go back to the queue.
    fn trouble(&mut self, why: String, health: DeviceHealth) {
        if self.is_working() {
            self.decided.outcomes.push(AnnouncerOutcome::Trouble(why));
        }
        self.health = health;
        self.queue.remove(|it| it.about == UtteranceTopic::Feedback);
        let at_device = self.stopping.drain(..).chain(self.current.take()).collect::<Vec<_>>();
        for cut in at_device.into_iter().rev() {
            if !cut.is_unwanted && !self.is_outdated(&cut.item) {
                self.queue.put_back(cut.item);
            }
        }
    }

    /// The device works again: questions that it never presented are announced now.
    fn works(&mut self) {
        self.health = DeviceHealth::Works;
        self.decided.outcomes.push(AnnouncerOutcome::Works);
        let untold = self.questions.values().filter(|it| !it.has_begun());
        let untold: Vec<AnnouncedAsk> = untold.cloned().collect();
        for question in untold {
            let about = UtteranceTopic::Question(question.number);
            if !self.queue.waiting().any(|it| it.about == about) {
                self.queue_ask(&question, about);
            }
        }
    }

    /// A device without a report for far too long counts as not working until it reports again.
    pub(super) fn notice_stall(&mut self) {
        let Some(current) = self.current.as_ref().filter(|_| self.is_working()) else { return };
        if self.now >= current.since.saturating_add(current.patience) {
            // If the device recovers in the middle of the utterance, it must not continue.
            self.decided.orders.push(Order::Stop);
            self.trouble(listening::NO_ANSWER.to_owned(), DeviceHealth::Hangs);
        }
    }

    /// When to repeat a question because its time is nearly over.
    pub(super) fn warning_at(&self, question: &AnnouncedAsk) -> Option<Duration> {
        let before = Duration::from_secs(self.preferences.warning_seconds);
        let is_wanted = !before.is_zero()
            && question.has_begun()
            && !(question.is_warned || question.is_answered);
        question.clock.ends_at().filter(|_| is_wanted).map(|end| end.saturating_sub(before))
    }

    /// Repeats questions whose time is nearly over.
    pub(super) fn warn(&mut self) {
        let now = self.now;
        let is_due = |it: &&AnnouncedAsk| self.warning_at(it).is_some_and(|at| at <= now);
        let due: Vec<AnnouncedAsk> = self.questions.values().filter(is_due).cloned().collect();
        for question in due {
            let number = question.number;
            let is_over = question.remaining(now).is_none_or(|left| left.is_zero());
            if let Some(question) = self.questions.get_mut(&number) {
                question.is_warned = true;
            }
            let is_being_told = |item: &QueuedUtterance| {
                item.about == UtteranceTopic::Question(number)
                    || item.about == UtteranceTopic::Warning(number)
            };
            let waits = self.queue.waiting().any(is_being_told)
                || self.current.as_ref().is_some_and(|it| is_being_told(&it.item));
            if !is_over && !waits {
                self.queue_ask(&question, UtteranceTopic::Warning(number));
            }
        }
    }
}
