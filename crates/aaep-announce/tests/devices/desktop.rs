//! Announcements and buttons on the real accessibility bus.

use std::thread;
use std::time::Duration;

use aaep_announce::device::{Device, desktop};
use aaep_announce::{Choice, DeviceReport, Order, Utterance, UtteranceId, UtteranceKind, Weight};

use crate::desktop_session::{Announced, ScreenReader, in_session, turn_on};
use crate::patience::{Reports, utterance, wait_until};

/// Long enough for something that was pressed to have been heard of.
const MOMENT: Duration = Duration::from_millis(500);

fn begin(settings: desktop::Settings) -> (Device, Reports) {
    let (sender, reports) = Reports::new();
    (desktop::start(settings, sender).expect("it starts"), reports)
}

/// One with a screen reader, which works.
fn start(words_per_minute: u64) -> (Device, Reports) {
    let least_look = Duration::from_millis(200);
    let settings = desktop::Settings { least_look, ..desktop::Settings::new(words_per_minute) };
    let (device, mut reports) = begin(settings);
    assert_eq!(reports.next(), DeviceReport::Works);
    (device, reports)
}

fn say(device: &Device, utterance: Utterance) {
    device.tell(Order::Say(utterance)).expect("it takes orders");
}

fn question(id: UtteranceId, number: u32, words: &str) -> Utterance {
    let choice = |words: &str, is_consent| Choice { words: words.to_owned(), is_consent };
    Utterance {
        kind: UtteranceKind::Question,
        choices: vec![choice("No", false), choice("Yes", true)],
        number: Some(number),
        ..utterance(id, Weight::Critical, words)
    }
}

fn announced(words: &str, is_assertive: bool) -> Announced {
    Announced { words: words.to_owned(), is_assertive }
}

fn chosen(reports: &[DeviceReport]) -> Vec<&DeviceReport> {
    reports.iter().filter(|it| matches!(it, DeviceReport::Chosen(..))).collect()
}

/// Presses a button again and again until it counts: one that is pressed too soon does not.
fn press_until_chosen(
    reader: &ScreenReader,
    reports: &mut Reports,
    name: &str,
    words: &str,
) -> DeviceReport {
    let button = reader.button(name, words);
    wait_until("an answer is chosen", || {
        reader.press(&button);
        std::iter::from_fn(|| reports.within(Duration::from_millis(300)))
            .find(|it| matches!(it, DeviceReport::Chosen(..)))
    })
}

#[test]
fn words_are_announced_in_order_and_critical_ones_assertively() {
    in_session("desktop::words_are_announced_in_order_and_critical_ones_assertively", || {
        let reader = ScreenReader::start();
        let (device, mut reports) = start(2000);
        say(&device, utterance(1, Weight::Normal, "Twelve files were changed."));
        reports.until_is(&DeviceReport::Began(1));
        device.tell(Order::Stop).expect("it takes orders");
        say(&device, utterance(2, Weight::Critical, "The disk is full."));
        reports.until_is(&DeviceReport::Ended(2));
        // The same words again are announced again.
        say(&device, utterance(3, Weight::Critical, "The disk is full."));
        reports.until_is(&DeviceReport::Ended(3));
        assert_eq!(reader.next(), announced("Twelve files were changed.", false));
        assert_eq!(reader.next(), announced("The disk is full.", true));
        assert_eq!(reader.next(), announced("The disk is full. ", true));
        let ends: Vec<_> = reports.seen().iter().skip(1).cloned().collect();
        let expected = [
            DeviceReport::Began(1),
            DeviceReport::Cut(1),
            DeviceReport::Began(2),
            DeviceReport::Ended(2),
            DeviceReport::Began(3),
            DeviceReport::Ended(3),
        ];
        assert_eq!(ends, expected);
    });
}

#[test]
fn a_question_is_answered_with_its_button_and_only_once() {
    in_session("desktop::a_question_is_answered_with_its_button_and_only_once", || {
        let reader = ScreenReader::start();
        let (device, mut reports) = start(2000);
        assert_eq!(reader.buttons(), [], "nothing is asked");
        say(&device, question(1, 1, "Delete the database?"));
        assert_eq!(reader.next(), announced("Delete the database?", true));
        let yes = reader.button("Yes", "Delete the database?");
        let all = ["More time", "No", "Yes"];
        let all = all.map(|it| ("Delete the database?".to_owned(), it.to_owned()));
        assert_eq!(reader.buttons(), all);
        let more_time = reader.button("More time", "Delete the database?");
        wait_until("more time is asked for", || {
            reader.press(&more_time);
            std::iter::from_fn(|| reports.within(Duration::from_millis(300)))
                .find(|it| *it == DeviceReport::MoreTime(1))
        });
        let answer = press_until_chosen(&reader, &mut reports, "Yes", "Delete the database?");
        assert_eq!(answer, DeviceReport::Chosen(1, 1));
        wait_until("the buttons are gone", || reader.buttons().is_empty().then_some(()));
        reader.press(&yes);
        assert_eq!(chosen(&reports.after(MOMENT)), [&DeviceReport::Chosen(1, 1)]);
    });
}

#[test]
fn a_button_of_a_question_that_is_over_or_was_replaced_answers_nothing() {
    in_session(
        "desktop::a_button_of_a_question_that_is_over_or_was_replaced_answers_nothing",
        || {
            let reader = ScreenReader::start();
            let (device, mut reports) = start(2000);
            say(&device, question(1, 1, "Delete the database?"));
            let over = reader.button("Yes", "Delete the database?");
            reports.until_is(&DeviceReport::Ended(1));
            device.tell(Order::Withdraw(1)).expect("it takes orders");
            say(&device, question(2, 2, "Sort the mail?"));
            let replaced = reader.button("Yes", "Sort the mail?");
            reports.until_is(&DeviceReport::Ended(2));
            say(&device, question(3, 2, "Only a minute left. Sort the mail?"));
            reports.until_is(&DeviceReport::Ended(3));
            let current = reader.button("No", "Only a minute left. Sort the mail?");
            thread::sleep(MOMENT);
            reader.press(&over);
            reader.press(&replaced);
            assert_eq!(chosen(&reports.after(MOMENT)), [] as [&DeviceReport; 0]);
            // The one that is there is heard, so the others were not just lost.
            assert!(reader.press(&current));
            reports.until_is(&DeviceReport::Chosen(3, 0));
        },
    );
}

#[test]
fn hostile_text_stays_text() {
    in_session("desktop::hostile_text_stays_text", || {
        let reader = ScreenReader::start();
        let (device, mut reports) = start(2000);
        let words = "a\u{0}b\u{1b}[2J\r\nc\u{202e}d <b>&amp;</b> /org/a11y";
        say(&device, utterance(1, Weight::Normal, words));
        assert_eq!(reader.next(), announced("a b [2J cd <b>&amp;</b> /org/a11y", false));
        say(&device, question(2, 1, "Delete?\u{0} Press\n Yes"));
        assert_eq!(reader.next(), announced("Delete? Press Yes", true));
        // A megabyte without a blank is many parts, and one whole if it is critical.
        let long = "x".repeat(1_000_000);
        say(&device, utterance(3, Weight::Normal, &long));
        let part = reader.next();
        assert!(long.starts_with(&part.words) && part.words.len() < 1000, "{part:?}");
        device.tell(Order::Stop).expect("it takes orders");
        say(&device, utterance(4, Weight::Critical, &long));
        let whole = std::iter::repeat_with(|| reader.next()).find(|it| it.is_assertive);
        assert_eq!(whole, Some(announced(&long, true)));
        let answer = press_until_chosen(&reader, &mut reports, "No", "Delete?");
        assert_eq!(answer, DeviceReport::Chosen(2, 0));
    });
}

#[test]
fn where_nobody_listens_that_is_told_and_it_works_as_soon_as_somebody_does() {
    in_session(
        "desktop::where_nobody_listens_that_is_told_and_it_works_as_soon_as_somebody_does",
        || {
            let (device, mut reports) = begin(desktop::Settings::new(2000));
            let trouble = reports.next();
            assert!(
                matches!(&trouble, DeviceReport::Trouble(why) if why.contains("No screen reader is turned on")),
                "{trouble:?}"
            );
            say(&device, utterance(1, Weight::Normal, "Nobody hears this."));
            reports.until_is(&DeviceReport::Cut(1));
            let reader = ScreenReader::start();
            reports.until_is(&DeviceReport::Works);
            say(&device, utterance(2, Weight::Normal, "Somebody hears this."));
            assert_eq!(reader.next(), announced("Somebody hears this.", false));
            reports.until_is(&DeviceReport::Ended(2));
            // One that is still turned on and listens no more hears nothing either.
            reader.deregister();
            say(&device, utterance(3, Weight::Normal, "Nobody hears this."));
            let trouble = reports.until(|it| matches!(it, DeviceReport::Trouble(_)));
            assert!(
                matches!(&trouble, DeviceReport::Trouble(why) if why.contains("does not take announcements")),
                "{trouble:?}"
            );
            assert!(reports.seen().contains(&DeviceReport::Cut(3)));
            assert_eq!(reader.within(MOMENT), None);
        },
    );
}

#[test]
fn a_screen_reader_that_is_turned_off_is_noticed() {
    in_session("desktop::a_screen_reader_that_is_turned_off_is_noticed", || {
        let reader = ScreenReader::start();
        let (device, mut reports) = start(2000);
        say(&device, question(1, 1, "Delete the database?"));
        assert_eq!(reader.next(), announced("Delete the database?", true));
        turn_on(false);
        let trouble = reports.until(|it| matches!(it, DeviceReport::Trouble(_)));
        assert!(
            matches!(&trouble, DeviceReport::Trouble(why) if why.contains("turned off")),
            "{trouble:?}"
        );
        turn_on(true);
        reports.until_is(&DeviceReport::Works);
        // The question is there again, with its buttons.
        let answer = press_until_chosen(&reader, &mut reports, "No", "Delete the database?");
        assert_eq!(answer, DeviceReport::Chosen(1, 0));
    });
}

#[test]
fn an_accessibility_bus_that_crashes_is_told_and_the_next_one_is_used() {
    in_session(
        "desktop::an_accessibility_bus_that_crashes_is_told_and_the_next_one_is_used",
        || {
            let reader = ScreenReader::start();
            let (device, mut reports) = start(2000);
            say(&device, utterance(1, Weight::Normal, "Before."));
            reports.until_is(&DeviceReport::Ended(1));
            assert_eq!(reader.next(), announced("Before.", false));
            reader.kill_bus();
            // Whether it is noticed by itself or by the next words, these are not called heard.
            say(&device, utterance(2, Weight::Normal, "Nobody hears this."));
            let trouble = reports.until(|it| matches!(it, DeviceReport::Trouble(_)));
            assert!(
                matches!(&trouble, DeviceReport::Trouble(why) if why.contains("accessibility bus") || why.contains("turned off")),
                "{trouble:?}"
            );
            let reader = ScreenReader::start();
            reports.until_is(&DeviceReport::Works);
            assert!(!reports.seen().contains(&DeviceReport::Began(2)), "{:?}", reports.seen());
            say(&device, utterance(3, Weight::Normal, "After."));
            assert_eq!(reader.next(), announced("After.", false));
        },
    );
}
