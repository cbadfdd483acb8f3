//! The person's settings: one commented TOML file, overridden by the environment and then by flags.
//!
//! An unknown key or an invalid value is reported with its line, so that no setting is silently ignored.

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

use crate::console::CommandFailure;
use crate::folders::configuration_folder;
use crate::hubs::HubAddresses;
use keys::{KEYS, SettingKey};
use rules::AnswerRule;
pub(crate) use wrong::SettingProblem;

/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "struct Settings")]
pub(crate) struct UserSettings {
    pub(crate) listen: ListenSettings,
    pub(crate) lines: LinesSettings,
    pub(crate) speech: SpeechSettings,
    pub(crate) braille: BrailleSettings,
    pub(crate) desktop: DesktopSettings,
    pub(crate) sounds: SoundsSettings,
    pub(crate) rules: Vec<AnswerRule>,
}

/// What is told. `keys.rs` describes each setting.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "struct Listen")]
pub(crate) struct ListenSettings {
    pub(crate) hub: Option<HubAddresses>,
    pub(crate) profile: Profile,
    pub(crate) languages: Option<Vec<String>>,
    pub(crate) words_per_minute: Option<u64>,
    pub(crate) long_tool_seconds: Option<u64>,
}

/// Plain lines in the terminal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "struct Lines")]
pub(crate) struct LinesSettings {
    pub(crate) on: bool,
    pub(crate) bell: bool,
    pub(crate) notifications: NotificationStyle,
}

impl Default for LinesSettings {
    fn default() -> Self {
        LinesSettings { on: true, bell: false, notifications: NotificationStyle::None }
    }
}

/// How a terminal is asked to notify the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", expecting = "enum Notifications")]
pub(crate) enum NotificationStyle {
    None,
    Osc9,
    Osc777,
}

/// Speech through speech-dispatcher.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "struct Speech")]
pub(crate) struct SpeechSettings {
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
#[serde(deny_unknown_fields, default, expecting = "struct Braille")]
pub(crate) struct BrailleSettings {
    pub(crate) on: bool,
    pub(crate) address: Option<String>,
    pub(crate) key_file: Option<PathBuf>,
    pub(crate) cells_per_second: u16,
    pub(crate) tables: BTreeMap<String, String>,
}

impl Default for BrailleSettings {
    fn default() -> Self {
        let (address, key_file, tables) = (None, None, BTreeMap::new());
        BrailleSettings { on: false, address, key_file, cells_per_second: 10, tables }
    }
}

/// The desktop's screen reader.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "struct Desktop")]
pub(crate) struct DesktopSettings {
    pub(crate) on: bool,
}

/// Sounds before words.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "struct Sounds")]
pub(crate) struct SoundsSettings {
    pub(crate) on: bool,
    pub(crate) needs_you: Option<PathBuf>,
    pub(crate) done: Option<PathBuf>,
    pub(crate) error: Option<PathBuf>,
}

/// What can be set on the command line too.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SettingsFlags {
    #[arg(skip)]
    pub(crate) hub: Option<String>,
    /// How much is told: screen-reader, braille, captions, low-cognitive-load, quiet or debug.
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// The languages that you want to hear, best first, separated by commas.
    #[arg(long, value_name = "TAGS")]
    pub(crate) languages: Option<String>,
    /// How fast you listen, in words per minute.
    #[arg(long, value_name = "COUNT")]
    pub(crate) words_per_minute: Option<String>,
}

/// Where a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SettingOrigin {
    Default,
    File,
    Environment(&'static str),
    Flag(&'static str),
}

/// The settings in effect, and where each comes from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EffectiveSettings {
    pub(crate) settings: UserSettings,
    origins: BTreeMap<(&'static str, &'static str), SettingOrigin>,
}

impl EffectiveSettings {
    /// Where a setting comes from.
    pub(crate) fn origin(&self, key: &SettingKey) -> SettingOrigin {
        self.origins.get(&(key.table, key.name)).cloned().unwrap_or(SettingOrigin::Default)
    }
}

/// The path of this person's settings file.
pub(crate) fn path() -> Result<PathBuf, CommandFailure> {
    Ok(configuration_folder()?.join("aaep.toml"))
}

/// This person's settings: the file, then the environment, then flags.
pub(crate) fn load(flags: &SettingsFlags) -> Result<EffectiveSettings, CommandFailure> {
    let path = path()?;
    let text = read(&path)?.unwrap_or_default();
    let variable = |name: &str| std::env::var(name).ok().filter(|it| !it.is_empty());
    effective(&text, variable, flags).map_err(|problems| {
        let (first, rest) = (problems.first(), problems.len().saturating_sub(1));
        let what = first.map_or_else(String::new, |it| it.in_file(&path));
        let more = if rest > 0 { format!(" There is more: {rest}.") } else { String::new() };
        let what = format!("{}{more}", what.trim_end_matches('.'));
        CommandFailure::new(what, "Fix it with: aaep config edit")
    })
}

/// The content of the file; `None` if it does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<String>, CommandFailure> {
    let next = "Look at the file and its rights.";
    let failed = |error: &io::Error| CommandFailure::of_file("read", path, error, next);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(|error| failed(&error))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        let what = format!("{} is larger than any settings", crate::console::name_of(path));
        return Err(CommandFailure::new(what, "Make it smaller."));
    }
    Ok(Some(text))
}

/// The settings in effect, and where each comes from; or all problems.
pub(crate) fn effective(
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
    flags: &SettingsFlags,
) -> Result<EffectiveSettings, Vec<SettingProblem>> {
    // Parse the unchanged text first, so that problems have line numbers.
    let own: UserSettings =
        toml::from_str(text).map_err(|error| vec![SettingProblem::of_toml(text, &error)])?;
    let problems = own.problems(text);
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut table: Table = toml::from_str(text).unwrap_or_default();
    let mut origins = BTreeMap::new();
    for key in KEYS {
        if table.get(key.table).and_then(|it| it.get(key.name)).is_some() {
            origins.insert((key.table, key.name), SettingOrigin::File);
        }
        let flag = flags.value(key).map(|(name, text)| (SettingOrigin::Flag(name), text));
        let set = flag.or_else(|| {
            let name = key.variable?;
            Some((SettingOrigin::Environment(name), variable(name)?))
        });
        let Some((origin, text)) = set else { continue };
        let part = table.entry(key.table).or_insert_with(|| Value::Table(Table::new()));
        if let Some(part) = part.as_table_mut() {
            part.insert(key.name.to_owned(), value_of(key, &text));
        }
        let checked = table.clone().try_into::<UserSettings>();
        let problem = match checked {
            Ok(settings) => settings.problems("").into_iter().next(),
            Err(error) => Some(SettingProblem::of_value(key, error.message())),
        };
        if let Some(problem) = problem {
            return Err(vec![problem.from(&origin)]);
        }
        origins.insert((key.table, key.name), origin);
    }
    let settings = table.try_into().unwrap_or(own);
    Ok(EffectiveSettings { settings, origins })
}

/// Turns a text from the environment or a flag into a value of this setting.
fn value_of(key: &SettingKey, text: &str) -> Value {
    match key.name {
        "hub" => match HubAddresses::read(text) {
            HubAddresses::One(address) => Value::String(address),
            HubAddresses::Several(all) => {
                Value::Array(all.into_iter().map(Value::String).collect())
            }
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

impl SettingsFlags {
    fn value(&self, key: &SettingKey) -> Option<(&'static str, String)> {
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

impl ListenSettings {
    /// The languages in which the person wants to be told, as tags.
    pub(crate) fn language_tags(&self) -> Option<Vec<LanguageTag>> {
        let tags = self.languages.as_ref()?;
        tags.iter().map(|tag| LanguageTag::parse(tag).ok()).collect()
    }
}

#[cfg(test)]
mod tests;
