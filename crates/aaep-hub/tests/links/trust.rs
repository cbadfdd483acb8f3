//! The right to answer, on every wire (ruling 37).

use aaep::extension::{AskOutcome, DecidedBy};
use aaep_hub::access::{PersonKey, read_person_key};
use aaep_transport::link::DialOptions;

use crate::support::*;

/// A hub as a person starts it: local programs are not trusted.
async fn hub() -> TestHub {
    TestHub::with(|options, _| options.config.access.trust_local_programs = false).await
}

/// The credential of the person's own programs.
fn key(hub: &TestHub) -> DialOptions {
    let path = PersonKey::path_beside(&hub.folder.path().join("tokens.toml"));
    let bearer = Some(read_person_key(&path).expect("a key"));
    DialOptions { bearer, ..DialOptions::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_without_the_persons_key_answers_on_no_wire() {
    for &wire in WIRES {
        let hub = hub().await;
        let mut program = hub.subscriber(wire).await;
        hub.publish(started("sess_1", "I begin.")).await;
        program.next_of("aaep:agent.session.started").await;
        let token = hub.ask("sess_1").await;
        let settled = hub.settlement(&token).await;
        assert_eq!(settled.outcome, AskOutcome::Reject, "{wire:?}");
        assert_eq!(settled.decided_by, DecidedBy::NoListener, "{wire:?}");
        program.decide(&token, "accept").await;
        assert_eq!(program.next_of("agentvoice:error").await["error"], "invalid_token");
        assert_eq!(hub.settlement(&token).await.outcome, AskOutcome::Reject, "{wire:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_does_not_answer_on_the_subscription_of_the_person_on_any_wire() {
    for &wire in WIRES {
        let hub = hub().await;
        let mut person = hub.dial(wire, key(&hub)).await.expect("a link");
        person.subscribe(subscription_request()).await;
        let mut program = hub.subscriber(wire).await;
        hub.publish(started("sess_1", "I begin.")).await;
        let token = hub.ask("sess_1").await;
        person.next_of("aaep:agent.awaiting.confirmation").await;
        program.say(&reply(token.as_str(), &person.id, "accept")).await;
        assert_eq!(program.next_of("agentvoice:error").await["error"], "invalid_token");
        assert!(hub.is_open(&token).await, "{wire:?}");
        person.decide(&token, "accept").await;
        assert_eq!(hub.settlement(&token).await.outcome, AskOutcome::Accept, "{wire:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_wrong_lets_nobody_in_on_any_wire() {
    for &wire in WIRES {
        let hub = hub().await;
        let wrong = format!("aaep_{}", "A".repeat(43));
        let options = DialOptions { bearer: Some(wrong), ..DialOptions::default() };
        let Ok(mut stranger) = hub.dial(wire, options).await else { continue };
        // On some wires the credential comes with the first message.
        let _ = stranger.link.sender.send(subscription_request().to_string()).await;
        let refused = loop {
            match stranger.heard().await {
                Ok(message) if message["type"] == "subscription.accepted" => break false,
                Ok(_) => {}
                Err(_) => break true,
            }
        };
        assert!(refused, "{wire:?}");
    }
}
