//! A bearer token: its secret, its hash, and its entry in the token file.
//!
//! The secret is 32 random bytes. It can be neither guessed nor found by trying, so a plain SHA-256 is the
//! right way to keep it. Slow hashes with salt are for passwords, which people choose and others guess; here
//! they would only make every request slow. The secret itself is shown once, when it is made. It is never
//! stored or logged, nor compared in a time that depends on it.

use std::collections::BTreeSet;
use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::access::principal::{HeardAgents, Principal, Scopes, is_name, name_list};

/// The start of every token of a hub, so that people and scanners recognize one.
pub const TOKEN_PREFIX: &str = "aaep_";

/// The start of the id of a principal that authenticated with a token.
pub(super) const PRINCIPAL_PREFIX: &str = "token:";
const SECRET_BYTES: usize = 32;
const SECRET_CHARS: usize = 43;

/// A token's secret, for the person who receives it. Its `Debug` output does not contain it.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenSecret(String);

impl TokenSecret {
    /// Makes a secret from random bytes.
    pub(crate) fn from_bytes(bytes: [u8; SECRET_BYTES]) -> Self {
        TokenSecret(format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The secret itself, to show it once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The last four characters, to recognize it by.
    pub(crate) fn last_four(&self) -> String {
        self.0[self.0.len() - 4..].to_owned()
    }
}

impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSecret([redacted])")
    }
}

/// Whether a credential has the form of a token, of this hub or another.
pub(crate) fn is_token(credential: &str) -> bool {
    credential.strip_prefix(TOKEN_PREFIX).is_some_and(|rest| {
        rest.len() == SECRET_CHARS
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    })
}

/// The hash under which a token is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenHash([u8; 32]);

impl TokenHash {
    pub(crate) fn of(secret: &str) -> Self {
        TokenHash(Sha256::digest(secret.as_bytes()).into())
    }

    /// Whether both are equal. The time taken does not reveal how much of them is.
    pub(crate) fn is(&self, other: &TokenHash) -> bool {
        verify_slices_are_equal(&self.0, &other.0).is_ok()
    }

    pub(crate) fn to_hex(self) -> String {
        hex(&self.0)
    }

    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        let pair = |at: usize| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok();
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = pair(at)?;
        }
        Some(TokenHash(bytes))
    }
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A token without its secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// Identifies the token when it is revoked.
    pub id: String,
    /// The name that the person gave it.
    pub name: String,
    /// What it allows.
    pub scopes: Scopes,
    /// Which agents its holder hears.
    pub hears: HeardAgents,
    /// The people or groups that its holder belongs to. If empty, the holder belongs only to itself.
    pub owners: BTreeSet<String>,
    /// The only agent names that its holder may use. If empty, any name that nobody else holds.
    pub speaks_as: BTreeSet<String>,
    /// When it was made.
    pub created: Timestamp,
    /// The time from which it is refused. If absent, it never expires.
    pub expires: Option<Timestamp>,
    /// The last four characters of the secret, to recognize it by.
    pub last_four: String,
    pub(crate) hash: TokenHash,
}

impl Token {
    /// Whether it has expired at this time.
    pub fn is_expired(&self, unix_us: i64) -> bool {
        self.expires.is_some_and(|expires| expires.as_microsecond() <= unix_us)
    }

    /// Whether its secret has this hash.
    pub(crate) fn has(&self, hash: &TokenHash) -> bool {
        self.hash.is(hash)
    }

    /// The principal that holds the token.
    pub(crate) fn principal(&self) -> Principal {
        let id = format!("{PRINCIPAL_PREFIX}{}", self.id);
        let mut principal = Principal::new(id, self.name.clone(), self.scopes);
        if !self.owners.is_empty() {
            principal.owners.clone_from(&self.owners);
        }
        Principal {
            hears: self.hears.clone(),
            speaks_as: Some(self.speaks_as.clone()).filter(|it| !it.is_empty()),
            until_unix_us: self.expires.map(Timestamp::as_microsecond),
            ..principal
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// A token as a table in the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenText {
    id: String,
    name: String,
    scopes: Scopes,
    #[serde(default)]
    hears: HeardAgents,
    #[serde(default, rename = "for", skip_serializing_if = "Vec::is_empty")]
    owners: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    speaks_as: Vec<String>,
    created: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    last_four: String,
    sha256: String,
}

impl From<&Token> for TokenText {
    fn from(token: &Token) -> Self {
        TokenText {
            id: token.id.clone(),
            name: token.name.clone(),
            scopes: token.scopes,
            hears: token.hears.clone(),
            owners: token.owners.iter().cloned().collect(),
            speaks_as: token.speaks_as.iter().cloned().collect(),
            created: token.created.to_string(),
            expires: token.expires.map(|it| it.to_string()),
            last_four: token.last_four.clone(),
            sha256: token.hash.to_hex(),
        }
    }
}

impl TryFrom<TokenText> for Token {
    /// The name of the field that is wrong.
    type Error = &'static str;

    fn try_from(text: TokenText) -> Result<Self, &'static str> {
        let moment = |text: &str| text.parse::<Timestamp>().ok();
        if !is_name(&text.id) {
            return Err("id");
        }
        if !is_name(&text.name) {
            return Err("name");
        }
        let expires = match &text.expires {
            Some(expires) => Some(moment(expires).ok_or("expires")?),
            None => None,
        };
        Ok(Token {
            created: moment(&text.created).ok_or("created")?,
            hash: TokenHash::from_hex(&text.sha256).ok_or("sha256")?,
            id: text.id,
            name: text.name,
            scopes: text.scopes,
            hears: text.hears,
            owners: name_list(text.owners).map_err(|_| "for")?,
            speaks_as: name_list(text.speaks_as).map_err(|_| "speaks_as")?,
            expires,
            last_four: text.last_four,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_the_form_and_never_prints_itself() {
        let secret = TokenSecret::from_bytes([255; 32]);
        assert!(is_token(secret.reveal()), "{}", secret.reveal());
        assert_eq!(secret.reveal().len(), TOKEN_PREFIX.len() + SECRET_CHARS);
        assert!(!format!("{secret:?}").contains("____"));
    }

    #[test]
    fn a_text_that_is_not_a_token_is_not_taken_for_one() {
        let good = TokenSecret::from_bytes([7; 32]).0;
        let one_more = format!("{good}A");
        let other_case = good.replacen("aaep_", "AAEP_", 1);
        let standard_alphabet = format!("aaep_{}", "+".repeat(43));
        for wrong in ["", "aaep_", &good[..47], &one_more, &other_case, &standard_alphabet] {
            assert!(!is_token(wrong), "{wrong}");
        }
    }

    #[test]
    fn hashes_survive_the_file_and_tell_secrets_apart() {
        let hash = TokenHash::of("aaep_x");
        let read = TokenHash::from_hex(&hash.to_hex()).expect("a hash");
        assert!(read.is(&hash) && !read.is(&TokenHash::of("aaep_y")));
        for wrong in ["", "00", &"g".repeat(64), &"+0".repeat(32), &"é".repeat(32)] {
            assert!(TokenHash::from_hex(wrong).is_none(), "{wrong}");
        }
    }
}
