//! Seeded worlds around the real engine: agents, subscribers, networks, broken clocks and crashes.
//!
//! A world depends on its seed alone. After every step, all invariants in [`check`] must hold; a
//! failed world leaves a [`WorldStory`] that can be read aloud. [`sabotage`] has broken hubs, which
//! show that each invariant can fail.
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

pub use hub::WorldHub;
pub use story::WorldStory;
pub use world::{InvariantFailure, World, WorldOutcome, run, run_with};
