//! Other users of this machine at the local socket (§8.2.7, B.4.5).

use serde::Deserialize;

use crate::access::principal::{HeardAgents, Principal, Scopes};

/// Maps a user of this machine to a principal.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserRule {
    /// The number of the user, as `id -u` prints it.
    pub uid: u32,
    /// The name of the principal.
    pub name: String,
    /// What the user may do.
    pub scopes: Scopes,
    /// Which agents the user hears.
    #[serde(default)]
    pub hears: HeardAgents,
    /// The people or groups that the user belongs to. If empty, the user belongs only to itself.
    #[serde(default, rename = "for")]
    pub owners: Vec<String>,
    /// The only agent names that the user may use. If empty, any name that nobody else holds.
    #[serde(default)]
    pub speaks_as: Vec<String>,
}

impl UserRule {
    pub(crate) fn principal(&self) -> Principal {
        let principal =
            Principal::new(format!("user:{}", self.uid), self.name.clone(), self.scopes);
        principal.with_rights(&self.hears, &self.owners, &self.speaks_as)
    }
}
