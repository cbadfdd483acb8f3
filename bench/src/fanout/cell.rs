//! One cell of the measurement: one wire, one number of subscribers and one crowd, with all servers
//! that support them, measured in turns.

use super::by_hand::AxumServer;
use super::crowd::SubscriberCrowd;
use super::hub::{HubServer, PublishedContent};
use super::measure::{DeliveryRate, MeasuredServer};
use super::nchan::NchanServer;
use super::raw::RawServer;
use super::rows::FanoutRow;
use super::server::FanoutServer;
use super::subscribers::DeliveryLatencies;
use super::wire::{FanoutWire, ServerKind};
use super::{BURST, FanoutEffort, FanoutSample};

/// The most events of a round: as many as a session of the hub has room for.
const MAX_EVENTS: usize = 8000;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct FanoutCell {
    pub(super) wire: FanoutWire,
    pub(super) subscribers: usize,
    pub(super) crowd: SubscriberCrowd,
}

impl FanoutCell {
    pub(super) fn name(&self) -> String {
        let FanoutCell { wire, subscribers, crowd } = self;
        format!("{}, {subscribers} subscribers, {}", wire.name(), crowd.name())
    }

    /// Measures all servers, the hub first and the limit second.
    pub(super) fn measure(
        &self,
        effort: &FanoutEffort,
        peers: &[ServerKind],
    ) -> Result<Vec<FanoutRow>, String> {
        let mut subjects = self.subjects(peers)?;
        let mut rows: Vec<FanoutRow> =
            subjects.iter().map(|it| FanoutRow::new(*self, it)).collect();
        for _ in 0..effort.rounds {
            for (subject, row) in subjects.iter_mut().zip(&mut rows) {
                for (which, burst) in [1, BURST].into_iter().enumerate() {
                    let found = subject.rate(events(effort, which, subject), burst)?;
                    row.rates[which] = row.rates[which].better(found);
                }
                let (latencies, losses) = subject.latencies(effort.lateness)?;
                row.latencies = row.latencies.better(latencies);
                row.late_losses += losses;
            }
        }
        subjects.into_iter().try_for_each(MeasuredServer::stop)?;
        Ok(rows)
    }

    fn subjects(&self, peers: &[ServerKind]) -> Result<Vec<MeasuredServer>, String> {
        let FanoutCell { wire, subscribers, crowd } = *self;
        let saying = if crowd == SubscriberCrowd::Mixed {
            PublishedContent::Sentences
        } else {
            PublishedContent::Progress
        };
        let (hub, sample) = HubServer::start(wire, subscribers, saying)?;
        let mut subjects = vec![MeasuredServer::start(Box::new(hub), wire, crowd, subscribers)?];
        // The other servers do not support terms, so they are compared by the subscribers that receive everything.
        let full = crowd.full(subscribers);
        let mut others = vec![ServerKind::Raw];
        if crowd == SubscriberCrowd::One {
            others.extend(peers.iter().filter(|peer| peer.speaks(wire)));
        }
        for other in others {
            let server = start(other, wire, full, &sample)?;
            subjects.push(MeasuredServer::start(server, wire, SubscriberCrowd::One, full)?);
        }
        Ok(subjects)
    }
}

/// Starts a server that is not the hub.
pub(super) fn start(
    kind: ServerKind,
    wire: FanoutWire,
    subscribers: usize,
    sample: &FanoutSample,
) -> Result<Box<dyn FanoutServer>, String> {
    Ok(match kind {
        ServerKind::Hub => return Err("the hub is started with what it says".to_owned()),
        ServerKind::Raw => Box::new(RawServer::start(wire, subscribers, sample)?),
        ServerKind::Axum => Box::new(AxumServer::start(sample)?),
        ServerKind::Nchan => Box::new(NchanServer::start(subscribers, sample)?),
    })
}

/// How many events give about the intended number of deliveries.
pub(super) fn events(effort: &FanoutEffort, which: usize, subject: &MeasuredServer) -> usize {
    let burst = [1, BURST][which];
    let events = effort.deliveries[which] / subject.subscribers.full().max(1);
    events.clamp(burst * 2, MAX_EVENTS).next_multiple_of(burst)
}

impl FanoutRow {
    fn new(cell: FanoutCell, subject: &MeasuredServer) -> Self {
        FanoutRow {
            cell,
            kind: subject.kind(),
            rates: [DeliveryRate::WORST; 2],
            latencies: DeliveryLatencies::WORST,
            late_losses: 0,
            memory: subject.memory,
        }
    }
}
