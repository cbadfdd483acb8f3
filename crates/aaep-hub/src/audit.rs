//! The audit log: every ask, reply and outcome, in lines that can be read without this code.
//!
//! `audit.jsonl` has one JSON object on each line, in ASCII, with these members in this order: `seq`,
//! `time`, `kind`, `session_id`, `reply_token_sha256`, `who`, `outcome`, `details_hash`, `previous`, `hash`.
//! `hash` is the SHA-256 of the line without its last member, that is, of the text up to `,"hash":` plus a
//! closing brace. `previous` is the `hash` of the line before, or sixty-four zeros in the first. So no line
//! in the middle can be changed, removed or moved unnoticed.
//!
//! The words of people and of the asks are not in the file. They are in the store next to it, and the line
//! has only `details_hash`, the SHA-256 of thirty-two random bytes and the words: the words can be deleted
//! without breaking the chain, and nobody can guess them from the hash.
//!
//! A reply token appears only as its SHA-256, from the first entry to the last: reading the log while an ask
//! is open reveals no token, and the entries of one ask can still be matched.
//!
//! The code never repairs a log that someone changed, and holds no more than one line in memory.

mod chain;
mod file;
mod line;
mod show;

pub use chain::{Broken, BrokenReason, MAX_LINE_BYTES, VerifiedLog, verify};
pub use file::LOG_BROKEN;
pub(crate) use file::{
    AdoptError, AdoptedLog, AuditFile, KeptLog, KnownLog, adopt, look, set_aside,
};
pub use line::{AuditLine, Entry, Hash};
pub(crate) use line::{ChainHead, details_hash, new_salt};
pub use show::{Details, ExportError, Show, Shown, export, show, show_after};
