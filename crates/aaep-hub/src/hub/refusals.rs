//! Refused replies in the audit log: a few each minute from each principal, then a count of the others.
//!
//! A reply that counts is always written. A refused reply is written or counted, and the count is written as
//! soon as the minute is over.

use std::collections::BTreeMap;

use aaep_engine::Audit;
use aaep_engine::PrincipalNumber;

use crate::audit::Entry;

/// How many refused replies of one principal are written one by one in a minute.
const ENTRIES_A_MINUTE: u32 = 30;

const MINUTE_US: u64 = 60_000_000;

/// How many principals are counted separately. All others are counted together.
const MAX_COUNTED: usize = 4096;

/// The key for all principals that are counted together.
const ALL_OTHERS: PrincipalNumber = PrincipalNumber(u64::MAX);

/// The recently refused replies.
#[derive(Debug, Default)]
pub(super) struct RefusedReplies {
    /// By principal.
    counted: BTreeMap<PrincipalNumber, RefusalCount>,
}

#[derive(Debug)]
struct RefusalCount {
    began_us: u64,
    written: u32,
    left_out: u64,
}

impl RefusedReplies {
    /// Whether this record may be written to the audit log. A refusal that may not be written is counted.
    pub(super) fn may_write(&mut self, audit: &Audit, now_us: u64) -> bool {
        let Some(principal) = refused(audit) else { return true };
        let is_new = !self.counted.contains_key(&principal);
        let key = if is_new && self.counted.len() >= MAX_COUNTED { ALL_OTHERS } else { principal };
        let new = RefusalCount { began_us: now_us, written: 0, left_out: 0 };
        let count = self.counted.entry(key).or_insert(new);
        if count.written < ENTRIES_A_MINUTE {
            count.written += 1;
            return true;
        }
        count.left_out = count.left_out.saturating_add(1);
        false
    }

    /// When the next minute ends.
    pub(super) fn deadline_us(&self) -> Option<u64> {
        self.counted.values().map(|count| count.began_us.saturating_add(MINUTE_US)).min()
    }

    /// Takes the counts of all minutes that are over (or of all minutes, if `is_end`), each with its principal.
    pub(super) fn take_counts(
        &mut self,
        now_us: u64,
        is_end: bool,
    ) -> Vec<(Option<PrincipalNumber>, u64)> {
        let mut over = Vec::new();
        self.counted.retain(|principal, count| {
            let is_over = is_end || now_us >= count.began_us.saturating_add(MINUTE_US);
            if is_over && count.left_out > 0 {
                over.push((Some(*principal).filter(|it| *it != ALL_OTHERS), count.left_out));
            }
            !is_over
        });
        over
    }
}

/// The audit entry for a count.
pub(super) fn entry(unix_us: i64, who: Option<String>, left_out: u64) -> Entry {
    let outcome = format!("{left_out} more refused within a minute, not listed one by one");
    Entry {
        unix_us,
        kind: "refused_replies",
        session_id: None,
        reply_token: None,
        who,
        outcome,
        details: None,
    }
}

/// The principal whose message was refused, if this is a refusal.
fn refused(audit: &Audit) -> Option<PrincipalNumber> {
    match audit {
        Audit::Reply { principal, refused: Some(_), .. }
        | Audit::Presented { principal, refused: Some(_), .. }
        | Audit::Extended { principal, refused: Some(_), .. }
        | Audit::Paused { principal, refused: Some(_), .. }
        | Audit::Resumed { principal, refused: Some(_), .. } => Some(*principal),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use aaep::ReplyToken;
    use aaep_engine::ReplyRefusal;

    use super::*;

    fn reply(principal: PrincipalNumber, refused: Option<ReplyRefusal>) -> Audit {
        let reply_token = ReplyToken::parse("rpl_0123456789abcdef").expect("a token");
        Audit::Reply { reply_token, principal, decided_by: None, refused }
    }

    #[test]
    fn refusals_are_written_or_counted_and_what_counts_is_always_written() {
        let mut refusals = RefusedReplies::default();
        let refused = Some(ReplyRefusal::UnknownToken);
        let (mut written, mut counted) = (0, 0);
        for at in 0..100_000_u64 {
            let now_us = at * 2_000;
            written += u64::from(refusals.may_write(&reply(PrincipalNumber(1), refused), now_us));
            assert!(refusals.may_write(&reply(PrincipalNumber(1), None), now_us));
            counted += refusals.take_counts(now_us, false).iter().map(|it| it.1).sum::<u64>();
        }
        assert!(written <= 4 * u64::from(ENTRIES_A_MINUTE), "{written}");
        let last = refusals.take_counts(0, true);
        assert_eq!(written + counted + last.iter().map(|it| it.1).sum::<u64>(), 100_000);
        assert_eq!(refusals.deadline_us(), None);
    }

    #[test]
    fn each_principal_is_counted_by_itself_in_bounded_memory() {
        let mut refusals = RefusedReplies::default();
        let refused = Some(ReplyRefusal::NotAsked);
        for _ in 0..=ENTRIES_A_MINUTE {
            refusals.may_write(&reply(PrincipalNumber(1), refused), 0);
        }
        assert!(refusals.may_write(&reply(PrincipalNumber(2), refused), 0));
        for principal in 3..3 * MAX_COUNTED as u64 {
            refusals.may_write(&reply(PrincipalNumber(principal), refused), 0);
        }
        assert!(refusals.counted.len() <= MAX_COUNTED + 1);
        let counts = refusals.take_counts(MINUTE_US, false);
        assert_eq!(counts[0], (Some(PrincipalNumber(1)), 1));
        assert_eq!(counts.last().map(|it| it.0), Some(None), "the rest together");
    }
}
