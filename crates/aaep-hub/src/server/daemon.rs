//! Starts a whole hub from its configuration (store, access, manifest, addresses) and stops it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aaep::Uri;
use aaep_engine::terms::Offer;
use aaep_transport::framed::Framing;

use super::DaemonServer;
use super::certificates::ServerCertificates;
use super::config::{ConfigFileError, DEFAULT_ADDRESS, HubConfig};
use super::descriptors;
use super::issuer::IssuerKeyFetcher;
use super::listen::{ListenError, ListeningSocket};
use super::manifest::{ManifestError, ManifestService};
use super::opened::{Given, open};
use crate::access::{Access, ConfigError, Guard, Limits, PersonKey, Tokens, TokensError};
use crate::hub::{Clock, Hub, HubError, StartError, default_offer};
use crate::redact::{RedactError, Redactor};
use crate::relay::{self, ChildTable, Relay};
use crate::store::OpenOptions;
use crate::tls::TlsError;
use aaep_trust::fetch::AddressError;
use aaep_trust::manifest::{Endpoint, ManifestDescription};

/// How long requests in progress may take when the hub stops.
const FINISH: Duration = Duration::from_secs(5);

/// How long subscribers may take to receive the last message of a hub that has stopped.
const LEAVE: Duration = Duration::from_secs(2);

/// How often the daemon checks whether the hub still works.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// The options for starting a hub.
#[derive(Debug, Clone, PartialEq)]
pub struct DaemonOptions {
    /// The configuration, from a file or the defaults.
    pub config: HubConfig,
    /// The addresses to listen on, instead of those in the configuration.
    pub bind: Vec<SocketAddr>,
    /// The folder of the store. Without it, everything stays in memory and is lost when the hub stops.
    pub store: Option<PathBuf>,
    /// The token file. It need not exist.
    pub tokens: PathBuf,
    /// The folder of the keys that sign the manifest. It need not exist.
    pub keys: Option<PathBuf>,
    /// The flag [`crate::access::INSECURE_FLAG`].
    pub allow_plain_http: bool,
}

/// A hub that runs and can be reached.
#[derive(Debug)]
pub struct Daemon {
    hub: Hub,
    server: DaemonServer,
    addresses: Vec<SocketAddr>,
    origins: Vec<String>,
    sockets: Vec<PathBuf>,
    children: Vec<Relay>,
}

/// Why a hub did not start.
#[derive(Debug)]
pub enum DaemonError {
    /// The configuration cannot be used.
    Config(ConfigFileError),
    /// The part of the configuration that says who may connect cannot be used.
    Access(ConfigError),
    /// The address of an issuer's keys is not valid.
    Issuer(AddressError),
    /// The tokens cannot be used.
    Tokens(TokensError),
    /// The person's key can neither be read nor made.
    PersonKey(std::io::Error),
    /// The certificates cannot be used.
    Tls(TlsError),
    /// The patterns for secrets cannot be used.
    Redact(RedactError),
    /// An address or socket cannot be opened.
    Listen(ListenError),
    /// The manifest cannot be made.
    Manifest(ManifestError),
    /// The hub itself did not start.
    Hub(StartError),
    /// Sessions that children of an earlier run left behind could not be ended.
    Children(HubError),
}

impl DaemonOptions {
    /// Default options, without a store, with the tokens in this file.
    pub fn new(tokens: impl Into<PathBuf>) -> Self {
        DaemonOptions {
            config: HubConfig::default(),
            bind: Vec::new(),
            store: None,
            tokens: tokens.into(),
            keys: None,
            allow_plain_http: false,
        }
    }
}

impl Daemon {
    /// Starts the hub. When this returns, connections are answered.
    pub async fn start(options: DaemonOptions) -> Result<Self, DaemonError> {
        Self::start_with(options, Vec::new()).await
    }

    /// Starts the hub with additional sockets that are already open.
    pub async fn start_with(
        options: DaemonOptions,
        given: Vec<Given>,
    ) -> Result<Self, DaemonError> {
        options.config.check().map_err(DaemonError::Config)?;
        let limits = descriptors::within(&options.config.limits, descriptors::raise_limit());
        let clock = Clock::start();
        let tokens = Tokens::load(&options.tokens).map_err(DaemonError::Tokens)?;
        let config = &options.config;
        let uri = config.access.jwt.as_ref().and_then(|jwt| jwt.jwks_uri.as_deref());
        let issuer = uri.map(IssuerKeyFetcher::new).transpose().map_err(DaemonError::Issuer)?;
        if let Some(issuer) = &issuer {
            issuer.fetch().await;
        }
        let keys = issuer.as_ref().map(|issuer| Box::new(issuer.keys()) as _);
        let access = Access::new(config.access.clone(), tokens, keys, options.allow_plain_http)
            .map_err(DaemonError::Access)?;
        let key = PersonKey::load_or_make(&PersonKey::path_beside(&options.tokens));
        let access = match key.map_err(DaemonError::PersonKey)? {
            Some(key) => access.with_person_key(key),
            None => access,
        };
        let certificates = match &config.tls {
            Some(files) => {
                let loaded =
                    ServerCertificates::load(files.clone(), clock).map_err(DaemonError::Tls)?;
                Some(Arc::new(loaded))
            }
            None => None,
        };
        let opened = open(&options, given, &access, certificates.is_some())?;
        let sockets = opened.sockets();
        let listening = opened.listening;
        let origin = public_origin(config, &listening);
        let now_unix_ms = clock.now().unix_us / 1000;
        let description = describe(config, &origin, &listening, &sockets)?;
        let manifest =
            ManifestService::new(description, &origin, options.keys.clone(), now_unix_ms)
                .map_err(DaemonError::Manifest)?;
        let hub = start_hub(&options, limits, offer(config, &manifest)?, &access).await?;
        relay::end_left_over(&hub).await.map_err(DaemonError::Children)?;
        let addresses = listening.iter().map(ListeningSocket::address).collect();
        let origins = listening.iter().map(ListeningSocket::origin).collect();
        let server = DaemonServer::start(
            hub.clone(),
            Arc::new(access),
            manifest,
            certificates,
            listening,
            opened.doors,
        );
        if let Some(issuer) = issuer {
            server.keep_fetching(issuer);
        }
        let start = |child: &ChildTable| Relay::start(hub.clone(), child.clone());
        let children = options.config.child.iter().map(start).collect();
        Ok(Daemon { hub, server, addresses, origins, sockets, children })
    }

    /// The hub, for code in the same program.
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    /// The addresses it listens on, with the ports that the system chose.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The same addresses as URL origins, such as `http://127.0.0.1:7117`.
    pub fn origins(&self) -> &[String] {
        &self.origins
    }

    /// The paths of its local sockets.
    pub fn sockets(&self) -> &[PathBuf] {
        &self.sockets
    }

    /// Waits until the hub cannot continue, and says why. That may never happen.
    pub async fn died(&self) -> String {
        loop {
            if self.hub.is_dead() {
                return self.hub.trouble().unwrap_or_default();
            }
            tokio::time::sleep(CHECK_EVERY).await;
        }
    }

    /// Stops the hub: requests in progress are answered, everything that was acknowledged is stored, and
    /// streams end. Takes a few seconds at most. Returns whether all connections ended by themselves.
    pub async fn stop(mut self) -> bool {
        let stopping: Vec<_> = self.children.drain(..).map(|it| tokio::spawn(it.stop())).collect();
        for child in stopping {
            // A child that cannot be stopped properly ends with this program.
            let _ = child.await;
        }
        let all_finished = self.server.finish(FINISH).await;
        self.hub.stop().await;
        let all_left = self.server.leave(LEAVE).await;
        all_finished && all_left
    }
}

async fn start_hub(
    options: &DaemonOptions,
    limits: Limits,
    offer: Offer,
    access: &Access,
) -> Result<Hub, DaemonError> {
    let redactor = Redactor::new(&options.config.redact).map_err(DaemonError::Redact)?;
    let open = OpenOptions { retention: options.config.retention.into(), repairs: true };
    let mut builder = Hub::builder()
        .offer(offer)
        .open_options(open)
        .guard(Guard::new(limits))
        .roster(Arc::clone(access.roster()))
        .redactor(Arc::new(redactor));
    if let Some(folder) = &options.store {
        builder = builder.store(folder);
    }
    // Loading a large store takes a while.
    let started = tokio::task::spawn_blocking(move || builder.start()).await;
    let started = started.map_err(|error| StartError::System(std::io::Error::other(error)));
    started.and_then(|it| it).map_err(DaemonError::Hub)
}

/// The terms that subscribers are offered.
fn offer(config: &HubConfig, manifest: &ManifestService) -> Result<Offer, DaemonError> {
    let mut offer = default_offer();
    offer.producer.agent_id.clone_from(&config.hub.agent_id);
    offer.languages = config.offered_languages().map_err(DaemonError::Config)?;
    offer.only_offered_languages = config.hub.require_language;
    offer.max_concurrent_subscriptions = config.hub.max_subscriptions;
    offer.manifest_uri = Some(manifest.uri().clone());
    offer.signed_manifest = manifest.signed();
    Ok(offer)
}

/// The contents of the manifest.
fn describe(
    config: &HubConfig,
    origin: &str,
    listening: &[ListeningSocket],
    sockets: &[PathBuf],
) -> Result<ManifestDescription, DaemonError> {
    let socket_origin = origin.replacen("http", "ws", 1);
    let endpoint = |transport: &str, uri: String| {
        let uri = Uri::parse(&uri)
            .map_err(|_| DaemonError::Manifest(ManifestError::Origin(origin.to_owned())))?;
        Ok(Endpoint { transport: transport.to_owned(), uri: Some(uri), framing: None })
    };
    let mut description = ManifestDescription::new(&config.hub.agent_id);
    description.agent_version = Some(env!("CARGO_PKG_VERSION").to_owned());
    description.agent_name = Some(config.hub.name.clone());
    description.languages = config.offered_languages().map_err(DaemonError::Config)?;
    description.contact.clone_from(&config.hub.contact);
    description.max_concurrent_subscriptions = u64::try_from(config.hub.max_subscriptions).ok();
    description.endpoints = vec![
        endpoint("sse", format!("{origin}/aaep/v1/events"))?,
        endpoint("websocket", format!("{socket_origin}/aaep/v1/ws"))?,
    ];
    #[cfg(feature = "grpc")]
    description.endpoints.push(endpoint("grpc", origin.replacen("http", "grpc", 1))?);
    // Other machines need not know paths on this one.
    let is_local = listening.iter().all(|it| crate::access::is_loopback(it.address().ip()));
    for path in sockets.iter().filter(|_| is_local).filter_map(|path| path.to_str()) {
        // A path that cannot be written as a URI is left out of the manifest; the socket exists all the
        // same.
        if let Ok(mut endpoint) = endpoint("unix-socket", format!("unix:{path}")) {
            endpoint.framing = Some(Framing::Length.name().to_owned());
            description.endpoints.push(endpoint);
        }
    }
    Ok(description)
}

/// The base of the addresses by which others reach the hub: as configured, or else the best guess.
fn public_origin(config: &HubConfig, listening: &[ListeningSocket]) -> String {
    if let Some(url) = &config.hub.public_url {
        return url.trim_end_matches('/').to_owned();
    }
    let others = |it: &&ListeningSocket| !crate::access::is_loopback(it.address().ip());
    let Some(socket) = listening.iter().find(others).or_else(|| listening.first()) else {
        return format!("http://{DEFAULT_ADDRESS}");
    };
    let scheme = if socket.is_tls() { "https" } else { "http" };
    let address = socket.address();
    match config.access.host_names.first() {
        Some(name) if others(&socket) && name.contains(':') => format!("{scheme}://{name}"),
        Some(name) if others(&socket) => format!("{scheme}://{name}:{}", address.port()),
        _ => format!("{scheme}://{}", SocketAddr::new(reachable(address.ip()), address.port())),
    }
}

/// An address that a program on this machine can connect to.
fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(it) if it.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(it) if it.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

impl fmt::Display for DaemonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DaemonError::Config(error) => error.fmt(f),
            DaemonError::Access(error) => error.fmt(f),
            DaemonError::Issuer(error) => {
                write!(f, "The setting jwks_uri in access.jwt is not an address of keys. {error}")
            }
            DaemonError::Tokens(error) => error.fmt(f),
            DaemonError::PersonKey(error) => write!(
                f,
                "The person's key cannot be used: {error}. It is the file person.key, next to the file of the tokens."
            ),
            DaemonError::Tls(error) => error.fmt(f),
            DaemonError::Redact(error) => error.fmt(f),
            DaemonError::Listen(error) => error.fmt(f),
            DaemonError::Manifest(error) => error.fmt(f),
            DaemonError::Hub(error) => error.fmt(f),
            DaemonError::Children(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DaemonError {}
