//! The person wants another pace, and the voice itself gets it.

use crate::desk::Desk;
use crate::patience::wait_until;
use crate::speech_server::SpeechServer;

/// Waits until these words are spoken, and gives the rate of the voice.
fn rate_of(speech: &SpeechServer, words: &str) -> i64 {
    let entry = wait_until(&format!("{words:?} is spoken"), || {
        let at = speech.spoken().iter().rposition(|it| it.contains(words))?;
        speech.log().into_iter().filter(|it| it["event"] == "speak").nth(at)
    });
    entry["rate"].as_str().expect("a rate").parse().expect("a number")
}

#[test]
fn faster_and_slower_change_the_voice_and_are_said_back_at_that_pace() {
    let speech = SpeechServer::start(0.0, &["en"]);
    let mut desk = Desk::with_speech(&speech);
    let usual = rate_of(&speech, "Listening.");
    desk.types("faster");
    assert_eq!(rate_of(&speech, "Faster."), usual + 10);
    desk.types("rate -30");
    assert_eq!(rate_of(&speech, "Slower."), -30);
    desk.types("rate 1000");
    wait_until("the fastest", || (rate_of(&speech, "Faster.") == 100).then_some(()));
    desk.types("faster");
    assert_eq!(rate_of(&speech, "It does not go faster."), 100);
    // What agents say comes at that pace too.
    desk.begin();
    assert_eq!(rate_of(&speech, "Cleaning up."), 100);
}
