//! The commands that agents run for us. Where the agent decides by how a command ends, every failure of ours keeps the
//! tool from running, and no failure stops anything else.

use super::OurHooks;
use crate::dialect::{HookPoint, HookRole};

/// The text as one word for a shell.
pub fn shell_word(text: &str) -> String {
    let is_plain =
        |it: char| it.is_ascii_alphanumeric() || matches!(it, '/' | '.' | '_' | '-' | '+');
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// The flag that says for how many hours a question can be answered.
const LATER: &str = " --answer-later ";

/// The hours that a command of ours has after that flag.
pub(super) fn later_hours_of(command: &str) -> Option<u8> {
    let (_, rest) = command.split_once(LATER)?;
    let digits = rest.find(|it: char| !it.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
    digits.parse().ok()
}

/// The command for one hook.
pub(super) fn of_hook(ours: &OurHooks<'_>, point: HookPoint) -> String {
    let plain = plain(ours, point);
    if ours.agent.dialect().settings().has_on_failure {
        return plain;
    }
    let code = if point.role == HookRole::Gate { 2 } else { 0 };
    format!("sh -c {}", shell_word(&format!("{plain} || exit {code}")))
}

/// The program for one hook, for an agent that runs programs by their names and takes only words for a no.
pub(super) fn program_text(ours: &OurHooks<'_>, point: HookPoint) -> String {
    let otherwise = match point.role {
        HookRole::Gate => {
            "printf '%s\\n' '{\"cancel\":true,\"errorMessage\":\"AAEP cannot ask the person.\"}'"
        }
        HookRole::Asks | HookRole::Reports | HookRole::ReportsBriefly => "exit 0",
    };
    format!("#!/bin/sh\n{} || {otherwise}\n", plain(ours, point))
}

fn plain(ours: &OurHooks<'_>, point: HookPoint) -> String {
    let policy = ours.policy.name();
    let mut command =
        format!("{} hook {} --policy {policy}", shell_word(ours.program), ours.agent.id());
    if let Some(hours) = ours.later_hours {
        command.push_str(LATER);
        command.push_str(&hours.to_string());
    }
    if ours.agent.dialect().settings().names_event {
        command.push_str(" --event ");
        command.push_str(point.event);
    }
    command
}
