//! What a world needs of an engine, so that a sabotaged one can take its place.

use aaep::{LanguageTag, Prefix, Producer, Uri, Version};
use aaep_engine::terms::Offer;
use aaep_engine::{Config, Engine, Input, Now, Output};

/// Something that handles what happens as the engine does.
pub trait Hub {
    /// Handles what happened and says what is to be done.
    fn handle(&mut self, now: Now, input: Input) -> Vec<Output>;
    /// When something is due next.
    fn deadline(&self) -> Option<u64>;
    /// How many bytes it holds for histories and logs.
    fn memory_bytes(&self) -> usize;
    /// It was killed; this engine was made of what was stored, and says that this is to be done first.
    fn restart(&mut self, now: Now, engine: Engine, outputs: Vec<Output>) -> Vec<Output>;
}

impl Hub for Engine {
    fn handle(&mut self, now: Now, input: Input) -> Vec<Output> {
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

/// How long it is waited for a subscriber whose connection broke.
pub const GRACE_US: u64 = 10_000_000;

/// How long a broken subscription can be taken up again.
pub const KEEP_US: u64 = 40_000_000;

/// How many sessions of one principal may run at a time.
pub const SESSIONS_PER_PRINCIPAL: usize = 2;

/// How many subscriptions there can be at a time.
pub const MAX_SUBSCRIPTIONS: usize = 24;

/// A real engine, set up for a world.
pub fn engine(seed: u64, max_events_per_second: Option<u64>) -> Engine {
    Engine::new(config(seed, 0, max_events_per_second))
}

/// How many events whoever is behind is sent at a time: few in every third world, so that it happens there.
pub fn at_a_time(seed: u64) -> usize {
    let few = usize::try_from(1 + seed / 3 % 5).unwrap_or(1);
    if seed.is_multiple_of(3) { few } else { 64 }
}

/// How many bytes the hub may hold for histories and logs: few in every fourth world, so that it has to let go.
pub fn memory_bytes(seed: u64) -> usize {
    let few = usize::try_from(24 + seed / 4 % 400).unwrap_or(24);
    if is_cramped(seed) { few * 1024 } else { aaep_engine::MEMORY_BYTES }
}

/// Whether the hub of a world has little memory.
pub fn is_cramped(seed: u64) -> bool {
    seed % 4 == 1
}

/// How the engine of a world is set up, after so many starts.
///
/// # Panics
/// Never: the words of the offer are constants of the right form.
pub fn config(seed: u64, starts: u8, max_events_per_second: Option<u64>) -> Config {
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
    Config {
        resume_grace_us: GRACE_US,
        keep_subscription_us: KEEP_US,
        at_a_time: at_a_time(seed),
        memory_bytes: memory_bytes(seed),
        memory_bytes_per_principal: memory_bytes(seed) / 4,
        sessions_per_principal: SESSIONS_PER_PRINCIPAL,
        keep_ended_us: 1_000_000 * (1 + seed % 30),
        ..Config::new(offer, secret)
    }
}
