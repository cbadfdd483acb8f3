//! The report as a web page: one file without scripts, for every screen reader and every colour scheme.
//!
//! Everything in the picture is also in the tables. All text is escaped.

use std::fmt::Write as _;
use std::time::Duration;

use aaep::Event;

use super::tables::{agents, figures, questions, silences, transcript};
use super::{ListeningReport, timeline};
use crate::english::{self, report};
use crate::rehearsal::Rehearsal;

/// A recording, with its rehearsal and report.
#[derive(Debug, Clone, Copy)]
pub struct Listening<'a> {
    /// The name of the recording. Foreign text.
    pub name: &'a str,
    /// How it was listened to, such as the name of a profile.
    pub profile: &'a str,
    /// The events, each with its time, in order.
    pub events: &'a [(Duration, Event)],
    /// What would have been said.
    pub rehearsal: &'a Rehearsal,
    /// The figures.
    pub report: &'a ListeningReport,
    /// Other remarks, such as lines that could not be read. Foreign text.
    pub notes: &'a [String],
}

const HEAD: &str = r#"<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
"#;

const STYLE: &str = r"<style>
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #ffffff; --line: #6b6b6b; --mark: #1f4e8c; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #f0f0f0; --paper: #121212; --line: #9a9a9a; --mark: #9ec1ff; }
}
body { color: var(--ink); background: var(--paper); font: 1rem/1.5 sans-serif; margin: 0 auto; max-width: 70rem;
  padding: 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
caption { text-align: start; font-weight: bold; }
th, td { border: 1px solid var(--line); padding: 0.25rem 0.5rem; text-align: start; vertical-align: top; }
td { overflow-wrap: anywhere; }
th { overflow-wrap: break-word; }
.wide { overflow-x: auto; }
.wide:focus { outline: 3px solid var(--mark); }
svg { display: block; width: 100%; min-width: 44rem; }
svg text { fill: var(--ink); font: 13px sans-serif; }
.full { fill: var(--mark); }
.open { fill: none; stroke: var(--mark); stroke-width: 2; }
.axis { stroke: var(--line); }
@media (forced-colors: active) {
  svg { forced-color-adjust: none; }
  svg text, .full { fill: CanvasText; }
  .open, .axis { stroke: CanvasText; }
}
</style>
</head>
<body>
<main>
";

/// Makes a page about these recordings.
pub fn page(listenings: &[Listening<'_>]) -> String {
    let mut page = format!("<!doctype html>\n<html lang=\"{}\">\n{HEAD}", english::LANGUAGE);
    // Writing to a string cannot fail.
    let _ = writeln!(page, "<title>{}</title>", title(listenings));
    page.push_str(STYLE);
    let _ = writeln!(page, "<h1>{}</h1>\n<p>{}</p>", report::TITLE, report::INTRODUCTION);
    for (at, listening) in listenings.iter().enumerate() {
        section(&mut page, at.saturating_add(1), listening);
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

/// The title of the page: the name of its recording, or how many there are.
fn title(listenings: &[Listening<'_>]) -> String {
    match listenings {
        [one] => report::title_of_one(&escaped(one.name)),
        _ => report::title_of_several(listenings.len()),
    }
}

fn section(page: &mut String, number: usize, listening: &Listening<'_>) {
    let (name, profile) = (escaped(listening.name), escaped(listening.profile));
    let profile = report::profile(&profile, listening.report.is_good());
    let _ = write!(
        page,
        "<section aria-labelledby=\"recording-{number}\">\n<h2 id=\"recording-{number}\">{name}</h2>\n\
         <p>{profile}</p>\n"
    );
    if !listening.notes.is_empty() {
        heading(page, report::ABOUT_THE_RECORDING);
        page.push_str("<ul>\n");
        for note in listening.notes {
            let _ = writeln!(page, "<li>{}</li>", escaped(note));
        }
        page.push_str("</ul>\n");
    }
    heading(page, report::FIGURES);
    figures(page, listening);
    heading(page, report::TIMELINE);
    timeline::picture(page, number, listening);
    heading(page, report::TIMELINE_IN_WORDS);
    agents(page, listening);
    questions(page, listening);
    silences(page, listening);
    heading(page, report::WHAT_WAS_SAID);
    transcript(page, number, listening);
    page.push_str("</section>\n");
}

fn heading(page: &mut String, words: &str) {
    let _ = writeln!(page, "<h3>{words}</h3>");
}

/// Escapes text for the page. Characters that control or reorder text are escaped too.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in aaep::printable(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

/// A point in time as people write it, such as 1:05.3 or 1:01:05.3.
pub(super) fn moment(at: Duration) -> String {
    let (seconds, tenths) = (at.as_secs(), at.subsec_millis() / 100);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}.{tenths}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}.{tenths}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_shows_itself_and_nothing_else() {
        let hostile = "<script>alert(1)</script>\" onload='x' &amp; \u{202e}\u{1b}[2J";
        let shown = escaped(hostile);
        assert!(!shown.contains(['<', '>', '"', '\'', '\u{202e}', '\u{1b}']), "{shown}");
        assert!(shown.contains("&amp;amp;"), "{shown}");
    }

    #[test]
    fn moments_are_told_as_people_write_them() {
        assert_eq!(moment(Duration::from_millis(65_390)), "1:05.3");
        assert_eq!(moment(Duration::from_secs(3665)), "1:01:05.0");
    }
}
