//! `aaep tokens`: makes, lists and revokes the tokens by which programs identify themselves to a hub (§8.2.7,
//! §10.3.1).
//!
//! A secret is shown once, when it is made. It is never stored and never shown again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use aaep::printable;
use aaep_engine::Now;
use aaep_hub::access::{HeardAgents, NewToken, Scope, Scopes, Token, Tokens, TokensError};
use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::console::{CommandFailure, ascii_json, name_of};
use crate::english::{admitting, failures};
use crate::folders::{self, configuration_folder};
use crate::keys::{now_unix_ms, tell};
use crate::order::example;

const EXIT_CODES: &str = "\
The file of the tokens can be changed by you alone. It contains hashes of the secrets, not the secrets themselves.
Exit codes:
  0  it is done
  2  it could not be done: wrong usage, no such token, or a file that cannot be used";

/// What to do with the tokens.
#[derive(Debug, Args)]
#[command(after_help = example("aaep tokens new --name \"laptop of Ada\" --scope listen --scope reply --for ada", EXIT_CODES))]
pub(crate) struct TokensOptions {
    #[command(subcommand)]
    command: TokensCommand,
}

#[derive(Debug, Subcommand)]
enum TokensCommand {
    /// Make a token and print it. This is the only time that it is shown.
    #[command(after_help = example("aaep tokens new --name \"laptop of Ada\" --scope listen --scope reply --for ada", EXIT_CODES))]
    New {
        /// A name for you, such as the program and the machine that use the token.
        #[arg(long)]
        name: String,
        /// What the token allows: listen, reply, publish or admin. Can be given several times.
        #[arg(long = "scope", value_name = "SCOPE", required = true, value_parser = scope)]
        scopes: Vec<Scope>,
        /// The owner of the token: a person, a group, or `me` for the person who runs the hub. The holder hears the agents
        /// of the owner, and the owner hears and answers those of the holder. Can be given several times. By default the
        /// token has no other owner.
        #[arg(long = "for", value_name = "OWNER")]
        owners: Vec<String>,
        /// Let the holder hear this agent, whoever owns it. Can be given several times. NAME@PRINCIPAL is the agent of
        /// this name that one principal speaks for. By default the holder hears the agents of the owners.
        #[arg(long, value_name = "AGENT", conflicts_with = "hears_all")]
        hears: Vec<String>,
        /// Let the holder hear all agents of everybody.
        #[arg(long)]
        hears_all: bool,
        /// Reserve this name for agents of the holder, who may then use no other. Can be given several times. By default
        /// the holder may use any name that nobody else holds.
        #[arg(long, value_name = "NAME")]
        speaks_as: Vec<String>,
        /// After how many days the token expires. By default never.
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
        expires_in_days: Option<u32>,
        /// Print one JSON object with the secret, for programs.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: TokensFileFlag,
    },
    /// List the tokens: their ids, what they allow, and the last four characters of each.
    #[command(after_help = example("aaep tokens list", EXIT_CODES))]
    List {
        /// Print a JSON array, for programs.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: TokensFileFlag,
    },
    /// Revoke a token: from then on it is refused.
    #[command(after_help = example("aaep tokens revoke ID", EXIT_CODES))]
    Revoke {
        /// The id of the token, as `aaep tokens list` shows it. Never the secret.
        id: String,
        #[command(flatten)]
        place: TokensFileFlag,
    },
}

/// Where the tokens are.
#[derive(Debug, Args)]
pub(crate) struct TokensFileFlag {
    /// The file of the tokens, created with the first token. By default tokens.toml in your configuration folder.
    #[arg(long, value_name = "FILE", env = "AAEP_TOKENS")]
    file: Option<PathBuf>,
}

impl TokensFileFlag {
    pub(crate) fn path(&self) -> Result<PathBuf, CommandFailure> {
        match &self.file {
            Some(file) => Ok(file.clone()),
            None => Ok(configuration_folder()?.join("tokens.toml")),
        }
    }
}

pub(crate) fn run(arguments: &TokensOptions) -> Result<ExitCode, CommandFailure> {
    match &arguments.command {
        TokensCommand::New {
            name,
            scopes,
            owners,
            hears,
            hears_all,
            speaks_as,
            expires_in_days,
            json,
            place,
        } => {
            let new = NewToken {
                name: name.clone(),
                scopes: useful(scopes)?,
                hears: hears_of(hears, *hears_all)?,
                owners: owners.iter().cloned().collect(),
                speaks_as: speaks_as.iter().cloned().collect(),
                expires: expires_in_days.map(expiry).transpose()?,
            };
            make(&place.path()?, new, *json)?;
        }
        TokensCommand::List { json, place } => list(&place.path()?, *json)?,
        TokensCommand::Revoke { id, place } => revoke(&place.path()?, id)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn make(path: &Path, new: NewToken, as_json: bool) -> Result<(), CommandFailure> {
    let mut tokens = Tokens::load(path).map_err(|error| failure(&error))?;
    make_folder_of(path)?;
    let (secret, token) = tokens.create(new, now()).map_err(|error| failure(&error))?;
    let text = if as_json {
        let mut object = object(&token);
        object["secret"] = secret.reveal().into();
        ascii_json(&object)
    } else {
        let hears_yours = !token.owners.is_empty() || token.hears != HeardAgents::Own;
        admitting::made(&sentences(&token), hears_yours, secret.reveal())
    };
    tell(&text).inspect_err(|_| {
        // The secret was not shown, so nobody may hold the token. If revoking fails too, the list still shows it.
        let _ = tokens.revoke(&token.id);
    })
}

fn list(path: &Path, as_json: bool) -> Result<(), CommandFailure> {
    let tokens = Tokens::load(path).map_err(|error| failure(&error))?;
    let tokens = tokens.list();
    if as_json {
        return tell(&ascii_json(&Value::Array(tokens.iter().map(object).collect())));
    }
    let file = name_of(path);
    if tokens.is_empty() {
        return tell(&admitting::no_tokens(&file));
    }
    tell(&admitting::tokens(tokens.len() as u64, &file))?;
    tokens.iter().try_for_each(|token| tell(&admitting::listed(&sentences(token))))
}

fn revoke(path: &Path, id: &str) -> Result<(), CommandFailure> {
    let mut tokens = Tokens::load(path).map_err(|error| failure(&error))?;
    let Some(name) = tokens.list().iter().find(|token| token.id == id).map(|it| it.name.clone())
    else {
        return Err(admitting::NO_SUCH_ID.into());
    };
    tokens.revoke(id).map_err(|error| failure(&error))?;
    tell(&admitting::revoked(&printable(id), &printable(&name)))
}

/// A token as sentences for people, without the word token before them.
fn sentences(token: &Token) -> String {
    let (id, name, last_four) = (&token.id, &token.name, &token.last_four);
    let scopes: Vec<_> = token.scopes.iter().map(Scope::name).collect();
    let mut said = vec![
        admitting::identity(&printable(id), &printable(name), &printable(last_four)),
        listed(&token.owners)
            .map_or_else(|| admitting::OWNED_BY_NONE.to_owned(), |it| admitting::owned_by(&it)),
        admitting::allows(&scopes.join(", ")),
        match &token.hears {
            HeardAgents::All => admitting::HEARS_ALL.to_owned(),
            HeardAgents::Own => listed(&token.owners).map_or_else(
                || admitting::HEARS_OWN.to_owned(),
                |it| admitting::hears_agents_of(&it),
            ),
            HeardAgents::Only(agents) => listed(agents)
                .map_or_else(|| admitting::HEARS_NONE.to_owned(), |it| admitting::hears(&it)),
        },
    ];
    said.extend(listed(&token.speaks_as).map(|it| admitting::speaks_as(&it)));
    said.push(admitting::created(&token.created));
    said.push(match token.expires {
        Some(expires) if is_expired(token) => admitting::expired(&expires),
        Some(expires) => admitting::expires(&expires),
        None => admitting::NEVER_EXPIRES.to_owned(),
    });
    said.join(" ")
}

/// Names as a list, or `None` if there are none.
fn listed(names: &BTreeSet<String>) -> Option<String> {
    let names: Vec<_> = names.iter().map(|it| printable(it)).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn object(token: &Token) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "scopes": token.scopes.iter().map(Scope::name).collect::<Vec<_>>(),
        "hears": match &token.hears {
            HeardAgents::All => json!("all"),
            HeardAgents::Own => json!("own"),
            HeardAgents::Only(agents) => json!(agents),
        },
        "for": token.owners,
        "speaks_as": token.speaks_as,
        "created": token.created.to_string(),
        "expires": token.expires.map(|it| it.to_string()),
        "is_expired": is_expired(token),
        "last_four": token.last_four,
    })
}

fn is_expired(token: &Token) -> bool {
    token.is_expired(now().unix_us)
}

fn scope(text: &str) -> Result<Scope, String> {
    Scope::named(text).ok_or_else(|| admitting::SCOPE_NAMES.to_owned())
}

/// The scopes, if they make sense together.
fn useful(scopes: &[Scope]) -> Result<Scopes, CommandFailure> {
    let scopes: Scopes = scopes.iter().copied().collect();
    if scopes.has(Scope::Reply) && !scopes.has(Scope::Listen) {
        return Err(admitting::REPLY_NEEDS_LISTEN.into());
    }
    Ok(scopes)
}

fn hears_of(agents: &[String], hears_all: bool) -> Result<HeardAgents, CommandFailure> {
    if hears_all {
        return Ok(HeardAgents::All);
    }
    if agents.is_empty() {
        return Ok(HeardAgents::Own);
    }
    HeardAgents::only(agents.iter().cloned())
        .map_err(|why| CommandFailure::of_sentences(&why, admitting::MORE_HELP_NEW))
}

fn expiry(days: u32) -> Result<Timestamp, CommandFailure> {
    let seconds = now_unix_ms() / 1000;
    Timestamp::from_second(seconds)
        .and_then(|it| it.checked_add(SignedDuration::from_hours(24 * i64::from(days))))
        .map_err(|_| admitting::EXPIRY_TOO_FAR.into())
}

pub(crate) fn now() -> Now {
    Now { monotonic_us: 0, unix_us: now_unix_ms().saturating_mul(1000) }
}

/// Turns an error of the tokens file into a failure. Its message already contains the next step.
fn failure(error: &TokensError) -> CommandFailure {
    CommandFailure::of_sentences(&error.to_string(), admitting::MORE_HELP)
}

/// Creates the folder for this file, for its owner only. An existing folder stays unchanged.
pub(crate) fn make_folder_of(path: &Path) -> Result<(), CommandFailure> {
    folders::make_folder_of(path).map_err(|error| {
        let folder = path.parent().unwrap_or(path);
        CommandFailure::of_file(failures::MAKE_FOLDER, folder, &error, admitting::SAY_ANOTHER_FILE)
    })
}
