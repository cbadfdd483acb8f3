//! HTTP access to a hub, for commands that query it or publish to it.

use aaep::printable;
use aaep_http::HttpAddress;
use aaep_transport::link::Target;

use crate::console::CommandFailure;
use crate::http::HubClient;

/// The default address of a hub.
pub(crate) const DEFAULT_HUB: &str = "http://127.0.0.1:7117";

/// Whether an address has the form of a hub that can be queried.
pub(crate) fn can_look(address: &str) -> bool {
    match Target::parse(address) {
        Ok(Target::Sse(_) | Target::WebSocket(_) | Target::Grpc(_)) => true,
        Ok(Target::Unix(_)) => cfg!(unix),
        Ok(Target::Stdio(_)) | Err(_) => false,
    }
}

/// The address of this person's own hub: its socket if there is one, otherwise its port.
pub(crate) fn own_address() -> String {
    #[cfg(unix)]
    if own_socket().is_some_and(|path| is_served(&path)) {
        return "unix:".to_owned();
    }
    DEFAULT_HUB.to_owned()
}

/// Whether a program accepts connections on a socket. This does not wait, even if many connections do.
#[cfg(unix)]
fn is_served(path: &std::path::Path) -> bool {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return false;
    };
    match runtime.block_on(tokio::net::UnixStream::connect(path)) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
    }
}

/// A client for the hub at an address.
pub(crate) fn client(address: &str, token: Option<&str>) -> Result<HubClient, CommandFailure> {
    let token = token.map(str::to_owned);
    #[cfg(unix)]
    if let Ok(Target::Unix(path)) = Target::parse(address) {
        let path = path.or_else(own_socket).ok_or_else(|| {
            let what = "no hub of yours has a socket here";
            CommandFailure::new(what, "Start one with: aaep serve. Or give the address of one.")
        })?;
        return Ok(HubClient::local(path, token));
    }
    // A hub serves all of its wires on one port.
    let address = match Target::parse(address) {
        Ok(Target::WebSocket(it) | Target::Grpc(it)) => HttpAddress::parse(&it.origin()),
        _ => HttpAddress::parse(address),
    }
    .map_err(|error| {
        let said = format!("{} is not the address of a hub that can be asked", printable(address));
        let next = format!("Write it like {DEFAULT_HUB}, or unix: for your own.");
        CommandFailure::of_sentences(&format!("{said}. {error}"), &next)
    })?;
    Ok(HubClient::new(address, token))
}

/// The socket of this person's own hub. It is in a folder to which only this person can write.
#[cfg(unix)]
fn own_socket() -> Option<std::path::PathBuf> {
    use std::os::unix::fs::MetadataExt as _;

    use aaep_transport::local::{HUB_NAME, connect_paths, own_user_id};
    let is_own =
        |it: std::fs::Metadata| it.is_dir() && it.uid() == own_user_id() && it.mode() & 0o022 == 0;
    connect_paths(HUB_NAME).into_iter().find(|path| {
        let folder = path.parent();
        path.exists()
            && folder.is_some_and(|folder| std::fs::symlink_metadata(folder).is_ok_and(is_own))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_can_be_asked_over_the_port_of_its_wires_and_its_socket() {
        for (address, origin) in [
            ("http://127.0.0.1:7117", "http://127.0.0.1:7117"),
            ("https://example.org", "https://example.org"),
            ("ws://127.0.0.1:7117/aaep/v1/ws", "http://127.0.0.1:7117"),
            ("wss://[::1]:8443/aaep/v1/ws", "https://[::1]:8443"),
            ("grpc://127.0.0.1:1", "http://127.0.0.1:1"),
        ] {
            assert!(can_look(address), "{address}");
            let client = client(address, None).unwrap_or_else(|it| panic!("{address}: {it}"));
            assert_eq!(client.origin(), origin);
        }
        assert_eq!(can_look("unix:"), cfg!(unix));
        for address in ["stdio:agent", "x"] {
            assert!(!can_look(address) && client(address, None).is_err(), "{address}");
        }
    }
}
