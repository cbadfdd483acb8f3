//! Where programs on one machine meet: Unix sockets and, on Windows, named pipes (B.3, B.4).
//!
//! The operating system identifies the peer; nothing that a peer writes about itself is trusted.

mod error;
mod path;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

pub use error::LocalBindError;
pub use path::{MAX_SOCKET_PATH_BYTES, NoSocketFolder, bind_path, connect_paths, socket_name};
#[cfg(unix)]
pub use unix::{Accepted, LocalDoor, connect, own_user_id};
#[cfg(windows)]
pub use windows::{Accepted, LocalDoor};

/// The name under which a person's hub is found, unless another one is given.
pub const HUB_NAME: &str = "aaep-hub";
