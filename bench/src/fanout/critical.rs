//! How late critical events are while all subscribers receive ordinary ones, with no subscriber
//! stalled and with a tenth of them stalled; and whether a critical event ever waits behind
//! ordinary events that are still in the hub.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::crowd::{CrowdRole, SubscriberCrowd};
use super::hub::{HubServer, PublishedContent};
use super::measure::MeasuredServer;
use super::subscribers::DeliveryLatencies;
use super::wire::{FanoutWire, MeasuredAddress};
use super::{BURST, FanoutEffort, FanoutSample, now_ns};
use crate::table::{BenchTarget, NamedAmount, ReportBlock, TargetBound};
use crate::timing::float;

/// The time between two ordinary events.
const EVERY: Duration = Duration::from_millis(250);

/// The number of ordinary events for each critical one.
const ORDINARY_PER_CRITICAL: usize = 2;

/// The delays after which a critical event follows an ordinary one, in milliseconds and in turns:
/// some fall while the ordinary event is being delivered, some when all is calm.
const AFTER_MS: [u64; 5] = [0, 40, 80, 120, 160];

/// The number of events sent first, so that stalled subscribers have more pending events than the kernel holds.
const FILLING: usize = 128;

/// The number of those that are sent together.
const TOGETHER: usize = 32;

/// The number of subscribers in the check of which events a critical one overtakes.
const FEW_SUBSCRIBERS: usize = 100;

/// The hub disconnects subscribers that take nothing for a minute, so the rounds must end before that.
const MAX_ROUNDS: u64 = 3;

/// The longest that stalled subscribers may take to catch up.
const PATIENCE: Duration = Duration::from_secs(20);

/// The results.
pub(super) struct CriticalLateness {
    subscribers: usize,
    calm: DeliveryLatencies,
    stalled: DeliveryLatencies,
    overtaking: CriticalOvertaking,
    pub(super) losses: u64,
}

/// Which events a critical one overtook on its way to subscribers that had not read for a while.
struct CriticalOvertaking {
    /// The number of stalled subscribers, and how many of them received the critical event when they read again.
    stalled: usize,
    heard: usize,
    /// The most ordinary events that one of them received before the critical one.
    before: u64,
    /// The most ordinary events that the kernel can have held for one of them.
    in_kernel: u64,
    /// The fewest ordinary events that waited in the hub for one of them and arrived after the critical one.
    behind: u64,
}

pub(super) fn measure(
    subscribers: usize,
    effort: &FanoutEffort,
) -> Result<CriticalLateness, String> {
    let (mut calm, _) = start(SubscriberCrowd::Attentive, subscribers)?;
    let (mut stalled, _) = start(SubscriberCrowd::TenthStalled, subscribers)?;
    for subject in [&mut calm, &mut stalled] {
        fill(subject, TOGETHER)?;
    }
    let mut best = [DeliveryLatencies::WORST; 2];
    let mut losses = 0;
    for _ in 0..effort.rounds.min(MAX_ROUNDS) {
        for (subject, best) in [&mut calm, &mut stalled].into_iter().zip(&mut best) {
            let (found, lost) = round(subject, effort.lateness * 2)?;
            *best = best.better(found);
            losses += lost;
        }
    }
    calm.stop()?;
    stalled.stop()?;
    let [calm, stalled] = best;
    Ok(CriticalLateness { subscribers, calm, stalled, overtaking: overtaking()?, losses })
}

/// Starts a hub that sends text to this many subscribers. Also returns a sample event.
fn start(
    crowd: SubscriberCrowd,
    subscribers: usize,
) -> Result<(MeasuredServer, FanoutSample), String> {
    let (hub, sample) =
        HubServer::start(FanoutWire::Sse, subscribers, PublishedContent::Sentences)?;
    Ok((MeasuredServer::start(Box::new(hub), FanoutWire::Sse, crowd, subscribers)?, sample))
}

/// Lets a tenth of a few subscribers fall behind by more than the kernel holds, publishes a
/// critical event, lets them read again, and looks at the order in which the events arrive.
fn overtaking() -> Result<CriticalOvertaking, String> {
    let (mut subject, sample) = start(SubscriberCrowd::TenthStalled, FEW_SUBSCRIBERS)?;
    fill(&mut subject, BURST)?;
    let in_kernel = bytes_in_kernel(&subject)?.div_ceil(sample.frame.len() as u64) + 1;
    subject.server.tell_critical()?;
    thread::sleep(EVERY);
    subject.subscribers.resume()?;
    let heard = catch_up(&mut subject)?;
    subject.stop()?;
    let is_stalled = |at: &usize| SubscriberCrowd::TenthStalled.role(*at) == CrowdRole::Stalled;
    Ok(CriticalOvertaking {
        stalled: (0..FEW_SUBSCRIBERS).filter(is_stalled).count(),
        heard: heard.len(),
        before: heard.iter().map(|(before, _)| *before).max().unwrap_or(0),
        in_kernel,
        behind: heard.iter().map(|(before, all)| all - before).min().unwrap_or(0),
    })
}

/// Sends enough events for subscribers that do not read to fall behind.
fn fill(subject: &mut MeasuredServer, together: usize) -> Result<(), String> {
    subject.begin()?;
    for told in (together..=FILLING).step_by(together) {
        subject.server.tell(together)?;
        if !subject.subscribers.wait(told)? {
            return Err("the hub does not reach everyone who reads".to_owned());
        }
    }
    Ok(())
}

/// Publishes ordinary events on schedule, with critical ones among them. Returns how late the
/// critical ones were, and how many deliveries were lost.
fn round(
    subject: &mut MeasuredServer,
    for_about: Duration,
) -> Result<(DeliveryLatencies, u64), String> {
    subject.begin()?;
    subject.subscribers.time()?;
    let began = Instant::now();
    let mut critical = Vec::new();
    let mut ordinary = 0;
    while began.elapsed() < for_about {
        let due = EVERY * u32::try_from(ordinary).unwrap_or(u32::MAX);
        thread::sleep(due.saturating_sub(began.elapsed()));
        subject.server.tell(1)?;
        ordinary += 1;
        if ordinary % ORDINARY_PER_CRITICAL == 0 {
            thread::sleep(Duration::from_millis(AFTER_MS[critical.len() % AFTER_MS.len()]));
            critical.push(now_ns());
            subject.server.tell_critical()?;
        }
    }
    subject.subscribers.wait(ordinary)?;
    // The last critical event may follow shortly after the last ordinary one.
    thread::sleep(EVERY);
    let losses = subject.subscribers.losses(ordinary, critical.len())?;
    Ok((subject.subscribers.latencies(&critical, true)?, losses))
}

/// Waits until the stalled subscribers receive nothing more, and returns what they received.
fn catch_up(subject: &mut MeasuredServer) -> Result<Vec<(u64, u64)>, String> {
    let began = Instant::now();
    let mut last = Vec::new();
    loop {
        thread::sleep(Duration::from_secs(1));
        let now = subject.subscribers.overtaken()?;
        if (now == last && !now.is_empty()) || began.elapsed() > PATIENCE {
            return Ok(now);
        }
        last = now;
    }
}

/// The most bytes that the kernel holds for one subscriber of a server, at both ends together.
fn bytes_in_kernel(subject: &MeasuredServer) -> Result<u64, String> {
    let MeasuredAddress::Tcp(address) = subject.server.address() else {
        return Err("there are no queues to look at".to_owned());
    };
    let table = fs::read_to_string("/proc/net/tcp").map_err(|error| error.to_string())?;
    Ok(most_queued(&table, address.port()))
}

/// The most bytes queued for one connection to this port, from the kernel's table.
fn most_queued(table: &str, server: u16) -> u64 {
    let mut most: BTreeMap<u16, u64> = BTreeMap::new();
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, remote, _, queues, ..] = fields[..] else { continue };
        let port = |end: &str| u16::from_str_radix(end.split_once(':')?.1, 16).ok();
        let (Some(local), Some(remote)) = (port(local), port(remote)) else { continue };
        let Some((sending, receiving)) = queues.split_once(':') else { continue };
        let (client, bytes) = match (local == server, remote == server) {
            (true, false) => (remote, sending),
            (false, true) => (local, receiving),
            _ => continue,
        };
        *most.entry(client).or_default() += u64::from_str_radix(bytes, 16).unwrap_or(0);
    }
    most.into_values().max().unwrap_or(0)
}

impl CriticalLateness {
    fn ratio(&self) -> f64 {
        self.stalled.p99 / self.calm.p99
    }

    pub(super) fn block(&self) -> ReportBlock {
        let mut block = ReportBlock::new(format!(
            "Critical events while {} subscribers on SSE get 4 ordinary ones a second each",
            self.subscribers
        ));
        for (name, found) in [("nobody stalled", self.calm), ("a tenth stalled", self.stalled)] {
            let amounts = vec![
                NamedAmount::new("p50", found.p50, "ms"),
                NamedAmount::new("p99", found.p99, "ms"),
                NamedAmount::new("p99.9", found.p999, "ms"),
                NamedAmount::only(float(found.count), "deliveries timed"),
            ];
            block.line(name, amounts);
        }
        block.line(
            "a tenth stalled by nobody stalled",
            vec![NamedAmount::new("p99", self.ratio(), "times")],
        );
        self.overtaking.tell(&mut block);
        block.line("lost", vec![NamedAmount::only(float(self.losses), "deliveries")]);
        block
    }

    pub(super) fn targets(&self) -> Vec<BenchTarget> {
        let CriticalOvertaking { before, in_kernel, heard, .. } = self.overtaking;
        vec![
            BenchTarget {
                what: "p99 of a critical event with a tenth stalled, by that with nobody stalled",
                wanted: TargetBound::AtMost(2.0),
                unit: "times",
                found: Some(self.ratio()),
            },
            BenchTarget {
                what: "Ordinary events in the hub's hand that went before a critical one",
                wanted: TargetBound::AtMost(0.0),
                unit: "events",
                // If no subscriber received it, there is no result.
                found: (heard > 0).then(|| float(before.saturating_sub(in_kernel))),
            },
        ]
    }

    /// Checks that something was measured at all.
    pub(super) fn check_sanity(&self) -> Result<(), String> {
        let is_number = self.ratio().is_finite() && self.ratio() > 0.0;
        let CriticalOvertaking { stalled, heard, behind, .. } = self.overtaking;
        if !is_number || heard != stalled || behind == 0 {
            return Err("the critical events were not measured".to_owned());
        }
        Ok(())
    }
}

impl CriticalOvertaking {
    fn tell(&self, block: &mut ReportBlock) {
        let number = |count: usize| float(count as u64);
        block.line(
            format!("{} of {FEW_SUBSCRIBERS} who did not read, and read again", self.stalled),
            vec![
                NamedAmount::only(number(self.heard), "heard what was critical"),
                NamedAmount::new("after at most", float(self.before), "ordinary events"),
                NamedAmount::new(
                    "of which the kernel can have held",
                    float(self.in_kernel),
                    "already",
                ),
                NamedAmount::new("before at least", float(self.behind), "that had waited"),
            ],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_holds_is_the_sum_of_both_ends_of_a_connection() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000007 00:00000000 0 0\n\
            1: 0100007F:1F90 0100007F:C001 01 00000100:00000000 00:00000000 0 0\n\
            2: 0100007F:C001 0100007F:1F90 01 00000003:00000020 00:00000000 0 0\n\
            3: 0100007F:1F90 0100007F:C002 01 00000110:00000000 00:00000000 0 0\n\
            4: 0100007F:C003 0100007F:1F91 01 00000000:00009999 00:00000000 0 0\n";
        assert_eq!(most_queued(table, 0x1f90), 0x120);
        assert_eq!(most_queued("", 0x1f90), 0);
    }
}
