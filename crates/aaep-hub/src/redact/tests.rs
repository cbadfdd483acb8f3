//! Secrets that must be redacted, and ordinary words that must stay.
//!
//! The secrets are assembled here from pieces, so that no scanner mistakes them for real ones.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;

use super::*;

mod numbers;

/// Built once, because compiling all patterns is slow and using them is not.
fn redactor() -> &'static Redactor {
    static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| {
        Redactor::new(&RedactConfig::default()).expect("the patterns that are built in")
    });
    &REDACTOR
}

/// Letters and digits in no order, of any length.
fn noise(length: usize) -> String {
    "a7Kq2ZxP9fWm4TgB1cVhJ8sLd3RyN6uE0oXi5".chars().cycle().take(length).collect()
}

fn hex(length: usize) -> String {
    "3f9a0c71e8b24d56".chars().cycle().take(length).collect()
}

#[test]
fn keys_are_known_by_their_form() {
    let redactor = redactor();
    for (begin, length) in [
        ("sk-", 48),
        ("sk-proj-", 60),
        ("sk-ant-api03-", 80),
        ("sk_live_", 24),
        ("whsec_", 32),
        ("ghp_", 36),
        ("ghs_", 36),
        ("github_pat_", 60),
        ("glpat-", 20),
        ("xoxb-", 40),
        ("xoxp-", 40),
        ("xapp-1-", 40),
        ("AIza", 35),
        ("ya29.", 60),
        ("npm_", 36),
        ("pypi-", 80),
        ("hf_", 34),
        ("aaep_", 43),
        ("aaep-person_", 43),
    ] {
        let key = format!("{begin}{}", noise(length));
        for around in ["Uses KEY now.", "(KEY)", "KEY", "\"KEY\"", "a KEY, b", "schlüssel KEY über"]
        {
            let text = around.replace("KEY", &key);
            assert_eq!(redactor.redact_text(&text), around.replace("KEY", REDACTED), "{text}");
        }
    }
    let amazon = format!("AK{}", "IAIOSFODNN7EXAMPLE");
    assert_eq!(redactor.redact_text(&amazon), REDACTED);
    let signed = format!("{}.{}.{}", "eyJhbGciOiJFUzI1NiJ9", "eyJzdWIiOiJhZGEifQ", noise(86));
    assert_eq!(redactor.redact_text(&format!("Got {signed} back")), "Got [redacted] back");
}

#[test]
fn a_secret_is_found_in_the_form_in_which_it_is_told() {
    let redactor = redactor();
    assert_eq!(redactor.redact_text("A\u{212a}IAIOSFODNN7EXAMPLQ"), "[redacted]");
    assert_eq!(redactor.redact_text("to S\u{212a}3112000000198742637541"), "to [redacted]");
    assert_eq!(redactor.redact_text("300 \u{212a}"), "300 \u{212a}", "what has no secret stays");
}

#[test]
fn private_keys_go_to_their_end() {
    let redactor = redactor();
    for kind in ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "] {
        let key = format!(
            "-----BEGIN {kind}PRIVATE KEY-----\n{}\n{}\n-----END {kind}PRIVATE KEY-----",
            noise(64),
            noise(30)
        );
        assert_eq!(redactor.redact_text(&format!("a\n{key}\nb")), "a\n[redacted]\nb");
        let cut = &key[..key.len() / 2];
        assert_eq!(redactor.redact_text(&format!("a {cut}")), "a [redacted]");
    }
    let public = "-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----";
    assert_eq!(redactor.redact_text(public), public);
}

#[test]
fn values_are_known_by_their_names() {
    let redactor = redactor();
    let random = noise(32);
    for (text, expected) in [
        ("password=hunter2", "password=[redacted]"),
        ("PASSWORD=correct", "PASSWORD=[redacted]"),
        ("export DB_PASSWORD=hunter2 && run", "export DB_PASSWORD=[redacted] && run"),
        ("password: hunter2", "password: [redacted]"),
        ("{\"password\": \"correct horse\"}", "{\"password\": \"[redacted]\"}"),
        (r#"{\"password\": \"hunter\"}"#, r#"{\"password\": \"[redacted]\"}"#),
        ("api_key='abc'", "api_key='[redacted]'"),
        ("OPENAI_API_KEY=abc", "OPENAI_API_KEY=[redacted]"),
        ("?token=abc&page=2", "?token=[redacted]&page=2"),
        ("curl -H 'X: y' --token s3cr3t https://a", "curl -H 'X: y' --token [redacted] https://a"),
        ("mysql --password=x -u root", "mysql --password=[redacted] -u root"),
        (
            "Server=db;User Id=sa;Password=p4ss;Timeout=3",
            "Server=db;User Id=sa;Password=[redacted];Timeout=3",
        ),
        ("AccountKey=abc==;Suffix=core", "AccountKey=[redacted];Suffix=core"),
        ("postgres://ada:s3cr3t@db.example/x", "postgres://ada:[redacted]@db.example/x"),
        ("redis://:p@ss@cache:6379", "redis://:[redacted]@cache:6379"),
        ("Authorization: Bearer abc123", "Authorization: Bearer [redacted]"),
        ("authorization: basic dXNlcjpwYXNz", "authorization: basic [redacted]"),
        ("\"Authorization\": \"Bearer abc123\"", "\"Authorization\": \"Bearer [redacted]\""),
        ("with bearer RANDOM", "with bearer [redacted]"),
        ("Your API key is RANDOM.", "Your API key is [redacted]"),
        ("the token `RANDOM` works", "the token `[redacted]` works"),
    ] {
        let text = text.replace("RANDOM", &random);
        assert_eq!(redactor.redact_text(&text), expected, "{text}");
    }
}

#[test]
fn ordinary_words_stay() {
    let redactor = redactor();
    let (hash, image) = (hex(40), noise(200));
    for text in [
        "I read 14 files and ran the tests; 3 failed.",
        "Commit HASH fixes the token refresh.",
        "Token refresh was broken by HASH.",
        "The session 123e4567-e89b-12d3-a456-426614174000 has ended.",
        "Opened /home/ada/projects/token-store/src/secret_sharing.rs at line 42.",
        "The picture is data:image/png;base64,IMAGE in the page.",
        "sha256:HASH is the digest of the image.",
        "Forgot your password: please ask for a new one.",
        "The password must have 12 characters. Password: required.",
        "Set max_tokens=4096 and tokens: 1200.",
        "Token count: 18234, token limit: 200,000.",
        "I used 1200 tokens of 200000 tokens.",
        "The secret is to listen. A secret: nobody knows.",
        "Reads the token from $TOKEN, password=${DB_PASSWORD}, key <your-api-key>.",
        "const token = await getToken();",
        "if password == expected { return }",
        "let token = parser.next_token();",
        "PWD=/home/ada/work",
        "token: https://docs.example.org/tokens",
        "Visit https://example.org:8443/path?a=b@c for more.",
        "git clone git@github.com:ada/aaep.git",
        "Mail ada@example.org at 10:30, or call 555-0123.",
        "The ratio is 3:4@60Hz.",
        "disk-usage-of-the-whole-volume-2024 and task-list-for-the-release-2025",
        "The bearer of this letter is known. Bearer authentication is required.",
        "Authorization: required for this step.",
        "The access key opens door 12.",
        "API keys are kept in the settings; API key rotation is monthly.",
        "Ẹ ku àárọ̀! パスワードを変更しました。 Das Passwort wurde geändert.",
        "UUIDv7 0199c1d2-0000-7000-8000-000000000003 and evt_0199c1d2000000000000000000000003",
        "Tokenizer=bert-base, tokenization is done, secretary=Ada",
        "ISO 8601: 2026-05-24T14:22:11.342Z",
        "The credentials were wrong.",
        "password: ******** and token=*** stay as they are",
        "",
    ] {
        let text = text.replace("HASH", &hash).replace("IMAGE", &image);
        assert!(
            matches!(redactor.redact_text(&text), Cow::Borrowed(_)),
            "{}",
            redactor.redact_text(&text)
        );
    }
}

#[test]
fn configured_patterns_and_exceptions_are_heeded() {
    let config = RedactConfig {
        patterns: vec![r"\bEMP-\d{6}\b".to_owned(), r"room (?P<secret>\d+)".to_owned()],
        exceptions: vec!["hunter2".to_owned(), "demo-.*".to_owned()],
        ..RedactConfig::default()
    };
    let redactor = Redactor::new(&config).expect("patterns");
    let told = redactor.redact_text("EMP-123456 in room 12").into_owned();
    assert_eq!(told, "[redacted] in room [redacted]");
    assert_eq!(
        redactor.redact_text("password=hunter2 token=demo-1"),
        "password=hunter2 token=demo-1"
    );
    assert_eq!(redactor.redact_text("password=hunter22"), "password=[redacted]");
}

#[test]
fn patterns_that_cannot_work_are_refused() {
    let with = |pattern: &str| {
        let patterns = vec![pattern.to_owned()];
        Redactor::new(&RedactConfig { patterns, ..RedactConfig::default() }).err()
    };
    assert_eq!(with("("), Some(RedactError::Pattern("(".to_owned())));
    assert_eq!(with("a*"), Some(RedactError::MatchesNothing("a*".to_owned())));
    let long = "a".repeat(MAX_PATTERN_BYTES + 1);
    assert_eq!(with(&long), Some(RedactError::Pattern(long.clone())));
    assert!(with("((((a{99}){99}){99}){99}){99}").is_some());
    let patterns = vec!["a".to_owned(); MAX_PATTERNS + 1];
    let config = RedactConfig { patterns, ..RedactConfig::default() };
    assert_eq!(Redactor::new(&config).err(), Some(RedactError::TooMany));
    let exceptions = vec!["a)|(b".to_owned()];
    let config = RedactConfig { exceptions, ..RedactConfig::default() };
    assert_eq!(Redactor::new(&config).err(), Some(RedactError::Pattern("a)|(b".to_owned())));
}

#[test]
fn a_pattern_that_fits_everything_ends_in_one_marker() {
    let config = RedactConfig { patterns: vec!["^.".to_owned()], ..RedactConfig::default() };
    let redactor = Redactor::new(&config).expect("a pattern");
    let once = redactor.redact_text("a rather long text of ordinary words").into_owned();
    assert_eq!(redactor.redact_text(&once), once);
}

#[test]
fn an_event_loses_its_secrets_and_keeps_what_programs_compare() {
    let key = format!("ghp_{}", noise(36));
    let mut event = json!({
        "@context": "https://aaep.example/context", "type": "aaep:agent.tool.invoked",
        "event_id": key, "session_id": key, "reply_token": key, "tool_call_id": key,
        "timestamp": "2026-05-24T14:22:11.342Z", "tool": "password=x",
        "args_summary": format!("login {key}"), "summary_normal": "password=hunter2",
        "summary_normal_yo": "password=hunter2", "question": format!("Use {key}?"),
        "progress": { "percent": 5, "description": "token=abc" },
        "choices": [{ "value": "password=a", "label": "password=a" }],
        "result_uri": "https://ada:s3cr3t@files.example/a?token=abc",
        "extensions": { "acme": { "access_token": "plain", "note": [format!("x {key}")], "client_id": key } },
    });
    let object = event.as_object_mut().expect("an object");
    assert_eq!(redactor().redact_event(object), 9);
    assert_eq!(
        event,
        json!({
            "@context": "https://aaep.example/context", "type": "aaep:agent.tool.invoked",
            "event_id": key, "session_id": key, "reply_token": key, "tool_call_id": key,
            "timestamp": "2026-05-24T14:22:11.342Z", "tool": "password=x",
            "args_summary": "login [redacted]", "summary_normal": "password=[redacted]",
            "summary_normal_yo": "password=[redacted]", "question": "Use [redacted]?",
            "progress": { "percent": 5, "description": "token=[redacted]" },
            "choices": [{ "value": "password=a", "label": "password=[redacted]" }],
            "result_uri": "https://ada:redacted@files.example/a?token=redacted",
            "extensions": { "acme": { "access_token": "[redacted]", "note": ["x [redacted]"], "client_id": key } },
        })
    );
    let before = event.clone();
    assert_eq!(redactor().redact_event(event.as_object_mut().expect("an object")), 0);
    assert_eq!(event, before);
}

#[test]
fn a_streamed_chunk_keeps_its_number_of_characters() {
    let key = format!("ghp_{}", noise(36));
    for (chunk, expected) in [
        (format!("é {key}."), format!("é [redacted]{}.", " ".repeat(30))),
        ("password=abc, ok".to_owned(), "password=***, ok".to_owned()),
    ] {
        let mut event = json!({ "chunk": chunk });
        redactor().redact_event(event.as_object_mut().expect("an object"));
        assert_eq!(event["chunk"], expected);
        assert_eq!(expected.chars().count(), chunk.chars().count());
        assert_eq!(redactor().redact_event(event.as_object_mut().expect("an object")), 0);
    }
}

#[test]
fn a_configured_pattern_leaves_the_rest_of_a_chunk_alone() {
    let patterns = vec![r"pin (?P<secret>\S+)".to_owned()];
    let config = RedactConfig { patterns, ..RedactConfig::default() };
    let redactor = Redactor::new(&config).expect("a pattern");
    let mut event = json!({ "chunk": "The pin 1234 opens it." });
    redactor.redact_event(event.as_object_mut().expect("an object"));
    assert_eq!(event["chunk"], "The pin **** opens it.");
}

#[test]
fn what_lies_too_deep_is_replaced_as_a_whole() {
    let mut value = json!("password=hunter2");
    for _ in 0..500 {
        value = json!({ "a": [value] });
    }
    let mut event = json!({ "extensions": value });
    assert_eq!(redactor().redact_event(event.as_object_mut().expect("an object")), 1);
    assert!(!event.to_string().contains("hunter2"));
}

fn snippets() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        "\\PC{0,12}",
        "[a-zA-Z0-9_=:/@. \"'*\\[\\]-]{0,16}",
        Just("password=".to_owned()),
        Just("token: ".to_owned()),
        Just(REDACTED.to_owned()),
        Just("Authorization: Bearer ".to_owned()),
        Just("-----BEGIN PRIVATE KEY-----".to_owned()),
        Just("https://u:p@".to_owned()),
        Just(format!("sk-{}", noise(20))),
        Just("eyJhbGciOiJI.eyJzdWIi.".to_owned()),
        Just("4111 1111 1111 1111".to_owned()),
        Just("SSN 123456789 ".to_owned()),
        Just("DE89370400440532013000".to_owned()),
        "[0-9 -]{0,20}",
    ];
    proptest::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn redacting_twice_changes_nothing_more(text in snippets()) {
        let redactor = redactor();
        let once = redactor.redact_text(&text).into_owned();
        prop_assert_eq!(redactor.redact_text(&once), once.as_str());
        let streamed = redactor.redact(&text, ReplacementFit::SameLength, SecretSearch::All).into_owned();
        prop_assert_eq!(streamed.chars().count(), text.chars().count());
        prop_assert_eq!(redactor.redact(&streamed, ReplacementFit::SameLength, SecretSearch::All), streamed.as_str());
    }

    #[test]
    fn a_key_is_found_wherever_it_stands(before in "\\PC{0,20}", after in "\\PC{0,20}") {
        let key = format!("ghp_{}", noise(36));
        let text = format!("{before} {key} {after}");
        prop_assert!(!redactor().redact_text(&text).contains(&key));
    }

    #[test]
    fn sentences_of_small_words_stay(words in proptest::collection::vec("[a-zäé]{1,12}", 0..30)) {
        let text = words.join(" ");
        prop_assert_eq!(redactor().redact_text(&text), text.as_str());
    }
}
