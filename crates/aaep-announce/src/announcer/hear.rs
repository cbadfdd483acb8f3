//! What comes in from agents and from the line.

use std::collections::BTreeMap;
use std::time::Duration;

use aaep::event::action::{OutputStreaming, ToolCompleted, ToolInvoked, ToolStatus};
use aaep::event::reasoning::state;
use aaep::extension::{DecidedBy, Delivery, Resolution};
use aaep::{Event, Payload, SessionId};

use super::io::{AskNumber, Asked, By, Ending, HubNumber};
use super::parts::sentence_parts;
use super::phrase::{Phrase, Tongue, phrase, sentences};
use super::question::{Question, Telling};
use super::queue::{About, AskName, Item, MAX_QUESTIONS};
use super::sessions::SessionKey;
use super::tools::Tools;
use super::truth::Contradiction;
use super::{Announcer, MAX_UTTERANCE, Outcome};
use crate::english::{asks, events, listening};
use crate::profile::Replies;
use crate::utterance::{Kind, Order, Weight};
use crate::words::{exact, grouped, guarded, own};

impl Announcer {
    /// An event that is not a question.
    pub(super) fn event(&mut self, event: &Event) {
        let session_id = &self.key(&event.envelope.session_id);
        let is_new = self.sessions.get(session_id).is_none();
        let session = self.sessions.enter(self.now, session_id, event);
        if is_new && is_idle(event) {
            return self.found_idle();
        }
        if !matches!(event.payload, Payload::OutputStreaming(_) | Payload::ProgressUpdated(_)) {
            // What an agent says after it did something else is another matter.
            session.unhush();
        }
        if let Payload::StateChanged(it) = &event.payload {
            session.state_since = self.now;
            let words = phrase(event, &self.preferences).map(|it| it.words).unwrap_or_default();
            session.activity.state(self.now, words, it.to_state == state::CALLING_TOOL);
            self.queue.remove(|it| it.about == About::State && it.is_of(session_id));
        }
        match &event.payload {
            Payload::OutputStreaming(piece) => self.text(event, piece),
            Payload::StateChanged(_) if self.is_told_otherwise(event) => {}
            Payload::StateChanged(_) => self.plain(event, About::State),
            Payload::ProgressUpdated(it) if self.is_clock(event, it) => {}
            Payload::ToolInvoked(tool) => self.tool_invoked(event, tool),
            Payload::ToolCompleted(tool) => self.tool_completed(event, tool),
            Payload::SessionCompleted(_) => self.completed(event),
            Payload::SessionErrored(_) | Payload::SessionCancelled(_) => {
                self.last_words_of(session_id);
                self.plain(event, About::End);
                self.end(session_id);
            }
            Payload::AwaitingConfirmation(_) | Payload::AwaitingClarification(_) => {
                self.asked_elsewhere(event);
            }
            Payload::SessionStarted(_) => self.plain(event, About::Started),
            _ => self.plain(event, About::Nothing),
        }
    }

    /// An event that is told by its own words.
    fn plain(&mut self, event: &Event, about: About) {
        let Some(phrase) = phrase(event, &self.preferences) else { return };
        let is_state =
            matches!(event.payload, Payload::StateChanged(_) | Payload::SessionStarted(_));
        let is_unwanted = match event.payload {
            _ if phrase.weight == Weight::Critical => false,
            // What other kinds of events say is neither a need nor an end.
            Payload::Extension(_) => self.preferences.essentials,
            _ => is_state && !self.preferences.states,
        };
        if is_unwanted {
            return;
        }
        let about = if phrase.weight == Weight::Critical { About::Nothing } else { about };
        let session_id = self.key(&event.envelope.session_id);
        let mut phrase = phrase;
        // An end does not wait for what came before it, so that it has to be said that there is more.
        let is_before = |it: &Item| it.is_of(&session_id) && it.about == About::Nothing;
        if about == About::End
            && !self.queue.takes_no_time
            && self.queue.waiting().any(is_before)
            && self.is_wanted(phrase.kind, phrase.weight)
        {
            phrase.words = sentences(&[&phrase.words, events::MORE_FOLLOWS]);
        }
        self.say(Some(&session_id), &phrase, &about);
    }

    /// Whether a change of state only says what is told in another way: how a question was settled, or until
    /// when it can be answered.
    fn is_told_otherwise(&mut self, event: &Event) -> bool {
        let Some(delivery) = Delivery::of(event) else { return false };
        if let Some(resolution) = &delivery.resolution {
            let token = &resolution.reply_token;
            let is_known =
                self.closed.contains(token) || self.questions.values().any(|it| it.token == *token);
            if !is_known {
                self.settled_elsewhere(event, resolution);
            }
            return true;
        }
        delivery.deadline.is_some()
    }

    /// A question was settled that could not be answered here.
    fn settled_elsewhere(&mut self, event: &Event, resolution: &Resolution) {
        let how = asks::settled_elsewhere(&resolution.decided_by);
        if !self.needs_settlement(
            matches!(resolution.decided_by, DecidedBy::Timeout | DecidedBy::NoListener),
            false,
        ) {
            return;
        }
        let summary = phrase(event, &self.preferences);
        let tongue = summary.as_ref().map(|it| it.tongue.clone()).unwrap_or_default();
        let summary = summary.map(|it| it.words).unwrap_or_default();
        let words = if summary.is_empty() { own(how) } else { summary };
        let phrase = Phrase { kind: Kind::Settled, weight: Weight::Normal, words, tongue };
        self.say(Some(&self.key(&event.envelope.session_id)), &phrase, &About::Nothing);
    }

    fn text(&mut self, event: &Event, piece: &OutputStreaming) {
        let session_id = &self.key(&event.envelope.session_id);
        let tongue = Tongue::of(event, &piece.chunk);
        self.sessions.spoke(session_id);
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        session.activity.forget_unnamed();
        let is_hushed = session.is_hushed(piece);
        let words = session.hear(piece, &tongue, &self.preferences);
        let text = session.last_text().filter(|_| piece.complete);
        let fact = text.and_then(|it| session.truth.against(&it.exact, tongue.is_english()));
        let phrase = Phrase { kind: Kind::Reply, weight: Weight::Normal, words, tongue };
        if is_hushed {
            self.skip(session_id, &phrase);
        } else if self.preferences.replies != Replies::Never {
            self.say(Some(session_id), &phrase, &About::Nothing);
        }
        if !self.preferences.essentials {
            self.tell_fact(session_id, fact, &About::Fact);
        }
    }

    /// Keeps what the person does not want to hear now.
    fn skip(&mut self, session_id: &SessionKey, phrase: &Phrase) {
        for words in sentence_parts(&phrase.words, MAX_UTTERANCE) {
            let mut item = Item::new(phrase.kind, phrase.weight, words.to_owned(), self.now);
            item.session_id = Some(session_id.clone());
            item.tongue = phrase.tongue.clone();
            self.queue.skip(item);
        }
    }

    /// Says what speaks against what was claimed.
    fn tell_fact(&mut self, session_id: &SessionKey, fact: Option<Contradiction>, about: &About) {
        let Some(fact) = fact else { return };
        // What was refused went as the person wanted.
        let kind = if fact.is_refusal { Kind::Notice } else { Kind::Error };
        let (weight, tongue) = (Weight::Normal, Tongue::default());
        let words = own(&guarded(&fact.words));
        self.say(Some(session_id), &Phrase { kind, weight, words, tongue }, about);
    }

    fn tool_invoked(&mut self, event: &Event, tool: &ToolInvoked) {
        let session_id = &self.key(&event.envelope.session_id);
        let phrase = phrase(event, &self.preferences);
        if let Some(session) = self.sessions.get_mut(session_id) {
            session.truth.invoked(tool);
            session.activity.tool_began(self.now, tool, phrase.as_ref());
            session.begin_text();
        }
        let Some(phrase) = phrase else { return };
        if !self.preferences.tools && phrase.weight < Weight::Normal {
            return;
        }
        let about = match phrase.weight {
            Weight::Background => {
                About::Tools(Tools::one(tool.tool.as_str(), phrase.words.clone()))
            }
            _ => About::Nothing,
        };
        self.say(Some(session_id), &phrase, &about);
    }

    fn tool_completed(&mut self, event: &Event, tool: &ToolCompleted) {
        let session_id = &self.key(&event.envelope.session_id);
        if let Some(session) = self.sessions.get_mut(session_id) {
            session.truth.completed(tool);
            session.activity.tool_ended(tool);
        }
        self.queue.remove(|it| {
            let is_over = it.kind == Kind::Progress || it.about == About::StillRunning;
            is_over && it.is_of(session_id)
        });
        if tool.status != ToolStatus::Success {
            // An agent that goes on after a failure of a tool has not failed itself.
            if event.is_critical() || !self.preferences.essentials {
                self.plain(event, About::Nothing);
            }
            return;
        }
        if let Some(phrase) = phrase(event, &self.preferences).filter(|_| self.preferences.tools) {
            let about = About::Tools(Tools::result(tool.tool.as_str(), phrase.words.clone()));
            self.say(Some(session_id), &phrase, &about);
        }
    }

    fn completed(&mut self, event: &Event) {
        let session_id = &self.key(&event.envelope.session_id);
        self.last_words_of(session_id);
        let is_english = Tongue::of(event, event.summary()).is_english();
        let session = self.sessions.get(session_id);
        let fact = session.and_then(|it| it.truth.against(event.summary(), is_english));
        // The claim and the fact belong together, whatever the person wants to hear of ends.
        self.plain(event, About::End);
        self.tell_fact(session_id, fact, &About::End);
        self.end(session_id);
    }

    /// Tells the text that still waited for the end of its sentence.
    fn last_words_of(&mut self, session_id: &SessionKey) {
        // Neither small steps nor the beginning are told after what came of them.
        let is_in_order = self.queue.takes_no_time;
        let is_beginning =
            |it: &Item| it.about == About::Started && it.is_of(session_id) && !is_in_order;
        for item in self.queue.take(is_beginning) {
            self.queue.skip(item);
        }
        self.queue.remove(|it| {
            let is_step = matches!(it.about, About::Tools(_)) && !is_in_order;
            let is_over = it.kind == Kind::Progress
                || matches!(it.about, About::State | About::StillRunning)
                || is_step;
            is_over && it.is_of(session_id)
        });
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        let tongue = session.last_text().map(|it| it.tongue.clone()).unwrap_or_default();
        let words = session.close_outputs();
        if self.preferences.replies != Replies::Never {
            let (kind, weight) = (Kind::Reply, Weight::Normal);
            self.say(Some(session_id), &Phrase { kind, weight, words, tongue }, &About::Nothing);
        }
        // If nothing is being said, the end waits for the last words, and they do not follow it.
        self.go_on();
    }

    fn end(&mut self, session_id: &SessionKey) {
        if let Some(session) = self.sessions.get_mut(session_id) {
            session.end();
        }
    }

    /// A question that cannot be answered by its number: it is told, and that is all.
    fn asked_elsewhere(&mut self, event: &Event) {
        let asked = Asked { number: 0, event, remaining: Duration::ZERO, can_answer: false };
        let session_id = self.key(&event.envelope.session_id);
        let Some(question) = Question::of(&asked, session_id, self.now) else {
            return;
        };
        let words = question.without_time();
        let (kind, weight, tongue) = (Kind::Question, Weight::Critical, question.tongue);
        self.say(
            Some(&question.session_id),
            &Phrase { kind, weight, words, tongue },
            &About::Nothing,
        );
    }

    /// A question waits for the person.
    pub(super) fn asked(&mut self, asked: &Asked<'_>) {
        let session_id = self.key(&asked.event.envelope.session_id);
        self.sessions.enter(self.now, &session_id, asked.event);
        let Some(question) = Question::of(asked, session_id, self.now) else {
            return self.event(asked.event);
        };
        // The same number twice is the same question, told again by a producer that lost its place. One that was
        // given up is asked anew.
        if self.questions.get(&asked.number).is_some_and(|it| !it.is_doubtful) {
            return;
        }
        if !self.has_room(question.session_id.hub) {
            let words = asks::TOO_MANY.to_owned();
            return self.say_ourselves(Kind::Notice, words, &About::Nothing);
        }
        let session_id = question.session_id.clone();
        self.queue.remove(|it| it.about == About::State && it.is_of(&session_id));
        self.tell_context(&question);
        self.ask(&question, About::Question(asked.number));
        self.questions.insert(asked.number, question);
        self.asked += 1;
    }

    /// Whether another question of a hub can be held. Those go first of which nobody knows what became. Each hub
    /// has its share, so that none takes all the room.
    fn has_room(&mut self, hub: HubNumber) -> bool {
        let most = MAX_QUESTIONS / self.hubs.len().max(1);
        let is_full = |questions: &BTreeMap<AskNumber, Question>| {
            questions.values().filter(|it| it.session_id.hub == hub).count() >= most
        };
        if is_full(&self.questions) {
            let mut of_it = self.questions.values().filter(|it| it.session_id.hub == hub);
            let doubtful = of_it.find(|it| it.is_answered).map(|it| it.number);
            doubtful.and_then(|number| self.questions.remove(&number));
        }
        !is_full(&self.questions)
    }

    /// Lets a question wait to be told. Its words are made when it is told: they say how much time is left.
    pub(super) fn ask(&mut self, question: &Question, about: About) {
        let mut item = Item::new(Kind::Question, Weight::Critical, String::new(), self.now);
        item.rank = question.rank;
        item.session_id = Some(question.session_id.clone());
        item.tongue = question.tongue.clone();
        item.about = about;
        // What is said after a question is not said twice in a row, even if the words are the same.
        if let Some(session) = self.sessions.get_mut(&question.session_id) {
            session.last_words = None;
        }
        self.queue.push(item, self.preferences.pace(), self.preferences.behind_seconds);
    }

    /// A question is over.
    pub(super) fn over(&mut self, number: AskNumber, ending: Ending) {
        let Some(question) = self.questions.get_mut(&number) else { return };
        question.is_answered = true;
        question.is_doubtful = ending == Ending::Unknown;
        let ids = std::mem::take(&mut question.ids);
        let question = question.clone();
        let is_it = |item: &Item| item.about.question() == Some(number);
        let current = self.current.as_ref().map(|it| &it.item);
        let context = current.filter(|it| matches!(it.about, About::Context { .. }) && is_it(it));
        if let Some(mut context) = context.cloned() {
            (context.weight, context.about) = (Weight::Normal, About::Nothing);
            self.queue.skip(context);
        }
        self.queue.skip_context(number);
        self.queue.remove(is_it);
        if self.current.as_ref().is_some_and(|it| is_it(&it.item)) {
            self.stop(true);
        }
        self.decided.orders.extend(ids.into_iter().map(Order::Withdraw));
        if ending != Ending::Unknown {
            self.forget(&question);
        }
        if let (Some((tool, action)), Some(session)) =
            (&question.action, self.sessions.get_mut(&question.session_id))
        {
            match ending {
                Ending::Rejected(_) => session.truth.not_allowed(tool.as_deref(), action),
                Ending::Accepted(_) => session.truth.allowed(tool.as_deref(), action),
                _ => {}
            }
        }
        if !self
            .needs_settlement(is_without_person(ending), question.has_begun() && !is_own(ending))
        {
            return;
        }
        // Who never heard the question is told what it was, and who heard several is told which.
        let is_one_of_many = self.questions.keys().any(|it| *it != number);
        let about = match question.has_begun() {
            true if self.is_past && !is_one_of_many => String::new(),
            // Numbers of the past mean nothing.
            _ if self.is_past => question.heading(),
            false => question.heading(),
            true if is_one_of_many => asks::about(number),
            true => String::new(),
        };
        let ended = if self.is_past { asks::ended_before(ending) } else { asks::ended(ending) };
        let of_ask = if about.is_empty() { self.of_ask(&question) } else { About::Nothing };
        let words = format!("{about} {}", own(ended)).trim().to_owned();
        let tongue = if question.has_begun() { Tongue::default() } else { question.tongue };
        let phrase = Phrase { kind: Kind::Settled, weight: Weight::Normal, words, tongue };
        self.say(Some(&question.session_id), &phrase, &of_ask);
    }

    /// Whether it is told how a question was settled. Where only essentials are told, it is if nobody decided it, or if the
    /// person heard the question here and did not decide it themselves: they must not think that it still waits for them.
    fn needs_settlement(&self, is_without_person: bool, is_unexpected: bool) -> bool {
        !self.preferences.essentials || is_without_person || is_unexpected
    }

    /// What is told of a question without naming it, which the next question would make unclear.
    fn of_ask(&self, question: &Question) -> About {
        let name = question.short_heading(self.is_past);
        About::Ask(AskName { name, tongue: question.tongue.clone(), asked: self.asked })
    }

    /// Forgets a question whose end is known, and remembers that it was told.
    fn forget(&mut self, question: &Question) {
        self.questions.remove(&question.number);
        self.closed.push_back(question.token.clone());
        if self.closed.len() > MAX_QUESTIONS {
            self.closed.pop_front();
        }
    }

    /// An answer did not reach the producer: the person is told why, and asked again.
    pub(super) fn answer_failed(&mut self, number: AskNumber, why: &str) {
        let Some(question) = self.questions.get_mut(&number) else { return };
        question.is_answered = false;
        let question = question.clone();
        let words = sentences(&[asks::DID_NOT_ARRIVE, &exact(why)]);
        self.say_ourselves(Kind::Notice, words, &self.of_ask(&question));
        self.ask(&question, About::Question(number));
    }

    pub(super) fn gap(&mut self, session_id: &SessionId, missed: Option<u64>) {
        let session_id = &self.key(session_id);
        if let Some(session) = self.sessions.get_mut(session_id) {
            session.close_outputs();
        }
        let words = match missed {
            Some(1) => listening::ONE_MISSED.to_owned(),
            Some(count) => listening::missed(&grouped(&count.to_string())),
            None => listening::SOMETHING_MISSED.to_owned(),
        };
        let (kind, weight, tongue) = (Kind::Notice, Weight::Normal, Tongue::default());
        self.say(Some(session_id), &Phrase { kind, weight, words, tongue }, &About::Nothing);
    }

    pub(super) fn left_out(&mut self, count: u64) {
        if count > 0 {
            self.events_left_out = self.events_left_out.saturating_add(count);
            self.queue.remove(|it| it.about == About::LeftOut);
            let count = grouped(&self.events_left_out.to_string());
            let words = listening::left_out(&count);
            self.say_ourselves(Kind::Notice, words, &About::LeftOut);
        }
    }

    /// Something about listening. It is told exactly: it may name a command, a file, or what is asked.
    pub(super) fn notice(&mut self, text: &str) {
        self.say_ourselves(Kind::Notice, exact(text), &About::Nothing);
    }

    /// What the person asked for.
    pub(super) fn requested(&mut self, text: &str) {
        self.say_ourselves(Kind::Notice, exact(text), &About::Requested);
    }

    /// A question was told this far.
    pub(super) fn presented(&mut self, number: AskNumber, told: Telling) {
        let Some(question) = self.questions.get_mut(&number) else { return };
        let before = question.told;
        question.told = before.max(told);
        if told >= Telling::Left && before < Telling::Left {
            self.decided.outcomes.push(Outcome::Presented(number));
        }
        if told == Telling::Whole && before < Telling::Whole {
            self.decided.outcomes.push(Outcome::PresentedWhole(number));
        }
    }
}

/// Whether an event only says that a session is open in which nothing happens.
fn is_idle(event: &Event) -> bool {
    let Payload::StateChanged(it) = &event.payload else { return false };
    it.from_state == state::IDLE && it.to_state == state::IDLE && !event.is_critical()
}

/// Whether the person here decided it.
fn is_own(ending: Ending) -> bool {
    matches!(
        ending,
        Ending::Accepted(By::You) | Ending::Rejected(By::You) | Ending::Answered(By::You)
    )
}

/// Whether nobody decided it, or nobody knows.
fn is_without_person(ending: Ending) -> bool {
    match ending {
        Ending::Accepted(by) | Ending::Rejected(by) | Ending::Answered(by) => {
            matches!(by, By::Timeout | By::Nobody)
        }
        Ending::Unanswered | Ending::Unknown => true,
        Ending::Withdrawn => false,
    }
}
