//! Our hooks come and go in the settings of every agent.

use super::{OurHooks, SettingsFault, SettingsForm, SetupState, setup_state, without_hooks};
use super::{are_empty, mean_the_same};
use crate::agent::BridgedAgent;
use crate::dialect::HookRole;
use crate::policy::AskPolicy;

const PROGRAM: &str = "/home/ada lovelace/it's/aaep";

fn hooks(agent: BridgedAgent, policy: AskPolicy) -> OurHooks<'static> {
    OurHooks { agent, program: PROGRAM, policy, later_hours: None }
}

fn files() -> impl Iterator<Item = BridgedAgent> {
    let has_file = |it: &BridgedAgent| it.settings_form() != SettingsForm::Programs;
    BridgedAgent::ALL.iter().copied().filter(has_file)
}

/// Settings with comments where the agent takes them, and with hooks of somebody else.
fn foreign(agent: BridgedAgent) -> String {
    let event = agent.hook_events()[1];
    match agent.settings_form() {
        SettingsForm::Toml => format!(
            "# mine\nmodel   = \"k2\" # fast\n\n[[hooks]]\nevent = \"{event}\"\ncommand = \"bell\"\n\n[loop]\nmax = 3\n"
        ),
        SettingsForm::JsonList => format!(
            "{{\n  // mine\n  \"theme\":\"dark\",\n  \"hooks\": {{ \"{event}\": [ {{ \"type\": \"command\", \"bash\": \"bell\" }} ] }}\n}}\n"
        ),
        _ => {
            let comment = if agent.dialect().settings().takes_comments { "// mine\n" } else { "" };
            format!(
                "{{\n  {comment}\"theme\":\"dark\",\n  \"hooks\": {{ \"{event}\": [ {{ \"hooks\": [ {{ \"type\": \"command\", \"command\": \"bell\" }} ] }} ] }}\n}}\n"
            )
        }
    }
}

#[test]
fn hooks_are_added_once_and_taken_away_with_nothing_else_changed() {
    for agent in files() {
        for before in [String::new(), foreign(agent)] {
            let with = hooks(agent, AskPolicy::AskWhenRisky).added_to(&before).expect("settings");
            let state = SetupState::Complete(AskPolicy::AskWhenRisky);
            assert_eq!(setup_state(agent, &with, PROGRAM), state, "{with}");
            assert_eq!(setup_state(agent, &with, "/opt/aaep"), SetupState::Different);
            for line in before.lines().filter(|it| it.contains("mine") || it.contains("bell")) {
                let words = line.trim().trim_start_matches(|it: char| !it.is_ascii_alphabetic());
                assert!(with.contains(&words[..4]), "{agent:?}: {words} is gone from {with}");
            }
            let other = hooks(agent, AskPolicy::Tell).added_to(&with).expect("settings");
            assert_eq!(setup_state(agent, &other, PROGRAM), SetupState::Complete(AskPolicy::Tell));
            let without = without_hooks(agent, &other).expect("settings");
            assert_eq!(setup_state(agent, &without, PROGRAM), SetupState::Absent);
            if before.is_empty() {
                assert!(are_empty(agent, &without), "{agent:?}: {without}");
            } else {
                assert!(mean_the_same(agent, &without, &before), "{agent:?}: {without}");
                assert!(without.contains("mine") == before.contains("mine"), "{without}");
            }
            assert_eq!(without_hooks(agent, &before).unwrap_or_default(), before);
        }
    }
}

#[test]
fn settings_of_a_form_that_is_not_known_are_left_alone() {
    for agent in files() {
        let (broken, strange, fault) = match agent.settings_form() {
            SettingsForm::Toml => ("a = ", "hooks = 1\n", SettingsFault::NotToml),
            _ => ("{ \"a\": ", "{ \"hooks\": 1 }", SettingsFault::NotJson),
        };
        let ours = hooks(agent, AskPolicy::Tell);
        assert_eq!(ours.added_to(broken), Err(fault), "{agent:?}");
        assert_eq!(ours.added_to(strange), Err(SettingsFault::StrangeHooks), "{agent:?}");
        assert_eq!(without_hooks(agent, strange), Err(SettingsFault::StrangeHooks), "{agent:?}");
    }
}

#[test]
fn only_a_hook_that_decides_fails_closed_and_it_ends_before_the_agents_patience() {
    for agent in files() {
        let dialect = agent.dialect();
        for (hook, point) in hooks(agent, AskPolicy::Tell).written().iter().zip(dialect.hooks()) {
            let is_gate = point.role == HookRole::Gate;
            if !dialect.settings().has_on_failure {
                assert!(hook.command.starts_with("sh -c "), "{}", hook.command);
                assert_eq!(hook.command.contains("|| exit 2"), is_gate, "{}", hook.command);
            }
            if point.role == HookRole::Asks {
                // Asking has a grace of less than two minutes after the last moment of an answer.
                let times = dialect.times();
                assert!(times.longest_seconds + 120 <= times.hook_seconds, "{agent:?}");
                assert!(hook.timeout >= times.hook_seconds);
            }
        }
        let times = dialect.times();
        assert!(times.first_seconds <= times.longest_seconds, "{agent:?}");
    }
}

#[test]
fn programs_of_a_folder_run_this_program_and_say_no_when_it_is_missing() {
    let programs = hooks(BridgedAgent::Cline, AskPolicy::AskWhenRisky).programs();
    let names: Vec<&str> = programs.iter().map(|it| it.0).collect();
    assert_eq!(names, ["TaskStart", "PreToolUse", "PostToolUse", "TaskComplete"]);
    for (name, text) in programs {
        assert!(text.starts_with("#!/bin/sh\n"), "{text}");
        assert!(text.contains(" hook cline --policy risky"), "{text}");
        assert_eq!(text.contains("{\"cancel\":true"), name == "PreToolUse", "{text}");
    }
}
