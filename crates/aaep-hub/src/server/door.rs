//! The doors of the hub, for every request alike: is it for this hub, may its page ask, what is it for, who
//! sent it, may they. Only then does anyone look at what it says.
//!
//! What is refused here is logged with its reason, a few lines a minute at most, and the rest is counted; the
//! sender hears no more than [`AccessError::public_message`]. Where many wrong credentials come from, they are checked
//! ever more rarely; one that was good lately always is.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use aaep::printable;
use aaep_engine::Now;
use http::header::{AUTHORIZATION, ORIGIN, REFERRER_POLICY};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use hyper::body::Incoming;
use tokio::sync::Notify;

use super::answer::{self, Answer};
use super::programs::{ConnectionEnds, ProgramFinder};
use super::route::{NoRoute, Route};
use crate::access::{
    Access, AccessError, Claim, ConnectionPermit, LimitError, Page, Peer, PeerAddress, Penalties,
    Principal, RequestError, Reserve, SecretPath, TooManyFailures, cors_headers, is_cross_site,
    is_loopback, preflight,
};
use crate::lines::{LIBRARY_LINES, LineLimit};

/// One connection, as all its requests see it.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The other end.
    pub(crate) peer: Peer,
    /// Both ends of it, where programs of one machine are told apart by them.
    ends: Option<ConnectionEnds>,
    is_local_socket: bool,
    /// The process at the other end, if the system said so.
    program: OnceLock<Option<u32>>,
    /// Says that it must end to make room for another.
    gives_way: Arc<Notify>,
    permit: Mutex<Option<ConnectionPermit>>,
}

/// A request is under way on a connection until this is dropped.
#[derive(Debug)]
pub(crate) struct Working(Arc<Connection>);

impl Drop for Working {
    fn drop(&mut self) {
        if let Some(permit) = self.0.permit().as_mut() {
            permit.rest();
        }
    }
}

/// A call is carried by a connection until this is dropped.
#[cfg(feature = "grpc")]
#[derive(Debug)]
pub(crate) struct CarriedCall(Arc<Connection>);

#[cfg(feature = "grpc")]
impl Drop for CarriedCall {
    fn drop(&mut self) {
        if let Some(permit) = self.0.permit().as_mut() {
            permit.put_down();
        }
    }
}

impl Connection {
    pub(crate) fn new(peer: Peer, permit: ConnectionPermit) -> Self {
        let gives_way = permit.gives_way();
        Connection {
            peer,
            ends: None,
            is_local_socket: false,
            program: OnceLock::new(),
            gives_way,
            permit: Mutex::new(Some(permit)),
        }
    }

    /// The same, on the local socket, of this process.
    #[cfg(unix)]
    pub(crate) fn of_program(mut self, program: Option<u32>) -> Self {
        self.is_local_socket = true;
        self.program = OnceLock::from(program);
        self
    }

    /// The same, between these ends.
    pub(crate) fn between(mut self, peer: SocketAddr, hub: Option<SocketAddr>) -> Self {
        let hub = hub.filter(|_| is_loopback(peer.ip()));
        self.ends = hub.map(|hub| ConnectionEnds { peer, hub });
        self
    }

    /// Finds out which program of this machine is at the other end, once, if places are scarce.
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
        // If another request of it was faster, it found the same.
        let _ = self.program.set(program);
    }

    /// The claim of a principal on this connection. The program counts only for those who have no credential.
    pub(crate) fn claim<'a>(&self, principal: &'a Principal, reserve: Reserve) -> Claim<'a> {
        let program = self.program.get().copied().flatten();
        let program = program.filter(|_| self.is_local_socket || principal.is_local_program());
        let is_local_socket = self.is_local_socket && program.is_some();
        Claim { principal: &principal.id, program, is_local_socket, reserve }
    }

    fn permit(&self) -> MutexGuard<'_, Option<ConnectionPermit>> {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request is under way.
    pub(crate) fn working(self: &Arc<Self>) -> Working {
        if let Some(permit) = self.permit().as_mut() {
            permit.work();
        }
        Working(Arc::clone(self))
    }

    /// It carries a call of somebody who was let in, and gives way to nobody until that ends.
    #[cfg(feature = "grpc")]
    pub(crate) fn carrying(self: &Arc<Self>) -> CarriedCall {
        if let Some(permit) = self.permit().as_mut() {
            permit.carry();
        }
        CarriedCall(Arc::clone(self))
    }

    /// Waits until it must end to make room for another.
    pub(crate) async fn gives_way(&self) {
        self.gives_way.notified().await;
    }

    /// Counts the connection as that of this principal.
    fn belongs_to(&self, principal: &Principal, route: &Route, now: Now) -> Result<(), LimitError> {
        let reserve = match principal.is_person() {
            true => Reserve::Person,
            false if route.is_for_answering() || principal.is_allowed_program() => Reserve::Answers,
            false => Reserve::None,
        };
        let claim = self.claim(principal, reserve);
        self.permit().as_mut().map_or(Ok(()), |it| it.belongs_to(claim, now.monotonic_us))
    }

    /// Counts the connection as that of a local program that was allowed to answer, which has places of its own.
    pub(crate) fn belongs_to_program(
        &self,
        program: &Principal,
        now: Now,
    ) -> Result<(), LimitError> {
        let claim = Claim { reserve: Reserve::Answers, ..Claim::of(&program.id) };
        self.permit().as_mut().map_or(Ok(()), |it| it.belongs_to(claim, now.monotonic_us))
    }

    /// Counts the connection as one that was refused and is still told so. There are only a few of those.
    pub(crate) fn belongs_to_nobody(&self, now: Now) -> Result<(), LimitError> {
        let nobody = Principal::nobody();
        let claim = Claim::of(&nobody.id);
        self.permit().as_mut().map_or(Ok(()), |it| it.belongs_to(claim, now.monotonic_us))
    }

    /// Takes the place of the connection along, for a socket that lives on elsewhere.
    pub(crate) fn take_permit(&self) -> Option<ConnectionPermit> {
        self.permit().take()
    }
}

/// What came through the doors.
#[derive(Debug)]
pub(crate) enum Passed {
    /// Everyone may see it.
    Open(Route),
    /// This principal may do it.
    By(Route, Box<Principal>),
    /// This principal may do it, if there is a place for the connection after all.
    Full(Route, Box<Principal>, LimitError),
    /// They may not; how they hear so depends on what they asked for.
    Refused(Route, AccessError),
}

/// The doors.
#[derive(Debug)]
pub(crate) struct Doors {
    access: Arc<Access>,
    penalties: Penalties,
    lines: LineLimit,
    programs: ProgramFinder,
}

impl Doors {
    pub(crate) fn new(access: Arc<Access>) -> Self {
        Doors {
            access,
            penalties: Penalties::default(),
            lines: LineLimit::new(),
            programs: ProgramFinder::default(),
        }
    }

    /// What finds the programs of this machine.
    #[cfg(feature = "grpc")]
    pub(crate) fn programs(&self) -> &ProgramFinder {
        &self.programs
    }

    /// Who decides who comes in.
    pub(crate) fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// Lets a request in, or answers it. Also says which page asked, for the headers of the answer.
    pub(crate) async fn pass(
        &self,
        connection: &Connection,
        request: &Request<Incoming>,
        now: Now,
    ) -> (Page, Result<Passed, Box<Answer>>) {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        let page = match self.access.check(&connection.peer, method, headers, uri) {
            Ok(page) => page,
            Err(error) => {
                self.log(connection, &error.to_string());
                return (Page::None, Err(foreign(&error)));
            }
        };
        if let Some(headers) = preflight(method, headers, &page) {
            let mut answer = answer::done();
            answer.headers_mut().extend(headers);
            // The headers of the page are among these already.
            return (Page::None, Err(Box::new(answer)));
        }
        let passed = self.principal(connection, method, uri, headers, now).await;
        (page, passed)
    }

    async fn principal(
        &self,
        connection: &Connection,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        now: Now,
    ) -> Result<Passed, Box<Answer>> {
        let secret_path = SecretPath::find(uri.path());
        let path = secret_path.map_or(uri.path(), |it| it.rest);
        let route = Route::find(method, path).map_err(|no_route| {
            Box::new(match no_route {
                NoRoute::Path => answer::not_found(),
                NoRoute::Method(methods) => answer::not_allowed(methods),
            })
        })?;
        let Some(scope) = route.scope() else {
            // What everyone may see is at its own address, and needs no secret.
            let is_there = secret_path.is_none();
            return if is_there {
                Ok(Passed::Open(route))
            } else {
                Err(answer::not_found().into())
            };
        };
        // A link of another site may show what everyone may see. It must do nothing in the name of the person who
        // follows it, and even reading does: reading an inbox drops what was read before.
        if !headers.contains_key(ORIGIN) && is_cross_site(headers) {
            self.log(connection, &RequestError::CrossSite.to_string());
            return Err(foreign(&RequestError::CrossSite));
        }
        let known = self.authenticate(&connection.peer, headers, uri, now).await;
        // Counts have no words in them, and whatever collects them on this machine may have them.
        let is_for_local = matches!(route, Route::Metrics);
        let allowed = known.and_then(|it| match it.allow(scope) {
            Err(_) if is_for_local && it.is_local_program() => Ok(it),
            allowed => allowed.map(|()| it),
        });
        match allowed {
            Ok(principal) => {
                connection.find_program(&self.programs, &principal, now).await;
                match connection.belongs_to(&principal, &route, now) {
                    Ok(()) => Ok(Passed::By(route, Box::new(principal))),
                    Err(limit) => Ok(Passed::Full(route, Box::new(principal), limit)),
                }
            }
            Err(error) => {
                self.log(connection, &error.to_string());
                Ok(Passed::Refused(route, error))
            }
        }
    }

    /// Finds out who sent a request. Where many wrong credentials come from, most are not even checked.
    pub(super) async fn authenticate(
        &self,
        peer: &Peer,
        headers: &HeaderMap,
        uri: &Uri,
        now: Now,
    ) -> Result<Principal, AccessError> {
        let now_us = now.monotonic_us;
        let Some(credential) = self.access.guessable(peer, headers, uri) else {
            return self.check_credential(peer, headers, uri, now).await;
        };
        let check = self.penalties.begin_check(&peer.address, credential, now_us);
        let check = check.map_err(|TooManyFailures { retry_after }| {
            AccessError::TooManyFailures { retry_after_seconds: retry_after.as_secs().max(1) }
        })?;
        let known = self.check_credential(peer, headers, uri, now).await;
        match &known {
            Ok(_) => check.succeed(now_us),
            Err(error) if error.is_wrong_credential() => check.fail(now_us),
            Err(_) => {}
        }
        known
    }

    /// Checking a credential may read a file or fetch keys, so it must not hold up other connections.
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
        // A check that broke has let nobody in.
        tokio::task::spawn_blocking(check).await.unwrap_or(Err(AccessError::Malformed))
    }

    /// Logs a refusal, unless that would fill the log.
    pub(super) fn log(&self, connection: &Connection, reason: &str) {
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

    /// Logs how many lines were not logged, when a minute is over, or at the end.
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

/// The same answer with what lets a configured page read it. Its address may have a secret in it, and is told to
/// nobody else.
pub(crate) fn for_page(mut answer: Answer, page: &Page) -> Answer {
    answer.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    answer.headers_mut().extend(cors_headers(page));
    answer
}

/// A request that is not for this hub, or comes from a page that may not ask.
fn foreign(error: &RequestError) -> Box<Answer> {
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
    use crate::server::answer::{Content, SendingBody};

    #[test]
    fn a_connection_whose_answer_still_goes_out_gives_way_to_nobody() {
        let guard = Guard::new(Limits::default());
        let permit = guard.connection().expect("room");
        let connection = Arc::new(Connection::new(Peer::same_user(), permit));
        let working = connection.working();
        let (route, now) = (Route::Backup, Now { monotonic_us: 0, unix_us: 0 });
        connection.belongs_to(&Principal::person(), &route, now).expect("room");
        let (sender, pieces) = tokio::sync::mpsc::channel(1);
        let body = SendingBody::new(Content::Pieces { pieces, left: 1 }, working);
        assert!(!guard.make_way(), "a backup is not cut");
        drop((body, sender));
        assert!(guard.make_way());
    }
}
