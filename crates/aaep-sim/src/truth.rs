//! What is true in a world, whatever the hub says: which subscriptions exist, with which terms, and
//! what agents wrote.

use std::collections::BTreeMap;
use std::rc::Rc;

use aaep::event::action::{CoalesceBoundary, OutputStreaming};
use aaep::extension::{AskCapabilities, AskClock};
use aaep::{Capabilities, EventType, SessionId, SubscriptionId, TypePattern};
use aaep_engine::{PrincipalNumber, SubscriberKey};

use crate::rng::SeededRng;
use crate::text::WrittenText;

/// The terms that a hub granted, with the defaults of §5.3.1, as a subscriber understands them.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a term of its own")]
pub struct UnderstoodTerms {
    /// The most non-critical events per second.
    pub rate: Option<u64>,
    /// The pace in words per minute.
    pub pace: Option<u64>,
    /// Where text may be cut.
    pub boundaries: Vec<CoalesceBoundary>,
    /// The event types that the filter includes.
    pub include: Vec<TypePattern>,
    /// The event types that the filter excludes.
    pub exclude: Vec<TypePattern>,
    /// Whether the subscriber can answer confirmations.
    pub confirms: bool,
    /// Whether the subscriber can answer clarifications.
    pub clarifies: bool,
    /// Whether the subscriber asked for a low cognitive load.
    pub is_low: bool,
    /// Whether the subscriber understands our own extension.
    pub extension: bool,
    /// Whether the time to answer may start at presentation.
    pub presented: bool,
    /// Whether the person may ask for more time.
    pub extends: bool,
}

impl UnderstoodTerms {
    /// Reads the terms from granted capabilities.
    ///
    /// # Panics
    /// Never: the default pattern is a valid constant.
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
        UnderstoodTerms {
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

    /// Whether the filters let an event type pass (ruling 5).
    pub fn wants(&self, event_type: &EventType) -> bool {
        self.include.iter().any(|pattern| pattern.matches(event_type))
            && !self.exclude.iter().any(|pattern| pattern.matches(event_type))
    }

    /// Whether the filters let streamed text pass.
    pub fn wants_text(&self) -> bool {
        self.wants(&EventType::Core(aaep::CoreType::OutputStreaming))
    }

    /// Whether these terms neither drop nor merge events, so that events are numbered (ruling 7).
    pub fn keeps_all(&self) -> bool {
        self.rate.is_none()
            && self.pace.is_none()
            && !self.is_low
            && self.exclude.is_empty()
            && self.include.iter().any(|pattern| pattern.as_str() == "*")
            && self.boundaries.contains(&CoalesceBoundary::None)
    }
}

/// Whether events can reach a subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubscriberPresence {
    /// Events can reach it.
    Here,
    /// Its wire is full.
    Blocked,
    /// Its connection broke, and the hub has known that since this time.
    Away(u64),
    /// The subscription has ended.
    Gone,
}

/// One subscription, as the world knows it.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct WorldSubscription {
    /// The index of its subscriber in the world.
    pub subscriber: usize,
    /// The key by which the hub knows it.
    pub key: SubscriberKey,
    /// Its id on the wire.
    pub id: SubscriptionId,
    /// The principal that it belongs to.
    pub principal: PrincipalNumber,
    /// Whether that principal may answer asks.
    pub may_reply: bool,
    /// All capabilities requested so far.
    pub asked: Capabilities,
    /// The terms in force now.
    pub terms: Rc<UnderstoodTerms>,
    /// Whether events can reach it now.
    pub presence: SubscriberPresence,
    /// The subscription whose stream it continues.
    pub resumes: Option<usize>,
    /// Whether it replaced an earlier subscription that the hub still had.
    pub took_over: bool,
    /// Whether its terms ever changed, or those of an earlier subscription that it continues.
    pub changed_terms: bool,
    /// Whether its wire was ever full.
    pub has_stalled: bool,
    /// Whether it resumed after an event that was delivered under other terms, with a hub that
    /// could not know that. Its stream may then have a gap or a repetition.
    pub is_excused: bool,
}

impl WorldSubscription {
    /// Whether part of its stream may have been delivered under other terms than those of `other`.
    pub fn had_other_terms(&self, other: &WorldSubscription) -> bool {
        self.changed_terms || self.terms != other.terms
    }
}

/// Everything that is true in a world.
#[derive(Debug, Default)]
pub struct WorldTruth {
    /// The batch size for lagging subscribers.
    pub at_a_time: usize,
    /// Whether the hub has so little memory that text may start in the middle after a gap.
    pub is_cramped: bool,
    /// All subscriptions that ever existed.
    pub subscriptions: Vec<WorldSubscription>,
    /// The subscriptions that the hub has now.
    pub by_key: BTreeMap<SubscriberKey, usize>,
    /// The text of every output, by session and output id.
    texts: BTreeMap<(String, String), Rc<WrittenText>>,
    sessions: Vec<String>,
}

impl WorldTruth {
    /// The truth of a world in which nothing has happened yet.
    pub fn new(at_a_time: usize, is_cramped: bool) -> Self {
        WorldTruth { at_a_time, is_cramped, ..WorldTruth::default() }
    }

    /// The subscription with this key, and its index.
    pub fn of(&self, key: SubscriberKey) -> Option<(usize, &WorldSubscription)> {
        let at = *self.by_key.get(&key)?;
        self.subscriptions.get(at).map(|it| (at, it))
    }

    /// The subscription with this id and its index, if it has not ended.
    pub fn named(&self, id: &SubscriptionId) -> Option<(usize, &WorldSubscription)> {
        let is_it = |it: &&usize| self.subscriptions[**it].id == *id;
        let at = *self.by_key.values().find(is_it)?;
        Some((at, &self.subscriptions[at]))
    }

    /// Invents the text of an output. Returns its chunks with their positions, and whether a
    /// sentence begins there; none if this output already exists.
    pub fn write(
        &mut self,
        session: &str,
        output: Option<&str>,
        sentences: usize,
        rng: &mut SeededRng,
    ) -> Option<Vec<(usize, String, bool)>> {
        let key = (session.to_owned(), output.unwrap_or_default().to_owned());
        if self.texts.contains_key(&key) {
            return None;
        }
        if !self.sessions.contains(&key.0) {
            self.sessions.push(key.0.clone());
        }
        let text = WrittenText::write(rng, sentences);
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
    pub fn text(&self, session: &SessionId, chunk: &OutputStreaming) -> Option<Rc<WrittenText>> {
        let output = chunk.output_id.as_ref().map_or("", |id| id.as_str());
        self.texts.get(&(session.as_str().to_owned(), output.to_owned())).cloned()
    }

    /// The id of a random session that had an output.
    pub fn any_session(&self, rng: &mut SeededRng) -> Option<String> {
        if self.sessions.is_empty() { None } else { Some(rng.pick(&self.sessions).clone()) }
    }
}
