//! The server around the hub: HTTP on TCP, with TLS where others can reach it, and the local socket.
//!
//! Every request goes through the doors in `door` and then to one handler. Long-lived connections leave
//! this server: their sockets go to the wires of the hub. Nothing here decides anything about events.

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
    Config, ConfigFileError, DEFAULT_ADDRESS, HubTable, MAX_CONFIG_BYTES, RetentionTable,
};
pub use daemon::{Daemon, DaemonError, DaemonOptions};
pub use listen::{ListenError, Subscriber};
pub use manifest::{ManifestError, ManifestService};
pub use opened::Given;

use crate::access::{Access, AccessError, Guard, LimitError, Principal};
use crate::hub::{Hub, rejected_by_limit};
use crate::metrics::Metrics;
use answer::{Answer, SendingBody};
use certificates::Certificates;
use door::{Connection, Doors, Passed, for_page};
use issuer::Issuer;
use route::Route;
use stop::{Stop, Stopper};

/// How many connections that are too many are told so at the same time.
const TURNED_AWAY_AT_ONCE: usize = 64;

/// How long to wait before connections are accepted again after the system could give none.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long to wait for a connection to end that made way.
const MADE_WAY_PAUSE: Duration = Duration::from_millis(5);

/// How often it is looked whether everyone who is connected may still be.
const LOOK_AT_ACCESS_EVERY: Duration = Duration::from_secs(2);

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    stopper: Stopper,
    /// For those who come later; given up when it stops, so that nobody waits for it.
    stop: Option<Stop>,
    /// For calls of subscribers, which end after the hub.
    calls: Stopper,
}

/// What every request needs.
#[derive(Debug)]
pub(crate) struct App {
    hub: Hub,
    doors: Doors,
    guard: Guard,
    metrics: Metrics,
    manifest: ManifestService,
    /// One backup is made at a time.
    backups: Arc<Semaphore>,
    stop: Stop,
    /// Held for as long as calls go on.
    #[cfg_attr(not(feature = "grpc"), expect(dead_code, reason = "there are no calls"))]
    calls: Stop,
}

impl Server {
    /// Starts to accept connections.
    pub(crate) fn start(
        hub: Hub,
        access: Arc<Access>,
        manifest: ManifestService,
        certificates: Option<Arc<Certificates>>,
        subscribers: Vec<Subscriber>,
        doors: Vec<LocalDoor>,
    ) -> Self {
        let (calls_stopper, calls) = stop::stop();
        let (stopper, stop) = stop::stop();
        let app = Arc::new(App {
            doors: Doors::new(access),
            guard: hub.guard().clone(),
            metrics: hub.metrics().clone(),
            manifest,
            backups: Arc::new(Semaphore::new(1)),
            hub,
            stop: stop.not_waited_for(),
            calls,
        });
        for subscriber in subscribers {
            let certificates = certificates.clone().filter(|_| subscriber.is_tls());
            tokio::spawn(accept(Arc::clone(&app), subscriber, certificates, stop.clone()));
        }
        for door in doors {
            tokio::spawn(local::accept(Arc::clone(&app), door, stop.clone()));
        }
        if let Some(certificates) = certificates {
            tokio::spawn(look_at_certificates(Arc::clone(&app), certificates, stop.clone()));
        }
        tokio::spawn(look_at_access(Arc::clone(&app), stop.clone()));
        tokio::spawn(look_at_manifest(app, stop.clone()));
        Server { stopper, stop: Some(stop), calls: calls_stopper }
    }

    /// Fetches the keys of an issuer now and then, until the server stops.
    fn keep_fetching(&self, issuer: Issuer) {
        if let Some(stop) = &self.stop {
            tokio::spawn(issuer.keep_fetching(stop.clone()));
        }
    }

    /// Takes no more connections, finishes the requests that came, and then ends, within this time. The
    /// hub must still run. Says whether all were finished.
    pub(crate) async fn finish(&mut self, grace: Duration) -> bool {
        self.stopper.finish();
        self.stop = None;
        let finished = tokio::time::timeout(grace, self.stopper.all_gone()).await.is_ok();
        self.stopper.end();
        finished
    }

    /// Lets subscribers hear the last word of the hub, which has stopped, and ends their connections within
    /// this time. Says whether all had ended by themselves.
    pub(crate) async fn leave(&mut self, grace: Duration) -> bool {
        let all_left = tokio::time::timeout(grace, self.calls.all_gone()).await.is_ok();
        self.calls.end();
        all_left
    }
}

impl App {
    /// Answers a request.
    async fn answer(
        &self,
        connection: Arc<Connection>,
        request: Request<Incoming>,
    ) -> Response<SendingBody> {
        let now = self.hub.clock().now();
        let working = connection.working();
        let (page, passed) = self.doors.pass(&connection, &request, now).await;
        let route = match &passed {
            Ok(
                Passed::Open(route)
                | Passed::By(route, _)
                | Passed::Full(route, ..)
                | Passed::Refused(route, _),
            ) => route.name(),
            Err(_) => "none",
        };
        let answered = match passed {
            Ok(Passed::Open(route)) => Ok(self.open(&route, &connection, &request)),
            Ok(Passed::Full(route, principal, limit)) => {
                match self.allowed_program(&route, &principal, request.uri()).await {
                    Some(program) if connection.belongs_to_program(&program, now).is_ok() => {
                        self.handle_one(route, *principal, &connection, request).await
                    }
                    _ => Err(Box::new(limited(&route, limit))),
                }
            }
            Ok(Passed::By(route, principal)) => {
                self.handle_one(route, *principal, &connection, request).await
            }
            Ok(Passed::Refused(route, error)) => {
                self.metrics.refused(answer::access_code(&error));
                Ok(self.refuse(&route, &error, &connection, request))
            }
            Err(answer) => Err(answer),
        };
        let answer = answered.unwrap_or_else(|answer| *answer);
        let status = answer.status().as_u16();
        self.metrics.answered(status);
        tracing::debug!(route, status, "A request was answered.");
        for_page(answer, &page).map(|content| SendingBody::new(content, working))
    }

    /// What everyone may see.
    fn open(&self, route: &Route, connection: &Connection, request: &Request<Incoming>) -> Answer {
        match route {
            Route::Health => App::health(),
            Route::Ready => self.ready(connection),
            Route::Manifest => self.manifest(request.headers()),
            Route::KeySet => self.key_set(),
            _ => answer::not_found(),
        }
    }

    /// What takes a scope, which this principal has, if not too many of its requests are under way.
    async fn handle_one(
        &self,
        route: Route,
        principal: Principal,
        connection: &Connection,
        request: Request<Incoming>,
    ) -> Result<Answer, Box<Answer>> {
        let now_us = self.hub.clock().now().monotonic_us;
        let counted = self.guard.request(&principal.id, now_us);
        let _counted = counted.map_err(|limit| Box::new(limited(&route, limit)))?;
        self.handle(route, Arc::new(principal), connection, request).await
    }

    /// What takes a scope, which this principal has.
    async fn handle(
        &self,
        route: Route,
        principal: Arc<Principal>,
        connection: &Connection,
        request: Request<Incoming>,
    ) -> Result<Answer, Box<Answer>> {
        match route {
            Route::Metrics => Ok(self.metrics().await),
            Route::Audit => self.audit(&principal, request.uri()).await,
            Route::Backup => self.backup(&principal, request.method()).await,
            Route::Subscribe => self.subscribe(&principal, request).await,
            Route::Events => self.events(principal, connection, &request).await,
            Route::Reply => self.reply(&principal, request).await,
            Route::SubscriberSocket => self.subscriber_socket(principal, connection, request),
            Route::Agents => self.agents(&principal).await,
            Route::LegacyEvents => self.legacy_events(principal, connection, request),
            Route::LegacyMessage => self.legacy_message(&principal, request).await,
            Route::Publish => self.publish(&principal, request).await,
            Route::Ask => self.ask(&principal, request).await,
            Route::WaitingAsks => self.waiting_asks(&principal, request.uri()).await,
            Route::AskState(token) => self.ask_state(&principal, &token, request.uri()).await,
            Route::Withdraw(token) => self.withdraw(&principal, &token).await,
            Route::Accepts(agent) => self.accepts(&principal, &agent, request).await,
            Route::Inbox(agent) => self.inbox(&principal, &agent, request.uri()).await,
            Route::AgentSocket => self.agent_socket(principal, connection, request),
            Route::Sessions => self.sessions(&principal, request.uri()).await,
            Route::SessionEvents(id) => self.session_events(&principal, &id, request.uri()).await,
            Route::DeleteSession(id) => self.delete_session(&principal, &id).await,
            Route::EndSession(id) => self.end_session(&principal, &id).await,
            Route::Health | Route::Ready | Route::Manifest | Route::KeySet => {
                Ok(self.open(&route, connection, &request))
            }
        }
    }

    /// A refusal, in the words of what was asked for.
    fn refuse(
        &self,
        route: &Route,
        error: &AccessError,
        connection: &Connection,
        request: Request<Incoming>,
    ) -> Answer {
        match route {
            Route::Subscribe => subscribers::rejected_at_the_door(error),
            Route::SubscriberSocket | Route::AgentSocket | Route::LegacyEvents => {
                self.refuse_socket(route, error, connection, request)
            }
            _ => answer::no_access(error),
        }
    }

    /// The local program that was allowed to answer and wants to hear its subscription, if it is one. What other local
    /// programs hold does not keep it out.
    async fn allowed_program(
        &self,
        route: &Route,
        principal: &Principal,
        uri: &http::Uri,
    ) -> Option<Principal> {
        if !principal.is_local_program() || *route != Route::Events {
            return None;
        }
        let id = query::parameter(uri, "subscription_id").ok()??;
        let id = aaep::SubscriptionId::parse(&id).ok()?;
        self.hub.allowed_program(&id).await.ok()?
    }

    /// The whole body of a request, in JSON.
    async fn json_body(&self, request: Request<Incoming>) -> Result<Vec<u8>, Box<Answer>> {
        body::kind(request.headers(), false)?;
        self.body(request).await
    }

    /// The whole body of a request.
    async fn body(&self, request: Request<Incoming>) -> Result<Vec<u8>, Box<Answer>> {
        let limits = self.guard.limits();
        body::read(request, limits.body_bytes, Duration::from_millis(limits.idle_ms)).await
    }

    /// Waits after a connection could not be accepted. If the system has no descriptors left, another makes way.
    async fn accept_again(&self, error: &std::io::Error) {
        let makes_way = descriptors::are_used_up(error) && self.guard.make_way();
        tokio::time::sleep(if makes_way { MADE_WAY_PAUSE } else { ACCEPT_PAUSE }).await;
    }

    /// Waits until the hub stops: long waits end then.
    async fn stopping(&self) {
        self.stop.clone().finishing().await;
    }
}

/// A limit was reached, in the words of what was asked for.
fn limited(route: &Route, limit: LimitError) -> Answer {
    match route {
        Route::Subscribe => subscribers::rejection(&rejected_by_limit(limit)),
        _ => answer::limited(limit),
    }
}

/// Accepts connections on one address until the hub stops.
async fn accept(
    app: Arc<App>,
    subscriber: Subscriber,
    certificates: Option<Arc<Certificates>>,
    mut stop: Stop,
) {
    let turned_away = Arc::new(Semaphore::new(TURNED_AWAY_AT_ONCE));
    loop {
        let accepted = tokio::select! {
            accepted = subscriber.socket.accept() => accepted,
            () = stop.finishing() => return,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if app.doors.may_log() {
                    tracing::warn!(%error, "A connection could not be accepted.");
                }
                app.accept_again(&error).await;
                continue;
            }
        };
        match app.guard.connection() {
            Ok(permit) => {
                let (app, stop) = (Arc::clone(&app), stop.clone());
                let certificates = certificates.clone();
                tokio::spawn(connection::serve(app, stream, address, certificates, permit, stop));
                // Those that gave way get a chance to end before the next one comes.
                tokio::task::yield_now().await;
            }
            Err(limit) => {
                app.metrics.refused("too_many_connections");
                if app.doors.may_log() {
                    tracing::warn!(%address, %limit, "A connection was turned away.");
                }
                // Those who would be too many even for that, and those who expect TLS, are cut off.
                if certificates.is_none()
                    && let Ok(place) = Arc::clone(&turned_away).try_acquire_owned()
                {
                    tokio::spawn(async move {
                        connection::turn_away(stream).await;
                        drop(place);
                    });
                }
            }
        }
    }
}

/// Loads certificates anew when their files change.
async fn look_at_certificates(app: Arc<App>, certificates: Arc<Certificates>, mut stop: Stop) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(certificates::LOOK_EVERY) => {}
            () = stop.finishing() => return,
        }
        let (certificates, clock) = (Arc::clone(&certificates), *app.hub.clock());
        // A look that broke has changed nothing.
        let _ = tokio::task::spawn_blocking(move || certificates.look(clock)).await;
    }
}

/// Sends home whoever may not be here any more: their token was revoked, or it has expired.
async fn look_at_access(app: Arc<App>, mut stop: Stop) {
    let mut reviewed = app.doors.access().roster().generation();
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_AT_ACCESS_EVERY) => {}
            () = stop.finishing() => return app.doors.log_left_out(true),
        }
        app.doors.log_left_out(false);
        let Ok(everyone) = app.hub.everyone().await else { continue };
        let (access, now) = (Arc::clone(app.doors.access()), app.hub.clock().now());
        let gone = tokio::task::spawn_blocking(move || {
            access.refresh(now);
            let gone = everyone.into_iter().filter(|principal| !access.may_stay(principal, now));
            gone.map(|principal| principal.id.clone()).collect::<Vec<_>>()
        });
        let roster = app.doors.access().roster();
        if roster.generation() != reviewed {
            reviewed = roster.generation();
            // A hub that stops has nobody to review.
            let _ = app.hub.review_programs().await;
        }
        for id in gone.await.unwrap_or_default() {
            tracing::info!(principal = %aaep::printable(&id), "Access ended, and so do its connections.");
            // A hub that stops ends them all.
            let _ = app.hub.end_access(&id).await;
        }
    }
}

/// Signs the manifest anew when it is time, and lets new subscribers have it.
async fn look_at_manifest(app: Arc<App>, mut stop: Stop) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(manifest::LOOK_EVERY) => {}
            () = stop.finishing() => return,
        }
        let now_unix_ms = app.hub.clock().now().unix_us / 1000;
        let manifest = app.manifest.clone();
        if let Ok(languages) = app.hub.languages().await {
            manifest.set_languages(languages);
        }
        match tokio::task::spawn_blocking(move || manifest.look(now_unix_ms)).await {
            Ok(Ok(true)) => {
                let (uri, signed) = (app.manifest.uri().clone(), app.manifest.signed());
                if app.hub.offer_manifest(Some(uri), signed).await.is_ok() {
                    tracing::info!("The manifest was made anew.");
                }
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "The manifest could not be made anew. The one before stays.");
            }
            Ok(Ok(false)) | Err(_) => {}
        }
    }
}
