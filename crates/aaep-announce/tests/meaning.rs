//! Meaning survives cleaning: what is removed is on a closed list of marks, and what tells two things apart is said.

use aaep_announce::words::{PieceEnd, Stream, Style, words};
use proptest::prelude::*;

fn said(text: &str) -> String {
    words(text, Style::PLAIN)
}

#[test]
fn marks_that_mean_something_are_said() {
    for (text, expected) in [
        ("I did ~~not~~ delete it", "I did (struck out: not, end struck out) delete it"),
        ("I did ~not~ delete it", "I did (struck out: not, end struck out) delete it"),
        ("I did <del>not</del> delete it", "I did (struck out: not, end struck out) delete it"),
        ("❌ billing\n✅ users", "cross mark: billing. check mark: users"),
        ("- ❌ billing", "cross mark: billing"),
        (
            "| Job | State |\n|---|---|\n| a | ❌ 3 |",
            "Table, 2 columns. Job a, State cross mark: 3.",
        ),
        ("⚠️ Disk full", "warning: Disk full"),
        ("A ➡ B", "A right arrow B"),
        ("CPU ▲ 5", "CPU up triangle 5"),
        ("☐ open", "empty box: open"),
        ("❶ first", "1: first"),
        ("10<sup>6</sup>", "10 superscript 6"),
        ("~5 minutes, ~10 files in ~/a~b", "~5 minutes, ~10 files in ~/a~b"),
    ] {
        assert_eq!(said(text), expected, "{text}");
    }
}

#[test]
fn nothing_is_dropped_that_is_not_markup() {
    for text in [
        "Tokens left: 0",
        "Done (0 tokens left)",
        "yes/no/maybe/later",
        "rm -rf foo* bar*",
        "2*3*4 is not 2**3",
        "a === b, not a = b",
        "*args and **kwargs",
        "__init__.py",
        "C:\\work\\.git",
        "Press K, not [K](one two)",
        "<a title=\"not\">",
        "listening on example.org:443",
        "\u{28}no\u{29}",
    ] {
        assert_eq!(said(text), text);
    }
    assert_eq!(said("# Why C#"), "Why C#");
}

#[test]
fn one_line_of_code_is_said_whole() {
    assert_eq!(said("```sh\ncargo test --workspace\n```"), "shell code: cargo test --workspace.");
    assert_eq!(said("```\nrm -rf /\n```"), "code: rm -rf / End of code.");
    assert_eq!(said("```\na\nb\n```"), "code, 2 lines.");
}

/// Things that are easily taken for each other.
const PAIRS: &[(&str, &str)] = &[
    ("/srv/a/etc/app.toml", "/srv/b/etc/app.toml"),
    ("/home/ada/work/x.rs", "/home/bob/work/x.rs"),
    ("~/notes.txt", "home/notes.txt"),
    ("C:\\a\\work\\_tmp", "C:\\a\\work_tmp"),
    ("src/a.rs:12:5", "src/a.rs:12:6"),
    ("https://example.org/a", "https://example.org/b"),
    ("http://example.org/", "https://example.org/"),
    ("[here](https://example.org/a)", "[here](https://example.org/b)"),
    ("[here](https://a.example)", "[here](https://b.example)"),
    ("[here](a.md \"old\")", "[here](a.md \"new\")"),
    ("[here][1]", "[here][2]"),
    ("<a href=\"https://a.example\">here</a>", "<a href=\"https://b.example\">here</a>"),
    ("![](a.png)", "![](b.png)"),
    ("0190a3b4-0000-7000-8000-00000000000a", "0190a3b4-0000-7000-8000-00000000000b"),
    ("__init__.py", "init.py"),
    ("⏸ build", "⏹ build"),
    ("🔴 api", "🟢 api"),
    ("🇩🇪 12", "🇫🇷 12"),
];

#[test]
fn what_tells_two_things_apart_is_said() {
    for (one, other) in PAIRS {
        assert_ne!(said(one), said(other), "{one}");
    }
}

/// What cleaning removes, and nothing else: marks of Markdown, marks that are replaced by a word or a pause, blanks.
const REMOVED: &str = "#*_~`>[]()\"-=+|\\:.!";
/// Pictures that only draw or decorate.
const PICTURES: &str = "🎉🚀─█•\u{fe0f}";
/// What is replaced by words, and by which.
const REPLACED: &[(&str, &str)] = &[
    ("https://", ""),
    ("❌", "cross mark"),
    ("✅", "check mark"),
    ("⚠", "warning"),
    ("🔴", "red circle"),
];

/// Whether everything of a text is said in its order, but for what is on the list.
fn is_whole(text: &str, said: &str) -> Result<(), String> {
    let mut expected = text.to_owned();
    for (mark, name) in REPLACED {
        expected = expected.replace(mark, name);
    }
    let mut said_characters = said.chars();
    for (at, c) in expected.char_indices() {
        let is_removed = c.is_whitespace() || REMOVED.contains(c) || PICTURES.contains(c);
        if !is_removed && !said_characters.any(|it| it == c) {
            return Err(format!("{:?} is missing from {said:?}", &expected[at..]));
        }
    }
    Ok(())
}

fn text() -> impl Strategy<Value = String> {
    let marks = vec![
        "#", "##", ">", "-", "*", "+", "1.", "2)", "- [ ]", "---", "*", "**", "_", "`", "•", "🎉",
        "🚀", "─", "█",
    ];
    let content = vec![
        "not",
        "no",
        "never",
        "0",
        "-5",
        "3.14",
        "1234567",
        "yes/no/maybe/later",
        "❌",
        "✅ done",
        "⚠️",
        "🔴",
        "**not**",
        "*0*",
        "_no_",
        "`rm *`",
        "2*3",
        "foo*",
        "~~not~~",
        "**a b**",
        "[here](https://a.example/1)",
        "[x][1]",
        "https://a.example/b?c=1",
        "/srv/a/b/c.toml",
        "src/a.rs:12:5",
        "tokens left: 0",
        "(3 tokens)",
        "C#",
        "a[0]",
        "x = y",
        "& co",
        "100%",
        "$5",
        "不",
        "нет",
    ];
    let part = prop_oneof![
        2 => prop::sample::select(marks).prop_map(str::to_owned),
        4 => prop::sample::select(content).prop_map(str::to_owned),
        2 => "[a-zA-Z]{1,8}",
        1 => "[0-9]{1,6}[,;?]?",
    ];
    let between = prop::sample::select(vec![" ", " ", " ", "\n", "\n\n", ". "]);
    prop::collection::vec((part, between), 1..30).prop_map(|parts| {
        parts.into_iter().flat_map(|(part, between)| [part, between.to_owned()]).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2048) })]

    #[test]
    fn whatever_cleaning_removes_is_on_a_closed_list(text in text()) {
        for style in [Style::PLAIN, Style::PLAIN.exactly()] {
            if let Err(missing) = is_whole(&text, &words(&text, style)) {
                prop_assert!(false, "{text:?}: {missing}");
            }
        }
    }

    #[test]
    fn cutting_a_text_anywhere_loses_nothing(text in text(), at in 0..300_usize) {
        let at = text.char_indices().map(|(at, _)| at).nth(at).unwrap_or(text.len());
        let mut stream = Stream::new(Style::PLAIN);
        let mut all = stream.push(&text[..at], PieceEnd::Anywhere);
        all.push(' ');
        all.push_str(&stream.push(&text[at..], PieceEnd::Completion));
        if let Err(missing) = is_whole(&text, &all) {
            prop_assert!(false, "{text:?} cut at {at}: {missing}");
        }
    }
}
