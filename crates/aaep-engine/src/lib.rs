//! The rules of AAEP, without a clock and without sockets.
//!
//! The engine decides what each person hears and when, and ensures that nothing irreversible
//! happens without an ask (chapters 4.5, 5 and 6). Time is an argument and randomness is a seed, so
//! the same inputs give the same outputs.

mod ask;
mod audience;
pub mod boundary;
mod budget;
mod clock;
mod engine;
mod frame;
mod ids;
mod io;
mod member;
mod nfc;
pub mod order;
mod stakes;
pub mod subscriber;
pub mod terms;
mod weight;

pub use audience::{MAX_UNITS, SubscriberKey};
pub use clock::Now;
pub use engine::{
    Config, Engine, FILLED_FIELDS, MAX_AGENT_ID_BYTES, MAX_CLOCK_DIFFERENCE_US, MAX_OPEN_ASKS,
    MAX_SESSION_EVENTS, MAX_SESSIONS, MAX_USED_TOKENS, MEMORY_BYTES, Recovered, Replayed,
    WaitingAsk, complete, is_filled, is_same_chunk,
};
pub use frame::Frame;
pub use io::{
    AgentTags, AskTimeRecord, Audit, Author, EndReason, Hears, Input, Output, Principal, Record,
    Refusal, ReplyRefusal, Resolution, Resume, SessionEnd, Subscription,
};
pub use member::{MAX_ANNOUNCING_US, MAX_WAITING_TOOLS};
pub use nfc::is_normal_text;
pub use stakes::{ActionStakes, StatedRisk, StatedUndo};
