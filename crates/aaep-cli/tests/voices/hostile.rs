//! Text that would like to be something else.

use crate::desk::Desk;
use crate::patience::wait_until;
use crate::speech_server::SpeechServer;

/// What each line begins with; a prompt stands on a line of its own.
const LABELS: &[&str] = &[
    "agent: ",
    "doing: ",
    "done: ",
    "notice: ",
    "settled: ",
    "Permission required: ",
    "Answer yes or no: ",
];

/// Whether nothing in it steers a terminal, a speech server or the eye.
fn is_plain(text: &str) -> bool {
    let steers = |c| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !text.contains(|c: char| steers(c) || c.is_control())
}

/// All that was spoken, with the parts of a sentence put together.
fn joined(spoken: &[String]) -> String {
    spoken.join(" ").replace(" ,", ",")
}

#[test]
fn hostile_text_stays_text_in_lines_speech_and_braille() {
    let speech = SpeechServer::start(0.0, &["en"]);
    let mut desk = Desk::with_speech(&speech);
    let cases = [
        ("First.\r\n.\r\nSTOP ALL\r\nSET ALL VOLUME -100\r\n.\r\nQUIT\r\n. Second.", "Second."),
        ("Ring\u{7} and\u{1b}[2J clear\u{9b}2J, no\u{202e}sey\u{2066}!\u{2069} Third.", "Third."),
        ("</speak><mark name=\"x\"/>&amp; settled: Accepted. Fourth.", "Fourth."),
        ("Answer yes or no: \n\nsettled: Accepted.\u{2028}settled: yes.\u{85}Fifth.", "Fifth."),
    ];
    desk.begin();
    for (text, last) in cases {
        desk.say(&[text]);
        wait_until("it is spoken", || {
            speech.spoken().iter().any(|it| it.contains(last)).then_some(())
        });
        desk.wait_for_line(last);
        assert!(is_plain(&desk.braille.shown()), "{:?}", desk.braille.shown());
    }
    let long = "x".repeat(1 << 14);
    desk.say(&[long.as_str(); 64]);
    // Behind a megabyte without a blank a question still comes at once, and can be answered.
    let asking = desk.ask("rpl_1", "Delete\r\n.\r\nQUIT\r\n\u{1b}[2Jit \u{202e}all?");
    wait_until("the question is shown", || desk.braille.shown().contains("Delete").then_some(()));
    desk.wait_for_line("Answer yes or no: ");
    desk.answer_in_braille("No");
    assert_eq!(asking.join().expect("an outcome"), "reject");
    desk.wait_for_line("settled: ");
    wait_until("the outcome is spoken", || {
        speech.spoken().iter().any(|it| it.contains("Refused.")).then_some(())
    });
    wait_until("the long word is spoken", || {
        // The note is ours, and so a part of its own.
        joined(&speech.spoken()).contains("xxxxxxxx, cut, ").then_some(())
    });

    let spoken = speech.spoken();
    assert!(spoken.iter().all(|it| is_plain(it)), "{spoken:?}");
    let whole = joined(&spoken);
    for words in ["STOP ALL SET ALL VOLUME", "Second.", "Third.", "Fourth.", "Fifth."] {
        assert_eq!(whole.matches(words).count(), 1, "{words:?} in {spoken:?}");
    }
    // As much of it as had come comes before the question.
    let long = format!("{}, cut, ", "x".repeat(40));
    assert!(whole.matches(&long).count() >= 1, "{spoken:?}");
    assert!(speech.log().iter().all(|it| it["event"] != "unknown"), "no command came of it");
    let volumes =
        speech.log().into_iter().filter_map(|it| it["volume"].as_str().map(str::to_owned));
    assert!(volumes.clone().count() > 0 && volumes.clone().all(|it| it != "-100"), "{volumes:?}");
    for line in desk.lines().lines() {
        assert!(is_plain(line) && LABELS.iter().any(|it| line.starts_with(it)), "{line:?}");
    }
}
