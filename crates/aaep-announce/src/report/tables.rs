//! The tables of a report, with everything that its picture shows.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use aaep::Event;

use super::page::{Listening, escaped, moment};
use super::{behind_ms, milliseconds, seconds};
use crate::english::{asks, report};
use crate::rehearsal::{RehearsedAsk, RehearsedUtterance};
use crate::words::{cut, exact, one_line};

/// The most rows of a table.
const MAX_ROWS: usize = 5000;
/// How much of an agent's name is in a table, in bytes.
const MAX_CELL: usize = 300;
/// Shorter silences are not listed.
pub(super) const SHORT_SILENCE: Duration = Duration::from_secs(10);

/// Writes a table. The first cell of each row is a heading. The cells are already escaped.
fn table(page: &mut String, caption: &str, columns: &[&str], rows: Vec<Vec<String>>) {
    let _ = write!(page, "<table>\n<caption>{caption}</caption>\n<thead><tr>");
    for column in columns {
        let _ = write!(page, "<th scope=\"col\">{column}</th>");
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    let more = rows.len().saturating_sub(MAX_ROWS);
    for row in rows.into_iter().take(MAX_ROWS) {
        page.push_str("<tr>");
        for (at, cell) in row.into_iter().enumerate() {
            let _ = match at {
                0 => write!(page, "<th scope=\"row\">{cell}</th>"),
                // A cell with a language has its own element.
                _ if cell.starts_with("<td") => write!(page, "{cell}"),
                _ => write!(page, "<td>{cell}</td>"),
            };
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table>\n");
    if more > 0 {
        paragraph(page, &report::more_rows(more));
    }
}

fn paragraph(page: &mut String, words: &str) {
    let _ = writeln!(page, "<p>{words}</p>");
}

pub(super) fn figures(page: &mut String, listening: &Listening<'_>) {
    let figures = listening.report.figures().into_iter();
    let rows = figures.map(|(name, value)| vec![name.to_owned(), escaped(&value)]).collect();
    let caption = report::figures_of(&escaped(listening.name));
    table(page, &caption, &report::FIGURE_COLUMNS, rows);
}

/// The times of the events of each agent, by name.
pub(super) fn by_agent(events: &[(Duration, Event)]) -> BTreeMap<String, Vec<Duration>> {
    let mut agents: BTreeMap<String, Vec<Duration>> = BTreeMap::new();
    for (at, event) in events {
        let producer = &event.envelope.producer;
        let name = producer.agent_name.as_deref().unwrap_or(&producer.agent_id);
        agents.entry(one_line(cut(name, MAX_CELL))).or_default().push(*at);
    }
    agents
}

pub(super) fn agents(page: &mut String, listening: &Listening<'_>) {
    let row = |(name, moments): (String, Vec<Duration>)| {
        let at = |it: Option<&Duration>| it.map(|it| moment(*it)).unwrap_or_default();
        vec![escaped(&name), moments.len().to_string(), at(moments.first()), at(moments.last())]
    };
    let rows = by_agent(listening.events).into_iter().map(row).collect();
    table(page, report::AGENTS, &report::AGENT_COLUMNS, rows);
}

pub(super) fn questions(page: &mut String, listening: &Listening<'_>) {
    if listening.rehearsal.asks.is_empty() {
        return paragraph(page, report::NOTHING_ASKED);
    }
    let row = |ask: &RehearsedAsk| {
        let first_word = match ask.first_word {
            Some(at) => report::after(&seconds(milliseconds(at.saturating_sub(ask.asked)))),
            None => report::NEVER_SAID.to_owned(),
        };
        let (over, how) = match ask.over {
            Some((at, ending)) => (moment(at), asks::ended(ending).to_owned()),
            None => (report::STILL_OPEN.to_owned(), report::NOT_RECORDED.to_owned()),
        };
        let question = escaped(&exact(&ask.question));
        vec![ask.number.to_string(), question, moment(ask.asked), first_word, over, how]
    };
    let rows = listening.rehearsal.asks.iter().map(row).collect();
    table(page, report::QUESTIONS, &report::QUESTION_COLUMNS, rows);
}

/// The silences that are long enough to be listed.
pub(super) fn long_silences(listening: &Listening<'_>) -> Vec<(Duration, Duration)> {
    let first = listening.events.first().map(|(at, _)| *at).unwrap_or_default();
    let last = listening.events.last().map(|(at, _)| *at).unwrap_or_default();
    let mut silences = super::silences(&listening.rehearsal.said, first, last);
    silences.retain(|(from, until)| until.saturating_sub(*from) >= SHORT_SILENCE);
    silences
}

pub(super) fn silences(page: &mut String, listening: &Listening<'_>) {
    let silences = long_silences(listening);
    if silences.is_empty() {
        return paragraph(page, &report::no_silence(SHORT_SILENCE.as_secs()));
    }
    let row = |(from, until): (Duration, Duration)| {
        vec![moment(from), moment(until), seconds(milliseconds(until.saturating_sub(from)))]
    };
    let caption = report::silences(SHORT_SILENCE.as_secs());
    let rows = silences.into_iter().map(row).collect();
    table(page, &caption, &report::SILENCE_COLUMNS, rows);
}

pub(super) fn transcript(page: &mut String, number: usize, listening: &Listening<'_>) {
    if listening.rehearsal.said.is_empty() {
        return paragraph(page, report::NOTHING_SAID);
    }
    let row = |said: &RehearsedUtterance| {
        let how = if said.is_whole { report::SAID_WHOLE } else { report::SAID_IN_PART };
        vec![
            moment(said.began),
            seconds(behind_ms(said)),
            report::kind(said.utterance.kind).to_owned(),
            words(said),
            how.to_owned(),
        ]
    };
    let rows = listening.rehearsal.said.iter().map(row).collect();
    let _ = writeln!(
        page,
        "<div class=\"wide\" role=\"region\" aria-label=\"{}\" tabindex=\"0\">",
        report::said_in_recording(number)
    );
    table(page, report::SAID_IN_ORDER, &report::SAID_COLUMNS, rows);
    page.push_str("</div>\n");
}

/// A table cell with words, their language and their direction.
fn words(said: &RehearsedUtterance) -> String {
    let language = said.utterance.language.as_ref();
    let language = language.map(|it| format!(" lang=\"{}\"", escaped(it.as_str())));
    let direction = if said.utterance.is_right_to_left { " dir=\"rtl\"" } else { "" };
    let words = escaped(&said.utterance.words);
    format!("<td{}{direction}>{words}</td>", language.unwrap_or_default())
}
