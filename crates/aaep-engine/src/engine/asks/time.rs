//! Changing the time of asks: which subscribers may, and how everyone is told (§6.4.2, §6.4.3).
//!
//! A request needs a subscriber that could reply and was granted the capability. Like a reply, it
//! is answered with yes or no and nothing else (ruling 12).

use std::sync::Arc;

use aaep::event::reasoning::{Progress, ProgressUpdated};
use aaep::extension::{self, Delivery};
use aaep::{Event, Object, ReplyToken, SubscriptionId, Timestamp};

use super::super::{AudienceMember, Engine};
use crate::ask::AskTime;
use crate::clock::{Now, SECOND_US};
use crate::counted::counted;
use crate::io::{Audit, Author, Output, PrincipalNumber, ReplyRefusal};
use crate::keys::SubscriberKey;
use crate::terms::Terms;

/// What a subscriber requests for the time of an ask.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) enum AskTimeRequest {
    Presented,
    Extend { by_seconds: u64 },
    Pause,
    Resume,
}

impl AskTimeRequest {
    fn is_granted(self, terms: &Terms) -> bool {
        match self {
            AskTimeRequest::Presented => terms.counts_from_presented(),
            _ => terms.may_extend(),
        }
    }

    fn apply(self, time: &mut AskTime, now_us: u64) -> Result<(), ReplyRefusal> {
        match self {
            AskTimeRequest::Presented => time.present(now_us),
            AskTimeRequest::Extend { by_seconds } => time.extend(now_us, by_seconds),
            AskTimeRequest::Pause => time.pause(now_us),
            AskTimeRequest::Resume => time.resume(now_us),
        }
    }

    fn audit(
        self,
        reply_token: ReplyToken,
        principal: PrincipalNumber,
        checked: Result<u64, ReplyRefusal>,
    ) -> Audit {
        let (left_us, refused) = (checked.unwrap_or(0), checked.err());
        match self {
            AskTimeRequest::Presented => {
                Audit::Presented { reply_token, principal, left_us, refused }
            }
            AskTimeRequest::Extend { by_seconds } => {
                Audit::Extended { reply_token, principal, by_seconds, left_us, refused }
            }
            AskTimeRequest::Pause => Audit::Paused { reply_token, principal, left_us, refused },
            AskTimeRequest::Resume => Audit::Resumed { reply_token, principal, left_us, refused },
        }
    }
}

impl Engine {
    /// Handles a subscriber's request about the time of an ask.
    pub(in crate::engine) fn change_time(
        &mut self,
        now: Now,
        principal: PrincipalNumber,
        (subscription, token): (&SubscriptionId, &ReplyToken),
        request: AskTimeRequest,
        out: &mut Vec<Output>,
    ) {
        let checked = self.check_time_request(now, principal, (subscription, token), request);
        let checked = checked.and_then(|()| {
            let ask = self.asks.get_mut(token).ok_or(ReplyRefusal::UnknownToken)?;
            request.apply(&mut ask.time, now.monotonic_us)?;
            Ok(ask.time.deadline_us().saturating_sub(now.monotonic_us))
        });
        out.push(Output::TimeReplied { is_accepted: checked.is_ok() });
        out.push(Output::Audit(request.audit(token.clone(), principal, checked)));
        if checked.is_ok() {
            self.asks.file(token);
            self.store_time(now, token, out);
            self.tell_deadline(now, token, out);
        }
    }

    /// Emits the time of an ask to be stored.
    pub(in crate::engine) fn store_time(
        &self,
        now: Now,
        token: &ReplyToken,
        out: &mut Vec<Output>,
    ) {
        if let Some(ask) = self.asks.get(token) {
            out.push(Output::Time(ask.time.record(now, self.event_unix_us, token.clone())));
        }
    }

    fn check_time_request(
        &self,
        now: Now,
        principal: PrincipalNumber,
        (subscription, token): (&SubscriptionId, &ReplyToken),
        request: AskTimeRequest,
    ) -> Result<(), ReplyRefusal> {
        self.check_reply(now, principal, subscription, token)?;
        let subscriber = self.subscriptions.get(subscription);
        let member = subscriber.and_then(|key| self.members.get(key));
        let is_granted = member.is_some_and(|member| request.is_granted(&member.agreed.terms));
        if is_granted { Ok(()) } else { Err(ReplyRefusal::NotGranted) }
    }

    /// Whether the time of an ask may wait until the ask is presented: at least one of these subscribers is
    /// connected, and all that are connected negotiated it.
    pub(super) fn may_wait<'a>(&self, told: impl Iterator<Item = &'a SubscriberKey>) -> bool {
        let here = told
            .filter_map(|subscriber| self.members.get(*subscriber))
            .filter(|member| !member.delivery.is_away());
        let mut is_anyone = false;
        let mut here = here.inspect(|_| is_anyone = true);
        here.all(|member: &AudienceMember| member.agreed.terms.counts_from_presented()) && is_anyone
    }

    /// Starts the clock of a waiting ask if a connected subscriber did not negotiate the wait.
    pub(super) fn stop_waiting(&mut self, now: Now, token: &ReplyToken, out: &mut Vec<Output>) {
        let Some(ask) = self.asks.get(token).filter(|ask| ask.time.is_waiting()) else { return };
        let is_anyone = ask.told.iter().any(|subscriber| {
            let member = self.members.get(*subscriber);
            member.is_some_and(|member| !member.delivery.is_away())
        });
        if !is_anyone || self.may_wait(ask.told.iter()) {
            return;
        }
        if let Some(ask) = self.asks.get_mut(token)
            && ask.time.start(now.monotonic_us)
        {
            let reply_token = token.clone();
            out.push(Output::Audit(Audit::ClockStarted { reply_token }));
            self.asks.file(token);
            self.store_time(now, token, out);
            self.tell_deadline(now, token, out);
        }
    }

    /// Tells how much time is left (§6.4.3).
    pub(super) fn tell_countdown(
        &mut self,
        now: Now,
        token: &ReplyToken,
        left_us: u64,
        out: &mut Vec<Output>,
    ) {
        let Some(ask) = self.asks.get(token) else { return };
        let (session, like) = (ask.session, ask.event.envelope.clone());
        let update = time_left(left_us, ask.time.is_paused());
        let envelope = self.own_envelope(now, session, &like);
        self.append(now, session, Arc::new(Event::new(envelope, update)), Author::Hub, out);
    }

    /// Tells the new deadline of an ask after it changed.
    fn tell_deadline(&mut self, now: Now, token: &ReplyToken, out: &mut Vec<Output>) {
        let Some(ask) = self.asks.get(token) else { return };
        let (session, like) = (ask.session, ask.event.envelope.clone());
        let paused = ask.time.is_paused();
        let left_us = ask.time.deadline_us().saturating_sub(now.monotonic_us);
        let envelope = self.own_envelope(now, session, &like);
        let left = i64::try_from(left_us).unwrap_or(i64::MAX);
        let at_us = envelope.timestamp.unix_us().saturating_add(left);
        let at = Timestamp::from_unix_us(at_us).unwrap_or_else(|| envelope.timestamp.clone());
        let mut event = Event::new(envelope, time_left(left_us, paused));
        let reply_token = token.clone();
        let deadline = extension::Deadline { reply_token, at, paused, other: Object::new() };
        Delivery { deadline: Some(deadline), ..Delivery::new() }.put_on(&mut event);
        self.append(now, session, Arc::new(event), Author::Hub, out);
    }
}

fn time_left(left_us: u64, is_paused: bool) -> ProgressUpdated {
    let seconds = left_us / SECOND_US;
    let time = counted(usize::try_from(seconds).unwrap_or(usize::MAX), "second");
    let (terse, text) = if is_paused {
        let terse = format!("Paused, {time} at most.");
        (terse, format!("The time to answer is paused, for {time} at most."))
    } else {
        (format!("{time} left."), format!("{time} left to answer."))
    };
    ProgressUpdated {
        progress: Progress {
            percent: None,
            step: None,
            total_steps: None,
            description: Some(text.clone()),
            other: Object::new(),
        },
        summary_terse: Some(terse),
        summary_normal: Some(text),
        summary_detailed: None,
        eta_ms: Some(left_us / 1000),
        other: Object::new(),
    }
}
