//! `aaep manifest verify`: fetches a manifest and its keys, and reports in sentences.
//!
//! Keys are fetched only from the manifest's origin, unless the user names another place. A pin is made or replaced
//! only if the user asks for it.

use std::path::PathBuf;
use std::process::ExitCode;

use aaep_trust::fetch::{Client, HttpAddress};
use aaep_trust::keys::{Jwks, Thumbprint};
use aaep_trust::manifest::{
    Expected, PinError, PinStore, Unverified, VerifiedManifest, VerifyError, WELL_KNOWN_PATH,
};
use serde_json::json;

use crate::console::{COULD_NOT, CommandFailure};
use crate::folders::data_folder;
use crate::keys::{moment, now_unix_ms, tell};

const EXIT_CODES: &str = "\
For example: aaep manifest verify example.org
Exit codes:
  0  the manifest is valid: signed, unchanged, and by the pinned key if one is pinned
  1  the manifest is not valid, or its key is not the pinned one
  2  it could not be verified: wrong usage, or the manifest or its keys could not be fetched";

/// The JWS itself if the producer has it, otherwise the JSON that may contain it.
const WANTED: &str = "application/jose, application/json;q=0.9";

/// What to verify and whom to trust.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(super) struct ManifestVerifyOptions {
    /// The address of the manifest, or of the producer alone, such as example.org.
    url: String,
    /// Accept only this key.
    // The keys of others may begin with a hyphen.
    #[arg(long, value_name = "THUMBPRINT", allow_hyphen_values = true)]
    pin: Option<Thumbprint>,
    /// The file of the pinned keys, one for each producer. By default a file of your own.
    #[arg(long, value_name = "FILE", env = "AAEP_PINS")]
    pins: Option<PathBuf>,
    /// Pin the key from now on. With --pin, this replaces a key that was pinned before.
    #[arg(long)]
    trust_first: bool,
    /// Fetch the keys from here, and not from where the manifest says.
    #[arg(long, value_name = "URL")]
    jwks: Option<String>,
    /// Print one JSON object, for programs.
    #[arg(long)]
    json: bool,
    /// Fetch from other machines over plain HTTP, too. Anyone on the way can then change everything.
    #[arg(long)]
    insecure_allow_plain_http: bool,
}

/// The result of the verification.
enum ManifestVerdict {
    /// The manifest is valid.
    Valid(Box<VerifiedManifest>, KeyTrust),
    Invalid(VerifyError),
}

/// Whether the key of a valid manifest is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyTrust {
    /// It was pinned before.
    Known,
    /// It is pinned from now on.
    Remembered,
    /// It is not pinned.
    Unknown,
}

pub(super) fn run(arguments: &ManifestVerifyOptions) -> Result<ExitCode, CommandFailure> {
    let outcome = match check(arguments) {
        Ok(outcome) => outcome,
        Err(failure) if arguments.json => {
            let text = failure.to_string();
            tell(&json!({ "valid": null, "code": "not_checked", "message": text }).to_string())?;
            return Ok(ExitCode::from(COULD_NOT));
        }
        Err(failure) => return Err(failure),
    };
    match (&outcome, arguments.json) {
        (ManifestVerdict::Valid(verified, trust), true) => tell(&valid_json(verified, *trust))?,
        (ManifestVerdict::Valid(verified, trust), false) => {
            tell_valid(arguments, verified, *trust)?;
        }
        (ManifestVerdict::Invalid(error), true) => {
            let (code, text) = (error.code(), error.to_string());
            tell(&json!({ "valid": false, "code": code, "message": text }).to_string())?;
        }
        (ManifestVerdict::Invalid(error), false) => tell(&format!("Not valid. {error}"))?,
    }
    Ok(match outcome {
        ManifestVerdict::Valid(..) => ExitCode::SUCCESS,
        ManifestVerdict::Invalid(_) => ExitCode::FAILURE,
    })
}

fn check(arguments: &ManifestVerifyOptions) -> Result<ManifestVerdict, CommandFailure> {
    let address = HttpAddress::parse_or_host(&arguments.url, WELL_KNOWN_PATH).map_err(|error| {
        CommandFailure::new(error.to_string(), "More: aaep manifest verify --help")
    })?;
    let mut pins = open_pins(arguments)?;
    let client = Client::new().insecure_allow_plain_http(arguments.insecure_allow_plain_http);
    let bytes = fetch(&client, &address, "manifest", WANTED)?;
    let unverified = match Unverified::parse(&bytes) {
        Ok(unverified) => unverified,
        Err(error) => return Ok(ManifestVerdict::Invalid(error)),
    };
    let keys_address = keys_address(arguments, &address, &unverified)?;
    let keys = fetch(&client, &keys_address, "key set", "application/json")?;
    let keys = Jwks::parse(&keys).map_err(|error| {
        let what = format!("the keys at {keys_address} cannot be used. {error}");
        CommandFailure::new(what.trim_end_matches('.'), "Nothing was verified.")
    })?;
    let origin = address.origin();
    let pinned: Vec<Thumbprint> = match &arguments.pin {
        Some(pin) => vec![pin.clone()],
        None => pins.get(&origin).map(|pin| pin.thumbprint.clone()).into_iter().collect(),
    };
    let expected = Expected { pins: &pinned, origin: Some(&origin), agent_id: None };
    let now = now_unix_ms();
    let verified = match unverified.verify(&keys, &expected, now) {
        Ok(verified) => verified,
        Err(error) => return Ok(ManifestVerdict::Invalid(error)),
    };
    let is_remembered = pins.get(&origin).is_some_and(|pin| pin.thumbprint == verified.thumbprint);
    let trust = if arguments.trust_first && !is_remembered {
        pins.pin(&origin, verified.thumbprint.clone(), now).map_err(|error| pin_failure(&error))?;
        KeyTrust::Remembered
    } else if verified.pinned {
        KeyTrust::Known
    } else {
        KeyTrust::Unknown
    };
    Ok(ManifestVerdict::Valid(Box::new(verified), trust))
}

fn open_pins(arguments: &ManifestVerifyOptions) -> Result<PinStore, CommandFailure> {
    let path = match &arguments.pins {
        Some(path) => path.clone(),
        None => data_folder("--pins")?.join("pins.toml"),
    };
    PinStore::open(&path).map_err(|error| pin_failure(&error))
}

fn pin_failure(error: &PinError) -> CommandFailure {
    CommandFailure::new(error.to_string(), "More: aaep manifest verify --help")
}

fn fetch(
    client: &Client,
    from: &HttpAddress,
    what: &str,
    wanted: &str,
) -> Result<Vec<u8>, CommandFailure> {
    client.get_blocking(from, wanted).map(Vec::from).map_err(|error| {
        CommandFailure::new(format!("cannot fetch the {what} at {from}"), format!("{error}."))
    })
}

/// The address of the keys: the one that the user names, or the manifest's if it has the same origin.
fn keys_address(
    arguments: &ManifestVerifyOptions,
    manifest: &HttpAddress,
    unverified: &Unverified,
) -> Result<HttpAddress, CommandFailure> {
    if let Some(text) = &arguments.jwks {
        let next = "Write --jwks like https://example.org/keys.json.";
        return HttpAddress::parse(text)
            .map_err(|error| CommandFailure::new(error.to_string(), next));
    }
    let Some(named) = unverified.jwks_uri() else {
        let what = "the manifest does not say where its keys are";
        return Err(CommandFailure::new(what, "Say where with --jwks URL."));
    };
    match HttpAddress::parse(named) {
        Ok(address) if address.origin() == manifest.origin() => Ok(address),
        Ok(address) => Err(CommandFailure::new(
            format!("the manifest has its keys at another place, {address}"),
            format!(
                "If the people who run the producer say so too, add: --jwks {}",
                address.with_query()
            ),
        )),
        Err(error) => Err(CommandFailure::new(
            format!("the address of the keys cannot be used: {error}"),
            "Say where they are with --jwks URL.",
        )),
    }
}

fn tell_valid(
    arguments: &ManifestVerifyOptions,
    verified: &VerifiedManifest,
    trust: KeyTrust,
) -> Result<(), CommandFailure> {
    let manifest = &verified.manifest;
    let name = manifest.agent_name.as_deref().unwrap_or(&manifest.agent_id);
    let (algorithm, key) = (verified.algorithm, &verified.thumbprint);
    tell(&format!("Valid. This is the manifest of {}.", short(name)))?;
    tell(&format!("It is signed with {algorithm} by key {key}, and unchanged since."))?;
    match verified.expires_unix_ms {
        Some(at) => tell(&format!("The signature counts until {}.", moment(at)))?,
        None => tell("The signature does not say how long it counts.")?,
    }
    match trust {
        KeyTrust::Known => tell("This is the key that the producer is known by."),
        KeyTrust::Remembered => {
            tell("From now on the producer is known by this key, and any other will be refused.")
        }
        KeyTrust::Unknown => tell(&format!(
            "Nobody has vouched for this key yet: it shows who signed, not that it is the right \
             one. Compare the key with what the people who run the producer tell you, then run: \
             aaep manifest verify {} --pin {key} --trust-first",
            aaep::printable(&arguments.url)
        )),
    }
}

/// A name chosen by a stranger, shortened and safe to print.
fn short(name: &str) -> String {
    let cut: String = name.chars().take(120).collect();
    format!("\"{}\"", aaep::printable(&cut))
}

fn valid_json(verified: &VerifiedManifest, trust: KeyTrust) -> String {
    json!({
        "valid": true,
        "code": "valid",
        "agent_id": verified.manifest.agent_id,
        "kid": verified.kid,
        "thumbprint": verified.thumbprint.as_str(),
        "algorithm": verified.algorithm.name(),
        "pinned": trust != KeyTrust::Unknown,
        "expires_at": verified.expires_unix_ms.map(moment),
    })
    .to_string()
}
