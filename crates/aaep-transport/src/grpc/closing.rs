//! How a producer ends a gRPC call: the close codes of B.2.6 as statuses, with the code itself in the metadata,
//! so that no information is lost.

use serde::Deserialize;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

use crate::wire::CLOSED;

/// The metadata entry at the end of a call that carries the close code of B.2.6.
pub const CLOSE_CODE: &str = "aaep-close-code";

/// The fields of an outgoing message that matter to the pump.
#[derive(Debug, Deserialize)]
pub(super) struct ClosingHead {
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    #[serde(default)]
    code: Option<u16>,
    #[serde(default)]
    reason: Option<String>,
    /// Present in every event, whose type an agent can choose. An event never ends a connection.
    #[serde(default)]
    event_id: Option<serde::de::IgnoredAny>,
}

impl ClosingHead {
    /// Reads the fields. A message without a type gets an empty type.
    pub(super) fn read(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or_else(|_| ClosingHead {
            kind: String::new(),
            code: None,
            reason: None,
            event_id: None,
        })
    }

    /// The corresponding status, if this is the message that ends a connection.
    pub(super) fn closing(&self) -> Option<Status> {
        if self.kind != CLOSED || self.event_id.is_some() {
            return None;
        }
        self.code.map(|code| closed_status(code, self.reason.as_deref().unwrap_or_default()))
    }
}

/// The status for a close code of B.2.6.
pub fn closed_status(code: u16, reason: &str) -> Status {
    let status = match code {
        // The connection was closed on purpose.
        1000 | 4000 | 4005 => Code::Ok,
        1001 | 1013 => Code::Unavailable,
        1002 | 1003 | 1007 | 4004 => Code::InvalidArgument,
        1008 | 1009 => Code::ResourceExhausted,
        1011 => Code::Internal,
        4001 => Code::FailedPrecondition,
        4002 => Code::Unauthenticated,
        4003 => Code::PermissionDenied,
        _ => Code::Unknown,
    };
    let mut metadata = MetadataMap::new();
    metadata.insert(CLOSE_CODE, MetadataValue::from(code));
    Status::with_metadata(status, reason, metadata)
}

/// The close code in the metadata at the end of a call, if there is one.
pub fn close_code(metadata: &MetadataMap) -> Option<u16> {
    metadata.get(CLOSE_CODE)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_close_code_has_its_status_and_comes_along_with_it() {
        for (code, status) in [
            (1000, Code::Ok),
            (1001, Code::Unavailable),
            (1013, Code::Unavailable),
            (1002, Code::InvalidArgument),
            (1003, Code::InvalidArgument),
            (1007, Code::InvalidArgument),
            (1008, Code::ResourceExhausted),
            (1009, Code::ResourceExhausted),
            (1011, Code::Internal),
            (4000, Code::Ok),
            (4001, Code::FailedPrecondition),
            (4002, Code::Unauthenticated),
            (4003, Code::PermissionDenied),
            (4004, Code::InvalidArgument),
            (4005, Code::Ok),
            (4999, Code::Unknown),
        ] {
            let made = closed_status(code, "Why.");
            assert_eq!((made.code(), made.message()), (status, "Why."), "{code}");
            assert_eq!(close_code(made.metadata()), Some(code));
        }
    }

    #[test]
    fn only_the_word_of_the_wire_ends_a_call() {
        let closing = |json| ClosingHead::read(json).closing().map(|status| status.code());
        let last = r#"{"type":"agentvoice:closed","code":4003,"reason":"Go."}"#;
        assert_eq!(closing(last), Some(Code::PermissionDenied));
        for other in [
            r#"{"type":"agentvoice:closed","code":4003,"event_id":"evt_1"}"#,
            r#"{"type":"agentvoice:closed","code":70000}"#,
            r#"{"type":"agentvoice:closed"}"#,
            r#"{"type":"agentvoice:error","code":4003}"#,
            r#"{"code":4003}"#,
            "[]",
            "no JSON",
        ] {
            assert_eq!(closing(other), None, "{other}");
        }
    }

    #[test]
    fn a_number_that_is_not_a_close_code_is_refused() {
        for text in ["", "-1", "70000", "x"] {
            let mut metadata = MetadataMap::new();
            metadata.insert(CLOSE_CODE, MetadataValue::try_from(text).expect("a value"));
            assert_eq!(close_code(&metadata), None, "{text}");
        }
    }
}
