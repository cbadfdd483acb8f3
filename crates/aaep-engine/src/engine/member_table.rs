//! All subscriptions, each under the key by which the engine and its caller know it. A key is used again once its
//! subscription is gone, so that the keys stay small: the caller keeps lists that are indexed by them.

use super::AudienceMember;
use crate::audience::SubscriberKey;

/// The subscriptions by key.
#[derive(Debug, Default)]
pub(crate) struct MemberTable {
    slots: Vec<Option<AudienceMember>>,
    free: Vec<SubscriberKey>,
}

impl MemberTable {
    pub(crate) fn get(&self, key: SubscriberKey) -> Option<&AudienceMember> {
        self.slots.get(key.slot())?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, key: SubscriberKey) -> Option<&mut AudienceMember> {
        self.slots.get_mut(key.slot())?.as_mut()
    }

    /// Takes a subscription in, under the key that was freed last.
    pub(crate) fn insert(&mut self, member: AudienceMember) -> SubscriberKey {
        let key = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            SubscriberKey::of_slot(self.slots.len() - 1)
        });
        if let Some(slot) = self.slots.get_mut(key.slot()) {
            *slot = Some(member);
        }
        key
    }

    pub(crate) fn remove(&mut self, key: SubscriberKey) -> Option<AudienceMember> {
        let member = self.slots.get_mut(key.slot())?.take()?;
        self.free.push(key);
        Some(member)
    }
}
