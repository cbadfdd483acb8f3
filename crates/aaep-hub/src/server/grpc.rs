//! Calls of gRPC (B.5): the same doors as for every request, and then the service that was called.
//!
//! A subscriber's call becomes a connection of the hub like any other. Everyone may ask for the manifest, for
//! how the hub is, and for what is spoken here.

mod health;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use aaep_transport::framed::Framing;
use aaep_transport::grpc::{
    self, AaepServiceServer, DESCRIPTION, Producer, Service, closed_status,
};
use aaep_transport::packet::Protocol;
use aaep_transport::wire::{MAX_MESSAGE_BYTES, PairEnd, pair};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Extensions, Method, Request, Response, StatusCode};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tonic::Status;
use tonic_health::pb::health_server::HealthServer;
use tower_service::Service as _;

use super::App;
use super::answer::{self, refusal};
use super::door::{CarriedCall, Connection};
use crate::access::{AccessError, Claim, LimitError, Principal, Reserve, Scope};
use crate::hub::NewConnection;
use health::HubHealth;

/// The service of B.5.1.
const SERVICE: &str = "aaep.v1.AaepService";

/// The method that subscribers call.
const SUBSCRIBE: &str = "/aaep.v1.AaepService/Subscribe";

/// The longest question about the hub itself.
const MAX_QUESTION_BYTES: usize = 16 << 10;

/// The body of an answer.
type Said = tonic::body::Body;

/// The calls on one connection.
pub(super) struct Calls {
    app: Arc<App>,
    connection: Arc<Connection>,
    service: AaepServiceServer<Service<HubProducer>>,
    /// Held once more by every call that goes on.
    going_on: Arc<()>,
    begun: AtomicUsize,
}

impl Calls {
    pub(super) fn new(app: Arc<App>, connection: Arc<Connection>) -> Self {
        let service = grpc::service(HubProducer(Arc::clone(&app)), MAX_MESSAGE_BYTES);
        let begun = AtomicUsize::new(0);
        Calls { app, connection, service, going_on: Arc::default(), begun }
    }

    /// Waits until there was no call for this long.
    pub(super) async fn none_for(&self, time: Duration) {
        loop {
            let before = self.begun.load(Ordering::Relaxed);
            tokio::time::sleep(time).await;
            let is_quiet = self.begun.load(Ordering::Relaxed) == before;
            if is_quiet && Arc::strong_count(&self.going_on) == 1 {
                return;
            }
        }
    }

    /// Answers a request.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Held> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let going_on = Arc::clone(&self.going_on);
        let mut carried = None;
        let answer = if is_call(&request) {
            match self.pass(request).await {
                Ok(request) => {
                    let is_claimed = request.extensions().get::<Arc<Principal>>().is_some();
                    carried = is_claimed.then(|| self.connection.carrying());
                    self.in_time(request).await
                }
                Err(status) => status.into_http(),
            }
        } else {
            nothing_else_here()
        };
        self.app.metrics.answered(answer.status().as_u16());
        answer.map(|body| Held { body, _going_on: going_on, _carried: carried })
    }

    /// Lets a call in, with who it is from where that matters.
    async fn pass(&self, mut request: Request<Incoming>) -> Result<Request<Incoming>, Status> {
        let (doors, now) = (&self.app.doors, self.app.hub.clock().now());
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        if let Err(error) = doors.access().check(&self.connection.peer, method, headers, uri) {
            doors.log(&self.connection, &error.to_string());
            return Err(Status::permission_denied(error.to_string()));
        }
        if uri.path() == SUBSCRIBE {
            let known = doors.authenticate(&self.connection.peer, headers, uri, now).await;
            let allowed = known.and_then(|it| it.allow(Scope::Listen).map(|()| it));
            let principal = allowed.map_err(|error| {
                doors.log(&self.connection, &error.to_string());
                self.app.metrics.refused(answer::access_code(&error));
                no_access(&error)
            })?;
            self.connection.find_program(doors.programs(), &principal, now).await;
            request.extensions_mut().insert(Arc::clone(&self.connection));
            request.extensions_mut().insert(Arc::new(principal));
        }
        Ok(request)
    }

    /// Calls, and does not wait for long until the client has said what it wants.
    async fn in_time(&self, request: Request<Incoming>) -> Response<Said> {
        let time = Duration::from_millis(self.app.guard.limits().idle_ms);
        tokio::time::timeout(time, self.call(request)).await.unwrap_or_else(|_| {
            Status::deadline_exceeded("The call took too long to come. Call again.").into_http()
        })
    }

    async fn call(&self, request: Request<Incoming>) -> Response<Said> {
        let service = request.uri().path().split('/').nth(1).unwrap_or_default();
        let Ok(answer) = match service {
            SERVICE => self.service.clone().call(request).await,
            "grpc.health.v1.Health" => {
                let health = HealthServer::new(HubHealth(Arc::clone(&self.app)));
                health.max_decoding_message_size(MAX_QUESTION_BYTES).call(request).await
            }
            "grpc.reflection.v1.ServerReflection" => match reflection().build_v1() {
                Ok(service) => {
                    service.max_decoding_message_size(MAX_QUESTION_BYTES).call(request).await
                }
                Err(_) => Ok(no_description().into_http()),
            },
            "grpc.reflection.v1alpha.ServerReflection" => match reflection().build_v1alpha() {
                Ok(service) => {
                    service.max_decoding_message_size(MAX_QUESTION_BYTES).call(request).await
                }
                Err(_) => Ok(no_description().into_http()),
            },
            _ => Ok(Status::unimplemented(
                "There is no such service here. Ask for the services with server reflection.",
            )
            .into_http()),
        };
        answer
    }
}

/// Who is behind the service: the hub.
pub(super) struct HubProducer(Arc<App>);

impl Producer for HubProducer {
    async fn listen(&self, caller: &Extensions) -> Result<PairEnd, Status> {
        let app = &self.0;
        let principal = caller.get::<Arc<Principal>>().cloned();
        let principal = principal.ok_or_else(|| no_access(&AccessError::CredentialsRequired))?;
        let limited = |limit: LimitError| {
            app.metrics.refused("too_many_connections");
            Status::resource_exhausted(limit.to_string())
        };
        // The connection counts among all connections; each call counts once more, and as the caller's.
        let now_us = app.hub.clock().now().monotonic_us;
        let reserve = if principal.is_person() { Reserve::Person } else { Reserve::None };
        let claim = match caller.get::<Arc<Connection>>() {
            Some(connection) => connection.claim(&principal, reserve),
            None => Claim { reserve, ..Claim::of(&principal.id) },
        };
        let permit = app.guard.claimed_connection(claim, now_us).map_err(limited)?;
        let (socket, end) = pair().map_err(|error| {
            if app.doors.may_log() {
                tracing::warn!(%error, "A call could not be taken.");
            }
            Status::unavailable("The hub cannot take a call at the moment. Call again later.")
        })?;
        let protocol = Protocol::Framed(Framing::Length);
        let new = NewConnection {
            principal,
            socket,
            read_ahead: Vec::new(),
            protocol,
            permit: Some(permit),
        };
        let taken = app.hub.subscriber_socket(new).await;
        taken.map(|()| end).map_err(|error| Status::unavailable(error.to_string()))
    }

    fn manifest(&self) -> Bytes {
        self.0.manifest.json()
    }
}

/// Whether a request is a call of gRPC.
fn is_call(request: &Request<Incoming>) -> bool {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let rest = kind.and_then(|it| it.strip_prefix("application/grpc"));
    request.method() == Method::POST
        && rest.is_some_and(|it| it.is_empty() || it.starts_with(['+', ';']))
}

/// The answer to whatever is no call.
fn nothing_else_here() -> Response<Said> {
    let answer = refusal(
        StatusCode::HTTP_VERSION_NOT_SUPPORTED,
        "only_grpc",
        "Over HTTP/2 there is gRPC alone. Send this request with HTTP/1.1.",
    );
    answer.map(Said::new)
}

/// A refusal at the door.
fn no_access(error: &AccessError) -> Status {
    match error.status() {
        401 => closed_status(4002, &error.public_message()),
        403 => closed_status(4003, &error.public_message()),
        429 => Status::resource_exhausted(error.public_message()),
        _ => Status::unavailable(error.public_message()),
    }
}

/// What is spoken here. It is made when somebody asks, which is rare.
fn reflection() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTION)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}

fn no_description() -> Status {
    Status::internal("The hub cannot describe its services. Use the file aaep.proto.")
}

/// The body of an answer, which says that its call goes on for as long as it is there.
pub(super) struct Held {
    body: Said,
    _going_on: Arc<()>,
    _carried: Option<CarriedCall>,
}

impl Body for Held {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
