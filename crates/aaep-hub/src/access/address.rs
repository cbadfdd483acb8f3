//! Addresses with a secret in them: `/for/SECRET/events` and the like (ruling 37).
//!
//! Some programs can neither send a header nor give a name; all that a person can give them is an address.
//! The secret in that address is a credential like any other: only its hash is kept, and it is never logged.
//! This file finds the secret in a path; it does not check whether the secret is valid.

/// The start of every path that contains a secret.
const PREFIX: &str = "/for/";

/// A path that contains a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct SecretPath<'p> {
    /// The secret, exactly as written.
    pub(crate) secret: &'p str,
    /// The path after the secret, starting with its slash.
    pub(crate) rest: &'p str,
}

impl<'p> SecretPath<'p> {
    /// Splits a path. Returns `None` if the path does not contain a secret.
    pub(crate) fn find(path: &'p str) -> Option<Self> {
        let after = path.strip_prefix(PREFIX)?;
        let (secret, rest) = after.split_at(after.find('/').unwrap_or(after.len()));
        Some(SecretPath { secret, rest })
    }
}

/// The path prefix that belongs to this secret.
pub fn path_for_secret(secret: &str) -> String {
    format!("{PREFIX}{secret}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(path: &str) -> Option<(&str, &str)> {
        SecretPath::find(path).map(|it| (it.secret, it.rest))
    }

    #[test]
    fn a_secret_is_found_in_a_path_and_nowhere_else() {
        assert_eq!(find("/for/aaep_x/events"), Some(("aaep_x", "/events")));
        assert_eq!(find("/for/aaep_x"), Some(("aaep_x", "")));
        assert_eq!(find("/for//events"), Some(("", "/events")));
        let made = format!("{}/messages", path_for_secret("aaep_x"));
        assert_eq!(find(&made), Some(("aaep_x", "/messages")));
        for path in ["/events", "/for", "/fort/x/events", "/aaep/v1/for/x", ""] {
            assert_eq!(find(path), None, "{path}");
        }
    }
}
