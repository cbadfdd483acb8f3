//! What the client makes of answers, good and bad.

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;
use crate::{CallOptions, HttpAddress, HttpCaller};

/// The longest body that is read here.
const MAX_BYTES: usize = 4 << 20;

fn caller() -> HttpCaller {
    let address = HttpAddress::parse("http://127.0.0.1/x?y=1").expect("an address");
    HttpCaller::new(&address, CallOptions::default()).expect("this machine")
}

fn get() -> HttpCall {
    HttpCall {
        method: Method::GET,
        path: "/x?y=1".to_owned(),
        headers: HeaderMap::new(),
        body: Bytes::new(),
    }
}

async fn exchange(near: DuplexStream, call: HttpCall) -> Result<(u16, Vec<u8>), CallError> {
    let answer = caller().call(Some(CallConnection::over(near).await?), &call).await?;
    let status = answer.response.status().as_u16();
    Ok((status, answer.body().whole(MAX_BYTES).await?))
}

/// The answer of a server that says this and closes.
async fn answer_to(bytes: &[u8]) -> Result<(u16, Vec<u8>), CallError> {
    let (near, mut far) = duplex(1 << 20);
    let server = async {
        // Says nothing before it was asked.
        let mut head = [0; 1024];
        let _ = far.read(&mut head).await;
        // The other end may close before it has taken everything.
        let _ = far.write_all(bytes).await;
        drop(far);
    };
    let (answer, ()) = tokio::join!(exchange(near, get()), server);
    answer
}

async fn body_of(bytes: &[u8]) -> String {
    let (_, body) = answer_to(bytes).await.expect("an answer");
    String::from_utf8(body).expect("text")
}

#[tokio::test]
async fn a_request_has_what_a_server_needs() {
    let (near, mut far) = duplex(4096);
    let call = HttpCall { method: Method::POST, ..get() };
    let server = async {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(far.read_u8().await.expect("a request"));
        }
        far.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.expect("a caller");
        String::from_utf8(head).expect("text")
    };
    let (answer, head) = tokio::join!(exchange(near, call), server);
    assert_eq!(answer.expect("an answer"), (204, Vec::new()));
    assert!(head.starts_with("POST /x?y=1 HTTP/1.1\r\n"), "{head}");
    for line in ["host: 127.0.0.1", "accept-encoding: identity", "content-length: 0"] {
        assert!(head.lines().any(|it| it == line), "{line} is missing in {head}");
    }
}

#[tokio::test]
async fn bodies_come_with_a_length_in_chunks_or_until_the_end() {
    let longer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more";
    assert_eq!(body_of(longer).await, "hello");
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
    assert_eq!(body_of(chunked).await, "hello");
    assert_eq!(body_of(b"HTTP/1.0 200\r\n\r\nhello").await, "hello");
    let interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    assert_eq!(body_of(interim).await, "ok");
}

#[tokio::test]
async fn a_body_that_is_too_long_is_not_read() {
    let announced = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", MAX_BYTES + 1);
    let answer = answer_to(announced.as_bytes()).await;
    assert!(matches!(answer, Err(CallError::TooLarge)), "{answer:?}");
    let (near, mut far) = duplex(1 << 16);
    let server = async {
        let mut head = [0; 1024];
        let _ = far.read(&mut head).await;
        let _ = far.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while far.write_all(&[b'x'; 4096]).await.is_ok() {}
    };
    let (answer, ()) = tokio::join!(exchange(near, get()), server);
    assert!(matches!(answer, Err(CallError::TooLarge)), "{answer:?}");
}

#[tokio::test]
async fn an_answer_that_is_cut_off_is_told_apart_from_one_that_is_not_http() {
    for text in [
        &b""[..],
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ] {
        let answer = answer_to(text).await;
        assert!(matches!(answer, Err(CallError::CutOff(_))), "{answer:?}");
    }
    for text in [
        &b"SSH-2.0-OpenSSH_9\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nx",
    ] {
        let answer = answer_to(text).await;
        assert!(matches!(answer, Err(CallError::NotHttp(_))), "{answer:?}");
    }
    for text in [
        &b"HTTP/1.1 999 No\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    ] {
        let answer = answer_to(text).await;
        assert!(matches!(answer, Err(CallError::Strange(_))), "{answer:?}");
    }
}

/// The next number of a pseudorandom sequence that is the same in every run.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*state >> 33).unwrap_or(0)
}

#[tokio::test]
async fn no_bytes_make_it_panic_and_none_are_read_without_end() {
    let whole = [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhello"[..],
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 A\r\nTransfer-Encoding: chunked\r\n\r\n3;a\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
    ];
    let (mut state, mut answers, mut refusals) = (7, 0, 0);
    for turn in 0..5_000 {
        let mut bytes = whole[turn % 2].to_vec();
        for _ in 0..next(&mut state) % 4 {
            let at = next(&mut state) % bytes.len();
            match next(&mut state) % 4 {
                0 => bytes[at] = u8::try_from(next(&mut state) % 256).unwrap_or(0),
                1 => bytes.truncate(at + 2),
                2 => bytes.insert(at, b"\r\n:;0f \xff"[next(&mut state) % 8]),
                _ if bytes.len() > 1 => drop(bytes.remove(at)),
                _ => {}
            }
        }
        match answer_to(&bytes).await {
            Ok((_, body)) => {
                assert!(body.len() <= bytes.len());
                answers += 1;
            }
            Err(_) => refusals += 1,
        }
    }
    assert!(answers > 250 && refusals > 250, "{answers} and {refusals}");
}
