//! `aaep listen` against a real hub: what is told in lines, and that an answer goes only where it was meant.

use std::process::Stdio;

use crate::ear::{DANGEROUS, Ear, outcome};
use crate::support::out;

#[test]
fn what_an_agent_says_is_told_without_marks() {
    let mut ear = Ear::new(&[]);
    let said = ear.hub.run(&["emit", "say", "Hello **world**. See `main.rs`."]);
    assert!(said.status.success());
    ear.hears("agent: Hello world. See main.rs.\n");
    ear.quit();
}

#[test]
fn a_question_is_put_whole_and_answered_by_its_number() {
    let mut ear = Ear::new(&[]);
    let asking = ear.ask(DANGEROUS);
    let told = ear.hears("Answer yes or no: ");
    for words in
        ["Permission required:", "Delete 240 photos?", "High risk.", "It cannot be undone."]
    {
        assert_eq!(told.matches(words).count(), 1, "{words:?} in {told}");
    }
    ear.types("1 yes");
    ear.hears("settled:");
    assert_eq!(outcome(asking), (Some(0), "accept\n".to_owned()));
    ear.quit();
}

#[test]
fn words_that_are_not_clear_answer_nothing() {
    let mut ear = Ear::new(&[]);
    let asking = ear.ask(DANGEROUS);
    ear.hears("Answer yes or no: ");
    for words in ["1 sure", "1 ok", "1 yes please"] {
        ear.types(words);
        ear.hears("Nothing was answered.");
    }
    ear.types("2 yes");
    ear.hears("You typed \"2 yes\". No question with the number 2 waits. Nothing was answered.");
    ear.types("1 no");
    assert_eq!(outcome(asking), (Some(1), "reject\n".to_owned()));
    ear.quit();
}

#[test]
fn a_yes_without_a_number_is_not_for_a_question_that_came_just_now() {
    let mut ear = Ear::new(&[]);
    let first = ear.ask(&["Sort the mail?", "--risk", "low"]);
    ear.hears("Answer yes or no: ");
    // This one is settled while the person decides, and another one takes its place.
    ear.types("1 no");
    assert_eq!(outcome(first), (Some(1), "reject\n".to_owned()));
    let second = ear.ask(DANGEROUS);
    ear.hears("Answer yes or no: ");
    ear.types("yes");
    let told = ear.hears("Nothing was answered. If you mean it, type 2 first.");
    assert!(told.contains("You typed \"yes\".") && told.contains("question 2"), "{told}");
    ear.types("2");
    ear.hears("You typed \"2\". Nothing was answered. Question 2 again:");
    ear.hears("Answer yes or no: ");
    ear.types("no");
    assert_eq!(outcome(second), (Some(1), "reject\n".to_owned()));
    ear.quit();
}

#[test]
fn a_question_that_was_refused_does_not_end_in_an_error() {
    let mut ear = Ear::new(&[]);
    let asking = ear.ask(DANGEROUS);
    ear.hears("Answer yes or no: ");
    ear.types("1 no");
    assert_eq!(outcome(asking), (Some(1), "reject\n".to_owned()));
    ear.hub.run(&["emit", "say", "Goodbye."]);
    let told = ear.hears("Goodbye.");
    assert!(told.contains("Not accepted."), "{told}");
    assert!(!told.contains("error:") && !told.contains("In fact"), "{told}");
    ear.quit();
}

#[test]
fn agents_of_one_kind_are_called_the_same_in_speech_list_and_attention() {
    let mut ear = Ear::new(&[]);
    let asks = [
        (&["--agent", "Coder"][..], "Coder"),
        (&["--agent", "Coder"], "Coder 2"),
        (&["--agent", "Coder", "--project", "work/shop"], "Coder in work/shop"),
    ];
    let mut asking = Vec::new();
    for (at, (speaker, label)) in asks.iter().enumerate() {
        asking.push(ear.ask(&[&["Sort the mail?", "--risk", "low"], *speaker].concat()));
        let told = ear.hears("Answer yes or no: ");
        let number = if at == 0 { String::new() } else { format!(", question {}", at + 1) };
        assert!(told.contains(&format!("{label} asks{number}: Sort the mail?")), "{told}");
    }
    ear.types("list");
    for (number, name) in [(1, "Coder"), (2, "Coder 2"), (3, "Coder in work/shop")] {
        ear.hears(&format!("Question {number}, from {name}: "));
    }
    let told = out(&ear.aaep(&["attention"]).output().expect("aaep runs"));
    for (number, name) in [(1, "Coder"), (2, "Coder 2"), (3, "Coder in work/shop")] {
        assert!(told.contains(&format!("Question {number}, from {name}: ")), "{told}");
    }
    for (number, asking) in (1..).zip(asking) {
        ear.types(&format!("{number} no"));
        assert_eq!(outcome(asking).0, Some(1));
    }
    ear.quit();
}

#[test]
fn with_two_questions_open_an_answer_needs_a_number() {
    let mut ear = Ear::new(&[]);
    let one = ear.ask(&["Sort the mail?", "--risk", "low", "--agent", "mail"]);
    ear.hears("Answer yes or no: ");
    let other = ear.ask(&[DANGEROUS, &["--agent", "photos"]].concat());
    ear.hears("Answer yes or no: ");
    ear.types("no");
    ear.hears("You typed \"no\". Several questions wait. Nothing was answered.");
    ear.types("2 no");
    assert_eq!(outcome(other), (Some(1), "reject\n".to_owned()));
    ear.types("list");
    let told = ear.hears("Time left:");
    assert!(told.contains("Question 1, from mail: Sort the mail?"), "{told}");
    ear.types("1 yes");
    assert_eq!(outcome(one), (Some(0), "accept\n".to_owned()));
    ear.quit();
}

#[test]
fn a_rule_of_the_person_answers_what_it_names_and_nothing_else() {
    let rules = "[[rules]]\nname = \"no photos\"\nagent = \"photos\"\nanswer = \"reject\"\n";
    let mut ear = Ear::with_settings(rules, &[]);
    let unwanted = ear.ask(&[DANGEROUS, &["--agent", "photos"]].concat());
    ear.hears("Your rule no photos answered no: Delete 240 photos?");
    assert_eq!(outcome(unwanted), (Some(1), "reject\n".to_owned()));
    let other = ear.ask(&["Sort the mail?", "--risk", "low", "--agent", "mail"]);
    ear.hears("Answer yes or no: ");
    ear.types("1 no");
    assert_eq!(outcome(other), (Some(1), "reject\n".to_owned()));
    ear.quit();
}

#[test]
fn a_rule_never_consents_to_what_nobody_called_harmless() {
    let rules = "[[rules]]\nname = \"all mail\"\nagent = \"mail\"\nanswer = \"accept\"\n";
    let mut ear = Ear::with_settings(rules, &[]);
    for arguments in [DANGEROUS, &["Sort the mail?"], &["Sort the mail?", "--risk", "low"]] {
        // The agent did not say whether sorting the mail can be undone.
        let asking = ear.ask(&[arguments, &["--agent", "mail"]].concat());
        ear.hears("Answer yes or no: ");
        ear.types("no");
        assert_eq!(outcome(asking), (Some(1), "reject\n".to_owned()));
        ear.hears("settled:");
    }
    ear.quit();
}

#[test]
fn an_answer_from_elsewhere_takes_the_question_away() {
    let mut ear = Ear::new(&[]);
    let asking = ear.ask(DANGEROUS);
    ear.hears("Answer yes or no: ");
    let answered = ear.aaep(&["answer", "1", "no"]).output().expect("aaep runs");
    assert_eq!(out(&answered), "You refused it.\n");
    let told = ear.hears("settled:");
    assert!(told.ends_with("settled:"), "{told}");
    ear.types("yes");
    ear.hears("You typed \"yes\". Nothing waits for you. Nothing was answered.");
    ear.types("1 yes");
    ear.hears("You typed \"1 yes\". That was for another question. Nothing was answered.");
    assert_eq!(outcome(asking), (Some(1), "reject\n".to_owned()));
    ear.quit();
}

#[test]
fn a_program_that_holds_the_numbers_for_ever_keeps_no_question_from_the_person() {
    let mut ear = Ear::new(&[]);
    let place = ear.folder.path().join("aaep");
    let lock = std::fs::File::create(place.join("questions.lock")).expect("the lock");
    lock.lock().expect("it is held");
    let asking = ear.ask(DANGEROUS);
    ear.hears("Answer yes or no: ");
    ear.types("no");
    assert_eq!(outcome(asking), (Some(1), "reject\n".to_owned()));
    // The number is one of our own, and means nothing else.
    let asking = ear.ask(DANGEROUS);
    ear.hears("Answer yes or no: ");
    ear.types("1 yes");
    ear.hears("No question with the number 1 waits.");
    ear.types("501 yes");
    assert_eq!(outcome(asking), (Some(0), "accept\n".to_owned()));
    ear.quit();
    drop(lock);
}

#[test]
fn lines_have_no_pace_and_say_so() {
    let mut ear = Ear::new(&[]);
    ear.types("faster");
    ear.hears("Only speech and braille have a pace, and neither is on.\n");
    ear.quit();
}

#[test]
fn programs_get_one_object_a_line() {
    let mut ear = Ear::with_settings("", &["--json"]);
    assert!(ear.hub.run(&["emit", "say", "Hello."]).status.success());
    let lines = ear.hears("Hello.");
    let last = lines.lines().last().expect("a line");
    assert!(last.starts_with('{'), "{last}");
    ear.quit();
}

#[test]
fn without_a_hub_the_next_step_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = crate::support::aaep(&["listen", "--hub", "http://127.0.0.1:9"]);
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
        command.env(name, folder.path());
    }
    let output = command.stdin(Stdio::null()).output().expect("aaep runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        crate::support::err(&output).contains("aaep serve"),
        "{}",
        crate::support::err(&output)
    );
}
