//! Remembers how far the person was told, and tells them what they missed when they are back.
//!
//! The file is written at most once a second while things are told, and once more at the end. If it cannot be
//! written, that is reported once, and the person still hears everything.

use std::fs::File;
use std::thread;
use std::time::{Duration, Instant};

use aaep::Event;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::room::{ListeningRoom, RoomUpdate};
use crate::console::{self, CommandFailure};
use crate::english;
use crate::hubs::HubTarget;
use crate::keys::now_unix_ms;
use crate::replay;
use crate::replay::place::{self, ListeningPlace, PlacesFile};
use crate::settings::UserSettings;

/// The shortest time between two writes of the file.
const PAUSE: Duration = Duration::from_secs(1);

/// How often to try to take the lock for a hub, and how long to wait between tries.
const TRIES: u32 = 5;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// How long the last write may take if another program holds the file.
const PATIENCE: Duration = Duration::from_millis(500);

/// How far the person was told by one hub.
pub(super) struct LeavingRecord {
    address: String,
    token: Option<String>,
    settings: UserSettings,
    /// The file and the lock; `None` if another program listens to the same hub and keeps the place, or if it cannot
    /// be kept.
    kept: Option<(PlacesFile, File)>,
    /// How far the hub's events were received.
    heard: ListeningPlace,
    /// How far they were told.
    told: ListeningPlace,
    is_all_told: bool,
    is_kept: bool,
    last_kept: Option<Instant>,
}

impl LeavingRecord {
    /// The person begins to listen.
    pub(super) fn begin(hub: &HubTarget, settings: &UserSettings) -> Self {
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
            None => (None, ListeningPlace::at(now)),
        };
        LeavingRecord {
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

    /// Notes a received event. It counts as told when [`LeavingRecord::told`] is called.
    pub(super) fn heard(&mut self, event: &Event) {
        self.heard.hear(now_unix_ms(), event);
        self.is_all_told = false;
    }

    /// Notes that everything received was told.
    pub(super) fn told(&mut self) {
        if !std::mem::replace(&mut self.is_all_told, true) {
            self.told = self.heard.clone();
            self.is_kept = false;
        }
    }

    /// When the file must be written next.
    pub(super) fn due(&self) -> Option<Instant> {
        let is_waiting = self.kept.is_some() && !self.is_kept;
        let due = || self.last_kept.map_or_else(Instant::now, |last| last + PAUSE);
        is_waiting.then(due)
    }

    /// Writes the file if it is time. A background task waits for the disk.
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
            // If it takes too long, the last written place counts.
            let _ = timeout(PATIENCE, writing).await;
        }
    }
}

/// Takes the lock that marks a listener at this hub. A program that only checks for a listener releases it at once.
fn hold(address: &str) -> Result<Option<File>, CommandFailure> {
    for _ in 0..TRIES {
        if let Some(held) = place::listen(address)? {
            return Ok(Some(held));
        }
        thread::sleep(TRY_AGAIN_AFTER);
    }
    Ok(None)
}

impl ListeningRoom {
    /// The person goes away while the program keeps listening.
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

    /// Tells the person what happened since they left. A background task queries the hubs one after the other.
    pub(super) fn recall(&mut self) {
        let hubs: Vec<_> = self
            .leaving
            .iter()
            .map(|it| (it.address.clone(), it.token.clone(), it.settings.clone()))
            .collect();
        let updates = self.updates.0.clone();
        tokio::spawn(async move {
            for (address, token, settings) in hubs {
                let recalling = spawn_blocking(move || {
                    replay::since_left(&address, token.as_deref(), &settings)
                });
                if let Ok(recalled) = recalling.await {
                    // If the listening has ended, this does not matter.
                    let _ = updates.send(RoomUpdate::Recalled(recalled)).await;
                }
            }
        });
    }

    /// Tells the result of `recall`.
    pub(super) fn recalled(&mut self, recalled: Result<Vec<String>, CommandFailure>) {
        match recalled {
            Ok(lines) => lines.iter().for_each(|line| self.reply(line)),
            Err(failure) => self.reply(&failure.to_string()),
        }
    }
}
