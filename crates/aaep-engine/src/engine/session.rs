//! A session as the engine keeps it: its order, the part of its history that is in memory, and what was last said in it.

use std::collections::{BTreeMap, VecDeque};

use aaep::{Envelope, Event, SessionId};

use super::dropped_ids::DroppedIds;
use super::{SubscriptionTerms, delivery_state, history};
use crate::audience::{HistoryEntry, TextKey};
use crate::clock::Now;
use crate::io::{AgentTags, PrincipalNumber};
use crate::order::SessionOrder;

/// A session and the part of its history that is in memory.
#[derive(Debug)]
pub(crate) struct EngineSession {
    pub(crate) id: SessionId,
    /// The principal that began it, and the only one that may publish in it.
    pub(crate) principal: PrincipalNumber,
    /// Determines which subscribers hear it.
    pub(crate) tags: AgentTags,
    pub(crate) order: SessionOrder,
    /// The events, oldest first, at most [`super::MAX_SESSION_EVENTS`].
    pub(crate) history: VecDeque<HistoryEntry>,
    /// The incomplete outputs of which a part is no longer in the history, and up to where that part went.
    pub(crate) dropped_texts: BTreeMap<TextKey, u64>,
    /// Its events before this global order are no longer in memory.
    pub(crate) dropped_before: u64,
    /// The events that left memory most recently.
    pub(crate) dropped_ids: DroppedIds,
    /// The envelope of its last event, if that event is no longer in the history.
    pub(crate) last_envelope: Option<Box<Envelope>>,
    /// The global order of its first event.
    pub(crate) first_order: u64,
    pub(crate) ended_us: Option<u64>,
    /// When its agent last published, or when the engine started, if that is later.
    pub(crate) heard_us: u64,
    /// How long its agent had been silent when the engine started. Zero once it publishes again.
    pub(crate) silent_before_us: u64,
    /// Whether it counts among the running sessions of its principal.
    pub(crate) is_counted: bool,
    /// The sequence number of the next event.
    pub(crate) next_number: u64,
    /// The timestamp of the last event.
    pub(crate) last_us: i64,
    /// The subscribers for which its next event may be too early.
    pub(crate) told_later: delivery_state::ToldLaterList,
    /// The state that was last announced for each agent.
    pub(crate) announced: BTreeMap<String, String>,
    /// The state that the engine announced for an agent since that agent's own last announcement.
    pub(crate) spoken: BTreeMap<String, String>,
    /// How far the agent's clock is ahead of ours. Negative if it is behind.
    pub(crate) clock_ahead_us: i64,
    /// The producers in the session, by agent id, for events that the engine makes itself.
    pub(crate) producers: BTreeMap<String, aaep::Producer>,
    /// How many bytes it takes besides its history, as counted for its principal.
    pub(crate) counted_bytes: history::OwnBytes,
}

impl EngineSession {
    pub(crate) fn new(id: SessionId, principal: PrincipalNumber, tags: AgentTags) -> Self {
        EngineSession {
            id,
            principal,
            tags,
            order: SessionOrder::new(),
            history: VecDeque::new(),
            dropped_texts: BTreeMap::new(),
            dropped_before: 0,
            dropped_ids: DroppedIds::default(),
            last_envelope: None,
            first_order: 0,
            ended_us: None,
            heard_us: 0,
            silent_before_us: 0,
            is_counted: false,
            next_number: 0,
            last_us: i64::MIN,
            told_later: delivery_state::ToldLaterList::default(),
            announced: BTreeMap::new(),
            spoken: BTreeMap::new(),
            clock_ahead_us: 0,
            producers: BTreeMap::new(),
            counted_bytes: history::OwnBytes::default(),
        }
    }

    /// The principal whose share of memory its history takes.
    pub(crate) fn owner(&self) -> PrincipalNumber {
        self.principal
    }

    /// Remembers the producer of an event and the difference between the clocks, for events that the engine
    /// makes itself.
    pub(crate) fn note_producer(&mut self, event: &Event, unix_us: i64) {
        let producer = &event.envelope.producer;
        self.clock_ahead_us = event.envelope.timestamp.unix_us() - unix_us;
        if self.producers.get(&producer.agent_id) == Some(producer) {
            return;
        }
        if self.producers.len() < crate::order::MAX_PRODUCERS
            || self.producers.contains_key(&producer.agent_id)
        {
            self.producers.insert(producer.agent_id.clone(), without_long_words(producer));
        }
    }

    /// Whether a subscriber with these terms will hear more from this session.
    pub(crate) fn is_running_for(&self, agreed: &SubscriptionTerms) -> bool {
        !self.order.is_ended() && agreed.hears.includes(&self.tags)
    }

    /// The time of an event that the engine makes now: by the agent's clock, so that the agent's next
    /// timestamp is not earlier, and never before the last timestamp of the session.
    pub(crate) fn own_time_us(&self, now: Now) -> i64 {
        now.unix_us.saturating_add(self.clock_ahead_us).max(self.last_us)
    }

    /// Announces a state on behalf of an agent.
    pub(crate) fn speak_for(&mut self, agent_id: &str, state: &str) {
        self.order.tell(agent_id, state);
        self.announced.insert(agent_id.to_owned(), state.to_owned());
        self.spoken.insert(agent_id.to_owned(), state.to_owned());
    }
}

/// A producer's version, name, model or address is not remembered if it is longer than this.
const MAX_KEPT_WORDS_BYTES: usize = 256;

/// The producer without its long fields.
fn without_long_words(producer: &aaep::Producer) -> aaep::Producer {
    let short = |words: &Option<String>| {
        words.as_ref().filter(|words| words.len() <= MAX_KEPT_WORDS_BYTES).cloned()
    };
    let address = producer.manifest_uri.as_ref();
    aaep::Producer {
        agent_version: short(&producer.agent_version),
        agent_name: short(&producer.agent_name),
        model: short(&producer.model),
        manifest_uri: address.filter(|it| it.as_str().len() <= MAX_KEPT_WORDS_BYTES).cloned(),
        ..aaep::Producer::new(&producer.agent_id)
    }
}

/// The most bytes that such a producer takes besides its agent id, which is stored twice.
pub(crate) const MAX_PRODUCER_BYTES: usize = 4 * MAX_KEPT_WORDS_BYTES + size_of::<aaep::Producer>();
