//! `aaep man`: the manual, one page per command, made from the same words as `--help`.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command};
use clap_mangen::Man;

use crate::console::{CommandFailure, count, name_of};
use crate::keys::tell;

const HOW: &str = "\
For example, to read a page: aaep man listen | man -l -
To install all pages: aaep man --out ~/.local/share/man/man1
Exit codes:
  0  the page is printed, or all pages are written
  2  it could not be done: no such command, or a folder that cannot be written";

/// Which page.
#[derive(Debug, Args)]
#[command(after_help = HOW)]
pub(crate) struct ManOptions {
    /// The command, such as: config show. Without it, the page of aaep itself is printed.
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    words: Vec<String>,
    /// Write the pages of all commands into this folder.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// The file name and content of a page.
type ManPage = (String, Vec<u8>);

/// Prints a page, or writes all of them.
pub(crate) fn run(arguments: &ManOptions, command: Command) -> Result<ExitCode, CommandFailure> {
    let pages = pages(command).map_err(|error| CommandFailure::of_output(&error))?;
    match &arguments.out {
        Some(folder) => write_all(folder, &pages)?,
        None => print(&arguments.words, &pages)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print(words: &[String], pages: &[ManPage]) -> Result<(), CommandFailure> {
    let name = format!("{}.1", [&["aaep".to_owned()], words].concat().join("-"));
    let Some((_, text)) = pages.iter().find(|(it, _)| *it == name) else {
        let what = format!("there is no command {}", aaep::printable(&words.join(" ")));
        return Err(CommandFailure::new(what, "To hear which there are: aaep --help"));
    };
    io::stdout().write_all(text).map_err(|error| CommandFailure::of_output(&error))
}

fn write_all(folder: &Path, pages: &[ManPage]) -> Result<(), CommandFailure> {
    let next = "Look at the rights of the folder.";
    fs::create_dir_all(folder)
        .map_err(|error| CommandFailure::of_file("make", folder, &error, next))?;
    for (name, text) in pages {
        let path = folder.join(name);
        fs::write(&path, text)
            .map_err(|error| CommandFailure::of_file("write", &path, &error, next))?;
    }
    tell(&format!("Wrote {} into {}.", count(pages.len() as u64, "page"), name_of(folder)))
}

/// The pages of a command and of all commands below it.
fn pages(command: Command) -> io::Result<Vec<ManPage>> {
    // The command `help` adds nothing to the pages.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add(&command, &mut pages)?;
    Ok(pages)
}

fn add(command: &Command, pages: &mut Vec<ManPage>) -> io::Result<()> {
    let man = Man::new(command.clone());
    let mut text = Vec::new();
    man.render(&mut text)?;
    pages.push((man.get_filename(), text));
    for below in command.get_subcommands() {
        add(below, pages)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::{Command as Process, Stdio};

    use super::*;
    use crate::order::ordered;

    fn all() -> Vec<(String, String)> {
        let pages = pages(ordered::<crate::AaepOptions>()).expect("pages");
        let text = |text| String::from_utf8(text).expect("UTF-8");
        pages.into_iter().map(|(name, it)| (name, text(it))).collect()
    }

    #[test]
    fn every_command_has_a_page_with_all_its_flags() {
        let pages = all();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        for name in ["aaep.1", "aaep-listen.1", "aaep-config-show.1", "aaep-man.1"] {
            assert!(names.contains(&name), "{name} in {names:?}");
        }
        assert!(!names.iter().any(|it| it.contains("help")), "{names:?}");
        let mut command = ordered::<crate::AaepOptions>();
        command.build();
        look(&command, "aaep", &pages);
    }

    fn look(command: &Command, name: &str, pages: &[(String, String)]) {
        let page = pages.iter().find(|(it, _)| *it == format!("{name}.1"));
        let (_, text) = page.unwrap_or_else(|| panic!("{name} has no page"));
        for flag in command.get_arguments().filter(|it| !it.is_hide_set()) {
            let Some(long) = flag.get_long() else { continue };
            assert!(text.contains(&long.replace('-', "\\-")), "--{long} in {name}");
        }
        for below in command.get_subcommands().filter(|it| it.get_name() != "help") {
            look(below, &format!("{name}-{}", below.get_name()), pages);
        }
    }

    #[test]
    fn every_command_has_an_example_of_its_own_and_exit_codes_on_lines_of_their_own() {
        let command = ordered::<crate::AaepOptions>();
        for below in command.get_subcommands().filter(|it| it.get_name() != "hook") {
            let name = format!("aaep {}", below.get_name());
            check_help(below, &name, name == "aaep manifest");
            for inner in below.get_subcommands().filter(|it| it.get_name() != "help") {
                check_help(inner, &format!("{name} {}", inner.get_name()), false);
            }
        }
    }

    fn check_help(command: &Command, name: &str, has_no_codes: bool) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let example = help.split_once("For example").map(|(_, it)| it).unwrap_or_default();
        assert!(example.contains(name), "{name}: {help}");
        assert!(has_no_codes || example.contains("\nExit codes:\n  0  "), "{name}: {help}");
    }

    #[test]
    fn the_reader_of_manuals_has_nothing_to_complain_about() {
        for (program, arguments) in [
            ("man", &["--warnings", "-Tutf8", "-l", "-"][..]),
            ("mandoc", &["-Tlint", "-Wwarning"]),
        ] {
            for (name, text) in all() {
                let mut command = Process::new(program);
                command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
                command.env("LC_ALL", "C.UTF-8").env("MANPAGER", "cat").env("MANWIDTH", "100");
                let Ok(mut child) = command.stderr(Stdio::piped()).spawn() else {
                    crate::console::say(&format!("NOT CHECKED: {program} is not installed."));
                    break;
                };
                child.stdin.take().expect("its input").write_all(text.as_bytes()).expect("written");
                let output = child.wait_with_output().expect("it ends");
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(output.status.success() && said.is_empty(), "{program} of {name}: {said}");
            }
        }
    }
}
