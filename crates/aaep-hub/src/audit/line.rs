//! One line of the audit log: writing, hashing and reading it.

use std::fmt::{self, Write as _};

use aaep::{ReplyToken, SessionId, Timestamp};
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// An entry to be written to the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When it happened.
    pub unix_us: i64,
    /// What happened, such as `asked`, `reply` or `settled`.
    pub kind: &'static str,
    /// The session in which it happened.
    pub session_id: Option<SessionId>,
    /// The ask that it concerns. Only the hash of the token is written.
    pub reply_token: Option<ReplyToken>,
    /// Who did it: the name of an agent or principal.
    pub who: Option<String>,
    /// The result, without words of people.
    pub outcome: String,
    /// The words of the ask or of the person. They are not part of the line.
    pub details: Option<String>,
}

/// A SHA-256, written in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The hash that the first line has as `previous`.
    pub const ZERO: Hash = Hash([0; 32]);

    /// The hash of these parts, concatenated.
    pub(crate) fn of(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        Hash(hasher.finalize().into())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A line of the log, parsed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AuditLine {
    /// Its number: one more than that of the line before.
    pub seq: u64,
    /// When it happened, RFC 3339 with milliseconds.
    pub time: String,
    /// What happened.
    pub kind: String,
    /// The session in which it happened.
    pub session_id: Option<String>,
    /// The ask that it concerns: the SHA-256 of its token.
    pub reply_token_sha256: Option<String>,
    /// Who did it.
    pub who: Option<String>,
    /// The result.
    pub outcome: String,
    /// The SHA-256 of a salt and the words.
    pub details_hash: Option<String>,
    /// The hash of the line before.
    pub previous: String,
    /// The hash of this line.
    pub hash: String,
}

/// The end of the chain, which the next line follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChainHead {
    pub(crate) seq: u64,
    pub(crate) hash: Hash,
}

impl ChainHead {
    /// Writes the next line, with its line feed, and moves on to it.
    pub(crate) fn write(&mut self, entry: &Entry, details_hash: Option<Hash>) -> Vec<u8> {
        let seq = self.seq + 1;
        let time = Timestamp::from_unix_ms(entry.unix_us.div_euclid(1000));
        let token = entry.reply_token.as_ref().map(|it| Hash::of(&[it.as_str().as_bytes()]));
        let mut line = format!("{{\"seq\":{seq}");
        member(&mut line, "time", Some(time.as_ref().map_or("unknown", Timestamp::as_str)));
        member(&mut line, "kind", Some(entry.kind));
        member(&mut line, "session_id", entry.session_id.as_ref().map(SessionId::as_str));
        member(&mut line, "reply_token_sha256", token.map(|it| it.to_string()).as_deref());
        member(&mut line, "who", entry.who.as_deref());
        member(&mut line, "outcome", Some(&entry.outcome));
        member(&mut line, "details_hash", details_hash.map(|it| it.to_string()).as_deref());
        member(&mut line, "previous", Some(&self.hash.to_string()));
        let hash = Hash::of(&[line.as_bytes(), b"}"]);
        member(&mut line, "hash", Some(&hash.to_string()));
        line.push_str("}\n");
        *self = ChainHead { seq, hash };
        line.into_bytes()
    }
}

/// The hash of the words with their salt.
pub(crate) fn details_hash(salt: &[u8; 32], words: &str) -> Hash {
    Hash::of(&[salt, words.as_bytes()])
}

/// Thirty-two random bytes.
pub(crate) fn new_salt() -> Result<[u8; 32], getrandom::Error> {
    let mut salt = [0; 32];
    getrandom::fill(&mut salt)?;
    Ok(salt)
}

/// Writes a member as JSON in printable ASCII: logs are read in terminals, and text from a peer must not
/// control one.
pub(super) fn member(line: &mut String, name: &str, value: Option<&str>) {
    line.push_str(",\"");
    line.push_str(name);
    line.push_str("\":");
    let Some(value) = value else {
        line.push_str("null");
        return;
    };
    line.push('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => line.extend(['\\', c]),
            ' '..='~' => line.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(line, "\\u{unit:04x}").expect("writing to a string cannot fail");
                }
            }
        }
    }
    line.push('"');
}
