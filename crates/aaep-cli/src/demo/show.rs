//! The stage of `aaep demo`: the person listens with `aaep listen` itself while the story is played.
//!
//! Whatever the person types takes effect. If nobody can type, the demonstration types for them, and says so.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use aaep::{ReplyToken, printable};
use aaep_announce::device::DeviceAddress;
use aaep_hub::access::{PersonKey, read_person_key};
use aaep_hub::hub::Hub;
use tokio::sync::mpsc::{self, Sender};
use tokio::time::sleep;

use super::{AnswerMode, story};
use crate::attention::file::NumbersFile;
use crate::console::CommandFailure;
use crate::hubs;
use crate::keyboard::{KeyboardInput, TypedLine};
use crate::keys::{now_unix_ms, tell};
use crate::listen::{self, ListenNarrator, devices::speech_settings};
use crate::settings::{self, SettingsFlags, UserSettings};

/// How long telling the person a question may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// How often to check whether they were told it.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long an event may take from the hub to the person.
const ON_THE_WAY: Duration = Duration::from_millis(250);

/// How many typed lines may be queued.
const MAX_LINES: usize = 16;

/// What the demonstration needs to run.
pub(super) struct DemoStage {
    pub(super) hub: Hub,
    pub(super) origin: String,
    pub(super) folder: PathBuf,
    pub(super) answering: Option<AnswerMode>,
    pub(super) may_speak: bool,
}

/// The means by which the story is played.
#[derive(Clone)]
pub(super) struct DemoPlayers {
    pub(super) hub: Hub,
    pub(super) narrator: ListenNarrator,
    origin: String,
    folder: PathBuf,
    lines: Sender<TypedLine>,
    /// The answer given for the person; they answer themselves if it is absent.
    answering: Option<AnswerMode>,
    /// Whether to pause between events, for someone who follows along.
    pub(super) is_unhurried: bool,
}

/// Plays the demonstration.
pub(super) async fn run(stage: DemoStage) -> Result<(), CommandFailure> {
    let settings = settings(stage.may_speak);
    tell(
        "This is a demonstration of aaep listen. Two agents work, and you hear both. It takes about a minute.",
    )?;
    tell("Photos and tests are made up: nothing on this computer is read or deleted.")?;
    let answering = stage.answering.or_else(|| nobody_types().then_some(AnswerMode::Reject));
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
    let hub = hubs::HubTarget { address: stage.origin.clone(), name: String::new(), token };
    let mut wishes = listen::wishes(&settings, hub.token.as_deref());
    if answering == Some(AnswerMode::None) {
        wishes.capabilities.supports_confirmation_reply = Some(false);
        wishes.capabilities.supports_clarification_reply = Some(false);
        wishes.capabilities.supported_conformance_levels = Some(vec![1]);
    }
    let numbers = NumbersFile::at(stage.folder.join("aaep/questions.json"));
    let keyboard = KeyboardInput::of_lines(typed);
    let listened = listen::show(hub, &settings, (wishes, numbers), keyboard, |narrator| {
        let players = DemoPlayers {
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
        return Err(CommandFailure::new("the demonstration broke off", "Try again: aaep demo"));
    }
    let program = program();
    tell("")?;
    tell("That was the demonstration. Nothing of it is left. To hear agents of your own:")?;
    tell(&format!("In one terminal: {program} serve"))?;
    tell(&format!("In a second one: {program} listen"))?;
    tell(&format!("In a third one: {program} ask \"May I delete the old photos?\" --irreversible"))
}

/// The person's settings if they are usable, with speech if a speech server answers.
fn settings(may_speak: bool) -> UserSettings {
    let own = settings::load(&SettingsFlags::default()).map(|it| it.settings).unwrap_or_default();
    // Rules would answer for the person, but here the person should answer.
    let mut settings = UserSettings { rules: Vec::new(), ..own };
    settings.lines.on = true;
    settings.desktop.on = false;
    settings.speech.on = may_speak && (settings.speech.on || is_voice_there(&settings));
    settings
}

/// Whether a speech server answers. The demonstration does not start one.
fn is_voice_there(settings: &UserSettings) -> bool {
    let Ok(settings) = speech_settings(settings) else { return false };
    match settings.address {
        #[cfg(unix)]
        DeviceAddress::Unix(path) => std::os::unix::net::UnixStream::connect(path).is_ok(),
        _ => false,
    }
}

/// Whether standard input is not a terminal.
fn nobody_types() -> bool {
    !std::io::stdin().is_terminal()
}

/// Passes the person's lines into the channel that the demonstration types into, too.
fn pass_on(lines: Sender<TypedLine>) {
    let (mut typed, mode) = KeyboardInput::new().split();
    tokio::spawn(async move {
        let _mode = mode;
        while let Some(line) = typed.recv().await {
            if lines.send(line).await.is_err() {
                return;
            }
        }
    });
}

/// How to call this program from a terminal.
fn program() -> String {
    let own = std::env::args().next().unwrap_or_default();
    let path = std::env::current_exe().ok().map(|it| it.to_string_lossy().into_owned());
    let is_found = !own.contains('/') && !own.is_empty();
    let called = if is_found { own } else { path.unwrap_or_else(|| "aaep".to_owned()) };
    printable(&called).into_owned()
}

impl DemoPlayers {
    pub(super) async fn pause(&self, milliseconds: u64) {
        let short = if self.is_unhurried { milliseconds } else { milliseconds.min(20) };
        sleep(Duration::from_millis(short)).await;
    }

    /// Waits until everything that the agents said so far is told.
    pub(super) async fn until_told(&self) {
        // It has to arrive from the hub first.
        sleep(ON_THE_WAY).await;
        self.narrator.until_told().await;
    }

    /// Types a line for the person.
    pub(super) async fn type_line(&self, text: &str) {
        let line = TypedLine { text: text.to_owned(), begun: Instant::now() };
        let _ = self.lines.send(line).await;
    }

    /// Answers a question for the person once they were told it, unless they answer themselves.
    pub(super) async fn answer(&self, token: &ReplyToken) {
        let word = match self.answering {
            Some(AnswerMode::Accept) => "yes",
            Some(AnswerMode::Reject) => "no",
            Some(AnswerMode::None) | None => return,
        };
        let Some(number) = self.told_number(token).await else { return };
        let line = format!("{number} {word}");
        self.narrator.say(&format!("The demonstration types: {line}")).await;
        self.narrator.until_told().await;
        self.type_line(&line).await;
    }

    /// Answers no to a question with `aaep answer`, as if from another terminal.
    pub(super) async fn answer_elsewhere(&self, token: &ReplyToken) {
        if self.answering == Some(AnswerMode::None) {
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
        // It gives up by itself if the hub does not answer.
        let answered = tokio::task::spawn_blocking(move || command.output()).await;
        // If it could not answer, the ask ends with its default.
        if let Ok(Ok(output)) = answered {
            let said = String::from_utf8_lossy(&output.stdout);
            if let Some(line) = said.lines().next() {
                self.narrator.say(&format!("That terminal says: {}", printable(line))).await;
            }
        }
    }

    /// The number of a question, once the person was told it completely.
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
