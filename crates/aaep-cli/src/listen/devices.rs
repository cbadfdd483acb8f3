//! The devices that the settings name, each with its announcer.

use std::io::{self, IsTerminal as _, Write};
use std::sync::mpsc::Sender;

use aaep::LanguageTag;
use aaep_announce::device::{Device, TimedReport, braille, lines, sounds, speech};
use aaep_announce::{Announcer, Preferences};

use super::device_table::{DESKTOP, DEVICES, is_any_on};
use crate::console::CommandFailure;
use crate::english::failures;
use crate::keyboard::TypingAwareWriter;
use crate::settings::{NotificationStyle, UserSettings};
use crate::stop::StopsWithReader;

/// A device that says words, and the announcer that decides which.
pub(crate) struct DeviceChannel {
    pub(crate) device: Device,
    pub(crate) announcer: Announcer,
    /// Whether the device's failure to take orders was already reported.
    pub(super) is_stuck: bool,
}

/// All devices of one person.
pub(crate) struct DeviceSet {
    pub(crate) channels: Vec<DeviceChannel>,
    pub(super) sounds: Option<Device>,
    /// Whether the lines are on a terminal, where a screen reader speaks them by itself.
    pub(super) are_lines_on_screen: bool,
}

impl DeviceSet {
    /// Whether a device must stay silent because the desktop's screen reader already gets the same words: it would
    /// speak the lines of the terminal as well.
    pub(super) fn is_spoken_by_desktop(&self, at: usize) -> bool {
        let is_lines = |it: &DeviceChannel| it.device.name() == lines::NAME;
        let is_desktop =
            |it: &DeviceChannel| it.device.name() == DESKTOP && it.announcer.is_working();
        self.are_lines_on_screen
            && self.channels.get(at).is_some_and(is_lines)
            && self.channels.iter().any(is_desktop)
    }

    /// The lines that were silent as long as this device worked.
    pub(super) fn silent_lines(&self, at: usize) -> Option<usize> {
        let is_desktop = self.channels.get(at).is_some_and(|it| it.device.name() == DESKTOP);
        let lines = self.channels.iter().position(|it| it.device.name() == lines::NAME);
        lines.filter(|_| is_desktop && self.are_lines_on_screen)
    }
}

/// Starts the devices in the settings.
pub(crate) fn start(
    settings: &UserSettings,
    is_json: bool,
    reports: &Sender<TimedReport>,
) -> Result<DeviceSet, CommandFailure> {
    let mut devices = Vec::new();
    if settings.lines.on {
        let options = line_options(settings, is_json);
        let to: Box<dyn Write + Send> = if is_any_on(settings) {
            Box::new(TypingAwareWriter(io::stdout()))
        } else {
            Box::new(StopsWithReader(TypingAwareWriter(io::stdout())))
        };
        devices
            .push(lines::start(to, options, reports.clone()).map_err(|error| no_thread(&error))?);
    }
    let mut sounds = None;
    for row in DEVICES.iter().filter(|it| it.is_on(settings)) {
        let device = (row.start)(settings, reports)?.map_err(|error| no_thread(&error))?;
        if row.tells_words {
            devices.push(device);
        } else {
            sounds = Some(device);
        }
    }
    let channel = |(at, device): (usize, Device)| {
        let mut preferences = preferences(settings);
        // Only the first one plays sounds, so that nothing sounds twice.
        preferences.sounds = at == 0 && sounds.is_some();
        let mut announcer = Announcer::new(preferences);
        if device.name() == lines::NAME {
            announcer = announcer.without_pace();
        } else if device.name() == braille::NAME {
            announcer = announcer.with_context_on_request();
        }
        DeviceChannel { device, announcer, is_stuck: false }
    };
    let channels = devices.into_iter().enumerate().map(channel).collect();
    let are_lines_on_screen = !is_json && io::stdout().is_terminal();
    Ok(DeviceSet { channels, sounds, are_lines_on_screen })
}

fn no_thread(error: &io::Error) -> CommandFailure {
    CommandFailure::new(failures::no_threads(error), failures::TRY_LATER)
}

/// The person's preferences from the settings.
pub(crate) fn preferences(settings: &UserSettings) -> Preferences {
    let mut preferences = settings.listen.profile.preferences();
    if let Some(pace) = settings.listen.words_per_minute {
        preferences.words_per_minute = pace;
    }
    if let Some(seconds) = settings.listen.long_tool_seconds {
        preferences.long_tool_seconds = seconds;
    }
    preferences
}

fn line_options(settings: &UserSettings, is_json: bool) -> lines::LineOptions {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|it| !it.is_empty());
    // A bell or a notification is useless in a file.
    let is_terminal = io::stdout().is_terminal();
    let notifies = match settings.lines.notifications {
        NotificationStyle::None => None,
        NotificationStyle::Osc9 => Some(lines::Notification::Osc9),
        NotificationStyle::Osc777 => Some(lines::Notification::Osc777),
    };
    lines::LineOptions {
        is_json,
        greets: is_set("ACCESSIBLE"),
        rings: settings.lines.bell && is_terminal,
        notifies: notifies.filter(|_| is_terminal),
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The speech device's settings.
pub(crate) fn speech_settings(settings: &UserSettings) -> Result<speech::Settings, CommandFailure> {
    let own = &settings.speech;
    let look_up = |name: &str| match &own.address {
        Some(address) if name == "SPEECHD_ADDRESS" => Some(address.clone()),
        _ => variable(name),
    };
    let next = failures::SET_SPEECH;
    let address =
        speech::address(look_up).map_err(|what| CommandFailure::of_sentences(&what, next))?;
    let mut wanted = speech::Settings::new(address);
    "aaep listen".clone_into(&mut wanted.user);
    wanted.module.clone_from(&own.module);
    wanted.voice.clone_from(&own.voice);
    (wanted.rate, wanted.pitch, wanted.volume) = (own.rate, own.pitch, own.volume);
    wanted.language = settings.listen.language_tags().and_then(|tags| tags.into_iter().next());
    Ok(wanted)
}

/// The braille device's settings.
pub(super) fn braille_settings(
    settings: &UserSettings,
) -> Result<braille::Settings, CommandFailure> {
    let own = &settings.braille;
    let look_up = |name: &str| match &own.address {
        Some(address) if name == "BRLAPI_HOST" => Some(address.clone()),
        _ => variable(name),
    };
    let next = failures::SET_BRAILLE;
    let address =
        braille::address(look_up).map_err(|what| CommandFailure::of_sentences(&what, next))?;
    let mut wanted = braille::Settings::new(address);
    wanted.terminal = braille::terminal(variable);
    wanted.cells_per_second = (own.cells_per_second > 0).then_some(own.cells_per_second);
    if let Some(key_file) = &own.key_file {
        wanted.key_file.clone_from(key_file);
    }
    let table = |(tag, table): (&String, &String)| {
        LanguageTag::parse(tag).ok().map(|tag| (tag, table.clone()))
    };
    wanted.tables = own.tables.iter().filter_map(table).collect();
    Ok(wanted)
}

/// Starts the device for the desktop's screen reader, at the person's pace.
#[cfg(feature = "desktop")]
#[expect(clippy::unnecessary_wraps, reason = "a program that was built without it cannot")]
pub(super) fn start_desktop(
    settings: &UserSettings,
    reports: &Sender<TimedReport>,
) -> Result<io::Result<Device>, CommandFailure> {
    use aaep_announce::device::desktop;
    let wanted = desktop::Settings::new(preferences(settings).pace());
    Ok(desktop::start(wanted, reports.clone()))
}

/// Fails: this program was built without that device.
#[cfg(not(feature = "desktop"))]
pub(super) fn start_desktop(
    _: &UserSettings,
    _: &Sender<TimedReport>,
) -> Result<io::Result<Device>, CommandFailure> {
    Err(CommandFailure::new(failures::BUILT_WITHOUT_DESKTOP, failures::BUILD_WITH_DESKTOP))
}

/// The sound device's settings.
pub(super) fn sound_settings(settings: &UserSettings) -> sounds::Settings {
    let own = &settings.sounds;
    sounds::Settings {
        needs_you: own.needs_you.clone(),
        done: own.done.clone(),
        error: own.error.clone(),
        ..sounds::Settings::default()
    }
}
