//! Which principal speaks under which agent name (ruling 36), and which one people hear under which name.
//!
//! Names that read alike are one name here, so that no principal gets a name that people take for that of another.
//! The first principal that uses a name holds it while the name is in use, and for [`NAME_HOLD_US`] after that.
//! Then another principal may take it over, which is always announced. A principal that is bound to a name gets
//! it at once. Every change is stored, so that a restart frees no name. This table never decides which principals
//! are let in.

use std::collections::{BTreeSet, HashMap};

use aaep_engine::PrincipalNumber;

use crate::name_reading::NameReading;
use crate::store::{StoreChange, StoredName};

/// How long a name is held for its principal after its last use: one week.
pub(super) const NAME_HOLD_US: i64 = 7 * 24 * 3600 * 1_000_000;

/// How many names one principal holds. Beyond that, the hub only remembers which principal used a name, and the
/// name is free.
pub(super) const MAX_NAMES_OF_PRINCIPAL: usize = 1024;

/// How many names are known in total. Beyond that, the free name with the oldest last use is forgotten. If no name
/// is free, the principal that holds the most loses the one that it used the longest ago.
const MAX_NAMES: usize = 65_536;

/// How often the last use of a name is stored: each event would be too often. After a start, a name counts as used
/// this much later than stored, so that nobody loses one early.
const STORED_EVERY_US: i64 = 3600 * 1_000_000;

/// What kind of names a table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum NameKind {
    /// `agent_id`.
    #[default]
    AgentId,
    /// The names that people hear.
    Spoken,
}

/// What a name that people hear begins with in the store. No `agent_id` begins with this character, because it is
/// never in Normalization Form C.
const SPOKEN_MARK: char = '\u{2126}';

/// The names of one kind that are held, and those that were.
#[derive(Debug, Default)]
pub(super) struct NameHolders {
    kind: NameKind,
    by_reading: HashMap<NameReading, NameHolder>,
    /// The names that each principal holds, ordered by last use, the oldest first.
    by_principal: HashMap<PrincipalNumber, BTreeSet<(i64, NameReading)>>,
    /// The names that their principals no longer hold, ordered by last use, the oldest first.
    released: BTreeSet<(i64, NameReading)>,
    /// What has changed and must be stored.
    changes: Vec<StoreChange>,
}

/// A name, and how it reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadName<'a> {
    pub(super) name: &'a str,
    pub(super) reading: NameReading,
}

#[derive(Debug, Clone)]
struct NameHolder {
    /// The name as the principal wrote it first.
    name: String,
    principal: PrincipalNumber,
    used_unix_us: i64,
    /// The last use that is stored; `None` if the holder is not stored yet.
    stored_unix_us: Option<i64>,
    /// The principal that held the name before, until the takeover has been announced.
    taken_from: Option<PrincipalNumber>,
    /// Whether the principal lost its hold on this name because it has used too many other names since.
    is_released: bool,
}

/// The result of using a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameUse {
    /// The principal holds it.
    Held,
    /// Another principal holds it.
    Taken,
    /// There are more names than the hub can tell apart.
    TooMany,
}

/// How a principal wants to use a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameClaim {
    /// Only if the name is new or its own.
    OwnOrNew,
    /// Also if the name is free; the takeover is then announced.
    OrFree,
    /// The name is bound to the principal: the current holder loses it.
    Bound,
}

impl NameHolders {
    /// Uses a name for a principal. `is_in_use` says whether a principal speaks under a name right now.
    pub(super) fn use_name(
        &mut self,
        (name, claim): (ReadName<'_>, NameClaim),
        principal: PrincipalNumber,
        now_unix_us: i64,
        is_in_use: impl Fn(&str, PrincipalNumber) -> bool,
    ) -> NameUse {
        let Some(holder) = self.by_reading.get(&name.reading) else {
            if self.by_reading.len() >= MAX_NAMES
                && !self.forget_oldest(now_unix_us)
                && !self.forget_one_of_most(principal, &is_in_use)
            {
                return NameUse::TooMany;
            }
            self.hold(name, (principal, None), now_unix_us, is_in_use);
            self.store(name.reading);
            return NameUse::Held;
        };
        if holder.principal == principal {
            // Every event passes here; one second more or less in a week does not matter.
            let is_old = now_unix_us.saturating_sub(holder.used_unix_us) > 1_000_000;
            if is_old || holder.is_released {
                let whose = (principal, holder.taken_from);
                self.hold(name, whose, now_unix_us, is_in_use);
                self.store(name.reading);
            }
            return NameUse::Held;
        }
        let is_free = holder.is_over(now_unix_us) && !is_in_use(&holder.name, holder.principal);
        let may_take = match claim {
            NameClaim::OwnOrNew => false,
            NameClaim::OrFree => is_free,
            NameClaim::Bound => true,
        };
        if !may_take {
            return NameUse::Taken;
        }
        let taken_from = Some(holder.principal);
        self.hold(name, (principal, taken_from), now_unix_us, is_in_use);
        self.store(name.reading);
        NameUse::Held
    }

    /// The principal that holds the name with this reading, or did last.
    pub(super) fn holder_of(&self, reading: NameReading) -> Option<PrincipalNumber> {
        self.by_reading.get(&reading).map(|holder| holder.principal)
    }

    /// Whether a principal holds the name with this reading, or did last.
    pub(super) fn is_of(&self, reading: NameReading, principal: PrincipalNumber) -> bool {
        self.holder_of(reading) == Some(principal)
    }

    /// Whether another principal holds the name with this reading.
    pub(super) fn is_of_another(
        &self,
        reading: NameReading,
        principal: PrincipalNumber,
        now_unix_us: i64,
    ) -> bool {
        let others = |holder: &&NameHolder| holder.principal != principal;
        let holder = self.by_reading.get(&reading).filter(others);
        holder.is_some_and(|holder| !holder.is_over(now_unix_us))
    }

    /// The changes since the last call, to be stored.
    pub(super) fn take_changes(&mut self) -> Vec<StoreChange> {
        std::mem::take(&mut self.changes)
    }

    /// Returns the previous holder of a name that was taken over, once: the caller announces the takeover.
    pub(super) fn take_unannounced(&mut self, reading: NameReading) -> Option<PrincipalNumber> {
        let holder = self.by_reading.get_mut(&reading)?;
        let from = holder.taken_from.take()?;
        // Otherwise it would be announced again after a restart.
        holder.stored_unix_us = None;
        self.store(reading);
        Some(from)
    }

    /// The names of one kind in a store, the one that was used the longest ago first.
    pub(super) fn recovered(kind: NameKind, stored: &[StoredName]) -> Self {
        let mut holders = NameHolders { kind, ..NameHolders::default() };
        let of_kind = |stored: &&StoredName| {
            stored.agent_id.starts_with(SPOKEN_MARK) == (kind == NameKind::Spoken)
        };
        let surplus = stored.iter().filter(of_kind).count().saturating_sub(MAX_NAMES);
        for stored in stored.iter().filter(of_kind).skip(surplus) {
            let name = stored.agent_id.strip_prefix(SPOKEN_MARK).unwrap_or(&stored.agent_id);
            let name = ReadName { name, reading: NameReading::of(name) };
            let taken_from = stored.taken_from.map(PrincipalNumber);
            let used_at_the_latest = stored.used_unix_us.saturating_add(STORED_EVERY_US);
            let whose = (PrincipalNumber(stored.principal), taken_from);
            // A version that did not compare readings stored more than one name with the same one.
            holders.forget(name.reading);
            holders.hold(name, whose, used_at_the_latest, |_, _| false);
            if let Some(holder) = holders.by_reading.get_mut(&name.reading) {
                holder.stored_unix_us = Some(stored.used_unix_us);
            }
        }
        holders
    }

    /// Notes that a name must be stored, unless that was done a moment ago.
    fn store(&mut self, reading: NameReading) {
        let Some(holder) = self.by_reading.get_mut(&reading) else { return };
        let used_unix_us = holder.used_unix_us;
        let is_stored = |stored: i64| used_unix_us.saturating_sub(stored) < STORED_EVERY_US;
        if holder.stored_unix_us.is_some_and(is_stored) {
            return;
        }
        holder.stored_unix_us = Some(used_unix_us);
        self.changes.push(StoreChange::NameHeld(StoredName {
            agent_id: self.kind.stored_form(&holder.name),
            principal: holder.principal.0,
            used_unix_us,
            taken_from: holder.taken_from.map(|from| from.0),
        }));
    }

    /// The principal that holds a name.
    #[cfg(test)]
    fn holder(&self, name: &str) -> Option<PrincipalNumber> {
        self.holder_of(NameReading::of(name))
    }

    fn hold(
        &mut self,
        ReadName { name, reading }: ReadName<'_>,
        (principal, taken_from): (PrincipalNumber, Option<PrincipalNumber>),
        used_unix_us: i64,
        is_in_use: impl Fn(&str, PrincipalNumber) -> bool,
    ) {
        let before = self.remove_name(reading);
        if let Some(before) = before.as_ref().filter(|it| it.principal != principal)
            && before.stored_unix_us.is_some()
            && before.name != name
        {
            let agent_id = self.kind.stored_form(&before.name);
            self.changes.push(StoreChange::NameForgotten { agent_id });
        }
        let before = before.filter(|it| it.principal == principal);
        let is_as_before = |it: &NameHolder| it.taken_from == taken_from;
        let stored_unix_us =
            before.as_ref().filter(|it| is_as_before(it)).and_then(|it| it.stored_unix_us);
        let name = before.map_or_else(|| name.to_owned(), |it| it.name);
        let names = self.by_principal.entry(principal).or_default();
        names.insert((used_unix_us, reading));
        let holder = NameHolder {
            name,
            principal,
            used_unix_us,
            stored_unix_us,
            taken_from,
            is_released: false,
        };
        self.by_reading.insert(reading, holder);
        if names.len() > MAX_NAMES_OF_PRINCIPAL {
            // The limit is at least as large as the number of running sessions, so a name that is not in use is
            // found.
            // Those that are in use are used now, so that they are not looked at again for the next name.
            for _ in 0..names.len() {
                let oldest = names.iter().find(|(_, it)| *it != reading).copied();
                let Some(oldest) = oldest else { break };
                let Some(holder) = self.by_reading.get_mut(&oldest.1) else { break };
                names.remove(&oldest);
                if is_in_use(&holder.name, principal) {
                    holder.used_unix_us = used_unix_us.max(holder.used_unix_us + 1);
                    names.insert((holder.used_unix_us, oldest.1));
                    continue;
                }
                holder.is_released = true;
                self.released.insert(oldest);
                break;
            }
        }
    }

    fn remove_name(&mut self, reading: NameReading) -> Option<NameHolder> {
        let holder = self.by_reading.remove(&reading)?;
        let key = (holder.used_unix_us, reading);
        self.released.remove(&key);
        if let Some(names) = self.by_principal.get_mut(&holder.principal) {
            names.remove(&key);
            if names.is_empty() {
                self.by_principal.remove(&holder.principal);
            }
        }
        Some(holder)
    }

    fn forget(&mut self, reading: NameReading) {
        let stored = self.remove_name(reading).filter(|holder| holder.stored_unix_us.is_some());
        if let Some(holder) = stored {
            let agent_id = self.kind.stored_form(&holder.name);
            self.changes.push(StoreChange::NameForgotten { agent_id });
        }
    }

    /// Forgets a name of the principal that holds the most, if it holds more than the one that wants a name.
    /// Returns whether there was one.
    fn forget_one_of_most(
        &mut self,
        wanted_by: PrincipalNumber,
        is_in_use: impl Fn(&str, PrincipalNumber) -> bool,
    ) -> bool {
        let own = self.by_principal.get(&wanted_by).map_or(0, BTreeSet::len);
        let most = self.by_principal.iter().max_by_key(|(_, names)| names.len());
        let Some((&principal, names)) = most.filter(|(_, names)| names.len() > own + 1) else {
            return false;
        };
        let is_used = |reading: &NameReading| {
            self.by_reading.get(reading).is_some_and(|holder| is_in_use(&holder.name, principal))
        };
        let oldest = names.iter().find(|(_, reading)| !is_used(reading)).copied();
        oldest.map(|(_, reading)| self.forget(reading)).is_some()
    }

    /// Forgets one name that nobody holds any more. Returns whether there was one.
    fn forget_oldest(&mut self, now_unix_us: i64) -> bool {
        let held = || self.by_principal.values().filter_map(BTreeSet::first).min().copied();
        let is_over =
            |(used, _): &(i64, NameReading)| now_unix_us.saturating_sub(*used) > NAME_HOLD_US;
        let free = self.released.first().copied().or_else(|| held().filter(is_over));
        free.map(|(_, reading)| self.forget(reading)).is_some()
    }
}

impl NameHolder {
    /// Whether its principal no longer holds the name, unless it speaks under it right now.
    fn is_over(&self, now_unix_us: i64) -> bool {
        self.is_released || now_unix_us.saturating_sub(self.used_unix_us) > NAME_HOLD_US
    }
}

impl NameKind {
    /// The name as it is stored.
    fn stored_form(self, name: &str) -> String {
        match self {
            NameKind::AgentId => name.to_owned(),
            NameKind::Spoken => format!("{SPOKEN_MARK}{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_US: i64 = 24 * 3600 * 1_000_000;

    fn read(name: &str) -> ReadName<'_> {
        ReadName { name, reading: NameReading::of(name) }
    }

    fn use_name(holders: &mut NameHolders, principal: PrincipalNumber, unix_us: i64) -> NameUse {
        holders.use_name((read("photos"), NameClaim::OrFree), principal, unix_us, |_, _| false)
    }

    #[test]
    fn a_name_belongs_to_its_first_user_and_for_a_week_after() {
        let mut holders = NameHolders::default();
        assert_eq!(use_name(&mut holders, PrincipalNumber(1), 0), NameUse::Held);
        assert_eq!(use_name(&mut holders, PrincipalNumber(2), 1), NameUse::Taken);
        assert_eq!(use_name(&mut holders, PrincipalNumber(1), 6 * DAY_US), NameUse::Held);
        assert_eq!(
            use_name(&mut holders, PrincipalNumber(2), 8 * DAY_US),
            NameUse::Taken,
            "used two days ago"
        );
        assert_eq!(holders.take_unannounced(NameReading::of("photos")), None);
        assert_eq!(use_name(&mut holders, PrincipalNumber(2), 14 * DAY_US), NameUse::Held);
        assert_eq!(use_name(&mut holders, PrincipalNumber(2), 15 * DAY_US), NameUse::Held);
        assert_eq!(
            holders.take_unannounced(NameReading::of("photos")),
            Some(PrincipalNumber(1)),
            "it is never silent"
        );
        assert_eq!(holders.take_unannounced(NameReading::of("photos")), None, "and told once");
        assert_eq!(use_name(&mut holders, PrincipalNumber(1), 15 * DAY_US), NameUse::Taken);
    }

    #[test]
    fn a_name_in_use_is_never_taken_over() {
        let mut holders = NameHolders::default();
        use_name(&mut holders, PrincipalNumber(1), 0);
        let in_use = |_: &str, holder| holder == PrincipalNumber(1);
        let claim = (read("photos"), NameClaim::OrFree);
        assert_eq!(
            holders.use_name(claim, PrincipalNumber(2), 100 * DAY_US, in_use),
            NameUse::Taken
        );
        let claim = (read("photos"), NameClaim::Bound);
        assert_eq!(
            holders.use_name(claim, PrincipalNumber(2), 100 * DAY_US, in_use),
            NameUse::Held
        );
        assert_eq!(
            holders.take_unannounced(NameReading::of("photos")),
            Some(PrincipalNumber(1)),
            "unless it is bound to another"
        );
    }

    #[test]
    fn a_free_name_is_not_taken_over_without_a_session_in_which_everyone_hears_of_it() {
        let mut holders = NameHolders::default();
        use_name(&mut holders, PrincipalNumber(1), 0);
        let claim = (read("photos"), NameClaim::OwnOrNew);
        assert_eq!(
            holders.use_name(claim, PrincipalNumber(2), 100 * DAY_US, |_, _| false),
            NameUse::Taken
        );
    }

    #[test]
    fn one_principal_holds_a_bounded_number_and_nobody_elses_go() {
        let mut holders = NameHolders::default();
        use_name(&mut holders, PrincipalNumber(1), 0);
        for number in 0..5000 {
            let name = format!("bot{number}");
            let in_use = |name: &str, _| name == "bot1";
            let used = holders.use_name(
                (read(&name), NameClaim::OrFree),
                PrincipalNumber(2),
                number,
                in_use,
            );
            assert_eq!(used, NameUse::Held);
        }
        assert_eq!(holders.by_principal[&PrincipalNumber(2)].len(), MAX_NAMES_OF_PRINCIPAL);
        assert_eq!(holders.holder("photos"), Some(PrincipalNumber(1)));
        let mut take = |name| {
            let in_use = |name: &str, _| name == "bot1";
            let used =
                holders.use_name((read(name), NameClaim::OrFree), PrincipalNumber(3), 5000, in_use);
            (used, holders.take_unannounced(NameReading::of(name)))
        };
        assert_eq!(
            take("bot0"),
            (NameUse::Held, Some(PrincipalNumber(2))),
            "it is free, and that is told"
        );
        assert_eq!(take("bot1"), (NameUse::Taken, None), "it is in use");
        assert_eq!(take("bot4999"), (NameUse::Taken, None), "it is held");
    }

    #[test]
    fn names_in_all_are_bounded_and_those_that_nobody_holds_go_first() {
        let mut holders = NameHolders::default();
        for number in 0..65_536_i64 {
            let name = format!("bot{number}");
            let principal = PrincipalNumber(number.unsigned_abs() % 128);
            holders.use_name((read(&name), NameClaim::OrFree), principal, number, |_, _| false);
        }
        let in_use = |_: &str, _| true;
        let claim = (read("one"), NameClaim::OrFree);
        let used = holders.use_name(claim, PrincipalNumber(999), 70_000, in_use);
        assert_eq!((used, holders.by_reading.len()), (NameUse::TooMany, MAX_NAMES), "all are used");
        let claim = (read("bot0"), NameClaim::OrFree);
        holders.use_name(claim, PrincipalNumber(0), 2_000_000, |_, _| false);
        let used = holders.use_name(
            (read("one"), NameClaim::OrFree),
            PrincipalNumber(999),
            NAME_HOLD_US + 2,
            |_, _| false,
        );
        assert_eq!((used, holders.by_reading.len()), (NameUse::Held, MAX_NAMES));
        assert_eq!(
            (holders.holder("bot0"), holders.holder("bot1")),
            (Some(PrincipalNumber(0)), None)
        );
    }

    #[test]
    fn a_principal_with_few_names_gets_one_from_the_principal_with_the_most() {
        let mut holders = NameHolders::default();
        let mut now_unix_us = 0;
        let mut use_name = |name: &str, principal: u64| {
            let claim = (read(name), NameClaim::OrFree);
            now_unix_us += 1;
            let in_use = |name: &str, _| name == "bot0";
            holders.use_name(claim, PrincipalNumber(principal), now_unix_us, in_use)
        };
        for number in 0..MAX_NAMES {
            // One has half a share more than all others.
            let principal = if number < 1024 { 1 } else { 2 + number as u64 / 700 };
            assert_eq!(use_name(&format!("bot{number}"), principal), NameUse::Held);
        }
        assert_eq!(use_name("mine", 999), NameUse::Held);
        assert_eq!(holders.by_reading.len(), MAX_NAMES);
        assert_eq!(holders.by_principal[&PrincipalNumber(1)].len(), 1023);
        assert_eq!(holders.holder("bot0"), Some(PrincipalNumber(1)), "it is in use");
        let gone = holders.take_changes().into_iter().filter(|change| {
            matches!(change, StoreChange::NameForgotten { agent_id } if agent_id == "bot1")
        });
        assert_eq!(gone.count(), 1, "and that is stored");
    }

    /// What a store has after these changes.
    fn stored(changes: Vec<StoreChange>) -> Vec<StoredName> {
        let mut stored: HashMap<String, StoredName> = HashMap::new();
        for change in changes {
            match change {
                StoreChange::NameHeld(name) => drop(stored.insert(name.agent_id.clone(), name)),
                StoreChange::NameForgotten { agent_id } => drop(stored.remove(&agent_id)),
                other => panic!("{other:?}"),
            }
        }
        let mut stored: Vec<_> = stored.into_values().collect();
        stored.sort_by_key(|name| name.used_unix_us);
        stored
    }

    #[test]
    fn a_restart_frees_no_name_and_forgets_no_takeover() {
        let mut holders = NameHolders::default();
        use_name(&mut holders, PrincipalNumber(1), 0);
        use_name(&mut holders, PrincipalNumber(1), STORED_EVERY_US - 1);
        let changes = holders.take_changes();
        assert_eq!(changes.len(), 1, "not every use is stored");
        let mut after = NameHolders::recovered(NameKind::AgentId, &stored(changes));
        let week = 7 * DAY_US;
        let used = use_name(&mut after, PrincipalNumber(2), STORED_EVERY_US - 1 + week);
        assert_eq!(used, NameUse::Taken, "it is held for a week after its last use");
        let used = use_name(&mut after, PrincipalNumber(2), STORED_EVERY_US + 1 + week);
        assert_eq!(used, NameUse::Held);
        let mut changes = after.take_changes();
        let mut again = NameHolders::recovered(NameKind::AgentId, &stored(changes.clone()));
        assert_eq!(
            again.take_unannounced(NameReading::of("photos")),
            Some(PrincipalNumber(1)),
            "it is never silent"
        );
        changes.extend(again.take_changes());
        let mut last = NameHolders::recovered(NameKind::AgentId, &stored(changes));
        assert_eq!(last.take_unannounced(NameReading::of("photos")), None, "and told once");
    }
}
