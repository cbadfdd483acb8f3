//! What anyone may ask: whether the hub lives and works, what it is, and, with the scope for it, its counts.

use http::{HeaderMap, StatusCode};
use serde_json::json;

use super::App;
use super::answer::{self, Answer};
use super::door::Connection;
use crate::metrics;

impl App {
    /// The process lives.
    pub(super) fn health() -> Answer {
        answer::json(StatusCode::OK, &json!({ "status": "alive" }))
    }

    /// Whether the hub can do its work. Strangers learn that it cannot, but not why.
    pub(super) fn ready(&self, connection: &Connection) -> Answer {
        let Some(trouble) = self.hub.trouble() else {
            let mut ready = json!({ "status": "ready" });
            let notes = self.hub.notes();
            if !notes.is_empty() && connection.peer.is_local() {
                ready["notes"] = notes.into();
            }
            return answer::json(StatusCode::OK, &ready);
        };
        let message = if connection.peer.is_local() {
            trouble
        } else {
            "The hub cannot do its work at the moment. Its log says why. Try again later."
                .to_owned()
        };
        let answer = answer::refusal(StatusCode::SERVICE_UNAVAILABLE, "not_ready", &message);
        answer::retry_after(answer, 5)
    }

    /// The counts.
    pub(super) async fn metrics(&self) -> Answer {
        // A hub that cannot answer still has the counts from before.
        let _ = self.hub.count().await;
        self.metrics.connections(self.guard.connections() as u64);
        answer::whole(StatusCode::OK, metrics::CONTENT_TYPE, self.metrics.text())
    }

    /// The manifest, as JSON or signed.
    pub(super) fn manifest(&self, headers: &HeaderMap) -> Answer {
        self.manifest.answer(headers)
    }

    /// The public keys that sign it.
    pub(super) fn key_set(&self) -> Answer {
        self.manifest.answer_keys()
    }
}
