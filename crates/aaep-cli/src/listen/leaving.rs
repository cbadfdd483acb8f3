//! How far the person was told: remembered for when they come back, and told when they are back.
//!
//! The file is written at most once a second while things are told, and once more at the end. A file that cannot be
//! written is complained about once and keeps nothing from the person.

use std::fs::File;
use std::thread;
use std::time::{Duration, Instant};

use aaep::Event;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::room::{Came, Room};
use crate::console::{self, Failure};
use crate::english;
use crate::hubs::Hub;
use crate::keys::now_unix_ms;
use crate::replay;
use crate::replay::place::{self, Place, PlacesFile};
use crate::settings::Settings;

/// The file is written at most once in this time.
const PAUSE: Duration = Duration::from_secs(1);

/// How often it is tried to say that someone listens, and how long is waited in between.
const TRIES: u32 = 5;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// How long the last write may take, should another program hold the file.
const PATIENCE: Duration = Duration::from_millis(500);

/// Where the person is.
pub(super) struct Leaving {
    address: String,
    token: Option<String>,
    settings: Settings,
    /// Where it is kept; nowhere if another program listens to the same hub and keeps it, or if it cannot be kept.
    kept: Option<(PlacesFile, File)>,
    /// What was heard from the hub.
    heard: Place,
    /// As much of it as was told.
    told: Place,
    is_all_told: bool,
    is_kept: bool,
    last_kept: Option<Instant>,
}

impl Leaving {
    /// The person begins to listen.
    pub(super) fn begin(hub: &Hub, settings: &Settings) -> Self {
        let address = hub.address.as_str();
        let now = now_unix_ms();
        let begun = hold(address).and_then(|lock| {
            let Some(lock) = lock else { return Ok(None) };
            let file = PlacesFile::own()?;
            let place = file.change(|places| places.begin(now, address))?;
            Ok(Some((file, lock, place)))
        });
        let begun = begun.unwrap_or_else(|failure| {
            console::complain(&failure);
            None
        });
        let (kept, place) = match begun {
            Some((file, lock, place)) => (Some((file, lock)), place),
            None => (None, Place::at(now)),
        };
        Leaving {
            address: address.to_owned(),
            token: hub.token.clone(),
            settings: settings.clone(),
            kept,
            heard: place.clone(),
            told: place,
            is_all_told: true,
            is_kept: true,
            last_kept: None,
        }
    }

    /// An event came. It is told when [`Leaving::told`] says so.
    pub(super) fn heard(&mut self, event: &Event) {
        self.heard.hear(now_unix_ms(), event);
        self.is_all_told = false;
    }

    /// Everything that came was told.
    pub(super) fn told(&mut self) {
        if !std::mem::replace(&mut self.is_all_told, true) {
            self.told = self.heard.clone();
            self.is_kept = false;
        }
    }

    /// When there is something to be written.
    pub(super) fn due(&self) -> Option<Instant> {
        let is_waiting = self.kept.is_some() && !self.is_kept;
        let due = || self.last_kept.map_or_else(Instant::now, |last| last + PAUSE);
        is_waiting.then(due)
    }

    /// Writes it, if it is time. The disk is waited for elsewhere.
    pub(super) fn keep(&mut self) {
        if self.due().is_some_and(|due| due <= Instant::now()) {
            self.write();
        }
    }

    fn write(&mut self) -> Option<tokio::task::JoinHandle<()>> {
        let (file, _) = self.kept.as_ref()?;
        let (file, address, place) = (file.clone(), self.address.clone(), self.told.clone());
        (self.is_kept, self.last_kept) = (true, Some(Instant::now()));
        Some(spawn_blocking(move || {
            if let Err(failure) = file.change(|places| places.told(&address, place)) {
                console::complain(&failure);
            }
        }))
    }

    /// The person leaves now.
    pub(super) async fn end(&mut self) {
        self.told.at_unix_ms = now_unix_ms();
        if let Some(writing) = self.write() {
            // Where they left is then where it was written last.
            let _ = timeout(PATIENCE, writing).await;
        }
    }
}

/// Says that someone listens here. A program that only looks whether somebody does lets go at once.
fn hold(address: &str) -> Result<Option<File>, Failure> {
    for _ in 0..TRIES {
        if let Some(held) = place::listen(address)? {
            return Ok(Some(held));
        }
        thread::sleep(TRY_AGAIN_AFTER);
    }
    Ok(None)
}

impl Room {
    /// The person goes away while listening goes on.
    pub(super) fn away(&mut self) {
        let now = now_unix_ms();
        let mut is_remembered = true;
        for leaving in &mut self.leaving {
            leaving.told.at_unix_ms = now;
            let Some((file, _)) = &leaving.kept else {
                is_remembered = false;
                continue;
            };
            let (file, address, place) =
                (file.clone(), leaving.address.clone(), leaving.told.clone());
            spawn_blocking(move || {
                if let Err(failure) = file.change(|places| places.away(&address, place)) {
                    console::complain(&failure);
                }
            });
        }
        self.reply(if is_remembered {
            english::hubs::REMEMBERED
        } else {
            english::hubs::NOT_REMEMBERED
        });
    }

    /// The person wants to hear what happened since they left. The hubs are asked elsewhere, one after the other.
    pub(super) fn recall(&mut self) {
        let hubs: Vec<_> = self
            .leaving
            .iter()
            .map(|it| (it.address.clone(), it.token.clone(), it.settings.clone()))
            .collect();
        let came = self.came.0.clone();
        tokio::spawn(async move {
            for (address, token, settings) in hubs {
                let recalling = spawn_blocking(move || {
                    replay::since_left(&address, token.as_deref(), &settings)
                });
                if let Ok(recalled) = recalling.await {
                    // If nobody listens any more, nobody needs to know.
                    let _ = came.send(Came::Recalled(recalled)).await;
                }
            }
        });
    }

    /// Tells it.
    pub(super) fn recalled(&mut self, recalled: Result<Vec<String>, Failure>) {
        match recalled {
            Ok(lines) => lines.iter().for_each(|line| self.reply(line)),
            Err(failure) => self.reply(&failure.to_string()),
        }
    }
}
