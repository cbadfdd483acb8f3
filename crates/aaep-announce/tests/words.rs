//! Text in, words out: a table of what people hear, and what must hold for any text at all.

use aaep_announce::words::{MAX_SAID, PieceEnd, Stream, Style, words};
use proptest::prelude::*;

fn said(text: &str) -> String {
    words(text, Style::PLAIN)
}

/// Text, and what is said of it.
const TABLE: &[(&str, &str)] = &[
    // Prose stays prose.
    ("Hello there.", "Hello there."),
    ("  two\n  lines  ", "two lines"),
    ("one\n\ntwo", "one. two"),
    ("Really?\n\nYes!", "Really? Yes!"),
    ("", ""),
    (" \n\t\r\n ", ""),
    ("Ẹ ku àárọ̀, 世界", "Ẹ ku àárọ̀, 世界"),
    ("نعم، تم الحذف.", "نعم، تم الحذف."),
    // Marks.
    ("# Title", "Title"),
    ("## Title ##\nText", "Title. Text"),
    ("Title\n=====\nText", "Title. Text"),
    ("#hashtag stays", "#hashtag stays"),
    ("**bold** and *soft* and ***both***", "bold and soft and both"),
    ("__two words__ and _soft_", "two words and soft"),
    ("snake_case_name", "snake_case_name"),
    ("2 * 3 = 6", "2 * 3 = 6"),
    ("~~gone~~ here", "(struck out: gone, end struck out) here"),
    ("`cargo test` runs", "cargo test runs"),
    ("``a ` b``", "a b"),
    ("keep \\*stars\\*", "keep *stars*"),
    ("---", ""),
    ("a\n\n***\n\nb", "a. b"),
    ("> said so\n> twice", "Quote: said so twice"),
    ("> # Title", "Title"),
    ("a &lt; b &amp; c", "a < b & c"),
    ("one<br>two <b>three</b>", "one two three"),
    ("Vec<String> and List<b>", "Vec<String> and List<b>"),
    ("if a < b and c > d", "if a < b and c > d"),
    // Lists.
    ("- apples\n- pears", "apples. pears"),
    ("* one\n* two.\n+ three", "one. two. three"),
    ("1. first\n2) second", "1: first. 2: second"),
    ("- [ ] open\n- [x] closed", "to do: open. done: closed"),
    ("Do this:\n- a\n  - b", "Do this: a. b"),
    ("-5 degrees", "-5 degrees"),
    ("1.5 times", "1.5 times"),
    // Links and pictures.
    ("[docs](https://example.org/a/b)", "docs, which leads to example.org/a/b"),
    ("[docs](https://example.org/a_(b)) now", "docs, which leads to example.org/a_(b) now"),
    ("[docs][1]\n\n[1]: https://example.org", "docs, link 1. link 1: example.org"),
    ("![a cat](cat.png)", "picture: a cat, cat.png"),
    ("![](cat.png)", "picture cat.png"),
    ("See https://example.org/very/long?x=1#y.", "See example.org/very/long?x=1#y."),
    ("<https://www.example.org/x>", "www.example.org/x"),
    ("(http://example.org)", "(http example.org)"),
    ("https://bank.example@evil.example/x", "evil.example/x, with the name bank.example"),
    (
        "[https://bank.example/in](https://evil.example)",
        "bank.example/in, which leads to evil.example",
    ),
    ("[bank.example](https://evil.example)", "bank.example, which leads to evil.example"),
    ("[bank.example](https://bank.example)", "bank.example"),
    ("[README.md](README.md)", "README.md"),
    ("a[0] and b[1][2]", "a[0] and b[1][2]"),
    ("[not a link] (x)", "[not a link] (x)"),
    ("mail ada@example.org", "mail ada@example.org"),
    // Code.
    ("```rust\nfn main() {}\n```", "Rust code: fn main() {}."),
    ("Look:\n```\na\n\nb\n```\nDone", "Look: code, 3 lines. Done"),
    ("~~~py\nx\n~~~", "Python code: x."),
    ("````\n```\n````", "code: `` End of code."),
    ("```made_up!lang\nx\n```", "code: x."),
    ("```\nnever closed", "code: never closed."),
    ("```x``` is inline", "x is inline"),
    ("> ```sh\n> ls\n> ```\n> done", "shell code: ls. Quote: done"),
    // Tables.
    (
        "| Name | Age |\n|---|---|\n| Ada | 36 |\n| Bo | 7 |",
        "Table, 2 columns. Name Ada, Age 36. Name Bo, Age 7.",
    ),
    ("a | b\n--- | ---\n1 | 2\nafter", "Table, 2 columns. a 1, b 2. after"),
    ("| Ok |\n|----|\n| ✅ |\n| ❌ |", "Table, 1 column. Ok yes. Ok no."),
    ("| a \\| b | c |\n|---|---|\n| 1 | |", "Table, 2 columns. a | b 1."),
    ("cat x | grep y", "cat x | grep y"),
    ("| lonely |", "| lonely |"),
    // Diffs.
    (
        "diff --git a/src/main.rs b/src/main.rs\nindex 1..2 100644\n--- a/src/main.rs\n+++ b/src/main.rs\n@@ -10,3 +10,3 @@ fn x\n a\n-let x = 1;\n+let x = 2;\n c",
        "Change in src/main.rs, 1 line added, 1 removed, at line 10. Removed: let x = 1;. Added: let x = 2;.",
    ),
    (
        "--- a/x.txt\n+++ b/x.txt\n@@ -1 +1,6 @@\n+1\n+2\n+3\n+4\n+5\n same\nAfter it.",
        "Change in x.txt, 5 lines added, at line 1. After it.",
    ),
    (
        "diff --git a/n.rs b/n.rs\nnew file mode 100644\n--- /dev/null\n+++ b/n.rs\n@@ -0,0 +1,1 @@\n+hello",
        "New file n.rs, 1 line added. Added: hello.",
    ),
    (
        "diff --git a/o.rs b/o.rs\ndeleted file mode 100644\n--- a/o.rs\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-bye",
        "Deleted file o.rs, 1 line removed. Removed: bye.",
    ),
    (
        "diff --git a/a.rs b/b.rs\nsimilarity index 100%\nrename from a.rs\nrename to b.rs\ndiff --git a/p.png b/p.png\nBinary files a/p.png and b/p.png differ",
        "a.rs renamed to b.rs. Change in p.png, binary.",
    ),
    (
        "```diff\n-old\n+new\n same\n```",
        "Change, 1 line added, 1 removed. Removed: old. Added: new.",
    ),
    ("-- \nsignature", "signature"),
    // Paths.
    ("/home/ada/work/src/main.rs", "/home/ada/work/src/main.rs"),
    ("in /home/ada/notes.txt.", "in /home/ada/notes.txt."),
    ("~/notes.txt and ~", "~/notes.txt and ~"),
    ("/etc/hosts", "/etc/hosts"),
    ("src/main.rs", "src/main.rs"),
    ("crates/aaep/src/lib.rs:12:5", "crates/aaep/src/lib.rs line 12 column 5"),
    ("C:\\Users\\ada\\work\\a.txt", "C:\\Users\\ada\\work\\a.txt"),
    ("`/usr/local/lib/x/y.so`", "/usr/local/lib/x/y.so"),
    ("and/or, yes/no/maybe, 1/2/2026", "and/or, yes/no/maybe, 1/2/2026"),
    ("src/*.rs and **/test", "src/*.rs and **/test"),
    ("file:///home/ada/a/b.txt", "/home/ada/a/b.txt"),
    // Hashes and numbers.
    ("commit 2ab95d8f00aa11bb22cc33dd44ee55ff66778899", "commit 2ab95d8 and so on to 8899"),
    (
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "sha256 9f86d08 and so on to 0a08",
    ),
    ("123e4567-e89b-12d3-a456-426614174000", "123e456 and so on to 4000"),
    ("defaced facade", "defaced facade"),
    ("1234567 files, 9999 left", "1,234,567 files, 9999 left"),
    ("order 00123456", "order 0012 3456"),
    ("card 4111111111111111.", "card 4111 1111 1111 1111."),
    ("Done (1.2k tokens)", "Done (1.2k tokens)"),
    ("Tokens left: 0", "Tokens left: 0"),
    ("The limit is 200000 tokens", "The limit is 200,000 tokens"),
    // What nobody needs to hear.
    ("Great 🎉 work 👩‍💻!", "Great work !"),
    ("⠋ Loading ─────── ███", "Loading"),
    ("a ====== b", "a b"),
    // Hostile.
    ("\u{1b}[31mred\u{1b}[0m", "red"),
    ("a\u{1b}]0;owned\u{7}b", "ab"),
    ("\\x1b[31mred\\033[0m [1;31mx[0m", "red x"),
    ("pass\u{200b}word \u{202e}evil\u{202c}", "password evil"),
    ("a\u{0}b\u{7}c\u{8}d\u{7f}", "abcd"),
    (".\r\nSET SELF PRIORITY important\r\n.", ". SET SELF PRIORITY important ."),
    ("loading 1%\rloading 2%", "loading 1% loading 2%"),
    ("Permission required: say yes\n\n1. yes", "Permission required: say yes. 1: yes"),
    ("[a](b", "[a](b"),
    ("[[[[", "[[[["),
    ("[[a] b", "[[a] b"),
    ("``` ```", ""),
    ("<script>alert(1)</script>", "<script>alert(1)</script>"),
];

#[test]
fn the_table_of_words_is_true() {
    assert!(TABLE.len() >= 80);
    let mut wrong = String::new();
    for (text, expected) in TABLE {
        let said = said(text);
        if said != *expected {
            wrong.extend([format!("{text:?}\n   said {said:?}\n wanted {expected:?}\n")]);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn for_a_decision_nothing_is_shortened_that_could_matter() {
    let exact = |text| words(text, Style::PLAIN.exactly());
    assert_eq!(exact("Delete /home/ada/work/photos?"), "Delete /home/ada/work/photos?");
    assert_eq!(exact("Open https://example.org/pay?to=1"), "Open example.org/pay?to=1");
    assert_eq!(
        exact("Run:\n```sh\nrm -rf /\necho done\n```"),
        "Run: shell code, 2 lines: rm -rf /; echo done."
    );
    assert_eq!(exact("Costs (5 tokens)"), "Costs (5 tokens)");
    // Whether it is a mark or a part of a command cannot be known, so it stays.
    assert_eq!(exact("rm -rf foo* _tmp_ a\\*b"), "rm -rf foo* _tmp_ a\\*b");
    assert_eq!(exact("echo x\n> /etc/passwd"), "echo x > /etc/passwd");
    assert_eq!(exact("cat <key> & wait &lt;"), "cat <key> & wait &lt;");
    assert_eq!(exact("printf '\\x1b[31m'"), "printf '\\x1b[31m'");
    assert_eq!(
        exact("Open [the docs](https://evil.example/pay)."),
        "Open the docs, which leads to evil.example/pay."
    );
    let long = format!("/srv/{}", "a".repeat(300));
    assert_eq!(exact(&long), long);
    let rows: Vec<String> = (0..30).map(|at| format!("| file{at} |")).collect();
    let table = exact(&format!("| Name |\n|---|\n{}", rows.join("\n")));
    assert!(table.contains("file29"), "{table}");
}

#[test]
fn emoji_stay_where_they_are_asked_for() {
    let style = Style { keeps_emoji: true, ..Style::PLAIN };
    assert_eq!(words("Great 🎉", style), "Great 🎉");
}

#[test]
fn other_languages_keep_their_digits_together() {
    let german = aaep::LanguageTag::parse("de-AT").expect("a tag");
    let style = Style::PLAIN.in_language(Some(&german));
    assert_eq!(words("1234567 Dateien", style), "1234567 Dateien");
}

#[test]
fn a_long_table_is_counted_and_not_read_to_its_end() {
    let rows: Vec<String> = (0..100).map(|at| format!("| {at} |")).collect();
    let said = said(&format!("| N |\n|---|\n{}", rows.join("\n")));
    assert!(said.ends_with("N 19. 80 more rows."), "{said}");
}

#[test]
fn a_megabyte_without_a_space_is_cut_and_it_is_said() {
    assert_eq!(
        said(&"x".repeat(1 << 20)),
        format!("{}, cut, 1,048,576 characters in all", "x".repeat(40))
    );
    let word = format!("before {} after", "y".repeat(150));
    let (head, tail) = ("y".repeat(40), "y".repeat(12));
    let expected = format!("before {head}, cut, 150 characters in all, the last are {tail} after");
    assert_eq!(said(&word), expected);
}

#[test]
fn what_is_far_too_long_is_left_out_and_it_is_said() {
    let said = said(&"All work and no play. ".repeat(50_000));
    assert!(said.len() < MAX_SAID + 100);
    assert!(said.ends_with("more characters are left out."), "{}", &said[said.len() - 80..]);
}

/// Parts of text that cost the square of their number where someone looks for their other half.
const NASTY: &[&str] = &[
    "`a",
    "``b```c",
    "[a](",
    "](",
    "![",
    "[a](b)",
    "((((",
    "| a ",
    "|\n",
    "|-|\n|-|\n",
    "*",
    "_a",
    "**a ",
    "~",
    "#",
    "# a\n",
    ">",
    "> ",
    "- ",
    "1. a\n",
    "<",
    "<a",
    "<b>",
    "&",
    "&amp",
    "\\",
    "\\x1b[",
    "[1;",
    "\u{1b}",
    "\u{1b}]",
    "\u{1b}[1;",
    "\u{301}",
    "🎉\u{200d}",
    "@@ -1 +1 @@\n",
    "+a\n",
    "--- a\n+++ b\n",
    "diff --git a/b b/c\n",
    "```\n",
    "~~~a\n",
    "/a",
    "/",
    "a.",
    "1",
    "a:1:",
    "(1 token",
    "é",
    "世",
    "。",
    "https://",
    "http://a@",
    "[x]: ",
];

/// Would take hours if anything took time with the square of the length.
#[test]
fn a_megabyte_of_marks_is_read_in_one_go() {
    for part in ["`", "[", "]", "|", " ", "\n", "| a ", "[a](b) "] {
        let said = said(&part.repeat((1 << 20) / part.len()));
        assert!(said.len() < MAX_SAID + 200, "{part:?} became {} bytes", said.len());
    }
}

#[test]
fn much_of_anything_nasty_is_read_in_one_go_and_in_pieces() {
    for part in NASTY {
        let text = part.repeat((1 << 16) / part.len());
        for style in [Style::PLAIN, Style::PLAIN.exactly()] {
            let said = words(&text, style);
            assert!(said.len() < MAX_SAID + 200, "{part:?} became {} bytes", said.len());
        }
        let mut stream = Stream::new(Style::PLAIN);
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let end = rest.char_indices().map(|(at, _)| at).nth(4096).unwrap_or(rest.len());
            stream.push(&rest[..end], PieceEnd::Anywhere);
            rest = &rest[end..];
        }
        stream.push("", PieceEnd::Completion);
    }
}

#[test]
fn a_sentence_that_never_ends_is_told_as_it_comes_and_not_hoarded() {
    let mut stream = Stream::new(Style::PLAIN);
    let mut told = 0;
    for at in 1..=100 {
        told += stream.push(&"on and ".repeat(500), PieceEnd::Anywhere).len();
        assert!(told + 32 * 1024 > at * 3500, "{told} of {}", at * 3500);
    }
}

#[test]
fn a_word_that_is_far_too_long_is_cut_once_however_it_comes() {
    let piece = "x".repeat(1024);
    for (before, end) in
        [("", PieceEnd::Anywhere), ("Before ", PieceEnd::Anywhere), ("Before ", PieceEnd::Words)]
    {
        let mut stream = Stream::new(Style::PLAIN);
        let mut said = vec![stream.push(before, end)];
        said.extend((0..1024).map(|_| stream.push(&piece, end)));
        said.push(stream.push(" after.", PieceEnd::Completion));
        let head = "x".repeat(40);
        let words = said.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        let expected = format!("{before}{head}, cut, 1,048,576 characters in all after.");
        assert!(words == expected, "{words:.300}");
    }
}

/// The words of a text that comes in these pieces.
fn streamed(pieces: &[(&str, PieceEnd)]) -> Vec<String> {
    let mut stream = Stream::new(Style::PLAIN);
    pieces.iter().map(|(text, end)| stream.push(text, *end)).collect()
}

#[test]
fn a_sentence_is_said_when_it_is_whole_and_not_before() {
    let said = streamed(&[
        ("I rem", PieceEnd::Anywhere),
        ("oved it. And th", PieceEnd::Anywhere),
        ("en I left.", PieceEnd::Completion),
    ]);
    assert_eq!(said, ["", "I removed it.", "And then I left."]);
}

#[test]
fn words_are_never_halved_even_for_captions() {
    let said = streamed(&[
        ("I rem", PieceEnd::Words),
        ("oved it", PieceEnd::Words),
        (" and left", PieceEnd::Words),
        ("", PieceEnd::Completion),
    ]);
    assert_eq!(said, ["I", "removed", "it and", "left"]);
}

#[test]
fn code_stays_code_from_piece_to_piece() {
    let said = streamed(&[
        ("Here it is:\n\n```rust\nlet a = 1. ", PieceEnd::Sentence),
        ("println!(\"Hi!\");\n", PieceEnd::Sentence),
        ("let b = 2;\n```\nThat is all. ", PieceEnd::Sentence),
        ("Bye.", PieceEnd::Completion),
    ]);
    assert_eq!(said, ["Here it is:", "", "Rust code, 2 lines. That is all.", "Bye."]);
}

#[test]
fn a_fence_may_be_cut_anywhere() {
    let text = "Look:\n```sh\nls -l\n```\nDone.";
    for (at, _) in text.char_indices() {
        let said =
            streamed(&[(&text[..at], PieceEnd::Anywhere), (&text[at..], PieceEnd::Completion)]);
        let said: Vec<&str> = said.iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
        assert_eq!(said.join(" "), "Look: shell code: ls -l. Done.", "cut at {at}");
    }
}

#[test]
fn a_heading_and_an_item_may_be_cut_within_their_line() {
    let said = streamed(&[
        ("# It works. ", PieceEnd::Sentence),
        ("Really\n- one. ", PieceEnd::Sentence),
        ("Two\nText", PieceEnd::Completion),
    ]);
    assert_eq!(said, ["It works.", "Really. one.", "Two. Text"]);
}

#[test]
fn a_table_may_be_cut_between_and_within_its_lines() {
    let text = "| A | B |\n|---|---|\n| 1 | 2 |\n";
    for at in 0..text.len() {
        let said =
            streamed(&[(&text[..at], PieceEnd::Sentence), (&text[at..], PieceEnd::Completion)]);
        assert_eq!(said.join(" ").trim(), "Table, 2 columns. A 1, B 2.", "cut at {at}");
    }
}

#[test]
fn an_open_code_block_ends_with_its_text() {
    let said = streamed(&[("```\nopen", PieceEnd::Completion), ("Prose.", PieceEnd::Completion)]);
    assert_eq!(said, ["code: open.", "Prose."]);
}

/// Text with much of what means something somewhere.
fn nasty_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        any::<char>().prop_map(String::from),
        "[a-z]{1,8}",
        prop::sample::select(vec![
            "`",
            "```",
            "```rust\n",
            "~~~",
            "\n",
            "\n\n",
            " ",
            "|",
            "|---|\n",
            "# ",
            "- ",
            "1. ",
            "> ",
            "[",
            "](",
            ")",
            "*",
            "**",
            "_",
            "<b>",
            "&lt;",
            "\u{1b}[31m",
            "\u{1b}]0;",
            "\u{7}",
            "\r",
            "\u{202e}",
            "🎉",
            "\\",
            "@@ -1,2 +1,2 @@\n",
            "+x\n",
            "-y\n",
            "diff --git a/b b/b\n",
            "--- a\n",
            "+++ b\n",
            "/home/a/b/c",
            "https://a.b/c",
            ". ",
            "1234567",
            "(3 tokens)",
            "世界。",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
}

fn is_fit(words: &str) -> bool {
    let plain = matches!(aaep::printable(words), std::borrow::Cow::Borrowed(_));
    plain && !words.contains("```") && !words.contains("  ") && words.trim() == words
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn words_are_one_line_of_plain_characters_without_fences(text in nasty_text()) {
        for style in [Style::PLAIN, Style::PLAIN.exactly(), Style { keeps_emoji: true, ..Style::PLAIN }] {
            let said = words(&text, style);
            prop_assert!(is_fit(&said), "{said:?}");
        }
    }

    #[test]
    fn words_are_fit_wherever_the_text_is_cut(text in nasty_text(), cuts in prop::collection::vec((0..200_usize, 0..3_u8), 0..6)) {
        let mut stream = Stream::new(Style::PLAIN);
        let mut rest = text.as_str();
        for (at, end) in cuts {
            let at = rest.char_indices().map(|(at, _)| at).nth(at).unwrap_or(rest.len());
            let (piece, more) = rest.split_at(at);
            let end = [PieceEnd::Anywhere, PieceEnd::Words, PieceEnd::Sentence][usize::from(end)];
            let said = stream.push(piece, end);
            prop_assert!(is_fit(&said), "{said:?}");
            rest = more;
        }
        let said = stream.push(rest, PieceEnd::Completion);
        prop_assert!(is_fit(&said), "{said:?}");
    }

    #[test]
    fn plain_sentences_lose_no_word_however_they_are_cut(text in "([a-z]{1,7}[.,]? ){1,30}", at in 0..200_usize) {
        let at = at.min(text.len());
        let mut stream = Stream::new(Style::PLAIN);
        let mut said = stream.push(&text[..at], PieceEnd::Anywhere);
        said.push(' ');
        said.push_str(&stream.push(&text[at..], PieceEnd::Completion));
        let before: Vec<&str> = text.split_whitespace().collect();
        let after: Vec<&str> = said.split_whitespace().collect();
        prop_assert_eq!(before, after);
    }
}
