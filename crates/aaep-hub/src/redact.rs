//! Removes secrets from events before anyone hears or stores them (T5 in §10.2.2).
//!
//! One pass over the text finds out whether any pattern matches; ordinary text ends there. Matches are
//! replaced by `[redacted]`, repeatedly until nothing matches, so that redacting twice changes nothing more.
//! All matching takes time in proportion to the text.
//!
//! Card numbers, US social security numbers and IBANs are redacted too, except in asks: there the account
//! number may be what the person consents to, and the person must hear all of it.
//!
//! Limits: it cannot find a secret that has no known form and no name next to it, nor a secret that is split
//! between two streamed chunks so that neither half looks like one.

mod event;
mod judge;
mod numbers;
mod pattern;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use regex::{Captures, Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use serde::Deserialize;

pub use event::MAX_REDACT_DEPTH;
use numbers::NumberSearch;

/// The text that replaces a secret.
pub const REDACTED: &str = "[redacted]";
/// The most patterns, and the most exceptions, that may be configured.
pub const MAX_PATTERNS: usize = 64;
/// The longest configured pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 1024;
/// The memory limit for the compiled patterns.
const MAX_COMPILED_BYTES: usize = 16 * 1024 * 1024;
/// The most passes over a text. A text that still changes after them is redacted as a whole.
const MAX_PASSES: usize = 8;

/// The table `[redact]`: what to redact beyond the built-in patterns, and what to keep.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RedactConfig {
    /// Regular expressions for more secrets. With a group named `secret`, only that group is replaced.
    pub patterns: Vec<String>,
    /// Regular expressions for text that is not secret. A match that one of them matches in full is kept.
    pub exceptions: Vec<String>,
    /// Whether payment card numbers are redacted.
    pub card_numbers: bool,
    /// Whether US social security numbers are redacted.
    pub social_security_numbers: bool,
    /// Whether international bank account numbers are redacted.
    pub ibans: bool,
}

impl Default for RedactConfig {
    fn default() -> Self {
        RedactConfig {
            patterns: Vec::new(),
            exceptions: Vec::new(),
            card_numbers: true,
            social_security_numbers: true,
            ibans: true,
        }
    }
}

/// Removes secrets from text.
#[derive(Debug)]
pub struct Redactor {
    /// All patterns at once, to find out which ones to try.
    set: RegexSet,
    rules: Vec<RedactRule>,
    numbers: NumberSearch,
    exceptions: RegexSet,
}

#[derive(Debug)]
struct RedactRule {
    regex: Regex,
    /// Decides whether a match is a secret, where the pattern alone cannot.
    judge: fn(&Captures<'_>) -> bool,
    has_group: bool,
}

/// Which kinds of secrets are searched for in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SecretSearch {
    /// Keys and passwords only, because the text is part of an ask.
    Secrets,
    /// Personal numbers too.
    All,
    /// Personal numbers too, and nine digits are a social security number because the name of the field says
    /// so.
    NamedSocialSecurity,
}

/// How long a replacement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplacementFit {
    /// The marker, whatever its length.
    Marker,
    /// As many characters as before, because positions in a streamed output count them (§4.3.3).
    SameLength,
}

impl Redactor {
    /// Compiles the built-in patterns and those of the configuration.
    pub fn new(config: &RedactConfig) -> Result<Self, RedactError> {
        if config.patterns.len() > MAX_PATTERNS || config.exceptions.len() > MAX_PATTERNS {
            return Err(RedactError::TooMany);
        }
        let mut sources: Vec<&str> = pattern::BUILT_IN.iter().map(|it| it.regex).collect();
        let mut judges: Vec<fn(&Captures<'_>) -> bool> =
            pattern::BUILT_IN.iter().map(|it| it.judge).collect();
        for source in &config.patterns {
            check_pattern(source)?;
            sources.push(source);
            judges.push(|_| true);
        }
        let rule = |(source, judge): (&&str, fn(&Captures<'_>) -> bool)| {
            let built = RegexBuilder::new(source).size_limit(MAX_COMPILED_BYTES).build();
            let regex = built.map_err(|_| RedactError::Pattern((*source).to_owned()))?;
            let has_group = regex.capture_names().flatten().any(|name| name == "secret");
            Ok(RedactRule { regex, judge, has_group })
        };
        let rules = sources.iter().zip(judges).map(rule).collect::<Result<Vec<RedactRule>, _>>()?;
        for exception in &config.exceptions {
            // Each exception is compiled alone first: an unbalanced bracket would escape the anchors.
            if exception.len() > MAX_PATTERN_BYTES || Regex::new(exception).is_err() {
                return Err(RedactError::Pattern(exception.clone()));
            }
        }
        let exceptions: Vec<String> =
            config.exceptions.iter().map(|it| format!(r"\A(?:{it})\z")).collect();
        let numbers = NumberSearch {
            cards: config.card_numbers,
            social_security: config.social_security_numbers,
            ibans: config.ibans,
        };
        Ok(Redactor { set: set(&sources)?, rules, numbers, exceptions: set(&exceptions)? })
    }

    /// The text without its secrets, or the same text if it has none.
    pub fn redact_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redact(text, ReplacementFit::Marker, SecretSearch::All)
    }

    /// Searches the text as it will be delivered, in Normalization Form C (ruling 34).
    fn redact<'t>(&self, text: &'t str, fit: ReplacementFit, seek: SecretSearch) -> Cow<'t, str> {
        let told = composed(text);
        match self.redact_composed(&told, fit, seek) {
            redacted if redacted == told => Cow::Borrowed(text),
            redacted => Cow::Owned(redacted.into_owned()),
        }
    }

    fn redact_composed<'t>(
        &self,
        text: &'t str,
        fit: ReplacementFit,
        seek: SecretSearch,
    ) -> Cow<'t, str> {
        let mut current = Cow::Borrowed(text);
        for _ in 0..MAX_PASSES {
            let spans = self.spans(&current, seek);
            if spans.is_empty() {
                return current;
            }
            current = Cow::Owned(replace(&current, &spans, fit));
        }
        if self.spans(&current, seek).is_empty() {
            return current;
        }
        let mut whole = String::new();
        fit.push(&mut whole, text);
        Cow::Owned(whole)
    }

    /// The positions of the secrets in a text, sorted and without overlaps. Earlier replacements are kept,
    /// and the text on each side of them is searched separately.
    fn spans(&self, text: &str, seek: SecretSearch) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        if !self.set.is_match(text) && (seek == SecretSearch::Secrets || !has_digit(text)) {
            return spans;
        }
        let mut from = 0;
        let markers = text.match_indices(REDACTED).map(|(at, _)| at);
        for end in markers.chain([text.len()]) {
            self.spans_between(&text[from..end], from, seek, &mut spans);
            from = (end + REDACTED.len()).min(text.len());
        }
        spans.sort_by_key(|span| (span.start, span.end));
        spans.dedup_by(|next, before| {
            let is_joined = next.start <= before.end;
            if is_joined {
                before.end = before.end.max(next.end);
            }
            is_joined
        });
        spans
    }

    fn spans_between(
        &self,
        text: &str,
        offset: usize,
        seek: SecretSearch,
        spans: &mut Vec<Range<usize>>,
    ) {
        if seek != SecretSearch::Secrets {
            let found = self.numbers.find(text, seek == SecretSearch::NamedSocialSecurity);
            let is_meant = |span: &Range<usize>| !self.exceptions.is_match(&text[span.clone()]);
            let spans_of_text = found.into_iter().filter(is_meant);
            spans.extend(spans_of_text.map(|it| offset + it.start..offset + it.end));
        }
        for number in self.set.matches(text) {
            let rule = &self.rules[number];
            for captures in rule.regex.captures_iter(text) {
                let group = if rule.has_group { captures.name("secret") } else { captures.get(0) };
                let Some(found) = group else { continue };
                let secret = found.as_str();
                // The result of a same-length replacement is not a secret.
                let is_blank = secret.chars().all(|it| it == '*' || it.is_whitespace());
                let is_secret = !is_blank && (rule.judge)(&captures);
                if is_secret && !self.exceptions.is_match(secret) {
                    spans.push(offset + found.start()..offset + found.end());
                }
            }
        }
    }
}

impl ReplacementFit {
    fn push(self, to: &mut String, secret: &str) {
        let chars = secret.chars().count();
        match self {
            ReplacementFit::Marker => to.push_str(REDACTED),
            ReplacementFit::SameLength if chars < REDACTED.len() => {
                to.extend(std::iter::repeat_n('*', chars));
            }
            ReplacementFit::SameLength => {
                to.push_str(REDACTED);
                to.extend(std::iter::repeat_n(' ', chars - REDACTED.len()));
            }
        }
    }
}

fn replace(text: &str, spans: &[Range<usize>], fit: ReplacementFit) -> String {
    let mut replaced = String::with_capacity(text.len() + REDACTED.len());
    let mut from = 0;
    for span in spans {
        replaced.push_str(&text[from..span.start]);
        fit.push(&mut replaced, &text[span.clone()]);
        from = span.end;
    }
    replaced.push_str(&text[from..]);
    replaced
}

/// Replaces the only characters that become ASCII characters in Normalization Form C, one for one.
fn composed(text: &str) -> Cow<'_, str> {
    const LIKE_ASCII: [(char, &str); 3] = [('\u{212a}', "K"), ('\u{37e}', ";"), ('\u{1fef}', "`")];
    LIKE_ASCII.iter().fold(Cow::Borrowed(text), |text, (c, ascii)| {
        if text.contains(*c) { Cow::Owned(text.replace(*c, ascii)) } else { text }
    })
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

fn set<S: AsRef<str>>(sources: &[S]) -> Result<RegexSet, RedactError> {
    let built = RegexSetBuilder::new(sources).size_limit(MAX_COMPILED_BYTES).build();
    built.map_err(|_| RedactError::TooMany)
}

/// Whether a configured pattern can be used.
fn check_pattern(source: &str) -> Result<(), RedactError> {
    let wrong = || RedactError::Pattern(source.to_owned());
    if source.len() > MAX_PATTERN_BYTES {
        return Err(wrong());
    }
    let regex = RegexBuilder::new(source).size_limit(MAX_COMPILED_BYTES).build();
    if regex.map_err(|_| wrong())?.is_match("") {
        return Err(RedactError::MatchesNothing(source.to_owned()));
    }
    Ok(())
}

/// Why a redaction configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedactError {
    /// A pattern or an exception is not a valid regular expression, or is too long or too large.
    Pattern(String),
    /// A pattern matches the empty text, so it would match everywhere.
    MatchesNothing(String),
    /// There are too many patterns or exceptions.
    TooMany,
}

impl fmt::Display for RedactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RedactError::Pattern(source) => write!(
                f,
                "\"{}\" in the table redact is not a valid regular expression, or is too large. Correct it.",
                aaep::printable(source)
            ),
            RedactError::MatchesNothing(source) => write!(
                f,
                "\"{}\" in the table redact fits even where there is nothing. Make it ask for something.",
                aaep::printable(source)
            ),
            RedactError::TooMany => write!(
                f,
                "The table redact has more than {MAX_PATTERNS} patterns or exceptions, or too large ones. Remove some."
            ),
        }
    }
}

impl std::error::Error for RedactError {}

#[cfg(test)]
mod tests;
