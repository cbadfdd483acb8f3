//! How an ask was settled, as an agent hears it and as it is stored.

use aaep::extension::{AskOutcome, DecidedBy};
use aaep::reply::Response;
use aaep::{EventId, ReplyToken, SessionId};
use aaep_engine::{AskAnswerer, PrincipalNumber};
use serde::Serialize;
use serde_json::{Value, json};

/// How an ask was settled.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settlement {
    /// The ask.
    pub reply_token: ReplyToken,
    /// The outcome. Only `accept` allows the action, and only once.
    pub outcome: AskOutcome,
    /// What decided it.
    pub decided_by: DecidedBy,
    /// The response to a clarification, from the person or from the agent's own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Response>,
}

impl Settlement {
    /// The stored form, which includes the principal that asked and the one that answered.
    pub(super) fn to_stored(&self, asked: &AskOrigin, answered: Option<AskAnswerer>) -> Vec<u8> {
        let mut stored = json!({
            "principal": asked.principal.0,
            "event_id": asked.event_id,
            "session_id": asked.session_id,
            "settlement": self,
        });
        if let Some(answered) = answered {
            stored["answered"] =
                json!({ "principal": answered.principal.0, "automatic": answered.is_automatic });
        }
        stored.to_string().into_bytes()
    }

    /// Reads the stored form. Returns `None` if it cannot be read: never an accept by accident.
    pub(super) fn from_stored(reply_token: &ReplyToken, bytes: &[u8]) -> Option<(AskOrigin, Self)> {
        let stored: Value = serde_json::from_slice(bytes).ok()?;
        let settlement = stored.get("settlement")?;
        let asked = AskOrigin {
            principal: PrincipalNumber(stored.get("principal")?.as_u64()?),
            event_id: EventId::parse(stored.get("event_id")?.as_str()?).ok()?,
            session_id: SessionId::parse(stored.get("session_id")?.as_str()?).ok()?,
        };
        let outcome = AskOutcome::known(settlement.get("outcome")?.as_str()?)?;
        let decided_by = DecidedBy::known(settlement.get("decided_by")?.as_str()?)?;
        let response = match settlement.get("response") {
            Some(response) => Some(Response::from_json(response)?),
            None => None,
        };
        let reply_token = reply_token.clone();
        Some((asked, Settlement { reply_token, outcome, decided_by, response }))
    }
}

/// Reads who answered from the stored form. Returns `None` if nobody answered, or if an earlier version did
/// not store it.
pub(super) fn stored_answerer(bytes: &[u8]) -> Option<AskAnswerer> {
    let stored: Value = serde_json::from_slice(bytes).ok()?;
    let answered = stored.get("answered")?;
    Some(AskAnswerer {
        principal: PrincipalNumber(answered.get("principal")?.as_u64()?),
        is_automatic: answered.get("automatic")?.as_bool()?,
    })
}

/// The principal that asked, and where.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AskOrigin {
    pub(super) principal: PrincipalNumber,
    pub(super) event_id: EventId,
    pub(super) session_id: SessionId,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> ReplyToken {
        ReplyToken::parse("rpl_0123456789abcdef").expect("a token")
    }

    fn asked() -> AskOrigin {
        AskOrigin {
            principal: PrincipalNumber(7),
            event_id: EventId::parse("evt_1").expect("an id"),
            session_id: SessionId::parse("sess_1").expect("an id"),
        }
    }

    fn accepted() -> Settlement {
        let (outcome, decided_by) = (AskOutcome::Accept, DecidedBy::Reply);
        Settlement { reply_token: token(), outcome, decided_by, response: None }
    }

    #[test]
    fn what_is_stored_comes_back() {
        let text = |text: &str| Some(Response::Text(text.to_owned()));
        let number = Some(Response::Number(7.into()));
        for (outcome, decided_by, response) in [
            (AskOutcome::Accept, DecidedBy::Reply, None),
            (AskOutcome::Reject, DecidedBy::Timeout, None),
            (AskOutcome::Answered, DecidedBy::Reply, text("yes")),
            (AskOutcome::Answered, DecidedBy::Reply, Some(Response::YesNo(true))),
            (AskOutcome::Answered, DecidedBy::Reply, number),
            (AskOutcome::Answered, DecidedBy::NoListener, text("no")),
            (AskOutcome::Unanswered, DecidedBy::Timeout, None),
            (AskOutcome::Withdrawn, DecidedBy::Withdrawn, None),
        ] {
            let settlement = Settlement { reply_token: token(), outcome, decided_by, response };
            let stored = settlement.to_stored(&asked(), None);
            assert_eq!(stored_answerer(&stored), None);
            assert_eq!(Settlement::from_stored(&token(), &stored), Some((asked(), settlement)));
        }
    }

    #[test]
    fn the_answering_principal_is_recovered_and_never_guessed() {
        let settlement = accepted();
        for is_automatic in [false, true] {
            let answered = AskAnswerer { principal: PrincipalNumber(3), is_automatic };
            let stored = settlement.to_stored(&asked(), Some(answered));
            assert_eq!(stored_answerer(&stored), Some(answered));
            let found = Settlement::from_stored(&token(), &stored);
            assert_eq!(found, Some((asked(), settlement.clone())));
            let text = String::from_utf8(stored).expect("text");
            let broken = text.replace("\"automatic\"", "\"Automatic\"");
            assert_eq!(stored_answerer(broken.as_bytes()), None);
        }
    }

    #[test]
    fn an_unreadable_outcome_does_not_count_as_an_accept() {
        let accept = accepted();
        let stored = String::from_utf8(accept.to_stored(&asked(), None)).expect("text");
        for wrong in [
            String::new(),
            "{}".to_owned(),
            stored.replace("\"accept\"", "\"Accept\""),
            stored.replace("\"reply\"", "\"somebody\""),
            stored.replace("\"principal\":7", "\"principal\":\"7\""),
        ] {
            assert_eq!(Settlement::from_stored(&token(), wrong.as_bytes()), None, "{wrong}");
        }
    }
}
