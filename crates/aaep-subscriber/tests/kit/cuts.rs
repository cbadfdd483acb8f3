//! A subscriber that is cut off two hundred times at random moments, and hears everything once.

use std::collections::BTreeMap;
use std::time::Duration;

use aaep_subscriber::{News, Wishes};
use aaep_transport::link::LinkEnd;
use serde_json::{Value as Json, json};

use crate::producer::{
    Connection, Producer, accepted, confirmation, event, next, producer, progress,
};

/// The same numbers for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// How a producer treats its subscriber.
#[derive(Clone, Copy)]
struct Manner {
    /// Whether events have numbers and come in disorder.
    is_disordered: bool,
}

const EVENTS: u64 = 2000;
const CUTS: usize = 200;

/// The event at a place of the session: questions among the others.
fn told(at: u64, manner: Manner) -> Json {
    let mut told = match at {
        0 => event(0, "session.started", &json!({ "summary_normal": "Begun." })),
        _ if at % 50 == 7 => confirmation(at, 86_400),
        _ => progress(at),
    };
    if manner.is_disordered {
        told["sequence_number"] = json!(at);
    }
    told
}

/// Says everything from where the subscriber was, with repetitions, and breaks the line at some moment.
async fn play(connection: &mut Connection, from: u64, manner: Manner, dice: &mut Dice, cut: bool) {
    let until = if cut { (from + dice.roll(25)).min(EVENTS) } else { EVENTS };
    let mut at = from.saturating_sub(dice.roll(4));
    while at < until {
        let group = if manner.is_disordered && dice.roll(3) == 0 { 2 } else { 1 };
        let mut places: Vec<u64> = (at..(at + group).min(until)).collect();
        if dice.roll(8) == 0 {
            places.push(at);
        }
        if manner.is_disordered && at > 0 {
            places.reverse();
        }
        for place in places {
            connection.says(&told(place, manner)).await;
        }
        if dice.roll(10) == 0 {
            tokio::time::sleep(Duration::from_millis(dice.roll(400))).await;
        }
        at += group;
    }
}

/// A producer that remembers everything and cuts its subscriber off, again and again.
async fn cut_off_again_and_again(mut producer: Producer, manner: Manner, mut dice: Dice) {
    let mut last_from = 0;
    for number in 0..=CUTS {
        let is_last = number == CUTS;
        let mut connection = producer.connection().await;
        if !is_last && number > 0 && dice.roll(6) == 0 {
            // Nobody even reads the request.
            continue;
        }
        let request = connection.hears().await;
        let wish = &request["extensions"]["agentvoice"]["resume"];
        let from = match wish["last_event_id"].as_str() {
            Some(id) => id.trim_start_matches("evt_n").parse::<u64>().expect("a place") + 1,
            None => 0,
        };
        assert!(from >= last_from, "a subscriber never goes back");
        last_from = from;
        if !is_last && number > 0 && dice.roll(6) == 0 {
            continue;
        }
        connection.says(&accepted(&format!("cut{number}"), &request)).await;
        play(&mut connection, from, manner, &mut dice, !is_last).await;
        if is_last {
            let ended = event(EVENTS, "session.completed", &json!({ "summary_normal": "Done." }));
            connection.says(&ended).await;
            connection.hears_the_end().await;
        } else if dice.roll(2) == 0 {
            connection.0.end(LinkEnd::Cut("the wire was cut".to_owned())).await;
        }
    }
}

async fn hears_everything_once(manner: Manner, seed: u64) {
    let (wire, producer) = producer();
    let playing = tokio::spawn(cut_off_again_and_again(producer, manner, Dice(seed)));
    let connecting = aaep_subscriber::connect_with(wire, Wishes::new("reader"));
    let mut subscriber = connecting.await.expect("a subscription");
    let mut heard = Vec::new();
    let mut reconnected = 0;
    loop {
        let event = match next(&mut subscriber).await {
            News::Event(event) => *event,
            News::Ask(ask) => ask.event().clone(),
            News::Reconnected => {
                reconnected += 1;
                continue;
            }
            News::Gap { .. } | News::Ended(_) | News::AskEnded(_) => panic!("nothing was lost"),
            _ => continue,
        };
        let id = event.envelope.event_id.as_str();
        heard.push(id.trim_start_matches("evt_n").parse::<u64>().expect("a place"));
        if heard.last() == Some(&EVENTS) {
            break;
        }
    }
    assert!(reconnected > CUTS / 2, "{reconnected} lines");
    let mut times: BTreeMap<u64, usize> = BTreeMap::new();
    for place in &heard {
        *times.entry(*place).or_default() += 1;
    }
    assert_eq!(times.len() as u64, EVENTS + 1, "seed {seed}: every event is heard");
    assert!(times.values().all(|count| *count == 1), "seed {seed}: each once");
    assert!(heard.is_sorted(), "seed {seed}: in order");
    drop(subscriber);
    playing.await.expect("the producer played to its end");
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_cut_off_two_hundred_times_hears_every_event_once() {
    for seed in [0x9e37_79b9, 0x1234_5678_9abc, 77] {
        hears_everything_once(Manner { is_disordered: false }, seed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn disorder_and_cuts_together_still_give_every_event_once_and_in_order() {
    for seed in [0x51ed_270b, 0xfeed_face_cafe, 99] {
        hears_everything_once(Manner { is_disordered: true }, seed).await;
    }
}
