//! A subscriber that is cut off two hundred times on each wire of a real hub, and hears everything once.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use aaep::Payload;
use aaep::event::action::CoalesceBoundary;
use aaep_subscriber::blocking::{Subscriber, connect};
use aaep_subscriber::{News, Wishes};
use serde_json::json;

use crate::support::{Hub, post};

const CUTS: usize = 200;
const PATIENCE: Duration = Duration::from_mins(2);

/// Random numbers that a seed repeats.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// A connection of either kind.
trait Stream: Read + Write + Send + Sized + 'static {
    fn another(&self) -> Self;
    fn cut(&self);
}

impl Stream for TcpStream {
    fn another(&self) -> Self {
        self.try_clone().expect("a handle")
    }

    fn cut(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl Stream for UnixStream {
    fn another(&self) -> Self {
        self.try_clone().expect("a handle")
    }

    fn cut(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

/// Stands between a subscriber and its hub, and cuts connections after some bytes of what the hub says.
struct Cutter {
    dice: Mutex<Dice>,
    cuts: AtomicUsize,
}

impl Cutter {
    fn pass<S: Stream>(self: &Arc<Self>, subscriber: S, hub: S) {
        let (mut from, mut to) = (subscriber.another(), hub.another());
        thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            to.cut();
        });
        let cutter = Arc::clone(self);
        thread::spawn(move || cutter.carry(&subscriber, &hub));
    }

    /// Carries what the hub says, up to the moment of the cut.
    fn carry<S: Stream>(&self, subscriber: &S, hub: &S) {
        let mut left = self.next_cut();
        let (mut to, mut from) = (subscriber.another(), hub.another());
        let mut buffer = [0; 512];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let count = left.map_or(count, |left| count.min(left));
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
            left = left.map(|left| left - count);
            if left == Some(0) {
                self.cuts.fetch_add(1, Ordering::SeqCst);
                break;
            }
        }
        subscriber.cut();
        hub.cut();
    }

    fn next_cut(&self) -> Option<usize> {
        let roll = self.dice.lock().expect("dice").roll(6000);
        (self.cuts.load(Ordering::SeqCst) < CUTS).then_some(usize::try_from(roll).unwrap_or(1) + 1)
    }
}

fn cutter(seed: u64) -> Arc<Cutter> {
    Arc::new(Cutter { dice: Mutex::new(Dice(seed)), cuts: AtomicUsize::new(0) })
}

/// An address whose connections lead to the hub and are cut.
fn cut_tcp(cutter: &Arc<Cutter>, hub: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (cutter, hub) = (Arc::clone(cutter), hub.to_owned());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let Ok(to) = TcpStream::connect(&hub) else { return };
            cutter.pass(stream, to);
        }
    });
    address
}

fn cut_unix(cutter: &Arc<Cutter>, folder: &Path, hub: PathBuf) -> PathBuf {
    let path = folder.join("cut.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    let cutter = Arc::clone(cutter);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let Ok(to) = UnixStream::connect(&hub) else { return };
            cutter.pass(stream, to);
        }
    });
    path
}

/// Speaks piece by piece until the subscriber was cut off often enough. Returns everything that was said.
fn speak(origin: &str, cutter: &Cutter) -> String {
    let publish = |event: &serde_json::Value| {
        let (status, body) = post(origin, "/aaep/v1/publish", event);
        assert!((200..300).contains(&status), "{status} {body}");
        body
    };
    let producer = json!({ "agent_id": "reciter" });
    let begun = publish(&json!({
        "type": "aaep:agent.session.started", "producer": producer, "summary_normal": "Reciting.",
    }));
    let session_id = begun["session_id"].clone();
    let (mut said, mut position) = (String::new(), 0);
    for number in 0.. {
        let is_last = cutter.cuts.load(Ordering::SeqCst) >= CUTS && number > 200;
        let chunk = format!("{number} ");
        publish(&json!({
            "type": "aaep:agent.output.streaming", "producer": producer, "session_id": session_id,
            "chunk": chunk, "position": position, "complete": is_last,
        }));
        position += chunk.len();
        said.push_str(&chunk);
        if is_last {
            break;
        }
        thread::sleep(Duration::from_millis(3));
    }
    publish(&json!({
        "type": "aaep:agent.session.completed", "producer": producer, "session_id": session_id,
        "summary_normal": "Recited.",
    }));
    said
}

/// Hears one session, up to its end. Returns its text, and how often the connection returned.
pub(crate) fn hear_everything(subscriber: &mut Subscriber, patience: Duration) -> (String, usize) {
    let (mut heard, mut started, mut reconnected) = (String::new(), 0, 0);
    loop {
        match subscriber.next_within(patience).expect("news in time").expect("news") {
            News::Event(event) => match &event.payload {
                Payload::SessionStarted(_) => started += 1,
                Payload::OutputStreaming(piece) => heard.push_str(&piece.chunk),
                Payload::SessionCompleted(_) => break,
                _ => {}
            },
            News::Reconnected => reconnected += 1,
            News::Gap { .. } => panic!("something was lost"),
            News::Ended(ended) => panic!("{ended}"),
            _ => {}
        }
    }
    assert_eq!(started, 1, "the session begins once");
    (heard, reconnected)
}

fn hears_everything_once(origin: &str, address: &str, cutter: &Arc<Cutter>) {
    let mut wishes = Wishes::new("reader").longest_wait(Duration::from_millis(20));
    wishes.capabilities.coalesce_boundaries = Some(vec![CoalesceBoundary::None]);
    // The first line may be cut before there is a subscription.
    let mut subscriber = loop {
        match connect(address, wishes.clone()) {
            Ok(subscriber) => break subscriber,
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    };
    let (speaker, origin) = (Arc::clone(cutter), origin.to_owned());
    let speaking = thread::spawn(move || speak(&origin, &speaker));
    let (heard, reconnected) = hear_everything(&mut subscriber, PATIENCE);
    let said = speaking.join().expect("spoken");
    assert!(cutter.cuts.load(Ordering::SeqCst) >= CUTS && reconnected > CUTS / 4, "{reconnected}");
    assert!(heard == said, "{address}: heard {} of {} characters", heard.len(), said.len());
}

#[test]
fn a_subscriber_cut_off_two_hundred_times_on_server_sent_events_hears_everything_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::serve(folder.path(), "127.0.0.1:0");
    let cutter = cutter(0x5eed_0001);
    let place = cut_tcp(&cutter, &hub.origin.replace("http://", ""));
    hears_everything_once(&hub.origin, &format!("http://{place}/aaep/v1/events"), &cutter);
}

#[test]
fn a_subscriber_cut_off_two_hundred_times_on_a_websocket_hears_everything_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::serve(folder.path(), "127.0.0.1:0");
    let cutter = cutter(0x5eed_0002);
    let place = cut_tcp(&cutter, &hub.origin.replace("http://", ""));
    hears_everything_once(&hub.origin, &format!("ws://{place}/aaep/v1/ws"), &cutter);
}

#[test]
fn a_subscriber_cut_off_two_hundred_times_on_a_unix_socket_hears_everything_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::serve(folder.path(), "127.0.0.1:0");
    let cutter = cutter(0x5eed_0003);
    let path = cut_unix(&cutter, folder.path(), folder.path().join("aaep/aaep-hub.sock"));
    hears_everything_once(&hub.origin, &format!("unix:{}", path.display()), &cutter);
}

#[test]
fn a_subscriber_cut_off_two_hundred_times_on_grpc_hears_everything_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::serve(folder.path(), "127.0.0.1:0");
    let cutter = cutter(0x5eed_0004);
    let place = cut_tcp(&cutter, &hub.origin.replace("http://", ""));
    hears_everything_once(&hub.origin, &format!("grpc://{place}"), &cutter);
}
