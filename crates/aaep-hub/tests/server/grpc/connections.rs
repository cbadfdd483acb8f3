//! Connections of HTTP/2: limits, slowness, TLS, and bytes that are not gRPC.

use std::io::Read as _;

use aaep_transport::grpc::{GetManifestRequest, Manifest};
use http::{Method, StatusCode};
use serde_json::json;
use tonic::Code;
use tower_service::Service as _;

use super::support::*;
use crate::support::*;

/// Sends any request over HTTP/2. Returns its status, and the gRPC status if it has one.
fn send(hub: &TestHub, method: Method, path: &str, kind: &str) -> (StatusCode, Option<String>) {
    let request = http::Request::builder()
        .method(method)
        .uri(format!("http://{}{path}", hub.address()))
        .header("content-type", kind)
        .body(tonic::body::Body::empty())
        .expect("a request");
    let answer = wait(channel(hub).call(request)).expect("an answer");
    let status = answer.headers().get("grpc-status");
    (answer.status(), status.map(|it| it.to_str().expect("text").to_owned()))
}

#[test]
fn over_http2_there_is_grpc_alone() {
    let hub = TestHub::new();
    for (method, path, kind) in [
        (Method::GET, "/healthz", "application/json"),
        (Method::POST, "/aaep/v1/publish", "application/json"),
        (Method::GET, "/aaep.v1.AaepService/GetManifest", "application/grpc"),
        (Method::POST, "/aaep.v1.AaepService/GetManifest", "application/grpcx"),
        (Method::OPTIONS, "/aaep.v1.AaepService/Subscribe", ""),
    ] {
        let (status, _) = send(&hub, method.clone(), path, kind);
        assert_eq!(status, StatusCode::HTTP_VERSION_NOT_SUPPORTED, "{method} {path} {kind}");
    }
    for path in ["/aaep.v1.AaepService/Publish", "/other.Service/Subscribe", "/"] {
        let (status, code) = send(&hub, Method::POST, path, "application/grpc+proto");
        assert_eq!((status, code.as_deref()), (StatusCode::OK, Some("12")), "{path}");
    }
    assert_eq!(hub.get("/healthz").status, 200, "HTTP/1.1 is spoken on the same port");
}

#[test]
fn garbage_in_http2_is_refused_and_the_hub_lives() {
    let hub = TestHub::new();
    for garbage in
        ["", "\u{0}\u{0}\u{0}\u{4}", "GET / HTTP/1.1\r\n\r\n", "\u{7f}\u{7f}\u{7f}\u{7f}"]
    {
        let mut client = hub.connect();
        client.send(&format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{garbage}"));
        client.socket.shutdown(std::net::Shutdown::Write).expect("shuts down");
        let mut rest = Vec::new();
        // A reset is an end as well.
        let _ = client.socket.read_to_end(&mut rest);
    }
    let mut half = hub.connect();
    half.send("PRI * HT");
    half.socket.shutdown(std::net::Shutdown::Write).expect("shuts down");
    Call::begin(&hub, "").expect("a call").subscribe();
}

#[test]
fn half_a_beginning_is_not_waited_for_long() {
    let hub = TestHub::with(|options| options.config.limits.handshake_ms = 200);
    let mut half = hub.connect();
    half.send("PRI * HT");
    assert_eq!(half.rest(), "");
}

#[test]
fn a_connection_without_calls_is_closed_and_one_with_a_call_stays() {
    let hub = TestHub::with(|options| options.config.limits.idle_ms = 100);
    let mut call = Call::begin(&hub, "").expect("a call");
    call.subscribe();
    let _unused = channel(&hub);
    // The connection of the call and the call itself.
    wait_until("the unused connection is closed", || hub.daemon().hub().guard().connections() <= 2);
    hub.begin("sess_1");
    assert_eq!(call.next()["session_id"], "sess_1");
}

#[test]
fn a_call_that_asks_for_nothing_is_not_waited_for_long() {
    let hub = TestHub::with(|options| options.config.limits.idle_ms = 100);
    let (say, said) = tokio::sync::mpsc::channel::<GetManifestRequest>(1);
    let said = tonic::codegen::tokio_stream::wrappers::ReceiverStream::new(said);
    let mut client = tonic::client::Grpc::with_origin(channel(&hub), origin(&hub));
    let path = http::uri::PathAndQuery::from_static("/aaep.v1.AaepService/GetManifest");
    let refused = wait(async {
        client.ready().await.expect("a connection");
        let codec = tonic_prost::ProstCodec::<GetManifestRequest, Manifest>::default();
        client.client_streaming(tonic::Request::new(said), path, codec).await
    });
    assert_eq!(refused.expect_err("nothing was asked").code(), Code::DeadlineExceeded);
    drop(say);
}

#[test]
fn every_call_counts_as_a_connection_and_gives_its_place_back() {
    let hub = TestHub::with(|options| options.config.limits.connections_per_principal = 2);
    let mut client = client(&hub);
    let calls = [(); 2].map(|()| Call::with(&mut client, "", None).expect("a call"));
    let refused = Call::with(&mut client, "", None).err().expect("a refusal");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    drop((calls, client));
    hub.wait_until_empty();
    Call::begin(&hub, "").expect("a call").subscribe();
}

#[test]
fn connections_of_http2_without_a_credential_lock_nobody_out() {
    let hub = TestHub::with(|options| options.config.limits.connections = 4);
    let key = person(&hub);
    let mut call = Call::begin(&hub, "").expect("a call");
    call.subscribe();
    let empty_settings = "\0\0\0\u{4}\0\0\0\0\0";
    let _silent: Vec<Client> = (0..100)
        .map(|_| {
            let mut client = hub.connect();
            client.send(&format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{empty_settings}"));
            // The hub has begun to speak HTTP/2.
            client.exactly(9);
            client
        })
        .collect();
    assert_eq!(hub.as_someone(&key, "GET", "/aaep/v1/asks", "").status, 200);
    let mut person = hub.stream(&key, &hub.subscribe(&key));
    hub.begin("sess_1");
    assert_eq!(person.event()["session_id"], "sess_1");
    assert_eq!(call.next()["session_id"], "sess_1", "a call that was there goes on");
}

#[test]
fn more_calls_than_a_connection_may_have_wait() {
    let hub = TestHub::new();
    let mut client = client(&hub);
    let mut calls: Vec<Call> =
        (0..16).map(|_| Call::with(&mut client, "", None).expect("a call")).collect();
    let waiting = {
        let mut client = client.clone();
        CLIENTS.spawn(async move { client.get_manifest(GetManifestRequest {}).await.map(|_| ()) })
    };
    for call in &mut calls {
        call.subscribe();
    }
    assert!(!waiting.is_finished(), "sixteen calls are as many as there may be");
    calls.pop();
    wait(waiting).expect("no panic").expect("a place became free");
}

#[test]
fn a_subscriber_that_never_reads_holds_up_nobody() {
    let hub = TestHub::with(|options| {
        options.config.limits.publishes_per_second = 1_000_000;
        options.config.limits.publish_burst = 1_000_000;
    });
    let mut slow = Call::begin(&hub, "").expect("a call");
    slow.subscribe();
    let mut quick = Call::begin(&hub, "").expect("a call");
    quick.subscribe();
    hub.begin("sess_1");
    // Publish until the subscriber that does not read has filled all buffers between it and the hub.
    let mut published = 0;
    while !hub.has_blocked(1) {
        assert!(published < 2000, "it never filled up");
        for _ in 0..20 {
            let mut event = progress("sess_1", &format!("evt_{published:032x}"));
            event["summary_normal"] = json!("word ".repeat(300));
            assert_eq!(hub.post("/aaep/v1/publish", &event).status, 200);
            published += 1;
        }
        let last = format!("evt_{:032x}", published - 1);
        while quick.next()["event_id"] != last.as_str() {}
    }
    let open = asked(&hub);
    quick.next_of("aaep:agent.awaiting.confirmation");
    drop(quick);
    assert_eq!(open.status, 202);
    drop(slow);
    hub.wait_until_empty();
}

#[cfg(unix)]
mod tls {
    use std::sync::Arc;

    use aaep_hub::access::Scope;
    use aaep_transport::grpc::Channel;
    use aaep_transport::grpc::proto::aaep_service_client::AaepServiceClient;
    use rustls::pki_types::ServerName;
    use tokio::net::TcpStream;
    use tokio_rustls::TlsConnector;
    use tokio_rustls::client::TlsStream;

    use super::*;
    use crate::tls::{Authority, NAME, client_config, files, hub as tls_hub, write};

    fn connect(
        hub: &TestHub,
        authority: &Authority,
        certificate: Option<&(String, String)>,
        protocols: &[&[u8]],
    ) -> TlsStream<TcpStream> {
        let mut config = client_config(authority, certificate);
        config.alpn_protocols = protocols.iter().map(|it| it.to_vec()).collect();
        wait(async {
            let address = ("127.0.0.1", hub.address().port());
            let stream = TcpStream::connect(address).await.expect("connects");
            let name = ServerName::try_from(NAME).expect("a name");
            TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("TLS")
        })
    }

    fn client(stream: TlsStream<TcpStream>) -> AaepServiceClient<Channel> {
        let channel = wait(Channel::open(stream, PATIENCE)).expect("HTTP/2");
        let origin = format!("https://{NAME}").parse().expect("an address");
        AaepServiceClient::with_origin(channel, origin)
    }

    #[test]
    fn a_client_certificate_says_who_calls() {
        let authority = Authority::new();
        let folder = tempfile::tempdir().expect("a folder");
        let mut files = files(&folder, &authority.issue(NAME));
        let path = folder.path().join("clients.pem");
        write(&path, &authority.0.pem());
        files.client_authority = Some(path);
        let rule = "match = \"dns:ada.example.org\"\nname = \"Ada\"\nscopes = [\"listen\"]\n";
        let rule = toml::from_str(rule).expect("a rule");
        let hub = tls_hub(folder, files, |options| options.config.access.certificates = vec![rule]);
        let call = |name: &str| {
            let certificate = authority.issue(name);
            let stream = connect(&hub, &authority, Some(&certificate), &[b"h2"]);
            Call::with(&mut client(stream), "", None)
        };
        let refused = call("bob.example.org").err().expect("a refusal");
        assert_eq!(refused.code(), Code::Unauthenticated);
        call("ada.example.org").expect("a call").subscribe();
    }

    #[test]
    fn encrypted_calls_are_agreed_on_and_browsers_get_http1() {
        let authority = Authority::new();
        let folder = tempfile::tempdir().expect("a folder");
        let token = token(&folder, "reader", &[Scope::Listen]);
        let files = files(&folder, &authority.issue(NAME));
        let hub = tls_hub(folder, files, |options| {
            options.config.access.loopback_needs_credentials = true;
        });
        let both = connect(&hub, &authority, None, &[b"h2", b"http/1.1"]);
        assert_eq!(both.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));
        let stream = connect(&hub, &authority, None, &[b"h2"]);
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
        let mut client = client(stream);
        let refused = Call::with(&mut client, "", None).err().expect("a refusal");
        assert_eq!(refused.code(), Code::Unauthenticated);
        Call::with(&mut client, &token, None).expect("a call").subscribe();
    }
}
