//! The kit for makers of assistive technology.

#![doc = include_str!("../README.md")]

/// The documentation page for makers of assistive technology, included so that its example is compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/subscribers.md")]
struct SubscribersPage;

mod ask;
mod backoff;
pub mod blocking;
mod command;
mod connect;
mod dial;
mod error;
mod flood;
mod news;
mod reorder;
mod subscriber;
mod task;
mod trust;
mod wishes;

pub use aaep_engine::subscriber::{
    CannotAsk, CannotReply, ClarificationDetails, ConfirmationDetails, NotAllowed,
    SubscriberViolation, WhyWithdrawn,
};
pub use aaep_engine::terms::Terms;

pub use ask::{Ask, AskState};
pub use backoff::{FIRST_WAIT, LONGEST_WAIT};
pub use command::Instruction;
pub use connect::connect;
pub use dial::{Dial, DialFailure, Dialled, WhereFrom};
pub use error::{ConnectError, SayError};
pub use flood::{FLOOD_SECONDS, LEAVE_SECONDS};
pub use news::{Ended, News};
pub use reorder::{MAX_HELD, REORDER_WAIT};
pub use subscriber::{Subscriber, Voice, connect_with};
pub use task::{HANDSHAKE_TIMEOUT, MAX_WAITING_NEWS, SEND_TIMEOUT, SETTLED_AFTER};
pub use wishes::Wishes;
