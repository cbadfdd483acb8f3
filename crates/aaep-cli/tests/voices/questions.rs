//! A question interrupts what is being spoken, is spoken and shown, and is answered from the display.

use std::time::SystemTime;

use serde_json::Value;

use crate::desk::Desk;
use crate::patience::wait_until;
use crate::speech_server::SpeechServer;

/// When the server began to speak these words, in seconds.
fn begin_of(speech: &SpeechServer, words: &str) -> Option<f64> {
    let log = speech.log();
    let is_it = |it: &&Value| {
        it["event"] == "speak" && it["text"].as_str().is_some_and(|text| text.contains(words))
    };
    let mut after = log.iter().skip_while(|it| !is_it(it));
    after.find(|it| it["event"] == "begin")?["at"].as_f64()
}

#[expect(
    clippy::print_stdout,
    reason = "the time is told to whoever runs it with --nocapture, and not judged"
)]
fn ask_and_answer(answer: &str, outcome: &str) {
    // The story takes minutes at this pace; the question must not wait for it.
    let speech = SpeechServer::start(50.0, &["en"]);
    let mut desk = Desk::with_speech(&speech);
    desk.begin();
    desk.say(&[&"A very long story that goes on and on. ".repeat(100)]);
    wait_until("the story is being told", || begin_of(&speech, "A very long story"));
    let asked = SystemTime::now();
    let asking = desk.ask("rpl_1", "Delete the database?");
    let began = wait_until("the question is spoken", || begin_of(&speech, "Delete the database?"));
    let asked = asked.duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_secs_f64();
    println!("From the ask to the first spoken word: {:.0} ms.", (began - asked) * 1000.0);
    let stops = speech.log().iter().filter(|it| it["event"] == "stop").count();
    assert!(stops >= 1, "the story was interrupted");

    wait_until("the question is shown", || {
        desk.braille.shown().contains("weaver asks: Delete the").then_some(())
    });
    desk.wait_for_line("Permission required: weaver asks: Delete the database?");
    assert!(!asking.is_finished(), "nobody answered yet");
    desk.answer_in_braille(answer);
    assert_eq!(asking.join().expect("an outcome"), outcome);
    desk.wait_for_line("settled: ");
    let questions = speech.spoken().iter().filter(|it| it.contains("Delete the database?")).count();
    assert_eq!(questions, 1, "it was spoken once");
}

#[test]
fn a_confirmation_interrupts_and_is_accepted_from_the_braille_display() {
    ask_and_answer("Yes", "accept");
}

#[test]
fn the_other_key_rejects() {
    ask_and_answer("No", "reject");
}
