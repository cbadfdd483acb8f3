//! One wire, one number of subscribers, one crowd: all servers that can do it, measured in turns.

use super::by_hand::ByHand;
use super::crowd::Crowd;
use super::hub::{Hub, Saying};
use super::measure::{Rate, Subject};
use super::nchan::Nchan;
use super::raw::Raw;
use super::rows::Row;
use super::server::Server;
use super::subscribers::Latencies;
use super::wire::{Kind, Wire};
use super::{BURST, Effort, Sample};

/// The most events of a round: what a session of the hub has room for.
const MAX_EVENTS: usize = 8000;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) wire: Wire,
    pub(super) subscribers: usize,
    pub(super) crowd: Crowd,
}

impl Cell {
    pub(super) fn name(&self) -> String {
        let Cell { wire, subscribers, crowd } = self;
        format!("{}, {subscribers} subscribers, {}", wire.name(), crowd.name())
    }

    /// Measures all of them, the hub first and the limit second.
    pub(super) fn measure(&self, effort: &Effort, peers: &[Kind]) -> Result<Vec<Row>, String> {
        let mut subjects = self.subjects(peers)?;
        let mut rows: Vec<Row> = subjects.iter().map(|it| Row::new(*self, it)).collect();
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
        subjects.into_iter().try_for_each(Subject::stop)?;
        Ok(rows)
    }

    fn subjects(&self, peers: &[Kind]) -> Result<Vec<Subject>, String> {
        let Cell { wire, subscribers, crowd } = *self;
        let saying = if crowd == Crowd::Mixed { Saying::Sentences } else { Saying::Progress };
        let (hub, sample) = Hub::start(wire, subscribers, saying)?;
        let mut subjects = vec![Subject::start(Box::new(hub), wire, crowd, subscribers)?];
        // The others know no terms: what they are compared by is those who hear everything.
        let full = crowd.full(subscribers);
        let mut others = vec![Kind::Raw];
        if crowd == Crowd::One {
            others.extend(peers.iter().filter(|peer| peer.speaks(wire)));
        }
        for other in others {
            let server = start(other, wire, full, &sample)?;
            subjects.push(Subject::start(server, wire, Crowd::One, full)?);
        }
        Ok(subjects)
    }
}

/// Starts a server that is not the hub.
pub(super) fn start(
    kind: Kind,
    wire: Wire,
    subscribers: usize,
    sample: &Sample,
) -> Result<Box<dyn Server>, String> {
    Ok(match kind {
        Kind::Hub => return Err("the hub is started with what it says".to_owned()),
        Kind::Raw => Box::new(Raw::start(wire, subscribers, sample)?),
        Kind::Axum => Box::new(ByHand::start(sample)?),
        Kind::Nchan => Box::new(Nchan::start(subscribers, sample)?),
    })
}

/// How many events make about as many deliveries as there should be.
pub(super) fn events(effort: &Effort, which: usize, subject: &Subject) -> usize {
    let burst = [1, BURST][which];
    let events = effort.deliveries[which] / subject.subscribers.full().max(1);
    events.clamp(burst * 2, MAX_EVENTS).next_multiple_of(burst)
}

impl Row {
    fn new(cell: Cell, subject: &Subject) -> Self {
        Row {
            cell,
            kind: subject.kind(),
            rates: [Rate::WORST; 2],
            latencies: Latencies::WORST,
            late_losses: 0,
            memory: subject.memory,
        }
    }
}
