//! `aaep emit`: publishes events to a hub, from a file, from standard input, or in short forms.
//!
//! Hooks of agents run it, so it is quick: it starts no runtime, and sends one request per event. `short` has the
//! short forms, `stream` publishes standard input while it arrives.

mod short;
mod stream;

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use aaep::{EventType, printable};
use clap::Args;
use serde_json::{Value, json};

use crate::agent::{EventRefusal, SpeakerFlags, publish};
use crate::console::{self, CommandFailure, ascii_json_line, name_of};
use crate::english::{emitting, failures};
use crate::http::HubClient;
use crate::hubs::HubFlags;
use crate::keys::tell;
use crate::split::{FoundPiece, MessageSplitter};
use short::{EmitCommand, PrintedId};

const EXIT_CODES: &str = "\
Exit codes:
  0  everything was published
  1  the hub refused something; standard error says what and why
  2  it could not be done: wrong usage, no hub, or a file that cannot be read";

const HELP: &str = "\
For example, in a script:
  AAEP_SESSION=$(aaep emit start \"Looking for old photos.\"); export AAEP_SESSION
  aaep emit tool search \"Searching for photos.\"
  aaep emit progress \"Half of the folders are searched.\" --percent 50
  aaep emit tool search --done \"Found 240.\"
  write-the-report | aaep emit stream
  aaep emit end \"Done.\"
An event in a file needs a type and its own fields; the hub fills in ids, times and the rest.
";

/// How many events of a file are sent in one request.
const MAX_EVENTS: usize = 64;

/// About how many bytes of events of a file are sent in one request.
const MAX_BYTES: usize = 256 * 1024;

/// What to publish.
#[derive(Debug, Args)]
#[command(after_help = format!("{HELP}{EXIT_CODES}"), subcommand_negates_reqs = true)]
pub(crate) struct EmitOptions {
    #[command(subcommand)]
    short: Option<EmitCommand>,
    /// A file with one event, an array of events, or one event on each line; - is standard input.
    #[arg(required = true, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    speaker: SpeakerFlags,
    #[command(flatten)]
    hub: HubFlags,
    /// Print the answers of the hub as JSON, one line for each event.
    #[arg(long, global = true)]
    json: bool,
}

/// Publishes events and reports the hub's answers.
pub(crate) fn run(arguments: &EmitOptions) -> Result<ExitCode, CommandFailure> {
    let client = arguments.hub.agent_client()?;
    let speaker = arguments.speaker.without_empty();
    let mut report = EmitReport { json: arguments.json, refused: 0 };
    match (&arguments.short, &arguments.file) {
        (Some(EmitCommand::Stream { text: None, output, .. }), None) => {
            stream::run(&client, &speaker, output.as_deref(), &mut report)?;
        }
        (Some(short), None) => {
            let answers = publish(&client, &short.events(&speaker)?)?;
            let named = |answer: Result<Value, EventRefusal>| {
                answer.map_err(|refusal| refusal.in_terms_of(&short.typed()))
            };
            report.tell(answers.into_iter().map(named).collect(), short.printed_id(), &[])?;
        }
        (None, Some(file)) => from_file(file, &speaker, &client, &mut report)?,
        _ => return Err(emitting::FILE_OR_SHORT_FORM.into()),
    }
    Ok(if report.refused == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn from_file(
    path: &Path,
    speaker: &SpeakerFlags,
    client: &HubClient,
    report: &mut EmitReport,
) -> Result<(), CommandFailure> {
    let unreadable =
        |error: io::Error| CommandFailure::of_file("read", path, &error, failures::CHECK_NAME);
    if path.as_os_str() == "-" {
        if io::stdin().is_terminal() {
            console::say(emitting::READING_EVENTS);
        }
        return from_stream(io::stdin(), 1, &|it| fill(it, speaker), client, report, &unreadable);
    }
    let file = File::open(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.is_dir() {
        return Err(failures::is_a_folder(&name_of(path)).into());
    }
    from_stream(file, MAX_EVENTS, &|it| fill(it, speaker), client, report, &unreadable)
}

/// Publishes events as they arrive, up to `at_a_time` in one request.
fn from_stream(
    source: impl Read,
    at_a_time: usize,
    filled: &impl Fn(Value) -> Value,
    client: &HubClient,
    report: &mut EmitReport,
    unreadable: &impl Fn(io::Error) -> CommandFailure,
) -> Result<(), CommandFailure> {
    let mut splitter = MessageSplitter::new(source);
    let mut found_any = false;
    while let Some(batch) = splitter.next().map_err(unreadable)? {
        let (mut lines, mut waiting, mut bytes) = (Vec::new(), Vec::new(), 0);
        for (line, found) in batch.pieces() {
            found_any = true;
            match event_of(&found) {
                Ok(event) => {
                    bytes += if let FoundPiece::Message(text) = found { text.len() } else { 0 };
                    lines.push(line);
                    waiting.push(filled(event));
                }
                Err(problem) => report.complain(line, &problem),
            }
            if waiting.len() >= at_a_time || bytes >= MAX_BYTES {
                report.tell(publish(client, &waiting)?, PrintedId::EventId, &lines)?;
                (lines, waiting, bytes) = (Vec::new(), Vec::new(), 0);
            }
        }
        if !waiting.is_empty() {
            report.tell(publish(client, &waiting)?, PrintedId::EventId, &lines)?;
        }
    }
    if found_any { Ok(()) } else { Err(emitting::NO_EVENT.into()) }
}

/// The event in this piece, or why it is not one.
fn event_of(found: &FoundPiece<'_>) -> Result<Value, String> {
    let text = match found {
        FoundPiece::Message(text) => text,
        FoundPiece::Fault(fault) => return Err((*fault).to_owned()),
    };
    let event: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let kind = event["type"].as_str().ok_or(emitting::NO_TYPE)?;
    // Recordings also contain handshakes and replies, which an agent may not publish.
    match EventType::parse(kind) {
        Ok(_) => Ok(event),
        Err(_) => Err(emitting::not_a_type(kind)),
    }
}

/// Adds the producer and the session to an event that lacks them.
fn fill(mut event: Value, speaker: &SpeakerFlags) -> Value {
    if event.get("producer").is_none() {
        event["producer"] = json!({ "agent_id": speaker.name() });
    }
    if let Some(session) = speaker.session.as_deref().filter(|_| event.get("session_id").is_none())
    {
        event["session_id"] = session.into();
    }
    event
}

/// Reports the hub's answers and counts the refusals.
struct EmitReport {
    json: bool,
    refused: u64,
}

impl EmitReport {
    /// Reports answers. `lines` are the lines of the events in their file, if there is one.
    fn tell(
        &mut self,
        answers: Vec<Result<Value, EventRefusal>>,
        printed_id: PrintedId,
        lines: &[u64],
    ) -> Result<(), CommandFailure> {
        for (at, answer) in answers.into_iter().enumerate() {
            let key = match printed_id {
                PrintedId::SessionId => Some("session_id"),
                PrintedId::EventId => Some("event_id"),
                PrintedId::Nothing => None,
            };
            match answer {
                Ok(answer) if self.json => tell(&ascii_json_line(&answer))?,
                Ok(answer) => {
                    if let Some(key) = key {
                        tell(&printable(answer[key].as_str().unwrap_or_default()))?;
                    }
                }
                Err(refusal) => {
                    self.refused += 1;
                    if self.json {
                        tell(&ascii_json_line(&refusal.answer))?;
                    }
                    let line = lines.get(at).copied();
                    console::say(&emitting::refused(line, &refusal.message));
                }
            }
        }
        Ok(())
    }

    fn complain(&mut self, line: u64, problem: &str) {
        self.refused += 1;
        let why = emitting::not_an_event(&printable(problem));
        console::say(&emitting::refused(Some(line), &why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speaker(session: Option<&str>) -> SpeakerFlags {
        let session = session.map(str::to_owned);
        SpeakerFlags {
            agent: Some("tidy".into()),
            project: None,
            session,
            language: Some("en".into()),
        }
    }

    #[test]
    fn what_is_no_event_is_named() {
        let problem = |text: &str| event_of(&FoundPiece::Message(text.as_bytes())).expect_err(text);
        let request = r#"{"type":"subscription.request"}"#;
        assert_eq!(problem(request), "subscription.request is not a type of event");
        assert_eq!(problem("{}"), "it has no type");
        assert_eq!(problem("[1]"), "it has no type");
        assert!(event_of(&FoundPiece::Message(b"{")).is_err());
        assert!(event_of(&FoundPiece::Message(br#"{"type":"lumen:lamp.lit"}"#)).is_ok());
    }

    #[test]
    fn what_an_event_says_itself_is_left_alone() {
        let own = json!({ "producer": { "agent_id": "other" }, "session_id": "sess_own" });
        assert_eq!(fill(own.clone(), &speaker(Some("sess_a1"))), own);
        let filled = fill(json!({}), &speaker(Some("sess_a1")));
        assert_eq!(filled["producer"]["agent_id"], "tidy");
        assert_eq!(filled["session_id"], "sess_a1");
        assert!(fill(json!({}), &speaker(None)).get("session_id").is_none());
    }
}
