//! Which subscribers are let in, and which hubs a subscriber speaks to.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use aaep_hub::access::Scope;
use aaep_hub::tls::{ClientCertificatePolicy, TlsFiles};
use aaep_transport::link::{DialError, DialOptions, LinkEnd, LinkResume, dial};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{ClientConfig, RootCertStore};

use crate::support::*;

fn with_token(token: &str) -> DialOptions {
    DialOptions { bearer: Some(token.to_owned()), ..DialOptions::default() }
}

async fn guarded() -> TestHub {
    TestHub::with(|options, _| options.config.access.loopback_needs_credentials = true).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_right_token_lets_a_subscriber_in() {
    let hub = guarded().await;
    let token = token(&hub.folder, "reader", &[Scope::Listen, Scope::Reply]);
    for &wire in NETWORK_WIRES {
        let mut subscriber = hub.dial(wire, with_token(&token)).await.expect("a link");
        subscriber.subscribe(subscription_request()).await;
        hub.publish(started(&format!("sess_{wire:?}"), "I begin.")).await;
        subscriber.next_of("aaep:agent.session.started").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_credential_or_a_wrong_one_is_refused_on_every_wire() {
    let hub = guarded().await;
    let agent = token(&hub.folder, "agent", &[Scope::Publish]);
    for options in [DialOptions::default(), with_token("aaep_wrong"), with_token(&agent)] {
        for &wire in NETWORK_WIRES {
            let mut subscriber = hub.dial(wire, options.clone()).await.expect("a link");
            // The hub may have ended already.
            let _ = subscriber.link.sender.send(subscription_request().to_string()).await;
            match subscriber.end().await {
                LinkEnd::Refused { reason } => {
                    assert!(!reason.is_empty() && !reason.contains(agent.as_str()), "{reason}");
                }
                other => panic!("{wire:?} {other:?}"),
            }
        }
        let resume = LinkResume { subscription_id: Some("sub_1".to_owned()), last_event_id: None };
        let options = DialOptions { resume: Some(resume), ..options };
        let error = hub.dial(Wire::Sse, options).await.err().expect("refused");
        assert!(matches!(error, DialError::Refused { .. }), "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_can_be_none_is_never_sent() {
    let hub = TestHub::new().await;
    for token in ["", "a b", "a\r\nx: y", "schlüssel"] {
        for &wire in NETWORK_WIRES {
            let error = hub.dial(wire, with_token(token)).await.err();
            assert_eq!(error, Some(DialError::Bearer), "{token:?}");
        }
    }
}

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Authority(CertifiedIssuer::self_signed(params, key).expect("an authority"))
    }

    fn issue(&self, name: &str, folder: &Path) -> TlsFiles {
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        let write = |name: &str, text: String| {
            let path = folder.join(name);
            fs::write(&path, text).expect("writes");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("mode");
            path
        };
        TlsFiles {
            certificate: write("hub.pem", certificate.pem()),
            private_key: write("hub.key", key.serialize_pem()),
            client_authority: None,
            client_certificate: ClientCertificatePolicy::Optional,
        }
    }

    fn trusted(&self) -> DialOptions {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("an authority");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        DialOptions { tls: Some(Arc::new(config)), ..DialOptions::default() }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn links_are_encrypted_and_only_with_whom_is_trusted() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let hub = TestHub::with(|options, folder| {
        token(folder, "so that others may come", &[Scope::Listen]);
        options.bind = vec!["0.0.0.0:0".parse().expect("an address")];
        options.config.access.host_names = vec!["localhost".to_owned()];
        options.config.tls = Some(authority.issue("localhost", folder.path()));
    })
    .await;
    let wires = if cfg!(feature = "grpc") {
        ["https", "wss", "grpcs"].as_slice()
    } else {
        &["https", "wss"]
    };
    for scheme in wires {
        let at = |host: &str| target(&format!("{scheme}://{host}:{}", hub.port()));
        let link = dial(&at("localhost"), &authority.trusted()).await.expect("a link");
        let mut subscriber = Subscriber { link, id: String::new() };
        subscriber.subscribe(subscription_request()).await;
        hub.publish(started(&format!("sess_{scheme}"), "I begin.")).await;
        let token = hub.ask(&format!("sess_{scheme}")).await;
        subscriber.next_of("aaep:agent.awaiting.confirmation").await;
        subscriber.decide(&token, "reject").await;
        hub.settlement(&token).await;
        for (target, options) in
            [(at("localhost"), stranger.trusted()), (at("127.0.0.1"), authority.trusted())]
        {
            let error = dial(&target, &options).await.expect_err("not trusted");
            assert!(matches!(error, DialError::Tls(_)), "{error:?}");
        }
    }
    for &plain in NETWORK_WIRES {
        let refused = match hub.dial(plain, DialOptions::default()).await {
            Err(error) => LinkEnd::from(error),
            Ok(mut subscriber) => {
                let _ = subscriber.link.sender.send(subscription_request().to_string()).await;
                subscriber.end().await
            }
        };
        assert!(matches!(refused, LinkEnd::Cut(_)), "{plain:?} {refused:?}");
    }
}
