//! What a person answers, as JSON: exactly one thing, and never anything that was not written.

use aaep::ReplyToken;
use aaep::event::human::Decision;
use aaep::reply::Response;
use aaep_subscriber::{Ask, ClarificationDetails, ConfirmationDetails, SayError};
use serde_json::{Map, Value};

const NEXT: &str = "Write it like {\"reply_token\": \"rpl_…\", \"decision\": \"accept\"}.";

/// What a person answers, or wants of the time to answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) reply_token: ReplyToken,
    what: What,
}

#[derive(Debug, PartialEq)]
enum What {
    Decision(Decision, ConfirmationDetails),
    Response(Response, ClarificationDetails),
    Presented,
    Extend(u64),
    Pause,
    Resume,
}

impl Reply {
    /// Reads a reply. Nothing is passed over and nothing is guessed.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let no = |why: &str| format!("{why} {NEXT}");
        let Ok(Value::Object(mut fields)) = serde_json::from_str(text) else {
            return Err(no("The reply is no JSON object."));
        };
        let token = fields.remove("reply_token").and_then(|it| it.as_str().map(str::to_owned));
        let token = token.and_then(|token| ReplyToken::parse(&token).ok());
        let reply_token = token.ok_or_else(|| no("The reply has no reply_token."))?;
        let what = what(&mut fields).ok_or_else(|| no("The reply says nothing that counts."))?;
        match fields.keys().next() {
            None => Ok(Reply { reply_token, what }),
            Some(name) => {
                let name = aaep::printable(name).into_owned();
                Err(no(&format!("In such a reply there is no {name}, or not with this value.")))
            }
        }
    }

    /// Says it.
    pub(crate) async fn say(self, ask: &Ask) -> Result<(), SayError> {
        match self.what {
            What::Decision(decision, details) => ask.decide(decision, details).await,
            What::Response(response, details) => ask.answer_with(response, details).await,
            What::Presented => ask.presented().await,
            What::Extend(by_seconds) => ask.extend(by_seconds).await,
            What::Pause => ask.pause().await,
            What::Resume => ask.resume().await,
        }
    }
}

/// Takes what is said out of the fields.
fn what(fields: &mut Map<String, Value>) -> Option<What> {
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
        return Some(What::Decision(decision, details));
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
        return Some(What::Response(response, details));
    }
    match text(fields, "type")?.as_str() {
        "agentvoice:ask.presented" => Some(What::Presented),
        "agentvoice:ask.extend" => fields.remove("by_seconds")?.as_u64().map(What::Extend),
        "agentvoice:ask.pause" => Some(What::Pause),
        "agentvoice:ask.resume" => Some(What::Resume),
        _ => None,
    }
}

/// A text, taken out; what is none stays, and is complained about.
fn text(fields: &mut Map<String, Value>, name: &str) -> Option<String> {
    fields.get(name)?.as_str()?;
    fields.remove(name)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_written_is_said() {
        let read = |text: &str| Reply::read(text).map(|reply| reply.what);
        let accept = read(r#"{"reply_token":"rpl_1","decision":"accept","decided_by":"user"}"#);
        let details =
            ConfirmationDetails { decided_by: Some("user".to_owned()), ..Default::default() };
        assert_eq!(accept, Ok(What::Decision(Decision::Accept, details)));
        let blue = read(r#"{"reply_token":"rpl_1","response":"blue"}"#);
        let response = Response::Text("blue".to_owned());
        assert_eq!(blue, Ok(What::Response(response, ClarificationDetails::default())));
        let more = r#"{"reply_token":"rpl_1","type":"agentvoice:ask.extend","by_seconds":30}"#;
        assert_eq!(read(more), Ok(What::Extend(30)));
    }

    #[test]
    fn what_is_not_clear_is_no_answer() {
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
            let error = Reply::read(text).expect_err(text);
            assert!(error.ends_with(NEXT), "{error}");
        }
    }
}
