//! Markup within a line: emphasis, struck-out text, links, pictures, code.

use super::Style;
use super::cluster::cluster_start;
use super::emphasis;
use super::math::{formula, math};
use super::own::own;
use super::shorten::{host, link_said, shorten};
use super::tag::{HtmlTag, tag};
use crate::english::text::{self, LEADS_TO, STRUCK, STRUCK_END};

/// How deep brackets are followed.
const MAX_BRACKETS: usize = 32;
/// The longest address of a link, in bytes.
const MAX_ADDRESS: usize = 2048;
/// The longest name of a reference, in bytes.
const MAX_REFERENCE: usize = 512;
/// The longest path that is recognized, in characters.
const MAX_PATH: usize = 260;
/// How far the end of struck-out text is searched, in bytes.
const MAX_STRUCK: usize = 2048;

const ENTITIES: &[(&str, &str)] = &[
    ("&amp;", "&"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&apos;", "'"),
    ("&#39;", "'"),
    ("&nbsp;", " "),
];

/// A piece of prose without markup, each word suitable for speech.
pub(super) fn prose(raw: &str, style: Style) -> String {
    shorten(&unmarked(raw, style.is_exact), style)
}

/// A piece of prose without markup.
fn unmarked(raw: &str, is_exact: bool) -> String {
    let out = String::with_capacity(raw.len());
    let emphasis = emphasis::marks(raw, is_exact);
    let mut marks = InlineMarks { raw, is_exact, emphasis, out, ..InlineMarks::default() };
    let mut at = 0;
    while let Some(c) = raw.get(at..).and_then(|rest| rest.chars().next()) {
        at = marks.one(c, at);
    }
    marks.finish()
}

#[derive(Default)]
struct InlineMarks<'t> {
    raw: &'t str,
    /// Whether a possible mark stays if it could also be part of a command.
    is_exact: bool,
    /// Where the marks of emphasis begin.
    emphasis: Vec<usize>,
    out: String,
    /// The position of each open bracket in `out`, and whether it opens a picture.
    brackets: Vec<(usize, bool)>,
    in_code: bool,
    /// The mark that ends the open struck-out text.
    struck: Option<&'static str>,
    /// How many tags of struck-out text are open.
    struck_tags: usize,
    /// The addresses of open link tags.
    leads: Vec<&'t str>,
    /// There is no `)` before this position of `raw`, so that it is not searched twice.
    no_closing_until: usize,
}

impl<'t> InlineMarks<'t> {
    fn rest(&self, at: usize) -> &'t str {
        self.raw.get(at..).unwrap_or_default()
    }

    /// Takes the character at this position and returns the next position.
    fn one(&mut self, c: char, at: usize) -> usize {
        let next = at + c.len_utf8();
        if matches!(c, '\\' | '$')
            && !(self.in_code || self.is_exact)
            && let Some((inner, length)) = formula(self.rest(at))
        {
            self.out.extend([" ", &*own(&math(inner)), " "]);
            return at + length;
        }
        match c {
            '`' => {
                self.in_code = !self.in_code;
                at + run(self.rest(at), '`')
            }
            _ if self.in_code => self.keep(c, next),
            '\\' | '<' | '&' if self.is_exact => self.keep(c, next),
            '\\' => match self.rest(next).chars().next() {
                Some(escaped) if escaped.is_ascii_punctuation() && !self.is_in_path() => {
                    self.keep(escaped, next + escaped.len_utf8())
                }
                _ => self.keep(c, next),
            },
            '*' | '_' => self.emphasis(c, at),
            '~' => self.strike(at),
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

    /// The text, with the words for everything that is still open.
    fn finish(mut self) -> String {
        while let Some(address) = self.leads.pop() {
            self.leads_to(address);
        }
        self.out
    }

    fn leads_to(&mut self, address: &str) {
        self.out.extend([&*own(LEADS_TO), " ", address]);
    }

    fn strike_out(&mut self) {
        self.out.extend([&*own(STRUCK), " "]);
    }

    /// Whether the current word is a Windows path, in which a backslash is not an escape.
    fn is_in_path(&self) -> bool {
        let letters = self.out.chars().rev().take_while(|c| !c.is_whitespace());
        let length: usize = letters.take(MAX_PATH).map(char::len_utf8).sum();
        let word = self.out.get(self.out.len() - length..).unwrap_or_default();
        let mut bytes = word.bytes();
        word.starts_with('\\')
            || bytes.next().is_some_and(|it| it.is_ascii_alphabetic())
                && bytes.next() == Some(b':')
                && bytes.next().is_none_or(|it| it == b'\\')
    }

    fn keep(&mut self, c: char, next: usize) -> usize {
        self.out.push(c);
        next
    }

    /// Takes a run of asterisks or underscores: emphasis or text.
    fn emphasis(&mut self, mark: char, at: usize) -> usize {
        let length = run(self.rest(at), mark);
        if self.emphasis.binary_search(&at).is_err() {
            self.out.extend(std::iter::repeat_n(mark, length));
        } else if self.out.ends_with(|c: char| c.is_ascii_digit())
            && self.rest(at + length).starts_with(|c: char| c.is_ascii_digit())
        {
            // Keep two numbers apart.
            self.out.push(' ');
        }
        at + length
    }

    /// Takes tildes. Around text they strike it out, which is said. Other tildes are text.
    fn strike(&mut self, at: usize) -> usize {
        let length = run(self.rest(at), '~');
        let next = at + length;
        let before = self.raw.get(..at).and_then(|it| it.chars().next_back());
        let mark = match length {
            // In a command it could be a folder.
            1 if !self.is_exact => "~",
            2 => "~~",
            _ => "",
        };
        if !mark.is_empty() && self.struck == Some(mark) {
            self.struck = None;
            self.out.push_str(&own(STRUCK_END));
        } else if self.struck.is_none() && opens_strike(mark, before, self.rest(next)) {
            self.struck = Some(mark);
            self.strike_out();
        } else {
            self.out.extend(std::iter::repeat_n('~', length));
        }
        next
    }

    fn open(&mut self, is_picture: bool) {
        if self.brackets.len() < MAX_BRACKETS {
            self.brackets.push((self.out.len(), is_picture));
        }
        self.out.push('[');
    }

    /// Takes a closing bracket. It ends a link if an address or a reference follows.
    fn close(&mut self, next: usize) -> usize {
        let Some((from, is_picture)) = self.brackets.pop() else { return self.keep(']', next) };
        let rest = self.rest(next);
        let target = if rest.starts_with('(') {
            let end = self.closing(next);
            let inside = end.and_then(|end| self.raw.get(next + 1..end));
            inside.and_then(LinkTarget::of).zip(end.map(|end| end + 1))
        } else if let Some(name) = rest.strip_prefix('[').filter(|_| !self.is_index(from)) {
            let length = cut(name, MAX_REFERENCE).find(']');
            let name = length.and_then(|length| name.get(..length));
            name.map(LinkTarget::Reference).zip(length.map(|length| next + 1 + length + 1))
        } else {
            None
        };
        let Some((target, end)) = target else { return self.keep(']', next) };
        let text = self.out.split_off(from.min(self.out.len()));
        let text = text.strip_prefix('[').unwrap_or(&text);
        self.link(text.trim(), &target, is_picture);
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

    /// Writes a link or a picture: its text, and whatever distinguishes it from another one with the same text.
    fn link(&mut self, text: &str, target: &LinkTarget<'_>, is_picture: bool) {
        if is_picture {
            self.out.extend([&*own(text::PICTURE), if text.is_empty() { "" } else { ": " }]);
        }
        self.out.push_str(text);
        match *target {
            LinkTarget::Reference("") => {}
            LinkTarget::Reference(name) => self.out.extend([&*own(text::BY_REFERENCE), " ", name]),
            LinkTarget::Address(address, _) if names(text, address) => {}
            LinkTarget::Address(address, _) if text.is_empty() => {
                self.out.extend([if is_picture { " " } else { "" }, address]);
            }
            LinkTarget::Address(address, _) if is_picture => self.out.extend([", ", address]),
            LinkTarget::Address(address, _) => self.leads_to(address),
        }
        if let LinkTarget::Address(_, title) = target
            && !title.is_empty()
        {
            self.out.extend([&*own(text::TITLED), " ", title]);
        }
    }

    /// Takes an angle bracket. A tag is removed, an address loses its brackets, and anything else is text.
    fn tag(&mut self, at: usize) -> usize {
        let after_word = self.out.ends_with(|c: char| c.is_alphanumeric() || c == ':');
        let Some((tag, length)) = tag(self.rest(at), after_word) else {
            return self.keep('<', at + 1);
        };
        match tag {
            HtmlTag::Mark => {}
            HtmlTag::Break => self.out.push(' '),
            HtmlTag::Quote => self.out.push('"'),
            HtmlTag::Above => self.out.extend([" ", &*own(text::SUPERSCRIPT), " "]),
            HtmlTag::Struck => {
                self.struck_tags += 1;
                self.strike_out();
            }
            HtmlTag::StruckEnd if self.struck_tags == 0 => return self.keep('<', at + 1),
            HtmlTag::StruckEnd => {
                self.struck_tags -= 1;
                self.out.push_str(&own(STRUCK_END));
            }
            HtmlTag::Link(address) => self.leads.push(address),
            HtmlTag::LinkEnd => {
                if let Some(address) = self.leads.pop() {
                    self.leads_to(address);
                }
            }
            HtmlTag::Picture { text, address } => {
                let target = LinkTarget::Address(address, "");
                self.link(text, &target, true);
            }
            HtmlTag::Address(address) => self.out.push_str(address),
        }
        at + length
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

/// The target of a link.
#[derive(Clone, Copy)]
enum LinkTarget<'t> {
    /// An address and its title.
    Address(&'t str, &'t str),
    /// The name of a later line that has the address.
    Reference(&'t str),
}

impl<'t> LinkTarget<'t> {
    /// The content of the brackets of a link, if it can be an address.
    fn of(inside: &'t str) -> Option<Self> {
        let inside = inside.trim();
        let (address, title) = inside.split_once(char::is_whitespace).unwrap_or((inside, ""));
        let title = title.trim();
        let marks = [('"', '"'), ('\'', '\''), ('(', ')')];
        let quoted = marks.iter().find_map(|(begin, end)| {
            title.strip_prefix(*begin).and_then(|it| it.strip_suffix(*end))
        });
        let title = if title.is_empty() { "" } else { quoted? };
        Some(LinkTarget::Address(address.trim_matches(['<', '>']), title))
    }
}

/// Whether a text is the complete address.
fn names(text: &str, address: &str) -> bool {
    let is_said = |said: String| said == text || link_said(text).is_some_and(|it| it == said);
    text == address || host(address).is_some() && link_said(address).is_some_and(is_said)
}

/// Whether struck-out text begins here: it is not blank, and the other half of the mark is near.
fn opens_strike(mark: &str, before: Option<char>, rest: &str) -> bool {
    let is_blank = |c: char| c.is_whitespace() || c == '~';
    if mark.is_empty() || rest.is_empty() || rest.starts_with(is_blank) {
        return false;
    }
    let within = cut(rest, MAX_STRUCK);
    let ends = |at: usize| {
        let (inner, end) = within.split_at(at);
        let after = end.get(mark.len()..).and_then(|it| it.chars().next());
        let is_free = after.is_none_or(|c| !(c == '~' || mark == "~" && c.is_alphanumeric()));
        is_free && !inner.ends_with(is_blank)
    };
    // A single tilde can also be a folder or mean "about".
    let is_word = before.is_some_and(|c| c.is_alphanumeric() || c == '/');
    !(mark == "~" && (is_word || rest.starts_with('/')))
        && within.match_indices(mark).take(8).any(|(at, _)| ends(at))
}

/// How often the mark is repeated at the beginning.
fn run(text: &str, mark: char) -> usize {
    text.chars().take_while(|c| *c == mark).count() * mark.len_utf8()
}

/// At most this many bytes of a text, cut between characters.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let end = match cluster_start(text, end) {
        0 => end,
        start => start,
    };
    text.get(..end).unwrap_or_default()
}
