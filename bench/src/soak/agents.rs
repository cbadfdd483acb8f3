//! Agents that come and go. Each session uses its own connection.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

use super::plan::{PlannedStep, SessionPlan, decision};
use super::subscriber::PEOPLE;
use super::totals::SoakTotals;
use crate::random::SeededRandom;
use crate::serve::HttpConnection;

/// The state that all agents share.
pub(super) struct SoakAgents {
    pub(super) address: SocketAddr,
    pub(super) totals: Arc<SoakTotals>,
    /// The number of the next session.
    pub(super) next: Arc<AtomicU64>,
    /// The average pause of an agent for each event that it publishes.
    pub(super) pause: Duration,
    pub(super) is_over: AtomicBool,
}

impl SoakAgents {
    /// Publishes whole sessions as fast as the hub accepts them, before there are subscribers. They
    /// contain no asks, because nobody could answer.
    pub(super) fn fill(&self, sessions: u64) -> Result<(), String> {
        let mut connection = HttpConnection::open(self.address)?;
        let mut left = sessions;
        while left > 0 {
            let plan = SessionPlan::of(self.next.fetch_add(1, Ordering::Relaxed));
            if plan.asks == 0 {
                let body = lines(&plan, 0, plan.steps.len())?;
                connection.post("/aaep/v1/publish", "application/x-ndjson", &body)?;
                left -= 1;
            }
        }
        Ok(())
    }

    /// Starts this many agents.
    pub(super) fn start(agents: &Arc<Self>, count: u64) -> Vec<JoinHandle<()>> {
        let agent = |seed| {
            let agents = Arc::clone(agents);
            thread::spawn(move || agents.run(SeededRandom::new(seed)))
        };
        (0..count).map(agent).collect()
    }

    fn run(&self, mut random: SeededRandom) {
        self.pause(&mut random);
        while !self.is_over.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if let Err(why) = self.session(number, &mut random) {
                self.totals.fault(format!("session {number} could not be told: {why}"));
                return;
            }
        }
    }

    /// Pauses at random. After the end of the soak, agents finish their session without pauses.
    fn pause(&self, random: &mut SeededRandom) {
        if !self.is_over.load(Ordering::Relaxed) {
            let percent = u32::try_from(random.between(50, 150)).unwrap_or(100);
            thread::sleep(self.pause * percent / 100);
        }
    }

    fn session(&self, number: u64, random: &mut SeededRandom) -> Result<(), String> {
        let plan = SessionPlan::of(number);
        let mut connection = HttpConnection::open(self.address)?;
        SoakTotals::add(&self.totals.sessions);
        let mut index = 0;
        while let Some(step) = plan.steps.get(index) {
            let end = match step {
                PlannedStep::Asks => {
                    self.ask(&plan, number, index, &mut connection)?;
                    index + 1
                }
                // The pieces of a sentence follow right after each other.
                PlannedStep::Words { .. } => {
                    let rest = plan.steps.iter().skip(index);
                    index
                        + rest
                            .take_while(|it| matches!(it, PlannedStep::Words { .. }))
                            .count()
                            .min(5)
                }
                _ => index + 1,
            };
            if !matches!(step, PlannedStep::Asks) {
                let body = lines(&plan, index, end)?;
                connection.post("/aaep/v1/publish", "application/x-ndjson", &body)?;
            }
            for _ in index..end {
                SoakTotals::add(&self.totals.published);
                self.pause(random);
            }
            index = end;
        }
        Ok(())
    }

    fn ask(
        &self,
        plan: &SessionPlan,
        number: u64,
        index: usize,
        connection: &mut HttpConnection,
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
            SoakTotals::add(&self.totals.asks);
        } else {
            self.totals.fault(format!(
                "question {index} of session {number} was answered with {wanted} and settled as {answer}"
            ));
        }
        Ok(())
    }
}

/// Some events of a session, one on each line.
fn lines(plan: &SessionPlan, begin: usize, end: usize) -> Result<String, String> {
    let mut body = String::new();
    for event in (begin..end).filter_map(|index| plan.event(index)) {
        writeln!(body, "{event}").map_err(|error| error.to_string())?;
    }
    Ok(body)
}
