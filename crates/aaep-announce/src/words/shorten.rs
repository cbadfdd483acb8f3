//! Paths, links, hashes, numbers and other things that are long to hear and short to mean.

use super::Style;
use super::symbol::without_pictures;

/// The longest word that is said whole, in characters.
const MAX_WORD: usize = 100;
/// The same in scripts that put no spaces between words.
const MAX_UNSPACED: usize = 2000;
/// How much is said of a longer one.
const WORD_HEAD: usize = 40;
/// So many times more of it is said where everything may matter.
const EXACT_FACTOR: usize = 5;
/// How many digits of a hash are said.
const HASH_HEAD: usize = 7;
/// A number with more digits is a name and not an amount.
const MAX_AMOUNT_DIGITS: usize = 15;
/// How many words a remark on tokens has at most.
const MAX_REMARK: usize = 12;

const OPENERS: &[char] = &['(', '[', '{', '"', '\'', '«', '“', '‘', '„', '<', '¿', '¡'];
const CLOSERS: &[char] = &[
    ')', ']', '}', '"', '\'', '»', '”', '’', '>', '.', ',', ';', ':', '!', '?', '…', '。', '，',
    '、', '؟', '،',
];

/// Text without marks, each word of it fit to be heard, with one space between words.
pub(super) fn shorten(text: &str, style: Style) -> String {
    let text = without_pictures(text, style.keeps_emoji);
    let text = if style.is_exact { text } else { without_written_escapes(&text) };
    let tokens: Vec<&str> = text.split_whitespace().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let rest = tokens.get(at..).unwrap_or_default();
        let remark = if style.is_exact { 0 } else { remark_on_tokens(rest) };
        if remark > 0 {
            // The full stop after a remark belongs to the sentence before it.
            let last = rest.get(remark - 1).copied().unwrap_or_default();
            if last.ends_with('.') && out.ends_with(char::is_alphanumeric) {
                out.push('.');
            }
            at += remark;
            continue;
        }
        let said = said(token, style);
        if !said.is_empty() {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(&said);
        }
        at += 1;
    }
    out
}

/// One word as it is said: the punctuation around it stays.
fn said(token: &str, style: Style) -> String {
    if is_rule(token) {
        return String::new();
    }
    let rest = token.trim_start_matches(OPENERS);
    let (opening, rest) = (token.strip_suffix(rest).unwrap_or_default(), rest);
    let core = rest.trim_end_matches(CLOSERS);
    let closing = rest.strip_prefix(core).unwrap_or_default();
    if core.is_empty() {
        return token.to_owned();
    }
    format!("{opening}{}{closing}", core_said(core, style))
}

/// Whether a word is a line drawn with one character.
fn is_rule(token: &str) -> bool {
    let mut characters = token.chars();
    let Some(first) = characters.next() else { return true };
    let is_mark = first.is_ascii_punctuation() && first != '.' && first != '!' && first != '?';
    is_mark && token.len() >= 3 && characters.all(|c| c == first)
}

fn core_said(core: &str, style: Style) -> String {
    if let Some(link) = link_said(core, style) {
        return bounded(&link, style);
    }
    if let Some(hash) = hash_said(core) {
        return hash;
    }
    if let Some(number) = number_said(core, style) {
        return number;
    }
    if let Some(path) = path_said(core, style) {
        return bounded(&path, style);
    }
    bounded(core, style)
}

/// A word that is far too long is cut, and it is said so.
fn bounded(core: &str, style: Style) -> String {
    let factor = if style.is_exact { EXACT_FACTOR } else { 1 };
    let length = core.chars().count();
    let is_spaced = core.chars().next().is_none_or(|c| c < '\u{e00}');
    if length <= if is_spaced { MAX_WORD * factor } else { MAX_UNSPACED } {
        return core.to_owned();
    }
    let head: String = core.chars().take(WORD_HEAD * factor).collect();
    format!("{head}, cut, {} characters in all", grouped(&length.to_string()))
}

/// The host of an address on the web, if it is one.
pub(super) fn host(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let known = ["http", "https", "ftp", "ftps", "ws", "wss", "file", "ssh", "git"];
    if !known.iter().any(|it| scheme.eq_ignore_ascii_case(it)) {
        return None;
    }
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    // What stands before an @ is a name and not the host, however much it looks like one.
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = host.strip_prefix("www.").unwrap_or(host);
    (!host.is_empty()).then_some(host)
}

fn link_said(core: &str, style: Style) -> Option<String> {
    let core = core.strip_prefix("mailto:").unwrap_or(core);
    if core.len() > "file:///".len() && core.starts_with("file:///") {
        return path_said(core.strip_prefix("file://")?, style);
    }
    let host = host(core)?;
    if style.is_exact {
        let (_, rest) = core.split_once("://")?;
        return Some(rest.to_owned());
    }
    Some(format!("{host} link"))
}

/// The first digits of a hash or of a universally unique identifier.
fn hash_said(core: &str) -> Option<String> {
    let (name, digits) = match core.split_once([':', '-']) {
        Some((name, digits)) if name.to_ascii_lowercase().starts_with("sha") => {
            (Some(name), digits)
        }
        _ => (None, core),
    };
    let digits = digits.strip_prefix("256:").unwrap_or(digits);
    let hex = digits.chars().filter(|c| *c != '-').count();
    let is_uuid = digits.len() == 36 && digits.matches('-').count() == 4 && hex == 32;
    let all_hex = digits.chars().all(|c| c.is_ascii_hexdigit() || (is_uuid && c == '-'));
    let mixed = digits.contains(|c: char| c.is_ascii_digit())
        && digits.contains(|c: char| c.is_ascii_alphabetic());
    if !all_hex || !(12..=128).contains(&hex) || !(mixed || is_uuid) {
        return None;
    }
    let head: String = digits.chars().take(HASH_HEAD).collect();
    Some(match name {
        Some(name) => format!("{name} {head}"),
        None => head,
    })
}

/// Long numbers in groups: amounts with commas where the language has them, names by four digits.
fn number_said(core: &str, style: Style) -> Option<String> {
    if core.len() < 5 || core.len() > MAX_WORD || !core.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if core.starts_with('0') || core.len() > MAX_AMOUNT_DIGITS {
        return Some(in_groups(core, 4, ' ', false));
    }
    style.groups_digits.then(|| grouped(core))
}

/// Digits in threes from the right, with commas.
pub(crate) fn grouped(digits: &str) -> String {
    in_groups(digits, 3, ',', true)
}

fn in_groups(digits: &str, size: usize, between: char, from_right: bool) -> String {
    let offset = if from_right { (size - digits.len() % size) % size } else { 0 };
    let mut out = String::with_capacity(digits.len() * 2);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (at + offset).is_multiple_of(size) {
            out.push(between);
        }
        out.push(digit);
    }
    out
}

/// The last two parts of a path, and the line in it.
fn path_said(core: &str, style: Style) -> Option<String> {
    let (path, line) = split_line(core);
    let separator = if path.contains('/') || path == "~" { '/' } else { '\\' };
    let parts: Vec<&str> = path.split(separator).filter(|part| !part.is_empty()).collect();
    let is_absolute = path.starts_with('/') || path.starts_with('~') || has_drive(path);
    let is_relative = path.starts_with("./") || path.starts_with("../");
    let has_letter = path.contains(char::is_alphabetic) || path == "~";
    let ends_in_a_file = parts.last().is_some_and(|part| {
        part.rsplit_once('.').is_some_and(|(name, kind)| {
            !name.is_empty() && (1..=8).contains(&kind.len()) && kind.contains(char::is_alphabetic)
        })
    });
    let is_path = has_letter
        && (is_absolute && (separator == '/' || has_drive(path)) && !path.starts_with("//")
            || is_relative
            || parts.len() > 1 && ends_in_a_file
            || parts.len() > 3 && separator == '/');
    if !is_path && (line.is_empty() || !ends_in_a_file) {
        return None;
    }
    if !is_path || style.is_exact {
        return Some(format!("{path}{line}"));
    }
    let parts = at_home(&parts, path.starts_with('/'));
    let said = match parts.as_slice() {
        [.., folder, name] if parts.len() > 2 => format!("{folder}/{name}"),
        _ if parts.first() == Some(&"home") => parts.join("/"),
        _ => path.replace('\\', "/"),
    };
    Some(format!("{said}{line}"))
}

/// The folder of a person is `home`, whoever it is.
fn at_home<'p>(parts: &[&'p str], from_root: bool) -> Vec<&'p str> {
    let skipped = match parts {
        ["~", ..] => 1,
        ["home" | "Users", _, ..] if from_root => 2,
        [_, "Users", _, ..] if parts.first().is_some_and(|it| it.ends_with(':')) => 3,
        ["root", ..] if from_root => 1,
        _ => return parts.to_vec(),
    };
    std::iter::once("home").chain(parts.iter().skip(skipped).copied()).collect()
}

fn has_drive(path: &str) -> bool {
    let mut bytes = path.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && bytes.next() == Some(b':')
        && bytes.next().is_some_and(|byte| byte == b'\\' || byte == b'/')
}

/// `src/main.rs:12:5` is the file and ` line 12`.
fn split_line(core: &str) -> (&str, String) {
    let mut parts = core.splitn(3, ':');
    let (Some(path), Some(line)) = (parts.next(), parts.next()) else {
        return (core, String::new());
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    if path.len() > 1 && is_number(line) && line.len() < 8 && parts.next().is_none_or(is_number) {
        (path, format!(" line {line}"))
    } else {
        (core, String::new())
    }
}

/// How many words from here on are nothing but a remark on how many tokens were used.
fn remark_on_tokens(tokens: &[&str]) -> usize {
    let Some(first) = tokens.first() else { return 0 };
    let closer = match first.chars().next() {
        Some('(') => ')',
        Some('[') => ']',
        _ => return 0,
    };
    let ends = |token: &&str| token.trim_end_matches(['.', ',', ';']).ends_with(closer);
    let Some(last) = tokens.iter().take(MAX_REMARK).position(ends) else { return 0 };
    let inside = tokens.get(..=last).unwrap_or_default();
    if is_about_tokens(inside) { last + 1 } else { 0 }
}

/// Whether words say how many tokens were used, and nothing else.
pub(super) fn is_about_tokens(tokens: &[&str]) -> bool {
    const AROUND: &[&str] = &[
        "used",
        "in",
        "out",
        "input",
        "output",
        "total",
        "cached",
        "left",
        "remaining",
        "context",
        "esc",
        "to",
        "interrupt",
        "ctrl",
        "and",
        "of",
        "↑",
        "↓",
        "·",
        "•",
        "",
    ];
    let core = |token: &&str| {
        let is_around = |c: char| c.is_ascii_punctuation() && c != '%' || c == '·';
        token.trim_matches(is_around).to_ascii_lowercase()
    };
    let is_amount = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_digit())
            && word.chars().all(|c| c.is_ascii_digit() || ".,kms%".contains(c))
    };
    let words: Vec<String> = tokens.iter().map(core).collect();
    let names = |word: &String| matches!(word.as_str(), "token" | "tokens");
    words.iter().any(names)
        && words.iter().any(|word| is_amount(word))
        && words
            .iter()
            .all(|word| names(word) || is_amount(word) || AROUND.contains(&word.as_str()))
}

/// Escape sequences that someone wrote down in letters, or whose first character was lost, go.
fn without_written_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '[']) {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        let written = ["\\x1b[", "\\x1B[", "\\u001b[", "\\u001B[", "\\033[", "\\e["];
        let prefix = written.iter().find(|it| tail.starts_with(**it)).map(|it| it.len());
        let sequence = prefix
            .map(|length| (length, sequence_length(tail, length, false)))
            .or_else(|| tail.starts_with('[').then(|| (1, sequence_length(tail, 1, true))));
        let skipped = if let Some((length, Some(more))) = sequence {
            length + more
        } else {
            out.extend(tail.chars().next());
            1
        };
        rest = tail.get(skipped..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// How long the numbers and the final letter of a control sequence are from here on. Without its first
/// character only a colour is believed to be one.
fn sequence_length(text: &str, from: usize, only_colour: bool) -> Option<usize> {
    let rest = text.get(from..)?;
    let numbers = rest.bytes().take_while(|it| it.is_ascii_digit() || *it == b';').count();
    let last = rest.as_bytes().get(numbers)?;
    let is_final =
        if only_colour { numbers > 0 && *last == b'm' } else { last.is_ascii_alphabetic() };
    (is_final && numbers < 32).then_some(numbers + 1)
}
