//! What a world needs from an engine, so that a sabotaged engine can take its place.

use aaep::{LanguageTag, Prefix, Producer, Uri, Version};
use aaep_engine::terms::Offer;
use aaep_engine::{Engine, EngineConfig, EngineInput, Now, Output};

/// Handles inputs as the engine does.
pub trait WorldHub {
    /// Handles an input and returns the outputs that follow from it.
    fn handle(&mut self, now: Now, input: EngineInput) -> Vec<Output>;
    /// When the hub wants its next tick.
    fn deadline(&self) -> Option<u64>;
    /// The bytes that the hub holds for histories and logs.
    fn memory_bytes(&self) -> usize;
    /// Replaces a killed engine by one that was recovered from storage. `outputs` are those of the
    /// recovery; returns the ones to carry out.
    fn restart(&mut self, now: Now, engine: Engine, outputs: Vec<Output>) -> Vec<Output>;
}

impl WorldHub for Engine {
    fn handle(&mut self, now: Now, input: EngineInput) -> Vec<Output> {
        Engine::handle(self, now, input)
    }

    fn deadline(&self) -> Option<u64> {
        Engine::deadline(self)
    }

    fn memory_bytes(&self) -> usize {
        Engine::memory_bytes(self)
    }

    fn restart(&mut self, _: Now, engine: Engine, outputs: Vec<Output>) -> Vec<Output> {
        *self = engine;
        outputs
    }
}

/// How long the hub waits for a subscriber whose connection broke.
pub const GRACE_US: u64 = 10_000_000;

/// How long a subscription can be resumed after its connection broke.
pub const KEEP_US: u64 = 40_000_000;

/// The most sessions of one principal that may run at the same time.
pub const SESSIONS_PER_PRINCIPAL: usize = 2;

/// The most subscriptions that can exist at the same time.
pub const MAX_SUBSCRIPTIONS: usize = 24;

/// A real engine, set up for a world.
pub fn engine(seed: u64, max_events_per_second: Option<u64>) -> Engine {
    Engine::new(config(seed, 0, max_events_per_second))
}

/// The batch size for lagging subscribers: small in every third world, so that batches occur there.
pub fn at_a_time(seed: u64) -> usize {
    let few = usize::try_from(1 + seed / 3 % 5).unwrap_or(1);
    if seed.is_multiple_of(3) { few } else { 64 }
}

/// The memory budget for histories and logs: small in every fourth world, so that the hub has to drop something.
pub fn memory_bytes(seed: u64) -> usize {
    let few = usize::try_from(24 + seed / 4 % 400).unwrap_or(24);
    if is_cramped(seed) { few * 1024 } else { aaep_engine::MEMORY_BYTES }
}

/// Whether the hub of this world has a small memory budget.
pub fn is_cramped(seed: u64) -> bool {
    seed % 4 == 1
}

/// The configuration of a world's engine after this many starts.
///
/// # Panics
/// Never: the strings of the offer are valid constants.
pub fn config(seed: u64, starts: u8, max_events_per_second: Option<u64>) -> EngineConfig {
    const RIGHT: &str = "a constant of the right form";
    let offer = Offer {
        producer: Producer::new("world"),
        versions: vec![Version::parse("1.0.0").expect(RIGHT)],
        languages: ["en-US", "es-419", "yo"]
            .iter()
            .map(|tag| LanguageTag::parse(tag).expect(RIGHT))
            .collect(),
        max_events_per_second,
        extensions: vec![(
            Uri::parse(aaep::extension::CONTEXT).expect(RIGHT),
            Prefix::parse(aaep::extension::PREFIX).expect(RIGHT),
        )],
        conformance_levels: vec![1, 2],
        max_concurrent_subscriptions: MAX_SUBSCRIPTIONS,
        manifest_uri: None,
        signed_manifest: None,
        only_offered_languages: false,
    };
    let mut secret = [0; 32];
    secret[..8].copy_from_slice(&seed.to_le_bytes());
    secret[8] = starts;
    EngineConfig {
        resume_grace_us: GRACE_US,
        keep_subscription_us: KEEP_US,
        at_a_time: at_a_time(seed),
        memory_bytes: memory_bytes(seed),
        memory_bytes_per_principal: memory_bytes(seed) / 4,
        sessions_per_principal: SESSIONS_PER_PRINCIPAL,
        keep_ended_us: 1_000_000 * (1 + seed % 30),
        ..EngineConfig::new(offer, secret)
    }
}
