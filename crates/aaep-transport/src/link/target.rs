//! Where a producer is, as people write it: one line that names the wire and the place.

use std::fmt;
use std::path::PathBuf;

use aaep_http::{AddressError, HttpAddress};

/// The longest target that is read, in bytes.
pub const MAX_TARGET_BYTES: usize = 4096;

/// Where a producer is, and over which wire to reach it.
#[derive(Clone, PartialEq, Eq)]
pub enum Target {
    /// Server-sent events and POST (B.1).
    Sse(HttpAddress),
    /// A WebSocket (B.2).
    WebSocket(HttpAddress),
    /// A Unix socket or, on Windows, a named pipe (B.3, B.4). Without a path it is that of the person's own hub.
    Unix(Option<PathBuf>),
    /// gRPC (B.5).
    Grpc(HttpAddress),
    /// A child process that speaks JSON-RPC on its standard input and output (B.6): its program and arguments.
    Stdio(Vec<String>),
}

/// Why a text does not name a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetError {
    /// It is too long, or has characters that an address cannot have.
    Form,
    /// It does not begin with the name of a wire.
    NoWire,
    /// It names an unknown wire.
    UnknownWire,
    /// It contains a user name or a password.
    Credentials,
    /// It has no host.
    NoHost,
    /// The path of a socket is not absolute.
    RelativePath,
    /// It has no program.
    NoProgram,
    /// A quotation mark is opened but not closed.
    OpenQuote,
}

impl Target {
    /// Reads a target: `http://…`, `https://…`, `ws://…`, `wss://…`, `unix:/path`, `unix:` alone, `grpc://…`,
    /// `grpcs://…` or `stdio:CMD ARG…`.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let text = text.trim();
        if text.len() > MAX_TARGET_BYTES || text.contains(char::is_control) {
            return Err(TargetError::Form);
        }
        let (wire, rest) = text.split_once(':').ok_or(TargetError::NoWire)?;
        // Every wire over the network begins with a request in HTTP.
        let address = |scheme| {
            let address = HttpAddress::parse(&format!("{scheme}:{rest}"));
            address.map_err(TargetError::from)
        };
        match wire.to_ascii_lowercase().as_str() {
            "http" => address("http").map(Target::Sse),
            "https" => address("https").map(Target::Sse),
            "ws" => address("http").map(Target::WebSocket),
            "wss" => address("https").map(Target::WebSocket),
            "grpc" => address("http").map(Target::Grpc),
            "grpcs" => address("https").map(Target::Grpc),
            "unix" => socket(rest),
            "stdio" => program(rest),
            _ if rest.starts_with("//") => Err(TargetError::UnknownWire),
            _ => Err(TargetError::NoWire),
        }
    }
}

/// The path of a socket, `///path` as well as `/path`. On Windows, the name of a pipe.
fn socket(rest: &str) -> Result<Target, TargetError> {
    if rest.is_empty() {
        return Ok(Target::Unix(None));
    }
    if cfg!(windows) {
        let is_whole = rest.starts_with(r"\\");
        let path = if is_whole { rest.to_owned() } else { format!(r"\\.\pipe\aaep\{rest}") };
        return Ok(Target::Unix(Some(path.into())));
    }
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if path.starts_with('/') {
        Ok(Target::Unix(Some(path.into())))
    } else {
        Err(TargetError::RelativePath)
    }
}

/// A program and its arguments. Single and double quotation marks keep a word together; there is no shell.
fn program(rest: &str) -> Result<Target, TargetError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut open: Option<char> = None;
    for character in rest.chars() {
        match open {
            Some(quote) if character == quote => open = None,
            None if matches!(character, '\'' | '"') => {
                open = Some(character);
                word.get_or_insert_default();
            }
            None if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    if open.is_some() {
        return Err(TargetError::OpenQuote);
    }
    words.extend(word);
    match words.first() {
        Some(program) if !program.is_empty() => Ok(Target::Stdio(words)),
        _ => Err(TargetError::NoProgram),
    }
}

impl fmt::Display for Target {
    /// Omits what may be a secret: the query of an address, and the arguments of a program.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Sse(address) => address.fmt(f),
            Target::WebSocket(address) => {
                f.write_str(&address.to_string().replacen("http", "ws", 1))
            }
            Target::Grpc(address) => f.write_str(&address.to_string().replacen("http", "grpc", 1)),
            Target::Unix(None) => f.write_str("unix:"),
            Target::Unix(Some(path)) => {
                write!(f, "unix:{}", aaep::printable(&path.to_string_lossy()))
            }
            Target::Stdio(words) => {
                let program = words.first().map_or("", String::as_str);
                write!(f, "stdio:{}", aaep::printable(program))
            }
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

impl From<AddressError> for TargetError {
    fn from(error: AddressError) -> Self {
        match error {
            AddressError::Form | AddressError::Scheme => TargetError::Form,
            AddressError::Credentials => TargetError::Credentials,
            AddressError::Host => TargetError::NoHost,
        }
    }
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TargetError::Form => {
                "This is not an address. Write it like http://127.0.0.1:7117, without spaces and special \
                 characters"
            }
            TargetError::NoWire => {
                "The address does not say how to connect. Begin it with http://, https://, ws://, wss://, \
                 unix:, grpc://, grpcs:// or stdio:"
            }
            TargetError::UnknownWire => {
                "This way to connect is not known. Begin the address with http://, https://, ws://, wss://, \
                 unix:, grpc://, grpcs:// or stdio:"
            }
            TargetError::Credentials => {
                "The address carries a name or a password. Leave out what stands before the @ sign, and give \
                 a token instead"
            }
            TargetError::NoHost => {
                "The address names no host and port that can be reached. Write it like \
                 https://example.org:8443, in ASCII letters"
            }
            TargetError::RelativePath => {
                "The path of a socket begins with a slash. Write it like \
                 unix:/run/user/1000/aaep/aaep-hub.sock, or unix: alone for your own hub"
            }
            TargetError::NoProgram => {
                "No program is named. Write it like stdio:my-agent --quiet, quotation marks around what has \
                 spaces"
            }
            TargetError::OpenQuote => "A quotation mark is not closed. Close it, or leave it out",
        })
    }
}

impl std::error::Error for TargetError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_wire_is_recognised_and_shown_again() {
        for (text, shown) in [
            ("http://127.0.0.1:7117", "http://127.0.0.1:7117/"),
            (" HTTPS://Example.org:443/aaep/v1 ", "https://example.org/aaep/v1"),
            ("ws://[::1]:80/x", "ws://[::1]/x"),
            ("wss://example.org", "wss://example.org/"),
            ("grpc://localhost:7117", "grpc://localhost:7117/"),
            ("grpcs://example.org", "grpcs://example.org/"),
            ("unix:", "unix:"),
        ] {
            let target = Target::parse(text).expect(text);
            assert_eq!(target.to_string(), shown);
            assert_eq!(Target::parse(shown).expect("again"), target);
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_path_of_a_socket_begins_at_the_root() {
        for (text, path) in
            [("unix:/run/a b.sock", "/run/a b.sock"), ("unix:///run/a.sock", "/run/a.sock")]
        {
            assert_eq!(Target::parse(text), Ok(Target::Unix(Some(path.into()))));
        }
        for text in ["unix:here.sock", "unix://here/there.sock", "unix:~/hub.sock"] {
            assert_eq!(Target::parse(text), Err(TargetError::RelativePath));
        }
    }

    #[cfg(windows)]
    #[test]
    fn a_pipe_is_known_by_its_name_or_its_whole_path() {
        let path = r"\\.\pipe\aaep\my-agent";
        for text in ["unix:my-agent".to_owned(), format!("unix:{path}")] {
            assert_eq!(Target::parse(&text), Ok(Target::Unix(Some(path.into()))));
        }
    }

    #[test]
    fn words_of_a_program_are_kept_together_by_quotation_marks() {
        let words = |text| match Target::parse(text).expect(text) {
            Target::Stdio(words) => words,
            other => panic!("{other}"),
        };
        assert_eq!(words("stdio:agent"), ["agent"]);
        assert_eq!(words("stdio: agent  -v $HOME"), ["agent", "-v", "$HOME"]);
        assert_eq!(
            words(r#"stdio:"my agent" 'it says "no"' """#),
            ["my agent", "it says \"no\"", ""]
        );
        assert_eq!(words("stdio:a'b c'd"), ["ab cd"]);
    }

    #[test]
    fn an_invalid_target_says_what_to_write() {
        for (text, expected) in [
            ("", TargetError::NoWire),
            ("127.0.0.1", TargetError::NoWire),
            ("localhost:7117", TargetError::NoWire),
            ("ftp://example.org", TargetError::UnknownWire),
            ("http:", TargetError::Form),
            ("http://", TargetError::Form),
            ("http:///aaep", TargetError::Form),
            ("http://user:secret@example.org/", TargetError::Credentials),
            ("wss://example.org:99999", TargetError::NoHost),
            ("ws://exa mple.org", TargetError::Form),
            ("http://example.org/\r\nx: y", TargetError::Form),
            ("stdio:", TargetError::NoProgram),
            ("stdio:''", TargetError::NoProgram),
            ("stdio:'agent", TargetError::OpenQuote),
        ] {
            let error = Target::parse(text).expect_err(text);
            assert_eq!(error, expected, "{text:?}");
            assert!(error.to_string().contains(". "), "a next step: {error}");
            assert!(!error.to_string().contains("secret"));
        }
        let long = format!("http://example.org/{}", "a".repeat(MAX_TARGET_BYTES));
        assert_eq!(Target::parse(&long), Err(TargetError::Form));
    }

    #[test]
    fn what_may_be_a_secret_is_never_shown() {
        for text in ["https://example.org/a?token=secret", "stdio:agent --token secret"] {
            let target = Target::parse(text).expect(text);
            assert!(!format!("{target} {target:?}").contains("secret"));
        }
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_refused_or_means_what_it_shows(
            wire in "(https?|wss?|grpcs?)://|unix:|stdio:|", rest in "[a-z0-9@:/?#\\[\\]%.\\\\\"' é-]{0,24}|\\PC{0,24}",
        ) {
            let Ok(target) = Target::parse(&format!("{wire}{rest}")) else { return Ok(()) };
            let shown = target.to_string();
            if let Target::Sse(place) | Target::WebSocket(place) | Target::Grpc(place) = &target {
                prop_assert!(!place.host().is_empty() && place.port() > 0);
                prop_assert!(!place.authority().contains(['@', '/', '?']));
                prop_assert!(place.path_and_query().starts_with('/'));
                let again = Target::parse(&shown).expect("it can be read again");
                prop_assert_eq!(again.to_string(), shown);
            }
        }
    }
}
