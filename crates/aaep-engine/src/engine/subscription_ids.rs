//! The ids of subscriptions: the current one of each subscriber, and the one that it may have had before.

use std::collections::{BTreeMap, HashMap};

use aaep::SubscriptionId;

use crate::keys::SubscriberKey;

/// Which subscriber has which id.
#[derive(Debug, Default)]
pub(super) struct SubscriptionIds {
    current: BTreeMap<SubscriptionId, SubscriberKey>,
    /// Former ids that a subscriber may still use, because the message with its new id was lost.
    former: HashMap<SubscriptionId, SubscriberKey>,
    /// The same by subscriber. Most have none.
    former_of: HashMap<SubscriberKey, SubscriptionId>,
}

impl SubscriptionIds {
    pub(super) fn get(&self, id: &SubscriptionId) -> Option<SubscriberKey> {
        self.current.get(id).copied()
    }

    /// The subscriber that had this id before.
    pub(super) fn get_former(&self, id: &SubscriptionId) -> Option<SubscriberKey> {
        self.former.get(id).copied()
    }

    pub(super) fn former_id_of(&self, subscriber: SubscriberKey) -> Option<&SubscriptionId> {
        self.former_of.get(&subscriber)
    }

    /// How many subscriptions there are.
    pub(super) fn len(&self) -> usize {
        self.current.len()
    }

    /// All subscribers, by id.
    pub(super) fn subscribers(&self) -> impl Iterator<Item = SubscriberKey> {
        self.current.values().copied()
    }

    pub(super) fn insert(&mut self, id: SubscriptionId, subscriber: SubscriberKey) {
        self.current.insert(id, subscriber);
    }

    /// Gives a subscriber another id. The old one means nothing any more, unless it is kept as the former one.
    pub(super) fn rename(&mut self, old: &SubscriptionId, new: SubscriptionId) {
        if let Some(subscriber) = self.current.remove(old) {
            self.current.insert(new, subscriber);
        }
    }

    /// Lets a subscriber use a former id. An earlier one is forgotten.
    pub(super) fn keep_former(&mut self, subscriber: SubscriberKey, id: &SubscriptionId) {
        if let Some(before) = self.former_of.insert(subscriber, id.clone()) {
            self.former.remove(&before);
        }
        self.former.insert(id.clone(), subscriber);
    }

    /// Removes a subscriber with all its ids.
    pub(super) fn remove(&mut self, id: &SubscriptionId, subscriber: SubscriberKey) {
        self.current.remove(id);
        if let Some(former) = self.former_of.remove(&subscriber) {
            self.former.remove(&former);
        }
    }
}
