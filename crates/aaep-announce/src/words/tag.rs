//! HTML tags that models write into prose. A tag that is not listed here is text, such as the type of a list.

use super::inline::cut;
use super::shorten::host;

/// The longest tag or address in angle brackets, in bytes.
const MAX_TAG: usize = 512;

/// Tags without words of their own.
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
    "strike",
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

/// Tags that separate words.
const BREAKS: &[&str] = &["br", "p", "li", "td", "th", "tr", "div", "hr", "dd", "dt"];

/// Attributes that only affect the appearance. A tag with any other attribute is text.
const LOOKS: &[&str] = &[
    "align", "border", "class", "colspan", "height", "id", "open", "rel", "rowspan", "start",
    "style", "target", "type", "width",
];

/// The meaning of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HtmlTag<'t> {
    /// No meaning.
    Mark,
    /// A separation between words.
    Break,
    /// The beginning or end of a quotation.
    Quote,
    /// Superscript text.
    Above,
    Struck,
    StruckEnd,
    /// The beginning of a link, with its address.
    Link(&'t str),
    LinkEnd,
    Picture {
        text: &'t str,
        address: &'t str,
    },
    /// An address in angle brackets.
    Address(&'t str),
}

/// The tag at the beginning of the text, and its length; `None` if it is text.
pub(super) fn tag(text: &str, after_word: bool) -> Option<(HtmlTag<'_>, usize)> {
    let inside = cut(text.strip_prefix('<')?, MAX_TAG);
    let end =
        inside.find(['>', '<', '\n']).filter(|end| inside.as_bytes().get(*end) == Some(&b'>'))?;
    let (inside, length) = (inside.get(..end)?, end + 2);
    if host(inside).is_some() || inside.starts_with("mailto:") {
        return Some((HtmlTag::Address(inside), length));
    }
    let is_end = inside.starts_with('/');
    let body = inside.trim_start_matches('/').trim_end_matches('/');
    let (name, rest) = body.split_once(' ').unwrap_or((body, ""));
    let name = TAGS.iter().find(|tag| name.eq_ignore_ascii_case(tag)).copied()?;
    // After a word it may be the type of a list.
    let is_clear = matches!(name, "br" | "del" | "strike" | "sup" | "sub");
    if after_word && !is_end && !is_clear {
        return None;
    }
    let attributes = TagAttributes::of(rest)?;
    let tag = match (name, is_end) {
        ("del" | "s" | "strike", false) => HtmlTag::Struck,
        ("del" | "s" | "strike", true) => HtmlTag::StruckEnd,
        ("a", false) if !attributes.href.is_empty() => HtmlTag::Link(attributes.href),
        ("a", true) => HtmlTag::LinkEnd,
        ("img", _) => HtmlTag::Picture { text: attributes.alt, address: attributes.src },
        ("sup", false) if after_word => HtmlTag::Above,
        ("q", _) => HtmlTag::Quote,
        _ if BREAKS.contains(&name) => HtmlTag::Break,
        _ => HtmlTag::Mark,
    };
    Some((tag, length))
}

/// The attributes of a tag that have words or an address.
#[derive(Debug, Default)]
struct TagAttributes<'t> {
    href: &'t str,
    src: &'t str,
    alt: &'t str,
}

impl<'t> TagAttributes<'t> {
    /// Reads the attributes; `None` if one of them may have a meaning.
    fn of(text: &'t str) -> Option<Self> {
        let mut attributes = TagAttributes::default();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let end = rest.find(['=', ' ']).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            let (value, after) = match after.strip_prefix('=') {
                Some(value) => quoted(value),
                None => ("", after),
            };
            match name.to_ascii_lowercase().as_str() {
                "href" => attributes.href = value,
                "src" => attributes.src = value,
                "alt" => attributes.alt = value,
                name if LOOKS.contains(&name) => {}
                _ => return None,
            }
            rest = after.trim_start();
        }
        Some(attributes)
    }
}

/// A value, in quotes or up to the next blank, and the text after it.
fn quoted(text: &str) -> (&str, &str) {
    let mark = text.chars().next().filter(|c| matches!(c, '"' | '\''));
    match mark.and_then(|mark| text.get(1..).and_then(|it| it.split_once(mark))) {
        Some(found) => found,
        None => text.split_at(text.find(' ').unwrap_or(text.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_says_what_it_means_and_anything_else_is_text() {
        assert_eq!(tag("<b>x", false), Some((HtmlTag::Mark, 3)));
        assert_eq!(tag("<del>x", true), Some((HtmlTag::Struck, 5)));
        assert_eq!(tag("<a href=\"u\" class='c'>x", false), Some((HtmlTag::Link("u"), 22)));
        let picture = HtmlTag::Picture { text: "a cat", address: "c.png" };
        assert_eq!(tag("<img alt=\"a cat\" src=c.png/>", false), Some((picture, 28)));
        for text in ["<b>", "<String>", "<a title=\"not\">", "< b", "<b", "<s>"] {
            assert_eq!(tag(text, true), None, "{text}");
        }
    }
}
