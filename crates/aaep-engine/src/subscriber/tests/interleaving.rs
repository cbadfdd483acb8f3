//! Any messages in any order: no panic, no unbounded growth, and never two replies for one token.

use std::collections::BTreeMap;

use aaep::reply::Response;
use proptest::prelude::*;

use super::bounds::is_within_bounds;
use super::*;
use crate::subscriber::ClarificationDetails;

const TOKENS: [&str; 3] = ["q", "r", "s"];
const SESSIONS: [&str; 2] = ["1", "2"];

/// Something that happens to a subscriber.
#[derive(Debug, Clone)]
enum SubscriberStep {
    /// An ask: token, session, which event asks.
    Ask(usize, usize, u8),
    Clarification(usize, usize),
    Notice(usize, usize, bool),
    GoesOn(usize),
    Ends(usize),
    Confirm(usize),
    Clarify(usize),
    Close,
    Subscribe,
    Interrupted,
    Wait(u64),
}

fn step() -> impl Strategy<Value = SubscriberStep> {
    let (token, session) = (0..TOKENS.len(), 0..SESSIONS.len());
    prop_oneof![
        6 => (token.clone(), session.clone(), 0..2_u8).prop_map(|(t, s, e)| SubscriberStep::Ask(t, s, e)),
        2 => (token.clone(), session.clone()).prop_map(|(t, s)| SubscriberStep::Clarification(t, s)),
        3 => (token.clone(), session.clone(), any::<bool>())
            .prop_map(|(t, s, yes)| SubscriberStep::Notice(t, s, yes)),
        1 => session.clone().prop_map(SubscriberStep::GoesOn),
        1 => session.prop_map(SubscriberStep::Ends),
        6 => token.clone().prop_map(SubscriberStep::Confirm),
        3 => token.prop_map(SubscriberStep::Clarify),
        1 => Just(SubscriberStep::Close),
        2 => Just(SubscriberStep::Subscribe),
        1 => Just(SubscriberStep::Interrupted),
        2 => (0..90_000_u64).prop_map(SubscriberStep::Wait),
    ]
}

/// Plays one step and returns the tokens of the replies that it makes.
fn play(subscriber: &mut SubscriberRules, ms: &mut u64, step: &SubscriberStep) -> Vec<ReplyToken> {
    let message = match step {
        SubscriberStep::Ask(token, session, event) => {
            let ask = in_session(confirmation(TOKENS[*token], 60), SESSIONS[*session]);
            with(ask, "event_id", format!("evt_ask{token}x{session}x{event}"))
        }
        SubscriberStep::Clarification(token, session) => {
            in_session(clarification(TOKENS[*token], json!({})), SESSIONS[*session])
        }
        SubscriberStep::Notice(token, session, yes) => {
            let outcome = if *yes { "accept" } else { "reject" };
            in_session(notice(TOKENS[*token], outcome, "reply"), SESSIONS[*session])
        }
        SubscriberStep::GoesOn(session) => {
            in_session(changed("awaiting_input", "thinking"), SESSIONS[*session])
        }
        SubscriberStep::Ends(session) => in_session(completed(), SESSIONS[*session]),
        SubscriberStep::Confirm(name) => {
            let reply = subscriber.accept(*ms, TOKENS[*name]);
            return reply.map(|reply| reply.reply_token).into_iter().collect();
        }
        SubscriberStep::Clarify(name) => {
            let (words, details) =
                (Response::Text("Monday".to_owned()), ClarificationDetails::default());
            let reply = subscriber.clarify(at(*ms), &token(TOKENS[*name]), words, details);
            return reply.map(|reply| reply.reply_token).into_iter().collect();
        }
        SubscriberStep::Close => {
            json!({ "type": "subscription.close", "subscription_id": "sub_1" })
        }
        SubscriberStep::Subscribe => {
            subscriber.request(able()).expect("a request");
            accepted(&able())
        }
        SubscriberStep::Interrupted => {
            subscriber.interrupted();
            return Vec::new();
        }
        SubscriberStep::Wait(for_ms) => {
            *ms += for_ms;
            subscriber.tick(at(*ms));
            assert!(subscriber.deadline().is_none_or(|deadline| deadline > at(*ms).monotonic_us));
            return Vec::new();
        }
    };
    subscriber.get(*ms, &message);
    Vec::new()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_interleaving_yields_two_replies_for_one_token(steps in prop::collection::vec(step(), 1..60)) {
        let mut subscriber = subscribed(&able());
        let (mut ms, mut replies) = (1, BTreeMap::new());
        for step in &steps {
            for token in play(&mut subscriber, &mut ms, step) {
                *replies.entry(token).or_insert(0) += 1;
            }
        }
        prop_assert!(replies.values().all(|count| *count == 1), "{replies:?}");
        prop_assert!(is_within_bounds(&subscriber));
    }

    #[test]
    fn a_reply_is_made_only_for_an_open_question(steps in prop::collection::vec(step(), 1..60)) {
        let mut subscriber = subscribed(&able());
        let mut ms = 1;
        for step in &steps {
            let open: Vec<String> = subscriber.open_tokens().iter().map(|it| (*it).to_owned()).collect();
            let ended: Vec<SessionId> = subscriber
                .sessions()
                .filter(|session| session.ending.is_some())
                .map(|session| session.session_id.clone())
                .collect();
            prop_assert!(subscriber.open_asks().all(|ask| !ended.contains(&ask.session_id)));
            for token in play(&mut subscriber, &mut ms, step) {
                prop_assert!(open.iter().any(|it| it == token.as_str()));
            }
        }
    }

    #[test]
    fn any_bytes_are_survived(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..30)) {
        let mut subscriber = subscribed(&able());
        for bytes in messages {
            let got = subscriber.receive(at(1), &bytes);
            prop_assert!(got.heard.is_some() || !got.violations.is_empty());
        }
        prop_assert!(is_within_bounds(&subscriber));
    }

    #[test]
    fn a_message_with_any_bytes_changed_is_survived(
        which in 0..8_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let all = [
            started(), completed(), changed("idle", "thinking"), progress(3), chunk(0, "One.", true),
            confirmation("q", 60), clarification("c", json!({})), notice("q", "accept", "reply"),
        ];
        let mut bytes = all[which].to_string().into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let mut subscriber = listening();
        subscriber.receive(at(1), &bytes);
        subscriber.receive(at(2), &bytes);
        prop_assert!(is_within_bounds(&subscriber));
    }

    #[test]
    fn the_same_messages_give_the_same_outcome(steps in prop::collection::vec(step(), 1..40)) {
        let run = || {
            let (mut subscriber, mut ms) = (subscribed(&able()), 1);
            let replies: Vec<_> =
                steps.iter().flat_map(|step| play(&mut subscriber, &mut ms, step)).collect();
            (replies, format!("{subscriber:?}"))
        };
        prop_assert_eq!(run(), run());
    }
}
