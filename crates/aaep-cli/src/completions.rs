//! `aaep completions`: lets a shell complete commands and flags.
//!
//! The printed script is self-contained: completing runs no program, reads no settings and contacts no hub.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::aot::{Shell, generate};

use crate::console::CommandFailure;

const HOW: &str = "\
For example, to turn it on:
  bash        aaep completions bash > ~/.local/share/bash-completion/completions/aaep
  zsh         aaep completions zsh > a file _aaep in a folder of fpath
  fish        aaep completions fish > ~/.config/fish/completions/aaep.fish
  powershell  aaep completions powershell, at the end of the file that $PROFILE names
  elvish      aaep completions elvish, at the end of rc.elv
Create the folder first if it is missing. Completion works in new shells.
Exit codes:
  0  the script is printed
  2  it could not be done: wrong usage, or nowhere to print";

/// For which shell.
#[derive(Debug, Args)]
#[command(after_help = HOW)]
pub(crate) struct CompletionsOptions {
    /// The shell.
    shell: Shell,
}

/// Prints the completion script.
pub(crate) fn run(
    arguments: &CompletionsOptions,
    command: Command,
) -> Result<ExitCode, CommandFailure> {
    let text = text(arguments.shell, command);
    io::stdout().write_all(&text).map_err(|error| CommandFailure::of_output(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn text(shell: Shell, mut command: Command) -> Vec<u8> {
    let mut text = Vec::new();
    generate(shell, &mut command, "aaep", &mut text);
    text
}

#[cfg(test)]
mod tests {
    use std::process::{Command as Process, Stdio};

    use clap::ValueEnum as _;

    use super::*;
    use crate::order::ordered;

    fn of(shell: Shell) -> String {
        String::from_utf8(text(shell, ordered::<crate::AaepOptions>())).expect("UTF-8")
    }

    /// All commands below this one, and their long flags.
    fn words(command: &Command, all: &mut Vec<String>) {
        for command in command.get_subcommands() {
            all.push(command.get_name().to_owned());
            all.extend(command.get_arguments().filter_map(|it| it.get_long().map(str::to_owned)));
            words(command, all);
        }
    }

    #[test]
    fn every_command_and_every_flag_can_be_completed_in_every_shell() {
        let mut all = Vec::new();
        words(&ordered::<crate::AaepOptions>(), &mut all);
        assert!(all.contains(&"listen".to_owned()) && all.contains(&"braille".to_owned()));
        for shell in Shell::value_variants() {
            let text = of(*shell);
            for word in &all {
                assert!(text.contains(word.as_str()), "{word} for {shell}");
            }
        }
    }

    #[test]
    fn completing_runs_nothing_of_ours() {
        for shell in Shell::value_variants() {
            let text = of(*shell);
            for call in ["$(aaep", "(aaep ", "(command aaep", "e:aaep"] {
                assert!(!text.contains(call), "{call} for {shell}");
            }
        }
    }

    /// Whether an installed shell can read the script. Reports a shell that is not installed.
    fn is_read_by(shell: &str, text: &str) {
        let child =
            Process::new(shell).arg("-n").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let Ok(mut child) = child else {
            crate::console::say(&format!("NOT CHECKED: {shell} is not installed."));
            return;
        };
        child.stdin.take().expect("its input").write_all(text.as_bytes()).expect("written");
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.is_empty(), "{shell}: {said}");
    }

    #[test]
    fn shells_can_read_it() {
        for (shell, name) in [(Shell::Bash, "bash"), (Shell::Zsh, "zsh"), (Shell::Fish, "fish")] {
            is_read_by(name, &of(shell));
        }
    }

    #[cfg(unix)]
    #[test]
    fn bash_completes_a_command_and_its_flags() {
        let ask = "\naaep() { echo called >&2; }\nCOMP_WORDS=(aaep lis); COMP_CWORD=1; _aaep aaep lis aaep; echo \"${COMPREPLY[*]}\"\n\
                   COMP_WORDS=(aaep listen --br); COMP_CWORD=2; _aaep aaep --br listen; echo \"${COMPREPLY[*]}\"\n";
        let script = of(Shell::Bash) + ask;
        // It is too long for an argument.
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(script.as_bytes()).expect("there is room");
        let output =
            Process::new("bash").arg("--norc").arg(file.path()).output().expect("bash runs");
        let said = |it: &[u8]| String::from_utf8_lossy(it).into_owned();
        assert_eq!(said(&output.stdout), "listen\n--braille\n");
        assert_eq!(said(&output.stderr), "", "nothing was called, and nothing went wrong");
    }
}
