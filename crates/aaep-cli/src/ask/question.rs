//! The ask as an event. It has ids of its own, so that it can be found again and withdrawn.

use aaep::printable;
use aaep::{ActionStakes, StatedRisk, StatedUndo};
use serde_json::{Value, json};

use super::{AskOptions, AskRisk};
use crate::agent::{SPEAKER_FLAGS, SpeakerFlags, fresh_id};
use crate::console::CommandFailure;
use crate::english::asking;

/// What the person typed for each field of the event, by JSON pointer.
pub(super) fn typed() -> Vec<(&'static str, &'static str)> {
    let own = [
        ("/action", asking::THE_QUESTION),
        ("/question", asking::THE_QUESTION),
        ("/consequence", "--consequence"),
        ("/risk_level", "--risk"),
        ("/irreversible", "--irreversible"),
        ("/timeout_seconds", "--timeout"),
        ("/extensions/agentvoice/max_timeout_seconds", "--max-timeout"),
        ("/default_decision", "--default"),
        ("/default_response", "--default"),
        ("/choices", "--choices"),
    ];
    [&own[..], &SPEAKER_FLAGS].concat()
}

/// The kind of answer that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerKind {
    /// Yes or no.
    Confirmation,
    /// A choice or free text.
    Clarification,
}

/// An ask that can be sent repeatedly.
#[derive(Debug, Clone)]
pub(super) struct PreparedAsk {
    pub(super) kind: AnswerKind,
    pub(super) event_id: String,
    pub(super) reply_token: String,
    pub(super) event: Value,
    /// Whether silence may consent to the action.
    pub(super) allows_default: bool,
    /// How long it stays open in seconds, unless the person asks for more time.
    pub(super) timeout_seconds: u64,
    /// The longest time it can stay open, in seconds.
    pub(super) longest_seconds: u64,
}

impl PreparedAsk {
    pub(super) fn new(
        arguments: &AskOptions,
        speaker: &SpeakerFlags,
    ) -> Result<Self, CommandFailure> {
        let kind = if arguments.choices.is_empty() && !arguments.freetext {
            AnswerKind::Confirmation
        } else {
            AnswerKind::Clarification
        };
        let event_id = fresh_id("evt_")?;
        let reply_token = fresh_id("rpl_")?;
        let (name, fields) = match kind {
            AnswerKind::Confirmation => ("awaiting.confirmation", confirmation(arguments)?),
            AnswerKind::Clarification => ("awaiting.clarification", clarification(arguments)?),
        };
        let mut event = speaker.event(name, fields);
        event["event_id"] = event_id.as_str().into();
        event["reply_token"] = reply_token.as_str().into();
        event["urgency"] = "critical".into();
        event["timeout_seconds"] = arguments.timeout.into();
        if let Some(longest) = arguments.max_timeout {
            event["@context"] = json!([aaep::CORE_CONTEXT, aaep::extension::CONTEXT]);
            event["extensions"]["agentvoice"]["max_timeout_seconds"] = longest.into();
        }
        let longest_seconds = arguments.max_timeout.unwrap_or(0).max(arguments.timeout);
        Ok(PreparedAsk {
            kind,
            event_id,
            reply_token,
            event,
            allows_default: stakes(arguments).allows_default(),
            timeout_seconds: arguments.timeout,
            longest_seconds,
        })
    }
}

/// The stakes of the action, as stated on the command line.
fn stakes(arguments: &AskOptions) -> ActionStakes {
    let risk = match arguments.risk {
        Some(AskRisk::Low) => StatedRisk::Low,
        Some(AskRisk::Medium) => StatedRisk::Medium,
        Some(AskRisk::High) => StatedRisk::High,
        None => StatedRisk::Unknown,
    };
    let undo = match (arguments.irreversible, arguments.reversible) {
        (true, _) => StatedUndo::Impossible,
        (false, true) => StatedUndo::Possible,
        (false, false) => StatedUndo::Unknown,
    };
    ActionStakes { risk, undo }
}

fn confirmation(arguments: &AskOptions) -> Result<Value, CommandFailure> {
    let default = match arguments.default.as_deref() {
        None | Some("reject") => "reject",
        Some("accept") if arguments.irreversible && arguments.risk != Some(AskRisk::Low) => {
            return Err(asking::IRREVERSIBLE_DEFAULT.into());
        }
        Some("accept") => "accept",
        Some(other) => return Err(asking::no_such_default(&printable(other)).into()),
    };
    let consequence = arguments.consequence.as_deref().unwrap_or(if arguments.irreversible {
        asking::CANNOT_BE_UNDONE
    } else {
        asking::ONLY_IF_ACCEPTED
    });
    let mut fields = json!({
        "action": arguments.question,
        "consequence": consequence,
        "default_decision": default,
    });
    if arguments.irreversible {
        fields["irreversible"] = true.into();
    }
    if arguments.reversible {
        fields["reversibility"] = "reversible".into();
    }
    if let Some(risk) = arguments.risk {
        fields["risk_level"] = match risk {
            AskRisk::Low => "low",
            AskRisk::Medium => "medium",
            AskRisk::High => "high",
        }
        .into();
    }
    Ok(fields)
}

fn clarification(arguments: &AskOptions) -> Result<Value, CommandFailure> {
    let has_stakes = arguments.irreversible || arguments.reversible || arguments.risk.is_some();
    if has_stakes || arguments.consequence.is_some() {
        return Err(asking::WORDS_ARE_NOT_CONSENT.into());
    }
    let mut fields = json!({ "question": arguments.question });
    if arguments.freetext {
        fields["accepted_response_kinds"] = json!(["freetext"]);
    } else {
        let choice = |it: &String| json!({ "value": it.trim(), "label": it.trim() });
        fields["accepted_response_kinds"] = json!(["multiple_choice"]);
        fields["choices"] = arguments.choices.iter().map(choice).collect();
    }
    if let Some(default) = &arguments.default {
        let mut choices = arguments.choices.iter().map(|it| it.trim());
        if !arguments.freetext && !choices.any(|it| it == default) {
            let listed = printable(&arguments.choices.join(", ")).into_owned();
            return Err(asking::default_is_not_a_choice(&printable(default), &listed).into());
        }
        fields["default_response"] = default.as_str().into();
    }
    Ok(fields)
}

/// Adds a full stop if the text does not end like a sentence.
pub(super) fn as_sentence(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '?', '!']) { text.to_owned() } else { format!("{text}.") }
}

#[cfg(test)]
pub(super) mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct AskCommandLine {
        #[command(flatten)]
        arguments: AskOptions,
    }

    pub(crate) fn question(line: &[&str]) -> Result<PreparedAsk, CommandFailure> {
        let words = ["ask"].iter().chain(line);
        let line = AskCommandLine::try_parse_from(words).expect("a command line");
        let speaker = SpeakerFlags {
            agent: None,
            project: None,
            session: Some("sess_a1".into()),
            language: Some("en".into()),
        };
        PreparedAsk::new(&line.arguments, &speaker)
    }

    /// Builds an ask for other tests.
    pub(crate) fn delete_it() -> PreparedAsk {
        question(&["Delete it?", "--irreversible", "--timeout", "1"]).expect("a question")
    }

    fn violations(question: &PreparedAsk) -> Vec<aaep::Code> {
        let mut event = question.event.clone();
        if event.get("@context").is_none() {
            event["@context"] = aaep::CORE_CONTEXT.into();
        }
        event["timestamp"] = "2026-11-02T06:20:00.000Z".into();
        let found = aaep::validate(event.to_string().as_bytes(), aaep::Mode::Strict);
        found.into_iter().map(|it| it.code).collect()
    }

    #[test]
    fn silence_means_no_unless_someone_says_otherwise() {
        for line in [
            &["Delete it?"][..],
            &["Delete it?", "--irreversible"],
            &["Delete it?", "--irreversible", "--risk", "high"],
            &["Delete it?", "--risk", "low", "--default", "reject"],
        ] {
            let question = question(line).expect("a question");
            assert_eq!(question.event["default_decision"], "reject", "{line:?}");
            assert_eq!(violations(&question), [], "{line:?}");
        }
        let lenient = question(&["Go on?", "--risk", "low", "--default", "accept"]).expect("one");
        assert_eq!(lenient.event["default_decision"], "accept");
        assert_eq!(violations(&lenient), []);
        assert!(question(&["Go on?", "--default", "yes"]).is_err());
    }

    #[test]
    fn silence_may_consent_only_to_what_states_low_risk_and_can_be_undone() {
        for (line, allows) in [
            (&["Go on?"][..], false),
            (&["Go on?", "--risk", "low"], false),
            (&["Go on?", "--reversible"], false),
            (&["Go on?", "--risk", "medium", "--reversible"], false),
            (&["Go on?", "--risk", "high", "--reversible"], false),
            (&["Go on?", "--risk", "low", "--irreversible"], false),
            (&["Go on?", "--risk", "low", "--reversible"], true),
        ] {
            let question = question(line).expect("a question");
            assert_eq!(question.allows_default, allows, "{line:?}");
            assert_eq!(violations(&question), [], "{line:?}");
        }
    }

    #[test]
    fn an_unsafe_default_is_refused_and_never_repaired() {
        for risk in [&[][..], &["--risk", "medium"], &["--risk", "high"]] {
            let line = [&["Delete it?", "--irreversible", "--default", "accept"], risk].concat();
            let refused = question(&line).expect_err("refused");
            assert!(refused.what().contains("--default accept"), "{}", refused.what());
        }
    }

    #[test]
    fn choices_and_free_words_make_a_clarification() {
        let which =
            question(&["Which?", "--choices", "red, blue", "--default", "red"]).expect("one");
        assert_eq!(which.kind, AnswerKind::Clarification);
        assert_eq!(which.event["choices"][1]["value"], "blue");
        assert_eq!(which.event["default_response"], "red");
        let refused = question(&["Which?", "--choices", "red,blue", "--default", "green"]);
        let refused = refused.expect_err("silence cannot choose what is not offered").to_string();
        assert!(refused.contains("green") && refused.contains("red, blue"), "{refused}");
        assert_eq!(violations(&which), []);
        let where_to = question(&["Where?", "--freetext"]).expect("one");
        assert_eq!(violations(&where_to), []);
        assert!(question(&["Which?", "--choices", "a,b", "--irreversible"]).is_err());
        assert!(question(&["Which?", "--choices", "a,b", "--reversible"]).is_err());
    }

    #[test]
    fn more_time_is_offered_in_our_extension() {
        let slow = question(&["Go on?", "--timeout", "60", "--max-timeout", "600"]).expect("one");
        assert_eq!(slow.event["extensions"]["agentvoice"]["max_timeout_seconds"], 600);
        assert_eq!(slow.longest_seconds, 600);
        assert_eq!(violations(&slow), []);
    }
}
