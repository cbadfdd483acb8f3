//! Telling listeners: urgent things at once, everything else as their terms allow (§5.5.4, §5.6).

use std::sync::Arc;

use aaep::CoreType;
use aaep::extension::Delivery;

use super::{Engine, Member, Presence};
use crate::audience::{Audience, Entry, ListenerKey};
use crate::clock::Now;
use crate::frame::{Frame, encode};
use crate::io::Output;
use crate::member::{Progressed, words_of};

impl Engine {
    /// Shapes an event for every audience and tells who can be told now.
    pub(super) fn deliver(&mut self, now: Now, entry: &Entry, out: &mut Vec<Output>) {
        let ends_critically =
            entry.is_urgent && entry.event.event_type().core().is_some_and(CoreType::is_terminal);
        let Engine { audiences, members, due, primary, .. } = self;
        for audience in audiences.values_mut() {
            let begin = audience.take(entry);
            if audience.end() == begin {
                continue;
            }
            if !audience.listeners.unlimited.is_empty() {
                for unit in (begin..audience.end()).filter_map(|at| audience.unit(at)) {
                    let frame = audience.frame(unit, primary);
                    out.push(Output::Deliver { frame, to: audience.listeners.unlimited.clone() });
                }
            }
            if entry.is_urgent {
                for listener in &audience.listeners.connected {
                    let Some(Some(member)) = members.get_mut(*listener as usize) else { continue };
                    let what = (begin, ends_critically);
                    tell_urgent(member, *listener, audience, what, now, primary, out);
                }
                if ends_critically {
                    audience.end_critically(entry.session);
                }
            }
            let mut held = Vec::new();
            for listener in &audience.listeners.ready {
                let Some(Some(member)) = members.get_mut(*listener as usize) else { continue };
                member.due_us = advance(member, *listener, audience, now, primary, out);
                held.extend(member.due_us.map(|at| (at, *listener)));
            }
            for (at, listener) in held {
                due.insert((at, listener));
                audience.listeners.ready.remove(&listener);
            }
        }
    }

    /// A listener is due: something held for it can go, or its time to come back is over.
    pub(super) fn wake(&mut self, now: Now, listener: ListenerKey, out: &mut Vec<Output>) {
        let Some(Some(member)) = self.members.get_mut(listener as usize) else { return };
        member.due_us = None;
        match member.presence {
            Presence::Away(since) => {
                let end_us = since.saturating_add(self.config.keep_subscription_us);
                if end_us <= now.monotonic_us {
                    self.remove(now, listener, out);
                    out.push(Output::Closed { listener });
                } else {
                    self.set_due(listener, end_us);
                }
            }
            Presence::Blocked => {}
            Presence::Here => self.catch_up(now, listener, out),
        }
    }

    /// Sends what is held for a listener as far as its limits allow, and notes when to go on.
    pub(super) fn catch_up(&mut self, now: Now, listener: ListenerKey, out: &mut Vec<Output>) {
        let Engine { audiences, members, primary, .. } = self;
        let Some(Some(member)) = members.get_mut(listener as usize) else { return };
        let Some(audience) = audiences.get_mut(&member.wish.audience) else { return };
        let due_us = advance(member, listener, audience, now, primary, out);
        match due_us {
            Some(at) => self.set_due(listener, at),
            None if member.limits.is_some() => drop(audience.listeners.ready.insert(listener)),
            None => {}
        }
    }

    pub(super) fn set_due(&mut self, listener: ListenerKey, at_us: u64) {
        if let Some(Some(member)) = self.members.get_mut(listener as usize) {
            if let Some(before) = member.due_us.replace(at_us) {
                self.due.remove(&(before, listener));
            }
            self.due.insert((at_us, listener));
        }
    }
}

/// Sends what a listener may get now; when the rest may go, if something is held.
pub(super) fn advance(
    member: &mut Member,
    listener: ListenerKey,
    audience: &Audience,
    now: Now,
    primary: &aaep::LanguageTag,
    out: &mut Vec<Output>,
) -> Option<u64> {
    let Member { cursor, limits, .. } = member;
    let mut send = |frame: Arc<Frame>| out.push(Output::Deliver { frame, to: vec![listener] });
    let limits = limits.as_deref_mut();
    match cursor.advance(audience, limits, now.monotonic_us, primary, &mut send) {
        Progressed::CaughtUp => None,
        Progressed::Until(at) => Some(at),
    }
}

/// Tells a listener that keeps a rate or a pace something urgent, past both.
fn tell_urgent(
    member: &mut Member,
    listener: ListenerKey,
    audience: &Audience,
    (begin, ends_critically): (u64, bool),
    now: Now,
    primary: &aaep::LanguageTag,
    out: &mut Vec<Output>,
) {
    if member.limits.is_none() || member.presence != Presence::Here {
        return;
    }
    if ends_critically {
        // What is held of the session goes first if the budget allows; else it is withdrawn (ruling 8).
        let _ = advance(member, listener, audience, now, primary, out);
    }
    for at in begin..audience.end() {
        let Some(unit) = audience.unit(at).filter(|unit| unit.is_urgent) else { continue };
        let held =
            if ends_critically { member.cursor.held_of(unit.session, audience, at) } else { 0 };
        let frame = if held > 0 && audience.terms.understands_our_extension() {
            let mut event = (*unit.event).clone();
            Delivery { held_back: Some(held), ..Delivery::new() }.put_on(&mut event);
            encode(&event, true, None, &audience.terms, primary)
        } else {
            audience.frame(unit, primary)
        };
        if let Some(limits) = &mut member.limits {
            if limits.has_pace() {
                limits.announce(now.monotonic_us, words_of(&unit.event.payload));
            }
            member.cursor.remember(&frame.event_id, vec![at]);
        }
        out.push(Output::Deliver { frame, to: vec![listener] });
    }
}
