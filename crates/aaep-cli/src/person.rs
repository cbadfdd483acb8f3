//! The person's key: it identifies the commands of the person who runs a hub (ruling 37, `docs/security.md`).
//!
//! It is read from a file that only this user can read, and sent only to a hub of this user on this machine. Commands
//! that speak as an agent never use it.

use std::path::PathBuf;

use aaep_hub::access::{PERSON_KEY_FILE, PersonKey, read_person_key};
use aaep_transport::link::Target;

use crate::folders::configuration_folder;

/// The key file: as `AAEP_PERSON_KEY` says, next to the tokens file, or in the configuration folder.
fn key_file() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("AAEP_PERSON_KEY")
        .or_else(|| set("AAEP_TOKENS").map(|tokens| PersonKey::path_beside(&tokens)))
        .or_else(|| configuration_folder().ok().map(|folder| folder.join(PERSON_KEY_FILE)))
}

/// The key, for a hub of this user on this machine. `None` if there is no key yet, and for every other address: any
/// program that gets the key can act as the person.
pub(crate) fn key_for(address: &str) -> Option<String> {
    if is_own_hub(address) { read_person_key(&key_file()?).ok() } else { None }
}

/// Whether the hub at this address belongs to this user on this machine, so that its statements about others can be
/// trusted.
pub(crate) fn is_own_hub(address: &str) -> bool {
    match Target::parse(address) {
        // Without a path, only sockets of this user are connected to.
        Ok(Target::Unix(None)) => true,
        Ok(Target::Unix(Some(path))) => is_own_socket(&path),
        Ok(Target::Sse(place) | Target::WebSocket(place) | Target::Grpc(place)) => {
            place.is_loopback() && is_own_port(place.port())
        }
        Ok(Target::Stdio(_)) | Err(_) => false,
    }
}

/// Whether a socket was created by this user or by the system.
#[cfg(unix)]
fn is_own_socket(path: &std::path::Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let own = aaep_transport::local::own_user_id();
    std::fs::metadata(path).is_ok_and(|it| it.uid() == own || it.uid() == 0)
}

/// A pipe of another user cannot be recognised here.
#[cfg(not(unix))]
fn is_own_socket(_: &std::path::Path) -> bool {
    false
}

/// Whether a port of this machine is listened on by this user or the system. On a shared machine, another user may
/// have taken the port first.
#[cfg(target_os = "linux")]
fn is_own_port(port: u16) -> bool {
    let users = users_of_port(port);
    !users.is_empty() && !is_foreign_port(port)
}

/// Whether somebody else listens on a port of this machine, as far as the system says.
#[cfg(target_os = "linux")]
pub(crate) fn is_foreign_port(port: u16) -> bool {
    let own = aaep_transport::local::own_user_id();
    users_of_port(port).iter().any(|user| *user != own && *user != 0)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_foreign_port(_: u16) -> bool {
    false
}

#[cfg(target_os = "linux")]
fn users_of_port(port: u16) -> Vec<u32> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(std::fs::read_to_string);
    tables.iter().flatten().flat_map(|table| listening_users(table, port)).collect()
}

/// Other systems do not report this; the hub's socket is used instead.
#[cfg(not(target_os = "linux"))]
fn is_own_port(_: u16) -> bool {
    false
}

/// The users that listen on a port, from the kernel's table of sockets.
#[cfg(target_os = "linux")]
fn listening_users(table: &str, port: u16) -> impl Iterator<Item = u32> {
    const LISTENING: &str = "0A";
    table.lines().skip(1).filter_map(move |line| {
        let mut columns = line.split_whitespace();
        let (_, local_port) = columns.nth(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(local_port, 16).ok()? == port;
        let is_listening = columns.nth(1)? == LISTENING;
        let user = columns.nth(3)?.parse().ok()?;
        (is_it && is_listening).then_some(user)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn who_listens_on_a_port_is_read_from_the_kernel() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n\
            0: 0100007F:1BCD 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 0 1\n\
            1: 0100007F:1BCD 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1001 0 1\n\
            2: 0100007F:1BCE 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1002 0 1\n\
            nonsense\n";
        assert_eq!(listening_users(table, 0x1BCD).collect::<Vec<_>>(), [1000]);
        assert_eq!(listening_users(table, 1).count(), 0);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        assert!(is_own_port(port) && !is_foreign_port(port), "this test listens there");
    }

    #[test]
    fn nobody_elsewhere_is_told_the_key() {
        for address in ["https://hub.example.org", "wss://a.example", "stdio:agent", "nonsense"] {
            assert_eq!(key_for(address), None, "{address}");
            assert!(!is_own_hub(address), "{address}");
        }
    }
}
