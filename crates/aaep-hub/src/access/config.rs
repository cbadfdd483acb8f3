//! The part of the configuration that says who may connect.
//!
//! An unknown or meaningless setting keeps the hub from starting, so that a misspelt word never leaves the
//! hub open.

use std::fmt;

use serde::Deserialize;

use crate::access::certificate::CertificateRule;
use crate::access::jwt::JwtConfig;
use crate::access::principal::{is_name, name_list};
use crate::access::request::MAX_CONFIGURED;
use crate::access::user::UserRule;
use crate::access::{Authority, Origin};

/// The most rules that there may be for client certificates.
pub const MAX_CERTIFICATE_RULES: usize = 1024;

/// The table `[access]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccessConfig {
    /// Whether programs on this machine need credentials too, for machines that several people use.
    pub loopback_needs_credentials: bool,
    /// Whether every program on this machine may answer and administer without a credential, as in versions
    /// before a person had to allow programs. For demonstrations and tests.
    pub trust_local_programs: bool,
    /// Whether a token may arrive as `access_token` in the address, for browsers that cannot send it in
    /// another way. Addresses end up in logs and histories.
    pub token_in_query: bool,
    /// The names under which other machines reach this hub. Loopback names always count.
    pub host_names: Vec<String>,
    /// The origins whose pages may use this hub.
    pub allowed_origins: Vec<String>,
    /// The issuer whose signed tokens are accepted.
    pub jwt: Option<JwtConfig>,
    /// The principals behind client certificates. The first rule that matches applies.
    pub certificates: Vec<CertificateRule>,
    /// Which other users of this machine may use the local socket.
    pub users: Vec<UserRule>,
}

impl AccessConfig {
    pub(crate) fn parsed_host_names(&self) -> Result<Vec<Authority>, ConfigError> {
        let parse = |text: &String| {
            Authority::parse(text).ok_or_else(|| ConfigError::HostName(text.clone()))
        };
        self.host_names.iter().map(parse).collect()
    }

    pub(crate) fn parsed_origins(&self) -> Result<Vec<Origin>, ConfigError> {
        let parse =
            |text: &String| Origin::parse(text).ok_or_else(|| ConfigError::Origin(text.clone()));
        self.allowed_origins.iter().map(parse).collect()
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let too_many = |what, count: usize, most| {
            if count > most { Err(ConfigError::TooMany(what, most)) } else { Ok(()) }
        };
        too_many("host_names", self.host_names.len(), MAX_CONFIGURED)?;
        too_many("allowed_origins", self.allowed_origins.len(), MAX_CONFIGURED)?;
        too_many("certificates", self.certificates.len(), MAX_CERTIFICATE_RULES)?;
        too_many("users", self.users.len(), MAX_CONFIGURED)?;
        if let Some(rule) = self.users.iter().find(|it| !is_name(&it.name) || it.scopes.is_empty())
        {
            return Err(ConfigError::User(rule.uid));
        }
        let of_rules = self.certificates.iter().map(|it| (&it.owners, &it.speaks_as));
        let of_users = self.users.iter().map(|it| (&it.owners, &it.speaks_as));
        let nobody = Vec::new();
        let of_issuer = self.jwt.iter().map(|it| (&it.owners, &nobody));
        for (owners, speaks_as) in of_rules.chain(of_users).chain(of_issuer) {
            for names in [owners, speaks_as] {
                name_list(names.iter().cloned()).map_err(ConfigError::Names)?;
            }
        }
        if let Some(jwt) = &self.jwt
            && (jwt.issuer.is_empty() || jwt.audience.is_empty() || jwt.algorithms.is_empty())
        {
            return Err(ConfigError::Issuer);
        }
        if self.jwt.as_ref().is_some_and(|jwt| jwt.jwks_file.is_some() && jwt.jwks_uri.is_some()) {
            return Err(ConfigError::TwoKeySources);
        }
        match self.certificates.iter().find(|it| !is_name(&it.name) || it.scopes.is_empty()) {
            Some(rule) => Err(ConfigError::Certificate(rule.name.clone())),
            None => Ok(()),
        }
    }
}

/// Why the access configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigError {
    /// A host name is not valid.
    HostName(String),
    /// An origin is not valid.
    Origin(String),
    /// A setting has more entries than this.
    TooMany(&'static str, usize),
    /// The issuer, the audience or the algorithms of signed tokens are empty.
    Issuer,
    /// There is an issuer of signed tokens, but no setting says where its keys are.
    NoKeys,
    /// The settings name two sources for the issuer's keys.
    TwoKeySources,
    /// A rule for certificates has an invalid name, or allows nothing.
    Certificate(String),
    /// A rule for a user has an invalid name, or allows nothing.
    User(u32),
    /// A list of owners or names is wrong, for this reason.
    Names(String),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::HostName(text) => write!(
                f,
                "\"{}\" in host_names is not the name of a host. Write a name or an address, and a port if it matters.",
                aaep::printable(text)
            ),
            ConfigError::Origin(text) => write!(
                f,
                "\"{}\" in allowed_origins is not an origin. Write it like https://reader.example, with nothing after it.",
                aaep::printable(text)
            ),
            ConfigError::TooMany(setting, most) => {
                write!(f, "The setting {setting} has more than {most} entries. Remove some.")
            }
            ConfigError::Issuer => f.write_str(
                "The settings issuer, audience and algorithms in access.jwt must not be empty. Fill them in.",
            ),
            ConfigError::NoKeys => f.write_str(
                "Nothing says where the keys of the issuer are. Set jwks_file or jwks_uri in access.jwt.",
            ),
            ConfigError::TwoKeySources => f.write_str(
                "The keys of the issuer are said to be in a file and on the network. Set jwks_file or jwks_uri, not both.",
            ),
            ConfigError::Names(why) => {
                write!(f, "A list in for or speaks_as cannot be used. {why}")
            }
            ConfigError::User(uid) => write!(
                f,
                "The rule for the user {uid} needs a name and at least one scope. Add what is missing."
            ),
            ConfigError::Certificate(name) => write!(
                f,
                "The rule for the certificate of \"{}\" needs a name and at least one scope. Add what is missing.",
                aaep::printable(name)
            ),
        }
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_configuration_is_read() {
        let config: AccessConfig = toml::from_str(
            "loopback_needs_credentials = true\nhost_names = [\"hub.example.org\"]\n\
             allowed_origins = [\"https://reader.example\"]\n\
             [jwt]\nissuer = \"https://id.example\"\naudience = \"aaep\"\nalgorithms = [\"ES256\"]\n\
             [[certificates]]\nmatch = \"dns:laptop.example.org\"\nname = \"Ada\"\n\
             scopes = [\"listen\", \"reply\"]\nhears = [\"builder\"]\n",
        )
        .expect("a configuration");
        assert_eq!(config.check(), Ok(()));
        assert!(config.parsed_host_names().is_ok() && config.parsed_origins().is_ok());
        assert_ne!(config.certificates[0].hears, crate::access::HeardAgents::Own);
    }

    #[test]
    fn what_is_misspelt_or_senseless_is_refused() {
        for wrong in [
            "loopback_need_credentials = true",
            "[jwt]\nissuer = \"i\"\naudience = \"a\"\nalgorithms = [\"HS256\"]",
            "[jwt]\nissuer = \"i\"\naudience = \"a\"\nalgorithms = [\"none\"]",
            "[jwt]\nissuer = \"i\"\naudience = \"a\"",
            "[[certificates]]\nmatch = \"Ada\"\nname = \"Ada\"\nscopes = [\"listen\"]",
        ] {
            assert!(toml::from_str::<AccessConfig>(wrong).is_err(), "{wrong}");
        }
        for wrong in [
            "[jwt]\nissuer = \"\"\naudience = \"a\"\nalgorithms = [\"ES256\"]",
            "[jwt]\nissuer = \"i\"\naudience = \"a\"\nalgorithms = []",
            "[jwt]\nissuer = \"i\"\naudience = \"a\"\nalgorithms = [\"ES256\"]\njwks_file = \"f\"\njwks_uri = \"u\"",
            "[[certificates]]\nmatch = \"cn:Ada\"\nname = \"Ada\"\nscopes = []",
            "[[users]]\nuid = 1001\nname = \"Ada\"\nscopes = []",
            "[[users]]\nuid = 1001\nname = \"\"\nscopes = [\"listen\"]",
        ] {
            let config: AccessConfig = toml::from_str(wrong).expect("TOML");
            assert!(config.check().is_err(), "{wrong}");
        }
        let star =
            AccessConfig { allowed_origins: vec!["*".to_owned()], ..AccessConfig::default() };
        assert_eq!(star.parsed_origins(), Err(ConfigError::Origin("*".to_owned())));
        let url =
            AccessConfig { host_names: vec!["https://a".to_owned()], ..AccessConfig::default() };
        assert!(url.parsed_host_names().is_err());
    }
}
