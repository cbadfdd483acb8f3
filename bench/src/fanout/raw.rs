//! The limit: a server that does nothing but write the same bytes to every socket, one after the other.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;

use tempfile::TempDir;

use super::part::Helper;
use super::server::Server;
use super::wire::{Address, Kind, Wire};
use super::{BURST, Sample};
use crate::process::Usage;

/// The server as a child of this process.
pub(super) struct Raw {
    helper: Helper,
    address: Address,
}

impl Raw {
    /// Starts it for so many subscribers and an event.
    pub(super) fn start(wire: Wire, subscribers: usize, sample: &Sample) -> Result<Self, String> {
        let mut helper = Helper::start(&["only-write", wire.word()])?;
        let address = Address::parse(&helper.line()?)?;
        let frame = &sample.frame;
        helper.send(format!("{subscribers} {}\n", frame.len()).as_bytes())?;
        helper.send(frame)?;
        helper.line()?;
        Ok(Raw { helper, address })
    }
}

impl Server for Raw {
    fn kind(&self) -> Kind {
        Kind::Raw
    }

    fn address(&self) -> Address {
        self.address.clone()
    }

    fn complete(&mut self) -> Result<(), String> {
        self.helper.line().map(drop)
    }

    fn tell(&mut self, events: usize) -> Result<(), String> {
        self.helper.send(format!("{events}\n").as_bytes())
    }

    fn usage(&self) -> Result<Usage, String> {
        self.helper.usage()
    }
}

/// Where subscribers come in.
enum Door {
    Tcp(TcpListener),
    Unix(UnixListener, TempDir),
}

impl Door {
    fn open(wire: Wire) -> std::io::Result<Self> {
        if wire != Wire::Unix {
            return TcpListener::bind("127.0.0.1:0").map(Door::Tcp);
        }
        let folder = TempDir::new()?;
        Ok(Door::Unix(UnixListener::bind(folder.path().join("raw.sock"))?, folder))
    }

    fn address(&self) -> std::io::Result<String> {
        Ok(match self {
            Door::Tcp(listener) => listener.local_addr()?.to_string(),
            Door::Unix(_, folder) => folder.path().join("raw.sock").display().to_string(),
        })
    }

    fn accept(&self) -> std::io::Result<File> {
        let socket: OwnedFd = match self {
            Door::Tcp(listener) => {
                let (socket, _) = listener.accept()?;
                socket.set_nodelay(true)?;
                socket.into()
            }
            Door::Unix(listener, _) => listener.accept()?.0.into(),
        };
        Ok(File::from(socket))
    }
}

/// The server itself: its address goes out; the number of subscribers, an event, and how often to write it
/// come in.
pub(super) fn serve(wire: Wire) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let say = |text: &str| {
        let mut out = std::io::stdout();
        out.write_all(format!("{text}\n").as_bytes()).and_then(|()| out.flush()).map_err(failed)
    };
    let door = Door::open(wire).map_err(failed)?;
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
        let events: usize = line.trim().parse().map_err(|_| format!("no number: {line}"))?;
        let bytes = frames.get(..events * length).ok_or("too many events at a time")?;
        for socket in &mut sockets {
            socket.write_all(bytes).map_err(failed)?;
        }
    }
}
