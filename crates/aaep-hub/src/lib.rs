//! The AAEP hub: it takes events from agents, stores them, and delivers them to subscribers.
//!
//! [`hub::Hub`] is the hub itself and can be embedded in a Rust program; agents and subscribers of the same
//! program use it directly. [`server::Daemon`] runs a hub that other programs reach over HTTP, WebSocket, gRPC
//! and the local socket. [`access`] decides who may connect and what they may do, [`redact`] removes secrets
//! from events, [`store`] keeps events and asks on disk, and [`audit`] keeps a chained log of every ask.
//! [`relay`] runs agents as child processes, and [`stdio`] serves a parent process.
//!
//! ```no_run
//! use aaep_hub::server::{Daemon, DaemonError, DaemonOptions};
//!
//! # async fn run() -> Result<(), DaemonError> {
//! let daemon = Daemon::start(DaemonOptions::new("tokens.toml")).await?;
//! println!("The hub listens on {:?}.", daemon.origins());
//! daemon.stop().await;
//! # Ok(())
//! # }
//! ```

pub mod access;
pub mod audit;
pub mod bounds;
pub mod hub;
pub mod lines;
pub mod metrics;
pub mod redact;
pub mod relay;
pub mod server;
pub mod stdio;
pub mod store;
pub mod tls;
