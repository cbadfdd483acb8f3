//! Why a document was not fetched, in words that say what to do.

use std::fmt;
use std::io;

use aaep_http::{AddressError, CallError, HttpAddress};

use super::{MAX_BYTES, MAX_REDIRECTS, TIMEOUT};
use crate::keys::private_file::reason;

/// Why a document was not fetched.
#[derive(Debug)]
pub enum FetchError {
    /// The address cannot be used.
    Address(AddressError),
    /// The address is plain HTTP to another machine.
    PlainHttp(String),
    /// The host has no address that may be used.
    NoAddress(String),
    /// The host does not accept the connection.
    Connect(io::Error),
    /// The operating system has no roots of trust.
    NoRoots,
    /// The certificate of the host is not trusted, or the host does not speak TLS.
    Tls(io::Error),
    /// The host does not speak HTTP, or closed the connection.
    Http(CallError),
    /// The host answered with a status other than 200.
    Status(u16),
    /// The document has more than [`MAX_BYTES`].
    TooLarge,
    /// The host took longer than [`TIMEOUT`].
    TooSlow,
    /// The host redirects to another host, or away from TLS.
    RedirectElsewhere(String),
    /// The host redirects more than [`MAX_REDIRECTS`] times.
    TooManyRedirects,
}

impl From<AddressError> for FetchError {
    fn from(error: AddressError) -> Self {
        FetchError::Address(error)
    }
}

impl FetchError {
    /// Why this address could not be called.
    pub(super) fn of_call(address: &HttpAddress, error: CallError) -> Self {
        match error {
            CallError::PlainHttp => FetchError::PlainHttp(address.origin()),
            CallError::Lookup(_) | CallError::NoAddress => {
                FetchError::NoAddress(address.host().to_owned())
            }
            CallError::Connect(error) => FetchError::Connect(error),
            CallError::NoRoots => FetchError::NoRoots,
            CallError::Tls(error) => FetchError::Tls(error),
            CallError::TooSlowToConnect | CallError::TooSlowToAnswer => FetchError::TooSlow,
            CallError::TooLarge => FetchError::TooLarge,
            CallError::Request => FetchError::Address(AddressError::Form),
            CallError::Token
            | CallError::CutOff(_)
            | CallError::NotHttp(_)
            | CallError::Strange(_) => FetchError::Http(error),
        }
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FetchError::Address(error) => error.fmt(f),
            FetchError::PlainHttp(origin) => write!(
                f,
                "{} is plain HTTP to another machine, where anyone on the way can change what is \
                 fetched. Use an https address, or --insecure-allow-plain-http if nothing depends \
                 on it",
                aaep::printable(origin)
            ),
            FetchError::NoAddress(host) => write!(
                f,
                "The host {} is not known, or may not be called like this. Check the name and \
                 the network",
                aaep::printable(host)
            ),
            FetchError::Connect(error) => write!(
                f,
                "The host does not answer: {}. Check the name and the port, and that it runs",
                reason(error)
            ),
            FetchError::NoRoots => f.write_str(
                "This computer has no certificates to trust. Install its ca-certificates package, \
                 or name a file of them in SSL_CERT_FILE",
            ),
            FetchError::Tls(error) => write!(
                f,
                "No secure connection: {}. If the host uses a certificate of its own \
                 organisation, name the file of that authority in SSL_CERT_FILE",
                aaep::printable(&error.to_string())
            ),
            FetchError::Http(error) => write!(
                f,
                "The host does not answer in HTTP: {}. Check the port, and try again",
                aaep::printable(&error.to_string())
            ),
            FetchError::Status(status) => write!(
                f,
                "The host answered with status {status}. Check the address, and that a manifest \
                 is published there"
            ),
            FetchError::TooLarge => write!(
                f,
                "The document has more than {MAX_BYTES} bytes and was not read. Check that the \
                 address is that of a manifest or a key set"
            ),
            FetchError::TooSlow => write!(
                f,
                "The host took longer than {} seconds. Try again later",
                TIMEOUT.as_secs()
            ),
            FetchError::RedirectElsewhere(to) => write!(
                f,
                "The host sends us to another place, {}, which is not followed. If that is the \
                 right one, ask there directly",
                crate::quoted(to)
            ),
            FetchError::TooManyRedirects => write!(
                f,
                "The host redirects more than {MAX_REDIRECTS} times. Tell the people who run it"
            ),
        }
    }
}

impl std::error::Error for FetchError {}
