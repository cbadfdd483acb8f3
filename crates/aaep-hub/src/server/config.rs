//! The configuration file of a hub: one TOML file with one table for each concern.
//!
//! An unknown key or a meaningless value keeps the hub from starting, and the error names it: no setting is
//! silently ignored.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use aaep::{LanguageTag, printable};
use aaep_transport::local::HUB_NAME;
use serde::Deserialize;

use crate::access::{AccessConfig, Limits};
use crate::redact::RedactConfig;
use crate::relay::{ChildTable, MAX_CHILDREN};
use crate::store::Retention;
use crate::tls::TlsFiles;

/// The least memory that a hub can be given.
const MIN_MEMORY_BYTES: usize = 1024 * 1024;

/// The largest configuration file that is read.
pub const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// The language of the hub's own messages.
const OWN_LANGUAGE: &str = "en-US";

/// The address on which a hub listens by default.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:7117";

/// All settings.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HubConfig {
    /// The hub itself.
    pub hub: HubTable,
    /// Who may connect.
    pub access: AccessConfig,
    /// Limits for each principal.
    pub limits: Limits,
    /// Certificates, for addresses that other machines can reach.
    pub tls: Option<TlsFiles>,
    /// How long ended sessions are kept.
    pub retention: RetentionTable,
    /// Redaction of secrets in events.
    pub redact: RedactConfig,
    /// Agents that are child processes of the hub.
    pub child: Vec<ChildTable>,
}

/// The table `[hub]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HubTable {
    /// The name of the hub in its manifest and in its own messages.
    pub agent_id: String,
    /// The name shown to people.
    pub name: String,
    /// The languages that agents use here. The first is the primary one.
    pub languages: Vec<String>,
    /// Whether to reject a subscriber that requests none of the languages.
    pub require_language: bool,
    /// How to reach the people who run it.
    pub contact: Option<String>,
    /// The most subscriptions at once.
    pub max_subscriptions: usize,
    /// The addresses to listen on.
    pub bind: Vec<SocketAddr>,
    /// The path of the local socket, or `none`.
    pub socket: Option<PathBuf>,
    /// The folder of the store.
    pub store: Option<PathBuf>,
    /// The token file.
    pub tokens: Option<PathBuf>,
    /// The folder of the keys that sign the manifest.
    pub keys: Option<PathBuf>,
    /// The base of the addresses by which others reach the hub, for example behind a proxy.
    pub public_url: Option<String>,
}

impl Default for HubTable {
    fn default() -> Self {
        HubTable {
            agent_id: HUB_NAME.to_owned(),
            name: "AAEP hub".to_owned(),
            languages: vec!["en-US".to_owned()],
            require_language: false,
            contact: None,
            max_subscriptions: 1024,
            bind: Vec::new(),
            socket: None,
            store: None,
            tokens: None,
            keys: None,
            public_url: None,
        }
    }
}

/// The table `[retention]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetentionTable {
    /// Ended sessions older than this many days are deleted.
    pub max_age_days: u64,
    /// Ended sessions are deleted, the oldest first, until all events together have at most this many
    /// mebibytes.
    pub max_megabytes: u64,
}

impl Default for RetentionTable {
    fn default() -> Self {
        let Retention { max_age_seconds, max_bytes } = Retention::default();
        RetentionTable {
            max_age_days: max_age_seconds / DAY_SECONDS,
            max_megabytes: max_bytes >> 20,
        }
    }
}

const DAY_SECONDS: u64 = 24 * 60 * 60;

impl From<RetentionTable> for Retention {
    fn from(table: RetentionTable) -> Self {
        Retention {
            max_age_seconds: table.max_age_days.saturating_mul(DAY_SECONDS),
            max_bytes: table.max_megabytes.saturating_mul(1 << 20),
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigFileError {
    /// The file cannot be read, for this reason.
    Unreadable(PathBuf, String),
    /// The file exceeds [`MAX_CONFIG_BYTES`].
    TooLarge(PathBuf),
    /// The file cannot be parsed.
    Wrong {
        /// The file.
        path: PathBuf,
        /// The line, if it is known.
        line: Option<usize>,
        /// What is wrong, safe to print on a terminal.
        what: String,
    },
    /// A setting has a value that is not valid.
    Setting(&'static str, String),
}

impl HubConfig {
    /// Reads a configuration file.
    pub fn load(path: &Path) -> Result<Self, ConfigFileError> {
        let unreadable = |error: std::io::Error| {
            ConfigFileError::Unreadable(path.to_owned(), error.kind().to_string())
        };
        let mut text = String::new();
        let file = File::open(path).map_err(unreadable)?;
        file.take(MAX_CONFIG_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > MAX_CONFIG_BYTES {
            return Err(ConfigFileError::TooLarge(path.to_owned()));
        }
        HubConfig::parse(&text, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self, ConfigFileError> {
        let config: HubConfig = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.map(|before| before.matches('\n').count() + 1);
            let what = printable(error.message().lines().next().unwrap_or_default()).into_owned();
            ConfigFileError::Wrong { path: path.to_owned(), line, what }
        })?;
        config.check()?;
        Ok(config)
    }

    /// Checks that every setting is valid.
    pub fn check(&self) -> Result<(), ConfigFileError> {
        self.languages()?;
        self.check_children()?;
        let limits = &self.limits;
        for (name, value) in [
            ("hub.max_subscriptions", self.hub.max_subscriptions),
            ("limits.body_bytes", limits.body_bytes),
            ("limits.connections", limits.connections),
            ("limits.connections_per_principal", limits.connections_per_principal),
            ("limits.subscriptions_per_principal", limits.subscriptions_per_principal),
            ("limits.requests_per_principal", limits.requests_per_principal),
            ("limits.sessions_per_principal", limits.sessions_per_principal),
            ("limits.asks_per_principal", limits.asks_per_principal),
            (
                "limits.running_bytes_per_principal",
                usize::try_from(limits.running_bytes_per_principal).unwrap_or(usize::MAX),
            ),
            ("limits.publish_burst", limits.publish_burst as usize),
            ("limits.publishes_per_second", limits.publishes_per_second as usize),
        ] {
            if value == 0 {
                return Err(ConfigFileError::Setting(name, "is 0. Use 1 or more.".to_owned()));
            }
        }
        for (name, value) in [
            ("limits.memory_bytes", limits.memory_bytes),
            ("limits.memory_bytes_per_principal", limits.memory_bytes_per_principal),
        ] {
            if value < MIN_MEMORY_BYTES {
                let why = format!("is less than {MIN_MEMORY_BYTES}. Use that or more.");
                return Err(ConfigFileError::Setting(name, why));
            }
        }
        // hyper panics with a smaller buffer.
        if limits.header_bytes < 8192 {
            let why = "is less than 8192. Use 8192 or more.".to_owned();
            return Err(ConfigFileError::Setting("limits.header_bytes", why));
        }
        for (name, value) in
            [("limits.idle_ms", limits.idle_ms), ("limits.handshake_ms", limits.handshake_ms)]
        {
            if !(100..=86_400_000).contains(&value) {
                let why = "is not from 100 to 86400000. Use a number between them.".to_owned();
                return Err(ConfigFileError::Setting(name, why));
            }
        }
        Ok(())
    }

    fn check_children(&self) -> Result<(), ConfigFileError> {
        let wrong = |why: String| Err(ConfigFileError::Setting("child", why));
        if self.child.len() > MAX_CHILDREN {
            return wrong(format!("stands there more than {MAX_CHILDREN} times. Leave some out."));
        }
        let mut names = BTreeSet::new();
        for child in &self.child {
            if let Some(problem) = child.problem() {
                return wrong(problem);
            }
            if !names.insert(child.name()) {
                let name = printable(&child.name()).into_owned();
                return wrong(format!(
                    "has \"{name}\" twice. Give each child an agent_id of its own."
                ));
            }
        }
        Ok(())
    }

    /// The languages of the hub from the start: those that agents use, and that of its own messages.
    ///
    /// # Panics
    /// Never: the language of its own messages is a valid constant.
    pub fn offered_languages(&self) -> Result<Vec<LanguageTag>, ConfigFileError> {
        let own = LanguageTag::parse(OWN_LANGUAGE).expect("a constant of the right form");
        let mut languages = self.languages()?;
        if languages.iter().all(|it| it.primary() != own.primary()) {
            languages.push(own);
        }
        Ok(languages)
    }

    /// The configured languages, at least one.
    pub fn languages(&self) -> Result<Vec<LanguageTag>, ConfigFileError> {
        let wrong = |why: String| ConfigFileError::Setting("hub.languages", why);
        if self.hub.languages.is_empty() {
            return Err(wrong("is empty. Name the language that agents speak.".to_owned()));
        }
        let parse = |text: &String| {
            LanguageTag::parse(text).map_err(|_| {
                let text = printable(text);
                wrong(format!("has \"{text}\", which is not a language. Write tags like en-GB."))
            })
        };
        self.hub.languages.iter().map(parse).collect()
    }
}

impl fmt::Display for ConfigFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |path: &PathBuf| printable(&path.to_string_lossy()).into_owned();
        match self {
            ConfigFileError::Unreadable(path, why) => write!(
                f,
                "The configuration {} cannot be read: {why}. Check the path and who may read it.",
                shown(path)
            ),
            ConfigFileError::TooLarge(path) => {
                write!(f, "{} is too large for a configuration. Check the path.", shown(path))
            }
            ConfigFileError::Wrong { path, line, what } => {
                write!(f, "The configuration {}", shown(path))?;
                if let Some(line) = line {
                    write!(f, ", line {line},")?;
                }
                write!(f, " is wrong: {what}. Fix it; docs/serve.md lists all settings.")
            }
            ConfigFileError::Setting(name, why) => write!(f, "The setting {name} {why}"),
        }
    }
}

impl std::error::Error for ConfigFileError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<HubConfig, ConfigFileError> {
        HubConfig::parse(text, Path::new("hub.toml"))
    }

    #[test]
    fn an_empty_file_is_all_defaults() {
        assert_eq!(parse("").expect("fine"), HubConfig::default());
        assert_eq!(Retention::from(RetentionTable::default()), Retention::default());
    }

    #[test]
    fn every_table_is_read() {
        let config = parse(
            "[hub]\nagent_id = \"home\"\nlanguages = [\"en-GB\", \"yo\"]\nbind = [\"127.0.0.1:1\"]\n\
             [access]\nhost_names = [\"hub.example.org\"]\n[limits]\nconnections = 7\n\
             [tls]\ncertificate = \"a\"\nprivate_key = \"b\"\n[retention]\nmax_age_days = 2\n\
             [redact]\nexceptions = [\"demo-.*\"]\nibans = false\n\
             [[child]]\ncommand = [\"/opt/photos\", \"--quiet\"]\n\
             [[child]]\ncommand = [\"mail\"]\nagent_id = \"post\"\nrestart = true\n",
        )
        .expect("a configuration");
        assert_eq!(config.hub.agent_id, "home");
        assert_eq!(config.limits.connections, 7);
        assert_eq!(Retention::from(config.retention).max_age_seconds, 2 * DAY_SECONDS);
        assert!(config.redact.card_numbers && !config.redact.ibans);
        assert!(config.tls.is_some());
        let names: Vec<String> = config.child.iter().map(ChildTable::name).collect();
        assert_eq!(names, ["photos", "post"]);
        assert!(!config.child[0].restart && config.child[1].restart);
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        for (text, key, line) in [
            ("[hub]\nagent_id = \"a\"\nagent_nmae = \"b\"\n", "agent_nmae", 3),
            ("[acess]\n", "acess", 1),
            ("[limits]\n\nconections = 3\n", "conections", 3),
            ("[tls]\ncertificate=\"a\"\nprivate_key=\"b\"\npassword=\"c\"\n", "password", 4),
        ] {
            let error = parse(text).expect_err(key).to_string();
            assert!(error.contains(key) && error.contains(&format!("line {line},")), "{error}");
        }
    }

    #[test]
    fn what_cannot_mean_anything_is_refused() {
        for text in [
            "[hub]\nlanguages = []",
            "[hub]\nlanguages = [\"not a language\"]",
            "[hub]\nbind = [\"localhost\"]",
            "[limits]\nconnections = 0",
            "[limits]\nheader_bytes = 10",
            "[limits]\nidle_ms = 0",
            "[limits]\nbody_bytes = -1",
            "[[child]]\ncommand = []",
            "[[child]]\ncommand = [\"\"]",
            "[[child]]\ncommand = [\"a\"]\nagent_id = \"\"",
            "[[child]]\ncommand = [\"a\"]\n[[child]]\ncommand = [\"b/a\"]",
            "[[child]]\ncomand = [\"a\"]",
            "hub = 3",
            "[hub",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        let error = parse("[hub]\nlanguages = [\"\\u001b[2J\"]").expect_err("no language");
        assert!(!error.to_string().contains('\u{1b}'), "{error}");
    }
}
