//! Who listens: what each subscriber asks for, and what is expected of it.

use clap::ValueEnum;
use serde_json::{Value, json};

/// The most events in a second of those who want few.
pub(super) const FEW: u64 = 3;

/// A crowd of subscribers.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Crowd {
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

/// What is expected of a subscriber.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It hears everything, at once.
    Full,
    /// It hears at most [`FEW`] events in a second.
    Few,
    /// It reads nothing.
    Stalled,
    /// It hears nothing.
    Idle,
}

impl Crowd {
    pub(super) fn name(self) -> &'static str {
        match self {
            Crowd::One => "one audience",
            Crowd::Eight => "eight audiences",
            Crowd::Sixteen => "sixteen audiences",
            Crowd::Mixed => "a mixed crowd",
            Crowd::HalfIdle => "half of them idle",
            Crowd::Attentive => "nobody stalled",
            Crowd::TenthStalled => "a tenth stalled",
        }
    }

    /// As it stands on the command line.
    pub(super) fn word(self) -> &'static str {
        match self {
            Crowd::One => "one",
            Crowd::Eight => "eight",
            Crowd::Sixteen => "sixteen",
            Crowd::Mixed => "mixed",
            Crowd::HalfIdle => "half-idle",
            Crowd::Attentive => "attentive",
            Crowd::TenthStalled => "tenth-stalled",
        }
    }

    pub(super) fn role(self, subscriber: usize) -> Role {
        match (self, subscriber % 10) {
            (Crowd::Mixed | Crowd::TenthStalled, 0) => Role::Stalled,
            (Crowd::Mixed, 1..=5) => Role::Few,
            (Crowd::HalfIdle, at) if at % 2 == 1 => Role::Idle,
            _ => Role::Full,
        }
    }

    /// How many of so many hear everything.
    pub(super) fn full(self, subscribers: usize) -> usize {
        (0..subscribers).filter(|subscriber| self.role(*subscriber) == Role::Full).count()
    }

    pub(super) fn capabilities(self, subscriber: usize) -> Value {
        match (self, self.role(subscriber)) {
            (_, Role::Few) => {
                json!({ "coalesce_boundaries": ["sentence"], "max_events_per_second": FEW })
            }
            (_, Role::Idle) => json!({
                "coalesce_boundaries": ["none"],
                "event_filters": { "include": ["aaep:agent.handoff.requested"] },
            }),
            (Crowd::Eight, _) => audience(subscriber % 8),
            (Crowd::Sixteen, _) => audience(subscriber % 16),
            (Crowd::Attentive | Crowd::TenthStalled, _) => {
                json!({ "coalesce_boundaries": ["none"] })
            }
            _ => json!({
                "coalesce_boundaries": ["none"], "event_filters": { "include": ["*"] },
            }),
        }
    }
}

/// Terms of one of many audiences, all of which hear everything that is measured here.
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
        let count = |role| (0..100).filter(|at| Crowd::Mixed.role(*at) == role).count();
        assert_eq!([Role::Few, Role::Stalled, Role::Full].map(count), [50, 10, 40]);
        assert_eq!(Crowd::Mixed.full(100), 40);
        assert_eq!(Crowd::HalfIdle.full(100), 50);
    }

    #[test]
    fn the_terms_of_eight_audiences_differ() {
        for one in 0..8 {
            for other in 0..one {
                let [one, other] = [one, other].map(|at| Crowd::Eight.capabilities(at));
                assert_ne!(one, other);
            }
        }
    }
}
