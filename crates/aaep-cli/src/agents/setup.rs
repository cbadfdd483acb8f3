//! The setup of one agent: where its hooks are kept, and how far ours are there.

use std::path::{Path, PathBuf};

use aaep_bridge::settings::{self, OurHooks, SettingsFault, SettingsForm, SetupState};
use aaep_bridge::{AskPolicy, BridgedAgent};

use super::program_folder::ProgramFolder;
use super::settings_file::SettingsFile;
use crate::console::{self, CommandFailure, name_of};
use crate::english::bridging;

/// Where an agent keeps its hooks.
enum HookStore {
    File(SettingsFile),
    Folder(ProgramFolder),
}

/// What the person chose for an agent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OurChoice {
    /// When they want to be asked.
    pub(super) policy: AskPolicy,
    /// For how many hours they can answer after the agent ended at a question.
    pub(super) later_hours: Option<u8>,
}

impl OurChoice {
    fn of(policy: AskPolicy) -> Self {
        OurChoice { policy, later_hours: None }
    }
}

/// The setup of one agent.
pub(super) struct AgentSetup {
    agent: BridgedAgent,
    /// The path of this program.
    program: String,
    /// The agent's own folder.
    home: PathBuf,
    store: HookStore,
}

impl AgentSetup {
    pub(super) fn of(agent: BridgedAgent) -> Result<Self, CommandFailure> {
        let home = agent_home(agent)?;
        let (_, _, file) = agent.settings_place();
        let path = home.join(file);
        let store = match agent.settings_form() {
            SettingsForm::Programs => HookStore::Folder(ProgramFolder::new(agent, path)),
            _ => HookStore::File(SettingsFile::new(agent, path)),
        };
        Ok(AgentSetup { agent, program: own_program()?, home, store })
    }

    /// Whether the agent was ever used here.
    pub(super) fn is_found(&self) -> bool {
        self.home.is_dir()
    }

    /// The file or folder with its hooks.
    pub(super) fn place(&self) -> &Path {
        match &self.store {
            HookStore::File(file) => file.path(),
            HookStore::Folder(folder) => folder.path(),
        }
    }

    fn hooks(&self, choice: OurChoice) -> OurHooks<'_> {
        let OurChoice { policy, later_hours } = choice;
        OurHooks { agent: self.agent, program: &self.program, policy, later_hours }
    }

    /// Whether our hooks are to the letter as we write them.
    pub(super) fn is_untouched(&self) -> Result<bool, CommandFailure> {
        match &self.store {
            HookStore::File(file) => {
                let text = file.read()?.unwrap_or_default();
                Ok(settings::are_untouched(self.agent, &text, &self.program))
            }
            // Programs are compared to the letter already.
            HookStore::Folder(_) => Ok(true),
        }
    }

    /// For how many hours a question can be answered after the agent ended at it.
    pub(super) fn later_hours(&self) -> Result<Option<u8>, CommandFailure> {
        let HookStore::File(file) = &self.store else { return Ok(None) };
        Ok(settings::later_hours(self.agent, &file.read()?.unwrap_or_default()))
    }

    /// The agent's own folder.
    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// How far it is set up.
    pub(super) fn state(&self) -> Result<SetupState, CommandFailure> {
        match &self.store {
            HookStore::File(file) => {
                let text = file.read()?.unwrap_or_default();
                Ok(settings::setup_state(self.agent, &text, &self.program))
            }
            HookStore::Folder(folder) => {
                let mut policies = AskPolicy::NAMES.iter().map(|(_, policy)| *policy);
                let programs = |policy| self.hooks(OurChoice::of(policy)).programs();
                let complete = policies.find(|it| folder.has_all(&programs(*it)));
                let is_there = || folder.has_any(&programs(AskPolicy::default()));
                Ok(match complete {
                    Some(policy) => SetupState::Complete(policy),
                    None if is_there() => SetupState::Different,
                    None => SetupState::Absent,
                })
            }
        }
    }

    /// What its settings would be.
    pub(super) fn added(&self, choice: OurChoice) -> Result<String, CommandFailure> {
        match &self.store {
            HookStore::File(file) => {
                let before = file.read()?.unwrap_or_default();
                let after = self.hooks(choice).added_to(&before);
                after.map_err(|fault| self.left_alone(fault))
            }
            HookStore::Folder(folder) => {
                let texts = self.hooks(choice).programs().into_iter();
                let shown = texts
                    .map(|(name, text)| format!("{}:\n{text}", name_of(&folder.path().join(name))));
                Ok(shown.collect::<Vec<_>>().join("\n"))
            }
        }
    }

    /// Adds our hooks, and returns the copy of the settings as they were.
    pub(super) fn add(&self, choice: OurChoice) -> Result<Option<PathBuf>, CommandFailure> {
        if cfg!(windows) && self.agent != BridgedAgent::ClaudeCode {
            return Err(bridging::not_on_windows(self.agent).into());
        }
        match &self.store {
            HookStore::File(file) => {
                let before = file.read()?.unwrap_or_default();
                file.replace(&before, &self.added(choice)?)
            }
            HookStore::Folder(folder) => {
                folder.write(&self.hooks(choice).programs())?;
                Ok(None)
            }
        }
    }

    /// What its settings would be without our hooks.
    pub(super) fn removed(&self) -> Result<String, CommandFailure> {
        match &self.store {
            HookStore::File(file) => {
                let before = file.read()?.unwrap_or_default();
                let after = settings::without_hooks(self.agent, &before);
                after.map_err(|fault| self.left_alone(fault))
            }
            HookStore::Folder(folder) => Ok(bridging::would_be_deleted(&name_of(folder.path()))),
        }
    }

    /// Takes our hooks away, and returns whether there were any.
    pub(super) fn remove(&self) -> Result<bool, CommandFailure> {
        match &self.store {
            HookStore::File(file) => {
                let Some(before) = file.read()? else { return Ok(false) };
                let after = self.removed()?;
                if after == before {
                    return Ok(false);
                }
                file.restore(&before, &after)?;
                Ok(true)
            }
            HookStore::Folder(folder) => {
                folder.delete(&self.hooks(OurChoice::default()).programs())
            }
        }
    }

    fn left_alone(&self, fault: SettingsFault) -> CommandFailure {
        let what = bridging::left_alone(&name_of(self.place()), &fault);
        let program = settings::shell_word(&self.program);
        CommandFailure::new(what, bridging::correct_or_let_run(self.agent, &program))
    }
}

/// The agent's own folder.
fn agent_home(agent: BridgedAgent) -> Result<PathBuf, CommandFailure> {
    let set = |name: &str| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let (variable, folder, _) = agent.settings_place();
    let own = Some(variable).filter(|it| !it.is_empty()).and_then(set);
    let home = || set("HOME").or_else(|| set("USERPROFILE")).map(|it| it.join(folder));
    own.or_else(home).ok_or_else(|| bridging::no_home(agent).into())
}

/// The whole path of this program.
fn own_program() -> Result<String, CommandFailure> {
    let program = std::env::current_exe()
        .map_err(|error| bridging::path_unknown(&console::reason(&error)))?;
    let text = program.to_str().filter(|it| !it.contains(['\n', '\0'])).map(str::to_owned);
    text.ok_or_else(|| bridging::PATH_NOT_TEXT.into())
}
