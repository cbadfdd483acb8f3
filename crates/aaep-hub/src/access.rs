//! Access control for the hub: who may connect and what they may do (§8.2.7, §8.2.8, §10.2, rulings 12, 14
//! and 28).
//!
//! Every request passes three checks. [`Access::check`] refuses requests that a foreign web page makes the
//! person's browser send. [`Access::authenticate`] finds the principal. [`Principal::allow`] decides whether
//! that principal may do what it asks. Ids and reply tokens of the protocol satisfy none of these checks.
//! Nothing here reads a clock or a socket, and the only files it reads are those with tokens and keys.

mod address;
mod bind;
mod certificate;
mod config;
mod connections;
mod credential;
mod error;
mod guard;
mod jwks;
mod jwt;
mod limits;
mod origin;
mod peer;
mod penalty;
mod person_key;
mod principal;
mod request;
mod roster;
mod token;
mod tokens;
mod user;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aaep_engine::Now;
use http::{HeaderMap, Method, Uri};

pub use aaep_http::{Authority, is_loopback};
pub(crate) use address::SecretPath;
pub use address::path_for_secret;
pub use bind::{BindError, INSECURE_FLAG, may_bind};
pub use certificate::{
    CertificateError, CertificateName, CertificateRule, ClientCertificate, MAX_CERTIFICATE_NAMES,
};
pub use config::{AccessConfig, ConfigError, MAX_CERTIFICATE_RULES};
pub use connections::{
    Claim, ConnectionPermit, ConnectionSource, RESERVED_CONNECTIONS, Reserve, UNCLAIMED_CONNECTIONS,
};
pub use credential::MAX_CREDENTIAL_BYTES;
pub use error::AccessError;
pub use guard::{Guard, MAX_PRINCIPALS, RequestPermit, SubscriptionPermit};
pub use jwks::{
    FetchedJwks, FileJwks, IssuerKeysError, JwksSource, MAX_JWKS_BYTES, MAX_JWKS_KEYS,
    MIN_REFETCH_US,
};
pub use jwt::{CLOCK_SKEW_SECONDS, JwtAlgorithm, JwtConfig, JwtError};
pub use limits::{LimitError, Limits, MAX_EVENTS_AT_ONCE};
pub use origin::Origin;
pub use peer::{Peer, PeerAddress};
pub(crate) use penalty::{CredentialHash, CredentialPenalties, TooManyFailures};
pub use person_key::{PERSON_KEY_FILE, PersonKey, is_person_key, read_person_key};
pub(crate) use principal::tags_before_owners;
pub use principal::{
    HUB_OWNER, HeardAgents, MAX_HEARS, MAX_NAME_CHARS, MAX_OWNERS, Principal, Scope, Scopes,
};
pub(crate) use request::is_cross_site;
pub use request::{
    MAX_CONFIGURED, Page, RequestError, check_host, check_origin, cors_headers, preflight,
};
pub use roster::Roster;
pub(crate) use roster::UNNAMED_PROGRAM;
pub use token::{TOKEN_PREFIX, Token, TokenSecret};
pub use tokens::{
    AllowedProgram, MAX_TOKENS, MAX_TOKENS_BYTES, NewToken, ProgramAddress, Tokens, TokensError,
};
pub use user::UserRule;

use crate::name_reading::NameReading;

use credential::{RequestCredential, find_credential};
use jwt::JwtIssuer;
use person_key::PERSON_KEY_PREFIX;

/// Decides who may connect. There is one for the whole hub, and it can be shared.
#[derive(Debug)]
pub struct Access {
    loopback_needs_credentials: bool,
    token_in_query: bool,
    allow_plain_http: bool,
    host_names: Vec<Authority>,
    allowed_origins: Vec<Origin>,
    certificates: Vec<CertificateRule>,
    users: Vec<UserRule>,
    issuer: Option<JwtIssuer>,
    tokens: Mutex<Tokens>,
    person_key: Option<PersonKey>,
    roster: Arc<Roster>,
}

impl Access {
    /// Takes the configuration and the tokens. The issuer's keys come from `jwks` if it is given, and
    /// otherwise from the file that the configuration names. `allow_plain_http` is the flag
    /// [`INSECURE_FLAG`].
    pub fn new(
        config: AccessConfig,
        tokens: Tokens,
        jwks: Option<Box<dyn JwksSource>>,
        allow_plain_http: bool,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let host_names = config.parsed_host_names()?;
        let allowed_origins = config.parsed_origins()?;
        let issuer = match config.jwt {
            Some(jwt) => {
                let file = jwt.jwks_file.clone().map(|path| Box::new(FileJwks(path)) as _);
                let source = jwks.or(file).ok_or(ConfigError::NoKeys)?;
                Some(JwtIssuer::new(jwt, source))
            }
            None => None,
        };
        let roster = Arc::new(Roster::new(config.trust_local_programs));
        let access = Access {
            loopback_needs_credentials: config.loopback_needs_credentials,
            token_in_query: config.token_in_query,
            allow_plain_http,
            host_names,
            allowed_origins,
            certificates: config.certificates,
            users: config.users,
            issuer,
            tokens: Mutex::new(tokens),
            person_key: None,
            roster,
        };
        access.fill_roster(&access.tokens());
        Ok(access)
    }

    /// Adds the key of the person who owns this hub.
    #[must_use]
    pub fn with_person_key(mut self, key: PersonKey) -> Self {
        self.person_key = Some(key);
        self
    }

    /// The part of the access rules that the hub itself needs.
    pub fn roster(&self) -> &Arc<Roster> {
        &self.roster
    }

    /// The first check: refuses requests that are not meant for this hub or that a foreign web page sends.
    pub fn check(
        &self,
        peer: &Peer,
        method: &Method,
        headers: &HeaderMap,
        uri: &Uri,
    ) -> Result<Page, RequestError> {
        let host = check_host(headers, uri, &self.host_names)?;
        check_origin(method, headers, &host, peer.is_tls, &self.allowed_origins)
    }

    /// Finds the principal that sent a request. If the request carries a credential, only that counts: a
    /// wrong one is refused even where none is needed.
    pub fn authenticate(
        &self,
        peer: &Peer,
        headers: &HeaderMap,
        uri: &Uri,
        now: Now,
    ) -> Result<Principal, AccessError> {
        if !peer.is_local() && !peer.is_tls && !self.allow_plain_http {
            return Err(AccessError::PlainRemote);
        }
        let credential = find_credential(headers, uri, self.token_in_query)?;
        if let Some(RequestCredential::Address(secret)) = credential {
            return self.principal_of_address(peer, headers, secret, now);
        }
        if let Some(RequestCredential::Bearer(credential)) = credential {
            if self.is_person(peer, credential) {
                return Ok(Principal::person());
            }
            // The person's key of another hub proves nothing here, but it is not a wrong token either.
            if !peer.is_local() || !credential.starts_with(PERSON_KEY_PREFIX) {
                return self.principal_of_bearer(credential, now);
            }
        }
        // Allowing or forbidding a program takes effect at once, whatever credential it presents.
        self.refresh(now);
        if let Some(certificate) = &peer.certificate {
            let rule = self.certificates.iter().find(|rule| certificate.is(&rule.matches));
            let principal = rule.map(CertificateRule::principal);
            return principal.ok_or(AccessError::UnknownCertificate);
        }
        match peer.address {
            PeerAddress::SameUser => Ok(self.local_principal()),
            PeerAddress::OtherUser(user_id) => {
                let rule = self.users.iter().find(|rule| rule.uid == user_id);
                rule.map(UserRule::principal).ok_or(AccessError::UnknownUser(user_id))
            }
            PeerAddress::Ip(address)
                if is_loopback(address) && !self.loopback_needs_credentials =>
            {
                if credential::is_forwarded(headers) {
                    return Err(AccessError::Forwarded);
                }
                Ok(self.local_principal())
            }
            PeerAddress::Ip(_) => Err(AccessError::CredentialsRequired),
        }
    }

    /// Hashes the credential of a request if it could have been guessed. Returns `None` if the request has
    /// no credential, if its text cannot be a credential, or if it is the person's key, which cannot be
    /// found by guessing.
    pub(crate) fn guessable_credential(
        &self,
        peer: &Peer,
        headers: &HeaderMap,
        uri: &Uri,
    ) -> Option<CredentialHash> {
        let credential = find_credential(headers, uri, self.token_in_query).ok()??;
        let is_person =
            matches!(credential, RequestCredential::Bearer(it) if self.is_person(peer, it));
        (!is_person).then(|| CredentialHash::of(credential.secret()))
    }

    /// Whether a principal that was let in may stay: its credential has neither expired nor been revoked.
    pub fn may_stay(&self, principal: &Principal, now: Now) -> bool {
        if principal.until_unix_us.is_some_and(|until| until <= now.unix_us) {
            return false;
        }
        if principal.proof.is_some() {
            let tokens = self.fresh_tokens(now);
            let is_still = |it: &AllowedProgram| it.principal().as_ref() == Some(principal);
            return tokens.programs().iter().any(is_still);
        }
        if !principal.id.starts_with(token::PRINCIPAL_PREFIX) {
            return true;
        }
        let tokens = self.fresh_tokens(now);
        let is_still = |token: &Token| token.principal() == *principal;
        tokens.list().iter().any(|token| is_still(token) && !token.is_expired(now.unix_us))
    }

    /// Reads the token file again if it has changed, at most once a second.
    pub fn refresh(&self, now: Now) {
        drop(self.fresh_tokens(now));
    }

    /// Whether any credential is configured at all; [`may_bind`] needs to know.
    pub fn has_credentials(&self) -> bool {
        self.issuer.is_some() || !self.certificates.is_empty() || !self.tokens().list().is_empty()
    }

    /// Finds the principal of an address that was made for one program. The address is valid only on this
    /// machine: addresses are copied, kept and passed on more easily than headers.
    fn principal_of_address(
        &self,
        peer: &Peer,
        headers: &HeaderMap,
        secret: &str,
        now: Now,
    ) -> Result<Principal, AccessError> {
        if !peer.is_local() || credential::is_forwarded(headers) {
            return Err(AccessError::UnknownToken);
        }
        let mut tokens = self.fresh_tokens(now);
        if tokens.find_address(secret) == Err(AccessError::UnknownToken) && tokens.read_again(now) {
            // The address was made less than a second ago.
            self.fill_roster(&tokens);
        }
        tokens.find_address(secret)
    }

    fn principal_of_bearer(&self, credential: &str, now: Now) -> Result<Principal, AccessError> {
        if let Some(issuer) = &self.issuer
            && !credential.starts_with(TOKEN_PREFIX)
        {
            return issuer.verify(credential, now).map_err(AccessError::Jwt);
        }
        let mut tokens = self.fresh_tokens(now);
        if tokens.find(credential, now) == Err(AccessError::UnknownToken) && tokens.read_again(now)
        {
            // The token was made less than a second ago.
            self.fill_roster(&tokens);
        }
        tokens.find(credential, now).map(Token::principal)
    }

    /// Whether this is the person's key. It is valid only on this machine: elsewhere it would be a token
    /// that never expires.
    fn is_person(&self, peer: &Peer, credential: &str) -> bool {
        peer.is_local() && self.person_key.is_some_and(|key| key.is(credential))
    }

    /// The principal of a program on this machine that presents no credential.
    fn local_principal(&self) -> Principal {
        let local = Principal::local();
        let scopes = if self.roster.trusts_local_programs() { Scopes::ALL } else { local.scopes };
        Principal { scopes, ..local }
    }

    /// The tokens as the file has them now.
    fn fresh_tokens(&self, now: Now) -> MutexGuard<'_, Tokens> {
        let mut tokens = self.tokens();
        if tokens.refresh(now) {
            self.fill_roster(&tokens);
        }
        tokens
    }

    /// Tells the hub which programs may answer and which names are bound.
    fn fill_roster(&self, tokens: &Tokens) {
        let mut contents = roster::RosterContents {
            allowed: tokens.programs().iter().filter_map(known_by_name).collect(),
            ..roster::RosterContents::default()
        };
        let principals = tokens.list().iter().map(Token::principal);
        let principals = principals.chain(self.certificates.iter().map(CertificateRule::principal));
        for principal in principals.chain(self.users.iter().map(UserRule::principal)) {
            for name in principal.speaks_as.into_iter().flatten() {
                let name = NameReading::of(&name);
                contents.bound.entry(name).or_default().insert(principal.id.clone());
            }
        }
        self.roster.set(contents);
    }

    fn tokens(&self) -> MutexGuard<'_, Tokens> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name by which the hub recognizes a local program without an address. The name given to unnamed
/// programs is excluded, because any agent could use it to answer its own asks. Files of earlier versions
/// may contain it.
fn known_by_name(program: &AllowedProgram) -> Option<String> {
    let is_known = program.address.is_none() && program.name != UNNAMED_PROGRAM;
    is_known.then(|| program.name.clone())
}
