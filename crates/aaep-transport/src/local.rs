//! Where programs of one machine meet: Unix sockets and, on Windows, named pipes (B.3, B.4).
//!
//! The system says who is at the other end; nothing that a peer writes about itself is believed.

mod error;
mod path;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

pub use error::BindError;
pub use path::{MAX_SOCKET_PATH_BYTES, NoPlace, bind_path, connect_paths, socket_name};
#[cfg(unix)]
pub use unix::{Accepted, LocalDoor, own_user_id};
#[cfg(windows)]
pub use windows::{Accepted, LocalDoor};

/// The name under which the hub of a person is found unless it is told another one.
pub const HUB_NAME: &str = "aaep-hub";
