//! The limit: a server that does nothing but write the same bytes to every socket, one after the other.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;

use tempfile::TempDir;

use super::part::HelperProcess;
use super::server::FanoutServer;
use super::wire::{FanoutWire, MeasuredAddress, ServerKind};
use super::{BURST, FanoutSample};
use crate::process::ProcessUsage;

/// The server as a child of this process.
pub(super) struct RawServer {
    helper: HelperProcess,
    address: MeasuredAddress,
}

impl RawServer {
    /// Starts the server for this many subscribers and this event.
    pub(super) fn start(
        wire: FanoutWire,
        subscribers: usize,
        sample: &FanoutSample,
    ) -> Result<Self, String> {
        let mut helper = HelperProcess::start(&["only-write", wire.word()])?;
        let address = MeasuredAddress::parse(&helper.line()?)?;
        let frame = &sample.frame;
        helper.send(format!("{subscribers} {}\n", frame.len()).as_bytes())?;
        helper.send(frame)?;
        helper.line()?;
        Ok(RawServer { helper, address })
    }
}

impl FanoutServer for RawServer {
    fn kind(&self) -> ServerKind {
        ServerKind::Raw
    }

    fn address(&self) -> MeasuredAddress {
        self.address.clone()
    }

    fn complete(&mut self) -> Result<(), String> {
        self.helper.line().map(drop)
    }

    fn tell(&mut self, events: usize) -> Result<(), String> {
        self.helper.send(format!("{events}\n").as_bytes())
    }

    fn usage(&self) -> Result<ProcessUsage, String> {
        self.helper.usage()
    }
}

/// The socket on which subscribers connect.
enum RawListener {
    Tcp(TcpListener),
    Unix(UnixListener, TempDir),
}

impl RawListener {
    fn open(wire: FanoutWire) -> std::io::Result<Self> {
        if wire != FanoutWire::Unix {
            return TcpListener::bind("127.0.0.1:0").map(RawListener::Tcp);
        }
        let folder = TempDir::new()?;
        Ok(RawListener::Unix(UnixListener::bind(folder.path().join("raw.sock"))?, folder))
    }

    fn address(&self) -> std::io::Result<String> {
        Ok(match self {
            RawListener::Tcp(listener) => listener.local_addr()?.to_string(),
            RawListener::Unix(_, folder) => folder.path().join("raw.sock").display().to_string(),
        })
    }

    fn accept(&self) -> std::io::Result<File> {
        let socket: OwnedFd = match self {
            RawListener::Tcp(listener) => {
                let (socket, _) = listener.accept()?;
                socket.set_nodelay(true)?;
                socket.into()
            }
            RawListener::Unix(listener, _) => listener.accept()?.0.into(),
        };
        Ok(File::from(socket))
    }
}

/// Runs the server. It prints its address, and reads the number of subscribers, an event, and how
/// often to write it.
pub(super) fn serve(wire: FanoutWire) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let say = |text: &str| {
        let mut out = std::io::stdout();
        out.write_all(format!("{text}\n").as_bytes()).and_then(|()| out.flush()).map_err(failed)
    };
    let door = RawListener::open(wire).map_err(failed)?;
    say(&door.address().map_err(failed)?)?;
    let mut input = BufReader::new(std::io::stdin());
    let mut header = String::new();
    input.read_line(&mut header).map_err(failed)?;
    let numbers: Vec<usize> = header.split_whitespace().filter_map(|it| it.parse().ok()).collect();
    let [subscribers, length] = numbers[..] else { return Err(format!("no numbers: {header}")) };
    let mut frame = vec![0; length];
    input.read_exact(&mut frame).map_err(failed)?;
    let frames = frame.repeat(BURST);
    let mut sockets = Vec::with_capacity(subscribers);
    say("ready")?;
    for _ in 0..subscribers {
        sockets.push(door.accept().map_err(failed)?);
    }
    say("complete")?;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).map_err(failed)? == 0 {
            return Ok(());
        }
        let events: usize = line.trim().parse().map_err(|_| format!("not a number: {line}"))?;
        let bytes = frames.get(..events * length).ok_or("too many events at a time")?;
        for socket in &mut sockets {
            socket.write_all(bytes).map_err(failed)?;
        }
    }
}
