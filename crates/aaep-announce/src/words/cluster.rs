//! Grapheme clusters: characters that a reader perceives as one, such as a letter with its marks or an emoji with its
//! modifiers (§11.3.3). They are never cut in two.

/// The characters that belong to the one before them: marks, joiners, skin tones of emoji, and tags. First and last
/// of each range.
#[rustfmt::skip]
const JOINED: &[(char, char)] = &[
    ('\u{300}', '\u{36f}'), ('\u{483}', '\u{489}'), ('\u{591}', '\u{5bd}'), ('\u{5bf}', '\u{5bf}'),
    ('\u{5c1}', '\u{5c2}'), ('\u{5c4}', '\u{5c5}'), ('\u{5c7}', '\u{5c7}'), ('\u{610}', '\u{61a}'),
    ('\u{64b}', '\u{65f}'), ('\u{670}', '\u{670}'), ('\u{6d6}', '\u{6dc}'), ('\u{6df}', '\u{6e4}'),
    ('\u{6e7}', '\u{6e8}'), ('\u{6ea}', '\u{6ed}'), ('\u{711}', '\u{711}'), ('\u{730}', '\u{74a}'),
    ('\u{7a6}', '\u{7b0}'), ('\u{7eb}', '\u{7f3}'), ('\u{7fd}', '\u{7fd}'), ('\u{816}', '\u{819}'),
    ('\u{81b}', '\u{823}'), ('\u{825}', '\u{827}'), ('\u{829}', '\u{82d}'), ('\u{859}', '\u{85b}'),
    ('\u{898}', '\u{89f}'), ('\u{8ca}', '\u{8e1}'), ('\u{8e3}', '\u{903}'), ('\u{93a}', '\u{93c}'),
    ('\u{93e}', '\u{94f}'), ('\u{951}', '\u{957}'), ('\u{962}', '\u{963}'), ('\u{981}', '\u{983}'),
    ('\u{9bc}', '\u{9bc}'), ('\u{9be}', '\u{9cd}'), ('\u{9d7}', '\u{9d7}'), ('\u{9e2}', '\u{9e3}'),
    ('\u{9fe}', '\u{a03}'), ('\u{a3c}', '\u{a51}'), ('\u{a70}', '\u{a71}'), ('\u{a75}', '\u{a75}'),
    ('\u{a81}', '\u{a83}'), ('\u{abc}', '\u{abc}'), ('\u{abe}', '\u{acd}'), ('\u{ae2}', '\u{ae3}'),
    ('\u{afa}', '\u{b03}'), ('\u{b3c}', '\u{b3c}'), ('\u{b3e}', '\u{b57}'), ('\u{b62}', '\u{b63}'),
    ('\u{b82}', '\u{b82}'), ('\u{bbe}', '\u{bcd}'), ('\u{bd7}', '\u{bd7}'), ('\u{c00}', '\u{c04}'),
    ('\u{c3c}', '\u{c3c}'), ('\u{c3e}', '\u{c56}'), ('\u{c62}', '\u{c63}'), ('\u{c81}', '\u{c83}'),
    ('\u{cbc}', '\u{cbc}'), ('\u{cbe}', '\u{cd6}'), ('\u{ce2}', '\u{ce3}'), ('\u{d00}', '\u{d03}'),
    ('\u{d3b}', '\u{d3c}'), ('\u{d3e}', '\u{d4d}'), ('\u{d57}', '\u{d57}'), ('\u{d62}', '\u{d63}'),
    ('\u{d81}', '\u{d83}'), ('\u{dca}', '\u{ddf}'), ('\u{df2}', '\u{df3}'), ('\u{e31}', '\u{e31}'),
    ('\u{e34}', '\u{e3a}'), ('\u{e47}', '\u{e4e}'), ('\u{eb1}', '\u{eb1}'), ('\u{eb4}', '\u{ebc}'),
    ('\u{ec8}', '\u{ecd}'), ('\u{f18}', '\u{f19}'), ('\u{f35}', '\u{f35}'), ('\u{f37}', '\u{f37}'),
    ('\u{f39}', '\u{f39}'), ('\u{f3e}', '\u{f3f}'), ('\u{f71}', '\u{f84}'), ('\u{f86}', '\u{f87}'),
    ('\u{f8d}', '\u{fbc}'), ('\u{fc6}', '\u{fc6}'), ('\u{102b}', '\u{103e}'),
    ('\u{1056}', '\u{1059}'), ('\u{105e}', '\u{1060}'), ('\u{1062}', '\u{1064}'),
    ('\u{1067}', '\u{106d}'), ('\u{1071}', '\u{1074}'), ('\u{1082}', '\u{108d}'),
    ('\u{108f}', '\u{108f}'), ('\u{109a}', '\u{109d}'), ('\u{135d}', '\u{135f}'),
    ('\u{1712}', '\u{1715}'), ('\u{1732}', '\u{1734}'), ('\u{1752}', '\u{1753}'),
    ('\u{1772}', '\u{1773}'), ('\u{17b4}', '\u{17d3}'), ('\u{17dd}', '\u{17dd}'),
    ('\u{180b}', '\u{180d}'), ('\u{180f}', '\u{180f}'), ('\u{1885}', '\u{1886}'),
    ('\u{18a9}', '\u{18a9}'), ('\u{1920}', '\u{193b}'), ('\u{1a17}', '\u{1a1b}'),
    ('\u{1a55}', '\u{1a7f}'), ('\u{1ab0}', '\u{1b04}'), ('\u{1b34}', '\u{1b44}'),
    ('\u{1b6b}', '\u{1b73}'), ('\u{1b80}', '\u{1b82}'), ('\u{1ba1}', '\u{1bad}'),
    ('\u{1be6}', '\u{1bf3}'), ('\u{1c24}', '\u{1c37}'), ('\u{1cd0}', '\u{1cd2}'),
    ('\u{1cd4}', '\u{1ce8}'), ('\u{1ced}', '\u{1ced}'), ('\u{1cf4}', '\u{1cf4}'),
    ('\u{1cf7}', '\u{1cf9}'), ('\u{1dc0}', '\u{1dff}'), ('\u{200c}', '\u{200d}'),
    ('\u{20d0}', '\u{20f0}'), ('\u{2cef}', '\u{2cf1}'), ('\u{2d7f}', '\u{2d7f}'),
    ('\u{2de0}', '\u{2dff}'), ('\u{302a}', '\u{302f}'), ('\u{3099}', '\u{309a}'),
    ('\u{a66f}', '\u{a672}'), ('\u{a674}', '\u{a67d}'), ('\u{a69e}', '\u{a69f}'),
    ('\u{a6f0}', '\u{a6f1}'), ('\u{a802}', '\u{a802}'), ('\u{a806}', '\u{a806}'),
    ('\u{a80b}', '\u{a80b}'), ('\u{a823}', '\u{a827}'), ('\u{a82c}', '\u{a82c}'),
    ('\u{a880}', '\u{a881}'), ('\u{a8b4}', '\u{a8c5}'), ('\u{a8e0}', '\u{a8f1}'),
    ('\u{a8ff}', '\u{a8ff}'), ('\u{a926}', '\u{a92d}'), ('\u{a947}', '\u{a953}'),
    ('\u{a980}', '\u{a983}'), ('\u{a9b3}', '\u{a9c0}'), ('\u{a9e5}', '\u{a9e5}'),
    ('\u{aa29}', '\u{aa36}'), ('\u{aa43}', '\u{aa43}'), ('\u{aa4c}', '\u{aa4d}'),
    ('\u{aa7b}', '\u{aa7d}'), ('\u{aab0}', '\u{aab0}'), ('\u{aab2}', '\u{aab4}'),
    ('\u{aab7}', '\u{aab8}'), ('\u{aabe}', '\u{aabf}'), ('\u{aac1}', '\u{aac1}'),
    ('\u{aaeb}', '\u{aaef}'), ('\u{aaf5}', '\u{aaf6}'), ('\u{abe3}', '\u{abea}'),
    ('\u{abec}', '\u{abed}'), ('\u{fb1e}', '\u{fb1e}'), ('\u{fe00}', '\u{fe0f}'),
    ('\u{fe20}', '\u{fe2f}'), ('\u{101fd}', '\u{101fd}'), ('\u{102e0}', '\u{102e0}'),
    ('\u{10376}', '\u{1037a}'), ('\u{10a01}', '\u{10a0f}'), ('\u{10a38}', '\u{10a3f}'),
    ('\u{10ae5}', '\u{10ae6}'), ('\u{10d24}', '\u{10d27}'), ('\u{10eab}', '\u{10eac}'),
    ('\u{10f46}', '\u{10f50}'), ('\u{10f82}', '\u{10f85}'), ('\u{11000}', '\u{11002}'),
    ('\u{11038}', '\u{11046}'), ('\u{11070}', '\u{11070}'), ('\u{11073}', '\u{11074}'),
    ('\u{1107f}', '\u{11082}'), ('\u{110b0}', '\u{110ba}'), ('\u{110c2}', '\u{110c2}'),
    ('\u{11100}', '\u{11102}'), ('\u{11127}', '\u{11134}'), ('\u{11145}', '\u{11146}'),
    ('\u{11173}', '\u{11173}'), ('\u{11180}', '\u{11182}'), ('\u{111b3}', '\u{111c0}'),
    ('\u{111c9}', '\u{111cc}'), ('\u{111ce}', '\u{111cf}'), ('\u{1122c}', '\u{11237}'),
    ('\u{1123e}', '\u{1123e}'), ('\u{112df}', '\u{112ea}'), ('\u{11300}', '\u{11303}'),
    ('\u{1133b}', '\u{1133c}'), ('\u{1133e}', '\u{1134d}'), ('\u{11357}', '\u{11357}'),
    ('\u{11362}', '\u{11374}'), ('\u{11435}', '\u{11446}'), ('\u{1145e}', '\u{1145e}'),
    ('\u{114b0}', '\u{114c3}'), ('\u{115af}', '\u{115c0}'), ('\u{115dc}', '\u{115dd}'),
    ('\u{11630}', '\u{11640}'), ('\u{116ab}', '\u{116b7}'), ('\u{1171d}', '\u{1172b}'),
    ('\u{1182c}', '\u{1183a}'), ('\u{11930}', '\u{1193e}'), ('\u{11940}', '\u{11940}'),
    ('\u{11942}', '\u{11943}'), ('\u{119d1}', '\u{119e0}'), ('\u{119e4}', '\u{119e4}'),
    ('\u{11a01}', '\u{11a0a}'), ('\u{11a33}', '\u{11a39}'), ('\u{11a3b}', '\u{11a3e}'),
    ('\u{11a47}', '\u{11a47}'), ('\u{11a51}', '\u{11a5b}'), ('\u{11a8a}', '\u{11a99}'),
    ('\u{11c2f}', '\u{11c3f}'), ('\u{11c92}', '\u{11cb6}'), ('\u{11d31}', '\u{11d45}'),
    ('\u{11d47}', '\u{11d47}'), ('\u{11d8a}', '\u{11d97}'), ('\u{11ef3}', '\u{11ef6}'),
    ('\u{16af0}', '\u{16af4}'), ('\u{16b30}', '\u{16b36}'), ('\u{16f4f}', '\u{16f4f}'),
    ('\u{16f51}', '\u{16f92}'), ('\u{16fe4}', '\u{16ff1}'), ('\u{1bc9d}', '\u{1bc9e}'),
    ('\u{1cf00}', '\u{1cf46}'), ('\u{1d165}', '\u{1d169}'), ('\u{1d16d}', '\u{1d172}'),
    ('\u{1d17b}', '\u{1d182}'), ('\u{1d185}', '\u{1d18b}'), ('\u{1d1aa}', '\u{1d1ad}'),
    ('\u{1d242}', '\u{1d244}'), ('\u{1da00}', '\u{1da36}'), ('\u{1da3b}', '\u{1da6c}'),
    ('\u{1da75}', '\u{1da75}'), ('\u{1da84}', '\u{1da84}'), ('\u{1da9b}', '\u{1daaf}'),
    ('\u{1e000}', '\u{1e02a}'), ('\u{1e130}', '\u{1e136}'), ('\u{1e2ae}', '\u{1e2ae}'),
    ('\u{1e2ec}', '\u{1e2ef}'), ('\u{1e8d0}', '\u{1e8d6}'), ('\u{1e944}', '\u{1e94a}'),
    ('\u{1f3fb}', '\u{1f3ff}'), ('\u{e0020}', '\u{e007f}'), ('\u{e0100}', '\u{e01ef}'),
];

/// How far back the beginning of a cluster is searched. No real text has a longer one.
const MAX_CLUSTER: usize = 32;

const JOINER: char = '\u{200d}';

/// Whether a character belongs to the one before it.
pub(crate) fn is_joined(before: char, c: char) -> bool {
    if c.is_ascii() {
        return false;
    }
    let is_jamo = |c: char| ('\u{1100}'..='\u{11ff}').contains(&c);
    let at = JOINED.partition_point(|(_, last)| *last < c);
    JOINED.get(at).is_some_and(|(first, _)| *first <= c)
        || before == JOINER
        || is_jamo(before) && is_jamo(c)
}

/// The last position up to this one, in bytes, that does not cut a cluster in two; this position itself if there is
/// none nearby.
pub(super) fn cluster_start(text: &str, end: usize) -> usize {
    let Some((head, rest)) = text.split_at_checked(end) else { return end };
    let Some(mut after) = rest.chars().next() else { return end };
    let mut at = end;
    for before in head.chars().rev().take(MAX_CLUSTER) {
        if !is_joined(before, after) {
            return at;
        }
        at -= before.len_utf8();
        after = before;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_and_its_marks_are_one() {
        for (text, end, start) in [
            ("ae\u{301}", 2, 1),
            ("ae\u{301}x", 4, 4),
            ("abc", 2, 2),
            ("x\u{1f469}\u{200d}\u{1f4bb}!", 8, 1),
            ("\u{915}\u{94d}\u{937}\u{93f}", 9, 6),
            ("ab", 9, 9),
        ] {
            assert_eq!(cluster_start(text, end), start, "{text:?}");
        }
    }

    #[test]
    fn what_never_ends_is_cut_all_the_same() {
        let endless = "\u{301}".repeat(1000);
        assert_eq!(cluster_start(&endless, 1000), 1000);
    }
}
