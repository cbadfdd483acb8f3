//! What subscribers say about the time of a question: presented, more, a pause, and on. Some forge.

use aaep::{ReplyToken, SubscriptionId};
use aaep_engine::Input;
use serde_json::{Value, json};

use super::{Subscriber, Temper};
use crate::rng::Rng;

/// What is asked of our extension.
pub(super) fn asking(rng: &mut Rng) -> Value {
    rng.pick(&[
        patient(),
        json!({ "ask_clock": "presented" }),
        json!({ "extend": true }),
        json!({ "ask_clock": "asked", "extend": false }),
        json!({ "ask_clock": "tomorrow", "extend": true, "new": [1] }),
    ])
    .clone()
}

/// All that can be asked of it.
pub(super) fn patient() -> Value {
    json!({ "ask_clock": "presented", "extend": true })
}

impl Subscriber {
    /// What it says about the time of a question, each with how long it takes. It does not ask
    /// itself whether it may.
    pub(super) fn wishes_for_time(
        &self,
        (token, id): (&ReplyToken, &SubscriptionId),
        others: &[SubscriptionId],
        rng: &mut Rng,
    ) -> Vec<(u64, Input)> {
        let is_forging = self.temper == Temper::Forging && !others.is_empty();
        let id = if is_forging { rng.pick(others) } else { id };
        let (principal, subscription_id, reply_token) = (self.principal, id.clone(), token.clone());
        let mut wishes = Vec::new();
        if rng.chance(50) {
            let (subscription_id, reply_token) = (subscription_id.clone(), reply_token.clone());
            let said = Input::Presented { principal, subscription_id, reply_token };
            wishes.push((rng.between(5_000, 3_000_000), said));
        }
        for _ in 0..rng.below(3) {
            let (subscription_id, reply_token) = (subscription_id.clone(), reply_token.clone());
            let by_seconds = *rng.pick(&[0, 1, 5, 40, u64::MAX]);
            let said = Input::Extend { principal, subscription_id, reply_token, by_seconds };
            wishes.push((rng.between(5_000, 9_000_000), said));
        }
        if rng.chance(30) {
            let (id, token) = (subscription_id.clone(), reply_token.clone());
            let said = Input::Pause { principal, subscription_id: id, reply_token: token };
            let after_us = rng.between(5_000, 5_000_000);
            wishes.push((after_us, said));
            if rng.chance(60) {
                let said = Input::Resume { principal, subscription_id, reply_token };
                wishes.push((after_us + rng.between(0, 9_000_000), said));
            }
        }
        wishes
    }
}
