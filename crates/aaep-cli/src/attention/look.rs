//! Queries a hub for its pending questions. This does not subscribe, and answers nothing.

use std::time::Duration;

use aaep::extension::{AskOutcome, DecidedBy};
use aaep::{Event, Message, Mode, Timestamp};
use aaep_announce::agent_name;
use serde_json::Value;

use super::asked::PresentedAsk;
use crate::agent::{not_answered, refused, strange};
use crate::console::CommandFailure;
use crate::http::HubRequest;
use crate::hubs::reach::client;

/// How long a hub may take to answer.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// The most questions that are read.
const MAX_LOOKED_AT: usize = 1024;

/// Replaces the reply token for a principal that may not answer.
const NO_TOKEN: &str = "rpl_none";

/// The pending questions at one address.
#[derive(Debug)]
pub(crate) struct AttentionEntries {
    /// The questions, oldest first.
    pub(crate) waiting: Vec<AttentionEntry>,
    /// How many more there are.
    pub(crate) more: u64,
}

/// One page of the pending questions at an address.
#[derive(Debug)]
struct AttentionPage {
    waiting: Vec<AttentionEntry>,
    /// How many there are in total.
    total: u64,
    /// The cursor of the next page.
    next: Option<String>,
}

/// A pending question.
#[derive(Debug)]
pub(crate) struct AttentionEntry {
    pub(crate) address: String,
    /// The agent's name. Untrusted text.
    pub(crate) agent: String,
    /// The name that the person heard for this agent while listening.
    pub(crate) agent_label: Option<String>,
    /// The ask; `None` if this person may hear it but not answer.
    pub(crate) asked: Option<PresentedAsk>,
    pub(crate) event: Event,
    /// The event as received, for JSON output.
    pub(crate) json: Value,
    pub(crate) asked_at: Timestamp,
    pub(crate) left: Duration,
    pub(crate) is_paused: bool,
}

/// Queries the hub at an address.
pub(crate) fn look(address: &str, token: Option<&str>) -> Result<AttentionEntries, CommandFailure> {
    let client = client(address, token)?;
    let mut pages: Vec<AttentionPage> = Vec::new();
    let mut after = String::new();
    loop {
        let path = format!("/aaep/v1/asks?limit={MAX_LOOKED_AT}{after}");
        let request = HubRequest { method: "GET", path: &path, body: None, timeout: LOOK_TIMEOUT };
        let answer = client.send(&request).map_err(|error| not_answered(&client, &error))?;
        if answer.status != 200 {
            return Err(refused(&client, &answer));
        }
        let body = answer.json().ok_or_else(|| strange(&client))?;
        let page = read(address, &body).ok_or_else(|| strange(&client))?;
        let next = page.next.as_ref().map(|next| format!("&after={next}"));
        let looked_at: usize = pages.iter().map(|page| page.waiting.len()).sum();
        let is_enough = looked_at + page.waiting.len() >= MAX_LOOKED_AT || page.waiting.is_empty();
        pages.push(page);
        match next.filter(|next| !is_enough && *next != after) {
            Some(next) => after = next,
            None => return Ok(join(pages)),
        }
    }
}

/// Joins all pages, oldest question first.
fn join(pages: Vec<AttentionPage>) -> AttentionEntries {
    let total = pages.last().map_or(0, |page| page.total);
    let mut waiting: Vec<AttentionEntry> =
        pages.into_iter().flat_map(|page| page.waiting).collect();
    waiting.sort_by_key(|ask| ask.asked_at.unix_us());
    let more = total.saturating_sub(waiting.len() as u64);
    AttentionEntries { waiting, more }
}

/// The outcome of a question that is over, if this person may know it.
pub(crate) fn outcome(
    address: &str,
    token: Option<&str>,
    reply_token: &str,
) -> Option<(AskOutcome, DecidedBy)> {
    let client = client(address, token).ok()?;
    let path = format!("/aaep/v1/asks/{reply_token}?wait_seconds=0");
    let request = HubRequest { method: "GET", path: &path, body: None, timeout: LOOK_TIMEOUT };
    let body = client.send(&request).ok().filter(|answer| answer.status == 200)?.json()?;
    let is_it = body["status"] == "settled" && body["reply_token"] == reply_token;
    let word = |key: &str| body[key].as_str().filter(|_| is_it);
    Some((AskOutcome::known(word("outcome")?)?, DecidedBy::known(word("decided_by")?)?))
}

fn read(address: &str, body: &Value) -> Option<AttentionPage> {
    let total = body["waiting"].as_u64()?;
    let rows = body["asks"].as_array()?;
    let waiting: Option<Vec<AttentionEntry>> =
        rows.iter().map(|row| read_row(address, row)).collect();
    let next = match body.get("next") {
        None => None,
        Some(next) => {
            // It becomes part of a URL without escaping.
            let is_plain = |byte: u8| byte.is_ascii_digit() || byte == b'-';
            Some(next.as_str().filter(|next| next.bytes().all(is_plain))?.to_owned())
        }
    };
    Some(AttentionPage { waiting: waiting?, total, next })
}

fn read_row(address: &str, row: &Value) -> Option<AttentionEntry> {
    let json = row["event"].clone();
    let may_reply = row["reply_token"].is_string();
    let mut whole = json.clone();
    if !may_reply {
        whole.as_object_mut()?.insert("reply_token".to_owned(), NO_TOKEN.into());
    }
    let text = whole.to_string();
    let Some(Message::Event(event)) = aaep::read(text.as_bytes(), Mode::Tolerant).message else {
        return None;
    };
    let asked = PresentedAsk::of(&event)?;
    let is_it = !may_reply || row["reply_token"] == asked.reply_token.as_str();
    is_it.then_some(AttentionEntry {
        address: address.to_owned(),
        agent: agent_name(&event),
        agent_label: None,
        asked: may_reply.then_some(asked),
        event: *event,
        json,
        asked_at: Timestamp::parse(row["asked_at"].as_str()?).ok()?,
        left: Duration::from_millis(row["left_ms"].as_u64()?),
        is_paused: row["paused"].as_bool()?,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;
    use crate::attention::asked::tests::confirmation;

    pub(crate) fn row(fields: &Value) -> Value {
        let event = serde_json::to_value(confirmation("rpl_1", fields)).expect("JSON");
        json!({
            "reply_token": "rpl_1", "session_id": "sess_1", "agent_id": "photos",
            "asked_at": "2026-11-02T06:20:09.120Z", "left_ms": 93_500, "paused": false,
            "event": event,
        })
    }

    /// Builds a pending question with these fields.
    pub(crate) fn waiting(fields: &Value) -> AttentionEntry {
        read_row("unix:", &row(fields)).expect("a question")
    }

    fn list(rows: &[Value]) -> Value {
        json!({ "waiting": rows.len(), "asks": rows })
    }

    #[test]
    fn a_list_is_read_whole_or_not_at_all() {
        let looked = read("unix:", &list(&[row(&json!({}))])).expect("a list");
        assert_eq!((looked.waiting.len(), looked.total), (1, 1));
        let asked = looked.waiting[0].asked.as_ref().expect("a token");
        assert_eq!(asked.reply_token.as_str(), "rpl_1");
        assert_eq!(looked.waiting[0].left, Duration::from_millis(93_500));
        for (field, wrong) in [
            ("reply_token", json!("rpl_another")),
            ("asked_at", json!("yesterday")),
            ("left_ms", json!(-1)),
            ("paused", json!("no")),
            ("event", json!({ "type": "aaep:agent.session.started" })),
        ] {
            let mut broken = row(&json!({}));
            broken[field] = wrong;
            assert!(read("unix:", &list(&[row(&json!({})), broken])).is_none(), "{field}");
        }
        assert!(read("unix:", &json!({})).is_none());
    }

    #[test]
    fn what_may_not_be_answered_is_heard_without_a_token() {
        let mut heard = row(&json!({}));
        heard.as_object_mut().expect("an object").remove("reply_token");
        heard["event"].as_object_mut().expect("an object").remove("reply_token");
        let looked = read("unix:", &list(&[heard])).expect("a list");
        assert!(looked.waiting[0].asked.is_none());
    }

    #[test]
    fn more_than_came_is_counted() {
        let mut body = list(&[row(&json!({}))]);
        body["waiting"] = json!(7);
        assert_eq!(join(vec![read("unix:", &body).expect("a list")]).more, 6);
    }

    #[test]
    fn pages_are_joined_with_the_oldest_first_and_lead_nowhere_strange() {
        let mut body = list(&[row(&json!({}))]);
        body["next"] = json!("3-17");
        let later = read("unix:", &body).expect("a list");
        assert_eq!(later.next.as_deref(), Some("3-17"));
        let mut older = list(&[row(&json!({}))]);
        older["asks"][0]["asked_at"] = json!("2026-11-02T06:20:08.120Z");
        let older = read("unix:", &older).expect("a list");
        let moments: Vec<_> =
            join(vec![later, older]).waiting.iter().map(|it| it.asked_at.unix_us()).collect();
        assert!(moments.is_sorted());
        body["next"] = json!("3 HTTP/1.1");
        assert!(read("unix:", &body).is_none());
    }
}
