//! Requests of the hub's administrator: the audit log in pages, and a backup of everything.
//!
//! Both concern all agents, so they are only for a principal with the admin scope that may hear all of them,
//! or that belongs to the person who runs the hub.

use std::fs::File;
use std::io::Read as _;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Method, Response, StatusCode, Uri};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc;

use super::ServerApp;
use super::answer::{self, HttpResponse, ResponseBody};
use super::query;
use super::subscribers::failed;
use crate::access::{HUB_OWNER, HeardAgents, Principal};
use crate::audit::{self, Details, ExportError, Shown};
use crate::hub::HubError;

/// The default and the largest number of entries in a response.
const DEFAULT_ENTRIES: u64 = 100;
const MAX_ENTRIES: u64 = 1024;

/// The most bytes of text in a response, give or take one entry, so that every client can read it at once.
const MAX_WORDS_BYTES: usize = 1024 * 1024;

/// The media type of a backup.
const BACKUP: &str = "application/vnd.aaep.backup";

/// The size of the pieces of a backup, and how many of them wait for a slow client.
const PIECE_BYTES: usize = 64 * 1024;
const MAX_PIECES: usize = 4;

/// How long a client may take to accept one piece.
const PIECE_TIME: Duration = Duration::from_mins(1);

impl ServerApp {
    /// A page of the audit log, with the texts that are still stored.
    pub(super) async fn audit(
        &self,
        principal: &Principal,
        uri: &Uri,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        require_hearing_all(principal)?;
        let after = query::whole_number(uri, "after")?.unwrap_or(0);
        let limit = query::number_within(uri, "limit", 1..=MAX_ENTRIES)?;
        let limit = usize::try_from(limit.unwrap_or(DEFAULT_ENTRIES)).unwrap_or(1);
        let reader = self.hub.reader().clone();
        let page = tokio::task::spawn_blocking(move || {
            let mut bytes = 0;
            let mut page = Vec::new();
            for shown in audit::show_after(&reader, after).take(limit) {
                let shown = shown?;
                bytes += words_of(&shown);
                page.push(shown);
                if bytes > MAX_WORDS_BYTES {
                    break;
                }
            }
            Ok(page)
        });
        let page = page.await.map_err(|_| failed(&HubError::Stopped))?;
        let page = page.map_err(|error: ExportError| {
            let code = match error {
                ExportError::Broken(_) => "audit_broken",
                _ => "not_stored",
            };
            let status = StatusCode::SERVICE_UNAVAILABLE;
            Box::new(answer::refusal(status, code, &error.to_string()))
        })?;
        let next = page.last().map(|shown| shown.line.seq);
        let entries: Vec<Value> = page.iter().map(row).collect();
        Ok(answer::json(StatusCode::OK, &json!({ "entries": entries, "next_after": next })))
    }

    /// A consistent snapshot of everything that is stored.
    pub(super) async fn backup(
        &self,
        principal: &Principal,
        method: &Method,
    ) -> Result<HttpResponse, Box<HttpResponse>> {
        require_hearing_all(principal)?;
        let Ok(permit) = self.backups.clone().try_acquire_owned() else {
            return Ok(answer::retry_after(
                answer::refusal(
                    StatusCode::CONFLICT,
                    "backup_running",
                    "Another backup is being made. Try again when it is done.",
                ),
                10,
            ));
        };
        if method == Method::HEAD {
            return Ok(backup_answer(ResponseBody::Whole(None)));
        }
        let file = self.hub.backup(principal).await.map_err(|error| failed(&error))?;
        let Some(file) = file else {
            return Ok(answer::refusal(
                StatusCode::CONFLICT,
                "nothing_stored",
                "This hub keeps nothing on the disk. Start it with a store to have something to back up.",
            ));
        };
        let length = file.metadata().map(|it| it.len());
        let length = length
            .map_err(|error| failed(&HubError::NotStored { why: Some(format!("{error}.")) }))?;
        let (sender, pieces) = mpsc::channel(MAX_PIECES);
        let runtime = tokio::runtime::Handle::current();
        tokio::task::spawn_blocking(move || send_file(file, &sender, &runtime, permit));
        Ok(backup_answer(ResponseBody::Pieces { pieces, left: length }))
    }
}

fn backup_answer(content: ResponseBody) -> HttpResponse {
    let mut answer = Response::new(content);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(BACKUP));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

/// Sends a file in pieces, until its end or until the client stops reading.
fn send_file(
    mut file: File,
    to: &mpsc::Sender<Bytes>,
    runtime: &tokio::runtime::Handle,
    permit: OwnedSemaphorePermit,
) {
    loop {
        let mut piece = vec![0; PIECE_BYTES];
        let count = match file.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) => {
                tracing::warn!(%error, "A backup broke off.");
                break;
            }
        };
        piece.truncate(count);
        let sending = tokio::time::timeout(PIECE_TIME, to.send(piece.into()));
        if !matches!(runtime.block_on(sending), Ok(Ok(()))) {
            tracing::info!("A backup was not taken to its end.");
            break;
        }
    }
    drop(permit);
}

/// Refuses principals that hear only some agents, because the response concerns all of them. The person who
/// runs the hub can read its files anyway.
fn require_hearing_all(principal: &Principal) -> Result<(), Box<HttpResponse>> {
    let runs_the_hub = principal.hears == HeardAgents::Own && principal.owners.contains(HUB_OWNER);
    if principal.hears == HeardAgents::All || runs_the_hub {
        return Ok(());
    }
    Err(Box::new(answer::refusal(
        StatusCode::FORBIDDEN,
        "hears_some",
        "You hear some agents alone, and this is about all of them. Ask for a token that hears all.",
    )))
}

fn words_of(shown: &Shown) -> usize {
    match &shown.details {
        Details::Words(words) => words.len(),
        _ => 0,
    }
}

/// An entry in the same form as an exported one, with the hash of the one before.
fn row(shown: &Shown) -> Value {
    let Shown { line, details } = shown;
    let (words, state) = match details {
        Details::None => (None, "none"),
        Details::Words(words) => (Some(words), "present"),
        Details::Deleted => (None, "deleted"),
        Details::Changed => (None, "changed"),
    };
    json!({
        "seq": line.seq,
        "time": line.time,
        "kind": line.kind,
        "session_id": line.session_id,
        "reply_token_sha256": line.reply_token_sha256,
        "who": line.who,
        "outcome": line.outcome,
        "details": words,
        "details_state": state,
        "previous": line.previous,
        "hash": line.hash,
    })
}
