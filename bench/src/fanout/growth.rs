//! What more subscribers, more audiences and idle subscribers cost.

use super::Effort;
use super::cell::{Cell, events, start};
use super::crowd::Crowd;
use super::hub::{Hub, Saying};
use super::measure::{Rate, Subject};
use super::wire::{Kind, Wire};
use crate::table::{Amount, Block, Target, Wanted};

/// What was found, as processor seconds of an event.
pub(super) struct Growth {
    subscribers: usize,
    once: f64,
    twice: f64,
    limit_once: f64,
    limit_twice: f64,
    eight: f64,
    sixteen: f64,
    with_idle: f64,
    pub(super) losses: u64,
}

pub(super) fn measure(subscribers: usize, effort: &Effort) -> Result<Growth, String> {
    let crowds = [
        (Crowd::One, subscribers),
        (Crowd::One, subscribers * 2),
        (Crowd::Eight, subscribers),
        (Crowd::Sixteen, subscribers),
        (Crowd::HalfIdle, subscribers * 2),
    ];
    let mut subjects = Vec::new();
    let mut sample = None;
    for (crowd, subscribers) in crowds {
        let (hub, shown) = Hub::start(Wire::Sse, subscribers, Saying::Progress)?;
        sample = Some(shown);
        subjects.push(Subject::start(Box::new(hub), Wire::Sse, crowd, subscribers)?);
    }
    let sample = sample.ok_or("there is no event")?;
    for subscribers in [subscribers, subscribers * 2] {
        let raw = start(Kind::Raw, Wire::Sse, subscribers, &sample)?;
        subjects.push(Subject::start(raw, Wire::Sse, Crowd::One, subscribers)?);
    }
    let mut best = vec![Rate::WORST; subjects.len()];
    for _ in 0..effort.rounds {
        for (subject, best) in subjects.iter_mut().zip(&mut best) {
            *best = best.better(subject.rate(events(effort, 0, subject), 1)?);
        }
    }
    let costs: Vec<f64> = subjects.iter().zip(&best).map(|(it, best)| cost(it, *best)).collect();
    let losses = best.iter().map(|it| it.losses).sum();
    subjects.into_iter().try_for_each(Subject::stop)?;
    let [once, twice, eight, sixteen, with_idle, limit_once, limit_twice] = costs[..] else {
        return Err("something was not measured".to_owned());
    };
    Ok(Growth {
        subscribers,
        once,
        twice,
        limit_once,
        limit_twice,
        eight,
        sixteen,
        with_idle,
        losses,
    })
}

/// What an event costs, in processor seconds.
fn cost(subject: &Subject, rate: Rate) -> f64 {
    rate.cpu_per_million / 1e6 * crate::timing::float(subject.subscribers.full() as u64)
}

impl Growth {
    pub(super) fn cell(&self) -> Cell {
        Cell { wire: Wire::Sse, subscribers: self.subscribers, crowd: Crowd::One }
    }

    pub(super) fn block(&self) -> Block {
        let n = self.subscribers;
        let ms = |seconds: f64| Amount::only(seconds * 1e3, "processor ms per event");
        let times = |more: f64, less: f64| Amount::only(more / less, "times");
        let mut block = Block::new(format!("Growth, from {}", self.cell().name()));
        block.line(format!("{n} subscribers"), vec![ms(self.once)]);
        block.line(
            format!("{} subscribers", n * 2),
            vec![ms(self.twice), times(self.twice, self.once)],
        );
        block.line(
            "the same for only writing",
            vec![ms(self.limit_twice), times(self.limit_twice, self.limit_once)],
        );
        block.line(format!("{n} subscribers of eight audiences"), vec![ms(self.eight)]);
        block.line(
            format!("{n} subscribers of sixteen audiences"),
            vec![
                ms(self.sixteen),
                times(self.sixteen, self.eight),
                Amount::only(
                    (self.sixteen - self.eight) / 8.0 * 1e6,
                    "processor microseconds more for each further audience",
                ),
            ],
        );
        block.line(
            format!("{n} subscribers, and {n} idle ones beside them"),
            vec![ms(self.with_idle), times(self.with_idle, self.once)],
        );
        block
    }

    pub(super) fn targets(&self) -> Vec<Target> {
        let target = |what, most, found| Target {
            what,
            wanted: Wanted::AtMost(most),
            unit: "times",
            found: Some(found),
        };
        // A tenth is what one run differs from the next by.
        vec![
            target("Cost of an event with twice the subscribers", 2.0, self.twice / self.once),
            target("Cost of an event with twice the audiences", 1.1, self.sixteen / self.eight),
            target(
                "Cost of an event with as many idle subscribers",
                1.1,
                self.with_idle / self.once,
            ),
        ]
    }

    /// Whether it was measured at all.
    pub(super) fn check_sanity(&self) -> Result<(), String> {
        let costs = [
            self.once,
            self.twice,
            self.limit_once,
            self.limit_twice,
            self.eight,
            self.sixteen,
            self.with_idle,
        ];
        if costs.iter().all(|cost| cost.is_finite() && *cost > 0.0) {
            return Ok(());
        }
        Err(format!("the growth was not measured: {costs:?}"))
    }
}
