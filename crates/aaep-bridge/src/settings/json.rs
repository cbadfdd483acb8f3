//! Hooks in settings that are JSON.

use jsonc_parser::cst::{CstInputValue, CstNode, CstRootNode};
use jsonc_parser::{CollectOptions, ParseOptions};
use serde_json::Value;

use super::{OurHooks, SettingsFault, SettingsForm, WrittenHook, is_ours};
use crate::agent::BridgedAgent;

pub(super) fn with_hooks(ours: &OurHooks<'_>, text: &str) -> Result<String, SettingsFault> {
    let text =
        if text.trim().is_empty() { "{}\n".to_owned() } else { without_hooks(ours.agent, text)? };
    let root = parse(ours.agent, &text)?;
    let object = root.object_value().ok_or(SettingsFault::NotAnObject)?;
    let hooks = object.object_value_or_create("hooks").ok_or(SettingsFault::StrangeHooks)?;
    for hook in ours.written() {
        let groups = hooks.array_value_or_create(hook.event).ok_or(SettingsFault::StrangeHooks)?;
        groups.ensure_multiline();
        groups.append(entry(ours.agent, &hook));
    }
    Ok(root.to_string())
}

pub(super) fn without_hooks(agent: BridgedAgent, text: &str) -> Result<String, SettingsFault> {
    let root = parse(agent, text)?;
    let object = root.object_value().ok_or(SettingsFault::NotAnObject)?;
    let Some(hooks) = object.get("hooks") else { return Ok(text.to_owned()) };
    let events = hooks.object_value().ok_or(SettingsFault::StrangeHooks)?;
    let mut has_changed = false;
    for event in events.properties() {
        // Beside the events there can be settings of other forms.
        let Some(entries) = event.array_value() else {
            let name = event.name().and_then(|it| it.decoded_value().ok()).unwrap_or_default();
            let is_event = agent.dialect().hooks().iter().any(|it| it.event == name);
            if is_event {
                return Err(SettingsFault::StrangeHooks);
            }
            continue;
        };
        let mut was_ours = false;
        for entry in entries.elements() {
            if is_our_entry(agent, &entry) {
                was_ours = true;
                entry.remove();
            }
        }
        if was_ours && entries.elements().is_empty() {
            event.remove();
        }
        has_changed |= was_ours;
    }
    if !has_changed {
        return Ok(text.to_owned());
    }
    if events.properties().is_empty() {
        hooks.remove();
    }
    Ok(root.to_string())
}

/// The hooks of all events: the event and the command of each.
pub(super) fn commands(agent: BridgedAgent, text: &str) -> Vec<(String, String)> {
    let Some(settings) = parse(agent, text).ok().and_then(|it| it.to_serde_value()) else {
        return Vec::new();
    };
    let events = settings["hooks"].as_object().into_iter().flatten();
    let entries = events.flat_map(|(event, entries)| {
        entries.as_array().into_iter().flatten().map(move |entry| (event, entry))
    });
    entries
        .flat_map(|(event, entry)| {
            commands_of(entry).into_iter().map(move |it| (event.clone(), it.to_owned()))
        })
        .collect()
}

/// The settings as a value.
pub(super) fn value(text: &str) -> Option<Value> {
    CstRootNode::parse(text, &options(true)).ok()?.to_serde_value()
}

pub(super) fn mean_the_same(one: &str, other: &str) -> bool {
    let read = |text: &str| {
        let mut value = CstRootNode::parse(text, &options(true)).ok()?.to_serde_value()?;
        // An event without hooks says nothing.
        let hooks = value.get_mut("hooks").and_then(Value::as_object_mut);
        let is_empty = hooks.is_some_and(|events| {
            events.retain(|_, entries| entries.as_array().is_none_or(|it| !it.is_empty()));
            events.is_empty()
        });
        if let Some(settings) = value.as_object_mut().filter(|_| is_empty) {
            settings.remove("hooks");
        }
        Some(value)
    };
    read(one).is_some() && read(one) == read(other)
}

fn options(takes_comments: bool) -> ParseOptions {
    ParseOptions {
        allow_comments: takes_comments,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// Reads what the agent reads, and nothing more.
fn parse(agent: BridgedAgent, text: &str) -> Result<CstRootNode, SettingsFault> {
    let options = options(agent.dialect().settings().takes_comments);
    // The tree for editing takes more than that, whatever its options say.
    jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &options)
        .map_err(|_| SettingsFault::NotJson)?;
    let root = CstRootNode::parse(text, &options).map_err(|_| SettingsFault::NotJson)?;
    match root.to_serde_value() {
        Some(Value::Object(_)) => Ok(root),
        Some(_) => Err(SettingsFault::NotAnObject),
        None => Err(SettingsFault::NotJson),
    }
}

/// The commands of one entry of an event: of a group of hooks, or of a hook itself.
fn commands_of(entry: &Value) -> Vec<&str> {
    let command = |hook: &'static str| entry[hook].as_str();
    match entry["hooks"].as_array() {
        Some(hooks) => hooks.iter().map(|it| it["command"].as_str().unwrap_or_default()).collect(),
        None => [command("bash"), command("command")].into_iter().flatten().collect(),
    }
}

/// Whether an entry has hooks of ours and no others.
fn is_our_entry(agent: BridgedAgent, entry: &CstNode) -> bool {
    let Some(value) = entry.to_serde_value() else { return false };
    let commands = commands_of(&value);
    !commands.is_empty() && commands.iter().all(|it| is_ours(agent, it))
}

fn entry(agent: BridgedAgent, written: &WrittenHook) -> CstInputValue {
    let traits = agent.dialect().settings();
    let text = |it: &str| CstInputValue::String(it.to_owned());
    let is_list = traits.form == SettingsForm::JsonList;
    let (command, timeout) = if is_list { ("bash", "timeoutSec") } else { ("command", "timeout") };
    let mut hook = vec![
        ("type".to_owned(), text("command")),
        (command.to_owned(), text(&written.command)),
        (timeout.to_owned(), CstInputValue::Number(written.timeout.to_string())),
    ];
    if traits.has_on_failure && written.is_gate {
        // If this hook cannot run, no tool does.
        hook.push(("onFailure".to_owned(), text("block")));
    }
    let hook = CstInputValue::Object(hook);
    if is_list {
        return hook;
    }
    CstInputValue::Object(vec![("hooks".to_owned(), CstInputValue::Array(vec![hook]))])
}

#[cfg(test)]
mod tests {
    use crate::agent::BridgedAgent;
    use crate::policy::AskPolicy;
    use crate::settings::{OurHooks, SettingsFault, SetupState, setup_state, without_hooks};
    use serde_json::Value;

    const AGENT: BridgedAgent = BridgedAgent::ClaudeCode;

    fn hooks(program: &str) -> OurHooks<'_> {
        OurHooks { agent: AGENT, program, policy: AskPolicy::AskWhenRisky, later_hours: None }
    }

    #[test]
    fn hooks_come_and_go_and_leave_everything_else_to_the_letter() {
        for before in [
            "{}",
            "{\n  \"model\": \"opus\"\n}\n",
            "{\n\t\"model\":\"opus\",\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{ \"hooks\": [ { \"type\": \"command\", \"command\": \"bell\" } ] }\n\t\t]\n\t},\n\t\"z\": [1,2 ,3]\n}",
            "{ \"hooks\": { \"PreToolUse\": [{ \"matcher\": \"Bash\", \"hooks\": [{ \"type\": \"command\", \"command\": \"x\" }] }] } }\n",
        ] {
            let with = hooks("/usr/bin/aaep").added_to(before).expect("settings");
            let value: Value = serde_json::from_str(&with).expect("JSON");
            let state = setup_state(AGENT, &with, "/usr/bin/aaep");
            assert_eq!(state, SetupState::Complete(AskPolicy::AskWhenRisky), "{with}");
            for point in AGENT.dialect().hooks() {
                let groups = value["hooks"][point.event].as_array().expect("groups");
                let ours = &groups.last().expect("a group")["hooks"][0];
                assert_eq!(ours["command"], "/usr/bin/aaep hook claude-code --policy risky");
                assert_eq!(ours.get("onFailure").is_some(), point.event == "PreToolUse");
            }
            let again = hooks("/usr/bin/aaep").added_to(&with).expect("settings");
            assert_eq!(again, with, "twice is once");
            let other = hooks("/opt/aaep").added_to(&with).expect("settings");
            assert_eq!(setup_state(AGENT, &other, "/usr/bin/aaep"), SetupState::Different);
            let without = without_hooks(AGENT, &other).expect("settings");
            let same = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
            let mut wanted = same(before);
            if wanted["hooks"].as_object().is_some_and(serde_json::Map::is_empty) {
                wanted.as_object_mut().expect("an object").remove("hooks");
            }
            assert_eq!(same(&without), wanted, "{without}");
            assert_eq!(setup_state(AGENT, &without, "/opt/aaep"), SetupState::Absent);
            assert_eq!(without_hooks(AGENT, before).expect("settings"), before);
        }
    }

    #[test]
    fn what_is_not_known_is_left_alone() {
        for (text, fault) in [
            ("{", SettingsFault::NotJson),
            ("{ \"a\": 1, }", SettingsFault::NotJson),
            ("// x\n{}", SettingsFault::NotJson),
            ("[]", SettingsFault::NotAnObject),
            ("{ \"hooks\": [] }", SettingsFault::StrangeHooks),
            ("{ \"hooks\": { \"Stop\": {} } }", SettingsFault::StrangeHooks),
        ] {
            assert_eq!(hooks("aaep").added_to(text), Err(fault), "{text}");
        }
        // A hook that somebody put into our group stays.
        let mixed = "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"command\":\"x hook claude-code --policy risky\"},{\"command\":\"y\"}]}]}}";
        assert_eq!(without_hooks(AGENT, mixed).expect("settings"), mixed);
    }
}
