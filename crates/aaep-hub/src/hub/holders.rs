//! Which principal speaks under which agent name (ruling 36).
//!
//! The first use of a name holds it: while it is in use, and for [`NAME_HOLD_US`] after. Then another
//! principal may take it over, which is never silent. What is here is in memory and made again from the
//! stored sessions after a start. It never decides who may come in.

use std::collections::{BTreeSet, HashMap};

/// How long a name is held for its principal after it was last used: a week.
pub(super) const NAME_HOLD_US: i64 = 7 * 24 * 3600 * 1_000_000;

/// How many names one principal holds. Its oldest is let go first.
pub(super) const MAX_NAMES_OF_PRINCIPAL: usize = 1024;

/// How many names are held in all. Past it, the oldest that may be taken over is forgotten.
const MAX_NAMES: usize = 65_536;

/// The names that are held.
#[derive(Debug, Default)]
pub(super) struct NameHolders {
    by_name: HashMap<String, Holder>,
    /// The names of each principal, the one that was used longest ago first.
    by_principal: HashMap<u64, BTreeSet<(i64, String)>>,
}

#[derive(Debug, Clone, Copy)]
struct Holder {
    principal: u64,
    used_unix_us: i64,
    /// From whom the name was taken over, until everyone was told.
    taken_from: Option<u64>,
}

/// What came of the use of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameUse {
    /// The principal holds it.
    Held,
    /// Another principal holds it.
    Taken,
    /// There are more names than can be told apart.
    TooMany,
}

impl NameHolders {
    /// A principal speaks under a name. `is_in_use` says whether another one still does.
    pub(super) fn use_name(
        &mut self,
        name: &str,
        principal: u64,
        now_unix_us: i64,
        is_in_use: impl FnOnce(u64) -> bool,
    ) -> NameUse {
        let Some(holder) = self.by_name.get(name).copied() else {
            if self.by_name.len() >= MAX_NAMES && !self.forget_oldest(now_unix_us) {
                return NameUse::TooMany;
            }
            self.hold(name, principal, now_unix_us, None);
            return NameUse::Held;
        };
        if holder.principal == principal {
            // Every event comes here; a second more or less of a week does not matter.
            if now_unix_us.saturating_sub(holder.used_unix_us) > 1_000_000 {
                self.hold(name, principal, now_unix_us, holder.taken_from);
            }
            return NameUse::Held;
        }
        let is_free = now_unix_us.saturating_sub(holder.used_unix_us) > NAME_HOLD_US;
        if !is_free || is_in_use(holder.principal) {
            return NameUse::Taken;
        }
        self.hold(name, principal, now_unix_us, Some(holder.principal));
        NameUse::Held
    }

    /// From whom a name was taken over, if nobody was told of it yet. From now on everyone was.
    pub(super) fn take_untold(&mut self, name: &str) -> Option<u64> {
        self.by_name.get_mut(name)?.taken_from.take()
    }

    /// A session that is stored: its principal used the name then. The newest use counts.
    pub(super) fn recover(&mut self, name: &str, principal: u64, used_unix_us: i64) {
        let is_newer = self.by_name.get(name).is_none_or(|it| it.used_unix_us < used_unix_us);
        if is_newer && self.by_name.len() < MAX_NAMES {
            self.hold(name, principal, used_unix_us, None);
        }
    }

    /// Who holds a name.
    #[cfg(test)]
    fn holder(&self, name: &str) -> Option<u64> {
        self.by_name.get(name).map(|holder| holder.principal)
    }

    fn hold(&mut self, name: &str, principal: u64, used_unix_us: i64, taken_from: Option<u64>) {
        self.let_go(name);
        let names = self.by_principal.entry(principal).or_default();
        names.insert((used_unix_us, name.to_owned()));
        let surplus = if names.len() > MAX_NAMES_OF_PRINCIPAL { names.pop_first() } else { None };
        self.by_name.insert(name.to_owned(), Holder { principal, used_unix_us, taken_from });
        if let Some((_, oldest)) = surplus {
            self.by_name.remove(&oldest);
        }
    }

    fn let_go(&mut self, name: &str) {
        let Some(holder) = self.by_name.remove(name) else { return };
        if let Some(names) = self.by_principal.get_mut(&holder.principal) {
            names.remove(&(holder.used_unix_us, name.to_owned()));
            if names.is_empty() {
                self.by_principal.remove(&holder.principal);
            }
        }
    }

    /// Makes room for one name. Says whether there was one that nobody holds any more.
    fn forget_oldest(&mut self, now_unix_us: i64) -> bool {
        let oldest = self.by_principal.values().filter_map(BTreeSet::first).min().cloned();
        let free = oldest.filter(|(used, _)| now_unix_us.saturating_sub(*used) > NAME_HOLD_US);
        free.map(|(_, name)| self.let_go(&name)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_US: i64 = 24 * 3600 * 1_000_000;

    fn use_name(holders: &mut NameHolders, principal: u64, unix_us: i64) -> NameUse {
        holders.use_name("photos", principal, unix_us, |_| false)
    }

    #[test]
    fn a_name_belongs_to_its_first_user_and_for_a_week_after() {
        let mut holders = NameHolders::default();
        assert_eq!(use_name(&mut holders, 1, 0), NameUse::Held);
        assert_eq!(use_name(&mut holders, 2, 1), NameUse::Taken);
        assert_eq!(use_name(&mut holders, 1, 6 * DAY_US), NameUse::Held);
        assert_eq!(use_name(&mut holders, 2, 8 * DAY_US), NameUse::Taken, "used two days ago");
        assert_eq!(holders.take_untold("photos"), None);
        assert_eq!(use_name(&mut holders, 2, 14 * DAY_US), NameUse::Held);
        assert_eq!(use_name(&mut holders, 2, 15 * DAY_US), NameUse::Held);
        assert_eq!(holders.take_untold("photos"), Some(1), "it is never silent");
        assert_eq!(holders.take_untold("photos"), None, "and told once");
        assert_eq!(use_name(&mut holders, 1, 15 * DAY_US), NameUse::Taken);
    }

    #[test]
    fn a_name_in_use_is_never_taken_over() {
        let mut holders = NameHolders::default();
        use_name(&mut holders, 1, 0);
        let used = holders.use_name("photos", 2, 100 * DAY_US, |holder| holder == 1);
        assert_eq!(used, NameUse::Taken);
    }

    #[test]
    fn one_principal_holds_a_bounded_number_and_nobody_elses_go() {
        let mut holders = NameHolders::default();
        use_name(&mut holders, 1, 0);
        for number in 0..5000 {
            let used = holders.use_name(&format!("bot{number}"), 2, number, |_| false);
            assert_eq!(used, NameUse::Held);
        }
        assert_eq!(holders.by_name.len(), MAX_NAMES_OF_PRINCIPAL + 1);
        assert_eq!(holders.holder("photos"), Some(1));
        assert_eq!(holders.holder("bot0"), None, "the oldest went");
    }

    #[test]
    fn stored_sessions_say_who_held_a_name_last() {
        let mut holders = NameHolders::default();
        holders.recover("photos", 1, DAY_US);
        holders.recover("photos", 2, 0);
        assert_eq!(holders.holder("photos"), Some(1));
    }
}
