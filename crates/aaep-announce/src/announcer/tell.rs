//! What goes to the device, and what comes back from it.

use std::time::Duration;

use super::io::{AskNumber, Outcome};
use super::question::{Question, Telling};
use super::queue::{About, Item};
use super::{Announcer, Current, DeviceHealth};
use crate::english::{asks, at, listening};
use crate::utterance::{Earcon, Kind, Order, Report, Utterance, UtteranceId};
use crate::words::{own, own_language, parts, spoken, without_own_marks};

/// How often something is given to a device that cuts it off by itself.
const MAX_TRIES: u8 = 3;
/// How many stopped utterances are waited for.
const MAX_STOPPING: usize = 16;
/// How many utterances of one question can be answered at once.
const MAX_IDS: usize = 16;
/// How long a device may take, beyond a multiple of what the words take, before it counts as hanging.
const PATIENCE: Duration = Duration::from_mins(1);
/// That multiple.
const PATIENCE_FACTOR: u32 = 4;

impl Announcer {
    /// Gives the device the next thing to say, if it may have one.
    pub(super) fn go_on(&mut self) {
        if !self.is_working() {
            return;
        }
        match &self.current {
            None => {}
            Some(current)
                if self.queue.overtakes(&current.item, current.has_begun)
                    || self.makes_way_for_overview(current) =>
            {
                self.stop(false);
            }
            Some(_) => return,
        }
        while self.current.is_none() {
            if let Some(overview) = self.overview() {
                self.give(overview);
                continue;
            }
            let mut queue = std::mem::take(&mut self.queue);
            let next = queue.pop(self.now, |it| self.due_at(it) <= self.now);
            self.queue = queue;
            match next {
                Some(item) => self.give(item),
                None => return,
            }
        }
    }

    /// From when on something may be said. Only progress waits for its time.
    pub(super) fn due_at(&self, item: &Item) -> Duration {
        if item.kind != Kind::Progress {
            return Duration::ZERO;
        }
        let session = item.session_id.as_ref().and_then(|it| self.sessions.get(it));
        let told = session.and_then(|it| it.progress_told);
        let pause = Duration::from_secs(self.preferences.progress_seconds);
        told.map_or(Duration::ZERO, |told| told.saturating_add(pause))
    }

    fn give(&mut self, mut item: Item) {
        self.name_ask(&mut item);
        let Some((words, choices)) = self.words_of(&item) else { return };
        let words = self.named(&item, words);
        // What is about listening is ours but for what it quotes.
        let is_ours = matches!(item.kind, Kind::Settled | Kind::Notice);
        let language = item.tongue.language.clone().or_else(|| own_language().filter(|_| is_ours));
        let (parts, words) = (parts(&words, language.as_ref()), without_own_marks(&words));
        let id = self.new_id();
        self.said.begin(&item);
        let number = match item.about {
            About::Question(number) | About::Warning(number) => Some(number),
            _ => None,
        };
        if let Some(number) = number {
            self.remember_id(number, id, matches!(item.about, About::Question(_)));
        }
        if item.about == About::LeftOut {
            self.events_left_out = 0;
        }
        if item.kind == Kind::Progress
            && let Some(session) = item.session_id.as_ref().and_then(|it| self.sessions.get_mut(it))
        {
            session.progress_told = Some(self.now);
        }
        let sound = match item.kind {
            _ if matches!(item.about, About::Context { .. }) => Some(Earcon::NeedsYou),
            Kind::Question => Some(Earcon::NeedsYou),
            Kind::Error => Some(Earcon::Error),
            Kind::Done => Some(Earcon::Done),
            _ => None,
        };
        if let Some(sound) = sound.filter(|_| self.preferences.sounds && item.is_first) {
            self.decided.orders.push(Order::Sound(sound));
        }
        let heard = if item.kind.is_exact() { spoken(&words) } else { words.clone() };
        let count = heard.split_whitespace().count() as u64;
        let seconds = Duration::from_secs(count * 60 / self.preferences.pace());
        let patience = seconds.saturating_mul(PATIENCE_FACTOR).saturating_add(PATIENCE);
        self.decided.orders.push(Order::Say(Utterance {
            id,
            kind: item.kind,
            weight: item.weight,
            words,
            language: item.tongue.language.clone(),
            parts,
            is_right_to_left: item.tongue.is_right_to_left,
            choices,
            number,
        }));
        let since = self.now;
        let (has_begun, takes, is_unwanted) = (false, seconds, false);
        self.current = Some(Current { id, item, since, has_begun, takes, patience, is_unwanted });
    }

    /// Names the question of which something is told, if another one was asked since that became known.
    fn name_ask(&self, item: &mut Item) {
        if let About::Ask(ask) = &item.about
            && ask.asked != self.asked
        {
            item.words = format!("{} {}", ask.name, item.words);
            item.tongue = ask.tongue.clone();
            item.about = About::Nothing;
        }
    }

    /// Remembers under which ids a question went to the device, the last few of them.
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

    /// The words and the choices of something as they are now; nothing if it is outdated.
    fn words_of(&self, item: &Item) -> Option<(String, Vec<crate::Choice>)> {
        let is_many = self.may_be_several();
        let question = |number: &AskNumber| self.questions.get(number).filter(|it| !it.is_answered);
        match &item.about {
            About::Question(number) => {
                let question = question(number)?;
                if self.is_past {
                    return Some((question.past(), Vec::new()));
                }
                Some((question.words(self.now, self.queue.takes_no_time), question.choices()))
            }
            About::Warning(number) => {
                let question = question(number)?;
                Some((question.warning(self.now), question.choices()))
            }
            About::Context { number, .. } => {
                question(number)?;
                Some((item.words.clone(), Vec::new()))
            }
            About::Time(number) => {
                let number_of = if is_many { asks::about(*number) } else { String::new() };
                let said = question(number)?.time_now(self.now, &item.words);
                Some((format!("{number_of} {said}").trim_start().to_owned(), Vec::new()))
            }
            _ => Some((item.words.clone(), Vec::new())),
        }
    }

    /// The words with the name of who speaks, if another one spoke before, or if it asks.
    fn named(&mut self, item: &Item, words: String) -> String {
        let Some(session_id) = &item.session_id else { return words };
        let label = self.label(Some(session_id));
        let plain = without_own_marks(&words);
        let hub = self.hub_to_name(session_id.hub, &label, &plain).map(str::to_owned);
        let number = match item.about {
            About::Question(number) | About::Rest(number) | About::Warning(number) => Some(number),
            _ => None,
        };
        let number = number.filter(|_| !self.is_past && self.may_be_several());
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
        let is_question = item.kind == Kind::Question;
        let is_context = matches!(item.about, About::Context { .. });
        let must = is_question || is_context || self.sessions.begin_like_a_name(&plain);
        if !(must || self.preferences.names && is_other) {
            return words;
        }
        self.named_hub = Some(session_id.hub);
        self.speaker = Some(speaker);
        let who = match (&item.about, is_question && !label.is_empty(), self.is_past) {
            (About::Context { has_more, .. }, ..) => asks::says_before_it_asks(&who, *has_more),
            (_, true, true) => asks::asked(&who),
            (_, true, false) => asks::asks(&who, number),
            (_, false, _) => format!("{who}:"),
        };
        format!("{} {words}", own(&who))
    }

    /// Whether more than one question is open, or may be at any time because several agents are at work.
    fn may_be_several(&self) -> bool {
        self.questions.len() > 1 || self.sessions.live().nth(1).is_some()
    }

    /// Stops what is being said: to be said again later, or because nobody wants it.
    pub(super) fn stop(&mut self, is_unwanted: bool) {
        let Some(mut current) = self.current.take() else { return };
        self.decided.orders.push(Order::Stop);
        current.is_unwanted = is_unwanted;
        self.stopping.push(current);
        if self.stopping.len() > MAX_STOPPING {
            self.stopping.remove(0);
        }
    }

    /// What the device tells.
    pub(super) fn report(&mut self, report: Report) {
        // A device that says that it is gone still gives back what it had not told. One that hung shows life with that.
        let shows_life = match report {
            Report::Cut(_) | Report::Notice(_) | Report::Paced { .. } => {
                self.health != DeviceHealth::Gone
            }
            Report::Trouble(_) => false,
            _ => true,
        };
        match report {
            Report::Trouble(why) => return self.trouble(why, DeviceHealth::Gone),
            Report::Hush => self.wish(super::Wish::Hush),
            Report::Repeat => self.wish(super::Wish::Repeat),
            Report::Back => self.wish(super::Wish::Back),
            Report::NoChoice(id) => self.no_choice(id),
            Report::Began(id) => self.began(id),
            Report::Ended(id) => self.ended(id),
            Report::Shown(id) => self.shown(id),
            Report::Cut(id) => self.cut(id),
            Report::Chosen(id, at) => self.chosen(id, at),
            Report::MoreTime(id) => self.more_time(id),
            Report::Paced { wanted, percent } => self.paced(wanted, percent),
            Report::Notice(what) => self.notice(&what),
            Report::Works => {}
        }
        if shows_life && !self.is_working() {
            self.works();
        }
    }

    fn began(&mut self, id: UtteranceId) {
        let at_device = self.current.iter_mut().chain(&mut self.stopping);
        let Some(current) = at_device.into_iter().find(|it| it.id == id) else { return };
        current.has_begun = true;
        if let About::Overview(numbers) = &current.item.about {
            let numbers = numbers.clone();
            return self.overview_began(&numbers);
        }
        if let About::Question(number) | About::Context { number, .. } | About::Warning(number) =
            current.item.about
            && let Some(question) = self.questions.get_mut(&number)
            && !question.has_begun()
        {
            question.told = Telling::Begun;
            self.decided.outcomes.push(Outcome::Presenting(number));
        }
    }

    fn ended(&mut self, id: UtteranceId) {
        // A device that does not pace may tell the end alone.
        self.began(id);
        let whole = self.questions.values().find(|it| it.whole_ids.contains(&id));
        if let Some(number) = whole.map(|it| it.number) {
            self.presented(number, Telling::Whole);
        }
        self.shown(id);
    }

    /// The device is done with it, whether or not it was perceived to its end.
    fn shown(&mut self, id: UtteranceId) {
        self.began(id);
        let Some(said) = self.take(id) else { return };
        if let About::Question(number) | About::Warning(number) = said.item.about {
            self.presented(number, Telling::Left);
        }
        if said.item.about != About::Feedback {
            self.said.add(said.item);
        }
    }

    fn cut(&mut self, id: UtteranceId) {
        let is_by_us = self.stopping.iter().any(|it| it.id == id);
        let Some(mut cut) = self.take(id) else { return };
        if cut.is_unwanted {
            if let About::Question(number) | About::Warning(number) = cut.item.about
                && cut.has_begun
            {
                self.presented(number, Telling::Left);
            }
            self.said.add(cut.item);
            return;
        }
        // What questions interrupted, however often, is no fault of the device.
        cut.item.tries += u8::from(!is_by_us);
        if cut.item.tries < MAX_TRIES && !self.is_outdated(&cut.item) {
            self.queue.put_back(cut.item);
        }
    }

    /// Whether something that was cut off need not be said again.
    fn is_outdated(&self, item: &Item) -> bool {
        let session = item.session_id.as_ref().and_then(|it| self.sessions.get(it));
        let has_ended = session.is_some_and(|it| !it.is_live());
        match (&item.about, item.kind) {
            (about, _) if about.question().is_some() => {
                about.question().is_none_or(|number| !self.questions.contains_key(&number))
            }
            (About::Overview(numbers), _) => {
                !numbers.iter().all(|it| self.questions.contains_key(it))
            }
            (_, Kind::Progress) | (About::Feedback, _) => true,
            (About::State, _) => {
                has_ended || session.is_some_and(|it| it.state_since > item.arrived)
            }
            (About::Tools(_) | About::StillRunning, _) => has_ended,
            _ => false,
        }
    }

    fn take(&mut self, id: UtteranceId) -> Option<Current> {
        if self.current.as_ref().is_some_and(|it| it.id == id) {
            return self.current.take();
        }
        let at = self.stopping.iter().position(|it| it.id == id)?;
        Some(self.stopping.remove(at))
    }

    /// The person chose an answer. It counts once, and only if the question had begun to be told; if it is not a plain
    /// no, only if the question was told to its end (ruling 33). Otherwise the person is told so, and asked again.
    fn chosen(&mut self, id: UtteranceId, at: usize) {
        let question = self.questions.values_mut().find(|it| it.ids.contains(&id));
        let Some(question) = question.filter(|it| it.has_begun() && !it.is_answered) else {
            return;
        };
        let Some(answer) = question.answer(at) else { return };
        let number = question.number;
        if !answer.is_no() && question.told < Telling::Whole {
            return self.too_soon(number, asks::TOO_SOON);
        }
        question.is_answered = true;
        let ids = std::mem::take(&mut question.ids);
        if self.current.as_ref().is_some_and(|it| it.id == id) {
            self.stop(true);
        }
        self.decided.orders.extend(ids.into_iter().map(Order::Withdraw));
        self.presented(number, Telling::Left);
        self.decided.outcomes.push(Outcome::Chosen { number, answer });
    }

    /// The person pressed something at a question that is no answer.
    fn no_choice(&mut self, id: UtteranceId) {
        let question = self.questions.values().find(|it| it.ids.contains(&id));
        if question.is_some_and(|it| !it.is_answered) {
            self.feedback(asks::NO_CHOICE);
        }
    }

    /// The person answered a question that they cannot know to its end. It is told again whole.
    pub(super) fn too_soon(&mut self, number: AskNumber, text: &str) {
        self.feedback(text);
        let is_it = |item: &Item| item.about == About::Question(number);
        let waits = self.queue.waiting().any(is_it)
            || self.stopping.iter().any(|it| is_it(&it.item) && !it.is_unwanted);
        let question = self.questions.get(&number).filter(|it| it.told < Telling::Whole);
        if let Some(question) = question.filter(|_| !waits).cloned() {
            self.ask(&question, About::Question(number));
        }
    }

    /// The person wants more time for a question that they have begun to hear and not answered.
    fn more_time(&mut self, id: UtteranceId) {
        let question = self.questions.values().find(|it| it.ids.contains(&id));
        let question = question.filter(|it| it.has_begun() && !it.is_answered);
        self.decided.outcomes.extend(question.map(|it| Outcome::MoreTime(it.number)));
    }

    /// The device does not work: what it had goes back to what waits.
    fn trouble(&mut self, why: String, health: DeviceHealth) {
        if self.is_working() {
            self.decided.outcomes.push(Outcome::Trouble(why));
        }
        self.health = health;
        self.queue.remove(|it| it.about == About::Feedback);
        let at_device = self.stopping.drain(..).chain(self.current.take()).collect::<Vec<_>>();
        for cut in at_device.into_iter().rev() {
            if !cut.is_unwanted && !self.is_outdated(&cut.item) {
                self.queue.put_back(cut.item);
            }
        }
    }

    /// The device works again: questions that it never told are told now.
    fn works(&mut self) {
        self.health = DeviceHealth::Works;
        self.decided.outcomes.push(Outcome::Works);
        let untold = self.questions.values().filter(|it| !it.has_begun());
        let untold: Vec<Question> = untold.cloned().collect();
        for question in untold {
            let about = About::Question(question.number);
            if !self.queue.waiting().any(|it| it.about == about) {
                self.ask(&question, about);
            }
        }
    }

    /// A device that says nothing for far too long counts as one that does not work, until it reports again.
    pub(super) fn notice_stall(&mut self) {
        let Some(current) = self.current.as_ref().filter(|_| self.is_working()) else { return };
        if self.now >= current.since.saturating_add(current.patience) {
            // Should it come back to life in the midst of it, it does not go on.
            self.decided.orders.push(Order::Stop);
            self.trouble(listening::NO_ANSWER.to_owned(), DeviceHealth::Hangs);
        }
    }

    /// When a question is told again because its time is nearly over.
    pub(super) fn warning_at(&self, question: &Question) -> Option<Duration> {
        let before = Duration::from_secs(self.preferences.warning_seconds);
        let is_wanted = !before.is_zero()
            && question.has_begun()
            && !(question.is_warned || question.is_answered);
        question.clock.ends_at().filter(|_| is_wanted).map(|end| end.saturating_sub(before))
    }

    /// Tells questions again whose time is nearly over.
    pub(super) fn warn(&mut self) {
        let now = self.now;
        let is_due = |it: &&Question| self.warning_at(it).is_some_and(|at| at <= now);
        let due: Vec<Question> = self.questions.values().filter(is_due).cloned().collect();
        for question in due {
            let number = question.number;
            let is_over = question.remaining(now).is_none_or(|left| left.is_zero());
            if let Some(question) = self.questions.get_mut(&number) {
                question.is_warned = true;
            }
            let is_being_told = |item: &Item| {
                item.about == About::Question(number) || item.about == About::Warning(number)
            };
            let waits = self.queue.waiting().any(is_being_told)
                || self.current.as_ref().is_some_and(|it| is_being_told(&it.item));
            if !is_over && !waits {
                self.ask(&question, About::Warning(number));
            }
        }
    }
}
