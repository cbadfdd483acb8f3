//! The commands in the order in which a person meets them: who hears it read aloud hears what they need first.

use clap::{Command, CommandFactory};

/// The commands, first those for people who listen, then for agents, for whoever runs a hub, and for developers.
const ORDER: &[&str] = &[
    "demo",
    "listen",
    "attention",
    "answer",
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
    let command = T::command();
    let names: Vec<String> = command.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        let place = |all: &[&str]| all.iter().position(|it| *it == name);
        let place = place(ORDER)
            .or_else(|| place(LAST).map(|it| it + 2 * FIRST_UNNAMED))
            .unwrap_or(FIRST_UNNAMED);
        command.mut_subcommand(name, |it| it.display_order(place))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
