//! Measures one server with its subscribers: its throughput, its cost and its latency.

use std::thread;
use std::time::{Duration, Instant};

use super::crowd::SubscriberCrowd;
use super::listen::most_allowed;
use super::now_ns;
use super::server::FanoutServer;
use super::subscribers::{DeliveryLatencies, SubscriberProcess};
use super::wire::{FanoutWire, ServerKind};
use crate::timing::float;

/// The deliveries per second while latency is measured.
const MODEST_RATE: u64 = 20_000;

/// How long to wait for memory to settle, and how often to look.
const SETTLING: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(300);

/// A server with its subscribers.
pub(super) struct MeasuredServer {
    pub(super) server: Box<dyn FanoutServer>,
    pub(super) subscribers: SubscriberProcess,
    crowd: SubscriberCrowd,
    /// The server's memory for one idle subscriber, in bytes.
    pub(super) memory: f64,
}

/// The results of sending as fast as possible.
#[derive(Clone, Copy)]
pub(super) struct DeliveryRate {
    pub(super) deliveries_per_second: f64,
    /// The processor seconds of the server for a million deliveries.
    pub(super) cpu_per_million: f64,
    pub(super) losses: u64,
}

impl DeliveryRate {
    pub(super) const WORST: Self =
        DeliveryRate { deliveries_per_second: 0.0, cpu_per_million: f64::INFINITY, losses: 0 };

    pub(super) fn better(self, other: Self) -> Self {
        DeliveryRate {
            deliveries_per_second: self.deliveries_per_second.max(other.deliveries_per_second),
            cpu_per_million: self.cpu_per_million.min(other.cpu_per_million),
            losses: self.losses + other.losses,
        }
    }
}

impl DeliveryLatencies {
    pub(super) const WORST: Self =
        DeliveryLatencies { count: 0, p50: f64::INFINITY, p99: f64::INFINITY, p999: f64::INFINITY };

    pub(super) fn better(self, other: Self) -> Self {
        DeliveryLatencies {
            count: self.count + other.count,
            p50: self.p50.min(other.p50),
            p99: self.p99.min(other.p99),
            p999: self.p999.min(other.p999),
        }
    }
}

impl MeasuredServer {
    /// Connects this many subscribers.
    pub(super) fn start(
        mut server: Box<dyn FanoutServer>,
        wire: FanoutWire,
        crowd: SubscriberCrowd,
        subscribers: usize,
    ) -> Result<Self, String> {
        let name = server.kind().name();
        let failed = |why: String| format!("{name} with {subscribers} subscribers: {why}");
        let before = server.usage()?.bytes;
        let crowded =
            SubscriberProcess::start(&*server, wire, crowd, subscribers).map_err(failed)?;
        server.complete().map_err(failed)?;
        let memory = (settled(&*server)? - before).max(0.0) / float(subscribers as u64);
        Ok(MeasuredServer { server, subscribers: crowded, crowd, memory })
    }

    pub(super) fn kind(&self) -> ServerKind {
        self.server.kind()
    }

    /// Begins a round, with all subscribers connected.
    pub(super) fn begin(&mut self) -> Result<(), String> {
        let name = self.kind().name();
        self.server.begin().map_err(|why| format!("{name} began no round: {why}"))?;
        self.subscribers.forget()?;
        self.tell(1)?;
        if !self.subscribers.wait(1)? {
            return Err(format!("{} does not reach everyone", self.kind().name()));
        }
        self.subscribers.forget()
    }

    fn tell(&mut self, events: usize) -> Result<(), String> {
        let name = self.kind().name();
        self.server.tell(events).map_err(|why| format!("{name} was told something: {why}"))
    }

    /// Sends these events in bursts, each when all subscribers have the previous one.
    pub(super) fn rate(&mut self, events: usize, burst: usize) -> Result<DeliveryRate, String> {
        self.begin()?;
        let before = self.server.usage()?;
        let began = Instant::now();
        let mut told = 0;
        while told < events {
            let now = burst.min(events - told);
            self.tell(now)?;
            told += now;
            if !self.subscribers.wait(told)? {
                break;
            }
        }
        let took = began.elapsed();
        let cpu = self.server.usage()?.cpu.saturating_sub(before.cpu);
        let deliveries = float((told * self.subscribers.full()) as u64 + self.subscribers.few()?);
        Ok(DeliveryRate {
            deliveries_per_second: deliveries / took.as_secs_f64(),
            cpu_per_million: cpu.as_secs_f64() / deliveries * 1e6,
            losses: self.losses(told, took)?,
        })
    }

    /// The number of missing deliveries, and of those beyond the rate of subscribers that want few.
    fn losses(&mut self, told: usize, took: Duration) -> Result<u64, String> {
        let losses = self.subscribers.losses(told, 0)?;
        if self.crowd != SubscriberCrowd::Mixed {
            return Ok(losses);
        }
        let most = self.subscribers.most()?;
        if most == 0 && took > Duration::from_secs(2) {
            return Err("those who want few events got none at all".to_owned());
        }
        Ok(losses + most.saturating_sub(most_allowed(took)))
    }

    /// Measures latency at a modest rate, with each event published on schedule. Also returns how
    /// many deliveries did not arrive.
    pub(super) fn latencies(
        &mut self,
        for_about: Duration,
    ) -> Result<(DeliveryLatencies, u64), String> {
        self.begin()?;
        self.subscribers.time()?;
        let every =
            Duration::from_secs_f64(float(self.subscribers.full() as u64) / float(MODEST_RATE));
        let began = Instant::now();
        let mut published = Vec::new();
        while began.elapsed() < for_about || published.len() < 2 {
            let due = every * u32::try_from(published.len()).unwrap_or(u32::MAX);
            thread::sleep(due.saturating_sub(began.elapsed()));
            published.push(now_ns());
            self.tell(1)?;
        }
        self.subscribers.wait(published.len())?;
        let losses = self.losses(published.len(), began.elapsed())?;
        Ok((self.subscribers.latencies(&published, false)?, losses))
    }

    /// Stops in an orderly way.
    pub(super) fn stop(self) -> Result<(), String> {
        drop(self.subscribers);
        self.server.stop()
    }
}

/// The memory of a server once it no longer changes, or after the longest wait.
fn settled(server: &dyn FanoutServer) -> Result<f64, String> {
    let began = Instant::now();
    let mut last = f64::NAN;
    loop {
        thread::sleep(LOOK);
        let now = server.usage()?.bytes;
        if (now - last).abs() < 4096.0 || began.elapsed() > SETTLING {
            return Ok(now);
        }
        last = now;
    }
}
