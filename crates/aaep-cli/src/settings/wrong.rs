//! The problems of settings: where, why, and what to do.

use std::path::Path;

use aaep::{LanguageTag, printable};
use aaep_transport::link::Target;

use super::keys::SettingKey;
use super::rules::MAX_RULES;
use super::{SettingOrigin, UserSettings};
use crate::console::name_of;
use crate::hubs::{HubAddresses, MAX_HUBS};

/// The longest text, in characters.
const MAX_TEXT_CHARS: usize = 1024;

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettingProblem {
    /// The line in the file, from 1, if it is known.
    pub(crate) line: Option<usize>,
    /// The problem and the next step. Safe to print on a terminal.
    pub(crate) what: String,
}

impl SettingProblem {
    /// The problem for an error of the TOML parser.
    pub(super) fn of_toml(text: &str, error: &toml::de::Error) -> Self {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map(|before| before.matches('\n').count() + 1);
        let mut message = error.message().lines().next().unwrap_or_default();
        let at = error.span().and_then(|span| text.get(span)).unwrap_or_default();
        // Earlier versions called it that. Devices have addresses, too.
        if at.trim() == "address" && message.contains("`hub`") {
            message = "address is called hub now";
        }
        SettingProblem { line, what: format!("{}.", printable(message).trim_end_matches('.')) }
    }

    /// The problem for an invalid value from outside the file.
    pub(super) fn of_value(key: &SettingKey, message: &str) -> Self {
        let message = printable(message.lines().next().unwrap_or_default()).into_owned();
        SettingProblem {
            line: None,
            what: format!("{}: {}.", key.name, message.trim_end_matches('.')),
        }
    }

    /// Names the origin of a value from outside the file.
    pub(super) fn from(self, origin: &SettingOrigin) -> Self {
        let what = match origin {
            SettingOrigin::Environment(name) => {
                format!("The variable {name} cannot be used. {}", self.what)
            }
            SettingOrigin::Flag(name) => format!("The flag {name} cannot be used. {}", self.what),
            SettingOrigin::Default | SettingOrigin::File => self.what,
        };
        SettingProblem { line: None, what }
    }

    /// A sentence that names the file and the line.
    pub(crate) fn in_file(&self, path: &Path) -> String {
        match self.line {
            Some(line) => format!("{}, line {line}: {}", name_of(path), self.what),
            None => self.what.clone(),
        }
    }
}

impl UserSettings {
    /// All problems, with their lines in this text.
    pub(super) fn problems(&self, text: &str) -> Vec<SettingProblem> {
        let mut all = Vec::new();
        let mut say = |table: &str, at: usize, key: &str, what: &str| {
            let what = format!("{key}: {what}");
            all.push(SettingProblem { line: line_of(text, table, at, key), what });
        };
        self.check_listen(&mut say);
        self.check_devices(&mut say);
        if self.rules.len() > MAX_RULES {
            say("rules", MAX_RULES, "name", "There are too many rules. Keep 256 or fewer.");
        }
        for (at, rule) in self.rules.iter().enumerate() {
            if let Some((key, what)) = rule.problem() {
                let what = format!("{what} It is the rule {}.", printable(&rule.name));
                say("rules", at, key, &what);
            }
        }
        all
    }

    fn check_listen(&self, say: &mut impl FnMut(&str, usize, &str, &str)) {
        let listen = &self.listen;
        let addresses = listen.hub.as_ref().map(HubAddresses::list);
        if addresses.is_some_and(|all| all.is_empty() || all.len() > MAX_HUBS) {
            say("listen", 0, "hub", "Name 1 to 16 addresses, or leave it out.");
        }
        let mut targets = addresses.unwrap_or_default().iter().map(|it| Target::parse(it));
        if let Some(error) = targets.find_map(Result::err) {
            let error = error.to_string();
            let what = format!(
                "{}. Write it like unix: or http://127.0.0.1:7117.",
                error.trim_end_matches('.')
            );
            say("listen", 0, "hub", &what);
        }
        let is_wrong = |tag: &&String| LanguageTag::parse(tag).is_err();
        let languages = listen.languages.as_deref();
        if let Some(tag) = languages.unwrap_or_default().iter().find(is_wrong) {
            let what = format!("{} is not a language. Write tags like en-GB.", printable(tag));
            say("listen", 0, "languages", &what);
        }
        if languages.is_some_and(|tags| tags.is_empty() || tags.len() > 16) {
            say("listen", 0, "languages", "Name 1 to 16 languages, or leave it out.");
        }
        if listen.words_per_minute.is_some_and(|it| !(20..=2000).contains(&it)) {
            say("listen", 0, "words_per_minute", "Use a number from 20 to 2000.");
        }
    }

    fn check_devices(&self, say: &mut impl FnMut(&str, usize, &str, &str)) {
        let (speech, braille) = (&self.speech, &self.braille);
        for (key, value) in
            [("rate", speech.rate), ("pitch", speech.pitch), ("volume", speech.volume)]
        {
            if value.is_some_and(|it| !(-100..=100).contains(&it)) {
                say("speech", 0, key, "Use a number from -100 to 100.");
            }
        }
        for (table, key, value) in [
            ("speech", "address", &speech.address),
            ("speech", "module", &speech.module),
            ("speech", "voice", &speech.voice),
            ("braille", "address", &braille.address),
        ] {
            // A speech server would interpret control characters as commands.
            let is_plain = |it: &String| {
                !it.is_empty()
                    && it.chars().count() <= MAX_TEXT_CHARS
                    && printable(it) == it.as_str()
            };
            if value.as_ref().is_some_and(|it| !is_plain(it)) {
                say(table, 0, key, "Write plain words, or leave it out.");
            }
        }
        if braille.cells_per_second > 200 {
            say("braille", 0, "cells_per_second", "Use a number from 0 to 200.");
        }
        for (language, table) in &braille.tables {
            let is_name = |it: &String| {
                let plain =
                    |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ',');
                !it.is_empty()
                    && it.len() <= 256
                    && !it.starts_with(['-', '.'])
                    && it.chars().all(plain)
            };
            if LanguageTag::parse(language).is_err() || !is_name(table) {
                say(
                    "braille",
                    0,
                    "tables",
                    "Write a language and the name of a table of liblouis for each.",
                );
            }
        }
    }
}

/// The line of a key: in the table of this name, or in the one at this index if there are several.
fn line_of(text: &str, table: &str, at: usize, key: &str) -> Option<usize> {
    let (one, several) = (format!("[{table}]"), format!("[[{table}]]"));
    let (mut is_in, mut seen) = (false, 0);
    let mut header = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            let is_several = line.starts_with(&several);
            is_in = (line.starts_with(&one)) || (is_several && seen == at);
            seen += usize::from(is_several);
            if is_in {
                header = Some(number + 1);
            }
        } else if is_in
            && line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
        {
            return Some(number + 1);
        }
    }
    header
}
