//! Faulty servers of speech and braille: silence, nonsense, floods, refusals.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use aaep_announce::device::{Device, DeviceAddress, braille, speech};
use aaep_announce::{DeviceReport, Order, Weight};

use crate::patience::{PATIENCE, Reports, utterance, wait_until};

/// How long a device waits for the servers here.
const SHORT: Duration = Duration::from_millis(300);

/// Settings that lead to a server which treats every connection in this way.
fn fake(treat: impl Fn(TcpStream) + Send + Sync + Copy + 'static) -> speech::Settings {
    speech::Settings { patience: SHORT, ..speech::Settings::new(fake_server(treat)) }
}

/// The address of a server that treats every connection in this way.
fn fake_server(treat: impl Fn(TcpStream) + Send + Sync + Copy + 'static) -> DeviceAddress {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || treat(stream));
        }
    });
    DeviceAddress::Tcp("127.0.0.1".to_owned(), port)
}

fn start(settings: speech::Settings) -> (Device, Reports) {
    let (sender, reports) = Reports::new();
    (speech::start(settings, sender).expect("it starts"), reports)
}

/// Gives the device far more orders than it may keep waiting, and requires that none of them waits.
fn nothing_waits(device: &Device, reports: &mut Reports) {
    let began = Instant::now();
    for id in 0..40 {
        device
            .tell(Order::Say(utterance(id, Weight::Critical, "Delete?")))
            .expect("it takes orders");
    }
    assert!(began.elapsed() < PATIENCE, "the caller was kept waiting");
    for id in 0..40 {
        reports.until_is(&DeviceReport::Cut(id));
    }
    let wrong = |it: &&DeviceReport| {
        matches!(it, DeviceReport::Began(_) | DeviceReport::Ended(_) | DeviceReport::Works)
    };
    assert_eq!(reports.seen().iter().find(wrong), None);
    let troubles =
        reports.seen().iter().filter(|it| matches!(it, DeviceReport::Trouble(_))).count();
    assert_eq!(troubles, 1, "trouble is told once");
}

#[test]
fn a_server_that_accepts_and_is_silent_keeps_nobody_waiting() {
    static TRIED: AtomicUsize = AtomicUsize::new(0);
    let (device, mut reports) = start(fake(|stream| {
        TRIED.fetch_add(1, Ordering::Relaxed);
        thread::sleep(PATIENCE);
        drop(stream);
    }));
    nothing_waits(&device, &mut reports);
    // Also later, when it is tried again and again.
    let tried = TRIED.load(Ordering::Relaxed);
    wait_until("the server is tried again", || {
        (TRIED.load(Ordering::Relaxed) > tried).then_some(())
    });
    device
        .tell(Order::Say(utterance(99, Weight::Normal, "Still there?")))
        .expect("it takes orders");
    reports.until_is(&DeviceReport::Cut(99));
}

#[test]
fn a_server_that_talks_nonsense_is_left() {
    let (device, mut reports) = start(fake(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        thread::sleep(PATIENCE);
    }));
    nothing_waits(&device, &mut reports);
}

#[test]
fn a_server_that_floods_with_a_line_without_end_is_left() {
    let (device, mut reports) =
        start(fake(|mut stream| while stream.write_all(&[b'2'; 4096]).is_ok() {}));
    nothing_waits(&device, &mut reports);
}

#[test]
fn a_server_that_closes_at_once_again_and_again_is_told_once() {
    let (device, mut reports) = start(fake(drop));
    nothing_waits(&device, &mut reports);
}

/// Answers every command like a real server, except that words are refused before they are sent.
fn refuse_to_speak(stream: TcpStream) {
    let mut out = stream.try_clone().expect("a clone");
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let known =
            ["SET ", "GET ", "LIST ", "CANCEL ", "QUIT"].iter().any(|it| line.starts_with(it));
        let answer: &[u8] = match line.as_str() {
            "SPEAK" => b"304 ERR CANNOT SPEAK NOW\r\n",
            _ if known => b"200 OK\r\n",
            // The words came although they were refused: they would be commands.
            _ => b"nonsense\r\n",
        };
        if out.write_all(answer).is_err() {
            return;
        }
    }
}

#[test]
fn words_are_sent_only_to_a_server_that_takes_words() {
    let (device, mut reports) = start(fake(refuse_to_speak));
    assert_eq!(reports.next(), DeviceReport::Works);
    for id in 0..3 {
        device
            .tell(Order::Say(utterance(id, Weight::Normal, "STOP ALL")))
            .expect("it takes orders");
        assert_eq!(reports.next(), DeviceReport::Cut(id));
    }
}

fn start_braille(address: DeviceAddress) -> (Device, Reports) {
    let (sender, reports) = Reports::new();
    let settings = braille::Settings { patience: SHORT, ..braille::Settings::new(address) };
    (braille::start(settings, sender).expect("it starts"), reports)
}

#[test]
fn a_braille_server_that_accepts_and_is_silent_keeps_nobody_waiting() {
    let (device, mut reports) = start_braille(fake_server(|stream| {
        thread::sleep(PATIENCE);
        drop(stream);
    }));
    nothing_waits(&device, &mut reports);
}

#[test]
fn a_braille_server_that_floods_or_talks_nonsense_is_left() {
    let (device, mut reports) =
        start_braille(fake_server(|mut stream| while stream.write_all(&[0xff; 4096]).is_ok() {}));
    nothing_waits(&device, &mut reports);
}
