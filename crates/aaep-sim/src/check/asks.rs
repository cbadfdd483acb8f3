//! Asks: each has one outcome, only a person or an allowed default can accept, and none hangs.

mod open;
mod time;

use std::collections::{BTreeMap, BTreeSet};

use aaep::extension::{AskOutcome, DecidedBy};
use aaep::{Payload, ReplyToken};
use aaep_engine::{EngineInput, Output, PrincipalNumber, Record};

use super::{Invariant, WorldMoment};
use crate::hub::GRACE_US;
use crate::truth::{SubscriberPresence, WorldSubscription, WorldTruth};
pub use open::token_of as token_in;
use open::{TrackedAsk, token_of};
pub use time::{ExtraTimeAllowed, NoExtraTimeAfterStop, WithinMaximum};

/// Every ask has exactly one outcome, and its agent learns it.
#[derive(Default)]
pub struct OneOutcome {
    open: BTreeMap<ReplyToken, PrincipalNumber>,
    settled: BTreeSet<ReplyToken>,
}

impl Invariant for OneOutcome {
    fn name(&self) -> &'static str {
        "one outcome per ask"
    }

    fn meaning(&self) -> &'static str {
        "Every question is settled exactly once, to the agent that asked, and every reply is \
         answered once."
    }

    fn see(&mut self, _: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let step = match moment {
            WorldMoment::Handled(step) => step,
            WorldMoment::Finished => {
                let left = self.open.keys().next();
                return left.map_or(Ok(()), |token| Err(format!("{token} was never settled.")));
            }
            _ => return Ok(()),
        };
        let mut replied = 0;
        for output in step.outputs {
            match output {
                Output::Record(Record { event, .. }) => {
                    let Some(token) = token_of(&event.payload) else { continue };
                    let EngineInput::Publish { principal, .. } = step.input else {
                        return Err(format!("{token} was asked by nobody."));
                    };
                    self.open.insert(token.clone(), *principal);
                }
                Output::Settled { principal, reply_token, .. } => {
                    if !self.settled.insert(reply_token.clone()) {
                        return Err(format!("{reply_token} was settled twice."));
                    }
                    match self.open.remove(reply_token) {
                        None => return Err(format!("{reply_token} was never asked.")),
                        Some(asker) if asker != *principal => {
                            return Err(format!(
                                "The answer to {reply_token} went to agent {principal}."
                            ));
                        }
                        Some(_) => {}
                    }
                }
                Output::Replied { .. } => replied += 1,
                _ => {}
            }
        }
        let is_reply =
            matches!(step.input, EngineInput::Confirm { .. } | EngineInput::Clarify { .. });
        if replied != usize::from(is_reply) {
            return Err(format!("A step had {replied} answers to a reply."));
        }
        Ok(())
    }
}

/// No principal answers its own ask.
#[derive(Default)]
pub struct NoSelfAnswer {
    asked: BTreeMap<ReplyToken, PrincipalNumber>,
}

impl Invariant for NoSelfAnswer {
    fn name(&self) -> &'static str {
        "nobody answers themselves"
    }

    fn meaning(&self) -> &'static str {
        "A reply of the principal that asked never counts (ruling 37)."
    }

    fn see(&mut self, _: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        let (replier, token) = match step.input {
            EngineInput::Publish { principal, event, .. } => {
                if let Some(token) = token_of(&event.payload) {
                    self.asked.entry(token.clone()).or_insert(*principal);
                }
                return Ok(());
            }
            EngineInput::Confirm { principal, reply } => (principal, &reply.reply_token),
            EngineInput::Clarify { principal, reply } => (principal, &reply.reply_token),
            _ => return Ok(()),
        };
        let counts = step.outputs.contains(&Output::Replied { is_accepted: true });
        if counts && self.asked.get(token) == Some(replier) {
            return Err(format!("{token} was answered by the principal that asked it."));
        }
        Ok(())
    }
}

/// No ask is accepted unless someone accepted it or its default allows that.
#[derive(Default)]
pub struct NoUngivenAccept {
    open: BTreeMap<ReplyToken, TrackedAsk>,
    /// Whether the machine's clock jumped while the hub was down.
    clock_jumped: bool,
}

impl Invariant for NoUngivenAccept {
    fn name(&self) -> &'static str {
        "no accept that nobody gave"
    }

    fn meaning(&self) -> &'static str {
        "A question is accepted only by the first valid reply that says so, or by a default that \
         may say so; a valid reply counts, and no other does. A no is valid whatever the agent \
         allows, and a rule accepts only what a rule may."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        self.clock_jumped |= matches!(moment, WorldMoment::Restarted { clock_jumped: true });
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        if std::mem::take(&mut self.clock_jumped) {
            self.open.values_mut().for_each(|it| it.take_time(step));
        }
        let now_us = step.now.monotonic_us;
        for (at, before) in step.newcomers(truth) {
            for ask in self.open.values_mut() {
                if before.is_some_and(|it| {
                    ask.recipients.contains(&it) || ask.inherited_by.contains(&it)
                }) {
                    ask.inherited_by.insert(at);
                }
            }
        }
        for output in step.outputs {
            match output {
                Output::Record(Record { event, principal, .. }) => {
                    self.open.values_mut().for_each(|it| it.follow(event, now_us));
                    if let Some(ask) = TrackedAsk::of(event, *principal, truth, now_us) {
                        self.open.insert(ask.token.clone(), ask);
                    }
                }
                Output::Deliver { frame, to } => {
                    for ask in self.open.values_mut() {
                        if ask.event.envelope.event_id == frame.event_id {
                            let recipients = to.iter().filter_map(|key| Some(truth.of(*key)?.0));
                            ask.recipients.extend(recipients);
                        }
                    }
                }
                Output::Replied { is_accepted } => {
                    let (token, is_valid) = self.judge(truth, step.input, now_us);
                    // A subscriber that resumes has the ask from before; the hub need not rely on that.
                    let is_open = self.may_know(truth, step.input);
                    if *is_accepted != is_valid && !is_open {
                        let was = if is_valid { "valid" } else { "not valid" };
                        let did = if *is_accepted { "counted" } else { "did not count" };
                        return Err(format!("A reply to {token} {did} and was {was}."));
                    }
                }
                Output::Settled { reply_token, outcome, decided_by, response, .. } => {
                    let Some(ask) = self.open.remove(reply_token) else { continue };
                    ask.check((outcome, response.as_ref()), decided_by, step.input, now_us)?;
                }
                _ => {}
            }
        }
        for ask in self.open.values_mut() {
            ask.recipients.retain(|at| {
                let subscription = &truth.subscriptions[*at];
                can_answer(subscription, ask.is_confirmation, ask.principal)
            });
        }
        Ok(())
    }
}

impl NoUngivenAccept {
    /// Whether a reply comes from a subscription that continues one that received the ask.
    fn may_know(&self, truth: &WorldTruth, input: &EngineInput) -> bool {
        let (token, id) = match input {
            EngineInput::Confirm { reply, .. } => (&reply.reply_token, &reply.subscription_id),
            EngineInput::Clarify { reply, .. } => (&reply.reply_token, &reply.subscription_id),
            _ => return false,
        };
        let at = truth.named(id).map(|(at, _)| at);
        let ask = self.open.get(token);
        at.zip(ask).is_some_and(|(at, ask)| ask.inherited_by.contains(&at))
    }

    /// The ask that a reply is for, and whether the reply should be accepted (§6.3.4, rulings 13 and 14).
    fn judge(&self, truth: &WorldTruth, input: &EngineInput, now_us: u64) -> (String, bool) {
        let (principal, token, id) = match input {
            EngineInput::Confirm { principal, reply } => {
                (*principal, &reply.reply_token, &reply.subscription_id)
            }
            EngineInput::Clarify { principal, reply } => {
                (*principal, &reply.reply_token, &reply.subscription_id)
            }
            _ => return ("nothing".to_owned(), false),
        };
        let is_valid = || {
            let ask = self.open.get(token)?;
            let (at, subscription) = truth.named(id)?;
            let is_theirs = subscription.principal == principal
                && can_answer(subscription, ask.is_confirmation, ask.principal)
                && ask.recipients.contains(&at);
            Some(is_theirs && now_us < ask.deadline_us && ask.takes(input))
        };
        (token.as_str().to_owned(), is_valid().unwrap_or(false))
    }
}

/// Whether a subscription can answer the asks of this principal; never if they are its own (ruling 37).
fn can_answer(
    subscription: &WorldSubscription,
    is_confirmation: bool,
    asker: PrincipalNumber,
) -> bool {
    let terms = &subscription.terms;
    let is_able = if is_confirmation { terms.confirms } else { terms.clarifies };
    is_able
        && subscription.may_reply
        && subscription.principal != asker
        && subscription.presence != SubscriberPresence::Gone
}

/// An ask stays open as long as a subscriber can answer it in time, and no longer.
#[derive(Default)]
pub struct SettledInTime {
    open: BTreeMap<ReplyToken, TrackedAsk>,
    /// Whether the hub was killed: all subscribers may then be on their way back.
    is_restarted: bool,
    clock_jumped: bool,
    patient_until_us: u64,
}

impl Invariant for SettledInTime {
    fn name(&self) -> &'static str {
        "settled in time"
    }

    fn meaning(&self) -> &'static str {
        "A default applies when time is over, or when nobody is left who could answer, and never \
         before."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        self.is_restarted |= matches!(moment, WorldMoment::Restarted { .. });
        self.clock_jumped |= matches!(moment, WorldMoment::Restarted { clock_jumped: true });
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        if std::mem::take(&mut self.clock_jumped) {
            self.open.values_mut().for_each(|it| it.take_time(step));
        }
        if std::mem::take(&mut self.is_restarted) {
            self.patient_until_us = step.now.monotonic_us + GRACE_US;
        }
        let now_us = step.now.monotonic_us;
        let is_waited_for = |at: usize, ask: &TrackedAsk, presence: SubscriberPresence| {
            can_answer(&truth.subscriptions[at], ask.is_confirmation, ask.principal)
                && match presence {
                    SubscriberPresence::Away(since) => since + GRACE_US > now_us,
                    SubscriberPresence::Here | SubscriberPresence::Blocked => true,
                    SubscriberPresence::Gone => false,
                }
        };
        for output in step.outputs {
            match output {
                Output::Record(Record { event, principal, .. }) => {
                    self.open.values_mut().for_each(|it| it.follow(event, now_us));
                    if let Some(ask) = TrackedAsk::of(event, *principal, truth, now_us) {
                        self.open.insert(ask.token.clone(), ask);
                    }
                }
                Output::Settled { reply_token, decided_by, .. } => {
                    let Some(ask) = self.open.remove(reply_token) else { continue };
                    if *decided_by == DecidedBy::Timeout && now_us < ask.deadline_us {
                        return Err(format!("{reply_token} timed out before its time."));
                    }
                    let settles_early = *decided_by == DecidedBy::NoListener;
                    let someone = truth.by_key.values().find(|at| {
                        // A subscription that changes in this step was not present when the step began.
                        let is_steady = step.accepted.iter().all(|(it, _)| it != *at)
                            && step.changed.is_none_or(|(it, _)| it != **at);
                        let presence = truth.subscriptions[**at].presence;
                        is_steady && is_waited_for(**at, &ask, presence)
                    });
                    let is_known = |at: &&usize| truth.subscriptions[**at].is_excused;
                    if let Some(at) = someone.filter(|at| settles_early && !is_known(at)) {
                        return Err(format!(
                            "{reply_token} was given up though {} could answer.",
                            truth.subscriptions[*at].id
                        ));
                    }
                }
                _ => {}
            }
        }
        for ask in self.open.values() {
            if ask.deadline_us <= now_us {
                return Err(format!("{} is open though its time is over.", ask.token));
            }
            let has_someone = truth
                .by_key
                .values()
                .any(|at| is_waited_for(*at, ask, truth.subscriptions[*at].presence));
            if !has_someone && now_us >= self.patient_until_us {
                return Err(format!("{} is open and nobody can answer it.", ask.token));
            }
        }
        Ok(())
    }
}

/// Asks go to all subscribers that can answer, including late ones, and to no others.
#[derive(Default)]
pub struct AskRecipients {
    open: BTreeMap<ReplyToken, TrackedAsk>,
}

impl Invariant for AskRecipients {
    fn name(&self) -> &'static str {
        "asked who can answer"
    }

    fn meaning(&self) -> &'static str {
        "A question goes to everyone who can answer it, also to who comes late, and to nobody else."
    }

    fn see(&mut self, truth: &WorldTruth, moment: &WorldMoment<'_>) -> Result<(), String> {
        let WorldMoment::Handled(step) = moment else { return Ok(()) };
        for sent in step.delivered {
            let (confirms, clarifies) = (sent.terms.confirms, sent.terms.clarifies);
            let subscription = &truth.subscriptions[sent.subscription];
            let is_able = match &sent.event.payload {
                Payload::AwaitingConfirmation(_) => confirms && subscription.may_reply,
                Payload::AwaitingClarification(_) => clarifies && subscription.may_reply,
                _ => true,
            };
            if !is_able {
                let id = &subscription.id;
                return Err(format!("{} went to {id}, which cannot answer.", sent.frame.event_id));
            }
        }
        for output in step.outputs {
            match output {
                Output::Record(Record { event, principal, .. }) => {
                    if let Some(ask) = TrackedAsk::of(event, *principal, truth, 0) {
                        self.open.insert(ask.token.clone(), ask);
                    }
                }
                Output::Settled { reply_token, .. } => drop(self.open.remove(reply_token)),
                _ => {}
            }
        }
        for (at, _) in step.accepted.iter().filter(|(_, is_new)| *is_new) {
            for ask in self.open.values() {
                let subscription = &truth.subscriptions[*at];
                let id = &ask.event.envelope.event_id;
                let is_told = step.to(*at).any(|sent| sent.frame.event_id == *id);
                let goes_on = subscription.resumes.is_some();
                let has_enough = super::critical::sent_to(*at, step) >= truth.at_a_time;
                let can = can_answer(subscription, ask.is_confirmation, ask.principal);
                if can && !has_enough && !is_told && !goes_on {
                    let late = &subscription.id;
                    return Err(format!("{} was not sent to {late}, which came late.", ask.token));
                }
            }
        }
        Ok(())
    }
}

/// Whether an outcome follows from the default of an ask.
fn is_default(outcome: &AskOutcome, decided_by: &DecidedBy) -> bool {
    matches!(decided_by, DecidedBy::Timeout | DecidedBy::NoListener)
        && *outcome != AskOutcome::Withdrawn
}
