//! Sample documents of our own for every message of the protocol: an agent that tidies a photo
//! library, one that builds software, one that looks after a library's catalogue.
//!
//! The smallest and the fullest form of each. It never judges a document; the tests do.

#![allow(dead_code, reason = "each test file uses its part of this one")]

use aaep::{CORE_CONTEXT, extension};
use serde_json::{Value as Json, json};

/// A context URI that no one has published.
pub(crate) const LUMEN: &str = "https://lumen.example/vocabulary/v1";

/// The names of the twelve core events, as they follow `aaep:agent.`.
pub(crate) const EVENTS: [&str; 12] = [
    "session.started",
    "session.completed",
    "session.errored",
    "session.cancelled",
    "state.changed",
    "progress.updated",
    "tool.invoked",
    "tool.completed",
    "output.streaming",
    "awaiting.confirmation",
    "awaiting.clarification",
    "handoff.requested",
];

/// An event with what it must have, and the language of its words.
pub(crate) fn minimal(name: &str) -> Json {
    let mut event = json!({
        "@context": CORE_CONTEXT,
        "type": format!("aaep:agent.{name}"),
        "event_id": "evt_Shelf0001",
        "session_id": "sess_Reading7",
        "timestamp": "2031-03-09T08:15:42.107Z",
        "producer": { "agent_id": "photo-tidier" },
        "localization_hints": { "primary_language": "en-GB" },
    });
    if is_critical(name) {
        event["urgency"] = "critical".into();
    }
    merge(&mut event, smallest_payload(name));
    event
}

/// An event with everything it can have.
pub(crate) fn full(name: &str) -> Json {
    let mut event = minimal(name);
    merge(
        &mut event,
        json!({
            "@context": [CORE_CONTEXT, LUMEN],
            "aaep_version": "1.0.0",
            "sequence_number": 4,
            "timestamp": "2031-03-09T10:15:42.107250+02:00",
            "producer": {
                "agent_id": "photo-tidier",
                "agent_version": "3.2.1",
                "agent_name": "Album keeper",
                "model": "in-house-12b",
                "manifest_uri": "https://albums.example/about.json",
            },
            "verbosity": "detailed",
            "urgency": if is_critical(name) { "critical" } else { "background" },
            "localization_hints": {
                "primary_language": "en-GB",
                "text_direction": "ltr",
                "available_languages": ["en-GB", "cy"],
                "fallback_chain": ["en", "cy"],
                "script": "Latn",
                "calendar": "gregorian",
            },
            "correlation_id": "build-991",
            "extensions": { "lumen": { "lamp": "on", "rows": [1, 2.5, null] } },
        }),
    );
    merge(&mut event, largest_payload(name));
    event
}

fn is_critical(name: &str) -> bool {
    name.starts_with("awaiting") || name.starts_with("handoff") || name.ends_with("errored")
}

fn merge(into: &mut Json, more: Json) {
    let Json::Object(more) = more else { return };
    into.as_object_mut().expect("an object").extend(more);
}

fn smallest_payload(name: &str) -> Json {
    match name {
        "session.started" => json!({ "summary_normal": "Sorting the pictures of last summer." }),
        "session.completed" => json!({ "summary_normal": "All pictures are in albums now." }),
        "session.errored" => json!({
            "error_category": "requires_user",
            "summary_normal": "The disk with the pictures is locked.",
        }),
        "session.cancelled" => json!({
            "cancelled_by": "user",
            "summary_normal": "You stopped the sorting.",
        }),
        "state.changed" => json!({ "from_state": "idle", "to_state": "comparing_faces" }),
        "progress.updated" => json!({ "progress": { "percent": 12.5 } }),
        "tool.invoked" => json!({
            "tool": "find_duplicates",
            "summary_normal": "Looking for pictures that are there twice.",
        }),
        "tool.completed" => json!({ "tool": "find_duplicates", "status": "success" }),
        "output.streaming" => json!({ "chunk": "Ten albums ", "position": 0, "complete": false }),
        "awaiting.confirmation" => json!({
            "action": "Delete 214 blurred pictures.",
            "consequence": "They are gone from every device.",
            "reply_token": "rpl_Blur214",
            "timeout_seconds": 240,
            "default_decision": "reject",
        }),
        "awaiting.clarification" => json!({
            "question": "Who is the person in the red coat?",
            "reply_token": "rpl_Coat1",
            "timeout_seconds": 90,
        }),
        "handoff.requested" => json!({
            "reason": "Two albums belong to someone else.",
            "target_kind": "human",
        }),
        other => panic!("no event is called {other}"),
    }
}

fn largest_payload(name: &str) -> Json {
    let mut payload = json!({
        "summary_terse": "Albums.",
        "summary_normal": "The albums are being put in order.",
        "summary_detailed": "The albums are put in order by place, then by day, then by face.",
    });
    let own = match name {
        "session.started" => json!({
            "expected_duration_ms": 90_000,
            "requested_by": "household:ines",
            "request_text": "tidy up my holiday pictures please",
            "tools_available": ["find_duplicates", "name_faces"],
        }),
        "session.completed" => json!({
            "duration_ms": 81_204,
            "tool_invocations_count": 6,
            "output_summary": "Ten albums, no duplicates.",
            "result_uri": "https://albums.example/2030",
        }),
        "session.errored" => json!({
            "error_code": "DISK_LOCKED",
            "error_uri": "https://albums.example/help/locked",
            "recoverable": true,
            "remediation_hint": "Unlock the disk and start again.",
        }),
        "session.cancelled" => json!({
            "cancellation_reason": "lid_closed",
            "partial_result": "Four albums were finished.",
        }),
        "state.changed" => json!({ "expected_duration_ms": 0 }),
        "progress.updated" => json!({
            "progress": {
                "percent": 50, "step": 2, "total_steps": 4, "description": "Comparing faces",
            },
            "eta_ms": 40_000,
        }),
        "tool.invoked" => json!({
            "description": "Compares pictures by what is on them",
            "args_summary": "",
            "expected_duration_ms": 3000,
            "risk_level": "low",
            "irreversible": false,
            "tool_call_id": "call_Dup9",
        }),
        "tool.completed" => json!({
            "status": "timeout",
            "tool_call_id": "call_Dup9",
            "duration_ms": 30_000,
            "error_message": "The comparison was given up after half a minute.",
        }),
        "output.streaming" => {
            // Streaming has no summaries: the chunk is what is said.
            return json!({
                "chunk": "are ready.",
                "position": 11,
                "complete": true,
                "coalesce_hint": "completion",
                "output_id": "out_Albums",
                "content_type": "text/markdown",
                "language": "en-IE",
            });
        }
        "awaiting.confirmation" => json!({
            "risk_level": "high",
            "irreversible": true,
            "reversibility": "irreversible",
            "allowed_replies": ["accept", "reject"],
            "extra_context": { "pictures": 214, "devices": ["desk", "phone"] },
        }),
        "awaiting.clarification" => json!({
            "accepted_response_kinds": ["freetext", "multiple_choice"],
            "choices": [
                { "value": "ada", "label": "Aunt Ada" },
                { "value": "stranger", "label": "Someone passing by" },
            ],
            "context": "The albums are sorted by person.",
            "default_response": "stranger",
        }),
        "handoff.requested" => json!({
            "target_uri": "queue://albums/family",
            "packaged_context": { "albums": [3, 9] },
            "urgency_for_handoff": "low",
        }),
        other => panic!("no event is called {other}"),
    };
    merge(&mut payload, own);
    payload
}

/// A request with every field.
pub(crate) fn request() -> Json {
    json!({
        "type": "subscription.request",
        "aaep_version": "1.0.0",
        "subscriber_id": "braille-desk",
        "subscriber_name": "Braille desk",
        "subscriber_version": "7.1",
        "subscriber_manifest_uri": "https://desk.example/about.json",
        "correlation_id": "desk-1",
        "capabilities": capabilities(),
        "extensions": { "lumen": { "lamp": "off" } },
    })
}

/// Every wish that a subscriber can have.
pub(crate) fn capabilities() -> Json {
    json!({
        "max_events_per_second": 2,
        "preferred_verbosity": "terse",
        "languages": ["cy", "gd"],
        "supports_confirmation_reply": true,
        "supports_clarification_reply": false,
        "coalesce_boundaries": ["paragraph", "completion"],
        "event_filters": { "include": ["aaep:agent.*", "lumen:*"], "exclude": ["aaep:agent.tool.*"] },
        "supported_conformance_levels": [1, 2],
        "supported_extensions": [LUMEN],
        "cognitive_load": "low",
        "pace_wpm": 110,
        "accept_signed_manifests_only": false,
        "lumen": { "lamps": 2 },
    })
}

/// A grant with every field.
pub(crate) fn accepted() -> Json {
    json!({
        "type": "subscription.accepted",
        "subscription_id": "sub_Desk1",
        "aaep_version": "1.0.0",
        "producer": {
            "agent_id": "catalogue-keeper",
            "agent_version": "2",
            "agent_name": "Catalogue keeper",
            "model": "in-house-12b",
            "manifest_uri": "https://catalogue.example/about.json",
        },
        "honored_capabilities": capabilities(),
        "manifest_uri": "https://catalogue.example/about.json",
        "signed_manifest": "aGVhZA.Ym9keQ.c2ln",
        "negotiation_notes": "Two events in a second are what the wire can do.",
    })
}

/// A refusal with every field.
pub(crate) fn rejected() -> Json {
    json!({
        "type": "subscription.rejected",
        "reason_code": "rate_limit",
        "reason_message": "All reading desks are taken.",
        "retry_after_seconds": 30,
        "alternative_manifest_uri": "https://catalogue.example/about.json",
    })
}

/// A wish for other terms with every field.
pub(crate) fn renegotiate() -> Json {
    json!({
        "type": "subscription.renegotiate",
        "subscription_id": "sub_Desk1",
        "capabilities": { "pace_wpm": 90 },
        "correlation_id": "desk-2",
        "extensions": { "lumen": {} },
    })
}

/// An end with every field.
pub(crate) fn close() -> Json {
    json!({
        "type": "subscription.close",
        "subscription_id": "sub_Desk1",
        "reason_code": "desk_closed",
        "reason_message": "The reading room closes.",
        "correlation_id": "desk-3",
        "extensions": { "lumen": {} },
    })
}

/// A decision with every field.
pub(crate) fn confirmation_reply() -> Json {
    json!({
        "type": "confirmation.reply",
        "reply_token": "rpl_Blur214",
        "decision": "reject",
        "subscription_id": "sub_Desk1",
        "timestamp": "2031-03-09T08:16:00Z",
        "decided_by": "household:ines",
        "decision_rationale": "I want to look at them first.",
        "modified_action": { "pictures": 10 },
        "correlation_id": "desk-4",
    })
}

/// An answer with every field.
pub(crate) fn clarification_reply() -> Json {
    json!({
        "type": "clarification.reply",
        "reply_token": "rpl_Coat1",
        "response": "ada",
        "subscription_id": "sub_Desk1",
        "timestamp": "2031-03-09T08:16:00.5+01:00",
        "decided_by": "household:ines",
        "confidence": 0.75,
        "correlation_id": "desk-5",
    })
}

/// A manifest with every field.
pub(crate) fn manifest() -> Json {
    json!({
        "type": "aaep:producer.manifest",
        "@context": [CORE_CONTEXT, LUMEN],
        "agent_id": "catalogue-keeper",
        "agent_version": "2",
        "agent_name": "Catalogue keeper",
        "aaep_versions_supported": ["1.0.0", "1.0.0-rc.2"],
        "conformance_levels_supported": [1, 2, 3],
        "transports_supported": ["sse", "websocket"],
        "languages_supported": ["cy", "gd"],
        "event_types_emitted": ["aaep:agent.*", "lumen:lamp.lit"],
        "extensions_supported": [LUMEN],
        "default_verbosity": "normal",
        "max_concurrent_subscriptions": 40,
        "contact": "desk@catalogue.example",
        "extensions": { "lumen": {} },
    })
}

/// An event that carries everything our own extension can say.
pub(crate) fn delivery() -> Json {
    let mut event = minimal("state.changed");
    merge(
        &mut event,
        json!({
            "@context": [CORE_CONTEXT, extension::CONTEXT],
            "extensions": {
                "agentvoice": {
                    "merged": { "count": 3, "last_event_id": "evt_Shelf0000" },
                    "resolution": {
                        "reply_token": "rpl_Blur214", "outcome": "reject", "decided_by": "reply",
                    },
                    "gap": { "after_event_id": "evt_Shelf0000", "missed": 2 },
                    "held_back": 1,
                    "deadline": {
                        "reply_token": "rpl_Blur214", "at": "2026-05-24T14:22:24.812Z",
                        "paused": false,
                    },
                    "max_timeout_seconds": 600,
                    "tool": "shelve",
                    "action_digest": format!("sha-256:{}", "4f".repeat(32)),
                },
            },
        }),
    );
    event
}

/// What a subscriber says about the time of a question, in our own extension.
pub(crate) fn about_time(kind: &str) -> Json {
    let mut message = json!({
        "type": format!("agentvoice:ask.{kind}"),
        "reply_token": "rpl_Blur214",
        "subscription_id": "sub_Lamp77",
    });
    if kind == "extend" {
        message["by_seconds"] = json!(120);
    }
    message
}

/// What a person tells an agent, in our own extension.
pub(crate) fn instruction(name: &str) -> Json {
    let mut message =
        json!({ "type": format!("agentvoice:{name}"), "subscription_id": "sub_Lamp77" });
    let rest = match name {
        "agent.prompt" => json!({ "agent_id": "catalogue-keeper", "text": "Dust the top shelf." }),
        "session.cancel" => json!({ "session_id": "sess_Shelf9", "reason": "tea_is_ready" }),
        "session.steer" => json!({ "session_id": "sess_Shelf9", "text": "Only the left half." }),
        other => panic!("{other} is no instruction"),
    };
    merge(&mut message, rest);
    message
}

/// What an agent says that it can be told.
pub(crate) fn hello() -> Json {
    json!({
        "type": "agentvoice:agent.hello",
        "agent_id": "catalogue-keeper",
        "accepts": ["prompt", "cancel", "steer"],
    })
}

/// An agent no longer needs an answer.
pub(crate) fn withdraw() -> Json {
    json!({ "type": "agentvoice:ask.withdraw", "reply_token": "rpl_Blur214" })
}

/// Every message in its fullest form.
pub(crate) fn all_full() -> Vec<Json> {
    let others = [
        request(),
        accepted(),
        rejected(),
        renegotiate(),
        close(),
        confirmation_reply(),
        clarification_reply(),
        manifest(),
        delivery(),
        about_time("presented"),
        about_time("extend"),
        about_time("pause"),
        about_time("resume"),
        instruction("agent.prompt"),
        instruction("session.cancel"),
        instruction("session.steer"),
        hello(),
        withdraw(),
    ];
    EVENTS.iter().map(|name| full(name)).chain(others).collect()
}
