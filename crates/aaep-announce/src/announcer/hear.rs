//! Processes input from agents and from the connection to the hub.

use std::collections::BTreeMap;
use std::time::Duration;

use aaep::event::action::{OutputStreaming, ToolCompleted, ToolInvoked, ToolStatus};
use aaep::event::reasoning::state;
use aaep::extension::{DecidedBy, Delivery, Resolution};
use aaep::{Event, Payload, SessionId};

use super::io::{AnsweredBy, AskEnding, AskNumber, Asked, HubNumber};
use super::parts::sentence_parts;
use super::phrase::{AnnouncedPhrase, TextLanguage, phrase, sentences};
use super::question::{AnnouncedAsk, PresentationProgress};
use super::queue::{AskName, MAX_QUESTIONS, QueuedUtterance, UtteranceTopic};
use super::sessions::HubSessionKey;
use super::tools::WaitingTools;
use super::truth::ClaimContradiction;
use super::{Announcer, AnnouncerOutcome, MAX_UTTERANCE};
use crate::english::{asks, events, listening};
use crate::profile::Replies;
use crate::utterance::{Order, UtteranceKind, Weight};
use crate::words::{exact, grouped, guarded, own};

impl Announcer {
    /// Processes an event that is not a question.
    pub(super) fn event(&mut self, event: &Event) {
        let session_id = &self.key(&event.envelope.session_id);
        let is_new = self.sessions.get(session_id).is_none();
        let session = self.sessions.enter(self.now, session_id, event);
        if is_new && is_idle(event) {
            return self.found_idle();
        }
        if !matches!(event.payload, Payload::OutputStreaming(_) | Payload::ProgressUpdated(_)) {
            // Text after another action is new: an earlier hush does not apply to it.
            session.unhush();
        }
        if let Payload::StateChanged(it) = &event.payload {
            session.state_since = self.now;
            let words = phrase(event, &self.preferences).map(|it| it.words).unwrap_or_default();
            session.activity.state(self.now, words, it.to_state == state::CALLING_TOOL);
            self.queue.remove(|it| it.about == UtteranceTopic::State && it.is_of(session_id));
        }
        match &event.payload {
            Payload::OutputStreaming(piece) => self.text(event, piece),
            Payload::StateChanged(_) if self.is_announced_elsewhere(event) => {}
            Payload::StateChanged(_) => self.announce_event(event, UtteranceTopic::State),
            Payload::ProgressUpdated(it) if self.is_only_ask_time(event, it) => {}
            Payload::ToolInvoked(tool) => self.tool_invoked(event, tool),
            Payload::ToolCompleted(tool) => self.tool_completed(event, tool),
            Payload::SessionCompleted(_) => self.completed(event),
            Payload::SessionErrored(_) | Payload::SessionCancelled(_) => {
                self.announce_last_words(session_id);
                self.announce_event(event, UtteranceTopic::End);
                self.end(session_id);
            }
            Payload::AwaitingConfirmation(_) | Payload::AwaitingClarification(_) => {
                self.asked_elsewhere(event);
            }
            Payload::SessionStarted(_) => self.announce_event(event, UtteranceTopic::Started),
            _ => self.announce_event(event, UtteranceTopic::Nothing),
        }
    }

    /// Announces an event with its own summary.
    fn announce_event(&mut self, event: &Event, about: UtteranceTopic) {
        let Some(phrase) = phrase(event, &self.preferences) else { return };
        let is_state =
            matches!(event.payload, Payload::StateChanged(_) | Payload::SessionStarted(_));
        let is_unwanted = match event.payload {
            _ if phrase.weight == Weight::Critical => false,
            // Extension events are neither a request nor an end.
            Payload::Extension(_) => self.preferences.essentials,
            _ => is_state && !self.preferences.states,
        };
        if is_unwanted {
            return;
        }
        let about = if phrase.weight == Weight::Critical { UtteranceTopic::Nothing } else { about };
        let session_id = self.key(&event.envelope.session_id);
        let mut phrase = phrase;
        // The end of a session overtakes earlier utterances, so it has to mention that more follows.
        let is_before =
            |it: &QueuedUtterance| it.is_of(&session_id) && it.about == UtteranceTopic::Nothing;
        if about == UtteranceTopic::End
            && !self.queue.takes_no_time
            && self.queue.waiting().any(is_before)
            && self.is_wanted(phrase.kind, phrase.weight)
        {
            phrase.words = sentences(&[&phrase.words, events::MORE_FOLLOWS]);
        }
        self.say(Some(&session_id), &phrase, &about);
    }

    /// Whether a state change only repeats something that is announced in another way: how a question was settled, or
    /// when its time ends. Announces a settlement that is not known here.
    fn is_announced_elsewhere(&mut self, event: &Event) -> bool {
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

    /// Announces how a question was settled that could not be answered here.
    fn settled_elsewhere(&mut self, event: &Event, resolution: &Resolution) {
        let how = asks::settled_elsewhere(&resolution.decided_by);
        if !self.needs_settlement(
            matches!(resolution.decided_by, DecidedBy::Timeout | DecidedBy::NoListener),
            false,
        ) {
            return;
        }
        let summary = phrase(event, &self.preferences);
        let text_language = summary.as_ref().map(|it| it.text_language.clone()).unwrap_or_default();
        let summary = summary.map(|it| it.words).unwrap_or_default();
        let words = if summary.is_empty() { own(how) } else { summary };
        let phrase = AnnouncedPhrase {
            kind: UtteranceKind::Settled,
            weight: Weight::Normal,
            words,
            text_language,
        };
        self.say(Some(&self.key(&event.envelope.session_id)), &phrase, &UtteranceTopic::Nothing);
    }

    fn text(&mut self, event: &Event, piece: &OutputStreaming) {
        let session_id = &self.key(&event.envelope.session_id);
        let text_language = TextLanguage::of(event, &piece.chunk);
        self.sessions.spoke(session_id);
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        session.activity.forget_unnamed();
        let is_hushed = session.is_hushed(piece);
        let words = session.hear(piece, &text_language, &self.preferences);
        let text = session.last_text().filter(|_| piece.complete);
        let fact = text.and_then(|it| session.truth.against(&it.exact, text_language.is_english()));
        let phrase = AnnouncedPhrase {
            kind: UtteranceKind::Reply,
            weight: Weight::Normal,
            words,
            text_language,
        };
        if is_hushed {
            self.skip(session_id, &phrase);
        } else if self.preferences.replies != Replies::Never {
            self.say(Some(session_id), &phrase, &UtteranceTopic::Nothing);
        }
        if !self.preferences.essentials {
            self.tell_fact(session_id, fact, &UtteranceTopic::Fact);
        }
    }

    /// Keeps a phrase that the person does not want to hear now.
    fn skip(&mut self, session_id: &HubSessionKey, phrase: &AnnouncedPhrase) {
        for words in sentence_parts(&phrase.words, MAX_UTTERANCE) {
            let mut item =
                QueuedUtterance::new(phrase.kind, phrase.weight, words.to_owned(), self.now);
            item.session_id = Some(session_id.clone());
            item.text_language = phrase.text_language.clone();
            self.queue.skip(item);
        }
    }

    /// Announces the fact that contradicts a claim.
    fn tell_fact(
        &mut self,
        session_id: &HubSessionKey,
        fact: Option<ClaimContradiction>,
        about: &UtteranceTopic,
    ) {
        let Some(fact) = fact else { return };
        // A refusal is what the person wanted, so it is not an error.
        let kind = if fact.is_refusal { UtteranceKind::Notice } else { UtteranceKind::Error };
        let (weight, text_language) = (Weight::Normal, TextLanguage::default());
        let words = own(&guarded(&fact.words));
        self.say(Some(session_id), &AnnouncedPhrase { kind, weight, words, text_language }, about);
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
                UtteranceTopic::Tools(WaitingTools::one(tool.tool.as_str(), phrase.words.clone()))
            }
            _ => UtteranceTopic::Nothing,
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
            let is_over =
                it.kind == UtteranceKind::Progress || it.about == UtteranceTopic::StillRunning;
            is_over && it.is_of(session_id)
        });
        if tool.status != ToolStatus::Success {
            // An agent that continues after a tool failed has not failed itself.
            if event.is_critical() || !self.preferences.essentials {
                self.announce_event(event, UtteranceTopic::Nothing);
            }
            return;
        }
        if let Some(phrase) = phrase(event, &self.preferences).filter(|_| self.preferences.tools) {
            let about = UtteranceTopic::Tools(WaitingTools::result(
                tool.tool.as_str(),
                phrase.words.clone(),
            ));
            self.say(Some(session_id), &phrase, &about);
        }
    }

    fn completed(&mut self, event: &Event) {
        let session_id = &self.key(&event.envelope.session_id);
        self.announce_last_words(session_id);
        let is_english = TextLanguage::of(event, event.summary()).is_english();
        let session = self.sessions.get(session_id);
        let fact = session.and_then(|it| it.truth.against(event.summary(), is_english));
        // The claim and the fact belong together, even for a person who does not want to hear about ends.
        self.announce_event(event, UtteranceTopic::End);
        self.tell_fact(session_id, fact, &UtteranceTopic::End);
        self.end(session_id);
    }

    /// Announces text that was waiting for the end of its sentence.
    fn announce_last_words(&mut self, session_id: &HubSessionKey) {
        // Small steps and the beginning are not announced after their result.
        let is_in_order = self.queue.takes_no_time;
        let is_beginning = |it: &QueuedUtterance| {
            it.about == UtteranceTopic::Started && it.is_of(session_id) && !is_in_order
        };
        for item in self.queue.take(is_beginning) {
            self.queue.skip(item);
        }
        self.queue.remove(|it| {
            let is_step = matches!(it.about, UtteranceTopic::Tools(_)) && !is_in_order;
            let is_over = it.kind == UtteranceKind::Progress
                || matches!(it.about, UtteranceTopic::State | UtteranceTopic::StillRunning)
                || is_step;
            is_over && it.is_of(session_id)
        });
        let Some(session) = self.sessions.get_mut(session_id) else { return };
        let text_language =
            session.last_text().map(|it| it.text_language.clone()).unwrap_or_default();
        let words = session.close_outputs();
        if self.preferences.replies != Replies::Never {
            let (kind, weight) = (UtteranceKind::Reply, Weight::Normal);
            self.say(
                Some(session_id),
                &AnnouncedPhrase { kind, weight, words, text_language },
                &UtteranceTopic::Nothing,
            );
        }
        // If the device is free, the last words go first and the end waits for them.
        self.go_on();
    }

    fn end(&mut self, session_id: &HubSessionKey) {
        if let Some(session) = self.sessions.get_mut(session_id) {
            session.end();
        }
    }

    /// Announces a question that has no number here and cannot be answered here.
    fn asked_elsewhere(&mut self, event: &Event) {
        let asked = Asked { number: 0, event, remaining: Duration::ZERO, can_answer: false };
        let session_id = self.key(&event.envelope.session_id);
        let Some(question) = AnnouncedAsk::of(&asked, session_id, self.now) else {
            return;
        };
        let words = question.without_time();
        let (kind, weight, text_language) =
            (UtteranceKind::Question, Weight::Critical, question.text_language);
        self.say(
            Some(&question.session_id),
            &AnnouncedPhrase { kind, weight, words, text_language },
            &UtteranceTopic::Nothing,
        );
    }

    /// Processes a question that waits for the person.
    pub(super) fn asked(&mut self, asked: &Asked<'_>) {
        let session_id = self.key(&asked.event.envelope.session_id);
        self.sessions.enter(self.now, &session_id, asked.event);
        let Some(question) = AnnouncedAsk::of(asked, session_id, self.now) else {
            return self.event(asked.event);
        };
        // The same number twice is the same question, sent again by a producer that lost its position. A question
        // that was given up is asked again.
        if self.questions.get(&asked.number).is_some_and(|it| !it.is_doubtful) {
            return;
        }
        if !self.has_room(question.session_id.hub) {
            let words = asks::TOO_MANY.to_owned();
            return self.say_ourselves(UtteranceKind::Notice, words, &UtteranceTopic::Nothing);
        }
        let session_id = question.session_id.clone();
        self.queue.remove(|it| it.about == UtteranceTopic::State && it.is_of(&session_id));
        self.tell_context(&question);
        self.queue_ask(&question, UtteranceTopic::Question(asked.number));
        self.questions.insert(asked.number, question);
        self.asked_count += 1;
    }

    /// Whether there is room for another question of a hub. Questions with an unknown outcome are dropped first. Each
    /// hub has a share, so that no hub can take all the room.
    fn has_room(&mut self, hub: HubNumber) -> bool {
        let most = MAX_QUESTIONS / self.hubs.len().max(1);
        let is_full = |questions: &BTreeMap<AskNumber, AnnouncedAsk>| {
            questions.values().filter(|it| it.session_id.hub == hub).count() >= most
        };
        if is_full(&self.questions) {
            let mut of_it = self.questions.values().filter(|it| it.session_id.hub == hub);
            let doubtful = of_it.find(|it| it.is_answered).map(|it| it.number);
            doubtful.and_then(|number| self.questions.remove(&number));
        }
        !is_full(&self.questions)
    }

    /// Queues a question. Its words are made only when it is said, because they include the remaining time.
    pub(super) fn queue_ask(&mut self, question: &AnnouncedAsk, about: UtteranceTopic) {
        let mut item = QueuedUtterance::new(
            UtteranceKind::Question,
            Weight::Critical,
            String::new(),
            self.now,
        );
        item.rank = question.rank;
        item.session_id = Some(question.session_id.clone());
        item.text_language = question.text_language.clone();
        item.about = about;
        // Resets the check for repeated words: after a question, the same words may be said again.
        if let Some(session) = self.sessions.get_mut(&question.session_id) {
            session.last_words = None;
        }
        self.queue.push(item, self.preferences.pace(), self.preferences.behind_seconds);
    }

    /// Processes the end of a question.
    pub(super) fn ask_ended(&mut self, number: AskNumber, ending: AskEnding) {
        let Some(question) = self.questions.get_mut(&number) else { return };
        question.is_answered = true;
        question.is_doubtful = ending == AskEnding::Unknown;
        let ids = std::mem::take(&mut question.ids);
        let question = question.clone();
        let is_it = |item: &QueuedUtterance| item.about.question() == Some(number);
        let current = self.current.as_ref().map(|it| &it.item);
        let context =
            current.filter(|it| matches!(it.about, UtteranceTopic::Context { .. }) && is_it(it));
        if let Some(mut context) = context.cloned() {
            (context.weight, context.about) = (Weight::Normal, UtteranceTopic::Nothing);
            self.queue.skip(context);
        }
        self.queue.skip_context(number);
        self.queue.remove(|it| match &it.about {
            UtteranceTopic::Overview(numbers) => numbers.contains(&number),
            _ => is_it(it),
        });
        if self.current.as_ref().is_some_and(|it| is_it(&it.item)) {
            self.stop(true);
        }
        self.decided.orders.extend(ids.into_iter().map(Order::Withdraw));
        if ending != AskEnding::Unknown {
            self.forget(&question);
        }
        if let (Some((tool, action)), Some(session)) =
            (&question.action, self.sessions.get_mut(&question.session_id))
        {
            match ending {
                AskEnding::Rejected(_) => session.truth.not_allowed(tool.as_deref(), action),
                AskEnding::Accepted(_) => session.truth.allowed(tool.as_deref(), action),
                _ => {}
            }
        }
        if !self
            .needs_settlement(is_without_person(ending), question.has_begun() && !is_own(ending))
        {
            return;
        }
        // A person who did not hear the question is told what it was; a person who heard several is told which one.
        let is_one_of_many = self.questions.keys().any(|it| *it != number);
        let about = match question.has_begun() {
            true if self.is_past && !is_one_of_many => String::new(),
            // Question numbers of the past mean nothing.
            _ if self.is_past => question.heading(),
            false => question.heading(),
            true if is_one_of_many => asks::about(number),
            true => String::new(),
        };
        let ended = if self.is_past { asks::ended_before(ending) } else { asks::ended(ending) };
        let topic =
            if about.is_empty() { self.topic_of_ask(&question) } else { UtteranceTopic::Nothing };
        let words = format!("{about} {}", own(ended)).trim().to_owned();
        let text_language =
            if question.has_begun() { TextLanguage::default() } else { question.text_language };
        let phrase = AnnouncedPhrase {
            kind: UtteranceKind::Settled,
            weight: Weight::Normal,
            words,
            text_language,
        };
        self.say(Some(&question.session_id), &phrase, &topic);
    }

    /// Whether to announce how a question was settled. If the person wants only essentials, it is announced if nobody
    /// decided it, or if the person heard the question here and did not decide it: they must not think that it still
    /// waits for them.
    fn needs_settlement(&self, is_without_person: bool, is_unexpected: bool) -> bool {
        !self.preferences.essentials || is_without_person || is_unexpected
    }

    /// The topic of an utterance that refers to a question without naming it. It must be named once another question
    /// is asked.
    fn topic_of_ask(&self, question: &AnnouncedAsk) -> UtteranceTopic {
        let name = question.short_heading(self.is_past);
        UtteranceTopic::Ask(AskName {
            name,
            text_language: question.text_language.clone(),
            asked_count: self.asked_count,
        })
    }

    /// Forgets a closed question, and remembers its token.
    fn forget(&mut self, question: &AnnouncedAsk) {
        self.questions.remove(&question.number);
        self.closed.push_back(question.token.clone());
        if self.closed.len() > MAX_QUESTIONS {
            self.closed.pop_front();
        }
    }

    /// Tells the person why an answer did not reach the producer, and asks again.
    pub(super) fn answer_failed(&mut self, number: AskNumber, why: &str) {
        let Some(question) = self.questions.get_mut(&number) else { return };
        question.is_answered = false;
        let question = question.clone();
        let words = sentences(&[asks::DOES_NOT_COUNT, &exact(why)]);
        self.say_ourselves(UtteranceKind::Notice, words, &self.topic_of_ask(&question));
        self.queue_ask(&question, UtteranceTopic::Question(number));
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
        let (kind, weight, text_language) =
            (UtteranceKind::Notice, Weight::Normal, TextLanguage::default());
        self.say(
            Some(session_id),
            &AnnouncedPhrase { kind, weight, words, text_language },
            &UtteranceTopic::Nothing,
        );
    }

    pub(super) fn left_out(&mut self, count: u64) {
        if count > 0 {
            self.events_left_out = self.events_left_out.saturating_add(count);
            self.queue.remove(|it| it.about == UtteranceTopic::LeftOut);
            let count = grouped(&self.events_left_out.to_string());
            let words = listening::left_out(&count);
            self.say_ourselves(UtteranceKind::Notice, words, &UtteranceTopic::LeftOut);
        }
    }

    /// Announces something about listening. The text is exact: it may name a command, a file or a question.
    pub(super) fn notice(&mut self, text: &str) {
        self.say_ourselves(UtteranceKind::Notice, exact(text), &UtteranceTopic::Nothing);
    }

    /// Announces something that the person requested.
    pub(super) fn requested(&mut self, text: &str) {
        self.say_ourselves(UtteranceKind::Notice, exact(text), &UtteranceTopic::Requested);
    }

    /// Records how far a question was presented.
    pub(super) fn presented(&mut self, number: AskNumber, progress: PresentationProgress) {
        let Some(question) = self.questions.get_mut(&number) else { return };
        let before = question.presentation;
        question.presentation = before.max(progress);
        if progress >= PresentationProgress::Left && before < PresentationProgress::Left {
            self.decided.outcomes.push(AnnouncerOutcome::Presented(number));
        }
        let is_news = before < PresentationProgress::Whole || question.is_spoken_over;
        if progress == PresentationProgress::Whole && is_news {
            question.is_spoken_over = false;
            self.decided.outcomes.push(AnnouncerOutcome::PresentedWhole(number));
        }
    }
}

/// Whether an event only reports that a session is open and idle.
fn is_idle(event: &Event) -> bool {
    let Payload::StateChanged(it) = &event.payload else { return false };
    it.from_state == state::IDLE && it.to_state == state::IDLE && !event.is_critical()
}

/// Whether the person decided it here.
fn is_own(ending: AskEnding) -> bool {
    matches!(
        ending,
        AskEnding::Accepted(AnsweredBy::You)
            | AskEnding::Rejected(AnsweredBy::You)
            | AskEnding::Answered(AnsweredBy::You)
    )
}

/// Whether nobody decided it, or the outcome is unknown.
fn is_without_person(ending: AskEnding) -> bool {
    match ending {
        AskEnding::Accepted(by) | AskEnding::Rejected(by) | AskEnding::Answered(by) => {
            matches!(by, AnsweredBy::Timeout | AnsweredBy::Nobody)
        }
        AskEnding::Unanswered | AskEnding::Unknown => true,
        AskEnding::Withdrawn => false,
    }
}
