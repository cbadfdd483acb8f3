//! Permissions: every address, with every credential, gives exactly the answer of one table.

use aaep_hub::access::Scope;
use aaep_trust::manifest::{JWKS_PATH, WELL_KNOWN_PATH};

use crate::sockets;
use crate::support::*;

/// An address: method, path, body, the scope that it requires, and the status for a principal with that scope.
pub(crate) type AddressRow = (&'static str, &'static str, &'static str, Option<Scope>, u16);

const LISTEN: Option<Scope> = Some(Scope::Listen);
const PUBLISH: Option<Scope> = Some(Scope::Publish);
const ADMIN: Option<Scope> = Some(Scope::Admin);

/// All addresses of the hub. With the right scope, the requests fail for their content, or because nothing exists.
pub(crate) const ADDRESSES: &[AddressRow] = &[
    ("GET", "/healthz", "", None, 200),
    ("GET", "/readyz", "", None, 200),
    ("GET", WELL_KNOWN_PATH, "", None, 200),
    ("GET", JWKS_PATH, "", None, 200),
    ("GET", "/metrics", "", ADMIN, 200),
    ("GET", "/aaep/v1/audit", "", ADMIN, 200),
    ("GET", "/aaep/v1/backup", "", ADMIN, 409),
    ("DELETE", "/aaep/v1/sessions/sess_none", "", ADMIN, 404),
    ("POST", "/aaep/v1/sessions/sess_none/end", "{}", ADMIN, 404),
    ("POST", "/aaep/v1/subscriptions", "{}", LISTEN, 400),
    ("GET", "/aaep/v1/events?subscription_id=sub_none", "", LISTEN, 404),
    ("GET", "/aaep/v1/ws", "", LISTEN, 426),
    ("GET", "/events", "", LISTEN, 200),
    ("POST", "/messages", "{}", LISTEN, 400),
    ("POST", "/aaep/v1/replies", "{}", LISTEN, 400),
    ("GET", "/aaep/v1/agents", "", LISTEN, 200),
    ("GET", "/aaep/v1/asks", "", LISTEN, 200),
    ("GET", "/aaep/v1/sessions", "", LISTEN, 200),
    ("GET", "/aaep/v1/sessions/sess_none/events", "", LISTEN, 404),
    ("POST", "/aaep/v1/publish", "{}", PUBLISH, 422),
    ("POST", "/aaep/v1/asks", "{}", PUBLISH, 422),
    ("GET", "/aaep/v1/asks/rpl_0123456789abcdef", "", PUBLISH, 404),
    ("DELETE", "/aaep/v1/asks/rpl_0123456789abcdef", "", PUBLISH, 404),
    ("PUT", "/aaep/v1/agents/none", "{}", PUBLISH, 400),
    ("GET", "/aaep/v1/agents/none/inbox?wait_seconds=0", "", PUBLISH, 404),
    ("GET", "/aaep/v1/agent", "", PUBLISH, 426),
];

/// A credential and the scopes that it gives; none at all if it is not valid.
pub(crate) struct Visitor {
    pub(crate) name: &'static str,
    pub(crate) headers: String,
    scopes: Option<&'static [Scope]>,
}

impl Visitor {
    /// The status for this credential at an address.
    pub(crate) fn expects(&self, row: &AddressRow) -> u16 {
        let (.., scope, open) = *row;
        match (scope, self.scopes) {
            (None, _) => open,
            (Some(_), None) => 401,
            (Some(scope), Some(scopes)) if scopes.contains(&scope) => open,
            (Some(_), Some(_)) => 403,
        }
    }
}

/// One principal for each scope, with a credential of its own.
pub(crate) fn visitors(folder: &tempfile::TempDir) -> Vec<Visitor> {
    let mut visitors = vec![Visitor {
        name: "a wrong token",
        headers: format!("authorization: Bearer aaep_{}\r\n", "A".repeat(43)),
        scopes: None,
    }];
    let scopes: [(&'static str, &'static [Scope]); 4] = [
        ("listen", &[Scope::Listen]),
        ("reply", &[Scope::Reply]),
        ("publish", &[Scope::Publish]),
        ("admin", &[Scope::Admin]),
    ];
    for (name, scopes) in scopes {
        let headers = token(folder, name, scopes);
        visitors.push(Visitor { name, headers, scopes: Some(scopes) });
    }
    visitors
}

fn guarded() -> (TestHub, Vec<Visitor>) {
    let hub = TestHub::with(|options| options.config.access.loopback_needs_credentials = true);
    let mut visitors = visitors(&hub.folder);
    visitors.push(Visitor { name: "nobody", headers: String::new(), scopes: None });
    let headers = person(&hub);
    visitors.push(Visitor { name: "the person", headers, scopes: Some(&Scope::EVERY) });
    (hub, visitors)
}

#[test]
fn every_address_lets_in_those_who_have_its_scope_and_nobody_else() {
    let (hub, visitors) = guarded();
    for row in ADDRESSES {
        let (method, path, body, ..) = *row;
        for visitor in &visitors {
            let answer = hub.as_someone(&visitor.headers, method, path, body);
            let expected = visitor.expects(row);
            assert_eq!(answer.status, expected, "{method} {path}: {} {answer:?}", visitor.name);
        }
    }
}

#[test]
fn a_local_program_without_a_credential_listens_and_speaks_and_administers_nothing() {
    let hub = TestHub::with(|options| options.config.access.trust_local_programs = false);
    let scopes: &[Scope] = &[Scope::Listen, Scope::Reply, Scope::Publish];
    let local = Visitor { name: "local", headers: String::new(), scopes: Some(scopes) };
    for row in ADDRESSES {
        let (method, path, body, ..) = *row;
        let answer = hub.as_someone("", method, path, body);
        // Counts have no words in them.
        let expected = if path == "/metrics" { 200 } else { local.expects(row) };
        assert_eq!(answer.status, expected, "{method} {path}: {answer:?}");
    }
}

#[test]
fn pages_of_others_and_other_names_get_in_nowhere_even_with_the_persons_key() {
    let (hub, _) = guarded();
    let key = person(&hub);
    let link = "sec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\n";
    let image = "sec-fetch-site: cross-site\r\nsec-fetch-mode: no-cors\r\n";
    for row in ADDRESSES {
        let (method, path, body, scope, open) = *row;
        let status =
            |more: &str| hub.as_someone(&format!("{key}{more}"), method, path, body).status;
        assert_eq!(status("origin: https://evil.example\r\n"), 403, "{method} {path}");
        assert_eq!(status("origin: null\r\n"), 403, "{method} {path}");
        assert_eq!(status(image), 403, "{method} {path}");
        let followed = if scope.is_none() { open } else { 403 };
        assert_eq!(status(link), followed, "{method} {path}");
        let renamed = request(&key, method, path, body).replace("localhost", "evil.example");
        assert_eq!(hub.raw(&renamed).status, 421, "{method} {path}");
    }
}

#[test]
fn sockets_are_for_those_who_have_their_scope_and_others_see_why_by_the_close_code() {
    let (hub, visitors) = guarded();
    for (path, subprotocol, row) in [
        ("/aaep/v1/ws", "aaep.v1", ("GET", "", "", LISTEN, 0)),
        ("/events", "aaep.v1", ("GET", "", "", LISTEN, 0)),
        ("/aaep/v1/agent", "aaep.agent.v1", ("GET", "", "", PUBLISH, 0)),
    ] {
        for visitor in &visitors {
            let mut socket = sockets::open(&hub, path, subprotocol, &visitor.headers);
            let code = match visitor.expects(&row) {
                0 => {
                    sockets::send(&mut socket, &serde_json::json!({ "type": "nothing" }));
                    assert!(sockets::next(&mut socket).is_object(), "{path}: {}", visitor.name);
                    continue;
                }
                401 => 4002,
                _ => 4003,
            };
            assert_eq!(sockets::close_code(&mut socket), code, "{path}: {}", visitor.name);
        }
    }
}
