//! The time of questions at work: who may change it, and how everyone hears of it (§6.4.2, §6.4.3).
//!
//! Whoever wants something here has to be someone who could reply, with the capability for it. Like
//! a reply, it is answered with yes or no and nothing else (ruling 12).

use std::sync::Arc;

use aaep::event::reasoning::{Progress, ProgressUpdated};
use aaep::extension::{self, Delivery};
use aaep::{Event, Object, ReplyToken, SubscriptionId, Timestamp};

use super::super::{Engine, Member, Presence};
use crate::ask::AskTime;
use crate::clock::{Now, SECOND_US};
use crate::io::{Audit, Author, Output, Principal, ReplyRefusal};
use crate::terms::Terms;

/// What a subscriber wants of the time of a question.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) enum TimeWish {
    Presented,
    Extend { by_seconds: u64 },
    Pause,
    Resume,
}

impl TimeWish {
    fn is_granted(self, terms: &Terms) -> bool {
        match self {
            TimeWish::Presented => terms.counts_from_presented(),
            _ => terms.may_extend(),
        }
    }

    fn apply(self, time: &mut AskTime, now_us: u64) -> Result<(), ReplyRefusal> {
        match self {
            TimeWish::Presented => time.present(now_us),
            TimeWish::Extend { by_seconds } => time.extend(now_us, by_seconds),
            TimeWish::Pause => time.pause(now_us),
            TimeWish::Resume => time.resume(now_us),
        }
    }

    fn audit(
        self,
        reply_token: ReplyToken,
        principal: Principal,
        checked: Result<u64, ReplyRefusal>,
    ) -> Audit {
        let (left_us, refused) = (checked.unwrap_or(0), checked.err());
        match self {
            TimeWish::Presented => Audit::Presented { reply_token, principal, left_us, refused },
            TimeWish::Extend { by_seconds } => {
                Audit::Extended { reply_token, principal, by_seconds, left_us, refused }
            }
            TimeWish::Pause => Audit::Paused { reply_token, principal, left_us, refused },
            TimeWish::Resume => Audit::Resumed { reply_token, principal, left_us, refused },
        }
    }
}

impl Engine {
    /// A subscriber says something about the time of a question.
    pub(in crate::engine) fn change_time(
        &mut self,
        now: Now,
        principal: Principal,
        (subscription, token): (&SubscriptionId, &ReplyToken),
        wish: TimeWish,
        out: &mut Vec<Output>,
    ) {
        let checked = self.check_wish(now, principal, (subscription, token), wish);
        let checked = checked.and_then(|()| {
            let ask = self.asks.get_mut(token).ok_or(ReplyRefusal::UnknownToken)?;
            wish.apply(&mut ask.time, now.monotonic_us)?;
            Ok(ask.time.deadline_us().saturating_sub(now.monotonic_us))
        });
        out.push(Output::TimeReplied { is_accepted: checked.is_ok() });
        out.push(Output::Audit(wish.audit(token.clone(), principal, checked)));
        if checked.is_ok() {
            self.file(token);
            self.store_time(now, token, out);
            self.tell_deadline(now, token, out);
        }
    }

    /// The time of a question is to be stored.
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

    fn check_wish(
        &self,
        now: Now,
        principal: Principal,
        (subscription, token): (&SubscriptionId, &ReplyToken),
        wish: TimeWish,
    ) -> Result<(), ReplyRefusal> {
        self.check_reply(now, principal, subscription, token)?;
        let subscriber = self.subscriptions.get(subscription).copied();
        let member = subscriber.and_then(|key| self.members.get(key as usize)?.as_ref());
        let is_granted = member.is_some_and(|member| wish.is_granted(&member.wish.terms));
        if is_granted { Ok(()) } else { Err(ReplyRefusal::NotGranted) }
    }

    /// Whether a question that was just asked, or waits, may wait for presentation: someone is here
    /// who was asked, and everyone such wants that clock.
    pub(super) fn may_wait<'a>(&self, told: impl Iterator<Item = &'a u32>) -> bool {
        let here = told
            .filter_map(|subscriber| self.members.get(*subscriber as usize)?.as_ref())
            .filter(|member| !matches!(member.presence, Presence::Away(_)));
        let mut is_anyone = false;
        let mut here = here.inspect(|_| is_anyone = true);
        here.all(|member: &Member| member.wish.terms.counts_from_presented()) && is_anyone
    }

    /// Starts the clock of a question for which someone is here who did not ask for it to wait.
    pub(super) fn stop_waiting(&mut self, now: Now, token: &ReplyToken, out: &mut Vec<Output>) {
        let Some(ask) = self.asks.get(token).filter(|ask| ask.time.is_waiting()) else { return };
        let is_anyone = ask.told.iter().any(|subscriber| {
            let member = self.members.get(*subscriber as usize).and_then(Option::as_ref);
            member.is_some_and(|member| !matches!(member.presence, Presence::Away(_)))
        });
        if !is_anyone || self.may_wait(ask.told.iter()) {
            return;
        }
        if let Some(ask) = self.asks.get_mut(token)
            && ask.time.start(now.monotonic_us)
        {
            let reply_token = token.clone();
            out.push(Output::Audit(Audit::ClockStarted { reply_token }));
            self.file(token);
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
        self.append(
            now,
            session,
            Arc::new(Event::new(envelope, update)),
            (Author::Hub, false),
            out,
        );
    }

    /// Tells until when a question can be answered, after that has changed.
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
        self.append(now, session, Arc::new(event), (Author::Hub, false), out);
    }
}

/// How much time is left, in words.
fn time_left(left_us: u64, is_paused: bool) -> ProgressUpdated {
    let seconds = left_us / SECOND_US;
    let (terse, text) = if is_paused {
        let terse = format!("Paused, {seconds} seconds at most.");
        (terse, format!("The time to answer is paused, for {seconds} seconds at most."))
    } else {
        (format!("{seconds} seconds left."), format!("{seconds} seconds left to answer."))
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
