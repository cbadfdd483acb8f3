//! Each part of an utterance in its own language: ours in our own, the agent's in the agent's, and where nobody says
//! which it is, the script decides.

#[path = "common/support.rs"]
mod support;

use aaep::Event;
use serde_json::json;
use support::{Room, event};

/// The parts of what is being said, each with its language.
fn parts(room: &Room) -> Vec<(String, String)> {
    let utterance = room.speaking.as_ref().expect("something is being said");
    let tag = |tag: &Option<aaep::LanguageTag>| {
        tag.as_ref().map_or_else(String::new, |it| it.as_str().to_owned())
    };
    let parts = utterance.parts.iter().map(|it| (it.words.clone(), tag(&it.language)));
    let parts: Vec<(String, String)> = parts.collect();
    let dense = |text: &str| text.split_whitespace().collect::<String>();
    let joined: String = parts.iter().map(|(words, _)| dense(words)).collect();
    assert_eq!(joined, dense(&utterance.words), "the parts are the words");
    parts
}

fn pair(words: &str, language: &str) -> (String, String) {
    (words.to_owned(), language.to_owned())
}

fn in_german(kind: &str, mut fields: serde_json::Value) -> Event {
    fields["localization_hints"] = json!({ "primary_language": "de" });
    event(kind, &fields)
}

#[test]
fn our_words_are_in_our_language_and_the_agents_in_the_agents() {
    let mut room = Room::quiet();
    room.hear(&in_german("session.completed", json!({ "summary_normal": "Alles ist gelöscht." })));
    assert_eq!(parts(&room), [pair("Weaver: Finished.", "en"), pair("Alles ist gelöscht.", "de")]);
}

#[test]
fn what_cleaning_says_is_ours_too() {
    let mut room = Room::quiet();
    let chunk = "❌ Rechnung\n```sh\nls\nls\n```\n";
    room.hear(&in_german(
        "output.streaming",
        json!({ "chunk": chunk, "position": 0, "complete": true }),
    ));
    assert_eq!(
        parts(&room),
        [
            pair("Weaver: cross mark:", "en"),
            pair("Rechnung.", "de"),
            pair("shell code, 2 lines.", "en"),
        ]
    );
}

#[test]
fn an_ask_in_another_language_is_put_in_ours_and_quotes_the_agent_in_its_own() {
    let mut room = Room::by_hand();
    let asked = in_german(
        "awaiting.confirmation",
        json!({
            "action": "Alle Fotos löschen?", "consequence": "Sie sind für immer weg.",
            "reply_token": "rpl_1", "timeout_seconds": 300, "default_decision": "reject",
            "risk_level": "high", "irreversible": true,
        }),
    );
    room.ask(1, &asked);
    let parts = parts(&room);
    assert_eq!(parts[0], pair("Weaver asks:", "en"));
    assert_eq!(parts[1], pair("Alle Fotos löschen? Sie sind für immer weg.", "de"));
    assert_eq!(parts.len(), 3, "{parts:?}");
    assert!(parts[2].0.starts_with("High risk. It cannot be undone.") && parts[2].1 == "en");
}

#[test]
fn the_script_decides_where_nothing_else_does() {
    let mut room = Room::quiet();
    let chunk = "Готово, 5 файлов. See README.";
    room.hear(&event(
        "output.streaming",
        &json!({ "chunk": chunk, "position": 0, "complete": true }),
    ));
    let parts = parts(&room);
    assert_eq!(parts[0], pair("Weaver:", "en"));
    assert_eq!(parts[1], pair("Готово, 5 файлов.", "ru"));
    assert_eq!(parts[2], pair("See README.", ""));
}

#[test]
fn no_agent_can_pass_its_words_for_ours() {
    let mut room = Room::quiet();
    let chunk = "\u{e000}Akzeptiert.\u{e001} Ja.";
    room.hear(&in_german(
        "output.streaming",
        json!({ "chunk": chunk, "position": 0, "complete": true }),
    ));
    assert_eq!(parts(&room), [pair("Weaver:", "en"), pair("Akzeptiert. Ja.", "de")]);
}
