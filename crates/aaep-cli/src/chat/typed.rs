//! What the lines that the person types in a chat mean. Pure.
//!
//! Our own commands begin with a slash. A line with two slashes is for the agent, with one of them; so is a command that
//! only the agent has. Everything else is a prompt, or an answer while a question is open.

use aaep_announce::{AskNumber, ListeningRequest};

/// The meaning of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChatLine<'a> {
    Nothing,
    Command(ChatCommand<'a>),
    /// A line with a slash that is not one of our commands: without the slash.
    Slash(&'a str),
    /// A line with two slashes: with one.
    ForAgent(&'a str),
    Text(&'a str),
}

/// A command of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChatCommand<'a> {
    Help,
    Quit,
    Cancel,
    /// Send the line that was held back.
    Send,
    Modes,
    Mode(&'a str),
    Sessions,
    Continue(&'a str),
    New,
    Login(&'a str),
    Commands,
    Questions,
    Skip,
    Decline,
    Status,
    /// Tell an open question again, or the last thing.
    Again,
    Request(ListeningRequest),
}

/// Reads a line.
pub(super) fn read(line: &str) -> ChatLine<'_> {
    let line = line.trim();
    let Some(command) = line.strip_prefix('/') else {
        return if line.is_empty() { ChatLine::Nothing } else { ChatLine::Text(line) };
    };
    if command.starts_with('/') {
        return ChatLine::ForAgent(command);
    }
    let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let rest = rest.trim();
    let wanted = match (word.to_lowercase().as_str(), rest) {
        ("help" | "?", "") => ChatCommand::Help,
        ("quit" | "exit", "") => ChatCommand::Quit,
        ("cancel" | "stop", "") => ChatCommand::Cancel,
        ("send", "") => ChatCommand::Send,
        ("modes" | "mode", "") => ChatCommand::Modes,
        ("mode", name) => ChatCommand::Mode(name),
        ("sessions" | "continue", "") => ChatCommand::Sessions,
        ("continue", which) => ChatCommand::Continue(which),
        ("new", "") => ChatCommand::New,
        ("login", way) => ChatCommand::Login(way),
        ("commands", "") => ChatCommand::Commands,
        ("questions", "") => ChatCommand::Questions,
        ("skip", "") => ChatCommand::Skip,
        ("decline", "") => ChatCommand::Decline,
        ("status", "") => ChatCommand::Status,
        ("again" | "repeat", "") => ChatCommand::Again,
        ("back", "") => ChatCommand::Request(ListeningRequest::Back),
        ("more", "") => ChatCommand::Request(ListeningRequest::More),
        ("reply", "") => ChatCommand::Request(ListeningRequest::LastReply),
        ("exact", "") => ChatCommand::Request(ListeningRequest::ExactText),
        _ => return ChatLine::Slash(command),
    };
    ChatLine::Command(wanted)
}

/// Words for a question: its number if they begin with one, and the rest.
pub(super) fn numbered(line: &str) -> (Option<AskNumber>, &str) {
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match first.trim_end_matches([':', '.']).parse() {
        Ok(number) => (Some(number), rest.trim()),
        Err(_) => (None, line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_prompt_is_taken_for_a_command() {
        for prompt in ["help", "cancel the order", "1 yes", "mode", "quit", "a/b", "tell me"] {
            assert_eq!(read(prompt), ChatLine::Text(prompt));
        }
        assert_eq!(read(" \r\n"), ChatLine::Nothing);
        assert_eq!(read("/Help"), ChatLine::Command(ChatCommand::Help));
        assert_eq!(read("/mode  Read-only \n"), ChatLine::Command(ChatCommand::Mode("Read-only")));
        assert_eq!(read("/continue 2"), ChatLine::Command(ChatCommand::Continue("2")));
        assert_eq!(read("/login"), ChatLine::Command(ChatCommand::Login("")));
    }

    #[test]
    fn commands_of_the_agent_can_be_reached() {
        assert_eq!(read("/compact now"), ChatLine::Slash("compact now"));
        assert_eq!(read("/help me"), ChatLine::Slash("help me"));
        assert_eq!(read("//help"), ChatLine::ForAgent("/help"));
        assert_eq!(read("/usr/bin is full"), ChatLine::Slash("usr/bin is full"));
        assert_eq!(read("//usr/bin is full"), ChatLine::ForAgent("/usr/bin is full"));
    }

    #[test]
    fn a_number_comes_first_and_says_which_question_is_meant() {
        assert_eq!(numbered("2 a"), (Some(2), "a"));
        assert_eq!(numbered("2: my words "), (Some(2), "my words"));
        assert_eq!(numbered("7"), (Some(7), ""));
        assert_eq!(numbered("a"), (None, "a"));
    }
}
