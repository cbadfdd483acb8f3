//! Simulated subscribers: what they request, how they read and how they answer. They are fast,
//! slow, stalled, vanishing, forging, double-replying or renegotiating.

mod time;

use std::collections::VecDeque;

use aaep::event::action::CoalesceBoundary;
use aaep::event::human::Decision;
use aaep::handshake::{SubscriptionRenegotiate, SubscriptionRequest};
use aaep::reply::{ClarificationReply, ConfirmationReply, Response};
use aaep::{
    Capabilities, CognitiveLoad, Event, EventFilters, EventId, LanguageTag, Object, Payload,
    ReplyToken, SubscriptionId, Timestamp, TypePattern, Uri, Verbosity, Version,
};
use aaep_engine::terms::Door;
use aaep_engine::{EngineInput, HearingScope, PrincipalNumber, ResumePoint};

use crate::check::DeliveredEvent;
use crate::rng::SeededRng;
use time::{asking, patient};

const RIGHT: &str = "a constant of the right form";

/// How a subscriber behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubscriberTemper {
    /// Reads everything and answers soon.
    Fast,
    /// Requests one event per second.
    Slow,
    /// Stops reading now and then.
    Stalled,
    /// Leaves for good without closing its subscription.
    Vanishing,
    /// Answers in the name of others and with made-up tokens.
    Forging,
    /// Answers twice, with different decisions.
    DoubleReplying,
    /// Renegotiates its terms.
    Renegotiating,
}

/// One subscriber, with its connection.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct SimulatedSubscriber {
    /// Its name in stories.
    pub name: String,
    /// The principal under which the hub knows it.
    pub principal: PrincipalNumber,
    /// Whether it may answer asks.
    pub may_reply: bool,
    /// How it behaves.
    pub temper: SubscriberTemper,
    requested: Capabilities,
    is_terse: bool,
    /// Its subscription: the index in the world's truth, and the id on the wire.
    pub subscription: Option<(usize, SubscriptionId)>,
    /// The index of its newest subscription so far.
    pub before: Option<usize>,
    /// The id of its newest subscription so far, kept when that one ends or is given up.
    pub earlier: Option<SubscriptionId>,
    /// The last event that arrived.
    pub last: Option<EventId>,
    /// Whether events can travel to it.
    pub is_connected: bool,
    /// Whether it reads events from the wire.
    pub is_reading: bool,
    /// Whether the hub was told that its wire is full.
    pub is_blocked: bool,
    /// Whether one of its messages is still on its way.
    pub is_pending: bool,
    /// Whether it has left for good.
    pub is_gone: bool,
    /// The number of its current connection.
    pub epoch: u64,
    /// The events on their way to it, oldest first.
    pub wire: VecDeque<DeliveredEvent>,
    /// When the newest event on the wire arrives.
    pub wire_free_us: u64,
    /// When its newest message reaches the hub.
    pub link_free_us: u64,
}

/// How many events fit on a wire.
pub const WIRE: usize = 12;

impl SimulatedSubscriber {
    /// Creates a subscriber that is not connected yet.
    ///
    /// In a patient world, all subscribers want the time to answer to start at presentation.
    ///
    /// # Panics
    /// Never: the URI is a valid constant.
    pub fn new(number: usize, is_patient: bool, rng: &mut SeededRng) -> Self {
        let temper = *rng.pick(&[
            SubscriberTemper::Fast,
            SubscriberTemper::Slow,
            SubscriberTemper::Stalled,
            SubscriberTemper::Vanishing,
            SubscriberTemper::Forging,
            SubscriberTemper::DoubleReplying,
            SubscriberTemper::Renegotiating,
        ]);
        let mut requested = random_capabilities(rng);
        if is_patient {
            let ours = Uri::parse(aaep::extension::CONTEXT).expect(RIGHT);
            requested.supported_extensions = Some(vec![ours]);
            requested.other.insert(aaep::extension::PREFIX.to_owned(), patient());
        }
        if temper == SubscriberTemper::Slow {
            requested.max_events_per_second = Some(1);
        }
        SimulatedSubscriber {
            name: format!("{temper:?} subscriber {number}").to_lowercase(),
            principal: PrincipalNumber(100 + number as u64),
            may_reply: rng.chance(80),
            temper,
            requested,
            is_terse: false,
            subscription: None,
            before: None,
            earlier: None,
            last: None,
            is_connected: false,
            is_reading: true,
            is_blocked: false,
            is_pending: false,
            is_gone: false,
            epoch: 0,
            wire: VecDeque::new(),
            wire_free_us: 0,
            link_free_us: 0,
        }
    }

    /// Breaks the connection; the events on the wire are lost.
    pub fn lose_connection(&mut self) {
        self.is_connected = false;
        self.is_blocked = false;
        self.epoch += 1;
        self.wire.clear();
        self.wire_free_us = 0;
    }

    /// Requests a subscription that resumes after the last event that arrived.
    ///
    /// # Panics
    /// Never: the version is a valid constant.
    pub fn subscribe(&self, door: Door) -> EngineInput {
        let request = SubscriptionRequest {
            aaep_version: Version::parse("1.0.0").expect(RIGHT),
            subscriber_id: self.name.clone(),
            subscriber_name: None,
            subscriber_version: None,
            subscriber_manifest_uri: None,
            correlation_id: None,
            capabilities: self.requested.clone(),
            extensions: None,
            other: Object::new(),
        };
        // Most name their earlier subscription; some name only the last event that they received.
        let subscription_id = self.earlier.clone().filter(|_| !self.epoch.is_multiple_of(4));
        let last_event_id = self.last.clone();
        let resume = (subscription_id.is_some() || last_event_id.is_some())
            .then_some(ResumePoint { subscription_id, last_event_id });
        EngineInput::Subscribe {
            principal: self.principal,
            door,
            may_reply: self.may_reply,
            request: Box::new(request),
            hears: HearingScope::All,
            resume,
        }
    }

    /// Requests other terms.
    pub fn renegotiate(&mut self, id: &SubscriptionId, rng: &mut SeededRng) -> EngineInput {
        let requested = random_capabilities(rng);
        let mut capabilities = Capabilities::new();
        match rng.below(6) {
            5 => capabilities.other = requested.other,
            0 => capabilities.max_events_per_second = Some(*rng.pick(&[1, 2, 5, 20])),
            1 => capabilities.coalesce_boundaries = Some(boundaries(rng)),
            2 => capabilities.event_filters = requested.event_filters,
            3 => {
                capabilities.supports_confirmation_reply = Some(rng.chance(50));
                capabilities.pace_wpm = requested.pace_wpm;
            }
            _ => {}
        }
        if rng.chance(30) {
            self.is_terse = !self.is_terse;
            let verbosity = if self.is_terse { Verbosity::Terse } else { Verbosity::Detailed };
            capabilities.preferred_verbosity = Some(verbosity);
        }
        let change = SubscriptionRenegotiate {
            subscription_id: id.clone(),
            capabilities,
            correlation_id: None,
            extensions: None,
            other: Object::new(),
        };
        EngineInput::Renegotiate { principal: self.principal, change: Box::new(change) }
    }

    /// Its replies to an event, if that is an ask, each with its delay in microseconds.
    ///
    /// # Panics
    /// Never: the made-up token is a valid constant.
    pub fn answer(
        &self,
        event: &Event,
        others: &[SubscriptionId],
        rng: &mut SeededRng,
    ) -> Vec<(u64, EngineInput)> {
        let Some((_, id)) = &self.subscription else { return Vec::new() };
        let (token, is_confirmation, wants_yes_no) = match &event.payload {
            Payload::AwaitingConfirmation(it) => (&it.reply_token, true, false),
            Payload::AwaitingClarification(it) => {
                (&it.reply_token, false, it.accepted_response_kinds.is_some())
            }
            _ => return Vec::new(),
        };
        let mut replies = self.time_messages((token, id), others, rng);
        let count = if self.temper == SubscriberTemper::DoubleReplying {
            2
        } else {
            u64::from(rng.chance(60))
        };
        for _ in 0..count {
            let reply = self.reply((token, id), is_confirmation, wants_yes_no, rng);
            replies.push((rng.between(10_000, 4_000_000), reply));
        }
        if self.temper == SubscriberTemper::Forging {
            let made_up = ReplyToken::parse("rpl_0000000000000000").expect(RIGHT);
            let token = if rng.chance(70) { token } else { &made_up };
            let id = if others.is_empty() { id } else { rng.pick(others) };
            let reply = self.reply((token, id), is_confirmation, wants_yes_no, rng);
            replies.push((rng.between(1_000, 2_000_000), reply));
        }
        replies
    }

    fn reply(
        &self,
        (token, id): (&ReplyToken, &SubscriptionId),
        is_confirmation: bool,
        wants_yes_no: bool,
        rng: &mut SeededRng,
    ) -> EngineInput {
        let is_right_kind = !rng.chance(6);
        let timestamp = Timestamp::from_unix_ms(0).expect(RIGHT).into();
        let principal = self.principal;
        if is_confirmation == is_right_kind {
            let decision = if rng.chance(65) { Decision::Accept } else { Decision::Reject };
            let decided_by = rng.chance(10).then(|| aaep::reply::automatic("a rule"));
            let reply = ConfirmationReply {
                reply_token: token.clone(),
                decision,
                subscription_id: id.clone(),
                timestamp,
                decided_by,
                decision_rationale: None,
                modified_action: rng.chance(8).then(Object::new),
                correlation_id: None,
                other: Object::new(),
            };
            return EngineInput::Confirm { principal, reply: Box::new(reply) };
        }
        let response = if wants_yes_no == is_right_kind {
            Response::YesNo(true)
        } else {
            Response::Text("the second".to_owned())
        };
        let reply = ClarificationReply {
            reply_token: token.clone(),
            response,
            subscription_id: id.clone(),
            timestamp,
            decided_by: None,
            confidence: None,
            correlation_id: None,
            other: Object::new(),
        };
        EngineInput::Clarify { principal, reply: Box::new(reply) }
    }
}

fn boundaries(rng: &mut SeededRng) -> Vec<CoalesceBoundary> {
    use CoalesceBoundary::{Completion, None, Paragraph, Sentence, Word};
    rng.pick(&[
        vec![None],
        vec![Word],
        vec![Sentence, Completion],
        vec![Paragraph],
        vec![Completion],
        vec![Word, Paragraph],
    ])
    .clone()
}

fn random_capabilities(rng: &mut SeededRng) -> Capabilities {
    let mut requested = Capabilities::new();
    if rng.chance(50) {
        requested.max_events_per_second = Some(*rng.pick(&[1, 2, 3, 10, 50]));
    }
    if rng.chance(60) {
        requested.coalesce_boundaries = Some(boundaries(rng));
    }
    requested.supports_confirmation_reply = rng.chance(85).then(|| rng.chance(75));
    requested.supports_clarification_reply = rng.chance(85).then(|| rng.chance(75));
    if rng.chance(35) {
        let pattern = |text| TypePattern::parse(text).expect(RIGHT);
        let (include, exclude) = rng
            .pick(&[
                (Some("*"), None),
                (Some("*"), None),
                (None, Some("aaep:agent.progress.updated")),
                (None, Some("aaep:agent.tool.*")),
                (None, Some("aaep:agent.state.changed")),
                (Some("aaep:agent.output.*"), None),
                (Some("aaep:agent.tool.*"), None),
            ])
            .to_owned();
        requested.event_filters = Some(EventFilters {
            include: include.map(|it| vec![pattern(it)]),
            exclude: exclude.map(|it| vec![pattern(it)]),
            other: Object::new(),
        });
    }
    if rng.chance(60) {
        requested.supported_extensions =
            Some(vec![Uri::parse(aaep::extension::CONTEXT).expect(RIGHT)]);
    }
    if rng.chance(45) {
        requested.other.insert(aaep::extension::PREFIX.to_owned(), asking(rng));
    }
    if rng.chance(15) {
        requested.cognitive_load = Some(CognitiveLoad::Low);
    }
    if rng.chance(25) {
        requested.pace_wpm = Some(*rng.pick(&[120, 250, 900]));
    }
    if rng.chance(40) {
        let tags = *rng.pick(&[&["es-419"][..], &["en-US", "yo"], &["fr"], &["es"]]);
        requested.languages =
            Some(tags.iter().map(|it| LanguageTag::parse(it).expect(RIGHT)).collect());
    }
    requested.supported_conformance_levels = Some(vec![1, 2]);
    requested
}
