//! Properties that hold for every text, in whatever chunks it arrives.

use icu_segmenter::options::{SentenceBreakInvariantOptions, WordBreakInvariantOptions};
use icu_segmenter::{GraphemeClusterSegmenter, SentenceSegmenter, WordSegmenter};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;

const FRAGMENTS: &[&str] = &[
    " ",
    " ",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\n \n",
    "\u{2029}",
    "\u{85}",
    "\t",
    "\u{A0}",
    ".",
    ". ",
    "! ",
    "?",
    "...",
    "… ",
    ",",
    ":",
    ";",
    "-",
    " - ",
    "—",
    "\"",
    "'",
    "(",
    ")",
    "[1]",
    "[",
    "]",
    "*",
    "**",
    "_",
    "`",
    "```",
    "```\n",
    "\n```\n",
    "~~~",
    "# ",
    "| ",
    "1. ",
    "a",
    "B",
    "The ",
    "he ",
    "Dr. ",
    "U.S. ",
    "z. B. ",
    "p.m. ",
    "No. 5",
    "etc. ",
    "3.14",
    "main.rs",
    "https://a.b/c?d=e",
    "This line of prose is rather long and goes on",
    "Ade\u{301}",
    "é",
    "e",
    "\u{301}",
    "\u{323}\u{301}",
    "\u{200D}",
    "\u{FE0F}",
    "\u{200F}",
    "\u{600}",
    "👩",
    "👩‍🚀",
    "🇩",
    "🇩🇪",
    "👍🏽",
    "‼",
    "你好",
    "。",
    "」",
    "「",
    "！",
    "、",
    "東京",
    "です",
    "カタカナ",
    "ภาษาไทย",
    "เป็น",
    "ที่",
    "ລາວ",
    "ខ្មែរ",
    "\u{17D2}",
    "မြန်မာ",
    "\u{1039}",
    "။",
    "한국어",
    "مرحبا",
    "؟",
    "د. ",
    "नमस्ते",
    "क्ष",
    "।",
    "\u{94D}",
    "« ",
    " »",
    "\0",
    "\u{10FFFF}",
];

fn texts() -> impl Strategy<Value = String> {
    let fragments = vec(select(FRAGMENTS), 0..80).prop_map(|fragments| fragments.concat());
    prop_oneof![4 => fragments, 1 => any::<String>()]
}

/// The fragments of scripts with spaces, without code or emphasis, where markup decides instead.
fn spaced_fragments() -> Vec<&'static str> {
    let is_special = |c: char| class::is_unspaced(c) || matches!(c, '`' | '~' | '_');
    FRAGMENTS.iter().copied().filter(|fragment| !fragment.contains(is_special)).collect()
}

fn lists() -> impl Strategy<Value = Vec<CoalesceBoundary>> {
    vec(select(&CoalesceBoundary::ALL[1..]), 1..4)
}

fn languages() -> impl Strategy<Value = &'static str> {
    select(&["", "en", "de", "fr", "yo", "th", "ja", "zh", "el", "ar", "und"][..])
}

/// The text in chunks that end at these positions.
fn chunks<'a>(text: &'a str, places: &[Index]) -> Vec<&'a str> {
    let mut ends: Vec<usize> = places.iter().map(|place| place.index(text.len() + 1)).collect();
    for end in &mut ends {
        *end = text.floor_char_boundary(*end);
    }
    ends.extend([0, text.len()]);
    ends.sort_unstable();
    ends.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

fn boundaries_of(pieces: &[(String, CoalesceBoundary)]) -> Vec<usize> {
    let lengths = pieces.iter().map(|(text, _)| text.len());
    lengths.scan(0, |end, length| Some(std::mem::replace(end, *end + length))).collect()
}

fn concat(pieces: &[(String, CoalesceBoundary)]) -> String {
    pieces.iter().map(|(text, _)| text.as_str()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn pieces_do_not_depend_on_chunks_and_lose_nothing(
        text in texts(),
        list in lists(),
        language in languages(),
        places in vec(any::<Index>(), 0..40),
    ) {
        let whole = cut_chunks(&list, language, [text.as_str()]);
        prop_assert_eq!(&whole, &cut_chunks(&list, language, text.split_inclusive(|_| true)));
        prop_assert_eq!(&whole, &cut_chunks(&list, language, chunks(&text, &places)));
        prop_assert_eq!(concat(&whole), text.as_str());
        prop_assert!(whole.iter().all(|(text, _)| !text.is_empty()));
        prop_assert!(whole.iter().all(|(_, boundary)| list.contains(boundary)));
    }

    #[test]
    fn no_cluster_is_split(
        text in texts(),
        list in lists(),
        language in languages(),
        places in vec(any::<Index>(), 0..40),
    ) {
        let pieces = cut_chunks(&list, language, chunks(&text, &places));
        prop_assert_eq!(concat(&pieces), text.as_str());
        let clusters: Vec<usize> = GraphemeClusterSegmenter::new().segment_str(&text).collect();
        for boundary in boundaries_of(&pieces) {
            prop_assert!(clusters.contains(&boundary), "{:?} in {:?}", boundary, pieces);
        }
    }

    #[test]
    fn the_last_piece_comes_with_the_end(text in texts(), list in lists()) {
        let mut cutter = Cutter::new(Boundaries::from_list(&list), None);
        cutter.push(&text, &mut |_| {});
        prop_assert_eq!(cutter.held_chars() == 0, text.is_empty());
    }

    #[test]
    fn plain_sentences_end_where_unicode_says(
        parts in vec(
            select(&["Stone ", "grass ", "42 ", "Äpfel ", "слово ", "Слово ", "كلمة ", "okay. ",
                "done! ", "right? ", "so.) ", "किताब। ", "你好。", "said, ", "🎉 ", "end.\" "][..]),
            1..20,
        ),
    ) {
        let text = parts.concat();
        let options = SentenceBreakInvariantOptions::default();
        let unicode: Vec<usize> = SentenceSegmenter::new(options).segment_str(&text).collect();
        let ours = boundaries_of(&cut_chunks(&[Sentence], "und", [text.as_str()]));
        prop_assert_eq!(&ours, &unicode[..unicode.len() - 1], "{}", text);
    }

    #[test]
    fn words_end_at_boundaries_of_unicode(parts in vec(select(spaced_fragments()), 0..80)) {
        let text = parts.concat();
        let options = WordBreakInvariantOptions::default();
        let segmenter = WordSegmenter::new_dictionary(options);
        let unicode: Vec<usize> = segmenter.segment_str(&text).collect();
        for boundary in boundaries_of(&cut_chunks(&[Word], "und", [text.as_str()])) {
            prop_assert!(unicode.contains(&boundary), "{} of {:?}", boundary, text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn memory_and_work_are_bounded(
        part in vec(select(FRAGMENTS), 1..6),
        tail in select(FRAGMENTS),
        list in lists(),
    ) {
        let part = part.concat();
        let text = part.repeat(60_000 / part.len()) + &tail.repeat(30_000 / tail.len());
        let mut cutter = Cutter::new(Boundaries::from_list(&list), None);
        let mut longest = 0;
        class::take_counts();
        for chunk in text.split_inclusive(|_| true) {
            cutter.push(chunk, &mut |piece| longest = longest.max(piece.chars));
            prop_assert!(cutter.held_chars() <= MAX_PIECE_CHARS);
        }
        prop_assert!(cutter.text.capacity() <= 4 * (4 * MAX_PIECE_CHARS + 4_096));
        prop_assert!(cutter.marks.len() <= 64);
        cutter.finish(&mut |piece| longest = longest.max(piece.chars));
        prop_assert!(longest <= MAX_PIECE_CHARS);
        let (runs, bytes) = class::take_counts();
        prop_assert!(runs <= 4 * text.len(), "{} runs", runs);
        prop_assert!(bytes <= 32 * text.len(), "{} bytes", bytes);
    }
}

#[test]
fn plain_text_needs_no_segmenter() {
    let text = "a token without an end, ".repeat(300);
    let mut cutter = Cutter::new(Boundaries::DEFAULT, None);
    class::take_counts();
    for chunk in text.split_inclusive(' ') {
        cutter.push(chunk, &mut |_| {});
    }
    assert_eq!(class::take_counts(), (0, 0));
}

#[test]
fn an_hour_of_prose_costs_few_segmenter_runs() {
    let text = "Dr. Ade paid $3.50 for it. He (the man) left!\n\n".repeat(2_000);
    let mut cutter = Cutter::new(Boundaries::DEFAULT, None);
    class::take_counts();
    for chunk in text.split_inclusive(' ') {
        cutter.push(chunk, &mut |_| {});
    }
    let (runs, bytes) = class::take_counts();
    assert!(runs <= 2_000 && bytes <= text.len() / 4, "{runs} runs, {bytes} bytes");
}
