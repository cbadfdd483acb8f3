//! Speech through speech-dispatcher, which uses the SSIP protocol on a socket.
//!
//! The server gets one utterance at a time, so that waiting ones can still be reordered. The server reports when it
//! begins and ends to speak, so the pace is the person's real pace. It is never asked to pause: the server of Debian
//! 12 then hangs for good.

pub mod codec;
mod language;
mod rate;
mod saying;
mod talk;
mod task;
mod voices;

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use aaep::LanguageTag;

use super::client::{self, SocketDevice};
use super::plain::quoted;
use super::socket::{DeviceAddress, DeviceSocket};
use super::{Device, TimedReport};
use crate::english::devices;

/// The name of the device in its reports.
pub const NAME: &str = "speech";

/// Settings of the speech device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The address of the speech server.
    pub address: DeviceAddress,
    /// The program, with its arguments, that starts the server if nothing answers. With `None`, it is not started.
    pub spawn: Option<Vec<String>>,
    /// The user name for the server's list of clients.
    pub user: String,
    /// The synthesizer; by default the server's own choice.
    pub module: Option<String>,
    /// The voice, as the server lists it; by default the server's own choice.
    pub voice: Option<String>,
    /// The language of words without a language; by default the server's own.
    pub language: Option<LanguageTag>,
    /// The rate, from -100 to 100.
    pub rate: Option<i8>,
    /// The pitch, from -100 to 100.
    pub pitch: Option<i8>,
    /// The volume, from -100 to 100.
    pub volume: Option<i8>,
    /// How long the server may take to answer.
    pub patience: Duration,
}

impl Settings {
    /// The default settings for a server at this address.
    pub fn new(address: DeviceAddress) -> Self {
        let spawn = match &address {
            DeviceAddress::Unix(path) => {
                let words =
                    ["speech-dispatcher", "--spawn", "--communication-method", "unix_socket"];
                let mut command: Vec<String> = words.map(str::to_owned).into();
                command.extend(["--socket-path".to_owned(), path.to_string_lossy().into_owned()]);
                Some(command)
            }
            DeviceAddress::Tcp(..) => None,
        };
        Settings {
            address,
            spawn,
            user: String::new(),
            module: None,
            voice: None,
            language: None,
            rate: None,
            pitch: None,
            volume: None,
            patience: Duration::from_secs(5),
        }
    }
}

/// The address of the speech server: `SPEECHD_ADDRESS` if it is set, or the default under `XDG_RUNTIME_DIR` or, if
/// that is not set, in the cache folder. `variable` looks up an environment variable. An error says what is wrong, in
/// words for people.
pub fn address(variable: impl Fn(&str) -> Option<String>) -> Result<DeviceAddress, String> {
    if let Some(text) = variable("SPEECHD_ADDRESS").filter(|text| !text.is_empty()) {
        return read_address(&text).ok_or_else(|| devices::speech::wrong_address(&quoted(&text)));
    }
    let folder = |name: &str| variable(name).filter(|text| !text.is_empty()).map(PathBuf::from);
    let runtime = folder("XDG_RUNTIME_DIR").or_else(|| folder("XDG_CACHE_HOME"));
    match runtime.or_else(|| folder("HOME").map(|home| home.join(".cache"))) {
        Some(folder) if cfg!(unix) => {
            Ok(DeviceAddress::Unix(folder.join("speech-dispatcher").join("speechd.sock")))
        }
        None if cfg!(unix) => Err(devices::speech::UNKNOWN_PLACE.to_owned()),
        _ => Ok(DeviceAddress::Tcp("127.0.0.1".to_owned(), DEFAULT_PORT)),
    }
}

/// The default port of a speech server on the network.
const DEFAULT_PORT: u16 = 6560;

/// Parses an address in the format of speech-dispatcher.
fn read_address(text: &str) -> Option<DeviceAddress> {
    if let Some(path) = text.strip_prefix("unix_socket:") {
        return (!path.is_empty()).then(|| DeviceAddress::Unix(path.into()));
    }
    let place = text.strip_prefix("inet_socket")?.trim_start_matches(':');
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (place, DEFAULT_PORT),
    };
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    Some(DeviceAddress::Tcp(host.to_owned(), port))
}

/// Starts the device. It reports on `reports`, and ends when the [`Device`] is dropped.
pub fn start(settings: Settings, reports: Sender<TimedReport>) -> io::Result<Device> {
    let for_dial = settings.clone();
    let client = SocketDevice {
        name: NAME,
        dial: Arc::new(move || dial(&for_dial)),
        // This includes the time to start the server.
        dial_patience: settings.patience.saturating_mul(3),
        patience: settings.patience,
        too_slow: devices::speech::NO_ANSWER,
        closed: devices::speech::CONNECTION_ENDED,
    };
    client::start(client, talk::SpeechConversation::new(settings), reports)
}

fn dial(settings: &Settings) -> Result<DeviceSocket, String> {
    let connect = || DeviceSocket::connect(&settings.address, settings.patience);
    let error = match connect() {
        Ok(socket) => return Ok(socket),
        Err(error) => error,
    };
    let is_absent =
        matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused);
    let Some(command) = settings.spawn.as_deref().filter(|_| is_absent) else {
        return Err(devices::speech::nothing_answers(&settings.address, &error));
    };
    spawn(command, settings.patience)?;
    let until = Instant::now() + settings.patience;
    loop {
        match connect() {
            Ok(socket) => return Ok(socket),
            Err(error) if Instant::now() >= until => {
                return Err(devices::speech::started_without_answer(&settings.address, &error));
            }
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Starts the server. It goes into the background by itself; a server that stays in the foreground keeps running.
fn spawn(command: &[String], patience: Duration) -> Result<(), String> {
    let Some((program, arguments)) = command.split_first() else { return Ok(()) };
    let started = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let child =
        started.map_err(|error| devices::speech::cannot_be_started(&quoted(program), &error))?;
    wait_a_while(child, patience);
    Ok(())
}

/// Waits a while for the child to end. After that a thread waits for it, so that no zombie process is left.
fn wait_a_while(mut child: Child, patience: Duration) {
    let until = Instant::now() + patience;
    while Instant::now() < until {
        match child.try_wait() {
            Ok(None) => thread::sleep(Duration::from_millis(20)),
            Ok(Some(_)) | Err(_) => return,
        }
    }
    thread::spawn(move || child.wait());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Result<DeviceAddress, String> {
        address(|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[cfg(unix)]
    #[test]
    fn the_address_is_read_as_speech_dispatcher_writes_it() {
        let runtime = ("XDG_RUNTIME_DIR", "/run/user/7");
        for (text, expected) in [
            ("unix_socket:/tmp/a b.sock", DeviceAddress::Unix("/tmp/a b.sock".into())),
            ("inet_socket:example.org:7000", DeviceAddress::Tcp("example.org".to_owned(), 7000)),
            ("inet_socket:example.org", DeviceAddress::Tcp("example.org".to_owned(), 6560)),
            ("inet_socket", DeviceAddress::Tcp("127.0.0.1".to_owned(), 6560)),
        ] {
            assert_eq!(of(&[("SPEECHD_ADDRESS", text), runtime]), Ok(expected), "{text}");
        }
        let usual = DeviceAddress::Unix("/run/user/7/speech-dispatcher/speechd.sock".into());
        assert_eq!(of(&[runtime]), Ok(usual.clone()));
        assert_eq!(of(&[("SPEECHD_ADDRESS", ""), runtime]), Ok(usual));
        let cached = DeviceAddress::Unix("/home/me/.cache/speech-dispatcher/speechd.sock".into());
        assert_eq!(of(&[("HOME", "/home/me")]), Ok(cached));
        assert!(of(&[]).is_err());
    }

    #[test]
    fn an_address_that_cannot_be_read_is_told_and_not_guessed() {
        for text in ["unix_socket:", "inet_socket:host:port", "/tmp/sock", "\u{1b}[2J"] {
            let error = of(&[("SPEECHD_ADDRESS", text)]).expect_err(text);
            assert!(error.contains("SPEECHD_ADDRESS") && !error.contains('\u{1b}'), "{error}");
        }
    }
}
