//! What a subscriber sends to come, to change its terms and to go, and what it makes of the answers
//! (§5.2, §5.7, §5.8).

use aaep::handshake::{
    SubscriptionAccepted, SubscriptionClose, SubscriptionRejected, SubscriptionRenegotiate,
    SubscriptionRequest,
};
use aaep::{Capabilities, Code, Message, Object, ReasonName, Severity, SubscriptionId, Violation};

use super::asks::WhyWithdrawn;
use super::handshake::{Held, HowEnded, IN_FLIGHT_US, Standing, Wanted, grant};
use super::{Change, Heard, Received, Subscriber, SubscriberViolation, can_answer};
use crate::clock::Now;
use crate::io::EndReason;

/// Why a message of the handshake was not made. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CannotAsk {
    /// There is no subscription that it could be about. Subscribe first.
    NotSubscribed,
    /// An answer is still awaited; only one change of terms is on its way at a time.
    AlreadyAsked,
    /// The message would not be valid, or claims level 2 without being able to answer.
    Malformed(Vec<Violation>),
}

impl Subscriber {
    /// The request that begins a subscription (§5.2), or one that takes the place of the last one.
    /// Sessions, questions and what was heard stay known, so that a resumed stream can be followed.
    pub fn request(
        &mut self,
        capabilities: Capabilities,
    ) -> Result<SubscriptionRequest, CannotAsk> {
        let request = SubscriptionRequest {
            aaep_version: self.config.version.clone(),
            subscriber_id: self.config.subscriber_id.clone(),
            subscriber_name: self.config.subscriber_name.clone(),
            subscriber_version: self.config.subscriber_version.clone(),
            subscriber_manifest_uri: None,
            correlation_id: None,
            capabilities: capabilities.clone(),
            extensions: None,
            other: Object::new(),
        };
        refuse_malformed(aaep::check(&request))?;
        let version = self.config.version.clone();
        self.standing = Standing::Asked(Box::new(Wanted { version, capabilities }));
        Ok(request)
    }

    /// The stream is served without a handshake (ruling 3): nothing is promised, so nothing of it can
    /// be broken. Questions can be answered if the stream has an id to answer on.
    pub fn without_handshake(&mut self, id: Option<SubscriptionId>) {
        let held = Held { id, granted: None, changing: None, before: None };
        self.standing = Standing::Holds(Box::new(held));
        self.asks.allow(|_| true);
    }

    /// Asks for other terms (§5.7). Only what is named changes.
    pub fn renegotiate(
        &mut self,
        change: Capabilities,
    ) -> Result<SubscriptionRenegotiate, CannotAsk> {
        let Standing::Holds(held) = &mut self.standing else {
            return Err(CannotAsk::NotSubscribed);
        };
        let (Some(id), Some(granted)) = (&held.id, &held.granted) else {
            return Err(CannotAsk::NotSubscribed);
        };
        if held.changing.is_some() {
            return Err(CannotAsk::AlreadyAsked);
        }
        let wanted = granted.wanted.capabilities.overlaid_with(&change);
        let message = SubscriptionRenegotiate {
            subscription_id: id.clone(),
            capabilities: change,
            correlation_id: None,
            extensions: None,
            other: Object::new(),
        };
        refuse_malformed(aaep::check(&message))?;
        held.changing = Some(wanted);
        Ok(message)
    }

    /// Says goodbye (§5.8). Open questions can no longer be answered from here.
    pub fn close(
        &mut self,
        reason_code: Option<ReasonName>,
        reason_message: Option<String>,
    ) -> Result<(SubscriptionClose, Vec<Change>), CannotAsk> {
        let id = self.subscription_id().cloned().ok_or(CannotAsk::NotSubscribed)?;
        let message = SubscriptionClose {
            subscription_id: id,
            reason_code,
            reason_message,
            correlation_id: None,
            extensions: None,
            other: Object::new(),
        };
        refuse_malformed(aaep::check(&message))?;
        let mut changes = Vec::new();
        self.end(HowEnded::ClosedByUs, &mut changes);
        Ok((message, changes))
    }

    /// Takes a message that is not an event.
    pub(super) fn take_message(&mut self, now: Now, message: Message, out: &mut Received) {
        match &message {
            Message::SubscriptionAccepted(accepted) => self.accepted(now, accepted, out),
            Message::SubscriptionRejected(rejected) => self.rejected(rejected, out),
            Message::SubscriptionClose(close) => self.closed(close, out),
            Message::SubscriptionRequest(_) => {
                out.wrong(SubscriberViolation::Unexpected("subscription.request"));
            }
            Message::SubscriptionRenegotiate(_) => {
                out.wrong(SubscriberViolation::Unexpected("subscription.renegotiate"));
            }
            Message::ConfirmationReply(_) => {
                out.wrong(SubscriberViolation::Unexpected("confirmation.reply"));
            }
            Message::ClarificationReply(_) => {
                out.wrong(SubscriberViolation::Unexpected("clarification.reply"));
            }
            _ => {}
        }
        out.heard = Some(Heard::Other(Box::new(message)));
    }

    fn accepted(&mut self, now: Now, accepted: &SubscriptionAccepted, out: &mut Received) {
        let awaited = match &self.standing {
            Standing::Asked(wanted) => Some(((**wanted).clone(), None)),
            Standing::Holds(held) => {
                held.changing.clone().zip(held.granted.as_ref()).map(|(capabilities, granted)| {
                    let version = granted.wanted.version.clone();
                    let until_us = now.monotonic_us.saturating_add(IN_FLIGHT_US);
                    let before = (granted.terms.clone(), until_us);
                    (Wanted { version, capabilities }, Some(before))
                })
            }
            Standing::New | Standing::Over => None,
        };
        let Some((wanted, before)) = awaited else {
            return out.wrong(SubscriberViolation::Unexpected("subscription.accepted"));
        };
        let id = &accepted.subscription_id;
        if before.is_some() && !self.is_ours(id, "subscription.accepted", out) {
            return;
        }
        let (granted, violations) = grant(wanted, accepted);
        out.violations.extend(violations);
        self.doubts.add(&granted.terms);
        self.sessions.forget_numbers();
        let terms = granted.terms.clone();
        self.asks.allow(|event| can_answer(Some(&terms), event));
        let held = Held { id: Some(id.clone()), granted: Some(granted), changing: None, before };
        self.standing = Standing::Holds(Box::new(held));
        out.changes.push(Change::TermsChanged);
    }

    /// A refusal counts only where something was asked: it names no subscription.
    fn rejected(&mut self, rejected: &SubscriptionRejected, out: &mut Received) {
        let is_awaited = match &self.standing {
            Standing::Asked(_) => true,
            Standing::Holds(held) => held.changing.is_some(),
            Standing::New | Standing::Over => false,
        };
        if is_awaited {
            let how = HowEnded::Rejected(Box::new(rejected.clone()));
            self.end(how, &mut out.changes);
        } else {
            out.wrong(SubscriberViolation::Unexpected("subscription.rejected"));
        }
    }

    fn closed(&mut self, close: &SubscriptionClose, out: &mut Received) {
        if !self.is_ours(&close.subscription_id, "subscription.close", out) {
            return;
        }
        let code = close.reason_code.as_ref().map(ReasonName::as_str);
        if code == Some(EndReason::ProducerShutdown.code()) {
            let reason = close.reason_message.clone();
            out.changes.push(Change::ProducerStops { reason });
        } else {
            let how = HowEnded::ClosedByProducer(close.reason_message.clone());
            self.end(how, &mut out.changes);
        }
    }

    /// Whether a message is about this subscription; if not, that is said.
    fn is_ours(&self, found: &SubscriptionId, name: &'static str, out: &mut Received) -> bool {
        match self.subscription_id() {
            Some(expected) if expected == found => return true,
            Some(expected) => {
                let (expected, found) = (expected.clone(), found.clone());
                out.wrong(SubscriberViolation::WrongSubscription { expected, found });
            }
            None => out.wrong(SubscriberViolation::Unexpected(name)),
        }
        false
    }

    fn end(&mut self, how: HowEnded, changes: &mut Vec<Change>) {
        self.asks.withdraw(|_| true, &WhyWithdrawn::SubscriptionEnded, changes);
        self.standing = Standing::Over;
        changes.push(Change::SubscriptionEnded { how });
    }
}

/// What a strict reader refuses is not sent; nor is a claim to level 2 without answers (§5.3.1.4).
fn refuse_malformed(mut violations: Vec<Violation>) -> Result<(), CannotAsk> {
    violations.retain(|it| it.severity == Severity::Error || it.code == Code::CannotReply);
    if violations.is_empty() { Ok(()) } else { Err(CannotAsk::Malformed(violations)) }
}
