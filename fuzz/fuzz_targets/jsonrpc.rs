//! Any lines to both ends of JSON-RPC: never a panic, whatever is said back can be read, and what an end makes of
//! a message is heard as that message at the other end.
#![no_main]

use aaep_transport::jsonrpc::{ProducerLine, RpcLine, SubscriberEnd, ProducerEnd, SubscriberLine};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (mut producer, mut subscriber) = (ProducerEnd::new(), SubscriberEnd::new());
    subscriber.say("{\"type\":\"subscription.request\"}");
    for line in text.lines() {
        match producer.hear(line) {
            SubscriberLine::Say(answer) => drop(RpcLine::read(&answer).expect("JSON-RPC")),
            SubscriberLine::Subscription(message) => {
                let (answer, _) = producer.say(&message);
                drop(RpcLine::read(&answer).expect("JSON-RPC"));
            }
            SubscriberLine::Tell { id, message } => {
                let answer = producer.answer(id.as_ref(), &message);
                assert!(answer.is_none_or(|answer| RpcLine::read(&answer).is_ok()));
            }
            SubscriberLine::Nothing => {}
        }
        match subscriber.hear(line) {
            ProducerLine::Say(answer) => drop(RpcLine::read(&answer).expect("JSON-RPC")),
            ProducerLine::Message(message) => {
                let said = subscriber.say(&message);
                assert!(matches!(RpcLine::read(&said), Ok(RpcLine::Call { params: Some(_), .. })));
            }
            ProducerLine::Nothing | ProducerLine::Wrong(_) | ProducerLine::End(_) => {}
        }
    }
    for line in producer.gone() {
        drop(RpcLine::read(&line).expect("JSON-RPC"));
    }
});
