//! Many subscribers in one thread of a separate process, which has its own limit of open files.
//!
//! Received bytes are never parsed: every ordinary event contains one [`ORDINARY`], every critical
//! one one [`CRITICAL`], and every event one [`ANY`]. None of these bytes occurs anywhere else in
//! the stream.

use std::fs::File;
use std::io::{BufRead, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};

use super::crowd::{CrowdRole, FEW, SubscriberCrowd};
use super::now_ns;
use super::tally::{ArrivalTimes, EventTally};
use super::wire::{FanoutWire, ListenTarget, MeasuredAddress, ServerKind};

/// The byte that occurs once in every ordinary event.
pub(super) const ORDINARY: u8 = b'^';

/// The byte that occurs once in every critical event.
pub(super) const CRITICAL: u8 = b'|';

/// The byte that occurs once in every event: in the name of `@context`.
pub(super) const ANY: u8 = b'@';

/// The number of subscribers that connect at the same time.
const DOORS: usize = 16;

const COMMAND: Token = Token(usize::MAX);

/// A ping without content, and the answer to it with a mask of zeros.
const PING: [u8; 2] = [0x89, 0];
const PONG: [u8; 6] = [0x8a, 0x80, 0, 0, 0, 0];

#[derive(Args)]
pub(crate) struct ListenBenchOptions {
    #[arg(long)]
    kind: ServerKind,
    #[arg(long)]
    wire: FanoutWire,
    #[arg(long, value_parser = MeasuredAddress::parse)]
    address: MeasuredAddress,
    #[arg(long)]
    crowd: SubscriberCrowd,
    #[arg(long)]
    subscribers: usize,
}

/// Receives events until standard input ends.
pub(super) fn run(options: &ListenBenchOptions) -> Result<(), String> {
    let files = connect(options)?;
    let mut room = PolledSubscribers::new(files, options)?;
    let waker = Waker::new(room.poll.registry(), COMMAND).map_err(|error| error.to_string())?;
    let commands = commands(Arc::new(waker));
    say("connected")?;
    room.serve(&commands)
}

/// Connects all subscribers, several at a time.
fn connect(options: &ListenBenchOptions) -> Result<Vec<File>, String> {
    let place = ListenTarget { kind: options.kind, wire: options.wire, address: &options.address };
    let one = |subscriber: usize| {
        let reads = options.crowd.role(subscriber) != CrowdRole::Stalled;
        place.listen(&options.crowd.capabilities(subscriber), reads)
    };
    let part = |door: usize| -> Result<Vec<(usize, File)>, String> {
        (door..options.subscribers).step_by(DOORS).map(|at| Ok((at, one(at)?))).collect()
    };
    let mut files = thread::scope(|scope| {
        let part = &part;
        let doors: Vec<_> = (0..DOORS).map(|door| scope.spawn(move || part(door))).collect();
        let mut files = Vec::with_capacity(options.subscribers);
        for door in doors {
            files.extend(door.join().map_err(|_| "a door broke".to_owned())??);
        }
        Ok::<_, String>(files)
    })?;
    files.sort_unstable_by_key(|(at, _)| *at);
    Ok(files.into_iter().map(|(_, file)| file).collect())
}

/// Reads the lines of standard input; each wakes the polling thread.
fn commands(waker: Arc<Waker>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() || waker.wake().is_err() {
                return;
            }
        }
        drop(sender);
        // If the receiver has gone away, the program is ending.
        let _ = waker.wake();
    });
    receiver
}

fn say(line: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    let said = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
    said.map_err(|error| error.to_string())
}

struct ListeningSubscriber {
    file: File,
    role: CrowdRole,
    tally: EventTally,
}

/// All subscribers of this process.
struct PolledSubscribers {
    poll: Poll,
    subscribers: Vec<ListeningSubscriber>,
    answers_pings: bool,
    /// The number of subscribers that receive everything.
    full: u64,
    /// The ordinary events that arrived at those.
    came: u64,
    /// The number of ordinary events to wait for, and until when.
    waiting: Option<(u64, Instant)>,
    /// When events arrived, while that is being recorded.
    times: Option<ArrivalTimes>,
}

impl PolledSubscribers {
    fn new(files: Vec<File>, options: &ListenBenchOptions) -> Result<Self, String> {
        let poll = Poll::new().map_err(|error| error.to_string())?;
        let subscriber = |(at, file)| ListeningSubscriber {
            file,
            role: options.crowd.role(at),
            tally: EventTally::default(),
        };
        let subscribers: Vec<ListeningSubscriber> =
            files.into_iter().enumerate().map(subscriber).collect();
        let full = subscribers.iter().filter(|it| it.role == CrowdRole::Full).count() as u64;
        let answers_pings = options.wire == FanoutWire::WebSocket;
        let room = PolledSubscribers {
            poll,
            subscribers,
            answers_pings,
            full,
            came: 0,
            waiting: None,
            times: None,
        };
        for (at, subscriber) in room.subscribers.iter().enumerate() {
            rustix::io::ioctl_fionbio(&subscriber.file, true).map_err(|error| error.to_string())?;
            if subscriber.role != CrowdRole::Stalled {
                room.watch(at)?;
            }
        }
        Ok(room)
    }

    fn watch(&self, at: usize) -> Result<(), String> {
        let Some(subscriber) = self.subscribers.get(at) else { return Ok(()) };
        let number = subscriber.file.as_raw_fd();
        let mut source = SourceFd(&number);
        let watched = self.poll.registry().register(&mut source, Token(at), Interest::READABLE);
        watched.map_err(|error| error.to_string())
    }

    fn serve(&mut self, commands: &Receiver<String>) -> Result<(), String> {
        let mut events = Events::with_capacity(1024);
        let mut buffer = vec![0; 64 << 10];
        loop {
            let patience =
                self.waiting.map(|(_, until)| until.saturating_duration_since(Instant::now()));
            match self.poll.poll(&mut events, patience) {
                Err(error) if error.kind() != std::io::ErrorKind::Interrupted => {
                    return Err(error.to_string());
                }
                _ => {}
            }
            for event in &events {
                if event.token() != COMMAND {
                    self.read(event.token().0, &mut buffer);
                }
            }
            self.end_waiting()?;
            loop {
                match commands.try_recv() {
                    Ok(line) => {
                        if let Some(answer) = self.obey(&line)? {
                            say(&answer)?;
                        }
                    }
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return Ok(()),
                }
            }
            self.end_waiting()?;
        }
    }

    /// Reads what arrived at one subscriber. A read that does not fill the buffer took all there is.
    fn read(&mut self, at: usize, buffer: &mut [u8]) {
        let Some(subscriber) = self.subscribers.get_mut(at) else { return };
        loop {
            let count = subscriber.file.read(buffer).unwrap_or(0);
            let bytes = buffer.get(..count).unwrap_or_default();
            if bytes.is_empty() {
                // Nothing has arrived yet, or the connection has ended; missing events are noticed later.
                return;
            }
            if self.answers_pings && bytes == PING {
                // If this fails, the subscriber is gone, and its events will be missing.
                let _ = subscriber.file.write_all(&PONG);
                continue;
            }
            let (from, ordinary) = (subscriber.tally, subscriber.tally.take(bytes));
            if subscriber.role == CrowdRole::Full {
                self.came += ordinary;
                if let Some(times) = &mut self.times {
                    times.note(from, subscriber.tally, now_ns());
                }
            }
            if count < buffer.len() {
                return;
            }
        }
    }

    /// Reports that all awaited events arrived, or that the time is up.
    fn end_waiting(&mut self) -> Result<(), String> {
        let Some((target, until)) = self.waiting else { return Ok(()) };
        if self.came >= target {
            self.waiting = None;
            return say("reached");
        }
        if Instant::now() >= until {
            self.waiting = None;
            return say("missing");
        }
        Ok(())
    }

    /// Carries out a command line. Returns the answer, if it is available at once.
    fn obey(&mut self, line: &str) -> Result<Option<String>, String> {
        let mut words = line.split_whitespace();
        let command = words.next().unwrap_or_default();
        let numbers: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        let answer = match (command, numbers.as_slice()) {
            ("forget", []) => {
                self.subscribers.iter_mut().for_each(|it| it.tally = EventTally::default());
                self.came = 0;
                self.times = None;
                "done".to_owned()
            }
            ("wait", [events, seconds]) => {
                let until = Instant::now() + Duration::from_secs(*seconds);
                self.waiting = Some((events * self.full, until));
                return Ok(None);
            }
            ("time", []) => {
                self.times = Some(ArrivalTimes::default());
                "done".to_owned()
            }
            ("ordinary", published) => self.spread(published, false),
            ("critical", published) => self.spread(published, true),
            ("losses", [ordinary, critical]) => {
                let full = self.subscribers.iter().filter(|it| it.role == CrowdRole::Full);
                let lost = full.map(|it| it.tally.differs_from(*ordinary, *critical));
                lost.sum::<u64>().to_string()
            }
            ("most", []) => {
                let few = self.subscribers.iter().filter(|it| it.role == CrowdRole::Few);
                few.map(|it| it.tally.any).max().unwrap_or(0).to_string()
            }
            ("few", []) => {
                let few = self.subscribers.iter().filter(|it| it.role == CrowdRole::Few);
                few.map(|it| it.tally.any).sum::<u64>().to_string()
            }
            ("resume", []) => {
                let stalled = |at: &usize| self.subscribers[*at].role == CrowdRole::Stalled;
                let stalled: Vec<usize> = (0..self.subscribers.len()).filter(stalled).collect();
                stalled.into_iter().try_for_each(|at| self.watch(at))?;
                "done".to_owned()
            }
            ("overtaken", []) => self.overtaken(),
            _ => return Err(format!("not understood: {line}")),
        };
        Ok(Some(answer))
    }

    fn spread(&self, published: &[u64], critical: bool) -> String {
        let times = self.times.as_ref().map(|times| times.latencies(published, critical));
        let latencies = times.unwrap_or_default();
        let at = |part: f64| super::tally::quantile(&latencies, part);
        format!("{} {} {} {}", latencies.len(), at(0.5), at(0.99), at(0.999))
    }

    /// For each stalled subscriber that received a critical event: how many ordinary events arrived
    /// before it, and how many in all.
    fn overtaken(&self) -> String {
        let stalled = self.subscribers.iter().filter(|it| it.role == CrowdRole::Stalled);
        let heard =
            stalled.filter_map(|it| it.tally.before_critical.map(|n| (n, it.tally.ordinary)));
        heard.map(|(before, all)| format!("{before}/{all}")).collect::<Vec<_>>().join(" ")
    }
}

/// The most events that a subscriber that wants few may have received in this time, with at most
/// [`FEW`] in any second.
pub(super) fn most_allowed(took: Duration) -> u64 {
    FEW * (took.as_secs() + 2)
}
