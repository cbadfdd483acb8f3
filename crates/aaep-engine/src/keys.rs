//! The engine's numbers for principals, sessions and subscribers. Each is a type of its own, so that the compiler
//! tells them apart.

/// A person or program that was let in, identified by a number that the caller chose (rulings 14
/// and 36). A session belongs to the principal that began it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrincipalNumber(pub u64);

impl std::fmt::Display for PrincipalNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The engine's number for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SessionKey(u64);

impl SessionKey {
    /// The key of the first session.
    pub(crate) const FIRST: SessionKey = SessionKey(0);

    /// Stands in the units of a deleted session. No session has it.
    pub(crate) const DELETED: SessionKey = SessionKey(u64::MAX);

    /// The key of the session after this one.
    pub(crate) fn next(self) -> Self {
        SessionKey(self.0 + 1)
    }

    /// The key as bytes, for ids that are made from it.
    pub(crate) fn to_bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }
}

/// The engine's number for a subscriber. After a subscriber is gone, another can get its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriberKey(pub u32);

impl SubscriberKey {
    /// The key of a slot in the table of subscribers.
    pub(crate) fn of_slot(slot: usize) -> Self {
        SubscriberKey(u32::try_from(slot).unwrap_or(u32::MAX))
    }

    /// The slot in the table of subscribers.
    pub(crate) fn slot(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Display for SubscriberKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
