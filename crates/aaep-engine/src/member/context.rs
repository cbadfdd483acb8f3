//! The context of a critical event goes directly before it, exempt from the rate like the event
//! itself (rulings 7 and 8).
//!
//! Before every critical event goes the start of its session, if that is still held. Before an ask
//! goes the held text of its session, so that nobody consents without the context they were given.
//! Before the end of a session goes everything that is held of the session. Nothing is lost: text
//! is merged by output, failed and irreversible actions stay events of their own, and everything
//! else becomes one digest.

use std::sync::Arc;

use aaep::{CoreType, Urgency};

use super::merge::{self, FramedEvent, TextJoiner};
use super::{Cursor, DeliveryPass, DeliveryProgress};
use crate::audience::{SupersededBy, Unit, UnitKind, is_before_ask, text_key};
use crate::frame::{Frame, encode};

impl Cursor {
    /// Delivers the context of the critical unit at this position. Returns whether all was sent.
    pub(super) fn tell_context<F: FnMut(Arc<Frame>)>(
        &mut self,
        pass: &mut DeliveryPass<'_, F>,
        before: u64,
        unit: &Unit,
    ) -> bool {
        // A subscriber that fell too far behind is told of the gap next.
        if self.at >= before || self.fell_behind(pass.audience) {
            return true;
        }
        let is_end = unit.event.event_type().core().is_some_and(CoreType::is_terminal);
        // What the limits allow goes in order. Only what they hold has to be exempt.
        if is_end && self.advance(pass, before) == DeliveryProgress::Enough {
            return false;
        }
        let start = pass.audience.start_of(unit.session);
        if let Some(start) =
            start.filter(|at| (self.at..before).contains(at) && !self.is_ahead(*at))
        {
            self.tell_exempt(pass, start);
        }
        if is_end && !self.tell_digest(pass, before, unit) {
            return false;
        }
        // For subscribers that cannot answer, a state change stands for the ask (ruling 1).
        if !is_end && !is_before_ask(&unit.event) {
            return true;
        }
        for at in self.at..before {
            let Some(held) = self.held_of(pass, at, unit) else { continue };
            if is_end || held.kind == UnitKind::Text {
                if pass.left == 0 {
                    return false;
                }
                if self.is_torn(pass, held) {
                    if is_end {
                        self.take(at);
                    }
                } else if held.kind == UnitKind::Text {
                    self.tell_text(pass, (at, held), before);
                } else {
                    self.tell_exempt(pass, at);
                }
            }
        }
        if is_end && let Some(details) = self.existing_details_mut() {
            details.folded.retain(|(session, _), _| *session != unit.session);
        }
        true
    }

    /// Whether a text would begin in the middle for a subscriber that has yet to be told of a gap. The gap
    /// notice covers such a text, too.
    fn is_torn<F>(&self, pass: &DeliveryPass<'_, F>, unit: &Unit) -> bool {
        let Some(chunk) = unit.text().filter(|_| self.is_gap_owed(pass)) else { return false };
        self.told_up_to(&text_key(unit.session, chunk)).unwrap_or(0) < chunk.position
    }

    fn is_gap_owed<F>(&self, pass: &DeliveryPass<'_, F>) -> bool {
        pass.is_gap_owed || self.owes_gap()
    }

    /// Notes that a text was delivered up to the end of this unit. This is remembered only while a gap is
    /// owed, so that the rest of the text is not taken to begin in the middle.
    pub(super) fn note_text_told<F>(&mut self, pass: &DeliveryPass<'_, F>, unit: &Unit) {
        if let Some(chunk) = unit.text().filter(|_| self.is_gap_owed(pass)) {
            let end = chunk.position + chunk.chunk.chars().count() as u64;
            self.details_mut().told_text.insert(text_key(unit.session, chunk), end);
        }
    }

    /// The unit at this position, if it belongs to the same session and has yet to be delivered.
    fn held_of<'a, F>(
        &mut self,
        pass: &DeliveryPass<'a, F>,
        at: u64,
        unit: &Unit,
    ) -> Option<&'a Unit> {
        let held = pass.audience.unit(at).filter(|held| held.session == unit.session)?;
        if held.is_critical || at < self.at || self.is_ahead(at) || self.is_text_told(held) {
            return None;
        }
        if held.is_deleted() {
            self.owe_gap();
            self.take(at);
            return None;
        }
        Some(held)
    }

    /// Merges the states, progress and tools that are held before the end of a session into a digest, unless
    /// the terms exclude one. Returns false if the batch is full.
    fn tell_digest<F: FnMut(Arc<Frame>)>(
        &mut self,
        pass: &mut DeliveryPass<'_, F>,
        before: u64,
        unit: &Unit,
    ) -> bool {
        let mut waiting = Vec::new();
        for at in self.at..before {
            let Some(held) = self.held_of(pass, at, unit) else { continue };
            match held.kind {
                UnitKind::State | UnitKind::Progress
                    if pass.audience.superseded(at, held) != SupersededBy::Nothing =>
                {
                    self.take(at);
                }
                UnitKind::State | UnitKind::Progress | UnitKind::PlainTool => waiting.push(at),
                UnitKind::Text | UnitKind::Other | UnitKind::Deleted => {}
            }
        }
        let Some(digest) = merge::digest_type(pass.audience).filter(|_| waiting.len() > 1) else {
            return true;
        };
        if pass.left == 0 {
            return false;
        }
        let told = merge::sum_up(self, pass, &waiting, digest, Some(Urgency::Critical));
        self.send_framed(pass, told);
        true
    }

    /// Delivers the held text of one output, from this position on, as one event.
    fn tell_text<F: FnMut(Arc<Frame>)>(
        &mut self,
        pass: &mut DeliveryPass<'_, F>,
        (at, first): (u64, &Unit),
        before: u64,
    ) {
        let mut joining = TextJoiner::with(at, first);
        let output = first.text().map(|chunk| &chunk.output_id);
        for next in at + 1..before {
            let Some(held) = self.held_of(pass, next, first) else { continue };
            let is_same = held.text().map(|chunk| &chunk.output_id) == output;
            if held.kind == UnitKind::Text && is_same && !joining.add(next, held) {
                break;
            }
        }
        let units = joining.units;
        let told = merge::tell_joined(self, pass, units, Some(Urgency::Critical));
        self.send_framed(pass, told);
    }

    fn send_framed<F: FnMut(Arc<Frame>)>(
        &mut self,
        pass: &mut DeliveryPass<'_, F>,
        told: Option<FramedEvent>,
    ) {
        if let Some(told) = told {
            self.send_at_once(pass, told);
        }
    }

    /// Delivers one unit unchanged, except that it is marked as critical and so exempt from the rate.
    fn tell_exempt<F: FnMut(Arc<Frame>)>(&mut self, pass: &mut DeliveryPass<'_, F>, at: u64) {
        let Some(unit) = pass.audience.unit(at) else { return };
        let mut event = (*self.dated(unit)).clone();
        event.envelope.urgency = Some(Urgency::Critical);
        let frame = encode(&event, true, None, &pass.audience.terms, pass.primary);
        self.take(at);
        let (session, latest_us) = (unit.session, unit.latest_us);
        let event = Arc::new(event);
        self.send_at_once(pass, FramedEvent { frame, event, session, latest_us });
    }
}
