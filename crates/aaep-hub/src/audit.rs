//! The audit log: every question, reply and outcome, in lines that are readable without this code.
//!
//! `audit.jsonl` has one JSON object a line, in ASCII, with these members in this order: `seq`,
//! `time`, `kind`, `session_id`, `reply_token_sha256`, `who`, `outcome`, `details_hash`, `previous`,
//! `hash`. `hash` is the SHA-256 of the line without its last member, that is of the text up to
//! `,"hash":` and a closing brace. `previous` is the `hash` of the line before, and sixty-four
//! zeros in the first. So nothing in the middle can be changed, left out or moved unnoticed.
//!
//! What people were asked and said is not in the file. It is in the store beside it, and the line
//! has only `details_hash`, the SHA-256 of thirty-two random bytes and the words: they can be
//! deleted without breaking the chain, and nobody can guess them from the hash.
//!
//! A reply token appears only as its SHA-256, from the first entry to the last: whoever reads the
//! log while a question is open learns no token, and the entries of one question still belong
//! together.
//!
//! Never repairs a log that someone changed, and holds no more than a line of it in memory.

mod chain;
mod file;
mod line;
mod show;

pub use chain::{Broken, MAX_LINE_BYTES, Verified, Why, verify};
pub(crate) use file::{AdoptError, Adopted, AuditFile, LOG_BROKEN, adopt, look, set_aside};
pub use line::{Entry, Hash, Line};
pub(crate) use line::{Head, details_hash, new_salt};
pub use show::{Details, ExportError, Show, Shown, export, show, show_after};
