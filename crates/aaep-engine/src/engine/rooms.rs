//! How much of the room for the logs of audiences each may take: every principal that listens has the same share,
//! divided among the audiences that it is in. One principal with many different terms takes nobody else's.

use std::collections::BTreeMap;

use super::Engine;
use crate::audience::Audience;
use crate::io::Principal;
use crate::terms::AudienceKey;

/// The share of one principal, in parts that can be divided.
const SHARE: u64 = 1 << 20;

/// Who listens, and in which audiences.
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    listening: BTreeMap<Principal, BTreeMap<AudienceKey, usize>>,
}

impl Rooms {
    /// How many bytes an audience of this weight may take of so many.
    pub(super) fn room(&self, weight: u64, bytes: usize) -> usize {
        let all = u128::from(SHARE) * self.listening.len().max(1) as u128;
        let room = bytes as u128 * u128::from(weight) / all;
        usize::try_from(room).unwrap_or(bytes).min(bytes)
    }

    fn change(
        &mut self,
        audiences: &mut BTreeMap<AudienceKey, Audience>,
        principal: Principal,
        change: impl FnOnce(&mut BTreeMap<AudienceKey, usize>),
    ) {
        let own = self.listening.entry(principal).or_default();
        let before: Vec<AudienceKey> = own.keys().cloned().collect();
        change(own);
        let after: Vec<AudienceKey> = own.keys().cloned().collect();
        if after.is_empty() {
            self.listening.remove(&principal);
        }
        if before.len() == after.len() {
            return;
        }
        for (keys, is_before) in [(&before, true), (&after, false)] {
            for key in keys {
                let Some(audience) = audiences.get_mut(key) else { continue };
                let share = SHARE / keys.len() as u64;
                audience.weight = if is_before {
                    audience.weight.saturating_sub(share)
                } else {
                    audience.weight + share
                };
            }
        }
    }
}

impl Engine {
    /// A subscriber of a principal is there, in this audience.
    pub(super) fn enter_room(&mut self, principal: Principal, key: &AudienceKey) {
        let log_bytes = self.log_bytes();
        let Engine { rooms, audiences, .. } = self;
        rooms.change(audiences, principal, |own| *own.entry(key.clone()).or_default() += 1);
        if let Some(audience) = audiences.get_mut(key) {
            audience.subscribers.present += 1;
            audience.room_bytes = rooms.room(audience.weight, log_bytes);
        }
    }

    /// The logs are within their rooms, also when these have become smaller.
    pub(super) fn fit_rooms(&mut self) {
        let log_bytes = self.log_bytes();
        let Engine { rooms, audiences, .. } = self;
        if audiences.values().map(Audience::bytes).sum::<usize>() > log_bytes {
            for audience in audiences.values_mut() {
                audience.room_bytes = rooms.room(audience.weight, log_bytes);
                audience.trim(0);
            }
        }
    }

    /// A subscriber of a principal is there no more. An audience without anyone costs nothing from now on.
    pub(super) fn leave_room(&mut self, principal: Principal, key: &AudienceKey) {
        let Engine { rooms, audiences, next_order, .. } = self;
        rooms.change(audiences, principal, |own| {
            if let Some(count) = own.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    own.remove(key);
                }
            }
        });
        if let Some(audience) = audiences.get_mut(key) {
            audience.subscribers.present = audience.subscribers.present.saturating_sub(1);
            if audience.subscribers.present == 0 {
                audience.sleep(*next_order);
            }
        }
    }
}
