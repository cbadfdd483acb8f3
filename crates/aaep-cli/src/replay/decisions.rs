//! Replays only decisions: what was asked, how it was decided and by whom, and whether automatically.

use std::collections::VecDeque;

use aaep::extension::Delivery;
use aaep::{Payload, ReplyToken};
use aaep_announce::{Utterance, UtteranceKind};
use serde_json::{Value, json};

use super::history::{HistoryEvent, HistoryStart, MAX_TOLD, ReplayHistory};
use super::play::ReplayedUtterance;
use crate::archive::ArchivedSession;
use crate::attention::asked;
use crate::console::CommandFailure;
use crate::english::replaying;
use crate::keys::moment;

/// How many asks of a session can be open at the same time; the same limit as in a subscriber.
const MAX_OPEN: usize = 256;

/// An ask and its outcome.
#[derive(Debug, Clone)]
pub(super) struct ReplayedDecision {
    /// When it was asked.
    pub(super) unix_us: i64,
    pub(super) told: ReplayedUtterance,
}

/// An ask whose outcome was not found yet.
struct UndecidedAsk {
    reply_token: ReplyToken,
    unix_us: i64,
    turn: u32,
    utterance: Utterance,
    is_open: bool,
    is_included: bool,
    asks: String,
}

/// The decisions in a session from a start on: the last ones, and how many were left out.
pub(super) fn decisions(
    history: &ReplayHistory,
    session: &ArchivedSession,
    from: &HistoryStart,
) -> Result<(VecDeque<ReplayedDecision>, u64), CommandFailure> {
    let (mut pending, mut all, mut left_out) =
        (VecDeque::<UndecidedAsk>::new(), VecDeque::new(), 0);
    let mut decide = |question: UndecidedAsk, settled: Option<(&HistoryEvent, &Utterance)>| {
        all.push_back(decision(session, question, settled));
        if all.len() > MAX_TOLD {
            all.pop_front();
            left_out += 1;
        }
    };
    history.tell(session, &HistoryStart::Beginning, |row, said| {
        if let Some(reply_token) = question_of(row) {
            let is_open = said.iter().any(|it| it.kind == UtteranceKind::Notice);
            let Some(utterance) = said.into_iter().find(|it| it.kind == UtteranceKind::Question)
            else {
                return;
            };
            let (unix_us, turn, is_included) = (row.unix_us, row.turn, from.includes(row));
            let (reply_token, asks) = (reply_token.clone(), asked::what(&row.event).to_owned());
            if pending.len() >= MAX_OPEN {
                pending.pop_front();
            }
            pending.push_back(UndecidedAsk {
                reply_token,
                unix_us,
                turn,
                utterance,
                is_open,
                is_included,
                asks,
            });
            return;
        }
        let resolution = Delivery::of(&row.event).and_then(|it| it.resolution);
        let token = resolution.map(|it| it.reply_token);
        let at = pending.iter().position(|it| Some(&it.reply_token) == token.as_ref());
        let settled = said.iter().find(|it| it.kind == UtteranceKind::Settled);
        let question = at.and_then(|at| pending.remove(at));
        if let (Some(question), Some(settled)) = (question, settled)
            && (question.is_included || from.includes(row))
        {
            decide(question, Some((row, settled)));
        }
    })?;
    for question in pending.into_iter().filter(|it| it.is_included || it.is_open) {
        decide(question, None);
    }
    Ok((all, left_out))
}

fn question_of(row: &HistoryEvent) -> Option<&ReplyToken> {
    match &row.event.payload {
        Payload::AwaitingConfirmation(it) => Some(&it.reply_token),
        Payload::AwaitingClarification(it) => Some(&it.reply_token),
        _ => None,
    }
}

fn decision(
    session: &ArchivedSession,
    question: UndecidedAsk,
    settled: Option<(&HistoryEvent, &Utterance)>,
) -> ReplayedDecision {
    let UndecidedAsk { unix_us, turn, mut utterance, is_open, asks, .. } = question;
    let ended = match settled {
        Some((_, settled)) => settled.words.as_str(),
        None if is_open => replaying::STILL_OPEN,
        None => replaying::OUTCOME_NOT_KNOWN,
    };
    utterance.words = format!("{} {ended}", utterance.words);
    let mut told = ReplayedUtterance::of(session, unix_us, turn, utterance);
    told.json["asks"] = asks.into();
    told.json["is_open"] = (is_open && settled.is_none()).into();
    if let Some((row, _)) = settled {
        settlement(&mut told.json, row);
    }
    ReplayedDecision { unix_us, told }
}

/// Adds the outcome to the JSON.
fn settlement(json: &mut Value, row: &HistoryEvent) {
    if let Some(resolution) = Delivery::of(&row.event).and_then(|it| it.resolution) {
        json["outcome"] = json!(resolution.outcome);
        json["decided_by"] = json!(resolution.decided_by);
    }
    json["decided_at"] = moment(row.unix_us.div_euclid(1000)).into();
    if let Some(answer) = &row.answer {
        json["by_you"] = answer.by_you.into();
        json["automatic"] = answer.is_automatic.into();
        json["response"] = json!(answer.response);
    }
}
