//! Bounds on what a client may send before it is served.

use std::io::{Read, Write};

use aaep_transport::steal::{
    MAX_HEADER_BYTES, MAX_HEADERS, ServeEnd, ServeLimits, serve_connection, serve_connection_until,
};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use crate::server::*;

fn refused(request: &str) -> String {
    let server = Server::new();
    let mut client = server.connect();
    // The server may answer and close before all is written.
    let _ = client.write_all(request.as_bytes());
    let mut answer = vec![0; 12];
    client.read_exact(&mut answer).expect("an answer");
    server.next_end().expect_err("refused");
    String::from_utf8(answer).expect("text")
}

#[test]
fn heads_that_are_too_long_or_have_too_many_fields_are_refused() {
    let long = format!("GET /hello HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(MAX_HEADER_BYTES));
    assert_eq!(refused(&long), "HTTP/1.1 431");
    let many = format!("GET /hello HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(MAX_HEADERS + 1));
    assert_eq!(refused(&many), "HTTP/1.1 431");
}

#[test]
fn garbage_is_refused() {
    assert_eq!(refused("\u{1}\u{2}\u{3}\r\n\r\n"), "HTTP/1.1 400");
}

#[tokio::test(start_paused = true)]
async fn a_head_that_never_ends_is_not_waited_for() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut client = tokio::net::TcpStream::connect(address).await.expect("connects");
    let (served, _) = listener.accept().await.expect("accepts");
    let service = service_fn(|_: Request<Incoming>| async {
        Ok::<_, std::convert::Infallible>(Response::new(String::new()))
    });
    tokio::io::AsyncWriteExt::write_all(&mut client, b"GET / HT").await.expect("takes bytes");
    let served = timeout(PATIENCE, serve_connection(served, service)).await;
    served.expect("it is given up").expect_err("timed out");
    // The connection is closed, with or without an answer of hyper.
    let mut rest = Vec::new();
    let ended = timeout(PATIENCE, client.read_to_end(&mut rest)).await.expect("it is closed");
    ended.expect("an end");
}

#[tokio::test]
async fn after_the_stop_the_answer_under_way_is_the_last_one() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut client = tokio::net::TcpStream::connect(address).await.expect("connects");
    let (served, _) = listener.accept().await.expect("accepts");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let stop = std::sync::Mutex::new(Some(stop));
    let service = service_fn(|_: Request<Incoming>| {
        // The stop comes while the request is being answered.
        drop(stop.lock().expect("a lock").take());
        async {
            tokio::task::yield_now().await;
            Ok::<_, std::convert::Infallible>(Response::new("whole".to_owned()))
        }
    });
    let twice = b"GET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut client, twice).await.expect("takes bytes");
    let until = async move { drop(stopped.await) };
    let served = serve_connection_until(served, service, ServeLimits::default(), until);
    let end = timeout(PATIENCE, served).await.expect("it ends");
    assert_eq!(end.expect("served"), ServeEnd::Done);
    let mut answer = String::new();
    // Unread bytes may reset the connection after the answer.
    let _ = timeout(PATIENCE, client.read_to_string(&mut answer)).await.expect("it is closed");
    assert_eq!(answer.matches("200 OK").count(), 1, "{answer}");
    assert!(answer.ends_with("whole"), "{answer}");
}
