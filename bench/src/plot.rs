//! Line plots over a logarithmic scale, as SVG that can be read without sight and without colours.
//!
//! Drawn by hand because plotting crates draw much more and describe nothing. Every picture has a
//! title and a description with all its numbers, and lines differ by their dashes, their marks and
//! their names.

use std::fmt::Write as _;

use crate::table::number_text;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 60.0;

/// The number of steps of the vertical scale.
const STEPS: u32 = 5;

/// The smallest distance between the names of two lines.
const LINE_HEIGHT: f64 = 18.0;

const DASHES: [&str; 4] = ["none", "10 4", "3 3", "12 4 3 4"];

/// One picture with several lines.
pub(crate) struct LinePlot {
    pub(crate) title: String,
    /// The labels of the horizontal and the vertical scale.
    pub(crate) across: &'static str,
    pub(crate) upright: &'static str,
    pub(crate) lines: Vec<PlotLine>,
}

/// One line and its name.
pub(crate) struct PlotLine {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

impl LinePlot {
    /// Describes the whole picture in words.
    pub(crate) fn description(&self) -> String {
        let mut text = format!("{} by {}.", self.upright, self.across);
        for line in &self.lines {
            let points = line.points.iter();
            let points: Vec<String> =
                points.map(|(x, y)| format!("{} at {}", number_text(*y), whole(*x))).collect();
            // Writing to a string cannot fail.
            let _ = write!(text, " {}: {}.", line.name, points.join(", "));
        }
        text
    }

    pub(crate) fn to_svg(&self) -> String {
        let frame = PlotFrame::of(self);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             aria-labelledby=\"title description\" font-family=\"sans-serif\" font-size=\"14\">\n\
             <title id=\"title\">{}</title>\n<desc id=\"description\">{}</desc>\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n",
            escaped(&self.title),
            escaped(&self.description()),
        );
        svg.push_str(&text(LEFT, 28.0, "start", &self.title));
        svg.push_str(&text(LEFT, HEIGHT - 14.0, "start", self.across));
        svg.push_str(&text(8.0, TOP - 8.0, "start", self.upright));
        frame.scales(&mut svg);
        let mut named = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            svg.push_str(&drawn(line, at, &frame));
            if let Some((_, y)) = line.points.last() {
                named.push((frame.y(*y), line.name.as_str()));
            }
        }
        named.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut free = TOP;
        for (y, name) in named {
            let y = y.max(free);
            svg.push_str(&text(WIDTH - RIGHT + 12.0, y + 5.0, "start", name));
            free = y + LINE_HEIGHT;
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// Maps numbers to positions in the picture.
struct PlotFrame {
    across: Vec<f64>,
    least_log: f64,
    span_log: f64,
    most: f64,
}

impl PlotFrame {
    fn of(plot: &LinePlot) -> Self {
        let points = || plot.lines.iter().flat_map(|line| &line.points);
        let mut across: Vec<f64> = points().map(|(x, _)| *x).collect();
        across.sort_by(f64::total_cmp);
        across.dedup();
        let least_log = across.first().map_or(0.0, |it| it.ln());
        let span = across.last().map_or(0.0, |it| it.ln()) - least_log;
        let most = points().map(|(_, y)| *y).filter(|y| y.is_finite()).fold(0.0, f64::max);
        PlotFrame {
            across,
            least_log,
            span_log: if span > 0.0 { span } else { 1.0 },
            most: if most > 0.0 { most * 1.05 } else { 1.0 },
        }
    }

    fn scales(&self, svg: &mut String) {
        for step in 0..=STEPS {
            let value = self.most * f64::from(step) / f64::from(STEPS);
            let y = self.y(value);
            svg.push_str(&stroke((LEFT, y), (WIDTH - RIGHT, y), "lightgrey"));
            svg.push_str(&text(LEFT - 8.0, y + 5.0, "end", &short(value)));
        }
        for x in &self.across {
            let at = self.x(*x);
            svg.push_str(&stroke((at, HEIGHT - BOTTOM), (at, HEIGHT - BOTTOM + 6.0), "black"));
            svg.push_str(&text(at, HEIGHT - BOTTOM + 22.0, "middle", &whole(*x)));
        }
    }

    fn x(&self, value: f64) -> f64 {
        let part = (value.ln() - self.least_log) / self.span_log;
        LEFT + 10.0 + part * (WIDTH - LEFT - RIGHT - 20.0)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - (value / self.most).clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM)
    }
}

fn drawn(line: &PlotLine, at: usize, frame: &PlotFrame) -> String {
    let places: Vec<(f64, f64)> = line
        .points
        .iter()
        .filter(|(_, y)| y.is_finite())
        .map(|(x, y)| (frame.x(*x), frame.y(*y)))
        .collect();
    let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let dashes = DASHES.get(at % DASHES.len()).copied().unwrap_or("none");
    let mut svg = format!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"black\" stroke-width=\"2\" \
         stroke-dasharray=\"{dashes}\"/>\n",
        path.join(" ")
    );
    for place in places {
        svg.push_str(&mark(at, place));
    }
    svg
}

/// A different mark for each line: a disc, a square, a triangle, a ring.
fn mark(at: usize, (x, y): (f64, f64)) -> String {
    match at % 4 {
        0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"/>\n"),
        1 => {
            let (x, y) = (x - 5.0, y - 5.0);
            format!("<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"10\" height=\"10\"/>\n")
        }
        2 => {
            let (low, left, right, high) = (y + 5.0, x - 6.0, x + 6.0, y - 6.0);
            format!("<path d=\"M{left:.1} {low:.1}H{right:.1}L{x:.1} {high:.1}Z\"/>\n")
        }
        _ => format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"white\" stroke=\"black\" \
             stroke-width=\"2\"/>\n"
        ),
    }
}

fn stroke((x1, y1): (f64, f64), (x2, y2): (f64, f64), colour: &str) -> String {
    format!(
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>\n"
    )
}

fn text(x: f64, y: f64, anchor: &str, words: &str) -> String {
    let words = escaped(words);
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>\n")
}

fn whole(number: f64) -> String {
    format!("{number:.0}")
}

/// Formats a number for a scale.
fn short(number: f64) -> String {
    if number >= 1e6 {
        format!("{:.1} million", number / 1e6)
    } else if number >= 10.0 {
        whole(number)
    } else {
        format!("{number:.1}")
    }
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> LinePlot {
        let line = |name: &str, points: &[(f64, f64)]| PlotLine {
            name: name.to_owned(),
            points: points.to_vec(),
        };
        LinePlot {
            title: "Rate <SSE>".to_owned(),
            across: "subscribers",
            upright: "deliveries a second",
            lines: vec![
                line("the hub", &[(100.0, 5.0), (1000.0, 4.0)]),
                line("the limit", &[(100.0, 6.5), (1000.0, 4.0)]),
            ],
        }
    }

    #[test]
    fn everything_that_is_seen_is_also_said() {
        let svg = plot().to_svg();
        assert!(svg.contains("<title id=\"title\">Rate &lt;SSE&gt;</title>"));
        assert!(svg.contains("the hub: 5 at 100, 4 at 1000."));
        assert!(svg.contains("the limit: 6.50 at 100, 4 at 1000."));
        assert!(svg.contains("role=\"img\" aria-labelledby=\"title description\""));
    }

    #[test]
    fn lines_differ_in_more_than_colour_and_their_names_do_not_cover_each_other() {
        let svg = plot().to_svg();
        assert!(svg.contains("stroke-dasharray=\"none\""));
        assert!(svg.contains("stroke-dasharray=\"10 4\""));
        let heights: Vec<f64> = svg
            .lines()
            .filter(|line| line.contains(">the hub<") || line.contains(">the limit<"))
            .filter_map(|line| line.split("y=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect();
        assert_eq!(heights.len(), 2);
        assert!((heights[0] - heights[1]).abs() >= LINE_HEIGHT, "{heights:?}");
    }

    #[test]
    fn a_plot_without_points_or_with_invalid_numbers_is_still_well_formed() {
        let mut plot = plot();
        plot.lines[0].points = vec![(100.0, f64::INFINITY), (100.0, 0.0)];
        plot.lines[1].points.clear();
        let svg = plot.to_svg();
        let drawn = svg.split("</desc>").nth(1).unwrap_or_default();
        assert!(!drawn.is_empty() && !drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }
}
