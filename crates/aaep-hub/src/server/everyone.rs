//! Routes for everyone: health, readiness and the manifest; and, with its scope, the metrics.

use http::{HeaderMap, StatusCode};
use serde_json::json;

use super::ServerApp;
use super::answer::{self, HttpResponse};
use super::door::ServedConnection;
use crate::metrics;

impl ServerApp {
    /// The process is alive.
    pub(super) fn health() -> HttpResponse {
        answer::json(StatusCode::OK, &json!({ "status": "alive" }))
    }

    /// Whether the hub can do its work. Strangers learn that it cannot, but not why.
    pub(super) fn ready(&self, connection: &ServedConnection) -> HttpResponse {
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

    /// The metrics.
    pub(super) async fn metrics(&self) -> HttpResponse {
        // If the hub does not answer, the earlier counts remain.
        let _ = self.hub.count().await;
        self.metrics.connections(self.guard.connections() as u64);
        answer::whole(StatusCode::OK, metrics::CONTENT_TYPE, self.metrics.text())
    }

    /// The manifest, as JSON or signed.
    pub(super) fn manifest(&self, headers: &HeaderMap) -> HttpResponse {
        self.manifest.answer(headers)
    }

    /// The public keys that verify the manifest.
    pub(super) fn key_set(&self) -> HttpResponse {
        self.manifest.answer_keys()
    }
}
