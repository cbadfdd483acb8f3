//! JSON texts that are read, those that are refused, and what is found in them.

use super::*;

fn code(text: &[u8]) -> Code {
    JsonDocument::parse(text).expect_err("refused").code
}

#[test]
fn a_text_becomes_the_same_values() {
    let text = r#" {"a":[1,-2,3.5,true,null,"x\n"],"b":{}} "#;
    let document = JsonDocument::parse(text.as_bytes()).expect("JSON");
    let again: serde_json::Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(document.root().to_json(), again);
    assert_eq!(document.deepest(), 2);
}

#[test]
fn an_object_in_memory_becomes_the_same_values_without_a_copy() {
    let text = r#"{"a":[1,-2,3.5,true,null,"x\n"],"b":{"c":"d"},"n":9007199254740993}"#;
    let object: Object = serde_json::from_str(text).expect("JSON");
    let document = JsonDocument::of(&object, text.len()).expect("not too deep");
    assert_eq!(document.root().to_map(), object);
    assert_eq!(document.deepest(), 2);
    assert_eq!(document.big_numbers().collect::<Vec<_>>(), ["/n"]);
    let is_borrowed = |node: &JsonNode<'_>| match node {
        JsonNode::String(text) | JsonNode::Key(text) => matches!(text, Cow::Borrowed(_)),
        _ => true,
    };
    assert!(document.nodes.iter().all(is_borrowed));
}

#[test]
fn an_object_in_memory_that_nests_too_deep_or_is_too_large_is_refused() {
    let mut value = serde_json::Value::Null;
    for _ in 0..MAX_DEPTH {
        value = [value].into_iter().collect();
    }
    let object = Object::from_iter([("a".to_owned(), value)]);
    assert_eq!(JsonDocument::of(&object, 100).expect_err("refused").code, Code::TooDeep);
    let object = Object::new();
    let too_large = JsonDocument::of(&object, MAX_BYTES + 1);
    assert_eq!(too_large.expect_err("refused").code, Code::TooLarge);
}

#[test]
fn broken_texts_are_refused_by_name() {
    assert_eq!(code(b""), Code::NotJson);
    assert_eq!(code(b"{\"a\":1} x"), Code::NotJson);
    assert_eq!(code(b"{\"a\":1,}"), Code::NotJson);
    assert_eq!(code(b"{// json5\n}"), Code::NotJson);
    assert_eq!(code(b"\xef\xbb\xbf{}"), Code::NotJson);
    assert_eq!(code(b"{\"a\":\"\xff\"}"), Code::NotUtf8);
    assert_eq!(code(br#"{"a":"\ud800"}"#), Code::LoneSurrogate);
    assert_eq!(code(br#"{"a":"\udc00"}"#), Code::LoneSurrogate);
    assert_eq!(code(br#"{"a":"\ud800\u0041"}"#), Code::LoneSurrogate);
    assert_eq!(code(br#"{"a":"\ud800 and more"}"#), Code::LoneSurrogate);
    assert_eq!(code(&vec![b' '; MAX_BYTES + 1]), Code::TooLarge);
    assert_eq!(code("[".repeat(100_000).as_bytes()), Code::TooDeep);
    assert_eq!(code(r#"{"a":"#.repeat(100_000).as_bytes()), Code::TooDeep);
    assert_eq!(code(b"[1e999]"), Code::NotJson);
}

#[test]
fn a_pair_of_surrogates_is_one_character() {
    let document = JsonDocument::parse(br#"["\ud83d\ude00"]"#).expect("JSON");
    assert_eq!(document.root().to_json()[0], "\u{1f600}");
}

#[test]
fn duplicate_keys_and_big_numbers_are_found_where_they_are() {
    let text = br#"{"a":[{"x/y":1,"x/y":2}],"n":9007199254740993,"m":-9007199254740992,"f":1e300}"#;
    let document = JsonDocument::parse(text).expect("JSON");
    assert_eq!(document.duplicate_keys().collect::<Vec<_>>(), ["/a/0/x~1y"]);
    assert_eq!(document.big_numbers().collect::<Vec<_>>(), ["/n", "/f"]);
}

#[test]
fn a_number_keeps_its_last_digit_when_it_is_written_and_read_again() {
    // Needs serde_json's feature `float_roundtrip`; found by fuzzing.
    let text = format!("[3{}]", "1".repeat(127));
    let once = JsonDocument::parse(text.as_bytes()).expect("JSON").root().to_json();
    let written = once.to_string();
    let twice = JsonDocument::parse(written.as_bytes()).expect("JSON").root().to_json();
    assert_eq!(once, twice);
}

#[test]
fn ten_thousand_keys_are_read_without_their_square() {
    let fields: Vec<String> = (0..10_000).map(|n| format!("\"k{n}\":0")).collect();
    let text = format!("{{{},\"k7\":1}}", fields.join(","));
    let document = JsonDocument::parse(text.as_bytes()).expect("JSON");
    assert_eq!(document.duplicate_keys().collect::<Vec<_>>(), ["/k7"]);
}

#[test]
fn equality_is_that_of_json_schema() {
    let document =
        JsonDocument::parse(br#"[1,1.0,{"a":1,"b":2},{"b":2.0,"a":1},[1],[1,2]]"#).expect("JSON");
    let items: Vec<_> = document.root().items().collect();
    assert!(items[0].same_as(items[1]));
    assert!(items[2].same_as(items[3]));
    assert!(!items[4].same_as(items[5]));
}
