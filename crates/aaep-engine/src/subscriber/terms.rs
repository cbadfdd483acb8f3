//! What a subscriber sends to subscribe, to change its terms and to leave, and how it handles the
//! answers (§5.2, §5.7, §5.8).

use aaep::handshake::{
    SubscriptionAccepted, SubscriptionClose, SubscriptionRejected, SubscriptionRenegotiate,
    SubscriptionRequest,
};
use aaep::{Capabilities, Code, Message, Object, ReasonName, Severity, SubscriptionId, Violation};

use super::asks::WhyWithdrawn;
use super::handshake::{
    HeldSubscription, HowEnded, IN_FLIGHT_US, SentRequest, SubscriptionState, grant,
};
use super::{
    HeardMessage, Received, SubscriberChange, SubscriberRules, SubscriberViolation, can_answer,
};
use crate::clock::Now;
use crate::io::EndReason;

/// Why a handshake message was not made. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CannotAsk {
    /// There is no subscription. Subscribe first.
    NotSubscribed,
    /// An answer is still pending. Only one change of terms can be pending at a time.
    AlreadyAsked,
    /// The message would not be valid, or claims level 2 without the ability to answer.
    Malformed(Vec<Violation>),
}

impl SubscriberRules {
    /// The request that begins a subscription (§5.2) or replaces the last one. Sessions, asks and
    /// heard events stay known, so that a resumed stream can be followed.
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
        self.standing = SubscriptionState::Asked(Box::new(SentRequest { version, capabilities }));
        Ok(request)
    }

    /// Notes that the stream is served without a handshake (ruling 3): nothing is promised, so no
    /// promise can be broken. Asks can be answered if the stream has a subscription id.
    pub fn without_handshake(&mut self, id: Option<SubscriptionId>) {
        let held = HeldSubscription { id, granted: None, changing: None, before: None };
        self.standing = SubscriptionState::Holds(Box::new(held));
        self.asks.allow(|_| true);
    }

    /// Requests other terms (§5.7). Only the capabilities that are named change.
    pub fn renegotiate(
        &mut self,
        change: Capabilities,
    ) -> Result<SubscriptionRenegotiate, CannotAsk> {
        let SubscriptionState::Holds(held) = &mut self.standing else {
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

    /// Ends the subscription (§5.8). Open asks can no longer be answered from here.
    pub fn close(
        &mut self,
        reason_code: Option<ReasonName>,
        reason_message: Option<String>,
    ) -> Result<(SubscriptionClose, Vec<SubscriberChange>), CannotAsk> {
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
                out.add_violation(SubscriberViolation::Unexpected("subscription.request"));
            }
            Message::SubscriptionRenegotiate(_) => {
                out.add_violation(SubscriberViolation::Unexpected("subscription.renegotiate"));
            }
            Message::ConfirmationReply(_) => {
                out.add_violation(SubscriberViolation::Unexpected("confirmation.reply"));
            }
            Message::ClarificationReply(_) => {
                out.add_violation(SubscriberViolation::Unexpected("clarification.reply"));
            }
            _ => {}
        }
        out.heard = Some(HeardMessage::Other(Box::new(message)));
    }

    fn accepted(&mut self, now: Now, accepted: &SubscriptionAccepted, out: &mut Received) {
        let awaited = match &self.standing {
            SubscriptionState::Asked(wanted) => Some(((**wanted).clone(), None)),
            SubscriptionState::Holds(held) => {
                held.changing.clone().zip(held.granted.as_ref()).map(|(capabilities, granted)| {
                    let version = granted.wanted.version.clone();
                    let until_us = now.monotonic_us.saturating_add(IN_FLIGHT_US);
                    let before = (granted.terms.clone(), until_us);
                    (SentRequest { version, capabilities }, Some(before))
                })
            }
            SubscriptionState::New | SubscriptionState::Over => None,
        };
        let Some((wanted, before)) = awaited else {
            return out.add_violation(SubscriberViolation::Unexpected("subscription.accepted"));
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
        let held = HeldSubscription {
            id: Some(id.clone()),
            granted: Some(granted),
            changing: None,
            before,
        };
        self.standing = SubscriptionState::Holds(Box::new(held));
        out.changes.push(SubscriberChange::TermsChanged);
    }

    /// Handles a rejection. It names no subscription, so it counts only if a request is pending.
    fn rejected(&mut self, rejected: &SubscriptionRejected, out: &mut Received) {
        let is_awaited = match &self.standing {
            SubscriptionState::Asked(_) => true,
            SubscriptionState::Holds(held) => held.changing.is_some(),
            SubscriptionState::New | SubscriptionState::Over => false,
        };
        if is_awaited {
            let how = HowEnded::Rejected(Box::new(rejected.clone()));
            self.end(how, &mut out.changes);
        } else {
            out.add_violation(SubscriberViolation::Unexpected("subscription.rejected"));
        }
    }

    fn closed(&mut self, close: &SubscriptionClose, out: &mut Received) {
        if !self.is_ours(&close.subscription_id, "subscription.close", out) {
            return;
        }
        let code = close.reason_code.as_ref().map(ReasonName::as_str);
        if code == Some(EndReason::ProducerShutdown.code()) {
            let reason = close.reason_message.clone();
            out.changes.push(SubscriberChange::ProducerStops { reason });
        } else {
            let how = HowEnded::ClosedByProducer(close.reason_message.clone());
            self.end(how, &mut out.changes);
        }
    }

    /// Whether a message is about this subscription. If not, a violation is reported.
    fn is_ours(&self, found: &SubscriptionId, name: &'static str, out: &mut Received) -> bool {
        match self.subscription_id() {
            Some(expected) if expected == found => return true,
            Some(expected) => {
                let (expected, found) = (expected.clone(), found.clone());
                out.add_violation(SubscriberViolation::WrongSubscription { expected, found });
            }
            None => out.add_violation(SubscriberViolation::Unexpected(name)),
        }
        false
    }

    fn end(&mut self, how: HowEnded, changes: &mut Vec<SubscriberChange>) {
        self.asks.withdraw(|_| true, &WhyWithdrawn::SubscriptionEnded, changes);
        self.standing = SubscriptionState::Over;
        changes.push(SubscriberChange::SubscriptionEnded { how });
    }
}

/// Refuses a message that a strict reader would refuse, or one that claims level 2 without answers
/// (§5.3.1.4).
fn refuse_malformed(mut violations: Vec<Violation>) -> Result<(), CannotAsk> {
    violations.retain(|it| it.severity == Severity::Error || it.code == Code::CannotReply);
    if violations.is_empty() { Ok(()) } else { Err(CannotAsk::Malformed(violations)) }
}
