//! `aaep manifest show`: builds a manifest from options and prints it as JSON.

use std::process::ExitCode;
use std::time::Duration;

use aaep::{LanguageTag, Manifest, TypePattern, Uri};
use aaep_trust::fetch::HttpAddress;
use aaep_trust::keys::KeyRing;
use aaep_trust::manifest::{
    self, Endpoint, JWKS_PATH, ManifestDescription, SigningReference, WELL_KNOWN_PATH,
};

use crate::console::CommandFailure;
use crate::keys::{KeysFolderFlag, failure, now_unix_ms, tell};

const EXIT_CODES: &str = "\
For example: aaep manifest show --agent-id photos --origin https://example.org --sign
Exit codes:
  0  the manifest is printed
  2  it could not be done: wrong usage, values that no manifest may have, or no key";

/// What the manifest says.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(super) struct ManifestShowOptions {
    /// The stable name of the agent, the same in all its versions.
    #[arg(long, value_name = "ID")]
    agent_id: String,
    /// The name of the agent, as people hear it.
    #[arg(long, value_name = "NAME")]
    agent_name: Option<String>,
    /// The version of the agent.
    #[arg(long, value_name = "VERSION")]
    agent_version: Option<String>,
    /// A transport, with its address if it has one, such as `sse=https://example.org/events`.
    #[arg(long = "transport", value_name = "NAME[=URI]", value_parser = endpoint)]
    transports: Vec<Endpoint>,
    /// A language that the producer speaks, such as en-GB.
    #[arg(long = "language", value_name = "TAG")]
    languages: Vec<LanguageTag>,
    /// A pattern for types of events. Can be given several times. By default all core events.
    #[arg(long = "event-type", value_name = "PATTERN")]
    event_types: Vec<TypePattern>,
    /// A conformance level that the producer offers. Can be given several times. By default all three.
    #[arg(long = "level", value_name = "LEVEL")]
    levels: Vec<u64>,
    /// The context URI of an extension beyond our own.
    #[arg(long = "extension", value_name = "URI")]
    extensions: Vec<Uri>,
    /// How many subscriptions are served at the same time.
    #[arg(long, value_name = "COUNT")]
    max_subscriptions: Option<u64>,
    /// How to reach the people behind the producer.
    #[arg(long, value_name = "TEXT")]
    contact: Option<String>,
    /// Where you will publish the manifest, such as `https://example.org`.
    #[arg(long, value_name = "URL")]
    origin: Option<String>,
    /// Sign it with the current key; see `aaep keys list`.
    #[arg(long, requires = "origin")]
    sign: bool,
    /// Print the compact JWS instead of JSON.
    #[arg(long, requires = "sign")]
    jws: bool,
    /// How many days the signature is valid.
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3650))]
    valid_days: u32,
    #[command(flatten)]
    place: KeysFolderFlag,
}

fn endpoint(text: &str) -> Result<Endpoint, String> {
    let (transport, uri) = match text.split_once('=') {
        None => (text, None),
        Some((transport, uri)) => {
            (transport, Some(Uri::parse(uri).map_err(|error| error.to_string())?))
        }
    };
    Ok(Endpoint { transport: transport.to_owned(), uri, framing: None })
}

/// Prints the manifest.
pub(super) fn run(arguments: &ManifestShowOptions) -> Result<ExitCode, CommandFailure> {
    if !arguments.sign {
        print(&build(arguments, None)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let ring = arguments.place.open()?;
    let key = ring.active().map_err(|error| failure(&error))?;
    let manifest = build(arguments, Some(&ring))?;
    let valid_for = Duration::from_hours(24 * u64::from(arguments.valid_days));
    let signed = manifest::sign(&manifest, &key, now_unix_ms(), valid_for).map_err(|error| {
        CommandFailure::new(error.to_string(), "More: aaep manifest show --help")
    })?;
    if arguments.jws {
        tell(signed.jws.as_str())?;
    } else {
        print(&signed.document)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print(manifest: &Manifest) -> Result<(), CommandFailure> {
    tell(&serde_json::to_string_pretty(manifest).unwrap_or_default())
}

fn build(
    arguments: &ManifestShowOptions,
    ring: Option<&KeyRing>,
) -> Result<Manifest, CommandFailure> {
    let mut it = ManifestDescription::new(&arguments.agent_id);
    it.agent_name.clone_from(&arguments.agent_name);
    it.agent_version.clone_from(&arguments.agent_version);
    it.endpoints.clone_from(&arguments.transports);
    it.languages.clone_from(&arguments.languages);
    it.extensions.clone_from(&arguments.extensions);
    it.max_concurrent_subscriptions = arguments.max_subscriptions;
    it.contact.clone_from(&arguments.contact);
    if !arguments.event_types.is_empty() {
        it.event_types.clone_from(&arguments.event_types);
    }
    if !arguments.levels.is_empty() {
        it.conformance_levels.clone_from(&arguments.levels);
    }
    if let Some(origin) = &arguments.origin {
        it.signing = Some(reference(origin, ring)?);
    }
    manifest::build(&it)
        .map_err(|error| CommandFailure::new(error.to_string(), "More: aaep manifest show --help"))
}

fn reference(origin: &str, ring: Option<&KeyRing>) -> Result<SigningReference, CommandFailure> {
    let next = "Write --origin like https://example.org.";
    let origin = HttpAddress::parse(origin)
        .map_err(|error| CommandFailure::new(error.to_string(), next))?
        .origin();
    let at = |path: &str| {
        Uri::parse(&format!("{origin}{path}"))
            .map_err(|error| CommandFailure::new(error.to_string(), next))
    };
    let published = ring.into_iter().flat_map(|ring| ring.published(now_unix_ms()));
    Ok(SigningReference {
        manifest_uri: at(WELL_KNOWN_PATH)?,
        jwks_uri: at(JWKS_PATH)?,
        kids: published.map(|record| record.kid().clone()).collect(),
    })
}
