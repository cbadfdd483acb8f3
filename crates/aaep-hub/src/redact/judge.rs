//! Decides whether a match is a secret, where its form alone is not enough.
//!
//! Ordinary words, numbers, paths and placeholders must stay: a person who hears `[redacted]` in every other
//! sentence would switch redaction off.

use regex::Captures;

/// The number of digits that make a number a secret under a name such as `tokens`.
const LONG_NUMBER: usize = 10;

/// The form alone is enough.
pub(super) fn always(_: &Captures<'_>) -> bool {
    true
}

/// Real keys have digits; words joined by hyphens have none.
pub(super) fn has_digit(captures: &Captures<'_>) -> bool {
    captures[0].bytes().any(|byte| byte.is_ascii_digit())
}

/// Not a variable or a blank to fill in.
pub(super) fn is_not_placeholder(captures: &Captures<'_>) -> bool {
    !is_placeholder(secret(captures))
}

/// Not a word of a sentence.
pub(super) fn is_not_word(captures: &Captures<'_>) -> bool {
    let secret = secret(captures);
    !is_placeholder(secret) && !is_wordlike(secret)
}

/// The unquoted value after a name and a separator.
pub(super) fn is_value(captures: &Captures<'_>) -> bool {
    let (name, separator, value) = (&captures["name"], &captures["sep"], secret(captures));
    if is_placeholder(value) || value.starts_with('=') || is_call(value) {
        return false;
    }
    let is_password = name.to_ascii_lowercase().starts_with("pass");
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit() || b".,_".contains(&byte));
    if is_number && !is_password && value.len() < LONG_NUMBER {
        return false;
    }
    // A folder in a shell, or an address.
    let is_place = value.starts_with(['/', '~']) || value.contains("://");
    if is_place && !is_password {
        return false;
    }
    // Directly after an equals sign it is an assignment; otherwise it may be a sentence.
    separator == "=" || (value.len() >= 4 && !is_wordlike(value))
}

/// The quoted value after a name and a separator: anything except a sentence.
pub(super) fn is_quoted_value(captures: &Captures<'_>) -> bool {
    let value = secret(captures);
    let is_sentence = value.split_whitespace().count() > 2 && value.split(' ').all(is_wordlike);
    !is_placeholder(value) && !is_sentence && !value.contains("://")
}

/// A string that looks random: letters and digits in no order.
pub(super) fn is_random(captures: &Captures<'_>) -> bool {
    let text = secret(captures);
    let is_path = text.contains('/') && text.contains('.');
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => 1,
        b'a'..=b'z' => 2,
        b'A'..=b'Z' => 3,
        _ => 0,
    };
    let turns = text
        .as_bytes()
        .windows(2)
        .map(|pair| (kind(pair[0]), kind(pair[1])))
        .filter(|(one, two)| *one != 0 && *two != 0 && one != two)
        .count();
    !is_path && digits >= 2 && turns * 6 >= text.len()
}

fn secret<'t>(captures: &Captures<'t>) -> &'t str {
    captures.name("secret").or_else(|| captures.get(0)).map_or("", |found| found.as_str())
}

/// Letters only, as words are written, perhaps followed by a punctuation mark.
fn is_wordlike(text: &str) -> bool {
    let text = text.trim_end_matches(['.', ',', ':', ';', '!', '?', ')', '…']);
    let parts = text.split(['-', '_', '/', '\'', '’', '.']);
    text.is_empty() || parts.filter(|part| !part.is_empty()).all(is_word)
}

fn is_word(text: &str) -> bool {
    let rest: String = text.chars().skip(1).collect();
    let is_letters = text.chars().all(char::is_alphabetic);
    let is_one_case =
        !rest.chars().any(char::is_uppercase) || !text.chars().any(char::is_lowercase);
    is_letters && is_one_case
}

/// Whether this is `$NAME`, `${NAME}`, `%NAME%`, `{{ name }}`, `<your token>`, `null` or similar, or has no
/// letter or digit at all.
fn is_placeholder(text: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-. ".contains(&it))
    };
    let between = |begin: &str, end: &str| {
        text.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end)).is_some_and(is_name)
    };
    let is_variable = |name: &str| {
        name.bytes().all(|it| it.is_ascii_uppercase() || it == b'_' || it.is_ascii_digit())
    };
    let is_shell = text.strip_prefix('$').is_some_and(|name| is_name(name) && is_variable(name));
    let is_nothing = ["null", "none", "nil", "true", "false", "undefined", "empty", "unset"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word));
    is_shell
        || is_nothing
        || between("${", "}")
        || between("${", "")
        || between("{{", "}}")
        || between("{", "}")
        || between("<", ">")
        || between("%", "%")
        || !text.chars().any(char::is_alphanumeric)
}

/// The beginning of a call in source code: `getToken(`.
fn is_call(text: &str) -> bool {
    text.split_once('(').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphabetic() || b"_.:".contains(&it))
    })
}
