//! The routes of the hub and the scope that each requires, in one table.

use http::Method;

use super::query::decode;
use crate::access::Scope;
use aaep_trust::manifest::{JWKS_PATH, WELL_KNOWN_PATH};

/// The purpose of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestRoute {
    /// Whether the process is alive.
    Health,
    /// Whether the hub can do its work.
    Ready,
    /// The metrics.
    Metrics,
    Manifest,
    /// The public keys that verify the manifest.
    KeySet,
    /// A page of the audit log.
    Audit,
    /// A backup of everything that is stored.
    Backup,
    /// A subscriber requests a subscription.
    Subscribe,
    /// A subscriber opens its stream.
    Events,
    /// A subscriber sends a message.
    Reply,
    /// A subscriber opens a WebSocket.
    SubscriberSocket,
    /// The list of agents.
    Agents,
    /// A stream without a handshake (ruling 27).
    LegacyEvents,
    /// A message on the legacy path.
    LegacyMessage,
    /// An agent publishes events.
    Publish,
    /// An agent asks and waits.
    Ask,
    /// The asks that wait for people.
    WaitingAsks,
    /// The state of an ask.
    AskState(String),
    /// An agent withdraws an ask.
    Withdraw(String),
    /// An agent declares which instructions it accepts.
    Accepts(String),
    /// The instructions that people gave an agent.
    Inbox(String),
    /// An agent opens a WebSocket.
    AgentSocket,
    /// The list of stored sessions.
    Sessions,
    /// The events of a stored session.
    SessionEvents(String),
    /// Deletes a stored session.
    DeleteSession(String),
    /// Ends a running session by hand.
    EndSession(String),
}

/// Why no route was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRoute {
    /// Nothing has this path.
    Path,
    /// The path accepts these methods.
    Method(&'static str),
}

impl RequestRoute {
    /// Finds the route of a request. HEAD is GET without the body.
    pub(crate) fn find(method: &Method, path: &str) -> Result<RequestRoute, NoRoute> {
        let fixed = |only: &Method, route: RequestRoute, allow: &'static str| {
            let is_it = method == only || (method == Method::HEAD && only == Method::GET);
            if is_it { Ok(route) } else { Err(NoRoute::Method(allow)) }
        };
        let get = |route| fixed(&Method::GET, route, "GET, HEAD");
        let post = |route| fixed(&Method::POST, route, "POST");
        match path {
            "/healthz" => get(RequestRoute::Health),
            "/readyz" => get(RequestRoute::Ready),
            "/metrics" => get(RequestRoute::Metrics),
            WELL_KNOWN_PATH => get(RequestRoute::Manifest),
            JWKS_PATH => get(RequestRoute::KeySet),
            "/aaep/v1/subscriptions" => post(RequestRoute::Subscribe),
            "/aaep/v1/events" => get(RequestRoute::Events),
            "/aaep/v1/replies" => post(RequestRoute::Reply),
            "/aaep/v1/ws" => get(RequestRoute::SubscriberSocket),
            "/aaep/v1/agents" => get(RequestRoute::Agents),
            "/events" => get(RequestRoute::LegacyEvents),
            "/messages" => post(RequestRoute::LegacyMessage),
            "/aaep/v1/publish" => post(RequestRoute::Publish),
            "/aaep/v1/asks" => match *method {
                Method::GET | Method::HEAD => Ok(RequestRoute::WaitingAsks),
                Method::POST => Ok(RequestRoute::Ask),
                _ => Err(NoRoute::Method("GET, HEAD, POST")),
            },
            "/aaep/v1/agent" => get(RequestRoute::AgentSocket),
            "/aaep/v1/sessions" => get(RequestRoute::Sessions),
            "/aaep/v1/audit" => get(RequestRoute::Audit),
            "/aaep/v1/backup" => get(RequestRoute::Backup),
            other => named(method, other),
        }
    }

    /// The required scope. `None` for routes that need no credentials.
    pub(crate) fn scope(&self) -> Option<Scope> {
        match self {
            RequestRoute::Health
            | RequestRoute::Ready
            | RequestRoute::Manifest
            | RequestRoute::KeySet => None,
            RequestRoute::Metrics
            | RequestRoute::Audit
            | RequestRoute::Backup
            | RequestRoute::DeleteSession(_)
            | RequestRoute::EndSession(_) => Some(Scope::Admin),
            RequestRoute::Subscribe
            | RequestRoute::Events
            | RequestRoute::Reply
            | RequestRoute::SubscriberSocket
            | RequestRoute::Agents
            | RequestRoute::LegacyEvents
            | RequestRoute::LegacyMessage
            | RequestRoute::WaitingAsks
            | RequestRoute::Sessions
            | RequestRoute::SessionEvents(_) => Some(Scope::Listen),
            RequestRoute::Publish
            | RequestRoute::Ask
            | RequestRoute::AskState(_)
            | RequestRoute::Withdraw(_)
            | RequestRoute::Accepts(_)
            | RequestRoute::Inbox(_)
            | RequestRoute::AgentSocket => Some(Scope::Publish),
        }
    }

    /// Whether the request belongs to answering: seeing pending asks, subscribing to them, or replying. None
    /// of these takes long.
    pub(crate) fn is_for_answering(&self) -> bool {
        matches!(
            self,
            RequestRoute::Subscribe
                | RequestRoute::Reply
                | RequestRoute::WaitingAsks
                | RequestRoute::LegacyMessage
        )
    }

    /// The name in the log. It never contains text from the address.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            RequestRoute::Health => "health",
            RequestRoute::Ready => "ready",
            RequestRoute::Metrics => "metrics",
            RequestRoute::Audit => "audit",
            RequestRoute::Backup => "backup",
            RequestRoute::Manifest => "manifest",
            RequestRoute::KeySet => "key set",
            RequestRoute::Subscribe => "subscribe",
            RequestRoute::Events => "events",
            RequestRoute::Reply => "reply",
            RequestRoute::SubscriberSocket => "listener socket",
            RequestRoute::Agents => "agents",
            RequestRoute::LegacyEvents => "legacy events",
            RequestRoute::LegacyMessage => "legacy message",
            RequestRoute::Publish => "publish",
            RequestRoute::Ask => "ask",
            RequestRoute::WaitingAsks => "waiting asks",
            RequestRoute::AskState(_) => "ask state",
            RequestRoute::Withdraw(_) => "withdraw",
            RequestRoute::Accepts(_) => "accepts",
            RequestRoute::Inbox(_) => "inbox",
            RequestRoute::AgentSocket => "agent socket",
            RequestRoute::Sessions => "sessions",
            RequestRoute::SessionEvents(_) => "session events",
            RequestRoute::DeleteSession(_) => "delete session",
            RequestRoute::EndSession(_) => "end session",
        }
    }
}

/// Paths that contain a name.
fn named(method: &Method, path: &str) -> Result<RequestRoute, NoRoute> {
    if let Some(token) = path.strip_prefix("/aaep/v1/asks/") {
        let token = one_name(token)?;
        return match *method {
            Method::GET | Method::HEAD => Ok(RequestRoute::AskState(token)),
            Method::DELETE => Ok(RequestRoute::Withdraw(token)),
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
        return if is_get {
            Ok(RequestRoute::Inbox(agent))
        } else {
            Err(NoRoute::Method("GET, HEAD"))
        };
    }
    let agent = one_name(rest)?;
    if method == Method::PUT {
        Ok(RequestRoute::Accepts(agent))
    } else {
        Err(NoRoute::Method("PUT"))
    }
}

/// Paths of one stored session.
fn session(method: &Method, rest: &str) -> Result<RequestRoute, NoRoute> {
    if let Some(id) = rest.strip_suffix("/events") {
        let id = one_name(id)?;
        let is_get = [Method::GET, Method::HEAD].contains(method);
        let route = RequestRoute::SessionEvents(id);
        return if is_get { Ok(route) } else { Err(NoRoute::Method("GET, HEAD")) };
    }
    if let Some(id) = rest.strip_suffix("/end") {
        let route = RequestRoute::EndSession(one_name(id)?);
        let is_post = method == Method::POST;
        return if is_post { Ok(route) } else { Err(NoRoute::Method("POST")) };
    }
    let id = one_name(rest)?;
    let is_delete = method == Method::DELETE;
    if is_delete { Ok(RequestRoute::DeleteSession(id)) } else { Err(NoRoute::Method("DELETE")) }
}

/// Decodes one segment of a path.
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
        let find = |method: &Method, path| RequestRoute::find(method, path);
        assert_eq!(find(&Method::GET, "/healthz"), Ok(RequestRoute::Health));
        assert_eq!(find(&Method::HEAD, "/aaep/v1/events"), Ok(RequestRoute::Events));
        assert_eq!(find(&Method::POST, "/aaep/v1/events"), Err(NoRoute::Method("GET, HEAD")));
        assert_eq!(find(&Method::GET, "/aaep/v1/publish"), Err(NoRoute::Method("POST")));
        assert_eq!(find(&Method::HEAD, "/aaep/v1/publish"), Err(NoRoute::Method("POST")));
        assert_eq!(
            find(&Method::DELETE, "/aaep/v1/asks/tok_a%2Fb"),
            Ok(RequestRoute::Withdraw("tok_a/b".to_owned()))
        );
        assert_eq!(
            find(&Method::GET, "/aaep/v1/agents/a%20b/inbox"),
            Ok(RequestRoute::Inbox("a b".to_owned()))
        );
        assert_eq!(
            find(&Method::PUT, "/aaep/v1/agents/x"),
            Ok(RequestRoute::Accepts("x".to_owned()))
        );
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
            assert_eq!(
                RequestRoute::find(&Method::GET, path).expect("a route").scope(),
                None,
                "{path}"
            );
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
            assert_eq!(
                RequestRoute::find(&method, path).expect("a route").scope(),
                Some(scope),
                "{path}"
            );
        }
    }
}
