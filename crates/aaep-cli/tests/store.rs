//! `aaep sessions` and `aaep audit` as a person or a script uses them, on a small store.

#[path = "store/audit.rs"]
mod audit;
#[path = "store/sessions.rs"]
mod sessions;
#[path = "store/support.rs"]
mod support;
