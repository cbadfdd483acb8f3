//! The server around the hub: HTTP on TCP, with TLS where other machines can reach it, and the local socket.
//!
//! Every request passes the checks in `door` and then goes to one handler. Long-lived connections leave this
//! server: their sockets go to the hub's wires. Nothing here decides anything about events.

mod accept;
mod agents;
mod answer;
mod body;
mod certificates;
mod config;
mod connection;
mod daemon;
mod descriptors;
mod door;
mod everyone;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(feature = "grpc")]
mod http2;
mod issuer;
mod keeping;
mod legacy;
mod listen;
mod local;
mod manifest;
mod opened;
mod programs;
mod query;
mod route;
mod sessions;
mod stop;
mod subscribers;
mod takeover;
mod upgrade;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use aaep_transport::local::LocalDoor;
use http::{Request, Response};
use hyper::body::Incoming;
use tokio::sync::Semaphore;

pub use config::{
    ConfigFileError, DEFAULT_ADDRESS, HubConfig, HubTable, MAX_CONFIG_BYTES, RetentionTable,
};
pub use daemon::{Daemon, DaemonError, DaemonOptions};
pub use listen::{ListenError, ListeningSocket};
pub use manifest::{ManifestError, ManifestService};
pub use opened::Given;

use crate::access::{Access, AccessError, Guard, LimitError, Principal};
use crate::hub::{Hub, rejected_by_limit};
use crate::metrics::Metrics;
use answer::{HttpResponse, SendingBody};
use certificates::ServerCertificates;
use door::{CheckedRequest, RequestChecks, RequestInProgress, ServedConnection, for_page};
use issuer::IssuerKeyFetcher;
use route::RequestRoute;
use stop::{StopController, StopSignal};

/// The pause after the system could not accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The pause for a connection that was asked to end, before the next is accepted.
const MADE_WAY_PAUSE: Duration = Duration::from_millis(5);

/// How often the access of connected principals is checked.
const CHECK_ACCESS_EVERY: Duration = Duration::from_secs(2);

/// A running server.
#[derive(Debug)]
pub(crate) struct DaemonServer {
    stopper: StopController,
    /// A copy for tasks that start later. It is dropped when the server stops, so that nothing waits for it.
    stop: Option<StopSignal>,
    /// For the calls of subscribers, which end after the hub.
    calls: StopController,
}

/// The state that every request needs.
#[derive(Debug)]
pub(crate) struct ServerApp {
    hub: Hub,
    checks: RequestChecks,
    guard: Guard,
    metrics: Metrics,
    manifest: ManifestService,
    /// Allows one backup at a time.
    backups: Arc<Semaphore>,
    stop: StopSignal,
    /// Kept for as long as calls may run.
    #[cfg_attr(not(feature = "grpc"), expect(dead_code, reason = "there are no calls"))]
    calls: StopSignal,
}

impl DaemonServer {
    pub(crate) fn start(
        hub: Hub,
        access: Arc<Access>,
        manifest: ManifestService,
        certificates: Option<Arc<ServerCertificates>>,
        listening: Vec<ListeningSocket>,
        doors: Vec<LocalDoor>,
    ) -> Self {
        let (calls_stopper, calls) = stop::stop_pair();
        let (stopper, stop) = stop::stop_pair();
        let app = Arc::new(ServerApp {
            checks: RequestChecks::new(access),
            guard: hub.guard().clone(),
            metrics: hub.metrics().clone(),
            manifest,
            backups: Arc::new(Semaphore::new(1)),
            hub,
            stop: stop.not_waited_for(),
            calls,
        });
        for socket in listening {
            let certificates = certificates.clone().filter(|_| socket.is_tls());
            tokio::spawn(accept::accept(Arc::clone(&app), socket, certificates, stop.clone()));
        }
        for door in doors {
            tokio::spawn(local::accept(Arc::clone(&app), door, stop.clone()));
        }
        if let Some(certificates) = certificates {
            tokio::spawn(watch_certificates(Arc::clone(&app), certificates, stop.clone()));
        }
        tokio::spawn(watch_access(Arc::clone(&app), stop.clone()));
        tokio::spawn(watch_manifest(app, stop.clone()));
        DaemonServer { stopper, stop: Some(stop), calls: calls_stopper }
    }

    /// Fetches an issuer's keys at intervals until the server stops.
    fn keep_fetching(&self, issuer: IssuerKeyFetcher) {
        if let Some(stop) = &self.stop {
            tokio::spawn(issuer.keep_fetching(stop.clone()));
        }
    }

    /// Stops accepting connections, finishes the requests in progress, and then ends, within this time. The
    /// hub must still run. Returns whether all requests were finished.
    pub(crate) async fn finish(&mut self, grace: Duration) -> bool {
        self.stopper.finish();
        self.stop = None;
        let finished = tokio::time::timeout(grace, self.stopper.all_gone()).await.is_ok();
        self.stopper.end();
        finished
    }

    /// Lets subscribers receive the last message of the hub, which has stopped, and ends their connections
    /// within this time. Returns whether all had ended by themselves.
    pub(crate) async fn leave(&mut self, grace: Duration) -> bool {
        let all_left = tokio::time::timeout(grace, self.calls.all_gone()).await.is_ok();
        self.calls.end();
        all_left
    }
}

impl ServerApp {
    async fn answer(
        &self,
        connection: Arc<ServedConnection>,
        request: Request<Incoming>,
    ) -> Response<SendingBody> {
        let now = self.hub.clock().now();
        let in_progress = connection.begin_request();
        let (page, passed) = self.checks.check(&connection, &request, now).await;
        let route = match &passed {
            Ok(
                CheckedRequest::Open(route)
                | CheckedRequest::Admitted(route, _)
                | CheckedRequest::Full(route, ..)
                | CheckedRequest::Refused(route, _),
            ) => route.name(),
            Err(_) => "none",
        };
        let principal = match &passed {
            Ok(CheckedRequest::Admitted(_, it) | CheckedRequest::Full(_, it, _)) => Some(&it.id),
            Ok(CheckedRequest::Open(_) | CheckedRequest::Refused(..)) | Err(_) => None,
        };
        let principal = principal.cloned();
        let answered = match passed {
            Ok(CheckedRequest::Open(route)) => Ok(self.open(&route, &connection, &request)),
            Ok(CheckedRequest::Full(route, principal, limit)) => {
                match self.allowed_program(&route, &principal, request.uri()).await {
                    Some(program) if connection.belongs_to_program(&program, now).is_ok() => {
                        self.handle_one(route, *principal, &connection, request).await
                    }
                    _ => Err(Box::new(limited(&route, limit))),
                }
            }
            Ok(CheckedRequest::Admitted(route, principal)) => {
                self.handle_one(route, *principal, &connection, request).await
            }
            Ok(CheckedRequest::Refused(route, error)) => {
                self.metrics.refused(answer::access_code(&error));
                Ok(self.refuse(&route, &error, &connection, request))
            }
            Err(answer) => Err(answer),
        };
        let answer = answered.unwrap_or_else(|answer| *answer);
        let status = answer.status().as_u16();
        let in_progress = match principal.filter(|_| status >= 400) {
            Some(principal) => self.hold_back(&principal, &connection, in_progress).await,
            None => in_progress,
        };
        self.metrics.answered(status);
        tracing::debug!(route, status, "A request was answered.");
        for_page(answer, &page).map(|content| SendingBody::new(content, in_progress))
    }

    /// Waits before a principal is told of yet another refusal. Meanwhile its connection may give way.
    async fn hold_back(
        &self,
        principal: &str,
        connection: &Arc<ServedConnection>,
        in_progress: RequestInProgress,
    ) -> RequestInProgress {
        let now_us = self.hub.clock().now().monotonic_us;
        let wait = self.guard.refused(principal, now_us);
        if wait.is_zero() {
            return in_progress;
        }
        drop(in_progress);
        tokio::time::sleep(wait).await;
        connection.begin_request()
    }

    /// Answers requests that need no credentials.
    fn open(
        &self,
        route: &RequestRoute,
        connection: &ServedConnection,
        request: &Request<Incoming>,
    ) -> HttpResponse {
        match route {
            RequestRoute::Health => ServerApp::health(),
            RequestRoute::Ready => self.ready(connection),
            RequestRoute::Manifest => self.manifest(request.headers()),
            RequestRoute::KeySet => self.key_set(),
            _ => answer::not_found(),
        }
    }

    /// Handles a request whose principal has the required scope, if that principal has not too many in
    /// progress.
    async fn handle_one(
        &self,
        route: RequestRoute,
        principal: Principal,
        connection: &ServedConnection,
        request: Request<Incoming>,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        let now_us = self.hub.clock().now().monotonic_us;
        let counted = self.guard.request(&principal.id, now_us);
        let _counted = counted.map_err(|limit| Box::new(limited(&route, limit)))?;
        self.handle(route, Arc::new(principal), connection, request).await
    }

    /// Dispatches a request whose principal has the required scope.
    async fn handle(
        &self,
        route: RequestRoute,
        principal: Arc<Principal>,
        connection: &ServedConnection,
        request: Request<Incoming>,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        match route {
            RequestRoute::Metrics => Ok(self.metrics().await),
            RequestRoute::Audit => self.audit(&principal, request.uri()).await,
            RequestRoute::Backup => self.backup(&principal, request.method()).await,
            RequestRoute::Subscribe => self.subscribe(&principal, request).await,
            RequestRoute::Events => self.events(principal, connection, &request).await,
            RequestRoute::Reply => self.reply(&principal, request).await,
            RequestRoute::SubscriberSocket => {
                self.subscriber_socket(principal, connection, request)
            }
            RequestRoute::Agents => self.agents(&principal).await,
            RequestRoute::LegacyEvents => self.legacy_events(principal, connection, request),
            RequestRoute::LegacyMessage => self.legacy_message(&principal, request).await,
            RequestRoute::Publish => self.publish(&principal, request).await,
            RequestRoute::Ask => self.ask(&principal, request).await,
            RequestRoute::WaitingAsks => self.waiting_asks(&principal, request.uri()).await,
            RequestRoute::AskState(token) => {
                self.ask_state(&principal, &token, request.uri()).await
            }
            RequestRoute::Withdraw(token) => self.withdraw(&principal, &token).await,
            RequestRoute::Accepts(agent) => self.accepts(&principal, &agent, request).await,
            RequestRoute::Inbox(agent) => self.inbox(&principal, &agent, request.uri()).await,
            RequestRoute::AgentSocket => self.agent_socket(principal, connection, request),
            RequestRoute::Sessions => self.sessions(&principal, request.uri()).await,
            RequestRoute::SessionEvents(id) => {
                self.session_events(&principal, &id, request.uri()).await
            }
            RequestRoute::DeleteSession(id) => self.delete_session(&principal, &id).await,
            RequestRoute::EndSession(id) => self.end_session(&principal, &id).await,
            RequestRoute::Health
            | RequestRoute::Ready
            | RequestRoute::Manifest
            | RequestRoute::KeySet => Ok(self.open(&route, connection, &request)),
        }
    }

    /// A refusal, in the form that the route uses.
    fn refuse(
        &self,
        route: &RequestRoute,
        error: &AccessError,
        connection: &ServedConnection,
        request: Request<Incoming>,
    ) -> HttpResponse {
        match route {
            RequestRoute::Subscribe => subscribers::rejected_at_the_door(error),
            RequestRoute::SubscriberSocket
            | RequestRoute::AgentSocket
            | RequestRoute::LegacyEvents => self.refuse_socket(route, error, connection, request),
            _ => answer::no_access(error),
        }
    }

    /// Returns the local program behind this request, if the person allowed it to answer and it wants to
    /// receive the events of its subscription. Connections of other local programs do not keep it out.
    async fn allowed_program(
        &self,
        route: &RequestRoute,
        principal: &Principal,
        uri: &http::Uri,
    ) -> Option<Principal> {
        if !principal.is_local_program() || *route != RequestRoute::Events {
            return None;
        }
        let id = query::parameter(uri, "subscription_id").ok()??;
        let id = aaep::SubscriptionId::parse(&id).ok()?;
        self.hub.allowed_program(&id).await.ok()?
    }

    /// Reads the whole JSON body of a request.
    async fn json_body(&self, request: Request<Incoming>) -> Result<Vec<u8>, Box<HttpResponse>> {
        body::kind(request.headers(), false)?;
        self.body(request).await
    }

    /// Reads the whole body of a request.
    async fn body(&self, request: Request<Incoming>) -> Result<Vec<u8>, Box<HttpResponse>> {
        let limits = self.guard.limits();
        body::read(request, limits.body_bytes, Duration::from_millis(limits.idle_ms)).await
    }

    /// Waits after a connection could not be accepted. If the system has no descriptors left, another
    /// connection is asked to end.
    async fn accept_again(&self, error: &std::io::Error) {
        let makes_way = descriptors::are_used_up(error) && self.guard.make_way();
        tokio::time::sleep(if makes_way { MADE_WAY_PAUSE } else { ACCEPT_PAUSE }).await;
    }

    /// Waits until the hub stops. Long polls end then.
    async fn stopping(&self) {
        self.stop.clone().finishing().await;
    }
}

/// The response when a limit was reached, in the form that the route uses.
fn limited(route: &RequestRoute, limit: LimitError) -> HttpResponse {
    match route {
        RequestRoute::Subscribe => subscribers::rejection(&rejected_by_limit(limit)),
        _ => answer::limited(limit),
    }
}

/// Loads certificates again when their files change.
async fn watch_certificates(
    app: Arc<ServerApp>,
    certificates: Arc<ServerCertificates>,
    mut stop: StopSignal,
) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(certificates::CHECK_EVERY) => {}
            () = stop.finishing() => return,
        }
        let (certificates, clock) = (Arc::clone(&certificates), *app.hub.clock());
        // A check that panicked has changed nothing.
        let _ = tokio::task::spawn_blocking(move || certificates.reload_if_changed(clock)).await;
    }
}

/// Disconnects principals whose access was revoked or has expired.
async fn watch_access(app: Arc<ServerApp>, mut stop: StopSignal) {
    let mut reviewed = app.checks.access().roster().generation();
    loop {
        tokio::select! {
            () = tokio::time::sleep(CHECK_ACCESS_EVERY) => {}
            () = stop.finishing() => return app.checks.log_left_out(true),
        }
        app.checks.log_left_out(false);
        let Ok(everyone) = app.hub.everyone().await else { continue };
        let (access, now) = (Arc::clone(app.checks.access()), app.hub.clock().now());
        let gone = tokio::task::spawn_blocking(move || {
            access.refresh(now);
            let gone = everyone.into_iter().filter(|principal| !access.may_stay(principal, now));
            gone.map(|principal| principal.id.clone()).collect::<Vec<_>>()
        });
        let roster = app.checks.access().roster();
        if roster.generation() != reviewed {
            reviewed = roster.generation();
            // A hub that is stopping has no programs to review.
            let _ = app.hub.review_programs().await;
        }
        for id in gone.await.unwrap_or_default() {
            tracing::info!(principal = %aaep::printable(&id), "Access ended, and so do its connections.");
            // A hub that is stopping ends all connections.
            let _ = app.hub.end_access(&id).await;
        }
    }
}

/// Signs the manifest again when it is time, and gives it to new subscribers.
async fn watch_manifest(app: Arc<ServerApp>, mut stop: StopSignal) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(manifest::CHECK_EVERY) => {}
            () = stop.finishing() => return,
        }
        let now_unix_ms = app.hub.clock().now().unix_us / 1000;
        let manifest = app.manifest.clone();
        if let Ok(languages) = app.hub.languages().await {
            manifest.set_languages(languages);
        }
        match tokio::task::spawn_blocking(move || manifest.renew_if_due(now_unix_ms)).await {
            Ok(Ok(true)) => {
                let (uri, signed) = (app.manifest.uri().clone(), app.manifest.signed());
                if app.hub.offer_manifest(Some(uri), signed).await.is_ok() {
                    tracing::info!("The manifest was renewed.");
                }
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "The manifest could not be renewed. The previous one stays.");
            }
            Ok(Ok(false)) | Err(_) => {}
        }
    }
}
