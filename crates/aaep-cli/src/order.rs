//! The commands and their help for the ear: in the order in which a person meets them, and without marks that are only
//! for the eye.

use clap::builder::StyledStr;
use clap::{Command, CommandFactory};

/// The commands, first those for people who listen, then for agents, for whoever runs a hub, and for developers.
const ORDER: &[&str] = &[
    "demo",
    "listen",
    "attention",
    "answer",
    "tell",
    "cancel",
    "replay",
    "allow",
    "doctor",
    "config",
    "ask",
    "emit",
    "capture",
    "report",
    "serve",
    "tokens",
    "keys",
    "sessions",
    "audit",
    "backup",
    "manifest",
    "validate",
    "schema",
];

/// What comes after all others.
const LAST: &[&str] = &["completions", "man", "help"];

/// How many places there are between two commands that are named here, for those that are not.
const FIRST_UNNAMED: usize = 100;

/// All commands in their order.
pub(crate) fn ordered<T: CommandFactory>() -> Command {
    let command = without_marks(T::command());
    let names: Vec<String> = command.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        let place = |all: &[&str]| all.iter().position(|it| *it == name);
        let place = place(ORDER)
            .or_else(|| place(LAST).map(|it| it + 2 * FIRST_UNNAMED))
            .unwrap_or(FIRST_UNNAMED);
        command.mut_subcommand(name, |it| it.display_order(place))
    })
}

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
        assert_without_marks(&mut ordered::<crate::Arguments>());
    }

    #[test]
    fn every_command_that_is_named_is_one_and_people_who_listen_come_first() {
        let command = ordered::<crate::Arguments>();
        for name in ORDER {
            assert!(command.find_subcommand(name).is_some(), "{name}");
        }
        let help = ordered::<crate::Arguments>().render_help().to_string();
        let at =
            |name: &str| help.find(&format!("\n  {name} ")).unwrap_or_else(|| panic!("{name}"));
        assert!(at("demo") < at("listen") && at("listen") < at("attention"), "{help}");
        assert!(at("attention") < at("serve") && at("serve") < at("validate"), "{help}");
        assert!(at("validate") < at("completions") && at("completions") < at("man"), "{help}");
    }
}
