//! What the caller can ask of the engine. Nothing here changes it.

use aaep::{EventId, ReplyToken, SessionId, SubscriptionId};

use super::{Engine, EngineSession};
use crate::audience::SubscriberKey;
use crate::io::{AgentTags, HearingScope, PrincipalNumber};

impl Engine {
    /// How many subscriptions there are, including disconnected ones that can be resumed.
    pub fn subscriptions(&self) -> usize {
        self.subscriptions.len()
    }

    /// Under which name the engine itself is offered to subscribers.
    pub fn own_producer(&self) -> &aaep::Producer {
        &self.config.offer.producer
    }

    /// How many more subscriptions there can be.
    pub fn free_places(&self) -> usize {
        let most = self.config.offer.max_concurrent_subscriptions;
        most.saturating_sub(self.subscriptions.len())
    }

    /// How many subscriptions there can be.
    pub fn max_subscriptions(&self) -> usize {
        self.config.offer.max_concurrent_subscriptions
    }

    /// The subscriber that has been away longest, of this principal or of all.
    pub fn oldest_away(&self, principal: Option<PrincipalNumber>) -> Option<SubscriberKey> {
        let away = self.subscriptions.subscribers().filter_map(|subscriber| {
            let member = self.members.get(subscriber)?;
            Some((member.delivery.away_since()?, subscriber, member.principal))
        });
        let theirs = away.filter(|(.., whose)| principal.is_none_or(|it| it == *whose));
        theirs.min().map(|(_, subscriber, _)| subscriber)
    }

    /// Whether an event that is not in memory may have been published before: it, or its session, left memory
    /// recently.
    pub fn may_have_dropped(&self, session_id: &SessionId, event_id: &EventId) -> bool {
        self.session(session_id).is_none_or(|session| session.dropped_ids.may_have(event_id))
    }

    /// How many connected subscribers have events held by their rate or pace. Takes time in proportion to the
    /// subscribers that are due.
    pub fn held_subscribers(&self) -> usize {
        let is_here = |key: SubscriberKey| {
            let member = self.members.get(key);
            member.is_some_and(|member| member.delivery.is_here())
        };
        self.due.subscribers().filter(|subscriber| is_here(*subscriber)).count()
    }

    /// How many audiences there are.
    pub fn audiences(&self) -> usize {
        self.audiences.len()
    }

    /// Whether an ask is open.
    pub fn is_open(&self, reply_token: &ReplyToken) -> bool {
        self.asks.contains(reply_token)
    }

    /// How many asks are open.
    pub fn open_asks(&self) -> usize {
        self.asks.len()
    }

    /// What subscribers are offered.
    pub fn offer(&self) -> &crate::terms::Offer {
        &self.config.offer
    }

    /// The principal of a session, if the session is in memory.
    pub fn principal_of(&self, session_id: &SessionId) -> Option<PrincipalNumber> {
        self.session(session_id).map(|session| session.principal)
    }

    /// Whether a session has ended.
    pub fn has_ended(&self, session_id: &SessionId) -> bool {
        self.session(session_id).is_some_and(|session| session.order.is_ended())
    }

    /// Which agents the subscriber of this subscription hears, if the subscription exists.
    pub fn hears_of(&self, id: &SubscriptionId) -> Option<&HearingScope> {
        let key = self.subscriptions.get(id)?;
        let member = self.members.get(key)?;
        Some(&member.agreed.hears)
    }

    /// The agent ids under which the principal of a session publishes in it.
    pub fn speakers(&self, session_id: &SessionId) -> impl Iterator<Item = &str> {
        let session = self.session(session_id).into_iter();
        session.flat_map(|session| session.producers.keys().map(String::as_str))
    }

    /// An agent that publishes in a session, as it last described itself.
    pub fn speaker(&self, session_id: &SessionId, agent_id: &str) -> Option<&aaep::Producer> {
        self.session(session_id)?.producers.get(agent_id)
    }

    /// The events of a session that are in memory, newest first.
    pub fn newest_events(&self, session_id: &SessionId) -> impl Iterator<Item = &aaep::Event> {
        let session = self.session(session_id).into_iter();
        session.flat_map(|session| session.history.iter().rev().map(|entry| &*entry.event))
    }

    /// The tags that determine which subscribers hear a session, if it is in memory.
    pub fn tags_of(&self, session_id: &SessionId) -> Option<&AgentTags> {
        self.session(session_id).map(|session| &session.tags)
    }

    /// Whether a principal publishes under this agent id in a running session.
    pub fn speaks_as(&self, principal: PrincipalNumber, agent_id: &str) -> bool {
        let running = self.sessions.values().filter(|session| !session.order.is_ended());
        let mut own = running.filter(|session| session.principal == principal);
        own.any(|session| session.producers.contains_key(agent_id))
    }

    /// The running sessions and their principals.
    pub fn running_sessions(&self) -> impl Iterator<Item = (&SessionId, PrincipalNumber)> {
        let running = self.sessions.values().filter(|session| !session.order.is_ended());
        running.map(|session| (&session.id, session.principal))
    }

    /// The subscriber and the principal of a subscription, if it exists.
    pub fn subscription(&self, id: &SubscriptionId) -> Option<(SubscriberKey, PrincipalNumber)> {
        let key = self.subscriptions.get(id)?;
        let member = self.members.get(key)?;
        Some((key, member.principal))
    }

    pub(super) fn session(&self, id: &SessionId) -> Option<&EngineSession> {
        self.sessions.get(self.sessions.key_of(id)?)
    }
}
