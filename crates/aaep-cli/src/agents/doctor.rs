//! `aaep agents doctor`: what hinders each agent that is here from being heard, and from asking the person.

use std::fs;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use aaep_bridge::settings::SetupState;
use aaep_bridge::{Approver, AskPolicy, BridgedAgent};

use super::setup::AgentSetup;
use crate::console::CommandFailure;
use crate::english::examining as words;
use crate::http::{HubClient, HubRequest};
use crate::hubs::HubFlags;
use crate::keys::tell;

pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0  nothing hinders an agent that is set up
  1  something does; you are told what, and what to do
  2  it could not be done: wrong usage";

/// How long an agent may take to say its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(20);

/// How long the hub may take.
const HUB_TIMEOUT: Duration = Duration::from_secs(5);

/// What was found about one agent, or about the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finding {
    /// As it should be, or good to know.
    Fine(String),
    /// Something is wrong, with what to do.
    Wrong(String),
}

/// Runs the command.
pub(super) fn run(hub: &HubFlags) -> Result<ExitCode, CommandFailure> {
    let (mut is_any_here, mut is_any_set_up, mut wrong) = (false, false, 0_u64);
    for agent in BridgedAgent::ALL.iter().copied() {
        let setup = AgentSetup::of(agent)?;
        let version = version_of(agent);
        let state = setup.state();
        if version.is_none() && !setup.is_found() && matches!(state, Ok(SetupState::Absent)) {
            continue;
        }
        is_any_here = true;
        is_any_set_up |= matches!(state, Ok(SetupState::Complete(_) | SetupState::Different));
        let mut findings = vec![version_finding(agent, version.as_deref())];
        findings.extend(setup_findings(agent, &setup, state));
        for finding in findings {
            wrong += u64::from(say(agent.name(), &finding)?);
        }
    }
    if !is_any_here {
        tell(words::NOTHING_HERE)?;
    }
    if is_any_set_up {
        for finding in hub_findings(hub) {
            wrong += u64::from(say(words::HUB, &finding)?);
        }
    }
    tell(&words::summary(wrong))?;
    Ok(ExitCode::from(u8::from(wrong > 0)))
}

/// Says a finding. Returns whether something is wrong.
fn say(name: &str, finding: &Finding) -> Result<bool, CommandFailure> {
    let (Finding::Fine(text) | Finding::Wrong(text)) = finding;
    let is_wrong = matches!(finding, Finding::Wrong(_));
    tell(&words::line(name, text, is_wrong))?;
    Ok(is_wrong)
}

fn version_finding(agent: BridgedAgent, found: Option<&str>) -> Finding {
    let (_, recorded) = agent.program();
    Finding::Fine(match found {
        None => words::version_unknown(agent),
        Some(found) if found == recorded => words::version_is_recorded(found),
        Some(found) => words::version_differs(found, recorded),
    })
}

/// What its settings say.
fn setup_findings(
    agent: BridgedAgent,
    setup: &AgentSetup,
    state: Result<SetupState, CommandFailure>,
) -> Vec<Finding> {
    let policy = match state {
        Err(failure) => return vec![Finding::Wrong(failure.to_string())],
        Ok(SetupState::Absent) => return vec![Finding::Fine(words::not_set_up(agent))],
        Ok(SetupState::Different) => return vec![Finding::Wrong(words::runs_another(agent))],
        Ok(SetupState::Complete(policy)) => policy,
    };
    let hooks = match setup.is_untouched() {
        Ok(true) => Finding::Fine(words::hooks_are_ours(agent, policy)),
        Ok(false) => Finding::Wrong(words::hooks_were_changed(agent)),
        Err(failure) => Finding::Wrong(failure.to_string()),
    };
    let mut findings = vec![hooks, Finding::Fine(words::fails_closed(agent).to_owned())];
    if let Ok(Some(hours)) = setup.later_hours() {
        findings.push(Finding::Fine(words::asks_later(hours)));
    }
    let text = agent.approval_file().map(|it| fs::read_to_string(setup.home().join(it)));
    let approver = agent.approver(&text.and_then(Result::ok).unwrap_or_default());
    findings.extend(approval_finding(agent, approver, policy));
    findings
}

/// Whether somebody else than the person approves. With a policy that asks, the person is asked all the same.
fn approval_finding(agent: BridgedAgent, approver: Approver, policy: AskPolicy) -> Option<Finding> {
    let text = match approver {
        Approver::Person => return None,
        Approver::Unknown => return Some(Finding::Fine(words::approver_unknown(agent))),
        Approver::Model => words::model_approves(agent, policy),
        Approver::Nobody => words::nobody_approves(agent, policy),
    };
    let is_asked = policy != AskPolicy::Tell;
    Some(if is_asked { Finding::Fine(text) } else { Finding::Wrong(text) })
}

/// Whether the hub is there as the hooks see it, and whether somebody listens.
fn hub_findings(hub: &HubFlags) -> Vec<Finding> {
    let is_there = hub.agent_client().is_ok_and(|it| get(&it, "/healthz").is_some());
    if !is_there {
        return vec![Finding::Wrong(words::NO_HUB.to_owned())];
    }
    let metrics = hub.person_client().ok().and_then(|it| get(&it, "/metrics"));
    let listeners = metrics.as_deref().and_then(subscriptions);
    vec![
        Finding::Fine(words::HUB_IS_THERE.to_owned()),
        match listeners {
            None => Finding::Fine(words::LISTENERS_UNKNOWN.to_owned()),
            Some(0) => Finding::Wrong(words::NOBODY_LISTENS.to_owned()),
            Some(count) => Finding::Fine(words::listeners(count)),
        },
    ]
}

fn get(client: &HubClient, path: &str) -> Option<String> {
    let request = HubRequest { method: "GET", path, body: None, timeout: HUB_TIMEOUT };
    let answer = client.send(&request).ok().filter(super::super::http::HubAnswer::is_success)?;
    Some(String::from_utf8_lossy(&answer.body).into_owned())
}

/// The number of subscriptions, from the metrics of the hub.
fn subscriptions(metrics: &str) -> Option<u64> {
    let line = metrics.lines().find_map(|it| it.strip_prefix("aaep_subscriptions "))?;
    line.trim().parse().ok()
}

/// The version that the agent says, if its program can be found.
fn version_of(agent: BridgedAgent) -> Option<String> {
    let (program, _) = agent.program();
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let began = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if began.elapsed() > VERSION_TIMEOUT {
            let _ = child.kill();
            let _ = child.wait();
            return Some(words::SAYS_NO_VERSION.to_owned());
        }
        thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(version_in(&text).unwrap_or_else(|| words::SAYS_NO_VERSION.to_owned()))
}

/// The first word of a text that is a version.
fn version_in(text: &str) -> Option<String> {
    let words = text.split(|it: char| it.is_whitespace() || matches!(it, '/' | '(' | ')' | ','));
    let is_version = |word: &&str| {
        let numbers: Vec<&str> = word.split('.').collect();
        let is_number = |it: &&str| !it.is_empty() && it.chars().all(|it| it.is_ascii_digit());
        numbers.len() >= 3 && word.len() <= 32 && numbers.iter().all(is_number)
    };
    words.map(|it| it.trim_start_matches('v')).find(is_version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_agents_print() {
        for (text, version) in [
            ("2.1.328 (Claude Code)", Some("2.1.328")),
            ("codex-cli 0.169.0\n", Some("0.169.0")),
            ("GitHub Copilot CLI v1.0.102", Some("1.0.102")),
            ("Error: no such option", None),
            ("1.2", None),
        ] {
            assert_eq!(version_in(text).as_deref(), version, "{text}");
        }
    }

    #[test]
    fn the_page_names_the_versions_that_were_recorded() {
        let page = include_str!("../../../../docs/bridges.md");
        for agent in BridgedAgent::ALL {
            let row = page.lines().find(|it| it.starts_with(&format!("| [{}]", agent.name())));
            let (_, recorded) = agent.program();
            let is_there = row.is_some_and(|it| it.ends_with(&format!("| {recorded} |")));
            assert!(is_there, "{}: {row:?} does not end with {recorded}", agent.name());
        }
    }

    #[test]
    fn a_model_that_approves_is_wrong_only_if_nothing_else_asks() {
        for (approver, policy, is_wrong) in [
            (Approver::Model, AskPolicy::Tell, true),
            (Approver::Nobody, AskPolicy::Tell, true),
            (Approver::Model, AskPolicy::AskWhenRisky, false),
            (Approver::Nobody, AskPolicy::AskBeforeChanges, false),
        ] {
            let found = approval_finding(BridgedAgent::ClaudeCode, approver, policy);
            assert_eq!(matches!(found, Some(Finding::Wrong(_))), is_wrong, "{found:?}");
        }
        assert_eq!(approval_finding(BridgedAgent::Codex, Approver::Person, AskPolicy::Tell), None);
    }

    #[test]
    fn subscriptions_are_counted_from_the_metrics() {
        assert_eq!(subscriptions("# x\naaep_subscriptions 2\n"), Some(2));
        assert_eq!(subscriptions("aaep_subscriptions_total 2\n"), None);
    }
}
