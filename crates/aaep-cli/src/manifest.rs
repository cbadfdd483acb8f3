//! `aaep manifest`: shows what a producer would publish, and verifies what others publish (§5.10, §10.4).

mod show;
mod verify;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::console::CommandFailure;

/// What to do with a manifest.
#[derive(Debug, Args)]
#[command(after_help = "For example: aaep manifest verify example.org")]
pub(crate) struct ManifestOptions {
    #[command(subcommand)]
    command: ManifestCommand,
}

#[derive(Debug, Subcommand)]
enum ManifestCommand {
    /// Print the manifest of a producer as JSON, and sign it if you want.
    Show(Box<show::ManifestShowOptions>),
    /// Fetch the manifest of a producer, and verify that the right key signed it.
    Verify(verify::ManifestVerifyOptions),
}

pub(crate) fn run(arguments: &ManifestOptions) -> Result<ExitCode, CommandFailure> {
    match &arguments.command {
        ManifestCommand::Show(arguments) => show::run(arguments),
        ManifestCommand::Verify(arguments) => verify::run(arguments),
    }
}
