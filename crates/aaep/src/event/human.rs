//! Events that need a person: asks that block, and handing over (§4.4).

use serde_json::{Value as Json, json};

use crate::event::action::RiskLevel;
use crate::event::payload;
use crate::event::{ActionStakes, DAY_S, LONG, SHORT, StatedRisk, StatedUndo};
use crate::form::{ReplyToken, Uri};
use crate::object::{DeclaredObject, object, values};
use crate::read::{ANY, MessageReader, Object, between};
use crate::violation::Code;
use crate::visible::has_something_visible;

values! {
    /// What may be decided about an action (§6.3.1). Never guessed at.
    closed Decision {
        /// Go ahead.
        Accept = "accept",
        /// Do not.
        Reject = "reject",
    }
}

values! {
    /// How well an action can be undone (§4.4.1).
    open Reversibility {
        /// Easily.
        Reversible = "reversible",
        /// With some trouble.
        ReversibleWithEffort = "reversible_with_effort",
        /// Not at all.
        Irreversible = "irreversible",
    }
}

payload! {
    /// The agent is blocked until a person consents to an action, or a safe default applies. Critical.
    AwaitingConfirmation in "4.4.1", check check_confirmation, also safe_default_schema {
        /// What will be done, in a sentence.
        required action: String = between(1, LONG) => words;
        /// What follows from it, in a sentence.
        required consequence: String = between(1, LONG) => words;
        /// Ties the reply to this question. Opaque, single use, no credential.
        required reply_token: ReplyToken, in "6.2.1";
        /// After how many seconds the default decision applies.
        required timeout_seconds: u64 = between(1, DAY_S);
        /// What silence means. An irreversible action whose risk is not stated to be low needs reject.
        required default_decision: Decision, in "6.4.1";
        /// The question in a few words.
        optional summary_terse: String = between(1, SHORT) => words;
        /// The action and its consequence in a sentence or two.
        optional summary_normal: String = between(1, LONG) => words;
        /// The question with everything that is affected.
        optional summary_detailed: String = between(1, LONG) => words;
        /// How much harm the action could do.
        optional risk_level: RiskLevel;
        /// Whether the action cannot be undone.
        optional irreversible: bool;
        /// How well the action can be undone; of the two, the stricter field counts.
        optional reversibility: Reversibility;
        /// The decisions that are allowed; accept and reject if absent.
        optional allowed_replies: Vec<String> = ANY.items(1, 32).unique();
        /// More about the action that may be shown to the person.
        optional extra_context: Object;
    }
}

type ConfirmationParts = <AwaitingConfirmation as DeclaredObject>::Parts;

fn check_confirmation(parts: &ConfirmationParts, reader: &mut MessageReader<'_>) {
    check_visible("action", parts.action.as_deref(), reader);
    check_visible("consequence", parts.consequence.as_deref(), reader);
    check_default(parts, reader);
}

/// Nobody can consent to an action, or answer an ask, whose text has nothing to see or hear.
fn check_visible(field: &'static str, text: Option<&str>, reader: &mut MessageReader<'_>) {
    if text.is_some_and(|text| !text.is_empty() && !has_something_visible(text)) {
        let problem = "There is nothing in the text that can be seen or heard.";
        reader.tolerable_at(Code::TooShort, Some(field), problem.to_owned());
    }
}

/// §6.4.1 with ruling 16: silence must not let an irreversible action happen.
fn check_default(parts: &ConfirmationParts, reader: &mut MessageReader<'_>) {
    if parts.default_decision != Some(Decision::Accept) {
        return;
    }
    let reversibility = parts.reversibility.as_ref();
    let stakes = ActionStakes::stated(parts.risk_level.as_ref(), reversibility, parts.irreversible);
    let field = Some("default_decision");
    if stakes.undo == StatedUndo::Impossible && stakes.risk != StatedRisk::Low {
        let problem = "Silence would accept an irreversible action whose risk is not low.";
        reader.tolerable_at(Code::UnsafeDefault, field, problem.to_owned());
    } else if stakes.needs_accept() {
        let problem = "Silence would accept an action that is irreversible or of high risk.";
        reader.note_at(Code::RiskyDefault, field, problem.to_owned());
    }
}

fn safe_default_schema() -> Json {
    json!({
        "if": {
            "anyOf": [
                { "properties": { "irreversible": { "const": true } }, "required": ["irreversible"] },
                { "properties": { "reversibility": { "const": "irreversible" } }, "required": ["reversibility"] },
            ],
            "not": { "properties": { "risk_level": { "const": "low" } }, "required": ["risk_level"] },
        },
        "then": { "properties": { "default_decision": { "const": "reject" } } },
    })
}

values! {
    /// Which kinds of answer an ask allows (§4.4.2).
    open ResponseKind {
        /// Any text.
        Freetext = "freetext",
        /// True or false.
        YesNo = "yes_no",
        /// One of the choices.
        MultipleChoice = "multiple_choice",
        /// A number.
        Numeric = "numeric",
    }
}

object! {
    /// One answer to choose.
    Choice in "4.4.2", others Refused {
        /// What is sent back when this is chosen.
        required value: String = between(1, 256);
        /// What the person is told.
        required label: String = between(1, 1024);
    }
}

payload! {
    /// The agent is blocked until a person answers a question. Critical.
    AwaitingClarification in "4.4.2", check check_clarification, also choices_schema {
        /// The question, clear without further context.
        required question: String = between(1, LONG) => words;
        /// Ties the reply to this question. Opaque, single use, no credential.
        required reply_token: ReplyToken, in "6.2.1";
        /// After how many seconds the agent goes on without an answer.
        required timeout_seconds: u64 = between(1, DAY_S);
        /// The question in a few words.
        optional summary_terse: String = between(1, SHORT) => words;
        /// The question in a sentence or two.
        optional summary_normal: String = between(1, LONG) => words;
        /// The question, why it is asked and what depends on it.
        optional summary_detailed: String = between(1, LONG) => words;
        /// The kinds of answer that the agent understands.
        optional accepted_response_kinds: Vec<ResponseKind> = ANY.items(1, 4).unique();
        /// The answers to choose from; required for `multiple_choice`.
        optional choices: Vec<Choice> = ANY.items(2, 32).unique();
        /// Why the agent needs to know.
        optional context: String = between(1, SHORT) => words;
        /// What the agent assumes when nobody answers.
        optional default_response: String = between(0, SHORT);
    }
}

type ClarificationParts = <AwaitingClarification as DeclaredObject>::Parts;

fn check_clarification(parts: &ClarificationParts, reader: &mut MessageReader<'_>) {
    check_visible("question", parts.question.as_deref(), reader);
    for choice in parts.choices.iter().flatten() {
        check_visible("choices", Some(&choice.label), reader);
    }
    check_choices(parts, reader);
}

fn check_choices(parts: &ClarificationParts, reader: &mut MessageReader<'_>) {
    let wants = parts
        .accepted_response_kinds
        .as_ref()
        .is_some_and(|kinds| kinds.contains(&ResponseKind::MultipleChoice));
    if wants && !AwaitingClarification::has(parts, "choices") {
        let problem = "The question is multiple_choice and has no choices.".to_owned();
        reader.tolerable_at(Code::MissingChoices, Some("choices"), problem);
    }
}

fn choices_schema() -> Json {
    json!({
        "if": {
            "properties": { "accepted_response_kinds": { "contains": { "const": "multiple_choice" } } },
            "required": ["accepted_response_kinds"],
        },
        "then": { "required": ["choices"] },
    })
}

values! {
    /// Who should take over (§4.4.3).
    open TargetKind {
        /// A person.
        Human = "human",
        /// An agent that knows more about it.
        SpecialistAgent = "specialist_agent",
        /// Whoever is next in a queue.
        EscalationQueue = "escalation_queue",
    }
}

values! {
    /// How soon someone should take over (§4.4.3).
    open HandoffUrgency {
        /// It can wait.
        Low = "low",
        /// Soon.
        Medium = "medium",
        /// Now.
        High = "high",
    }
}

payload! {
    /// The agent asks a person or another agent to take over. Critical.
    HandoffRequested in "4.4.3" {
        /// Why the agent cannot go on.
        required reason: String = between(1, LONG) => words;
        /// Who should take over.
        required target_kind: TargetKind;
        /// Where exactly it should go.
        optional target_uri: Uri;
        /// What the one who takes over needs to know.
        optional packaged_context: Object;
        /// How soon someone should take over.
        optional urgency_for_handoff: HandoffUrgency;
        /// The handover in a few words.
        optional summary_terse: String = between(1, SHORT) => words;
        /// The handover in a sentence.
        optional summary_normal: String = between(1, LONG) => words;
        /// The handover with everything worth knowing.
        optional summary_detailed: String = between(1, LONG) => words;
    }
}
