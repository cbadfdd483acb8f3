//! What a ring remembers about a key, and the key list as a TOML file. It contains no secrets.

use std::collections::BTreeMap;

use aaep::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::algorithm::Algorithm;
use super::public::{PublicKey, Thumbprint};

/// One key of a ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    kid: Thumbprint,
    public: PublicKey,
    /// When it was made.
    pub created_unix_ms: i64,
    /// When it stops being published; `None` while it is the active key.
    pub retires_unix_ms: Option<i64>,
}

/// The state of a key at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// It signs.
    Active,
    /// It no longer signs, but is still published.
    Published,
    /// It is no longer published.
    Retired,
}

impl KeyRecord {
    pub(super) fn new(public: PublicKey, created_unix_ms: i64) -> Self {
        let created_unix_ms = in_range(created_unix_ms);
        KeyRecord { kid: public.thumbprint(), public, created_unix_ms, retires_unix_ms: None }
    }

    /// The id of the key: its thumbprint.
    pub fn kid(&self) -> &Thumbprint {
        &self.kid
    }

    /// The public half.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The algorithm that it signs with.
    pub fn algorithm(&self) -> Algorithm {
        self.public.algorithm()
    }

    /// The state of the key at this moment.
    pub fn state(&self, now_unix_ms: i64) -> KeyState {
        match self.retires_unix_ms {
            None => KeyState::Active,
            Some(at) if at > now_unix_ms => KeyState::Published,
            Some(_) => KeyState::Retired,
        }
    }
}

/// The time, limited to the last one that can be written: the end of the year 9998.
pub(crate) fn in_range(unix_ms: i64) -> i64 {
    const LAST_UNIX_MS: i64 = 253_370_764_799_999;
    unix_ms.clamp(0, LAST_UNIX_MS)
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyList {
    #[serde(default)]
    key: Vec<KeyEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyEntry {
    kid: String,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    retires_at: Option<String>,
    jwk: BTreeMap<String, String>,
}

const HEADER: &str =
    "# The keys of this producer. Written by aaep keys; no secret is in this file.\n\n";

/// Writes the key list.
pub(super) fn write_list(records: &[KeyRecord]) -> String {
    let moment = |unix_ms: i64| {
        Timestamp::from_unix_ms(unix_ms).map_or_else(String::new, |at| at.as_str().to_owned())
    };
    let text = |value: Value| value.as_str().unwrap_or_default().to_owned();
    let key = records
        .iter()
        .map(|record| KeyEntry {
            kid: record.kid.to_string(),
            created_at: moment(record.created_unix_ms),
            retires_at: record.retires_unix_ms.map(moment),
            jwk: record.public.to_jwk().into_iter().map(|(name, it)| (name, text(it))).collect(),
        })
        .collect();
    let list = toml::to_string(&KeyList { key }).expect("tables of strings can be written as TOML");
    format!("{HEADER}{list}")
}

/// Reads the key list; `None` if it is not in our format.
pub(super) fn parse_list(bytes: &[u8]) -> Option<Vec<KeyRecord>> {
    let list: KeyList = toml::from_str(std::str::from_utf8(bytes).ok()?).ok()?;
    if list.key.len() > super::MAX_KEYS {
        return None;
    }
    let moment = |text: &str| Some(Timestamp::parse(text).ok()?.unix_us().div_euclid(1000));
    let records: Option<Vec<KeyRecord>> = list
        .key
        .into_iter()
        .map(|entry| {
            let jwk = entry.jwk.into_iter().map(|(name, text)| (name, text.into())).collect();
            let mut record =
                KeyRecord::new(PublicKey::from_jwk(&jwk).ok()?, moment(&entry.created_at)?);
            if let Some(at) = &entry.retires_at {
                record.retires_unix_ms = Some(moment(at)?);
            }
            (record.kid.as_str() == entry.kid).then_some(record)
        })
        .collect();
    let records = records?;
    let active = records.iter().filter(|record| record.retires_unix_ms.is_none()).count();
    (active <= 1).then_some(records)
}
