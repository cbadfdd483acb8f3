//! What additional subscribers, additional audiences and idle subscribers cost.

use super::FanoutEffort;
use super::cell::{FanoutCell, events, start};
use super::crowd::SubscriberCrowd;
use super::hub::{HubServer, PublishedContent};
use super::measure::{DeliveryRate, MeasuredServer};
use super::wire::{FanoutWire, ServerKind};
use crate::table::{BenchTarget, NamedAmount, ReportBlock, TargetBound};

/// The results, in processor seconds per event.
pub(super) struct GrowthCosts {
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

pub(super) fn measure(subscribers: usize, effort: &FanoutEffort) -> Result<GrowthCosts, String> {
    let crowds = [
        (SubscriberCrowd::One, subscribers),
        (SubscriberCrowd::One, subscribers * 2),
        (SubscriberCrowd::Eight, subscribers),
        (SubscriberCrowd::Sixteen, subscribers),
        (SubscriberCrowd::HalfIdle, subscribers * 2),
    ];
    let mut subjects = Vec::new();
    let mut sample = None;
    for (crowd, subscribers) in crowds {
        let (hub, shown) =
            HubServer::start(FanoutWire::Sse, subscribers, PublishedContent::Progress)?;
        sample = Some(shown);
        subjects.push(MeasuredServer::start(Box::new(hub), FanoutWire::Sse, crowd, subscribers)?);
    }
    let sample = sample.ok_or("the hub sent no event")?;
    for subscribers in [subscribers, subscribers * 2] {
        let raw = start(ServerKind::Raw, FanoutWire::Sse, subscribers, &sample)?;
        subjects.push(MeasuredServer::start(
            raw,
            FanoutWire::Sse,
            SubscriberCrowd::One,
            subscribers,
        )?);
    }
    let mut best = vec![DeliveryRate::WORST; subjects.len()];
    for _ in 0..effort.rounds {
        for (subject, best) in subjects.iter_mut().zip(&mut best) {
            *best = best.better(subject.rate(events(effort, 0, subject), 1)?);
        }
    }
    let costs: Vec<f64> = subjects.iter().zip(&best).map(|(it, best)| cost(it, *best)).collect();
    let losses = best.iter().map(|it| it.losses).sum();
    subjects.into_iter().try_for_each(MeasuredServer::stop)?;
    let [once, twice, eight, sixteen, with_idle, limit_once, limit_twice] = costs[..] else {
        return Err("something was not measured".to_owned());
    };
    Ok(GrowthCosts {
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

/// The cost of an event, in processor seconds.
fn cost(subject: &MeasuredServer, rate: DeliveryRate) -> f64 {
    rate.cpu_per_million / 1e6 * crate::timing::float(subject.subscribers.full() as u64)
}

impl GrowthCosts {
    pub(super) fn cell(&self) -> FanoutCell {
        FanoutCell {
            wire: FanoutWire::Sse,
            subscribers: self.subscribers,
            crowd: SubscriberCrowd::One,
        }
    }

    pub(super) fn block(&self) -> ReportBlock {
        let n = self.subscribers;
        let ms = |seconds: f64| NamedAmount::only(seconds * 1e3, "processor ms per event");
        let times = |more: f64, less: f64| NamedAmount::only(more / less, "times");
        let mut block = ReportBlock::new(format!("Growth, from {}", self.cell().name()));
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
                NamedAmount::only(
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

    pub(super) fn targets(&self) -> Vec<BenchTarget> {
        let target = |what, most, found| BenchTarget {
            what,
            wanted: TargetBound::AtMost(most),
            unit: "times",
            found: Some(found),
        };
        // Runs differ from each other by about a tenth.
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

    /// Checks that something was measured at all.
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
