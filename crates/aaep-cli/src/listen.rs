//! `aaep listen`: tells the person what agents do, in lines, speech, braille, sounds and through the screen reader of
//! the desktop, and takes their answers.
//!
//! Here is what it is told to do; `reaching` keeps the lines to the hubs, `room` is the loop, `hearing` takes what the
//! hubs say, `asking` puts questions, `devices` starts what the settings name, `reports` brings what devices report,
//! `typed` reads what the person types, `driving` tells agents what the person wants, and `meant` knows which question
//! that can be meant for. What is said, when, and how, is decided in `aaep-announce`.

mod asking;
pub(crate) mod devices;
mod driving;
mod hearing;
mod leaving;
mod meant;
mod open;
mod reaching;
mod reports;
mod room;
mod typed;
mod typing;

use std::process::ExitCode;
use std::time::Duration;

use aaep_subscriber::{Subscriber, Wishes, connect};
use clap::Args;
use tokio::time::timeout;

use crate::attention::file::NumbersFile;
use crate::console::Failure;
use crate::english;
use crate::hubs::{Hub, HubFlags, OldForms};
use crate::keyboard::Keyboard;
use crate::settings::{self, Flags, Settings};
use hearing::Hubs;
use leaving::Leaving;
use reports::DeviceReports;
use room::{Came, Room};

const EXIT_CODES: &str = "\
Exit codes:
  0  you stopped it, or every hub ended the subscription in order
  2  it could not be done: no connection to any hub, or refused";

/// What stands below the flags, for the eye and for braille.
fn after_help() -> String {
    let lines =
        english::typing::TYPED.iter().map(|(words, what)| format!("  {words:<22} {what}\n"));
    let lines: String = lines.collect();
    format!("While it runs, type:\n{lines}{EXIT_CODES}")
}

/// The same while listening, for the ear: a sentence for each, and nothing that only a script needs.
fn spoken_help() -> Vec<String> {
    let mut lines = vec![english::typing::TYPE_ONE_OF_THESE.to_owned()];
    lines.extend(
        english::typing::TYPED
            .iter()
            .map(|(words, what)| english::typing::can_be_typed(words, what)),
    );
    lines
}

/// How long saying goodbye to the hub may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// How long connecting may take.
const CONNECT_PATIENCE: Duration = Duration::from_secs(15);

/// How to listen.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own for people")]
pub(crate) struct Arguments {
    #[command(flatten)]
    old: OldForms,
    #[command(flatten)]
    hub: HubFlags,
    #[command(flatten)]
    flags: Flags,
    /// Speak, through speech-dispatcher.
    #[arg(long)]
    speech: bool,
    /// Show it on a braille display, through BRLTTY.
    #[arg(long)]
    braille: bool,
    /// Let the screen reader of your desktop say it.
    #[arg(long)]
    desktop: bool,
    /// Sound before words.
    #[arg(long)]
    sounds: bool,
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

/// Listens until the person stops it, or until the hub ends it for good.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    arguments.old.refuse("listen")?;
    let settings = wanted(arguments)?;
    let hubs = arguments.hub.hubs(&settings.listen)?;
    let reports = DeviceReports::start();
    let devices = devices::start(&settings, arguments.json, reports.sender())?;
    let wishes = |hub: &Hub| wishes(&settings, hub.token.as_deref());
    let leaving = hubs.iter().map(|hub| Leaving::begin(hub, &settings)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::new(format!("the system gives no threads: {error}"), "Try again later.")
    })?;
    let served = runtime.block_on(async {
        let mut heard = reaching::start(&hubs, wishes);
        let begun = reaching::first(&mut heard, hubs.len()).await?;
        let (numbers, hubs) = (NumbersFile::own()?, Hubs::new(hubs));
        let room = Room::new(devices, &settings, numbers, hubs, leaving);
        room.run(begun, heard, reports, Keyboard::new()).await
    });
    // Someone may still be waited for who types nothing.
    runtime.shutdown_background();
    served
}

/// Somebody who shows a person how listening is: they say something beside the agents, and wait until it is told.
#[derive(Clone)]
pub(crate) struct Narrator(tokio::sync::mpsc::Sender<Came>);

impl Narrator {
    /// Says something to the person.
    pub(crate) async fn say(&self, words: &str) {
        // If nobody listens any more, nobody needs to know.
        let _ = self.0.send(Came::Narrated(words.to_owned())).await;
    }

    /// Waits until everything that was heard so far is told.
    pub(crate) async fn until_told(&self) {
        let (told, is_told) = tokio::sync::oneshot::channel();
        if self.0.send(Came::WaitsUntilTold(told)).await.is_ok() {
            let _ = is_told.await;
        }
    }
}

/// Listens to one hub as a person would, until they or somebody who types for them stop it. Nothing is remembered for
/// later. The show gets its narrator when the hub is reached.
pub(crate) async fn show(
    hub: Hub,
    settings: &Settings,
    (wishes, numbers): (Wishes, NumbersFile),
    keyboard: Keyboard,
    play: impl FnOnce(Narrator),
) -> Result<ExitCode, Failure> {
    let reports = DeviceReports::start();
    let devices = devices::start(settings, false, reports.sender())?;
    let hubs = vec![hub];
    let mut heard = reaching::start(&hubs, |_| wishes.clone());
    let begun = reaching::first(&mut heard, hubs.len()).await?;
    let room = Room::new(devices, settings, numbers, Hubs::new(hubs), Vec::new());
    play(Narrator(room.narrator()));
    room.run(begun, heard, reports, keyboard).await
}

/// The settings of the person, with what was said on the command line.
fn wanted(arguments: &Arguments) -> Result<Settings, Failure> {
    let mut settings = settings::load(&arguments.hub.beside(&arguments.flags))?.settings;
    settings.speech.on |= arguments.speech;
    settings.braille.on |= arguments.braille;
    settings.desktop.on |= arguments.desktop;
    settings.sounds.on |= arguments.sounds;
    settings.lines.on &= !arguments.no_lines;
    settings.lines.bell |= arguments.bell;
    let tells = [settings.lines.on, settings.speech.on, settings.braille.on, settings.desktop.on];
    if tells == [false; 4] {
        let what = "nothing would be told: lines, speech, braille and desktop are all off";
        return Err(Failure::new(what, "Turn one of them on, for example with --speech."));
    }
    Ok(settings)
}

/// What is asked of the hub.
pub(crate) fn wishes(settings: &Settings, token: Option<&str>) -> Wishes {
    let languages = settings.listen.language_tags().unwrap_or_default();
    let mut wishes = Wishes::new("aaep-listen").name("aaep listen").time_from_presented();
    wishes.capabilities = settings.listen.profile.capabilities(&languages);
    wishes.bearer = token.map(str::to_owned);
    // An agent that serves its own events is no hub, and must not get what proves that somebody is the person.
    wishes.is_bearer_for_hubs = token.is_some_and(aaep_hub::access::is_person_key);
    wishes
}

/// Connects, within its patience.
pub(crate) async fn reach(address: &str, wishes: Wishes) -> Result<Subscriber, Failure> {
    let next = "See whether the hub runs. To start one: aaep serve";
    match timeout(CONNECT_PATIENCE, connect(address, wishes)).await {
        Ok(Ok(subscriber)) => Ok(subscriber),
        Ok(Err(error)) => {
            let text = format!("{error} To start a hub of your own: aaep serve");
            Err(Failure::of_sentences(&text, next))
        }
        Err(_) => Err(Failure::new("the hub does not answer", next)),
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
