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
    /// Whose they are: people or groups; only their own, if empty.
    #[serde(default, rename = "for")]
    pub owners: Vec<String>,
    /// The only names that they may speak under; any that nobody else holds, if empty.
    #[serde(default)]
    pub speaks_as: Vec<String>,
}

impl UserRule {
    pub(crate) fn principal(&self) -> Principal {
        let mut principal =
            Principal::new(format!("user:{}", self.uid), self.name.clone(), self.scopes);
        if !self.owners.is_empty() {
            principal.owners = self.owners.iter().cloned().collect();
        }
        let speaks_as =
            (!self.speaks_as.is_empty()).then(|| self.speaks_as.iter().cloned().collect());
        Principal { hears: self.hears.clone(), speaks_as, ..principal }
    }
}
