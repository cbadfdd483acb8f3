//! A speech server that hangs.

use std::net::TcpListener;
use std::thread;

use crate::desk::Desk;
use crate::patience::wait_until;

/// The address of a server that takes every connection and never says a word.
fn silent_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || listener.incoming().flatten().collect::<Vec<_>>());
    format!("inet_socket:127.0.0.1:{port}")
}

#[test]
fn a_stalled_speech_server_delays_neither_lines_nor_braille_nor_the_answer() {
    let mut desk = Desk::new(&silent_server());
    desk.begin();
    desk.say(&["The logs are old."]);
    desk.wait_for_line("agent: The logs are old.\n");
    desk.read_until("The logs are old.");
    for (token, answer, outcome) in [("rpl_1", "Yes", "accept"), ("rpl_2", "No", "reject")] {
        let asking = desk.ask(token, "Delete the database?");
        desk.wait_for_line("Permission required: weaver asks: Delete the database?");
        wait_until("the question is shown", || {
            desk.braille.shown().contains("Delete the").then_some(())
        });
        desk.answer_in_braille(answer);
        assert_eq!(asking.join().expect("an outcome"), outcome);
    }
    // In the end the person learns why nothing is heard.
    desk.wait_for_line("About speech: The speech server does not answer.");
}
