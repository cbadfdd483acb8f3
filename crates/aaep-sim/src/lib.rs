//! Seeded worlds around the real engine: agents, subscribers, networks, broken clocks and crashes.
//!
//! A world is a function of its seed. After every step, everything in [`check`] must hold; what went
//! before a failure is a [`Story`] that can be read aloud. [`sabotage`] has broken hubs that show
//! that each check can fail.
//!
//! Reading order: [`World`], [`check`], [`truth`], [`agent`], [`subscriber`], [`sabotage`].

pub mod agent;
pub mod check;
pub mod hub;
pub mod known;
pub mod rng;
pub mod sabotage;
mod story;
pub mod subscriber;
pub mod text;
pub mod truth;
mod world;

pub use hub::Hub;
pub use story::Story;
pub use world::{Failure, Outcome, World, run, run_with};
