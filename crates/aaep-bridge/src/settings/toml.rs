//! Hooks in settings that are TOML: a list of tables.

use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

use super::{OurHooks, SettingsFault, is_ours};
use crate::agent::BridgedAgent;

pub(super) fn with_hooks(ours: &OurHooks<'_>, text: &str) -> Result<String, SettingsFault> {
    let mut document = parse(&without_hooks(ours.agent, text)?)?;
    let hooks = document.entry("hooks").or_insert_with(|| ArrayOfTables::new().into());
    let hooks = hooks.as_array_of_tables_mut().ok_or(SettingsFault::StrangeHooks)?;
    for hook in ours.written() {
        let mut table = Table::new();
        table.insert("event", value(hook.event));
        table.insert("command", value(hook.command));
        table.insert("timeout", value(i64::try_from(hook.timeout).unwrap_or(i64::MAX)));
        hooks.push(table);
    }
    Ok(document.to_string())
}

pub(super) fn without_hooks(agent: BridgedAgent, text: &str) -> Result<String, SettingsFault> {
    let mut document = parse(text)?;
    let Some(hooks) = document.get_mut("hooks") else { return Ok(text.to_owned()) };
    let hooks = hooks.as_array_of_tables_mut().ok_or(SettingsFault::StrangeHooks)?;
    let before = hooks.len();
    hooks.retain(|table| !is_ours(agent, text_of(table, "command")));
    if hooks.len() == before {
        return Ok(text.to_owned());
    }
    if hooks.is_empty() {
        document.remove("hooks");
    }
    Ok(document.to_string())
}

pub(super) fn commands(text: &str) -> Vec<(String, String)> {
    let Ok(document) = parse(text) else { return Vec::new() };
    let hooks = document.get("hooks").and_then(Item::as_array_of_tables);
    let of =
        |table: &Table| (text_of(table, "event").to_owned(), text_of(table, "command").to_owned());
    hooks.into_iter().flatten().map(of).collect()
}

pub(super) fn mean_the_same(one: &str, other: &str) -> bool {
    let read = |text: &str| text.parse::<toml::Table>().ok();
    read(one).is_some() && read(one) == read(other)
}

fn parse(text: &str) -> Result<DocumentMut, SettingsFault> {
    text.parse().map_err(|_| SettingsFault::NotToml)
}

fn text_of<'t>(table: &'t Table, field: &str) -> &'t str {
    table.get(field).and_then(Item::as_str).unwrap_or_default()
}
