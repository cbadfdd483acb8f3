//! Speech through the real speech-dispatcher.

use std::time::Duration;

use aaep::LanguageTag;
use aaep_announce::device::{Device, speech};
use aaep_announce::{DeviceReport, Order, Pace, Utterance, Weight, WordsPart};

use crate::patience::{Reports, utterance, wait_until};
use crate::speech_server::SpeechServer;

fn device(server: &SpeechServer) -> (Device, Reports) {
    let (sender, mut reports) = Reports::new();
    let device = speech::start(server.settings(), sender).expect("it starts");
    assert_eq!(reports.next(), DeviceReport::Works);
    (device, reports)
}

fn say(device: &Device, utterance: Utterance) {
    device.tell(Order::Say(utterance)).expect("it takes orders");
}

#[test]
fn a_sentence_is_spoken_and_its_beginning_and_end_are_told() {
    let server = SpeechServer::start(1.0, &["en"]);
    let (device, mut reports) = device(&server);
    say(&device, utterance(7, Weight::Normal, "The build has finished."));
    assert_eq!(reports.next(), DeviceReport::Began(7));
    assert_eq!(reports.next(), DeviceReport::Ended(7));
    assert_eq!(server.spoken(), ["The build has finished."]);
    // One after the other, whatever their weight.
    for (id, weight) in [
        (8, Weight::Critical),
        (9, Weight::Normal),
        (10, Weight::Background),
        (11, Weight::Progress),
    ] {
        say(&device, utterance(id, weight, "More."));
        assert_eq!(
            (reports.next(), reports.next()),
            (DeviceReport::Began(id), DeviceReport::Ended(id))
        );
    }
}

#[test]
fn what_is_ordered_before_the_server_has_answered_is_spoken_too() {
    let server = SpeechServer::start(0.0, &["en"]);
    let (sender, mut reports) = Reports::new();
    let device = speech::start(server.settings(), sender).expect("it starts");
    say(&device, utterance(1, Weight::Normal, "Hello."));
    assert_eq!(reports.next(), DeviceReport::Works);
    assert_eq!((reports.next(), reports.next()), (DeviceReport::Began(1), DeviceReport::Ended(1)));
}

#[test]
fn critical_words_interrupt_what_is_being_spoken_and_the_cut_one_is_told() {
    let server = SpeechServer::start(100.0, &["en"]);
    let (device, mut reports) = device(&server);
    say(&device, utterance(1, Weight::Normal, &"A very long story without any end. ".repeat(20)));
    assert_eq!(reports.next(), DeviceReport::Began(1));
    say(&device, utterance(2, Weight::Critical, "Delete?"));
    reports.until_is(&DeviceReport::Ended(2));
    assert_eq!(
        reports.seen()[2..],
        [DeviceReport::Cut(1), DeviceReport::Began(2), DeviceReport::Ended(2)]
    );
    assert_eq!(server.spoken().last().map(String::as_str), Some("Delete?"));
}

#[test]
fn stopping_cuts_what_is_spoken_and_what_waits_behind_it() {
    let server = SpeechServer::start(100.0, &["en"]);
    let (device, mut reports) = device(&server);
    say(&device, utterance(1, Weight::Normal, &"A very long story without any end. ".repeat(20)));
    assert_eq!(reports.next(), DeviceReport::Began(1));
    say(&device, utterance(2, Weight::Normal, "Behind it."));
    device.tell(Order::Stop).expect("it takes orders");
    let mut cut = [reports.next(), reports.next()];
    cut.sort_by_key(|report| format!("{report:?}"));
    assert_eq!(cut, [DeviceReport::Cut(1), DeviceReport::Cut(2)]);
    // It goes on with the next as if nothing had been.
    say(&device, utterance(3, Weight::Normal, "Next."));
    assert_eq!((reports.next(), reports.next()), (DeviceReport::Began(3), DeviceReport::Ended(3)));
    assert!(!server.spoken().contains(&"Behind it.".to_owned()));
}

#[test]
fn hostile_text_stays_text_and_one_message() {
    let server = SpeechServer::start(0.0, &["en"]);
    let (device, mut reports) = device(&server);
    let long = "x".repeat(1_000_000);
    let cases = [
        (".", "."),
        ("..", ".."),
        ("one\r\n.\r\nSTOP ALL\r\nSET ALL VOLUME -100", "one . STOP ALL SET ALL VOLUME -100"),
        (".\r\nQUIT\r\n", ". QUIT"),
        ("a\u{0}b\u{7}c\u{1b}[2Jd\u{9b}e", "a b c [2Jd e"),
        ("no\u{202e}sey\u{2066}!\u{2069}", "nosey!"),
        ("</speak><mark name=\"x\"/>&amp;", "</speak><mark name=\"x\"/>&amp;"),
        ("BEGIN 701-1 702 END", "BEGIN 701-1 702 END"),
        (long.as_str(), long.as_str()),
    ];
    for (id, (words, _)) in (0..).zip(&cases) {
        say(&device, utterance(id, Weight::Normal, words));
        assert_eq!(
            (reports.next(), reports.next()),
            (DeviceReport::Began(id), DeviceReport::Ended(id))
        );
    }
    let spoken = server.spoken();
    assert_eq!(spoken.len(), cases.len(), "one message each");
    for (spoken, (words, expected)) in spoken.iter().zip(&cases) {
        assert!(spoken == expected, "{words:.80} was spoken as {spoken:.80}");
    }
    assert!(server.log().iter().all(|it| it["event"] != "unknown"));
}

#[test]
fn the_language_changes_with_the_words_and_a_missing_voice_is_told_once() {
    let server = SpeechServer::start(0.0, &["en", "fr"]);
    let (device, mut reports) = device(&server);
    let languages = [Some("fr-CA"), Some("yo"), None, Some("fr"), Some("yo-NG"), Some("en-GB")];
    for (id, language) in (0..).zip(languages) {
        let language = language.map(|tag| LanguageTag::parse(tag).expect("a tag"));
        say(&device, Utterance { language, ..utterance(id, Weight::Normal, "Words.") });
        reports.until_is(&DeviceReport::Ended(id));
    }
    // The warning is spoken first, in the voice that there is, and then the words.
    assert_eq!(server.languages(), ["fr", "en", "en", "en", "fr", "en", "en"]);
    let spoken = server.spoken();
    let is_warning = |it: &String| it.contains("no voice for the language yo");
    assert_eq!(spoken.iter().position(is_warning), Some(1), "{spoken:?}");
    assert_eq!(spoken.iter().filter(|it| is_warning(it)).count(), 1, "told once: {spoken:?}");
    assert!(
        !reports.seen().iter().any(|it| matches!(it, DeviceReport::Notice(_))),
        "not again later"
    );
}

#[test]
fn each_part_is_spoken_in_its_own_language_and_the_utterance_is_one() {
    let server = SpeechServer::start(0.0, &["en", "de", "ru"]);
    let (device, mut reports) = device(&server);
    let part = |words: &str, language: &str| WordsPart {
        words: words.to_owned(),
        language: LanguageTag::parse(language).ok(),
    };
    let parts = vec![
        part("Weaver:", "en"),
        part("Alles gelöscht.", "de"),
        part("It cannot be undone.", "en"),
        part("High risk.", "en"),
    ];
    let words = "Weaver: Alles gelöscht. It cannot be undone. High risk.";
    say(&device, Utterance { parts, ..utterance(1, Weight::Normal, words) });
    assert_eq!((reports.next(), reports.next()), (DeviceReport::Began(1), DeviceReport::Ended(1)));
    say(&device, utterance(2, Weight::Normal, "He said привет to me"));
    assert_eq!((reports.next(), reports.next()), (DeviceReport::Began(2), DeviceReport::Ended(2)));
    assert_eq!(server.languages(), ["en", "de", "en", "en", "ru", "en"]);
    assert_eq!(
        server.spoken(),
        [
            "Weaver:",
            "Alles gelöscht.",
            "It cannot be undone. High risk.",
            "He said",
            "привет",
            "to me"
        ]
    );
}

#[test]
fn a_list_of_thirteen_thousand_voices_is_read_whole() {
    let mut voices = vec!["en"; 13_000];
    voices.push("yo");
    let server = SpeechServer::start(0.0, &voices);
    let (device, mut reports) = device(&server);
    let language = LanguageTag::parse("yo-NG").ok();
    say(&device, Utterance { language, ..utterance(1, Weight::Normal, "Bawo ni.") });
    assert_eq!((reports.next(), reports.next()), (DeviceReport::Began(1), DeviceReport::Ended(1)));
    assert_eq!(server.languages(), ["yo"]);
}

#[test]
fn settings_reach_the_server_and_a_voice_that_is_not_there_is_told() {
    let server = SpeechServer::start(0.0, &["en"]);
    let (sender, mut reports) = Reports::new();
    let settings = speech::Settings {
        rate: Some(50),
        pitch: Some(-20),
        volume: Some(i8::MAX),
        voice: Some("Nobody".to_owned()),
        ..server.settings()
    };
    let device = speech::start(settings, sender).expect("it starts");
    let notice = reports.until(|it| matches!(it, DeviceReport::Notice(_)));
    assert!(
        matches!(&notice, DeviceReport::Notice(words) if words.contains("Nobody")),
        "{notice:?}"
    );
    reports.until_is(&DeviceReport::Works);
    say(&device, utterance(1, Weight::Normal, "Words."));
    reports.until_is(&DeviceReport::Ended(1));
    let spoken = server.log().into_iter().find(|it| it["event"] == "speak").expect("it was spoken");
    let settings = ["rate", "pitch", "volume"].map(|name| spoken[name].as_str().map(str::to_owned));
    assert_eq!(settings.map(Option::unwrap_or_default), ["50", "-20", "100"]);
}

#[test]
fn a_server_that_is_killed_and_comes_back_is_told_and_speech_goes_on() {
    let mut server = SpeechServer::start(100.0, &["en"]);
    let (device, mut reports) = device(&server);
    say(&device, utterance(1, Weight::Normal, &"A very long story without any end. ".repeat(20)));
    assert_eq!(reports.next(), DeviceReport::Began(1));
    server.kill();
    let trouble = reports.next();
    assert!(matches!(trouble, DeviceReport::Trouble(_)), "{trouble:?}");
    assert_eq!(reports.next(), DeviceReport::Cut(1));
    // While there is no server, nothing waits for it.
    say(&device, utterance(2, Weight::Critical, "Nobody speaks this."));
    assert_eq!(reports.next(), DeviceReport::Cut(2));
    server.go();
    assert_eq!(reports.next(), DeviceReport::Works, "trouble is told once");
    say(&device, utterance(3, Weight::Normal, "Back."));
    assert_eq!((reports.next(), reports.next()), (DeviceReport::Began(3), DeviceReport::Ended(3)));
    assert!(!server.spoken().contains(&"Nobody speaks this.".to_owned()));
}

#[test]
fn a_server_that_is_not_running_is_started() {
    let server = SpeechServer::prepare(0.0, &["en"]);
    let mut command = vec!["speech-dispatcher".to_owned()];
    command.extend(server.arguments(true));
    let settings = speech::Settings { spawn: Some(command), ..server.settings() };
    let (sender, mut reports) = Reports::new();
    let device = speech::start(settings, sender).expect("it starts");
    say(&device, utterance(1, Weight::Normal, "Here I am."));
    reports.until_is(&DeviceReport::Ended(1));
    assert_eq!(reports.seen()[..2], [DeviceReport::Works, DeviceReport::Began(1)]);
}

#[test]
fn a_server_that_cannot_be_started_is_told_with_what_to_do() {
    let server = SpeechServer::prepare(0.0, &["en"]);
    let settings = speech::Settings {
        spawn: Some(vec!["no-such-speech-server".to_owned()]),
        ..server.settings()
    };
    let (sender, mut reports) = Reports::new();
    let device = speech::start(settings, sender).expect("it starts");
    say(&device, utterance(1, Weight::Critical, "Delete?"));
    let trouble = reports.next();
    assert!(
        matches!(&trouble, DeviceReport::Trouble(why) if why.contains("apt-get install")),
        "{trouble:?}"
    );
    assert_eq!(reports.next(), DeviceReport::Cut(1));
    let all = reports.after(Duration::from_millis(1500));
    assert_eq!(all.len(), 2, "trouble is told once: {all:?}");
}

#[test]
fn dropping_the_device_stops_what_it_says() {
    let server = SpeechServer::start(100.0, &["en"]);
    let (device, mut reports) = device(&server);
    say(&device, utterance(1, Weight::Normal, &"A very long story without any end. ".repeat(20)));
    assert_eq!(reports.next(), DeviceReport::Began(1));
    drop(device);
    wait_until("the server is told to stop", || {
        server.log().iter().find(|it| it["event"] == "stop").cloned()
    });
}

/// Says a word and gives the rate at which it was spoken.
fn rate_of_a_word(
    server: &SpeechServer,
    device: &Device,
    reports: &mut Reports,
    id: u64,
) -> Option<i64> {
    say(device, utterance(id, Weight::Normal, "Word."));
    reports.until_is(&DeviceReport::Ended(id));
    let log = server.log();
    let spoken = log.iter().rfind(|it| it["event"] == "speak").expect("it was spoken");
    spoken["rate"].as_str().expect("a rate").parse().ok()
}

#[test]
fn the_voice_itself_gets_another_rate_and_keeps_it_when_the_server_comes_back() {
    let mut server = SpeechServer::start(0.0, &["en"]);
    let (device, mut reports) = device(&server);
    let usual = rate_of_a_word(&server, &device, &mut reports, 1).expect("a rate");
    device.tell(Order::Pace(Pace::Faster)).expect("it takes orders");
    assert_eq!(rate_of_a_word(&server, &device, &mut reports, 2), Some(usual + 10));
    device.tell(Order::Pace(Pace::Rate(-40))).expect("it takes orders");
    assert_eq!(rate_of_a_word(&server, &device, &mut reports, 3), Some(-40));
    server.kill();
    reports.until(|it| matches!(it, DeviceReport::Trouble(_)));
    server.go();
    reports.until_is(&DeviceReport::Works);
    assert_eq!(rate_of_a_word(&server, &device, &mut reports, 4), Some(-40));
}
