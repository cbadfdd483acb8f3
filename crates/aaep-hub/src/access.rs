//! The doors of the hub: who may come in and what they may do (§8.2.7, §8.2.8, §10.2, rulings 12, 14
//! and 28).
//!
//! A request goes through three doors. [`Access::check`] turns away what a foreign web page makes the
//! person's browser send. [`Access::authenticate`] finds out who it is. [`Principal::allow`] says
//! whether they may do what they ask. Ids and reply tokens of the protocol open none of them. Nothing
//! here reads a clock or a socket; files are read for tokens and keys alone.

mod address;
mod authority;
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

pub(crate) use address::SecretPath;
pub use address::path_for_secret;
pub use authority::{Authority, Origin};
pub use bind::{BindError, INSECURE_FLAG, may_bind};
pub use certificate::{
    CertificateError, CertificateName, CertificateRule, ClientCertificate, MAX_CERTIFICATE_NAMES,
};
pub use config::{AccessConfig, ConfigError, MAX_CERTIFICATE_RULES};
pub use connections::{
    Claim, ConnectionPermit, RESERVED_CONNECTIONS, Reserve, UNCLAIMED_CONNECTIONS,
};
pub use credential::MAX_CREDENTIAL_BYTES;
pub use error::AccessError;
pub use guard::{Guard, MAX_PRINCIPALS, RequestPermit, SubscriptionPermit};
pub use jwks::{
    FetchedJwks, FileJwks, JwksError, JwksSource, MAX_JWKS_BYTES, MAX_JWKS_KEYS, MIN_REFETCH_US,
};
pub use jwt::{CLOCK_SKEW_SECONDS, JwtAlgorithm, JwtConfig, JwtError};
pub use limits::{LimitError, Limits, MAX_EVENTS_AT_ONCE};
pub use peer::{Peer, PeerAddress, is_loopback};
pub(crate) use penalty::{CredentialHash, Penalties, TooManyFailures};
pub use person_key::{PERSON_KEY_FILE, PersonKey, is_person_key, read_person_key};
pub(crate) use principal::tags_before_owners;
pub use principal::{
    HUB_OWNER, Hears, MAX_HEARS, MAX_NAME_CHARS, MAX_OWNERS, Principal, Scope, Scopes,
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

use credential::{Credential, credential};
use jwt::Issuer;
use person_key::PERSON_KEY_PREFIX;

/// Decides who comes in. One for the whole hub; it can be shared.
#[derive(Debug)]
pub struct Access {
    loopback_needs_credentials: bool,
    token_in_query: bool,
    allow_plain_http: bool,
    host_names: Vec<Authority>,
    allowed_origins: Vec<Origin>,
    certificates: Vec<CertificateRule>,
    users: Vec<UserRule>,
    issuer: Option<Issuer>,
    tokens: Mutex<Tokens>,
    person_key: Option<PersonKey>,
    roster: Arc<Roster>,
}

impl Access {
    /// Takes the configuration and the tokens. The keys of an issuer come from `jwks`, or else from
    /// the file that the configuration names. `allow_plain_http` is the flag [`INSECURE_FLAG`].
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
                Some(Issuer::new(jwt, source))
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

    /// The same, for a hub whose person has this key.
    #[must_use]
    pub fn with_person_key(mut self, key: PersonKey) -> Self {
        self.person_key = Some(key);
        self
    }

    /// What the hub has to know of the doors.
    pub fn roster(&self) -> &Arc<Roster> {
        &self.roster
    }

    /// Turns away what is not for this hub, and what a page of someone else sends. The first door.
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

    /// Finds out who sent a request. A credential that came is decisive: a wrong one is refused even
    /// where none is needed.
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
        let credential = credential(headers, uri, self.token_in_query)?;
        if let Some(Credential::Address(secret)) = credential {
            return self.at_address(peer, headers, secret, now);
        }
        if let Some(Credential::Bearer(credential)) = credential {
            if self.is_person(peer, credential) {
                return Ok(Principal::person());
            }
            // The key of another hub's person proves nothing here, and is not a wrong token either.
            if !peer.is_local() || !credential.starts_with(PERSON_KEY_PREFIX) {
                return self.bearer(credential, now);
            }
        }
        // A program that was allowed or forbidden is so at once, whatever it presents.
        self.refresh(now);
        if let Some(certificate) = &peer.certificate {
            let rule = self.certificates.iter().find(|rule| certificate.is(&rule.matches));
            let known = rule.map(CertificateRule::principal);
            return known.ok_or(AccessError::UnknownCertificate);
        }
        match peer.address {
            PeerAddress::SameUser => Ok(self.local()),
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
                Ok(self.local())
            }
            PeerAddress::Ip(_) => Err(AccessError::CredentialsRequired),
        }
    }

    /// The credential of a request that somebody could have guessed. None if it has none, if what it has cannot be a
    /// credential, and if it is the person's key, which no number of guesses finds.
    pub(crate) fn guessable(
        &self,
        peer: &Peer,
        headers: &HeaderMap,
        uri: &Uri,
    ) -> Option<CredentialHash> {
        let credential = credential(headers, uri, self.token_in_query).ok()??;
        let is_person = matches!(credential, Credential::Bearer(it) if self.is_person(peer, it));
        (!is_person).then(|| CredentialHash::of(credential.secret()))
    }

    /// Whether somebody who was let in may stay: their proof has not ended, and nobody revoked it.
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

    /// Reads the file of the tokens again if it has changed, at most once a second.
    pub fn refresh(&self, now: Now) {
        drop(self.fresh_tokens(now));
    }

    /// Whether anyone but the user of this process may use its local socket.
    pub fn has_other_users(&self) -> bool {
        !self.users.is_empty()
    }

    /// Whether anyone could prove who they are: what [`may_bind`] asks.
    pub fn has_credentials(&self) -> bool {
        self.issuer.is_some() || !self.certificates.is_empty() || !self.tokens().list().is_empty()
    }

    /// Whoever uses the address that was made for a program. It is only good on this machine, where it was made: an
    /// address is copied, kept and passed on more easily than a header.
    fn at_address(
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
            // It was made less than a second ago.
            self.fill_roster(&tokens);
        }
        tokens.find_address(secret)
    }

    fn bearer(&self, credential: &str, now: Now) -> Result<Principal, AccessError> {
        if let Some(issuer) = &self.issuer
            && !credential.starts_with(TOKEN_PREFIX)
        {
            return issuer.verify(credential, now).map_err(AccessError::Jwt);
        }
        let mut tokens = self.fresh_tokens(now);
        if tokens.find(credential, now) == Err(AccessError::UnknownToken) && tokens.read_again(now)
        {
            // It was made less than a second ago.
            self.fill_roster(&tokens);
        }
        tokens.find(credential, now).map(Token::principal)
    }

    /// Whether this is the person's key. It is only good on this machine: elsewhere it would be a
    /// token that never ends.
    fn is_person(&self, peer: &Peer, credential: &str) -> bool {
        peer.is_local() && self.person_key.is_some_and(|key| key.is(credential))
    }

    /// A program on this machine without a credential.
    fn local(&self) -> Principal {
        let local = Principal::local();
        let scopes = if self.roster.trusts_local_programs() { Scopes::ALL } else { local.scopes };
        Principal { scopes, ..local }
    }

    /// The tokens as the file has them by now.
    fn fresh_tokens(&self, now: Now) -> MutexGuard<'_, Tokens> {
        let mut tokens = self.tokens();
        if tokens.refresh(now) {
            self.fill_roster(&tokens);
        }
        tokens
    }

    /// Tells the hub which programs may answer and which names are bound.
    fn fill_roster(&self, tokens: &Tokens) {
        let mut known = roster::Known {
            allowed: tokens.programs().iter().filter_map(known_by_name).collect(),
            ..roster::Known::default()
        };
        let principals = tokens.list().iter().map(Token::principal);
        let principals = principals.chain(self.certificates.iter().map(CertificateRule::principal));
        for principal in principals.chain(self.users.iter().map(UserRule::principal)) {
            for name in principal.speaks_as.into_iter().flatten() {
                known.bound.entry(name).or_default().insert(principal.id.clone());
            }
        }
        self.roster.set(known);
    }

    fn tokens(&self) -> MutexGuard<'_, Tokens> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name by which a local program is known that has no address. That of programs without a name is nobody's: every
/// agent could answer itself by it. Files of earlier versions may have it.
fn known_by_name(program: &AllowedProgram) -> Option<String> {
    let is_known = program.address.is_none() && program.name != UNNAMED_PROGRAM;
    is_known.then(|| program.name.clone())
}
