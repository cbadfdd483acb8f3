//! How the client handles good and bad answers, over real sockets.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use super::*;

/// A server that takes one request and answers with these bytes, in these pieces.
fn server(pieces: Vec<Vec<u8>>) -> (HubClient, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/", listener.local_addr().expect("an address"));
    let handle = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a caller");
        let request = read_request(&mut stream);
        for piece in pieces {
            if stream.write_all(&piece).is_err() {
                break;
            }
        }
        request
    });
    (HubClient::new(HttpAddress::parse(&address).expect("an address"), None), handle)
}

/// Reads a request and its body of the stated length.
fn read_request(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |it| it.parse().expect("a length")) {
                return bytes;
            }
        }
        let count = stream.read(&mut buffer).expect("a request");
        assert!(count > 0, "the request is cut off: {text}");
        bytes.extend_from_slice(&buffer[..count]);
    }
}

fn get<'r>() -> HubRequest<'r> {
    HubRequest { method: "GET", path: "/x?y=1", body: None, timeout: Duration::from_secs(20) }
}

fn answer_to(text: &[u8]) -> Result<HubAnswer, NoAnswer> {
    let (client, handle) = server(vec![text.to_vec()]);
    let answer = client.send(&get());
    handle.join().expect("the server ends");
    answer
}

/// A server that closes its first connections without an answer, and then answers one request. Gives the number of
/// requests that it read.
fn server_that_closes(first: usize) -> (HubClient, JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/", listener.local_addr().expect("an address"));
    let handle = thread::spawn(move || {
        for read in 1.. {
            let (mut stream, _) = listener.accept().expect("a caller");
            let request = read_request(&mut stream);
            if read > first {
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                stream.write_all(answer).expect("written");
                return read;
            }
            if request.starts_with(b"POST") {
                return read;
            }
        }
        0
    });
    (HubClient::new(HttpAddress::parse(&address).expect("an address"), None), handle)
}

#[test]
fn a_request_that_changes_nothing_is_sent_again_when_its_connection_closed_without_an_answer() {
    let (client, handle) = server_that_closes(2);
    assert_eq!(client.send(&get()).expect("an answer").body, b"ok");
    assert_eq!(handle.join().expect("the server ends"), 3);
    let (client, handle) = server_that_closes(1);
    let post = HubRequest { method: "POST", body: Some(("text/plain", b"x")), ..get() };
    let answer = client.send(&post);
    assert!(matches!(answer, Err(NoAnswer::CutOff(_))), "{answer:?}");
    assert_eq!(handle.join().expect("the server ends"), 1, "it may have had an effect");
}

fn body_of(text: &[u8]) -> String {
    let answer = answer_to(text).expect("an answer");
    String::from_utf8(answer.body).expect("text")
}

#[test]
fn a_request_says_all_that_a_hub_needs() {
    let (client, handle) = server(vec![b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()]);
    let client = HubClient { token: Some("aaep_secret".to_owned()), ..client };
    assert!(!format!("{client:?}").contains("secret"));
    let request = HubRequest {
        method: "POST",
        path: "/aaep/v1/publish",
        body: Some(("application/json", b"{}")),
        timeout: Duration::from_secs(20),
    };
    let answer = client.send(&request).expect("an answer");
    assert_eq!(answer, HubAnswer { status: 204, body: Vec::new() });
    let sent = String::from_utf8(handle.join().expect("a request")).expect("text");
    assert!(sent.starts_with("POST /aaep/v1/publish HTTP/1.1\r\n"), "{sent}");
    for line in [
        "authorization: Bearer aaep_secret",
        "content-type: application/json",
        "content-length: 2",
        "connection: close",
    ] {
        assert!(sent.lines().any(|it| it == line), "{line} is missing in {sent}");
    }
    assert!(sent.contains("\r\nhost: 127.0.0.1:"), "{sent}");
    assert!(sent.ends_with("\r\n\r\n{}"), "{sent}");
}

#[test]
fn a_token_cannot_smuggle_a_header() {
    let address = HttpAddress::parse("http://127.0.0.1:1").expect("an address");
    for token in ["", "a\r\nx: y", "a b", "\u{fc}"] {
        let client = HubClient::new(address.clone(), Some(token.to_owned()));
        assert_eq!(client.token, None, "{token:?}");
    }
}

#[test]
fn bodies_come_with_a_length_in_chunks_or_until_the_end() {
    assert_eq!(body_of(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more"), "hello");
    assert_eq!(
        body_of(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"),
        "hello"
    );
    assert_eq!(body_of(b"HTTP/1.0 200\r\n\r\nhello"), "hello");
    assert_eq!(
        body_of(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        "ok"
    );
}

#[test]
fn an_answer_may_come_byte_by_byte() {
    let text = b"HTTP/1.1 409 Conflict\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    let (client, handle) = server(text.iter().map(|byte| vec![*byte]).collect());
    let answer = client.send(&get()).expect("an answer");
    handle.join().expect("the server ends");
    assert_eq!((answer.status, answer.is_success()), (409, false));
    assert_eq!(answer.json(), Some(serde_json::json!({})));
}

#[test]
fn an_answer_that_is_cut_off_is_none() {
    for text in [
        &b""[..],
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx",
    ] {
        let answer = answer_to(text);
        assert!(matches!(answer, Err(NoAnswer::CutOff(_))), "{answer:?}");
    }
}

#[test]
fn what_is_no_http_or_lies_about_its_length_is_none() {
    for text in [
        &b"SSH-2.0-OpenSSH_9\r\n\r\n"[..],
        b"HTTP/1.1 2\xc3\xbc0 OK\r\n\r\n",
        b"HTTP/1.1 999 No\r\n\r\n",
        b"\xff\xff\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nx",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n0\r\n\r\n",
    ] {
        let answer = answer_to(text);
        assert!(matches!(answer, Err(NoAnswer::NotHttp(_))), "{answer:?}");
    }
}

#[test]
fn an_answer_without_end_is_not_read_to_the_end() {
    for head in [&b"HTTP/1.1 200 OK\r\n\r\n"[..], b"HTTP/1.1 200 OK\r\nx: "] {
        let mut pieces = vec![head.to_vec()];
        pieces.extend((0..160).map(|_| vec![b'x'; 64 * 1024]));
        let (client, handle) = server(pieces);
        let answer = client.send(&get());
        assert!(matches!(answer, Err(NoAnswer::NotHttp(_))), "{answer:?}");
        handle.join().expect("the server ends");
    }
}

#[test]
fn nobody_there_is_something_that_may_pass() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/", listener.local_addr().expect("an address"));
    drop(listener);
    let client = HubClient::new(HttpAddress::parse(&address).expect("an address"), None);
    let error = client.send(&get()).expect_err("nobody is there");
    assert!(error.is_temporary() && matches!(error, NoAnswer::NotReached(_)), "{error:?}");
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/", listener.local_addr().expect("an address"));
    let client = HubClient::new(HttpAddress::parse(&address).expect("an address"), None);
    let request = HubRequest { timeout: Duration::from_millis(50), ..get() };
    let error = client.send(&request).expect_err("it says nothing");
    assert!(matches!(error, NoAnswer::CutOff(_)), "{error:?}");
}

#[test]
fn plain_http_does_not_leave_this_machine() {
    for address in ["http://192.0.2.7:7117", "http://hub.example.org"] {
        let client = HubClient::new(HttpAddress::parse(address).expect("an address"), None);
        let error = client.send(&get()).expect_err("refused");
        assert!(matches!(error, NoAnswer::PlainHttp) && !error.is_temporary(), "{error:?}");
    }
}
