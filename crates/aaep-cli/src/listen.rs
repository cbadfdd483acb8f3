//! `aaep listen`: tells the person what agents do, in lines, speech, braille, sounds and through the screen reader of
//! the desktop, and takes their answers.
//!
//! This file has the options. `reaching` keeps the links to the hubs, `room` is the loop, `hearing` handles news from
//! the hubs, `asking` presents questions, `device_table` lists the devices and `devices` starts those in the settings, `reports` delivers device
//! reports, `typed` and `typing` handle what the person types, `driving` instructs agents, `leaving` remembers how
//! far the person was told, and `open` and `meant` know which question typed words refer to. What is said, when and
//! how is decided in `aaep-announce`.

mod asking;
pub(crate) mod device_table;
pub(crate) mod devices;
mod driving;
mod hearing;
mod leaving;
pub(crate) mod meant;
mod open;
mod reaching;
pub(crate) mod reports;
mod room;
mod typed;
pub(crate) mod typing;

use std::process::ExitCode;
use std::time::Duration;

use aaep_subscriber::{Subscriber, Wishes, connect};
use clap::Args;
use tokio::time::timeout;

use crate::attention::file::NumbersFile;
use crate::console::CommandFailure;
use crate::english::{self, failures};
use crate::hubs::{HubFlags, HubTarget, OldForms};
use crate::keyboard::KeyboardInput;
use crate::settings::{self, SettingsFlags, UserSettings};
use device_table::{DeviceFlags, is_any_on};
use hearing::ListenedHubs;
use leaving::LeavingRecord;
use reports::DeviceReports;
use room::{ListeningRoom, RoomUpdate};

const EXIT_CODES: &str = "\
For example: aaep listen --speech
Exit codes:
  0  you stopped it, or every hub ended the subscription as it should
  2  it could not be done: no hub could be reached, or none accepted you";

/// The help below the flags, for the eye and for braille.
fn after_help() -> String {
    let lines =
        english::typing::TYPED.iter().map(|(words, what)| format!("  {words:<22} {what}\n"));
    let lines: String = lines.collect();
    format!("{}\n{lines}{EXIT_CODES}", english::typing::WHILE_IT_RUNS)
}

/// The same help while listening, to be spoken: one sentence each, without what only scripts need.
fn spoken_help() -> Vec<String> {
    let mut lines = vec![english::typing::TYPE_ONE_OF_THESE.to_owned()];
    lines.extend(
        english::typing::TYPED
            .iter()
            .map(|(words, what)| english::typing::can_be_typed(words, what)),
    );
    lines
}

/// How long closing the subscriptions may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// How long connecting may take.
const CONNECT_PATIENCE: Duration = Duration::from_secs(15);

/// How to listen.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(crate) struct ListenOptions {
    #[command(flatten)]
    old: OldForms,
    #[command(flatten)]
    hub: HubFlags,
    #[command(flatten)]
    flags: SettingsFlags,
    #[command(flatten)]
    devices: DeviceFlags,
    /// Write no lines.
    #[arg(long)]
    no_lines: bool,
    /// Write one JSON object per line, for programs.
    #[arg(long)]
    json: bool,
    /// Ring the terminal's bell for what needs you.
    #[arg(long)]
    bell: bool,
}

/// Listens until the person stops it, or until every hub has ended it for good.
pub(crate) fn run(arguments: &ListenOptions) -> Result<ExitCode, CommandFailure> {
    arguments.old.refuse("listen")?;
    let settings = wanted(arguments)?;
    let hubs = arguments.hub.hubs(&settings.listen)?;
    let reports = DeviceReports::start();
    let devices = devices::start(&settings, arguments.json, reports.sender())?;
    let wishes = |hub: &HubTarget| wishes(&settings, hub.token.as_deref());
    let leaving = hubs.iter().map(|hub| LeavingRecord::begin(hub, &settings)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| CommandFailure::new(failures::no_threads(&error), failures::TRY_LATER))?;
    let served = runtime.block_on(async {
        let mut heard = reaching::start(&hubs, wishes);
        let begun = reaching::first(&mut heard, hubs.len()).await?;
        let (numbers, hubs) = (NumbersFile::own()?, ListenedHubs::new(hubs));
        let room = ListeningRoom::new(devices, &settings, numbers, hubs, leaving);
        room.run(begun, heard, reports, KeyboardInput::new()).await
    });
    // The thread that reads standard input may still wait for a line.
    runtime.shutdown_background();
    served
}

/// Speaks to the person between the agents' events, for the demonstration.
#[derive(Clone)]
pub(crate) struct ListenNarrator(tokio::sync::mpsc::Sender<RoomUpdate>);

impl ListenNarrator {
    /// Tells the person something.
    pub(crate) async fn say(&self, words: &str) {
        // If the listening has ended, this does not matter.
        let _ = self.0.send(RoomUpdate::Narrated(words.to_owned())).await;
    }

    /// Waits until everything that was heard so far is told.
    pub(crate) async fn until_told(&self) {
        let (told, is_told) = tokio::sync::oneshot::channel();
        if self.0.send(RoomUpdate::WaitsUntilTold(told)).await.is_ok() {
            let _ = is_told.await;
        }
    }
}

/// Listens to one hub as a person would, until a line of input stops it. Nothing is remembered for later. `play` gets
/// its narrator when the hub is reached.
pub(crate) async fn show(
    hub: HubTarget,
    settings: &UserSettings,
    (wishes, numbers): (Wishes, NumbersFile),
    keyboard: KeyboardInput,
    play: impl FnOnce(ListenNarrator),
) -> Result<ExitCode, CommandFailure> {
    let reports = DeviceReports::start();
    let devices = devices::start(settings, false, reports.sender())?;
    let hubs = vec![hub];
    let mut heard = reaching::start(&hubs, |_| wishes.clone());
    let begun = reaching::first(&mut heard, hubs.len()).await?;
    let room = ListeningRoom::new(devices, settings, numbers, ListenedHubs::new(hubs), Vec::new());
    play(ListenNarrator(room.narrator()));
    room.run(begun, heard, reports, keyboard).await
}

/// The person's settings, with the command line flags applied.
fn wanted(arguments: &ListenOptions) -> Result<UserSettings, CommandFailure> {
    let mut settings = settings::load(&arguments.hub.added_to(&arguments.flags))?.settings;
    arguments.devices.apply(&mut settings);
    settings.lines.on &= !arguments.no_lines;
    settings.lines.bell |= arguments.bell;
    if !settings.lines.on && !is_any_on(&settings) {
        return Err(CommandFailure::new(failures::NOTHING_TOLD, failures::TURN_ONE_ON));
    }
    Ok(settings)
}

/// What `aaep listen` requests from a hub.
pub(crate) fn wishes(settings: &UserSettings, token: Option<&str>) -> Wishes {
    let languages = settings.listen.language_tags().unwrap_or_default();
    let mut wishes = Wishes::new("aaep-listen").name("aaep listen").time_from_presented();
    wishes.capabilities = settings.listen.profile.capabilities(&languages);
    wishes.bearer = token.map(str::to_owned);
    // An agent that serves its own events is not a hub, and must not get the person's key.
    wishes.is_bearer_for_hubs = token.is_some_and(aaep_hub::access::is_person_key);
    wishes
}

/// Connects within a time limit.
pub(crate) async fn reach(address: &str, wishes: Wishes) -> Result<Subscriber, CommandFailure> {
    let next = failures::START_A_HUB;
    match timeout(CONNECT_PATIENCE, connect(address, wishes)).await {
        Ok(Ok(subscriber)) => Ok(subscriber),
        Ok(Err(error)) => {
            let text = failures::or_own_hub(&error);
            Err(CommandFailure::of_sentences(&text, next))
        }
        Err(_) => Err(CommandFailure::new(failures::HUB_DOES_NOT_ANSWER, next)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_while_listening_is_sentences_for_the_ear() {
        let lines = spoken_help();
        for line in &lines {
            assert!(!line.contains("  ") && !line.contains('`') && line.ends_with('.'), "{line}");
            assert!(!line.to_lowercase().contains("exit code"), "{line}");
        }
        assert!(lines.contains(
            &"stop or skip: stop speaking, not the agent; or go on with the next thing.".to_owned()
        ));
        assert!(after_help().contains("Exit codes:"));
    }
}
