//! Sockets that are open before the hub starts: those passed by the system (systemd socket activation), and the local
//! socket.

use std::path::Path;

use aaep_hub::server::{Given, HubConfig};
use aaep_transport::local::{LocalBindError, LocalDoor, bind_path};
use listenfd::ListenFd;

use crate::console::{CommandFailure, complain};

/// All of these sockets. Must be called within a tokio runtime.
pub(super) fn given(config: &HubConfig, flag: Option<&Path>) -> Result<Vec<Given>, CommandFailure> {
    let mut given = from_system()?;
    if !given.iter().any(|it| matches!(it, Given::Local(_))) {
        given.extend(local(config, flag.or(config.hub.socket.as_deref()))?.map(Given::Local));
    }
    Ok(given)
}

/// Sockets that the system opened for this process.
fn from_system() -> Result<Vec<Given>, CommandFailure> {
    let failed = |error: std::io::Error| {
        CommandFailure::new(
            format!("a socket that the system gave cannot be used: {error}"),
            "Give sockets for TCP or Unix streams only.",
        )
    };
    let mut sockets = ListenFd::from_env();
    let mut given = Vec::new();
    for at in 0..sockets.len() {
        #[cfg(unix)]
        if let Ok(Some(socket)) = sockets.take_unix_listener(at) {
            given.push(Given::Local(LocalDoor::given(socket).map_err(failed)?));
            continue;
        }
        given.extend(sockets.take_tcp_listener(at).map_err(failed)?.map(Given::Tcp));
    }
    Ok(given)
}

/// Opens the local socket. Unless one is named, it is the usual one if that is free: a second hub of the same person
/// runs without it.
fn local(config: &HubConfig, wish: Option<&Path>) -> Result<Option<LocalDoor>, CommandFailure> {
    let for_others = !config.access.users.is_empty();
    if let Some(path) = wish {
        let is_none = path.as_os_str() == "none";
        let door = (!is_none).then(|| LocalDoor::bind(path, for_others)).transpose();
        return door.map_err(|error| failure(&error.to_string()));
    }
    let opened = match bind_path(&config.hub.agent_id) {
        Ok(path) => LocalDoor::bind(&path, for_others).map_err(|error| match error {
            LocalBindError::InUse(path) => {
                let path = path.to_string_lossy().into_owned();
                format!("Another hub has the socket {}.", aaep::printable(&path))
            }
            error => error.to_string(),
        }),
        Err(error) => Err(error.to_string()),
    };
    match opened {
        Ok(door) => Ok(Some(door)),
        Err(why) => {
            complain(&failure(&format!("This hub goes without a local socket. {why}")));
            Ok(None)
        }
    }
}

fn failure(why: &str) -> CommandFailure {
    CommandFailure::new(
        why.strip_suffix('.').unwrap_or(why),
        "Choose a path with --socket, or say: --socket none",
    )
}
