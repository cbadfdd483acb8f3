//! A person's answer as JSON: exactly one thing, and never anything that was not written.

use aaep::ReplyToken;
use aaep::event::human::Decision;
use aaep::reply::Response;
use aaep_subscriber::{Ask, ClarificationDetails, ConfirmationDetails, SayError};
use serde_json::{Map, Value};

const NEXT: &str = "Write it like {\"reply_token\": \"rpl_…\", \"decision\": \"accept\"}.";

/// A person's answer, or a request about the time to answer.
#[derive(Debug)]
pub(crate) struct ReplyRequest {
    pub(crate) reply_token: ReplyToken,
    action: ReplyAction,
}

#[derive(Debug, PartialEq)]
enum ReplyAction {
    Decision(Decision, ConfirmationDetails),
    Response(Response, ClarificationDetails),
    Presented,
    Extend(u64),
    Pause,
    Resume,
}

impl ReplyRequest {
    /// Reads a reply. Nothing is ignored and nothing is guessed.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let no = |why: &str| format!("{why} {NEXT}");
        let Ok(Value::Object(mut fields)) = serde_json::from_str(text) else {
            return Err(no("The reply is not a JSON object."));
        };
        let token = fields.remove("reply_token").and_then(|it| it.as_str().map(str::to_owned));
        let token = token.and_then(|token| ReplyToken::parse(&token).ok());
        let reply_token = token.ok_or_else(|| no("The reply has no reply_token."))?;
        let action =
            action(&mut fields).ok_or_else(|| no("The reply says nothing that counts."))?;
        match fields.keys().next() {
            None => Ok(ReplyRequest { reply_token, action }),
            Some(name) => {
                let name = aaep::printable(name).into_owned();
                Err(no(&format!("Such a reply cannot have {name}, or not with this value.")))
            }
        }
    }

    /// Sends it to the producer.
    pub(crate) async fn say(self, ask: &Ask) -> Result<(), SayError> {
        match self.action {
            ReplyAction::Decision(decision, details) => ask.decide(decision, details).await,
            ReplyAction::Response(response, details) => ask.answer_with(response, details).await,
            ReplyAction::Presented => ask.presented().await,
            ReplyAction::Extend(by_seconds) => ask.extend(by_seconds).await,
            ReplyAction::Pause => ask.pause().await,
            ReplyAction::Resume => ask.resume().await,
        }
    }
}

/// Takes the action out of the fields.
fn action(fields: &mut Map<String, Value>) -> Option<ReplyAction> {
    if let Some(decision) = fields.remove("decision") {
        let decision = match decision.as_str()? {
            "accept" => Decision::Accept,
            "reject" => Decision::Reject,
            _ => return None,
        };
        let details = ConfirmationDetails {
            decided_by: text(fields, "decided_by"),
            decision_rationale: text(fields, "decision_rationale"),
            ..ConfirmationDetails::default()
        };
        return Some(ReplyAction::Decision(decision, details));
    }
    if let Some(response) = fields.remove("response") {
        let response = match response {
            Value::String(text) => Response::Text(text),
            Value::Bool(yes) => Response::YesNo(yes),
            Value::Number(number) => Response::Number(number),
            _ => return None,
        };
        let decided_by = text(fields, "decided_by");
        let details = ClarificationDetails { decided_by, ..ClarificationDetails::default() };
        return Some(ReplyAction::Response(response, details));
    }
    match text(fields, "type")?.as_str() {
        "agentvoice:ask.presented" => Some(ReplyAction::Presented),
        "agentvoice:ask.extend" => fields.remove("by_seconds")?.as_u64().map(ReplyAction::Extend),
        "agentvoice:ask.pause" => Some(ReplyAction::Pause),
        "agentvoice:ask.resume" => Some(ReplyAction::Resume),
        _ => None,
    }
}

/// Takes a text out of the fields. A value that is not a text stays, and is reported as an error.
fn text(fields: &mut Map<String, Value>, name: &str) -> Option<String> {
    fields.get(name)?.as_str()?;
    fields.remove(name)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_written_is_said() {
        let read = |text: &str| ReplyRequest::read(text).map(|reply| reply.action);
        let accept = read(r#"{"reply_token":"rpl_1","decision":"accept","decided_by":"user"}"#);
        let details =
            ConfirmationDetails { decided_by: Some("user".to_owned()), ..Default::default() };
        assert_eq!(accept, Ok(ReplyAction::Decision(Decision::Accept, details)));
        let blue = read(r#"{"reply_token":"rpl_1","response":"blue"}"#);
        let response = Response::Text("blue".to_owned());
        assert_eq!(blue, Ok(ReplyAction::Response(response, ClarificationDetails::default())));
        let more = r#"{"reply_token":"rpl_1","type":"agentvoice:ask.extend","by_seconds":30}"#;
        assert_eq!(read(more), Ok(ReplyAction::Extend(30)));
    }

    #[test]
    fn an_unclear_reply_is_refused() {
        for text in [
            "",
            "accept",
            "{}",
            r#"{"decision":"accept"}"#,
            r#"{"reply_token":"rpl_1"}"#,
            r#"{"reply_token":"rpl_1","decision":"Accept"}"#,
            r#"{"reply_token":"rpl_1","decision":"yes"}"#,
            r#"{"reply_token":"rpl_1","decision":true}"#,
            r#"{"reply_token":"rpl_1","decision":["accept"]}"#,
            r#"{"reply_token":"rpl_1","decision":"accept","response":"no"}"#,
            r#"{"reply_token":"rpl_1","decision":"accept","but":"only if it rains"}"#,
            r#"{"reply_token":"rpl_1","decision":"accept","decision_rationale":7}"#,
            r#"{"reply_token":"rpl_1","response":null}"#,
            r#"{"reply_token":"rpl_1","type":"agentvoice:ask.extend"}"#,
            r#"{"reply_token":"rpl_1","type":"agentvoice:ask.extend","by_seconds":-1}"#,
            r#"{"reply_token":"token","decision":"accept"}"#,
        ] {
            let error = ReplyRequest::read(text).expect_err(text);
            assert!(error.ends_with(NEXT), "{error}");
        }
    }
}
