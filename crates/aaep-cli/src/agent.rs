//! What commands that speak as an agent share: who speaks, and the events they send.
//!
//! Events are made here as JSON without what the hub fills in. Nothing here decides whether an event
//! counts; the hub does.

use std::time::Duration;

use aaep::printable;
use clap::Args;
use serde_json::{Value, json};

use crate::console::Failure;
use crate::http::{Answer, Client, NoAnswer, Request};

/// How long the hub may take to make an event durable.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(30);

/// Who speaks, and in which session.
#[derive(Debug, Clone, Args)]
pub(crate) struct Speaker {
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

impl Speaker {
    /// The same without what is empty: a script that failed to begin a session sets an empty variable.
    pub(crate) fn without_empty(&self) -> Self {
        let filled = |text: &Option<String>| text.clone().filter(|it| !it.trim().is_empty());
        Speaker {
            agent: filled(&self.agent),
            project: filled(&self.project),
            session: filled(&self.session),
            language: filled(&self.language),
        }
    }

    /// The agent's name, or what an agent without one is called.
    pub(crate) fn name(&self) -> &str {
        self.agent.as_deref().unwrap_or("command-line")
    }

    /// An event of this speaker: the type after `aaep:agent.`, and its own fields.
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
pub(crate) fn fresh_id(prefix: &str) -> Result<String, Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        let next = "Look whether /dev/urandom is there.";
        Failure::new(format!("this machine gives no random numbers: {error}"), next)
    })?;
    Ok(format!("{prefix}{:032x}", u128::from_be_bytes(bytes)))
}

/// An event that the hub did not take, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// What the hub said, fit for a terminal.
    pub(crate) message: String,
    /// The same for machines.
    pub(crate) answer: Value,
}

impl Refusal {
    /// What an error of the hub says, with all that is wrong with a message.
    fn of(answer: Value) -> Self {
        Refusal::named(answer, &[])
    }

    /// The same in terms of what the person typed: by the place of a field, the flag or the word that set it.
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
        Refusal { message, answer }
    }

    /// Names what the person typed in place of the fields of the event that it was made into.
    pub(crate) fn in_terms_of(self, typed: &[(&str, &str)]) -> Self {
        Refusal::named(self.answer, typed)
    }
}

/// The errors that concern the session as a whole.
const SESSION_ERRORS: [&str; 3] = ["not_started", "started_twice", "ended"];

/// The flags of a [`Speaker`], by the places of what they set.
pub(crate) const SPEAKER_FLAGS: [(&str, &str); 4] = [
    ("/producer/agent_id", "--agent"),
    ("/extensions/agentvoice/project", "--project"),
    ("/session_id", "--session"),
    ("/localization_hints/primary_language", "--language"),
];

/// What was typed for the field at this place, or for the one that it is a part of.
fn name_of_field<'n>(pointer: &str, typed: &[(&str, &'n str)]) -> Option<&'n str> {
    let is_within = |place: &str| {
        pointer.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    typed.iter().find(|(place, _)| is_within(place)).map(|(_, name)| *name)
}

/// The message of an error body, fit for a terminal.
fn sentence(answer: &Value) -> String {
    let text = answer["message"].as_str().filter(|it| !it.is_empty());
    printable(text.unwrap_or("The hub refused it and did not say why. Look at its log."))
        .into_owned()
}

/// Publishes events, and gives the answer to each.
pub(crate) fn publish(
    client: &Client,
    events: &[Value],
) -> Result<Vec<Result<Value, Refusal>>, Failure> {
    publish_within(client, events, PUBLISH_TIMEOUT)
}

/// The same; none if the hub says that it is too much at once, and nothing was taken.
pub(crate) fn publish_unless_busy(
    client: &Client,
    events: &[Value],
) -> Result<Option<Vec<Result<Value, Refusal>>>, Failure> {
    const TOO_MANY_REQUESTS: u16 = 429;
    let answer = send_events(client, events, PUBLISH_TIMEOUT)?;
    if answer.status == TOO_MANY_REQUESTS {
        return Ok(None);
    }
    answers_to(client, events.len(), &answer).map(Some)
}

/// The same, with no more time than this.
pub(crate) fn publish_within(
    client: &Client,
    events: &[Value],
    timeout: Duration,
) -> Result<Vec<Result<Value, Refusal>>, Failure> {
    answers_to(client, events.len(), &send_events(client, events, timeout)?)
}

fn send_events(client: &Client, events: &[Value], timeout: Duration) -> Result<Answer, Failure> {
    let (content_type, body) = match events {
        [event] => ("application/json", event.to_string()),
        events => {
            let lines: Vec<String> = events.iter().map(Value::to_string).collect();
            ("application/x-ndjson", lines.join("\n") + "\n")
        }
    };
    let request = Request {
        method: "POST",
        path: "/aaep/v1/publish",
        body: Some((content_type, body.as_bytes())),
        timeout: timeout.min(PUBLISH_TIMEOUT),
    };
    client.send(&request).map_err(|error| not_answered(client, &error))
}

/// One answer for each event.
fn answers_to(
    client: &Client,
    events: usize,
    answer: &Answer,
) -> Result<Vec<Result<Value, Refusal>>, Failure> {
    let answers = match (answer.status, events) {
        (200 | 409 | 422, 1) => answer.json().map(|it| vec![it]),
        (200 | 409, _) => lines(&answer.body),
        _ => return Err(refused(client, answer)),
    };
    // One answer for each event, or we do not know what became of them.
    let answers = answers.filter(|it| it.len() == events).ok_or_else(|| strange(client))?;
    let is_taken = |it: &Value| it["event_id"].is_string() && it.get("error").is_none();
    Ok(answers
        .into_iter()
        .map(|it| if is_taken(&it) { Ok(it) } else { Err(Refusal::of(it)) })
        .collect())
}

fn lines(body: &[u8]) -> Option<Vec<Value>> {
    let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    lines.map(|line| serde_json::from_slice(line).ok()).collect()
}

/// There is no answer from the hub.
pub(crate) fn not_answered(client: &Client, error: &NoAnswer) -> Failure {
    let origin = printable(&client.origin()).into_owned();
    match error {
        NoAnswer::NotReached(_) => Failure::new(
            format!("no hub answers at {origin}: {error}"),
            "Start one with: aaep serve. Or say where it is with --hub or AAEP_HUB.",
        ),
        NoAnswer::PlainHttp => Failure::new(
            format!("{origin} is another machine and {error}"),
            "Use an https address.",
        ),
        NoAnswer::Tls(_) => Failure::new(
            format!("cannot speak safely with {origin}: {error}"),
            "Check the certificate of the hub.",
        ),
        NoAnswer::CutOff(_) | NoAnswer::NotHttp(_) => Failure::new(
            format!("the hub at {origin} gave no answer: {error}"),
            "Check that a hub is there, and look at its log.",
        ),
    }
}

/// The hub answered with an error.
pub(crate) fn refused(client: &Client, answer: &Answer) -> Failure {
    refused_in_terms_of(client, answer, &[])
}

/// The same, naming what the person typed.
pub(crate) fn refused_in_terms_of(
    client: &Client,
    answer: &Answer,
    typed: &[(&str, &str)],
) -> Failure {
    match answer.json() {
        Some(body) if body["message"].is_string() => {
            let message = Refusal::named(body, typed).message;
            Failure::of_sentences(&message, "Look at the log of the hub.")
        }
        _ => Failure::new(
            format!("{} answered with the status {}", printable(&client.origin()), answer.status),
            "Check that a hub is there, with --hub or AAEP_HUB.",
        ),
    }
}

/// The hub answered with something that it should not.
pub(crate) fn strange(client: &Client) -> Failure {
    Failure::new(
        format!("what {} answered is not what a hub answers", printable(&client.origin())),
        "Check that a hub of the same version is there.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speaker() -> Speaker {
        Speaker {
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
        let placed = Speaker { project: Some("work/shop".into()), ..speaker() };
        let event = placed.event("state.changed", json!({ "to_state": "thinking" }));
        assert_eq!(event["extensions"], json!({ "agentvoice": { "project": "work/shop" } }));
        let empty = || Some(" ".to_owned());
        let nameless =
            Speaker { agent: empty(), project: empty(), session: empty(), language: empty() }
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
        let refusal = Refusal::of(json!({
            "error": "not_valid", "message": "No.\u{1b}[2J Mend it.",
            "violations": [{ "pointer": "/a\u{7}", "code": "x", "message": "Missing." }],
        }));
        assert!(refusal.message.starts_with("No."), "{}", refusal.message);
        assert!(refusal.message.contains("Missing."), "{}", refusal.message);
        assert!(!refusal.message.contains(['\u{1b}', '\u{7}']), "{}", refusal.message);
        assert!(Refusal::of(json!({})).message.ends_with("Look at its log."));
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
        let message = Refusal::of(not_valid).in_terms_of(&typed).message;
        let lines: Vec<&str> = message.lines().skip(1).map(str::trim).collect();
        assert_eq!(lines, ["--language: Wrong.", "--choices: Too long.", "/sessions: Unknown."]);
        let ended = json!({ "error": "ended", "message": "The session has ended." });
        let message = Refusal::of(ended).in_terms_of(&SPEAKER_FLAGS).message;
        assert_eq!(message, "--session: The session has ended.");
    }

    #[test]
    fn lines_that_are_no_json_are_no_answers() {
        assert_eq!(lines(b"{}\n\n{}\r\n").map(|it| it.len()), Some(2));
        assert_eq!(lines(b"{}\nno\n"), None);
        assert_eq!(lines(b""), Some(vec![]));
    }
}
