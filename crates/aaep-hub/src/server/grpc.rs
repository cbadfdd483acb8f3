//! gRPC calls (B.5): the same checks as for every request, and then the called service.
//!
//! A subscriber's call becomes a connection of the hub like any other. The manifest, the health of the hub
//! and the description of its services need no credentials.

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

use super::ServerApp;
use super::answer::{self, refusal};
use super::door::{CarriedCall, ServedConnection};
use crate::access::{AccessError, Claim, LimitError, Principal, Reserve, Scope};
use crate::hub::{ConnectionPurpose, NewConnection};
use health::HubHealth;

/// The service of B.5.1.
const SERVICE: &str = "aaep.v1.AaepService";

const SUBSCRIBE: &str = "/aaep.v1.AaepService/Subscribe";

/// The longest request to the health and reflection services, in bytes.
const MAX_QUESTION_BYTES: usize = 16 << 10;

/// The body of a response.
type GrpcBody = tonic::body::Body;

/// The calls on one connection.
pub(super) struct GrpcCalls {
    app: Arc<ServerApp>,
    connection: Arc<ServedConnection>,
    service: AaepServiceServer<Service<HubProducer>>,
    /// Its reference count is one more than the number of calls in progress.
    active: Arc<()>,
    begun: AtomicUsize,
}

impl GrpcCalls {
    pub(super) fn new(app: Arc<ServerApp>, connection: Arc<ServedConnection>) -> Self {
        let service = grpc::service(HubProducer(Arc::clone(&app)), MAX_MESSAGE_BYTES);
        let begun = AtomicUsize::new(0);
        GrpcCalls { app, connection, service, active: Arc::default(), begun }
    }

    /// Waits until there has been no call for this long.
    pub(super) async fn wait_until_quiet(&self, time: Duration) {
        loop {
            let before = self.begun.load(Ordering::Relaxed);
            tokio::time::sleep(time).await;
            let is_quiet = self.begun.load(Ordering::Relaxed) == before;
            if is_quiet && Arc::strong_count(&self.active) == 1 {
                return;
            }
        }
    }

    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<CallBody> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let active = Arc::clone(&self.active);
        let mut carried = None;
        let answer = if is_call(&request) {
            match self.pass(request).await {
                Ok(request) => {
                    let is_claimed = request.extensions().get::<Arc<Principal>>().is_some();
                    carried = is_claimed.then(|| self.connection.carry_call());
                    self.call_in_time(request).await
                }
                Err(status) => status.into_http(),
            }
        } else {
            nothing_else_here()
        };
        self.app.metrics.answered(answer.status().as_u16());
        answer.map(|body| CallBody { body, _active: active, _carried: carried })
    }

    /// Checks a call, and adds its principal where one is needed.
    async fn pass(&self, mut request: Request<Incoming>) -> Result<Request<Incoming>, Status> {
        let (checks, now) = (&self.app.checks, self.app.hub.clock().now());
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        if let Err(error) = checks.access().check(&self.connection.peer, method, headers, uri) {
            checks.log(&self.connection, &error.to_string());
            return Err(Status::permission_denied(error.to_string()));
        }
        if uri.path() == SUBSCRIBE {
            let authenticated = checks.authenticate(&self.connection.peer, headers, uri, now).await;
            let allowed = authenticated.and_then(|it| it.allow(Scope::Listen).map(|()| it));
            let principal = allowed.map_err(|error| {
                checks.log(&self.connection, &error.to_string());
                self.app.metrics.refused(answer::access_code(&error));
                no_access(&error)
            })?;
            self.connection.find_program(checks.programs(), &principal, now).await;
            request.extensions_mut().insert(Arc::clone(&self.connection));
            request.extensions_mut().insert(Arc::new(principal));
        }
        Ok(request)
    }

    /// Dispatches a call, with a limit on the time until the client has sent its request.
    async fn call_in_time(&self, request: Request<Incoming>) -> Response<GrpcBody> {
        let time = Duration::from_millis(self.app.guard.limits().idle_ms);
        tokio::time::timeout(time, self.call(request)).await.unwrap_or_else(|_| {
            Status::deadline_exceeded("The call took too long to come. Call again.").into_http()
        })
    }

    async fn call(&self, request: Request<Incoming>) -> Response<GrpcBody> {
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

/// Connects the gRPC service to the hub.
pub(super) struct HubProducer(Arc<ServerApp>);

impl Producer for HubProducer {
    async fn listen(&self, caller: &Extensions) -> Result<PairEnd, Status> {
        let app = &self.0;
        let principal = caller.get::<Arc<Principal>>().cloned();
        let principal = principal.ok_or_else(|| no_access(&AccessError::CredentialsRequired))?;
        let limited = |limit: LimitError| {
            app.metrics.refused("too_many_connections");
            Status::resource_exhausted(limit.to_string())
        };
        // The connection counts among all connections; each call counts once more, and for its caller.
        let now_us = app.hub.clock().now().monotonic_us;
        let reserve = if principal.is_person() { Reserve::Person } else { Reserve::None };
        let claim = match caller.get::<Arc<ServedConnection>>() {
            Some(connection) => connection.claim(&principal, reserve),
            None => Claim { reserve, ..Claim::of(&principal.id) },
        };
        let permit = app.guard.claimed_connection(claim, now_us).map_err(limited)?;
        let (socket, end) = pair().map_err(|error| {
            if app.checks.may_log() {
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
        let taken = app.hub.attach(new, ConnectionPurpose::SubscriberSocket).await;
        taken.map(|()| end).map_err(|error| Status::unavailable(error.to_string()))
    }

    fn manifest(&self) -> Bytes {
        self.0.manifest.json()
    }
}

/// Whether a request is a gRPC call.
fn is_call(request: &Request<Incoming>) -> bool {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let rest = kind.and_then(|it| it.strip_prefix("application/grpc"));
    request.method() == Method::POST
        && rest.is_some_and(|it| it.is_empty() || it.starts_with(['+', ';']))
}

/// The response to requests that are not calls.
fn nothing_else_here() -> Response<GrpcBody> {
    let answer = refusal(
        StatusCode::HTTP_VERSION_NOT_SUPPORTED,
        "only_grpc",
        "Over HTTP/2 there is gRPC alone. Send this request with HTTP/1.1.",
    );
    answer.map(GrpcBody::new)
}

/// Refuses a call for lack of access.
fn no_access(error: &AccessError) -> Status {
    match error.status() {
        401 => closed_status(4002, &error.public_message()),
        403 => closed_status(4003, &error.public_message()),
        429 => Status::resource_exhausted(error.public_message()),
        _ => Status::unavailable(error.public_message()),
    }
}

/// Describes the services. It is made on request, which is rare.
fn reflection() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTION)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}

fn no_description() -> Status {
    Status::internal("The hub cannot describe its services. Use the file aaep.proto.")
}

/// The body of a response. Its call counts as in progress until it is dropped.
pub(super) struct CallBody {
    body: GrpcBody,
    _active: Arc<()>,
    _carried: Option<CarriedCall>,
}

impl Body for CallBody {
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
