//! The three messages that are measured individually.

/// A message and the path of its schema.
pub(crate) struct MessageSample {
    /// A description in words.
    pub(crate) label: String,
    pub(crate) bytes: Vec<u8>,
    /// The path of its schema among [`aaep::schemas`].
    pub(crate) schema: &'static str,
}

/// A tool call of exactly 500 bytes.
const TOOL_INVOKED: &str = concat!(
    r#"{"@context":"https://aaep-protocol.org/context/v1","#,
    r#""type":"aaep:agent.tool.invoked","event_id":"evt_b07d4c11f2a94e63","#,
    r#""session_id":"sess_5e1c90aa37","sequence_number":12,"#,
    r#""timestamp":"2026-03-09T08:41:27.506Z","#,
    r#""producer":{"agent_id":"garden-planner","agent_version":"2.4.0"},"#,
    r#""localization_hints":{"primary_language":"en-GB","text_direction":"ltr"},"#,
    r#""tool":"weather.forecast","tool_call_id":"call_77b2","#,
    r#""expected_duration_ms":900,"#,
    r#""summary_normal":"Asking how much rain falls on the garden in the week."}"#,
);
const _: () = assert!(TOOL_INVOKED.len() == 500);

const CONFIRMATION: &str = concat!(
    r#"{"@context":"https://aaep-protocol.org/context/v1","#,
    r#""type":"aaep:agent.awaiting.confirmation","event_id":"evt_c81a0e55d3b74f20","#,
    r#""session_id":"sess_5e1c90aa37","sequence_number":19,"#,
    r#""timestamp":"2026-03-09T08:42:03.118Z","#,
    r#""producer":{"agent_id":"garden-planner","agent_version":"2.4.0"},"urgency":"critical","#,
    r#""localization_hints":{"primary_language":"en-GB","text_direction":"ltr"},"#,
    r#""action":"Order forty tomato seedlings from the nursery in Kent.","#,
    r#""consequence":"Your card is charged 62 pounds and the order cannot be called back.","#,
    r#""reply_token":"rpl_19fe02c7","timeout_seconds":120,"default_decision":"reject","#,
    r#""summary_terse":"Order seedlings?","risk_level":"medium","#,
    r#""reversibility":"irreversible","allowed_replies":["accept","reject"],"#,
    r#""extra_context":{"nursery":"Kent","seedlings":40,"delivery":{"days":3,"by":"van"}}}"#,
);

const STREAMING_HEAD: &str = concat!(
    r#"{"@context":"https://aaep-protocol.org/context/v1","#,
    r#""type":"aaep:agent.output.streaming","event_id":"evt_d4420b9e7c1f4a88","#,
    r#""session_id":"sess_5e1c90aa37","sequence_number":23,"#,
    r#""timestamp":"2026-03-09T08:42:51.940Z","#,
    r#""producer":{"agent_id":"garden-planner","agent_version":"2.4.0"},"#,
    r#""localization_hints":{"primary_language":"en-GB","text_direction":"ltr"},"#,
    r#""position":0,"complete":false,"coalesce_hint":"paragraph","content_type":"text/plain","#,
    r#""chunk":""#,
);

/// A paragraph as it appears in JSON, with an escape in it.
const PARAGRAPH: &str = concat!(
    "Sow the beans when the soil is warm to the hand, two to a hole and a finger deep. ",
    "Water them in the evening, at the root and not on the leaf, and tie them to the canes ",
    "before the wind does it for you.\\n\\n",
);

/// The size of the chunk of output.
const STREAMING_BYTES: usize = 4096;

/// The samples; the targets refer to the first one.
pub(crate) fn samples() -> Vec<MessageSample> {
    let events = [
        ("Tool call", TOOL_INVOKED.to_owned(), "core/agent.tool.invoked.schema.json"),
        ("Confirmation", CONFIRMATION.to_owned(), "core/agent.awaiting.confirmation.schema.json"),
        ("Piece of output", streaming(), "core/agent.output.streaming.schema.json"),
    ];
    let sample = |(name, text, schema): (&str, String, _)| {
        let label = format!("{name} of {} bytes", text.len());
        MessageSample { label, bytes: text.into_bytes(), schema }
    };
    events.map(sample).into()
}

fn streaming() -> String {
    let mut text = STREAMING_HEAD.to_owned();
    while text.len() + PARAGRAPH.len() + 2 <= STREAMING_BYTES {
        text.push_str(PARAGRAPH);
    }
    while text.len() + 2 < STREAMING_BYTES {
        text.push('.');
    }
    text.push_str("\"}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_is_valid_and_of_its_size() {
        let sizes: Vec<usize> = samples().iter().map(|sample| sample.bytes.len()).collect();
        assert_eq!((sizes[0], sizes[2]), (500, STREAMING_BYTES));
        for sample in samples() {
            let reading = aaep::read(&sample.bytes, aaep::Mode::Strict);
            assert_eq!(reading.violations, [], "{}", sample.label);
        }
    }
}
