//! Rules by which the person lets some asks be answered automatically. Pure.
//!
//! The first rule that fits counts. Whatever a rule says, it never accepts an action that cannot be undone and has
//! more than low risk, or whose risk and reversibility nobody stated; and it never answers a clarification.

use aaep::event::human::Decision;
use aaep::extension::Delivery;
use aaep::{ActionStakes, Event, Payload, StatedRisk};
use aaep_subscriber::ConfirmationDetails;
use serde::{Deserialize, Serialize};

/// The most rules that are allowed.
pub(crate) const MAX_RULES: usize = 256;

/// The longest name of a rule, an agent or a tool, in characters.
const MAX_NAME_CHARS: usize = 128;

/// The longest id of a principal, in characters.
const MAX_PRINCIPAL_CHARS: usize = 1024;

/// The longest reason of a rule, in characters.
const MAX_WHY_CHARS: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "struct Rule")]
pub(crate) struct AnswerRule {
    /// Its name in the audit log and when it is told.
    pub(crate) name: String,
    /// Whose asks: the name of an agent, or the beginning of one and `*`. All if absent.
    pub(crate) agent: Option<String>,
    /// Which principal of the person's own hub must have published the ask, such as `local` or `token:tok_1`. Any if
    /// absent: another program may use the same agent name one day.
    pub(crate) principal: Option<String>,
    /// About which tool: its name, or the beginning of one and `*`. Any if absent.
    pub(crate) tool: Option<String>,
    /// The highest risk. If absent, it is low for a rule that accepts, and any for one that rejects.
    pub(crate) risk: Option<HighestRisk>,
    /// Only actions that can be undone, with or without effort.
    #[serde(default)]
    pub(crate) reversible: bool,
    /// The answer that the rule gives.
    pub(crate) answer: RuleAnswer,
    /// The reason, for readers of the reply.
    pub(crate) why: Option<String>,
}

/// The highest risk to which a rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", expecting = "enum AtMost")]
pub(crate) enum HighestRisk {
    Low,
    Medium,
    High,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", expecting = "enum Answer")]
pub(crate) enum RuleAnswer {
    Accept,
    Reject,
}

/// An answer given by a rule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AutomaticAnswer<'r> {
    pub(crate) decision: Decision,
    pub(crate) rule: &'r AnswerRule,
}

impl AutomaticAnswer<'_> {
    /// The details of the reply, which show everyone that no person made it.
    pub(crate) fn details(&self) -> ConfirmationDetails {
        ConfirmationDetails {
            decided_by: Some(aaep::reply::automatic(&self.rule.name)),
            decision_rationale: self.rule.why.clone(),
            ..ConfirmationDetails::default()
        }
    }
}

/// The rules' answer to an ask, if there is one. Otherwise the person is asked. Any hub can claim that a principal
/// published an ask, and only the person's own is trusted: `is_own_hub` says whether the ask comes from there.
pub(crate) fn automatic<'r>(
    rules: &'r [AnswerRule],
    event: &Event,
    is_own_hub: impl Fn() -> bool,
) -> Option<AutomaticAnswer<'r>> {
    let Payload::AwaitingConfirmation(asked) = &event.payload else { return None };
    let stakes = asked.stakes();
    let said = Delivery::of(event);
    let tool = said.as_ref().and_then(|it| it.tool.as_ref()).map(aaep::ToolName::as_str);
    let agent = &event.envelope.producer.agent_id;
    let publisher = said.as_ref().and_then(|it| it.publisher.as_deref());
    let is_theirs = |rule: &&AnswerRule| {
        let is_it = |principal| Some(principal) == publisher && is_own_hub();
        rule.principal.as_deref().is_none_or(is_it)
    };
    let rule = rules.iter().filter(is_theirs).find(|rule| rule.fits(agent, tool, stakes))?;
    let is_accept = |it: &String| it == Decision::Accept.as_str();
    let offers_accept =
        asked.allowed_replies.as_ref().is_none_or(|allowed| allowed.iter().any(is_accept));
    // The hub would not count any other accept by a rule either (ruling 35).
    let may_accept = stakes.allows_rule();
    let decision = match rule.answer {
        // A reject counts whatever replies the agent allows.
        RuleAnswer::Reject => Decision::Reject,
        RuleAnswer::Accept if offers_accept && may_accept => Decision::Accept,
        RuleAnswer::Accept => return None,
    };
    Some(AutomaticAnswer { decision, rule })
}

impl AnswerRule {
    fn fits(&self, agent: &str, tool: Option<&str>, stakes: ActionStakes) -> bool {
        let is_agent = self.agent.as_deref().is_none_or(|pattern| is_like(pattern, agent));
        let is_tool = match (&self.tool, tool) {
            (None, _) => true,
            (Some(pattern), Some(tool)) => is_like(pattern, tool),
            // The ask does not name its tool.
            (Some(_), None) => false,
        };
        let is_reversible = !self.reversible || stakes.undo.is_possible();
        is_agent && is_tool && self.is_risk(stakes.risk) && is_reversible
    }

    fn is_risk(&self, risk: StatedRisk) -> bool {
        let at_most = match (self.risk, self.answer) {
            (Some(at_most), _) => at_most,
            (None, RuleAnswer::Accept) => HighestRisk::Low,
            (None, RuleAnswer::Reject) => return true,
        };
        match risk {
            StatedRisk::Low => true,
            StatedRisk::Medium => matches!(at_most, HighestRisk::Medium | HighestRisk::High),
            StatedRisk::High => at_most == HighestRisk::High,
            StatedRisk::Unknown => false,
        }
    }

    /// The first problem of the rule, if there is one: the key, and a sentence with the next step.
    pub(crate) fn problem(&self) -> Option<(&'static str, String)> {
        let is_plain = |text: &str, most: usize| {
            !text.trim().is_empty() && text.chars().count() <= most && aaep::printable(text) == text
        };
        if !is_plain(&self.name, MAX_NAME_CHARS) {
            return Some((
                "name",
                format!("Give the rule a name of 1 to {MAX_NAME_CHARS} characters."),
            ));
        }
        if self.principal.as_ref().is_some_and(|it| !is_plain(it, MAX_PRINCIPAL_CHARS)) {
            return Some((
                "principal",
                "Write a principal as aaep audit show names it.".to_owned(),
            ));
        }
        for (key, pattern) in [("agent", &self.agent), ("tool", &self.tool)] {
            let Some(pattern) = pattern else { continue };
            let beginning = pattern.strip_suffix('*').unwrap_or(pattern);
            if !is_plain(pattern, MAX_NAME_CHARS) || beginning.contains('*') {
                return Some((
                    key,
                    "Write a name, or the beginning of one and * as its last character.".to_owned(),
                ));
            }
        }
        if self.why.as_ref().is_some_and(|why| !is_plain(why, MAX_WHY_CHARS)) {
            return Some((
                "why",
                format!("Write 1 to {MAX_WHY_CHARS} characters, or leave it out."),
            ));
        }
        self.problem_of_accept()
    }

    /// The problems that only a rule that accepts can have.
    fn problem_of_accept(&self) -> Option<(&'static str, String)> {
        if self.answer == RuleAnswer::Reject {
            return None;
        }
        if matches!(self.risk, Some(HighestRisk::Medium | HighestRisk::High)) && !self.reversible {
            let why = "A rule never accepts what cannot be undone and is of medium or high risk. \
                       Write risk = \"low\", or add reversible = true.";
            return Some(("risk", why.to_owned()));
        }
        let names = [&self.agent, &self.tool];
        if names.iter().all(|it| it.as_deref().is_none_or(|it| it == "*")) {
            let why = "A rule that accepts has to say whose questions or about which tool. \
                       Add agent or tool.";
            return Some(("answer", why.to_owned()));
        }
        None
    }
}

/// Whether a name equals the pattern, or begins as it does.
fn is_like(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::attention::asked::tests::{confirmation, read};

    fn rule(text: &str) -> AnswerRule {
        toml::from_str(&format!("name = \"tidy\"\n{text}")).expect("a rule")
    }

    /// The answer of a single rule to an ask with these fields.
    fn answer(text: &str, fields: &Value) -> Option<Decision> {
        automatic(&[rule(text)], &question(fields), || true).map(|it| it.decision)
    }

    fn question(fields: &Value) -> Event {
        confirmation("rpl_1", fields)
    }

    /// Fields of a harmless action.
    fn harmless() -> Value {
        json!({
            "risk_level": "low", "irreversible": false,
            "extensions": { "agentvoice": { "tool": "fs.move" } },
        })
    }

    fn with(mut fields: Value, key: &str, value: Value) -> Value {
        fields[key] = value;
        fields
    }

    const ACCEPT: &str = "agent = \"photos\"\nanswer = \"accept\"";
    /// The most permissive rule that a file could contain, without validation.
    const ACCEPT_ALL: &str = "risk = \"high\"\nanswer = \"accept\"";

    #[test]
    fn a_rule_answers_what_fits_it_and_nothing_else() {
        assert_eq!(answer(ACCEPT, &harmless()), Some(Decision::Accept));
        let other = with(harmless(), "producer", json!({ "agent_id": "mail" }));
        assert_eq!(answer(ACCEPT, &other), None);
        for (tool, fits) in
            [("fs.move", true), ("fs.*", true), ("fs", false), ("move", false), ("*", true)]
        {
            let text = format!("tool = \"{tool}\"\nanswer = \"accept\"");
            assert_eq!(answer(&text, &harmless()).is_some(), fits, "{tool}");
        }
        let toolless = with(harmless(), "extensions", json!({}));
        assert_eq!(answer("tool = \"*\"\nanswer = \"accept\"", &toolless), None);
    }

    #[test]
    fn a_rule_that_names_a_principal_answers_nobody_else_under_the_same_name() {
        let text = "agent = \"photos\"\nprincipal = \"token:tok_1\"\nanswer = \"accept\"";
        let by = |publisher: &str| {
            let said = json!({ "agentvoice": { "tool": "fs.move", "publisher": publisher } });
            with(harmless(), "extensions", said)
        };
        assert_eq!(answer(text, &by("token:tok_1")), Some(Decision::Accept));
        assert_eq!(answer(text, &by("token:tok_2")), None, "an impostor");
        assert_eq!(answer(text, &by("local")), None);
        assert_eq!(answer(text, &harmless()), None, "nobody said who asks");
    }

    #[test]
    fn a_rule_that_names_a_principal_believes_only_the_own_hub_of_the_person() {
        let said = json!({ "agentvoice": { "tool": "fs.move", "publisher": "token:tok_1" } });
        let asked = question(&with(harmless(), "extensions", said));
        for decision in ["accept", "reject"] {
            let named =
                format!("agent = \"photos\"\nprincipal = \"token:tok_1\"\nanswer = \"{decision}\"");
            let rules = [rule(&named)];
            assert!(automatic(&rules, &asked, || true).is_some());
            assert_eq!(automatic(&rules, &asked, || false), None, "any hub can say so");
        }
        assert!(automatic(&[rule(ACCEPT)], &asked, || false).is_some(), "it names nobody");
    }

    #[test]
    fn nothing_is_accepted_that_cannot_be_undone_and_is_more_than_low_risk() {
        for risk in ["medium", "high"] {
            for fields in [
                json!({ "risk_level": risk, "irreversible": true }),
                json!({ "risk_level": risk, "reversibility": "irreversible" }),
                json!({ "risk_level": risk, "reversibility": "irreversible", "irreversible": false }),
                json!({ "risk_level": risk, "reversibility": "reversible", "irreversible": true }),
            ] {
                assert_eq!(answer(ACCEPT_ALL, &fields), None, "{fields}");
            }
        }
        let low = json!({ "risk_level": "low", "irreversible": true });
        assert_eq!(answer(ACCEPT_ALL, &low), Some(Decision::Accept));
    }

    #[test]
    fn nothing_is_accepted_of_which_nobody_said_how_it_is() {
        for fields in [
            json!({}),
            json!({ "risk_level": "low" }),
            json!({ "irreversible": false }),
            json!({ "risk_level": "tiny", "irreversible": false }),
            json!({ "risk_level": "low", "reversibility": "somehow" }),
            json!({ "risk_level": "low", "reversibility": "somehow", "irreversible": false }),
        ] {
            assert_eq!(answer(ACCEPT_ALL, &fields), None, "{fields}");
        }
    }

    #[test]
    fn a_risk_that_is_higher_than_the_rule_is_asked() {
        let fields = |risk: &str| with(harmless(), "risk_level", risk.into());
        assert_eq!(answer(ACCEPT, &fields("medium")), None);
        let medium =
            "agent = \"photos\"\nrisk = \"medium\"\nreversible = true\nanswer = \"accept\"";
        assert_eq!(answer(medium, &fields("medium")), Some(Decision::Accept));
        assert_eq!(answer(medium, &fields("high")), None);
        let undone = json!({ "risk_level": "low", "irreversible": true });
        assert_eq!(answer(medium, &undone), None, "only what can be undone");
    }

    #[test]
    fn a_rule_that_rejects_fits_any_risk_unless_it_says_one() {
        for fields in [json!({}), json!({ "risk_level": "high", "irreversible": true }), harmless()]
        {
            assert_eq!(answer("answer = \"reject\"", &fields), Some(Decision::Reject), "{fields}");
        }
        let low = "risk = \"low\"\nanswer = \"reject\"";
        assert_eq!(answer(low, &json!({ "risk_level": "high" })), None);
        assert_eq!(answer(low, &json!({})), None);
    }

    #[test]
    fn the_first_rule_that_fits_counts_also_if_it_may_not_accept() {
        let rules = [rule("agent = \"photos\"\nanswer = \"reject\""), rule(ACCEPT)];
        let found = automatic(&rules, &question(&harmless()), || true).expect("an answer");
        assert_eq!(found.decision, Decision::Reject);
        let rules = [rule(ACCEPT_ALL), rule("answer = \"reject\"")];
        let dangerous = json!({ "risk_level": "high", "irreversible": true });
        assert_eq!(automatic(&rules, &question(&dangerous), || true), None, "the person is asked");
    }

    #[test]
    fn a_clarification_and_a_decision_that_is_not_offered_are_for_the_person() {
        let clarification = read(&json!({
            "@context": aaep::CORE_CONTEXT, "type": "aaep:agent.awaiting.clarification",
            "event_id": "evt_1", "session_id": "sess_1", "timestamp": "2026-11-02T06:20:09.118Z",
            "producer": { "agent_id": "photos" }, "urgency": "critical", "reply_token": "rpl_2",
            "question": "Which?", "timeout_seconds": 120, "accepted_response_kinds": ["yes_no"],
        }));
        let rules = [rule(ACCEPT), rule("answer = \"reject\"")];
        assert_eq!(automatic(&rules, &clarification, || true), None);
        let only_no = with(harmless(), "allowed_replies", json!(["reject"]));
        assert_eq!(answer(ACCEPT, &only_no), None);
        let only_yes = with(harmless(), "allowed_replies", json!(["accept"]));
        let reject = "answer = \"reject\"";
        assert_eq!(answer(reject, &only_yes), Some(Decision::Reject), "a no always counts");
        assert_eq!(automatic(&[], &question(&harmless()), || true), None);
    }

    #[test]
    fn an_automatic_reply_says_which_rule_made_it() {
        let rules = [rule(&format!("{ACCEPT}\nwhy = \"It can be undone.\""))];
        let question = question(&harmless());
        let details = automatic(&rules, &question, || true).expect("an answer").details();
        let decided_by = details.decided_by.expect("who");
        assert_eq!(decided_by, "automatic: tidy");
        assert!(aaep::reply::is_automatic(&decided_by));
        assert_eq!(details.decision_rationale.as_deref(), Some("It can be undone."));
    }

    #[test]
    fn a_rule_that_could_let_harm_happen_is_wrong() {
        assert_eq!(rule(ACCEPT).problem(), None);
        assert_eq!(rule("answer = \"reject\"").problem(), None);
        assert_eq!(rule("risk = \"high\"\nanswer = \"reject\"").problem(), None);
        for (text, key) in [
            (ACCEPT_ALL, "risk"),
            ("agent = \"photos\"\nrisk = \"medium\"\nanswer = \"accept\"", "risk"),
            ("agent = \"photos\"\nrisk = \"high\"\nanswer = \"accept\"", "risk"),
            ("answer = \"accept\"", "answer"),
            ("agent = \"*\"\nanswer = \"accept\"", "answer"),
            ("agent = \"*\"\ntool = \"*\"\nanswer = \"accept\"", "answer"),
            ("agent = \"\"\nanswer = \"accept\"", "agent"),
            ("tool = \"a*b\"\nanswer = \"accept\"", "tool"),
            ("tool = \"**\"\nanswer = \"reject\"", "tool"),
            ("agent = \"a\\u001b\"\nanswer = \"reject\"", "agent"),
            ("why = \"\"\nanswer = \"reject\"", "why"),
        ] {
            assert_eq!(rule(text).problem().map(|(key, _)| key), Some(key), "{text}");
        }
        let nameless = AnswerRule { name: " ".to_owned(), ..rule(ACCEPT) };
        assert_eq!(nameless.problem().map(|(key, _)| key), Some("name"));
    }

    #[test]
    fn a_rule_with_an_unknown_key_or_answer_is_not_read() {
        for text in [
            "answer = \"yes\"",
            "answer = \"accept\"\nriks = \"low\"",
            "agent = \"x\"",
            "risk = \"none\"\nanswer = \"reject\"",
        ] {
            let whole = format!("name = \"x\"\n{text}");
            assert!(toml::from_str::<AnswerRule>(&whole).is_err(), "{text}");
        }
    }
}
