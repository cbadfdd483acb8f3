//! `aaep chat`: an agent and a person in plain lines.

use aaep::printable;
use aaep_bridge::acp::{AcpSlashCommand, FormFieldKind, ListedMode, ListedSession, LoginWay};

use super::typing::{NOTHING_ANSWERED, you_typed};

/// What can be typed in a chat, and what it does.
pub(crate) const TYPED: &[(&str, &str)] = &[
    ("any line", "send it to the agent; a backslash at its end adds the next line"),
    ("a, b, 1 a", "choose an answer to a question by its letter or its name, here to question 1"),
    ("/cancel", "ask the agent to stop; Control-C does the same, and leaves when typed twice"),
    ("/again, /back", "tell the question or the last thing again, or what came before it"),
    ("/more", "tell what was left out"),
    ("/reply, /exact", "tell what the agent said last, or tell it exactly, code and all"),
    ("/status", "tell what the agent is doing"),
    ("/questions", "tell which questions wait"),
    ("/skip, /decline", "leave a field of a form empty, or decline the whole form"),
    ("/send", "send a line that was held back"),
    ("/modes, /mode NAME", "tell the modes of the agent, or switch to one"),
    ("/sessions", "tell which earlier sessions in this folder can be continued"),
    ("/continue 1, /new", "continue one of them, or begin a new session"),
    ("/login NAME", "sign in, if the agent wants that"),
    ("/commands", "tell the commands of the agent itself"),
    ("//NAME", "a command of the agent that has the name of one of these"),
    ("/help, /quit", "tell this again, or leave"),
];

pub(crate) const FOLDER_NOT_TEXT: &str = "the name of this folder is not text";
pub(crate) const GO_TO_ANOTHER: &str = "Go to another folder.";
pub(crate) const NO_COMMAND: &str = "no agent is named";
pub(crate) const NAME_COMMAND: &str = "Name it after two dashes: aaep chat -- gemini --acp";
pub(crate) const NO_INPUT: &str = "the agent has no input and output";
pub(crate) const START_AGAIN: &str = "Start it again.";

pub(crate) const NO_AGENT_HERE: &str = "None of the agents that are known was found here.";
pub(crate) const ANOTHER_AGENT: &str = "For any other agent that speaks the Agent Client Protocol, type its command: aaep chat -- COMMAND";

pub(crate) fn agent_is_here(title: &str, name: &str) -> String {
    format!("{title} is here. To use it: aaep chat {name}")
}

pub(crate) fn agent_is_missing(title: &str, name: &str, command: &str) -> String {
    format!("{title} was not found. With the command {command}, it is: aaep chat {name}")
}

pub(crate) fn unknown_agent(name: &str) -> (String, &'static str) {
    (format!("no agent is called {name}"), "To list the agents: aaep chat")
}

pub(crate) fn not_installed(title: &str, program: &str) -> (String, String) {
    (
        format!("{title} was not found here"),
        format!(
            "Install the program {program}, so that it is in one of your folders for programs."
        ),
    )
}

pub(crate) fn starting(agent: &str) -> String {
    format!("Starting {}. For help: /help", printable(agent))
}

/// A session is open. `mode` is the one that is on.
pub(crate) fn ready(agent: &str, mode: Option<&ListedMode>) -> String {
    let mode = mode.map(|it| format!(" {}", mode_is(it))).unwrap_or_default();
    format!("{} is ready.{mode}", printable(agent))
}

pub(crate) fn mode_is(mode: &ListedMode) -> String {
    format!("Its mode is {}", mode_words(mode))
}

fn mode_words(mode: &ListedMode) -> String {
    let name = printable(&mode.name).into_owned();
    let name = if mode.name.eq_ignore_ascii_case(&mode.id) {
        name
    } else {
        format!("{name} ({})", printable(&mode.id))
    };
    sentence(&match mode.description.as_str() {
        "" => name,
        description => format!("{name}: {}", printable(description)),
    })
}

/// Adds a full stop where there is no end.
fn sentence(text: &str) -> String {
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

pub(crate) const NO_MODES: &str = "The agent has no modes.";
pub(crate) const TO_SWITCH: &str = "To switch: /mode and a name.";

pub(crate) fn listed_mode(mode: &ListedMode, is_on: bool) -> String {
    let on = if is_on { " This one is on." } else { "" };
    format!("Mode {}{on}", mode_words(mode))
}

pub(crate) fn no_such_mode(named: &str) -> String {
    format!("No mode is called {}, or several are. To hear them: /modes", printable(named))
}

pub(crate) fn mode_refused(why: &str) -> String {
    format!("The mode was not changed. {}", reason(why))
}

/// The agent's reason, as a sentence.
fn reason(why: &str) -> String {
    match why.trim() {
        "" => "The agent does not say why.".to_owned(),
        why => sentence(&format!("It says: {}", printable(why))),
    }
}

/// An earlier session goes on.
pub(crate) const CONTINUED: &str = "The earlier session goes on.";
pub(crate) const NOTHING_TO_CONTINUE: &str =
    "There is no earlier session to continue, or the agent cannot do so. This is a new one.";

pub(crate) fn you_said_last(prompt: &str) -> String {
    format!("You said last: {}", in_one_line(prompt))
}

pub(crate) fn it_said_last(answer: &str) -> String {
    format!("It said last: {}", in_one_line(answer))
}

/// The beginning of a text, without its lines.
fn in_one_line(text: &str) -> String {
    const MOST: usize = 500;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = words.chars().take(MOST).collect();
    let more = if cut.len() < words.len() { " And so on." } else { "" };
    format!("{}{more}", printable(&cut))
}

pub(crate) fn not_opened(agent: &str, why: &str) -> String {
    format!("{} did not open the session. {}", printable(agent), reason(why))
}

pub(crate) fn other_version(agent: &str) -> String {
    format!(
        "{} speaks another version of the Agent Client Protocol than version 1, and cannot be used here.",
        printable(agent)
    )
}

pub(crate) fn sign_in(agent: &str, ways: &[LoginWay]) -> Vec<String> {
    let agent = printable(agent);
    let mut lines = vec![format!(
        "{agent} needs you to sign in first. Sign in with its own program, or set its key, and start aaep chat again."
    )];
    if !ways.is_empty() {
        lines.push("Or let the agent begin, with one of these:".to_owned());
    }
    lines.extend(login_ways(ways));
    lines
}

pub(crate) fn login_ways(ways: &[LoginWay]) -> Vec<String> {
    let line = |way: &LoginWay| {
        let more = match way.description.as_str() {
            "" => String::new(),
            description => format!(" {}", sentence(&printable(description))),
        };
        format!("/login {}. {}.{more}", printable(&way.id), printable(&way.name))
    };
    ways.iter().map(line).collect()
}

/// Words of `aaep listen`, with the commands of a chat.
pub(crate) fn with_own_commands(words: &str) -> String {
    words.replace(": list", ": /questions").replace(": help", ": /help")
}

/// An open question.
pub(crate) fn waits(number: aaep_announce::AskNumber, question: &str) -> String {
    sentence(&format!("Question {number}: {question}"))
}

pub(crate) const NO_SUCH_QUESTION: &str = "No question has this number. To hear them: /questions";

pub(crate) fn signing_in(way: &LoginWay) -> String {
    format!("The agent signs in: {}.", printable(&way.name))
}

pub(crate) fn not_signed_in(why: &str) -> String {
    format!("Signing in did not work. {}", reason(why))
}

pub(crate) const NO_LOGIN: &str = "The agent names no such way to sign in. To hear them: /login";

pub(crate) const NO_SESSION_LIST: &str = "The agent cannot say which sessions there were.";
pub(crate) const NO_SESSIONS: &str = "There are no earlier sessions in this folder.";
pub(crate) const TO_CONTINUE: &str = "To continue one: /continue and its number.";
pub(crate) const CANNOT_CONTINUE: &str = "The agent cannot continue earlier sessions.";
pub(crate) const NO_SUCH_SESSION: &str = "No session has this number. To hear them: /sessions";

pub(crate) fn listed_session(number: usize, session: &ListedSession) -> String {
    let title = match session.title.trim() {
        "" => "without a title".to_owned(),
        title => printable(title).into_owned(),
    };
    let used = match session.updated_at.get(..16) {
        Some(time) => format!(", last used {}", printable(&time.replace('T', " "))),
        None => String::new(),
    };
    format!("Session {number}: {title}{used}.")
}

pub(crate) fn sessions_not_listed(why: &str) -> String {
    format!("The sessions cannot be listed. {}", reason(why))
}

pub(crate) const NO_COMMANDS: &str = "The agent has named no commands.";

pub(crate) fn listed_command(command: &AcpSlashCommand, is_ours: bool) -> String {
    let slash = if is_ours { "//" } else { "/" };
    sentence(&format!("{slash}{}: {}", printable(&command.name), printable(&command.description)))
}

pub(crate) fn no_such_command(word: &str) -> String {
    format!(
        "Neither aaep chat nor the agent has the command /{}. Nothing was sent. To send the line as it is: \
         begin it with two slashes.",
        printable(word)
    )
}

pub(crate) const AT_WORK: &str = "The agent is at work. First: /cancel";
pub(crate) const NOT_AT_WORK: &str = "The agent is not at work.";
pub(crate) const STOPPING: &str = "The agent was asked to stop. To leave: Control-C once more.";
pub(crate) const TO_LEAVE: &str = "To leave: Control-C once more, or /quit";
pub(crate) const SENT_LATER: &str = "This is sent when the turn is over.";
pub(crate) const SENT_WHEN_READY: &str = "This is sent when the agent is ready.";
pub(crate) const TOO_MANY_PROMPTS: &str = "Too many lines wait. This one was not sent.";
pub(crate) const NOT_SENT_DROPPED: &str = "What waited to be sent is not sent.";
pub(crate) const NOTHING_HELD: &str = "No line was held back.";
pub(crate) const HELD: &str = "It was not sent. To send it to the agent: /send";
pub(crate) const NO_FORM: &str = "No form is open.";
pub(crate) const IS_NEEDED: &str =
    "The agent needs this field. To decline the whole form: /decline";
pub(crate) const FORM_SENT: &str = "The form was sent.";
pub(crate) const FORM_DECLINED: &str = "The form was declined.";
pub(crate) const ALREADY_ANSWERED: &str = "You have answered this question already.";
pub(crate) const NOBODY_ELSE: &str =
    "Nothing more can be typed and nobody else answers, so it was refused.";
pub(crate) const NOT_WHOLE: &str = "A question could not be shown whole, so it was refused.";
pub(crate) const NOT_MESSAGES: &str =
    "The agent writes lines that are not messages. They are left out.";
pub(crate) const TOO_LONG: &str = "A message of the agent is too long and was left out.";
pub(crate) const HUB_IS_THERE: &str = "The AAEP hub hears this agent as well.";
pub(crate) const HUB_IS_AWAY: &str =
    "The AAEP hub does not answer any more. Here, everything goes on.";
pub(crate) const HUB_IS_BACK: &str = "The AAEP hub answers again.";
pub(crate) const NO_HUB: &str = "No AAEP hub hears this agent.";
pub(crate) const HUB_NOT_TOLD: &str = "The hub did not take in time what was left to tell.";
pub(crate) const IDLE: &str = "The agent waits for you.";

/// A form that cannot be put to the person. What it says is foreign text.
pub(crate) fn form_not_put(message: &str) -> String {
    format!(
        "The agent put a form that cannot be shown here, so it was declined: {}",
        printable(message)
    )
}

/// A field of a form. Everything but the numbers is foreign text.
pub(crate) fn form_field(
    message: &str,
    title: &str,
    description: &str,
    number: usize,
    of: usize,
) -> String {
    let parts = [message, title, description];
    let mut said: Vec<String> = Vec::new();
    for part in parts.iter().map(|it| it.trim()).filter(|it| !it.is_empty()) {
        let part = sentence(part);
        if !said.contains(&part) {
            said.push(part);
        }
    }
    let place = if of > 1 { format!("Field {number} of {of}. ") } else { String::new() };
    format!("{place}{}", said.join(" "))
}

/// What can be answered to a field of a form.
pub(crate) fn form_hint(
    kind: &FormFieldKind,
    (least, most): (Option<f64>, Option<f64>),
    is_required: bool,
) -> String {
    let mut parts = Vec::new();
    if matches!(kind, FormFieldKind::Several(_)) {
        parts.push("Several answers are possible: their letters with commas, or none.".to_owned());
    }
    let what = match kind {
        FormFieldKind::Text => "characters",
        FormFieldKind::Several(_) => "answers",
        _ => "",
    };
    let bounds = match (least, most) {
        (Some(least), Some(most)) => format!("From {least} to {most} {what}"),
        (Some(least), None) => format!("At least {least} {what}"),
        (None, Some(most)) => format!("At most {most} {what}"),
        (None, None) => String::new(),
    };
    if !bounds.is_empty() {
        parts.push(format!("{}.", bounds.trim_end()));
    }
    if matches!(kind, FormFieldKind::Number(true)) {
        parts.push("A whole number.".to_owned());
    }
    if !is_required {
        parts.push("To leave it empty: /skip".to_owned());
    }
    parts.join(" ")
}

pub(crate) fn not_an_answer(words: &str) -> String {
    format!("{} That is not an answer to this question.", you_typed(&printable(words)))
}

pub(crate) fn not_a_choice(words: &str) -> String {
    format!(
        "{} That is neither the letter nor the whole name of one answer.",
        you_typed(&printable(words))
    )
}

/// An answer that a field of a form does not take.
pub(crate) fn does_not_fit(words: &str) -> String {
    format!("{} That does not fit. {NOTHING_ANSWERED}", you_typed(&printable(words)))
}

/// The agent has ended. `how` is a sentence.
pub(crate) fn has_ended(agent: &str, code: Option<i32>) -> String {
    let agent = printable(agent);
    match code {
        Some(code) => format!("{agent} has ended, with exit code {code}."),
        None => format!("{agent} has ended."),
    }
}

pub(crate) fn its_last_line(line: &str) -> String {
    format!("It wrote: {}", printable(line))
}

pub(crate) fn continue_later(session: &str) -> String {
    format!("To continue this session later, add: --session {}", printable(session))
}
