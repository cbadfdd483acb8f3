//! Just enough of HTTP, server-sent events and WebSocket, independent of the hub's own code.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tungstenite::protocol::Role;
use tungstenite::{Message as Frame, WebSocket};

use crate::board::Board;

/// The connection broke, or there was none. Whether the hub did what was asked is not known.
#[derive(Debug)]
pub(crate) struct Cut;

impl From<io::Error> for Cut {
    fn from(_: io::Error) -> Self {
        // The hub may be down for a moment, so wait.
        thread::sleep(Duration::from_millis(2));
        Cut
    }
}

/// What the hub answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    /// Whether the hub cannot do it at present, so that the request is sent again.
    pub(crate) fn is_busy(&self) -> bool {
        self.status == 503
    }
}

/// A client that sends each request on its last connection, if that is still open.
pub(crate) struct Client {
    board: Arc<Board>,
    connection: Option<(u64, BufReader<TcpStream>)>,
}

impl Client {
    pub(crate) fn new(board: &Arc<Board>) -> Self {
        Client { board: Arc::clone(board), connection: None }
    }

    pub(crate) fn get(&mut self, path: &str) -> Result<Answer, Cut> {
        self.request("GET", path, "", "")
    }

    pub(crate) fn delete(&mut self, path: &str) -> Result<Answer, Cut> {
        self.request("DELETE", path, "", "")
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Result<Answer, Cut> {
        self.request("POST", path, "content-type: application/json\r\n", &body.to_string())
    }

    pub(crate) fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Result<Answer, Cut> {
        let answered = self.try_request(method, path, headers, body);
        if answered.is_err() {
            self.connection = None;
        }
        answered
    }

    fn try_request(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Result<Answer, Cut> {
        let (address, life) = self.board.address().ok_or(Cut)?;
        let stream = match self.connection.take() {
            Some((same, stream)) if same == life => stream,
            _ => BufReader::new(TcpStream::connect(address)?),
        };
        let (_, stream) = self.connection.insert((life, stream));
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\n{headers}\r\n{body}",
            body.len()
        );
        stream.get_mut().write_all(request.as_bytes())?;
        let (status, length) = read_head(stream)?;
        let mut text = vec![0; length];
        stream.read_exact(&mut text)?;
        let text = String::from_utf8(text).expect("answers are UTF-8");
        Ok(Answer { status, text })
    }
}

/// The status of an answer, and how long its body is.
fn read_head(stream: &mut BufReader<TcpStream>) -> Result<(u16, usize), Cut> {
    let mut line = String::new();
    let mut next = |line: &mut String| -> Result<(), Cut> {
        line.clear();
        match stream.read_line(line)? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            _ => Ok(()),
        }
    };
    next(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|it| it.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no answer of HTTP: {line}"));
    let mut length = 0;
    loop {
        next(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            return Ok((status, length));
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
}

/// A stream of server-sent events, in the chunks of HTTP.
pub(crate) struct Stream {
    pub(crate) life: u64,
    raw: BufReader<TcpStream>,
    body: Vec<u8>,
}

impl Stream {
    /// Opens it. Returns the status if it was refused.
    pub(crate) fn open(
        board: &Board,
        subscription_id: &str,
        last_event_id: Option<&str>,
    ) -> Result<Result<Self, u16>, Cut> {
        let (address, life) = board.address().ok_or(Cut)?;
        let mut stream = TcpStream::connect(address)?;
        let last = last_event_id.map_or_else(String::new, |id| format!("last-event-id: {id}\r\n"));
        let request = format!(
            "GET /aaep/v1/events?subscription_id={subscription_id} HTTP/1.1\r\nhost: {address}\r\n\
             accept: text/event-stream\r\n{last}\r\n"
        );
        stream.write_all(request.as_bytes())?;
        let mut raw = BufReader::new(stream);
        let (status, _) = read_head(&mut raw)?;
        if status != 200 {
            return Ok(Err(status));
        }
        Ok(Ok(Stream { life, raw, body: Vec::new() }))
    }

    /// The next event, with its id. An incomplete event does not count.
    pub(crate) fn next(&mut self) -> Result<(String, Value), Cut> {
        let (mut id, mut data) = (String::new(), String::new());
        loop {
            let line = self.line()?;
            if line.is_empty() && !data.is_empty() {
                return Ok((id, serde_json::from_str(&data).expect("events are JSON")));
            }
            if let Some(text) = line.strip_prefix("id: ") {
                text.clone_into(&mut id);
            } else if let Some(text) = line.strip_prefix("data: ") {
                data.push_str(text);
            }
        }
    }

    fn line(&mut self) -> Result<String, Cut> {
        loop {
            if let Some(at) = self.body.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.body.drain(..=at).collect();
                return Ok(String::from_utf8(line).expect("UTF-8").trim_end().to_owned());
            }
            let mut size = String::new();
            self.raw.read_line(&mut size)?;
            let size = usize::from_str_radix(size.trim(), 16).ok().filter(|size| *size > 0);
            let size = size.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
            let mut chunk = vec![0; size + 2];
            self.raw.read_exact(&mut chunk)?;
            self.body.extend_from_slice(&chunk[..size]);
        }
    }
}

/// A WebSocket.
pub(crate) struct Socket {
    pub(crate) life: u64,
    socket: WebSocket<TcpStream>,
}

impl Socket {
    pub(crate) fn open(board: &Board, path: &str, subprotocol: &str) -> Result<Self, Cut> {
        let (address, life) = board.address().ok_or(Cut)?;
        let mut stream = TcpStream::connect(address)?;
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: AAECAwQFBgcICQoLDA0ODw==\r\n\
             sec-websocket-protocol: {subprotocol}\r\n\r\n"
        );
        stream.write_all(request.as_bytes())?;
        let mut raw = BufReader::new(stream);
        let (status, _) = read_head(&mut raw)?;
        assert_eq!(status, 101, "{path} is a WebSocket");
        let rest = raw.buffer().to_vec();
        let socket = WebSocket::from_partially_read(raw.into_inner(), rest, Role::Client, None);
        Ok(Socket { life, socket })
    }

    pub(crate) fn send(&mut self, message: &Value) -> Result<(), Cut> {
        self.socket.send(Frame::text(message.to_string())).map_err(|_| Cut)
    }

    /// The next message.
    pub(crate) fn next(&mut self) -> Result<Value, Cut> {
        loop {
            match self.socket.read() {
                Ok(Frame::Text(text)) => {
                    return Ok(serde_json::from_str(&text).expect("messages are JSON"));
                }
                Ok(Frame::Close(_)) | Err(_) => {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                }
                Ok(_) => {}
            }
        }
    }
}
