//! Names that people could take for each other: the agents of one principal never pass for those of another
//! (ruling 36).

use aaep::Object;
use aaep::extension::Accepts;
use aaep_hub::access::{Principal, Scopes};
use aaep_hub::hub::Hub;
use serde_json::{Value, json};

use crate::support::{
    Stream, confirmation, hub, hub_in, me, progress, publish, started, subscribe, try_publish,
};

/// A token of the person who runs the hub.
fn token(name: &str) -> Principal {
    Principal::new(format!("token:tok_{name}"), name, Scopes::ALL).owned_by(["me".to_owned()])
}

/// The event of another agent.
fn of(mut event: Object, producer: Value) -> Object {
    event.insert("producer".to_owned(), producer);
    event
}

fn claude(agent_id: &str) -> Value {
    json!({ "agent_id": agent_id, "agent_name": "Claude Code" })
}

/// Begins a session. Under which name people hear it.
async fn heard(hub: &Hub, who: &Principal, producer: Value) -> String {
    let subscription = subscribe(hub, json!({})).await;
    let mut stream = Stream::open(hub, &subscription, None).await;
    let mut event = of(started("sess_one"), producer);
    event.remove("session_id");
    let agent_id = event["producer"]["agent_id"].clone();
    let published = try_publish(hub, who, event).await.expect("taken");
    loop {
        let event = stream.next_of("session.started");
        if event["session_id"] == published.session_id.as_str() {
            assert_eq!(event["producer"]["agent_id"], agent_id);
            return event["producer"]["agent_name"].as_str().unwrap_or_default().to_owned();
        }
    }
}

#[tokio::test]
async fn an_id_that_reads_like_one_of_another_principal_is_refused() {
    let hub = hub();
    let named = |session: &str, name: &str| of(started(session), json!({ "agent_id": name }));
    for (number, name) in ["photos", "payroll", "\u{1f680}"].into_iter().enumerate() {
        publish(&hub, named(&format!("sess_{number}"), name)).await;
    }
    let alike =
        ["Photos", "ph\u{43e}tos", "PH0T0S", "photos\u{200b}", "pho-tos", "payro11", "PAYROII"];
    for (number, name) in alike.into_iter().chain(["\u{1f680}\u{fe0f}"]).enumerate() {
        let session = format!("sess_a{number}");
        let refused = try_publish(&hub, &token("eve"), named(&session, name)).await;
        assert_eq!(refused.expect_err("it reads alike").code(), "name_taken", "{name}");
        let declared = hub.declare(&token("eve"), name, vec![Accepts::Prompt]).await;
        assert!(declared.is_err(), "{name}");
        // One principal names its agents as it likes.
        publish(&hub, named(&session, name)).await;
    }
    for name in ["photo", "payrol", "bot-1-12", "bot-11-2"] {
        let session = format!("sess_{name}");
        try_publish(&hub, &token("eve"), named(&session, name)).await.expect("it reads otherwise");
    }
}

#[tokio::test]
async fn no_agent_states_the_principal_of_another_in_its_project() {
    let hub = hub();
    let evil = token("evil");
    for (number, (project, name)) in [
        ("shop", "Builder"),
        ("work/user-service", "Builder"),
        ("shop (token laptop)", "Builder (token evil)"),
        ("shop, t\u{43e}ken laptop", "Builder (token evil)"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut stream = Stream::open(&hub, &subscribe(&hub, json!({})).await, None).await;
        let session = format!("sess_{number}");
        let producer = json!({ "agent_id": "builder", "agent_name": "Builder" });
        let mut event = of(started(&session), producer);
        event.insert("@context".into(), json!([aaep::CORE_CONTEXT, aaep::extension::CONTEXT]));
        event.insert("extensions".into(), json!({ "agentvoice": { "project": project } }));
        try_publish(&hub, &evil, event).await.expect("taken");
        let heard = loop {
            let event = stream.next_of("session.started");
            if event["session_id"] == session {
                break event;
            }
        };
        assert_eq!(heard["producer"]["agent_name"], name, "{project}");
        assert_eq!(heard["extensions"]["agentvoice"]["project"], project);
    }
}

#[tokio::test]
async fn people_hear_the_principal_of_a_name_that_another_principal_has() {
    let hub = hub();
    let laptop = token("laptop");
    assert_eq!(heard(&hub, &me(), claude("claude-1")).await, "Claude Code");
    assert_eq!(heard(&hub, &laptop, claude("claude-2")).await, "Claude Code (token laptop)");
    assert_eq!(heard(&hub, &me(), claude("claude-1")).await, "Claude Code", "it was first");
    for name in ["CLAUDE CODE", "Cl\u{430}ude Code", "claude-code", "Claude Code in photos"] {
        let producer = json!({ "agent_id": "claude-2", "agent_name": name });
        assert_eq!(heard(&hub, &laptop, producer).await, format!("{name} (token laptop)"));
    }
    let padded = |padding: &str| format!("Claude Code{}x", padding.repeat(300));
    let marked = format!("C{}laude Code", "\u{301}".repeat(100));
    let reversed = "\u{202e}edoC edualC".to_owned();
    for name in [padded(" "), padded("\u{200b}"), marked, reversed] {
        let producer = json!({ "agent_id": "claude-2", "agent_name": name });
        let told = heard(&hub, &laptop, producer).await;
        assert!(told.ends_with(" (token laptop)") && told.len() <= 60, "{told}");
    }
    // The name of one is the id of the other.
    let producer = json!({ "agent_id": "x", "agent_name": "Claude 1" });
    assert_eq!(heard(&hub, &laptop, producer).await, "Claude 1 (token laptop)");
    assert_eq!(heard(&hub, &laptop, json!({ "agent_id": "notes" })).await, "", "nobody has it");
    let producer = json!({ "agent_id": "y", "agent_name": "Notes" });
    assert_eq!(heard(&hub, &me(), producer).await, "Notes (local program)");
}

#[tokio::test]
async fn no_agent_gives_itself_the_principal_of_another() {
    let hub = hub();
    let posing = json!({ "agent_id": "x", "agent_name": "Claude Code (token laptop)" });
    let told = heard(&hub, &token("eve"), posing).await;
    assert_eq!(told, "Claude Code (token laptop) (token eve)");
    heard(&hub, &me(), claude("claude-1")).await;
    // Two tokens with one name.
    let (one, two) =
        (token("laptop"), Principal { id: "token:tok_2".to_owned(), ..token("laptop") });
    let first = heard(&hub, &one, claude("claude-2")).await;
    let second = heard(&hub, &two, claude("claude-3")).await;
    assert_eq!(first, "Claude Code (token laptop)");
    assert!(second.starts_with("Claude Code (token laptop, number "), "{second}");
    // What is told is cut, but not the principal.
    let long = "n".repeat(500);
    let name =
        |id: &str, end: &str| json!({ "agent_id": id, "agent_name": format!("{long}{end}") });
    heard(&hub, &one, name("long-1", "x")).await;
    let told = heard(&hub, &token("eve"), name("long-2", "y")).await;
    assert!(told.len() <= 60 && told.ends_with("nn (token eve)"), "{told}");
}

#[tokio::test]
async fn questions_and_the_list_of_agents_tell_the_principal_too() {
    let hub = hub();
    let laptop = token("laptop");
    publish(&hub, of(started("sess_one"), claude("claude-1"))).await;
    try_publish(&hub, &laptop, of(started("sess_two"), claude("claude-2"))).await.expect("taken");
    let subscription = subscribe(&hub, json!({})).await;
    let mut stream = Stream::open(&hub, &subscription, None).await;
    let ask = of(confirmation("sess_two", "rpl_1"), claude("claude-2"));
    try_publish(&hub, &laptop, ask).await.expect("taken");
    let asked = stream.next_of("awaiting.confirmation");
    assert_eq!(asked["producer"]["agent_name"], "Claude Code (token laptop)");
    // One that only declares itself has no name but its id.
    for name in ["claude-2", "claude-code"] {
        hub.declare(&laptop, name, vec![Accepts::Prompt]).await.expect("declared");
    }
    let told: Vec<_> = hub.agents(&me()).await.expect("answered");
    let told: Vec<_> = told.into_iter().map(|it| (it.agent_id, it.agent_name)).collect();
    let named = |id: &str, name: &str| (id.to_owned(), Some(name.to_owned()));
    assert_eq!(
        told,
        [
            named("claude-2", "Claude Code (token laptop)"),
            named("claude-code", "claude-code (token laptop)"),
        ]
    );
}

#[tokio::test]
async fn an_event_that_comes_again_is_the_same_although_people_hear_another_name() {
    let hub = hub();
    publish(&hub, of(started("sess_one"), claude("claude-1"))).await;
    let mut event = of(started("sess_two"), claude("claude-2"));
    event.insert("event_id".to_owned(), "evt_again".into());
    let first = try_publish(&hub, &token("laptop"), event.clone()).await.expect("taken");
    let again = try_publish(&hub, &token("laptop"), event.clone()).await.expect("the same");
    assert!(!first.is_repeated && again.is_repeated);
    event["producer"]["agent_name"] = "Claude".into();
    let other = try_publish(&hub, &token("laptop"), event).await.expect_err("another one");
    assert_eq!(other.code(), "event_id_used");
}

#[tokio::test]
async fn a_restart_swaps_no_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = hub_in(folder.path());
    let laptop = token("laptop");
    publish(&hub, of(started("sess_one"), claude("claude-1"))).await;
    try_publish(&hub, &laptop, of(started("sess_two"), claude("claude-2"))).await.expect("taken");
    hub.stop().await;
    drop(hub);
    let hub = hub_in(folder.path());
    assert_eq!(heard(&hub, &laptop, claude("claude-2")).await, "Claude Code (token laptop)");
    assert_eq!(heard(&hub, &me(), claude("claude-1")).await, "Claude Code");
    let photos = json!({ "agent_id": "Claude-1" });
    let refused = try_publish(&hub, &laptop, of(started("sess_three"), photos)).await;
    assert_eq!(refused.expect_err("it is held").code(), "name_taken");
    publish(&hub, of(progress("sess_one", "Half."), claude("claude-1"))).await;
    hub.stop().await;
}
