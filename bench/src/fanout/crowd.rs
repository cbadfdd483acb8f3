//! Crowds of subscribers: what each subscriber requests, and what it is expected to receive.

use clap::ValueEnum;
use serde_json::{Value, json};

/// The most events per second for subscribers that want few.
pub(super) const FEW: u64 = 3;

/// A crowd of subscribers.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SubscriberCrowd {
    /// All have the same terms and hear everything.
    One,
    /// Eight different terms, under each of which every event is heard.
    Eight,
    /// Sixteen of them.
    Sixteen,
    /// Half of them want three events a second, in whole sentences; a tenth does not read.
    Mixed,
    /// Every other one has terms under which nothing is heard.
    HalfIdle,
    /// All have the terms that most subscribers have, under which what is critical need not wait.
    Attentive,
    /// The same, and a tenth does not read.
    TenthStalled,
}

/// What a subscriber is expected to receive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CrowdRole {
    /// Every event, at once.
    Full,
    /// At most [`FEW`] events per second.
    Few,
    /// It does not read.
    Stalled,
    /// No events.
    Idle,
}

impl SubscriberCrowd {
    pub(super) fn name(self) -> &'static str {
        match self {
            SubscriberCrowd::One => "one audience",
            SubscriberCrowd::Eight => "eight audiences",
            SubscriberCrowd::Sixteen => "sixteen audiences",
            SubscriberCrowd::Mixed => "a mixed crowd",
            SubscriberCrowd::HalfIdle => "half of them idle",
            SubscriberCrowd::Attentive => "nobody stalled",
            SubscriberCrowd::TenthStalled => "a tenth stalled",
        }
    }

    /// Its name on the command line.
    pub(super) fn word(self) -> &'static str {
        match self {
            SubscriberCrowd::One => "one",
            SubscriberCrowd::Eight => "eight",
            SubscriberCrowd::Sixteen => "sixteen",
            SubscriberCrowd::Mixed => "mixed",
            SubscriberCrowd::HalfIdle => "half-idle",
            SubscriberCrowd::Attentive => "attentive",
            SubscriberCrowd::TenthStalled => "tenth-stalled",
        }
    }

    pub(super) fn role(self, subscriber: usize) -> CrowdRole {
        match (self, subscriber % 10) {
            (SubscriberCrowd::Mixed | SubscriberCrowd::TenthStalled, 0) => CrowdRole::Stalled,
            (SubscriberCrowd::Mixed, 1..=5) => CrowdRole::Few,
            (SubscriberCrowd::HalfIdle, at) if at % 2 == 1 => CrowdRole::Idle,
            _ => CrowdRole::Full,
        }
    }

    /// How many of this many subscribers receive everything.
    pub(super) fn full(self, subscribers: usize) -> usize {
        (0..subscribers).filter(|subscriber| self.role(*subscriber) == CrowdRole::Full).count()
    }

    pub(super) fn capabilities(self, subscriber: usize) -> Value {
        match (self, self.role(subscriber)) {
            (_, CrowdRole::Few) => {
                json!({ "coalesce_boundaries": ["sentence"], "max_events_per_second": FEW })
            }
            (_, CrowdRole::Idle) => json!({
                "coalesce_boundaries": ["none"],
                "event_filters": { "include": ["aaep:agent.handoff.requested"] },
            }),
            (SubscriberCrowd::Eight, _) => audience(subscriber % 8),
            (SubscriberCrowd::Sixteen, _) => audience(subscriber % 16),
            (SubscriberCrowd::Attentive | SubscriberCrowd::TenthStalled, _) => {
                json!({ "coalesce_boundaries": ["none"] })
            }
            _ => json!({
                "coalesce_boundaries": ["none"], "event_filters": { "include": ["*"] },
            }),
        }
    }
}

/// The capabilities that lead to one of many audiences, all of which receive every event measured here.
fn audience(number: usize) -> Value {
    let verbosity = ["terse", "normal", "detailed", "normal"][number % 4];
    json!({
        "preferred_verbosity": verbosity, "coalesce_boundaries": ["none"],
        "event_filters": { "include": ["aaep:agent.*"], "exclude": [format!("bench:never.n{number}")] },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mixed_crowd_is_half_few_a_tenth_stalled_and_the_rest_full() {
        let count = |role| (0..100).filter(|at| SubscriberCrowd::Mixed.role(*at) == role).count();
        assert_eq!([CrowdRole::Few, CrowdRole::Stalled, CrowdRole::Full].map(count), [50, 10, 40]);
        assert_eq!(SubscriberCrowd::Mixed.full(100), 40);
        assert_eq!(SubscriberCrowd::HalfIdle.full(100), 50);
    }

    #[test]
    fn the_terms_of_eight_audiences_differ() {
        for one in 0..8 {
            for other in 0..one {
                let [one, other] = [one, other].map(|at| SubscriberCrowd::Eight.capabilities(at));
                assert_ne!(one, other);
            }
        }
    }
}
