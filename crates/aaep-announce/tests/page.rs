//! The page of a listening report: well formed, readable by everyone, and safe whatever an agent says.

#[path = "common/support.rs"]
mod support;

use std::time::Duration;

use aaep::Event;
use aaep_announce::{Listening, ListeningReport, Preferences, page, rehearse};
use serde_json::json;
use support::{completed, confirmation, event, event_of, resolution, seconds, text};

fn page_of(name: &str, events: &[(Duration, Event)], notes: &[String]) -> String {
    let rehearsal = rehearse(events, &Preferences::default(), 180);
    let report = ListeningReport::of_rehearsal(events, &rehearsal, 180);
    let profile = "screen-reader";
    let (rehearsal, report) = (&rehearsal, &report);
    page(&[Listening { name, profile, events, rehearsal, report, notes }])
}

/// The elements of a page in their order; every one is closed where it must be, and every attribute is in quotes.
fn elements(page: &str) -> Vec<String> {
    let (mut open, mut all) = (Vec::new(), Vec::new());
    let body = page.strip_prefix("<!doctype html>\n").expect("a doctype");
    for piece in body.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').expect("a tag ends");
        assert!(!text.contains('>') || open.last() == Some(&"style".to_owned()), "{piece}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closed in order");
            continue;
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag.split([' ', '/']).next().expect("a name").to_owned();
        all.push(tag.to_owned());
        if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    all
}

fn session() -> Vec<(Duration, Event)> {
    let german = event_of(
        "Loom",
        "b",
        "output.streaming",
        &json!({ "chunk": "Guten Tag.", "position": 0, "complete": true, "language": "de" }),
    );
    vec![
        (seconds(0), text("Good day.")),
        (seconds(2), german),
        (seconds(3), confirmation("rpl_1")),
        (seconds(20), resolution("rpl_1", "reject", "reply")),
        (seconds(60), completed("Over.")),
    ]
}

#[test]
fn the_page_is_well_formed_and_has_what_readers_need() {
    let page = page_of("work.jsonl", &session(), &[]);
    let elements = elements(&page);
    let count =
        |name: &str| elements.iter().filter(|it| it.split(' ').next() == Some(name)).count();
    assert!(elements[0] == "html lang=\"en\"");
    assert_eq!((count("h1"), count("h2"), count("main"), count("svg")), (1, 1, 1, 1));
    assert_eq!(count("script"), 0);
    assert!(page.contains("role=\"img\" aria-labelledby=\"title-1 desc-1\""));
    assert_eq!((count("title"), count("desc")), (2, 1), "the page's and the picture's");
    assert_eq!(count("caption"), count("table"));
    assert!(elements.iter().filter(|it| it.starts_with("th ")).all(|it| it.contains("scope=\"")));
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("forced-colors: active"));
    for outside in ["src=", "href=", "url(", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn what_the_picture_shows_stands_in_words() {
    let page = page_of("work.jsonl", &session(), &["Line 7 could not be read.".to_owned()]);
    for words in [
        "<caption>Questions</caption>",
        "Delete 17 pictures from /home/ada/work/july.",
        "after 0.0 seconds",
        "Refused.",
        "<caption>Silences of 10 seconds or more</caption>",
        "<th scope=\"row\">Loom</th>",
        "<td lang=\"de\">Loom: Guten Tag.</td>",
        "Line 7 could not be read.",
        "Nothing was cut off for good",
    ] {
        assert!(page.contains(words), "{words}\n{page}");
    }
}

#[test]
fn hostile_text_stays_text() {
    let hostile = "</td></table><script>alert('x')</script>\" onload=\"x \u{202e}\u{1b}[2J&lt;";
    let mut events = session();
    events.push((
        seconds(61),
        event_of(
            hostile,
            "c",
            "output.streaming",
            &json!({ "chunk": hostile, "position": 0, "complete": true }),
        ),
    ));
    let mut ask = confirmation("rpl_2");
    if let aaep::Payload::AwaitingConfirmation(it) = &mut ask.payload {
        hostile.clone_into(&mut it.action);
    }
    events.push((seconds(62), ask));
    let page = page_of(hostile, &events, &[hostile.to_owned()]);
    let elements = elements(&page);
    assert!(!elements.iter().any(|it| it.starts_with("script") || it.contains("onload")));
    assert!(!page.contains(['\u{202e}', '\u{1b}']));
    assert!(page.contains("&lt;script&gt;"));
}

#[test]
fn the_picture_stays_small_whatever_happens() {
    let mut events: Vec<(Duration, Event)> = Vec::new();
    for at in 0..8000 {
        let agent = format!("Agent{}", at % 50);
        let fields = json!({ "chunk": format!("Line {at}."), "position": 0, "complete": true });
        events.push((seconds(at), event_of(&agent, "b", "output.streaming", &fields)));
    }
    for at in 0..600 {
        let mut ask = confirmation(&format!("rpl_{at}"));
        if let aaep::Payload::AwaitingConfirmation(it) = &mut ask.payload {
            it.timeout_seconds = 5;
        }
        events.push((seconds(8000 + at * 10), ask));
    }
    let page = page_of("long.jsonl", &events, &[]);
    let shapes = elements(&page);
    let shapes = shapes.iter().filter(|it| it.starts_with("rect ") || it.starts_with("path "));
    assert!(shapes.count() < 8000);
    assert!(page.contains("Other agents"));
    assert!(page.contains(" more.</p>"), "the rest of the rows is counted");
}

#[test]
fn one_event_or_none_makes_a_page_too() {
    for events in [&session()[..1], &[]] {
        let page = page_of("one.jsonl", events, &[]);
        elements(&page);
        assert!(page.contains("Nothing was asked."));
    }
    let far = [(seconds(0), text("Now.")), (Duration::from_secs(8_000_000_000), text("Then."))];
    elements(&page_of("far.jsonl", &far, &[]));
    let still =
        event("state.changed", &json!({ "from_state": "idle", "to_state": "writing_output" }));
    let page = page_of("still.jsonl", &[(seconds(0), still)], &[]);
    assert!(page.contains("<p>Nothing.</p>"));
}
