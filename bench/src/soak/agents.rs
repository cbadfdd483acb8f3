//! Agents that come and go: each session is on a connection of its own.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

use super::plan::{Plan, Step, decision};
use super::subscriber::PEOPLE;
use super::totals::Totals;
use crate::random::Random;
use crate::serve::Connection;

/// What all agents share.
pub(super) struct Agents {
    pub(super) address: SocketAddr,
    pub(super) totals: Arc<Totals>,
    /// The number of the next session.
    pub(super) next: Arc<AtomicU64>,
    /// How long an agent waits for each event that it publishes, on average.
    pub(super) pause: Duration,
    pub(super) is_over: AtomicBool,
}

impl Agents {
    /// Publishes whole sessions as fast as they are taken, before anyone listens. Nobody could answer, so
    /// nothing is asked in them.
    pub(super) fn fill(&self, sessions: u64) -> Result<(), String> {
        let mut connection = Connection::open(self.address)?;
        let mut left = sessions;
        while left > 0 {
            let plan = Plan::of(self.next.fetch_add(1, Ordering::Relaxed));
            if plan.asks == 0 {
                let body = lines(&plan, 0, plan.steps.len())?;
                connection.post("/aaep/v1/publish", "application/x-ndjson", &body)?;
                left -= 1;
            }
        }
        Ok(())
    }

    /// Starts so many agents.
    pub(super) fn start(agents: &Arc<Self>, count: u64) -> Vec<JoinHandle<()>> {
        let agent = |seed| {
            let agents = Arc::clone(agents);
            thread::spawn(move || agents.run(Random::new(seed)))
        };
        (0..count).map(agent).collect()
    }

    fn run(&self, mut random: Random) {
        self.pause(&mut random);
        while !self.is_over.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if let Err(why) = self.session(number, &mut random) {
                self.totals.fault(format!("session {number} could not be told: {why}"));
                return;
            }
        }
    }

    /// After the end of the soak, a session is told to its end without pauses.
    fn pause(&self, random: &mut Random) {
        if !self.is_over.load(Ordering::Relaxed) {
            let percent = u32::try_from(random.between(50, 150)).unwrap_or(100);
            thread::sleep(self.pause * percent / 100);
        }
    }

    fn session(&self, number: u64, random: &mut Random) -> Result<(), String> {
        let plan = Plan::of(number);
        let mut connection = Connection::open(self.address)?;
        Totals::add(&self.totals.sessions);
        let mut index = 0;
        while let Some(step) = plan.steps.get(index) {
            let end = match step {
                Step::Asks => {
                    self.ask(&plan, number, index, &mut connection)?;
                    index + 1
                }
                // A sentence comes in pieces, one right after the other.
                Step::Words { .. } => {
                    let rest = plan.steps.iter().skip(index);
                    index + rest.take_while(|it| matches!(it, Step::Words { .. })).count().min(5)
                }
                _ => index + 1,
            };
            if !matches!(step, Step::Asks) {
                let body = lines(&plan, index, end)?;
                connection.post("/aaep/v1/publish", "application/x-ndjson", &body)?;
            }
            for _ in index..end {
                Totals::add(&self.totals.published);
                self.pause(random);
            }
            index = end;
        }
        Ok(())
    }

    fn ask(
        &self,
        plan: &Plan,
        number: u64,
        index: usize,
        connection: &mut Connection,
    ) -> Result<(), String> {
        let question = plan.event(index).ok_or("no question")?.to_string();
        let path = "/aaep/v1/asks?wait_seconds=60";
        let (mut status, mut answer) = connection.request(path, "application/json", &question)?;
        while status == 202 {
            let path = format!("/aaep/v1/asks/rpl_soak{number}i{index}?wait_seconds=60");
            (status, answer) = connection.get(&path)?;
        }
        let answer: Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
        let (wanted, _) = decision(number, index, PEOPLE);
        if answer["outcome"] == wanted && answer["decided_by"] == "reply" {
            Totals::add(&self.totals.asks);
        } else {
            self.totals.fault(format!(
                "question {index} of session {number} was answered with {wanted} and settled as {answer}"
            ));
        }
        Ok(())
    }
}

/// Some events of a session, one on each line.
fn lines(plan: &Plan, begin: usize, end: usize) -> Result<String, String> {
    let mut body = String::new();
    for event in (begin..end).filter_map(|index| plan.event(index)) {
        writeln!(body, "{event}").map_err(|error| error.to_string())?;
    }
    Ok(body)
}
