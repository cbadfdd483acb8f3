//! Subscribers: what they ask for, how they read, and how they answer. Fast, slow, stalled, vanishing,
//! forging, double-replying, renegotiating.

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
use aaep_engine::{Hears, Input, Principal, Resume};

use crate::check::Delivered;
use crate::rng::Rng;
use time::{asking, patient};

const RIGHT: &str = "a constant of the right form";

/// What kind of subscriber it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Temper {
    /// Takes everything and answers soon.
    Fast,
    /// Takes one event in a second.
    Slow,
    /// Stops reading now and then.
    Stalled,
    /// Goes away for good without a word.
    Vanishing,
    /// Answers for others and with made-up tokens.
    Forging,
    /// Answers twice, differently.
    DoubleReplying,
    /// Changes its mind about the terms.
    Renegotiating,
}

/// One subscriber, with its connection.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Subscriber {
    /// What it is called in stories.
    pub name: String,
    /// Who it is to the hub.
    pub principal: Principal,
    /// Whether it may answer.
    pub may_reply: bool,
    /// What kind it is.
    pub temper: Temper,
    wish: Capabilities,
    is_terse: bool,
    /// Its subscription: the world's number and the name on the wire.
    pub subscription: Option<(usize, SubscriptionId)>,
    /// The number of its newest subscription so far.
    pub before: Option<usize>,
    /// Its subscription before that one ended, or was given up.
    pub earlier: Option<SubscriptionId>,
    /// The last event that arrived.
    pub last: Option<EventId>,
    /// Whether events can travel to it.
    pub is_connected: bool,
    /// Whether it takes events off the wire.
    pub is_reading: bool,
    /// Whether the hub was told that its wire is full.
    pub is_blocked: bool,
    /// Whether something that it said is still on its way.
    pub is_pending: bool,
    /// Whether it is gone for good.
    pub is_gone: bool,
    /// Counts its connections.
    pub epoch: u64,
    /// What is on its way to it, the oldest first.
    pub wire: VecDeque<Delivered>,
    /// When the newest thing on the wire arrives.
    pub wire_free_us: u64,
    /// When the newest thing that it said arrives.
    pub link_free_us: u64,
}

/// How much fits on a wire.
pub const WIRE: usize = 12;

impl Subscriber {
    /// A subscriber that is not connected yet.
    ///
    /// In a patient world, everyone wants the time to answer to wait for presentation.
    ///
    /// # Panics
    /// Never: the URI is a constant of the right form.
    pub fn new(number: usize, is_patient: bool, rng: &mut Rng) -> Self {
        let temper = *rng.pick(&[
            Temper::Fast,
            Temper::Slow,
            Temper::Stalled,
            Temper::Vanishing,
            Temper::Forging,
            Temper::DoubleReplying,
            Temper::Renegotiating,
        ]);
        let mut wish = wish(rng);
        if is_patient {
            let ours = Uri::parse(aaep::extension::CONTEXT).expect(RIGHT);
            wish.supported_extensions = Some(vec![ours]);
            wish.other.insert(aaep::extension::PREFIX.to_owned(), patient());
        }
        if temper == Temper::Slow {
            wish.max_events_per_second = Some(1);
        }
        Subscriber {
            name: format!("{temper:?} subscriber {number}").to_lowercase(),
            principal: 100 + number as u64,
            may_reply: rng.chance(80),
            temper,
            wish,
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

    /// The connection breaks: what was on the wire is lost.
    pub fn lose_connection(&mut self) {
        self.is_connected = false;
        self.is_blocked = false;
        self.epoch += 1;
        self.wire.clear();
        self.wire_free_us = 0;
    }

    /// Asks for a subscription, going on after what it got last.
    ///
    /// # Panics
    /// Never: the version is a constant of the right form.
    pub fn subscribe(&self, door: Door) -> Input {
        let request = SubscriptionRequest {
            aaep_version: Version::parse("1.0.0").expect(RIGHT),
            subscriber_id: self.name.clone(),
            subscriber_name: None,
            subscriber_version: None,
            subscriber_manifest_uri: None,
            correlation_id: None,
            capabilities: self.wish.clone(),
            extensions: None,
            other: Object::new(),
        };
        // Most say which subscription they had; some only what they got last.
        let subscription_id = self.earlier.clone().filter(|_| !self.epoch.is_multiple_of(4));
        let last_event_id = self.last.clone();
        let resume = (subscription_id.is_some() || last_event_id.is_some())
            .then_some(Resume { subscription_id, last_event_id });
        Input::Subscribe {
            principal: self.principal,
            door,
            may_reply: self.may_reply,
            request: Box::new(request),
            hears: Hears::All,
            resume,
        }
    }

    /// Asks for other terms.
    pub fn renegotiate(&mut self, id: &SubscriptionId, rng: &mut Rng) -> Input {
        let wish = wish(rng);
        let mut capabilities = Capabilities::new();
        match rng.below(6) {
            5 => capabilities.other = wish.other,
            0 => capabilities.max_events_per_second = Some(*rng.pick(&[1, 2, 5, 20])),
            1 => capabilities.coalesce_boundaries = Some(boundaries(rng)),
            2 => capabilities.event_filters = wish.event_filters,
            3 => {
                capabilities.supports_confirmation_reply = Some(rng.chance(50));
                capabilities.pace_wpm = wish.pace_wpm;
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
        Input::Renegotiate { principal: self.principal, change: Box::new(change) }
    }

    /// What it answers to an event, if it is a question: each reply with how long it takes.
    ///
    /// # Panics
    /// Never: the made-up token is a constant of the right form.
    pub fn answer(
        &self,
        event: &Event,
        others: &[SubscriptionId],
        rng: &mut Rng,
    ) -> Vec<(u64, Input)> {
        let Some((_, id)) = &self.subscription else { return Vec::new() };
        let (token, is_confirmation, wants_yes_no) = match &event.payload {
            Payload::AwaitingConfirmation(it) => (&it.reply_token, true, false),
            Payload::AwaitingClarification(it) => {
                (&it.reply_token, false, it.accepted_response_kinds.is_some())
            }
            _ => return Vec::new(),
        };
        let mut replies = self.wishes_for_time((token, id), others, rng);
        let count =
            if self.temper == Temper::DoubleReplying { 2 } else { u64::from(rng.chance(60)) };
        for _ in 0..count {
            let reply = self.reply((token, id), is_confirmation, wants_yes_no, rng);
            replies.push((rng.between(10_000, 4_000_000), reply));
        }
        if self.temper == Temper::Forging {
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
        rng: &mut Rng,
    ) -> Input {
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
            return Input::Confirm { principal, reply: Box::new(reply) };
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
        Input::Clarify { principal, reply: Box::new(reply) }
    }
}

fn boundaries(rng: &mut Rng) -> Vec<CoalesceBoundary> {
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

fn wish(rng: &mut Rng) -> Capabilities {
    let mut wish = Capabilities::new();
    if rng.chance(50) {
        wish.max_events_per_second = Some(*rng.pick(&[1, 2, 3, 10, 50]));
    }
    if rng.chance(60) {
        wish.coalesce_boundaries = Some(boundaries(rng));
    }
    wish.supports_confirmation_reply = rng.chance(85).then(|| rng.chance(75));
    wish.supports_clarification_reply = rng.chance(85).then(|| rng.chance(75));
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
        wish.event_filters = Some(EventFilters {
            include: include.map(|it| vec![pattern(it)]),
            exclude: exclude.map(|it| vec![pattern(it)]),
            other: Object::new(),
        });
    }
    if rng.chance(60) {
        wish.supported_extensions = Some(vec![Uri::parse(aaep::extension::CONTEXT).expect(RIGHT)]);
    }
    if rng.chance(45) {
        wish.other.insert(aaep::extension::PREFIX.to_owned(), asking(rng));
    }
    if rng.chance(15) {
        wish.cognitive_load = Some(CognitiveLoad::Low);
    }
    if rng.chance(25) {
        wish.pace_wpm = Some(*rng.pick(&[120, 250, 900]));
    }
    if rng.chance(40) {
        let tags = *rng.pick(&[&["es-419"][..], &["en-US", "yo"], &["fr"], &["es"]]);
        wish.languages = Some(tags.iter().map(|it| LanguageTag::parse(it).expect(RIGHT)).collect());
    }
    wish.supported_conformance_levels = Some(vec![1, 2]);
    wish
}
