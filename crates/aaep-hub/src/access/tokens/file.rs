//! `tokens.toml`: read within bounds, written completely or not at all, readable by its owner alone.
//!
//! This file does not decide who may connect.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::{AllowedProgram, MAX_TOKENS, MAX_TOKENS_BYTES, ProgramAddress, TokensError};
use crate::access::principal::is_name;
use crate::access::token::{Token, TokenHash, TokenText, hex};

const HEADER: &str =
    "# The tokens of this AAEP hub. Only hashes are kept: a lost token cannot be read back.\n\n";

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenFileText {
    #[serde(default)]
    token: Vec<TokenText>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    program: Vec<ProgramText>,
}

/// A local program that may answer, as the file has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramText {
    name: String,
    allowed: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<AddressText>,
}

/// The address of a program, as the file has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AddressText {
    last_four: String,
    sha256: String,
}

/// The contents of the token file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TokenFile {
    pub(super) tokens: Vec<Token>,
    pub(super) programs: Vec<AllowedProgram>,
}

impl TokenFile {
    pub(super) fn add_program(&mut self, program: AllowedProgram) -> Result<(), TokensError> {
        if self.programs.len() >= MAX_TOKENS {
            return Err(TokensError::TooMany);
        }
        self.programs.push(program);
        Ok(())
    }
}

/// Shows whether the file has changed. The default stands for a missing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TokenFileStamp {
    modified: Option<SystemTime>,
    bytes: u64,
    inode: u64,
}

impl TokenFileStamp {
    pub(super) fn of(path: &Path) -> Self {
        let Ok(metadata) = fs::metadata(path) else { return TokenFileStamp::default() };
        TokenFileStamp {
            modified: metadata.modified().ok(),
            bytes: metadata.len(),
            inode: inode(&metadata),
        }
    }
}

/// Reads the file. A missing file has no tokens.
pub(super) fn read(path: &Path) -> Result<TokenFile, TokensError> {
    let unreadable = |error: io::Error| TokensError::Unreadable(path.to_owned(), error.to_string());
    let broken = |why: String| TokensError::Broken(path.to_owned(), why);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(TokenFile::default()),
        Err(error) => return Err(unreadable(error)),
    };
    if is_writable_by_others(&file.metadata().map_err(unreadable)?) {
        return Err(TokensError::WritableByOthers(path.to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(MAX_TOKENS_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_TOKENS_BYTES {
        return Err(TokensError::TooLarge(path.to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|_| broken("it is not UTF-8".to_owned()))?;
    // Only the message: the full error shows lines of the file, which may be private.
    let document: TokenFileText =
        toml::from_str(&text).map_err(|error| broken(place(&text, &error)))?;
    if document.token.len() > MAX_TOKENS || document.program.len() > MAX_TOKENS {
        return Err(TokensError::TooMany);
    }
    let mut tokens: Vec<Token> = Vec::with_capacity(document.token.len());
    for (at, token) in document.token.into_iter().enumerate() {
        let number = at + 1;
        let token = Token::try_from(token)
            .map_err(|field| broken(format!("the {field} of token {number} is wrong")))?;
        if tokens.iter().any(|other| other.id == token.id) {
            return Err(broken(format!("token {number} has the id of an earlier one")));
        }
        tokens.push(token);
    }
    let mut programs = Vec::with_capacity(document.program.len());
    for (at, program) in document.program.into_iter().enumerate() {
        let wrong = |field| broken(format!("the {field} of program {} is wrong", at + 1));
        let allowed = program.allowed.parse().map_err(|_| wrong("allowed"))?;
        if !is_name(&program.name) {
            return Err(wrong("name"));
        }
        let address = match program.address {
            Some(AddressText { last_four, sha256 }) => {
                let hash = TokenHash::from_hex(&sha256).ok_or_else(|| wrong("sha256"))?;
                Some(ProgramAddress { last_four, hash })
            }
            None => None,
        };
        programs.push(AllowedProgram { name: program.name, allowed, address });
    }
    Ok(TokenFile { tokens, programs })
}

/// Writes a new file next to the old one and renames it, so that a reader never sees half of it.
pub(super) fn write(path: &Path, contents: &TokenFile) -> Result<(), TokensError> {
    let unwritable = |error: io::Error| TokensError::Unwritable(path.to_owned(), error.to_string());
    let program = |it: &AllowedProgram| ProgramText {
        name: it.name.clone(),
        allowed: it.allowed.to_string(),
        address: it.address.as_ref().map(|address| AddressText {
            last_four: address.last_four.clone(),
            sha256: address.hash.to_hex(),
        }),
    };
    let document = TokenFileText {
        token: contents.tokens.iter().map(TokenText::from).collect(),
        program: contents.programs.iter().map(program).collect(),
    };
    let body = toml::to_string(&document)
        .map_err(|error| unwritable(io::Error::other(error.to_string())))?;
    let beside = sibling(path, &format!(".{}.new", hex(&super::random::<8>()?)));
    let written = write_new(&beside, format!("{HEADER}{body}").as_bytes())
        .and_then(|()| fs::rename(&beside, path))
        .and_then(|()| sync_folder(path));
    if written.is_err() {
        // The attempt failed, and the rest of the file is useless.
        let _ = fs::remove_file(&beside);
    }
    written.map_err(unwritable)
}

/// Keeps other programs from changing the tokens until the result is dropped.
pub(super) fn lock(path: &Path) -> Result<File, TokensError> {
    let beside = sibling(path, ".lock");
    let unwritable = |error: io::Error| TokensError::Unwritable(beside.clone(), error.to_string());
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    for_the_owner(&mut options);
    let file = options.open(&beside).map_err(unwritable)?;
    file.lock().map_err(unwritable)?;
    Ok(file)
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    for_the_owner(&mut options);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// The path with a suffix added to its file name.
fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

fn place(text: &str, error: &toml::de::Error) -> String {
    let at = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = text[..text.floor_char_boundary(at)].matches('\n').count() + 1;
    format!("line {line}, {}", error.message())
}

#[cfg(unix)]
fn for_the_owner(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt as _;
    options.mode(0o600);
}

#[cfg(unix)]
fn is_writable_by_others(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    metadata.mode() & 0o022 != 0
}

#[cfg(unix)]
fn inode(metadata: &fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    metadata.ino()
}

#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

// On other systems the user's configuration folder belongs to the user, and there are no such modes.
#[cfg(not(unix))]
fn for_the_owner(_: &mut OpenOptions) {}

#[cfg(not(unix))]
fn is_writable_by_others(_: &fs::Metadata) -> bool {
    false
}

#[cfg(not(unix))]
fn inode(_: &fs::Metadata) -> u64 {
    0
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
