//! Tells a replay through the devices of `aaep listen`, one utterance after the other, or as JSON.

use std::collections::VecDeque;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use aaep::{LanguageTag, printable};
use aaep_announce::{DeviceReport, Order, Utterance, UtteranceId, UtteranceKind};
use serde_json::{Value, json};

use crate::archive::ArchivedSession;
use crate::console::{self, CommandFailure, ascii_json_line};
use crate::english::hubs::about_device;
use crate::english::replaying;
use crate::keys::{moment, tell};
use crate::listen::devices::{self, DeviceChannel};
use crate::settings::UserSettings;

/// How long a device may take for one utterance. On a braille display, people read as slowly as they like.
const PATIENCE: Duration = Duration::from_mins(30);

/// An utterance to tell, and its origin.
#[derive(Debug, Clone)]
pub(super) struct ReplayedUtterance {
    pub(super) utterance: Utterance,
    /// The same as JSON.
    pub(super) json: Value,
}

impl ReplayedUtterance {
    /// An utterance about a session.
    pub(super) fn of(
        session: &ArchivedSession,
        unix_us: i64,
        turn: u32,
        utterance: Utterance,
    ) -> Self {
        let json = json!({
            "at": moment(unix_us.div_euclid(1000)),
            "session_id": session.id,
            "agent": session.agent,
            "turn": turn,
            "kind": utterance.kind.word(),
            "words": printable(&utterance.words),
            "language": utterance.language.as_ref().map(LanguageTag::as_str),
        });
        ReplayedUtterance { utterance, json }
    }

    /// The words with their speaker, so that no agent can speak for us.
    pub(super) fn line(&self) -> String {
        let words = &self.utterance.words;
        match self.json["agent"].as_str() {
            Some(agent) => format!("{}, {words}", printable(agent)),
            None => words.clone(),
        }
    }

    /// An utterance about the replay itself.
    pub(super) fn about(words: &str) -> Self {
        let utterance = super::history::notice(words);
        let json = json!({ "kind": UtteranceKind::Notice.word(), "words": printable(words) });
        ReplayedUtterance { utterance, json }
    }
}

/// Prints one JSON object per line.
pub(super) fn write_json(
    all: impl IntoIterator<Item = ReplayedUtterance>,
) -> Result<(), CommandFailure> {
    all.into_iter().try_for_each(|told| tell(&ascii_json_line(&told.json)))
}

/// Tells everything on every device, each at its own pace. Reports a device that does not work and continues with the
/// others.
pub(super) fn play(
    settings: &UserSettings,
    all: impl IntoIterator<Item = ReplayedUtterance>,
) -> Result<(), CommandFailure> {
    let (reports, told) = mpsc::channel();
    let started = devices::start(settings, false, &reports)?;
    drop(reports);
    let all: Vec<Utterance> = all.into_iter().map(|told| told.utterance).collect();
    let mut players: Vec<DevicePlayer> =
        started.channels.into_iter().map(|channel| DevicePlayer::new(channel, &all)).collect();
    let mut is_told = false;
    while !players.is_empty() {
        players.iter_mut().for_each(DevicePlayer::go_on);
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
    Err(CommandFailure::new(replaying::NO_DEVICE_TOLD_IT, replaying::RUN_DOCTOR))
}

/// One device, and what it still has to say.
struct DevicePlayer {
    channel: DeviceChannel,
    rest: VecDeque<Utterance>,
    saying: Option<Utterance>,
    last_id: UtteranceId,
    has_failed: bool,
}

impl DevicePlayer {
    fn new(channel: DeviceChannel, all: &[Utterance]) -> Self {
        let rest = all.iter().cloned().collect();
        DevicePlayer { channel, rest, saying: None, last_id: 0, has_failed: false }
    }

    fn is_done(&self) -> bool {
        self.rest.is_empty() && self.saying.is_none() && !self.has_failed
    }

    fn go_on(&mut self) {
        if self.saying.is_some() || self.has_failed {
            return;
        }
        if let Some(mut next) = self.rest.pop_front() {
            // For the device, a repetition is a new utterance.
            self.last_id += 1;
            next.id = self.last_id;
            self.saying = Some(next.clone());
            self.has_failed = self.channel.device.tell(Order::Say(next)).is_err();
        }
    }

    fn is_saying(&self, id: UtteranceId) -> bool {
        self.saying.as_ref().is_some_and(|it| it.id == id)
    }

    fn report(&mut self, report: DeviceReport) {
        match report {
            DeviceReport::Ended(id) | DeviceReport::Shown(id) | DeviceReport::Cut(id)
                if self.is_saying(id) =>
            {
                self.saying = None;
            }
            DeviceReport::Hush => {
                self.rest.clear();
                self.saying = None;
                // A device that hangs is quiet, too.
                let _ = self.channel.device.tell(Order::Stop);
            }
            DeviceReport::Repeat => {
                if let Some(saying) = self.saying.take() {
                    self.rest.push_front(saying);
                    let _ = self.channel.device.tell(Order::Stop);
                }
            }
            DeviceReport::Trouble(why) => {
                console::say(&about_device(self.channel.device.name(), &why));
                self.has_failed = true;
            }
            DeviceReport::Notice(what) => {
                console::say(&about_device(self.channel.device.name(), &what));
            }
            // Nothing in a replay can be answered.
            _ => {}
        }
    }
}
