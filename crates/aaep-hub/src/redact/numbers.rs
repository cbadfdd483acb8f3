//! Personal numbers that can be verified by themselves: payment cards, US social security numbers, IBANs.
//!
//! A card number needs a known issuer, the length and groups that this issuer uses, and a correct Luhn
//! digit; an IBAN needs the length of its country and a remainder of 1 modulo 97. So hashes, UUIDs,
//! timestamps, barcodes and ordinary numbers stay. The search is one pass over the text and reads a few
//! bytes of each word.

use std::ops::{Range, RangeInclusive};

/// Which numbers are searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NumberSearch {
    pub(super) cards: bool,
    pub(super) social_security: bool,
    pub(super) ibans: bool,
}

/// The longest card number.
const MAX_CARD_DIGITS: usize = 19;
/// How far before nine digits a name that makes them a social security number may begin.
const NAME_BYTES: usize = 40;

/// Hyphens, and the dashes that programs make of them.
const HYPHENS: [&str; 6] = ["-", "\u{2010}", "\u{2011}", "\u{2012}", "\u{2013}", "\u{2212}"];

/// Separators between the groups of a number besides [`HYPHENS`], including the non-breaking spaces.
const SEPARATORS: [&str; 4] = [" ", ".", "\u{a0}", "\u{202f}"];

fn separators() -> impl Iterator<Item = &'static str> {
    HYPHENS.into_iter().chain(SEPARATORS)
}

impl NumberSearch {
    /// Finds such numbers, in order and without overlaps. `is_named` means that the name of the field calls
    /// its value a social security number.
    pub(super) fn find(self, text: &str, is_named: bool) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        let mut at = 0;
        while let Some(start) = next_word(text, at) {
            at = word_end(text, start);
            if let Some(end) = self.end_of_number(text, start, is_named) {
                spans.push(start..end);
                at = end;
            }
        }
        spans
    }

    /// The end of the number that begins here, if one does.
    fn end_of_number(self, text: &str, start: usize, is_named: bool) -> Option<usize> {
        let end = if text.as_bytes()[start].is_ascii_digit() {
            let groups = DigitGroups::read(text, start);
            let card = || self.cards.then(|| groups.end_of_card(text)).flatten();
            let named = || is_named || has_name_before(text, start);
            let is_ssn = self.social_security && groups.is_social_security(text, named);
            card().or_else(|| is_ssn.then_some(groups.end(groups.lengths.len())))
        } else {
            self.ibans.then(|| end_of_iban(text, start)).flatten()
        };
        end.filter(|end| !text[*end..].starts_with(is_word_char))
    }
}

fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn next_word(text: &str, from: usize) -> Option<usize> {
    text[from..].find(is_word_char).map(|found| from + found)
}

fn word_end(text: &str, start: usize) -> usize {
    text[start..].find(|c| !is_word_char(c)).map_or(text.len(), |found| start + found)
}

/// Whether the text before `start` ends with a word character and this mark.
fn follows_word(text: &str, start: usize, mark: &str) -> bool {
    text[..start].strip_suffix(mark).is_some_and(|rest| rest.ends_with(is_word_char))
}

/// Digits in groups, with the same separator between all of them.
struct DigitGroups<'t> {
    start: usize,
    separator: &'t str,
    lengths: Vec<usize>,
}

impl<'t> DigitGroups<'t> {
    /// The most groups that are read: one more than any number has.
    const MOST: usize = 6;

    fn read(text: &'t str, start: usize) -> Self {
        let mut groups = DigitGroups { start, separator: "", lengths: Vec::new() };
        let mut at = start;
        loop {
            let rest = &text[at..];
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let is_whole = digits > 0 && !rest[digits..].starts_with(is_word_char);
            if !is_whole {
                return groups;
            }
            groups.lengths.push(digits);
            let rest = &rest[digits..];
            let found = separators().find(|it| rest.starts_with(it));
            let Some(separator) = found else { return groups };
            let is_same = groups.lengths.len() == 1 || separator == groups.separator;
            if !is_same || groups.lengths.len() == Self::MOST {
                return groups;
            }
            groups.separator = separator;
            at += digits + separator.len();
        }
    }

    /// The end of the first `count` groups.
    fn end(&self, count: usize) -> usize {
        let digits: usize = self.lengths[..count].iter().sum();
        self.start + digits + count.saturating_sub(1) * self.separator.len()
    }

    fn digits(&self, text: &str, count: usize) -> Vec<u8> {
        let bytes = text[self.start..self.end(count)].bytes();
        bytes.filter(u8::is_ascii_digit).map(|byte| byte - b'0').collect()
    }

    /// The end of the longest card number in the first groups.
    fn end_of_card(&self, text: &str) -> Option<usize> {
        let is_digit = |c: char| c.is_ascii_digit();
        let is_fraction =
            text[..self.start].strip_suffix('.').is_some_and(|it| it.ends_with(is_digit));
        if is_fraction {
            return None;
        }
        let is_card = |count: &usize| {
            has_shape_of_card(&self.lengths[..*count])
                && (*count == 1 || self.stands_alone(text, *count))
                && is_card(&self.digits(text, *count))
        };
        (1..=self.lengths.len()).rev().find(is_card).map(|count| self.end(count))
    }

    /// Whether the first `count` groups are not part of something longer. A space ends a number; a hyphen or
    /// a point does not.
    fn stands_alone(&self, text: &str, count: usize) -> bool {
        let is_space = self.separator.chars().all(char::is_whitespace);
        let goes_on = text[self.end(count)..]
            .strip_prefix(self.separator)
            .is_some_and(|rest| rest.starts_with(is_word_char));
        is_space || !goes_on && !follows_word(text, self.start, self.separator)
    }

    /// 123-45-6789 by its form; with other separators or none, only if it is named so.
    fn is_social_security(&self, text: &str, is_named: impl FnOnce() -> bool) -> bool {
        let is_hyphen = HYPHENS.contains(&self.separator);
        let has_form = match self.lengths[..] {
            [3, 2, 4] => is_hyphen && self.stands_alone(text, 3) || is_named(),
            [9] => is_named(),
            _ => false,
        };
        if !has_form {
            return false;
        }
        let digits = self.digits(text, self.lengths.len());
        let (area, group, serial) =
            (value(&digits[..3]), value(&digits[3..5]), value(&digits[5..]));
        !matches!(area, 0 | 666 | 900..) && group != 0 && serial != 0
    }
}

fn value(digits: &[u8]) -> u32 {
    digits.iter().fold(0, |value, digit| value * 10 + u32::from(*digit))
}

/// One group, groups of four with a remainder, or the groups of American Express and Diners.
fn has_shape_of_card(lengths: &[usize]) -> bool {
    let digits: usize = lengths.iter().sum();
    let in_fours = || {
        let (last, fours) = lengths.split_last().unwrap_or((&0, &[]));
        fours.iter().all(|it| *it == 4) && *last <= 4
    };
    let has_groups = lengths.len() == 1 || in_fours() || matches!(lengths, [4, 6, 4 | 5]);
    (14..=MAX_CARD_DIGITS).contains(&digits) && has_groups
}

fn is_card(digits: &[u8]) -> bool {
    has_issuer(digits) && luhn(digits)
}

/// The first four digits of each network's cards, as a range, and the lengths of their numbers.
const ISSUERS: [(RangeInclusive<u32>, RangeInclusive<usize>); 24] = [
    // Visa
    (4000..=4999, 16..=16),
    (4000..=4999, 19..=19),
    // Mastercard
    (5100..=5599, 16..=16),
    (2221..=2720, 16..=16),
    // Mir
    (2200..=2204, 16..=16),
    // American Express
    (3400..=3499, 15..=15),
    (3700..=3799, 15..=15),
    // Diners Club
    (3000..=3059, 14..=14),
    (3095..=3095, 14..=14),
    (3600..=3699, 14..=14),
    (3800..=3999, 14..=14),
    // JCB
    (3528..=3589, 16..=16),
    // Discover
    (6440..=6599, 16..=16),
    // RuPay, and Discover among them
    (6000..=6099, 16..=16),
    (8100..=8299, 16..=16),
    // Verve, and RuPay
    (5060..=5089, 16..=16),
    (5060..=5061, 18..=19),
    // UnionPay
    (6200..=6299, 16..=16),
    (6200..=6299, 19..=19),
    // Maestro
    (5018..=5020, 16..=19),
    (5038..=5038, 16..=19),
    (5893..=5893, 16..=19),
    (6304..=6304, 16..=19),
    (6759..=6763, 16..=19),
];

/// Whether a card network issues numbers with this beginning and length.
fn has_issuer(digits: &[u8]) -> bool {
    let (begin, length) = (value(&digits[..4]), digits.len());
    ISSUERS.iter().any(|(begins, lengths)| begins.contains(&begin) && lengths.contains(&length))
}

fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| match (at % 2, u32::from(*digit)) {
            (0, digit) => digit,
            (_, digit) if digit > 4 => digit * 2 - 9,
            (_, digit) => digit * 2,
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Whether the words just before, on the same line, name a social security number.
fn has_name_before(text: &str, start: usize) -> bool {
    let from = text.floor_char_boundary(start.saturating_sub(NAME_BYTES));
    let line = text[from..start].rsplit('\n').next().unwrap_or_default();
    is_social_security_name(line)
}

/// Whether a name, of a field or in a sentence, means a social security number.
pub(super) fn is_social_security_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_ssn = |part: &str| part == "ssn" || part == "ssns";
    name.replace(['-', '_', ' '], "").contains("socialsecurity")
        || name.split(|c: char| !c.is_ascii_alphabetic()).any(is_ssn)
}

/// The end of the IBAN that begins here, without separators or in groups of four.
fn end_of_iban(text: &str, start: usize) -> Option<usize> {
    let bytes = &text.as_bytes()[start..];
    let country = bytes.get(..2)?;
    let is_of_country = |entry: &&str| entry.as_bytes()[..2].eq_ignore_ascii_case(country);
    let length: usize = IBAN_LENGTHS.split(' ').find(is_of_country)?[2..].parse().ok()?;
    if !bytes.get(2..4)?.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let rest = &text[start + 4..];
    let separator = separators().find(|it| rest.starts_with(it)).unwrap_or_default();
    let mut number = Vec::with_capacity(length);
    let mut at = start;
    while number.len() < length {
        if !number.is_empty() && number.len().is_multiple_of(4) {
            at += text[at..].strip_prefix(separator).map(|_| separator.len())?;
        }
        let byte = text.as_bytes().get(at).filter(|byte| byte.is_ascii_alphanumeric())?;
        number.push(byte.to_ascii_uppercase());
        at += 1;
    }
    (modulo_97(&number) == 1).then_some(at)
}

/// The remainder of ISO 7064, with the first four characters at the end and letters as 10 to 35.
fn modulo_97(number: &[u8]) -> u32 {
    let (head, tail) = number.split_at(4);
    tail.iter().chain(head).fold(0, |rest, byte| match byte {
        b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
        letter => (rest * 100 + u32::from(letter - b'A') + 10) % 97,
    })
}

/// The countries that have IBANs, each with their length.
const IBAN_LENGTHS: &str = "\
    AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 \
    DJ27 DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 \
    HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 \
    MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 \
    RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 \
    VA22 VG24 XK20 YE30";
