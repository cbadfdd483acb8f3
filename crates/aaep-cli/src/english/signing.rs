//! `aaep keys`: keys that sign, and what to do when they change.

use std::fmt::Display;

use crate::console::count;

pub(crate) const MORE_HELP: &str = "More: aaep keys --help";
pub(crate) const TIME_NOT_WRITTEN: &str = "a time that cannot be written";

pub(crate) fn retired(key: &impl Display) -> String {
    format!(
        "Key {key} is retired. It is no longer published, and its private half is deleted. Manifests that \
         it signed are no longer believed."
    )
}

pub(crate) fn made(key: &impl Display, folder: &str) -> String {
    format!("Made key {key} in {folder}. It signs from now on.")
}

pub(crate) fn previous_stays(days: u64) -> String {
    let days = count(days, "day");
    format!("The previous key no longer signs. It stays published for {days}.")
}

pub(crate) fn tell_subscribers(key: &impl Display) -> String {
    format!(
        "Subscribers that know this producer by the previous key must accept the new one: tell them its \
         thumbprint, {key}."
    )
}

pub(crate) fn no_keys(folder: &str) -> String {
    format!("There is no key in {folder}. Make one with: aaep keys new")
}

pub(crate) fn keys(number: u64, folder: &str) -> String {
    format!("{} in {folder}.", count(number, "key"))
}

/// The state of a key; each is used within a sentence.
pub(crate) const SIGNS_NOW: &str = "signs now";

pub(crate) fn published_until(at: &str) -> String {
    format!("no longer signs, published until {at}")
}

pub(crate) fn retired_since(at: &str) -> String {
    format!("retired since {at}")
}

pub(crate) fn key(key: &impl Display, algorithm: &impl Display, made: &str, state: &str) -> String {
    format!("Key {key}, {algorithm}, made {made}: {state}.")
}
