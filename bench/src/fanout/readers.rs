//! Many listeners in one thread. They count the lines that come, of which every event has the same number.

use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use mio::{Events, Interest, Poll, Token};

/// How long it is waited for events before those that are missing count as lost.
const PATIENCE: Duration = Duration::from_secs(20);

/// The listeners.
pub(super) struct Readers {
    shared: Arc<Shared>,
    reached: Receiver<()>,
}

struct Shared {
    /// The lines that each listener got.
    lines: Vec<AtomicU64>,
    total: AtomicU64,
    /// How many lines there are when all have come that are waited for.
    target: AtomicU64,
    lines_of_an_event: AtomicU64,
    /// What the first listener got, while that is wanted.
    sample: Mutex<Option<Vec<u8>>>,
}

impl Readers {
    /// Reads from these sockets from now on.
    pub(super) fn start(sockets: Vec<TcpStream>) -> Result<Self, String> {
        let lines = sockets.iter().map(|_| AtomicU64::new(0)).collect();
        let shared = Arc::new(Shared {
            lines,
            total: AtomicU64::new(0),
            target: AtomicU64::new(u64::MAX),
            lines_of_an_event: AtomicU64::new(1),
            sample: Mutex::new(Some(Vec::new())),
        });
        let (sender, reached) = mpsc::channel();
        let mut poll = Poll::new().map_err(|error| error.to_string())?;
        let mut polled = Vec::new();
        for (at, socket) in sockets.into_iter().enumerate() {
            socket.set_nonblocking(true).map_err(|error| error.to_string())?;
            let mut socket = mio::net::TcpStream::from_std(socket);
            let registered = poll.registry().register(&mut socket, Token(at), Interest::READABLE);
            registered.map_err(|error| error.to_string())?;
            polled.push(socket);
        }
        let reading = Arc::clone(&shared);
        thread::spawn(move || read(&mut poll, &mut polled, &reading, &sender));
        Ok(Readers { shared, reached })
    }

    pub(super) fn listeners(&self) -> usize {
        self.shared.lines.len()
    }

    /// Nothing has come, as of now.
    pub(super) fn forget(&self) {
        self.shared.target.store(u64::MAX, Ordering::SeqCst);
        while self.reached.try_recv().is_ok() {}
        for lines in &self.shared.lines {
            lines.store(0, Ordering::SeqCst);
        }
        self.shared.total.store(0, Ordering::SeqCst);
    }

    /// Waits until everyone has so many events since the last [`Readers::forget`]; whether they have.
    pub(super) fn wait(&self, events: usize) -> bool {
        let lines = self.shared.lines_of_an_event.load(Ordering::SeqCst);
        let target = (events * self.listeners()) as u64 * lines;
        self.shared.target.store(target, Ordering::SeqCst);
        loop {
            if self.shared.total.load(Ordering::SeqCst) >= target {
                return true;
            }
            if self.reached.recv_timeout(PATIENCE).is_err() {
                return self.shared.total.load(Ordering::SeqCst) >= target;
            }
        }
    }

    /// How many deliveries are missing, or came too often, of so many events for each listener.
    pub(super) fn losses(&self, events: usize) -> u64 {
        let each = self.shared.lines_of_an_event.load(Ordering::SeqCst);
        let wanted = events as u64 * each;
        let differences = self
            .shared
            .lines
            .iter()
            .map(|lines| lines.load(Ordering::SeqCst).abs_diff(wanted).div_ceil(each));
        differences.sum()
    }

    /// From now on, every event has so many lines.
    pub(super) fn count_by(&self, lines_of_an_event: u64) {
        self.shared.lines_of_an_event.store(lines_of_an_event, Ordering::SeqCst);
    }

    /// Everything that the first listener has got so far, or since this was asked before.
    pub(super) fn sample(&self) -> Vec<u8> {
        let mut sample = self.shared.sample.lock().unwrap_or_else(PoisonError::into_inner);
        sample.replace(Vec::new()).unwrap_or_default()
    }

    /// What comes is only counted from now on.
    pub(super) fn end_sample(&self) {
        *self.shared.sample.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// How many lines end in these bytes.
#[expect(clippy::naive_bytecount, reason = "the compiler makes it fast enough for this")]
pub(super) fn lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

fn read(
    poll: &mut Poll,
    sockets: &mut [mio::net::TcpStream],
    shared: &Shared,
    reached: &Sender<()>,
) {
    let mut events = Events::with_capacity(1024);
    let mut buffer = vec![0; 64 << 10];
    loop {
        if poll.poll(&mut events, None).is_err_and(|error| error.kind() != ErrorKind::Interrupted) {
            return;
        }
        let mut came = 0;
        for event in &events {
            let at = event.token().0;
            let Some(socket) = sockets.get_mut(at) else { continue };
            // A connection that ended brings nothing more, and what is missing is noticed.
            while let Ok(count @ 1..) = socket.read(&mut buffer) {
                let bytes = buffer.get(..count).unwrap_or_default();
                let lines = lines(bytes);
                came += lines;
                if let Some(counter) = shared.lines.get(at) {
                    counter.fetch_add(lines, Ordering::SeqCst);
                }
                if at == 0
                    && let Some(sample) =
                        &mut *shared.sample.lock().unwrap_or_else(PoisonError::into_inner)
                {
                    sample.extend_from_slice(bytes);
                }
            }
        }
        let total = shared.total.fetch_add(came, Ordering::SeqCst) + came;
        if total >= shared.target.load(Ordering::SeqCst) && reached.send(()).is_err() {
            return;
        }
    }
}
