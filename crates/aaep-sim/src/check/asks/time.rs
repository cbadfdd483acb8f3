//! The time of questions: never beyond what the agent allows, and changed only by who may.

use std::collections::BTreeMap;

use aaep::extension::{DecidedBy, Delivery};
use aaep::{Payload, ReplyToken};
use aaep_engine::{Input, Output, Principal, Record};

use super::can_answer;
use super::open::{Question, left_us, token_of};
use crate::check::{Invariant, Moment, Step};
use crate::truth::Truth;

const SECOND_US: u64 = 1_000_000;

/// No question outlives the maximum that its agent stated, or its timeout where there is none.
#[derive(Default)]
pub struct Maximum {
    /// When each open question is over at the latest, by what the agent said and not the hub.
    limits: BTreeMap<ReplyToken, u64>,
    /// Whether the clock jumped while the hub was down.
    clock_jumped: bool,
}

impl Invariant for Maximum {
    fn name(&self) -> &'static str {
        "within the agent's maximum"
    }

    fn meaning(&self) -> &'static str {
        "No question stays open, or is said to, beyond the maximum that its agent stated."
    }

    fn see(&mut self, _: &Truth, moment: &Moment<'_>) -> Result<(), String> {
        self.clock_jumped |= matches!(moment, Moment::Restarted { clock_jumped: true });
        let Moment::Handled(step) = moment else { return Ok(()) };
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
                Output::Resolved { reply_token, .. } => drop(self.limits.remove(reply_token)),
                _ => {}
            }
        }
        let over = self.limits.iter().find(|(_, limit_us)| **limit_us <= now_us);
        over.map_or(Ok(()), |(token, _)| Err(format!("{token} is open beyond its maximum.")))
    }
}

/// How long the question that is asked in this step may stay open, in the agent's own words.
fn most_us(step: &Step<'_>) -> u64 {
    let Input::Publish { event, .. } = step.input else { return 0 };
    let timeout_seconds = match &event.payload {
        Payload::AwaitingConfirmation(it) => it.timeout_seconds,
        Payload::AwaitingClarification(it) => it.timeout_seconds,
        _ => 0,
    };
    let most_seconds = Delivery::of(event).and_then(|it| it.max_timeout_seconds).unwrap_or(0);
    timeout_seconds.max(most_seconds) * SECOND_US
}

/// A stop gives no question more time, whatever the clock of the machine did meanwhile.
#[derive(Default)]
pub struct LessTime {
    /// How much was left of each open question when its time was last stored, and until when that lasts.
    left: BTreeMap<ReplyToken, (u64, u64)>,
    is_restarted: bool,
}

impl Invariant for LessTime {
    fn name(&self) -> &'static str {
        "no more time after a stop"
    }

    fn meaning(&self) -> &'static str {
        "After a stop, a question has at most as much time left as when its time was last stored, and is \
         settled when that is over."
    }

    fn see(&mut self, _: &Truth, moment: &Moment<'_>) -> Result<(), String> {
        self.is_restarted |= matches!(moment, Moment::Restarted { .. });
        let Moment::Handled(step) = moment else { return Ok(()) };
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
                Output::Resolved { reply_token, decided_by, .. } => {
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

/// More time is given only to who may ask for it.
#[derive(Default)]
pub struct MoreTime {
    open: BTreeMap<ReplyToken, Question>,
}

impl Invariant for MoreTime {
    fn name(&self) -> &'static str {
        "more time for who may ask"
    }

    fn meaning(&self) -> &'static str {
        "The time of a question changes only for someone who can answer it and was granted that, and \
         only where its agent allows it; every such wish is answered once."
    }

    fn see(&mut self, truth: &Truth, moment: &Moment<'_>) -> Result<(), String> {
        let Moment::Handled(step) = moment else { return Ok(()) };
        let wish = Wish::of(step.input);
        let mut answers = 0;
        for output in step.outputs {
            match output {
                Output::Record(Record { event, principal, .. }) => {
                    if let Some(question) =
                        Question::of(event, *principal, truth, step.now.monotonic_us)
                    {
                        self.open.insert(question.token.clone(), question);
                    }
                }
                Output::TimeReplied { is_accepted } => {
                    answers += 1;
                    let is_right = wish.as_ref().is_some_and(|wish| self.may(truth, wish));
                    if *is_accepted && !is_right {
                        return Err("More time was given to someone who may not ask.".to_owned());
                    }
                }
                Output::Resolved { reply_token, .. } => drop(self.open.remove(reply_token)),
                _ => {}
            }
        }
        if answers != usize::from(wish.is_some()) {
            return Err(format!("A step had {answers} answers to a wish for time."));
        }
        Ok(())
    }
}

impl MoreTime {
    fn may(&self, truth: &Truth, wish: &Wish<'_>) -> bool {
        let may = || {
            let question = self.open.get(wish.token)?;
            let (_, subscription) = truth.named(wish.subscription)?;
            let terms = &subscription.terms;
            let is_granted = if wish.is_presented { terms.presented } else { terms.extends };
            let is_theirs = subscription.principal == wish.principal
                && can_answer(subscription, question.is_confirmation, question.principal);
            Some(is_granted && is_theirs && question.limit_us > question.asked_until_us)
        };
        may().unwrap_or(false)
    }
}

/// What someone wants of the time of a question.
struct Wish<'a> {
    principal: Principal,
    subscription: &'a aaep::SubscriptionId,
    token: &'a ReplyToken,
    is_presented: bool,
}

impl<'a> Wish<'a> {
    fn of(input: &'a Input) -> Option<Self> {
        let is_presented = matches!(input, Input::Presented { .. });
        match input {
            Input::Presented { principal, subscription_id, reply_token }
            | Input::Extend { principal, subscription_id, reply_token, .. }
            | Input::Pause { principal, subscription_id, reply_token }
            | Input::Resume { principal, subscription_id, reply_token } => Some(Wish {
                principal: *principal,
                subscription: subscription_id,
                token: reply_token,
                is_presented,
            }),
            _ => None,
        }
    }
}
