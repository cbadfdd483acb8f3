//! `aaep manifest`: shows what a producer would publish, and verifies what others publish (§5.10, §10.4).

mod show;
mod verify;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::console::Failure;

/// What to do with a manifest.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the manifest of a producer as JSON, signed if you like.
    Show(Box<show::Arguments>),
    /// Fetch the manifest of a producer and say whether it is signed by whom it should be.
    Verify(verify::Arguments),
}

/// Does it and says so.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        Command::Show(arguments) => show::run(arguments),
        Command::Verify(arguments) => verify::run(arguments),
    }
}
