//! What is different about each agent: its own words on one side, and on the other side the few things that all agents
//! do.
//!
//! An agent is one file in `dialects/`: it reads a payload as an [`AgentStep`], says what its tools do, and gives a
//! [`GateDecision`] the form that the agent understands. Everything else is the same for all of them.

use serde_json::Value;

use crate::settings::SettingsTraits;
use crate::tools::ToolRow;

/// An agent's own words.
pub(crate) trait AgentDialect: Sync {
    /// The name that people type.
    fn id(&self) -> &'static str;
    /// The name that people hear.
    fn name(&self) -> &'static str;
    /// The events for which a hook is needed.
    fn hooks(&self) -> &'static [HookPoint];
    /// Reads the payload of one hook. `event` is empty unless the settings of the hook name it.
    fn read(&self, event: &str, payload: &Value) -> AgentMessage;
    /// What its tools do. A tool that is missing here is one that nothing is known of.
    fn tools(&self) -> &'static [ToolRow];
    /// Who asks the person, and what the answers mean.
    fn gate(&self) -> GateStyle;
    /// How long the person has.
    fn times(&self) -> AskTimes {
        AskTimes { first_seconds: 600, longest_seconds: 3000, hook_seconds: 3600 }
    }
    /// How it keeps its settings.
    fn settings(&self) -> SettingsTraits;
    /// The variable that says which folder is the project.
    fn project_variable(&self) -> Option<&'static str> {
        None
    }
    /// The variable, and its value, by which the agent says that it has no window in which it could ask.
    fn without_window(&self) -> Option<(&'static str, &'static str)> {
        None
    }
    /// The decision in the agent's own form.
    fn answer(&self, decision: &GateDecision<'_>) -> HookAnswer;
}

/// One event for which a hook is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HookPoint {
    pub(crate) event: &'static str,
    pub(crate) role: HookRole,
}

/// What a hook is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookRole {
    /// The agent runs the tool unless this hook says otherwise.
    Gate,
    /// The agent asks the person, and this hook can answer.
    Asks,
    /// It only reports.
    Reports,
    /// It only reports, and the agent waits three seconds for it at most.
    ReportsBriefly,
}

/// What one call of a hook says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct AgentMessage {
    /// The agent's own name of the event.
    pub(crate) event: String,
    /// The session of the agent, which keeps its id over many turns.
    pub(crate) session: String,
    /// The turn, if the agent names it.
    pub(crate) turn: String,
    /// The folder in which the agent is.
    pub(crate) folder: String,
    pub(crate) step: AgentStep,
}

/// What agents do.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum AgentStep {
    /// A turn begins with a prompt of the person.
    Prompt(String),
    /// A turn begins because a helper in the background is done.
    HelperCameBack,
    /// A tool is about to run.
    BeforeTool(ToolUse),
    /// The agent is about to ask the person.
    AsksPermission {
        tool: ToolUse,
        /// Whether it is certain that a person decides, and neither a model nor a setting.
        is_person_certain: bool,
    },
    /// The agent asks the person in its own window, and nobody else can answer.
    AsksInWindow(ToolUse),
    /// The person answered in the agent's own window.
    WindowAnswered {
        tool: ToolUse,
        is_yes: bool,
    },
    /// A tool ended.
    ToolEnded(ToolUse, ToolEnding),
    /// These tools are over. Those that have not ended before did not run, for the reason given.
    BatchEnded(Vec<(ToolUse, String)>),
    /// The agent's own rules or a model denied a tool.
    ToolDenied(ToolUse),
    /// A piece of what the agent writes.
    Text {
        message: String,
        index: u64,
        text: String,
        is_last: bool,
    },
    /// The agent waits for the person, and says so in these words.
    Waits(String),
    HelperBegan(String),
    HelperEnded(String),
    /// The turn ends. The text is all of the agent's last message, if it says that here.
    Ended {
        text: String,
        running: usize,
    },
    /// Something went wrong, and the agent goes on.
    Trouble(String),
    /// The turn failed.
    Failed(String),
    /// The person stopped the turn.
    Stopped,
    /// The agent was closed.
    Closed,
    /// Nothing that anybody has to hear.
    Nothing,
    /// Something that is not known here.
    #[default]
    Unknown,
}

/// A tool, as the agent names it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ToolUse {
    /// The agent's own id of the call. Some agents have none.
    pub(crate) id: String,
    pub(crate) name: String,
    /// The arguments, without what the model only says about them.
    pub(crate) input: Value,
}

/// How a tool ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ToolEnding {
    /// What it gave back, in the form of Claude Code.
    pub(crate) details: Value,
    /// What it printed.
    pub(crate) printed: Option<String>,
    /// Why it failed.
    pub(crate) failure: Option<String>,
    pub(crate) duration_ms: Option<u64>,
    /// Whether the agent does not say if it succeeded.
    pub(crate) is_outcome_unknown: bool,
    /// Whether a failure can mean that it was kept from running.
    pub(crate) may_not_have_run: bool,
}

/// Who asks the person, and what the answers mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GateStyle {
    pub(crate) asker: GateAsker,
    pub(crate) stages: AskStages,
    /// Whether the agent can still ask in its own window, or refuse by its own rules, after a yes before the tool.
    /// Then that it runs is told when it ended.
    pub(crate) may_still_refuse: bool,
    /// Whether no answer to a question of the agent is a no. Otherwise its own dialog stays.
    pub(crate) silence_is_no: bool,
    /// Whether the agent reports each of its own dialogs, so that a tool without one ran unasked.
    pub(crate) reports_dialogs: bool,
}

/// Who asks before a tool that the person wants to be asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GateAsker {
    /// The agent opens its own dialog when it is told to, and then runs a hook that can answer.
    Agent,
    /// We ask while the agent waits for the hook.
    Bridge,
}

/// Whether one tool call comes by twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskStages {
    /// It is decided in one place.
    One,
    /// First before the tool, and then where the agent asks.
    GateFirst,
    /// First where the agent asks, and then before the tool.
    PermissionFirst,
}

/// How long the person has, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "the unit is in the name")]
pub(crate) struct AskTimes {
    pub(crate) first_seconds: u64,
    /// If the person asks for more time.
    pub(crate) longest_seconds: u64,
    /// When the agent gives up a hook that asks. Longer than the person has.
    pub(crate) hook_seconds: u64,
}

/// What the agent is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum GateDecision<'d> {
    /// The tool may run, as far as we are concerned.
    PassTool,
    /// The tool does not run.
    RefuseTool(&'d str),
    /// The agent asks in its own window first.
    AskInWindow(&'d str),
    /// The agent ends without running the tool, and asks again when the person lets it go on.
    AskLater(&'d str),
    /// The answer to the agent's question is yes.
    Allow,
    /// The answer to the agent's question is no.
    Deny(&'d str),
    /// The answers to the agent's questions, as new arguments.
    Answers(&'d Value),
}

/// What a hook gives back to the agent. Nothing of both leaves the decision where it was.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookAnswer {
    /// What to print on standard output.
    pub print: Option<Value>,
    /// Why the tool does not run, for an agent that learns it from exit code 2 and standard error.
    pub refusal: Option<String>,
}

impl HookAnswer {
    pub(crate) fn printed(value: Value) -> Self {
        HookAnswer { print: Some(value), refusal: None }
    }

    pub(crate) fn refused(why: &str) -> Self {
        HookAnswer { print: None, refusal: Some(why.to_owned()) }
    }

    /// Whether there is nothing to tell the agent.
    pub fn is_nothing(&self) -> bool {
        *self == HookAnswer::default()
    }
}

/// A field of a payload that is text.
pub(crate) fn text_of<'p>(payload: &'p Value, field: &str) -> &'p str {
    payload[field].as_str().unwrap_or_default()
}
