//! Braille through BRLTTY, which uses the `BrlAPI` protocol on a socket.
//!
//! Words are shown window by window, at the person's pace. A person answers a question with the routing keys above
//! the words of its answers, and a key counts only if these words were on the display when it was pressed.

pub mod codec;
mod contract;
mod pages;
mod reader;
mod talk;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use aaep::LanguageTag;

use super::client::{self, SocketDevice};
use super::plain::quoted;
use super::socket::{DeviceAddress, DeviceSocket};
use super::{Device, TimedReport};
use crate::english::devices;
use crate::utterance::Utterance;

/// The name of the device in its reports.
pub const NAME: &str = "braille";

/// The port of the first `BrlAPI` server of a machine; the others follow it.
const FIRST_PORT: u16 = 4101;

/// The folder of the `BrlAPI` sockets. Each is named by its number.
const SOCKETS: &str = "/var/lib/BrlAPI";

/// The key file. A program that can read it may connect.
const KEY_FILE: &str = "/etc/brlapi.key";

/// How much of a key file is read. More does not fit into a packet.
const MAX_KEY_BYTES: usize = 4000;

/// Settings of the braille device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The address of BRLTTY.
    pub address: DeviceAddress,
    /// The key file, for a server that requires one.
    pub key_file: PathBuf,
    /// The terminal to show words on, as a path of numbers; all terminals if the path is empty.
    pub terminal: Vec<u32>,
    /// How many cells the person reads in a second; `None` if only the person's keys move on.
    pub cells_per_second: Option<u16>,
    /// How long an answer must have been on the display before it can be chosen.
    pub least_look: Duration,
    /// Liblouis tables for contracted braille, by language. Words in other languages are shown uncontracted.
    pub tables: Vec<(LanguageTag, String)>,
    /// The liblouis program that contracts.
    pub translator: String,
    /// How long the server may take to answer.
    pub patience: Duration,
}

/// The windows of a question on a display with this many cells, for tests.
#[doc(hidden)]
pub fn question_windows(question: &Utterance, cells: usize) -> Vec<String> {
    let mut question = question.clone();
    let words = pages::flatten(&mut question);
    let windows = pages::pages(&words, &question.choices, cells);
    windows.into_iter().map(|page| page.text).collect()
}

impl Settings {
    /// The default settings for a server at this address.
    pub fn new(address: DeviceAddress) -> Self {
        Settings {
            address,
            key_file: KEY_FILE.into(),
            terminal: Vec::new(),
            cells_per_second: Some(10),
            least_look: Duration::from_millis(700),
            tables: Vec::new(),
            translator: "lou_translate".to_owned(),
            patience: Duration::from_secs(5),
        }
    }
}

/// The address of BRLTTY: `BRLAPI_HOST` if it is set, or the default. `variable` looks up an environment variable. An
/// error says what is wrong, in words for people.
pub fn address(variable: impl Fn(&str) -> Option<String>) -> Result<DeviceAddress, String> {
    let usual = if cfg!(unix) { ":0" } else { "127.0.0.1:0" };
    let text = variable("BRLAPI_HOST").filter(|text| !text.is_empty());
    let text = text.as_deref().unwrap_or(usual);
    read_address(text).ok_or_else(|| devices::braille::wrong_address(&quoted(text)))
}

fn read_address(text: &str) -> Option<DeviceAddress> {
    let (host, number) = text.rsplit_once(':').unwrap_or((text, "0"));
    let number: u16 = number.parse().ok()?;
    match host.trim_start_matches('[').trim_end_matches(']') {
        "" => Some(DeviceAddress::Unix(Path::new(SOCKETS).join(number.to_string()))),
        host => Some(DeviceAddress::Tcp(host.to_owned(), FIRST_PORT.checked_add(number)?)),
    }
}

/// The terminal in which this program runs, as BRLTTY numbers terminals; empty if it is unknown.
pub fn terminal(variable: impl Fn(&str) -> Option<String>) -> Vec<u32> {
    const MAX_DEPTH: usize = 8;
    let number = |name: &str| variable(name).and_then(|text| text.trim().parse().ok());
    let is_graphical = variable("DISPLAY").or_else(|| variable("WAYLAND_DISPLAY")).is_some();
    let console = number("XDG_VTNR");
    let mut path: Vec<u32> = match variable("WINDOWPATH") {
        Some(text) => text.split(':').map_while(|text| text.parse().ok()).take(MAX_DEPTH).collect(),
        None => console.filter(|_| is_graphical).into_iter().collect(),
    };
    let own = number("WINDOWID").or_else(|| number("CONTROLVT"));
    path.extend(own.or_else(|| console.filter(|_| !is_graphical)));
    path
}

/// Starts the device. It reports on `reports`, and ends when the [`Device`] is dropped.
pub fn start(settings: Settings, reports: Sender<TimedReport>) -> io::Result<Device> {
    let (address, patience) = (settings.address.clone(), settings.patience);
    let key_file = settings.key_file.clone();
    let client = SocketDevice {
        name: NAME,
        dial: Arc::new(move || dial(&address, patience)),
        dial_patience: patience.saturating_mul(2),
        patience,
        too_slow: devices::braille::NO_ANSWER,
        closed: devices::braille::CONNECTION_ENDED,
    };
    let key = Box::new(move || read_key(&key_file).ok());
    client::start(client, talk::BrailleConversation::new(settings, key), reports)
}

fn dial(address: &DeviceAddress, patience: Duration) -> Result<DeviceSocket, String> {
    DeviceSocket::connect(address, patience)
        .map_err(|error| devices::braille::nothing_answers(address, &error))
}

fn read_key(path: &Path) -> io::Result<Vec<u8>> {
    let mut key = Vec::new();
    File::open(path)?.take(MAX_KEY_BYTES as u64).read_to_end(&mut key)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look_up<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn the_address_is_read_as_brlapi_writes_it() {
        for (text, expected) in [
            (":0", DeviceAddress::Unix("/var/lib/BrlAPI/0".into())),
            (":12", DeviceAddress::Unix("/var/lib/BrlAPI/12".into())),
            ("127.0.0.1:9", DeviceAddress::Tcp("127.0.0.1".to_owned(), 4110)),
            ("[::1]:1", DeviceAddress::Tcp("::1".to_owned(), 4102)),
            ("desk", DeviceAddress::Tcp("desk".to_owned(), 4101)),
        ] {
            assert_eq!(address(look_up(&[("BRLAPI_HOST", text)])), Ok(expected), "{text}");
        }
    }

    #[test]
    fn an_address_that_cannot_be_read_is_told_and_not_guessed() {
        for text in [":x", "host:99999", ":../../tmp/x", ":", "a:65000"] {
            assert!(address(look_up(&[("BRLAPI_HOST", text)])).is_err(), "{text}");
        }
    }

    #[test]
    fn the_terminal_is_the_one_that_the_environment_tells() {
        for (variables, expected) in [
            (&[][..], &[][..]),
            (&[("WINDOWPATH", "7"), ("WINDOWID", "4194313")], &[7, 4_194_313]),
            (&[("DISPLAY", ":0"), ("XDG_VTNR", "2"), ("WINDOWID", "5")], &[2, 5]),
            (&[("XDG_VTNR", "3")], &[3]),
            (&[("CONTROLVT", "4"), ("XDG_VTNR", "3")], &[4]),
            (&[("WINDOWPATH", "1:x:2"), ("WINDOWID", "-3")], &[1]),
        ] {
            assert_eq!(terminal(look_up(variables)), expected, "{variables:?}");
        }
    }
}
