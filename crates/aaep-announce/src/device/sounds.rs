//! Sounds before words, through the first player of sound files that is installed.
//!
//! The sounds are computed, or files of the person's own. A player is a child without a shell; one sound at a time,
//! and a new one ends the one before. A sound is never the only sign of anything, so a machine that cannot play
//! any is told about once and nothing else happens.

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
use super::{Device, Reporter, Told};
use crate::english::devices;
use crate::utterance::{Earcon, Order, Report};

/// The name of the device in its reports.
pub const NAME: &str = "sounds";

/// How often it is looked whether a player has ended, while one runs.
const LOOK: Duration = Duration::from_millis(50);

/// How long a sound may take.
const LONGEST: Duration = Duration::from_secs(10);

/// The players that are tried, with what comes before the file.
const PLAYERS: [&[&str]; 4] = [&["pw-play"], &["paplay"], &["aplay", "-q"], &["afplay"]];

/// What the person wants to hear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Players of sound files, with the arguments that come before the file; the first that is there is used.
    pub players: Vec<Vec<String>>,
    /// Instead of the sound that an agent needs an answer.
    pub needs_you: Option<PathBuf>,
    /// Instead of the sound that an agent has finished.
    pub done: Option<PathBuf>,
    /// Instead of the sound that something went wrong.
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
pub fn start(settings: Settings, reports: Sender<Told>) -> io::Result<Device> {
    let (device, orders) = Device::new(NAME);
    let player = settings.players.iter().find(|player| is_there(player)).cloned();
    let sounds = Sounds {
        reporter: Reporter::new(NAME, reports),
        player,
        files: Files::default(),
        playing: None,
        is_in_trouble: false,
        settings,
    };
    thread::Builder::new().name(NAME.to_owned()).spawn(move || sounds.run(&orders))?;
    Ok(device)
}

/// Whether the program of a player is in one of the folders for programs.
fn is_there(player: &[String]) -> bool {
    let Some(program) = player.first() else { return false };
    if Path::new(program).components().count() > 1 {
        return Path::new(program).is_file();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// The computed sounds as files, written when first needed and removed at the end.
#[derive(Debug, Default)]
struct Files(Vec<(Earcon, PathBuf)>);

impl Files {
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

impl Drop for Files {
    fn drop(&mut self) {
        for (_, path) in &self.0 {
            // It may have been cleaned up by someone else.
            let _ = fs::remove_file(path);
        }
    }
}

/// Writes a new file for temporary things. It never follows what someone else has put in its place.
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

struct Sounds {
    reporter: Reporter,
    settings: Settings,
    player: Option<Vec<String>>,
    files: Files,
    playing: Option<(Child, Instant)>,
    is_in_trouble: bool,
}

/// Nobody wants to know any more.
struct Over;

impl Sounds {
    fn run(mut self, orders: &Receiver<Order>) {
        let began = if self.player.is_some() {
            self.report(Report::Works)
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
                Err(RecvTimeoutError::Disconnected) => Err(Over),
            }
            .is_ok();
        }
        self.hush();
    }

    fn carry_out(&mut self, order: Order) -> Result<(), Over> {
        match order {
            Order::Sound(earcon) => self.play(earcon),
            Order::Stop => {
                self.hush();
                Ok(())
            }
            // Words are for other devices; nobody should wait for them here.
            Order::Say(utterance) => self.report(Report::Cut(utterance.id)),
            Order::Withdraw(_) | Order::Pace(_) => Ok(()),
        }
    }

    fn play(&mut self, earcon: Earcon) -> Result<(), Over> {
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

    /// Looks whether the player has ended, and how.
    fn look(&mut self) -> Result<(), Over> {
        let Some((child, began)) = &mut self.playing else { return Ok(()) };
        match child.try_wait() {
            Ok(None) if began.elapsed() < LONGEST => Ok(()),
            Ok(Some(status)) if status.success() => {
                self.playing = None;
                let was_in_trouble = std::mem::replace(&mut self.is_in_trouble, false);
                if was_in_trouble { self.report(Report::Works) } else { Ok(()) }
            }
            Ok(_) | Err(_) => {
                self.hush();
                let program = self.player.as_ref().and_then(|player| player.first());
                let program = quoted(program.map_or(devices::THE_PLAYER, |program| program));
                self.trouble(&devices::sound_did_not_play(&program))
            }
        }
    }

    /// Ends what is playing.
    fn hush(&mut self) {
        if let Some((mut child, _)) = self.playing.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn trouble(&mut self, why: &str) -> Result<(), Over> {
        if std::mem::replace(&mut self.is_in_trouble, true) {
            return Ok(());
        }
        self.report(Report::Trouble(why.to_owned()))
    }

    fn report(&self, report: Report) -> Result<(), Over> {
        if self.reporter.report(report) { Ok(()) } else { Err(Over) }
    }
}
