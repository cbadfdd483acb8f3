//! Someone who listens to a voice and types: consent needs a question that was spoken to its end (ruling 33).
//!
//! The speech server is played here, so that it speaks exactly as long as a test wants.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use crate::ear::{DANGEROUS, Ear, outcome};
use crate::support::{Hub, out};

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_mins(1);

/// What the voice was given, under which number; nothing when it was stopped.
type Spoken = Option<(u64, String)>;

/// A speech server whose voice goes on until it is told that it has come to the end.
struct Voice {
    spoken: Receiver<Spoken>,
    to: Receiver<UnixStream>,
    connection: Option<UnixStream>,
}

impl Voice {
    fn start(path: &Path) -> Self {
        let listener = UnixListener::bind(path).expect("a socket");
        let (told, spoken) = mpsc::channel();
        let (sender, to) = mpsc::channel();
        thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a client");
            sender.send(stream.try_clone().expect("a stream")).expect("someone waits");
            converse(&stream, &told);
        });
        Voice { spoken, to, connection: None }
    }

    /// Waits until these words are being spoken; speaks everything before them to its end.
    fn speaks(&mut self, words: &str) -> (u64, String) {
        loop {
            match self.spoken.recv_timeout(PATIENCE).expect("something is spoken") {
                Some((number, said)) if said.contains(words) => return (number, said),
                Some((number, _)) => self.ends(number),
                None => {}
            }
        }
    }

    fn connection(&mut self) -> &mut UnixStream {
        let to = &self.to;
        self.connection.get_or_insert_with(|| to.recv().expect("a stream"))
    }

    /// The speech server dies.
    fn goes(&mut self) {
        self.connection().shutdown(Shutdown::Both).expect("it was there");
    }

    /// The voice says the question to its end, sentence by sentence, from the one with this number; all that it said
    /// after that.
    fn ends_question(&mut self, number: u64) -> String {
        self.ends(number);
        let mut all = String::new();
        loop {
            let Some((number, said)) = self.spoken.recv_timeout(PATIENCE).expect("it goes on")
            else {
                continue;
            };
            all.extend([" ", &said]);
            self.ends(number);
            if said.ends_with("Yes or no?") {
                return all;
            }
        }
    }

    /// The voice has come to the end.
    fn ends(&mut self, number: u64) {
        let end = format!("702-{number}\r\n702-1\r\n702 END\r\n");
        self.connection().write_all(end.as_bytes()).expect("it listens");
    }
}

/// Answers as a speech server does.
fn converse(mut stream: &UnixStream, told: &Sender<Spoken>) {
    let mut lines = BufReader::new(stream.try_clone().expect("a stream")).lines();
    let mut number = 0;
    while let Some(Ok(line)) = lines.next() {
        let answer = match line.as_str() {
            "GET LANGUAGE" => "251-en\r\n251 OK\r\n".to_owned(),
            "LIST SYNTHESIS_VOICES" => "249-v\ten\tnone\r\n249 OK\r\n".to_owned(),
            "SPEAK" => {
                stream.write_all(b"230 OK\r\n").expect("it listens");
                let words = lines.by_ref().map_while(Result::ok).take_while(|it| it != ".");
                let words = words.collect::<Vec<_>>().join(" ");
                number += 1;
                let _ = told.send(Some((number, words)));
                format!("225-{number}\r\n225 OK\r\n701-{number}\r\n701-1\r\n701 BEGIN\r\n")
            }
            "CANCEL SELF" => {
                let _ = told.send(None);
                format!("210 OK\r\n703-{number}\r\n703-1\r\n703 CANCELED\r\n")
            }
            _ => "200 OK\r\n".to_owned(),
        };
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// Someone who hears this voice and reads lines.
fn subscriber() -> (Ear, Voice) {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("voice.sock");
    let mut voice = Voice::start(&socket);
    let hub = Hub::serve(folder.path(), "127.0.0.1:0");
    let address = format!("unix_socket:{}", socket.display());
    let ear = Ear::start_with(folder, hub, &["--speech"], &[("SPEECHD_ADDRESS", &address)]);
    let (number, _) = voice.speaks("Listening.");
    voice.ends(number);
    (ear, voice)
}

const TOO_SOON: &str =
    "You began to type before the question was told to its end. Nothing was answered.";

#[test]
fn a_yes_in_the_midst_of_the_question_counts_for_nothing_and_the_question_is_told_again() {
    let (mut ear, mut voice) = subscriber();
    let asking = ear.ask(DANGEROUS);
    voice.speaks("Delete 240 photos?");
    ear.hears("Answer yes or no: ");
    ear.types("1 yes");
    ear.hears(TOO_SOON);
    // The voice says so at once, and then the question from its beginning.
    let (number, _) = voice.speaks("Nothing was answered.");
    voice.ends(number);
    let (number, _) = voice.speaks("Delete 240 photos?");
    // From elsewhere it is the same.
    let answered = ear.aaep(&["answer", "1", "yes"]).output().expect("aaep runs");
    assert_eq!(answered.status.code(), Some(1));
    assert!(out(&answered).contains("was not told to you to its end"), "{}", out(&answered));
    voice.ends_question(number);
    let mut answered = None;
    // The end is known when it was taken in, which nobody is told.
    while answered.is_none() {
        ear.types("1 yes");
        let told = ear.hears_any(&["settled: Accepted.", TOO_SOON]);
        answered = told.contains("Accepted.").then_some(told);
    }
    assert_eq!(outcome(asking), (Some(0), "accept\n".to_owned()));
}

#[test]
fn who_stops_the_voice_has_not_heard_the_end_but_can_say_no() {
    let (mut ear, mut voice) = subscriber();
    let asking = ear.ask(DANGEROUS);
    voice.speaks("Delete 240 photos?");
    ear.types("stop");
    while voice.spoken.recv_timeout(PATIENCE).expect("it is stopped").is_some() {}
    ear.types("1 yes");
    ear.hears(TOO_SOON);
    let (number, _) = voice.speaks("Nothing was answered.");
    voice.ends(number);
    voice.speaks("Delete 240 photos?");
    ear.types("1 no");
    assert_eq!(outcome(asking), (Some(1), "reject\n".to_owned()));
}

#[test]
fn a_yes_that_was_begun_before_the_end_does_not_count_after_it() {
    let (mut ear, mut voice) = subscriber();
    let asking = ear.ask(DANGEROUS);
    let (number, _) = voice.speaks("Delete 240 photos?");
    ear.hears("Answer yes or no: ");
    ear.begins_to_type("1 ye");
    voice.ends_question(number);
    ear.begins_to_type("s\n");
    // On a slow machine not even the beginning may be known by then.
    ear.hears("Nothing was answered.");
    ear.types("1 no");
    assert_eq!(outcome(asking), (Some(1), "reject\n".to_owned()));
}

#[test]
fn a_yes_that_was_begun_in_the_midst_of_the_question_does_not_count_when_the_voice_is_gone() {
    let (mut ear, mut voice) = subscriber();
    let asking = ear.ask(DANGEROUS);
    voice.speaks("Delete 240 photos?");
    ear.hears("Answer yes or no: ");
    ear.begins_to_type("1 ye");
    voice.goes();
    ear.hears("About speech:");
    ear.begins_to_type("s\n");
    ear.hears("Nothing was answered.");
    // Without the voice, the lines are enough for whoever begins to type now.
    let told = loop {
        ear.types("1 yes");
        let told = ear.hears_any(&["settled:", "Nothing was answered."]);
        if told.contains("settled:") {
            break told;
        }
    };
    assert!(!told.contains("It works again."), "{told}");
    assert_eq!(outcome(asking), (Some(0), "accept\n".to_owned()));
}

#[test]
fn the_voice_is_given_all_of_an_ask() {
    let (ear, mut voice) = subscriber();
    let asking =
        ear.ask(&["Pay DE89370400440532013000, ~~do not~~ run __init__", "--risk", "high"]);
    let (number, said) = voice.speaks("Pay");
    let said = said + &voice.ends_question(number);
    for words in [
        "Pay D E 8 9, 3 7 0 4, 0 0 4 4, 0 5 3 2, 0 1 3 0, 0 0 comma tilde tilde do not tilde tilde run",
        "run underscore underscore init underscore underscore",
        "High risk.",
    ] {
        assert!(said.contains(words), "{said}");
    }
    let answered = ear.aaep(&["answer", "1", "no"]).output().expect("aaep runs");
    assert_eq!(out(&answered), "You refused it.\n");
    assert_eq!(outcome(asking), (Some(1), "reject\n".to_owned()));
}
