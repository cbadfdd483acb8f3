//! The pieces that a subscriber gets, language by language. `properties` checks what holds for
//! every text.

use aaep::LanguageTag;
use aaep::event::action::CoalesceBoundary;

use super::*;

mod properties;

use CoalesceBoundary::{Completion, Paragraph, Sentence, Word};

/// The pieces of a text that arrives in these chunks.
fn cut_chunks<'a>(
    list: &[CoalesceBoundary],
    language: &str,
    chunks: impl IntoIterator<Item = &'a str>,
) -> Vec<(String, CoalesceBoundary)> {
    let tag = LanguageTag::parse(language).ok();
    let mut cutter = Cutter::new(Boundaries::from_list(list), tag.as_ref());
    let mut pieces = Vec::new();
    let mut emit = |piece: Piece<'_>| {
        assert_eq!(piece.chars, piece.text.chars().count());
        pieces.push((piece.text.to_owned(), piece.boundary));
    };
    for chunk in chunks {
        cutter.push(chunk, &mut emit);
    }
    cutter.finish(&mut emit);
    assert_eq!(cutter.held_chars(), 0);
    pieces
}

/// The texts of the pieces, which must be the same in one chunk and character by character.
fn cut(list: &[CoalesceBoundary], language: &str, text: &str) -> Vec<String> {
    let whole = cut_chunks(list, language, [text]);
    let single = cut_chunks(list, language, text.split_inclusive(|_| true));
    assert_eq!(whole, single, "{text:?}");
    whole.into_iter().map(|(text, _)| text).collect()
}

/// Asserts that the text is cut at every `|`.
#[track_caller]
fn sentences(language: &str, marked: &str) {
    check(&[Sentence, Completion], language, marked);
}

#[track_caller]
fn words(language: &str, marked: &str) {
    check(&[Word, Completion], language, marked);
}

#[track_caller]
fn check(list: &[CoalesceBoundary], language: &str, marked: &str) {
    let expected: Vec<&str> = marked.split('|').collect();
    assert_eq!(cut(list, language, &expected.concat()), expected, "{language}");
}

#[test]
fn english_sentences() {
    for marked in [
        "Dr. Ade paid $3.50.",
        "Dr. Ade paid $3.50. |He left.",
        "Mr. and Mrs. Obi met Prof. Eze on St. John's Road. |Then they ate.",
        "See No. 5 and No. 10 Downing Street. |No. |I will not.",
        "Use tools, e.g. Rust, i.e. Something fast. |Good.",
        "Apples, pears, etc. are fruit. |We sell shoes, etc. |Come in.",
        "The U.S. Senate met at 5 p.m. Monday. |It closed at 6 p.m. |The end.",
        "He lives in the U.S. |He likes it.",
        "J. K. Rowling wrote it. |I read it.",
        "Take vitamin C. |The rest is fine.",
        "Version v1.2.3 is out. |Get main.rs from https://example.com/a.b?c=d. |Done!",
        "See https://example.com/?q=Rust!Now and x.Y. |Yes.",
        "Wait... what? |Well... |Then go. |Hmm… |No.",
        "Really?! |Yes! |\"Stop.\" |She stopped.",
        "\"Really?\" she asked. |(It was so.) |Fine.",
        "**Done.** |Next *step.* |_Last._",
        "It is so.[1][2] |Another says no.¹ |End.",
        "Great!🎉 |Next. |🎉 Party.",
        "On Dec. 5 Apple Inc. Partners met. |All good.",
        "Costs rose by 3. |4 Items fell.",
        "Are you sure? |yes.",
    ] {
        sentences("en", marked);
    }
}

#[test]
fn without_a_language_english_customs_hold() {
    sentences("", "Dr. Ade came. |He left.");
}

#[test]
fn german_sentences() {
    for marked in [
        "Das ist z. B. Äpfel, d. h. Obst. |Gut.",
        "Am 3. Mai kam Dr. Maier bzw. Frau Schmidt. |Danach ging sie.",
        "Siehe Kapitel 3. |Das reicht.",
        "Er sagt z.B. Nein. |Im Jahr 2020. |Mai war warm.",
        "Nr. 5 lebt. |„Halt!“ rief er. |„Gut.“ |Er ging.",
    ] {
        sentences("de", marked);
    }
}

#[test]
fn romance_and_dutch_sentences() {
    sentences("fr", "M. Dupont et Mme. Roy sont là. |Bonjour ! |Ça va ? |Oui.");
    sentences("fr", "« Bonjour. » |Puis il part. |« Vraiment ? » dit-il. |L'été vient.");
    sentences("es", "¿Qué tal? |¡Bien! |El Sr. Pérez vive en EE.UU. |Él trabaja allí.");
    sentences("it", "Il Sig. Rossi e la Dott.ssa Bianchi, ad es. Maria. |Va bene.");
    sentences("pt", "O Sr. Silva chegou. |A Dra. Lima não.");
    sentences("nl", "Dhr. Jansen, d.w.z. Piet. |Hij komt bijv. Maandag.");
}

#[test]
fn yoruba_sentences_and_words_keep_their_tone_marks() {
    sentences("yo", "Engr. Adé wá. |Ẹ kú àárọ̀, Dr. Ọlá. |Ó dára!");
    words("yo", "E\u{323} |ku\u{301} |a\u{300}a\u{301}ro\u{323}\u{300}.");
    sentences("en-NG", "Alh. Musa spoke. |He left.");
    sentences("ha", "Mal. Aminu ya zo. |Ya tafi.");
}

#[test]
fn arabic_hindi_and_others_use_their_own_marks() {
    sentences("ar", "كيف حالك؟ |أنا بخير. |وصل د. أحمد.");
    sentences("ur", "یہ کتاب ہے۔ |وہ قلم ہے۔");
    sentences("hi", "यह किताब है। |वह १.५ किलो है। |क्या बात है?");
    sentences("hy", "Սա գիրք է։ |Լավ։");
    sentences("am", "ሰላም ነው። |ደህና።");
    sentences("my", "မင်္ဂလာပါ။ |ကောင်းပါတယ်။");
    sentences("el", "Τι κάνεις; |Καλά. |Ναι.");
    sentences("he", "שלום. \u{200F}|מה שלומך? |טוב.");
}

#[test]
fn japanese_and_chinese_sentences_need_no_spaces() {
    sentences("ja", "今日は雨です。|「行こう。」|彼は言った！|本当？|はい");
    sentences("zh", "你好。|今天天气很好！|圆周率是3.14吗？|是的");
    sentences("zh", "你好!|我们走吧.|好");
}

#[test]
fn a_long_thai_phrase_ends_at_a_space() {
    let phrase = "ภาษาไทยเป็นภาษาที่ใช้ในประเทศไทย".repeat(3);
    sentences("th", &format!("{phrase} |{phrase}"));
    sentences("th", "สวัสดี ครับ");
}

#[test]
fn words_end_with_their_white_space() {
    words("en", "Hello, |world!  |It |is |- ok |(yes).");
    words("fr", "Bonjour ! |Ça |va ? |10\u{A0}km");
    words("en", "one\r\n|two\n\n|  three");
    words("en", "\n\n Hello |there");
    words("ko", "안녕하세요 |세계");
    words("en", "👨‍👩‍👧‍👦 |🇩🇪🇫🇷 |👍🏽 |ok");
}

#[test]
fn words_without_spaces_come_from_the_dictionary() {
    words("th", "ภาษา|ไทย|เป็น|ภาษา|ที่|ใช้|ใน|ประเทศไทย");
    words("zh", "我|喜欢|北京|的|天气，|你|呢？");
    words("ja", "2024年|に|「東京|Tower」|へ");
    words("lo", "ພາສາ|ລາວ");
    words("en", "the |东京 |tower");
}

#[test]
fn a_word_reports_the_sentence_or_paragraph_that_it_ends() {
    let text = "Dr. Ade came. He left.\n\nBye.";
    let pieces = cut_chunks(&[Word, Sentence, Paragraph, Completion], "en", [text]);
    let expected = [
        ("Dr. ", Word),
        ("Ade ", Word),
        ("came. ", Sentence),
        ("He ", Word),
        ("left.\n\n", Paragraph),
        ("Bye.", Completion),
    ];
    assert_eq!(pieces, expected.map(|(text, boundary)| (text.to_owned(), boundary)));
}

#[test]
fn paragraphs_end_with_blank_lines() {
    let paragraphs = |marked| check(&[Paragraph, Completion], "en", marked);
    paragraphs("One. Two.\nThree.\n\n|Four.\r\n\r\n|Five.\n \t \n\n|  Six.\u{2029}|Seven.\n");
    paragraphs("\n\nOne.");
    let pieces = cut_chunks(&[Sentence, Paragraph], "en", ["One. Two.\n\nThree."]);
    let boundaries: Vec<_> = pieces.into_iter().map(|(_, boundary)| boundary).collect();
    assert_eq!(boundaries, [Sentence, Paragraph, Paragraph]);
}

#[test]
fn completion_alone_waits_for_the_end() {
    check(&[Completion], "en", "One. Two.\n\nThree.");
    assert_eq!(cut_chunks(&[Completion], "en", ["", ""]), []);
}

#[test]
fn list_items_and_headings_are_heard_one_by_one() {
    sentences("en", "# Plan\n|1. First thing\n|2. **Second** Thing. |More.\n|- a\n|- b\n\n|  * c");
    sentences("en", "a. Apples\n|B. Pears");
}

#[test]
fn wrapped_prose_is_not_cut_at_its_line_ends() {
    let long = "This sentence is longer than most lines and was";
    sentences("en", &format!("{long}\nwrapped by its author. |Right, as written by Dr.\nSmith."));
    sentences("en", &format!("{long} short,\nLagos too. |But {long}\n|Then not.\n|apples\n|pears"));
    sentences("en", &format!("{long} done.\n|- item"));
}

#[test]
fn code_is_cut_between_its_lines_only() {
    let code =
        "Run this. |Now:\n|```rust\n|let a = b. C; // Why? Because.\n|\n|}\n|```\n|Done. |Ok.";
    let code = code.replace("|\n|}", "\n|}");
    sentences("en", &code);
    words("en", "So |run:\n|~~~ sh\n|ls -l . Foo\n|~~~\n\n|all |done");
    sentences("en", "```let a``` is code. |Yes.");
}

#[test]
fn what_is_certain_does_not_wait() {
    let emitted = |chunks: &[&str]| {
        let mut pieces = Vec::new();
        let mut cutter = Cutter::new(Boundaries::DEFAULT, None);
        for chunk in chunks {
            cutter.push(chunk, &mut |piece| pieces.push(piece.text.to_owned()));
        }
        (pieces, cutter.held_chars())
    };
    assert_eq!(emitted(&["Hello there", ".", " "]), (vec![], 13));
    assert_eq!(emitted(&["Hello there", ".", " ", "N"]), (vec!["Hello there. ".to_owned()], 1));
    assert_eq!(emitted(&["今日。", "は"]), (vec!["今日。".to_owned()], 1));
    assert_eq!(emitted(&["One\n", "\nT"]), (vec!["One\n\n".to_owned()], 1));
}

#[test]
fn nothing_waits_beyond_the_look_ahead() {
    let text = format!("He left. {}", "1 ".repeat(40));
    let mut pieces = 0;
    Cutter::new(Boundaries::DEFAULT, None).push(&text, &mut |_| pieces += 1);
    assert_eq!(pieces, 1);
}

#[test]
fn none_passes_each_chunk_as_it_came() {
    let none = |chunks: &[&str]| -> Vec<String> {
        let pieces = cut_chunks(&[CoalesceBoundary::None], "en", chunks.iter().copied());
        pieces.into_iter().map(|(text, _)| text).collect()
    };
    let chunks = ["T", "he", " ", "cat", "", "\u{301}", "👍", "🏽"];
    assert_eq!(none(&chunks), ["T", "he", " ", "cat", "\u{301}", "👍", "🏽"]);
}

#[test]
fn the_finest_boundary_rules_and_unknown_ones_do_not() {
    let set = Boundaries::from_list(&[Completion, Paragraph, Word]);
    assert_eq!(set.finest(), Word);
    assert!(set.contains(&Paragraph) && !set.contains(&Sentence));
    assert_eq!(Boundaries::from_list(&[]), Boundaries::DEFAULT);
    assert_eq!(Boundaries::default().finest(), Sentence);
}

#[test]
fn a_cutter_can_be_used_again_after_the_end() {
    let mut cutter = Cutter::new(Boundaries::DEFAULT, None);
    for _ in 0..2 {
        let mut pieces = Vec::new();
        cutter.push("```\na. B", &mut |piece| pieces.push(piece.text.to_owned()));
        cutter.finish(&mut |piece| pieces.push(piece.text.to_owned()));
        assert_eq!(pieces, ["```\n", "a. B"]);
    }
}

#[test]
fn text_that_is_too_long_is_cut_at_the_best_boundary_there_is() {
    let first = |list: &[CoalesceBoundary], text: &str| {
        let pieces = cut_chunks(list, "en", [text]);
        let concat: String = pieces.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(concat, text);
        (pieces[0].0.chars().count(), pieces[0].1.clone())
    };
    let sentences = "This is so. ".repeat(1_000);
    assert_eq!(first(&[Paragraph], &sentences), (7_992, Sentence));
    let paragraphs = format!("{}\n\n{sentences}", "This is so. ".repeat(400));
    assert_eq!(first(&[Completion], &paragraphs), (4_802, Paragraph));
    assert_eq!(first(&[Sentence], &"word ".repeat(2_000)), (7_995, Word));
    assert_eq!(first(&[Word], &"x".repeat(9_000)), (7_999, CoalesceBoundary::None));
    assert_eq!(first(&[Sentence], &"🇩🇪".repeat(5_000)).0, 7_998);
    let thai = "ภาษาไทยเป็นภาษาที่ใช้ในประเทศไทย".repeat(300);
    assert_eq!(first(&[Sentence], &thai).1, Word);
    let marks = format!("a{}", "\u{301}".repeat(9_000));
    assert_eq!(first(&[Word], &marks), (8_000, CoalesceBoundary::None));
}

#[test]
fn words_are_counted_for_pacing() {
    let count =
        |language: &str, text| count_words(text, LanguageTag::parse(language).ok().as_ref());
    assert_eq!(count("en", "Hello, world - it's ok."), 4);
    assert_eq!(count("en", " \n"), 0);
    assert_eq!(count("zh", "我喜欢北京的天气。"), 6);
    assert_eq!(count("ja", "東京に住む"), 3);
    assert_eq!(count("th", "ภาษาไทยเป็นภาษา"), 4);
    assert_eq!(count("en", "the 东京 tower"), 3);
}

#[test]
fn quotes_after_an_ideographic_stop_close_or_open() {
    sentences("zh", "他说：\"你好。\"|然后走了。|“再见。”|（完。）|好");
}

#[test]
fn marks_and_joiners_between_scripts_hold_their_clusters() {
    for marked in ["你好\u{301}", "រ\u{94D}न", "！\u{200D}👩", " \u{200D}👩", "a |រ\u{94D}न"]
    {
        words("en", marked);
    }
}
