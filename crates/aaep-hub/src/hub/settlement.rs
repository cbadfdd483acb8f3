//! How an ask was settled, as an agent hears it and as it is stored.

use aaep::extension::{DecidedBy, Outcome};
use aaep::reply::Response;
use aaep::{EventId, ReplyToken, SessionId};
use aaep_engine::{AskAnswerer, PrincipalNumber, Resolution};
use serde::Serialize;
use serde_json::{Value, json};

/// How an ask was settled.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settlement {
    /// The ask.
    pub reply_token: ReplyToken,
    /// The outcome. Only `accept` allows the action, and only once.
    pub outcome: Outcome,
    /// What decided it.
    pub decided_by: DecidedBy,
    /// The response to a clarification, from the person or from the agent's own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Value>,
}

impl Settlement {
    pub(super) fn new(
        reply_token: ReplyToken,
        resolution: &Resolution,
        decided_by: DecidedBy,
    ) -> Self {
        let (outcome, response) = match resolution {
            Resolution::Accept => (Outcome::Accept, None),
            Resolution::Reject => (Outcome::Reject, None),
            Resolution::Answer(response) => (Outcome::Answered, Some(words(response))),
            Resolution::DefaultAnswer(text) => (Outcome::Answered, Some(text.as_str().into())),
            Resolution::NoAnswer => (Outcome::Unanswered, None),
            Resolution::Withdrawn => (Outcome::Withdrawn, None),
        };
        Settlement { reply_token, outcome, decided_by, response }
    }

    /// The word for the outcome in logs and metrics.
    pub(super) fn word(&self) -> &'static str {
        match self.outcome {
            Outcome::Accept => "accept",
            Outcome::Reject => "reject",
            Outcome::Answered => "answered",
            Outcome::Unanswered => "unanswered",
            Outcome::Withdrawn => "withdrawn",
            Outcome::Other(_) => "other",
        }
    }

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
        let outcome = match settlement.get("outcome")?.as_str()? {
            "accept" => Outcome::Accept,
            "reject" => Outcome::Reject,
            "answered" => Outcome::Answered,
            "unanswered" => Outcome::Unanswered,
            "withdrawn" => Outcome::Withdrawn,
            _ => return None,
        };
        let decided_by = match settlement.get("decided_by")?.as_str()? {
            "reply" => DecidedBy::Reply,
            "timeout" => DecidedBy::Timeout,
            "no_listener" => DecidedBy::NoListener,
            "withdrawn" => DecidedBy::Withdrawn,
            _ => return None,
        };
        let response = settlement.get("response").cloned();
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

fn words(response: &Response) -> Value {
    serde_json::to_value(response).unwrap_or_default()
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

    #[test]
    fn what_is_stored_comes_back() {
        let yes = Response::Text("yes".to_owned());
        for (resolution, by) in [
            (Resolution::Accept, DecidedBy::Reply),
            (Resolution::Reject, DecidedBy::Timeout),
            (Resolution::Answer(yes), DecidedBy::Reply),
            (Resolution::DefaultAnswer("no".to_owned()), DecidedBy::NoListener),
            (Resolution::NoAnswer, DecidedBy::Timeout),
            (Resolution::Withdrawn, DecidedBy::Withdrawn),
        ] {
            let settlement = Settlement::new(token(), &resolution, by);
            let stored = settlement.to_stored(&asked(), None);
            assert_eq!(stored_answerer(&stored), None);
            assert_eq!(Settlement::from_stored(&token(), &stored), Some((asked(), settlement)));
        }
    }

    #[test]
    fn the_answering_principal_is_recovered_and_never_guessed() {
        let settlement = Settlement::new(token(), &Resolution::Accept, DecidedBy::Reply);
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
        let accept = Settlement::new(token(), &Resolution::Accept, DecidedBy::Reply);
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
