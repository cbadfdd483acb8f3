//! Braille through the real BRLTTY.

use std::fs;
use std::thread;
use std::time::Duration;

use aaep::LanguageTag;
use aaep_announce::device::{Device, braille};
use aaep_announce::{Choice, DeviceReport, Order, Utterance, UtteranceId, UtteranceKind, Weight};

use crate::braille_server::BrailleServer;
use crate::patience::{Reports, utterance, wait_until};

/// Long enough for an answer to be taken. The device counts by its own clock how long answers have been on the
/// display, and nothing outside shows it, so these tests have to wait.
const LOOK: Duration = Duration::from_millis(900);

/// Long enough for a key that chooses something to have been reported. That nothing comes can only be seen by waiting.
const MOMENT: Duration = Duration::from_millis(500);

fn start(settings: braille::Settings) -> (Device, Reports) {
    let (sender, mut reports) = Reports::new();
    let device = braille::start(settings, sender).expect("it starts");
    assert_eq!(reports.next(), DeviceReport::Works);
    (device, reports)
}

fn say(device: &Device, utterance: Utterance) {
    device.tell(Order::Say(utterance)).expect("it takes orders");
}

fn question(id: UtteranceId) -> Utterance {
    let choice = |words: &str, is_consent| Choice { words: words.to_owned(), is_consent };
    Utterance {
        kind: UtteranceKind::Question,
        choices: vec![choice("yes, delete", true), choice("no", false)],
        ..utterance(id, Weight::Critical, "Delete the database?")
    }
}

/// The page of its answers, as it is laid out on forty cells.
const ANSWERS: &str = "2/2 no                       yes, delete";

/// Reads the question and goes to its answers.
fn go_to_answers(server: &mut BrailleServer) {
    server.wait_for("1/2 Delete the database?");
    server.press_until("fwinrt", ANSWERS);
}

/// Presses the routing key over an answer, again if it was too soon, until one is chosen.
fn answer(server: &mut BrailleServer, reports: &mut Reports, words: &str) -> DeviceReport {
    wait_until("an answer is chosen", || {
        server.press_over(words);
        std::iter::from_fn(|| reports.within(Duration::from_secs(1)))
            .find(|it| matches!(it, DeviceReport::Chosen(..)))
    })
}

fn has_choice(reports: &[DeviceReport]) -> bool {
    reports.iter().any(|it| matches!(it, DeviceReport::Chosen(..)))
}

#[test]
fn words_are_shown_in_windows_that_the_person_moves_through() {
    let mut server = BrailleServer::start();
    let (device, mut reports) = start(server.settings());
    say(
        &device,
        utterance(
            1,
            Weight::Normal,
            "Twenty-seven files were changed; the \"tests\" pass, all of them.",
        ),
    );
    assert_eq!(reports.next(), DeviceReport::Began(1));
    server.wait_for("1/2 Twenty-seven files were changed; the");
    server.press_until("fwinrt", "2/2 \"tests\" pass, all of them.");
    server.press_until("lnup", "1/2 Twenty-seven files were changed; the");
    server.press_until("lndn", "2/2 \"tests\" pass, all of them.");
    wait_until("the words are over", || {
        server.press("fwinrt");
        reports.within(Duration::from_secs(1))
    });
    assert_eq!(
        reports.seen(),
        [DeviceReport::Works, DeviceReport::Began(1), DeviceReport::Ended(1)]
    );
    server.wait_for_its_own();
}

#[test]
fn words_move_on_by_themselves_at_the_pace_of_the_person() {
    let mut server = BrailleServer::start();
    let (device, mut reports) =
        start(braille::Settings { cells_per_second: Some(200), ..server.settings() });
    say(&device, utterance(1, Weight::Normal, "Twenty-seven files were changed; the tests pass."));
    server.wait_for("2/2 tests pass.");
    assert_eq!((reports.next(), reports.next()), (DeviceReport::Began(1), DeviceReport::Ended(1)));
    server.wait_for_its_own();
}

#[test]
fn hostile_text_and_braille_patterns_are_shown_as_text() {
    let mut server = BrailleServer::start();
    let (device, mut reports) = start(server.settings());
    let cases = [
        ("a\u{0}b\u{1b}[2J\r\nc\u{202e}d", "a b [2J cd"),
        (
            "\u{2813}\u{2811}\u{2807}\u{2807}\u{2815} there",
            "\u{2813}\u{2811}\u{2807}\u{2807}\u{2815} there",
        ),
    ];
    for (id, (words, expected)) in (0..).zip(cases) {
        say(&device, utterance(id, Weight::Normal, words));
        server.wait_for(expected);
        reports.until_is(&DeviceReport::Began(id));
    }
    // A megabyte without a blank is many windows, and the first is there at once.
    say(&device, utterance(9, Weight::Normal, &"x".repeat(1_000_000)));
    reports.until_is(&DeviceReport::Began(9));
    wait_until("the first window is shown", || server.shown().ends_with("xxxxxxxx").then_some(()));
    server.press("fwinrt");
    wait_until("the second window is shown", || server.shown().starts_with("2/").then_some(()));
}

#[test]
fn a_question_is_answered_with_the_routing_key_over_the_answer() {
    let mut server = BrailleServer::start();
    let (device, mut reports) = start(server.settings());
    say(&device, question(1));
    assert_eq!(reports.next(), DeviceReport::Began(1));
    go_to_answers(&mut server);
    assert_eq!(reports.next(), DeviceReport::Ended(1));
    assert_eq!(answer(&mut server, &mut reports, "delete"), DeviceReport::Chosen(1, 0));
    server.wait_for_its_own();
    // Answered is answered.
    server.press("route 35");
    assert_eq!(
        reports.after(MOMENT).iter().filter(|it| matches!(it, DeviceReport::Chosen(..))).count(),
        1
    );

    say(&device, question(2));
    go_to_answers(&mut server);
    assert_eq!(answer(&mut server, &mut reports, "no"), DeviceReport::Chosen(2, 1));
}

#[test]
fn cells_beside_an_answer_and_cells_of_the_words_choose_nothing() {
    let mut server = BrailleServer::start();
    let (device, mut reports) = start(server.settings());
    say(&device, question(1));
    server.wait_for("1/2 Delete the database?");
    thread::sleep(LOOK);
    for cell in [1, 4, 5, 29, 35, 39] {
        server.press(&format!("route {cell}"));
    }
    assert!(!has_choice(&reports.after(MOMENT)), "the words are not an answer");
    server.press_until("fwinrt", ANSWERS);
    thread::sleep(LOOK);
    let (no, yes) = (server.cell_of("no"), server.cell_of("yes"));
    assert!(yes - (no + "no".len()) >= 6, "they are far apart");
    for cell in [no - 1, no + 2, no + 3, no.midpoint(yes), yes - 2, yes - 1] {
        server.press(&format!("route {cell}"));
    }
    assert!(!has_choice(&reports.after(MOMENT)), "blank cells are not an answer");
    assert_eq!(answer(&mut server, &mut reports, "yes"), DeviceReport::Chosen(1, 0));
}

#[test]
fn a_key_pressed_before_the_answers_were_shown_for_a_while_chooses_nothing() {
    let mut server = BrailleServer::start();
    let settings = braille::Settings { least_look: Duration::from_hours(1), ..server.settings() };
    let (device, mut reports) = start(settings);
    server.press("route 35");
    say(&device, question(1));
    server.press("route 35");
    server.wait_for("1/2 Delete the database?");
    server.press("route 35");
    server.press_until("fwinrt", ANSWERS);
    for _ in 0..5 {
        server.press("route 35");
    }
    assert!(!has_choice(&reports.after(MOMENT)));
}

#[test]
fn a_withdrawn_question_cannot_be_answered() {
    let mut server = BrailleServer::start();
    let (device, mut reports) = start(server.settings());
    say(&device, question(1));
    go_to_answers(&mut server);
    thread::sleep(LOOK);
    device.tell(Order::Withdraw(1)).expect("it takes orders");
    server.wait_for_its_own();
    server.press("route 35");
    // Nor by a key on what comes after it.
    say(&device, utterance(2, Weight::Normal, "Over."));
    server.wait_for("Over.");
    thread::sleep(LOOK);
    server.press("route 35");
    assert!(!has_choice(&reports.after(MOMENT)));
}

#[test]
fn a_question_comes_back_after_critical_words_with_its_words_first() {
    let mut server = BrailleServer::start();
    let (device, mut reports) = start(server.settings());
    say(&device, question(1));
    go_to_answers(&mut server);
    say(&device, utterance(2, Weight::Normal, "Something less important."));
    reports.until_is(&DeviceReport::Cut(2));
    say(&device, utterance(3, Weight::Critical, "The line is gone."));
    server.wait_for("The line is gone.");
    thread::sleep(LOOK);
    server.press("route 35");
    server.press_until("fwinrt", "1/2 Delete the database?");
    assert!(!has_choice(&reports.after(MOMENT)));
    server.press_until("fwinrt", ANSWERS);
    assert_eq!(answer(&mut server, &mut reports, "no"), DeviceReport::Chosen(1, 1));
}

#[test]
fn a_server_that_is_killed_and_comes_back_shows_the_open_question_again() {
    let mut server = BrailleServer::start();
    let (device, mut reports) = start(server.settings());
    say(&device, question(1));
    server.wait_for("1/2 Delete the database?");
    server.kill();
    let trouble = reports.until(|it| matches!(it, DeviceReport::Trouble(_)));
    assert!(
        matches!(&trouble, DeviceReport::Trouble(why) if why.contains("BRLTTY")),
        "{trouble:?}"
    );
    say(&device, utterance(2, Weight::Normal, "Nobody reads this."));
    reports.until_is(&DeviceReport::Cut(2));
    assert!(reports.seen().contains(&DeviceReport::Cut(1)));
    server.go();
    assert_eq!(reports.next(), DeviceReport::Works, "trouble is told once");
    go_to_answers(&mut server);
    assert_eq!(answer(&mut server, &mut reports, "yes"), DeviceReport::Chosen(1, 0));
}

#[test]
fn a_server_that_wants_a_key_gets_the_content_of_the_key_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let key_file = folder.path().join("key");
    fs::write(&key_file, "a secret\n").expect("a file");
    let server = BrailleServer::start_with(&format!("keyfile:{}", key_file.display()));
    let (device, _reports) = start(braille::Settings { key_file, ..server.settings() });
    say(&device, utterance(1, Weight::Normal, "Let in."));
    server.wait_for("Let in.");

    let wrong = folder.path().join("wrong");
    fs::write(&wrong, "a guess\n").expect("a file");
    for key_file in [wrong, folder.path().join("absent")] {
        let (sender, mut reports) = Reports::new();
        let _device = braille::start(braille::Settings { key_file, ..server.settings() }, sender);
        let trouble = reports.next();
        assert!(
            matches!(&trouble, DeviceReport::Trouble(why) if why.contains("key file")),
            "{trouble:?}"
        );
    }
}

#[test]
fn contracted_braille_is_shown_for_the_languages_that_have_a_table() {
    let server = BrailleServer::start();
    let english = LanguageTag::parse("en").expect("a tag");
    let tables = vec![(english.clone(), "en-ueb-g2.ctb".to_owned())];
    let (device, mut reports) = start(braille::Settings { tables, ..server.settings() });
    let language = Some(english);
    say(&device, Utterance { language, ..utterance(1, Weight::Normal, "the people can go") });
    server.wait_for("⠮ ⠏ ⠉ ⠛");
    let language = LanguageTag::parse("fr").ok();
    say(&device, Utterance { language, ..utterance(2, Weight::Normal, "les gens") });
    server.wait_for("les gens");
    reports.until_is(&DeviceReport::Began(2));
    assert!(
        !reports.seen().iter().any(|it| matches!(it, DeviceReport::Notice(_))),
        "{:?}",
        reports.seen()
    );
}
