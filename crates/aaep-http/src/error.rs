//! Why a request got no answer.

use std::error::Error;
use std::fmt;
use std::io;

/// Why a request got no answer. Nothing in it is a secret.
#[derive(Debug)]
pub enum CallError {
    /// Clear text would leave this machine.
    PlainHttp,
    /// The token has characters that a header cannot have.
    Token,
    /// The host's name cannot be looked up.
    Lookup(io::Error),
    /// The host has no address that may be called.
    NoAddress,
    /// The host does not accept the connection.
    Connect(io::Error),
    /// The operating system has no roots of trust.
    NoRoots,
    /// The certificate is not trusted, or the host does not speak TLS.
    Tls(io::Error),
    /// Connecting took too long.
    TooSlowToConnect,
    /// The answer took too long.
    TooSlowToAnswer,
    /// The request cannot be written in HTTP.
    Request,
    /// The connection ended before the answer was complete.
    CutOff(hyper::Error),
    /// The answer is not valid HTTP.
    NotHttp(hyper::Error),
    /// The answer is valid HTTP that nobody should send.
    Strange(&'static str),
    /// The body of the answer is longer than allowed.
    TooLarge,
}

impl From<hyper::Error> for CallError {
    fn from(error: hyper::Error) -> Self {
        let mut cause: Option<&(dyn Error + 'static)> = error.source();
        let mut is_broken_form = error.is_parse();
        while let Some(it) = cause {
            let kind = it.downcast_ref::<io::Error>().map(io::Error::kind);
            is_broken_form |=
                matches!(kind, Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData));
            cause = it.source();
        }
        if is_broken_form { CallError::NotHttp(error) } else { CallError::CutOff(error) }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |f: &mut fmt::Formatter<'_>, why: &dyn fmt::Display| {
            f.write_str(&aaep::printable(&why.to_string()))
        };
        match self {
            CallError::PlainHttp => f.write_str("plain HTTP does not leave this machine"),
            CallError::Token => f.write_str("the token has characters that no token has"),
            CallError::NoAddress => f.write_str("the host has no address that may be called"),
            CallError::NoRoots => f.write_str("this machine trusts no certificate authority"),
            CallError::TooSlowToConnect | CallError::TooSlowToAnswer => f.write_str("timed out"),
            CallError::Request => f.write_str("its address cannot be asked for"),
            CallError::Strange(why) => f.write_str(why),
            CallError::TooLarge => f.write_str("the answer is larger than is taken"),
            CallError::Lookup(error) | CallError::Connect(error) | CallError::Tls(error) => {
                shown(f, error)
            }
            CallError::CutOff(error) | CallError::NotHttp(error) => shown(f, error),
        }
    }
}

impl Error for CallError {}
