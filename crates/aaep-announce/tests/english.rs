//! Our own words stand in one place, so that they can be said in other languages too.

use std::fs;
use std::path::{Path, PathBuf};

/// What decides what is told. Everything that a person is told here comes from `src/english`.
const WITHOUT_WORDS: &[&str] = &["src/announcer.rs", "src/announcer", "src/transcript.rs"];

fn sources(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_file() {
        found.push(path.to_owned());
        return;
    }
    for entry in fs::read_dir(path).expect("a folder") {
        sources(&entry.expect("an entry").path(), found);
    }
}

/// The texts in quotes of a source file that are not for tests or for whoever reads the code.
fn literals(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let is_code = |line: &&str| {
        let line = line.trim_start();
        !line.starts_with("//") && !line.contains("reason = ")
    };
    let code = code.lines().filter(is_code).collect::<Vec<_>>().join("\n");
    let code = code.replace("\\\"", "").replace("'\"'", "");
    code.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Whether a text is words for people: a name for machines has no blank, no capital and no full stop.
fn is_words(literal: &str) -> bool {
    let mut text = String::new();
    let mut depth = 0_usize;
    for c in literal.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 => text.push(c),
            _ => {}
        }
    }
    let has_word = text.split(|c: char| !c.is_alphabetic()).any(|it| it.chars().count() > 1);
    let is_like_words = text.contains(char::is_whitespace)
        || text.starts_with(char::is_uppercase)
        || text.ends_with(['.', '?', '!', ':']);
    has_word && is_like_words
}

#[test]
fn only_the_place_for_our_words_has_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for path in WITHOUT_WORDS {
        sources(&root.join(path), &mut found);
    }
    assert!(found.len() > 15, "{found:?}");
    for path in found {
        let source = fs::read_to_string(&path).expect("a source file");
        let words: Vec<String> = literals(&source).into_iter().filter(|it| is_words(it)).collect();
        assert!(words.is_empty(), "{}: {words:?} belongs into src/english", path.display());
    }
}

#[test]
fn words_are_told_from_names() {
    for words in ["Finished.", "No agent is at work.", "{who} asks:", "Two", "a hub"] {
        assert!(is_words(words), "{words}");
    }
    for name in
        ["grep", "summary_normal", "{} {words}", "", ": ", "{name}{end}", "project", "agentvoice"]
    {
        assert!(!is_words(name), "{name}");
    }
    assert_eq!(literals("let x = \"a b\"; // \"c\"\n// \"d\"\n#[cfg(test)]\n\"e\""), ["a b", "c"]);
}
