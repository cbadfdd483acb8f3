//! What a person hears of questions, and what comes of an answer.

#[path = "common/support.rs"]
mod support;

use aaep::event::human::Decision;
use aaep::reply::Response;
use aaep_announce::{
    AnnouncerInput, AnnouncerOutcome, Answer, AnsweredBy, AskEnding, Asked, DeviceReport, Earcon,
    ListeningRequest, MAX_QUESTIONS, Order, Preferences, UtteranceKind, Weight,
};
use serde_json::json;
use support::{Room, confirmation, event, event_of, resolution, seconds};

/// Another agent says this.
fn loom_says(words: &str) -> aaep::Event {
    let fields = json!({ "chunk": words, "position": 0, "complete": true });
    event_of("Loom", "b", "output.streaming", &fields)
}

#[test]
fn a_confirmation_says_what_is_asked_first_and_keeps_what_matters() {
    let mut room = Room::by_hand();
    room.ask(1, &confirmation("rpl_1"));
    let utterance = room.speaking.clone().expect("the question");
    assert_eq!(
        utterance.words,
        "Weaver asks: Delete 17 pictures from /home/ada/work/july. They are gone for good. High risk. It cannot be \
         undone. The tool is delete_files. You have 5 minutes. Without an answer it is refused. Yes or no?"
    );
    assert_eq!((utterance.kind, utterance.weight), (UtteranceKind::Question, Weight::Critical));
    let choices: Vec<_> =
        utterance.choices.iter().map(|it| (it.words.as_str(), it.is_consent)).collect();
    assert_eq!(choices, [("No", false), ("Yes", true)]);
}

#[test]
fn no_is_offered_whatever_the_agent_allows() {
    for (allowed, expected) in [
        (json!(["accept"]), vec!["No", "Yes"]),
        (json!(["reject"]), vec!["No"]),
        (json!(["later"]), vec!["No"]),
    ] {
        let mut room = Room::quiet();
        let asked = json!({
            "action": "Sort the pictures.", "consequence": "The order changes.",
            "reply_token": "rpl_1", "timeout_seconds": 60, "default_decision": "accept",
            "allowed_replies": allowed,
        });
        room.ask(1, &event("awaiting.confirmation", &asked));
        let utterance = room.speaking.clone().expect("the question");
        let words: Vec<_> = utterance.choices.iter().map(|it| it.words.as_str()).collect();
        assert_eq!(words, expected, "{allowed}");
    }
}

#[test]
fn code_in_a_confirmation_is_read_and_not_counted() {
    let mut room = Room::by_hand();
    let asked = event(
        "awaiting.confirmation",
        &json!({
            "action": "Run:\n```sh\nrm -rf /srv/data\n```", "consequence": "See https://example.org/a.",
            "reply_token": "rpl_1", "timeout_seconds": 60, "default_decision": "accept",
        }),
    );
    room.ask(1, &asked);
    assert!(room.words().contains("rm -rf /srv/data"), "{}", room.words());
    assert!(room.words().contains("example.org/a."), "{}", room.words());
    assert!(room.words().contains("Without an answer it goes ahead."), "{}", room.words());
}

#[test]
fn however_long_an_action_is_it_is_told_whole_and_so_is_the_risk() {
    let mut room = Room::by_hand();
    let (action, consequence) = ("Delete everything. ".repeat(800), "All is gone. ".repeat(1000));
    let asked = json!({
        "action": action, "consequence": consequence, "reply_token": "rpl_1", "timeout_seconds": 60,
        "default_decision": "reject", "risk_level": "high", "irreversible": true,
    });
    room.ask(1, &event("awaiting.confirmation", &asked));
    let words = room.words().to_owned();
    assert!(words.contains(action.trim()) && !words.contains(consequence.trim()));
    assert!(words.starts_with("Weaver asks: High risk. It cannot be undone. Delete everything."));
    assert!(words.contains("There is more about it. To hear that: more. You have"), "{words}");
    room.listen();
    room.handle(AnnouncerInput::Request(ListeningRequest::More));
    let heard = room.listen();
    assert!(heard.len() == 1 && heard[0].contains(consequence.trim()), "the rest on request");
    room.handle(AnnouncerInput::Over { number: 1, ending: AskEnding::Rejected(AnsweredBy::You) });
    room.listen();
    room.handle(AnnouncerInput::Request(ListeningRequest::More));
    assert_eq!(room.listen(), ["Nothing was skipped."]);
}

#[test]
fn in_a_long_question_the_risk_comes_before_what_is_long() {
    let consequence = "Everything that was in it is gone. ".repeat(10);
    let asked = json!({
        "action": "Empty the folder.", "consequence": consequence, "reply_token": "rpl_1",
        "timeout_seconds": 60, "default_decision": "reject", "risk_level": "high", "irreversible": true,
    });
    let mut room = Room::by_hand();
    room.ask(1, &event("awaiting.confirmation", &asked));
    let begin =
        "Weaver asks: Empty the folder. High risk. It cannot be undone. Everything that was";
    assert!(room.words().starts_with(begin), "{}", room.words());
    assert!(room.words().contains(consequence.trim()), "{}", room.words());
}

#[test]
fn lines_have_a_long_question_whole() {
    let consequence = "All is gone. ".repeat(1000);
    let asked = json!({
        "action": "Delete everything.", "consequence": consequence, "reply_token": "rpl_1",
        "timeout_seconds": 60, "default_decision": "reject", "risk_level": "high",
    });
    let mut room = Room::quiet();
    room.announcer = aaep_announce::Announcer::new(Preferences::default()).without_pace();
    room.ask(1, &event("awaiting.confirmation", &asked));
    assert!(room.words().contains(consequence.trim()));
}

#[test]
fn clarifications_offer_what_they_take() {
    let ask = |fields: serde_json::Value| {
        let mut room = Room::by_hand();
        let mut all =
            json!({ "question": "Which one?", "reply_token": "rpl_1", "timeout_seconds": 90 });
        for (key, value) in fields.as_object().expect("an object") {
            all[key] = value.clone();
        }
        room.ask(7, &event("awaiting.clarification", &all));
        room.speaking.expect("the question")
    };
    let listed = ask(json!({
        "accepted_response_kinds": ["multiple_choice"], "default_response": "a",
        "choices": [{ "value": "a", "label": "The **first**" }, { "value": "b", "label": "The second" }],
    }));
    assert_eq!(
        listed.words,
        "Weaver asks: Which one? Choice A: The **first** Choice B: The second. You have 5 minutes. Without an answer \
         it assumes: a. Answer with the letter of a choice."
    );
    assert_eq!(
        listed.choices.iter().map(|it| it.words.as_str()).collect::<Vec<_>>(),
        ["The **first**", "The second"]
    );
    let free = ask(json!({}));
    assert!(
        free.words.ends_with("Answer in your own words.") && free.choices.is_empty(),
        "{}",
        free.words
    );
    let number = ask(json!({ "accepted_response_kinds": ["numeric"] }));
    assert!(number.words.ends_with("Answer with a number."), "{}", number.words);
    let yes = ask(json!({ "accepted_response_kinds": ["yes_no"] }));
    assert_eq!(yes.choices.iter().map(|it| it.is_consent).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn a_question_that_cannot_be_answered_here_is_told_without_choices() {
    let mut room = Room::by_hand();
    let asked = confirmation("rpl_1");
    room.handle(AnnouncerInput::Asked(Asked {
        number: 1,
        event: &asked,
        remaining: seconds(9),
        can_answer: false,
    }));
    assert!(room.words().ends_with("It cannot be answered here."), "{}", room.words());
    assert!(room.speaking.as_ref().is_some_and(|it| it.choices.is_empty()));
    // Whoever cannot reply at all is told by a critical state instead.
    let mut room = Room::quiet();
    let told = json!({ "from_state": "thinking", "to_state": "awaiting_input", "urgency": "critical", "summary_normal": "Waits for consent: delete 17 pictures." });
    room.hear(&event("state.changed", &told));
    let utterance = room.speaking.expect("the question");
    assert_eq!((utterance.kind, utterance.weight), (UtteranceKind::Question, Weight::Critical));
}

#[test]
fn a_question_cuts_off_what_is_being_said_and_that_is_said_again_whole() {
    let mut room = Room::new(Preferences::default());
    room.hear(&loom_says("A long story about nothing. It goes on."));
    let story = room.id();
    room.report(DeviceReport::Began(story));
    let decided = room.ask(1, &confirmation("rpl_1"));
    let question = room.id();
    assert!(
        matches!(decided.orders.as_slice(), [Order::Stop, Order::Sound(Earcon::NeedsYou), Order::Say(it)] if it.id == question)
    );
    room.report(DeviceReport::Cut(story));
    room.report(DeviceReport::Began(question));
    room.report(DeviceReport::Ended(question));
    assert_ne!(room.id(), story, "an id is never used twice");
    assert_eq!(
        room.listen().last().expect("words"),
        "Loom: A long story about nothing. It goes on."
    );
}

#[test]
fn a_question_that_made_way_for_another_one_is_told_whole() {
    let mut room = Room::quiet();
    room.ask(1, &confirmation("rpl_1"));
    room.ask(2, &confirmation("rpl_2"));
    let heard = room.listen();
    assert_eq!(heard.len(), 3, "{heard:?}");
    for (at, number) in [(1, 1), (2, 2)] {
        let asked = format!("Weaver asks, question {number}: Delete");
        assert!(heard[at].starts_with(&asked), "{}", heard[at]);
    }
}

#[test]
fn two_answers_in_a_row_are_both_told() {
    let mut room = Room::quiet();
    for number in 1..=2 {
        room.ask(number, &confirmation(&format!("rpl_{number}")));
        room.listen();
        room.handle(AnnouncerInput::Over { number, ending: AskEnding::Accepted(AnsweredBy::You) });
        assert_eq!(room.listen(), ["Accepted."]);
    }
}

#[test]
fn asks_come_before_everything_else_that_waits() {
    let mut room = Room::quiet();
    for at in 0..100 {
        room.hear(&loom_says(&format!("Sentence {at}.")));
    }
    room.ask(1, &confirmation("rpl_1"));
    assert!(room.words().contains("Delete 17 pictures"));
    assert_eq!(room.orders.iter().filter(|it| **it == Order::Stop).count(), 1);
}

#[test]
fn too_many_questions_are_refused_and_the_person_is_told() {
    let mut room = Room::quiet();
    for number in 1..=u32::try_from(MAX_QUESTIONS).expect("small") + 10 {
        room.ask(number, &confirmation(&format!("rpl_{number}")));
    }
    let heard = room.listen();
    assert_eq!(heard.iter().filter(|it| it.contains(" asks, question ")).count(), MAX_QUESTIONS);
    assert!(heard.iter().any(|it| it.starts_with("Too many questions are open")));
}

#[test]
fn a_person_who_answers_does_not_have_to_hear_the_rest_of_the_question() {
    let mut room = Room::quiet();
    room.ask(1, &confirmation("rpl_1"));
    let id = room.id();
    room.report(DeviceReport::Began(id));
    assert_eq!(room.report(DeviceReport::Chosen(id, 0)).orders, [Order::Stop, Order::Withdraw(id)]);
    let reject = AnnouncerOutcome::Chosen { number: 1, answer: Answer::Decision(Decision::Reject) };
    assert!(room.outcomes.contains(&reject));
    room.handle(AnnouncerInput::Over { number: 1, ending: AskEnding::Rejected(AnsweredBy::You) });
    assert_eq!(room.listen(), ["Refused."]);
}

#[test]
fn with_several_questions_open_it_is_told_which_one_was_settled() {
    let mut room = Room::quiet();
    room.ask(1, &confirmation("rpl_1"));
    room.ask(2, &confirmation("rpl_2"));
    room.listen();
    room.handle(AnnouncerInput::Over {
        number: 1,
        ending: AskEnding::Accepted(AnsweredBy::Elsewhere),
    });
    assert_eq!(room.listen(), ["Question 1: Accepted elsewhere."]);
    room.handle(AnnouncerInput::Over { number: 2, ending: AskEnding::Accepted(AnsweredBy::You) });
    assert_eq!(room.listen(), ["Accepted."]);
}

#[test]
fn nothing_can_be_chosen_of_a_question_that_is_over() {
    let mut room = Room::quiet();
    room.ask(1, &confirmation("rpl_1"));
    let id = room.id();
    room.report(DeviceReport::Began(id));
    let decided = room.handle(AnnouncerInput::Over {
        number: 1,
        ending: AskEnding::Rejected(AnsweredBy::Timeout),
    });
    assert_eq!(decided.orders[..2], [Order::Stop, Order::Withdraw(id)]);
    assert_eq!(
        room.words(),
        "Weaver: Nobody answered in time, so it was refused.".replace("Weaver: ", "")
    );
    room.report(DeviceReport::Cut(id));
    room.report(DeviceReport::Chosen(id, 1));
    assert!(!room.outcomes.iter().any(|it| matches!(it, AnnouncerOutcome::Chosen { .. })));
}

#[test]
fn the_values_of_choices_come_back_exactly() {
    let mut room = Room::by_hand();
    let asked = event(
        "awaiting.clarification",
        &json!({
            "question": "Which?", "reply_token": "rpl_1", "timeout_seconds": 9,
            "accepted_response_kinds": ["multiple_choice"],
            "choices": [{ "value": "a/*b*", "label": "One" }, { "value": "c", "label": "Two" }],
        }),
    );
    room.ask(1, &asked);
    let id = room.id();
    room.report(DeviceReport::Ended(id));
    room.report(DeviceReport::Chosen(id, 0));
    let answer = Answer::Response(Response::Text("a/*b*".to_owned()));
    assert_eq!(room.outcomes.last(), Some(&AnnouncerOutcome::Chosen { number: 1, answer }));
}

#[test]
fn an_answer_that_does_not_count_is_told_and_asked_for_again() {
    let mut room = Room::quiet();
    room.ask(1, &confirmation("rpl_1"));
    let id = room.id();
    room.listen();
    room.report(DeviceReport::Chosen(id, 1));
    room.handle(AnnouncerInput::AnswerFailed { number: 1, why: "The disk is full." });
    let heard = room.listen();
    assert!(heard[0].starts_with("Weaver asks: Delete 17"), "{heard:?}");
    assert_eq!(heard[1], "Your answer does not count. The disk is full.");
}

#[test]
fn a_question_settled_elsewhere_is_taken_away_and_it_is_said() {
    let mut room = Room::quiet();
    room.ask(1, &confirmation("rpl_1"));
    let id = room.id();
    room.listen();
    // The event comes first and says nothing of its own; then how it ended.
    room.hear(&resolution("rpl_1", "accept", "reply"));
    assert_eq!(room.words(), "");
    let decided = room.handle(AnnouncerInput::Over {
        number: 1,
        ending: AskEnding::Accepted(AnsweredBy::Elsewhere),
    });
    assert!(decided.orders.contains(&Order::Withdraw(id)));
    assert_eq!(room.listen(), ["Accepted elsewhere."]);
    room.hear(&resolution("rpl_1", "accept", "reply"));
    assert_eq!(room.listen(), [""; 0], "it is not told a second time");
}

#[test]
fn a_question_that_was_over_before_it_was_told_is_not_passed_over_in_silence() {
    let mut room = Room::quiet();
    room.hear(&event(
        "session.errored",
        &json!({ "error_category": "unknown", "summary_normal": "Bad." }),
    ));
    room.ask(1, &confirmation("rpl_1"));
    room.handle(AnnouncerInput::Over { number: 1, ending: AskEnding::Withdrawn });
    let heard = room.listen();
    assert_eq!(heard[1], "Delete 17 pictures from /home/ada/work/july: It is no longer asked.");
}

#[test]
fn what_nobody_knows_is_told_and_may_be_known_later() {
    let mut room = Room::quiet();
    room.ask(1, &confirmation("rpl_1"));
    room.listen();
    room.handle(AnnouncerInput::Over { number: 1, ending: AskEnding::Unknown });
    assert_eq!(room.listen(), ["It is not known what became of the question."]);
    room.handle(AnnouncerInput::Over { number: 1, ending: AskEnding::Accepted(AnsweredBy::You) });
    assert_eq!(room.listen(), ["Accepted."]);
}

#[test]
fn a_question_that_only_others_could_answer_is_told_when_it_is_settled() {
    let mut room = Room::quiet();
    room.hear(&resolution("rpl_9", "reject", "timeout"));
    assert_eq!(room.listen(), ["Weaver: Thinking."]);
    let mut room = Room::quiet();
    let mut settled = resolution("rpl_9", "reject", "timeout");
    if let aaep::Payload::StateChanged(it) = &mut settled.payload {
        it.to_state = "calling_tool".to_owned();
    }
    room.hear(&settled);
    assert_eq!(room.listen(), ["Weaver: Nobody answered in time."]);
}

#[test]
fn the_person_is_warned_before_time_is_over() {
    let mut room = Room::quiet();
    room.ask(1, &confirmation("rpl_1"));
    room.listen();
    assert_eq!(room.announcer.deadline(), Some(seconds(270)));
    room.now = seconds(270);
    room.handle(AnnouncerInput::Tick);
    assert_eq!(
        room.listen(),
        [
            "Weaver asks: Only 30 seconds left to answer. Delete 17 pictures from /home/ada/work/july. Without an \
          answer it is refused. Yes or no?"
        ]
    );
    room.handle(AnnouncerInput::TimeChanged {
        number: 1,
        remaining: seconds(600),
        is_paused: false,
        wanted: None,
    });
    assert_eq!(room.listen(), ["You have 10 minutes to answer."]);
    room.handle(AnnouncerInput::TimeChanged {
        number: 1,
        remaining: seconds(600),
        is_paused: true,
        wanted: None,
    });
    assert_eq!(room.listen(), ["The time to answer stands still."]);
    assert_eq!(room.announcer.deadline(), None);
}

#[test]
fn a_question_says_how_much_time_is_left_when_it_is_told() {
    let mut room = Room::by_hand();
    room.ask(1, &confirmation("rpl_1"));
    room.ask(2, &confirmation("rpl_2"));
    room.now = seconds(100);
    let first = room.id();
    room.report(DeviceReport::Ended(first));
    assert!(room.words().contains("You have 3 minutes."), "{}", room.words());
}

#[test]
fn the_caller_learns_when_a_question_begins_and_when_it_was_told() {
    let mut room = Room::by_hand();
    room.ask(3, &confirmation("rpl_1"));
    let id = room.id();
    assert_eq!(room.report(DeviceReport::Began(id)).outcomes, [AnnouncerOutcome::Presenting(3)]);
    let told = [AnnouncerOutcome::Presented(3), AnnouncerOutcome::PresentedWhole(3)];
    assert_eq!(room.report(DeviceReport::Ended(id)).outcomes, told);
    room.handle(AnnouncerInput::Request(ListeningRequest::Repeat));
    assert_eq!(room.listen().len(), 1);
    assert_eq!(room.outcomes.len(), 3, "once is enough");
}

/// A confirmation of this action.
fn asks_to(action: &str, token: &str) -> aaep::Event {
    event(
        "awaiting.confirmation",
        &json!({
            "action": action, "consequence": "It is gone.", "reply_token": token, "timeout_seconds": 300,
            "default_decision": "reject", "risk_level": "high", "irreversible": true,
        }),
    )
}

/// What is heard when this comes of a question that was told, and another question comes before it is said.
fn heard_after_the_next_question(first: &str, came: &AnnouncerInput<'_>) -> Vec<String> {
    let mut room = Room::quiet();
    room.ask(1, &asks_to(first, "rpl_1"));
    room.listen();
    room.handle(came.clone());
    room.ask(2, &asks_to("Delete B.", "rpl_2"));
    room.listen()
}

#[test]
fn what_came_of_a_question_is_never_taken_for_the_next_one() {
    let accepted = AnnouncerInput::Over { number: 1, ending: AskEnding::Accepted(AnsweredBy::You) };
    let later = AnnouncerInput::TimeChanged {
        number: 1,
        remaining: seconds(600),
        is_paused: false,
        wanted: None,
    };
    let failed = AnnouncerInput::AnswerFailed { number: 1, why: "The disk is full." };
    for (came, told) in [
        (accepted.clone(), "Delete A: Accepted."),
        (later, "Question 1: You have 10 minutes to answer."),
        (failed, "Delete A: Your answer does not count. The disk is full."),
    ] {
        let heard = heard_after_the_next_question("Delete A.", &came);
        assert!(heard.iter().any(|it| it.contains("Delete B.")), "{heard:?}");
        assert!(heard.iter().any(|it| it == told), "{heard:?}");
    }
    let long = "Delete everything and more. ".repeat(20);
    let heard = heard_after_the_next_question(&long, &accepted);
    assert!(heard.iter().any(|it| it == "Question 1: Accepted."), "{heard:?}");
}

#[test]
fn what_came_of_the_only_question_is_told_without_its_name() {
    let mut room = Room::quiet();
    room.ask(1, &asks_to("Delete A.", "rpl_1"));
    room.listen();
    room.handle(AnnouncerInput::Over { number: 1, ending: AskEnding::Accepted(AnsweredBy::You) });
    assert_eq!(room.listen(), ["Accepted."]);
    room.ask(2, &asks_to("Delete B.", "rpl_2"));
    room.listen();
    room.handle(AnnouncerInput::Request(ListeningRequest::Repeat));
    assert!(room.listen().concat().contains("Delete B."));
}

#[test]
fn with_several_pending_questions_the_one_whose_time_changed_is_named() {
    let mut room = Room::quiet();
    room.ask(1, &asks_to("Delete A.", "rpl_1"));
    room.ask(2, &asks_to("Delete B.", "rpl_2"));
    room.listen();
    room.handle(AnnouncerInput::TimeChanged {
        number: 1,
        remaining: seconds(600),
        is_paused: false,
        wanted: None,
    });
    assert_eq!(room.listen(), ["Question 1: You have 10 minutes to answer."]);
}
