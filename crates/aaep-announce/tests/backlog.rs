//! Nobody is minutes behind unless they chose to be: what does not fit is counted, offered, and told in its order.

#[path = "common/support.rs"]
mod support;

use std::time::Duration;

use aaep::Event;
use aaep_announce::{
    Announcer, AnnouncerInput, ListeningRequest, MAX_UTTERANCE, Preferences, Profile, rehearse,
};
use serde_json::json;
use support::{Room, completed, confirmation, event, event_of, seconds, text};

/// Sentences with these numbers, each of ten words.
fn sentences(numbers: std::ops::Range<usize>) -> String {
    let sentence = |at| format!("Sentence {at} goes on about something that is not urgent. ");
    numbers.map(sentence).collect()
}

/// A piece of the only output of this agent.
fn says(agent: &str, chunk: &str, complete: bool) -> Event {
    let fields = json!({
        "output_id": format!("out_{agent}"), "chunk": chunk, "position": 0, "complete": complete,
    });
    event_of(agent, agent, "output.streaming", &fields)
}

/// The numbers of the sentences in what was heard, in their order.
fn numbers(heard: &[String]) -> Vec<usize> {
    let words = heard.join(" ");
    let after = words.split("Sentence ").skip(1).filter_map(|it| it.split(' ').next());
    after.map(|it| it.parse().expect("a number")).collect()
}

/// The longest time between what happened and its first word.
fn furthest_behind(events: &[(Duration, Event)], preferences: &Preferences) -> Duration {
    let said = rehearse(events, preferences, preferences.pace()).said;
    let behind = said.iter().map(|it| it.began.saturating_sub(it.arrived));
    behind.max().unwrap_or_default()
}

/// What agents do in a flood, one kind at a time and all at once.
fn floods() -> [(&'static str, Vec<(Duration, Event)>); 5] {
    let answer = vec![(seconds(0), says("Loom", &sentences(0..60), true))];
    let stream = (0..300_usize)
        .map(|at| (seconds(at as u64), says("Loom", &sentences(at..at + 1), at == 299)));
    let stream: Vec<(Duration, Event)> = stream.collect();
    let log = (0..120_u64).map(|at| {
        let fields = json!({
            "output_id": format!("out_{at}"), "chunk": format!("Note {at} of what is going on here, told at length."),
            "position": 0, "complete": true,
        });
        (seconds(at), event("output.streaming", &fields))
    });
    let log: Vec<(Duration, Event)> = log.collect();
    let failing = (0..200_u64).map(|at| {
        let fields = json!({
            "tool": format!("tool{at}"), "status": "error", "error_message": format!("There is no file with the number {at}."),
        });
        (seconds(at / 4), event_of("Spool", "spool", "tool.completed", &fields))
    });
    let failing: Vec<(Duration, Event)> = failing.collect();
    let mut all = [answer.clone(), stream.clone(), log.clone(), failing.clone()].concat();
    all.sort_by_key(|(at, _)| *at);
    [("answer", answer), ("stream", stream), ("log", log), ("failing tools", failing), ("all", all)]
}

#[test]
fn nobody_is_a_minute_behind_by_itself_on_any_profile_at_any_pace() {
    for profile in Profile::ALL.iter().filter(|it| **it != Profile::Debug) {
        for pace in [profile.preferences().pace(), 90, 200, 400] {
            let preferences = Preferences { words_per_minute: pace, ..profile.preferences() };
            // The sentence being said and the newest one come on top of what may wait.
            let sentence = seconds(MAX_UTTERANCE as u64 * 60 / 5 / pace);
            let bound = seconds(preferences.behind_seconds) + sentence + sentence / 2;
            for (name, events) in floods() {
                let behind = furthest_behind(&events, &preferences);
                assert!(behind <= bound, "{name}, {} at {pace}: {behind:?}", profile.name());
            }
        }
    }
}

/// Hears everything that is said by itself.
fn listen_to(room: &mut Room, events: &[Event]) -> Vec<String> {
    for event in events {
        room.hear(event);
    }
    room.listen()
}

#[test]
fn of_a_long_answer_the_beginning_is_told_then_how_much_is_left_and_the_rest_on_request() {
    let mut room = Room::quiet();
    let heard = listen_to(&mut room, &[says("Loom", &sentences(0..60), true)]);
    let told = numbers(&heard);
    assert!((8..20).contains(&told.len()), "{heard:?}");
    assert_eq!(told, (0..told.len()).collect::<Vec<_>>(), "from its beginning");
    let left = (60 - told.len()) * 10;
    let notice = format!("Left out of this text: {left} words. To hear them: more.");
    assert_eq!(heard.last(), Some(&notice), "{heard:?}");
    room.handle(AnnouncerInput::Request(ListeningRequest::More));
    let more = room.listen();
    assert_eq!(numbers(&more), (told.len()..60).collect::<Vec<_>>(), "all of it, in its order");
    room.handle(AnnouncerInput::Request(ListeningRequest::More));
    assert_eq!(room.listen(), ["Nothing was skipped."]);
}

#[test]
fn more_in_the_midst_of_a_long_answer_goes_on_after_what_waits() {
    let mut room = Room::quiet();
    room.hear(&says("Loom", &sentences(0..60), true));
    room.handle(AnnouncerInput::Request(ListeningRequest::More));
    let heard = room.listen();
    assert_eq!(numbers(&heard), (0..60).collect::<Vec<_>>(), "{heard:?}");
    assert!(!heard.concat().contains("Left out"), "{heard:?}");
}

#[test]
fn an_agent_that_never_stops_talking_is_heard_in_passages_that_say_what_lies_between() {
    let mut room = Room::quiet();
    let mut heard = Vec::new();
    // Twice as fast as it can be heard.
    for at in 0..200 {
        room.hear(&says("Loom", &sentences(at..at + 1), at == 199));
        if at % 2 == 1
            && let Some(utterance) = room.speaking.take()
        {
            heard.push(utterance.words.clone());
            room.report(aaep_announce::DeviceReport::Began(utterance.id));
            room.report(aaep_announce::DeviceReport::Ended(utterance.id));
        }
    }
    heard.extend(room.listen());
    let told = numbers(&heard);
    assert!(told.is_sorted(), "{told:?}");
    let gaps = told.windows(2).filter(|it| it[1] != it[0] + 1).count();
    let notices: Vec<usize> = heard
        .iter()
        .filter_map(|it| it.split_once("Left out of this text: "))
        .map(|(_, it)| it.split(' ').next().expect("a count").parse().expect("a count"))
        .collect();
    assert!((2..12).contains(&gaps), "a few long passages: {told:?}");
    assert_eq!(notices.iter().sum::<usize>(), (200 - told.len()) * 10, "{heard:?}");
    // Nothing is lost.
    room.handle(AnnouncerInput::Request(ListeningRequest::More));
    let mut all = [told, numbers(&room.listen())].concat();
    all.sort_unstable();
    assert_eq!(all, (0..200).collect::<Vec<_>>());
}

#[test]
fn a_question_after_a_long_answer_still_comes_after_the_last_sentence_of_it() {
    let mut room = Room::quiet();
    room.hear(&text(&sentences(0..60)));
    room.hear(&text("I would keep the folder of photos."));
    room.ask(1, &confirmation("rpl_1"));
    let heard = room.listen();
    assert!(heard[0].contains("I would keep the folder of photos."), "{heard:?}");
    assert!(
        heard[0].contains("says more before it asks") || heard[0].contains("more"),
        "{heard:?}"
    );
    assert!(heard[1].contains("Delete 17 pictures"), "{heard:?}");
}

#[test]
fn an_end_comes_before_the_rest_of_a_long_answer_and_more_tells_that_rest() {
    let mut room = Room::quiet();
    room.hear(&says("Loom", &sentences(0..60), true));
    room.hear(&completed("All 41 tests pass."));
    let heard = room.listen();
    assert!(heard[1].contains("Finished. All 41 tests pass."), "{heard:?}");
    assert!(heard.last().expect("words").contains("To hear them: more."), "{heard:?}");
    room.handle(AnnouncerInput::Request(ListeningRequest::More));
    assert_eq!(numbers(&room.listen()).last(), Some(&59));
}

#[test]
fn a_person_who_says_stop_is_not_told_how_much_is_left() {
    let mut room = Room::quiet();
    room.hear(&says("Loom", &sentences(0..60), true));
    room.handle(AnnouncerInput::Request(ListeningRequest::Hush));
    assert_eq!(room.listen(), [""; 0]);
    room.handle(AnnouncerInput::Request(ListeningRequest::More));
    // The two sentences that were being said are not told again.
    assert_eq!(numbers(&room.listen()), (2..60).collect::<Vec<_>>());
}

#[test]
fn lines_leave_nothing_out_of_a_long_answer() {
    let mut room = Room::quiet();
    room.announcer = Announcer::new(Preferences::default()).without_pace();
    let heard = listen_to(&mut room, &[says("Loom", &sentences(0..200), true)]);
    assert_eq!(numbers(&heard), (0..200).collect::<Vec<_>>());
}
