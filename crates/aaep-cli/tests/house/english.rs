//! What the commands for people say stands in one place, so that it can be translated.

use std::path::Path;

use super::{project_files, read};

/// The sources that take all their sentences from `src/english`.
const WITHOUT_SENTENCES: &[&str] = &[
    "agent",
    "agents",
    "allow",
    "answer",
    "archive",
    "ask",
    "attention",
    "cancel",
    "chat",
    "config",
    "console",
    "doctor",
    "emit",
    "follow",
    "instruct",
    "kept",
    "keys",
    "listen",
    "replay",
    "report",
    "sessions",
    "tell",
    "tokens",
];

/// Texts with blanks that are not said to anyone, or are what a person types.
const NOT_SAID: &[&str] = &[
    "Claude Code", // names of agents
    "Copilot CLI",
    "Gemini CLI",
    "Kimi Code",
    "Qwen Code",
    "aaep answer", // names of subscribers
    "aaep listen",
    "aaep tell",
    "more time",
    "last reply",
    "rate ", // what a person types
    "aaep tell{session} {agent} {}",
    "aaep tell --new {agent} {}",
    "aaep cancel{session} {agent}",
    "{} hook claude-code --policy {name}", // what an agent runs
    " hook ",
    "set aside",  // a verb that follows "cannot"
    " (os error", // what the system adds to an error
];

/// What stands before a text that is help or is for people who read the code.
const ELSEWHERE: &[&str] = &[
    "help: ",
    "reason = ",
    "expect(",
    "EXIT_CODES: &str = ",
    "HELP: &str = ",
    "WORDS: &str = ",
    "example(",
];

fn is_checked(file: &Path) -> bool {
    let Ok(place) = file.strip_prefix("crates/aaep-cli/src") else { return false };
    let of = |it: &&str| place.starts_with(it) || place == Path::new(&format!("{it}.rs"));
    WITHOUT_SENTENCES.iter().any(of) && !place.ends_with("tests.rs")
}

/// The texts in quotes of a source file that look like a sentence or a part of one.
fn sentences(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|it| !it.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n").replace("'\"'", "").replace("\\\"", "'");
    let parts: Vec<&str> = code.split('"').collect();
    let texts =
        parts.chunks_exact(2).filter(|it| !ELSEWHERE.iter().any(|end| it[0].ends_with(end)));
    texts.map(|it| it[1]).filter(|it| is_sentence(it)).map(str::to_owned).collect()
}

fn is_sentence(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let is_word = |it: &str| it.chars().count() > 1 && it.chars().all(char::is_alphabetic);
    !NOT_SAID.contains(&text) && text.contains(' ') && words.any(is_word)
}

#[test]
fn commands_for_people_take_their_sentences_from_one_place() {
    let files = project_files();
    let checked: Vec<_> = files.iter().filter(|it| is_checked(it)).collect();
    assert!(checked.len() > 50, "{checked:?}");
    let found = checked.iter().map(|file| (file, sentences(&read(file))));
    let found: Vec<_> = found.filter(|(_, sentences)| !sentences.is_empty()).collect();
    assert!(found.is_empty(), "this belongs into src/english: {found:?}");
}

#[test]
fn a_sentence_elsewhere_is_noticed() {
    let source =
        "fn f() { tell(\"Nothing waits for you.\"); name(\"aaep listen\") } // \n// \"A comment.\"";
    assert_eq!(sentences(source), ["Nothing waits for you."]);
    assert!(sentences("let key = \"questions.json\";").is_empty());
}
