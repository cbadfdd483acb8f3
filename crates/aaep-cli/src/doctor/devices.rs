//! Each device is given a sentence, all at once, and what they report is what is found.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use aaep_announce::device::{Device, Told, braille, sounds, speech};
use aaep_announce::{Earcon, Kind, Order, Report, Utterance, Weight};

use super::Finding;
use crate::console::Failure;
use crate::listen::devices::{braille_settings, sound_settings, speech_settings, start_desktop};
use crate::settings::Settings;

/// What is spoken and shown.
const SENTENCE: &str = "This is a test of aaep.";

/// The number of the sentence; there is no other.
const ID: u64 = 1;

/// The name of a device that is not in every build.
const DESKTOP: &str = "desktop";

/// How long everything may take: a speech server may have to be started.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a player of sounds has to fail.
const PLAYING: Duration = Duration::from_secs(2);

/// How long the sentence stays under the fingers.
const READING: Duration = Duration::from_secs(3);

/// A device on trial.
struct Trial {
    name: &'static str,
    is_wanted: bool,
    /// It lives as long as its trial.
    _device: Option<Device>,
    /// What was found, once that is known.
    works: Option<Result<String, String>>,
    /// What the device says of itself besides.
    notices: Vec<String>,
}

/// Tries all devices, and says of each what was found as soon as it is known.
pub(super) fn look(
    settings: &Settings,
    say: &mut impl FnMut(Finding) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (reports, told) = mpsc::channel();
    say(Finding {
        name: "lines",
        is_wanted: settings.lines.on,
        works: Ok("You are reading one.".to_owned()),
    })?;
    let mut waiting = start(settings, &reports);
    let mut on_display = None;
    let began = Instant::now();
    while !waiting.is_empty() {
        let is_over = began.elapsed() >= PATIENCE;
        let is_known = |it: &mut Trial| it.works.is_some() || is_over;
        for trial in waiting.extract_if(.., is_known) {
            say(trial.finding())?;
            if trial.name == braille::NAME && matches!(trial.works, Some(Ok(_))) {
                on_display = Some((Instant::now(), trial));
            }
        }
        listen(&mut waiting, &told, Duration::from_millis(100));
        if began.elapsed() >= PLAYING {
            played(&mut waiting);
        }
    }
    if let Some((shown, _trial)) = on_display {
        std::thread::sleep(READING.saturating_sub(shown.elapsed()));
    }
    Ok(())
}

fn start(settings: &Settings, reports: &Sender<Told>) -> Vec<Trial> {
    let speech = speech_settings(settings).map(|it| speech::start(it, reports.clone()));
    let braille = braille_settings(settings).map(|it| braille::start(it, reports.clone()));
    let desktop = start_desktop(settings, reports);
    let sounds = Ok(sounds::start(sound_settings(settings), reports.clone()));
    let sentence = || {
        Order::Say(Utterance {
            id: ID,
            kind: Kind::Notice,
            weight: Weight::Normal,
            words: SENTENCE.to_owned(),
            language: None,
            parts: Vec::new(),
            is_right_to_left: false,
            choices: Vec::new(),
            number: None,
        })
    };
    vec![
        Trial::start(speech::NAME, settings.speech.on, speech, sentence()),
        Trial::start(braille::NAME, settings.braille.on, braille, sentence()),
        Trial::start(DESKTOP, settings.desktop.on, desktop, sentence()),
        Trial::start(sounds::NAME, settings.sounds.on, sounds, Order::Sound(Earcon::Done)),
    ]
}

/// Takes in what devices report within that time.
fn listen(trials: &mut [Trial], told: &Receiver<Told>, time: Duration) {
    let Ok(told) = told.recv_timeout(time) else { return };
    if let Some(trial) = trials.iter_mut().find(|it| it.name == told.device) {
        trial.report(told.report);
    }
}

/// A player that has not failed by now plays.
fn played(trials: &mut [Trial]) {
    for trial in trials.iter_mut().filter(|it| it.name == sounds::NAME) {
        trial
            .works
            .get_or_insert_with(|| Ok("You heard two tones, if it is loud enough.".to_owned()));
    }
}

impl Trial {
    fn start(
        name: &'static str,
        is_wanted: bool,
        started: Result<io::Result<Device>, Failure>,
        order: Order,
    ) -> Self {
        let started = started.map_err(|failure| failure.to_string()).and_then(|it| {
            it.map_err(|error| format!("The system gives no threads: {error}. Try again later."))
        });
        let (device, works) = match started {
            Ok(device) => (Some(device), None),
            Err(why) => (None, Some(Err(why))),
        };
        if let Some(device) = &device {
            // One that takes no orders says nothing, and that is what is found.
            let _ = device.tell(order);
        }
        Trial { name, is_wanted, _device: device, works, notices: Vec::new() }
    }

    fn report(&mut self, report: Report) {
        match report {
            Report::Trouble(why) => self.works = Some(Err(why)),
            Report::Notice(notice) => self.notices.push(notice),
            Report::Ended(ID) if self.name == speech::NAME => {
                self.works = Some(Ok(format!("You heard: {SENTENCE}")));
            }
            Report::Began(ID) if self.name == braille::NAME => {
                self.works = Some(Ok(format!("On the display: {SENTENCE}")));
            }
            Report::Ended(ID) if self.name == DESKTOP => {
                self.works = Some(Ok(format!("The screen reader was told: {SENTENCE}")));
            }
            _ => {}
        }
    }

    /// What was found. A device that told nothing in time did not work.
    fn finding(&self) -> Finding {
        let silent =
            || Err("It took the sentence and did not tell it. Try again later.".to_owned());
        let works = self.works.clone().unwrap_or_else(silent);
        let told = |seen: String| [&[seen][..], &self.notices].concat().join(" ");
        Finding { name: self.name, is_wanted: self.is_wanted, works: works.map(told) }
    }
}
