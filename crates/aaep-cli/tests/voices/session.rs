//! A whole session, as it is spoken.

use serde_json::json;

use crate::desk::Desk;
use crate::patience::wait_until;
use crate::speech_server::SpeechServer;

#[test]
fn a_full_session_is_spoken_in_sentences_whole_and_once_each() {
    let speech = SpeechServer::start(2.0, &["en"]);
    let desk = Desk::with_speech(&speech);
    desk.begin();
    desk.publish("state.changed", &json!({ "from_state": "idle", "to_state": "thinking" }));
    let tool = json!({
        "tool": "search", "tool_call_id": "call_1", "summary_normal": "Searching the logs.",
    });
    desk.publish("tool.invoked", &tool);
    desk.publish(
        "tool.completed",
        &json!({
            "tool": "search", "tool_call_id": "call_1", "status": "success",
            "summary_normal": "Three logs are old.",
        }),
    );
    // Pieces that end in the middle of words and of marks.
    let text = "I found **three** logs. They take 2.5 gigabytes; see `app.log`, e.g. its en";
    desk.say(&[text, "d. Nothing el", "se is old. The rest can stay."]);
    desk.publish("session.completed", &json!({ "summary_normal": "The logs were looked at." }));
    wait_until("the last words are spoken", || {
        speech.spoken().iter().any(|it| it.contains("The rest can stay.")).then_some(())
    });
    let count = |event: &str| speech.log().iter().filter(|it| it["event"] == event).count();
    wait_until("it is spoken to its end", || (count("end") == count("speak")).then_some(()));
    assert_eq!(count("stop"), 0, "nothing was cut");
    let spoken = speech.spoken();
    assert!(spoken.iter().all(|it| it.ends_with('.')), "only whole sentences: {spoken:?}");
    // How many sentences are spoken in one go is a matter of pace. The end does not wait for them, and small steps are not
    // told after it.
    let expected = [
        "Listening. weaver: Started. Cleaning up. Finished. The logs were looked at.",
        "What came before that follows. I found three logs. They take 2.5 gigabytes; see app.log, e.g. its end.",
        "Nothing else is old. The rest can stay.",
    ];
    assert_eq!(spoken.join(" "), expected.join(" "));
}
