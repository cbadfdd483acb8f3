//! Our own words stand in one place, so that they can be translated.

use std::fs;
use std::path::{Path, PathBuf};

/// Texts that look like words and are not said to anyone: in which file they stand, and what they are.
const NOT_SAID: &[(&str, &[&str], &str)] = &[
    ("device/client.rs", &["{name} orders", "{} line"], "names of threads"),
    ("device/desktop/run.rs", &["{NAME} orders"], "the name of a thread"),
    ("device/speech.rs", &["unix_socket:"], "how an address begins"),
    (
        "device/desktop/ears.rs",
        &["Get", "GetAddress", "GetRegisteredEvents", "IsEnabled", "ScreenReaderEnabled"],
        "names on D-Bus",
    ),
    (
        "device/speech/task.rs",
        &["SET SELF CLIENT_NAME {user}:aaep:main"],
        "a command to the speech server",
    ),
    ("words/line.rs", &["diff --git", "diff --git "], "how a diff begins"),
    (
        "words/diff.rs",
        &[
            "\\\\ No newline",
            "Binary files ",
            "GIT binary patch",
            "deleted file mode ",
            "diff --git ",
            "dissimilarity ",
            "index ",
            "new file mode ",
            "new mode ",
            "old mode ",
            "rename from ",
            "rename to ",
            "similarity index ",
        ],
        "what git writes into a diff",
    ),
    ("words/math.rs", &["Big"], "a command of LaTeX"),
    ("words/shorten.rs", &["www."], "how an address begins"),
    ("words/tag.rs", &["mailto:"], "how an address begins"),
    ("report/tables.rs", &[" lang=\\\"{}\\\"", " dir=\\\"rtl\\\""], "attributes of HTML"),
];

/// What stands before a text that is for people who read the code.
const FOR_DEVELOPERS: &[&str] = &["expect(", "reason = "];

/// The source files that decide what is said, and the words of none.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let is_tests = path.file_stem().is_some_and(|it| it == "tests");
        let is_english = path.file_stem().is_some_and(|it| it == "english");
        if is_tests || is_english {
            continue;
        }
        if path.is_dir() { sources(&path, found) } else { found.push(path) }
    }
}

/// The texts in quotes of a source file that are not for its tests or for people who read the code.
fn literals(source: &str) -> Vec<String> {
    let mut rest = source.split("#[cfg(test)]").next().unwrap_or_default();
    let mut before = String::new();
    let mut found = Vec::new();
    while let Some(c) = rest.chars().next() {
        let quoted = |from: usize| rest.get(from..).unwrap_or_default();
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(hashes) = raw(&before, rest) {
            let (begin, end) = (hashes + 2, format!("\"{}", "#".repeat(hashes)));
            let length = quoted(begin).find(&end).expect("an end of raw text");
            found.push((before.clone(), quoted(begin)[..length].to_owned()));
            begin + length + end.len()
        } else if c == '"' {
            let length = text_length(quoted(1));
            // Bytes are for machines.
            if !before.ends_with('b') {
                found.push((before.clone(), quoted(1)[..length].to_owned()));
            }
            length + 2
        } else if c == '\'' {
            char_length(rest)
        } else {
            c.len_utf8()
        };
        let (head, tail) = rest.split_at(skipped);
        if !head.starts_with("//") {
            before.push_str(head);
        }
        rest = tail;
    }
    let is_said = |(before, _): &(String, String)| {
        !FOR_DEVELOPERS.iter().any(|it| before.trim_end().ends_with(it.trim_end()))
    };
    found.into_iter().filter(is_said).map(|(_, text)| text).collect()
}

/// How many hashes raw text has that begins here.
fn raw(before: &str, rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r').filter(|_| !before.ends_with(char::is_alphanumeric))?;
    let hashes = after.chars().take_while(|c| *c == '#').count();
    after.get(hashes..)?.starts_with('"').then_some(hashes)
}

/// How long a text is up to its closing quote.
fn text_length(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.find(|c| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    end.expect("a closing quote")
}

/// How long a character in quotes is; the quote alone where it begins a lifetime.
fn char_length(rest: &str) -> usize {
    let inner = &rest[1..];
    let first = inner.chars().next().map_or(0, char::len_utf8);
    let from = if inner.starts_with('\\') { 2 } else { first };
    let end = inner.get(from..).and_then(|it| it.find('\'')).map(|it| it + from);
    match end {
        Some(end) if end == first || inner.starts_with('\\') => end + 2,
        _ => 1,
    }
}

/// A text without its variable parts and without the tags of a page, but with their labels.
fn visible(literal: &str) -> String {
    let literal = literal.split("<style>").next().unwrap_or_default();
    let (mut text, mut tag) = (String::new(), String::new());
    let (mut braces, mut is_tag) = (0_usize, false);
    for c in literal.chars() {
        match c {
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            _ if braces > 0 => {}
            '<' => is_tag = true,
            '>' if is_tag => is_tag = false,
            _ if is_tag => tag.push(c),
            _ => text.push(c),
        }
    }
    for label in tag.split("aria-label=\\\"").skip(1) {
        text.extend(label.split('\\').next());
    }
    for escape in ["\\n", "\\\n"] {
        text = text.replace(escape, " ");
    }
    if is_tag { text + &tag } else { text.trim_matches('\n').to_owned() }
}

/// Whether a text is words for people. A name for machines has no blank, no capital and no full stop, or is all in capitals.
fn is_words(literal: &str) -> bool {
    let text = visible(literal);
    let has_word = text.split(|c: char| !c.is_alphabetic()).any(|it| it.chars().count() > 1);
    let is_like_words = text.contains(char::is_whitespace)
        || text.starts_with(char::is_uppercase)
        || text.ends_with(['.', '?', '!', ':']);
    has_word && is_like_words && text.contains(char::is_lowercase)
}

#[test]
fn only_the_place_for_our_words_has_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    sources(&root, &mut found);
    assert!(found.len() > 60, "{found:?}");
    let exceptions =
        || NOT_SAID.iter().flat_map(|(file, texts, _)| texts.iter().map(move |it| (*file, *it)));
    let mut unused: Vec<(&str, &str)> = exceptions().collect();
    for path in found {
        let source = fs::read_to_string(&path).expect("a source file");
        let mut words = literals(&source);
        words.retain(|text| {
            let is_it = |(file, not_said): (&str, &str)| path.ends_with(file) && text == not_said;
            unused.retain(|it| !is_it(*it));
            is_words(text) && !exceptions().any(is_it)
        });
        assert!(words.is_empty(), "{}: {words:?} belongs into src/english", path.display());
        // A word alone looks like a name; where it is marked as ours, it is said.
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        assert!(
            !code.contains("own(\""),
            "{}: a word of ours belongs into src/english",
            path.display()
        );
    }
    assert!(unused.is_empty(), "not there any more: {unused:?}");
}

#[test]
fn words_are_told_from_names() {
    for words in [
        "Finished.",
        "No agent is at work.",
        "{who} asks:",
        "Two",
        "a hub",
        "{language} code",
        "<p>Nothing.</p>",
        "<p>{x}</p><h1>Listening report</h1>",
        "<div aria-label=\\\"Timeline of {name}\\\">",
        "one\\ntwo",
    ] {
        assert!(is_words(words), "{words}");
    }
    for name in [
        "grep",
        "summary_normal",
        "{} {words}",
        "",
        ": ",
        "{name}{end}",
        "project",
        "agentvoice",
        "SET SELF {what} {value}",
        "<p class=\\\"x\\\">{name}</p>\\n",
        "<div class=\\\"wide\\\" aria-label=\\\"{}\\\" tabindex=\\\"0\\\">",
    ] {
        assert!(!is_words(name), "{name}");
    }
}

#[test]
fn texts_in_quotes_are_found() {
    let source = r##"
        //! "no"
        let x: &'static str = "a b"; // "no"
        let y = ('"', '\'', '\u{e000}', "c \" d", b"no", r"e\", r#"f "g" h"#);
        z.expect("no");
        #[expect(lint, reason = "no")]
        #[cfg(test)]
        "no"
    "##;
    assert_eq!(literals(source), ["a b", "c \\\" d", "e\\", "f \"g\" h"]);
}
