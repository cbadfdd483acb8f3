//! The help of the program, made for the ear: the commands are grouped by who uses them, and there are no marks that
//! are only for the eye.

use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::{Command, CommandFactory};

/// The end of the help of a command: a line that a person can type, and the rest.
pub(crate) fn example(line: &str, rest: &str) -> String {
    format!("For example: {line}\n{rest}")
}

/// The commands by who uses them, in the order in which a person meets them.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "You listen",
        &[
            "demo",
            "agents",
            "follow",
            "acp",
            "chat",
            "mcp",
            "listen",
            "attention",
            "answer",
            "tell",
            "cancel",
            "replay",
            "allow",
            "doctor",
            "config",
        ],
    ),
    ("You write agents", &["ask", "emit", "hook"]),
    ("You run a hub", &["serve", "tokens", "keys", "sessions", "audit", "backup"]),
    ("You check", &["validate", "schema", "manifest", "capture", "report"]),
    ("Also", &["completions", "man", "help"]),
];

/// All commands in their order; the help of the program lists them in their groups.
pub(crate) fn ordered<T: CommandFactory>() -> Command {
    let command = without_marks(T::command());
    let order: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
    let names: Vec<String> = command.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    let command = names.into_iter().fold(command, |command, name| {
        let place = order.iter().position(|it| *it == name).unwrap_or(order.len());
        command.mut_subcommand(name, |it| it.display_order(place))
    });
    let groups = grouped(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}\n"
    ))
}

/// The commands in their groups, each with what it does. clap lists all commands of a program under one heading.
fn grouped(command: &Command) -> String {
    let mut text = String::new();
    for (heading, names) in GROUPS {
        let _ = writeln!(text, "{heading}:");
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map_or_else(|| HELP.to_owned(), StyledStr::to_string);
            let _ = writeln!(text, "  {name:<12} {about}");
        }
        text.push('\n');
    }
    text
}

/// What `aaep help` does. clap adds this command, and only when the program starts.
const HELP: &str = "Print this list, or the help of a command";

/// The same help without backticks, which a screen reader may read out one by one.
fn without_marks(mut command: Command) -> Command {
    let bare = |text: &StyledStr| text.to_string().replace('`', "");
    if let Some(text) = command.get_about().map(bare) {
        command = command.about(text);
    }
    if let Some(text) = command.get_long_about().map(bare) {
        command = command.long_about(text);
    }
    if let Some(text) = command.get_after_help().map(bare) {
        command = command.after_help(text);
    }
    let command = command.mut_args(|mut argument| {
        if let Some(text) = argument.get_help().map(bare) {
            argument = argument.help(text);
        }
        if let Some(text) = argument.get_long_help().map(bare) {
            argument = argument.long_help(text);
        }
        argument
    });
    command.mut_subcommands(without_marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_without_marks(command: &mut Command) {
        let help = command.render_long_help().to_string();
        assert!(!help.contains('`'), "{help}");
        command.get_subcommands_mut().for_each(assert_without_marks);
    }

    #[test]
    fn no_help_has_marks_that_are_only_for_the_eye() {
        assert_without_marks(&mut ordered::<crate::AaepOptions>());
    }

    #[test]
    fn every_command_is_in_one_group_of_the_help_and_listening_comes_first() {
        let mut command = ordered::<crate::AaepOptions>();
        let help = command.render_help().to_string();
        command.build();
        for name in command.get_subcommands().map(Command::get_name) {
            let line = format!("\n  {name:<12} ");
            assert_eq!(help.matches(&line).count(), 1, "{name} in {help}");
        }
        let named = GROUPS.iter().flat_map(|(_, names)| *names);
        for name in named {
            assert!(command.find_subcommand(name).is_some(), "{name}");
        }
        let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}"));
        assert!(at("\nYou listen:\n") < at("\nYou write agents:\n"), "{help}");
        assert!(at("\n  demo ") < at("\n  listen ") && at("\n  listen ") < at("\n  attention "));
        assert!(at("\nAlso:\n") < at("\nOptions:\n"), "{help}");
    }
}
