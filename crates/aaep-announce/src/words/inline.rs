//! The marks within a line: emphasis, links, pictures, code, tags.

use super::Style;
use super::shorten::{host, shorten};

/// How deep brackets are followed.
const MAX_BRACKETS: usize = 32;
/// The longest address of a link, in bytes.
const MAX_ADDRESS: usize = 2048;
/// The longest tag or address in angle brackets, in bytes.
const MAX_TAG: usize = 512;

/// Tags that models write into prose. What is not listed is text, such as the type of a list.
const TAGS: &[&str] = &[
    "a",
    "b",
    "blockquote",
    "br",
    "center",
    "code",
    "dd",
    "del",
    "details",
    "div",
    "dl",
    "dt",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "img",
    "ins",
    "kbd",
    "li",
    "mark",
    "ol",
    "p",
    "pre",
    "q",
    "s",
    "small",
    "span",
    "strong",
    "sub",
    "summary",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "tt",
    "u",
    "ul",
];

const ENTITIES: &[(&str, &str)] = &[
    ("&amp;", "&"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&apos;", "'"),
    ("&#39;", "'"),
    ("&nbsp;", " "),
];

/// A piece of prose without marks, each word fit to be heard.
pub(super) fn prose(raw: &str, style: Style) -> String {
    shorten(&unmarked(raw, style.is_exact), style)
}

/// A piece of prose without marks.
fn unmarked(raw: &str, is_exact: bool) -> String {
    let out = String::with_capacity(raw.len());
    let mut marks = Marks { raw, is_exact, out, ..Marks::default() };
    let mut at = 0;
    while let Some(c) = raw.get(at..).and_then(|rest| rest.chars().next()) {
        at = marks.one(c, at);
    }
    marks.out
}

#[derive(Default)]
struct Marks<'t> {
    raw: &'t str,
    /// Whether what may be a mark stays where it may as well be a part of a command.
    is_exact: bool,
    out: String,
    /// Where in `out` each open bracket stands, and whether it opens a picture.
    brackets: Vec<(usize, bool)>,
    in_code: bool,
    /// No `)` comes before this place of `raw`, so that it is not searched twice.
    no_closing_until: usize,
}

impl<'t> Marks<'t> {
    fn rest(&self, at: usize) -> &'t str {
        self.raw.get(at..).unwrap_or_default()
    }

    /// Takes the character at this place; where to go on.
    fn one(&mut self, c: char, at: usize) -> usize {
        let next = at + c.len_utf8();
        match c {
            '`' => {
                self.in_code = !self.in_code;
                at + run(self.rest(at), '`')
            }
            _ if self.in_code => self.keep(c, next),
            '\\' | '<' | '&' if self.is_exact => self.keep(c, next),
            '\\' => match self.rest(next).chars().next() {
                Some(escaped) if escaped.is_ascii_punctuation() => {
                    self.keep(escaped, next + escaped.len_utf8())
                }
                _ => self.keep(c, next),
            },
            '*' | '_' => self.emphasis(c, at),
            '~' if self.rest(at).starts_with("~~") => at + run(self.rest(at), '~'),
            '!' if self.rest(next).starts_with('[') => {
                self.open(true);
                next + 1
            }
            '[' => {
                self.open(false);
                next
            }
            ']' => self.close(next),
            '<' => self.tag(at),
            '&' => self.entity(at),
            _ => self.keep(c, next),
        }
    }

    fn keep(&mut self, c: char, next: usize) -> usize {
        self.out.push(c);
        next
    }

    /// Stars and underscores that touch a word are marks; within a word or alone they are not.
    fn emphasis(&mut self, mark: char, at: usize) -> usize {
        let length = run(self.rest(at), mark);
        let next = at + length;
        let before = self.raw.get(..at).and_then(|it| it.chars().next_back());
        let after = self.rest(next).chars().next();
        let is_space = |c: Option<char>| c.is_none_or(char::is_whitespace);
        let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '/');
        let is_text = match mark {
            _ if self.is_exact && length == 1 => true,
            '_' => is_letter(before) && is_letter(after),
            _ => {
                is_glob(before, after, length) || length == 1 && is_space(before) && is_space(after)
            }
        };
        if is_text {
            self.out.extend(std::iter::repeat_n(mark, length));
        }
        next
    }

    fn open(&mut self, is_picture: bool) {
        if self.brackets.len() < MAX_BRACKETS {
            self.brackets.push((self.out.len(), is_picture));
        }
        self.out.push('[');
    }

    /// A closing bracket ends a link if an address or a reference follows.
    fn close(&mut self, next: usize) -> usize {
        let Some((from, is_picture)) = self.brackets.pop() else { return self.keep(']', next) };
        let rest = self.rest(next);
        let (address, end) = if rest.starts_with('(') {
            match self.closing(next) {
                Some(end) => (self.raw.get(next + 1..end), end + 1),
                None => return self.keep(']', next),
            }
        } else if let Some(reference) = rest.strip_prefix('[').filter(|_| !self.is_index(from)) {
            let within = cut(reference, MAX_TAG);
            match within.find(']') {
                Some(length) => (None, next + 1 + length + 1),
                None => return self.keep(']', next),
            }
        } else {
            return self.keep(']', next);
        };
        let text = self.out.split_off(from.min(self.out.len()));
        let text = text.strip_prefix('[').unwrap_or(&text);
        self.link(text.trim(), address.unwrap_or_default().trim(), is_picture);
        end
    }

    /// Whether the bracket here follows a name, as in `b[1][2]`.
    fn is_index(&self, from: usize) -> bool {
        self.out.get(..from).is_some_and(|it| it.ends_with(char::is_alphanumeric))
    }

    /// Where the address ends that begins with the bracket here.
    fn closing(&mut self, at: usize) -> Option<usize> {
        if at < self.no_closing_until {
            return None;
        }
        let within = cut(self.rest(at), MAX_ADDRESS);
        let mut depth = 0_usize;
        for (offset, c) in within.char_indices() {
            match c {
                '(' => depth += 1,
                ')' if depth <= 1 => return Some(at + offset),
                ')' => depth -= 1,
                _ => {}
            }
        }
        self.no_closing_until = at + within.len();
        None
    }

    fn link(&mut self, text: &str, address: &str, is_picture: bool) {
        let address = address.split_whitespace().next().unwrap_or_default();
        let address = address.trim_matches(['<', '>']);
        match (is_picture, text.is_empty()) {
            (true, true) => self.out.push_str("picture"),
            (true, false) => self.out.extend(["picture: ", text]),
            (false, true) => self.out.push_str(address),
            (false, false) => {
                self.out.push_str(text);
                if self.is_exact {
                    self.out.extend([", which leads to ", address]);
                    return;
                }
                // A text that names one place and leads to another is not left at that.
                if let (Some(leads), Some(says)) = (host(address), claimed_host(text))
                    && !leads.eq_ignore_ascii_case(says)
                {
                    self.out.extend([", which leads to ", leads]);
                }
            }
        }
    }

    /// A tag goes, an address in angle brackets loses them, and anything else is text.
    fn tag(&mut self, at: usize) -> usize {
        let inside = cut(self.rest(at + 1), MAX_TAG);
        let end =
            inside.find(['>', '<', '\n']).filter(|end| inside.as_bytes().get(*end) == Some(&b'>'));
        let Some(end) = end else { return self.keep('<', at + 1) };
        let inside = inside.get(..end).unwrap_or_default();
        let next = at + 1 + end + 1;
        let name = inside.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        let after_word = self.out.ends_with(|c: char| c.is_alphanumeric() || c == ':');
        let is_closing = inside.starts_with('/');
        if TAGS.iter().any(|tag| name.eq_ignore_ascii_case(tag)) && (is_closing || !after_word) {
            if matches!(name.to_ascii_lowercase().as_str(), "br" | "p" | "li" | "td" | "tr" | "div")
            {
                self.out.push(' ');
            }
            return next;
        }
        if name.eq_ignore_ascii_case("br") {
            self.out.push(' ');
            return next;
        }
        if host(inside).is_some() || inside.starts_with("mailto:") {
            self.out.push_str(inside);
            return next;
        }
        self.keep('<', at + 1)
    }

    fn entity(&mut self, at: usize) -> usize {
        let rest = self.rest(at);
        match ENTITIES.iter().find(|(name, _)| rest.starts_with(name)) {
            Some((name, text)) => {
                self.out.push_str(text);
                at + name.len()
            }
            None => self.keep('&', at + 1),
        }
    }
}

/// Whether stars stand for any name, as in `*.rs`, `src/*` or `**/test`.
fn is_glob(before: Option<char>, after: Option<char>, length: usize) -> bool {
    let is_name = length == 1 && after == Some('.') && before.is_none_or(char::is_whitespace);
    length <= 2 && (before == Some('/') || after == Some('/')) || is_name
}

/// The host that a text claims to be, if it looks like one.
fn claimed_host(text: &str) -> Option<&str> {
    if let Some(host) = host(text) {
        return Some(host);
    }
    let name = text.strip_prefix("www.").unwrap_or(text);
    let name = name.split('/').next().unwrap_or_default();
    let (before, last) = name.rsplit_once('.')?;
    let is_name = |it: &str| {
        !it.is_empty() && it.bytes().all(|c| c.is_ascii_alphanumeric() || b".-".contains(&c))
    };
    let is_file = before.contains('_') || ["md", "rs", "py", "js", "ts", "sh"].contains(&last);
    (is_name(before)
        && is_name(last)
        && last.len() >= 2
        && !is_file
        && !last.contains(|c: char| c.is_ascii_digit()))
    .then_some(name)
}

/// How many times the mark stands at the beginning.
fn run(text: &str, mark: char) -> usize {
    text.chars().take_while(|c| *c == mark).count() * mark.len_utf8()
}

/// At most so many bytes of a text, cut between characters.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
