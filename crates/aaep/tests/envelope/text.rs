//! The text that a message comes in: how large and deep it may be (§3.7), and how it is encoded (§3.8).
//!
//! It never looks at what a field means.

use aaep::{Code, Mode};
use serde_json::{Value as Json, json};

use crate::documents::{LUMEN, full};
use crate::support::{assert_accepted, assert_refused, set, words};
use crate::{errors_in, event, with_extensions};

// Limits.

#[test]
fn sixty_four_kibibytes_are_enough_and_one_more_byte_is_too_much() {
    let text = event().to_string();
    let padded = |length: usize| format!("{text}{}", " ".repeat(length - text.len()));
    let reading = aaep::read(padded(64 * 1024).as_bytes(), Mode::Strict);
    assert!(reading.is_valid(), "{:?}", reading.violations);
    assert_eq!(errors_in(padded(64 * 1024 + 1).as_bytes()), [(Code::TooLarge, String::new())]);
}

#[test]
fn thirty_two_fields_are_enough_and_prefixes_count() {
    let with = |own: usize, prefixes: usize| {
        let names: Vec<_> = (0..prefixes).map(|n| format!("p{n}")).collect();
        let uris: Vec<_> = (0..=prefixes).map(|n| format!("https://lumen.example/{n}")).collect();
        let (uris, names): (Vec<&str>, Vec<&str>) =
            (uris.iter().map(String::as_str).collect(), names.iter().map(String::as_str).collect());
        let mut event = with_extensions(&uris, &names);
        event["type"] = "lumen:lamp.lit".into();
        let fields = event.as_object_mut().expect("an object");
        fields.extend((0..own).map(|n| (format!("own{n}"), json!(n))));
        let count = fields.len();
        (event, count + prefixes)
    };
    for prefixes in [0, 5] {
        let (_, base) = with(0, prefixes);
        let (most, count) = with(32 - base, prefixes);
        assert_eq!(count, 32);
        assert_accepted(&most, "32 fields");
        let (more, _) = with(33 - base, prefixes);
        assert_refused(&more, &[(Code::TooManyFields, "")], "33 fields");
    }
    let (more, _) = with(20, 12);
    assert_refused(&more, &[(Code::TooManyFields, "")], "prefixes alone");
}

#[test]
fn eight_levels_are_enough_and_a_ninth_is_too_deep() {
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({ "in": inner }));
    let with = |levels: usize| {
        // `extensions` is one level, the prefix the next.
        set("/extensions/lumen", nested(levels - 1)).on(&with_extensions(&[LUMEN], &["lumen"]))
    };
    assert_accepted(&with(8), "8 levels");
    assert_refused(&with(9), &[(Code::TooDeep, "")], "9 levels");
    let arrays = with(2)
        .to_string()
        .replace("\"in\":1", &format!("\"in\":{}7{}", "[".repeat(7), "]".repeat(7)));
    assert_eq!(errors_in(arrays.as_bytes()), [(Code::TooDeep, String::new())]);
    let bottomless = "[".repeat(200_000);
    assert_eq!(errors_in(bottomless.as_bytes()), [(Code::TooDeep, String::new())]);
}

#[test]
fn no_string_anywhere_is_longer_than_16384_characters() {
    let places = ["/correlation_id", "/producer/model", "/extensions/lumen/lamp"];
    let base = full("state.changed");
    for pointer in places {
        assert_accepted(&set(pointer, words(16_384)).on(&base), pointer);
        let document = set(pointer, words(16_385)).on(&base);
        assert_refused(&document, &[(Code::TooLong, pointer)], pointer);
    }
    let document = set("/extensions/lumen/rows/1", "x".repeat(16_385)).on(&base);
    assert_refused(&document, &[(Code::TooLong, "/extensions/lumen/rows/1")], "in a list");
}

#[test]
fn at_most_thirty_two_languages_are_available() {
    let at = "/localization_hints/available_languages";
    let with = |count: usize| {
        let tags: Json = (0..count).map(|n| json!(format!("cy-{n:03}"))).collect();
        set(at, tags).on(&event())
    };
    assert_accepted(&with(32), "32");
    assert_refused(&with(33), &[(Code::TooManyItems, at)], "33");
}

// Encoding.

#[test]
fn a_key_that_stands_twice_is_refused_at_its_place() {
    let text = event().to_string();
    let twice = format!("{},\"type\":\"aaep:agent.session.started\"}}", &text[..text.len() - 1]);
    assert_eq!(errors_in(twice.as_bytes()), [(Code::DuplicateKey, "/type".to_owned())]);
    let inner = text.replace("{\"agent_id\"", "{\"agent_id\":\"x\",\"agent_id\"");
    let at = "/producer/agent_id".to_owned();
    assert_eq!(errors_in(inner.as_bytes()), [(Code::DuplicateKey, at)]);
    let escaped = text.replace("{\"agent_id\"", "{\"agent\\u005fid\":\"x\",\"agent_id\"");
    let at = "/producer/agent_id".to_owned();
    assert_eq!(errors_in(escaped.as_bytes()), [(Code::DuplicateKey, at)]);
}

#[test]
fn half_a_surrogate_pair_is_refused_and_a_whole_one_read() {
    let with = |escape: &str| event().to_string().replace("Sorting", escape);
    for half in ["\\ud83d", "\\uDCDA", "\\ud83d\\u0041", "\\udcda\\ud83d"] {
        assert_eq!(
            errors_in(with(half).as_bytes()),
            [(Code::LoneSurrogate, String::new())],
            "{half}"
        );
    }
    let reading = aaep::read(with("\\ud83d\\uDCDA").as_bytes(), Mode::Strict);
    let text = reading.message.expect("a valid event").to_json();
    assert!(text.contains('\u{1f4da}'), "{text}");
}

#[test]
fn what_is_not_utf_8_or_not_json_is_refused() {
    let text = event().to_string();
    let latin1: Vec<u8> = text
        .replace("Sorting", "S\u{1}")
        .bytes()
        .map(|byte| if byte == 1 { 0xe9 } else { byte })
        .collect();
    assert_eq!(errors_in(&latin1), [(Code::NotUtf8, String::new())]);
    let overlong = [text.as_bytes(), b"\xc0\xaf"].concat();
    assert_eq!(errors_in(&overlong), [(Code::NotUtf8, String::new())]);
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(errors_in(&utf16), [(Code::NotJson, String::new())]);
    for wrong in [
        String::new(),
        text.replace(",\"type\"", ",,\"type\""),
        format!("{text} {text}"),
        format!("// a comment\n{text}"),
        text.replace('}', ",}"),
        text.replace('"', "'"),
        format!("\u{feff}{text}"),
        text.replace("Sorting", "So\nrting"),
    ] {
        assert_eq!(errors_in(wrong.as_bytes()), [(Code::NotJson, String::new())], "{wrong}");
    }
}

#[test]
fn whole_numbers_beyond_two_to_the_53_are_refused_anywhere() {
    let base = full("state.changed");
    let with = |number: &str| {
        let text = set("/extensions/lumen/lamp", "NUMBER").on(&base).to_string();
        text.replace("\"NUMBER\"", number)
    };
    for right in ["9007199254740992", "-9007199254740992", "0.1", "1e3", "-0"] {
        let reading = aaep::read(with(right).as_bytes(), Mode::Strict);
        assert!(reading.is_valid(), "{right}: {:?}", reading.violations);
    }
    for wrong in
        ["9007199254740993", "-9007199254740993", "1e300", "123456789012345678901234567890"]
    {
        let at = "/extensions/lumen/lamp".to_owned();
        assert_eq!(errors_in(with(wrong).as_bytes()), [(Code::NumberTooBig, at)], "{wrong}");
    }
}
