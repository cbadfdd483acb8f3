//! Any lines to both ends of JSON-RPC: never a panic, whatever is said back can be read, and what an end makes of
//! a message is heard as that message at the other end.
#![no_main]

use aaep_transport::jsonrpc::{Heard, Line, SubscriberEnd, ProducerEnd, Wish};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (mut producer, mut subscriber) = (ProducerEnd::new(), SubscriberEnd::new());
    subscriber.say("{\"type\":\"subscription.request\"}");
    for line in text.lines() {
        match producer.hear(line) {
            Wish::Say(answer) => drop(Line::read(&answer).expect("JSON-RPC")),
            Wish::Subscription(message) => {
                let (answer, _) = producer.say(&message);
                drop(Line::read(&answer).expect("JSON-RPC"));
            }
            Wish::Tell { id, message } => {
                let answer = producer.answer(id.as_ref(), &message);
                assert!(answer.is_none_or(|answer| Line::read(&answer).is_ok()));
            }
            Wish::Nothing => {}
        }
        match subscriber.hear(line) {
            Heard::Say(answer) => drop(Line::read(&answer).expect("JSON-RPC")),
            Heard::Message(message) => {
                let said = subscriber.say(&message);
                assert!(matches!(Line::read(&said), Ok(Line::Call { params: Some(_), .. })));
            }
            Heard::Nothing | Heard::Wrong(_) | Heard::End(_) => {}
        }
    }
    for line in producer.gone() {
        drop(Line::read(&line).expect("JSON-RPC"));
    }
});
