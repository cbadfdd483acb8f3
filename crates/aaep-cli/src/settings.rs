//! The person's settings: one commented TOML file, over which the environment and then flags have their say.
//!
//! A key that is not known, or a value that cannot mean anything, is named with its line: a setting that was
//! meant is never passed over.

pub(crate) mod keys;
pub(crate) mod rules;
mod wrong;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use aaep::LanguageTag;
use aaep_announce::Profile;
use clap::Args;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::console::Failure;
use crate::hubs::Addresses;
use crate::tokens::configuration_folder;
use keys::{KEYS, Key};
use rules::Rule;
pub(crate) use wrong::Wrong;

/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    pub(crate) listen: Listen,
    pub(crate) lines: Lines,
    pub(crate) speech: Speech,
    pub(crate) braille: Braille,
    pub(crate) desktop: Desktop,
    pub(crate) sounds: Sounds,
    pub(crate) rules: Vec<Rule>,
}

/// What is heard. `keys.rs` says what each setting is for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Listen {
    pub(crate) hub: Option<Addresses>,
    pub(crate) profile: Profile,
    pub(crate) languages: Option<Vec<String>>,
    pub(crate) words_per_minute: Option<u64>,
    pub(crate) long_tool_seconds: Option<u64>,
}

/// Plain lines in the terminal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Lines {
    pub(crate) on: bool,
    pub(crate) bell: bool,
    pub(crate) notifications: Notifications,
}

impl Default for Lines {
    fn default() -> Self {
        Lines { on: true, bell: false, notifications: Notifications::None }
    }
}

/// How a terminal is asked to notify the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Notifications {
    None,
    Osc9,
    Osc777,
}

/// Speech through speech-dispatcher.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Speech {
    pub(crate) on: bool,
    pub(crate) address: Option<String>,
    pub(crate) module: Option<String>,
    pub(crate) voice: Option<String>,
    pub(crate) rate: Option<i8>,
    pub(crate) pitch: Option<i8>,
    pub(crate) volume: Option<i8>,
}

/// A braille display through BRLTTY.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Braille {
    pub(crate) on: bool,
    pub(crate) address: Option<String>,
    pub(crate) key_file: Option<PathBuf>,
    pub(crate) cells_per_second: u16,
    pub(crate) tables: BTreeMap<String, String>,
}

impl Default for Braille {
    fn default() -> Self {
        let (address, key_file, tables) = (None, None, BTreeMap::new());
        Braille { on: false, address, key_file, cells_per_second: 10, tables }
    }
}

/// The screen reader of the desktop.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Desktop {
    pub(crate) on: bool,
}

/// Sounds before words.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Sounds {
    pub(crate) on: bool,
    pub(crate) needs_you: Option<PathBuf>,
    pub(crate) done: Option<PathBuf>,
    pub(crate) error: Option<PathBuf>,
}

/// What can be set on the command line too.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Flags {
    #[arg(skip)]
    pub(crate) hub: Option<String>,
    /// How much is told: screen-reader, braille, captions, low-cognitive-load, quiet or debug.
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// The languages in which you want to be told, best first, with commas between them.
    #[arg(long, value_name = "TAGS")]
    pub(crate) languages: Option<String>,
    /// How fast you listen.
    #[arg(long, value_name = "COUNT")]
    pub(crate) words_per_minute: Option<String>,
}

/// Where a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File,
    Environment(&'static str),
    Flag(&'static str),
}

/// The settings that hold, and where each comes from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Effective {
    pub(crate) settings: Settings,
    origins: BTreeMap<(&'static str, &'static str), Origin>,
}

impl Effective {
    /// Where a setting comes from.
    pub(crate) fn origin(&self, key: &Key) -> Origin {
        self.origins.get(&(key.table, key.name)).cloned().unwrap_or(Origin::Default)
    }
}

/// The file of this person.
pub(crate) fn path() -> Result<PathBuf, Failure> {
    Ok(configuration_folder()?.join("aaep.toml"))
}

/// The settings of this person: the file, then the environment, then flags.
pub(crate) fn load(flags: &Flags) -> Result<Effective, Failure> {
    let path = path()?;
    let text = read(&path)?.unwrap_or_default();
    let variable = |name: &str| std::env::var(name).ok().filter(|it| !it.is_empty());
    effective(&text, variable, flags).map_err(|wrong| {
        let (first, rest) = (wrong.first(), wrong.len().saturating_sub(1));
        let what = first.map_or_else(String::new, |it| it.in_file(&path));
        let more = if rest > 0 { format!(" There is more: {rest}.") } else { String::new() };
        let what = format!("{}{more}", what.trim_end_matches('.'));
        Failure::new(what, "Mend it with: aaep config edit")
    })
}

/// What the file says; none if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Failure> {
    let next = "Look at the file and its rights.";
    let failed = |error: &io::Error| Failure::of_file("read", path, error, next);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(|error| failed(&error))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        let what = format!("{} is larger than any settings", crate::console::name_of(path));
        return Err(Failure::new(what, "Make it smaller."));
    }
    Ok(Some(text))
}

/// The settings that hold, and where each comes from; or all that is wrong.
pub(crate) fn effective(
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
    flags: &Flags,
) -> Result<Effective, Vec<Wrong>> {
    // Read as it is first, so that what is wrong has its line.
    let own: Settings = toml::from_str(text).map_err(|error| vec![Wrong::of_toml(text, &error)])?;
    let wrong = own.wrong(text);
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let mut table: Table = toml::from_str(text).unwrap_or_default();
    let mut origins = BTreeMap::new();
    for key in KEYS {
        if table.get(key.table).and_then(|it| it.get(key.name)).is_some() {
            origins.insert((key.table, key.name), Origin::File);
        }
        let flag = flags.value(key).map(|(name, text)| (Origin::Flag(name), text));
        let set = flag.or_else(|| {
            let name = key.variable?;
            Some((Origin::Environment(name), variable(name)?))
        });
        let Some((origin, text)) = set else { continue };
        let part = table.entry(key.table).or_insert_with(|| Value::Table(Table::new()));
        if let Some(part) = part.as_table_mut() {
            part.insert(key.name.to_owned(), value_of(key, &text));
        }
        let checked = table.clone().try_into::<Settings>();
        let wrong = match checked {
            Ok(settings) => settings.wrong("").into_iter().next(),
            Err(error) => Some(Wrong::of_value(key, error.message())),
        };
        if let Some(wrong) = wrong {
            return Err(vec![wrong.from(&origin)]);
        }
        origins.insert((key.table, key.name), origin);
    }
    let settings = table.try_into().unwrap_or(own);
    Ok(Effective { settings, origins })
}

/// What a text from outside means as a value of this setting.
fn value_of(key: &Key, text: &str) -> Value {
    match key.name {
        "hub" => match Addresses::read(text) {
            Addresses::One(address) => Value::String(address),
            Addresses::Several(all) => Value::Array(all.into_iter().map(Value::String).collect()),
        },
        "languages" => {
            let tags = text.split(',').map(|tag| Value::String(tag.trim().to_owned()));
            Value::Array(tags.collect())
        }
        "words_per_minute" => {
            text.trim().parse().map_or_else(|_| Value::String(text.to_owned()), Value::Integer)
        }
        _ => Value::String(text.to_owned()),
    }
}

impl Flags {
    fn value(&self, key: &Key) -> Option<(&'static str, String)> {
        let (name, value) = match (key.table, key.name) {
            ("listen", "hub") => ("--hub", &self.hub),
            ("listen", "profile") => ("--profile", &self.profile),
            ("listen", "languages") => ("--languages", &self.languages),
            ("listen", "words_per_minute") => ("--words-per-minute", &self.words_per_minute),
            _ => return None,
        };
        value.clone().map(|value| (name, value))
    }
}

impl Listen {
    /// The languages in which the person wants to be told, as tags.
    pub(crate) fn language_tags(&self) -> Option<Vec<LanguageTag>> {
        let tags = self.languages.as_ref()?;
        tags.iter().map(|tag| LanguageTag::parse(tag).ok()).collect()
    }
}

#[cfg(test)]
mod tests;
