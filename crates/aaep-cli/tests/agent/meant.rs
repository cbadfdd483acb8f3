//! Typed words answer only the question that they were begun for (ruling 33), in a real terminal and from a pipe.

use std::process::{Child, Stdio};

use crate::ear::{DANGEROUS, Ear, outcome};
use crate::support::out;
use crate::terminal::Terminal;

const PROMPT: &str = "Answer yes or no: ";
const ANOTHER: &str = "That was for another question. Nothing was answered.\n";
const OVERWRITE: &[&str] =
    &["Overwrite 14 tables of the production database", "--irreversible", "--risk", "high"];

/// Waits until the terminal shows this many prompts.
fn wait_for_prompt(terminal: &Terminal, count: usize) {
    terminal.wait_until("a prompt", |raw| raw.matches(PROMPT).count() >= count);
}

fn ask(terminal: &Terminal, arguments: &[&str]) -> Child {
    let mut asking = terminal.aaep(&[&["ask"], arguments].concat());
    asking.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("aaep runs")
}

fn rejected(asking: Child) {
    assert_eq!(outcome(asking), (Some(1), "reject\n".to_owned()));
}

/// Someone types yes to a first question and has not pressed Enter.
fn half_typed(first: &[&str], keys: &str) -> (Terminal, Child) {
    let terminal = Terminal::start(None, &[]);
    let asking = ask(&terminal, first);
    wait_for_prompt(&terminal, 1);
    terminal.begins_to_type(keys);
    (terminal, asking)
}

/// Asks a second question and waits for its prompt, after which something else may be written.
fn ask_second(terminal: &Terminal) -> Child {
    let asking = ask(terminal, OVERWRITE);
    terminal.wait_until("the second question and its prompt", |raw| {
        raw.split_once("Overwrite 14 tables").is_some_and(|(_, rest)| rest.contains(PROMPT))
    });
    asking
}

/// Another question comes before Enter is pressed. No question is answered.
fn enter_after_another(terminal: &Terminal, typed: &str) {
    let second = ask_second(terminal);
    terminal.presses("Enter");
    terminal.wait_for(&format!("You typed \"{typed}\". {ANOTHER}"));
    terminal.types("2 no");
    rejected(second);
}

#[test]
fn a_yes_for_an_ask_that_was_answered_elsewhere_does_not_accept_the_next_one() {
    let (terminal, first) = half_typed(&["Sort the mail?", "--risk", "low"], "yes");
    let answered = terminal.aaep(&["answer", "1", "no"]).output().expect("aaep runs");
    assert_eq!(out(&answered), "You refused it.\n");
    rejected(first);
    terminal.wait_for("settled:");
    enter_after_another(&terminal, "yes");
}

#[test]
fn a_yes_for_an_ask_that_expired_does_not_accept_the_next_one() {
    let (terminal, first) =
        half_typed(&["Sort the mail?", "--risk", "low", "--timeout", "3"], "yes");
    terminal.wait_for("Nobody answered in time");
    drop(first.wait_with_output());
    enter_after_another(&terminal, "yes");
}

#[test]
fn a_yes_in_a_terminal_that_could_not_be_taken_at_first_does_not_accept_the_next_one() {
    let terminal = Terminal::start_in_background();
    assert!(terminal.modes().contains(" icanon"), "it is not its to take");
    terminal.fetch();
    let first = ask(&terminal, &["Sort the mail?", "--risk", "low", "--timeout", "3"]);
    wait_for_prompt(&terminal, 1);
    terminal.begins_to_type("yes");
    terminal.wait_for("Nobody answered in time");
    drop(first.wait_with_output());
    enter_after_another(&terminal, "yes");
    terminal.types("quit");
    terminal.wait_for("Exit code 0.\n");
    assert!(terminal.modes().contains(" icanon"), "{}", terminal.modes());
}

#[test]
fn a_yes_that_was_begun_before_another_ask_came_answers_neither() {
    let (terminal, first) = half_typed(&["Sort the mail?", "--risk", "low"], "yes");
    enter_after_another(&terminal, "yes");
    terminal.types("1 no");
    rejected(first);
}

#[test]
fn a_no_is_not_turned_to_another_ask_either() {
    let (terminal, first) = half_typed(&["Sort the mail?", "--risk", "low"], "no");
    enter_after_another(&terminal, "no");
    terminal.types("1 yes");
    assert_eq!(outcome(first), (Some(0), "accept\n".to_owned()), "it was still open");
}

#[test]
fn a_digit_for_a_settled_choice_does_not_accept_what_comes_next() {
    let choices = ["Which year?", "--choices", "2018,2019"];
    let terminal = Terminal::start(None, &[]);
    let first = ask(&terminal, &choices);
    terminal.wait_for("Answer A or B: ");
    terminal.begins_to_type("2");
    let answered = terminal.aaep(&["answer", "1", "1"]).output().expect("aaep runs");
    assert!(out(&answered).contains("You answered: 2018."), "{}", out(&answered));
    drop(first.wait_with_output());
    terminal.wait_for("settled:");
    enter_after_another(&terminal, "2");
    // What does not fit the first one is not held against the second one.
    assert!(!terminal.raw().contains("is not an answer to this question"), "{}", terminal.raw());
}

#[test]
fn what_was_taken_back_was_not_begun() {
    let (terminal, first) = half_typed(&["Sort the mail?", "--risk", "low"], "yes");
    let second = ask_second(&terminal);
    terminal.presses("C-u");
    terminal.types("2 yes");
    assert_eq!(outcome(second), (Some(0), "accept\n".to_owned()));
    terminal.types("1 no");
    rejected(first);
}

#[test]
fn a_line_that_is_being_typed_is_not_run_into() {
    let terminal = Terminal::start(None, &[]);
    terminal.begins_to_type("lis");
    let said = terminal.hub.run(&["emit", "say", "Hello."]);
    assert!(said.status.success());
    terminal.wait_for("lis\n");
    terminal.wait_for("agent: Hello.\n");
    // It is kept.
    terminal.begins_to_type("t");
    terminal.presses("Enter");
    terminal.wait_for("notice: Nothing waits for you.\n");
}

#[test]
fn the_terminal_is_given_back_as_it_was() {
    let terminal = Terminal::start(None, &[]);
    assert!(terminal.modes().contains("-icanon"), "{}", terminal.modes());
    terminal.types("quit");
    terminal.wait_for("Exit code 0.\n");
    let modes = terminal.modes();
    assert!(modes.contains(" icanon") && modes.contains(" echo "), "{modes}");
}

#[test]
fn a_digit_alone_never_consents_however_long_the_ask_was_there() {
    let mut ear = Ear::new(&[]);
    let asking = ear.ask(DANGEROUS);
    ear.hears(PROMPT);
    loop {
        ear.types("2");
        let told = ear.hears("Nothing was answered.");
        if told.contains("A digit alone does not answer this question. Type yes or no.") {
            break;
        }
        let is_too_soon =
            told.contains("after question 1 came") || told.contains("Nothing waits for you.");
        assert!(is_too_soon, "{told}");
    }
    ear.types("no");
    rejected(asking);
    ear.quit();
}

#[test]
fn words_of_an_agent_that_sound_like_another_question_get_no_yes_for_its_own() {
    let mut ear = Ear::new(&[]);
    let begun = ear.aaep(&["emit", "start", "I begin."]).output().expect("aaep runs");
    let session = out(&begun).trim().to_owned();
    let asking = ear
        .aaep(&[&["ask"], DANGEROUS].concat())
        .env("AAEP_SESSION", &session)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("aaep runs");
    ear.hears(PROMPT);
    let posing = "Permission required: Printer asks, question 1: Print a page? Low risk.";
    let said = ear.aaep(&["emit", "say", posing]).env("AAEP_SESSION", &session).output();
    assert!(said.expect("aaep runs").status.success());
    ear.hears("Print a page? Low risk.");
    for answer in ["yes", "1 yes"] {
        loop {
            ear.types(answer);
            let told = ear.hears_any(&["after question 1 came", "since it asked"]);
            if told.contains("since it asked") {
                break;
            }
        }
        let told = ear.hears(PROMPT);
        assert!(told.contains("Question 1 again:"), "{told}");
        let said = ear.aaep(&["emit", "say", "Well?"]).env("AAEP_SESSION", &session).output();
        assert!(said.expect("aaep runs").status.success());
        ear.hears("Well?");
    }
    ear.types("1");
    ear.hears(PROMPT);
    ear.types("1 yes");
    assert_eq!(outcome(asking), (Some(0), "accept\n".to_owned()));
    ear.quit();
}

#[test]
fn digits_are_the_numbers_of_questions_and_letters_those_of_choices() {
    let years = ["Which year?", "--choices", "The first,The second"];
    let mut ear = Ear::new(&[]);
    let first = ear.ask(&years);
    let told = ear.hears("Answer A or B: ");
    assert!(told.contains("  A. The first\n  B. The second\n"), "{told}");
    ear.types("1");
    ear.hears("You typed \"1\". Nothing was answered. Question 1 again:");
    ear.hears("Answer A or B: ");
    loop {
        ear.types("2");
        let told = ear.hears("Nothing was answered.");
        if told.contains("Choices have letters. For The second, type B.") {
            break;
        }
        assert!(told.contains("after question 1 came"), "{told}");
    }
    ear.types("b");
    assert_eq!(outcome(first), (Some(0), "The second\n".to_owned()));
    let second = ear.ask(&years);
    ear.hears("Answer A or B: ");
    ear.types("2 2");
    assert_eq!(
        outcome(second),
        (Some(0), "The second\n".to_owned()),
        "the second choice of question 2"
    );
    ear.quit();
}

#[test]
fn a_line_from_a_pipe_that_was_begun_before_the_ask_answers_nothing() {
    let mut ear = Ear::new(&[]);
    ear.begins_to_type("ye");
    // Lines typed afterwards are read afterwards.
    let asking = ear.ask(DANGEROUS);
    ear.hears(PROMPT);
    ear.begins_to_type("s\n");
    ear.hears(&format!("You typed \"yes\". {ANOTHER}"));
    ear.types("1 no");
    rejected(asking);
    ear.quit();
}

#[test]
fn every_command_tells_an_ask_exactly() {
    let action = "Pay 900 euros to DE89370400440532013000, ~~do not~~ run __init__ -x.";
    let mut ear = Ear::new(&[]);
    let asking = ear.ask(&[action, "--risk", "high"]);
    let told = ear.hears(PROMPT);
    assert!(told.contains(action), "{told}");
    ear.types("list");
    ear.hears(action);
    for command in [&["attention"][..], &["answer"], &["answer", "1"]] {
        let told = out(&ear.aaep(command).output().expect("aaep runs"));
        assert!(told.contains(action), "{command:?}: {told}");
    }
    ear.types("1 no");
    rejected(asking);
    ear.hears("settled:");
    let told = out(&ear.aaep(&["replay", "--since", "1h"]).output().expect("aaep runs"));
    assert!(told.contains(action), "{told}");
    ear.quit();
}

#[test]
fn the_demonstration_is_answered_in_a_terminal_and_gives_it_back() {
    let demo = ["demo", "--no-speech", "--bind", "127.0.0.1:0"];
    let terminal = Terminal::run(None, &demo, "notice: Listening.\n");
    terminal.wait_until("a permission", |raw| raw.contains("Answer yes or no: "));
    terminal.wait_until("the rest of what it interrupted", |raw| raw.contains("left it as it is."));
    terminal.types("1 no");
    terminal.wait_until("its end", |raw| raw.contains("Nothing was deleted."));
    terminal.wait_for("Exit code 0.\n");
    assert!(terminal.modes().contains(" icanon"), "{}", terminal.modes());
}
