//! The rest of the handshake (chapter 5), the replies (§6.3, §6.5), the manifest (§5.10) and our own
//! extension (§7.5).
//!
//! It never judges a conversation, only one message at a time.

use aaep::Code;
use serde_json::{Value as Json, json};

use crate::documents::{
    about_time, accepted, clarification_reply, close, confirmation_reply, delivery, hello,
    instruction, manifest, renegotiate, withdraw,
};
use crate::support::{set, words};
use crate::table::{
    any_text, check, closed, count, form, free_object, id, items, language, one_of, optional,
    required, row, some_text, text, unique, uri, whole,
};
use crate::{capabilities, nth_language, nth_name, nth_uri, version};

#[test]
fn the_rest_of_the_handshake_keeps_to_its_constraints() {
    let of_grant = [
        required(&["/subscription_id", "/aaep_version", "/producer", "/honored_capabilities"]),
        required(&["/producer/agent_id"]),
        optional(&["/manifest_uri", "/signed_manifest", "/negotiation_notes"]),
        closed(""),
        closed("/producer"),
        id("/subscription_id", "sub_"),
        version("/aaep_version"),
        some_text("/producer/agent_id"),
        uri("/producer/manifest_uri"),
        uri("/manifest_uri"),
        form("/signed_manifest", &["a.b.c", "A-_9.b.c"], &["a.b", "a..c", "a.b.c.d", "a.b.c=", ""]),
        text("/negotiation_notes", 0, 4096),
    ];
    check(
        "accepted",
        &accepted(),
        of_grant.into_iter().chain(capabilities("/honored_capabilities")),
    );
    check(
        "renegotiate",
        &renegotiate(),
        [
            required(&["/subscription_id", "/capabilities"]),
            optional(&["/correlation_id", "/extensions"]),
            closed(""),
            id("/subscription_id", "sub_"),
            whole("/capabilities/pace_wpm", 50, 1000),
            free_object("/extensions/lumen"),
        ],
    );
    check(
        "close",
        &close(),
        [
            required(&["/subscription_id"]),
            optional(&["/reason_code", "/reason_message", "/correlation_id", "/extensions"]),
            closed(""),
            id("/subscription_id", "sub_"),
            form("/reason_code", &["ab", "a_9"], &["a", "A_b", "9a", "a-b", ""]),
            text("/reason_message", 1, 4096),
        ],
    );
}

#[test]
fn the_replies_keep_to_their_constraints() {
    let common = || {
        [
            required(&["/reply_token", "/subscription_id", "/timestamp"]),
            optional(&["/decided_by", "/correlation_id"]),
            closed(""),
            id("/reply_token", "rpl_"),
            id("/subscription_id", "sub_"),
            form(
                "/timestamp",
                &["2031-03-09T08:16:00Z", "2031-03-09T08:16:00.123456789+05:45"],
                &["2031-03-09", "2031-02-30T08:16:00Z", "2031-03-09T08:16:00", "then"],
            ),
            text("/decided_by", 1, 256),
            any_text("/correlation_id"),
        ]
    };
    let of_decision = [
        required(&["/decision"]),
        optional(&["/decision_rationale", "/modified_action"]),
        one_of("/decision", &["accept", "reject"]),
        text("/decision_rationale", 1, 4096),
        free_object("/modified_action"),
    ];
    check("decision", &confirmation_reply(), common().into_iter().chain(of_decision));
    let response = |value: Json| set("/response", value);
    let confidence = |value: f64| set("/confidence", value);
    let of_answer = [
        required(&["/response"]),
        optional(&["/confidence"]),
        vec![
            row(
                "text",
                response(json!(words(16_384))),
                response(json!(words(16_385))),
                Code::TooLong,
            ),
            row("some text", response(json!("x")), response(json!("")), Code::TooShort),
            row("yes or no", response(json!(false)), response(Json::Null), Code::WrongType),
            row("a number", response(json!(-1.5)), response(json!([1])), Code::WrongType),
            row("not unsure", confidence(0.0), confidence(-0.1), Code::OutOfRange),
            row("quite sure", confidence(1.0), confidence(1.1), Code::OutOfRange),
        ],
    ];
    check("answer", &clarification_reply(), common().into_iter().chain(of_answer));
}

#[test]
fn a_manifest_keeps_to_its_constraints() {
    check(
        "manifest",
        &manifest(),
        [
            required(&["/@context", "/agent_id", "/aaep_versions_supported"]),
            optional(&["/agent_version", "/agent_name", "/conformance_levels_supported"]),
            optional(&["/transports_supported", "/languages_supported", "/event_types_emitted"]),
            optional(&["/extensions_supported", "/default_verbosity", "/contact", "/extensions"]),
            optional(&["/max_concurrent_subscriptions"]),
            closed(""),
            some_text("/agent_id"),
            some_text("/agent_version"),
            some_text("/agent_name"),
            items("/aaep_versions_supported", 1, 9, |nth| json!(format!("1.{nth}.0"))),
            unique("/aaep_versions_supported", |nth| json!(format!("1.{nth}.0"))),
            version("/aaep_versions_supported/0"),
            items("/conformance_levels_supported", 1, 3, |nth| json!(nth + 1)),
            unique("/conformance_levels_supported", |nth| json!(nth + 1)),
            unique("/transports_supported", nth_name),
            text("/transports_supported/0", 1, 64),
            unique("/languages_supported", nth_language),
            language("/languages_supported/0"),
            unique("/event_types_emitted", nth_name),
            form("/event_types_emitted/0", &["aaep:agent.tool.*"], &["a*b"]),
            unique("/extensions_supported", nth_uri),
            uri("/extensions_supported/0"),
            one_of("/default_verbosity", &["terse", "normal", "detailed"]),
            count("/max_concurrent_subscriptions", 1),
            text("/contact", 1, 256),
        ],
    );
}

#[test]
fn our_own_extension_keeps_to_its_constraints() {
    let at = "/extensions/agentvoice";
    let below = |field: &str| format!("{at}/{field}");
    check(
        "agentvoice",
        &delivery(),
        [
            required(&[&below("merged/count"), &below("merged/last_event_id")]),
            required(&[&below("resolution/reply_token"), &below("resolution/outcome")]),
            required(&[&below("resolution/decided_by")]),
            optional(&[&below("merged"), &below("resolution"), &below("gap"), &below("held_back")]),
            optional(&[&below("gap/after_event_id"), &below("gap/missed")]),
            closed(at),
            closed(&below("merged")),
            closed(&below("resolution")),
            closed(&below("gap")),
            count(&below("merged/count"), 2),
            id(&below("merged/last_event_id"), "evt_"),
            id(&below("resolution/reply_token"), "rpl_"),
            one_of(
                &below("resolution/outcome"),
                &["accept", "reject", "answered", "unanswered", "withdrawn"],
            ),
            one_of(
                &below("resolution/decided_by"),
                &["reply", "timeout", "no_listener", "withdrawn"],
            ),
            id(&below("gap/after_event_id"), "evt_"),
            count(&below("gap/missed"), 0),
            count(&below("held_back"), 1),
        ],
    );
}

#[test]
fn what_our_own_extension_says_of_time_and_consent_keeps_to_its_constraints() {
    let at = "/extensions/agentvoice";
    let below = |field: &str| format!("{at}/{field}");
    let hex = "4f".repeat(32);
    check(
        "agentvoice",
        &delivery(),
        [
            required(&[&below("deadline/reply_token"), &below("deadline/at")]),
            required(&[&below("deadline/paused")]),
            optional(&[&below("deadline"), &below("max_timeout_seconds")]),
            optional(&[&below("tool"), &below("action_digest")]),
            closed(&below("deadline")),
            id(&below("deadline/reply_token"), "rpl_"),
            whole(&below("max_timeout_seconds"), 1, 86_400),
            form(&below("tool"), &["shelve", "_x.y-z"], &["", "2fast", "a b"]),
            form(
                &below("action_digest"),
                &[&format!("sha-256:{}", "0a".repeat(32))],
                &[&hex, &format!("sha-256:{}", "4F".repeat(32)), &format!("sha-256:{hex}0")],
            ),
        ],
    );
}

#[test]
fn what_subscribers_say_of_time_keeps_to_its_constraints() {
    for kind in ["presented", "extend", "pause", "resume"] {
        check(
            kind,
            &about_time(kind),
            [
                required(&["/reply_token", "/subscription_id"]),
                closed(""),
                id("/reply_token", "rpl_"),
                id("/subscription_id", "sub_"),
            ],
        );
    }
    check(
        "extend",
        &about_time("extend"),
        [required(&["/by_seconds"]), whole("/by_seconds", 1, 86_400)],
    );
}

#[test]
fn what_people_tell_agents_keeps_to_its_constraints() {
    let of_all = |name| {
        check(
            name,
            &instruction(name),
            [required(&["/subscription_id"]), closed(""), id("/subscription_id", "sub_")],
        );
    };
    ["agent.prompt", "session.cancel", "session.steer"].into_iter().for_each(of_all);
    check(
        "prompt",
        &instruction("agent.prompt"),
        [
            required(&["/text"]),
            optional(&["/agent_id"]),
            text("/agent_id", 1, 256),
            text("/text", 1, 16_384),
        ],
    );
    check(
        "cancel",
        &instruction("session.cancel"),
        [
            required(&["/session_id"]),
            optional(&["/reason"]),
            id("/session_id", "sess_"),
            form("/reason", &["tea_is_ready", "a1"], &["", "a", "Tea", "tea is ready"]),
        ],
    );
    check(
        "steer",
        &instruction("session.steer"),
        [required(&["/session_id", "/text"]), id("/session_id", "sess_"), text("/text", 1, 16_384)],
    );
}

#[test]
fn what_agents_say_of_themselves_keeps_to_its_constraints() {
    check(
        "hello",
        &hello(),
        [
            required(&["/agent_id", "/accepts"]),
            closed(""),
            text("/agent_id", 1, 256),
            one_of("/accepts/0", &["prompt"]),
            one_of("/accepts/1", &["cancel"]),
            one_of("/accepts/2", &["steer"]),
            unique("/accepts", |at| json!(["steer", "prompt"][at])),
            vec![row(
                "an agent may accept nothing, but must say so",
                set("/accepts", json!([])),
                set("/accepts", Json::Null),
                Code::WrongType,
            )],
        ],
    );
    check(
        "withdraw",
        &withdraw(),
        [required(&["/reply_token"]), closed(""), id("/reply_token", "rpl_")],
    );
}
