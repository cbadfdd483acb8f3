//! The order of a recorded stream, for `aaep validate`: the rules of a session applied to a
//! capture.
//!
//! A capture may begin in the middle, may have been shaped for one subscriber, and continues after
//! a violation. So what was not seen is learned and not reported, and each violation is reported
//! once. A message is never changed, and a stream that just stops is not a violation.

mod asks;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use aaep::extension::Delivery;
use aaep::{Event, Message, Payload, ReplyToken, SessionId};

use super::{OrderViolation, SessionOrder, SessionPhase};
use asks::StreamAsks;

/// Follows the sessions of a recorded stream and reports which events break their order.
///
/// Beyond [`StreamOrder::MAX_SESSIONS`] sessions, or [`StreamOrder::MAX_BYTES`] of memory, the
/// session that began first is forgotten. From then on no session is reported as not started.
#[derive(Debug, Default)]
pub struct StreamOrder {
    sessions: BTreeMap<SessionId, FollowedSession>,
    /// The sessions in the order in which they began.
    oldest: VecDeque<SessionId>,
    /// The session in which a token was issued, because replies do not name it.
    asked_in: BTreeMap<ReplyToken, SessionId>,
    /// The sessions of events that were passed over: they are running, and their start was not
    /// seen.
    passed_over: BTreeSet<SessionId>,
    bytes: usize,
    has_forgotten: bool,
}

impl StreamOrder {
    /// The most sessions that are remembered at a time, ended ones included.
    pub const MAX_SESSIONS: usize = 4096;

    /// About how much memory all sessions together may take.
    pub const MAX_BYTES: usize = 8 * 1024 * 1024;

    /// The order of a stream of which nothing has been read.
    pub fn new() -> Self {
        StreamOrder::default()
    }

    /// Takes the next message of the stream and lists how it breaks the order.
    pub fn observe(&mut self, message: &Message) -> Vec<OrderViolation> {
        match message {
            Message::Event(event) => return self.observe_event(event),
            Message::ConfirmationReply(reply) => {
                let session = self.asked_in.get(&reply.reply_token);
                if let Some(followed) = session.and_then(|id| self.sessions.get_mut(id))
                    && let Some(grant) = followed.asks.reply(reply)
                {
                    followed.order.accept(grant);
                }
            }
            _ => {}
        }
        Vec::new()
    }

    /// Takes the next event of the stream without checking it, because the recording began in the
    /// middle of its session. Later events of that session are not reported for a missing start.
    pub fn pass_over(&mut self, event: &Event) {
        if self.passed_over.len() < Self::MAX_SESSIONS {
            self.passed_over.insert(event.envelope.session_id.clone());
        } else {
            self.has_forgotten = true;
        }
    }

    /// Takes the next event of the stream and lists how it breaks the order.
    pub fn observe_event(&mut self, event: &Event) -> Vec<OrderViolation> {
        let id = &event.envelope.session_id;
        let delivery = event.extensions.as_ref().and_then(|_| Delivery::of(event));
        let mut before = 0;
        if let Some(followed) = self.sessions.get(id) {
            before = followed.memory_bytes();
        } else {
            self.oldest.push_back(id.clone());
        }
        let followed = self.sessions.entry(id.clone()).or_default();
        let may_have_started = self.has_forgotten || self.passed_over.contains(id);
        let violations = followed.observe(event, delivery.as_ref(), may_have_started);
        if followed.order.is_ended() {
            let asks = std::mem::take(&mut followed.asks);
            forget_tokens(&mut self.asked_in, &asks, id);
        } else if let Payload::AwaitingConfirmation(asked) = &event.payload {
            self.asked_in.insert(asked.reply_token.clone(), id.clone());
        }
        self.bytes = self.bytes.saturating_sub(before) + followed.memory_bytes();
        self.forget_the_oldest();
        violations
    }

    fn forget_the_oldest(&mut self) {
        while self.sessions.len() > Self::MAX_SESSIONS || self.bytes > Self::MAX_BYTES {
            let Some(id) = self.oldest.pop_front() else { return };
            let Some(forgotten) = self.sessions.remove(&id) else { continue };
            forget_tokens(&mut self.asked_in, &forgotten.asks, &id);
            self.bytes = self.bytes.saturating_sub(forgotten.memory_bytes());
            self.has_forgotten = true;
        }
    }
}

/// Forgets in which session tokens were issued, unless another session has issued the same token
/// since.
fn forget_tokens(
    asked_in: &mut BTreeMap<ReplyToken, SessionId>,
    asks: &StreamAsks,
    id: &SessionId,
) {
    for token in asks.tokens() {
        if asked_in.get(token) == Some(id) {
            asked_in.remove(token);
        }
    }
}

/// A session of the stream.
#[derive(Debug, Default)]
struct FollowedSession {
    order: SessionOrder,
    asks: StreamAsks,
}

impl FollowedSession {
    /// Lists how an event breaks the order, then continues as if it had not.
    fn observe(
        &mut self,
        event: &Event,
        delivery: Option<&Delivery>,
        may_have_started: bool,
    ) -> Vec<OrderViolation> {
        if self.order.phase == SessionPhase::Ended {
            return vec![OrderViolation::Ended];
        }
        self.order.is_capture = true;
        let mut violations = Vec::new();
        let has_gap = delivery.is_some_and(|delivery| delivery.gap.is_some());
        match self.order.check_phase(event) {
            // The stream itself reports a gap, or the session started before checking began.
            Err(OrderViolation::NotStarted) if has_gap || may_have_started => {
                self.order.join_late();
            }
            Err(OrderViolation::NotStarted) => {
                violations.push(OrderViolation::NotStarted);
                self.order.join_late();
            }
            Err(violation) => violations.push(violation),
            Ok(()) if has_gap && self.order.is_started() => self.order.join_late(),
            Ok(()) => {}
        }
        let now_us = event.envelope.timestamp.unix_us();
        for grant in self.asks.expire(now_us) {
            self.order.accept(grant);
        }
        violations.extend(self.order.check_time(&event.envelope).err());
        violations.extend(self.order.check_sequence(event).err());
        if !is_made_by_hub(event, delivery) {
            violations.extend(self.order.check_payload(event).err());
        }
        self.take(event, delivery);
        violations
    }

    fn take(&mut self, event: &Event, delivery: Option<&Delivery>) {
        self.order.take(event);
        if let Payload::AwaitingConfirmation(asked) = &event.payload {
            let most_seconds = delivery.and_then(|it| it.max_timeout_seconds).unwrap_or(0);
            self.asks.ask(event, asked, most_seconds);
        }
        if let (Payload::StateChanged(changed), true) =
            (&event.payload, is_made_by_hub(event, delivery))
        {
            self.order.tell(&event.envelope.producer.agent_id, &changed.to_state);
        }
        let Some(delivery) = delivery else { return };
        if let Some(grant) =
            delivery.resolution.as_ref().and_then(|it| self.asks.resolve(event, it))
        {
            self.order.accept(grant);
        }
        // A merged event may stand for tools that began or ended (ruling 10).
        if delivery.merged.is_some() && !matches!(event.payload, Payload::OutputStreaming(_)) {
            self.order.tools.lose_track();
        }
    }

    fn memory_bytes(&self) -> usize {
        self.order.memory_bytes() + self.asks.memory_bytes()
    }
}

/// Whether a hub made this state change: it merges several changes or settles an ask, and may have
/// overtaken other events (rulings 7, 10, 18). The chain of states is then learned from it.
fn is_made_by_hub(event: &Event, delivery: Option<&Delivery>) -> bool {
    let is_made = delivery.is_some_and(|it| it.merged.is_some() || it.resolution.is_some());
    is_made && matches!(event.payload, Payload::StateChanged(_))
}
