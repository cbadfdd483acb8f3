//! Telling what is told again: through the devices of `aaep listen`, one utterance after the other, or as JSON.

use std::collections::VecDeque;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use aaep::{LanguageTag, printable};
use aaep_announce::{Kind, Order, Report, Utterance, UtteranceId};
use serde_json::{Value, json};

use crate::archive::Session;
use crate::console::{self, Failure, ascii_json_line};
use crate::keys::{moment, tell};
use crate::listen::devices::{self, Channel};
use crate::settings::Settings;

/// How long a device may take for one utterance. On a braille display people read as slowly as they like.
const PATIENCE: Duration = Duration::from_mins(30);

/// Something to be told, and where it comes from.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub(super) utterance: Utterance,
    /// The same for machines.
    pub(super) json: Value,
}

impl Told {
    /// Something that happened in a session.
    pub(super) fn of(session: &Session, unix_us: i64, turn: u32, utterance: Utterance) -> Self {
        let json = json!({
            "at": moment(unix_us.div_euclid(1000)),
            "session_id": session.id,
            "agent": session.agent,
            "turn": turn,
            "kind": utterance.kind.word(),
            "words": printable(&utterance.words),
            "language": utterance.language.as_ref().map(LanguageTag::as_str),
        });
        Told { utterance, json }
    }

    /// The words with whose they are, so that no agent can speak for us.
    pub(super) fn line(&self) -> String {
        let words = &self.utterance.words;
        match self.json["agent"].as_str() {
            Some(agent) => format!("{}, {words}", printable(agent)),
            None => words.clone(),
        }
    }

    /// Something about the replay itself.
    pub(super) fn about(words: &str) -> Self {
        let utterance = super::history::notice(words);
        let json = json!({ "kind": Kind::Notice.word(), "words": printable(words) });
        Told { utterance, json }
    }
}

/// One object a line, for machines.
pub(super) fn write_json(all: impl IntoIterator<Item = Told>) -> Result<(), Failure> {
    all.into_iter().try_for_each(|told| tell(&ascii_json_line(&told.json)))
}

/// Tells it all, at every device at its own pace. A device that does not work is complained about, and the others go
/// on.
pub(super) fn play(
    settings: &Settings,
    all: impl IntoIterator<Item = Told>,
) -> Result<(), Failure> {
    let (reports, told) = mpsc::channel();
    let started = devices::start(settings, false, &reports)?;
    drop(reports);
    let all: Vec<Utterance> = all.into_iter().map(|told| told.utterance).collect();
    let mut players: Vec<Player> =
        started.channels.into_iter().map(|channel| Player::new(channel, &all)).collect();
    let mut is_told = false;
    while !players.is_empty() {
        players.iter_mut().for_each(Player::go_on);
        players.retain(|player| {
            is_told |= player.is_done();
            !(player.is_done() || player.has_failed)
        });
        if players.is_empty() {
            break;
        }
        match told.recv_timeout(PATIENCE) {
            Ok(told) => {
                let player = players.iter_mut().find(|it| it.channel.device.name() == told.device);
                if let Some(player) = player {
                    player.report(told.report);
                }
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    if is_told {
        return Ok(());
    }
    let next = "To hear what works here: aaep doctor";
    Err(Failure::new("no device has told it to its end", next))
}

/// One device, and what is left for it to say.
struct Player {
    channel: Channel,
    rest: VecDeque<Utterance>,
    saying: Option<Utterance>,
    last_id: UtteranceId,
    has_failed: bool,
}

impl Player {
    fn new(channel: Channel, all: &[Utterance]) -> Self {
        let rest = all.iter().cloned().collect();
        Player { channel, rest, saying: None, last_id: 0, has_failed: false }
    }

    fn is_done(&self) -> bool {
        self.rest.is_empty() && self.saying.is_none() && !self.has_failed
    }

    fn go_on(&mut self) {
        if self.saying.is_some() || self.has_failed {
            return;
        }
        if let Some(mut next) = self.rest.pop_front() {
            // What is said again is another utterance for the device.
            self.last_id += 1;
            next.id = self.last_id;
            self.saying = Some(next.clone());
            self.has_failed = self.channel.device.tell(Order::Say(next)).is_err();
        }
    }

    fn is_saying(&self, id: UtteranceId) -> bool {
        self.saying.as_ref().is_some_and(|it| it.id == id)
    }

    fn report(&mut self, report: Report) {
        match report {
            Report::Ended(id) | Report::Shown(id) | Report::Cut(id) if self.is_saying(id) => {
                self.saying = None;
            }
            Report::Hush => {
                self.rest.clear();
                self.saying = None;
                // If it hangs, it is quiet as well.
                let _ = self.channel.device.tell(Order::Stop);
            }
            Report::Repeat => {
                if let Some(saying) = self.saying.take() {
                    self.rest.push_front(saying);
                    let _ = self.channel.device.tell(Order::Stop);
                }
            }
            Report::Trouble(why) => {
                console::say(&format!("About {}: {why}", self.channel.device.name()));
                self.has_failed = true;
            }
            Report::Notice(what) => {
                console::say(&format!("About {}: {what}", self.channel.device.name()));
            }
            // Nothing in a replay can be answered.
            _ => {}
        }
    }
}
