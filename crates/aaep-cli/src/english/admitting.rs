//! `aaep tokens`: tokens, what they allow, and why one cannot be made.

use std::fmt::Display;

use crate::console::count;

pub(crate) const MORE_HELP: &str = "More: aaep tokens --help";
pub(crate) const MORE_HELP_NEW: &str = "More: aaep tokens new --help";
pub(crate) const SAY_ANOTHER_FILE: &str = "Say another place with --file.";

pub(crate) const SCOPE_NAMES: &str = "use listen, reply, publish or admin";

pub(crate) const REPLY_NEEDS_LISTEN: (&str, &str) =
    ("to reply, a program must hear the questions, so reply needs listen", "Add: --scope listen");

pub(crate) const EXPIRY_TOO_FAR: (&str, &str) =
    ("the expiry is too far away", "Choose fewer days.");

/// A new token and its secret. `token` is a sentence.
pub(crate) fn made(token: &str, hears_yours: bool, secret: &str) -> String {
    let hears = if hears_yours {
        ""
    } else {
        "It hears none of your own agents. For one that does, add: --for me\n"
    };
    format!(
        "Made token {token}\n{hears}It is shown here once and never again. Copy it now to the program that \
         will use it:\n{secret}"
    )
}

pub(crate) fn no_tokens(file: &str) -> String {
    format!(
        "There is no token in {file}. Make one with: aaep tokens new --name NAME --scope listen"
    )
}

pub(crate) fn tokens(number: u64, file: &str) -> String {
    format!("{} in {file}.", count(number, "token"))
}

/// `token` is a sentence.
pub(crate) fn listed(token: &str) -> String {
    format!("Token {token}")
}

pub(crate) const NO_SUCH_ID: (&str, &str) =
    ("there is no token with this id", "For the ids: aaep tokens list");

pub(crate) fn revoked(id: &impl Display, name: &impl Display) -> String {
    format!("Token {id}, {name}, is revoked. Programs that use it are refused from now on.")
}

/// The sentences about a token. They follow the word token.
pub(crate) fn identity(id: &impl Display, name: &impl Display, last_four: &impl Display) -> String {
    format!("{id}, {name}, ending in {last_four}.")
}

pub(crate) fn owned_by(owners: &str) -> String {
    format!("For {owners}.")
}

pub(crate) const OWNED_BY_NONE: &str = "For nobody else.";

pub(crate) fn allows(scopes: &str) -> String {
    format!("Allows {scopes}.")
}

pub(crate) const HEARS_ALL: &str = "Hears every agent of everybody.";
pub(crate) const HEARS_OWN: &str = "Hears its own agents.";
pub(crate) const HEARS_NONE: &str = "Hears no agent.";

pub(crate) fn hears_agents_of(owners: &str) -> String {
    format!("Hears the agents of {owners}.")
}

pub(crate) fn hears(agents: &str) -> String {
    format!("Hears {agents}.")
}

pub(crate) fn speaks_as(names: &str) -> String {
    format!("Speaks only as {names}.")
}

pub(crate) fn created(at: &impl Display) -> String {
    format!("Made {at}.")
}

pub(crate) fn expired(at: &impl Display) -> String {
    format!("Expired {at}.")
}

pub(crate) fn expires(at: &impl Display) -> String {
    format!("Expires {at}.")
}

pub(crate) const NEVER_EXPIRES: &str = "Never expires.";
