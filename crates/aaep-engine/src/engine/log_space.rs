//! How much of the memory for logs each audience may take. Every principal with a connected
//! subscriber has the same share, divided among its audiences, so a principal with many different
//! terms takes nothing from others.

use std::collections::BTreeMap;

use super::Engine;
use crate::audience::Audience;
use crate::io::PrincipalNumber;
use crate::terms::AudienceKey;

/// The share of one principal, in units fine enough to be divided.
const SHARE: u64 = 1 << 20;

/// How many connected subscribers each principal has in each audience.
#[derive(Debug, Default)]
pub(crate) struct LogSpace {
    listening: BTreeMap<PrincipalNumber, BTreeMap<AudienceKey, usize>>,
}

impl LogSpace {
    /// How many of these bytes an audience of this weight may take.
    pub(super) fn bytes_for(&self, weight: u64, bytes: usize) -> usize {
        let all = u128::from(SHARE) * self.listening.len().max(1) as u128;
        let room = bytes as u128 * u128::from(weight) / all;
        usize::try_from(room).unwrap_or(bytes).min(bytes)
    }

    fn change(
        &mut self,
        audiences: &mut BTreeMap<AudienceKey, Audience>,
        principal: PrincipalNumber,
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
    /// Counts a subscriber that connected to this audience.
    pub(super) fn claim_log_space(&mut self, principal: PrincipalNumber, key: &AudienceKey) {
        let log_bytes = self.log_bytes();
        let Engine { log_space, audiences, .. } = self;
        log_space.change(audiences, principal, |own| *own.entry(key.clone()).or_default() += 1);
        if let Some(audience) = audiences.get_mut(key) {
            audience.present += 1;
            audience.room_bytes = log_space.bytes_for(audience.weight, log_bytes);
        }
    }

    /// Trims the logs to their space, which may have shrunk.
    pub(super) fn trim_logs(&mut self) {
        let log_bytes = self.log_bytes();
        let Engine { log_space, audiences, .. } = self;
        for audience in audiences.values_mut() {
            audience.room_bytes = log_space.bytes_for(audience.weight, log_bytes);
            audience.trim(0);
        }
    }

    /// Counts a subscriber that disconnected from this audience. Without connected subscribers, an audience
    /// costs nothing.
    pub(super) fn release_log_space(&mut self, principal: PrincipalNumber, key: &AudienceKey) {
        let Engine { log_space, audiences, next_order, .. } = self;
        log_space.change(audiences, principal, |own| {
            if let Some(count) = own.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    own.remove(key);
                }
            }
        });
        if let Some(audience) = audiences.get_mut(key) {
            audience.present = audience.present.saturating_sub(1);
            if audience.present == 0 {
                audience.sleep(*next_order);
            }
        }
    }
}
