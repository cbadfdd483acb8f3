//! The addresses of the hub, and the scope that each of them takes. One table, nothing else.

use http::Method;

use super::query::decode;
use crate::access::Scope;
use aaep_trust::manifest::{JWKS_PATH, WELL_KNOWN_PATH};

/// What a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// The process lives.
    Health,
    /// The hub can do its work.
    Ready,
    /// Counts.
    Metrics,
    /// The manifest.
    Manifest,
    /// The public keys that sign it.
    KeySet,
    /// A page of the audit log.
    Audit,
    /// Everything that is stored.
    Backup,
    /// A subscriber asks for a subscription.
    Subscribe,
    /// A subscriber wants its stream.
    Events,
    /// A subscriber says something.
    Reply,
    /// A subscriber wants a WebSocket.
    SubscriberSocket,
    /// Which agents there are.
    Agents,
    /// A stream without a handshake (ruling 27).
    LegacyEvents,
    /// Something said on the legacy path.
    LegacyMessage,
    /// An agent says something.
    Publish,
    /// An agent asks, and waits.
    Ask,
    /// Which questions wait for people.
    WaitingAsks,
    /// How a question stands.
    AskState(String),
    /// A question is taken back.
    Withdraw(String),
    /// What an agent accepts.
    Accepts(String),
    /// What people told an agent.
    Inbox(String),
    /// An agent wants a WebSocket.
    AgentSocket,
    /// Which sessions are stored.
    Sessions,
    /// The events of a stored session.
    SessionEvents(String),
    /// A stored session is to be deleted.
    DeleteSession(String),
    /// A session that runs is ended by hand.
    EndSession(String),
}

/// Why no route was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRoute {
    /// Nothing has this address.
    Path,
    /// The address takes these methods.
    Method(&'static str),
}

impl Route {
    /// The route of a request. HEAD is GET without the body.
    pub(crate) fn find(method: &Method, path: &str) -> Result<Route, NoRoute> {
        let fixed = |only: &Method, route: Route, allow: &'static str| {
            let is_it = method == only || (method == Method::HEAD && only == Method::GET);
            if is_it { Ok(route) } else { Err(NoRoute::Method(allow)) }
        };
        let get = |route| fixed(&Method::GET, route, "GET, HEAD");
        let post = |route| fixed(&Method::POST, route, "POST");
        match path {
            "/healthz" => get(Route::Health),
            "/readyz" => get(Route::Ready),
            "/metrics" => get(Route::Metrics),
            WELL_KNOWN_PATH => get(Route::Manifest),
            JWKS_PATH => get(Route::KeySet),
            "/aaep/v1/subscriptions" => post(Route::Subscribe),
            "/aaep/v1/events" => get(Route::Events),
            "/aaep/v1/replies" => post(Route::Reply),
            "/aaep/v1/ws" => get(Route::SubscriberSocket),
            "/aaep/v1/agents" => get(Route::Agents),
            "/events" => get(Route::LegacyEvents),
            "/messages" => post(Route::LegacyMessage),
            "/aaep/v1/publish" => post(Route::Publish),
            "/aaep/v1/asks" => match *method {
                Method::GET | Method::HEAD => Ok(Route::WaitingAsks),
                Method::POST => Ok(Route::Ask),
                _ => Err(NoRoute::Method("GET, HEAD, POST")),
            },
            "/aaep/v1/agent" => get(Route::AgentSocket),
            "/aaep/v1/sessions" => get(Route::Sessions),
            "/aaep/v1/audit" => get(Route::Audit),
            "/aaep/v1/backup" => get(Route::Backup),
            other => named(method, other),
        }
    }

    /// The scope that it takes; none for what everyone may see.
    pub(crate) fn scope(&self) -> Option<Scope> {
        match self {
            Route::Health | Route::Ready | Route::Manifest | Route::KeySet => None,
            Route::Metrics
            | Route::Audit
            | Route::Backup
            | Route::DeleteSession(_)
            | Route::EndSession(_) => Some(Scope::Admin),
            Route::Subscribe
            | Route::Events
            | Route::Reply
            | Route::SubscriberSocket
            | Route::Agents
            | Route::LegacyEvents
            | Route::LegacyMessage
            | Route::WaitingAsks
            | Route::Sessions
            | Route::SessionEvents(_) => Some(Scope::Listen),
            Route::Publish
            | Route::Ask
            | Route::AskState(_)
            | Route::Withdraw(_)
            | Route::Accepts(_)
            | Route::Inbox(_)
            | Route::AgentSocket => Some(Scope::Publish),
        }
    }

    /// Whether someone looks what waits for an answer, asks to hear it, or answers. None of it takes long.
    pub(crate) fn is_for_answering(&self) -> bool {
        matches!(self, Route::Subscribe | Route::Reply | Route::WaitingAsks | Route::LegacyMessage)
    }

    /// What the log calls it. Never what stands in the address.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Route::Health => "health",
            Route::Ready => "ready",
            Route::Metrics => "metrics",
            Route::Audit => "audit",
            Route::Backup => "backup",
            Route::Manifest => "manifest",
            Route::KeySet => "key set",
            Route::Subscribe => "subscribe",
            Route::Events => "events",
            Route::Reply => "reply",
            Route::SubscriberSocket => "listener socket",
            Route::Agents => "agents",
            Route::LegacyEvents => "legacy events",
            Route::LegacyMessage => "legacy message",
            Route::Publish => "publish",
            Route::Ask => "ask",
            Route::WaitingAsks => "waiting asks",
            Route::AskState(_) => "ask state",
            Route::Withdraw(_) => "withdraw",
            Route::Accepts(_) => "accepts",
            Route::Inbox(_) => "inbox",
            Route::AgentSocket => "agent socket",
            Route::Sessions => "sessions",
            Route::SessionEvents(_) => "session events",
            Route::DeleteSession(_) => "delete session",
            Route::EndSession(_) => "end session",
        }
    }
}

/// Addresses with a name in them.
fn named(method: &Method, path: &str) -> Result<Route, NoRoute> {
    if let Some(token) = path.strip_prefix("/aaep/v1/asks/") {
        let token = one_name(token)?;
        return match *method {
            Method::GET | Method::HEAD => Ok(Route::AskState(token)),
            Method::DELETE => Ok(Route::Withdraw(token)),
            _ => Err(NoRoute::Method("GET, HEAD, DELETE")),
        };
    }
    if let Some(rest) = path.strip_prefix("/aaep/v1/sessions/") {
        return session(method, rest);
    }
    let rest = path.strip_prefix("/aaep/v1/agents/").ok_or(NoRoute::Path)?;
    if let Some(agent) = rest.strip_suffix("/inbox") {
        let agent = one_name(agent)?;
        let is_get = [Method::GET, Method::HEAD].contains(method);
        return if is_get { Ok(Route::Inbox(agent)) } else { Err(NoRoute::Method("GET, HEAD")) };
    }
    let agent = one_name(rest)?;
    if method == Method::PUT { Ok(Route::Accepts(agent)) } else { Err(NoRoute::Method("PUT")) }
}

/// Addresses of one stored session.
fn session(method: &Method, rest: &str) -> Result<Route, NoRoute> {
    if let Some(id) = rest.strip_suffix("/events") {
        let id = one_name(id)?;
        let is_get = [Method::GET, Method::HEAD].contains(method);
        let route = Route::SessionEvents(id);
        return if is_get { Ok(route) } else { Err(NoRoute::Method("GET, HEAD")) };
    }
    if let Some(id) = rest.strip_suffix("/end") {
        let route = Route::EndSession(one_name(id)?);
        let is_post = method == Method::POST;
        return if is_post { Ok(route) } else { Err(NoRoute::Method("POST")) };
    }
    let id = one_name(rest)?;
    let is_delete = method == Method::DELETE;
    if is_delete { Ok(Route::DeleteSession(id)) } else { Err(NoRoute::Method("DELETE")) }
}

/// One segment of a path, decoded.
fn one_name(segment: &str) -> Result<String, NoRoute> {
    if segment.is_empty() || segment.contains('/') {
        return Err(NoRoute::Path);
    }
    decode(segment, false).ok_or(NoRoute::Path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_with_their_methods() {
        let find = |method: &Method, path| Route::find(method, path);
        assert_eq!(find(&Method::GET, "/healthz"), Ok(Route::Health));
        assert_eq!(find(&Method::HEAD, "/aaep/v1/events"), Ok(Route::Events));
        assert_eq!(find(&Method::POST, "/aaep/v1/events"), Err(NoRoute::Method("GET, HEAD")));
        assert_eq!(find(&Method::GET, "/aaep/v1/publish"), Err(NoRoute::Method("POST")));
        assert_eq!(find(&Method::HEAD, "/aaep/v1/publish"), Err(NoRoute::Method("POST")));
        assert_eq!(
            find(&Method::DELETE, "/aaep/v1/asks/tok_a%2Fb"),
            Ok(Route::Withdraw("tok_a/b".to_owned()))
        );
        assert_eq!(
            find(&Method::GET, "/aaep/v1/agents/a%20b/inbox"),
            Ok(Route::Inbox("a b".to_owned()))
        );
        assert_eq!(find(&Method::PUT, "/aaep/v1/agents/x"), Ok(Route::Accepts("x".to_owned())));
        for path in [
            "/",
            "/healthz/",
            "/aaep/v1/asks/",
            "/aaep/v1/asks/a/b",
            "/aaep/v1/asks/%ff",
            "/aaep/v1/agents/",
            "/aaep/v1/agents//inbox",
            "//events",
        ] {
            assert_eq!(find(&Method::GET, path), Err(NoRoute::Path), "{path}");
        }
    }

    #[test]
    fn only_what_everyone_may_see_takes_no_scope() {
        let open = ["/healthz", "/readyz", WELL_KNOWN_PATH, JWKS_PATH];
        for path in open {
            assert_eq!(Route::find(&Method::GET, path).expect("a route").scope(), None, "{path}");
        }
        for (method, path, scope) in [
            (Method::GET, "/metrics", Scope::Admin),
            (Method::GET, "/aaep/v1/audit", Scope::Admin),
            (Method::GET, "/aaep/v1/backup", Scope::Admin),
            (Method::POST, "/aaep/v1/replies", Scope::Listen),
            (Method::GET, "/events", Scope::Listen),
            (Method::POST, "/messages", Scope::Listen),
            (Method::GET, "/aaep/v1/asks", Scope::Listen),
            (Method::POST, "/aaep/v1/asks", Scope::Publish),
            (Method::POST, "/aaep/v1/publish", Scope::Publish),
            (Method::PUT, "/aaep/v1/agents/x", Scope::Publish),
            (Method::GET, "/aaep/v1/agent", Scope::Publish),
            (Method::GET, "/aaep/v1/sessions", Scope::Listen),
            (Method::GET, "/aaep/v1/sessions/sess_a/events", Scope::Listen),
            (Method::DELETE, "/aaep/v1/sessions/sess_a", Scope::Admin),
        ] {
            assert_eq!(Route::find(&method, path).expect("a route").scope(), Some(scope), "{path}");
        }
    }
}
