//! Which principal speaks under which agent name (ruling 36).
//!
//! The first principal that uses a name holds it while the name is in use, and for [`NAME_HOLD_US`] after that.
//! Then another principal may take it over, which is always announced. A principal that is bound to a name gets
//! it at once. This table is in memory and is rebuilt from the stored sessions after a start. It never decides
//! which principals are let in.

use std::collections::{BTreeSet, HashMap};

use aaep_engine::PrincipalNumber;

/// How long a name is held for its principal after its last use: one week.
pub(super) const NAME_HOLD_US: i64 = 7 * 24 * 3600 * 1_000_000;

/// How many names one principal holds. Beyond that, the hub only remembers which principal used a name, and the
/// name is free.
pub(super) const MAX_NAMES_OF_PRINCIPAL: usize = 1024;

/// How many names are known in total. Beyond that, the free name with the oldest last use is forgotten.
const MAX_NAMES: usize = 65_536;

/// The names that are held, and those that were.
#[derive(Debug, Default)]
pub(super) struct NameHolders {
    by_name: HashMap<String, NameHolder>,
    /// The names that each principal holds, ordered by last use, the oldest first.
    by_principal: HashMap<PrincipalNumber, BTreeSet<(i64, String)>>,
    /// The names that their principals no longer hold, ordered by last use, the oldest first.
    released: BTreeSet<(i64, String)>,
}

#[derive(Debug, Clone, Copy)]
struct NameHolder {
    principal: PrincipalNumber,
    used_unix_us: i64,
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
        (name, claim): (&str, NameClaim),
        principal: PrincipalNumber,
        now_unix_us: i64,
        is_in_use: impl Fn(&str, PrincipalNumber) -> bool,
    ) -> NameUse {
        let Some(holder) = self.by_name.get(name).copied() else {
            if self.by_name.len() >= MAX_NAMES && !self.forget_oldest(now_unix_us) {
                return NameUse::TooMany;
            }
            self.hold(name, (principal, None), now_unix_us, is_in_use);
            return NameUse::Held;
        };
        if holder.principal == principal {
            // Every event passes here; one second more or less in a week does not matter.
            let is_old = now_unix_us.saturating_sub(holder.used_unix_us) > 1_000_000;
            if is_old || holder.is_released {
                self.hold(name, (principal, holder.taken_from), now_unix_us, is_in_use);
            }
            return NameUse::Held;
        }
        let is_over = now_unix_us.saturating_sub(holder.used_unix_us) > NAME_HOLD_US;
        let is_free = (is_over || holder.is_released) && !is_in_use(name, holder.principal);
        let may_take = match claim {
            NameClaim::OwnOrNew => false,
            NameClaim::OrFree => is_free,
            NameClaim::Bound => true,
        };
        if !may_take {
            return NameUse::Taken;
        }
        self.hold(name, (principal, Some(holder.principal)), now_unix_us, is_in_use);
        NameUse::Held
    }

    /// Returns the previous holder of a name that was taken over, once: the caller announces the takeover.
    pub(super) fn take_unannounced(&mut self, name: &str) -> Option<PrincipalNumber> {
        self.by_name.get_mut(name)?.taken_from.take()
    }

    /// Restores a name from a stored session. The newest use counts.
    pub(super) fn recover(&mut self, name: &str, principal: PrincipalNumber, used_unix_us: i64) {
        let is_newer = self.by_name.get(name).is_none_or(|it| it.used_unix_us < used_unix_us);
        if is_newer && self.by_name.len() < MAX_NAMES {
            self.hold(name, (principal, None), used_unix_us, |_, _| false);
        }
    }

    /// The principal that holds a name.
    #[cfg(test)]
    fn holder(&self, name: &str) -> Option<PrincipalNumber> {
        self.by_name.get(name).map(|holder| holder.principal)
    }

    fn hold(
        &mut self,
        name: &str,
        (principal, taken_from): (PrincipalNumber, Option<PrincipalNumber>),
        used_unix_us: i64,
        is_in_use: impl Fn(&str, PrincipalNumber) -> bool,
    ) {
        self.remove_name(name);
        let names = self.by_principal.entry(principal).or_default();
        names.insert((used_unix_us, name.to_owned()));
        let holder = NameHolder { principal, used_unix_us, taken_from, is_released: false };
        self.by_name.insert(name.to_owned(), holder);
        if names.len() > MAX_NAMES_OF_PRINCIPAL {
            // The limit is at least as large as the number of running sessions, so a name that is not in use is
            // found.
            let surplus = names.iter().find(|(_, it)| it != name && !is_in_use(it, principal));
            if let Some(surplus) = surplus.cloned() {
                names.remove(&surplus);
                if let Some(holder) = self.by_name.get_mut(&surplus.1) {
                    holder.is_released = true;
                }
                self.released.insert(surplus);
            }
        }
    }

    fn remove_name(&mut self, name: &str) {
        let Some(holder) = self.by_name.remove(name) else { return };
        let key = (holder.used_unix_us, name.to_owned());
        self.released.remove(&key);
        if let Some(names) = self.by_principal.get_mut(&holder.principal) {
            names.remove(&key);
            if names.is_empty() {
                self.by_principal.remove(&holder.principal);
            }
        }
    }

    /// Forgets one name that nobody holds any more. Returns whether there was one.
    fn forget_oldest(&mut self, now_unix_us: i64) -> bool {
        let held = || self.by_principal.values().filter_map(BTreeSet::first).min().cloned();
        let is_over = |(used, _): &(i64, String)| now_unix_us.saturating_sub(*used) > NAME_HOLD_US;
        let free = self.released.first().cloned().or_else(|| held().filter(is_over));
        free.map(|(_, name)| self.remove_name(&name)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_US: i64 = 24 * 3600 * 1_000_000;

    fn use_name(holders: &mut NameHolders, principal: PrincipalNumber, unix_us: i64) -> NameUse {
        holders.use_name(("photos", NameClaim::OrFree), principal, unix_us, |_, _| false)
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
        assert_eq!(holders.take_unannounced("photos"), None);
        assert_eq!(use_name(&mut holders, PrincipalNumber(2), 14 * DAY_US), NameUse::Held);
        assert_eq!(use_name(&mut holders, PrincipalNumber(2), 15 * DAY_US), NameUse::Held);
        assert_eq!(
            holders.take_unannounced("photos"),
            Some(PrincipalNumber(1)),
            "it is never silent"
        );
        assert_eq!(holders.take_unannounced("photos"), None, "and told once");
        assert_eq!(use_name(&mut holders, PrincipalNumber(1), 15 * DAY_US), NameUse::Taken);
    }

    #[test]
    fn a_name_in_use_is_never_taken_over() {
        let mut holders = NameHolders::default();
        use_name(&mut holders, PrincipalNumber(1), 0);
        let in_use = |_: &str, holder| holder == PrincipalNumber(1);
        let claim = ("photos", NameClaim::OrFree);
        assert_eq!(
            holders.use_name(claim, PrincipalNumber(2), 100 * DAY_US, in_use),
            NameUse::Taken
        );
        let claim = ("photos", NameClaim::Bound);
        assert_eq!(
            holders.use_name(claim, PrincipalNumber(2), 100 * DAY_US, in_use),
            NameUse::Held
        );
        assert_eq!(
            holders.take_unannounced("photos"),
            Some(PrincipalNumber(1)),
            "unless it is bound to another"
        );
    }

    #[test]
    fn a_free_name_is_not_taken_over_without_a_session_in_which_everyone_hears_of_it() {
        let mut holders = NameHolders::default();
        use_name(&mut holders, PrincipalNumber(1), 0);
        let claim = ("photos", NameClaim::OwnOrNew);
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
            let used =
                holders.use_name((&name, NameClaim::OrFree), PrincipalNumber(2), number, in_use);
            assert_eq!(used, NameUse::Held);
        }
        assert_eq!(holders.by_principal[&PrincipalNumber(2)].len(), MAX_NAMES_OF_PRINCIPAL);
        assert_eq!(holders.holder("photos"), Some(PrincipalNumber(1)));
        let mut take = |name| {
            let in_use = |name: &str, _| name == "bot1";
            let used =
                holders.use_name((name, NameClaim::OrFree), PrincipalNumber(3), 5000, in_use);
            (used, holders.take_unannounced(name))
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
            holders.recover(
                &format!("bot{number}"),
                PrincipalNumber(number.unsigned_abs() % 128),
                number,
            );
        }
        let used =
            holders
                .use_name(("one", NameClaim::OrFree), PrincipalNumber(999), 70_000, |_, _| false);
        assert_eq!((used, holders.by_name.len()), (NameUse::TooMany, MAX_NAMES), "all are held");
        let claim = ("bot0", NameClaim::OrFree);
        holders.use_name(claim, PrincipalNumber(0), 2_000_000, |_, _| false);
        let used = holders.use_name(
            ("one", NameClaim::OrFree),
            PrincipalNumber(999),
            NAME_HOLD_US + 2,
            |_, _| false,
        );
        assert_eq!((used, holders.by_name.len()), (NameUse::Held, MAX_NAMES));
        assert_eq!(
            (holders.holder("bot0"), holders.holder("bot1")),
            (Some(PrincipalNumber(0)), None)
        );
    }

    #[test]
    fn stored_sessions_say_who_held_a_name_last() {
        let mut holders = NameHolders::default();
        holders.recover("photos", PrincipalNumber(1), DAY_US);
        holders.recover("photos", PrincipalNumber(2), 0);
        assert_eq!(holders.holder("photos"), Some(PrincipalNumber(1)));
    }
}
