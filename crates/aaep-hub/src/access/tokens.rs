//! The tokens of a hub: made, listed, revoked and found again (§8.2.7, §10.3.1).
//!
//! They live in `tokens.toml` in the configuration folder. The file is read again when it changes, at most
//! once a second, so that a revocation takes effect without a restart. A file that cannot be read lets
//! nobody in: a typing error must never undo a revocation.

mod file;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use aaep_engine::Now;
use jiff::Timestamp;

use crate::access::AccessError;
use crate::access::principal::{HeardAgents, Principal, Scopes, is_name, name_list};
use crate::access::roster::UNNAMED_PROGRAM;
use crate::access::token::{Token, TokenHash, TokenSecret, hex, is_token};
use file::{TokenFile, TokenFileStamp};

/// The most tokens that a hub keeps.
pub const MAX_TOKENS: usize = 1024;
/// The largest token file, in bytes.
pub const MAX_TOKENS_BYTES: u64 = 4 * 1024 * 1024;
/// The longest name of an allowed program, in characters. With a prefix it becomes the id of a principal.
const MAX_PROGRAM_CHARS: usize = 128;
/// How often the file is checked for changes.
const CHECK_EVERY_US: u64 = 1_000_000;

/// The tokens, as of the last time the file was read.
#[derive(Debug)]
pub struct Tokens {
    path: PathBuf,
    read: Result<TokenFile, TokensError>,
    stamp: TokenFileStamp,
    checked_us: Option<u64>,
}

/// A local program that may answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedProgram {
    /// The name it gives itself: its `subscriber_id`. With an address, the name that the person gave it.
    pub name: String,
    /// When it was allowed.
    pub allowed: Timestamp,
    /// The address that identifies it. Without one, its name identifies it.
    pub address: Option<ProgramAddress>,
}

/// The address of a program without its secret.
#[derive(Clone, PartialEq, Eq)]
pub struct ProgramAddress {
    /// The last four characters of its secret, to recognize it by.
    pub last_four: String,
    pub(crate) hash: TokenHash,
}

impl AllowedProgram {
    /// The principal that uses this program's address. `None` if the program has no address.
    pub(crate) fn principal(&self) -> Option<Principal> {
        let proof = self.address.as_ref()?.hash.to_hex();
        Some(Principal::at_address(&self.name, proof))
    }
}

impl fmt::Debug for ProgramAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramAddress").finish_non_exhaustive()
    }
}

/// The properties of a token to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// The name that the person gives it.
    pub name: String,
    /// What it allows.
    pub scopes: Scopes,
    /// Which agents its holder hears.
    pub hears: HeardAgents,
    /// The people or groups that its holder belongs to. If empty, the holder belongs only to itself.
    pub owners: BTreeSet<String>,
    /// The only agent names that its holder may use. If empty, any name that nobody else holds.
    pub speaks_as: BTreeSet<String>,
    /// The time from which it is refused.
    pub expires: Option<Timestamp>,
}

impl Tokens {
    /// Reads the file. If there is no file, there are no tokens yet.
    pub fn load(path: &Path) -> Result<Self, TokensError> {
        let stamp = TokenFileStamp::of(path);
        let tokens = file::read(path)?;
        Ok(Tokens { path: path.to_owned(), read: Ok(tokens), stamp, checked_us: None })
    }

    /// Makes a token and writes it to the file. This is the only time the secret is returned.
    pub fn create(&mut self, new: NewToken, now: Now) -> Result<(TokenSecret, Token), TokensError> {
        if !is_name(&new.name) {
            return Err(TokensError::BadName);
        }
        if new.scopes.is_empty() {
            return Err(TokensError::NoScopes);
        }
        let created = whole_second(now)?;
        if new.expires.is_some_and(|expires| expires.as_microsecond() <= now.unix_us) {
            return Err(TokensError::AlreadyExpired);
        }
        let secret = TokenSecret::from_bytes(random()?);
        let token = Token {
            id: format!("tok_{}", hex(&random::<6>()?)),
            name: new.name,
            scopes: new.scopes,
            hears: new.hears,
            owners: name_list(new.owners).map_err(|_| TokensError::BadName)?,
            speaks_as: name_list(new.speaks_as).map_err(|_| TokensError::BadName)?,
            created,
            expires: new.expires,
            last_four: secret.last_four(),
            hash: TokenHash::of(secret.reveal()),
        };
        let added = token.clone();
        self.change(move |contents| {
            if contents.tokens.len() >= MAX_TOKENS {
                return Err(TokensError::TooMany);
            }
            contents.tokens.push(added);
            Ok(())
        })?;
        Ok((secret, token))
    }

    /// All tokens, in the order in which they were made.
    pub fn list(&self) -> &[Token] {
        self.read.as_ref().map_or(&[], |it| &it.tokens)
    }

    /// The local programs that may answer, in the order in which they were allowed.
    pub fn programs(&self) -> &[AllowedProgram] {
        self.read.as_ref().map_or(&[], |it| &it.programs)
    }

    /// Lets a local program answer, by the name it gives itself. Returns whether it is newly allowed.
    pub fn allow_program(&mut self, name: &str, now: Now) -> Result<bool, TokensError> {
        // Every program without a name has this one, including agents.
        if name == UNNAMED_PROGRAM {
            return Err(TokensError::NameOfEveryone);
        }
        let allowed = allowed_at(name, now)?;
        let mut is_new = false;
        self.change(|contents| {
            let is_it = |it: &AllowedProgram| it.name == name && it.address.is_none();
            is_new = !contents.programs.iter().any(is_it);
            if is_new {
                let program = AllowedProgram { name: name.to_owned(), allowed, address: None };
                contents.add_program(program)?;
            }
            Ok(())
        })?;
        Ok(is_new)
    }

    /// Makes an address for a local program that may answer. This is the only time its secret is returned.
    /// An earlier address of the same name becomes invalid; the result says whether there was one.
    pub fn make_address(
        &mut self,
        name: &str,
        now: Now,
    ) -> Result<(TokenSecret, bool), TokensError> {
        let allowed = allowed_at(name, now)?;
        let secret = TokenSecret::from_bytes(random()?);
        let hash = TokenHash::of(secret.reveal());
        let address = Some(ProgramAddress { last_four: secret.last_four(), hash });
        let mut had_one = false;
        self.change(|contents| {
            let before = contents.programs.len();
            contents.programs.retain(|it| it.name != name || it.address.is_none());
            had_one = contents.programs.len() < before;
            contents.add_program(AllowedProgram { name: name.to_owned(), allowed, address })
        })?;
        Ok((secret, had_one))
    }

    /// Removes a program's permission and its address. From then on the program only listens.
    pub fn forbid_program(&mut self, name: &str) -> Result<(), TokensError> {
        self.change(|contents| {
            let before = contents.programs.len();
            contents.programs.retain(|it| it.name != name);
            if contents.programs.len() == before { Err(TokensError::NoSuchToken) } else { Ok(()) }
        })
    }

    /// Removes a token from the file. From then on it is unknown.
    pub fn revoke(&mut self, id: &str) -> Result<(), TokensError> {
        self.change(|contents| {
            let before = contents.tokens.len();
            contents.tokens.retain(|token| token.id != id);
            if contents.tokens.len() == before { Err(TokensError::NoSuchToken) } else { Ok(()) }
        })
    }

    /// Checks the file if a second has passed, and reads it if it has changed. Returns whether it did.
    pub fn refresh(&mut self, now: Now) -> bool {
        let is_early = |checked: u64| now.monotonic_us < checked.saturating_add(CHECK_EVERY_US);
        if self.checked_us.is_some_and(is_early) {
            return false;
        }
        self.read_again(now)
    }

    /// Checks the file now, and reads it if it has changed. Returns whether it did.
    pub(crate) fn read_again(&mut self, now: Now) -> bool {
        self.checked_us = Some(now.monotonic_us);
        // The stamp is taken first, so that a change in between is noticed the next time.
        let stamp = TokenFileStamp::of(&self.path);
        let has_changed = stamp != self.stamp || self.read.is_err();
        if has_changed {
            self.read = file::read(&self.path);
            self.stamp = stamp;
        }
        has_changed
    }

    /// Finds the token with this secret, if it has not expired.
    pub(crate) fn find(&self, secret: &str, now: Now) -> Result<&Token, AccessError> {
        let tokens =
            &self.read.as_ref().map_err(|error| AccessError::Tokens(error.clone()))?.tokens;
        if !is_token(secret) {
            return Err(AccessError::UnknownToken);
        }
        let hash = TokenHash::of(secret);
        // All tokens are compared, so that the time taken does not reveal which one matched.
        let pick = |found, token| if Token::has(token, &hash) { Some(token) } else { found };
        let found = tokens.iter().fold(None, pick);
        let token = found.ok_or(AccessError::UnknownToken)?;
        if token.is_expired(now.unix_us) { Err(AccessError::ExpiredToken) } else { Ok(token) }
    }

    /// Finds the principal of the address with this secret.
    pub(crate) fn find_address(&self, secret: &str) -> Result<Principal, AccessError> {
        let contents = self.read.as_ref().map_err(|error| AccessError::Tokens(error.clone()))?;
        if !is_token(secret) {
            return Err(AccessError::UnknownToken);
        }
        let hash = TokenHash::of(secret);
        // All addresses are compared, so that the time taken does not reveal which one matched.
        let found = contents.programs.iter().fold(None, |found, program| {
            let is_it = program.address.as_ref().is_some_and(|it| it.hash.is(&hash));
            if is_it { Some(program) } else { found }
        });
        found.and_then(AllowedProgram::principal).ok_or(AccessError::UnknownToken)
    }

    /// Reads the file, changes its contents and writes it, under a lock.
    fn change(
        &mut self,
        how: impl FnOnce(&mut TokenFile) -> Result<(), TokensError>,
    ) -> Result<(), TokensError> {
        let _lock = file::lock(&self.path)?;
        let mut contents = file::read(&self.path)?;
        how(&mut contents)?;
        file::write(&self.path, &contents)?;
        self.stamp = TokenFileStamp::of(&self.path);
        self.read = Ok(contents);
        Ok(())
    }
}

/// The time of allowing a program: now. Fails if the name is not valid.
fn allowed_at(name: &str, now: Now) -> Result<Timestamp, TokensError> {
    if !is_name(name) || name.chars().count() > MAX_PROGRAM_CHARS {
        return Err(TokensError::BadName);
    }
    whole_second(now)
}

/// This moment, rounded to a whole second.
fn whole_second(now: Now) -> Result<Timestamp, TokensError> {
    Timestamp::from_microsecond(now.unix_us)
        .and_then(|it| it.round(jiff::Unit::Second))
        .map_err(|_| TokensError::BadClock)
}

fn random<const N: usize>() -> Result<[u8; N], TokensError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| TokensError::NoRandomness)?;
    Ok(bytes)
}

/// Why tokens could not be read or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokensError {
    /// The file or its folder cannot be read.
    Unreadable(PathBuf, String),
    /// The file or its folder cannot be written. The previous contents are still there.
    Unwritable(PathBuf, String),
    /// The file is not valid at this place.
    Broken(PathBuf, String),
    /// Other users can change the file, so they could add tokens of their own.
    WritableByOthers(PathBuf),
    /// The file exceeds [`MAX_TOKENS_BYTES`].
    TooLarge(PathBuf),
    /// There are [`MAX_TOKENS`] tokens already.
    TooMany,
    /// No token has this id.
    NoSuchToken,
    /// The name is empty, too long, or has control characters.
    BadName,
    /// The name is that of every program that gives none.
    NameOfEveryone,
    /// The token would allow nothing.
    NoScopes,
    /// The expiry is not in the future.
    AlreadyExpired,
    /// The machine's clock shows a year that cannot be represented.
    BadClock,
    /// The system provided no random bytes.
    NoRandomness,
}

impl fmt::Display for TokensError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |path: &Path| aaep::printable(&path.to_string_lossy()).into_owned();
        match self {
            TokensError::Unreadable(path, why) => {
                write!(f, "{} cannot be read: {why}. Check who may read it.", shown(path))
            }
            TokensError::Unwritable(path, why) => write!(
                f,
                "{} cannot be written: {why}. Nothing was changed. Check its folder and the free space.",
                shown(path)
            ),
            TokensError::Broken(path, why) => write!(
                f,
                "{} is not a file of tokens: {}. Until it is repaired, no token is accepted.",
                shown(path),
                aaep::printable(why)
            ),
            TokensError::WritableByOthers(path) => write!(
                f,
                "Other users can change {0}, so no token in it is accepted. Run: chmod 600 '{0}'",
                shown(path)
            ),
            TokensError::TooLarge(path) => {
                write!(f, "{} is too large. Remove what is not a token.", shown(path))
            }
            TokensError::TooMany => {
                write!(f, "There are {MAX_TOKENS} tokens already. Revoke one that is not used.")
            }
            TokensError::NoSuchToken => {
                f.write_str("There is no token with this id. List the tokens to see their ids.")
            }
            TokensError::BadName => f.write_str(
                "The name of a token has 1 to 256 characters, none of them control characters. Choose another.",
            ),
            TokensError::NameOfEveryone => f.write_str(
                "Every program that gives no name is called so, your agents among them. Make an address for the one \
                 that you mean, with --address.",
            ),
            TokensError::NoScopes => f.write_str(
                "The token would allow nothing. Give it listen, reply, publish or admin.",
            ),
            TokensError::AlreadyExpired => {
                f.write_str("The expiry is not in the future. Choose a later one.")
            }
            TokensError::BadClock => {
                f.write_str("The clock of this machine is wrong. Set it and try again.")
            }
            TokensError::NoRandomness => f.write_str(
                "The system gave no random bytes, so no token can be made. Try again later.",
            ),
        }
    }
}

impl std::error::Error for TokensError {}

#[cfg(test)]
mod tests;
