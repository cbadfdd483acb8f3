//! What a subscriber was told, by the places of events among all events (ruling 20).
//!
//! A cursor is a place in the log of one audience. When terms change, where the subscriber is has to be
//! said in a way that holds for every audience: which events are still to be told, and up to where
//! each text was told. Nothing here sends anything.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::memory::{Folded, Rest};
use crate::audience::{Audience, SessionKey, TextKey, Unit, text_key};

/// What a subscriber was told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    /// Everything that happened before this was told, is superfluous or was not wanted; but for what
    /// follows.
    end: u64,
    /// What can wait and is still to be told, text aside.
    untold: BTreeSet<u64>,
    /// Up to where the outputs were told of which something is still to be told.
    texts: BTreeMap<TextKey, u64>,
    /// Those of them of which something was there already.
    begun_texts: BTreeSet<TextKey>,
    /// From here on, what is urgent is still to be told.
    urgent_end: u64,
    folded: Folded,
    summaries: BTreeSet<SessionKey>,
    owes_gap: bool,
}

/// Where a subscriber is in the log of an audience: what can wait, what is urgent, and the rest.
pub(super) type InLog = (u64, u64, Rest);

impl Place {
    /// Of what happened before this, nothing is to be told; of what comes then, everything.
    pub(crate) fn at(order: u64) -> Self {
        Place { end: order, urgent_end: order, ..Place::default() }
    }

    /// The place of a subscriber in a log; `end` is the place of the next event among all.
    pub(super) fn of((at, urgent_at, rest): (u64, u64, &Rest), log: &Audience, end: u64) -> Self {
        let is_held =
            |at: &u64| log.unit(*at).is_some_and(|it| !it.is_urgent && !rest.ahead.contains(at));
        let held = (at..log.end()).filter(is_held).filter_map(|at| log.unit(at));
        let (deleted, held): (Vec<&Unit>, Vec<&Unit>) = held.partition(|unit| unit.is_deleted());
        let urgent = (urgent_at..log.end()).filter_map(|at| log.unit(at)).filter(|it| it.is_urgent);
        let misses_urgent = urgent.clone().any(Unit::is_deleted);
        // A text that waits may have begun before something urgent that was told.
        let urgent_end = urgent.map(|unit| unit.order).next().map_or(end, |order| order.min(end));
        // Another log may know nothing of what was deleted.
        let owes_gap = rest.owes_gap || !deleted.is_empty() || misses_urgent;
        let untold =
            held.iter().filter(|unit| unit.text().is_none()).map(|unit| unit.order).collect();
        let told = |key: &TextKey| rest.told_text.get(key).copied().unwrap_or(0);
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
        let (folded, summaries) = (rest.folded.clone(), rest.summaries.clone());
        Place { end, untold, texts, begun_texts, urgent_end, folded, summaries, owes_gap }
    }

    /// The same place in the log of an audience; none if the log does not reach back to it.
    /// `told_at` says up to where an output went before a place among all events, none if nobody knows.
    pub(super) fn in_log(
        &self,
        log: &Audience,
        mut told_at: impl FnMut(&TextKey, u64) -> Option<u64>,
    ) -> Option<InLog> {
        let mut told = self.texts.clone();
        let later = units(log).filter(|(_, unit)| unit.order >= self.end);
        let texts = later.filter_map(|(_, unit)| text_of(unit));
        for key in texts.chain(log.held_texts().map(|(key, ..)| key)) {
            if let Entry::Vacant(vacant) = told.entry(key) {
                let up_to = told_at(vacant.key(), self.end)?;
                vacant.insert(up_to);
            }
        }
        let is_open = |(_, unit): &(u64, &Unit)| !unit.is_urgent && self.is_open(unit, &told);
        let at = units(log).find(is_open).map_or(log.end(), |(at, _)| at);
        let ahead = units(log)
            .filter(|it| it.0 >= at && !it.1.is_urgent && !is_open(it))
            .map(|(at, _)| at)
            .collect();
        let is_urgent = |(_, unit): &(u64, &Unit)| unit.is_urgent && unit.order >= self.urgent_end;
        let urgent_at = units(log).find(is_urgent).map_or(log.end(), |(at, _)| at);
        let open: Vec<&Unit> = units(log).filter(is_open).map(|(_, unit)| unit).collect();
        let begins = begins(&open, log);
        if !self.is_reached_by(log, &begins) {
            return None;
        }
        told.retain(|key, told| begins.get(key).is_some_and(|begin| begin < told));
        let (folded, summaries) = (self.folded.clone(), self.summaries.clone());
        let owes_gap = self.owes_gap;
        Some((at, urgent_at, Rest { ahead, folded, told_text: told, summaries, owes_gap }))
    }

    /// Up to where each text was told of which a log holds a part that was told. Where nobody knows, all that is held
    /// counts as told: nothing is repeated.
    pub(super) fn told_of_held(
        &self,
        log: &Audience,
        mut told_at: impl FnMut(&TextKey, u64) -> Option<u64>,
    ) -> BTreeMap<TextKey, u64> {
        let told = |(key, begin, held_end): (TextKey, u64, u64)| {
            let known = self.texts.get(&key).copied().or_else(|| told_at(&key, self.end));
            let told = known.unwrap_or(held_end);
            (begin < told).then_some((key, told))
        };
        log.held_texts().filter_map(told).collect()
    }

    /// From which place among all events on something is still to be told.
    pub(crate) fn first(&self) -> u64 {
        let first = self.untold.first().copied().unwrap_or(self.end);
        first.min(self.end).min(self.urgent_end)
    }

    /// Whether a log has everything that is still to be told.
    fn is_reached_by(&self, log: &Audience, begins: &BTreeMap<TextKey, u64>) -> bool {
        let first = self.first();
        let is_wanted = log.wants_text();
        let has_text = |(key, told): (&TextKey, &u64)| match begins.get(key) {
            Some(begin) => begin <= told,
            None => !is_wanted || !self.begun_texts.contains(key),
        };
        log.reaches_back_to(first) && self.texts.iter().all(has_text)
    }

    /// Whether something of a unit that can wait is still to be told.
    fn is_open(&self, unit: &Unit, told: &BTreeMap<TextKey, u64>) -> bool {
        let is_later = unit.order >= self.end;
        let Some(chunk) = unit.text() else {
            return is_later || self.untold.contains(&unit.order);
        };
        // Whatever went before was told, also of sessions that are forgotten by now. A log may be long, and
        // most of it is of this kind.
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

    /// These sessions are to be summed up, too.
    pub(crate) fn owe_summaries(&mut self, sessions: impl Iterator<Item = SessionKey>) {
        self.summaries.extend(sessions);
    }

    /// It is to be told that something is missing.
    pub(crate) fn owe_gap(&mut self) {
        self.owes_gap = true;
    }
}

/// The units of a log with their positions.
fn units(log: &Audience) -> impl Iterator<Item = (u64, &Unit)> {
    (log.first()..log.end()).filter_map(|at| log.unit(at).map(|unit| (at, unit)))
}

/// Where the text begins that is to come of each output.
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
