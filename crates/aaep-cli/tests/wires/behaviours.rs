//! The behaviours that hold for a subscriber on any wire.

use aaep_transport::link::{LinkEnd, LinkResume};
use serde_json::{Value, json};

use crate::world::{Subscriber, Wire, World, merge, question, request};

fn with(more: Value) -> Value {
    let mut wanted = request();
    merge(&mut wanted["capabilities"], more);
    wanted
}

/// Says that an extension is used.
fn context() -> Value {
    json!(["https://aaep-protocol.org/context/v1", "https://example.org/words"])
}

fn progress(step: usize) -> Value {
    json!({ "event_id": format!("evt_step{step:05}"), "progress": { "step": step + 1 } })
}

/// Whether the hub still takes a subscriber and tells it things.
async fn the_hub_is_well<W: Wire>(world: &World, told_by: &mut Subscriber, session_id: &str) {
    world.publish("session.started", json!({ "session_id": session_id })).await;
    loop {
        let heard = told_by.hear_of("aaep:agent.session.started").await;
        if heard["session_id"] == session_id {
            return;
        }
    }
}

/// A subscriber whose hub is surely the one that the wire leads to: on the wire itself, or on another one where only
/// one can be on it.
async fn witness<W: Wire>(world: &World) -> Subscriber {
    if W::IS_CHILD {
        world.subscribed::<crate::sse::Sse>().await
    } else {
        world.subscribed::<W>().await
    }
}

pub(crate) async fn a_subscription_is_accepted<W: Wire>() {
    let world = World::new::<W>("");
    let mut subscriber = world.listen::<W>().await;
    let accepted = subscriber.subscribe(&with(json!({ "max_events_per_second": 5 }))).await;
    assert_eq!(accepted["honored_capabilities"]["max_events_per_second"], 5, "{accepted}");
}

pub(crate) async fn each_rejection_is_told<W: Wire>() {
    let world = World::new::<W>("[hub]\nmax_subscriptions = 1\n");
    // For a child, each of these is a hub of its own, on the same port and store.
    let mut of_another_version = request();
    of_another_version["aaep_version"] = json!("2.0.0");
    for (wanted, reason) in [
        (of_another_version, "version_unsupported"),
        (with(json!({ "accept_signed_manifests_only": true })), "manifest_signature_required"),
        (with(json!({ "rdf": {} })), "capabilities_incompatible"),
    ] {
        let mut subscriber = world.listen::<W>().await;
        subscriber.say(&wanted).await;
        let rejected = subscriber.hear().await.expect("an answer");
        assert_eq!(rejected["type"], "subscription.rejected", "{rejected}");
        assert_eq!(rejected["reason_code"], reason, "{rejected}");
        assert!(rejected["reason_message"].as_str().is_some_and(|it| !it.is_empty()));
    }
    let mut first = world.listen::<W>().await;
    first.subscribe(&request()).await;
    let mut second = if W::IS_CHILD {
        world.listen::<crate::sse::Sse>().await
    } else {
        // A subscriber that is not connected yet would give way.
        the_hub_is_well::<W>(&world, &mut first, "sess_here").await;
        world.listen::<W>().await
    };
    second.say(&request()).await;
    let rejected = second.hear().await.expect("an answer");
    assert_eq!(rejected["reason_code"], "rate_limit", "{rejected}");
    assert!(rejected["retry_after_seconds"].is_u64(), "{rejected}");
}

pub(crate) async fn a_stranger_is_turned_away<W: Wire>() {
    let world = World::new::<W>("[access]\nloopback_needs_credentials = true\n");
    for bearer in [None, Some("aaep_0123456789abcdef0123456789abcdef")] {
        if W::IS_VOUCHED_FOR {
            let subscriber = world.come::<W>(None).await;
            subscriber.expect("a link").subscribe(&request()).await;
            return;
        }
        let refused = match world.come::<W>(bearer).await {
            Ok(mut subscriber) => {
                // The hub may have closed before it is asked.
                let _ = subscriber.link.sender.send(request().to_string()).await;
                match subscriber.hear().await {
                    Ok(rejected) => {
                        assert_eq!(rejected["type"], "subscription.rejected", "{rejected}");
                        let reason = rejected["reason_code"].as_str().unwrap_or_default();
                        let known = ["authentication_required", "authorization_denied"];
                        assert!(known.contains(&reason), "{rejected}");
                        subscriber.end().await
                    }
                    Err(end) => end,
                }
            }
            Err(end) => end,
        };
        assert!(matches!(refused, LinkEnd::Refused { .. }), "{refused:?}");
    }
}

pub(crate) async fn a_full_session_is_heard<W: Wire>() {
    let world = World::new::<W>("");
    let mut subscriber = world.subscribed::<W>().await;
    let tool = json!({ "tool": "list", "tool_call_id": "call_1" });
    let done = json!({ "tool": "list", "tool_call_id": "call_1", "status": "success" });
    let chunk = |text: &str, position: u64, is_complete: bool| json!({ "chunk": text, "position": position, "complete": is_complete, "output_id": "out_1" });
    let spoken = [
        ("session.started", json!({})),
        ("state.changed", json!({ "from_state": "idle", "to_state": "thinking" })),
        ("tool.invoked", tool),
        ("tool.completed", done),
        ("progress.updated", json!({ "progress": { "percent": 50 } })),
        ("output.streaming", chunk("Grüße, 世界. ", 0, false)),
        ("output.streaming", chunk("Done.", 11, true)),
        ("session.completed", json!({})),
    ];
    for (kind, more) in spoken.clone() {
        world.publish(kind, more).await;
    }
    let mut text = String::new();
    for (kind, _) in &spoken {
        let heard = subscriber.hear().await.expect("an event");
        assert_eq!(heard["type"], format!("aaep:agent.{kind}"), "{heard}");
        text.push_str(heard["chunk"].as_str().unwrap_or_default());
    }
    assert_eq!(text, "Grüße, 世界. Done.");
}

pub(crate) async fn a_confirmation_is_answered<W: Wire>() {
    for decision in ["accept", "reject"] {
        let world = World::new::<W>("");
        let mut subscriber = world.subscribed::<W>().await;
        world.publish("session.started", json!({})).await;
        let token = world.ask().await;
        let asked = subscriber.hear_of("aaep:agent.awaiting.confirmation").await;
        assert_eq!(asked["reply_token"], token.as_str());
        let forged = json!({ "reply_token": "rpl_0123456789abcdef0123456789abcdef" });
        subscriber.answer(&forged, "accept").await;
        let refused = subscriber.hear_of("agentvoice:error").await;
        assert_eq!(refused["error"], "invalid_token", "{refused}");
        subscriber.answer(&asked, decision).await;
        let outcome = world.outcome(&token).await;
        assert_eq!(
            (&outcome["outcome"], &outcome["decided_by"]),
            (&json!(decision), &json!("reply"))
        );
        subscriber.answer(&asked, "accept").await;
        let refused = subscriber.hear_of("agentvoice:error").await;
        assert_eq!(refused["error"], "invalid_token", "nobody answers twice: {refused}");
    }
}

pub(crate) async fn a_clarification_is_answered<W: Wire>() {
    let world = World::new::<W>("");
    let mut subscriber = world.subscribed::<W>().await;
    world.publish("session.started", json!({})).await;
    let question = json!({ "question": "Which colour?", "timeout_seconds": 600 });
    let asked = world.publish("awaiting.clarification", question).await;
    let token = asked["reply_token"].as_str().expect("a token").to_owned();
    let asked = subscriber.hear_of("aaep:agent.awaiting.clarification").await;
    subscriber
        .say(&json!({
            "type": "clarification.reply", "reply_token": asked["reply_token"],
            "subscription_id": subscriber.subscription_id, "response": "Grün, 緑.\nAnd \"blue\".",
            "timestamp": "2020-01-01T00:00:00.000Z",
        }))
        .await;
    let outcome = world.outcome(&token).await;
    assert_eq!(outcome["response"], "Grün, 緑.\nAnd \"blue\".", "{outcome}");
}

pub(crate) async fn terms_are_renegotiated<W: Wire>() {
    let world = World::new::<W>("");
    let mut subscriber = world.subscribed::<W>().await;
    world.publish("session.started", json!({})).await;
    subscriber.hear_of("aaep:agent.session.started").await;
    subscriber
        .say(&renegotiate(
            &subscriber,
            &json!({ "event_filters": { "exclude": ["aaep:agent.progress.*"] } }),
        ))
        .await;
    let accepted = subscriber.hear_of("subscription.accepted").await;
    assert_eq!(accepted["subscription_id"], subscriber.subscription_id.as_str(), "{accepted}");
    world.publish("progress.updated", json!({ "progress": { "percent": 50 } })).await;
    world.publish("session.completed", json!({})).await;
    let heard = subscriber.hear().await.expect("an event");
    assert_eq!(heard["type"], "aaep:agent.session.completed", "{heard}");
}

fn renegotiate(subscriber: &Subscriber, capabilities: &Value) -> Value {
    json!({
        "type": "subscription.renegotiate", "subscription_id": subscriber.subscription_id,
        "capabilities": capabilities,
    })
}

pub(crate) async fn the_subscriber_closes<W: Wire>() {
    let world = World::new::<W>("");
    let mut subscriber = world.subscribed::<W>().await;
    let mut other = witness::<W>(&world).await;
    let id = subscriber.subscription_id.clone();
    subscriber.say(&json!({ "type": "subscription.close", "subscription_id": id })).await;
    match subscriber.end().await {
        LinkEnd::Closed { code, .. } if W::HAS_CODES => assert_eq!(code, Some(4005)),
        LinkEnd::Closed { .. } if !W::HAS_CODES => {}
        other => panic!("{other:?}"),
    }
    if !W::IS_CHILD {
        the_hub_is_well::<W>(&world, &mut other, "sess_2").await;
    }
}

pub(crate) async fn the_hub_closes<W: Wire>() {
    let world = World::new::<W>("");
    let mut subscriber = world.subscribed::<W>().await;
    let wish = json!({ "accept_signed_manifests_only": true });
    subscriber.say(&renegotiate(&subscriber, &wish)).await;
    let rejected = subscriber.hear_of("subscription.rejected").await;
    assert_eq!(rejected["reason_code"], "manifest_signature_required", "{rejected}");
    match subscriber.end().await {
        LinkEnd::Closed { code, .. } if W::HAS_CODES => assert_eq!(code, Some(4001)),
        LinkEnd::Closed { .. } if !W::HAS_CODES => {}
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn a_cut_loses_nothing<W: Wire>() {
    let world = World::new::<W>("");
    let mut subscriber = world.subscribed::<W>().await;
    world.publish("session.started", json!({})).await;
    for step in 0..20 {
        world.publish("progress.updated", progress(step)).await;
    }
    subscriber.hear_of("aaep:agent.session.started").await;
    let mut heard = Vec::new();
    for _ in 0..5 {
        let event = subscriber.hear_of("aaep:agent.progress.updated").await;
        heard.push(event["event_id"].as_str().expect("an id").to_owned());
    }
    let (subscription_id, last) = (subscriber.subscription_id.clone(), heard.last().cloned());
    drop(subscriber);
    let resume =
        LinkResume { subscription_id: Some(subscription_id.clone()), last_event_id: last.clone() };
    let mut subscriber = back::<W>(&world, resume, &subscription_id, last.as_deref()).await;
    world.publish("progress.updated", progress(20)).await;
    while heard.len() < 21 {
        let event = subscriber.hear_of("aaep:agent.progress.updated").await;
        heard.push(event["event_id"].as_str().expect("an id").to_owned());
    }
    let expected: Vec<String> = (0..21).map(|step| format!("evt_step{step:05}")).collect();
    assert_eq!(heard, expected, "each once, in order");
}

/// A subscriber that was cut off returns, in the way of this wire.
async fn back<W: Wire>(
    world: &World,
    resume: LinkResume,
    subscription_id: &str,
    last: Option<&str>,
) -> Subscriber {
    let is_sse = W::target(world).starts_with("http");
    let mut subscriber = world.listen_with::<W>(is_sse.then_some(resume)).await;
    if !is_sse {
        let mut again = request();
        again["extensions"] = json!({ "agentvoice": { "resume": {
            "subscription_id": subscription_id, "last_event_id": last,
        } } });
        subscriber.subscribe(&again).await;
    }
    subscriber
}

pub(crate) async fn messages_of_64_kib_and_1_mib_pass<W: Wire>() {
    let world = World::new::<W>("");
    let mut subscriber = world.subscribed::<W>().await;
    world.publish("session.started", json!({})).await;
    // An event may have 64 KiB (§3.7), and comes as it was sent.
    let words = "Ω".repeat(900);
    let list: Vec<Value> = (0..30).map(|at| json!({ "at": at, "words": words })).collect();
    let mut large =
        json!({ "progress": { "percent": 1 }, "extensions": { "example": { "list": list } } });
    large["@context"] = context();
    let size = large.to_string().len();
    assert!((54_000..64_000).contains(&size), "{size}");
    world.publish("progress.updated", large.clone()).await;
    let heard = subscriber.hear_of("aaep:agent.progress.updated").await;
    assert_eq!(heard["extensions"]["example"], large["extensions"]["example"]);
    // Messages of a subscriber too. One of 1 MiB passes the wire, and the hub says what is wrong with it (§3.7).
    for (bytes, expected) in
        [(60_000, "subscription.accepted"), ((1 << 20) - 4096, "agentvoice:error")]
    {
        let filling: Vec<String> = (0..bytes / 1000).map(|_| "x".repeat(997)).collect();
        let wish = json!({ "example": { "filling": filling } });
        subscriber.say(&renegotiate(&subscriber, &wish)).await;
        let answer = subscriber.hear().await.expect("an answer");
        assert_eq!(answer["type"], expected, "{bytes}: {answer}");
    }
}

pub(crate) async fn a_malformed_frame_harms_nobody<W: Wire>() {
    let world = World::new::<W>("");
    if W::IS_CHILD {
        return W::speak_wrongly(&world).await;
    }
    let mut other = world.subscribed::<W>().await;
    W::speak_wrongly(&world).await;
    the_hub_is_well::<W>(&world, &mut other, "sess_1").await;
}

pub(crate) async fn an_oversize_frame_harms_nobody<W: Wire>() {
    let world = World::new::<W>("");
    let mut subscriber = world.subscribed::<W>().await;
    let mut other = witness::<W>(&world).await;
    let filling: Vec<String> = (0..1100).map(|_| "x".repeat(1000)).collect();
    let long = json!({ "type": "subscription.close", "extensions": { "example": filling } });
    subscriber.say(&long).await;
    // It is refused: by an answer where each message is a request of its own, by closing elsewhere.
    loop {
        match subscriber.hear().await {
            Ok(message) if message["type"] == "agentvoice:error" => break,
            Ok(_) => {}
            Err(LinkEnd::Closed { code, .. }) => {
                assert!(!W::HAS_CODES || code == Some(1009), "{code:?}");
                break;
            }
            // The hub may end while the rest of the message is still on its way to it.
            Err(LinkEnd::Cut(_)) => break,
            Err(other) => panic!("{other:?}"),
        }
    }
    the_hub_is_well::<W>(&world, &mut other, "sess_2").await;
}

pub(crate) async fn a_slow_reader_slows_nobody<W: Wire>() {
    const EVENTS: usize = 600;
    let world =
        World::new::<W>("[limits]\npublishes_per_second = 100000\npublish_burst = 100000\n");
    // It subscribes, and does not read.
    let mut slow = world.subscribed::<W>().await;
    let mut other = witness::<W>(&world).await;
    world.publish("session.started", json!({})).await;
    let words: Vec<String> = (0..20).map(|_| "x".repeat(1000)).collect();
    for step in 0..EVENTS {
        let mut event = progress(step);
        event["extensions"] = json!({ "example": { "words": words } });
        event["@context"] = context();
        world.publish("progress.updated", event).await;
        let heard = other.hear_of("aaep:agent.progress.updated").await;
        assert_eq!(
            heard["event_id"],
            format!("evt_step{step:05}"),
            "nobody waits for the slow one"
        );
    }
    // When it reads, it hears everything, or that it is too late for some events; never an event twice.
    let mut next = 0;
    while next < EVENTS {
        let heard = match slow.hear().await {
            Ok(heard) => heard,
            // A subscriber that is far too slow is disconnected, and may return.
            Err(LinkEnd::Closed { .. } | LinkEnd::Cut(_)) => return,
            Err(end) => panic!("{end:?}"),
        };
        if !heard["extensions"]["agentvoice"]["gap"].is_null() {
            return;
        }
        if heard["type"] == "aaep:agent.progress.updated" {
            let step = heard["progress"]["step"].as_u64().and_then(|it| usize::try_from(it).ok());
            let step = step.expect("a step") - 1;
            assert!(step >= next, "step {step} again");
            next = step + 1;
        }
    }
}

pub(crate) async fn half_a_close_is_a_whole_one<W: Wire>() {
    let world = World::new::<W>("");
    let rest = W::close_half(&world).await;
    drop(rest);
}

pub(crate) async fn vanishing_with_a_question_open_means_no<W: Wire>() {
    let world = World::new::<W>("");
    let mut subscriber = world.subscribed::<W>().await;
    world.publish("session.started", json!({})).await;
    let mut soon = question();
    // The hub of a child stops with its parent, so the question outlives the hub.
    if W::IS_CHILD {
        soon["timeout_seconds"] = json!(20);
    }
    let asked = world.publish("awaiting.confirmation", soon).await;
    let token = asked["reply_token"].as_str().expect("a token").to_owned();
    subscriber.hear_of("aaep:agent.awaiting.confirmation").await;
    drop(subscriber);
    // A subscriber that cannot answer starts it again.
    let mut again = None;
    if W::IS_CHILD {
        let again = again.insert(world.listen::<W>().await);
        again.subscribe(&with(json!({ "supports_confirmation_reply": false }))).await;
    }
    let outcome = world.outcome(&token).await;
    assert_eq!(outcome["outcome"], "reject", "{outcome}");
    assert_ne!(outcome["decided_by"], "reply", "{outcome}");
}
