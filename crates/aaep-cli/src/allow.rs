//! `aaep allow`: lets programs on this machine answer questions, and takes that back (ruling 37).
//!
//! A program without a token may listen to your agents. It answers them only after you allowed it, by
//! the name that it gives itself. What you allow is in the file of the tokens; the hub sees a change
//! within a second.

use std::process::ExitCode;

use aaep::printable;
use aaep_hub::access::{Tokens, TokensError, UNNAMED_PROGRAM};
use clap::Args;
use serde_json::{Value, json};

use crate::console::{Failure, ascii_json, count};
use crate::keys::tell;
use crate::tokens::{self, now};

const EXIT_CODES: &str = "\
A program gives itself a name: its subscriber_id. Another program can give itself the same name, so \
allow only programs on a machine that you trust; for all others, make a token. Exit codes:
  0  it is done
  2  it could not be done: wrong usage, or a file that cannot be used";

/// Which programs to allow.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// The program, by the name that it gives itself. Without one, the allowed programs are listed.
    program: Option<String>,
    /// Allow programs that give no name: streams without a handshake.
    #[arg(long, conflicts_with = "program")]
    unnamed: bool,
    /// Take it back: from now on the program only listens.
    #[arg(long)]
    revoke: bool,
    /// Print the list as a JSON array, for machines.
    #[arg(long, conflicts_with_all = ["program", "unnamed", "revoke"])]
    json: bool,
    #[command(flatten)]
    place: tokens::Place,
}

/// Does it and says so.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let path = arguments.place.path()?;
    let mut tokens = Tokens::load(&path).map_err(|error| failure(&error))?;
    let unnamed = arguments.unnamed.then_some(UNNAMED_PROGRAM);
    match (arguments.program.as_deref().or(unnamed), arguments.revoke) {
        (None, false) => list(&tokens, arguments.json)?,
        (None, true) => {
            return Err(Failure::new(
                "it is not said which program",
                "Name one. See them with: aaep allow",
            ));
        }
        (Some(program), false) => {
            tokens::make_folder_of(&path)?;
            let is_new = tokens.allow_program(program, now()).map_err(|error| failure(&error))?;
            let (name, already) = (printable(program), if is_new { "" } else { " already" });
            tell(&format!(
                "Programs on this machine that call themselves {name} may{already} answer your agents. \
                 To take it back: aaep allow {name} --revoke"
            ))?;
        }
        (Some(program), true) => {
            tokens.forbid_program(program).map_err(|error| match error {
                TokensError::NoSuchToken => Failure::new(
                    format!("{} was not allowed", printable(program)),
                    "See what is with: aaep allow",
                ),
                error => failure(&error),
            })?;
            tell(&format!("{} only listens from now on.", printable(program)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(tokens: &Tokens, as_json: bool) -> Result<(), Failure> {
    let programs = tokens.programs();
    if as_json {
        let rows =
            programs.iter().map(|it| json!({ "name": it.name, "allowed": it.allowed.to_string() }));
        return tell(&ascii_json(&Value::Array(rows.collect())));
    }
    if programs.is_empty() {
        return tell(
            "No program but your own may answer your agents. To allow one: aaep allow NAME",
        );
    }
    tell(&format!("{} may answer your agents.", count(programs.len() as u64, "program")))?;
    programs
        .iter()
        .try_for_each(|it| tell(&format!("{}, allowed {}.", printable(&it.name), it.allowed)))
}

/// A failure of the file, whose words bring their own next step.
fn failure(error: &TokensError) -> Failure {
    Failure::of_sentences(&error.to_string(), "More: aaep allow --help")
}
