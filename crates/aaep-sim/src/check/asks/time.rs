//! The time of asks: never longer than the agent allows, and changed only by subscribers that may change it.

use std::collections::BTreeMap;

use aaep::extension::{DecidedBy, Delivery};
use aaep::{Payload, ReplyToken};
use aaep_engine::{EngineInput, Output, PrincipalNumber, Record};

use super::can_answer;
use super::open::{TrackedAsk, left_us, token_of};
use crate::check::{HubStep, Invariant, WorldMoment};
use crate::truth::WorldTruth;

const SECOND_US: u64 = 1_000_000;

/// No ask outlives the maximum that its agent stated or, without one, its timeout.
#[derive(Default)]
pub struct WithinMaximum {
    /// The latest end of each open ask, according to the agent and not to the hub.
    limits: BTreeMap<ReplyToken, u64>,
    /// Whether the machine's clock jumped while the hub was down.
    clock_jumped: bool,
}

impl Invariant for WithinMaximum {
    fn name(&self) -> &'static str {
        "within the agent's maximum"
    }

    fn meaning(&self) -> &'static str {
        "No question stays open, or is said to, beyond the maximum that its agent stated."
    }

    fn see(&mut self, _: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        self.clock_jumped |= matches!(moment, WorldMoment::Restarted { clock_jumped: true });
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        let now_us = step.now.monotonic_us;
        let clock_jumped = std::mem::take(&mut self.clock_jumped);
        for output in step.outputs {
            match output {
                // A clock that was set back hides how long the hub was down.
                Output::Time(record) if clock_jumped => {
                    let left = record.limit_unix_us - step.now.unix_us;
                    let limit_us = now_us + u64::try_from(left).unwrap_or(0);
                    self.limits.insert(record.reply_token.clone(), limit_us);
                }
                Output::Record(Record { event, .. }) => {
                    if let Some(token) = token_of(&event.payload) {
                        self.limits.insert(token.clone(), now_us + most_us(step));
                    }
                    let Some(deadline) = Delivery::of(event).and_then(|it| it.deadline) else {
                        continue;
                    };
                    let left = deadline.at.unix_us() - event.envelope.timestamp.unix_us();
                    let until_us = now_us + u64::try_from(left).unwrap_or(0);
                    let token = &deadline.reply_token;
                    if self.limits.get(token).is_none_or(|limit_us| until_us > *limit_us) {
                        return Err(format!("{token} is said to be open beyond its maximum."));
                    }
                }
                Output::Settled { reply_token, .. } => drop(self.limits.remove(reply_token)),
                _ => {}
            }
        }
        let over = self.limits.iter().find(|(_, limit_us)| **limit_us <= now_us);
        over.map_or(Ok(()), |(token, _)| Err(format!("{token} is open beyond its maximum.")))
    }
}

/// How long the ask of this step may stay open, according to its agent.
fn most_us(step: &HubStep<'_>) -> u64 {
    let EngineInput::Publish { event, .. } = step.input else { return 0 };
    let timeout_seconds = match &event.payload {
        Payload::AwaitingConfirmation(it) => it.timeout_seconds,
        Payload::AwaitingClarification(it) => it.timeout_seconds,
        _ => 0,
    };
    let most_seconds = Delivery::of(event).and_then(|it| it.max_timeout_seconds).unwrap_or(0);
    timeout_seconds.max(most_seconds) * SECOND_US
}

/// A stop of the hub gives no ask more time, whatever the machine's clock did meanwhile.
#[derive(Default)]
pub struct NoExtraTimeAfterStop {
    /// The time that each open ask had left when it was last stored, and when that time ends.
    left: BTreeMap<ReplyToken, (u64, u64)>,
    is_restarted: bool,
}

impl Invariant for NoExtraTimeAfterStop {
    fn name(&self) -> &'static str {
        "no more time after a stop"
    }

    fn meaning(&self) -> &'static str {
        "After a stop, a question has at most as much time left as when its time was last stored, and is \
         settled when that is over."
    }

    fn see(&mut self, _: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        self.is_restarted |= matches!(moment, WorldMoment::Restarted { .. });
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        let is_restarted = std::mem::take(&mut self.is_restarted);
        let now_us = step.now.monotonic_us;
        if is_restarted {
            for (left_us, until_us) in self.left.values_mut() {
                *until_us = now_us + *left_us;
            }
        }
        for output in step.outputs {
            match output {
                Output::Time(record) => {
                    let (token, left_us) = (&record.reply_token, left_us(record, step.now));
                    let before = self.left.insert(token.clone(), (left_us, now_us + left_us));
                    if is_restarted && before.is_none_or(|(before_us, _)| left_us > before_us) {
                        return Err(format!("{token} has more time left than before the stop."));
                    }
                }
                Output::Settled { reply_token, decided_by, .. } => {
                    let left = self.left.remove(reply_token);
                    let is_late = left.is_some_and(|(_, until_us)| until_us <= now_us);
                    if is_late && *decided_by == DecidedBy::Reply {
                        return Err(format!("{reply_token} was answered after its time."));
                    }
                }
                _ => {}
            }
        }
        let over = self.left.iter().find(|(_, (_, until_us))| *until_us <= now_us);
        over.map_or(Ok(()), |(token, _)| Err(format!("{token} is open longer than was stored.")))
    }
}

/// More time is given only to subscribers that may request it.
#[derive(Default)]
pub struct ExtraTimeAllowed {
    open: BTreeMap<ReplyToken, TrackedAsk>,
}

impl Invariant for ExtraTimeAllowed {
    fn name(&self) -> &'static str {
        "more time for who may ask"
    }

    fn meaning(&self) -> &'static str {
        "The time of a question changes only for someone who can answer it and was granted that, and \
         only where its agent allows it; every such wish is answered once."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        let change = AskTimeChange::of(step.input);
        let mut answers = 0;
        for output in step.outputs {
            match output {
                Output::Record(Record { event, principal, .. }) => {
                    if let Some(ask) =
                        TrackedAsk::of(event, *principal, truth, step.now.monotonic_us)
                    {
                        self.open.insert(ask.token.clone(), ask);
                    }
                }
                Output::TimeReplied { is_accepted } => {
                    answers += 1;
                    let is_right =
                        change.as_ref().is_some_and(|change| self.may_change(truth, change));
                    if *is_accepted && !is_right {
                        return Err("More time was given to someone who may not ask.".to_owned());
                    }
                }
                Output::Settled { reply_token, .. } => drop(self.open.remove(reply_token)),
                _ => {}
            }
        }
        if answers != usize::from(change.is_some()) {
            return Err(format!("A step had {answers} answers to a wish for time."));
        }
        Ok(())
    }
}

impl ExtraTimeAllowed {
    fn may_change(&self, truth: &WorldTruth, change: &AskTimeChange<'_>) -> bool {
        let may_change = || {
            let ask = self.open.get(change.token)?;
            let (_, subscription) = truth.named(change.subscription)?;
            let terms = &subscription.terms;
            let is_granted = if change.is_presented { terms.presented } else { terms.extends };
            let is_theirs = subscription.principal == change.principal
                && can_answer(subscription, ask.is_confirmation, ask.principal);
            Some(is_granted && is_theirs && ask.limit_us > ask.asked_until_us)
        };
        may_change().unwrap_or(false)
    }
}

/// A subscriber's request about the time of an ask.
struct AskTimeChange<'a> {
    principal: PrincipalNumber,
    subscription: &'a aaep::SubscriptionId,
    token: &'a ReplyToken,
    is_presented: bool,
}

impl<'a> AskTimeChange<'a> {
    fn of(input: &'a EngineInput) -> Option<Self> {
        let is_presented = matches!(input, EngineInput::Presented { .. });
        match input {
            EngineInput::Presented { principal, subscription_id, reply_token }
            | EngineInput::Extend { principal, subscription_id, reply_token, .. }
            | EngineInput::Pause { principal, subscription_id, reply_token }
            | EngineInput::Resume { principal, subscription_id, reply_token } => {
                Some(AskTimeChange {
                    principal: *principal,
                    subscription: subscription_id,
                    token: reply_token,
                    is_presented,
                })
            }
            _ => None,
        }
    }
}
