//! Nothing that the hub acknowledged is lost, whenever it is killed.
//!
//! A hub runs as its own process on a real store, with agents, people who answer, and subscribers. It is
//! killed with SIGKILL at random moments and started again, and everyone continues where they were. At the
//! end, what everyone was told is compared with what is stored.
//!
//! `AAEP_CRASH_ROUNDS` says how often it is killed, 50 unless told otherwise, and `AAEP_CRASH_SEED` with
//! which numbers. Which thread is where when a kill comes is up to the machine: a seed gives the same
//! work and the same moments, not the same run.

#![cfg(target_os = "linux")]

mod askers;
mod board;
mod check;
mod check_tests;
mod daemon;
mod http;
mod ledger;
mod publishers;
mod random;
mod stored;
mod subscribers;
mod work;
mod world;

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

use ledger::Seen;
use world::World;

/// How often a hub is killed before everything is compared and the next one begins with an empty store.
const ROUNDS_OF_A_WORLD: u64 = 50;

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

#[test]
#[expect(clippy::print_stdout, reason = "it says with which seed it ran, and what happened")]
fn nothing_acknowledged_is_lost_whenever_the_hub_is_killed() {
    let rounds = number("AAEP_CRASH_ROUNDS").unwrap_or(50);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let seed = number("AAEP_CRASH_SEED").unwrap_or(now);
    println!("{rounds} rounds. To repeat: AAEP_CRASH_ROUNDS={rounds} AAEP_CRASH_SEED={seed}");
    let mut total = Seen::default();
    let mut left = rounds;
    let mut world = 0;
    while left > 0 {
        let now = left.min(ROUNDS_OF_A_WORLD);
        let found = World::run(seed.wrapping_add(world), now);
        println!("World {world}: {found}");
        total.add(&found);
        left -= now;
        world += 1;
    }
    println!("In all: {total}");
    if rounds >= ROUNDS_OF_A_WORLD {
        total.assert_that_all_of_it_happened();
    }
}
