//! Measures what one delivery to one subscriber costs on the wire, against a loop that only writes.
//!
//! `cargo run --release -p aaep-transport --example fan_out -- [LISTENERS] [EVENTS]`. Linux only, because it
//! reads the processor time of a thread from `/proc`. A second process reads. Both ways are measured in
//! turn several times and the best of each counts, because a shared machine swings.
#![expect(clippy::print_stdout, reason = "it is a program that prints figures")]

use std::env;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command as Process, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use aaep_transport::wire::{
    Command, Flow, Reports, Socket, Wire, WireReport, WireSettings, WireSubscriber,
};
use aaep_transport::{Protocol, WirePacket};
use mio::{Events, Interest, Poll, Token};

const PROTOCOLS: [(&str, Protocol); 2] =
    [("SSE", Protocol::SseChunked { named: true }), ("WebSocket", Protocol::WebSocket)];
const EVENT_BYTES: usize = 500;
const ROUNDS: usize = 3;
const BURST: usize = 32;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [first, address, subscribers, bytes] = arguments.as_slice()
        && first == "read"
    {
        let number = |text: &String| text.parse().expect("a number");
        return read(address.parse().expect("an address"), number(subscribers), number(bytes));
    }
    let number =
        |at: usize, usual| arguments.get(at).map_or(usual, |text| text.parse().expect("a number"));
    let (subscribers, events) = (number(0, 1000), number(1, 500));
    println!("{subscribers} subscribers, {EVENT_BYTES} bytes an event, best of {ROUNDS}.");
    for (name, protocol) in PROTOCOLS {
        for burst in [1, BURST] {
            compare(name, protocol, subscribers, events * burst.min(8), burst);
        }
    }
}

fn compare(name: &str, protocol: Protocol, subscribers: usize, events: usize, burst: usize) {
    let events = events / burst * burst;
    let packet = Arc::new(WirePacket::new("evt_0123456789abcdef", vec![b'x'; EVENT_BYTES]));
    let mut best = [Figures::WORST; 2];
    for _ in 0..ROUNDS {
        best[0] = best[0].better(bare(&packet, protocol, subscribers, events, burst));
        best[1] = best[1].better(wire(&packet, protocol, subscribers, events, burst));
    }
    println!("{name}, {burst} at a time:");
    for (what, figures) in ["only writing", "the wire"].iter().zip(&best) {
        println!(
            "  {what}: {:.2} processor seconds per million deliveries, {:.0} deliveries a second, \
             {:.2} KB an idle subscriber",
            figures.cpu, figures.rate, figures.idle_kb
        );
    }
    println!("  ratio of processor time: {:.2}", best[1].cpu / best[0].cpu);
}

#[derive(Clone, Copy)]
struct Figures {
    /// Processor seconds of the writing thread per million deliveries.
    cpu: f64,
    /// Deliveries a second.
    rate: f64,
    /// What one idle subscriber takes in this process.
    idle_kb: f64,
}

impl Figures {
    const WORST: Self = Self { cpu: f64::INFINITY, rate: 0.0, idle_kb: 0.0 };

    fn better(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.min(other.cpu),
            rate: self.rate.max(other.rate),
            // Only the first round needs memory that the process did not have.
            idle_kb: self.idle_kb.max(other.idle_kb),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    fn of(deliveries: usize, cpu: Duration, took: Duration, idle_kb: f64) -> Self {
        let millions = deliveries as f64 / 1e6;
        Self {
            cpu: cpu.as_secs_f64() / millions,
            rate: deliveries as f64 / took.as_secs_f64(),
            idle_kb,
        }
    }
}

/// The limit: a loop that does nothing but write the same bytes.
fn bare(
    packet: &WirePacket,
    protocol: Protocol,
    subscribers: usize,
    events: usize,
    burst: usize,
) -> Figures {
    let bytes = packet.bytes(protocol).repeat(burst);
    let mut readers = Readers::new(subscribers, packet.bytes(protocol).len());
    let mut sockets = readers.accept(subscribers);
    for socket in &sockets {
        socket.set_nonblocking(true).expect("an option");
        socket.set_nodelay(true).expect("an option");
    }
    let (began, cpu) = (Instant::now(), cpu_of("self"));
    for _ in 0..events / burst {
        for socket in &mut sockets {
            let written = socket.write(&bytes).expect("there is room");
            assert_eq!(written, bytes.len(), "there is room for all");
        }
        readers.wait(burst);
    }
    Figures::of(events * subscribers, cpu_of("self").saturating_sub(cpu), began.elapsed(), 0.0)
}

struct Deaf;

impl Reports for Deaf {
    fn report(&mut self, _report: WireReport) -> Flow {
        // Whoever were lost would be missed: the readers say when everyone has got an event.
        Flow::Continue
    }
}

fn wire(
    packet: &Arc<WirePacket>,
    protocol: Protocol,
    subscribers: usize,
    events: usize,
    burst: usize,
) -> Figures {
    let mut readers = Readers::new(subscribers, packet.bytes(protocol).len());
    let wire = Wire::start(WireSettings::default(), Deaf).expect("a loop");
    let handle = wire.handle();
    let sockets = readers.accept(subscribers);
    let before_kb = memory_kb();
    let mut to = Vec::new();
    for (subscriber, socket) in (0..).map(WireSubscriber).zip(sockets) {
        let (connection, socket) = (handle.new_key(), Socket::Tcp(socket));
        let add = Command::Add { connection, socket, protocol, read_ahead: Vec::new() };
        handle.send(vec![add, Command::Attach { connection, subscriber }]).expect("runs");
        to.push(subscriber);
    }
    let deliver = || Command::Deliver { packet: Arc::clone(packet), to: to.clone() };
    handle.send(vec![deliver()]).expect("runs");
    readers.wait(1);
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    let idle_kb = memory_kb().saturating_sub(before_kb) as f64 / subscribers as f64;
    let thread = thread_named("aaep-wire-0");
    let (began, cpu) = (Instant::now(), cpu_of(&thread));
    for _ in 0..events / burst {
        handle.send((0..burst).map(|_| deliver()).collect()).expect("runs");
        readers.wait(burst);
    }
    let figures = Figures::of(
        events * subscribers,
        cpu_of(&thread).saturating_sub(cpu),
        began.elapsed(),
        idle_kb,
    );
    drop(readers);
    thread::spawn(move || wire.join()).join().expect("a thread");
    figures
}

/// The process that reads, and how it says that everyone has got an event.
struct Readers {
    listener: TcpListener,
    child: Child,
    heard: ChildStdout,
}

impl Readers {
    fn new(subscribers: usize, bytes: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut child = Process::new(env::current_exe().expect("a name"))
            .arg("read")
            .arg(listener.local_addr().expect("an address").to_string())
            .args([subscribers, bytes].map(|it| it.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let heard = child.stdout.take().expect("piped");
        Self { listener, child, heard }
    }

    fn accept(&self, subscribers: usize) -> Vec<TcpStream> {
        (0..subscribers).map(|_| self.listener.accept().expect("accepts").0).collect()
    }

    fn wait(&mut self, events: usize) {
        self.heard.read_exact(&mut vec![0; events]).expect("the readers live");
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.child.kill().expect("may be killed");
        self.child.wait().expect("has ended");
    }
}

/// The reading process: says one byte for each event that everyone has got.
fn read(address: SocketAddr, subscribers: usize, event_bytes: usize) {
    let mut poll = Poll::new().expect("a poll");
    let mut sockets: Vec<mio::net::TcpStream> = (0..subscribers)
        .map(|_| {
            let socket = TcpStream::connect(address).expect("connects");
            socket.set_nonblocking(true).expect("an option");
            mio::net::TcpStream::from_std(socket)
        })
        .collect();
    for (at, socket) in sockets.iter_mut().enumerate() {
        poll.registry().register(socket, Token(at), Interest::READABLE).expect("registers");
    }
    let mut events = Events::with_capacity(1024);
    let mut buffer = vec![0; 64 << 10];
    let (mut bytes, mut told) = (0, 0);
    let mut out = std::io::stdout();
    loop {
        poll.poll(&mut events, None).expect("polls");
        for event in &events {
            while let Ok(count) = sockets[event.token().0].read(&mut buffer) {
                if count == 0 {
                    return;
                }
                bytes += count;
            }
        }
        let heard = bytes / (subscribers * event_bytes);
        if heard > told {
            out.write_all(&vec![b'.'; heard - told]).expect("someone listens");
            out.flush().expect("someone listens");
            told = heard;
        }
    }
}

/// The processor time of a thread of this process, or of the one that asks.
fn cpu_of(thread: &str) -> Duration {
    let path = match thread {
        "self" => "/proc/thread-self/schedstat".to_owned(),
        thread => format!("/proc/self/task/{thread}/schedstat"),
    };
    let text = fs::read_to_string(path).expect("Linux");
    let nanoseconds = text.split_whitespace().next().expect("a figure").parse().expect("a number");
    Duration::from_nanos(nanoseconds)
}

fn thread_named(name: &str) -> String {
    let threads = fs::read_dir("/proc/self/task").expect("Linux").flatten();
    let mut numbers = threads.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let has_name = |number: &String| {
        fs::read_to_string(format!("/proc/self/task/{number}/comm"))
            .is_ok_and(|it| it.trim() == name)
    };
    numbers.find(has_name).expect("the thread runs")
}

/// The private memory of this process.
fn memory_kb() -> u64 {
    let text = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a figure");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
