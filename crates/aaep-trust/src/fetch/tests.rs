//! Fetching from servers that behave, stall, flood, redirect, close early, and have the wrong certificate.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aaep_http::MAX_HEAD_BYTES;
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

fn document(body: &[u8]) -> Vec<u8> {
    let mut answer = Vec::new();
    write!(answer, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()).expect("memory");
    answer.extend_from_slice(body);
    answer
}

async fn read_request<S: AsyncRead + Unpin>(stream: &mut S) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("a request"));
    }
    String::from_utf8(head).expect("ASCII")
}

/// A server on this machine that gives each client the next answer and closes. It returns the requests that it
/// received when it ends.
async fn serve(answers: Vec<Vec<u8>>) -> (HttpAddress, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let served = tokio::spawn(async move {
        let mut requests = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.expect("a caller");
            requests.push(read_request(&mut stream).await);
            // A client that has read enough may close the connection.
            let _ = stream.write_all(&answer).await;
        }
        requests
    });
    (HttpAddress::parse(&format!("http://127.0.0.1:{port}/start")).expect("an address"), served)
}

/// One exchange over a pipe, with a server that the test writes out.
async fn over_pipe<F>(server: impl FnOnce(DuplexStream) -> F) -> Result<FetchAnswer, FetchError>
where
    F: Future<Output = ()> + Send + 'static,
{
    let (near, far) = duplex(1024);
    tokio::spawn(server(far));
    let address = HttpAddress::parse("http://127.0.0.1/x").expect("an address");
    let caller = Client::new().caller(&address).expect("this machine");
    let exchanged = timeout(TIMEOUT, async {
        let connection = CallConnection::over(near).await?;
        exchange(&caller, Some(connection), "application/json").await
    });
    let answer = exchanged.await.map_err(|_| FetchError::TooSlow)?;
    answer.map_err(|error| FetchError::of_call(&address, error))
}

#[tokio::test]
async fn a_document_arrives_whole() {
    let (address, served) = serve(vec![document(b"{}")]).await;
    let body = Client::new().get(&address, "application/json").await.expect("a document");
    assert_eq!(&body[..], b"{}");
    let request = served.await.expect("served").remove(0).to_lowercase();
    assert!(request.starts_with("get /start http/1.1\r\n"), "{request}");
    assert!(request.contains("\r\naccept: application/json\r\n"), "{request}");
    assert!(request.contains(&format!("\r\nhost: {}\r\n", address.authority())), "{request}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stalls_is_given_up_after_ten_seconds() {
    let began = tokio::time::Instant::now();
    let silent = over_pipe(|mut far| async move {
        read_request(&mut far).await;
        std::future::pending::<()>().await;
    });
    assert!(matches!(silent.await, Err(FetchError::TooSlow)));
    assert_eq!(began.elapsed(), TIMEOUT);
    // One byte a second keeps a connection alive, but must not keep the client waiting.
    let dripping = over_pipe(|mut far| async move {
        read_request(&mut far).await;
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n";
        far.write_all(head).await.expect("the caller listens");
        while far.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    assert!(matches!(dripping.await, Err(FetchError::TooSlow)));
    assert_eq!(began.elapsed(), TIMEOUT * 2);
}

#[tokio::test]
async fn ten_megabytes_are_not_read() {
    let announced = document(&vec![b' '; 10 << 20]);
    let (address, _served) = serve(vec![announced]).await;
    let result = Client::new().get(&address, "*/*").await;
    assert!(matches!(result, Err(FetchError::TooLarge)), "{result:?}");
    // The same without a declared length.
    let flooding = over_pipe(|mut far| async move {
        read_request(&mut far).await;
        let _ = far.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while far.write_all(&[b' '; 4096]).await.is_ok() {}
    });
    assert!(matches!(flooding.await, Err(FetchError::TooLarge)));
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&taken);
    let endless_head = over_pipe(|mut far| async move {
        read_request(&mut far).await;
        let _ = far.write_all(b"HTTP/1.1 200 OK\r\nx: ").await;
        while far.write_all(&[b'x'; 1024]).await.is_ok() {
            counted.fetch_add(1024, Ordering::Relaxed);
        }
    });
    assert!(matches!(endless_head.await, Err(FetchError::Http(_))));
    let taken = taken.load(Ordering::Relaxed);
    assert!(taken <= 2 * MAX_HEAD_BYTES, "{taken} bytes of a head were taken");
}

#[tokio::test]
async fn exactly_the_limit_is_read() {
    let (address, _served) = serve(vec![document(&vec![b' '; MAX_BYTES])]).await;
    let body = Client::new().get(&address, "*/*").await.expect("a document");
    assert_eq!(body.len(), MAX_BYTES);
}

#[tokio::test]
async fn a_document_that_is_cut_off_is_refused() {
    let mut cut = document(b"{\"a\":1}");
    cut.truncate(cut.len() - 3);
    let (address, _served) = serve(vec![cut]).await;
    let result = Client::new().get(&address, "*/*").await;
    assert!(matches!(result, Err(FetchError::Http(_))), "{result:?}");
}

#[tokio::test]
async fn redirects_are_followed_within_the_origin_and_not_for_ever() {
    let to = |place: &str| format!("HTTP/1.1 302 Found\r\nlocation: {place}\r\n\r\n").into_bytes();
    let (address, served) = serve(vec![to("/there"), document(b"[]")]).await;
    let body = Client::new().get(&address, "*/*").await.expect("a document");
    assert_eq!(&body[..], b"[]");
    assert!(served.await.expect("served")[1].starts_with("GET /there "));
    let (address, _served) = serve(vec![to("/again"); 10]).await;
    let result = Client::new().get(&address, "*/*").await;
    assert!(matches!(result, Err(FetchError::TooManyRedirects)), "{result:?}");
    let (address, _served) = serve(vec![to("http://192.0.2.1/")]).await;
    let result = Client::new().get(&address, "*/*").await;
    assert!(matches!(result, Err(FetchError::RedirectElsewhere(_))), "{result:?}");
}

#[tokio::test]
async fn plain_http_does_not_leave_this_machine() {
    let address = HttpAddress::parse("http://192.0.2.1/").expect("an address");
    let result = Client::new().get(&address, "*/*").await;
    assert!(matches!(result, Err(FetchError::PlainHttp(_))), "{result:?}");
}

#[tokio::test]
async fn a_status_is_told() {
    let (address, _served) = serve(vec![b"HTTP/1.1 404 Not Found\r\n\r\n".to_vec()]).await;
    let result = Client::new().get(&address, "*/*").await;
    assert!(matches!(result, Err(FetchError::Status(404))), "{result:?}");
}

/// A TLS server on this machine with its own certificate for this name.
async fn serve_tls(name: &str, answers: Vec<Vec<u8>>) -> (u16, RootCertStore) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let chain = vec![made.cert.der().clone()];
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain, key.into())
        .expect("a key");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        for answer in answers {
            let (stream, _) = listener.accept().await.expect("a caller");
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            read_request(&mut stream).await;
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
        }
    });
    (port, roots)
}

#[tokio::test]
async fn tls_is_taken_from_whom_the_roots_vouch_for_and_from_nobody_else() {
    let answers = vec![document(b"{}"); 3];
    let (port, roots) = serve_tls("localhost", answers).await;
    let address = HttpAddress::parse(&format!("https://localhost:{port}/")).expect("an address");
    let client = Client::new().with_roots(roots.clone());
    assert_eq!(&client.get(&address, "*/*").await.expect("a document")[..], b"{}");
    let (_, strangers) = serve_tls("localhost", Vec::new()).await;
    let result = Client::new().with_roots(strangers).get(&address, "*/*").await;
    assert!(matches!(result, Err(FetchError::Tls(_))), "{result:?}");
    let (port, roots) = serve_tls("elsewhere.example", vec![document(b"{}")]).await;
    let address = HttpAddress::parse(&format!("https://localhost:{port}/")).expect("an address");
    let result = Client::new().with_roots(roots).get(&address, "*/*").await;
    assert!(matches!(result, Err(FetchError::Tls(_))), "{result:?}");
}

#[tokio::test]
async fn a_redirect_from_tls_to_plain_http_is_refused() {
    let away = b"HTTP/1.1 301 Moved\r\nlocation: http://localhost/\r\n\r\n".to_vec();
    let (port, roots) = serve_tls("localhost", vec![away]).await;
    let address = HttpAddress::parse(&format!("https://localhost:{port}/")).expect("an address");
    let result = Client::new().with_roots(roots).get(&address, "*/*").await;
    assert!(matches!(result, Err(FetchError::RedirectElsewhere(_))), "{result:?}");
}
