//! What a person hears of what agents do and say: whole scenes, and what must never happen.

#[path = "common/support.rs"]
mod support;

use aaep::LanguageTag;
use aaep_announce::{
    Announcer, AnnouncerInput, AnsweredBy, AskEnding, DeviceReport, Earcon, Length, MAX_CRITICAL,
    MAX_SESSIONS, MAX_UTTERANCE, MAX_WAITING, Order, Preferences, Profile,
};
use serde_json::json;
use support::{Room, completed, confirmation, event, event_of, seconds, state, text, tool};

#[test]
fn a_session_is_told_from_its_beginning_to_its_end() {
    let mut room = Room::quiet();
    room.hear(&event(
        "session.started",
        &json!({ "summary_normal": "Looking through your pictures." }),
    ));
    assert_eq!(room.listen(), ["Weaver: Started. Looking through your pictures."]);
    room.hear(&state("thinking", "Planning the search."));
    assert_eq!(room.listen(), ["Planning the search."]);
    room.hear(&tool("scan_folder", "Looking for blurred pictures in `July`."));
    assert_eq!(room.listen(), ["Looking for blurred pictures in July."]);
    let found =
        json!({ "tool": "scan_folder", "status": "success", "summary_normal": "Found 17." });
    room.hear(&event("tool.completed", &found));
    assert_eq!(room.listen(), ["Found 17."]);
    room.hear(&text("I found **17** blurred pictures.\n"));
    assert_eq!(room.listen(), ["I found 17 blurred pictures."]);
    room.hear(&completed("All searched."));
    assert_eq!(room.listen(), ["Finished. All searched."]);
    assert_eq!(room.announcer.deadline(), None);
}

#[test]
fn the_three_ends_of_a_session_are_told_apart() {
    let mut room = Room::quiet();
    room.hear(&completed("Done: all sorted."));
    room.hear(&event_of(
        "Loom", "b", "session.errored",
        &json!({ "error_category": "transient", "summary_normal": "No network.", "remediation_hint": "Try again later." }),
    ));
    let by = json!({ "cancelled_by": "user", "summary_normal": "You pressed escape." });
    room.hear(&event_of("Spool", "c", "session.cancelled", &by));
    let heard = room.listen();
    assert_eq!(heard[0], "Loom: Failed. No network. Try again later.");
    assert_eq!(
        heard[1..],
        ["Weaver: Done: all sorted.", "Spool: Stopped by a person. You pressed escape."]
    );
}

#[test]
fn the_speaking_agent_is_named_only_when_it_changes() {
    let mut room = Room::quiet();
    for (agent, session, chunk) in [
        ("Weaver", "a", "One."),
        ("Weaver", "a", "Two."),
        ("Loom", "b", "Three."),
        ("Weaver", "a", "Four."),
    ] {
        let piece = json!({ "chunk": chunk, "position": 0, "complete": true });
        room.hear(&event_of(agent, session, "output.streaming", &piece));
    }
    assert_eq!(room.listen(), ["Weaver: One.", "Two.", "Loom: Three.", "Weaver: Four."]);
}

#[test]
fn two_sessions_of_one_agent_and_two_agents_of_one_name_are_told_apart() {
    let mut room = Room::quiet();
    let named = |name: &str| json!({ "summary_normal": "Hi.", "producer": { "agent_id": name, "agent_name": "Weaver" } });
    room.hear(&event_of("x", "a", "session.started", &named("one")));
    room.hear(&event_of("x", "b", "session.started", &named("one")));
    room.hear(&event_of("x", "c", "session.started", &named("other")));
    assert_eq!(
        room.listen(),
        ["Weaver: Started. Hi.", "Weaver 2: Started. Hi.", "Weaver 3: Started. Hi."]
    );
    // The number of a session that has ended is free again.
    room.hear(&event_of("x", "b", "session.completed", &json!({ "summary_normal": "Bye.", "producer": { "agent_id": "one", "agent_name": "Weaver" } })));
    room.hear(&event_of("x", "d", "session.started", &named("one")));
    assert_eq!(room.listen(), ["Weaver 2: Finished. Bye.", "Weaver 2: Started. Hi."]);
    // The name of the first one stays as it was.
    let say = json!({ "chunk": "I go on.", "position": 0, "complete": true });
    room.hear(&event_of("x", "a", "output.streaming", &say));
    assert_eq!(room.listen(), ["Weaver: I go on."]);
}

#[test]
fn the_project_is_told_with_the_name_that_has_it() {
    let mut room = Room::quiet();
    for (session, project) in [("a", "work/shop"), ("b", "work/site")] {
        let name = format!("Claude Code in {project}");
        let fields = json!({ "summary_normal": "Hi.", "producer": { "agent_id": "claude-code", "agent_name": name } });
        room.hear(&event_of("x", session, "session.started", &fields));
    }
    assert_eq!(
        room.listen(),
        ["Claude Code in work/shop: Started. Hi.", "Claude Code in work/site: Started. Hi."]
    );
    let mut asked = confirmation("rpl_1");
    asked.envelope.producer.agent_name = Some("Claude Code in work/shop".to_owned());
    room.ask(1, &asked);
    let heard = room.listen();
    assert!(
        heard[0].starts_with("Claude Code in work/shop asks, question 1: Delete 17"),
        "{heard:?}"
    );
    let label = room.announcer.agent_label(0, &asked.envelope.session_id);
    assert_eq!(label, Some(aaep_announce::agent_name(&asked)));
}

#[test]
fn the_project_of_a_session_is_told_from_the_first_word() {
    let mut room = Room::quiet();
    let in_project = |project: &str| json!({ "agentvoice": { "project": project } });
    for (session, project) in [("b", "work/shop"), ("c", "work/site")] {
        let fields = json!({ "summary_normal": "Hi.", "extensions": in_project(project) });
        room.hear(&event_of("Claude Code", session, "session.started", &fields));
    }
    assert_eq!(
        room.listen(),
        ["Claude Code in work/shop: Started. Hi.", "Claude Code in work/site: Started. Hi."]
    );
    // It is remembered for what does not say it. A name that was heard does not change.
    let said = json!({ "chunk": "Claude Code: all is well.", "position": 0, "complete": true });
    room.hear(&event_of("Claude Code", "b", "output.streaming", &said));
    room.hear(&event_of(
        "Claude Code",
        "d",
        "session.started",
        &json!({ "summary_normal": "Yo." }),
    ));
    let asked = event_of(
        "Claude Code",
        "d",
        "awaiting.clarification",
        &json!({
            "question": "Which one?", "reply_token": "rpl_1", "timeout_seconds": 90,
            "extensions": in_project("work:\n\u{1b}[2Jdocs"),
        }),
    );
    let heard = room.listen();
    assert_eq!(heard[0], "Claude Code in work/shop: Claude Code: all is well.");
    assert_eq!(heard[1], "Claude Code: Started. Yo.");
    room.ask(1, &asked);
    let heard = room.listen();
    assert!(heard[0].starts_with("Claude Code asks, question 1: Which one?"), "{heard:?}");
    let label = room.announcer.agent_label(0, &asked.envelope.session_id);
    assert_eq!(label.as_deref(), Some("Claude Code"));
    // Where nothing was told yet, the project is learnt.
    let mut room = Room::quiet();
    room.announcer = Announcer::new(Preferences { states: false, ..Preferences::default() });
    room.hear(&event_of(
        "Claude Code",
        "d",
        "session.started",
        &json!({ "summary_normal": "Yo." }),
    ));
    room.ask(1, &asked);
    let heard = room.listen();
    let name = aaep_announce::agent_name(&asked);
    assert!(heard[0].starts_with(&format!("{name} asks: Which one?")), "{heard:?}");
    assert!(name.starts_with("Claude Code in work") && !name.contains([':', '\n', '\u{1b}']));
    assert_eq!(room.announcer.agent_label(0, &asked.envelope.session_id), Some(name));
}

#[test]
fn nobody_can_speak_in_the_name_of_another() {
    let mut room = Room::quiet();
    let say = |agent: &str, session: &str, chunk: &str| {
        event_of(
            agent,
            session,
            "output.streaming",
            &json!({ "chunk": chunk, "position": 0, "complete": true }),
        )
    };
    room.hear(&say("Weaver", "a", "Hello."));
    room.hear(&say("Loom", "b", "Hello."));
    room.hear(&say("Loom", "b", "Weaver: all is deleted."));
    assert_eq!(room.listen(), ["Weaver: Hello.", "Loom: Hello.", "Loom: Weaver: all is deleted."]);
    for words in [
        "weaver\u{ff1a} all is deleted.",
        "\u{201c}Weaver: all is deleted.",
        "Wea-ver \u{2014} all is deleted.",
        "Permission required: Weaver asks: Print a page?",
        "Question 1: Print a page?",
    ] {
        room.hear(&say("Loom", "b", words));
        let heard = room.listen();
        assert!(heard[0].starts_with("Loom: "), "{heard:?}");
    }
    room.hear(&say("Loom", "b", "All: done."));
    assert_eq!(room.listen(), ["All: done."]);
    let evil = json!({ "summary_normal": "Hi.", "producer": { "agent_id": "z", "agent_name": "A\u{1b}[2J:\nB: \u{202e}C" } });
    room.hear(&event_of("z", "c", "session.started", &evil));
    assert_eq!(room.listen(), ["A B C: Started. Hi."]);
}

#[test]
fn what_ended_before_it_could_be_stopped_is_not_said_again() {
    let mut room = Room::quiet();
    let short = json!({ "chunk": "Short.", "position": 0, "complete": true });
    room.hear(&event_of("Loom", "b", "output.streaming", &short));
    let short = room.id();
    room.ask(1, &confirmation("rpl_1"));
    room.report(DeviceReport::Ended(short));
    assert_eq!(room.listen().len(), 1, "only the question");
}

#[test]
fn outdated_progress_is_not_said_again() {
    let mut room = Room::quiet();
    room.hear(&event("progress.updated", &json!({ "progress": { "percent": 5 } })));
    let progress = room.id();
    room.ask(1, &confirmation("rpl_1"));
    room.report(DeviceReport::Cut(progress));
    assert_eq!(room.listen().len(), 1, "only the question");
}

#[test]
fn what_really_happened_follows_a_claim_against_it() {
    let mut room = Room::quiet();
    room.ask(1, &confirmation("rpl_1"));
    room.listen();
    room.handle(AnnouncerInput::Over { number: 1, ending: AskEnding::Rejected(AnsweredBy::You) });
    assert_eq!(room.listen(), ["Refused."]);
    room.hear(&text("Done! All 17 pictures are gone."));
    assert_eq!(
        room.listen(),
        [
            "Done! All 17 pictures are gone.",
            "In fact “Delete 17 pictures from /home/ada/work/july” was not allowed."
        ]
    );
    room.hear(&completed("Deleted 17 pictures."));
    assert_eq!(
        room.listen(),
        [
            "Finished. Deleted 17 pictures.",
            "In fact “Delete 17 pictures from /home/ada/work/july” was not allowed."
        ]
    );
    // The next session starts without a grudge.
    room.hear(&completed("All good."));
    assert_eq!(room.listen(), ["Finished. All good."]);
}

#[test]
fn an_agent_that_admits_it_is_not_corrected_until_it_claims_success_at_the_end() {
    let mut room = Room::quiet();
    let failed =
        json!({ "tool": "send_mail", "status": "error", "error_message": "No such host." });
    room.hear(&event("tool.completed", &failed));
    assert_eq!(room.listen(), ["Weaver: send_mail failed. No such host."]);
    room.hear(&text("I could not send the mail."));
    assert_eq!(room.listen(), ["I could not send the mail."]);
    room.hear(&completed("Mail sent."));
    assert_eq!(room.listen(), ["Finished. Mail sent.", "In fact send_mail failed."]);
}

#[test]
fn a_tool_that_worked_in_the_end_is_not_held_against_anyone() {
    let mut room = Room::quiet();
    let ended =
        |status: &str| event("tool.completed", &json!({ "tool": "send_mail", "status": status }));
    room.hear(&ended("timeout"));
    assert_eq!(room.listen(), ["Weaver: send_mail did not finish in time."]);
    room.hear(&ended("success"));
    room.hear(&completed("Mail sent."));
    assert_eq!(room.listen(), ["Finished. Mail sent."]);
}

#[test]
fn a_small_tool_that_failed_on_the_way_is_not_brought_up_at_the_end() {
    let mut room = Room::quiet();
    room.hear(&event("tool.completed", &json!({ "tool": "read_file", "status": "error" })));
    room.hear(&tool("grep", "Searching."));
    room.hear(&event("tool.completed", &json!({ "tool": "grep", "status": "success" })));
    room.hear(&completed("Found it."));
    let heard = room.listen();
    assert_eq!(heard.last().map(String::as_str), Some("Finished. Found it."), "{heard:?}");
}

#[test]
fn the_same_state_is_not_told_twice_in_a_row() {
    let mut room = Room::quiet();
    for _ in 0..5 {
        room.hear(&state("thinking", "Thinking about it."));
        room.listen();
    }
    assert_eq!(room.orders.len(), 1);
    room.hear(&state("deciding", "Choosing."));
    room.hear(&state("thinking", "Thinking about it."));
    room.listen();
    room.now += seconds(120);
    room.hear(&state("thinking", "Thinking about it."));
    assert_eq!(room.words(), "Thinking about it.", "after a while it is news again");
}

#[test]
fn half_words_wait_for_their_other_half() {
    let mut room = Room::quiet();
    let piece = |chunk: &str, complete: bool| {
        event("output.streaming", &json!({ "chunk": chunk, "position": 0, "complete": complete }))
    };
    for chunk in ["I am remo", "ving the pic", "tures. Then I re"] {
        room.hear(&piece(chunk, false));
    }
    assert_eq!(room.listen(), ["Weaver: I am removing the pictures."]);
    room.hear(&piece("st.", true));
    assert_eq!(room.listen(), ["Then I rest."]);
}

#[test]
fn text_that_was_never_completed_is_told_before_the_end() {
    let mut room = Room::quiet();
    room.hear(&event(
        "output.streaming",
        &json!({ "chunk": "No full stop", "position": 0, "complete": false }),
    ));
    room.hear(&completed("Ready."));
    assert_eq!(room.listen(), ["Weaver: No full stop", "Finished. Ready."]);
}

#[test]
fn many_small_tools_become_one_sentence() {
    let mut room = Room::quiet();
    for at in 0..6 {
        room.hear(&tool("read_file", &format!("Reading file {at}.")));
        room.hear(&event("tool.completed", &json!({ "tool": "read_file", "status": "success", "summary_normal": format!("Read {at}.") })));
    }
    assert_eq!(room.listen(), ["Weaver: Reading file 0.", "Read 5 files."]);
}

#[test]
fn a_tool_with_consequences_is_never_counted_away() {
    let mut room = Room::quiet();
    for at in 0..3 {
        let fields = json!({ "tool": "edit", "summary_normal": format!("Editing {at}."), "risk_level": "high", "irreversible": true });
        room.hear(&event("tool.invoked", &fields));
    }
    let heard = room.listen();
    assert_eq!(heard.len(), 3);
    assert_eq!(heard[2], "Editing 2. High risk. It cannot be undone.");
}

#[test]
fn a_tool_whose_risk_is_in_an_unknown_word_is_never_counted_away() {
    let mut room = Room::quiet();
    for at in 0..3 {
        let summary = format!("Editing {at}.");
        let fields = json!({ "tool": "edit", "summary_normal": summary, "risk_level": "dire" });
        room.hear(&event("tool.invoked", &fields));
    }
    let heard = room.listen();
    assert_eq!(heard.len(), 3, "{heard:?}");
    assert_eq!(heard[2], "Editing 2. The risk is of a kind that is not known here.");
}

#[test]
fn of_progress_only_the_newest_is_told_and_not_too_often() {
    let mut room = Room::quiet();
    let progress = |percent: u64| {
        event(
            "progress.updated",
            &json!({ "progress": { "percent": percent, "description": "Copying" } }),
        )
    };
    room.hear(&progress(1));
    for percent in 2..50 {
        room.hear(&progress(percent));
    }
    assert_eq!(room.listen(), ["Weaver: 1 percent. Copying."]);
    assert_eq!(room.announcer.deadline(), Some(seconds(10)));
    room.now = seconds(10);
    room.handle(AnnouncerInput::Tick);
    assert_eq!(room.listen(), ["49 percent. Copying."]);
    room.hear(&progress(99));
    room.hear(&completed("Copied."));
    assert_eq!(room.listen(), ["Finished. Copied."], "what is finished has no progress");
}

#[test]
fn a_flood_stays_bounded_and_what_is_left_out_is_summed_up() {
    let mut room = Room::quiet();
    room.hear(&text("Here I go."));
    for at in 0..10_000_u32 {
        match at % 5 {
            0 => room.hear(&text(&format!("Sentence number {at}."))),
            1 => room.hear(&tool(&format!("tool{at}"), &format!("Doing {at}."))),
            2 => room.hear(&state("thinking", &format!("Thought {at}."))),
            3 => room.hear(&event_of(
                "Loom",
                &format!("s{at}"),
                "session.errored",
                &json!({ "error_category": "unknown", "summary_normal": format!("Broke {at}.") }),
            )),
            _ => room.hear(&event("progress.updated", &json!({ "progress": { "step": at } }))),
        };
        assert!(room.announcer.waiting() <= MAX_WAITING + MAX_CRITICAL);
        assert!(room.announcer.sessions() <= MAX_SESSIONS);
    }
    room.ask(1, &confirmation("rpl_1"));
    let heard = room.listen();
    let asked = heard.iter().position(|it| it.contains("Delete 17 pictures"));
    assert!(
        asked.is_some_and(|at| at <= 5),
        "behind its context and some news, and not behind all of it: {asked:?}"
    );
    let summary =
        heard.iter().find(|it| it.contains("Too much at once. Left out: ")).expect("a summary");
    for what in ["errors", "parts of replies", "steps"] {
        assert!(summary.contains(what), "{summary}");
    }
    assert!(heard.iter().any(|it| it.contains("Sentence number 9995.")), "the newest is told");
}

#[test]
fn a_long_reply_is_told_in_parts_and_nothing_of_it_is_lost() {
    let mut room = Room::quiet();
    let sentences: Vec<String> = (0..200).map(|at| format!("This is sentence {at}.")).collect();
    let long = sentences.join(" ");
    room.hear(&text(&long));
    let heard = room.listen();
    assert!(heard.len() > 3 && heard.iter().all(|it| it.len() <= MAX_UTTERANCE + 20));
    let all = heard.join(" ");
    assert_eq!(all.strip_prefix("Weaver: "), Some(long.as_str()));
}

#[test]
fn language_and_direction_go_with_the_words() {
    let mut room = Room::quiet();
    let hints = json!({ "primary_language": "ar" });
    room.hear(&event(
        "session.started",
        &json!({ "summary_normal": "مرحبا بكم.", "localization_hints": hints }),
    ));
    let utterance = room.speaking.clone().expect("words");
    assert_eq!(utterance.language, LanguageTag::parse("ar").ok());
    assert!(utterance.is_right_to_left);
    room.listen();
    let piece = json!({ "chunk": "Bonjour.", "position": 0, "complete": true, "language": "fr", "localization_hints": hints });
    room.hear(&event("output.streaming", &piece));
    let utterance = room.speaking.clone().expect("words");
    assert_eq!(utterance.language, LanguageTag::parse("fr").ok());
    assert!(!utterance.is_right_to_left);
}

#[test]
fn events_of_unknown_kinds_are_told_if_they_say_something() {
    let mut room = Room::quiet();
    room.hear(&event("lumen:lamp.lit", &json!({ "summary_normal": "The lamp is lit." })));
    room.hear(&event("lumen:lamp.dimmed", &json!({})));
    assert_eq!(room.listen(), ["Weaver: The lamp is lit."]);
    room.hear(&event("lumen:lamp.burns", &json!({ "urgency": "critical" })));
    assert_eq!(room.listen(), ["Something of a kind that is not known here: lumen:lamp.burns."]);
}

#[test]
fn a_handover_needs_the_person_at_once() {
    let mut room = Room::new(Preferences::default());
    room.hear(&text("Talking."));
    let decided = room.hear(&event(
        "handoff.requested",
        &json!({ "reason": "I am stuck.", "target_kind": "human" }),
    ));
    assert!(matches!(
        decided.orders.as_slice(),
        [Order::Stop, Order::Sound(Earcon::NeedsYou), Order::Say(it)] if it.words == "Weaver asks: A person should take over. I am stuck."
    ));
}

#[test]
fn an_unknown_state_is_told_in_general_words() {
    let mut room = Room::quiet();
    let changed =
        |to: &str| event("state.changed", &json!({ "from_state": "idle", "to_state": to }));
    room.hear(&changed("lumen_dreaming"));
    assert_eq!(room.listen(), ["Weaver: Doing something else."]);
    // What follows tells the others.
    room.hear(&changed("calling_tool"));
    assert_eq!(room.listen(), Vec::<String>::new());
    room.hear(&state("lumen_dreaming", "Dreaming."));
    assert_eq!(room.listen(), ["Dreaming."], "its own words are better");
}

#[test]
fn each_profile_tells_what_it_promises() {
    let play = |profile: Profile| {
        let mut room = Room::new(Preferences { sounds: false, ..profile.preferences() });
        let mut heard = Vec::new();
        let events = [
            state("thinking", "Thinking about it."),
            tool("grep", "Searching."),
            event("progress.updated", &json!({ "progress": { "percent": 50 } })),
            event(
                "output.streaming",
                &json!({ "chunk": "First part. ", "position": 0, "complete": false, "coalesce_hint": "sentence" }),
            ),
            event(
                "output.streaming",
                &json!({ "chunk": "Last part.", "position": 0, "complete": true }),
            ),
            event("tool.completed", &json!({ "tool": "grep", "status": "error" })),
            completed("Over."),
        ];
        for event in &events {
            room.hear(event);
            heard.extend(room.listen());
        }
        room.ask(1, &confirmation("rpl_1"));
        heard.extend(room.listen());
        heard
    };
    for profile in Profile::ALL {
        let heard = play(*profile);
        let all = heard.join("|");
        assert!(all.contains("Delete 17") && all.contains("Over."), "{}: {all}", profile.name());
        let tells_tools = *profile != Profile::Quiet;
        assert_eq!(all.contains("grep failed."), tells_tools, "{}: {all}", profile.name());
    }
    let quiet = play(Profile::Quiet).join("|");
    assert!(
        !quiet.contains("Searching") && !quiet.contains("part") && !quiet.contains("percent"),
        "{quiet}"
    );
    let low = play(Profile::LowCognitiveLoad);
    assert!(low.contains(&"Weaver: First part. Last part.".to_owned()), "{low:?}");
    let reader = play(Profile::ScreenReader);
    assert!(
        reader.contains(&"First part.".to_owned()) && reader.contains(&"50 percent.".to_owned()),
        "{reader:?}"
    );
}

#[test]
fn summaries_have_the_length_that_is_wanted() {
    let say = |length: Length| {
        let mut room = Room::new(Preferences {
            length,
            sounds: false,
            names: false,
            ..Preferences::default()
        });
        room.hear(&event("tool.invoked", &json!({ "tool": "x", "summary_normal": "Looking.", "summary_terse": "Look.", "summary_detailed": "Looking at all of it." })));
        room.listen().concat()
    };
    assert_eq!(
        [say(Length::Terse), say(Length::Normal), say(Length::Detailed)],
        ["Look.", "Looking.", "Looking at all of it."]
    );
}
