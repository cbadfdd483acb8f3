//! What a subscriber that is behind gets: joined text, the newest progress, folded states, summed-up
//! tools, in the order of the session (§5.6.1, rulings 7 to 10); and that nobody waits for another.

#[path = "common/support.rs"]
mod support;

use aaep_engine::MAX_WAITING_TOOLS;
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use support::*;

fn progress(percent: u64) -> Json {
    json!({ "progress": { "percent": percent } })
}

fn invoked(number: usize) -> Json {
    let id = format!("call_{number}");
    json!({ "tool": "list", "summary_normal": "Lists.", "tool_call_id": id })
}

fn done(number: usize, status: &str) -> Json {
    json!({ "tool": "list", "status": status, "tool_call_id": format!("call_{number}") })
}

/// Someone with a rate of 1 whose budget is spent, so that everything from now on is held.
fn behind(more: Json) -> (World, Subscriber) {
    let mut world = World::new();
    let one = world.listen(1, limited(1, more));
    world.start(SESSION);
    world.take(&one);
    (world, one)
}

#[test]
fn of_held_progress_the_newest_is_told() {
    let (mut world, one) = behind(json!({}));
    for percent in 1..=50 {
        world.say("progress.updated", progress(percent));
    }
    world.pass_s(10);
    let told: Vec<_> =
        world.heard(&one).iter().map(|it| it.json["progress"]["percent"].clone()).collect();
    assert_eq!(told, [json!(50)]);
}

#[test]
fn held_states_are_told_from_the_first_left_to_the_last_entered() {
    let (mut world, one) = behind(json!({}));
    world.change("idle", "thinking");
    world.change("thinking", "deciding");
    world.change("deciding", "writing_output");
    world.pass_s(5);
    let heard = world.heard(&one);
    assert_eq!(kinds(heard), ["state.changed"]);
    assert_eq!(heard[0].text("from_state"), "idle");
    assert_eq!(heard[0].text("to_state"), "writing_output");
    let merged = heard[0].delivery().and_then(|it| it.merged).expect("it says so");
    assert!(merged.count >= 2);
    assert_ne!(heard[0].id(), &merged.last_event_id, "a new id of its own");
}

#[test]
fn a_folded_state_says_for_how_many_it_stands() {
    let (mut world, one) = behind(json!({}));
    world.change("idle", "thinking");
    world.change("thinking", "deciding");
    world.change("deciding", "writing_output");
    world.pass_s(5);
    let merged = world.heard(&one)[0].delivery().and_then(|it| it.merged);
    assert_eq!(merged.map(|it| it.count), Some(3));
}

#[test]
fn states_that_lead_back_to_where_they_began_are_not_told() {
    let (mut world, one) = behind(json!({}));
    world.change("idle", "thinking");
    world.change("thinking", "idle");
    world.pass_s(5);
    assert!(world.heard(&one).is_empty());
    world.change("idle", "deciding");
    assert_eq!(world.heard(&one)[0].text("from_state"), "idle");
}

#[test]
fn too_many_held_tools_become_one_event_that_counts_them() {
    let (mut world, one) = behind(json!({}));
    for number in 0..MAX_WAITING_TOOLS {
        world.say("tool.invoked", invoked(number));
        world.say("tool.completed", done(number, "success"));
    }
    world.pass_s(60);
    let heard = world.heard(&one);
    assert_eq!(heard.len(), 1, "{:?}", kinds(heard));
    let text = heard[0].text("summary_normal");
    assert!(text.contains(&MAX_WAITING_TOOLS.to_string()) && text.contains("list"), "{text}");
    let merged = heard[0].delivery().and_then(|it| it.merged).map(|it| it.count);
    assert_eq!(merged, Some(2 * MAX_WAITING_TOOLS as u64));
}

#[test]
fn a_few_held_tools_stay_events_of_their_own() {
    let (mut world, one) = behind(json!({}));
    for number in 0..3 {
        world.say("tool.invoked", invoked(number));
    }
    world.pass_s(10);
    assert_eq!(kinds(world.heard(&one)), ["tool.invoked"; 3]);
}

#[test]
fn a_digest_of_tools_does_not_come_as_a_type_that_was_shut_out() {
    let filters = json!({ "event_filters": { "exclude": ["aaep:agent.progress.*"] } });
    let (mut world, one) = behind(filters);
    for number in 0..=MAX_WAITING_TOOLS {
        world.say("tool.invoked", invoked(number));
    }
    world.pass_s(60);
    assert!(!kinds(world.heard(&one)).contains(&"progress.updated"));
}

#[test]
fn what_failed_or_cannot_be_undone_is_never_merged_away() {
    let (mut world, one) = behind(json!({}));
    world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
    world.confirm(&one, "rpl_1", "accept");
    for number in 0..30 {
        world.say("tool.invoked", invoked(number));
        world.say("tool.completed", done(number, if number == 12 { "error" } else { "success" }));
    }
    world.say("tool.invoked", irreversible_tool());
    world.pass_s(60);
    let heard = world.heard(&one);
    let failed = heard.iter().filter(|it| it.text("status") == "error").count();
    let grave = heard.iter().filter(|it| it.json["irreversible"] == json!(true));
    assert_eq!((failed, grave.filter(|it| it.kind() == "tool.invoked").count()), (1, 1));
    assert!(heard.len() < 12, "{:?}", kinds(heard));
}

#[test]
fn the_order_within_a_session_is_kept_whatever_is_held() {
    let (mut world, one) = behind(json!({}));
    world.chunk("One. Two. ", 0, false);
    world.say("tool.invoked", invoked(1));
    world.chunk("Three. ", 10, false);
    world.say("tool.completed", done(1, "success"));
    world.chunk("Four.", 17, true);
    world.complete(SESSION);
    world.pass_s(20);
    let heard = world.heard(&one);
    assert_eq!(
        kinds(heard),
        [
            "output.streaming",
            "tool.invoked",
            "output.streaming",
            "tool.completed",
            "output.streaming",
            "session.completed",
        ]
    );
    assert_eq!(text_of(heard, None), "One. Two. Three. Four.");
}

#[test]
fn joined_text_says_how_many_events_it_stands_for_only_to_subscribers_that_know_our_extension() {
    for understands in [true, false] {
        let extensions = if understands { json!([aaep::extension::CONTEXT]) } else { json!([]) };
        let (mut world, one) = behind(json!({ "supported_extensions": extensions }));
        for number in 0..5 {
            world.chunk("One. ", number * 5, false);
        }
        world.pass_s(3);
        let merged = world.heard(&one)[0].delivery().and_then(|it| it.merged);
        assert_eq!(merged.is_some(), understands);
        assert!(merged.is_none_or(|it| it.count >= 4));
    }
}

#[test]
fn joined_text_fits_into_a_message() {
    let (mut world, one) = behind(json!({ "coalesce_boundaries": ["none"] }));
    let chunk = "🙂".repeat(4096);
    for number in 0..6 {
        world.chunk(&chunk, number * 4096, false);
    }
    world.chunk("", 6 * 4096, true);
    world.pass_s(30);
    assert_eq!(text_of(world.heard(&one), None).chars().count(), 6 * 4096);
}

#[test]
fn a_subscriber_that_falls_behind_the_log_is_told_of_the_gap() {
    let (mut world, one) = behind(json!({}));
    for number in 0..3000 {
        world.chunk("One. ", number * 5, false);
    }
    world.pass_s(600);
    let heard = world.heard(&one);
    let is_whole = heard.first().is_some_and(|it| it.json["position"] == json!(0));
    assert!(is_whole || heard.iter().any(Heard::has_gap));
}

#[test]
fn a_critical_end_lets_held_text_go_first_where_the_budget_allows() {
    let mut world = World::new();
    let one = world.listen(1, limited(5, json!({ "coalesce_boundaries": ["completion"] })));
    world.start(SESSION);
    world.chunk("Half a sen", 0, false);
    world.fail(SESSION);
    let heard = world.heard(&one);
    assert_eq!(text_of(heard, None), "Half a sen");
    assert_eq!(heard.last().map(Heard::kind), Some("session.errored"));
    assert!(heard.last().and_then(Heard::delivery).is_none_or(|it| it.held_back.is_none()));
}

#[test]
fn a_critical_end_loses_nothing_that_was_held() {
    let (mut world, one) = behind(json!({}));
    world.chunk("One. Two. ", 0, false);
    world.say("tool.invoked", invoked(1));
    world.say("tool.completed", done(1, "error"));
    world.chunk("Three. And a ha", 10, false);
    world.say("progress.updated", json!({ "progress": { "percent": 40 } }));
    world.say("tool.invoked", invoked(2));
    world.fail(SESSION);
    let heard = world.heard(&one);
    assert_eq!(text_of(heard, None), "One. Two. Three. And a ha");
    let told = [
        "progress.updated",
        "output.streaming",
        "tool.completed",
        "tool.completed",
        "session.errored",
    ];
    assert_eq!(kinds(heard), told, "a digest, the text as one, what failed, and the end");
    assert!(heard.iter().all(|it| it.json["urgency"] == "critical"), "exempt from the rate");
    let summary = heard[0].json["summary_normal"].as_str();
    assert!(summary.is_some_and(|it| it.starts_with("2 tools started and 0 finished well")));
    world.pass_s(60);
    assert_eq!(kinds(world.heard(&one)), told, "nothing comes after the end");
}

#[test]
fn before_an_ask_comes_the_text_that_was_held_and_what_starts_its_session() {
    let (mut world, one) = behind(json!({}));
    world.start("sess_2");
    let chunk = |text: &str, position: usize, complete: bool| json!({ "chunk": text, "position": position, "complete": complete });
    world.say_in(
        "sess_2",
        "output.streaming",
        chunk("I would keep the subfolder. It is ", 0, false),
    );
    world.say_in("sess_2", "awaiting.confirmation", confirmation("rpl_1", json!({})));
    let heard = world.heard(&one);
    assert_eq!(kinds(heard), ["session.started", "output.streaming", "awaiting.confirmation"]);
    assert_eq!(text_of(heard, None), "I would keep the subfolder. It is ");
    world.say_in("sess_2", "output.streaming", chunk("small.", 34, true));
    world.pass_s(60);
    assert_eq!(text_of(world.heard(&one), None), "I would keep the subfolder. It is small.");
}

#[test]
fn a_critical_end_withdraws_nothing_of_other_sessions() {
    let (mut world, one) = behind(json!({}));
    world.start("sess_2");
    world.chunk("One. Two. ", 0, false);
    world.fail("sess_2");
    world.pass_s(10);
    assert_eq!(text_of(world.heard(&one), None), "One. ");
    assert!(kinds(world.heard(&one)).contains(&"session.errored"));
}

#[test]
fn a_slow_subscriber_hears_two_sessions_side_by_side() {
    let (mut world, one) = behind(json!({}));
    world.start("sess_2");
    world.pass_s(3);
    world.take(&one);
    for number in 0..20 {
        world.chunk("One. ", number * 5, false);
        let chunk = json!({ "chunk": "Uno. ", "position": number * 5, "complete": false });
        world.say_in("sess_2", "output.streaming", chunk);
    }
    world.pass_s(4);
    for session in [SESSION, "sess_2"] {
        let of: Vec<Heard> = world
            .heard(&one)
            .iter()
            .filter(|it| it.text("session_id") == session)
            .cloned()
            .collect();
        assert!(text_of(&of, None).len() >= 95, "{session}: {of:?}");
    }
}

#[test]
fn a_stalled_subscriber_changes_nothing_for_the_others() {
    let run = |stalls: bool| {
        let mut world = World::new();
        let fast = world.listen(1, everything());
        let slow = world.listen(2, limited(1, json!({})));
        let stalled = [world.listen(3, everything()), world.listen(4, limited(1, json!({})))];
        if stalls {
            for it in &stalled {
                world.block(it);
            }
        }
        world.start(SESSION);
        for number in 0..100 {
            world.chunk("One. ", number * 5, false);
            world.say("progress.updated", progress(number as u64));
            world.pass_us(50_000);
        }
        world.say("awaiting.confirmation", confirmation("rpl_1", json!({})));
        world.confirm(&fast, "rpl_1", "reject");
        world.pass_s(20);
        if stalls {
            assert!(stalled.iter().all(|it| world.heard(it).is_empty()), "its wire is full");
        }
        [&fast, &slow].map(|it| {
            world.heard(it).iter().map(|it| (it.at_us, it.json.clone())).collect::<Vec<_>>()
        })
    };
    assert_eq!(run(true), run(false));
}

/// What an agent may do while a subscriber is behind.
#[derive(Debug, Clone)]
enum Step {
    Text(usize, String),
    Tool,
    Progress,
    Urgent,
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let words = prop_oneof![
        "[a-z]{1,9}( [a-z]{1,4}){0,3}",
        Just("Yes. No! ".to_owned()),
        Just("\n\n".to_owned()),
        Just("e\u{301}👩‍🚀".to_owned()),
    ];
    let step = prop_oneof![
        6 => (0usize..2, words).prop_map(|(output, text)| Step::Text(output, text)),
        1 => Just(Step::Tool),
        1 => Just(Step::Progress),
        1 => Just(Step::Urgent),
        3 => (0u64..1_500_000).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn no_character_is_lost_or_repeated_however_far_behind_someone_is(
        steps in steps(),
        boundary in prop::sample::select(vec!["none", "word", "sentence", "paragraph", "completion"]),
        rate in 1u64..4,
    ) {
        let (mut world, one) = behind(json!({
            "coalesce_boundaries": [boundary], "max_events_per_second": rate,
        }));
        let (mut said, mut counted) = ([String::new(), String::new()], [0, 0]);
        let chunk = |world: &mut World, output: usize, text: &str, at: usize, complete: bool| {
            world.say("output.streaming", json!({
                "chunk": text, "position": at, "complete": complete,
                "output_id": format!("out_{output}"),
            }));
        };
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Text(output, text) => {
                    chunk(&mut world, output, &text, counted[output], false);
                    said[output].push_str(&as_sent(&text));
                    counted[output] += text.chars().count();
                }
                Step::Tool => drop(world.say("tool.invoked", invoked(number))),
                Step::Progress => drop(world.say("progress.updated", progress(1))),
                Step::Urgent => {
                    let fields = json!({ "reason": "Help.", "target_kind": "human" });
                    world.say("handoff.requested", fields);
                }
                Step::Wait(us) => drop(world.pass_us(us)),
            }
        }
        for (output, end) in counted.into_iter().enumerate() {
            chunk(&mut world, output, "", end, true);
        }
        world.pass_s(200);
        for (output, text) in said.iter().enumerate() {
            let id = format!("out_{output}");
            prop_assert_eq!(&text_of(world.heard(&one), Some(&id)), text);
            let is_end = |it: &&Heard| it.text("output_id") == id && it.json["complete"] == json!(true);
            prop_assert_eq!(world.heard(&one).iter().filter(is_end).count(), 1);
        }
    }
}
