//! What the commands that speak as an agent share: the flags that name the agent, and the events it sends.
//!
//! Events are built here as JSON, without the fields that the hub fills in. The hub alone decides whether an event is
//! valid.

use std::time::Duration;

use aaep::printable;
use clap::Args;
use serde_json::{Value, json};

use crate::console::CommandFailure;
use crate::english::failures;
use crate::http::{HubAnswer, HubClient, HubRequest, NoAnswer};

/// How long the hub may take to store an event durably.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(30);

/// Who speaks, and in which session.
#[derive(Debug, Clone, Args)]
pub(crate) struct SpeakerFlags {
    /// The name of the agent that speaks, as people hear it.
    #[arg(long, value_name = "NAME", env = "AAEP_AGENT", global = true)]
    pub(crate) agent: Option<String>,
    /// Where the agent works, as people hear it after its name, such as work/shop.
    #[arg(long, value_name = "PLACE", env = "AAEP_PROJECT", global = true)]
    pub(crate) project: Option<String>,
    /// The session that this belongs to, as `aaep emit start` printed it.
    #[arg(long, value_name = "ID", env = "AAEP_SESSION", global = true)]
    pub(crate) session: Option<String>,
    /// The language of the words, such as en-GB, so that the right voice can speak them.
    #[arg(long, value_name = "TAG", env = "AAEP_LANGUAGE", global = true)]
    pub(crate) language: Option<String>,
}

impl SpeakerFlags {
    /// Drops empty values: a script that failed to begin a session sets an empty variable.
    pub(crate) fn without_empty(&self) -> Self {
        let filled = |text: &Option<String>| text.clone().filter(|it| !it.trim().is_empty());
        SpeakerFlags {
            agent: filled(&self.agent),
            project: filled(&self.project),
            session: filled(&self.session),
            language: filled(&self.language),
        }
    }

    /// The agent's name, or the name for an agent that gives none.
    pub(crate) fn name(&self) -> &str {
        self.agent.as_deref().unwrap_or("command-line")
    }

    /// Builds an event of this speaker from the type after `aaep:agent.` and its own fields.
    pub(crate) fn event(&self, name: &str, fields: Value) -> Value {
        let mut event = json!({
            "type": format!("aaep:agent.{name}"),
            "producer": { "agent_id": self.name() },
        });
        if let Some(session) = &self.session {
            event["session_id"] = session.as_str().into();
        }
        if let Some(language) = &self.language {
            event["localization_hints"] = json!({ "primary_language": language });
        }
        if let Value::Object(fields) = fields {
            for (key, value) in fields {
                event[key] = value;
            }
        }
        if let Some(project) = &self.project {
            event["@context"] = json!([aaep::CORE_CONTEXT, aaep::extension::CONTEXT]);
            event["extensions"][aaep::extension::PREFIX]["project"] = project.as_str().into();
        }
        event
    }
}

/// An id that nobody can guess: the prefix and 32 hexadecimal digits.
pub(crate) fn fresh_id(prefix: &str) -> Result<String, CommandFailure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| failures::no_random_numbers(&error))?;
    Ok(format!("{prefix}{:032x}", u128::from_be_bytes(bytes)))
}

/// An event that the hub refused, in the hub's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventRefusal {
    /// The hub's message, safe to print on a terminal.
    pub(crate) message: String,
    /// The hub's whole answer, for machines.
    pub(crate) answer: Value,
}

impl EventRefusal {
    /// Reads an error of the hub, with every violation of the message.
    fn of(answer: Value) -> Self {
        EventRefusal::named(answer, &[])
    }

    /// Does the same, but names the flag or word that the person typed instead of the JSON pointer of each field.
    fn named(answer: Value, typed: &[(&str, &str)]) -> Self {
        let mut message = sentence(&answer);
        let is_about_session =
            answer["error"].as_str().is_some_and(|it| SESSION_ERRORS.contains(&it));
        if let (Some(flag), true) = (name_of_field("/session_id", typed), is_about_session) {
            message = format!("{flag}: {message}");
        }
        for violation in answer["violations"].as_array().into_iter().flatten() {
            let part = |key: &str| violation[key].as_str().unwrap_or_default();
            let place = name_of_field(part("pointer"), typed).unwrap_or(part("pointer"));
            message.extend(["\n  ", &*printable(place), ": ", &*printable(part("message"))]);
        }
        EventRefusal { message, answer }
    }

    /// Replaces the fields of the event by the flags and words that the person typed.
    pub(crate) fn in_terms_of(self, typed: &[(&str, &str)]) -> Self {
        EventRefusal::named(self.answer, typed)
    }
}

/// Errors that concern the whole session.
const SESSION_ERRORS: [&str; 3] = ["not_started", "started_twice", "ended"];

/// The flags of [`SpeakerFlags`], by the JSON pointers of the fields that they set.
pub(crate) const SPEAKER_FLAGS: [(&str, &str); 4] = [
    ("/producer/agent_id", "--agent"),
    ("/extensions/agentvoice/project", "--project"),
    ("/session_id", "--session"),
    ("/localization_hints/primary_language", "--language"),
];

/// The flag or word that set the field at this pointer, or the field that contains it.
fn name_of_field<'n>(pointer: &str, typed: &[(&str, &'n str)]) -> Option<&'n str> {
    let is_within = |place: &str| {
        pointer.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    typed.iter().find(|(place, _)| is_within(place)).map(|(_, name)| *name)
}

/// The message of an error body, safe to print on a terminal.
fn sentence(answer: &Value) -> String {
    let text = answer["message"].as_str().filter(|it| !it.is_empty());
    printable(text.unwrap_or(failures::REFUSED_WITHOUT_REASON)).into_owned()
}

/// Publishes events and returns the hub's answer to each.
pub(crate) fn publish(
    client: &HubClient,
    events: &[Value],
) -> Result<Vec<Result<Value, EventRefusal>>, CommandFailure> {
    publish_within(client, events, PUBLISH_TIMEOUT)
}

/// Publishes events; returns `None` if the hub is too busy and took none of them.
pub(crate) fn publish_unless_busy(
    client: &HubClient,
    events: &[Value],
) -> Result<Option<Vec<Result<Value, EventRefusal>>>, CommandFailure> {
    const TOO_MANY_REQUESTS: u16 = 429;
    let answer = send_events(client, events, PUBLISH_TIMEOUT)?;
    if answer.status == TOO_MANY_REQUESTS {
        return Ok(None);
    }
    answers_to(client, events.len(), &answer).map(Some)
}

/// Publishes events within this time limit.
pub(crate) fn publish_within(
    client: &HubClient,
    events: &[Value],
    timeout: Duration,
) -> Result<Vec<Result<Value, EventRefusal>>, CommandFailure> {
    answers_to(client, events.len(), &send_events(client, events, timeout)?)
}

fn send_events(
    client: &HubClient,
    events: &[Value],
    timeout: Duration,
) -> Result<HubAnswer, CommandFailure> {
    let (content_type, body) = match events {
        [event] => ("application/json", event.to_string()),
        events => {
            let lines: Vec<String> = events.iter().map(Value::to_string).collect();
            ("application/x-ndjson", lines.join("\n") + "\n")
        }
    };
    let request = HubRequest {
        method: "POST",
        path: "/aaep/v1/publish",
        body: Some((content_type, body.as_bytes())),
        timeout: timeout.min(PUBLISH_TIMEOUT),
    };
    client.send(&request).map_err(|error| not_answered(client, &error))
}

/// Reads one answer for each event.
fn answers_to(
    client: &HubClient,
    events: usize,
    answer: &HubAnswer,
) -> Result<Vec<Result<Value, EventRefusal>>, CommandFailure> {
    let answers = match (answer.status, events) {
        (200 | 409 | 422, 1) => answer.json().map(|it| vec![it]),
        (200 | 409, _) => lines(&answer.body),
        _ => return Err(refused(client, answer)),
    };
    // If the counts differ, we cannot know what happened to the events.
    let answers = answers.filter(|it| it.len() == events).ok_or_else(|| strange(client))?;
    let is_taken = |it: &Value| it["event_id"].is_string() && it.get("error").is_none();
    Ok(answers
        .into_iter()
        .map(|it| if is_taken(&it) { Ok(it) } else { Err(EventRefusal::of(it)) })
        .collect())
}

fn lines(body: &[u8]) -> Option<Vec<Value>> {
    let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    lines.map(|line| serde_json::from_slice(line).ok()).collect()
}

/// The failure for a hub that does not answer.
pub(crate) fn not_answered(client: &HubClient, error: &NoAnswer) -> CommandFailure {
    let origin = printable(&client.origin()).into_owned();
    let failure = match error {
        NoAnswer::NotReached(_) => failures::no_hub_at(&origin, error),
        NoAnswer::PlainHttp => failures::another_machine(&origin, error),
        NoAnswer::Tls(_) => failures::not_safe(&origin, error),
        NoAnswer::CutOff(_) | NoAnswer::NotHttp(_) => failures::gave_no_answer(&origin, error),
    };
    failure.into()
}

/// The failure for an error that the hub answered.
pub(crate) fn refused(client: &HubClient, answer: &HubAnswer) -> CommandFailure {
    refused_in_terms_of(client, answer, &[])
}

/// Does the same, naming what the person typed.
pub(crate) fn refused_in_terms_of(
    client: &HubClient,
    answer: &HubAnswer,
    typed: &[(&str, &str)],
) -> CommandFailure {
    match answer.json() {
        Some(body) if body["message"].is_string() => {
            let message = EventRefusal::named(body, typed).message;
            CommandFailure::of_sentences(&message, failures::LOOK_AT_HUB_LOG)
        }
        _ => failures::answered_with_status(&printable(&client.origin()), answer.status).into(),
    }
}

/// The failure for an answer that no hub would give.
pub(crate) fn strange(client: &HubClient) -> CommandFailure {
    failures::not_a_hubs_answer(&printable(&client.origin())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speaker() -> SpeakerFlags {
        SpeakerFlags {
            agent: Some("tidy".into()),
            project: None,
            session: Some("sess_a1".into()),
            language: None,
        }
    }

    #[test]
    fn an_event_names_who_speaks_and_where() {
        let event = speaker().event("state.changed", json!({ "to_state": "thinking" }));
        assert_eq!(event["type"], "aaep:agent.state.changed");
        assert_eq!(event["producer"]["agent_id"], "tidy");
        assert_eq!(event["session_id"], "sess_a1");
        assert_eq!(event["to_state"], "thinking");
        assert!(event.get("localization_hints").is_none() && event.get("extensions").is_none());
        let placed = SpeakerFlags { project: Some("work/shop".into()), ..speaker() };
        let event = placed.event("state.changed", json!({ "to_state": "thinking" }));
        assert_eq!(event["extensions"], json!({ "agentvoice": { "project": "work/shop" } }));
        let empty = || Some(" ".to_owned());
        let nameless =
            SpeakerFlags { agent: empty(), project: empty(), session: empty(), language: empty() }
                .without_empty();
        assert_eq!((nameless.name(), &nameless.session), ("command-line", &None));
    }

    #[test]
    fn ids_have_their_form_and_do_not_repeat() {
        let one = fresh_id("rpl_").expect("an id");
        assert!(aaep::ReplyToken::parse(&one).is_ok(), "{one}");
        assert_eq!(one.len(), 36);
        assert_ne!(one, fresh_id("rpl_").expect("an id"));
    }

    #[test]
    fn a_refusal_says_all_that_is_wrong_and_nothing_that_steers_a_terminal() {
        let refusal = EventRefusal::of(json!({
            "error": "not_valid", "message": "No.\u{1b}[2J Mend it.",
            "violations": [{ "pointer": "/a\u{7}", "code": "x", "message": "Missing." }],
        }));
        assert!(refusal.message.starts_with("No."), "{}", refusal.message);
        assert!(refusal.message.contains("Missing."), "{}", refusal.message);
        assert!(!refusal.message.contains(['\u{1b}', '\u{7}']), "{}", refusal.message);
        assert!(EventRefusal::of(json!({})).message.ends_with("Look at its log."));
    }

    #[test]
    fn a_refusal_names_what_the_person_typed() {
        let not_valid = json!({
            "error": "not_valid", "message": "The event is not valid.",
            "violations": [
                { "pointer": "/localization_hints/primary_language", "message": "Wrong." },
                { "pointer": "/choices/1/label", "message": "Too long." },
                { "pointer": "/sessions", "message": "Unknown." },
            ],
        });
        let typed = [&SPEAKER_FLAGS[..], &[("/choices", "--choices")]].concat();
        let message = EventRefusal::of(not_valid).in_terms_of(&typed).message;
        let lines: Vec<&str> = message.lines().skip(1).map(str::trim).collect();
        assert_eq!(lines, ["--language: Wrong.", "--choices: Too long.", "/sessions: Unknown."]);
        let ended = json!({ "error": "ended", "message": "The session has ended." });
        let message = EventRefusal::of(ended).in_terms_of(&SPEAKER_FLAGS).message;
        assert_eq!(message, "--session: The session has ended.");
    }

    #[test]
    fn lines_that_are_no_json_are_no_answers() {
        assert_eq!(lines(b"{}\n\n{}\r\n").map(|it| it.len()), Some(2));
        assert_eq!(lines(b"{}\nno\n"), None);
        assert_eq!(lines(b""), Some(vec![]));
    }
}
