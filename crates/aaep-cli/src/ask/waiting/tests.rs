//! How waiting handles a hub that answers well, badly or not at all, or that restarts.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;

use aaep_trust::fetch::HttpAddress;
use serde_json::json;

use super::super::question::tests::{delete_it, question};
use super::*;

/// What the fake hub does with one request.
enum FakeHubTurn {
    Answers(u16, Value),
    Hangs,
}

/// Starts a hub that plays these turns; also returns the first line of each request it receives.
fn hub(turns: Vec<FakeHubTurn>) -> (HubClient, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, requests) = mpsc::channel();
    thread::spawn(move || {
        let mut turns = VecDeque::from(turns);
        while let Some(turn) = turns.pop_front() {
            let (mut stream, _) = listener.accept().expect("a caller");
            let mut text = String::new();
            let mut buffer = [0; 8192];
            // The client sends each request at once, and these fit into one or two reads.
            while !is_whole(&text) {
                let count = stream.read(&mut buffer).expect("a request");
                text.push_str(&String::from_utf8_lossy(&buffer[..count]));
            }
            let _ = sender.send(text.lines().next().unwrap_or_default().to_owned());
            if let FakeHubTurn::Answers(status, body) = turn {
                let body = body.to_string();
                let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", body.len());
                let _ = stream.write_all((head + &body).as_bytes());
            }
        }
    });
    (HubClient::new(HttpAddress::parse(&address).expect("an address"), None), requests)
}

fn is_whole(text: &str) -> bool {
    text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        body.len() >= length.map_or(0, |it| it.parse().expect("a length"))
    })
}

fn settled(question: &PreparedAsk, outcome: &str, decided_by: &str) -> FakeHubTurn {
    let ids = json!({
        "status": "settled", "event_id": question.event_id, "session_id": "sess_a1",
        "reply_token": question.reply_token, "outcome": outcome, "decided_by": decided_by,
    });
    FakeHubTurn::Answers(200, ids)
}

fn open(question: &PreparedAsk) -> FakeHubTurn {
    let ids = json!({
        "status": "open", "event_id": question.event_id, "session_id": "sess_a1",
        "reply_token": question.reply_token, "deadline": "2026-11-02T06:20:00.000Z",
    });
    FakeHubTurn::Answers(202, ids)
}

#[test]
fn an_accept_of_this_question_is_a_yes() {
    let question = delete_it();
    let (client, requests) = hub(vec![open(&question), settled(&question, "accept", "reply")]);
    let outcome = wait(&client, &question).expect("an outcome");
    assert!(outcome.is_yes());
    let lines: Vec<String> = requests.iter().take(2).collect();
    assert!(lines[0].starts_with("POST /aaep/v1/asks?wait_seconds=0 "), "{lines:?}");
    assert!(
        lines[1].starts_with(&format!("GET /aaep/v1/asks/{}?", question.reply_token)),
        "{lines:?}"
    );
}

#[test]
fn nothing_but_accept_is_a_yes() {
    for word in ["reject", "answered", "unanswered", "withdrawn", "ACCEPT", "accepted", "", "later"]
    {
        let question = delete_it();
        let (client, _requests) = hub(vec![settled(&question, word, "reply")]);
        let outcome = wait(&client, &question).expect("an outcome");
        assert!(!outcome.is_yes(), "{word}");
    }
}

#[test]
fn an_accept_that_nobody_gave_is_a_yes_only_to_what_silence_may_consent_to() {
    let asks: [&[&str]; 5] = [
        &["Go on?"],
        &["Go on?", "--risk", "low"],
        &["Go on?", "--reversible"],
        &["Go on?", "--risk", "medium", "--reversible"],
        &["Go on?", "--risk", "low", "--reversible"],
    ];
    for (at, line) in asks.iter().enumerate() {
        let question = question(line).expect("a question");
        let may_be_silent = at == asks.len() - 1;
        for (decided_by, is_yes) in [
            ("reply", true),
            ("timeout", may_be_silent),
            ("no_listener", may_be_silent),
            ("withdrawn", false),
            ("someone", false),
            ("", false),
        ] {
            let (client, _requests) = hub(vec![settled(&question, "accept", decided_by)]);
            let outcome = wait(&client, &question).expect("an outcome");
            assert_eq!(outcome.is_yes(), is_yes, "{line:?} {decided_by}");
            assert_eq!(outcome.printed() == "accept", is_yes, "{line:?} {decided_by}");
            assert_eq!(outcome.sentence().starts_with("Accepted."), is_yes, "{decided_by}");
        }
    }
}

#[test]
fn an_accept_of_another_question_is_no_outcome() {
    let question = delete_it();
    let other = delete_it();
    let mut half = delete_it();
    half.reply_token.clone_from(&question.reply_token);
    for accept in [
        settled(&other, "accept", "reply"),
        settled(&half, "accept", "reply"),
        FakeHubTurn::Answers(200, json!({ "outcome": "accept" })),
        FakeHubTurn::Answers(200, json!("accept")),
        FakeHubTurn::Answers(
            200,
            json!({ "status": "open", "outcome": "accept",
            "event_id": question.event_id, "reply_token": question.reply_token }),
        ),
        FakeHubTurn::Answers(
            202,
            json!({ "status": "settled", "outcome": "accept",
            "event_id": question.event_id, "reply_token": question.reply_token }),
        ),
    ] {
        let (client, _requests) = hub(vec![accept]);
        assert!(wait(&client, &question).is_err());
    }
}

#[test]
fn an_error_with_an_accept_inside_is_no_outcome() {
    let question = delete_it();
    for status in [201, 400, 401, 403, 409, 422] {
        let FakeHubTurn::Answers(_, body) = settled(&question, "accept", "reply") else {
            unreachable!()
        };
        let (client, _requests) = hub(vec![FakeHubTurn::Answers(status, body)]);
        assert!(wait(&client, &question).is_err(), "{status}");
    }
}

#[test]
fn after_a_restart_the_same_question_is_found_again() {
    let question = delete_it();
    let gone = json!({ "error": "starting", "message": "Not yet. Try again." });
    let (client, requests) = hub(vec![
        open(&question),
        FakeHubTurn::Hangs,
        FakeHubTurn::Answers(503, gone),
        open(&question),
        settled(&question, "reject", "reply"),
    ]);
    let outcome = wait(&client, &question).expect("an outcome");
    assert_eq!((outcome.word(), outcome.is_yes()), ("reject", false));
    let methods: Vec<String> = requests
        .iter()
        .take(5)
        .map(|line| line.split(' ').next().unwrap_or_default().to_owned())
        .collect();
    // A look that was cut off is repeated as it was.
    assert_eq!(methods, ["POST", "GET", "GET", "POST", "GET"]);
}

#[test]
fn a_hub_that_never_took_the_question_is_not_waited_for() {
    let question = delete_it();
    for turn in [FakeHubTurn::Answers(503, json!({})), FakeHubTurn::Answers(404, json!({}))] {
        let (client, requests) = hub(vec![turn]);
        assert!(wait(&client, &question).is_err());
        assert_eq!(requests.iter().count(), 1);
    }
}

#[test]
fn a_question_whose_first_answer_was_lost_is_asked_once_more_and_not_anew() {
    let question = delete_it();
    let (client, requests) =
        hub(vec![FakeHubTurn::Hangs, open(&question), settled(&question, "accept", "reply")]);
    assert!(wait(&client, &question).expect("an outcome").is_yes());
    let lines: Vec<String> = requests.iter().take(3).collect();
    assert!(lines[0] == lines[1] && lines[1].starts_with("POST "), "{lines:?}");
}

#[test]
fn a_hub_that_is_gone_is_tried_no_longer_than_the_question_lasts_and_a_grace() {
    let question = delete_it();
    let now = Instant::now();
    let second = Duration::from_secs(1);
    let timeout = Duration::from_secs(question.timeout_seconds);
    let over = now + timeout + GRACE;
    let gone = || PollTrouble::NoAnswer(NoAnswer::CutOff(std::io::ErrorKind::TimedOut.into()));
    let mut patience = HubPatience::new(now, &question);
    assert!(now + patience.left(now) <= over, "not even the first request takes longer");
    assert!(patience.tolerates(&gone(), now), "it may have heard the question");
    patience.note_open(now, Some(second));
    assert!(now + patience.left(now) <= over, "a hub that hangs is cut off");
    assert!(patience.tolerates(&gone(), now + timeout));
    assert!(!patience.tolerates(&gone(), over + second), "and then it is over");
    // A hub whose clock is far ahead changes nothing.
    patience.note_open(now, Some(Duration::from_hours(24)));
    assert!(!patience.tolerates(&gone(), over + second));
    patience.note_open(now, None);
    assert!(!patience.tolerates(&gone(), over + second));
}

#[test]
fn a_question_that_was_given_more_time_is_waited_for_until_then() {
    let mut question = delete_it();
    question.longest_seconds = 600;
    let now = Instant::now();
    let minute = Duration::from_mins(1);
    let gone = || PollTrouble::NoAnswer(NoAnswer::CutOff(std::io::ErrorKind::TimedOut.into()));
    let mut patience = HubPatience::new(now, &question);
    patience.note_open(now, Some(2 * minute));
    assert!(patience.tolerates(&gone(), now + minute));
    assert!(!patience.tolerates(&gone(), now + 3 * minute));
    patience.note_open(now, None);
    assert!(patience.tolerates(&gone(), now + 9 * minute), "its time stands still");
    assert!(!patience.tolerates(&gone(), now + 11 * minute));
    patience.note_open(now + 4 * minute, Some(Duration::ZERO));
    assert!(patience.tolerates(&gone(), now + 4 * minute), "it was there just now");
}

#[test]
fn a_clarification_needs_an_answer() {
    let outcome =
        |answer| ReportedOutcome { kind: AnswerKind::Clarification, allows_default: false, answer };
    let red = outcome(json!({ "outcome": "answered", "response": "red" }));
    assert!(red.is_yes());
    assert_eq!(red.response().as_deref(), Some("red"));
    assert_eq!(
        outcome(json!({ "outcome": "answered", "response": 4 })).response().as_deref(),
        Some("4")
    );
    for answer in [
        json!({ "outcome": "answered" }),
        json!({ "outcome": "answered", "response": null }),
        json!({ "outcome": "unanswered", "response": "red" }),
        json!({ "outcome": "accept", "response": "red" }),
    ] {
        assert!(!outcome(answer.clone()).is_yes(), "{answer}");
    }
}
