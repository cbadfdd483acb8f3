//! The short forms of `aaep emit` and the events they make. The hub fills in ids, positions and times.

use clap::{Subcommand, ValueEnum};
use serde_json::{Value, json};

use crate::agent::{SPEAKER_FLAGS, SpeakerFlags, fresh_id};
use crate::console::CommandFailure;
use crate::english::emitting;
use crate::order::example;

use super::EXIT_CODES;

/// The id to print from an answer.
#[derive(Clone, Copy)]
pub(super) enum PrintedId {
    SessionId,
    EventId,
    /// A person who types a short form would hear 32 letters and digits after each.
    Nothing,
}

/// What an agent does, in short.
#[derive(Debug, Subcommand)]
pub(super) enum EmitCommand {
    /// Begin a session and print its id, for `AAEP_SESSION` or --session.
    #[command(after_help = example("aaep emit start 'Looking for old photos.'", EXIT_CODES))]
    Start {
        /// What the agent is going to do, in words for people.
        summary: String,
    },
    /// Say something; without a session, in a short session of its own.
    #[command(after_help = example("aaep emit say 'The build is done.'", EXIT_CODES))]
    Say {
        /// The words.
        text: String,
    },
    /// Say a text piece by piece: everything from standard input, or one piece.
    #[command(after_help = example("write-the-report | aaep emit stream", EXIT_CODES))]
    Stream {
        /// The next piece. Without it, standard input is read and published as it arrives.
        text: Option<String>,
        /// This piece ends the text.
        #[arg(long, requires = "text")]
        last: bool,
        /// An id for the text, in any form; only needed if several texts are streamed at the same time.
        #[arg(long, value_name = "ID")]
        output: Option<String>,
    },
    /// Say that a tool runs, or how it ended, with --done or --failed.
    #[command(after_help = example("aaep emit tool search 'Searching for photos.'", EXIT_CODES))]
    Tool {
        /// The name of the tool.
        tool: String,
        /// What the agent does with the tool, or the result, in words for people.
        #[arg(required_unless_present = "done")]
        summary: Option<String>,
        /// The tool succeeded.
        #[arg(long, conflicts_with = "failed")]
        done: bool,
        /// The tool failed.
        #[arg(long)]
        failed: bool,
        /// An id for the call, in any form; only needed if the same tool runs several times at once.
        #[arg(long, value_name = "ID")]
        call: Option<String>,
        /// What the tool does cannot be undone. Such a tool needs an accepted `aaep ask --irreversible` first.
        #[arg(long, conflicts_with_all = ["done", "failed"])]
        irreversible: bool,
        /// How much harm the tool could do.
        #[arg(long, value_name = "LEVEL", conflicts_with_all = ["done", "failed"])]
        risk: Option<ToolRisk>,
    },
    /// Say how much of a long task is done.
    #[command(after_help = example("aaep emit progress 'Half is searched.' --percent 50", EXIT_CODES))]
    Progress {
        /// How much is done, in words for people.
        summary: String,
        /// How much is done, in percent.
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(0..=100))]
        percent: Option<u8>,
        /// The number of the current step.
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
        step: Option<u32>,
        /// How many steps there are.
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
        steps: Option<u32>,
    },
    /// Say that the state of the agent changed.
    #[command(after_help = example("aaep emit state thinking", EXIT_CODES))]
    State {
        /// The new state: idle, thinking, `calling_tool`, `writing_output`, deciding, or one of your own.
        to: String,
        /// The previous state. Without it, the hub fills it in.
        #[arg(long, value_name = "STATE")]
        from: Option<String>,
    },
    /// End a session.
    #[command(after_help = example("aaep emit end 'Done.'", EXIT_CODES))]
    End {
        /// The result, in words for people.
        summary: String,
        /// The session ended in an error.
        #[arg(long)]
        failed: bool,
    },
}

/// How much harm a tool could do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ToolRisk {
    Low,
    Medium,
    High,
}

impl ToolRisk {
    fn word(self) -> &'static str {
        match self {
            ToolRisk::Low => "low",
            ToolRisk::Medium => "medium",
            ToolRisk::High => "high",
        }
    }
}

impl EmitCommand {
    pub(super) fn printed_id(&self) -> PrintedId {
        if matches!(self, EmitCommand::Start { .. }) {
            PrintedId::SessionId
        } else {
            PrintedId::Nothing
        }
    }

    /// What the person typed for each field of the events, by JSON pointer.
    pub(super) fn typed(&self) -> Vec<(&'static str, &'static str)> {
        let own: &[_] = match self {
            EmitCommand::Start { .. } | EmitCommand::End { .. } => {
                &[("/summary_normal", emitting::THE_SUMMARY)]
            }
            EmitCommand::Say { .. } => &[("/chunk", emitting::THE_TEXT)],
            EmitCommand::Stream { .. } => {
                &[("/chunk", emitting::THE_TEXT), ("/output_id", "--output")]
            }
            EmitCommand::Tool { .. } => &[
                ("/tool_call_id", "--call"),
                ("/tool", emitting::THE_TOOL),
                ("/summary_normal", emitting::THE_SUMMARY),
                ("/error_message", emitting::THE_SUMMARY),
                ("/risk_level", "--risk"),
                ("/irreversible", "--irreversible"),
            ],
            EmitCommand::Progress { .. } => &[
                ("/progress/percent", "--percent"),
                ("/progress/step", "--step"),
                ("/progress/total_steps", "--steps"),
                ("/progress", emitting::THE_SUMMARY),
                ("/summary_normal", emitting::THE_SUMMARY),
            ],
            EmitCommand::State { .. } => {
                &[("/to_state", emitting::THE_NEW_STATE), ("/from_state", "--from")]
            }
        };
        [own, &SPEAKER_FLAGS].concat()
    }

    pub(super) fn events(&self, speaker: &SpeakerFlags) -> Result<Vec<Value>, CommandFailure> {
        if speaker.session.is_none()
            && !matches!(self, EmitCommand::Start { .. } | EmitCommand::Say { .. })
        {
            return Err(emitting::NO_SESSION.into());
        }
        Ok(match self {
            EmitCommand::Say { text } if speaker.session.is_none() => {
                let (speaker, begins) = own_session(speaker)?;
                vec![begins, said(&speaker, text)?, ends(&speaker)]
            }
            EmitCommand::Say { text } => vec![said(speaker, text)?],
            one => vec![one.event(speaker)],
        })
    }

    /// The event of a form that makes only one.
    fn event(&self, speaker: &SpeakerFlags) -> Value {
        let words = |summary: &str| json!({ "summary_normal": summary });
        match self {
            EmitCommand::Start { summary } => speaker.event("session.started", words(summary)),
            EmitCommand::Say { text } => piece(speaker, None, text, true),
            EmitCommand::Stream { text, last, output } => {
                piece(speaker, output.as_deref(), text.as_deref().unwrap_or_default(), *last)
            }
            EmitCommand::Tool { .. } => self.tool_event(speaker),
            EmitCommand::Progress { summary, percent, step, steps } => {
                let mut progress = json!({});
                let fields = [("step", step), ("total_steps", steps)];
                for (name, value) in
                    fields.into_iter().filter_map(|(name, it)| Some((name, (*it)?)))
                {
                    progress[name] = value.into();
                }
                if let Some(percent) = percent {
                    progress["percent"] = (*percent).into();
                }
                if progress == json!({}) {
                    progress["description"] = summary.as_str().into();
                }
                let fields = json!({ "summary_normal": summary, "progress": progress });
                speaker.event("progress.updated", fields)
            }
            EmitCommand::State { to, from } => {
                let mut fields = json!({ "to_state": to });
                if let Some(from) = from {
                    fields["from_state"] = from.as_str().into();
                }
                speaker.event("state.changed", fields)
            }
            EmitCommand::End { summary, failed: false } => {
                speaker.event("session.completed", words(summary))
            }
            EmitCommand::End { summary, failed: true } => {
                let fields = json!({ "summary_normal": summary, "error_category": "unknown" });
                speaker.event("session.errored", fields)
            }
        }
    }

    fn tool_event(&self, speaker: &SpeakerFlags) -> Value {
        let EmitCommand::Tool { tool, summary, done, failed, call, irreversible, risk } = self
        else {
            return Value::Null;
        };
        let mut fields = json!({ "tool": tool });
        if let Some(summary) = summary {
            fields["summary_normal"] = summary.as_str().into();
        }
        if let Some(call) = call {
            fields["tool_call_id"] = call.as_str().into();
        }
        if *done || *failed {
            fields["status"] = if *failed { "error" } else { "success" }.into();
            if let Some(summary) = summary.as_ref().filter(|_| *failed) {
                fields["error_message"] = summary.as_str().into();
            }
            return speaker.event("tool.completed", fields);
        }
        if *irreversible {
            fields["irreversible"] = true.into();
        }
        if let Some(risk) = risk {
            fields["risk_level"] = risk.word().into();
        }
        speaker.event("tool.invoked", fields)
    }
}

/// Begins a session for a single message.
pub(super) fn own_session(speaker: &SpeakerFlags) -> Result<(SpeakerFlags, Value), CommandFailure> {
    let speaker = SpeakerFlags { session: Some(fresh_id("sess_")?), ..speaker.clone() };
    let begins = emitting::has_words(speaker.name());
    let started = speaker.event("session.started", json!({ "summary_normal": begins }));
    Ok((speaker, started))
}

/// Ends the session of a single message.
pub(super) fn ends(speaker: &SpeakerFlags) -> Value {
    speaker.event("session.completed", json!({ "summary_normal": emitting::END_OF_WORDS }))
}

/// A whole output in one chunk. It has its own id, so that it does not end an output that is being streamed.
fn said(speaker: &SpeakerFlags, text: &str) -> Result<Value, CommandFailure> {
    Ok(piece(speaker, Some(&fresh_id("out_")?), text, true))
}

/// A chunk of an output. The hub counts positions.
pub(super) fn piece(
    speaker: &SpeakerFlags,
    output: Option<&str>,
    text: &str,
    is_last: bool,
) -> Value {
    let mut fields = json!({ "chunk": text, "complete": is_last });
    if let Some(output) = output {
        fields["output_id"] = output.into();
    }
    speaker.event("output.streaming", fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speaker(session: Option<&str>) -> SpeakerFlags {
        let session = session.map(str::to_owned);
        SpeakerFlags {
            agent: Some("tidy".into()),
            session,
            language: Some("en".into()),
            project: None,
        }
    }

    /// The events as the hub would complete them, validated as a producer's.
    fn assert_valid(events: &[Value]) {
        for event in events {
            let mut event = event.clone();
            match event["type"].as_str() {
                Some("aaep:agent.output.streaming") => event["position"] = 0.into(),
                Some("aaep:agent.session.errored") => event["urgency"] = "critical".into(),
                _ => {}
            }
            event["@context"] = "https://aaep-protocol.org/context/v1".into();
            event["event_id"] = "evt_1".into();
            event["timestamp"] = "2026-11-02T06:20:00.000Z".into();
            if event.get("session_id").is_none() {
                event["session_id"] = "sess_1".into();
            }
            let violations = aaep::validate(event.to_string().as_bytes(), aaep::Mode::Strict);
            assert!(violations.is_empty(), "{event}: {violations:?}");
        }
    }

    fn tool(done: bool, failed: bool) -> EmitCommand {
        EmitCommand::Tool {
            tool: "shell".into(),
            summary: Some("Word.".into()),
            done,
            failed,
            call: Some("call_1".into()),
            irreversible: false,
            risk: Some(ToolRisk::Low).filter(|_| !done && !failed),
        }
    }

    #[test]
    fn every_short_form_makes_valid_events() {
        let word = || "Word.".to_owned();
        for short in [
            EmitCommand::Start { summary: word() },
            EmitCommand::Say { text: word() },
            EmitCommand::State { to: "thinking".into(), from: Some("idle".into()) },
            EmitCommand::Stream { text: Some(word()), last: false, output: Some("out_1".into()) },
            tool(false, false),
            tool(true, false),
            tool(false, true),
            EmitCommand::Progress { summary: word(), percent: None, step: None, steps: None },
            EmitCommand::Progress {
                summary: word(),
                percent: Some(50),
                step: Some(1),
                steps: Some(2),
            },
            EmitCommand::End { summary: word(), failed: false },
            EmitCommand::End { summary: word(), failed: true },
        ] {
            let events = short.events(&speaker(Some("sess_a1"))).expect("events");
            assert_eq!(events.len(), 1, "{short:?}");
            assert_valid(&events);
        }
    }

    #[test]
    fn words_without_a_session_get_one_that_begins_and_ends() {
        let short = EmitCommand::Say { text: "The build is done.".into() };
        let events = short.events(&speaker(None)).expect("events");
        assert_valid(&events);
        let sessions: Vec<_> = events.iter().map(|it| it["session_id"].clone()).collect();
        assert!(sessions[0].is_string() && sessions.iter().all(|it| *it == sessions[0]));
        assert_eq!(events[1]["chunk"], "The build is done.");
        assert_eq!(events[2]["type"], "aaep:agent.session.completed");
    }

    #[test]
    fn what_needs_a_session_says_so() {
        let short = EmitCommand::End { summary: "Done.".into(), failed: false };
        let failure = short.events(&speaker(None)).expect_err("no session");
        assert!(failure.to_string().contains("aaep emit start"), "{failure}");
    }
}
