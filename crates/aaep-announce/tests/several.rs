//! Several questions at once: the person hears of all of them within seconds, and then each whole.

#[path = "common/support.rs"]
mod support;

use std::time::Duration;

use aaep::Event;
use aaep_announce::{Announcer, AnnouncerOutcome, DeviceReport, Preferences, Profile, rehearse};
use serde_json::json;
use support::{Room, event_of, seconds};

/// A question of this agent.
fn ask(agent: &str, action: &str, risk: &str) -> Event {
    event_of(
        agent,
        agent,
        "awaiting.confirmation",
        &json!({
            "action": action, "consequence": "What is there now is replaced by what the agent has prepared, and                 everyone who works with it sees the change at once.",
            "reply_token": format!("rpl_{agent}"), "timeout_seconds": 300, "default_decision": "reject",
            "risk_level": risk, "reversibility": "reversible",
        }),
    )
}

fn photos() -> Event {
    ask("Weaver", "Sort the photos by date.", "low")
}

fn push() -> Event {
    ask("Loom", "Push to the main branch.", "high")
}

/// When these words are said, counted from the question that is told last, at 180 words per minute.
fn said_at(heard: &[aaep_announce::RehearsedUtterance], words: &str) -> Duration {
    let found = heard.iter().find(|it| it.utterance.words.contains(words)).expect(words);
    let before = found.utterance.words.split(words).next().expect("the beginning");
    let count = u32::try_from(before.split_whitespace().count()).expect("few words");
    found.began + Duration::from_millis(60_000 / 180) * count
}

#[test]
fn with_two_agents_the_asker_and_its_action_are_told_within_five_seconds() {
    for later in [Duration::ZERO, Duration::from_millis(900)] {
        let events = [(seconds(0), photos()), (later, push())];
        let heard = rehearse(&events, &Preferences::default(), 180).said;
        for words in ["Weaver", "Sort the photos by date.", "Loom", "Push to the main branch."] {
            let late = said_at(&heard, words).saturating_sub(later);
            assert!(late <= seconds(5), "{words}: {late:?}");
        }
    }
}

#[test]
fn the_riskiest_comes_first_and_then_each_is_told_whole() {
    let mut room = Room::quiet();
    room.ask(1, &photos());
    room.report(DeviceReport::Began(room.id()));
    room.ask(2, &push());
    let heard = room.listen();
    assert_eq!(
        heard[0],
        "Two questions wait. Question 2, Loom: Push to the main branch. Question 1, Weaver: Sort the photos by date."
    );
    assert!(heard[1].contains("Push to the main branch. What is there now"), "{heard:?}");
    assert!(heard[2].contains("Sort the photos by date. What is there now"), "{heard:?}");
    assert_eq!(heard.len(), 3);
    for number in [1, 2] {
        assert!(room.outcomes.contains(&AnnouncerOutcome::Presenting(number)));
        assert!(room.outcomes.contains(&AnnouncerOutcome::PresentedWhole(number)));
    }
}

#[test]
fn to_be_named_is_not_to_be_told_to_the_end() {
    let mut room = Room::quiet();
    room.ask(1, &photos());
    room.ask(2, &push());
    let overview = room.id();
    room.report(DeviceReport::Began(overview));
    room.report(DeviceReport::Ended(overview));
    assert!(room.outcomes.contains(&AnnouncerOutcome::Presenting(1)));
    assert!(!room.outcomes.contains(&AnnouncerOutcome::PresentedWhole(1)));
    assert!(!room.outcomes.contains(&AnnouncerOutcome::Presented(1)));
}

#[test]
fn a_question_makes_way_once_and_not_again_and_again() {
    let mut room = Room::quiet();
    room.ask(1, &photos());
    for number in 2..10 {
        room.report(DeviceReport::Began(room.id()));
        room.ask(number, &ask(&format!("Agent{number}"), "Do something.", "low"));
        for id in std::mem::take(&mut room.stopped) {
            room.report(DeviceReport::Cut(id));
        }
        let id = room.id();
        room.report(DeviceReport::Ended(id));
    }
    let heard = room.listen();
    let told =
        room.outcomes.iter().filter(|it| matches!(it, AnnouncerOutcome::PresentedWhole(_))).count();
    assert_eq!(told, 9, "{heard:?}");
    assert!(room.orders.len() < 60, "{:?}", room.orders.len());
}

#[test]
fn a_question_that_is_nearly_told_is_told_to_its_end() {
    let mut room = Room::quiet();
    room.ask(1, &photos());
    let id = room.id();
    room.report(DeviceReport::Began(id));
    room.now += seconds(60);
    room.ask(2, &push());
    assert_eq!(room.id(), id);
}

#[test]
fn on_every_profile_a_voice_names_both_agents_and_actions_within_sixteen_words() {
    for profile in Profile::ALL {
        let preferences = Preferences { sounds: false, ..profile.preferences() };
        let pace = preferences.words_per_minute;
        // Five seconds at 180 words per minute; who listens more slowly needs longer for as many words.
        let within = Duration::from_millis(16 * 60_000 / pace.min(180));
        for later in [Duration::ZERO, Duration::from_millis(900)] {
            let events = [(seconds(0), photos()), (later, push())];
            let heard = rehearse(&events, &preferences, pace).said;
            let overview =
                heard.iter().position(|it| it.utterance.words.contains("Two questions wait."));
            let overview = overview.unwrap_or_else(|| panic!("{}: {heard:?}", profile.name()));
            for words in ["Loom", "Push to the main branch.", "Weaver", "Sort the photos by date."]
            {
                let found = heard[overview..].iter().find(|it| it.utterance.words.contains(words));
                let late = found.expect(words).began.saturating_sub(later);
                assert!(late <= within, "{} {words}: {late:?}", profile.name());
            }
            let risky = heard.iter().position(|it| it.utterance.words.starts_with("Loom asks"));
            let other = heard.iter().rposition(|it| it.utterance.words.starts_with("Weaver asks"));
            assert!(risky < other, "{}: the riskiest first: {heard:?}", profile.name());
        }
    }
}

#[test]
fn under_the_fingers_several_questions_are_named_first_and_lines_have_them_in_order() {
    let mut room = Room::by_hand();
    room.ask(1, &photos());
    room.ask(2, &push());
    let heard = room.listen();
    let overview = "Two questions wait. Question 2, Loom: Push to the main branch. Question 1, Weaver: Sort the photos \
                    by date.";
    assert_eq!(heard[0], overview);
    assert!(heard[1].starts_with("Loom asks, question 2: Push"), "{heard:?}");
    assert!(heard[2].starts_with("Weaver asks, question 1: Sort"), "{heard:?}");
    let mut room = Room::quiet();
    room.announcer = Announcer::new(Preferences::default()).without_pace();
    room.ask(1, &photos());
    room.ask(2, &push());
    let heard = room.listen();
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert!(
        heard[0].contains("Weaver asks: Sort") && heard[1].contains("Loom asks, question 2: Push")
    );
}
