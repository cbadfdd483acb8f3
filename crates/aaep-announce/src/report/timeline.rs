//! The timeline of a report as a picture, with lanes for agents, utterances, questions and silences.
//!
//! The number of shapes in a lane is limited. Lanes are distinguished by name and position, and a first word by its
//! shape; colour has no meaning.

use std::fmt::Write as _;
use std::time::Duration;

use super::page::{Listening, escaped, moment};
use super::tables::{by_agent, long_silences};
use crate::english::report;
use crate::words::cut;

/// Where the time axis begins, and how wide it is, in units of the picture.
const LEFT: u64 = 170;
const WIDTH: u64 = 810;
/// The height of a lane.
const LANE: u64 = 30;
/// How many agents have their own lane.
const MAX_AGENT_LANES: usize = 6;
/// How many questions that are open at the same time are drawn below each other.
const MAX_QUESTION_LANES: usize = 4;
/// How many questions are drawn.
const MAX_QUESTIONS_DRAWN: usize = 400;
/// How much of an agent's name is in the picture, in bytes.
const MAX_NAME: usize = 20;
/// The most times that are written below the picture.
const MAX_TIMES: u64 = 8;

struct TimelinePicture {
    shapes: String,
    start: Duration,
    length: Duration,
    lanes: u64,
}

/// Draws the timeline.
pub(super) fn picture(page: &mut String, number: usize, listening: &Listening<'_>) {
    let start = listening.events.first().map(|(at, _)| *at).unwrap_or_default();
    let last = listening.events.last().map(|(at, _)| *at).unwrap_or_default();
    let last = listening.rehearsal.said.iter().map(|it| it.ended).fold(last, Duration::max);
    let length = last.saturating_sub(start).max(Duration::from_millis(1));
    let mut picture = TimelinePicture { shapes: String::new(), start, length, lanes: 0 };
    picture.agents(listening);
    let said = listening.rehearsal.said.iter().map(|it| (it.began, it.ended));
    picture.lane(report::SAID_LANE, said);
    picture.questions(listening);
    picture.lane(report::SILENCE_LANE, long_silences(listening).into_iter());
    picture.times();
    let height = (picture.lanes + 1) * LANE;
    let figures = listening.report;
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "<div class=\"wide\" role=\"region\" aria-label=\"{region}\" tabindex=\"0\">\n\
         <svg viewBox=\"0 0 1000 {height}\" role=\"img\" aria-labelledby=\"title-{number} desc-{number}\">\n\
         <title id=\"title-{number}\">{name}</title>\n\
         <desc id=\"desc-{number}\">{described}</desc>\n",
        region = report::timeline_of_recording(number),
        name = report::timeline_of(&escaped(listening.name)),
        described = report::timeline_described(
            &moment(picture.length),
            figures.events,
            figures.announcements,
            figures.asks,
        ),
    );
    page.push_str(&picture.shapes);
    page.push_str("</svg>\n</div>\n");
}

impl TimelinePicture {
    /// The horizontal position of a point in time.
    fn x(&self, at: Duration) -> u64 {
        let part = at.saturating_sub(self.start).min(self.length).as_millis();
        let all = self.length.as_millis().max(1);
        LEFT + u64::try_from(part * u128::from(WIDTH) / all).unwrap_or(WIDTH)
    }

    /// Starts the next lane with this name and returns its vertical position.
    fn name(&mut self, name: &str) -> u64 {
        let top = self.lanes * LANE;
        self.lanes += 1;
        let _ = writeln!(self.shapes, "<text x=\"4\" y=\"{}\">{}</text>", top + 20, escaped(name));
        top
    }

    /// Draws a lane with a mark for each span. Marks that touch are joined.
    fn lane(&mut self, name: &str, spans: impl Iterator<Item = (Duration, Duration)>) {
        let top = self.name(name) + 7;
        let mut marks: Vec<(u64, u64)> = spans
            .map(|(from, until)| {
                let from = self.x(from);
                // Leave a gap before the next one if there is room.
                (from, self.x(until).saturating_sub(1).max(from + 2))
            })
            .collect();
        marks.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (from, until) in marks {
            match joined.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(until),
                _ => joined.push((from, until)),
            }
        }
        for (from, until) in joined {
            let width = until - from;
            let _ = writeln!(
                self.shapes,
                "<rect class=\"full\" x=\"{from}\" y=\"{top}\" width=\"{width}\" height=\"16\"/>"
            );
        }
    }

    fn agents(&mut self, listening: &Listening<'_>) {
        let agents = by_agent(listening.events);
        let spans = |moments: &[Duration]| moments.iter().map(|it| (*it, *it)).collect::<Vec<_>>();
        for (name, moments) in agents.iter().take(MAX_AGENT_LANES) {
            self.lane(cut(name, MAX_NAME), spans(moments).into_iter());
        }
        let others: Vec<Duration> =
            agents.values().skip(MAX_AGENT_LANES).flatten().copied().collect();
        if !others.is_empty() {
            self.lane(report::OTHER_AGENTS_LANE, spans(&others).into_iter());
        }
    }

    /// Draws each question from when it was asked until it was over, in the first free lane.
    fn questions(&mut self, listening: &Listening<'_>) {
        let end = self.start.saturating_add(self.length);
        let mut lanes: Vec<Duration> = Vec::new();
        let top = self.name(report::QUESTIONS);
        for ask in listening.rehearsal.asks.iter().take(MAX_QUESTIONS_DRAWN) {
            let over = ask.over.map_or(end, |(at, _)| at);
            let lane = lanes.iter().position(|free| *free <= ask.asked).unwrap_or(lanes.len());
            let lane = lane.min(MAX_QUESTION_LANES - 1);
            match lanes.get_mut(lane) {
                Some(free) => *free = over.max(*free),
                None => lanes.push(over),
            }
            let (from, middle) = (self.x(ask.asked), top + lane as u64 * LANE + 15);
            let width = self.x(over).max(from + 4) - from;
            let top = middle - 8;
            let _ = writeln!(
                self.shapes,
                "<rect class=\"open\" x=\"{from}\" y=\"{top}\" width=\"{width}\" height=\"16\"/>"
            );
            if let Some(at) = ask.first_word.map(|at| self.x(at)) {
                let (above, below) = (middle - 7, middle + 7);
                let (left, right) = (at.saturating_sub(5), at + 5);
                let _ = writeln!(
                    self.shapes,
                    "<path class=\"full\" d=\"M{at} {above} L{right} {middle} L{at} {below} L{left} {middle} Z\"/>"
                );
            }
        }
        self.lanes += (lanes.len() as u64).saturating_sub(1);
    }

    /// Writes the times below the lanes.
    fn times(&mut self) {
        let (bottom, seconds) = (self.lanes * LANE, self.length.as_secs());
        let steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];
        let step = steps.into_iter().find(|step| seconds / step <= MAX_TIMES);
        let step = step.unwrap_or_else(|| (seconds / MAX_TIMES / 3600 + 1) * 3600);
        for at in (0..=seconds / step).map(|count| Duration::from_secs(count * step)) {
            let x = self.x(self.start.saturating_add(at));
            let text = moment(at);
            let text = text.trim_end_matches(".0");
            let _ = writeln!(
                self.shapes,
                "<line class=\"axis\" x1=\"{x}\" y1=\"0\" x2=\"{x}\" y2=\"{bottom}\"/>\n\
                 <text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{text}</text>",
                y = bottom + 20
            );
        }
    }
}
