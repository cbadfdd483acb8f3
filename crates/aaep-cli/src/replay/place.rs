//! Remembers where the person left, for each hub: the last event that they were told. `aaep listen` writes it, and
//! `aaep replay` continues from there.
//!
//! Critical events overtake others. So the place is the last event that is not critical, with the critical ones that
//! were told since: nothing between them is skipped, and nothing is told twice.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::PathBuf;

use aaep::extension::Delivery;
use aaep::{Event, EventId, SessionId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::console::CommandFailure;
use crate::english::{keeping, replaying};
use crate::folders::state_folder;
use crate::kept::{KeptFile, KeptState, open_lock};

/// How many hubs are remembered. The ones used longest ago are forgotten.
const MAX_HUBS: usize = 64;

/// How many critical events that were told ahead of others are remembered.
const MAX_AHEAD: usize = 64;

/// The longest address that is remembered, in bytes.
const MAX_ADDRESS: usize = 4096;

/// The file that keeps the places.
pub(crate) type PlacesFile = KeptFile<ListeningPlaces>;

/// The places, by the address of the hub.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListeningPlaces {
    hubs: BTreeMap<String, HubPlaces>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HubPlaces {
    /// Where the person was when they last left.
    left: Option<ListeningPlace>,
    /// How far they were told.
    told: ListeningPlace,
}

/// How far the person was told by one hub.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListeningPlace {
    /// The last event that was told in order; `None` before the first.
    pub(crate) event: Option<EventSpot>,
    /// Critical events that were told since.
    pub(crate) ahead: Vec<String>,
    /// When that was, by this machine's clock, in milliseconds since 1970 began.
    pub(crate) at_unix_ms: i64,
}

/// The identity of one event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventSpot {
    pub(crate) session_id: String,
    pub(crate) event_id: String,
    /// Its timestamp, in microseconds since 1970 began: texts that are told in parts have ids of their own.
    pub(crate) unix_us: i64,
}

impl ListeningPlace {
    /// The place of a person who was not told anything yet.
    pub(crate) fn at(now_unix_ms: i64) -> Self {
        ListeningPlace { event: None, ahead: Vec::new(), at_unix_ms: now_unix_ms }
    }

    /// Notes a received event. A place never moves back: a new subscriber first gets summaries of sessions that began
    /// long ago.
    pub(crate) fn hear(&mut self, now_unix_ms: i64, event: &Event) {
        let delivery = Delivery::of(event);
        let merged = delivery.and_then(|it| it.merged).map(|it| it.last_event_id);
        let event_id = merged.as_ref().unwrap_or(&event.envelope.event_id).as_str().to_owned();
        self.at_unix_ms = now_unix_ms;
        if event.is_critical() {
            self.ahead.push(event_id);
            if self.ahead.len() > MAX_AHEAD {
                self.ahead.remove(0);
            }
            return;
        }
        // An agent's clock that is ahead of ours does not count.
        let unix_us = event.envelope.timestamp.unix_us().min(now_unix_ms.saturating_mul(1000));
        if self.event.as_ref().is_some_and(|it| it.unix_us > unix_us) {
            return;
        }
        let session_id = event.envelope.session_id.as_str().to_owned();
        self.event = Some(EventSpot { session_id, event_id, unix_us });
    }

    fn is_sound(&self) -> bool {
        let is_event = |id: &String| EventId::parse(id).is_ok();
        let is_spot =
            |it: &EventSpot| SessionId::parse(&it.session_id).is_ok() && is_event(&it.event_id);
        self.event.as_ref().is_none_or(is_spot)
            && self.ahead.len() <= MAX_AHEAD
            && self.ahead.iter().all(is_event)
    }
}

impl ListeningPlaces {
    /// The person begins to listen: the last place told is where they had left. Returns where to continue.
    pub(crate) fn begin(&mut self, now_unix_ms: i64, address: &str) -> ListeningPlace {
        let is_known = self.hubs.contains_key(address);
        let hub = self.hub(now_unix_ms, address);
        if is_known {
            hub.left = Some(hub.told.clone());
        }
        hub.told.clone()
    }

    /// Records how far the person was told.
    pub(crate) fn told(&mut self, address: &str, place: ListeningPlace) {
        let hub = self.hub(place.at_unix_ms, address);
        hub.told = place;
    }

    /// The person goes away while the program keeps listening.
    pub(crate) fn away(&mut self, address: &str, place: ListeningPlace) {
        let hub = self.hub(place.at_unix_ms, address);
        (hub.left, hub.told) = (Some(place.clone()), place);
    }

    /// Where the person left. While a program listens for them, that is where they were before it began.
    pub(crate) fn left(&self, address: &str, is_listening: bool) -> Option<&ListeningPlace> {
        let hub = self.hubs.get(address)?;
        if is_listening { hub.left.as_ref() } else { Some(&hub.told) }
    }

    fn hub(&mut self, now_unix_ms: i64, address: &str) -> &mut HubPlaces {
        if !self.hubs.contains_key(address) && self.hubs.len() >= MAX_HUBS {
            let oldest = self.hubs.iter().min_by_key(|(_, it)| it.told.at_unix_ms);
            let oldest = oldest.map(|(address, _)| address.clone());
            oldest.and_then(|address| self.hubs.remove(&address));
        }
        let new = || HubPlaces { left: None, told: ListeningPlace::at(now_unix_ms) };
        self.hubs.entry(address.to_owned()).or_insert_with(new)
    }
}

impl KeptState for ListeningPlaces {
    const FILE: &'static str = "left.json";
    const CALLED: &'static str = replaying::PLACES_FILE;
    const WITHOUT_IT: &'static str = replaying::SAY_SINCE_WHEN;

    fn is_sound(&self) -> bool {
        self.hubs.len() <= MAX_HUBS
            && self.hubs.iter().all(|(address, hub)| {
                address.len() <= MAX_ADDRESS
                    && hub.told.is_sound()
                    && hub.left.as_ref().is_none_or(ListeningPlace::is_sound)
            })
    }
}

/// Tells the person's other programs that one listens to this hub, as long as the file is held. `None` if another
/// program already does.
pub(crate) fn listen(address: &str) -> Result<Option<File>, CommandFailure> {
    let path = lock_path(address)?;
    let failed = |error| CommandFailure::of_file("lock", &path, &error, keeping::LOOK_AT_RIGHTS);
    let file = open_lock(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Whether a program listens to this hub for the person right now.
pub(crate) fn is_listening(address: &str) -> bool {
    lock_path(address).is_ok_and(|path| path.exists())
        && listen(address).is_ok_and(|held| held.is_none())
}

/// A killed program releases its locks, so no lock outlives its program.
fn lock_path(address: &str) -> Result<PathBuf, CommandFailure> {
    let hash = Sha256::digest(address.as_bytes());
    let name = hash.iter().take(8).fold(0_u64, |name, byte| name << 8 | u64::from(*byte));
    Ok(state_folder()?.join(format!("listening-{name:016x}.lock")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::attention::asked::tests::{confirmation, read};

    fn event(id: &str, timestamp: &str) -> Event {
        read(&json!({
            "@context": aaep::CORE_CONTEXT, "type": "aaep:agent.session.started",
            "event_id": id, "session_id": "sess_1", "timestamp": timestamp,
            "producer": { "agent_id": "photos" }, "summary_normal": "I begin.",
        }))
    }

    const NOW_MS: i64 = 1_800_000_000_000;

    fn at(place: &ListeningPlace) -> &str {
        &place.event.as_ref().expect("a place").event_id
    }

    #[test]
    fn a_place_goes_on_and_never_back() {
        let mut place = ListeningPlace::at(0);
        place.hear(NOW_MS, &event("evt_2", "2026-11-02T06:20:02.000Z"));
        place.hear(NOW_MS, &event("evt_1", "2026-11-02T06:20:01.000Z"));
        assert_eq!(at(&place), "evt_2");
        place.hear(NOW_MS, &event("evt_3", "2026-11-02T06:20:02.000Z"));
        assert_eq!(at(&place), "evt_3", "several events can have one timestamp");
        place.hear(NOW_MS, &event("evt_4", "2999-01-01T00:00:00.000Z"));
        place.hear(NOW_MS + 1, &event("evt_5", "2999-01-01T00:00:00.000Z"));
        assert_eq!(at(&place), "evt_5", "a wrong clock does not stop it");
    }

    #[test]
    fn what_is_urgent_is_remembered_beside_the_place_within_bounds() {
        let mut place = ListeningPlace::at(0);
        place.hear(NOW_MS, &event("evt_2", "2026-11-02T06:20:02.000Z"));
        for _ in 0..100 {
            place.hear(NOW_MS, &confirmation("rpl_1", &json!({})));
        }
        assert_eq!((at(&place), place.ahead.len()), ("evt_2", MAX_AHEAD));
    }

    #[test]
    fn where_somebody_left_stays_while_they_listen_again() {
        let mut places = ListeningPlaces::default();
        assert_eq!(places.left("unix:", false), None);
        let mut place = places.begin(1, "unix:");
        assert_eq!(places.left("unix:", true), None, "they were never away");
        place.hear(NOW_MS, &event("evt_1", "2026-11-02T06:20:01.000Z"));
        places.told("unix:", place.clone());
        assert_eq!(places.left("unix:", false), Some(&place));
        let mut later = places.begin(NOW_MS, "unix:");
        later.hear(NOW_MS + 9, &event("evt_2", "2026-11-02T06:20:02.000Z"));
        places.told("unix:", later.clone());
        assert_eq!(places.left("unix:", true), Some(&place));
        assert_eq!(places.left("unix:", false), Some(&later));
        places.away("unix:", later.clone());
        assert_eq!(places.left("unix:", true), Some(&later));
        assert_eq!(places.left("http://127.0.0.1:1", false), None);
    }

    #[test]
    fn the_file_stays_small_and_a_forged_one_is_not_believed() {
        let mut places = ListeningPlaces::default();
        for at in 0..200 {
            places.begin(at, &format!("http://127.0.0.1:{at}"));
        }
        assert!(places.is_sound() && places.hubs.len() == MAX_HUBS);
        let mut forged = ListeningPlace::at(0);
        forged.ahead.push("../x".to_owned());
        places.told("http://127.0.0.1:1", forged);
        assert!(!places.is_sound());
    }

    #[test]
    fn a_broken_file_is_set_aside_and_never_believed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("left.json");
        let file = PlacesFile::at(path.clone());
        file.change(|places| places.begin(7, "unix:")).expect("changed");
        for broken in ["", "{", "{\"hubs\":{\"unix:\":{\"left\":null,\"told\":{}}}}"] {
            std::fs::write(&path, broken).expect("written");
            assert_eq!(file.look().expect("places"), ListeningPlaces::default(), "{broken}");
            let aside = folder.path().join("left.json.broken");
            assert_eq!(std::fs::read_to_string(aside).expect("set aside"), broken);
        }
    }
}
