//! Agents on their sockets, and what people tell them.

use std::time::Duration;

use aaep::extension::Accepts;
use aaep_hub::hub::{HubError, MessageOutcome, NotInstructed};
use serde_json::{Value, json};

use crate::support::{
    Peer, Stream, confirmation, event, hub, hub_in, me, progress, publish, read, reply,
    somebody_else, started, subscribe, try_publish,
};

const TOKEN: &str = "rpl_0123456789abcdef0123456789abcdef";

#[tokio::test]
async fn an_agent_publishes_and_asks_over_its_socket() {
    let hub = hub();
    let subscription = subscribe(&hub, json!({})).await;
    let mut stream = Stream::open(&hub, &subscription, None).await;
    let mut agent = Peer::agent(&hub).await;
    agent.send(&Value::Object(started("sess_one")));
    assert_eq!(agent.next()["type"], "agentvoice:published");
    agent.send(&Value::Object(confirmation("sess_one", TOKEN)));
    let published = agent.next();
    assert_eq!(published["reply_token"], TOKEN);
    stream.next_of("awaiting.confirmation");
    assert_eq!(reply(&hub, &me(), &subscription, TOKEN, "reject").await, MessageOutcome::Counted);
    let resolved = agent.next();
    assert_eq!(
        (&resolved["type"], &resolved["outcome"]),
        (&json!("agentvoice:resolved"), &json!("reject"))
    );

    let mut later = Peer::agent(&hub).await;
    let mut again = confirmation("sess_one", TOKEN);
    again.insert("event_id".to_owned(), published["event_id"].clone());
    later.send(&Value::Object(again.clone()));
    assert_eq!(later.next()["repeated"], true);
    assert_eq!(later.next()["outcome"], "reject", "the same question finds the same answer");
    again.insert("action".to_owned(), "Delete the home folder".into());
    later.send(&Value::Object(again));
    let refused = later.next();
    assert_eq!(
        (&refused["type"], &refused["error"]),
        (&json!("agentvoice:refused"), &json!("event_id_used"))
    );
    assert_eq!(refused["event_id"], published["event_id"]);
}

#[tokio::test]
async fn what_an_agent_gets_wrong_is_said_on_its_socket() {
    let hub = hub();
    let mut agent = Peer::agent(&hub).await;
    agent.say("no json");
    assert_eq!(agent.next()["error"], "not_json");
    agent.say(r#"{"type":"aaep:agent.session.started","default_decision":"reject","default_decision":"accept"}"#);
    assert_eq!(agent.next()["error"], "not_json", "which of the two would count?");
    agent.send(&Value::Object(progress("sess_one", "Early.")));
    assert_eq!(agent.next()["error"], "not_started");
    agent.send(&json!({ "type": "agentvoice:ask.withdraw", "reply_token": TOKEN }));
    assert_eq!(agent.next()["error"], "no_such_ask");
    agent.send(&json!({ "type": "agentvoice:agent.hello" }));
    assert_eq!(agent.next()["error"], "not_valid");
}

fn prompt(subscription: &aaep::SubscriptionId) -> aaep::Message {
    read(&json!({
        "type": "agentvoice:agent.prompt", "subscription_id": subscription, "text": "Tidy up.",
    }))
}

#[tokio::test]
async fn people_tell_agents_that_accept_it_what_to_do() {
    let hub = hub();
    let subscription = subscribe(&hub, json!({})).await;
    let nobody = hub.tell(&me(), prompt(&subscription)).await.expect("answered");
    assert_eq!(nobody, MessageOutcome::NotInstructed(NotInstructed::NoAgent));

    hub.declare(&me(), "builder", vec![Accepts::Prompt, Accepts::Cancel]).await.expect("declared");
    let waiting = {
        let hub = hub.clone();
        tokio::spawn(
            async move { hub.instructions(&me(), "builder", 0, Duration::from_secs(20)).await },
        )
    };
    let told = hub.tell(&me(), prompt(&subscription)).await.expect("answered");
    let MessageOutcome::Instructed(session) = told else { panic!("{told:?}") };
    let instructions = waiting.await.expect("no panic").expect("known");
    assert_eq!(instructions.len(), 1);
    assert_eq!(instructions[0].session_id, session);
    assert_eq!(instructions[0].text.as_deref(), Some("Tidy up."));
    let number = instructions[0].number;
    let none = hub.instructions(&me(), "builder", number, Duration::ZERO).await.expect("known");
    assert!(none.is_empty(), "what was taken does not come again");

    publish(&hub, started(session.as_str())).await;
    let cancel = read(&json!({
        "type": "agentvoice:session.cancel", "subscription_id": subscription, "session_id": session,
    }));
    assert_eq!(hub.tell(&me(), cancel).await, Ok(MessageOutcome::Instructed(session.clone())));
    let steer = read(&json!({
        "type": "agentvoice:session.steer", "subscription_id": subscription,
        "session_id": session, "text": "Only the old ones.",
    }));
    let steered = hub.tell(&me(), steer).await.expect("answered");
    assert_eq!(
        steered,
        MessageOutcome::NotInstructed(NotInstructed::NoAgent),
        "it does not accept that"
    );
}

#[tokio::test]
async fn each_request_of_a_person_gets_a_session_of_its_own() {
    let hub = hub();
    let subscription = subscribe(&hub, json!({})).await;
    hub.declare(&me(), "builder", vec![Accepts::Prompt]).await.expect("declared");
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let told = hub.tell(&me(), prompt(&subscription)).await.expect("answered");
        let MessageOutcome::Instructed(session) = told else { panic!("{told:?}") };
        assert!(!sessions.contains(&session), "{session} was used before");
        publish(&hub, started(session.as_str())).await;
        sessions.push(session);
    }
    for session in sessions {
        let again = try_publish(&hub, &me(), started(session.as_str())).await;
        assert_eq!(again.expect_err("one request, one start").code(), "started_twice");
    }
}

#[tokio::test]
async fn an_agent_on_its_socket_is_told_there() {
    let hub = hub();
    let subscription = subscribe(&hub, json!({})).await;
    let mut agent = Peer::agent(&hub).await;
    agent.send(&json!({
        "type": "agentvoice:agent.hello", "agent_id": "builder", "accepts": ["prompt"],
    }));
    agent.send(&Value::Object(started("sess_one")));
    agent.next_of("agentvoice:published");
    hub.tell(&me(), prompt(&subscription)).await.expect("answered");
    assert_eq!(agent.next_of("agentvoice:agent.prompt")["text"], "Tidy up.");
    let agents = hub.agents(&me()).await.expect("answered");
    assert_eq!(agents.len(), 1);
    assert_eq!(agents[0].sessions.len(), 1);
}

#[tokio::test]
async fn nobody_takes_the_name_or_the_post_of_an_agent() {
    let hub = hub();
    hub.declare(&me(), "builder", vec![Accepts::Prompt]).await.expect("declared");
    let other = somebody_else();
    let taken = hub.declare(&other, "builder", vec![Accepts::Prompt]).await;
    assert_eq!(taken, Err(HubError::NoSuchAgent));
    let read = hub.instructions(&other, "builder", 0, Duration::ZERO).await;
    assert_eq!(read, Err(HubError::NoSuchAgent));
    let mut subscriber = other;
    subscriber.scopes = [aaep_hub::access::Scope::Listen].into_iter().collect();
    let accepted = hub
        .subscribe(&subscriber, aaep_engine::terms::Door::Open, crate::support::request(&json!({})))
        .await
        .expect("answered")
        .expect("accepted");
    let told = hub.tell(&subscriber, prompt(&accepted.subscription_id)).await.expect("answered");
    assert_eq!(told, MessageOutcome::NotInstructed(NotInstructed::NotAllowed));
}

/// Whether any principal speaks under the name or only declared it, and whether the store still has that.
#[tokio::test]
async fn a_restart_frees_no_name_however_its_holder_used_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = hub_in(folder.path());
    let named = |mut event: aaep::Object, name: &str| {
        event["producer"]["agent_id"] = name.into();
        event
    };
    let done = |session: &str| {
        event("session.completed", Some(session), &json!({ "summary_normal": "Done." }))
    };
    hub.declare(&me(), "declared", vec![Accepts::Prompt]).await.expect("declared");
    publish(&hub, started("sess_one")).await;
    publish(&hub, named(progress("sess_one", "Half."), "second")).await;
    publish(&hub, done("sess_one")).await;
    publish(&hub, named(started("sess_two"), "deleted")).await;
    publish(&hub, named(done("sess_two"), "deleted")).await;
    let two = aaep::SessionId::parse("sess_two").expect("an id");
    hub.delete_session(&me(), &two).await.expect("answered").expect("deleted");
    hub.stop().await;
    drop(hub);

    let hub = hub_in(folder.path());
    for name in ["declared", "second", "deleted", "builder"] {
        let other = named(started(&format!("sess_{name}")), name);
        let refused = try_publish(&hub, &somebody_else(), other).await.expect_err("it is held");
        assert_eq!(refused.code(), "name_taken", "{name}");
        publish(&hub, named(started(&format!("sess_own_{name}")), name)).await;
    }
    hub.stop().await;
}

#[tokio::test]
async fn agents_of_some_principals_leave_room_for_those_of_another() {
    let hub = hub();
    let principal = |number: usize| aaep_hub::access::Principal {
        id: format!("token {number}"),
        ..somebody_else()
    };
    let accepts = || vec![Accepts::Prompt];
    for number in 0..8 {
        let who = principal(number);
        for post in 0..128 {
            let name = format!("bot{number}x{post}");
            hub.declare(&who, &name, accepts()).await.expect("within its share");
        }
        assert!(hub.declare(&who, "one_more", accepts()).await.is_err(), "it has its share");
    }
    hub.declare(&me(), "builder", accepts()).await.expect("there is always room");
    // Refused events did not take a name.
    hub.declare(&me(), "one_more", accepts()).await.expect("nobody has it");
}

/// A principal that fills the post of an agent leaves room there for others, and a cancel always gets through.
#[tokio::test]
async fn one_sender_does_not_fill_a_post_and_a_cancel_gets_through() {
    let hub = hub();
    hub.declare(&me(), "builder", vec![Accepts::Prompt, Accepts::Cancel]).await.expect("declared");
    publish(&hub, started("sess_one")).await;
    let mut people = Vec::new();
    for name in ["one", "two", "three", "four", "five"] {
        let mut who = somebody_else();
        who.id = format!("token:{name}");
        let door = aaep_engine::terms::Door::Open;
        let asked = hub.subscribe(&who, door, crate::support::request(&json!({}))).await;
        people.push((who, asked.expect("answered").expect("accepted").subscription_id));
    }
    let tell = |at: usize, text: &str| {
        let (who, subscription_id) = people[at].clone();
        let (hub, text) = (hub.clone(), text.to_owned());
        async move {
            let prompt = read(&json!({
                "type": "agentvoice:agent.prompt", "subscription_id": subscription_id, "text": text,
            }));
            hub.tell(&who, prompt).await.expect("answered")
        }
    };
    let full = MessageOutcome::NotInstructed(NotInstructed::Full);
    let mut taken = Vec::new();
    for at in 0..people.len() {
        let mut count = 0;
        while tell(at, "Tidy up.").await != full {
            count += 1;
            assert!(count < 1000, "the post of an agent has no bound");
        }
        taken.push(count);
    }
    assert_eq!(taken, [16, 16, 16, 16, 0]);
    let (who, subscription_id) = people[4].clone();
    let cancel = json!({
        "type": "agentvoice:session.cancel", "subscription_id": subscription_id,
        "session_id": "sess_one",
    });
    for _ in 0..2 {
        let told = hub.tell(&who, read(&cancel)).await.expect("answered");
        assert!(matches!(told, MessageOutcome::Instructed(_)), "{told:?}");
    }
    let waiting = hub.instructions(&me(), "builder", 0, Duration::ZERO).await.expect("known");
    assert_eq!(waiting.len(), 65, "one cancel is enough");
    // The length of the words counts as well.
    let last = waiting.last().expect("some").number;
    hub.instructions(&me(), "builder", last, Duration::ZERO).await.expect("known");
    let long = "\u{1f4f7}".repeat(15_000);
    assert!(matches!(tell(0, &long).await, MessageOutcome::Instructed(_)));
    assert!(matches!(tell(0, &long).await, MessageOutcome::Instructed(_)));
    assert_eq!(tell(0, &long).await, full);
    assert!(matches!(tell(1, &long).await, MessageOutcome::Instructed(_)));
}
