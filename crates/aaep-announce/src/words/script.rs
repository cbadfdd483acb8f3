//! The language of a text, as far as its script shows.

use aaep::LanguageTag;

use super::exact::is_name;

/// A script, its default language, and other languages that are written in it.
struct WritingScript {
    ranges: &'static [(u32, u32)],
    language: &'static str,
    also: &'static [&'static str],
    /// Letters that only one of these languages has.
    hints: &'static [(&'static str, &'static str)],
    /// Whether one letter is a whole word.
    is_dense: bool,
}

const fn alphabet(
    ranges: &'static [(u32, u32)],
    language: &'static str,
    also: &'static [&'static str],
) -> WritingScript {
    WritingScript { ranges, language, also, hints: &[], is_dense: false }
}

/// All scripts except Latin, which too many languages share.
const SCRIPTS: &[WritingScript] = &[
    alphabet(&[(0x370, 0x3ff), (0x1f00, 0x1fff)], "el", &[]),
    WritingScript {
        hints: &[("іїєґІЇЄҐ", "uk")],
        ..alphabet(
            &[(0x400, 0x52f), (0x1c80, 0x1c8f), (0x2de0, 0x2dff), (0xa640, 0xa69f)],
            "ru",
            &[
                "ba", "be", "bg", "cv", "kk", "ky", "mk", "mn", "os", "sah", "sr", "tg", "tt",
                "uk", "uz",
            ],
        )
    },
    alphabet(&[(0x530, 0x58f)], "hy", &[]),
    alphabet(&[(0x590, 0x5ff), (0xfb1d, 0xfb4f)], "he", &["iw", "yi"]),
    WritingScript {
        hints: &[("ٹڈڑے", "ur"), ("پچژگ", "fa")],
        ..alphabet(
            &[(0x600, 0x6ff), (0x750, 0x77f), (0x8a0, 0x8ff), (0xfb50, 0xfdff), (0xfe70, 0xfeff)],
            "ar",
            &["arz", "ckb", "fa", "ku", "ps", "sd", "ug", "ur"],
        )
    },
    alphabet(&[(0x900, 0x97f)], "hi", &["kok", "mr", "ne", "sa"]),
    alphabet(&[(0x980, 0x9ff)], "bn", &["as"]),
    alphabet(&[(0xa00, 0xa7f)], "pa", &[]),
    alphabet(&[(0xa80, 0xaff)], "gu", &[]),
    alphabet(&[(0xb00, 0xb7f)], "or", &[]),
    alphabet(&[(0xb80, 0xbff)], "ta", &[]),
    alphabet(&[(0xc00, 0xc7f)], "te", &[]),
    alphabet(&[(0xc80, 0xcff)], "kn", &[]),
    alphabet(&[(0xd00, 0xd7f)], "ml", &[]),
    alphabet(&[(0xd80, 0xdff)], "si", &[]),
    alphabet(&[(0xe00, 0xe7f)], "th", &[]),
    alphabet(&[(0xe80, 0xeff)], "lo", &[]),
    alphabet(&[(0xf00, 0xfff)], "bo", &["dz"]),
    alphabet(&[(0x1000, 0x109f)], "my", &["shn"]),
    alphabet(&[(0x10a0, 0x10ff), (0x1c90, 0x1cbf)], "ka", &[]),
    alphabet(&[(0x1200, 0x139f)], "am", &["ti"]),
    alphabet(&[(0x1780, 0x17ff)], "km", &[]),
    alphabet(&[(0x1800, 0x18af)], "mn", &[]),
    WritingScript {
        is_dense: true,
        ..alphabet(&[(0x1100, 0x11ff), (0x3130, 0x318f), (0xac00, 0xd7af)], "ko", &[])
    },
    KANA,
    WritingScript {
        is_dense: true,
        ..alphabet(
            &[
                (0x3005, 0x3007),
                (0x3400, 0x4dbf),
                (0x4e00, 0x9fff),
                (0xf900, 0xfaff),
                (0x20000, 0x2fa1f),
            ],
            "zh",
            &["cmn", "ja", "ko", "wuu", "yue"],
        )
    },
];

const KANA: WritingScript = WritingScript {
    is_dense: true,
    ..alphabet(&[(0x3041, 0x30ff), (0x31f0, 0x31ff), (0xff66, 0xff9d)], "ja", &[])
};

impl WritingScript {
    fn of(c: char) -> Option<&'static WritingScript> {
        if c.is_ascii() || !c.is_alphabetic() {
            return None;
        }
        SCRIPTS.iter().find(|it| it.has(c))
    }

    fn has(&self, c: char) -> bool {
        self.ranges.iter().any(|(first, last)| (*first..=*last).contains(&u32::from(c)))
    }

    fn is_of(&self, tag: &LanguageTag) -> bool {
        let is = |it: &&str| tag.primary().eq_ignore_ascii_case(it);
        is(&self.language) || self.also.iter().any(is)
    }
}

/// A piece of a text that is in one language, as far as its script shows.
struct ScriptRun<'t> {
    text: &'t str,
    script: Option<&'static WritingScript>,
}

/// Splits a text into pieces, each with its language: the given one, unless the piece is in a script of other
/// languages.
pub(super) fn in_languages<'t>(
    text: &'t str,
    language: Option<&LanguageTag>,
) -> Vec<(&'t str, Option<LanguageTag>)> {
    let is_foreign = |script: &&WritingScript| !language.is_some_and(|it| script.is_of(it));
    // Chinese characters in a text with kana are Japanese.
    let is_japanese = text.chars().any(|c| KANA.has(c));
    let of_text = |run: &ScriptRun<'_>| match run.script.filter(is_foreign) {
        Some(script) => {
            let hint =
                script.hints.iter().find(|(letters, _)| run.text.contains(|c| letters.contains(c)));
            let name = match hint {
                _ if is_japanese && script.is_dense && script.language == "zh" => "ja",
                Some((_, name)) => name,
                None => script.language,
            };
            LanguageTag::parse(name).ok()
        }
        None => language.cloned(),
    };
    let mut pieces: Vec<(&str, Option<LanguageTag>)> = Vec::new();
    let mut begin = 0;
    for run in runs(text) {
        let tag = of_text(&run);
        let end = begin + run.text.len();
        match pieces.last_mut() {
            Some((piece, last)) if *last == tag => {
                let from = begin - piece.len();
                *piece = text.get(from..end).unwrap_or_default();
            }
            _ => pieces.push((run.text, tag)),
        }
        begin = end;
    }
    pieces
}

/// The most characters before the first letter of a name in brackets, and the longest rest.
const MAX_COUNT: usize = 12;
const MAX_HIDDEN_NAME: usize = 40;

/// Where the bracketed name begins that this letter is a part of, so that it is not split.
fn name_start(text: &str, letter: usize) -> Option<usize> {
    let (before, after) = text.split_at_checked(letter)?;
    // Only a bracket and a count can be before the first letter of a name.
    let head = before.char_indices().rev().take(MAX_COUNT).find(|(_, c)| *c == '[');
    let start = head.map(|(at, _)| at)?;
    let length = after.char_indices().take(MAX_HIDDEN_NAME).find(|(_, c)| *c == ']');
    let end = letter + length.map(|(at, _)| at)?;
    is_name(text.get(start + 1..end)?).then_some(start)
}

/// The runs of scripts. Digits and marks belong to the letters before them, or to the first letters. A single letter
/// of an alphabet, as in a formula, does not change the language.
fn runs(text: &str) -> Vec<ScriptRun<'_>> {
    let mut runs: Vec<(usize, Option<&'static WritingScript>, usize)> = Vec::new();
    for (at, c) in text.char_indices().filter(|(_, c)| c.is_alphabetic()) {
        let script = WritingScript::of(c);
        let is_same = |it: Option<&'static WritingScript>| match (it, script) {
            (Some(one), Some(other)) => one.language == other.language,
            (one, other) => one.is_none() == other.is_none(),
        };
        match runs.last_mut() {
            Some((_, last, letters)) if is_same(*last) => *letters += 1,
            _ => runs.push((name_start(text, at).unwrap_or(at), script, 1)),
        }
    }
    let mut cut: Vec<ScriptRun<'_>> = Vec::new();
    let ends = runs.iter().skip(1).map(|(at, ..)| *at).chain([text.len()]);
    let mut begin = 0;
    for ((_, script, letters), end) in runs.iter().zip(ends) {
        let script = script.filter(|it| *letters > 1 || it.is_dense);
        cut.push(ScriptRun { text: text.get(begin..end).unwrap_or_default(), script });
        begin = end;
    }
    if cut.is_empty() {
        cut.push(ScriptRun { text, script: None });
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_brackets_is_not_cut_in_two() {
        for text in ["世[right-to-left override]", "世 [12 spaces] 世", "世[U+00AD]"] {
            for (piece, _) in in_languages(text, None) {
                assert_eq!(piece.matches('[').count(), piece.matches(']').count(), "{piece:?}");
            }
        }
    }

    fn languages(text: &str, tag: Option<&str>) -> Vec<(String, String)> {
        let tag = tag.and_then(|it| LanguageTag::parse(it).ok());
        let pieces = in_languages(text, tag.as_ref());
        assert_eq!(pieces.iter().map(|(it, _)| *it).collect::<String>(), text);
        pieces
            .into_iter()
            .map(|(piece, tag)| {
                (piece.trim().to_owned(), tag.map_or_else(String::new, |it| it.as_str().to_owned()))
            })
            .collect()
    }

    #[test]
    fn the_script_decides_where_nothing_else_does() {
        for (text, language) in [
            ("Готово, 5 файлов", "ru"),
            ("Усі файли готові", "uk"),
            ("Έτοιμο", "el"),
            ("تم الحذف", "ar"),
            ("همه چیز پاک شد", "fa"),
            ("הכול נמחק", "he"),
            ("सब हो गया", "hi"),
            ("เสร็จแล้ว", "th"),
            ("完成了", "zh"),
            ("完了しました", "ja"),
            ("완료", "ko"),
            ("Done", ""),
        ] {
            assert_eq!(languages(text, None), [(text.to_owned(), language.to_owned())], "{text}");
        }
    }

    #[test]
    fn each_piece_has_its_own_language() {
        let parts = |text, tag| languages(text, tag);
        let pair = |text: &str, language: &str| (text.to_owned(), language.to_owned());
        assert_eq!(
            parts("He said привет to me", Some("en")),
            [pair("He said", "en"), pair("привет", "ru"), pair("to me", "en")]
        );
        assert_eq!(parts("Готово: npm test", Some("ru")), [pair("Готово: npm test", "ru")]);
        assert_eq!(parts("Сада", Some("sr")), [pair("Сада", "sr")]);
        assert_eq!(parts("漢字", Some("ja")), [pair("漢字", "ja")]);
        assert_eq!(parts("the angle α is 5", Some("en")), [pair("the angle α is 5", "en")]);
        assert_eq!(parts("12 %", None), [pair("12 %", "")]);
    }
}
