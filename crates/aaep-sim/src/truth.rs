//! What is true in a world, whatever the hub says: who subscribed to what, and what agents wrote.

use std::collections::BTreeMap;
use std::rc::Rc;

use aaep::event::action::{CoalesceBoundary, OutputStreaming};
use aaep::extension::{AskCapabilities, AskClock};
use aaep::{Capabilities, EventType, SessionId, SubscriptionId, TypePattern};
use aaep_engine::{Principal, SubscriberKey};

use crate::rng::Rng;
use crate::text::Text;

/// The terms that a hub committed to, with the defaults of §5.3.1, as a subscriber understands them.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a term of its own")]
pub struct Terms {
    /// The most non-critical events in a second.
    pub rate: Option<u64>,
    /// How many words per minute are announced.
    pub pace: Option<u64>,
    /// Where text may be cut.
    pub boundaries: Vec<CoalesceBoundary>,
    /// What is wanted.
    pub include: Vec<TypePattern>,
    /// What is not.
    pub exclude: Vec<TypePattern>,
    /// Whether confirmations can be answered.
    pub confirms: bool,
    /// Whether clarifications can be answered.
    pub clarifies: bool,
    /// Whether as little as possible should be told.
    pub is_low: bool,
    /// Whether our own extension is understood.
    pub extension: bool,
    /// Whether the time to answer may wait for presentation.
    pub presented: bool,
    /// Whether the person may ask for more time.
    pub extends: bool,
}

impl Terms {
    /// The terms that capabilities state.
    ///
    /// # Panics
    /// Never: the default pattern is a constant of the right form.
    pub fn of(stated: &Capabilities) -> Self {
        let all = || vec![TypePattern::parse("aaep:agent.*").expect("a pattern")];
        let filters = stated.event_filters.as_ref();
        let mut boundaries = stated
            .coalesce_boundaries
            .clone()
            .unwrap_or_else(|| vec![CoalesceBoundary::Sentence, CoalesceBoundary::Completion]);
        let is_low = stated.cognitive_load == Some(aaep::CognitiveLoad::Low);
        if is_low {
            boundaries = vec![CoalesceBoundary::Completion];
        }
        let extension = stated
            .supported_extensions
            .iter()
            .flatten()
            .any(|uri| uri.as_str() == aaep::extension::CONTEXT);
        let asking = AskCapabilities::of(stated);
        Terms {
            rate: stated.max_events_per_second,
            pace: stated.pace_wpm,
            boundaries,
            include: filters.and_then(|it| it.include.clone()).unwrap_or_else(all),
            exclude: filters.and_then(|it| it.exclude.clone()).unwrap_or_default(),
            confirms: stated.supports_confirmation_reply == Some(true),
            clarifies: stated.supports_clarification_reply == Some(true),
            is_low,
            extension,
            presented: extension && asking.ask_clock == Some(AskClock::Presented),
            extends: extension && asking.extend == Some(true),
        }
    }

    /// Whether the filters let a type pass (ruling 5).
    pub fn wants(&self, event_type: &EventType) -> bool {
        self.include.iter().any(|pattern| pattern.matches(event_type))
            && !self.exclude.iter().any(|pattern| pattern.matches(event_type))
    }

    /// Whether text passes.
    pub fn wants_text(&self) -> bool {
        self.wants(&EventType::Core(aaep::CoreType::OutputStreaming))
    }

    /// Whether these terms drop and merge nothing, so that events are numbered (ruling 7).
    pub fn keeps_all(&self) -> bool {
        self.rate.is_none()
            && self.pace.is_none()
            && !self.is_low
            && self.exclude.is_empty()
            && self.include.iter().any(|pattern| pattern.as_str() == "*")
            && self.boundaries.contains(&CoalesceBoundary::None)
    }
}

/// Whether something can reach a subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It can.
    Here,
    /// Its wire is full.
    Blocked,
    /// The hub knows since then that its connection broke.
    Away(u64),
    /// The subscription is over.
    Gone,
}

/// One subscription.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Subscription {
    /// Which of the world's subscribers has it.
    pub subscriber: usize,
    /// Its number in the hub.
    pub key: SubscriberKey,
    /// Its name on the wire.
    pub id: SubscriptionId,
    /// Whose it is.
    pub principal: Principal,
    /// Whether they may answer.
    pub may_reply: bool,
    /// All that was asked for so far.
    pub asked: Capabilities,
    /// The terms that hold now.
    pub terms: Rc<Terms>,
    /// Whether it can be reached now.
    pub presence: Presence,
    /// The subscription whose stream it goes on with.
    pub resumes: Option<usize>,
    /// Whether it took the place of an earlier one that the hub still had.
    pub took_over: bool,
    /// Whether it had other terms at some time, or an earlier one that it goes on with.
    pub changed_terms: bool,
    /// Whether its wire was ever full.
    pub has_stalled: bool,
    /// Whether it goes on after an event that came under other terms, with a hub that could not know
    /// that: then its stream may have a hole or a repetition.
    pub is_excused: bool,
}

impl Subscription {
    /// Whether something of its stream may have come under other terms than those of another.
    pub fn had_other_terms(&self, other: &Subscription) -> bool {
        self.changed_terms || self.terms != other.terms
    }
}

/// Everything that is true.
#[derive(Debug, Default)]
pub struct Truth {
    /// How many events whoever is behind is sent at a time.
    pub at_a_time: usize,
    /// Whether the hub has so little memory that text may begin in the middle after a gap.
    pub is_cramped: bool,
    /// All subscriptions that ever were.
    pub subscriptions: Vec<Subscription>,
    /// Those that the hub has now.
    pub by_key: BTreeMap<SubscriberKey, usize>,
    /// All outputs, by session and id.
    texts: BTreeMap<(String, String), Rc<Text>>,
    sessions: Vec<String>,
}

impl Truth {
    /// Of a world in which nothing has happened, and whoever is behind is sent so many events at a time.
    pub fn new(at_a_time: usize, is_cramped: bool) -> Self {
        Truth { at_a_time, is_cramped, ..Truth::default() }
    }

    /// The subscription that a hub means by this number.
    pub fn of(&self, key: SubscriberKey) -> Option<(usize, &Subscription)> {
        let at = *self.by_key.get(&key)?;
        self.subscriptions.get(at).map(|it| (at, it))
    }

    /// The subscription of this name, if it is not over.
    pub fn named(&self, id: &SubscriptionId) -> Option<(usize, &Subscription)> {
        let is_it = |it: &&usize| self.subscriptions[**it].id == *id;
        let at = *self.by_key.values().find(is_it)?;
        Some((at, &self.subscriptions[at]))
    }

    /// An agent thinks of an output; its chunks, with their positions and whether a sentence begins there. None if that
    /// output was.
    pub fn write(
        &mut self,
        session: &str,
        output: Option<&str>,
        sentences: usize,
        rng: &mut Rng,
    ) -> Option<Vec<(usize, String, bool)>> {
        let key = (session.to_owned(), output.unwrap_or_default().to_owned());
        if self.texts.contains_key(&key) {
            return None;
        }
        if !self.sessions.contains(&key.0) {
            self.sessions.push(key.0.clone());
        }
        let text = Text::write(rng, sentences);
        let mut chunks = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let end = (at + rng.size(1, 60)).min(text.len());
            let begins = text.ends_at(at, &CoalesceBoundary::Sentence);
            chunks.push((at, text.chars[at..end].iter().collect(), begins));
            at = end;
        }
        if rng.chance(30) {
            chunks.push((at, String::new(), false));
        }
        let ends: Vec<usize> = chunks
            .iter()
            .map(|(at, chunk, _): &(usize, String, bool)| at + chunk.chars().count())
            .collect();
        self.texts.insert(key, Rc::new(text.as_sent(&ends)));
        Some(chunks)
    }

    /// The whole text of an output.
    pub fn text(&self, session: &SessionId, chunk: &OutputStreaming) -> Option<Rc<Text>> {
        let output = chunk.output_id.as_ref().map_or("", |id| id.as_str());
        self.texts.get(&(session.as_str().to_owned(), output.to_owned())).cloned()
    }

    /// The name of a session that had an output.
    pub fn any_session(&self, rng: &mut Rng) -> Option<String> {
        if self.sessions.is_empty() { None } else { Some(rng.pick(&self.sessions).clone()) }
    }
}
