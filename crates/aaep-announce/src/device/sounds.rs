//! Sounds before words, played by the first installed player of sound files.
//!
//! The sounds are computed, or are files of the person. The player is a child process without a shell. Only one sound
//! plays at a time: a new one ends the previous one. A sound is never the only sign of anything, so a machine that
//! cannot play sounds is reported once and nothing else happens.

pub mod earcon;

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::plain::quoted;
use super::{Device, DeviceAbandoned, Reporter, TimedReport};
use crate::english::devices;
use crate::utterance::{DeviceReport, Earcon, Order};

/// The name of the device in its reports.
pub const NAME: &str = "sounds";

/// How often a running player is checked.
const LOOK: Duration = Duration::from_millis(50);

/// The longest time for a sound.
const LONGEST: Duration = Duration::from_secs(10);

/// The players to try, each with the arguments before the file.
const PLAYERS: [&[&str]; 4] = [&["pw-play"], &["paplay"], &["aplay", "-q"], &["afplay"]];

/// Settings of the sounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Players of sound files, each with the arguments before the file. The first installed one is used.
    pub players: Vec<Vec<String>>,
    /// Replaces the sound for a question.
    pub needs_you: Option<PathBuf>,
    /// Replaces the sound for an end.
    pub done: Option<PathBuf>,
    /// Replaces the sound for an error.
    pub error: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        let words = |player: &&[&str]| player.iter().map(|word| (*word).to_owned()).collect();
        let players = PLAYERS.iter().map(words).collect();
        Settings { players, needs_you: None, done: None, error: None }
    }
}

impl Settings {
    fn file(&self, earcon: Earcon) -> Option<&PathBuf> {
        match earcon {
            Earcon::NeedsYou => self.needs_you.as_ref(),
            Earcon::Done => self.done.as_ref(),
            Earcon::Error => self.error.as_ref(),
        }
    }
}

/// Starts the device. It reports on `reports`, and ends when the [`Device`] is dropped.
pub fn start(settings: Settings, reports: Sender<TimedReport>) -> io::Result<Device> {
    let (device, orders) = Device::new(NAME);
    let player = settings.players.iter().find(|player| is_there(player)).cloned();
    let sounds = SoundPlayer {
        reporter: Reporter::new(NAME, reports),
        player,
        files: SoundFiles::default(),
        playing: None,
        is_in_trouble: false,
        settings,
    };
    thread::Builder::new().name(NAME.to_owned()).spawn(move || sounds.run(&orders))?;
    Ok(device)
}

/// Whether the program of a player exists, at its path or in the search path.
fn is_there(player: &[String]) -> bool {
    let Some(program) = player.first() else { return false };
    if Path::new(program).components().count() > 1 {
        return Path::new(program).is_file();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// The computed sounds as files. Each is written when it is first needed, and all are removed at the end.
#[derive(Debug, Default)]
struct SoundFiles(Vec<(Earcon, PathBuf)>);

impl SoundFiles {
    fn of(&mut self, earcon: Earcon) -> io::Result<PathBuf> {
        if let Some((_, path)) = self.0.iter().find(|(it, path)| *it == earcon && path.is_file()) {
            return Ok(path.clone());
        }
        let path = write_new(&earcon::wav(&earcon::samples(earcon)))?;
        self.0.retain(|(it, _)| *it != earcon);
        self.0.push((earcon, path.clone()));
        Ok(path)
    }
}

impl Drop for SoundFiles {
    fn drop(&mut self) {
        for (_, path) in &self.0 {
            // Another program may have removed it already.
            let _ = fs::remove_file(path);
        }
    }
}

/// Writes a new temporary file. It never follows a link that another user has put in its place.
fn write_new(bytes: &[u8]) -> io::Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("aaep-sound-{}-{number}.wav", process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                file.write_all(bytes)?;
                return Ok(path);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1_000_000 => {}
            Err(error) => return Err(error),
        }
    }
}

struct SoundPlayer {
    reporter: Reporter,
    settings: Settings,
    player: Option<Vec<String>>,
    files: SoundFiles,
    playing: Option<(Child, Instant)>,
    is_in_trouble: bool,
}

impl SoundPlayer {
    fn run(mut self, orders: &Receiver<Order>) {
        let began = if self.player.is_some() {
            self.report(DeviceReport::Works)
        } else {
            self.trouble(devices::NO_PLAYER)
        };
        let mut goes_on = began.is_ok();
        while goes_on {
            let order = match self.playing {
                None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(_) => orders.recv_timeout(LOOK),
            };
            goes_on = match order {
                Ok(order) => self.carry_out(order),
                Err(RecvTimeoutError::Timeout) => self.look(),
                Err(RecvTimeoutError::Disconnected) => Err(DeviceAbandoned),
            }
            .is_ok();
        }
        self.hush();
    }

    fn carry_out(&mut self, order: Order) -> Result<(), DeviceAbandoned> {
        match order {
            Order::Sound(earcon) => self.play(earcon),
            Order::Stop => {
                self.hush();
                Ok(())
            }
            // Words are for other devices, so nothing should wait for them here.
            Order::Say(utterance) => self.report(DeviceReport::Cut(utterance.id)),
            Order::Withdraw(_) | Order::Pace(_) => Ok(()),
        }
    }

    fn play(&mut self, earcon: Earcon) -> Result<(), DeviceAbandoned> {
        self.hush();
        let Some((program, arguments)) =
            self.player.as_ref().and_then(|player| player.split_first())
        else {
            return Ok(());
        };
        let file = match self.settings.file(earcon) {
            Some(file) => Ok(file.clone()),
            None => self.files.of(earcon),
        };
        let started = file.and_then(|file| {
            let mut command = Command::new(program);
            command.args(arguments).arg(file);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
        });
        match started {
            Ok(child) => {
                self.playing = Some((child, Instant::now()));
                Ok(())
            }
            Err(error) => {
                self.trouble(&devices::sounds_cannot_be_played(&quoted(&error.to_string())))
            }
        }
    }

    /// Checks whether the player has ended, and how.
    fn look(&mut self) -> Result<(), DeviceAbandoned> {
        let Some((child, began)) = &mut self.playing else { return Ok(()) };
        match child.try_wait() {
            Ok(None) if began.elapsed() < LONGEST => Ok(()),
            Ok(Some(status)) if status.success() => {
                self.playing = None;
                let was_in_trouble = std::mem::replace(&mut self.is_in_trouble, false);
                if was_in_trouble { self.report(DeviceReport::Works) } else { Ok(()) }
            }
            Ok(_) | Err(_) => {
                self.hush();
                let program = self.player.as_ref().and_then(|player| player.first());
                let program = quoted(program.map_or(devices::THE_PLAYER, |program| program));
                self.trouble(&devices::sound_did_not_play(&program))
            }
        }
    }

    /// Stops the current sound.
    fn hush(&mut self) {
        if let Some((mut child, _)) = self.playing.take() {
            // It may already have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn trouble(&mut self, why: &str) -> Result<(), DeviceAbandoned> {
        if std::mem::replace(&mut self.is_in_trouble, true) {
            return Ok(());
        }
        self.report(DeviceReport::Trouble(why.to_owned()))
    }

    fn report(&self, report: DeviceReport) -> Result<(), DeviceAbandoned> {
        if self.reporter.report(report) { Ok(()) } else { Err(DeviceAbandoned) }
    }
}
