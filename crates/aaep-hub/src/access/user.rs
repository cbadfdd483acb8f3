//! Who another user of this machine is, at the local socket (§8.2.7, B.4.5).

use serde::Deserialize;

use crate::access::principal::{Hears, Principal, Scopes};

/// Whom the configuration makes of a user of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserRule {
    /// The number of the user, as `id -u` prints it.
    pub uid: u32,
    /// Who it is then.
    pub name: String,
    /// What they may do.
    pub scopes: Scopes,
    /// Which agents they hear.
    #[serde(default)]
    pub hears: Hears,
}

impl UserRule {
    pub(crate) fn principal(&self) -> Principal {
        Principal {
            id: format!("user:{}", self.uid),
            name: self.name.clone(),
            scopes: self.scopes,
            hears: self.hears.clone(),
            until_unix_us: None,
        }
    }
}
