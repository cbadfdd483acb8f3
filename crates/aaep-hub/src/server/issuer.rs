//! The keys of an issuer of signed tokens, fetched at intervals so that no request waits for them.

use std::time::Duration;

use super::stop::StopSignal;
use crate::access::{FetchedJwks, IssuerKeysError};
use aaep_trust::fetch::{AddressError, Client, HttpAddress};

/// How often the keys are fetched. A new key is accepted, and a withdrawn one refused, within this time plus
/// the time for which [`crate::access::Access`] keeps them.
const FETCH_EVERY: Duration = Duration::from_mins(1);

/// Fetches the keys of an issuer over the network.
#[derive(Debug, Clone)]
pub(super) struct IssuerKeyFetcher {
    address: HttpAddress,
    keys: FetchedJwks,
    client: Client,
}

impl IssuerKeyFetcher {
    /// Takes the address of the keys. Nothing is fetched yet.
    pub(super) fn new(uri: &str) -> Result<Self, AddressError> {
        let address = HttpAddress::parse(uri)?;
        Ok(IssuerKeyFetcher { address, keys: FetchedJwks::default(), client: Client::new() })
    }

    /// The newest keys.
    pub(super) fn keys(&self) -> FetchedJwks {
        self.keys.clone()
    }

    /// Fetches the keys. Failures are logged, and the earlier keys stay valid for a while.
    pub(super) async fn fetch(&self) {
        let fetched = self.client.get(&self.address, "application/jwk-set+json, application/json");
        let fetched = fetched.await.map(|bytes| bytes.to_vec());
        if let Err(error) = &fetched {
            tracing::warn!(%error, "The keys of the issuer could not be fetched.");
        }
        self.keys.put(fetched.map_err(|error| IssuerKeysError::Unreadable(error.to_string())));
    }

    /// Fetches the keys at intervals until the hub stops.
    pub(super) async fn keep_fetching(self, mut stop: StopSignal) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(FETCH_EVERY) => self.fetch().await,
                () = stop.finishing() => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;
    use crate::access::JwksSource as _;

    #[tokio::test]
    async fn keys_come_from_the_network_and_a_failure_is_said() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let uri = format!("http://{}/keys", listener.local_addr().expect("an address"));
        let issuer = IssuerKeyFetcher::new(&uri).expect("an address");
        assert!(issuer.keys().fetch().is_err(), "nothing was fetched yet");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut head = [0; 1024];
            assert!(stream.read(&mut head).expect("a request") > 0);
            let body = r#"{"keys":[]}"#;
            let length = body.len();
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}")
                .expect("sent");
        });
        issuer.fetch().await;
        server.join().expect("no panic");
        assert_eq!(issuer.keys().fetch(), Ok(br#"{"keys":[]}"#.to_vec()));
        issuer.fetch().await;
        assert!(matches!(issuer.keys().fetch(), Err(IssuerKeysError::Unreadable(_))));
    }

    #[test]
    fn an_invalid_address_is_refused() {
        assert!(IssuerKeyFetcher::new("keys.json").is_err());
    }
}
