//! The envelope (§3.2 to §3.4, §11.1) and the ten events that are not seeds (chapter 4).
//!
//! Rules that concern an event as a whole are in `envelope.rs` and `events.rs`, beside this folder.

use aaep::{CORE_CONTEXT, Code};
use serde_json::{Value as Json, json};

use crate::documents::{LUMEN, full};
use crate::support::set;
use crate::table::{
    any_text, at_most, check, closed, count, form, free_object, id, items, language, one_of,
    optional, required, row, some_text, text, truth, unique, uri, whole,
};
use crate::{DAY_MS, critical, nth_language, nth_name, summaries};

#[test]
fn an_envelope_keeps_to_its_constraints() {
    let declared = |more: Json| set("/@context", json!([CORE_CONTEXT, LUMEN, more]));
    check(
        "envelope",
        &full("state.changed"),
        [
            required(&["/@context", "/event_id", "/session_id", "/timestamp", "/producer"]),
            required(&["/producer/agent_id"]),
            optional(&["/aaep_version", "/sequence_number", "/verbosity", "/urgency"]),
            optional(&["/localization_hints", "/correlation_id", "/extensions"]),
            optional(&["/producer/agent_version", "/producer/agent_name", "/producer/model"]),
            optional(&["/producer/manifest_uri"]),
            closed(""),
            closed("/producer"),
            closed("/localization_hints"),
            id("/event_id", "evt_"),
            id("/session_id", "sess_"),
            form(
                "/timestamp",
                &["2031-03-09T08:15:42.107Z", "2031-03-09T08:15:42.107250-09:30"],
                &[
                    "2031-03-09T08:15:42Z",
                    "2031-03-09T08:15:42.1Z",
                    "2031-03-09T08:15:42.107",
                    "now",
                ],
            ),
            some_text("/producer/agent_id"),
            some_text("/producer/agent_version"),
            some_text("/producer/agent_name"),
            some_text("/producer/model"),
            uri("/producer/manifest_uri"),
            form("/aaep_version", &["1.0.0", "0.1.0-draft"], &["1", "one", ""]),
            count("/sequence_number", 0),
            one_of("/verbosity", &["terse", "normal", "detailed"]),
            one_of("/urgency", &["background", "normal", "critical"]),
            any_text("/correlation_id"),
            language("/localization_hints/primary_language"),
            one_of("/localization_hints/text_direction", &["ltr", "rtl", "auto"]),
            items("/localization_hints/available_languages", 0, 32, nth_language),
            at_most("/localization_hints/available_languages", 32, nth_language),
            unique("/localization_hints/available_languages", nth_language),
            items("/localization_hints/fallback_chain", 0, 16, nth_language),
            at_most("/localization_hints/fallback_chain", 16, nth_language),
            language("/localization_hints/fallback_chain/1"),
            form("/localization_hints/script", &["Latn", "Arab"], &["latn", "LATN", "Lat", ""]),
            any_text("/localization_hints/calendar"),
            free_object("/extensions/lumen"),
            vec![
                row(
                    "a version was published",
                    set("/aaep_version", "1.0.0"),
                    set("/aaep_version", "1.0.1"),
                    Code::UnpublishedVersion,
                ),
                row(
                    "a context is a URI",
                    declared(json!("urn:x:y")),
                    declared(json!("no")),
                    Code::WrongFormat,
                )
                .at("/@context/2"),
                row(
                    "a context is text",
                    declared(json!("urn:x:y")),
                    declared(json!(1)),
                    Code::WrongType,
                )
                .at("/@context/2"),
            ],
        ],
    );
}

#[test]
fn the_lifecycle_keeps_to_its_constraints() {
    check(
        "started",
        &full("session.started"),
        [
            required(&["/summary_normal"]),
            optional(&["/summary_terse", "/summary_detailed", "/expected_duration_ms"]),
            optional(&["/requested_by", "/request_text", "/tools_available"]),
            closed(""),
            summaries(),
            whole("/expected_duration_ms", 0, DAY_MS),
            text("/requested_by", 1, 256),
            text("/request_text", 0, 16_384),
            items("/tools_available", 0, 256, nth_name),
            at_most("/tools_available", 256, nth_name),
            unique("/tools_available", nth_name),
            text("/tools_available/0", 1, 256),
        ],
    );
    check(
        "completed",
        &full("session.completed"),
        [
            required(&["/summary_normal"]),
            optional(&[
                "/duration_ms",
                "/tool_invocations_count",
                "/output_summary",
                "/result_uri",
            ]),
            closed(""),
            summaries(),
            whole("/duration_ms", 0, DAY_MS),
            count("/tool_invocations_count", 0),
            text("/output_summary", 0, 16_384),
            uri("/result_uri"),
        ],
    );
    check(
        "errored",
        &full("session.errored"),
        [
            required(&["/error_category", "/summary_normal"]),
            optional(&["/error_code", "/error_uri", "/recoverable", "/remediation_hint"]),
            closed(""),
            summaries(),
            one_of("/error_category", &["transient", "permanent", "requires_user", "unknown"]),
            form("/error_code", &["AB", "A_9"], &["A", "a_b", "9A", "A-B", ""]),
            uri("/error_uri"),
            truth("/recoverable"),
            text("/remediation_hint", 1, 4096),
            critical(),
        ],
    );
    check(
        "cancelled",
        &full("session.cancelled"),
        [
            required(&["/cancelled_by", "/summary_normal"]),
            optional(&["/cancellation_reason", "/partial_result"]),
            closed(""),
            summaries(),
            one_of("/cancelled_by", &["user", "producer", "timeout", "system"]),
            form("/cancellation_reason", &["ab", "a_9"], &["a", "A_b", "9a", "a-b", ""]),
            text("/partial_result", 0, 16_384),
        ],
    );
}

#[test]
fn states_and_progress_keep_to_their_constraints() {
    check(
        "state",
        &full("state.changed"),
        [
            required(&["/from_state", "/to_state"]),
            closed(""),
            text("/from_state", 1, 64),
            text("/to_state", 1, 64),
            summaries(),
            whole("/expected_duration_ms", 0, DAY_MS),
        ],
    );
    let percent = |value: f64| set("/progress/percent", value);
    check(
        "progress",
        &full("progress.updated"),
        [
            required(&["/progress"]),
            optional(&["/progress/percent", "/progress/step", "/progress/total_steps"]),
            optional(&["/progress/description", "/eta_ms"]),
            closed(""),
            closed("/progress"),
            count("/progress/step", 1),
            count("/progress/total_steps", 1),
            text("/progress/description", 1, 4096),
            summaries(),
            whole("/eta_ms", 0, DAY_MS),
            vec![
                row("not below nothing", percent(0.0), percent(-0.5), Code::OutOfRange),
                row("not above all", percent(99.9), percent(100.1), Code::OutOfRange),
                row("all", set("/progress/percent", 100), set("/progress", 100), Code::WrongType),
                row(
                    "it says something",
                    set("/progress", json!({ "total_steps": 9 })),
                    set("/progress", json!({})),
                    Code::TooFewItems,
                ),
            ],
        ],
    );
}

#[test]
fn tools_and_output_keep_to_their_constraints() {
    let long = "t".repeat(256);
    let longer = "t".repeat(257);
    let tool = || form("/tool", &["t", "_t.-9", &long], &["9t", "", "a b", "a:b", "é", &longer]);
    check(
        "invoked",
        &full("tool.invoked"),
        [
            required(&["/tool", "/summary_normal"]),
            optional(&["/description", "/args_summary", "/expected_duration_ms", "/risk_level"]),
            optional(&["/irreversible", "/tool_call_id"]),
            closed(""),
            tool(),
            summaries(),
            text("/description", 1, 4096),
            text("/args_summary", 0, 16_384),
            whole("/expected_duration_ms", 0, DAY_MS),
            one_of("/risk_level", &["low", "medium", "high"]),
            truth("/irreversible"),
            id("/tool_call_id", "call_"),
        ],
    );
    check(
        "completed",
        &full("tool.completed"),
        [
            required(&["/tool", "/status"]),
            optional(&["/tool_call_id", "/duration_ms", "/error_message", "/summary_normal"]),
            closed(""),
            tool(),
            one_of("/status", &["success", "error", "timeout"]),
            id("/tool_call_id", "call_"),
            whole("/duration_ms", 0, DAY_MS),
            summaries(),
            text("/error_message", 1, 4096),
        ],
    );
    check(
        "streaming",
        &full("output.streaming"),
        [
            required(&["/chunk", "/position", "/complete"]),
            optional(&["/coalesce_hint", "/output_id", "/content_type", "/language"]),
            closed(""),
            text("/chunk", 0, 16_384),
            count("/position", 0),
            truth("/complete"),
            one_of("/coalesce_hint", &["none", "word", "sentence", "paragraph", "completion"]),
            id("/output_id", "out_"),
            form(
                "/content_type",
                &["text/plain", "a/b.c+d_e-f"],
                &["text", "text/", "/x", "a/b;c=d"],
            ),
            language("/language"),
        ],
    );
}

#[test]
fn a_handover_keeps_to_its_constraints() {
    check(
        "handoff",
        &full("handoff.requested"),
        [
            required(&["/reason", "/target_kind"]),
            optional(&["/target_uri", "/packaged_context", "/urgency_for_handoff"]),
            closed(""),
            text("/reason", 1, 16_384),
            one_of("/target_kind", &["human", "specialist_agent", "escalation_queue"]),
            uri("/target_uri"),
            free_object("/packaged_context"),
            one_of("/urgency_for_handoff", &["low", "medium", "high"]),
            summaries(),
            critical(),
        ],
    );
}
