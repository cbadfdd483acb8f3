//! Single words as they are said: links, hashes, long numbers, positions in files.
//!
//! Two different words never become the same words, unless the result says that something is omitted.

use super::Style;
use super::own::own;
use super::symbol::named_pictures;
use crate::english::text;

/// The longest word that is said whole, in characters.
const MAX_WORD: usize = 100;
/// The same for scripts without spaces between words.
const MAX_UNSPACED: usize = 2000;
/// How much of the beginning of a longer word is said.
const WORD_HEAD: usize = 40;
/// How many times more is said if everything may matter.
const EXACT_FACTOR: usize = 5;
/// How much of the end of a longer word is said.
const WORD_TAIL: usize = 12;
/// The longest hash that is said whole, and how many digits of the beginning and the end of a longer one are said.
const WHOLE_HASH: usize = 16;
const HASH_HEAD: usize = 7;
const HASH_TAIL: usize = 4;
/// The fewest characters of a rule that is drawn with one character.
const MIN_RULE: usize = 4;
/// The longest address or path that is said whole, in characters.
const MAX_ADDRESS: usize = 300;
/// A number with more digits is an identifier, not an amount.
const MAX_AMOUNT_DIGITS: usize = 15;

const OPENERS: &[char] =
    &['\u{e000}', '\u{e001}', '(', '[', '{', '"', '\'', '«', '“', '‘', '„', '<', '¿', '¡'];
const CLOSERS: &[char] = &[
    '\u{e000}', '\u{e001}', ')', ']', '}', '"', '\'', '»', '”', '’', '>', '.', ',', ';', ':', '!',
    '?', '…', '。', '，', '、', '؟', '،',
];

/// Text without marks, each word suitable for speech, with one space between words.
pub(super) fn shorten(text: &str, style: Style) -> String {
    let text = named_pictures(text, style.keeps_emoji);
    let text = if style.is_exact { text } else { without_written_escapes(&text) };
    let mut out = String::with_capacity(text.len());
    for token in text.split_whitespace() {
        let said = said(token, style);
        if !said.is_empty() {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(&said);
        }
    }
    out
}

/// One word as it is said. The punctuation around it stays.
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

/// Whether a word is a rule that is drawn with one character.
fn is_rule(token: &str) -> bool {
    let mut characters = token.chars();
    let Some(first) = characters.next() else { return true };
    matches!(first, '-' | '=' | '_' | '*' | '~' | '#' | '+')
        && token.len() >= MIN_RULE
        && characters.all(|c| c == first)
}

fn core_said(core: &str, style: Style) -> String {
    if let Some(link) = link_said(core) {
        return bounded(&link, MAX_ADDRESS, style);
    }
    if let Some(hash) = hash_said(core) {
        return hash;
    }
    if let Some(number) = number_said(core, style) {
        return number;
    }
    if let Some(place) = place_said(core) {
        return bounded(&place, MAX_ADDRESS, style);
    }
    let most = if core.contains(['/', '\\']) { MAX_ADDRESS } else { MAX_WORD };
    bounded(core, most, style)
}

/// Cuts a word that is far too long, and says so.
fn bounded(core: &str, most: usize, style: Style) -> String {
    let factor = if style.is_exact { EXACT_FACTOR } else { 1 };
    let length = core.chars().count();
    let is_spaced = core.chars().next().is_none_or(|c| c < '\u{e00}');
    if length <= if is_spaced { most * factor } else { MAX_UNSPACED } {
        return core.to_owned();
    }
    let head: String = core.chars().take(WORD_HEAD * factor).collect();
    let tail: String = core.chars().skip(length - WORD_TAIL).collect();
    let length = grouped(&length.to_string());
    let note = own(&text::cut_before_last(&length));
    format!("{head}{note} {tail}")
}

/// The host of a web address, if it is one.
pub(super) fn host(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let known = ["http", "https", "ftp", "ftps", "ws", "wss", "file", "ssh", "git"];
    if !known.iter().any(|it| scheme.eq_ignore_ascii_case(it)) {
        return None;
    }
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    // The text before an @ is a user name and not the host, however much it looks like one.
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = host.strip_prefix("www.").unwrap_or(host);
    (!host.is_empty()).then_some(host)
}

/// An address as it is said: without the usual scheme, and with the host first, whatever is before it.
pub(super) fn link_said(core: &str) -> Option<String> {
    if let Some(path) = core.strip_prefix("file://").filter(|it| it.starts_with('/')) {
        return Some(path.to_owned());
    }
    host(core)?;
    let (scheme, rest) = core.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let scheme = if scheme == "https" { String::new() } else { format!("{scheme} ") };
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let path = if path == "/" { "" } else { path };
    Some(match authority.rsplit_once('@') {
        Some((user, host)) => own(&text::address_with_user(&format!("{scheme}{host}{path}"), user)),
        None => format!("{scheme}{authority}{path}"),
    })
}

/// The first and the last digits of a hash or a UUID.
fn hash_said(core: &str) -> Option<String> {
    let (name, digits) = match core.split_once([':', '-']) {
        Some((name, digits)) if name.to_ascii_lowercase().starts_with("sha") => {
            (Some(name), digits)
        }
        _ => (None, core),
    };
    let hex = digits.chars().filter(|c| *c != '-').count();
    let is_uuid = digits.len() == 36 && digits.matches('-').count() == 4 && hex == 32;
    let all_hex = digits.chars().all(|c| c.is_ascii_hexdigit() || (is_uuid && c == '-'));
    let mixed = digits.contains(|c: char| c.is_ascii_digit())
        && digits.contains(|c: char| c.is_ascii_alphabetic());
    if !all_hex || !(WHOLE_HASH + 1..=128).contains(&hex) || !(mixed || is_uuid) {
        return None;
    }
    let (head, tail) = (digits.get(..HASH_HEAD)?, digits.get(digits.len() - HASH_TAIL..)?);
    Some(match name {
        Some(name) => own(&text::and_so_on(&format!("{name} {head}"), tail)),
        None => own(&text::and_so_on(head, tail)),
    })
}

/// Long numbers in groups: amounts with commas if the language has them, identifiers in groups of four digits.
fn number_said(core: &str, style: Style) -> Option<String> {
    if core.len() < 5 || core.len() > MAX_WORD || !core.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if core.starts_with('0') || core.len() > MAX_AMOUNT_DIGITS {
        return Some(in_groups(core, 4, ' ', false));
    }
    style.groups_digits.then(|| grouped(core))
}

/// Digits in groups of three from the right, with commas.
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

/// File extensions after which a line number is recognized even without a folder.
const SOURCES: &[&str] = &[
    "c", "cc", "cpp", "cs", "css", "go", "h", "html", "java", "js", "json", "jsx", "kt", "lua",
    "md", "php", "py", "rb", "rs", "sh", "sql", "swift", "toml", "ts", "tsx", "txt", "vue", "yaml",
    "yml",
];

/// `src/main.rs:12:5` as the file, the line and the column.
fn place_said(core: &str) -> Option<String> {
    let number =
        |text: &str| (1..8).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
    let (head, last) = core.rsplit_once(':').filter(|(_, last)| number(last))?;
    let (path, line, column) = match head.rsplit_once(':').filter(|(_, line)| number(line)) {
        Some((path, line)) => (path, line, Some(last)),
        None => (head, last, None),
    };
    let file = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let (name, kind) = file.rsplit_once('.')?;
    let has_ending = (1..=8).contains(&kind.len()) && kind.contains(char::is_alphabetic);
    let is_file = !name.is_empty() && has_ending && (file != path || SOURCES.contains(&kind));
    is_file.then(|| own(&text::place(path, line, column)))
}

/// Removes escape sequences that were written out in letters, or whose first character was lost.
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

/// The length of the numbers and the final letter of a control sequence from here on. Without its first character,
/// only a colour counts as a sequence.
fn sequence_length(text: &str, from: usize, only_colour: bool) -> Option<usize> {
    let rest = text.get(from..)?;
    let numbers = rest.bytes().take_while(|it| it.is_ascii_digit() || *it == b';').count();
    let last = rest.as_bytes().get(numbers)?;
    let is_final =
        if only_colour { numbers > 0 && *last == b'm' } else { last.is_ascii_alphabetic() };
    (is_final && numbers < 32).then_some(numbers + 1)
}
