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

    fn hooks(&self, policy: AskPolicy) -> OurHooks<'_> {
        OurHooks { agent: self.agent, program: &self.program, policy }
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
                let complete = policies.find(|it| folder.has_all(&self.hooks(*it).programs()));
                let is_there = || folder.has_any(&self.hooks(AskPolicy::default()).programs());
                Ok(match complete {
                    Some(policy) => SetupState::Complete(policy),
                    None if is_there() => SetupState::Different,
                    None => SetupState::Absent,
                })
            }
        }
    }

    /// What its settings would be.
    pub(super) fn added(&self, policy: AskPolicy) -> Result<String, CommandFailure> {
        match &self.store {
            HookStore::File(file) => {
                let before = file.read()?.unwrap_or_default();
                let after = self.hooks(policy).added_to(&before);
                after.map_err(|fault| self.left_alone(fault))
            }
            HookStore::Folder(folder) => {
                let texts = self.hooks(policy).programs().into_iter();
                let shown = texts
                    .map(|(name, text)| format!("{}:\n{text}", name_of(&folder.path().join(name))));
                Ok(shown.collect::<Vec<_>>().join("\n"))
            }
        }
    }

    /// Adds our hooks, and returns the copy of the settings as they were.
    pub(super) fn add(&self, policy: AskPolicy) -> Result<Option<PathBuf>, CommandFailure> {
        if cfg!(windows) && self.agent != BridgedAgent::ClaudeCode {
            return Err(bridging::not_on_windows(self.agent).into());
        }
        match &self.store {
            HookStore::File(file) => {
                let before = file.read()?.unwrap_or_default();
                file.replace(&before, &self.added(policy)?)
            }
            HookStore::Folder(folder) => {
                folder.write(&self.hooks(policy).programs())?;
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
                folder.delete(&self.hooks(AskPolicy::default()).programs())
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
