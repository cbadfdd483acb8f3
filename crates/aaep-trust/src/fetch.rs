//! Fetching one small document over HTTP/1.1, for manifests and key sets (§5.10.2, §8.2.8, ruling 28).
//!
//! A fetch takes at most ten seconds and 256 KiB, follows redirects within one origin only, and uses TLS except
//! on this machine. Certificates are checked against the operating system's roots, where an organisation can add
//! its own and the user can remove one.

mod error;

use std::sync::Arc;
use std::time::Duration;

use aaep_http::{CallConnection, CallError, CallOptions, HttpCall, HttpCaller, tls_with_roots};
use bytes::Bytes;
use http::header::{ACCEPT, HeaderMap, HeaderValue, LOCATION};
use http::{Method, StatusCode};
use rustls::RootCertStore;
use tokio::time::timeout;

pub use aaep_http::{AddressError, HttpAddress};
pub use error::FetchError;

/// The largest document that is fetched, in bytes.
pub const MAX_BYTES: usize = 256 * 1024;

/// How long a fetch may take, including redirects and name lookups.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// How many redirects are followed, all within one origin.
pub const MAX_REDIRECTS: usize = 3;

/// Fetches documents.
#[derive(Debug, Clone, Default)]
pub struct Client {
    /// Roots to trust instead of the operating system's.
    roots: Option<Arc<RootCertStore>>,
    /// Whether plain HTTP may leave this machine.
    insecure_allow_plain_http: bool,
}

impl Client {
    /// A client that trusts the operating system's roots.
    pub fn new() -> Self {
        Client::default()
    }

    /// Trusts these roots and no others.
    pub fn with_roots(mut self, roots: RootCertStore) -> Self {
        self.roots = Some(Arc::new(roots));
        self
    }

    /// Lets plain HTTP leave this machine. Anyone on the network can then read and change it.
    pub fn insecure_allow_plain_http(mut self, allow: bool) -> Self {
        self.insecure_allow_plain_http = allow;
        self
    }

    /// Fetches the document at an address. `accept` is the value of the `Accept` header.
    pub async fn get(&self, address: &HttpAddress, accept: &str) -> Result<Bytes, FetchError> {
        let fetched = timeout(TIMEOUT, self.follow(address.clone(), accept)).await;
        fetched.unwrap_or_else(|_| Err(FetchError::TooSlow))
    }

    /// Like [`Client::get`], for a program without an async runtime.
    ///
    /// # Panics
    /// When called within an async runtime; use [`Client::get`] there.
    pub fn get_blocking(&self, address: &HttpAddress, accept: &str) -> Result<Bytes, FetchError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(FetchError::Connect)?;
        let result = runtime.block_on(self.get(address, accept));
        // A name lookup that never ends must not block the program.
        runtime.shutdown_background();
        result
    }

    async fn follow(&self, mut address: HttpAddress, accept: &str) -> Result<Bytes, FetchError> {
        for _ in 0..=MAX_REDIRECTS {
            let caller = self.caller(&address);
            let answer = match caller {
                Ok(caller) => exchange(&caller, None, accept).await,
                Err(error) => Err(error),
            };
            match answer.map_err(|error| FetchError::of_call(&address, error))? {
                FetchAnswer::Document(bytes) => return Ok(bytes),
                FetchAnswer::Status(status) => return Err(FetchError::Status(status)),
                FetchAnswer::Redirect(to) => {
                    let there = address.pointed_to(&to);
                    let elsewhere =
                        || FetchError::RedirectElsewhere(to.chars().take(200).collect());
                    address = there.ok_or_else(elsewhere)?;
                }
            }
        }
        Err(FetchError::TooManyRedirects)
    }

    fn caller(&self, address: &HttpAddress) -> Result<HttpCaller, CallError> {
        let roots = self.roots.as_ref().filter(|_| address.is_https()).map(Arc::clone);
        let options = CallOptions {
            tls: roots.map(tls_with_roots).transpose()?,
            insecure_allow_plain_http: self.insecure_allow_plain_http,
            connect_timeout: TIMEOUT,
            answer_timeout: TIMEOUT,
            ..CallOptions::default()
        };
        HttpCaller::new(address, options)
    }
}

/// The answer of a server.
#[derive(Debug)]
enum FetchAnswer {
    Document(Bytes),
    Redirect(String),
    Status(u16),
}

/// Sends the request, on this connection or on a new one, and reads the answer.
async fn exchange(
    caller: &HttpCaller,
    on: Option<CallConnection>,
    accept: &str,
) -> Result<FetchAnswer, CallError> {
    let accept = HeaderValue::from_str(accept).map_err(|_| CallError::Request)?;
    let call = HttpCall {
        method: Method::GET,
        path: caller.address().path_and_query().to_owned(),
        headers: HeaderMap::from_iter([(ACCEPT, accept)]),
        body: Bytes::new(),
    };
    let answer = caller.call(on, &call).await?;
    let status = answer.response.status();
    if status.is_redirection() {
        let to = answer.response.headers().get(LOCATION).and_then(|it| it.to_str().ok());
        let status = FetchAnswer::Status(status.as_u16());
        return Ok(to.map_or(status, |to| FetchAnswer::Redirect(to.to_owned())));
    }
    if status != StatusCode::OK {
        return Ok(FetchAnswer::Status(status.as_u16()));
    }
    let whole = answer.body().whole(MAX_BYTES).await?;
    Ok(FetchAnswer::Document(whole.into()))
}

#[cfg(test)]
mod tests;
