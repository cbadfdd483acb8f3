//! Where a subscriber is, in global order, independent of any log (ruling 20).
//!
//! A cursor is a position in the log of one audience. When terms change, the position has to be
//! expressed so that it is valid for every audience: which events have yet to be delivered, and up
//! to where each text was delivered. Nothing here sends anything.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::memory::{CursorDetails, FoldedStates};
use crate::audience::{Audience, SessionKey, TextKey, Unit, text_key};

/// What a subscriber has received, independent of any log.
#[derive(Debug, Clone, Default)]
pub(crate) struct CursorSnapshot {
    /// Everything before this global order was delivered, is superfluous or was not wanted, apart from the
    /// fields below.
    end: u64,
    /// Earlier non-critical events that have yet to be delivered, except text.
    untold: BTreeSet<u64>,
    /// The outputs of which some text has yet to be delivered, and up to where they were delivered.
    texts: BTreeMap<TextKey, u64>,
    /// Those outputs of which some undelivered text already existed.
    begun_texts: BTreeSet<TextKey>,
    /// Critical events have yet to be delivered from this global order on.
    critical_end: u64,
    folded: FoldedStates,
    summaries: BTreeSet<SessionKey>,
    owes_gap: bool,
}

/// Where a subscriber is in the log of one audience: the position, the critical position, and the details.
pub(super) type LogPosition = (u64, u64, CursorDetails);

impl CursorSnapshot {
    /// Everything before this global order counts as delivered, and nothing from it on.
    pub(crate) fn at(order: u64) -> Self {
        CursorSnapshot { end: order, critical_end: order, ..CursorSnapshot::default() }
    }

    /// The snapshot of a position in a log. `end` is the global order of the next event.
    pub(super) fn of(
        (at, critical_at, details): (u64, u64, &CursorDetails),
        log: &Audience,
        end: u64,
    ) -> Self {
        let is_held = |at: &u64| {
            log.unit(*at).is_some_and(|it| !it.is_critical && !details.ahead.contains(at))
        };
        let held = (at..log.end()).filter(is_held).filter_map(|at| log.unit(at));
        let (deleted, held): (Vec<&Unit>, Vec<&Unit>) = held.partition(|unit| unit.is_deleted());
        let critical =
            (critical_at..log.end()).filter_map(|at| log.unit(at)).filter(|it| it.is_critical);
        let misses_critical = critical.clone().any(Unit::is_deleted);
        // A waiting text may have begun before a critical event that was already delivered.
        let critical_end =
            critical.map(|unit| unit.order).next().map_or(end, |order| order.min(end));
        // Another log may not know about deleted units.
        let owes_gap = details.owes_gap || !deleted.is_empty() || misses_critical;
        let untold =
            held.iter().filter(|unit| unit.text().is_none()).map(|unit| unit.order).collect();
        let told = |key: &TextKey| details.told_text.get(key).copied().unwrap_or(0);
        let mut texts: BTreeMap<TextKey, u64> = log
            .held_texts()
            .map(|(key, begin, _)| (begin.max(told(&key)), key))
            .map(|(begin, key)| (key, begin))
            .collect();
        let is_begun = |(key, begin, end): &(TextKey, u64, u64)| told(key).max(*begin) < *end;
        let there_already = log.held_texts().filter(is_begun).map(|(key, ..)| key);
        let mut begun_texts: BTreeSet<TextKey> = there_already.collect();
        for unit in held.iter().rev() {
            if let Some(chunk) = unit.text() {
                let key = text_key(unit.session, chunk);
                let begin = chunk.position.max(told(&key));
                begun_texts.insert(key.clone());
                texts.insert(key, begin);
            }
        }
        let (folded, summaries) = (details.folded.clone(), details.summaries.clone());
        CursorSnapshot {
            end,
            untold,
            texts,
            begun_texts,
            critical_end,
            folded,
            summaries,
            owes_gap,
        }
    }

    /// The same place in the log of an audience. None if the log does not reach back to it. `text_end_before`
    /// returns the end of an output before a global order, or none if that is not known.
    pub(super) fn in_log(
        &self,
        log: &Audience,
        mut text_end_before: impl FnMut(&TextKey, u64) -> Option<u64>,
    ) -> Option<LogPosition> {
        let mut told = self.texts.clone();
        let later = units(log).filter(|(_, unit)| unit.order >= self.end);
        let texts = later.filter_map(|(_, unit)| text_of(unit));
        for key in texts.chain(log.held_texts().map(|(key, ..)| key)) {
            if let Entry::Vacant(vacant) = told.entry(key) {
                let up_to = text_end_before(vacant.key(), self.end)?;
                vacant.insert(up_to);
            }
        }
        let is_open = |(_, unit): &(u64, &Unit)| !unit.is_critical && self.is_open(unit, &told);
        let at = units(log).find(is_open).map_or(log.end(), |(at, _)| at);
        let ahead = units(log)
            .filter(|it| it.0 >= at && !it.1.is_critical && !is_open(it))
            .map(|(at, _)| at)
            .collect();
        let is_critical =
            |(_, unit): &(u64, &Unit)| unit.is_critical && unit.order >= self.critical_end;
        let critical_at = units(log).find(is_critical).map_or(log.end(), |(at, _)| at);
        let open: Vec<&Unit> = units(log).filter(is_open).map(|(_, unit)| unit).collect();
        let begins = begins(&open, log);
        if !self.is_reached_by(log, &begins) {
            return None;
        }
        told.retain(|key, told| begins.get(key).is_some_and(|begin| begin < told));
        let (folded, summaries) = (self.folded.clone(), self.summaries.clone());
        let owes_gap = self.owes_gap;
        Some((
            at,
            critical_at,
            CursorDetails { ahead, folded, told_text: told, summaries, owes_gap },
        ))
    }

    /// For each text that a log holds in part, up to where it was delivered. If that is not known, all of the
    /// held text counts as delivered, so that nothing is repeated.
    pub(super) fn told_of_held(
        &self,
        log: &Audience,
        mut text_end_before: impl FnMut(&TextKey, u64) -> Option<u64>,
    ) -> BTreeMap<TextKey, u64> {
        let told = |(key, begin, held_end): (TextKey, u64, u64)| {
            let known = self.texts.get(&key).copied().or_else(|| text_end_before(&key, self.end));
            let told = known.unwrap_or(held_end);
            (begin < told).then_some((key, told))
        };
        log.held_texts().filter_map(told).collect()
    }

    /// The global order of the first event that has yet to be delivered.
    pub(crate) fn first(&self) -> u64 {
        let first = self.untold.first().copied().unwrap_or(self.end);
        first.min(self.end).min(self.critical_end)
    }

    /// Whether a log has everything that has yet to be delivered.
    fn is_reached_by(&self, log: &Audience, begins: &BTreeMap<TextKey, u64>) -> bool {
        let first = self.first();
        let is_wanted = log.wants_text();
        let has_text = |(key, told): (&TextKey, &u64)| match begins.get(key) {
            Some(begin) => begin <= told,
            None => !is_wanted || !self.begun_texts.contains(key),
        };
        log.reaches_back_to(first) && self.texts.iter().all(has_text)
    }

    /// Whether a part of a non-critical unit has yet to be delivered.
    fn is_open(&self, unit: &Unit, told: &BTreeMap<TextKey, u64>) -> bool {
        let is_later = unit.order >= self.end;
        let Some(chunk) = unit.text() else {
            return is_later || self.untold.contains(&unit.order);
        };
        // Everything earlier was delivered, including sessions that are forgotten by now. A log may be long,
        // and most of its units take this exit.
        if !is_later && self.texts.is_empty() {
            return false;
        }
        let key = text_key(unit.session, chunk);
        if !is_later && !self.texts.contains_key(&key) {
            return false;
        }
        let end = chunk.position + chunk.chunk.chars().count() as u64;
        let told_up_to = told.get(&key).copied().unwrap_or(0);
        let ends_later = chunk.complete && (is_later || self.texts.contains_key(&key));
        end > told_up_to || ends_later
    }

    /// Owes summaries of these sessions, in addition to those already owed.
    pub(crate) fn owe_summaries(&mut self, sessions: impl Iterator<Item = SessionKey>) {
        self.summaries.extend(sessions);
    }

    /// Owes a gap notice.
    pub(crate) fn owe_gap(&mut self) {
        self.owes_gap = true;
    }
}

/// The units of a log with their positions.
fn units(log: &Audience) -> impl Iterator<Item = (u64, &Unit)> {
    (log.first()..log.end()).filter_map(|at| log.unit(at).map(|unit| (at, unit)))
}

/// Where the undelivered text of each output begins.
fn begins(open: &[&Unit], log: &Audience) -> BTreeMap<TextKey, u64> {
    let mut begins: BTreeMap<TextKey, u64> =
        log.held_texts().map(|(key, begin, _)| (key, begin)).collect();
    for unit in open.iter().rev() {
        if let Some(chunk) = unit.text() {
            begins.insert(text_key(unit.session, chunk), chunk.position);
        }
    }
    begins
}

fn text_of(unit: &Unit) -> Option<TextKey> {
    unit.text().map(|chunk| text_key(unit.session, chunk))
}
