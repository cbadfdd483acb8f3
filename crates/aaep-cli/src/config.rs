//! `aaep config`: shows, edits and checks the person's settings.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Args, Subcommand};

use crate::console::{CommandFailure, name_of, reason};
use crate::english::{configuring, keeping};
use crate::folders::make_folder_of;
use crate::keys::tell;
use crate::order::example;
use crate::settings::keys::{KEYS, SettingKey, SettingValue, template};
use crate::settings::rules::{AnswerRule, RuleAnswer};
use crate::settings::{self, EffectiveSettings, SettingOrigin, SettingsFlags};

const EXIT_CODES: &str = "\
Exit codes:
  0  it is done; for check and edit: all settings in the file can be used
  1  for check and edit: a setting in the file cannot be used
  2  it could not be done: wrong usage, or a file that cannot be read or written";

/// What to do with the settings.
#[derive(Debug, Args)]
#[command(after_help = example("aaep config edit", EXIT_CODES))]
pub(crate) struct ConfigOptions {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Show every setting, its value, and where the value comes from.
    #[command(after_help = example("aaep config show", EXIT_CODES))]
    Show(SettingsFlags),
    /// Open the file in your editor (VISUAL or EDITOR), and check it afterwards.
    #[command(after_help = example("aaep config edit", EXIT_CODES))]
    Edit,
    /// List what in the file cannot be used, with its line.
    #[command(after_help = example("aaep config check", EXIT_CODES))]
    Check,
    /// Print the path of the file.
    #[command(after_help = example("aaep config path", EXIT_CODES))]
    Path,
}

pub(crate) fn run(arguments: &ConfigOptions) -> Result<ExitCode, CommandFailure> {
    match &arguments.command {
        ConfigCommand::Show(flags) => show(&settings::load(flags)?)?,
        ConfigCommand::Edit => return edit(),
        ConfigCommand::Check => return check(&settings::path()?),
        ConfigCommand::Path => tell(&name_of(&settings::path()?))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn show(effective: &EffectiveSettings) -> Result<(), CommandFailure> {
    let table = toml::Table::try_from(&effective.settings).unwrap_or_default();
    for key in KEYS {
        let found = table.get(key.table).and_then(|it| it.get(key.name));
        let origin = effective.origin(key);
        let value = match (found, key.value) {
            (_, SettingValue::Example(_, otherwise)) if origin == SettingOrigin::Default => {
                otherwise.to_owned()
            }
            (Some(value), _) => aaep::printable(&value.to_string()).into_owned(),
            (None, _) => configuring::NOT_SET.to_owned(),
        };
        tell(&format!("{}: {value}, {}.", name_of_key(key), words(&origin)))?;
    }
    let rules = &effective.settings.rules;
    if rules.is_empty() {
        return tell(configuring::NO_RULES);
    }
    for rule in rules {
        tell(&rule_in_words(rule))?;
    }
    Ok(())
}

fn name_of_key(key: &SettingKey) -> String {
    format!("{} {}", key.table, key.name)
}

fn words(origin: &SettingOrigin) -> String {
    match origin {
        SettingOrigin::Default => configuring::BY_DEFAULT.to_owned(),
        SettingOrigin::File => configuring::FROM_FILE.to_owned(),
        SettingOrigin::Environment(name) => configuring::from_variable(name),
        SettingOrigin::Flag(name) => configuring::from_flag(name),
    }
}

fn rule_in_words(rule: &AnswerRule) -> String {
    let does = match rule.answer {
        RuleAnswer::Accept => configuring::ACCEPTS,
        RuleAnswer::Reject => configuring::REJECTS,
    };
    let plain = |text: &Option<String>, otherwise: &str| {
        text.as_deref().map_or_else(|| otherwise.to_owned(), |it| aaep::printable(it).into_owned())
    };
    let agent = plain(&rule.agent, configuring::EVERY_AGENT);
    let tool = plain(&rule.tool, configuring::ANYTHING);
    configuring::rule(&aaep::printable(&rule.name), does, &agent, &tool)
}

fn check(path: &Path) -> Result<ExitCode, CommandFailure> {
    let Some(text) = settings::read(path)? else {
        tell(&configuring::no_file(&name_of(path)))?;
        return Ok(ExitCode::SUCCESS);
    };
    match settings::effective(&text, |_| None, &SettingsFlags::default()) {
        Ok(effective) => {
            let rules = effective.settings.rules.len() as u64;
            tell(&configuring::can_be_used(&name_of(path), rules))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(problems) => {
            for it in &problems {
                tell(&it.in_file(path))?;
            }
            tell(configuring::NOT_USED)?;
            Ok(ExitCode::from(1))
        }
    }
}

fn edit() -> Result<ExitCode, CommandFailure> {
    let path = settings::path()?;
    begin(&path)?;
    let mut editor = editor(&path)?;
    let name = aaep::printable(&editor.get_program().to_string_lossy()).into_owned();
    let status = editor.arg(&path).status();
    let status = status.map_err(|error| configuring::editor_not_started(&name, &reason(&error)))?;
    if !status.success() {
        return Err(configuring::editor_failed(&name).into());
    }
    check(&path)
}

/// Creates a file with every setting explained and none set, unless there is one already.
fn begin(path: &PathBuf) -> Result<(), CommandFailure> {
    let failed =
        |error: &io::Error| CommandFailure::of_file("write", path, error, keeping::LOOK_AT_RIGHTS);
    make_folder_of(path).map_err(|error| failed(&error))?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(mut file) => {
            file.write_all(template().as_bytes()).map_err(|error| failed(&error))?;
            tell(&configuring::began(&name_of(path)))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed(&error)),
    }
}

/// The person's editor with its arguments, run without a shell.
fn editor(path: &Path) -> Result<Command, CommandFailure> {
    let set = |name| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let line = set("VISUAL").or_else(|| set("EDITOR"));
    let line = line.ok_or_else(|| configuring::no_editor(&name_of(path)))?;
    let mut words = line.split_whitespace();
    let mut editor = Command::new(words.next().unwrap_or_default());
    editor.args(words);
    Ok(editor)
}
