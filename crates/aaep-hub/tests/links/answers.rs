//! Whether an answer counts, by wire and by credential: one table (rulings 14 and 37).

use aaep::extension::{AskOutcome, DecidedBy};
use aaep_engine::Now;
use aaep_hub::access::{PersonKey, Scope, Tokens, read_person_key};
use aaep_transport::link::DialOptions;

use crate::support::*;

/// How far a program gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// They hear nothing.
    Nothing,
    /// They hear everything, and their answer does not count.
    Hearing,
    /// Their answer counts.
    Answering,
}

/// How far a program gets on a wire with this credential.
async fn reach(hub: &TestHub, wire: Wire, bearer: Option<String>) -> Reach {
    let options = DialOptions { bearer, ..DialOptions::default() };
    let Ok(mut program) = hub.dial(wire, options).await else { return Reach::Nothing };
    // On some wires the credential comes with the first message, so the hub may have ended the link already.
    let _ = program.link.sender.send(subscription_request().to_string()).await;
    loop {
        match program.heard().await {
            Ok(message) if message["type"] == "subscription.accepted" => {
                message["subscription_id"].as_str().expect("an id").clone_into(&mut program.id);
                break;
            }
            Ok(_) => {}
            Err(_) => return Reach::Nothing,
        }
    }
    hub.publish(started("sess_1", "I begin.")).await;
    program.next_of("aaep:agent.session.started").await;
    let token = hub.ask("sess_1").await;
    if !hub.is_open(&token).await {
        program.decide(&token, "accept").await;
        let refused = program.next_of("agentvoice:error").await;
        assert_eq!(refused["error"], "invalid_token", "{wire:?}");
        assert_eq!(refused["reply_token"], token.as_str(), "{wire:?}");
        let settled = hub.settlement(&token).await;
        assert_eq!(
            (settled.outcome, settled.decided_by),
            (AskOutcome::Reject, DecidedBy::NoListener)
        );
        return Reach::Hearing;
    }
    program.decide(&token, "accept").await;
    let settled = hub.settlement(&token).await;
    assert_eq!((settled.outcome, settled.decided_by), (AskOutcome::Accept, DecidedBy::Reply));
    Reach::Answering
}

/// The credential of a program.
enum Shown {
    Nothing,
    WrongToken,
    Token(&'static [Scope]),
    PersonsKey,
}

impl Shown {
    fn bearer(&self, hub: &TestHub) -> Option<String> {
        let path = hub.folder.path().join("tokens.toml");
        match self {
            Shown::Nothing => None,
            Shown::WrongToken => Some(format!("aaep_{}", "A".repeat(43))),
            Shown::Token(scopes) => Some(token(&hub.folder, "someone", scopes)),
            Shown::PersonsKey => read_person_key(&PersonKey::path_beside(&path)).ok(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_those_who_may_answer_do_on_every_wire() {
    use Scope::{Admin, Listen, Publish, Reply};
    for (who, shown, is_allowed, expected) in [
        ("a program without a credential", Shown::Nothing, false, Reach::Hearing),
        ("a program that the person allowed", Shown::Nothing, true, Reach::Answering),
        ("a wrong token", Shown::WrongToken, true, Reach::Nothing),
        ("publish", Shown::Token(&[Publish]), true, Reach::Nothing),
        ("reply", Shown::Token(&[Reply]), true, Reach::Nothing),
        ("admin", Shown::Token(&[Admin]), true, Reach::Nothing),
        ("listen", Shown::Token(&[Listen]), true, Reach::Hearing),
        ("listen and publish", Shown::Token(&[Listen, Publish]), true, Reach::Hearing),
        ("listen and reply", Shown::Token(&[Listen, Reply]), false, Reach::Answering),
        ("the person", Shown::PersonsKey, false, Reach::Answering),
    ] {
        for &wire in WIRES {
            // Each has its own hub, because a subscriber that just left could still return and answer.
            let hub = TestHub::with(|options, folder| {
                options.config.access.trust_local_programs = false;
                if is_allowed {
                    let path = folder.path().join("tokens.toml");
                    let mut tokens = Tokens::load(&path).expect("tokens");
                    let now = Now { monotonic_us: 0, unix_us: 1_790_000_000_000_000 };
                    tokens.allow_program("test", now).expect("allowed");
                }
            })
            .await;
            let reached = reach(&hub, wire, shown.bearer(&hub)).await;
            assert_eq!(reached, expected, "{wire:?}: {who}");
        }
    }
}
