//! How late a critical event is while everyone gets ordinary ones: with nobody stalled, and with a tenth of
//! the subscribers stalled. And whether it ever waits behind ordinary events that the hub still has in hand.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::crowd::{Crowd, Role};
use super::hub::{Hub, Saying};
use super::measure::Subject;
use super::subscribers::Latencies;
use super::wire::{Address, Wire};
use super::{BURST, Effort, Sample, now_ns};
use crate::table::{Amount, Block, Target, Wanted};
use crate::timing::float;

/// How often everyone gets an ordinary event.
const EVERY: Duration = Duration::from_millis(250);

/// With every so many ordinary events there is a critical one.
const ORDINARY_PER_CRITICAL: usize = 2;

/// By how many milliseconds a critical event follows an ordinary one, in turns: sometimes while everyone is being
/// told the ordinary one, sometimes when all is calm.
const AFTER_MS: [u64; 5] = [0, 40, 80, 120, 160];

/// How many events are told first, so that whoever does not read has more waiting than the kernel holds.
const FILLING: usize = 128;

/// How many of those are told together.
const TOGETHER: usize = 32;

/// How many subscribers there are where it is looked at what a critical event goes past.
const FEW_LISTENERS: usize = 100;

/// Whoever takes nothing for a minute is let go, so the rounds must be over before.
const MAX_ROUNDS: u64 = 3;

/// How long those who were stalled may take to catch up.
const PATIENCE: Duration = Duration::from_secs(20);

/// What was found.
pub(super) struct Critical {
    subscribers: usize,
    calm: Latencies,
    stalled: Latencies,
    overtaking: Overtaking,
    pub(super) losses: u64,
}

/// What a critical event went past on its way to those who had not read for a while.
struct Overtaking {
    /// How many were stalled, and how many of them heard the critical event when they read again.
    stalled: usize,
    heard: usize,
    /// The most ordinary events that one of those had before the critical one.
    before: u64,
    /// The most ordinary events that the kernel can have had in hand for one of them.
    in_kernel: u64,
    /// The fewest ordinary events that waited in the hub for one of them and came behind the critical one.
    behind: u64,
}

pub(super) fn measure(subscribers: usize, effort: &Effort) -> Result<Critical, String> {
    let (mut calm, _) = start(Crowd::Attentive, subscribers)?;
    let (mut stalled, _) = start(Crowd::TenthStalled, subscribers)?;
    for subject in [&mut calm, &mut stalled] {
        fill(subject, TOGETHER)?;
    }
    let mut best = [Latencies::WORST; 2];
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
    Ok(Critical { subscribers, calm, stalled, overtaking: overtaking()?, losses })
}

/// A hub that speaks text to so many, and an event as it comes.
fn start(crowd: Crowd, subscribers: usize) -> Result<(Subject, Sample), String> {
    let (hub, sample) = Hub::start(Wire::Sse, subscribers, Saying::Sentences)?;
    Ok((Subject::start(Box::new(hub), Wire::Sse, crowd, subscribers)?, sample))
}

/// Lets a tenth of a few subscribers fall behind by more than the kernel holds, publishes something critical,
/// lets them read again, and looks at the order in which they hear it all.
fn overtaking() -> Result<Overtaking, String> {
    let (mut subject, sample) = start(Crowd::TenthStalled, FEW_LISTENERS)?;
    fill(&mut subject, BURST)?;
    let in_kernel = bytes_in_kernel(&subject)?.div_ceil(sample.frame.len() as u64) + 1;
    subject.server.tell_critical()?;
    thread::sleep(EVERY);
    subject.subscribers.resume()?;
    let heard = catch_up(&mut subject)?;
    subject.stop()?;
    let is_stalled = |at: &usize| Crowd::TenthStalled.role(*at) == Role::Stalled;
    Ok(Overtaking {
        stalled: (0..FEW_LISTENERS).filter(is_stalled).count(),
        heard: heard.len(),
        before: heard.iter().map(|(before, _)| *before).max().unwrap_or(0),
        in_kernel,
        behind: heard.iter().map(|(before, all)| all - before).min().unwrap_or(0),
    })
}

/// Tells everyone so much that whoever does not read is behind.
fn fill(subject: &mut Subject, together: usize) -> Result<(), String> {
    subject.begin()?;
    for told in (together..=FILLING).step_by(together) {
        subject.server.tell(together)?;
        if !subject.subscribers.wait(told)? {
            return Err("the hub does not reach everyone who reads".to_owned());
        }
    }
    Ok(())
}

/// Ordinary events at their times, and critical ones among them; how late those were, and what was lost.
fn round(subject: &mut Subject, for_about: Duration) -> Result<(Latencies, u64), String> {
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
    // The last critical event may be behind the last ordinary one by a little.
    thread::sleep(EVERY);
    let losses = subject.subscribers.losses(ordinary, critical.len())?;
    Ok((subject.subscribers.latencies(&critical, true)?, losses))
}

/// Waits until those who were stalled hear no more, and gives what they heard.
fn catch_up(subject: &mut Subject) -> Result<Vec<(u64, u64)>, String> {
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
fn bytes_in_kernel(subject: &Subject) -> Result<u64, String> {
    let Address::Tcp(address) = subject.server.address() else {
        return Err("there are no queues to look at".to_owned());
    };
    let table = fs::read_to_string("/proc/net/tcp").map_err(|error| error.to_string())?;
    Ok(most_queued(&table, address.port()))
}

/// The most bytes queued for one connection to this port, from the table of the kernel.
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

impl Critical {
    fn ratio(&self) -> f64 {
        self.stalled.p99 / self.calm.p99
    }

    pub(super) fn block(&self) -> Block {
        let mut block = Block::new(format!(
            "Critical events while {} subscribers on SSE get 4 ordinary ones a second each",
            self.subscribers
        ));
        for (name, found) in [("nobody stalled", self.calm), ("a tenth stalled", self.stalled)] {
            let amounts = vec![
                Amount::new("p50", found.p50, "ms"),
                Amount::new("p99", found.p99, "ms"),
                Amount::new("p99.9", found.p999, "ms"),
                Amount::only(float(found.count), "deliveries timed"),
            ];
            block.line(name, amounts);
        }
        block.line(
            "a tenth stalled by nobody stalled",
            vec![Amount::new("p99", self.ratio(), "times")],
        );
        self.overtaking.tell(&mut block);
        block.line("lost", vec![Amount::only(float(self.losses), "deliveries")]);
        block
    }

    pub(super) fn targets(&self) -> Vec<Target> {
        let Overtaking { before, in_kernel, heard, .. } = self.overtaking;
        vec![
            Target {
                what: "p99 of a critical event with a tenth stalled, by that with nobody stalled",
                wanted: Wanted::AtMost(2.0),
                unit: "times",
                found: Some(self.ratio()),
            },
            Target {
                what: "Ordinary events in the hub's hand that went before a critical one",
                wanted: Wanted::AtMost(0.0),
                unit: "events",
                // If nobody heard it, nothing is known.
                found: (heard > 0).then(|| float(before.saturating_sub(in_kernel))),
            },
        ]
    }

    /// Whether it was measured at all.
    pub(super) fn check_sanity(&self) -> Result<(), String> {
        let is_number = self.ratio().is_finite() && self.ratio() > 0.0;
        let Overtaking { stalled, heard, behind, .. } = self.overtaking;
        if !is_number || heard != stalled || behind == 0 {
            return Err("the critical events were not measured".to_owned());
        }
        Ok(())
    }
}

impl Overtaking {
    fn tell(&self, block: &mut Block) {
        let number = |count: usize| float(count as u64);
        block.line(
            format!("{} of {FEW_LISTENERS} who did not read, and read again", self.stalled),
            vec![
                Amount::only(number(self.heard), "heard what was critical"),
                Amount::new("after at most", float(self.before), "ordinary events"),
                Amount::new("of which the kernel can have held", float(self.in_kernel), "already"),
                Amount::new("before at least", float(self.behind), "that had waited"),
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
