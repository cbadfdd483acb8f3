//! What subscribers say about the time of an ask: presented, more time, pause, resume. Some forge these messages.

use aaep::{ReplyToken, SubscriptionId};
use aaep_engine::EngineInput;
use serde_json::{Value, json};

use super::{SimulatedSubscriber, SubscriberTemper};
use crate::rng::SeededRng;

/// Random capabilities of our extension.
pub(super) fn asking(rng: &mut SeededRng) -> Value {
    rng.pick(&[
        patient(),
        json!({ "ask_clock": "presented" }),
        json!({ "extend": true }),
        json!({ "ask_clock": "asked", "extend": false }),
        json!({ "ask_clock": "tomorrow", "extend": true, "new": [1] }),
    ])
    .clone()
}

/// The capabilities of our extension for the most time.
pub(super) fn patient() -> Value {
    json!({ "ask_clock": "presented", "extend": true })
}

impl SimulatedSubscriber {
    /// Its messages about the time of an ask, each with its delay in microseconds. It does not
    /// check whether it may send them.
    pub(super) fn time_messages(
        &self,
        (token, id): (&ReplyToken, &SubscriptionId),
        others: &[SubscriptionId],
        rng: &mut SeededRng,
    ) -> Vec<(u64, EngineInput)> {
        let is_forging = self.temper == SubscriberTemper::Forging && !others.is_empty();
        let id = if is_forging { rng.pick(others) } else { id };
        let (principal, subscription_id, reply_token) = (self.principal, id.clone(), token.clone());
        let mut messages = Vec::new();
        if rng.chance(50) {
            let (subscription_id, reply_token) = (subscription_id.clone(), reply_token.clone());
            let said = EngineInput::Presented { principal, subscription_id, reply_token };
            messages.push((rng.between(5_000, 3_000_000), said));
        }
        for _ in 0..rng.below(3) {
            let (subscription_id, reply_token) = (subscription_id.clone(), reply_token.clone());
            let by_seconds = *rng.pick(&[0, 1, 5, 40, u64::MAX]);
            let said = EngineInput::Extend { principal, subscription_id, reply_token, by_seconds };
            messages.push((rng.between(5_000, 9_000_000), said));
        }
        if rng.chance(30) {
            let (id, token) = (subscription_id.clone(), reply_token.clone());
            let said = EngineInput::Pause { principal, subscription_id: id, reply_token: token };
            let after_us = rng.between(5_000, 5_000_000);
            messages.push((after_us, said));
            if rng.chance(60) {
                let said = EngineInput::Resume { principal, subscription_id, reply_token };
                messages.push((after_us + rng.between(0, 9_000_000), said));
            }
        }
        messages
    }
}
