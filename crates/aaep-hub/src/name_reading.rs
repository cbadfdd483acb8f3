//! How a name reads to people, so that one lookup finds the names that they could take for it (ruling 36).
//!
//! Two names have the same reading if people hear them alike, or if they look alike on a screen or a braille
//! display: letters of other scripts that look the same (UTS 39), capital and small letters, `0` and `o`, `1`,
//! `l` and `i`, accents, punctuation and blanks. Readings are only compared, never shown.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use sha2::{Digest as _, Sha256};
use unicode_normalization::UnicodeNormalization as _;
use unicode_security::skeleton;

/// The longest name that people are told whole: speech and braille cut it there.
pub(crate) const MAX_TOLD_NAME_BYTES: usize = 60;

/// How many bytes of a name count for how it sounds. It is a little less than what is told, because a cut never
/// divides a character.
const MAX_COMPARED_BYTES: usize = MAX_TOLD_NAME_BYTES - 4;

/// How many names are cached. Beyond that, the cache begins again.
const MAX_CACHED: usize = 8192;

/// The longest name that is cached.
const MAX_CACHED_BYTES: usize = 1024;

/// The words for kinds of principals with which the hub tells agents apart. See [`told_apart`].
pub(crate) const PRINCIPAL_KINDS: [&str; 6] =
    ["token", "certificate", "user", "account", "local program", "your own program"];

/// These words in the form in which names are compared.
static FOLDED_KINDS: LazyLock<Vec<String>> =
    LazyLock::new(|| PRINCIPAL_KINDS.iter().map(|kind| folded(kind)).collect());

/// What two names have in common if people could take one for the other. It has the same size for every name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NameReading([u8; 16]);

impl NameReading {
    /// The reading of a whole name.
    pub(crate) fn of(name: &str) -> Self {
        NameReading::of_folded(&folded(name))
    }

    fn of_folded(folded: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(folded).into();
        let [first @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = digest;
        NameReading(first)
    }
}

/// How the name of an agent reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentReading {
    /// The whole name.
    pub(crate) whole: NameReading,
    /// As much of it as people are told, without the project: they hear "Builder in photos" for the agent
    /// "Builder" of the project "photos".
    pub(crate) told_name: Arc<str>,
    /// The reading of that.
    pub(crate) told: NameReading,
    /// Whether it could be taken for a name to which the hub has added a principal, or is drawn in another order than it
    /// is written.
    pub(crate) is_deceptive: bool,
}

impl AgentReading {
    fn of(name: &str) -> Self {
        let folded_name = folded(name);
        let heard = told_part(heard_part(name), MAX_COMPARED_BYTES);
        let told_name = without_project(&heard);
        let whole = NameReading::of_folded(&folded_name);
        let told = if told_name == name { whole } else { NameReading::of(told_name) };
        let names_a_principal = FOLDED_KINDS
            .iter()
            .any(|kind| folded_name.match_indices(kind.as_str()).any(|(at, _)| at > 0));
        AgentReading {
            whole,
            told_name: told_name.into(),
            told,
            is_deceptive: names_a_principal || name.contains(steers_direction),
        }
    }
}

/// The readings of names that were used lately. Every event has a name, and most have one of a few.
#[derive(Debug, Default)]
pub(crate) struct CachedReadings(HashMap<String, AgentReading>);

impl CachedReadings {
    /// How a name reads.
    pub(crate) fn of(&mut self, name: &str) -> AgentReading {
        if let Some(known) = self.0.get(name) {
            return known.clone();
        }
        let reading = AgentReading::of(name);
        if name.len() <= MAX_CACHED_BYTES {
            if self.0.len() >= MAX_CACHED {
                self.0.clear();
            }
            self.0.insert(name.to_owned(), reading.clone());
        }
        reading
    }
}

/// The words for a principal, as short as people are told them. A number tells it from another principal with the
/// same words.
pub(crate) fn told_principal(words: &str, number: Option<u64>) -> String {
    let number = number.map(|number| format!(", number {number}")).unwrap_or_default();
    let room = MAX_TOLD_NAME_BYTES / 2 - number.len();
    format!("{}{number}", told_part(words, room).trim_end())
}

/// Adds a principal to the name of an agent, so that people tell it from the same name of another principal. The
/// name is cut so that the principal is always told.
pub(crate) fn told_apart(name: &str, principal: &str) -> String {
    let room = MAX_TOLD_NAME_BYTES.saturating_sub(principal.len() + " ()".len());
    format!("{} ({principal})", told_part(name, room).trim_end())
}

/// Whether people could take the end of a project for a principal that the hub has added to the name of an agent:
/// "Builder in shop (token laptop)".
pub(crate) fn is_deceptive_project(project: &str) -> bool {
    let is_seen = |c: char| has_skeleton(c) && !unicode_normalization::char::is_combining_mark(c);
    let ends_word = |c: char| !c.is_alphanumeric() && is_seen(c);
    // The words of a path are not taken for it: "work/user-service".
    let begins_words = |c: char| ends_word(c) && !"-_./".contains(c);
    let names_a_principal = |words: &str| {
        let mut read = String::new();
        words.split(ends_word).any(|word| {
            read += &folded(word);
            FOLDED_KINDS.contains(&read)
        })
    };
    let mut begins = project.match_indices(begins_words).map(|(at, c)| at + c.len());
    begins.any(|at| names_a_principal(&project[at..])) || project.contains(steers_direction)
}

/// The part of a name of which people are told the beginning. The rest is never looked at, so nothing that cannot be
/// seen moves another name to its front.
fn heard_part(name: &str) -> &str {
    &name[..name.floor_char_boundary(4 * MAX_TOLD_NAME_BYTES)]
}

/// Whether a character changes the order in which others are drawn.
fn steers_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The beginning of a name, on one line and without characters that cannot be seen.
fn told_part(name: &str, max_bytes: usize) -> String {
    let mut part = String::new();
    for c in name.chars() {
        let c = if c.is_whitespace() { ' ' } else { c };
        let is_seen = c == ' ' || (!c.is_control() && has_skeleton(c));
        if !is_seen || (c == ' ' && (part.is_empty() || part.ends_with(' '))) {
            continue;
        }
        if part.len() + c.len_utf8() > max_bytes {
            break;
        }
        part.push(c);
    }
    part
}

/// The name before the word "in", which people hear between an agent and its project.
fn without_project(name: &str) -> &str {
    let is_blank = |c: char| !c.is_alphanumeric();
    let mut from = 0;
    for word in name.split(is_blank) {
        if from > 0 && word.eq_ignore_ascii_case("in") {
            let before = name.get(..from).unwrap_or(name);
            return if before.chars().any(char::is_alphanumeric) { before } else { name };
        }
        let separator = name.get(from + word.len()..).and_then(|rest| rest.chars().next());
        from += word.len() + separator.map_or(0, char::len_utf8);
    }
    name
}

/// The name in the form in which names that read alike are equal.
fn folded(name: &str) -> String {
    let name: String = name.nfkc().collect();
    let looks = folded_looks(&name);
    if looks.is_ascii() {
        return or_symbols(looks, &name);
    }
    // It does not look like Latin letters, so case is that of its own script.
    let sounds: String = name.to_uppercase().to_lowercase();
    or_symbols(folded_looks(&sounds), &sounds)
}

/// A name without letters and digits counts as it is.
fn or_symbols(folded: String, name: &str) -> String {
    if folded.is_empty() { skeleton(name).collect() } else { folded }
}

/// Only letters and digits, each as the one that looks like it, in lower case. A separator between two digits
/// counts, because 1-12 is not 11-2.
fn folded_looks(name: &str) -> String {
    let mut small = String::new();
    let (mut was_digit, mut has_gap) = (false, false);
    let mut buffer = [0; 4];
    for c in name.chars() {
        let before = small.len();
        let looks = skeleton(c.encode_utf8(&mut buffer)).filter(|it| it.is_alphanumeric());
        for look in looks.flat_map(char::to_lowercase) {
            if small.len() == before && has_gap && was_digit && c.is_numeric() {
                small.push(' ');
            }
            small.push(plain_letter(look));
        }
        if small.len() > before {
            (was_digit, has_gap) = (c.is_numeric(), false);
        } else if has_skeleton(c) && !unicode_normalization::char::is_combining_mark(c) {
            has_gap = true;
        }
    }
    let looks = skeleton(&small).filter(|c| c.is_alphanumeric() || *c == ' ');
    looks.map(|c| if c == 'i' { 'l' } else { c }).collect()
}

/// The letter that people see in one of another form. UTS 39 keeps small capitals apart, and with them the letters of
/// other scripts that look like one, such as the Cyrillic letter Te.
fn plain_letter(c: char) -> char {
    const SMALL_CAPITALS: [(char, char); 22] = [
        ('\u{1d00}', 'a'),
        ('\u{299}', 'b'),
        ('\u{1d04}', 'c'),
        ('\u{1d05}', 'd'),
        ('\u{1d07}', 'e'),
        ('\u{a730}', 'f'),
        ('\u{262}', 'g'),
        ('\u{29c}', 'h'),
        ('\u{26a}', 'i'),
        ('\u{1d0a}', 'j'),
        ('\u{1d0b}', 'k'),
        ('\u{29f}', 'l'),
        ('\u{1d0d}', 'm'),
        ('\u{274}', 'n'),
        ('\u{1d0f}', 'o'),
        ('\u{1d18}', 'p'),
        ('\u{280}', 'r'),
        ('\u{a731}', 's'),
        ('\u{1d1b}', 't'),
        ('\u{1d1c}', 'u'),
        ('\u{28f}', 'y'),
        ('\u{138}', 'k'),
    ];
    // White letters on black circles and squares.
    let enclosed = [0x1_f150, 0x1_f170]
        .into_iter()
        .filter_map(|from| u32::from(c).checked_sub(from).filter(|letter| *letter < 26))
        .find_map(|letter| char::from_u32(u32::from('a') + letter));
    let small_capital =
        SMALL_CAPITALS.iter().find(|(form, _)| *form == c).map(|(_, letter)| *letter);
    small_capital.or(enclosed).unwrap_or(c)
}

/// Whether a character is more than an invisible one that only steers others.
fn has_skeleton(c: char) -> bool {
    skeleton(c.encode_utf8(&mut [0; 4])).next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_people_take_for_each_other_have_one_reading() {
        for (one, other) in [
            ("photos", "Photos"),
            ("photos", "ph\u{43e}tos"),
            ("photos", "ph0tos"),
            ("photos", "\u{440}h\u{43e}t\u{43e}s"),
            ("photos", "\u{ff50}hotos"),
            ("photos", "\u{13e2}hotos"),
            ("photos", "photos\u{200b}"),
            ("photos", "ph\u{34f}otos"),
            ("photos", "\u{202e}photos"),
            ("photos", "p\u{336}h\u{336}otos"),
            ("photos", "pho\u{442}os"),
            ("photos", "pho\u{3c4}os"),
            ("photos", "\u{1d18}\u{29c}\u{1d0f}\u{1d1b}\u{1d0f}s"),
            ("photos", "\u{1f17f}hotos"),
            ("photos", "\u{1f15f}hotos"),
            ("payroll", "payro11"),
            ("payroll", "payroIl"),
            ("payroll", "payro||"),
            ("mail", "rnail"),
            ("NOTES", "\u{39d}OTES"),
            ("Claude Code", "claude-code"),
            ("Claude Code", "Claude  Code."),
            ("caf\u{e9}", "cafe"),
            ("\u{39d}\u{3b9}\u{3ba}\u{3bf}\u{3c2}", "\u{39d}\u{399}\u{39a}\u{39f}\u{3a3}"),
            ("\u{1f680}", "\u{1f680}\u{fe0f}"),
        ] {
            assert_eq!(NameReading::of(one), NameReading::of(other), "{one:?} {other:?}");
        }
    }

    #[test]
    fn names_that_differ_to_people_have_different_readings() {
        for (one, other) in [
            ("photos", "photo"),
            ("bot-1-12", "bot-11-2"),
            ("1.2", "12"),
            ("\u{1f680}", "\u{1f6f8}"),
            ("\u{0938}\u{0940}", "\u{0938}\u{093e}"),
            ("\u{5317}", "\u{5357}"),
            ("", "a"),
        ] {
            assert_ne!(NameReading::of(one), NameReading::of(other), "{one:?} {other:?}");
        }
        // Sets of names as fleets have them.
        let fleet = (0..300).flat_map(|it| [format!("bot{it}"), format!("host-{it}-a")]);
        let readings: std::collections::BTreeSet<_> =
            fleet.map(|it| NameReading::of(&it)).collect();
        assert_eq!(readings.len(), 600);
    }

    #[test]
    fn what_people_are_told_of_a_name_is_compared() {
        let told = |name: &str| AgentReading::of(name).told;
        assert_eq!(told("Claude Code in photos"), told("Claude Code"));
        assert_eq!(told("Claude Code IN photos, in bills"), told("claude code"));
        assert_ne!(told("in photos"), told("in bills"));
        assert_ne!(told("Inside"), told("Outside"));
        let long = "n".repeat(MAX_TOLD_NAME_BYTES);
        assert_eq!(told(&format!("{long}x")), told(&format!("{long}y")));
        for padding in [" ", "\u{200b}", " \u{200b}"] {
            let padded = format!("Photos{}x", padding.repeat(300));
            assert_eq!(told(&padded), told("Photos"), "the x is never told");
        }
    }

    #[test]
    fn a_name_that_deceives_without_another_one_is_recognized() {
        let is_deceptive = |name: &str| AgentReading::of(name).is_deceptive;
        for name in [
            "Claude Code (token laptop)",
            "Claude, t\u{43e}ken laptop",
            "Claude (\u{442}oken laptop)",
            "Claude (\u{1d1b}oken laptop)",
            "x (Local-Program)",
            "\u{202e}sotohp",
            "p\u{2066}hotos",
        ] {
            assert!(is_deceptive(name), "{name}");
        }
        for name in ["Claude Code", "token", "Token counter", "User helper"] {
            assert!(!is_deceptive(name), "{name}");
        }
    }

    #[test]
    fn a_project_that_states_a_principal_is_recognized() {
        for project in [
            "shop (token laptop)",
            "(token laptop)",
            "shop, t\u{43e}ken laptop",
            "shop (\u{442}oken laptop)",
            "shop (to\u{200b}ken-laptop)",
            "shop your own program",
            "\u{202e}pohs",
        ] {
            assert!(is_deceptive_project(project), "{project}");
        }
        for project in [
            "shop",
            "token-shop",
            "work/user-service",
            "work/token_v2",
            "new accounting",
            "\u{e9}t\u{e9}",
        ] {
            assert!(!is_deceptive_project(project), "{project}");
        }
    }

    #[test]
    fn the_principal_of_a_name_is_always_told() {
        assert_eq!(told_apart("Claude Code", "token laptop"), "Claude Code (token laptop)");
        for name in ["n".repeat(500), "\u{43e}".repeat(500), " \u{200b}".repeat(500)] {
            for principal in ["token laptop".to_owned(), format!("token {}", "\u{43e}".repeat(99))]
            {
                let principal = told_principal(&principal, Some(u64::MAX));
                let told = told_apart(&name, &principal);
                assert!(told.len() <= MAX_TOLD_NAME_BYTES && told.ends_with(')'), "{told}");
                assert!(told.ends_with(", number 18446744073709551615)"), "{told}");
            }
        }
    }
}
