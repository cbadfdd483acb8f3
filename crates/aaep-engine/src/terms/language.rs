//! Finds the available language that serves a requested one (§11.1.2, §11.1.3).
//!
//! It never guesses: `en-GB` does not serve a request for `en-US`, and there is no table of likely
//! scripts. The order of the requested languages, step 4 of §11.1.3, is handled by the caller's
//! loop.

use aaep::LanguageTag;

/// The best of the available tags for one requested tag: the same tag; a more specific one (`en-US`
/// for `en`, §11.1.2); one without its region; one without its script.
pub(super) fn best<'a>(
    asked: &LanguageTag,
    available: &'a [LanguageTag],
) -> Option<&'a LanguageTag> {
    let same = || available.iter().find(|tag| *tag == asked);
    let kind = || available.iter().find(|tag| is_kind_of(tag.as_str(), asked.as_str()));
    let shorter = || {
        fallbacks(asked)
            .iter()
            .find_map(|shorter| available.iter().find(|tag| is_same(tag.as_str(), shorter)))
    };
    same().or_else(kind).or_else(shorter)
}

/// Tags are compared without regard to case (RFC 5646 §2.1.1).
fn is_same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Whether one tag is the other with further subtags.
fn is_kind_of(narrow: &str, wide: &str) -> bool {
    narrow
        .split_at_checked(wide.len())
        .is_some_and(|(start, rest)| rest.starts_with('-') && is_same(start, wide))
}

/// The shorter tags that may be used, best first. Subtags are removed from the right, so the region
/// goes before the script. A tag with both may also lose only its script, `zh-Hant-TW` to `zh-TW`,
/// before only the bare language is left: that keeps more of what was requested.
fn fallbacks(asked: &LanguageTag) -> Vec<String> {
    let mut tags: Vec<String> = std::iter::successors(shorten(asked.as_str()), |tag| shorten(tag))
        .map(str::to_owned)
        .collect();
    if let (Some(_), Some(region)) = (asked.script(), asked.region()) {
        let before_the_bare_language = tags.len().saturating_sub(1);
        tags.insert(before_the_bare_language, format!("{}-{region}", asked.primary()));
    }
    tags
}

/// The tag without its last subtag, and without a single letter that would only introduce that
/// subtag.
fn shorten(tag: &str) -> Option<&str> {
    let (rest, _) = tag.rsplit_once('-')?;
    match rest.rsplit_once('-') {
        Some((shorter, letter)) if letter.len() == 1 => Some(shorter),
        None if rest.len() == 1 => None,
        _ => Some(rest),
    }
}
