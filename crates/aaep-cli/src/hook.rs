//! `aaep hook`: what an agent that knows nothing of AAEP runs before and after its tools.
//!
//! The translation is in `aaep_bridge`; this reads standard input, speaks with the hub, and keeps what has to be
//! remembered until the next call in a small file. It prints nothing but what the agent understands. Where the agent
//! runs a tool unless somebody objects, every failure of ours objects.

mod kept;
mod limit;

use std::io::Read as _;
use std::process::ExitCode;
use std::time::Duration;

use aaep_bridge::risk::RiskTable;
use aaep_bridge::{
    AgentMemory, AskAnswer, AskPolicy, BridgedAgent, HookAnswer, HookCall, HookPlan, HookSetup,
    LaterAsk, MAX_PAYLOAD_BYTES, PlannedAsk,
};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::Value;

use crate::agent::publish_within;
use crate::ask::BridgeAsk;
use crate::console::{self, CommandFailure};
use crate::http::{HubClient, HubRequest};
use crate::hubs::HubFlags;
use crate::keys::{now_unix_ms, tell};
use kept::MemoryFile;
pub(crate) use kept::risk_table;

const EXIT_CODES: &str = "\
You need not run this yourself. To set it up for an agent: aaep agents add claude-code
Exit codes:
  0  the agent can go on; if it asked for consent, the answer is on standard output
  2  the tool must not run";

/// How long the hub may take for what an agent reports. The agent waits for it.
const HUB_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an agent waits for an answer before it ends.
const LATER_WAIT: Duration = Duration::from_secs(LaterAsk::WAIT_SECONDS);

/// Which agent runs this.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct HookOptions {
    /// The agent, which passes one JSON object on standard input.
    #[arg(value_parser = agent_parser())]
    agent: BridgedAgent,
    /// When to ask you: tell (never, only say what the agent does), risky (before risky tools), changes (before every
    /// tool that changes something).
    #[arg(long, value_name = "WHEN", default_value = "risky", value_parser = parse_policy)]
    policy: AskPolicy,
    /// If the agent has no window of its own, let it end at a question that you do not answer within a minute. You can
    /// answer for this many hours, and then let the agent go on.
    #[arg(long, value_name = "HOURS", value_parser = clap::value_parser!(u8).range(1..=24))]
    answer_later: Option<u8>,
    /// The event, for an agent that does not name it on standard input.
    #[arg(long, value_name = "EVENT", default_value = "")]
    event: String,
    #[command(flatten)]
    hub: HubFlags,
}

/// Reads the name of an agent.
pub(crate) fn agent_parser() -> impl TypedValueParser<Value = BridgedAgent> {
    let names = BridgedAgent::ALL.iter().map(|it| it.id());
    PossibleValuesParser::new(names)
        .try_map(|name| BridgedAgent::parse(&name).ok_or("it is not the name of an agent"))
}

/// Reads when the person wants to be asked.
pub(crate) fn parse_policy(name: &str) -> Result<AskPolicy, String> {
    let names = AskPolicy::NAMES.map(|(name, _)| name).join(", ");
    AskPolicy::parse(name).ok_or_else(|| format!("it is one of: {names}"))
}

/// Runs the command. It fails with exit code 2 where that keeps a tool from running, and otherwise never stops the
/// agent.
pub(crate) fn run(options: &HookOptions) -> Result<ExitCode, CommandFailure> {
    let agent = options.agent;
    let mut input = Vec::new();
    let most = MAX_PAYLOAD_BYTES as u64 + 1;
    let is_read = std::io::stdin().lock().take(most).read_to_end(&mut input).is_ok();
    let text = Some(&input).filter(|it| is_read && it.len() <= MAX_PAYLOAD_BYTES);
    let call = text.and_then(|it| HookCall::read(agent, &options.event, it));
    let Some(call) = call else {
        let name = agent.name();
        let what = format!("what came on standard input is not what {name} gives to its hooks");
        let next = format!("Let {name} run this; do not run it by hand.");
        return Err(CommandFailure::new(what, next));
    };
    if crate::follow::is_followed(agent.id(), call.own_session()) {
        // It is heard and asks through its own server.
        return Ok(ExitCode::SUCCESS);
    }
    let limit = call
        .refusal("AAEP did not get an answer in time. It was not run.")
        .map(|late| limit::TimeLimit::begin(Duration::from_secs(agent.gate_seconds()), late));
    let answer = match HookRun::new(options, &call).and_then(|mut run| run.answer()) {
        Ok(answer) => answer,
        Err(failure) => {
            let refusal = call.refusal(&format!("AAEP cannot ask the person: {failure}"));
            refusal.unwrap_or_else(|| {
                console::complain(&failure);
                HookAnswer::default()
            })
        }
    };
    // From here on the limit says nothing any more.
    let _said = limit.as_ref().map(limit::TimeLimit::end);
    tell_agent(&answer)
}

/// The name of this machine, for a hub that wants a token. Such a hub can have agents of several machines, and no two
/// agents may have one name.
pub(crate) fn machine_name(hub: &HubFlags) -> Option<String> {
    if !hub.has_token() {
        return None;
    }
    #[cfg(unix)]
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let name = std::env::var("COMPUTERNAME").unwrap_or_default();
    let name: String =
        name.chars().filter(|it| it.is_ascii_alphanumeric() || matches!(it, '-' | '.')).collect();
    Some(name).filter(|it| !it.is_empty())
}

/// Gives the answer to the agent.
fn tell_agent(answer: &HookAnswer) -> Result<ExitCode, CommandFailure> {
    if let Some(print) = &answer.print {
        tell(&print.to_string())?;
    }
    match &answer.refusal {
        Some(why) => {
            console::say(why);
            Ok(ExitCode::from(2))
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// One call of a hook.
struct HookRun<'r> {
    client: HubClient,
    call: &'r HookCall,
    policy: AskPolicy,
    table: RiskTable,
    project: Option<String>,
    machine: Option<String>,
    has_window: bool,
    later_hours: Option<u8>,
    memory: MemoryFile,
}

impl<'r> HookRun<'r> {
    fn new(options: &HookOptions, call: &'r HookCall) -> Result<Self, CommandFailure> {
        let project = options.agent.project_variable();
        let without_window = options.agent.without_window();
        Ok(HookRun {
            machine: machine_name(&options.hub),
            has_window: !without_window
                .is_some_and(|(name, value)| std::env::var(name).is_ok_and(|it| it == value)),
            later_hours: options.answer_later,
            client: options.hub.agent_client()?,
            call,
            policy: options.policy,
            table: kept::risk_table()?,
            project: project.and_then(|it| std::env::var(it).ok()),
            memory: MemoryFile::of_session(&call.session())?,
        })
    }

    /// Does what the call asks for, and returns what to print.
    fn answer(&mut self) -> Result<HookAnswer, CommandFailure> {
        let (plan, first_ask, is_reached) = self.memory.change(|memory| self.tell_hub(memory))?;
        if self.call.is_closing()
            && !self.memory.change(|memory| memory.has_left_open(now_unix_ms()))?
        {
            self.memory.remove();
        }
        if !is_reached {
            return Ok(plan.answer_without_hub.unwrap_or(plan.answer));
        }
        match (&plan.ask, first_ask) {
            (Some(ask), Some(first)) => self.ask(ask, &first),
            _ => Ok(plan.answer),
        }
    }

    /// Translates the call and publishes its events, while no other hook of this session does. Returns the plan, the
    /// first question, and whether the hub was reached.
    fn tell_hub(&self, memory: &mut AgentMemory) -> (HookPlan, Option<BridgeAsk>, bool) {
        let setup = HookSetup {
            table: &self.table,
            policy: self.policy,
            project: self.project.as_deref(),
            now_ms: now_unix_ms(),
            machine: self.machine.as_deref(),
            has_window: self.has_window,
            later_hours: self.later_hours,
        };
        let plan = self.call.handle(memory, &setup);
        // A question that was answered elsewhere is closed before anything is told of the answer.
        plan.withdrawn.iter().for_each(|token| self.withdraw(token));
        let first = plan.ask.as_ref().and_then(|ask| {
            let first = ask.questions.first()?;
            let earlier = ask.later.as_ref().and_then(|it| it.earlier.clone());
            let prepared = match earlier {
                Some(event) => BridgeAsk::again(event, first.is_confirmation),
                None => BridgeAsk::new(first.event.clone(), first.is_confirmation).ok()?,
            };
            memory.note_asked(&ask.about, prepared.reply_token());
            Some(prepared)
        });
        let is_reached = if plan.events.is_empty() {
            plan.answer_without_hub.is_none() || self.is_hub_there()
        } else {
            self.publish(plan.opening.as_ref(), &plan.events)
        };
        (plan, first, is_reached)
    }

    /// Publishes events. If the hub does not know their session, it begins it first. What the hub refuses otherwise
    /// is lost: the agent's work goes on.
    fn publish(&self, opening: Option<&Value>, events: &[Value]) -> bool {
        let Ok(answers) = publish_within(&self.client, events, HUB_TIMEOUT) else { return false };
        let is_unknown = |answer: &Result<Value, crate::agent::EventRefusal>| {
            answer.as_ref().is_err_and(|it| it.answer["error"] == "not_started")
        };
        let again: Vec<Value> = events
            .iter()
            .zip(&answers)
            .filter(|(_, answer)| is_unknown(answer))
            .map(|(event, _)| event.clone())
            .collect();
        match opening.filter(|_| !again.is_empty()) {
            None => true,
            Some(opening) => {
                let all: Vec<Value> = std::iter::once(opening.clone()).chain(again).collect();
                publish_within(&self.client, &all, HUB_TIMEOUT).is_ok()
            }
        }
    }

    fn is_hub_there(&self) -> bool {
        let request =
            HubRequest { method: "GET", path: "/healthz", body: None, timeout: HUB_TIMEOUT };
        self.client.send(&request).is_ok_and(|answer| answer.is_success())
    }

    fn withdraw(&self, token: &str) {
        let path = format!("/aaep/v1/asks/{token}");
        let request =
            HubRequest { method: "DELETE", path: &path, body: None, timeout: HUB_TIMEOUT };
        // If it cannot be withdrawn, it runs out by itself, and its answer counts for nothing here.
        let _ = self.client.send(&request);
    }

    /// Lets the agent end at a question that stays open.
    fn leave_open(
        &self,
        ask: &PlannedAsk,
        question: &BridgeAsk,
    ) -> Result<HookAnswer, CommandFailure> {
        self.memory.change(|memory| {
            if !memory.note_left_open(ask, question.event()) {
                return ask.not_counted();
            }
            let left = ask.left_open();
            // If this is not told, the question is heard all the same.
            self.publish(None, &left.events);
            left.answer
        })
    }

    /// Puts the questions one after the other, and waits.
    fn ask(&self, ask: &PlannedAsk, first: &BridgeAsk) -> Result<HookAnswer, CommandFailure> {
        // A session that nobody began yet begins with its question.
        let answer = match &ask.later {
            None => first.wait(&self.client),
            Some(_) => match first.wait_for(&self.client, LATER_WAIT) {
                Some(answer) => answer,
                None => return self.leave_open(ask, first),
            },
        };
        let mut answers = vec![answer];
        let mut token = first.reply_token().to_owned();
        for question in &ask.questions[1..] {
            if matches!(answers.last(), Some(AskAnswer::Nothing | AskAnswer::NobodyThere)) {
                break;
            }
            let next = BridgeAsk::new(question.event.clone(), question.is_confirmation)?;
            next.reply_token().clone_into(&mut token);
            self.memory.change(|memory| memory.note_asked(&ask.about, &token))?;
            answers.push(next.wait(&self.client));
        }
        let given = ask.answered(&answers);
        self.memory.change(|memory| {
            // What was answered in the agent's own window counts alone.
            let counts = memory.note_answered(ask, &token, &answers);
            let is_told = counts && (given.events.is_empty() || self.publish(None, &given.events));
            if is_told { given.answer.clone() } else { ask.not_counted() }
        })
    }
}
