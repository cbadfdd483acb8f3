//! `aaep allow`: which programs may answer, and under what.

use std::fmt::Display;

use crate::console::count;

pub(crate) const MORE_HELP: &str = "More: aaep allow --help";

pub(crate) const REVOKE_WHAT: (&str, &str) =
    ("--revoke needs the name of a program", "Name one. To see them: aaep allow");

pub(crate) fn was_not_allowed(program: &impl Display) -> (String, &'static str) {
    (format!("{program} was not allowed"), "To see what is allowed: aaep allow")
}

pub(crate) fn allowed(program: &impl Display, is_new: bool) -> String {
    let already = if is_new { "" } else { " already" };
    format!(
        "Programs on this machine that call themselves {program} may{already} answer your agents. \
         To take that back: aaep allow {program} --revoke"
    )
}

pub(crate) fn only_listens(program: &impl Display) -> String {
    format!("{program} only listens from now on.")
}

pub(crate) const NONE_ALLOWED: &str =
    "No program except your own may answer your agents. To allow one: aaep allow NAME";

pub(crate) fn programs(number: u64) -> String {
    format!("{} may answer your agents.", count(number, "program"))
}

/// How an allowed program is recognised; each is used within a sentence.
pub(crate) const BY_NAME: &str = "by its name";

pub(crate) fn by_address(last_four: &impl Display) -> String {
    format!("by its address, which ends in {last_four}")
}

pub(crate) fn program(name: &impl Display, since: &impl Display, by: &str) -> String {
    format!("{name}, allowed {since}, {by}.")
}

pub(crate) fn earlier_address_ended(program: &impl Display) -> String {
    format!("The earlier address of {program} no longer works.")
}

/// Precedes the address.
pub(crate) fn give_address(program: &impl Display) -> String {
    format!(
        "Give this address to {program} and to nothing else: a program that has it hears your agents, \
         answers them as you, and can tell them what to do. It works on this machine, and it is not shown \
         again. To take it back: aaep allow {program} --revoke"
    )
}

/// `example` is an address that can be used.
pub(crate) fn not_local_http(hub: &impl Display, example: &str) -> (String, String) {
    (
        format!("{hub} is not an HTTP address on this machine"),
        format!("Say it like --hub {example}. For a hub elsewhere, make a token: aaep tokens new"),
    )
}
