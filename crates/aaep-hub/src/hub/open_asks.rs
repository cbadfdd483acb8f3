//! Open asks, from the moment when they are asked until they are settled: what is stored of them, what the audit log says,
//! and who waits for their outcome.

use aaep::extension::{AskOutcome, DecidedBy};
use aaep::{Envelope, Event, ReplyToken};
use aaep_engine::{AskAnswerer, Audit, Now, PrincipalNumber, ReplyRefusal};
use aaep_transport::wire::ConnectionKey;
use tokio::sync::oneshot;

use super::ask_times::LastAskTime;
use super::entry::{self, AuditContext};
use super::owner::EngineOwner;
use super::settlement::{AskOrigin, Settlement};
use crate::store::{StoreChange, StoredTime};

/// How many callers may wait for the outcome of one ask at a time. The oldest is dropped first.
const MAX_WAITING_FOR_ASK: usize = 16;

/// An open ask.
pub(super) struct HubOpenAsk {
    pub(super) asked: AskOrigin,
    pub(super) is_stored: bool,
    pub(super) ends_unix_us: Option<i64>,
    /// Its time, once that is stored.
    pub(super) time: Option<LastAskTime>,
    /// When it was asked, by the hub's clock.
    pub(super) asked_unix_us: i64,
    /// How many asks of the same principal were open when it was asked.
    pub(super) round: u64,
    /// Callers that wait for the outcome.
    pub(super) waiting: Vec<oneshot::Sender<Settlement>>,
    /// The agent's socket on which it was asked.
    pub(super) connection: Option<ConnectionKey>,
}

impl EngineOwner {
    pub(super) fn record_ask_time(&mut self, record: aaep_engine::AskTimeRecord) {
        let reply_token = record.reply_token;
        let time = StoredTime {
            ends_unix_us: record.ends_unix_us,
            left_us: record.left_us,
            limit_unix_us: record.limit_unix_us,
            changes: record.changes,
            stored_unix_us: record.stored_unix_us,
            event_unix_us: record.event_unix_us,
        };
        let Some(ask) = self.asks.get_mut(&reply_token) else { return };
        ask.ends_unix_us = time.ends_unix_us;
        let monotonic_us = self.clock.now().monotonic_us;
        ask.time = Some(LastAskTime { time, monotonic_us });
        self.event_unix_us = time.event_unix_us;
        let change = if std::mem::replace(&mut ask.is_stored, true) {
            StoreChange::AskMoved { reply_token, time }
        } else {
            let session_id = ask.asked.session_id.clone();
            StoreChange::AskOpened { reply_token, session_id, time }
        };
        self.batch.changes.push(change);
    }

    /// Registers an ask as open, and writes it to the audit log.
    pub(super) fn open_ask(
        &mut self,
        now: Now,
        principal: PrincipalNumber,
        reply_token: ReplyToken,
        event: &Event,
        told: usize,
    ) {
        let Envelope { event_id, session_id, producer, .. } = &event.envelope;
        let about = AuditContext {
            unix_us: now.unix_us,
            session_id: Some(session_id.clone()),
            who: Some(producer.agent_id.clone()),
        };
        let asked_by = self.principals.name(principal).unwrap_or("unknown");
        let entry = entry::asked(&reply_token, event, (told, asked_by), about);
        self.batch.changes.push(StoreChange::Audit(entry));
        let of_principal = |ask: &&HubOpenAsk| ask.asked.principal == principal;
        let open = HubOpenAsk {
            round: self.asks.values().filter(of_principal).count() as u64,
            asked: AskOrigin {
                principal,
                event_id: event_id.clone(),
                session_id: session_id.clone(),
            },
            is_stored: false,
            ends_unix_us: None,
            time: None,
            asked_unix_us: now.unix_us,
            waiting: Vec::new(),
            connection: None,
        };
        self.asks.insert(reply_token, open);
    }

    /// What an audit entry about an open ask starts from.
    fn audit_context(
        &self,
        now: Now,
        reply_token: &ReplyToken,
        who: Option<PrincipalNumber>,
    ) -> AuditContext {
        let session_id = self.asks.get(reply_token).map(|ask| ask.asked.session_id.clone());
        let who = who.and_then(|it| self.principals.name(it)).map(str::to_owned);
        AuditContext { unix_us: now.unix_us, session_id, who }
    }

    /// Stores how an ask was settled, with an entry in the audit log, and tells those that wait for it.
    pub(super) fn settle(
        &mut self,
        now: Now,
        settlement: &Settlement,
        answered_by: Option<AskAnswerer>,
    ) {
        self.status.metrics.settled(&settlement.outcome);
        self.audit_settlement(now, settlement);
        let Some(ask) = self.asks.remove(&settlement.reply_token) else { return };
        self.batch.changes.push(StoreChange::AskSettled {
            reply_token: settlement.reply_token.clone(),
            unix_us: now.unix_us,
            resolution: settlement.to_stored(&ask.asked, answered_by).into(),
        });
        for waiting in ask.waiting {
            self.answer(waiting, settlement.clone());
        }
        if let Some(connection) = ask.connection {
            self.tell_agent(connection, &super::agents::resolved(settlement));
        }
    }

    /// After a start: settles asks that are stored as open but are not open in the engine because their session
    /// is gone. They end without consent.
    pub(super) fn settle_forgotten(&mut self, now: Now) {
        let engine = &self.engine;
        let forgotten = self.asks.keys().filter(|token| !engine.is_open(token));
        for token in forgotten.cloned().collect::<Vec<_>>() {
            self.settle(now, &without_consent(token), None);
        }
    }

    /// After a start: settles an ask that is stored as open but whose event is lost. Its token stays used.
    pub(super) fn settle_lost(&mut self, now: Now, reply_token: ReplyToken) {
        self.audit_settlement(now, &without_consent(reply_token.clone()));
        self.engine.mark_token_used(&reply_token);
        let resolution = b"{}".as_slice().into();
        let unix_us = now.unix_us;
        self.batch.changes.push(StoreChange::AskSettled { reply_token, unix_us, resolution });
    }

    fn audit_settlement(&mut self, now: Now, settlement: &Settlement) {
        let about = self.audit_context(now, &settlement.reply_token, None);
        self.batch.changes.push(StoreChange::Audit(entry::settled(settlement, about)));
    }

    pub(super) fn audit(&mut self, now: Now, audit: Audit) {
        if !self.refusals.may_write(&audit, now.monotonic_us) {
            return;
        }
        let about = self.audit_context(now, entry::token(&audit), entry::principal(&audit));
        self.batch.changes.push(StoreChange::Audit(entry::build_entry(audit, about)));
    }

    /// Refuses a reply because its subscription never received an ask.
    pub(super) fn refuse_reply(&mut self, reply_token: ReplyToken, principal: PrincipalNumber) {
        let refused = Some(ReplyRefusal::NotAsked);
        let now = self.clock.now();
        let reply = Audit::Reply { reply_token, principal, decided_by: None, refused };
        self.audit(now, reply);
    }

    /// Registers a caller that waits for the outcome of an ask.
    pub(super) fn wait_for(
        &mut self,
        reply_token: &ReplyToken,
    ) -> Option<oneshot::Receiver<Settlement>> {
        let ask = self.asks.get_mut(reply_token)?;
        ask.waiting.retain(|waiting| !waiting.is_closed());
        if ask.waiting.len() >= MAX_WAITING_FOR_ASK {
            ask.waiting.remove(0);
        }
        let (sender, receiver) = oneshot::channel();
        ask.waiting.push(sender);
        Some(receiver)
    }
}

/// The end of an ask that nobody can answer any more, and of which it is not known whether somebody did.
fn without_consent(reply_token: ReplyToken) -> Settlement {
    let (outcome, decided_by) = (AskOutcome::Reject, DecidedBy::NoListener);
    Settlement { reply_token, outcome, decided_by, response: None }
}
