//! The server that one would write by hand: it appends the body of each HTTP request to a file and
//! answers. It supports one request, looks only at its length, and has a thread for each
//! connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use crate::group::{GroupWriter, WriteRequest};

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

/// Starts the server, which runs until the program ends.
pub(super) fn start(writer: &GroupWriter) -> Result<SocketAddr, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let writer = writer.clone();
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let writer = writer.clone();
            thread::spawn(move || serve(stream, &writer));
        }
    });
    Ok(address)
}

/// Answers requests until the peer disconnects.
fn serve(stream: TcpStream, writer: &GroupWriter) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut stream = BufReader::new(stream);
    let (sender, stored) = mpsc::sync_channel(1);
    loop {
        let mut body = vec![0; length(&mut stream)?];
        stream.read_exact(&mut body).ok()?;
        let sender = sender.clone();
        let then = Box::new(move || {
            // A caller that has gone away needs no answer.
            let _ = sender.send(());
        });
        writer.store(WriteRequest { bytes: Arc::from(body), then }).ok()?;
        stored.recv().ok()?;
        stream.get_mut().write_all(ANSWER).ok()?;
    }
}

/// Reads the head of the next request. Returns the length of its body.
fn length(stream: &mut BufReader<TcpStream>) -> Option<usize> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().ok()?;
            }
            None if line.trim_end().is_empty() => return Some(length),
            _ => {}
        }
    }
}
