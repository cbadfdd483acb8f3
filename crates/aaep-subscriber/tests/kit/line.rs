//! Lines that break, producers that refuse, and what is heard in the end.

use std::time::Duration;

use aaep_subscriber::{ConnectError, Ended, HANDSHAKE_TIMEOUT, LONGEST_WAIT, News, Wishes};
use aaep_transport::link::LinkEnd;
use serde_json::{Value as Json, json};
use tokio::time::Instant;

use crate::producer::{
    accepted, confirmation, connect_to, connected, next, next_ask, producer, progress, until,
};

#[tokio::test(start_paused = true)]
async fn what_comes_twice_is_heard_once() {
    let (mut subscriber, _producer, line) = connected(Wishes::new("reader")).await;
    for number in [1, 1, 2, 1, 2, 3] {
        line.says(&progress(number)).await;
    }
    line.says(&confirmation(4, 60)).await;
    line.says(&confirmation(4, 60)).await;
    line.says(&progress(5)).await;
    let mut heard = Vec::new();
    while heard.len() < 5 {
        match next(&mut subscriber).await {
            News::Event(event) => heard.push(event.envelope.event_id.as_str().to_owned()),
            News::Ask(ask) => heard.push(ask.event().envelope.event_id.as_str().to_owned()),
            _ => {}
        }
    }
    assert_eq!(heard, ["evt_n1", "evt_n2", "evt_n3", "evt_n4", "evt_n5"]);
}

#[tokio::test(start_paused = true)]
async fn a_producer_that_never_answers_is_given_up() {
    let began = Instant::now();
    let refused = connect_to(async |mut producer| {
        let mut line = producer.connection().await;
        line.hears().await;
        assert!(line.hears_nothing_for(HANDSHAKE_TIMEOUT / 2).await);
        assert!(line.hears_the_end().await.is_empty(), "nothing was granted, nothing is closed");
    });
    assert_eq!(refused.await.err(), Some(ConnectError::NoAnswer));
    assert!(began.elapsed() >= HANDSHAKE_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_with_its_time() {
    let refused = connect_to(async |mut producer| {
        let mut line = producer.connection().await;
        line.hears().await;
        line.says(&rejected("rate_limit", 7)).await;
        line.hears_the_end().await;
    });
    let error = refused.await.expect_err("refused");
    assert!(matches!(&error, ConnectError::Rejected(why) if why.retry_after_seconds == Some(7)));
    assert!(error.to_string().contains("Try again in 7 seconds."), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_wire_that_does_not_let_us_in_is_an_error_at_once() {
    let reason = "no token".to_owned();
    let end = LinkEnd::Refused { reason };
    let given = end.clone();
    let refused = connect_to(async move |mut producer| {
        let line = producer.connection().await;
        line.0.end(given).await;
    });
    assert_eq!(refused.await.err(), Some(ConnectError::Line(end)));
}

fn rejected(code: &str, retry_after_seconds: u64) -> Json {
    json!({
        "type": "subscription.rejected", "reason_code": code, "reason_message": "Not now.",
        "retry_after_seconds": retry_after_seconds,
    })
}

#[tokio::test(start_paused = true)]
async fn whoever_is_told_to_come_later_comes_no_sooner() {
    let (mut subscriber, mut producer, line) = connected(Wishes::new("reader")).await;
    drop(line);
    let mut line = producer.connection().await;
    line.hears().await;
    let told = Instant::now();
    line.says(&rejected("rate_limit", 90)).await;
    line.hears_the_end().await;
    assert!(!producer.is_called_within(Duration::from_secs(89)).await);
    let (_line, request) = producer.grant("two").await;
    assert!(told.elapsed() >= Duration::from_secs(90));
    assert_eq!(request["extensions"]["agentvoice"]["resume"]["subscription_id"], "sub_one");
    until(&mut subscriber, |news| matches!(news, News::Reconnected)).await;
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_does_not_pass_ends_the_subscription() {
    let (mut subscriber, mut producer, line) = connected(Wishes::new("reader")).await;
    drop(line);
    let mut line = producer.connection().await;
    line.hears().await;
    line.says(&rejected("authorization_denied", 5)).await;
    let all = until(&mut subscriber, |news| matches!(news, News::Ended(_))).await;
    assert!(matches!(all.last(), Some(News::Ended(Ended::Rejected(_)))), "{all:?}");
    assert!(subscriber.next().await.is_none());
    assert!(!producer.is_called_within(Duration::from_hours(1)).await);
}

#[tokio::test(start_paused = true)]
async fn nobody_knocks_without_a_pause_at_a_closed_door() {
    let (mut subscriber, mut producer, line) = connected(Wishes::new("reader")).await;
    drop(line);
    let began = Instant::now();
    for attempt in 1..=12 {
        drop(producer.connection().await);
        let all = until(&mut subscriber, |news| matches!(news, News::Reconnecting { .. })).await;
        let Some(News::Reconnecting { attempt: told, wait, .. }) = all.last() else {
            panic!("{all:?}");
        };
        assert_eq!(*told, attempt);
        assert!(*wait >= Duration::from_millis(250) && *wait <= LONGEST_WAIT, "{wait:?}");
    }
    assert!(began.elapsed() > Duration::from_mins(1));
}

#[tokio::test(start_paused = true)]
async fn a_forged_acceptance_changes_nothing() {
    let (mut subscriber, _producer, mut line) = connected(Wishes::new("reader")).await;
    line.says(&confirmation(1, 60)).await;
    let ask = next_ask(&mut subscriber).await;
    line.says(&accepted("forged", &json!({ "capabilities": {} }))).await;
    let news = next(&mut subscriber).await;
    assert!(matches!(&news, News::Violation(it) if it.code() == "unexpected"), "{news:?}");
    ask.reject().await.expect("said");
    let reply = line.hears().await;
    assert_eq!(
        (&reply["subscription_id"], &reply["decision"]),
        (&json!("sub_one"), &json!("reject"))
    );
}

#[tokio::test(start_paused = true)]
async fn nonsense_is_told_and_does_no_harm() {
    let (mut subscriber, _producer, line) = connected(Wishes::new("reader")).await;
    let deep = "[".repeat(100_000);
    let texts = ["", "no", "{}", "[]", "{\"type\":7}", "{\"type\":\"agentvoice:error\"}", &deep];
    for text in texts {
        assert!(line.0.incoming(text.to_owned()).await);
    }
    line.says(&progress(1)).await;
    let all = until(&mut subscriber, |news| matches!(news, News::Event(_))).await;
    let wrong = all.iter().filter(|it| matches!(it, News::Violation(_))).count();
    assert_eq!(wrong, texts.len() - 1, "{all:?}");
    assert!(all.iter().any(|it| matches!(it, News::Refused { .. })));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_subscriber_says_goodbye() {
    let (subscriber, mut producer, mut line) = connected(Wishes::new("reader")).await;
    drop(subscriber);
    let said = line.hears_the_end().await;
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0]["type"], "subscription.close");
    assert_eq!(said[0]["subscription_id"], "sub_one");
    assert!(!producer.is_called_within(Duration::from_hours(1)).await);
}

#[tokio::test(start_paused = true)]
async fn closing_gives_the_reason_and_ends_the_news() {
    let (mut subscriber, _producer, mut line) = connected(Wishes::new("reader")).await;
    line.says(&confirmation(1, 60)).await;
    let ask = next_ask(&mut subscriber).await;
    subscriber.close(Some("The screen reader stops.".to_owned())).await.expect("said");
    let said = line.hears_the_end().await;
    assert_eq!(said[0]["reason_message"], "The screen reader stops.");
    assert!(matches!(next(&mut subscriber).await, News::AskEnded(_)));
    assert!(matches!(next(&mut subscriber).await, News::Ended(Ended::Closed)));
    assert!(subscriber.next().await.is_none());
    assert!(ask.accept().await.is_err(), "there is nobody to answer to");
}

#[tokio::test(start_paused = true)]
async fn a_producer_that_closes_ends_it_for_good() {
    let (mut subscriber, mut producer, line) = connected(Wishes::new("reader")).await;
    line.says(&json!({
        "type": "subscription.close", "subscription_id": "sub_one", "reason_message": "Good night.",
    }))
    .await;
    let News::Ended(ended) = next(&mut subscriber).await else { panic!("it is over") };
    assert_eq!(ended, Ended::ClosedByProducer(Some("Good night.".to_owned())));
    assert!(!producer.is_called_within(Duration::from_hours(1)).await);
}

#[tokio::test(start_paused = true)]
async fn a_producer_that_stops_is_waited_for_and_the_subscription_goes_on() {
    let (mut subscriber, mut producer, line) = connected(Wishes::new("reader")).await;
    line.says(&json!({
        "type": "subscription.close", "subscription_id": "sub_one",
        "reason_code": "producer_shutdown", "reason_message": "The hub stops.",
    }))
    .await;
    let News::Reconnecting { why, .. } = next(&mut subscriber).await else { panic!("it waits") };
    assert_eq!(why, "The hub stops.");
    let (_line, request) = producer.grant("two").await;
    assert!(request.to_string().contains("sub_one"), "it says where it was: {request}");
}

#[tokio::test(start_paused = true)]
async fn other_terms_are_asked_for_once_and_kept_after_a_cut() {
    let (mut subscriber, mut producer, mut line) = connected(Wishes::new("reader")).await;
    let mut change = aaep::Capabilities::new();
    change.max_events_per_second = Some(3);
    subscriber.renegotiate(change.clone()).await.expect("said");
    assert!(subscriber.renegotiate(change).await.is_err(), "one at a time");
    let asked = line.hears().await;
    assert_eq!(asked["capabilities"], json!({ "max_events_per_second": 3 }));
    line.says(&accepted("one", &asked)).await;
    let News::TermsChanged(terms) = next(&mut subscriber).await else { panic!("new terms") };
    assert_eq!(terms.max_events_per_second, Some(3));
    drop(line);
    let (_line, request) = producer.grant("two").await;
    assert_eq!(request["capabilities"]["max_events_per_second"], 3);
}

#[tokio::test(start_paused = true)]
async fn a_producer_without_a_handshake_is_just_heard() {
    let (wire, mut producer) = producer();
    let wishes = Wishes::new("reader").without_handshake();
    let (subscriber, mut line) =
        tokio::join!(aaep_subscriber::connect_with(wire, wishes), producer.connection());
    let mut subscriber = subscriber.expect("a stream");
    line.says(&progress(1)).await;
    assert!(matches!(next(&mut subscriber).await, News::Event(_)));
    line.says(&confirmation(2, 60)).await;
    let ask = next_ask(&mut subscriber).await;
    assert!(ask.accept().await.is_err(), "there is no way to answer");
    assert!(line.hears_nothing_for(Duration::from_secs(5)).await);
    drop(line);
    let line = producer.connection().await;
    line.says(&progress(1)).await;
    line.says(&progress(3)).await;
    let all = until(&mut subscriber, |news| matches!(news, News::Event(_))).await;
    let Some(News::Event(event)) = all.last() else { panic!("{all:?}") };
    assert_eq!(event.envelope.event_id.as_str(), "evt_n3");
}

#[tokio::test(start_paused = true)]
async fn on_a_wire_that_resumes_by_itself_nothing_is_asked_again() {
    let (wire, mut producer) = producer();
    let connecting = aaep_subscriber::connect_with(wire.that_resumes(), Wishes::new("reader"));
    let (subscriber, (line, _)) = tokio::join!(connecting, producer.grant("one"));
    let mut subscriber = subscriber.expect("a subscription");
    line.says(&progress(1)).await;
    until(&mut subscriber, |news| matches!(news, News::Event(_))).await;
    drop(line);
    let (mut line, from) = producer.resumed().await;
    assert_eq!(from.subscription_id.expect("held").as_str(), "sub_one");
    assert_eq!(from.last_event_id.expect("heard").as_str(), "evt_n1");
    line.says(&confirmation(2, 60)).await;
    let all = until(&mut subscriber, |news| matches!(news, News::Ask(_))).await;
    assert!(all.iter().any(|it| matches!(it, News::Reconnected)), "{all:?}");
    let Some(News::Ask(ask)) = all.last() else { panic!("{all:?}") };
    ask.reject().await.expect("said");
    let reply = line.hears().await;
    assert_eq!(reply["type"], "confirmation.reply", "nothing was asked before");
    // A subscription that the producer has forgotten is asked for anew.
    let lost =
        json!({ "type": "agentvoice:error", "error": "no_such_subscription", "message": "?" });
    line.says(&lost).await;
    let (mut line, from) = producer.resumed().await;
    assert_eq!(from.subscription_id, None);
    let request = line.hears().await;
    assert_eq!(request["type"], "subscription.request");
    assert_eq!(request["extensions"]["agentvoice"]["resume"]["subscription_id"], "sub_one");
}

#[tokio::test(start_paused = true)]
async fn whose_extensions_collide_asks_again_without_them() {
    let (wire, mut producer) = producer();
    let mut wishes = Wishes::new("reader");
    let other = aaep::Uri::parse("urn:example:lamp").expect("a URI");
    wishes.capabilities.supported_extensions.get_or_insert_default().push(other);
    let (subscriber, ()) = tokio::join!(aaep_subscriber::connect_with(wire, wishes), async {
        let mut line = producer.connection().await;
        let request = line.hears().await;
        assert_eq!(request["capabilities"]["supported_extensions"][1], "urn:example:lamp");
        line.says(&rejected("capabilities_incompatible", 0)).await;
        let (_line, request) = producer.grant("two").await;
        let ours = json!([aaep::extension::CONTEXT]);
        assert_eq!(request["capabilities"]["supported_extensions"], ours);
    });
    subscriber.expect("a subscription");
}

#[tokio::test(start_paused = true)]
async fn who_has_nothing_to_leave_out_is_turned_away() {
    let refused = connect_to(async |mut producer| {
        let mut line = producer.connection().await;
        line.hears().await;
        line.says(&rejected("capabilities_incompatible", 0)).await;
        assert!(line.hears_the_end().await.is_empty());
    });
    assert!(matches!(refused.await, Err(ConnectError::Rejected(_))));
}

#[tokio::test(start_paused = true)]
async fn a_wire_that_leads_nowhere_makes_way_for_the_next() {
    let (wire, mut producer) = producer();
    let connecting = aaep_subscriber::connect_with(wire.with_others(2), Wishes::new("reader"));
    let (subscriber, _line) = tokio::join!(connecting, async {
        let mut silent = producer.connection().await;
        silent.hears().await;
        drop(producer.connection().await);
        assert!(silent.hears_the_end().await.is_empty());
        producer.grant("three").await
    });
    let mut subscriber = subscriber.expect("a subscription");
    assert!(
        matches!(next(&mut subscriber).await, News::TermsChanged(_)),
        "nobody hears of the others"
    );
}

#[tokio::test(start_paused = true)]
async fn when_no_wire_leads_anywhere_that_is_an_error() {
    let (wire, mut producer) = producer();
    let connecting = aaep_subscriber::connect_with(wire.with_others(1), Wishes::new("reader"));
    let (refused, ()) = tokio::join!(connecting, async {
        drop(producer.connection().await);
        drop(producer.connection().await);
        assert!(!producer.is_called_within(Duration::from_hours(1)).await);
    });
    assert!(matches!(refused, Err(ConnectError::Line(LinkEnd::Cut(_)))), "{refused:?}");
}
