//! `aaep allow`: lets programs on this machine answer questions, and takes that back (ruling 37).
//!
//! A program without a token may listen to your agents. It may answer them only after you allow it: by the name that
//! it gives itself, or, if it gives none, by an address that you make for it alone. The tokens file keeps what you
//! allow; the hub notices a change within a second.

use std::process::ExitCode;

use aaep::printable;
use aaep_hub::access::{AllowedProgram, Tokens, TokensError, path_for_secret};
use aaep_transport::link::Target;
use clap::Args;
use serde_json::{Value, json};

use crate::console::{CommandFailure, ascii_json};
use crate::english::allowing;
use crate::hubs::HubAddressFlag;
use crate::hubs::reach::DEFAULT_HUB;
use crate::keys::tell;
use crate::tokens::{self, now};

const EXIT_CODES: &str = "\
For example: aaep allow my-screen-reader
A program names itself, by its subscriber_id. Another program can use the same name, so allow programs only on a machine
that you trust. With --address, the program is known by a secret in its address, and needs neither a name nor a token.
Exit codes:
  0  it is done
  2  it could not be done: wrong usage, or a file that cannot be used";

/// Which programs to allow.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct AllowOptions {
    /// The name of the program, as it calls itself. Without one, the allowed programs are listed.
    program: Option<String>,
    /// Make an address for this program alone, for a program that sends no name and no token. It leads to the hub that
    /// --hub names. An address made earlier for this name stops working.
    #[arg(long, requires = "program", conflicts_with_all = ["revoke", "json"])]
    address: bool,
    /// Revoke the permission: from now on, the program can only listen.
    #[arg(long)]
    revoke: bool,
    /// Print the list as a JSON array, for programs.
    #[arg(long, conflicts_with_all = ["program", "revoke"])]
    json: bool,
    #[command(flatten)]
    hub: HubAddressFlag,
    #[command(flatten)]
    place: tokens::TokensFileFlag,
}

pub(crate) fn run(arguments: &AllowOptions) -> Result<ExitCode, CommandFailure> {
    let path = arguments.place.path()?;
    let mut tokens = Tokens::load(&path).map_err(|error| failure(&error))?;
    match (arguments.program.as_deref(), arguments.revoke) {
        (None, false) => list(&tokens, arguments.json)?,
        (None, true) => return Err(allowing::REVOKE_WHAT.into()),
        (Some(program), false) if arguments.address => {
            let origin = origin(&arguments.hub.address()?)?;
            tokens::make_folder_of(&path)?;
            make_address(&mut tokens, program, &origin)?;
        }
        (Some(program), false) => {
            tokens::make_folder_of(&path)?;
            let is_new = tokens.allow_program(program, now()).map_err(|error| failure(&error))?;
            tell(&allowing::allowed(&printable(program), is_new))?;
        }
        (Some(program), true) => {
            tokens.forbid_program(program).map_err(|error| match error {
                TokensError::NoSuchToken => allowing::was_not_allowed(&printable(program)).into(),
                error => failure(&error),
            })?;
            tell(&allowing::only_listens(&printable(program)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(tokens: &Tokens, as_json: bool) -> Result<(), CommandFailure> {
    let programs = tokens.programs();
    if as_json {
        return tell(&ascii_json(&Value::Array(programs.iter().map(row).collect())));
    }
    if programs.is_empty() {
        return tell(allowing::NONE_ALLOWED);
    }
    tell(&allowing::programs(programs.len() as u64))?;
    programs.iter().try_for_each(|it| {
        let by = match &it.address {
            Some(address) => allowing::by_address(&printable(&address.last_four)),
            None => allowing::BY_NAME.to_owned(),
        };
        tell(&allowing::program(&printable(&it.name), &it.allowed, &by))
    })
}

/// A program as JSON, with only the part of its address that the file keeps.
fn row(program: &AllowedProgram) -> Value {
    json!({
        "name": program.name,
        "allowed": program.allowed.to_string(),
        "address_ends_in": program.address.as_ref().map(|it| &it.last_four),
    })
}

/// Makes an address and shows it once.
fn make_address(tokens: &mut Tokens, program: &str, origin: &str) -> Result<(), CommandFailure> {
    let made = tokens.make_address(program, now()).map_err(|error| failure(&error))?;
    let (secret, had_one) = made;
    let name = printable(program);
    if had_one {
        tell(&allowing::earlier_address_ended(&name))?;
    }
    tell(&allowing::give_address(&name))?;
    tell(&format!("{origin}{}", path_for_secret(secret.reveal())))
}

/// The hub's HTTP origin, for programs that can use only HTTP addresses.
fn origin(hub: &str) -> Result<String, CommandFailure> {
    match Target::parse(hub) {
        Ok(Target::Sse(place) | Target::WebSocket(place) | Target::Grpc(place))
            if place.is_loopback() =>
        {
            Ok(place.origin())
        }
        // The person's own hub, reached by its socket, also listens on its usual port unless another was given.
        Ok(Target::Unix(_)) => Ok(DEFAULT_HUB.to_owned()),
        _ => Err(allowing::not_local_http(&printable(hub), DEFAULT_HUB).into()),
    }
}

/// Turns an error of the tokens file into a failure. Its message already contains the next step.
fn failure(error: &TokensError) -> CommandFailure {
    CommandFailure::of_sentences(&error.to_string(), allowing::MORE_HELP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_made_for_a_hub_in_whichever_form_it_is_named() {
        for hub in [
            "http://127.0.0.1:7200",
            "http://127.0.0.1:7200/aaep/v1/events",
            "ws://127.0.0.1:7200/aaep/v1/ws",
            "grpc://127.0.0.1:7200",
        ] {
            assert_eq!(origin(hub).ok().as_deref(), Some("http://127.0.0.1:7200"), "{hub}");
        }
        assert_eq!(origin("unix:").ok().as_deref(), Some(DEFAULT_HUB));
        for hub in ["https://hub.example.org", "wss://hub.example.org", "stdio:agent", "hub"] {
            assert!(origin(hub).is_err(), "{hub}");
        }
    }
}
