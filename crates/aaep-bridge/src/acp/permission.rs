//! What an agent asks the person before it acts: the options that it offers, and which of them an answer means.

use serde_json::{Value, json};

use super::tool_call::AcpToolCall;
use crate::event::AgentVoice;
use crate::gate::AskAnswer;
use crate::proxy_ask::ProxyAskNumber;
use crate::risk::{AgentAction, RiskVerdict};

/// The longest question, in characters. A longer one cannot be put whole, so it is not put.
pub(super) const MAX_QUESTION_CHARS: usize = 15_000;

/// How long the person has, and how long at most if they ask for more time.
const TIMEOUT_SECONDS: u64 = 600;
const MAX_TIMEOUT_SECONDS: u64 = 3000;

/// The most options of one request, and the longest name and id of one.
const MAX_OPTIONS: usize = 32;
const MAX_NAME_CHARS: usize = 200;
const MAX_OPTION_ID_CHARS: usize = 256;

/// One option of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PermissionOption {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) kind: String,
}

impl PermissionOption {
    pub(super) fn allows(&self) -> bool {
        self.kind.starts_with("allow_")
    }

    pub(super) fn rejects(&self) -> bool {
        self.kind.starts_with("reject_")
    }
}

/// The options of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PermissionOptions(pub(super) Vec<PermissionOption>);

impl PermissionOptions {
    /// Reads the options. `None` if not every one of them can be put.
    pub(super) fn read(options: &Value) -> Option<Self> {
        let listed = options.as_array().filter(|it| (1..=MAX_OPTIONS).contains(&it.len()))?;
        let mut read: Vec<PermissionOption> = Vec::new();
        for option in listed {
            let id = option["optionId"]
                .as_str()
                .filter(|it| !it.trim().is_empty() && it.chars().count() <= MAX_OPTION_ID_CHARS)?;
            let name = option["name"].as_str().unwrap_or(id).trim();
            let name = if name.is_empty() { id } else { name };
            if name.chars().count() > MAX_NAME_CHARS || read.iter().any(|it| it.id == id) {
                return None;
            }
            let kind = option["kind"].as_str().unwrap_or_default().chars().take(40).collect();
            read.push(PermissionOption { id: id.to_owned(), name: name.to_owned(), kind });
        }
        Some(PermissionOptions(read))
    }

    pub(super) fn find(&self, id: &str) -> Option<&PermissionOption> {
        self.0.iter().find(|it| it.id == id)
    }

    /// The only option of a kind.
    pub(super) fn only(&self, kind: &str) -> Option<&PermissionOption> {
        let mut found = self.0.iter().filter(|it| it.kind == kind);
        found.next().filter(|_| found.next().is_none())
    }

    /// The options that yes and no mean, if each can mean only one.
    fn yes_and_no(&self) -> Option<(&PermissionOption, &PermissionOption)> {
        Some((self.only("allow_once")?, self.only("reject_once")?))
    }

    /// The option that an answer means. `None` if it means none exactly.
    pub(super) fn meant(&self, answer: &AskAnswer) -> Option<&PermissionOption> {
        match (answer, self.yes_and_no()) {
            (AskAnswer::Accepted, Some((yes, _))) => Some(yes),
            (AskAnswer::Rejected, Some((_, no))) => Some(no),
            (AskAnswer::Words(words), None) => self.find(words),
            _ => None,
        }
    }

    /// The label of each option: its name, and its id where names repeat.
    pub(super) fn choices(&self) -> Vec<Value> {
        let is_repeated =
            |name: &str| self.0.iter().filter(|it| it.name.eq_ignore_ascii_case(name)).count() > 1;
        let label = |it: &PermissionOption| {
            if is_repeated(&it.name) { format!("{} ({})", it.name, it.id) } else { it.name.clone() }
        };
        self.0.iter().map(|it| json!({ "value": it.id, "label": label(it) })).collect()
    }
}

/// A permission request that the agent was not answered yet.
#[derive(Debug, Clone)]
pub(super) struct OpenPermission {
    /// The id of the request, as the agent wrote it.
    pub(super) id: Value,
    pub(super) session: String,
    /// The id of the tool call, as the agent wrote it.
    pub(super) call: String,
    pub(super) options: PermissionOptions,
    /// The question at the hub, while it can be answered there.
    pub(super) ask: Option<ProxyAskNumber>,
    /// The menu in the chat.
    pub(super) menu: Option<ProxyAskNumber>,
    /// What the person was shown.
    pub(super) shown: Vec<AgentAction>,
    pub(super) verdict: RiskVerdict,
    pub(super) digest: String,
}

/// The question for the person, and whether it asks for consent rather than for a choice. `None` if it cannot be put
/// whole.
pub(super) fn question(
    voice: &AgentVoice,
    call: &AcpToolCall,
    options: &PermissionOptions,
    verdict: &RiskVerdict,
    project: &str,
) -> Option<(Value, bool)> {
    let action = call.question(project).filter(|it| it.chars().count() <= MAX_QUESTION_CHARS)?;
    let digest = Some(call.digest()).filter(|it| !it.is_empty())?;
    let mut extension = json!({
        "tool": call.tool_name().as_str(),
        "action_digest": digest,
        "max_timeout_seconds": MAX_TIMEOUT_SECONDS,
    });
    if let Some((yes, no)) = options.yes_and_no() {
        let means = format!("Yes means “{}”, and no means “{}”.", yes.name, no.name);
        let mut fields = json!({
            "action": action,
            "consequence": format!("{verdict} {means}"),
            "risk_level": verdict.level(),
            "timeout_seconds": TIMEOUT_SECONDS,
            "default_decision": "reject",
        });
        if verdict.cannot_be_undone {
            fields["irreversible"] = true.into();
        }
        // The editor asks as well, and silence here decides nothing.
        extension["asked_elsewhere"] = true.into();
        return Some((voice.extended("awaiting.confirmation", fields, extension), true));
    }
    let choices = options.choices();
    if choices.len() < 2 {
        return None;
    }
    let undo = if verdict.cannot_be_undone { " It cannot be undone." } else { "" };
    let fields = json!({
        "question": format!("May it do this? {action} {verdict}{undo}"),
        "timeout_seconds": TIMEOUT_SECONDS,
        "accepted_response_kinds": ["multiple_choice"],
        "choices": choices,
    });
    let extension = json!({ "max_timeout_seconds": MAX_TIMEOUT_SECONDS });
    Some((voice.extended("awaiting.clarification", fields, extension), false))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(list: &[(&str, &str, &str)]) -> PermissionOptions {
        let listed = list
            .iter()
            .map(|(id, name, kind)| json!({ "optionId": id, "name": name, "kind": kind }));
        PermissionOptions::read(&listed.collect()).expect("options")
    }

    fn meant(options: &PermissionOptions, answer: &AskAnswer) -> Option<String> {
        options.meant(answer).map(|it| it.id.clone())
    }

    #[test]
    fn yes_and_no_mean_once_and_never_always() {
        let plain = options(&[
            ("a", "Allow for this session", "allow_always"),
            ("b", "Allow", "allow_once"),
            ("c", "Reject", "reject_once"),
            ("d", "Never", "reject_always"),
        ]);
        assert_eq!(meant(&plain, &AskAnswer::Accepted).as_deref(), Some("b"));
        assert_eq!(meant(&plain, &AskAnswer::Rejected).as_deref(), Some("c"));
        assert_eq!(meant(&plain, &AskAnswer::Words("a".to_owned())), None);
        assert_eq!(meant(&plain, &AskAnswer::Nothing), None);
    }

    #[test]
    fn two_options_of_a_kind_are_chosen_by_their_id_alone() {
        let two = options(&[
            ("a", "Allow", "allow_once"),
            ("b", "Allow and switch", "allow_once"),
            ("c", "Reject", "reject_once"),
        ]);
        assert_eq!(meant(&two, &AskAnswer::Accepted), None);
        assert_eq!(meant(&two, &AskAnswer::Rejected), None);
        assert_eq!(meant(&two, &AskAnswer::Words("b".to_owned())).as_deref(), Some("b"));
        for words in ["Allow", "yes", "B", "", " b"] {
            assert_eq!(meant(&two, &AskAnswer::Words(words.to_owned())), None, "{words}");
        }
    }

    #[test]
    fn options_that_cannot_be_told_apart_are_not_put() {
        let twice = json!([{ "optionId": "a", "name": "A" }, { "optionId": "a", "name": "B" }]);
        assert_eq!(PermissionOptions::read(&twice), None);
        for strange in [json!(null), json!([]), json!([{}]), json!([{ "optionId": " " }])] {
            assert_eq!(PermissionOptions::read(&strange), None, "{strange}");
        }
        let alike = options(&[("a", "Allow", "allow_once"), ("b", "allow", "allow_once")]);
        assert_eq!(alike.choices()[1], json!({ "value": "b", "label": "allow (b)" }));
    }
}
