//! What is needed to understand a critical event goes directly before it, exempt from the rate as it is
//! (rulings 7 and 8).
//!
//! Before every critical event: the start of its session, if that is still held. Before an ask: the held text of
//! its session, so that nobody consents before the context they were given. Before the end of a session: everything
//! that is held of it. Nothing is lost: text is merged by output, what failed or cannot be undone stays an event of its
//! own, and everything else becomes one digest.

use std::sync::Arc;

use aaep::{CoreType, Urgency};

use super::merge::{self, Joining, Told};
use super::{Cursor, Progressed, Telling};
use crate::audience::{Kind, Superseded, Unit, is_before_ask, text_key};
use crate::frame::{Frame, encode};

impl Cursor {
    /// Tells what goes before the critical unit at this position; whether all of it was told.
    pub(super) fn tell_context<F: FnMut(Arc<Frame>)>(
        &mut self,
        telling: &mut Telling<'_, F>,
        before: u64,
        unit: &Unit,
    ) -> bool {
        // A subscriber that fell too far behind is told of the gap next.
        if self.at >= before || self.fell_behind(telling.audience) {
            return true;
        }
        let is_end = unit.event.event_type().core().is_some_and(CoreType::is_terminal);
        // What the limits allow goes in its order; only what they hold has to be exempt.
        if is_end && self.advance(telling, before) == Progressed::Enough {
            return false;
        }
        let start = telling.audience.start_of(unit.session);
        if let Some(start) =
            start.filter(|at| (self.at..before).contains(at) && !self.is_ahead(*at))
        {
            self.tell_exempt(telling, start);
        }
        if is_end && !self.tell_digest(telling, before, unit) {
            return false;
        }
        // To those who cannot answer, a state says that something is asked (ruling 1).
        if !is_end && !is_before_ask(&unit.event) {
            return true;
        }
        for at in self.at..before {
            let Some(held) = self.held_of(telling, at, unit) else { continue };
            if is_end || held.kind == Kind::Text {
                if telling.left == 0 {
                    return false;
                }
                if self.is_torn(telling, held) {
                    if is_end {
                        self.take(at);
                    }
                } else if held.kind == Kind::Text {
                    self.tell_text(telling, (at, held), before);
                } else {
                    self.tell_exempt(telling, at);
                }
            }
        }
        if is_end && let Some(rest) = self.known_rest_mut() {
            rest.folded.retain(|(session, _), _| *session != unit.session);
        }
        true
    }

    /// Whether a text would begin in the middle for a subscriber that is still to be told that something is missing. That
    /// tells of it, too.
    fn is_torn<F>(&self, telling: &Telling<'_, F>, unit: &Unit) -> bool {
        let Some(chunk) = unit.text().filter(|_| self.is_gap_owed(telling)) else { return false };
        self.told_up_to(&text_key(unit.session, chunk)).unwrap_or(0) < chunk.position
    }

    /// Whether the subscriber is still to be told that something is missing.
    fn is_gap_owed<F>(&self, telling: &Telling<'_, F>) -> bool {
        telling.is_gap_owed || self.owes_gap()
    }

    /// A text is told as far as the end of this unit. While a gap is owed, that is remembered: what follows of the text
    /// does not begin in the middle.
    pub(super) fn note_text_told<F>(&mut self, telling: &Telling<'_, F>, unit: &Unit) {
        if let Some(chunk) = unit.text().filter(|_| self.is_gap_owed(telling)) {
            let end = chunk.position + chunk.chunk.chars().count() as u64;
            self.rest_mut().told_text.insert(text_key(unit.session, chunk), end);
        }
    }

    /// The unit at this position, if it is of the same session and still to be told.
    fn held_of<'a, F>(
        &mut self,
        telling: &Telling<'a, F>,
        at: u64,
        unit: &Unit,
    ) -> Option<&'a Unit> {
        let held = telling.audience.unit(at).filter(|held| held.session == unit.session)?;
        if held.is_urgent || at < self.at || self.is_ahead(at) || self.is_text_told(held) {
            return None;
        }
        if held.is_deleted() {
            self.owe_gap();
            self.take(at);
            return None;
        }
        Some(held)
    }

    /// Sums up the states, the progress and the tools that are held before the end of a session, unless the terms shut
    /// a digest out. Whether that is told.
    fn tell_digest<F: FnMut(Arc<Frame>)>(
        &mut self,
        telling: &mut Telling<'_, F>,
        before: u64,
        unit: &Unit,
    ) -> bool {
        let mut waiting = Vec::new();
        for at in self.at..before {
            let Some(held) = self.held_of(telling, at, unit) else { continue };
            match held.kind {
                Kind::State | Kind::Progress
                    if telling.audience.superseded(at, held) != Superseded::No =>
                {
                    self.take(at);
                }
                Kind::State | Kind::Progress | Kind::PlainTool => waiting.push(at),
                Kind::Text | Kind::Other | Kind::Deleted => {}
            }
        }
        let Some(digest) = merge::digest_type(telling.audience).filter(|_| waiting.len() > 1)
        else {
            return true;
        };
        if telling.left == 0 {
            return false;
        }
        let told = merge::sum_up(self, telling, &waiting, digest, Some(Urgency::Critical));
        self.send_told(telling, told);
        true
    }

    /// The held text of one output, from this position on, in one event.
    fn tell_text<F: FnMut(Arc<Frame>)>(
        &mut self,
        telling: &mut Telling<'_, F>,
        (at, first): (u64, &Unit),
        before: u64,
    ) {
        let mut joining = Joining::with(at, first);
        let output = first.text().map(|chunk| &chunk.output_id);
        for next in at + 1..before {
            let Some(held) = self.held_of(telling, next, first) else { continue };
            let is_same = held.text().map(|chunk| &chunk.output_id) == output;
            if held.kind == Kind::Text && is_same && !joining.add(next, held) {
                break;
            }
        }
        let units = joining.units;
        let told = merge::tell_joined(self, telling, units, Some(Urgency::Critical));
        self.send_told(telling, told);
    }

    fn send_told<F: FnMut(Arc<Frame>)>(
        &mut self,
        telling: &mut Telling<'_, F>,
        told: Option<Told>,
    ) {
        if let Some(told) = told {
            self.send_at_once(telling, told.frame, &told.event.payload);
        }
    }

    /// One unit as it is, but exempt from the rate as critical.
    fn tell_exempt<F: FnMut(Arc<Frame>)>(&mut self, telling: &mut Telling<'_, F>, at: u64) {
        let Some(unit) = telling.audience.unit(at) else { return };
        let mut event = (*unit.event).clone();
        event.envelope.urgency = Some(Urgency::Critical);
        let frame = encode(&event, true, None, &telling.audience.terms, telling.primary);
        self.take(at);
        self.send_at_once(telling, frame, &event.payload);
    }
}
