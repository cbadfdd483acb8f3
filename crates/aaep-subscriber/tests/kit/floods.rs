//! Producers that are too fast, and programs that are too slow.

use std::time::Duration;

use aaep_subscriber::{Ended, MAX_WAITING_NEWS, News, Wishes};
use aaep_transport::link::MAX_WAITING_MESSAGES;
use tokio::time::{sleep, timeout};

use crate::producer::{confirmation, connected, next, next_ask, progress};

#[tokio::test(start_paused = true)]
async fn a_flood_is_cut_down_without_losing_a_question_and_is_left_in_the_end() {
    let wishes = Wishes::new("reader").max_events_per_second(5);
    let (mut subscriber, mut producer, line) = connected(wishes).await;
    let flooding = tokio::spawn(async move {
        let mut number = 0;
        loop {
            number += 1;
            let mut event =
                if number % 500 == 0 { confirmation(number, 60) } else { progress(number) };
            if number % 10 == 9 {
                event["urgency"] = "critical".into();
            }
            if !line.0.incoming(event.to_string()).await {
                return (line, number);
            }
            if number % 100 == 0 {
                sleep(Duration::from_secs(1)).await;
            }
        }
    });
    let (mut events, mut critical, mut asks, mut left_out) = (0_u64, 0_u64, 0_u64, 0_u64);
    let ended = loop {
        match next(&mut subscriber).await {
            News::Event(event) if event.is_critical() => critical += 1,
            News::Event(_) => events += 1,
            News::Ask(_) => asks += 1,
            News::LeftOut { count } => left_out += count,
            News::Ended(ended) => break ended,
            _ => {}
        }
    };
    assert_eq!(ended, Ended::Flooded);
    let (mut line, number) = flooding.await.expect("flooded");
    assert!(events < 700, "{events} of {number}");
    assert!(left_out > 2000, "{left_out} of {number}");
    // What waits on the line when it is left is heard by nobody.
    assert!(10 * (critical + MAX_WAITING_MESSAGES as u64) >= number, "{critical} of {number}");
    let told = events + critical + asks + left_out;
    assert!(
        told + 2 * MAX_WAITING_MESSAGES as u64 >= number,
        "{told} of {number} are accounted for"
    );
    assert!(asks >= 5, "{asks} of {number}");
    let said = line.hears_the_end().await;
    assert_eq!(said[0]["type"], "subscription.close");
    assert!(!producer.is_called_within(Duration::from_hours(1)).await);
}

#[tokio::test(start_paused = true)]
async fn a_program_that_does_not_read_slows_the_producer_and_loses_nothing() {
    let (mut subscriber, _producer, line) = connected(Wishes::new("reader")).await;
    let pushing = tokio::spawn(async move {
        let mut said = 0_u64;
        while said < 10_000 {
            let event =
                if said.is_multiple_of(10) { confirmation(said, 86_400) } else { progress(said) };
            match timeout(Duration::from_mins(1), line.0.incoming(event.to_string())).await {
                Ok(true) => said += 1,
                Ok(false) => panic!("the subscriber is gone"),
                Err(_) => break,
            }
        }
        (line, said)
    });
    let (line, said) = pushing.await.expect("pushed");
    let room = (MAX_WAITING_NEWS + MAX_WAITING_MESSAGES + 8) as u64;
    assert!(said < room, "{said} fit where {room} may");
    let mut heard = 0;
    while heard < said {
        match next(&mut subscriber).await {
            News::Event(_) | News::Ask(_) => heard += 1,
            News::Violation(_) => {}
            other => panic!("{other:?}"),
        }
    }
    drop(line);
}

#[tokio::test(start_paused = true)]
async fn an_answer_reaches_the_producer_while_news_wait() {
    let (mut subscriber, _producer, mut line) = connected(Wishes::new("reader")).await;
    line.says(&confirmation(1, 60)).await;
    let ask = next_ask(&mut subscriber).await;
    for number in 0..100 {
        line.says(&progress(10 + number)).await;
    }
    sleep(Duration::from_secs(1)).await;
    ask.reject().await.expect("said");
    assert_eq!(line.hears().await["decision"], "reject");
}

#[tokio::test(start_paused = true)]
async fn a_producer_that_takes_nothing_any_more_is_left_for_a_new_line() {
    let (mut subscriber, mut producer, line) = connected(Wishes::new("reader")).await;
    line.says(&confirmation(1, 86_400)).await;
    let ask = next_ask(&mut subscriber).await;
    // Nobody takes what is said from here on.
    let mut said = 0;
    while said < 1000 && ask.presented().await.is_ok() {
        said += 1;
    }
    assert!(said <= MAX_WAITING_MESSAGES + 1, "{said}");
    while !matches!(next(&mut subscriber).await, News::Reconnecting { .. }) {}
    let (mut line, _) = producer.grant("two").await;
    ask.reject().await.expect("said on the new line");
    assert_eq!(line.hears().await["decision"], "reject");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_does_not_read_for_a_day_finds_the_line_back_and_no_heap_of_news() {
    let (mut subscriber, mut producer, line) = connected(Wishes::new("reader")).await;
    line.says(&confirmation(1, 86_400)).await;
    line.says(&confirmation(2, 3600)).await;
    let ask = next_ask(&mut subscriber).await;
    drop(line);
    let began = tokio::time::Instant::now();
    while began.elapsed() < Duration::from_hours(20) {
        // It is down for most of a day, and nobody reads.
        drop(producer.connection().await);
    }
    let (mut line, _) = producer.grant("two").await;
    assert!(!producer.is_called_within(Duration::from_hours(1)).await, "the line holds");
    line.says(&progress(3)).await;
    ask.reject().await.expect("said");
    assert_eq!(line.hears().await["decision"], "reject");
    let mut news = 0;
    while !matches!(next(&mut subscriber).await, News::Event(_)) {
        news += 1;
    }
    assert!(news < MAX_WAITING_NEWS + 10, "{news}");
}
