//! Why a request was not let in (§5.5.3, §8.2.7), for the log and for the peer.
//!
//! The log gets the reason. The peer always gets the same sentence, whatever was wrong with its credentials,
//! in the spirit of ruling 12: a difference would help an attacker who guesses.

use std::fmt;

use aaep::handshake::ReasonCode;

use crate::access::jwt::JwtError;
use crate::access::principal::Scope;
use crate::access::tokens::TokensError;

/// When to try again if the hub itself has a problem.
const RETRY_AFTER_SECONDS: u64 = 30;

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessError {
    /// The request carries no credentials, but requests from its address need them.
    CredentialsRequired,
    /// A proxy forwarded the request without credentials. It may come from anywhere, so it does not count as
    /// the local user, whatever the socket says.
    Forwarded,
    /// The request carries more than one credential: two headers, or a header and a query parameter.
    SeveralCredentials,
    /// The credential is not of the form `Bearer TOKEN`.
    Malformed,
    /// The header uses a scheme other than Bearer.
    UnsupportedScheme,
    /// The credential is longer than any valid one.
    TooLong,
    /// The token is in the address, where logs and histories keep it, and the configuration does not allow
    /// that.
    QueryNotAllowed,
    /// The request arrived over an unencrypted connection from another machine.
    PlainRemote,
    /// No token of this hub has this secret. It was revoked, or it belongs to another hub.
    UnknownToken,
    /// The token has expired.
    ExpiredToken,
    /// The token file cannot be read, so no token can be accepted.
    Tokens(TokensError),
    /// A signed token was refused.
    Jwt(JwtError),
    /// The certificate is valid, but no rule in the configuration matches it.
    UnknownCertificate,
    /// The configuration does not know this user of this machine.
    UnknownUser(u32),
    /// The principal is known, but may not do this.
    ScopeMissing(Scope),
    /// The credential is wrong, and its source has sent too many wrong ones.
    TooManyFailures {
        /// How long to wait before trying again.
        retry_after_seconds: u64,
    },
}

impl AccessError {
    /// Whether the request carried a wrong credential.
    pub(crate) fn is_wrong_credential(&self) -> bool {
        match self {
            AccessError::SeveralCredentials
            | AccessError::Malformed
            | AccessError::UnsupportedScheme
            | AccessError::TooLong
            | AccessError::QueryNotAllowed
            | AccessError::UnknownToken
            | AccessError::ExpiredToken
            | AccessError::UnknownCertificate
            | AccessError::UnknownUser(_) => true,
            AccessError::Jwt(error) => !matches!(error, JwtError::Keys(_)),
            AccessError::CredentialsRequired
            | AccessError::Forwarded
            | AccessError::PlainRemote
            | AccessError::Tokens(_)
            | AccessError::ScopeMissing(_)
            | AccessError::TooManyFailures { .. } => false,
        }
    }

    /// The reason code in the handshake (§5.5.3).
    pub fn reason_code(&self) -> ReasonCode {
        match self {
            AccessError::CredentialsRequired | AccessError::Forwarded => {
                ReasonCode::AuthenticationRequired
            }
            // The fault is the hub's own.
            AccessError::Tokens(_) => ReasonCode::Unknown,
            _ => ReasonCode::AuthorizationDenied,
        }
    }

    /// How long to wait before trying again, if waiting helps.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            AccessError::TooManyFailures { retry_after_seconds } => Some(*retry_after_seconds),
            AccessError::Tokens(_) => Some(RETRY_AFTER_SECONDS),
            _ => None,
        }
    }

    /// The status of the HTTP response.
    pub fn status(&self) -> u16 {
        match self {
            AccessError::ScopeMissing(_) => 403,
            AccessError::Tokens(_) => 503,
            AccessError::TooManyFailures { .. } => 429,
            _ => 401,
        }
    }

    /// The `WWW-Authenticate` header of the response, where its status needs one.
    pub fn challenge(&self) -> Option<&'static str> {
        match (self.status(), self.reason_code()) {
            (401, ReasonCode::AuthenticationRequired) => Some("Bearer realm=\"aaep\""),
            (401, _) => Some("Bearer realm=\"aaep\", error=\"invalid_token\""),
            _ => None,
        }
    }

    /// The message for the peer. About its credentials it says only that they were not accepted.
    pub fn public_message(&self) -> String {
        match self {
            AccessError::CredentialsRequired | AccessError::Forwarded => {
                "Credentials are required. Ask the person who runs this hub for a token.".to_owned()
            }
            AccessError::ScopeMissing(scope) => {
                format!("You may not do this. Ask for a token with the scope {scope}.")
            }
            AccessError::Tokens(_) => {
                "The hub cannot check tokens at the moment. Its log says why. Try again later."
                    .to_owned()
            }
            AccessError::TooManyFailures { .. } => {
                "The credentials were not accepted, and too many wrong ones came from your address. \
                 Wait, then send the right one; it is let in at once."
                    .to_owned()
            }
            _ => "The credentials were not accepted. Ask the person who runs this hub for a new \
                  token; the log of the hub says what was wrong."
                .to_owned(),
        }
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AccessError::CredentialsRequired => {
                "No credentials came. Send a token in the header Authorization, as Bearer."
            }
            AccessError::Forwarded => {
                "A proxy passed the request on without credentials. Let the client send a token."
            }
            AccessError::SeveralCredentials => "More than one credential came. Send exactly one.",
            AccessError::Malformed => {
                "The credential cannot be read. Send the header Authorization with Bearer, a space, and the token."
            }
            AccessError::UnsupportedScheme => {
                "The header Authorization has an unknown scheme. Use Bearer."
            }
            AccessError::TooLong => "The credential is too long to be one. Send the token alone.",
            AccessError::QueryNotAllowed => {
                "A token came in the address. Send it in the header Authorization, or set token_in_query."
            }
            AccessError::PlainRemote => {
                "A request came unencrypted from another machine. Connect with https."
            }
            AccessError::UnknownToken => {
                "No token of this hub has this secret. Make a new one if it was revoked."
            }
            AccessError::ExpiredToken => "The token has expired. Make a new one.",
            AccessError::UnknownCertificate => {
                "The configuration knows nobody by this client certificate. Add an entry for it."
            }
            AccessError::UnknownUser(uid) => {
                return write!(
                    f,
                    "The configuration does not know the user {uid}. Add an entry to access.users, if that is wanted."
                );
            }
            AccessError::TooManyFailures { .. } => {
                "Too many wrong credentials come from there. Find the program that sends them."
            }
            AccessError::Tokens(error) => return error.fmt(f),
            AccessError::Jwt(error) => return error.fmt(f),
            AccessError::ScopeMissing(scope) => {
                return write!(
                    f,
                    "The scope {scope} is missing. Make a token that has it, if that is wanted."
                );
            }
        })
    }
}

impl std::error::Error for AccessError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bad_credential_gets_the_same_answer() {
        let refused = [
            AccessError::SeveralCredentials,
            AccessError::Malformed,
            AccessError::UnsupportedScheme,
            AccessError::TooLong,
            AccessError::UnknownToken,
            AccessError::ExpiredToken,
            AccessError::Jwt(JwtError::Signature),
            AccessError::Jwt(JwtError::Expired),
            AccessError::UnknownCertificate,
            AccessError::UnknownUser(1001),
        ];
        let answer = |error: &AccessError| {
            (error.status(), error.reason_code(), error.challenge(), error.public_message())
        };
        for error in &refused {
            assert_eq!(answer(error), answer(&refused[0]), "{error}");
        }
    }

    #[test]
    fn nobody_and_not_allowed_are_told_apart() {
        let nobody = AccessError::CredentialsRequired;
        assert_eq!(
            (nobody.status(), nobody.reason_code()),
            (401, ReasonCode::AuthenticationRequired)
        );
        let denied = AccessError::ScopeMissing(Scope::Reply);
        assert_eq!((denied.status(), denied.reason_code()), (403, ReasonCode::AuthorizationDenied));
        assert_eq!(denied.challenge(), None);
        assert!(denied.public_message().contains("reply"));
    }
}
