//! Any bytes as what a speech server says, cut anywhere; and any words as what it is given to speak: never a
//! panic, never past the limit, and words never become anything but one message.
#![no_main]

use aaep_announce::device::speech::codec::{self, SsipLine, Lines, MAX_LINE_BYTES, InvalidSsipLine};
use libfuzzer_sys::fuzz_target;

/// All lines, and whether they ended in an error.
fn lines(bytes: &[u8], size: usize) -> (Vec<SsipLine>, bool) {
    let (mut lines, mut all) = (Lines::default(), Vec::new());
    for piece in bytes.chunks(size) {
        lines.push(piece);
        loop {
            match lines.next_line() {
                Ok(Some(line)) => all.push(line),
                Ok(None) => break,
                Err(InvalidSsipLine) => return (all, true),
            }
        }
    }
    (all, false)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (cut, bytes) = input;
    let whole = lines(bytes, bytes.len().max(1));
    assert_eq!(whole, lines(bytes, usize::from(cut).max(1)), "a cut changes nothing");
    for line in &whole.0 {
        // What is no UTF-8 becomes a mark of three bytes.
        assert!(line.code < 1000 && line.text.len() <= 3 * MAX_LINE_BYTES && !line.text.contains('\n'));
    }
    let words = String::from_utf8_lossy(bytes);
    let message = String::from_utf8(codec::message(&words)).expect("UTF-8");
    let lines: Vec<&str> = message.split("\r\n").collect();
    assert!(lines.len() == 3 && lines[0] != "." && lines[1] == "." && lines[2].is_empty());
    assert!(!lines[0].contains(char::is_control));
    let command = String::from_utf8(codec::command(&words)).expect("UTF-8");
    assert!(command.strip_suffix("\r\n").is_some_and(|line| !line.contains(char::is_control)));
    if let Some(name) = codec::name(&words) {
        assert!(!name.contains(char::is_control));
    }
});
