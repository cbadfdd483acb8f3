//! The seed documents themselves, held against the crate: chapter 5 and four of its schemas.
//!
//! Every example in them is accepted and written back as it came (§4.4, §5.2 to §5.10), and every
//! constraint that the four schemas state is honoured as stated. The documents are never copied into
//! the checkout, so these tests are ignored unless asked for; `./test` asks for them where the documents
//! are, and says so where they are not. `examples.rs` holds the same with examples of our own.

#![expect(clippy::disallowed_methods, reason = "the seeds are files")]

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::{Value as Json, json};

use support::assert_accepted;
use walk::{assert_honoured, list};

#[path = "common/support.rs"]
mod support;
#[path = "common/walk.rs"]
mod walk;

const SCHEMAS: [&str; 4] = ["000", "002", "003", "004"];
const CHAPTER: &str = "001";

/// The text of a seed, found by its number.
fn seed(number: &str) -> String {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/seeds");
    let folder = env::var_os("AAEP_SEEDS").map_or_else(beside, PathBuf::from);
    let files = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}. Set AAEP_SEEDS.", folder.display()));
    let numbered = |path: &Path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(number))
    };
    let path = files
        .map(|file| file.expect("a readable folder").path())
        .find(|path| numbered(path))
        .unwrap_or_else(|| panic!("seed {number} is in the folder"));
    fs::read_to_string(path).expect("a readable seed")
}

fn schemas() -> impl Iterator<Item = Json> {
    SCHEMAS.iter().map(|number| serde_json::from_str(&seed(number)).expect("the seed is JSON"))
}

#[test]
#[ignore = "needs the seed documents beside the checkout, or AAEP_SEEDS"]
fn every_example_of_the_schemas_is_accepted_and_written_back() {
    for schema in schemas() {
        let examples = list(&schema, "examples");
        assert!(examples.len() >= 3, "{} has examples", schema["$id"]);
        for example in examples {
            assert_accepted(example, "an example of a seed schema");
        }
    }
}

#[test]
#[ignore = "needs the seed documents beside the checkout, or AAEP_SEEDS"]
fn every_message_in_chapter_five_is_accepted_and_written_back() {
    let objects = objects_in(&seed(CHAPTER));
    let (messages, fragments): (Vec<_>, Vec<_>) =
        objects.into_iter().partition(|object| object.get("type").is_some());
    assert_eq!((messages.len(), fragments.len()), (5, 1), "what the chapter holds");
    for message in &messages {
        assert_accepted(message, "a message in chapter 5");
    }
    for fragment in &fragments {
        let mut request = json!({
            "type": "subscription.request",
            "aaep_version": "1.0.0",
            "subscriber_id": "braille-desk",
        });
        request["capabilities"] = fragment["capabilities"].clone();
        assert_accepted(&request, "capabilities in chapter 5");
    }
}

/// Every JSON object that starts a line of the text.
fn objects_in(text: &str) -> Vec<Json> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Json>();
        match values.next() {
            Some(Ok(object @ Json::Object(_))) if rest.starts_with('{') => {
                found.push(object);
                at += values.byte_offset();
            }
            _ => {}
        }
        at += text[at..].find('\n').map_or(text.len() - at, |end| end + 1);
    }
    found
}

#[test]
#[ignore = "needs the seed documents beside the checkout, or AAEP_SEEDS"]
fn every_constraint_of_the_schemas_is_honoured_as_stated() {
    for schema in schemas() {
        assert_honoured(&schema, list(&schema, "examples"));
    }
}
