//! `aaep tokens`: makes, lists and revokes the tokens by which programs prove who they are to a hub
//! (§8.2.7, §10.3.1).
//!
//! A secret is shown once, when it is made. It is never stored, and never shown again.

use std::env;
use std::fs::DirBuilder;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use aaep::printable;
use aaep_engine::Now;
use aaep_hub::access::{Hears, NewToken, Scope, Scopes, Token, Tokens, TokensError};
use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::console::{Failure, ascii_json, count, name_of};
use crate::keys::{now_unix_ms, tell};

const EXIT_CODES: &str = "\
Tokens live in a file that only you can change. It has no secrets, only their hashes. Exit codes:
  0  it is done
  2  it could not be done: wrong usage, no such token, or a file that cannot be used";

/// What to do with the tokens.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a token and show it, this once.
    #[command(after_help = EXIT_CODES)]
    New {
        /// What you call it, such as the program and the machine that get it.
        #[arg(long)]
        name: String,
        /// What it allows: listen, reply, publish or admin. Can be given several times.
        #[arg(long = "scope", value_name = "SCOPE", required = true, value_parser = scope)]
        scopes: Vec<Scope>,
        /// Let its holder hear this agent alone. Can be given several times. Otherwise all agents.
        #[arg(long, value_name = "AGENT")]
        hears: Vec<String>,
        /// In how many days it ends by itself. Otherwise never.
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
        expires_in_days: Option<u32>,
        /// Print a JSON object with the secret, for machines.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: Place,
    },
    /// List the tokens: their ids, what they allow, and the last four characters of each.
    #[command(after_help = EXIT_CODES)]
    List {
        /// Print a JSON array, for machines.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Revoke a token: from then on it is refused.
    #[command(after_help = EXIT_CODES)]
    Revoke {
        /// The token, by its id as `aaep tokens list` says it. Never the secret.
        id: String,
        #[command(flatten)]
        place: Place,
    },
}

/// Where the tokens are.
#[derive(Debug, Args)]
struct Place {
    /// The file of the tokens; made with the first token. By default tokens.toml in the folder of
    /// your configuration.
    #[arg(long, value_name = "FILE", env = "AAEP_TOKENS")]
    file: Option<PathBuf>,
}

impl Place {
    fn path(&self) -> Result<PathBuf, Failure> {
        match &self.file {
            Some(file) => Ok(file.clone()),
            None => Ok(configuration_folder()?.join("tokens.toml")),
        }
    }
}

/// Does it and says so.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        Command::New { name, scopes, hears, expires_in_days, json, place } => {
            let new = NewToken {
                name: name.clone(),
                scopes: useful(scopes)?,
                hears: hears_of(hears)?,
                expires: expires_in_days.map(expiry).transpose()?,
            };
            make(&place.path()?, new, *json)?;
        }
        Command::List { json, place } => list(&place.path()?, *json)?,
        Command::Revoke { id, place } => revoke(&place.path()?, id)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn make(path: &Path, new: NewToken, as_json: bool) -> Result<(), Failure> {
    let mut tokens = Tokens::load(path).map_err(|error| failure(&error))?;
    make_folder_of(path)?;
    let (secret, token) = tokens.create(new, now()).map_err(|error| failure(&error))?;
    let text = if as_json {
        let mut object = object(&token);
        object["secret"] = secret.reveal().into();
        ascii_json(&object)
    } else {
        format!(
            "Made token {}\nIt is shown here once and never again. Copy it now to the program that \
             shall use it:\n{}",
            sentence(&token),
            secret.reveal()
        )
    };
    tell(&text).inspect_err(|_| {
        // Nobody has seen the secret, so nobody may have the token. If that fails too, the list
        // still shows it.
        let _ = tokens.revoke(&token.id);
    })
}

fn list(path: &Path, as_json: bool) -> Result<(), Failure> {
    let tokens = Tokens::load(path).map_err(|error| failure(&error))?;
    let tokens = tokens.list();
    if as_json {
        return tell(&ascii_json(&Value::Array(tokens.iter().map(object).collect())));
    }
    let file = name_of(path);
    if tokens.is_empty() {
        return tell(&format!(
            "There is no token in {file}. Make one with: aaep tokens new --name NAME --scope listen"
        ));
    }
    tell(&format!("{} in {file}.", count(tokens.len() as u64, "token")))?;
    tokens.iter().try_for_each(|token| tell(&format!("Token {}", sentence(token))))
}

fn revoke(path: &Path, id: &str) -> Result<(), Failure> {
    let mut tokens = Tokens::load(path).map_err(|error| failure(&error))?;
    let Some(name) = tokens.list().iter().find(|token| token.id == id).map(|it| it.name.clone())
    else {
        return Err(Failure::new(
            "there is no token with this id",
            "See the ids with: aaep tokens list",
        ));
    };
    tokens.revoke(id).map_err(|error| failure(&error))?;
    let (id, name) = (printable(id), printable(&name));
    tell(&format!("Token {id}, {name}, is revoked. Whoever holds it is refused from now on."))
}

/// The token as a person hears it, without the word token before it.
fn sentence(token: &Token) -> String {
    let scopes: Vec<_> = token.scopes.iter().map(Scope::name).collect();
    let hears = match &token.hears {
        Hears::All => "all agents".to_owned(),
        Hears::Only(agents) => {
            let agents: Vec<_> = agents.iter().map(|agent| printable(agent)).collect();
            if agents.is_empty() { "nobody".to_owned() } else { agents.join(", ") }
        }
    };
    let ends = match token.expires {
        Some(expires) if is_expired(token) => format!("Expired {expires}."),
        Some(expires) => format!("Expires {expires}."),
        None => "Never expires.".to_owned(),
    };
    format!(
        "{}, {}, ending in {}. Allows {}. Hears {hears}. Made {}. {ends}",
        printable(&token.id),
        printable(&token.name),
        printable(&token.last_four),
        scopes.join(", "),
        token.created,
    )
}

fn object(token: &Token) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "scopes": token.scopes.iter().map(Scope::name).collect::<Vec<_>>(),
        "hears": match &token.hears {
            Hears::All => json!("all"),
            Hears::Only(agents) => json!(agents),
        },
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
    Scope::named(text).ok_or_else(|| "use listen, reply, publish or admin".to_owned())
}

/// The scopes, if they are of any use together.
fn useful(scopes: &[Scope]) -> Result<Scopes, Failure> {
    let scopes: Scopes = scopes.iter().copied().collect();
    if scopes.has(Scope::Reply) && !scopes.has(Scope::Listen) {
        return Err(Failure::new(
            "who may reply must hear what is asked, so reply needs listen",
            "Add: --scope listen",
        ));
    }
    Ok(scopes)
}

fn hears_of(agents: &[String]) -> Result<Hears, Failure> {
    if agents.is_empty() {
        return Ok(Hears::All);
    }
    Hears::only(agents.iter().cloned())
        .map_err(|why| Failure::of_sentences(&why, "More: aaep tokens new --help"))
}

fn expiry(days: u32) -> Result<Timestamp, Failure> {
    let seconds = now_unix_ms() / 1000;
    Timestamp::from_second(seconds)
        .and_then(|it| it.checked_add(SignedDuration::from_hours(24 * i64::from(days))))
        .map_err(|_| Failure::new("the expiry is too far away", "Choose fewer days."))
}

fn now() -> Now {
    Now { monotonic_us: 0, unix_us: now_unix_ms().saturating_mul(1000) }
}

/// A failure of the file, whose words bring their own next step.
fn failure(error: &TokensError) -> Failure {
    Failure::of_sentences(&error.to_string(), "More: aaep tokens --help")
}

/// The folder of this program among the user's own configuration.
pub(crate) fn configuration_folder() -> Result<PathBuf, Failure> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_CONFIG_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| set("HOME").map(|home| home.join(".config")))
        .or_else(|| set("APPDATA"))
        .map(|folder| folder.join("aaep"))
        .ok_or_else(|| Failure::new("there is no home folder here", "Say where with --file."))
}

/// Makes the folder that the file goes into, for its owner alone. One that is there stays as it is.
fn make_folder_of(path: &Path) -> Result<(), Failure> {
    let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) else {
        return Ok(());
    };
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| {
        Failure::of_file("make the folder", folder, &error, "Say another place with --file.")
    })
}
