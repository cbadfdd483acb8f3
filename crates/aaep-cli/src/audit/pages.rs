//! Reads the audit log of a running hub, page by page.
//!
//! Checks that each entry follows the one before, and stops at the first that does not.

use std::collections::VecDeque;
use std::time::Duration;

use aaep_hub::audit::{AuditLine, Details, Shown};
use serde_json::Value;

use crate::agent;
use crate::console::CommandFailure;
use crate::http::{HubClient, HubRequest};

/// How many entries a page has.
const PAGE: u64 = 500;

/// How long the hub may take to answer with a page.
const TIMEOUT: Duration = Duration::from_secs(30);

/// All entries, oldest first.
pub(super) fn entries(client: HubClient) -> impl Iterator<Item = Result<Shown, CommandFailure>> {
    AuditPages { client, waiting: VecDeque::new(), last: None, is_over: false }
}

struct AuditPages {
    client: HubClient,
    waiting: VecDeque<Shown>,
    /// The number and hash of the previous entry.
    last: Option<(u64, String)>,
    is_over: bool,
}

impl Iterator for AuditPages {
    type Item = Result<Shown, CommandFailure>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.waiting.is_empty() && !self.is_over {
            match self.page() {
                Ok(page) => {
                    self.is_over = page.is_empty();
                    self.waiting = page.into();
                }
                Err(failure) => {
                    self.is_over = true;
                    return Some(Err(failure));
                }
            }
        }
        let shown = self.waiting.pop_front()?;
        let line = &shown.line;
        let follows = self
            .last
            .as_ref()
            .is_none_or(|(seq, hash)| line.seq == seq.saturating_add(1) && line.previous == *hash);
        if !follows {
            self.is_over = true;
            self.waiting.clear();
            let what = format!("entry {} does not follow the one before it", line.seq);
            let next = "Keep a copy of the log and find out who changed it.";
            return Some(Err(CommandFailure::new(what, next)));
        }
        self.last = Some((line.seq, line.hash.clone()));
        Some(Ok(shown))
    }
}

impl AuditPages {
    fn page(&self) -> Result<Vec<Shown>, CommandFailure> {
        let after = self.last.as_ref().map_or(0, |(seq, _)| *seq);
        let path = format!("/aaep/v1/audit?after={after}&limit={PAGE}");
        let request = HubRequest { method: "GET", path: &path, body: None, timeout: TIMEOUT };
        let answer = self.client.send(&request);
        let answer = answer.map_err(|error| agent::not_answered(&self.client, &error))?;
        if !answer.is_success() {
            return Err(agent::refused(&self.client, &answer));
        }
        let page = answer.json().and_then(|body| {
            body.get("entries")?.as_array()?.iter().map(shown_of).collect::<Option<_>>()
        });
        page.ok_or_else(|| agent::strange(&self.client))
    }
}

fn shown_of(row: &Value) -> Option<Shown> {
    let line: AuditLine = serde_json::from_value(with_details_hash(row)?).ok()?;
    let words = || row.get("details")?.as_str().map(str::to_owned);
    let details = match row.get("details_state")?.as_str()? {
        "none" => Details::None,
        "present" => Details::Words(words()?),
        "deleted" => Details::Deleted,
        "changed" => Details::Changed,
        _ => return None,
    };
    Some(Shown { line, details })
}

/// A row contains the words instead of their hash.
fn with_details_hash(row: &Value) -> Option<Value> {
    let mut row = row.as_object()?.clone();
    row.insert("details_hash".to_owned(), Value::Null);
    Some(row.into())
}
