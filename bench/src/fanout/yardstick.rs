//! The yardstick: a server that does nothing but write the same bytes to every socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::readers::{Readers, lines};
use super::{BURST, Server};
use crate::process::Usage;

/// The server as a child of this process.
pub(super) struct Yardstick {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Yardstick {
    /// Starts it with so many listeners and an event. The third is how much memory the listeners take.
    pub(super) fn start(listeners: usize, frame: &[u8]) -> Result<(Self, Readers, f64), String> {
        let failed = |error: std::io::Error| format!("the server that only writes: {error}");
        let program = std::env::current_exe().map_err(failed)?;
        let mut child = Command::new(program)
            .args(["fanout", "--only-write"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let to = child.stdin.take().ok_or("no pipe")?;
        let from = BufReader::new(child.stdout.take().ok_or("no pipe")?);
        let mut yardstick = Yardstick { child, to, from };
        let port: u16 = yardstick.line()?.parse().map_err(|_| "no port".to_owned())?;
        let header = format!("{listeners} {}\n", frame.len());
        yardstick.to.write_all(header.as_bytes()).map_err(failed)?;
        yardstick.to.write_all(frame).map_err(failed)?;
        yardstick.to.flush().map_err(failed)?;
        yardstick.line()?;
        let before = yardstick.usage()?.bytes;
        let connect = |_| TcpStream::connect(("127.0.0.1", port)).map_err(failed);
        let sockets = (0..listeners).map(connect).collect::<Result<Vec<_>, _>>()?;
        yardstick.line()?;
        let memory = yardstick.usage()?.bytes - before;
        let readers = Readers::start(sockets)?;
        readers.end_sample();
        readers.count_by(lines(frame));
        Ok((yardstick, readers, memory))
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.from.read_line(&mut line) {
            Ok(1..) => Ok(line.trim_end().to_owned()),
            _ => Err("the server that only writes is gone".to_owned()),
        }
    }
}

impl Server for Yardstick {
    fn tell(&mut self, events: usize) -> Result<(), String> {
        let line = format!("{events}\n");
        self.to.write_all(line.as_bytes()).map_err(|error| error.to_string())?;
        self.to.flush().map_err(|error| error.to_string())
    }

    fn usage(&self) -> Result<Usage, String> {
        Usage::of(self.child.id())
    }
}

impl Drop for Yardstick {
    fn drop(&mut self) {
        // One that is gone already is as wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server itself: its port goes out; the number of listeners, an event, and how often to write it
/// come in.
pub(super) fn serve() -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let say = |text: &str| {
        let mut out = std::io::stdout();
        out.write_all(format!("{text}\n").as_bytes()).and_then(|()| out.flush()).map_err(failed)
    };
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    say(&listener.local_addr().map_err(failed)?.port().to_string())?;
    let mut input = BufReader::new(std::io::stdin());
    let mut header = String::new();
    input.read_line(&mut header).map_err(failed)?;
    let numbers: Vec<usize> = header.split_whitespace().filter_map(|it| it.parse().ok()).collect();
    let [listeners, length] = numbers[..] else { return Err(format!("no numbers: {header}")) };
    let mut frame = vec![0; length];
    input.read_exact(&mut frame).map_err(failed)?;
    let frames = frame.repeat(BURST);
    say("ready")?;
    let mut sockets = Vec::with_capacity(listeners);
    for _ in 0..listeners {
        let (socket, _) = listener.accept().map_err(failed)?;
        socket.set_nodelay(true).map_err(failed)?;
        sockets.push(socket);
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
