//! The checks that every request passes: is it meant for this hub, may its page use the hub, which route is
//! it, which principal sent it, and may that principal do this. Only then is its body read.
//!
//! Refusals are logged with their reason, a few lines a minute at most, and the rest are counted; the sender
//! sees no more than [`AccessError::public_message`]. If a source sends many wrong credentials, its
//! credentials are checked a few at a time, except one that was good lately.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use aaep::printable;
use aaep_engine::Now;
use http::header::{AUTHORIZATION, ORIGIN, REFERRER_POLICY};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use hyper::body::Incoming;
use tokio::sync::{Notify, Semaphore};

use super::answer::{self, HttpResponse};
use super::programs::{ConnectionEnds, ProgramFinder};
use super::route::{NoRoute, RequestRoute};
use crate::access::{
    Access, AccessError, Claim, ConnectionPermit, ConnectionSource, CredentialPenalties,
    LimitError, Page, Peer, PeerAddress, Principal, RequestError, Reserve, SecretPath,
    TooManyFailures, cors_headers, is_cross_site, is_loopback, preflight,
};
use crate::lines::{LIBRARY_LINES, LineLimit};

/// One connection, shared by all its requests.
#[derive(Debug)]
pub(crate) struct ServedConnection {
    /// The peer at the other end.
    pub(crate) peer: Peer,
    /// Both addresses, by which programs on this machine are told apart.
    ends: Option<ConnectionEnds>,
    is_local_socket: bool,
    /// The process at the other end, if the system reported it.
    program: OnceLock<Option<u32>>,
    /// Notified when the connection must end to make room for another.
    gives_way: Arc<Notify>,
    permit: Mutex<Option<ConnectionPermit>>,
}

/// Counts a request as in progress on a connection until it is dropped.
#[derive(Debug)]
pub(crate) struct RequestInProgress(Arc<ServedConnection>);

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        if let Some(permit) = self.0.permit().as_mut() {
            permit.rest();
        }
    }
}

/// Counts a call as carried by a connection until it is dropped.
#[cfg(feature = "grpc")]
#[derive(Debug)]
pub(crate) struct CarriedCall(Arc<ServedConnection>);

#[cfg(feature = "grpc")]
impl Drop for CarriedCall {
    fn drop(&mut self) {
        if let Some(permit) = self.0.permit().as_mut() {
            permit.put_down();
        }
    }
}

impl ServedConnection {
    pub(crate) fn new(peer: Peer, permit: ConnectionPermit) -> Self {
        let gives_way = permit.gives_way();
        let program = match permit.source() {
            ConnectionSource::Program(process) => OnceLock::from(Some(process)),
            ConnectionSource::Unknown | ConnectionSource::Machine(_) => OnceLock::new(),
        };
        ServedConnection {
            peer,
            ends: None,
            is_local_socket: false,
            program,
            gives_way,
            permit: Mutex::new(Some(permit)),
        }
    }

    /// Marks the connection as one on the local socket.
    #[cfg(unix)]
    pub(crate) fn on_local_socket(mut self) -> Self {
        self.is_local_socket = true;
        self
    }

    /// Adds the addresses of both ends.
    pub(crate) fn between(mut self, peer: SocketAddr, hub: Option<SocketAddr>) -> Self {
        let hub = hub.filter(|_| is_loopback(peer.ip()));
        self.ends = hub.map(|hub| ConnectionEnds { peer, hub });
        self
    }

    /// Finds out, once, which program on this machine is at the other end, if connections are scarce.
    pub(crate) async fn find_program(
        &self,
        finder: &ProgramFinder,
        principal: &Principal,
        now: Now,
    ) {
        if !principal.is_local_program() || self.program.get().is_some() {
            return;
        }
        let is_needed = self
            .permit()
            .as_ref()
            .is_some_and(|it| it.needs_program(&principal.id, now.monotonic_us));
        let program = match self.ends.filter(|_| is_needed) {
            Some(ends) => finder.find(ends).await,
            None => None,
        };
        // If another request on this connection was faster, it found the same.
        let _ = self.program.set(program);
    }

    /// A principal's claim on this connection. The program counts only for principals without a credential.
    pub(crate) fn claim<'a>(&self, principal: &'a Principal, reserve: Reserve) -> Claim<'a> {
        let program = self.program.get().copied().flatten();
        let program = program.filter(|_| self.is_local_socket || principal.is_local_program());
        let is_local_socket = self.is_local_socket && program.is_some();
        Claim { principal: &principal.id, program, is_local_socket, reserve }
    }

    fn permit(&self) -> MutexGuard<'_, Option<ConnectionPermit>> {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the connection as busy with a request.
    pub(crate) fn begin_request(self: &Arc<Self>) -> RequestInProgress {
        if let Some(permit) = self.permit().as_mut() {
            permit.work();
        }
        RequestInProgress(Arc::clone(self))
    }

    /// Marks the connection as carrying a call of a known principal. It does not give way until the call
    /// ends.
    #[cfg(feature = "grpc")]
    pub(crate) fn carry_call(self: &Arc<Self>) -> CarriedCall {
        if let Some(permit) = self.permit().as_mut() {
            permit.carry();
        }
        CarriedCall(Arc::clone(self))
    }

    /// Waits until the connection must end to make room for another.
    pub(crate) async fn gives_way(&self) {
        self.gives_way.notified().await;
    }

    /// Counts the connection for this principal.
    fn belongs_to(
        &self,
        principal: &Principal,
        route: &RequestRoute,
        now: Now,
    ) -> Result<(), LimitError> {
        let reserve = match principal.is_person() {
            true => Reserve::Person,
            false if route.is_for_answering() || principal.is_allowed_program() => Reserve::Answers,
            false => Reserve::None,
        };
        let claim = self.claim(principal, reserve);
        self.permit().as_mut().map_or(Ok(()), |it| it.belongs_to(claim, now.monotonic_us))
    }

    /// Counts the connection for a local program that was allowed to answer, whose connections are counted
    /// separately.
    pub(crate) fn belongs_to_program(
        &self,
        program: &Principal,
        now: Now,
    ) -> Result<(), LimitError> {
        let claim = Claim { reserve: Reserve::Answers, ..Claim::of(&program.id) };
        self.permit().as_mut().map_or(Ok(()), |it| it.belongs_to(claim, now.monotonic_us))
    }

    /// Counts the connection as one that is only told about its refusal. There may be only a few of those.
    pub(crate) fn belongs_to_nobody(&self, now: Now) -> Result<(), LimitError> {
        let nobody = Principal::nobody();
        let claim = Claim::of(&nobody.id);
        self.permit().as_mut().map_or(Ok(()), |it| it.belongs_to(claim, now.monotonic_us))
    }

    /// Takes the permit along, for a socket that lives on elsewhere.
    pub(crate) fn take_permit(&self) -> Option<ConnectionPermit> {
        self.permit().take()
    }
}

/// A request that passed the checks, or was refused access to a known route.
#[derive(Debug)]
pub(crate) enum CheckedRequest {
    /// It needs no credentials.
    Open(RequestRoute),
    /// This principal may do it.
    Admitted(RequestRoute, Box<Principal>),
    /// This principal may do it, if there is room for the connection after all.
    Full(RequestRoute, Box<Principal>, LimitError),
    /// Access is refused. The form of the response depends on the route.
    Refused(RequestRoute, AccessError),
}

/// The checks themselves, with the state that they share.
#[derive(Debug)]
pub(crate) struct RequestChecks {
    access: Arc<Access>,
    penalties: CredentialPenalties,
    /// For credentials from sources that send wrong ones: first come, first served.
    turns: Semaphore,
    lines: LineLimit,
    programs: ProgramFinder,
}

/// How many credentials from sources that send wrong ones are checked at a time. More than one, because the check of a
/// JWT may wait for the keys of its issuer.
const MAX_TURNS: usize = 4;

impl RequestChecks {
    pub(crate) fn new(access: Arc<Access>) -> Self {
        RequestChecks {
            access,
            penalties: CredentialPenalties::default(),
            turns: Semaphore::new(MAX_TURNS),
            lines: LineLimit::new(),
            programs: ProgramFinder::default(),
        }
    }

    /// Finds programs on this machine.
    pub(crate) fn programs(&self) -> &ProgramFinder {
        &self.programs
    }

    /// The access rules.
    pub(crate) fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// Checks a request. Returns what may be done, or a response that ends it; and the page that sent it,
    /// for the headers of the response.
    pub(crate) async fn check(
        &self,
        connection: &ServedConnection,
        request: &Request<Incoming>,
        now: Now,
    ) -> (Page, Result<CheckedRequest, Box<HttpResponse>>) {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        let page = match self.access.check(&connection.peer, method, headers, uri) {
            Ok(page) => page,
            Err(error) => {
                self.log(connection, &error.to_string());
                return (Page::None, Err(refuse_foreign(&error)));
            }
        };
        if let Some(headers) = preflight(method, headers, &page) {
            let mut answer = answer::done();
            answer.headers_mut().extend(headers);
            // These headers already include those for the page.
            return (Page::None, Err(Box::new(answer)));
        }
        let passed = self.check_principal(connection, method, uri, headers, now).await;
        (page, passed)
    }

    async fn check_principal(
        &self,
        connection: &ServedConnection,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        now: Now,
    ) -> Result<CheckedRequest, Box<HttpResponse>> {
        let secret_path = SecretPath::find(uri.path());
        let path = secret_path.map_or(uri.path(), |it| it.rest);
        let route = RequestRoute::find(method, path).map_err(|no_route| {
            Box::new(match no_route {
                NoRoute::Path => answer::not_found(),
                NoRoute::Method(methods) => answer::not_allowed(methods),
            })
        })?;
        let Some(scope) = route.scope() else {
            // Public routes exist only at their own address, without a secret.
            let is_there = secret_path.is_none();
            return if is_there {
                Ok(CheckedRequest::Open(route))
            } else {
                Err(answer::not_found().into())
            };
        };
        // A link from another site may show public pages. It must not act in the name of the person who
        // follows it, and even reading acts: reading an inbox drops the instructions that were read before.
        if !headers.contains_key(ORIGIN) && is_cross_site(headers) {
            self.log(connection, &RequestError::CrossSite.to_string());
            return Err(refuse_foreign(&RequestError::CrossSite));
        }
        let authenticated = self.authenticate(&connection.peer, headers, uri, now).await;
        // Metrics contain no text from events, so local programs that collect them may read them.
        let is_for_local = matches!(route, RequestRoute::Metrics);
        let allowed = authenticated.and_then(|it| match it.allow(scope) {
            Err(_) if is_for_local && it.is_local_program() => Ok(it),
            allowed => allowed.map(|()| it),
        });
        match allowed {
            Ok(principal) => {
                connection.find_program(&self.programs, &principal, now).await;
                match connection.belongs_to(&principal, &route, now) {
                    Ok(()) => Ok(CheckedRequest::Admitted(route, Box::new(principal))),
                    Err(limit) => Ok(CheckedRequest::Full(route, Box::new(principal), limit)),
                }
            }
            Err(error) => {
                self.log(connection, &error.to_string());
                Ok(CheckedRequest::Refused(route, error))
            }
        }
    }

    /// Finds the principal that sent a request. If its source sends many wrong credentials, this one waits for its turn:
    /// all programs of this machine, or all behind one proxy, are one source, and a guess of one of them must not keep
    /// out a good credential of another. A wrong one is refused without saying that it is wrong.
    pub(super) async fn authenticate(
        &self,
        peer: &Peer,
        headers: &HeaderMap,
        uri: &Uri,
        now: Now,
    ) -> Result<Principal, AccessError> {
        let now_us = now.monotonic_us;
        let Some(credential) = self.access.guessable_credential(peer, headers, uri) else {
            return self.check_credential(peer, headers, uri, now).await;
        };
        let check = match self.penalties.begin_check(&peer.address, credential, now_us) {
            Ok(check) => check,
            Err(TooManyFailures { retry_after }) => {
                // This fails only if the semaphore was closed, which nobody does.
                let _turn = self.turns.acquire().await;
                let authenticated = self.check_credential(peer, headers, uri, now).await;
                if authenticated.is_ok() {
                    self.penalties.note_good(credential, now_us);
                }
                let retry_after_seconds = retry_after.as_secs().max(1);
                let refused = AccessError::TooManyFailures { retry_after_seconds };
                return authenticated
                    .map_err(|error| if error.is_wrong_credential() { refused } else { error });
            }
        };
        let authenticated = self.check_credential(peer, headers, uri, now).await;
        match &authenticated {
            Ok(_) => check.succeed(now_us),
            Err(error) if error.is_wrong_credential() => check.fail(now_us),
            Err(_) => {}
        }
        authenticated
    }

    /// Checks a credential. This may read a file or fetch keys, so it must not block other connections.
    async fn check_credential(
        &self,
        peer: &Peer,
        headers: &HeaderMap,
        uri: &Uri,
        now: Now,
    ) -> Result<Principal, AccessError> {
        let has_secret = SecretPath::find(uri.path()).is_some();
        if !headers.contains_key(AUTHORIZATION) && uri.query().is_none() && !has_secret {
            return self.access.authenticate(peer, headers, uri, now);
        }
        let (access, peer) = (Arc::clone(&self.access), peer.clone());
        let (headers, uri) = (headers.clone(), uri.clone());
        let check = move || access.authenticate(&peer, &headers, &uri, now);
        // A check that panicked has let nobody in.
        tokio::task::spawn_blocking(check).await.unwrap_or(Err(AccessError::Malformed))
    }

    /// Logs a refusal, unless there are too many.
    pub(super) fn log(&self, connection: &ServedConnection, reason: &str) {
        if !self.may_log() {
            return;
        }
        let peer = match connection.peer.address {
            PeerAddress::Ip(address) => address.to_string(),
            PeerAddress::SameUser => "the same user".to_owned(),
            PeerAddress::OtherUser(user_id) => format!("the user {user_id}"),
        };
        tracing::warn!(%peer, reason = %printable(reason), "A request was refused.");
    }

    /// Whether one more line that a peer caused may be logged: strangers must not be able to fill the log.
    pub(crate) fn may_log(&self) -> bool {
        self.lines.may_write(Instant::now())
    }

    /// Logs how many lines were left out, after each minute and at the end.
    pub(crate) fn log_left_out(&self, is_end: bool) {
        let now = Instant::now();
        if let Some(lines) = self.lines.take_left_out(now, is_end) {
            tracing::warn!(lines, "Lines about connections and requests were left out of the log.");
        }
        if let Some(lines) = LIBRARY_LINES.take_left_out(now, is_end) {
            tracing::warn!(lines, "Lines of libraries were left out of the log.");
        }
    }
}

/// Adds the headers that let a configured page read the response. The address may contain a secret, so no
/// referrer is sent.
pub(crate) fn for_page(mut answer: HttpResponse, page: &Page) -> HttpResponse {
    answer.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    answer.headers_mut().extend(cors_headers(page));
    answer
}

/// Refuses a request that is not meant for this hub, or that comes from a page that may not use it.
fn refuse_foreign(error: &RequestError) -> Box<HttpResponse> {
    Box::new(answer::refusal(
        answer::status(error.status()),
        "not_for_this_hub",
        &error.to_string(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Guard, Limits};
    use crate::server::answer::{ResponseBody, SendingBody};

    #[test]
    fn a_connection_whose_answer_still_goes_out_gives_way_to_nobody() {
        let guard = Guard::new(Limits::default());
        let permit = guard.connection(ConnectionSource::Unknown).expect("room");
        let connection = Arc::new(ServedConnection::new(Peer::same_user(), permit));
        let in_progress = connection.begin_request();
        let (route, now) = (RequestRoute::Backup, Now { monotonic_us: 0, unix_us: 0 });
        connection.belongs_to(&Principal::person(), &route, now).expect("room");
        let (sender, pieces) = tokio::sync::mpsc::channel(1);
        let body = SendingBody::new(ResponseBody::Pieces { pieces, left: 1 }, in_progress);
        assert!(!guard.make_way(), "a backup is not cut");
        drop((body, sender));
        assert!(guard.make_way());
    }
}
