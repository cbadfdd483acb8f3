//! The table of devices besides the lines, and the flags that turn devices on.
//!
//! `aaep listen`, `aaep doctor` and `aaep replay` take their flags and start their devices from it.

use std::io;
use std::sync::mpsc::Sender;

use aaep_announce::device::{Device, TimedReport, braille, sounds, speech};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::devices::{braille_settings, sound_settings, speech_settings, start_desktop};
use crate::console::CommandFailure;
use crate::settings::UserSettings;

/// The name of the desktop device, also in builds without it.
pub(crate) const DESKTOP: &str = "desktop";

/// A device that could be started, or not by the system.
type StartedDevice = Result<io::Result<Device>, CommandFailure>;

/// A way to reach a person besides the lines.
pub(crate) struct DeviceRow {
    /// The name of the device, of its flag, and of its table in the settings.
    pub(crate) name: &'static str,
    /// The help of its flag.
    help: &'static str,
    /// Whether it tells words, so that a person needs no other device.
    pub(crate) tells_words: bool,
    /// Whether `faster` and `slower` change it.
    pub(crate) has_pace: bool,
    /// Its switch in the settings.
    switch: fn(&mut UserSettings) -> &mut bool,
    pub(crate) start: fn(&UserSettings, &Sender<TimedReport>) -> StartedDevice,
}

/// All devices besides the lines.
pub(crate) const DEVICES: &[DeviceRow] = &[
    DeviceRow {
        name: speech::NAME,
        help: "Speak everything, through speech-dispatcher",
        tells_words: true,
        has_pace: true,
        switch: |settings| &mut settings.speech.on,
        start: |settings, reports| Ok(speech::start(speech_settings(settings)?, reports.clone())),
    },
    DeviceRow {
        name: braille::NAME,
        help: "Show everything on a braille display, through BRLTTY",
        tells_words: true,
        has_pace: true,
        switch: |settings| &mut settings.braille.on,
        start: |settings, reports| Ok(braille::start(braille_settings(settings)?, reports.clone())),
    },
    DeviceRow {
        name: DESKTOP,
        help: "Let the screen reader of your desktop speak",
        tells_words: true,
        has_pace: false,
        switch: |settings| &mut settings.desktop.on,
        start: start_desktop,
    },
    DeviceRow {
        name: sounds::NAME,
        help: "Play sounds before the words",
        tells_words: false,
        has_pace: false,
        switch: |settings| &mut settings.sounds.on,
        start: |settings, reports| Ok(sounds::start(sound_settings(settings), reports.clone())),
    },
];

impl DeviceRow {
    /// Whether the person wants it.
    pub(crate) fn is_on(&self, settings: &UserSettings) -> bool {
        *(self.switch)(&mut settings.clone())
    }
}

/// Whether the person wants any device that tells words, besides the lines.
pub(crate) fn is_any_on(settings: &UserSettings) -> bool {
    DEVICES.iter().any(|it| it.tells_words && it.is_on(settings))
}

/// The flags that turn devices on, whatever the settings say: one for each row of the table.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeviceFlags {
    wanted: Vec<&'static str>,
}

impl DeviceFlags {
    /// Turns on in the settings what the flags name.
    pub(crate) fn apply(&self, settings: &mut UserSettings) {
        for row in DEVICES.iter().filter(|it| self.wanted.contains(&it.name)) {
            *(row.switch)(settings) = true;
        }
    }
}

impl FromArgMatches for DeviceFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let wanted = DEVICES.iter().map(|it| it.name).filter(|it| matches.get_flag(it));
        Ok(DeviceFlags { wanted: wanted.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = DeviceFlags::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for DeviceFlags {
    fn augment_args(command: Command) -> Command {
        let flag = |it: &DeviceRow| {
            Arg::new(it.name).long(it.name).action(ArgAction::SetTrue).help(it.help)
        };
        command.args(DEVICES.iter().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        DeviceFlags::augment_args(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_has_a_flag_that_turns_on_this_device_alone() {
        for row in DEVICES {
            let command = DeviceFlags::augment_args(Command::new("listen"));
            let flag = format!("--{}", row.name);
            let matches = command.try_get_matches_from(["listen", &flag]).expect("a flag");
            let mut settings = UserSettings::default();
            assert!(!DEVICES.iter().any(|it| it.is_on(&settings)), "all are off");
            DeviceFlags::from_arg_matches(&matches).expect("flags").apply(&mut settings);
            let on = DEVICES.iter().filter(|it| it.is_on(&settings)).map(|it| it.name);
            assert_eq!(on.collect::<Vec<_>>(), [row.name]);
            assert_eq!(is_any_on(&settings), row.tells_words);
        }
    }
}
