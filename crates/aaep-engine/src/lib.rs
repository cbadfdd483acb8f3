//! The rules of AAEP, without clock or sockets.

#![doc = include_str!("../README.md")]

mod ask;
mod audience;
pub mod boundary;
mod budget;
mod clock;
mod counted;
mod engine;
mod frame;
mod ids;
mod io;
mod keys;
mod member;
mod nfc;
pub mod order;
pub mod subscriber;
pub mod terms;
mod weight;

pub use audience::MAX_UNITS;
pub use clock::Now;
pub use engine::{
    Engine, EngineConfig, FILLED_FIELDS, MAX_AGENT_ID_BYTES, MAX_CLOCK_DIFFERENCE_US,
    MAX_OPEN_ASKS, MAX_SESSION_EVENTS, MAX_SESSIONS, MAX_USED_TOKENS, MEMORY_BYTES, OpenAskView,
    RecoveredState, Replayed, complete, is_filled, is_same_chunk,
};
pub use frame::Frame;
pub use io::{
    AgentTags, AskAnswerer, AskTimeRecord, Audit, Author, CaughtUp, EndReason, EngineInput,
    HearingScope, Output, Record, Refusal, ReplyRefusal, ResumePoint, SessionEnd, Subscription,
};
pub use keys::{PrincipalNumber, SubscriberKey};
pub use member::{MAX_ANNOUNCING_US, MAX_WAITING_TOOLS};
pub use nfc::is_normal_text;
