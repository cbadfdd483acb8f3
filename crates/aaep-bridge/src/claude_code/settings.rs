//! The hooks in Claude Code's own settings: adds them and takes them away again, and leaves everything else as it is,
//! to the letter.

use std::fmt;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstRootNode};
use serde_json::Value;

use super::HOOK_EVENTS;

/// How long the agent waits for a hook that reports or decides, in seconds.
const HOOK_TIMEOUT_SECONDS: u32 = 20;

/// How long the agent waits for a hook that asks the person. It is longer than the person has to answer.
const ASK_TIMEOUT_SECONDS: u32 = 3600;

/// What marks a command as ours.
const MARK: &str = " hook claude-code";

/// Why settings were left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsFault {
    /// The text is not JSON.
    NotJson,
    /// The text is not an object.
    NotAnObject,
    /// What stands under `hooks` does not have the form that we know.
    StrangeHooks,
}

impl fmt::Display for SettingsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SettingsFault::NotJson => "it is not valid JSON",
            SettingsFault::NotAnObject => "it is not a JSON object",
            SettingsFault::StrangeHooks => {
                "what stands under \"hooks\" in it has a form that is not known here"
            }
        })
    }
}

impl std::error::Error for SettingsFault {}

/// The settings with our hooks, which run this command. Hooks that we added before are replaced.
///
/// # Errors
///
/// If the text is not what Claude Code's settings look like. Nothing should be changed then.
pub fn with_hooks(text: &str, command: &str) -> Result<String, SettingsFault> {
    let text = if text.trim().is_empty() { "{}\n".to_owned() } else { without_hooks(text)? };
    let root = parse(&text)?;
    let object = root.object_value().ok_or(SettingsFault::NotAnObject)?;
    let hooks = object.object_value_or_create("hooks").ok_or(SettingsFault::StrangeHooks)?;
    for event in HOOK_EVENTS {
        let groups = hooks.array_value_or_create(event).ok_or(SettingsFault::StrangeHooks)?;
        groups.ensure_multiline();
        groups.append(group(event, command));
    }
    Ok(root.to_string())
}

/// The settings without our hooks.
///
/// # Errors
///
/// As for [`with_hooks`].
pub fn without_hooks(text: &str) -> Result<String, SettingsFault> {
    let root = parse(text)?;
    let object = root.object_value().ok_or(SettingsFault::NotAnObject)?;
    let Some(hooks) = object.get("hooks") else { return Ok(text.to_owned()) };
    let events = hooks.object_value().ok_or(SettingsFault::StrangeHooks)?;
    let mut has_changed = false;
    for event in events.properties() {
        let groups = event.array_value().ok_or(SettingsFault::StrangeHooks)?;
        for group in groups.elements() {
            if is_ours(&group) {
                has_changed = true;
                group.remove();
            }
        }
        if has_changed && groups.elements().is_empty() {
            event.remove();
        }
    }
    if !has_changed {
        return Ok(text.to_owned());
    }
    if events.properties().is_empty() {
        hooks.remove();
    }
    Ok(root.to_string())
}

/// The command that our hooks run, if they are there: the same for every event that is needed.
pub fn installed_command(text: &str) -> Option<String> {
    let settings: Value = serde_json::from_str(text).ok()?;
    let mut commands = HOOK_EVENTS.iter().map(|event| {
        let groups = settings["hooks"][event].as_array()?;
        let mut hooks = groups.iter().flat_map(|it| it["hooks"].as_array().into_iter().flatten());
        hooks.find_map(|hook| hook["command"].as_str().filter(|it| it.contains(MARK)))
    });
    let first = commands.next()??;
    commands.all(|it| it == Some(first)).then(|| first.to_owned())
}

fn parse(text: &str) -> Result<CstRootNode, SettingsFault> {
    // Claude Code reads nothing but JSON, so nothing else is edited.
    let value: Value = serde_json::from_str(text).map_err(|_| SettingsFault::NotJson)?;
    if !value.is_object() {
        return Err(SettingsFault::NotAnObject);
    }
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|_| SettingsFault::NotJson)
}

/// Whether a group has hooks of ours and no others.
fn is_ours(group: &CstNode) -> bool {
    let Some(value) = group.to_serde_value() else { return false };
    let hooks = value["hooks"].as_array().map_or(&[][..], Vec::as_slice);
    let is_our_command =
        |hook: &Value| hook["command"].as_str().is_some_and(|command| command.contains(MARK));
    !hooks.is_empty() && hooks.iter().all(is_our_command)
}

fn group(event: &str, command: &str) -> CstInputValue {
    let is_ask = event == "PermissionRequest";
    let timeout = if is_ask { ASK_TIMEOUT_SECONDS } else { HOOK_TIMEOUT_SECONDS };
    let text = |it: &str| CstInputValue::String(it.to_owned());
    let mut hook = vec![
        ("type".to_owned(), text("command")),
        ("command".to_owned(), text(command)),
        ("timeout".to_owned(), CstInputValue::Number(timeout.to_string())),
    ];
    if event == "PreToolUse" {
        // If this hook cannot run, no tool does.
        hook.push(("onFailure".to_owned(), text("block")));
    }
    let hooks = CstInputValue::Array(vec![CstInputValue::Object(hook)]);
    CstInputValue::Object(vec![("hooks".to_owned(), hooks)])
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAND: &str = "/usr/bin/aaep hook claude-code --policy risky";

    #[test]
    fn hooks_come_and_go_and_leave_everything_else_to_the_letter() {
        for before in [
            "{}",
            "{\n  \"model\": \"opus\"\n}\n",
            "{\n\t\"model\":\"opus\",\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{ \"hooks\": [ { \"type\": \"command\", \"command\": \"bell\" } ] }\n\t\t]\n\t},\n\t\"z\": [1,2 ,3]\n}",
            "{ \"hooks\": { \"PreToolUse\": [{ \"matcher\": \"Bash\", \"hooks\": [{ \"type\": \"command\", \"command\": \"x\" }] }] } }\n",
        ] {
            let with = with_hooks(before, COMMAND).expect("settings");
            let value: Value = serde_json::from_str(&with).expect("JSON");
            assert_eq!(installed_command(&with).as_deref(), Some(COMMAND), "{with}");
            for event in HOOK_EVENTS {
                let groups = value["hooks"][event].as_array().expect("groups");
                let ours = &groups.last().expect("a group")["hooks"][0];
                assert_eq!(ours["command"], COMMAND);
                assert_eq!(ours.get("onFailure").is_some(), event == "PreToolUse");
            }
            assert_eq!(with_hooks(&with, COMMAND).expect("settings"), with, "twice is once");
            let other = with_hooks(&with, "/opt/aaep hook claude-code").expect("settings");
            assert_eq!(installed_command(&other).as_deref(), Some("/opt/aaep hook claude-code"));
            let without = without_hooks(&other).expect("settings");
            let same = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
            let mut wanted = same(before);
            if wanted["hooks"].as_object().is_some_and(serde_json::Map::is_empty) {
                wanted.as_object_mut().expect("an object").remove("hooks");
            }
            assert_eq!(same(&without), wanted, "{without}");
            assert_eq!(installed_command(&without), None);
            assert_eq!(without_hooks(before).expect("settings"), before);
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
            assert_eq!(with_hooks(text, COMMAND), Err(fault), "{text}");
        }
        // A hook that somebody put into our group stays.
        let mixed = "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"command\":\"x hook claude-code\"},{\"command\":\"y\"}]}]}}";
        assert_eq!(without_hooks(mixed).expect("settings"), mixed);
    }
}
