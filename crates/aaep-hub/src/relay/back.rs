//! What is sent back to a child when its ask is settled in the hub.

use aaep::event::human::Decision;
use aaep::extension::{AskOutcome, DecidedBy};
use aaep::reply::Response;

use crate::hub::Settlement;

/// The reply to the child.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ChildReply {
    /// A decision on a confirmation.
    Confirm(Decision),
    /// The answer to a clarification.
    Clarify(Response),
    /// No reply: the child's own default applies at its own deadline.
    Nothing,
}

/// Decides the reply. It is an accept only if a person accepted: if the hub applied a default that accepts,
/// the child applies its own, and if the settlement is not known, the reply is a reject.
pub(super) fn reply_for(settlement: Option<&Settlement>, is_confirmation: bool) -> ChildReply {
    let Some(settlement) = settlement else {
        return if is_confirmation {
            ChildReply::Confirm(Decision::Reject)
        } else {
            ChildReply::Nothing
        };
    };
    let is_by_person = settlement.decided_by == DecidedBy::Reply;
    match (is_confirmation, &settlement.outcome) {
        (true, AskOutcome::Accept) if is_by_person => ChildReply::Confirm(Decision::Accept),
        (true, AskOutcome::Accept) => ChildReply::Nothing,
        (true, _) => ChildReply::Confirm(Decision::Reject),
        (false, AskOutcome::Answered) if is_by_person => {
            settlement.response.clone().map_or(ChildReply::Nothing, ChildReply::Clarify)
        }
        (false, _) => ChildReply::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use aaep::ReplyToken;

    use super::*;

    fn settlement(outcome: AskOutcome, decided_by: DecidedBy) -> Settlement {
        let reply_token = ReplyToken::parse("rpl_0123456789abcdef").expect("a token");
        Settlement { reply_token, outcome, decided_by, response: Some(Response::YesNo(true)) }
    }

    /// Every outcome that this hub can name.
    fn outcomes() -> [AskOutcome; 5] {
        use AskOutcome::{Accept, Answered, Reject, Unanswered, Withdrawn};
        [Accept, Reject, Answered, Unanswered, Withdrawn]
    }

    fn deciders() -> [DecidedBy; 4] {
        [DecidedBy::Reply, DecidedBy::Timeout, DecidedBy::NoListener, DecidedBy::Withdrawn]
    }

    #[test]
    fn only_what_a_person_accepted_is_an_accept() {
        let mut accepts = 0;
        for outcome in outcomes() {
            for decided_by in deciders() {
                let is_accept = outcome == AskOutcome::Accept && decided_by == DecidedBy::Reply;
                let back = reply_for(Some(&settlement(outcome.clone(), decided_by)), true);
                assert_eq!(back == ChildReply::Confirm(Decision::Accept), is_accept, "{outcome:?}");
                if outcome != AskOutcome::Accept {
                    assert_eq!(back, ChildReply::Confirm(Decision::Reject));
                }
                accepts += usize::from(is_accept);
            }
        }
        assert_eq!(accepts, 1);
        assert_eq!(reply_for(None, true), ChildReply::Confirm(Decision::Reject));
    }

    #[test]
    fn only_what_a_person_answered_is_an_answer() {
        for outcome in outcomes() {
            for decided_by in deciders() {
                let is_answer = outcome == AskOutcome::Answered && decided_by == DecidedBy::Reply;
                let back = reply_for(Some(&settlement(outcome.clone(), decided_by)), false);
                let expected = if is_answer {
                    ChildReply::Clarify(Response::YesNo(true))
                } else {
                    ChildReply::Nothing
                };
                assert_eq!(back, expected);
            }
        }
        assert_eq!(reply_for(None, false), ChildReply::Nothing);
    }
}
