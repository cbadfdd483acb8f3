//! The stage of `aaep demo`: the person listens with `aaep listen` itself, and the story is played beside it.
//!
//! What the person types counts. Where nobody can type, the demonstration types for them, and says so.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use aaep::{ReplyToken, printable};
use aaep_announce::device::Address;
use aaep_hub::access::{PersonKey, read_person_key};
use aaep_hub::hub::Hub;
use tokio::sync::mpsc::{self, Sender};
use tokio::time::sleep;

use super::{Answering, story};
use crate::attention::file::NumbersFile;
use crate::console::Failure;
use crate::hubs;
use crate::keyboard::{Keyboard, TypedLine};
use crate::keys::{now_unix_ms, tell};
use crate::listen::{self, Narrator, devices::speech_settings};
use crate::settings::{self, Flags, Settings};

/// How long a question may take until the person was told it.
const PATIENCE: Duration = Duration::from_secs(90);

/// How often it is looked whether they were.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long something may be on its way from the hub to the person.
const ON_THE_WAY: Duration = Duration::from_millis(250);

/// How many lines may wait.
const MAX_LINES: usize = 16;

/// What the demonstration is played with.
pub(super) struct Stage {
    pub(super) hub: Hub,
    pub(super) origin: String,
    pub(super) folder: PathBuf,
    pub(super) answering: Option<Answering>,
    pub(super) may_speak: bool,
}

/// Those who play.
#[derive(Clone)]
pub(super) struct Players {
    pub(super) hub: Hub,
    pub(super) narrator: Narrator,
    origin: String,
    folder: PathBuf,
    lines: Sender<TypedLine>,
    /// What is answered for the person; they answer themselves if absent.
    answering: Option<Answering>,
    /// Whether time passes between things, for someone who follows along.
    pub(super) is_unhurried: bool,
}

/// Plays it.
pub(super) async fn run(stage: Stage) -> Result<(), Failure> {
    let settings = settings(stage.may_speak);
    tell(
        "This is a demonstration of aaep listen. Two agents work, and you hear both. It takes about a minute.",
    )?;
    tell("Photos and tests are made up: nothing on this computer is read or deleted.")?;
    let answering = stage.answering.or_else(|| nobody_types().then_some(Answering::Reject));
    match stage.answering {
        Some(_) => tell("It answers by itself, as you said.")?,
        None if answering.is_some() => {
            tell(
                "Nobody can type here, so it answers by itself, with no. Other answers: --answer",
            )?;
        }
        None => {
            tell("When something is asked, type yes or no. To hear what else you can type: help")?;
        }
    }
    let (lines, typed) = mpsc::channel(MAX_LINES);
    if answering.is_none() {
        pass_on(lines.clone());
    }
    let tokens = stage.folder.join("tokens.toml");
    let token = read_person_key(&PersonKey::path_beside(&tokens)).ok();
    let hub = hubs::Hub { address: stage.origin.clone(), name: String::new(), token };
    let mut wishes = listen::wishes(&settings, hub.token.as_deref());
    if answering == Some(Answering::None) {
        wishes.capabilities.supports_confirmation_reply = Some(false);
        wishes.capabilities.supports_clarification_reply = Some(false);
        wishes.capabilities.supported_conformance_levels = Some(vec![1]);
    }
    let numbers = NumbersFile::at(stage.folder.join("aaep/questions.json"));
    let keyboard = Keyboard::of_lines(typed);
    let listened = listen::show(hub, &settings, (wishes, numbers), keyboard, |narrator| {
        let players = Players {
            hub: stage.hub,
            narrator,
            origin: stage.origin,
            folder: stage.folder,
            lines,
            answering,
            is_unhurried: answering.is_none(),
        };
        tokio::spawn(story::play(players));
    });
    let code = listened.await?;
    if code != ExitCode::SUCCESS {
        return Err(Failure::new("the demonstration broke off", "Try again: aaep demo"));
    }
    let program = program();
    tell("")?;
    tell("That was the demonstration. Nothing of it is left. To hear agents of your own:")?;
    tell(&format!("In one terminal: {program} serve"))?;
    tell(&format!("In a second one: {program} listen"))?;
    tell(&format!("In a third one: {program} ask \"May I delete the old photos?\" --irreversible"))
}

/// The person's settings where they can be used, with speech if a voice answers.
fn settings(may_speak: bool) -> Settings {
    let own = settings::load(&Flags::default()).map(|it| it.settings).unwrap_or_default();
    // Rules answer for the person, and here the person should.
    let mut settings = Settings { rules: Vec::new(), ..own };
    settings.lines.on = true;
    settings.desktop.on = false;
    settings.speech.on = may_speak && (settings.speech.on || is_voice_there(&settings));
    settings
}

/// Whether a speech server answers. None is started for a demonstration.
fn is_voice_there(settings: &Settings) -> bool {
    let Ok(settings) = speech_settings(settings) else { return false };
    match settings.address {
        #[cfg(unix)]
        Address::Unix(path) => std::os::unix::net::UnixStream::connect(path).is_ok(),
        _ => false,
    }
}

/// Whether there is no keyboard and nothing in its place.
fn nobody_types() -> bool {
    !std::io::stdin().is_terminal()
}

/// What the person types goes to where the demonstration types too.
fn pass_on(lines: Sender<TypedLine>) {
    let (mut typed, mode) = Keyboard::new().split();
    tokio::spawn(async move {
        let _mode = mode;
        while let Some(line) = typed.recv().await {
            if lines.send(line).await.is_err() {
                return;
            }
        }
    });
}

/// How this program is called from a terminal.
fn program() -> String {
    let own = std::env::args().next().unwrap_or_default();
    let path = std::env::current_exe().ok().map(|it| it.to_string_lossy().into_owned());
    let is_found = !own.contains('/') && !own.is_empty();
    let called = if is_found { own } else { path.unwrap_or_else(|| "aaep".to_owned()) };
    printable(&called).into_owned()
}

impl Players {
    /// Time passes.
    pub(super) async fn pause(&self, milliseconds: u64) {
        let short = if self.is_unhurried { milliseconds } else { milliseconds.min(20) };
        sleep(Duration::from_millis(short)).await;
    }

    /// Waits until what the agents said so far is told.
    pub(super) async fn until_told(&self) {
        // It has to come from the hub first.
        sleep(ON_THE_WAY).await;
        self.narrator.until_told().await;
    }

    /// Types a line for the person.
    pub(super) async fn type_line(&self, text: &str) {
        let line = TypedLine { text: text.to_owned(), begun: Instant::now() };
        let _ = self.lines.send(line).await;
    }

    /// Answers a question for the person, once they were told it, unless they answer themselves.
    pub(super) async fn answer(&self, token: &ReplyToken) {
        let word = match self.answering {
            Some(Answering::Accept) => "yes",
            Some(Answering::Reject) => "no",
            Some(Answering::None) | None => return,
        };
        let Some(number) = self.told_number(token).await else { return };
        let line = format!("{number} {word}");
        self.narrator.say(&format!("The demonstration types: {line}")).await;
        self.narrator.until_told().await;
        self.type_line(&line).await;
    }

    /// Answers a question from another terminal, with a program of its own: no.
    pub(super) async fn answer_elsewhere(&self, token: &ReplyToken) {
        if self.answering == Some(Answering::None) {
            return;
        }
        let Some(number) = self.told_number(token).await else { return };
        let typed = format!("aaep answer {number} no");
        self.narrator.say(&format!("In another terminal, somebody types: {typed}")).await;
        self.narrator.until_told().await;
        let Ok(program) = std::env::current_exe() else { return };
        let mut command = Command::new(program);
        command.args(["answer", &number.to_string(), "no"]);
        command.env("XDG_STATE_HOME", &self.folder).env("AAEP_HUB", &self.origin);
        command.env("AAEP_TOKENS", self.folder.join("tokens.toml")).env_remove("AAEP_TOKEN");
        command.env_remove("AAEP_PERSON_KEY").stdin(Stdio::null());
        // It gives up by itself where nobody answers it.
        let answered = tokio::task::spawn_blocking(move || command.output()).await;
        // If it could not answer, the question is settled by its default.
        if let Ok(Ok(output)) = answered {
            let said = String::from_utf8_lossy(&output.stdout);
            if let Some(line) = said.lines().next() {
                self.narrator.say(&format!("That terminal says: {}", printable(line))).await;
            }
        }
    }

    /// The number of a question, once the person was told it to its end.
    async fn told_number(&self, token: &ReplyToken) -> Option<u16> {
        let until = Instant::now() + PATIENCE;
        let file = NumbersFile::at(self.folder.join("aaep/questions.json"));
        while Instant::now() < until {
            let (file, token) = (file.clone(), token.as_str().to_owned());
            let found = tokio::task::spawn_blocking(move || {
                let numbers = file.look().ok()?;
                numbers.told_number(&token, now_unix_ms())
            });
            if let Ok(Some(number)) = found.await {
                return Some(number);
            }
            sleep(LOOK_EVERY).await;
        }
        None
    }
}
