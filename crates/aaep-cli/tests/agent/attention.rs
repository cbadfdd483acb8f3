//! Pending questions, and answers by number: to exactly that question, or to none.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Hub, Person, aaep, err, out};

/// A person who listens at a machine with a hub, with question numbers of their own.
struct Desk {
    hub: Hub,
    person: Person,
    folder: TempDir,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let hub = Hub::serve(folder.path(), "127.0.0.1:0");
        let person = hub.person();
        Desk { hub, person, folder }
    }

    fn at_home(&self, mut command: Command) -> Command {
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
            command.env(name, self.folder.path());
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.at_home(self.hub.aaep(arguments)).output().expect("aaep runs")
    }

    /// The same without being told where the hub is.
    fn run_alone(&self, arguments: &[&str]) -> Output {
        self.at_home(aaep(arguments)).output().expect("aaep runs")
    }

    /// Answers. Returns the exit code and the output.
    fn answer(&self, words: &[&str]) -> (Option<i32>, String) {
        let output = self.run(&[&["answer"], words].concat());
        (output.status.code(), out(&output) + &err(&output))
    }

    /// Asks in the background. Returns when the question is pending.
    fn ask(&self, agent: &str, arguments: &[&str]) -> (Child, Value) {
        let mut command = self.hub.aaep(&[&["ask", "--agent", agent], arguments].concat());
        let asking =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("aaep runs");
        let kinds = ["awaiting.confirmation", "awaiting.clarification"];
        (asking, self.person.hears_any(&kinds))
    }

    fn attention(&self) -> (Option<i32>, String) {
        let output = self.run(&["attention"]);
        (output.status.code(), out(&output) + &err(&output))
    }

    fn waiting(&self) -> Value {
        let output = self.run(&["attention", "--json"]);
        serde_json::from_str(&out(&output)).unwrap_or_else(|_| panic!("{}", err(&output)))
    }

    fn numbers_file(&self) -> PathBuf {
        self.folder.path().join("aaep/questions.json")
    }
}

fn end(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().expect("aaep ends");
    (output.status.code(), out(&output))
}

const DANGEROUS: &[&str] = &["Delete 240 photos?", "--irreversible", "--risk", "high"];
const HARMLESS: &[&str] = &["Sort the mail?", "--risk", "low"];

#[test]
fn with_nothing_open_nothing_waits() {
    let desk = Desk::new();
    assert_eq!(desk.attention(), (Some(0), "Nothing waits for you.\n".to_owned()));
    assert_eq!(desk.answer(&[]), (Some(0), "Nothing waits for you.\n".to_owned()));
}

#[test]
fn the_riskiest_is_told_first_and_an_answer_settles_that_one_and_only_that() {
    let desk = Desk::new();
    let (mail, _) = desk.ask("mail", HARMLESS);
    let (photos, _) = desk.ask("photos", DANGEROUS);
    let (code, told) = desk.attention();
    assert_eq!(code, Some(1), "{told}");
    let risky = told.find("Question 2, from photos: Delete 240 photos?").expect(&told);
    let other = told.find("Question 1, from mail: Sort the mail?").expect(&told);
    assert!(risky < other, "{told}");
    assert!(told.contains("Risk: high. It cannot be undone."), "{told}");
    assert!(told.contains("Without an answer: no, in "), "{told}");

    assert_eq!(desk.answer(&["2", "no"]), (Some(0), "You refused it.\n".to_owned()));
    assert_eq!(end(photos), (Some(1), "reject\n".to_owned()));
    let waiting = desk.waiting();
    assert_eq!(waiting["waiting"], 1, "{waiting}");
    assert_eq!(waiting["questions"][0]["number"], 1);

    let (files, _) = desk.ask("files", HARMLESS);
    let numbers: Vec<Value> = {
        let waiting = desk.waiting();
        let questions = waiting["questions"].as_array().expect("a list");
        questions.iter().map(|it| it["number"].clone()).collect()
    };
    assert_eq!(numbers, [json!(1), json!(3)], "2 stands for what it stood for");
    assert_eq!(desk.answer(&["1", "Yes."]), (Some(0), "You allowed it.\n".to_owned()));
    assert_eq!(end(mail), (Some(0), "accept\n".to_owned()));
    assert_eq!(desk.answer(&["3", "deny"]).0, Some(0));
    assert_eq!(end(files).0, Some(1));
}

#[test]
fn an_answer_to_a_settled_question_does_not_count_and_says_how_it_was_settled() {
    let desk = Desk::new();
    let (asking, question) = desk.ask("photos", DANGEROUS);
    desk.attention();
    assert!(desk.person.decides(&question, "reject"));
    assert_eq!(end(asking).0, Some(1));
    let (code, said) = desk.answer(&["1", "yes"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("Question 1 is over"), "{said}");
    assert!(said.contains("It was refused before."), "{said}");
    let (code, said) = desk.answer(&["1"]);
    assert_eq!((code, said.as_str()), (Some(1), "Question 1 is over.\n"));
    let (code, said) = desk.answer(&["7", "yes"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("No question has the number 7."), "{said}");
}

#[test]
fn words_that_are_not_clear_answer_nothing() {
    let desk = Desk::new();
    let (asking, _) = desk.ask("photos", DANGEROUS);
    desk.attention();
    for unclear in [&["ok"][..], &["sure"], &["y"], &["yes", "please"], &["--yes"], &["later", "x"]]
    {
        let (code, said) = desk.answer(&[&["1"], unclear].concat());
        assert_eq!(code, Some(1), "{unclear:?}: {said}");
        assert!(said.contains("Nothing was answered."), "{said}");
        assert!(said.contains("aaep answer 1 yes"), "{said}");
    }
    assert_eq!(desk.waiting()["waiting"], 1, "it waits as before");
    assert_eq!(desk.answer(&["1", "allow"]).0, Some(0));
    assert_eq!(end(asking).0, Some(0));
}

#[test]
fn more_time_moves_the_deadline_and_the_question_stays_open_for_all_listeners() {
    let desk = Desk::new();
    let (asking, _) =
        desk.ask("photos", &["Delete it?", "--timeout", "120", "--max-timeout", "3600"]);
    let left = |desk: &Desk| desk.waiting()["questions"][0]["left_ms"].as_u64().expect("a time");
    assert!(left(&desk) <= 120_000);
    let (code, said) = desk.answer(&["1", "later", "600"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("The question waits for 1"), "{said}");
    assert!(left(&desk) > 120_000, "the one who extended is gone, and it waits on");
    assert_eq!(desk.answer(&["1", "pause"]).0, Some(0));
    assert_eq!(desk.waiting()["questions"][0]["paused"], true);
    assert!(desk.attention().1.contains("The time stands still"));
    assert_eq!(desk.answer(&["1", "resume"]).0, Some(0));
    assert_eq!(desk.waiting()["questions"][0]["paused"], false);
    assert_eq!(desk.answer(&["1", "no"]).0, Some(0));
    assert_eq!(end(asking).0, Some(1));
}

#[test]
fn time_that_the_agent_does_not_give_is_not_there() {
    let desk = Desk::new();
    let (asking, _) = desk.ask("photos", DANGEROUS);
    desk.attention();
    let (code, said) = desk.answer(&["1", "more", "time"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("does not change the time"), "{said}");
    assert_eq!(desk.answer(&["1", "no"]).0, Some(0));
    assert_eq!(end(asking).0, Some(1));
}

#[test]
fn choices_and_free_words_are_answered() {
    let desk = Desk::new();
    let (asking, _) = desk.ask("paint", &["Which?", "--choices", "red,blue"]);
    let (_, told) = desk.attention();
    assert!(told.contains("  B. blue"), "{told}");
    assert_eq!(desk.answer(&["1", "3"]).0, Some(1));
    assert_eq!(desk.answer(&["1", "b"]), (Some(0), "You answered: blue.\n".to_owned()));
    assert_eq!(end(asking), (Some(0), "blue\n".to_owned()));
    let (asking, _) = desk.ask("paint", &["When?", "--freetext"]);
    desk.attention();
    let (code, said) = desk.answer(&["--text", "2", "later"]);
    assert_eq!((code, said.as_str()), (Some(0), "You answered: later.\n"));
    assert_eq!(end(asking), (Some(0), "later\n".to_owned()));
}

#[test]
fn a_question_that_is_not_the_one_that_was_told_is_not_answered() {
    let desk = Desk::new();
    let (asking, _) = desk.ask("photos", DANGEROUS);
    desk.attention();
    let written = fs::read_to_string(desk.numbers_file()).expect("numbers");
    let numbers: Value = serde_json::from_str(&written).expect("JSON");
    for (pointer, said) in [
        ("/questions/1/identity", "Another question is asked now"),
        ("/questions/1/words/0", "in other words than you were told"),
    ] {
        let mut other = numbers.clone();
        *other.pointer_mut(pointer).expect("a hash") = "0".repeat(64).into();
        fs::write(desk.numbers_file(), other.to_string()).expect("written");
        let (code, told) = desk.answer(&["1", "yes"]);
        assert_eq!(code, Some(1), "{told}");
        assert!(told.contains(said) && told.contains("Nothing was answered."), "{told}");
    }
    fs::write(desk.numbers_file(), written).expect("written");
    assert_eq!(desk.answer(&["1", "no"]).0, Some(0), "the right one is answered");
    assert_eq!(end(asking).0, Some(1));
}

#[test]
fn numbers_that_are_broken_stand_for_nothing() {
    let desk = Desk::new();
    let (asking, _) = desk.ask("photos", DANGEROUS);
    desk.attention();
    fs::write(desk.numbers_file(), "{\"last\":1").expect("written");
    let (code, said) = desk.answer(&["1", "yes"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("it is broken") && said.contains("No question has the number 1."),
        "{said}"
    );
    assert_eq!(desk.waiting()["questions"][0]["number"], 1, "it is told anew");
    assert_eq!(desk.answer(&["1", "no"]).0, Some(0));
    assert_eq!(end(asking).0, Some(1));
}

#[test]
fn one_question_is_told_with_how_to_answer_it() {
    let desk = Desk::new();
    let (asking, _) = desk.ask("photos", DANGEROUS);
    let (code, said) = desk.answer(&[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("Question 1, from photos") && said.contains("aaep answer 1 yes"),
        "{said}"
    );
    let (code, again) = desk.answer(&["1"]);
    assert_eq!(code, Some(1), "{again}");
    assert!(again.contains("Delete 240 photos?") && again.contains("aaep answer 1 no"), "{again}");
    assert_eq!(desk.answer(&["1", "no"]).0, Some(0));
    assert_eq!(end(asking).0, Some(1));
}

#[cfg(unix)]
#[test]
fn without_an_address_it_is_the_persons_own_hub_by_its_socket() {
    let desk = Desk::new();
    let (asking, _) = desk.ask("photos", DANGEROUS);
    let output = desk.run_alone(&["attention", "--json"]);
    let waiting: Value = serde_json::from_str(&out(&output)).expect("JSON");
    assert_eq!(waiting["questions"][0]["address"], "unix:", "{waiting}");
    assert_eq!(desk.waiting()["questions"][0]["number"], 1, "the same by another way");
    let output = desk.run_alone(&["attention"]);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    let output = desk.run_alone(&["answer", "1", "yes"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(end(asking).0, Some(0));
}

#[test]
fn a_hub_that_is_not_there_is_said_and_nobody_claims_that_nothing_waits() {
    let desk = Desk::new();
    let (asking, _) = desk.ask("photos", DANGEROUS);
    let output = desk.run(&["attention", "--hub", "http://127.0.0.1:1", "--hub", &desk.hub.origin]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("no hub answers at http://127.0.0.1:1"), "{}", err(&output));
    assert!(out(&output).contains("Question 1, from photos"), "{}", out(&output));
    let output = desk.run(&["attention", "--hub", "http://127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!out(&output).contains("Nothing waits for you.\n"), "{}", out(&output));
    assert_eq!(desk.run(&["attention", "--hub", "nonsense"]).status.code(), Some(2));
    assert_eq!(desk.answer(&["1", "no"]).0, Some(0));
    assert_eq!(end(asking).0, Some(1));
}

#[test]
fn an_answer_by_a_rule_is_audited_as_automatic_and_that_of_a_person_is_not() {
    let desk = Desk::new();
    // A rule may accept only what the agent says everything about.
    let (asking, question) =
        desk.ask("photos", &["Sort the mail?", "--risk", "low", "--irreversible"]);
    let (status, body) = desk.person.says(json!({
        "type": "confirmation.reply", "reply_token": question["reply_token"], "decision": "accept",
        "timestamp": "2020-01-01T00:00:00.000Z", "decided_by": "automatic: sorting mail",
    }));
    assert_eq!(status, 204, "{body}");
    assert_eq!(end(asking).0, Some(0));
    let (asking, _) = desk.ask("photos", HARMLESS);
    desk.attention();
    assert_eq!(desk.answer(&["1", "yes"]).0, Some(0));
    assert_eq!(end(asking).0, Some(0));
    let Desk { hub, person, folder } = desk;
    drop((hub, person));
    let mut show = aaep(&["audit", "show", "--store"]);
    let output = show.arg(folder.path().join("store")).output().expect("aaep runs");
    let text = out(&output);
    let replies: Vec<&str> = text.lines().filter(|line| line.contains(": reply, ")).collect();
    assert_eq!(replies.len(), 2, "{text}");
    assert!(replies[0].contains("Outcome: counted, automatic."), "{text}");
    assert!(replies[0].contains("automatic: sorting mail"), "{text}");
    assert!(replies[1].ends_with("Outcome: counted."), "{text}");
}
