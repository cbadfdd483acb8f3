//! Which hubs a command uses: one or several, each with a name to be spoken and its own token.
//!
//! All commands name a hub in the same way: with `--hub`, with `AAEP_HUB`, or in the settings, in this order;
//! otherwise it is the person's own hub on this machine. `flag` has the command line flags, `reach` the HTTP client
//! for a hub.

mod flag;
pub(crate) mod reach;

use aaep::printable;
use aaep_transport::link::Target;
use serde::{Deserialize, Serialize};

use crate::console::{CommandFailure, count};
use crate::person::key_for;
use crate::settings::ListenSettings;

pub(crate) use flag::{HubAddressFlag, HubFlags, OldForms};
use reach::own_address;

/// How many hubs can be listened to at the same time.
pub(crate) const MAX_HUBS: usize = 16;

/// The prefixes that begin an address.
const WIRES: &[&str] = &["http:", "https:", "ws:", "wss:", "grpc:", "grpcs:", "unix:", "stdio:"];

/// One or several addresses, as written in the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected an address such as \"unix:\", or several in brackets")]
pub(crate) enum HubAddresses {
    One(String),
    Several(Vec<String>),
}

impl HubAddresses {
    pub(crate) fn list(&self) -> &[String] {
        match self {
            HubAddresses::One(address) => std::slice::from_ref(address),
            HubAddresses::Several(addresses) => addresses,
        }
    }

    /// Reads the addresses in a text. A comma separates two addresses only if a wire's prefix follows; other commas
    /// are part of an address.
    pub(crate) fn read(text: &str) -> Self {
        let mut all: Vec<String> = Vec::new();
        for part in text.split(',') {
            let word = part.trim_start().to_ascii_lowercase();
            match all.last_mut() {
                Some(last) if !WIRES.iter().any(|wire| word.starts_with(wire)) => {
                    last.push(',');
                    last.push_str(part);
                }
                _ => all.push(with_wire(part.trim())),
            }
        }
        match all.as_slice() {
            [address] => HubAddresses::One(address.clone()),
            _ => HubAddresses::Several(all),
        }
    }
}

/// Adds the wire to an address: a file path is a socket.
fn with_wire(address: &str) -> String {
    if address.starts_with('/') { format!("unix:{address}") } else { address.to_owned() }
}

/// A hub to connect to, and the token for it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct HubTarget {
    pub(crate) address: String,
    /// Its spoken name, for when there are several.
    pub(crate) name: String,
    /// The token for this hub only; no other hub may see it.
    pub(crate) token: Option<String>,
}

/// The addresses of the hubs in the settings, which include the command line flags.
fn addresses(listen: &ListenSettings) -> Vec<String> {
    match &listen.hub {
        Some(addresses) => addresses.list().to_vec(),
        None => vec![own_address()],
    }
}

/// The hubs that the person means. Several tokens are separated by commas, one for each hub in their order.
pub(crate) fn hubs(
    listen: &ListenSettings,
    token: Option<&str>,
) -> Result<Vec<HubTarget>, CommandFailure> {
    let addresses = addresses(listen);
    let tokens = tokens(token, addresses.len())?;
    let mut hubs: Vec<HubTarget> = Vec::new();
    for (address, token) in addresses.into_iter().zip(tokens) {
        if !hubs.iter().any(|it| it.address == address) {
            let token = token.or_else(|| key_for(&address));
            hubs.push(HubTarget { name: name(&address), address, token });
        }
    }
    if hubs.len() > MAX_HUBS {
        let what = format!(
            "there are {}, and more than {MAX_HUBS} cannot be listened to",
            count(hubs.len() as u64, "hub")
        );
        return Err(CommandFailure::new(what, "Name fewer."));
    }
    tell_apart(&mut hubs);
    Ok(hubs)
}

/// One token for each hub. A token is never sent to several hubs: each hub that has it could impersonate the person
/// at the others.
fn tokens(token: Option<&str>, hubs: usize) -> Result<Vec<Option<String>>, CommandFailure> {
    let Some(token) = token.filter(|it| !it.is_empty()) else { return Ok(vec![None; hubs]) };
    let tokens: Vec<Option<String>> =
        token.split(',').map(|it| Some(it.trim().to_owned()).filter(|it| !it.is_empty())).collect();
    if tokens.len() == hubs {
        return Ok(tokens);
    }
    let what = format!(
        "there are {} and {}",
        count(hubs as u64, "hub"),
        count(tokens.len() as u64, "token")
    );
    let next = "Give a token for each hub, in their order and with commas between, and nothing where none is needed.";
    Err(CommandFailure::new(what, next))
}

/// A hub's spoken name.
fn name(address: &str) -> String {
    match Target::parse(address) {
        Ok(Target::Unix(None)) => "your own hub".to_owned(),
        Ok(Target::Sse(place) | Target::WebSocket(place) | Target::Grpc(place)) => {
            let (host, port) = (printable(place.host()), place.port());
            let is_usual = port == if place.is_https() { 443 } else { 80 };
            match (place.is_loopback(), is_usual) {
                (true, _) => format!("port {port}"),
                (false, true) => host.into_owned(),
                (false, false) => format!("{host} port {port}"),
            }
        }
        Ok(target) => target.to_string(),
        Err(_) => printable(address).into_owned(),
    }
}

/// Numbers hubs that have the same name.
fn tell_apart(hubs: &mut [HubTarget]) {
    let names: Vec<String> = hubs.iter().map(|it| it.name.clone()).collect();
    for (at, hub) in hubs.iter_mut().enumerate() {
        if names.iter().filter(|name| **name == hub.name).count() > 1 {
            hub.name = format!("hub {}, {}", at + 1, hub.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(addresses: &[&str]) -> ListenSettings {
        let all = addresses.iter().map(|it| (*it).to_owned()).collect();
        ListenSettings { hub: Some(HubAddresses::Several(all)), ..ListenSettings::default() }
    }

    fn named(addresses: &[&str]) -> Vec<String> {
        let hubs = hubs(&listen(addresses), None).unwrap_or_else(|it| panic!("{it}"));
        hubs.into_iter().map(|it| it.name).collect()
    }

    fn with_token(addresses: &[&str], token: &str) -> Option<Vec<Option<String>>> {
        let hubs = hubs(&listen(addresses), Some(token)).ok()?;
        Some(hubs.into_iter().map(|it| it.token).collect())
    }

    #[test]
    fn a_comma_stands_between_addresses_only_where_one_begins() {
        for (text, expected) in [
            ("unix:", vec!["unix:"]),
            (" unix: , https://a.example", vec!["unix:", "https://a.example"]),
            (
                "http://a.example/x?y=1,2,WSS://b.example",
                vec!["http://a.example/x?y=1,2", "WSS://b.example"],
            ),
            ("stdio:agent --only a,b, c", vec!["stdio:agent --only a,b, c"]),
            ("", vec![""]),
            ("/run/hub.sock,unix:", vec!["unix:/run/hub.sock", "unix:"]),
        ] {
            assert_eq!(HubAddresses::read(text).list(), expected, "{text}");
        }
    }

    #[test]
    fn hubs_have_names_for_ears_that_tell_them_apart() {
        let all = [
            "unix:",
            "http://127.0.0.1:7117",
            "https://hub.example.org",
            "https://hub.example.org:8443/",
            "unix:/run/x.sock",
        ];
        let names = [
            "your own hub",
            "port 7117",
            "hub.example.org",
            "hub.example.org port 8443",
            "unix:/run/x.sock",
        ];
        assert_eq!(named(&all), names);
        assert_eq!(
            named(&["wss://a.example", "https://a.example", "wss://a.example"]),
            ["hub 1, a.example", "hub 2, a.example"]
        );
    }

    #[test]
    fn a_token_is_for_one_hub_and_never_told_to_another() {
        let two = ["https://a.example", "https://b.example"];
        assert_eq!(with_token(&two[..1], "t"), Some(vec![Some("t".to_owned())]));
        assert_eq!(with_token(&two, "t,u"), Some(vec![Some("t".to_owned()), Some("u".to_owned())]));
        assert_eq!(with_token(&two, ",u"), Some(vec![None, Some("u".to_owned())]));
        assert_eq!(with_token(&two, ""), Some(vec![None, None]));
        assert_eq!((with_token(&two, "t"), with_token(&two[..1], "t,u")), (None, None));
    }
}
