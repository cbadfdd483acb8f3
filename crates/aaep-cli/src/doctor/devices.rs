//! Gives all devices a test sentence at the same time and collects their reports.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use aaep_announce::device::{Device, TimedReport, braille, sounds, speech};
use aaep_announce::{DeviceReport, Earcon, Order, Utterance, UtteranceKind, Weight};

use super::DoctorFinding;
use crate::console::CommandFailure;
use crate::english::checking;
use crate::listen::device_table::{DESKTOP, DEVICES, DeviceRow};
use crate::settings::UserSettings;

/// The id of the only utterance.
const ID: u64 = 1;

/// How long everything may take: a speech server may have to be started.
const PATIENCE: Duration = Duration::from_secs(30);

/// A sound player that has not failed within this time works.
const PLAYING: Duration = Duration::from_secs(2);

/// How long the sentence stays on the braille display.
const READING: Duration = Duration::from_secs(3);

/// The trial of one device.
struct DeviceTrial {
    name: &'static str,
    is_wanted: bool,
    /// Keeps the device alive during its trial.
    _device: Option<Device>,
    /// The finding, once it is known.
    works: Option<Result<String, String>>,
    /// What the device reports about itself besides.
    notices: Vec<String>,
}

/// Tries all devices and reports each finding as soon as it is known.
pub(super) fn look(
    settings: &UserSettings,
    say: &mut impl FnMut(DoctorFinding) -> Result<(), CommandFailure>,
) -> Result<(), CommandFailure> {
    let (reports, told) = mpsc::channel();
    say(DoctorFinding {
        name: "lines",
        is_wanted: settings.lines.on,
        works: Ok(checking::READING_LINES.to_owned()),
    })?;
    let mut waiting = start(settings, &reports);
    let mut on_display = None;
    let began = Instant::now();
    while !waiting.is_empty() {
        let is_over = began.elapsed() >= PATIENCE;
        let is_known = |it: &mut DeviceTrial| it.works.is_some() || is_over;
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

fn start(settings: &UserSettings, reports: &Sender<TimedReport>) -> Vec<DeviceTrial> {
    let sentence = || {
        Order::Say(Utterance {
            id: ID,
            kind: UtteranceKind::Notice,
            weight: Weight::Normal,
            words: checking::TEST_SENTENCE.to_owned(),
            language: None,
            parts: Vec::new(),
            is_right_to_left: false,
            choices: Vec::new(),
            number: None,
            is_continued: false,
        })
    };
    let order =
        |it: &DeviceRow| if it.tells_words { sentence() } else { Order::Sound(Earcon::Done) };
    let trial = |it: &DeviceRow| {
        DeviceTrial::start(it.name, it.is_on(settings), (it.start)(settings, reports), order(it))
    };
    DEVICES.iter().map(trial).collect()
}

/// Takes in one device report, if one arrives within that time.
fn listen(trials: &mut [DeviceTrial], told: &Receiver<TimedReport>, time: Duration) {
    let Ok(told) = told.recv_timeout(time) else { return };
    if let Some(trial) = trials.iter_mut().find(|it| it.name == told.device) {
        trial.report(told.report);
    }
}

/// A player that has not failed by now works.
fn played(trials: &mut [DeviceTrial]) {
    for trial in trials.iter_mut().filter(|it| it.name == sounds::NAME) {
        trial.works.get_or_insert_with(|| Ok(checking::TWO_TONES.to_owned()));
    }
}

impl DeviceTrial {
    fn start(
        name: &'static str,
        is_wanted: bool,
        started: Result<io::Result<Device>, CommandFailure>,
        order: Order,
    ) -> Self {
        let started = started
            .map_err(|failure| failure.to_string())
            .and_then(|it| it.map_err(|error| checking::no_threads(&error)));
        let (device, works) = match started {
            Ok(device) => (Some(device), None),
            Err(why) => (None, Some(Err(why))),
        };
        if let Some(device) = &device {
            // A device that takes no orders stays silent, and the trial reports that.
            let _ = device.tell(order);
        }
        DeviceTrial { name, is_wanted, _device: device, works, notices: Vec::new() }
    }

    fn report(&mut self, report: DeviceReport) {
        match report {
            DeviceReport::Trouble(why) => self.works = Some(Err(why)),
            DeviceReport::Notice(notice) => self.notices.push(notice),
            DeviceReport::Ended(ID) if self.name == speech::NAME => {
                self.works = Some(Ok(checking::heard()));
            }
            DeviceReport::Began(ID) if self.name == braille::NAME => {
                self.works = Some(Ok(checking::on_display()));
            }
            DeviceReport::Ended(ID) if self.name == DESKTOP => {
                self.works = Some(Ok(checking::screen_reader_was_told()));
            }
            _ => {}
        }
    }

    /// The finding. A device that did not report in time does not work.
    fn finding(&self) -> DoctorFinding {
        let silent = || Err(checking::DEVICE_SILENT.to_owned());
        let works = self.works.clone().unwrap_or_else(silent);
        let told = |seen: String| [&[seen][..], &self.notices].concat().join(" ");
        DoctorFinding { name: self.name, is_wanted: self.is_wanted, works: works.map(told) }
    }
}
