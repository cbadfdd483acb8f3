//! The results as lines of "label: value" that are easy to follow when read aloud, and the same as JSON.
//!
//! Each block is printed once, when it is complete. Nothing is redrawn, and nothing uses colour.

use serde_json::{Value as Json, json};

/// One number with its name and unit.
pub(crate) struct NamedAmount {
    /// Its name among the values of its line; empty if there is only one.
    name: &'static str,
    number: f64,
    unit: &'static str,
}

impl NamedAmount {
    pub(crate) fn new(name: &'static str, number: f64, unit: &'static str) -> Self {
        NamedAmount { name, number, unit }
    }

    /// A number that needs no name besides its line's label.
    pub(crate) fn only(number: f64, unit: &'static str) -> Self {
        NamedAmount::new("", number, unit)
    }

    /// How many times as fast a subject that takes `one` is as one that takes `other`.
    pub(crate) fn times(other: f64, one: f64) -> Self {
        NamedAmount::only(other / one, "times as fast")
    }

    fn to_text(&self) -> String {
        let number = number_text(self.number);
        let space = if self.name.is_empty() { "" } else { " " };
        format!("{}{space}{number} {}", self.name, self.unit)
    }

    fn to_json(&self) -> Json {
        json!({ "name": self.name, "number": self.number, "unit": self.unit })
    }
}

/// Formats a number with no more digits than are useful to hear.
pub(crate) fn number_text(number: f64) -> String {
    let is_whole = number.fract() == 0.0;
    if number >= 100.0 || is_whole { format!("{number:.0}") } else { format!("{number:.2}") }
}

/// Lines that belong together under one title.
pub(crate) struct ReportBlock {
    title: String,
    lines: Vec<(String, Vec<NamedAmount>)>,
}

impl ReportBlock {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        ReportBlock { title: title.into(), lines: Vec::new() }
    }

    pub(crate) fn line(&mut self, label: impl Into<String>, amounts: Vec<NamedAmount>) {
        self.lines.push((label.into(), amounts));
    }

    fn print(&self) {
        println!("\n{}", self.title);
        let width = self.lines.iter().map(|(label, _)| label.len() + 1).max().unwrap_or(0);
        for (label, amounts) in &self.lines {
            let texts: Vec<String> = amounts.iter().map(NamedAmount::to_text).collect();
            println!("  {:width$} {}", format!("{label}:"), texts.join(", "));
        }
    }

    fn to_json(&self) -> Json {
        let line = |(label, amounts): &(String, Vec<NamedAmount>)| {
            let amounts: Vec<Json> = amounts.iter().map(NamedAmount::to_json).collect();
            json!({ "label": label, "amounts": amounts })
        };
        let lines: Vec<Json> = self.lines.iter().map(line).collect();
        json!({ "title": self.title, "lines": lines })
    }
}

/// The bound that a number should meet.
#[derive(Clone, Copy)]
pub(crate) enum TargetBound {
    AtMost(f64),
    Below(f64),
    AtLeast(f64),
}

impl TargetBound {
    fn is_met(self, found: f64) -> bool {
        match self {
            TargetBound::AtMost(limit) => found <= limit,
            TargetBound::Below(limit) => found < limit,
            TargetBound::AtLeast(limit) => found >= limit,
        }
    }

    fn to_text(self) -> String {
        match self {
            TargetBound::AtMost(limit) => format!("at most {limit}"),
            TargetBound::Below(limit) => format!("below {limit}"),
            TargetBound::AtLeast(limit) => format!("at least {limit}"),
        }
    }
}

/// A number that this project aims for.
pub(crate) struct BenchTarget {
    pub(crate) what: &'static str,
    pub(crate) wanted: TargetBound,
    pub(crate) unit: &'static str,
    /// The number measured in this run, if any.
    pub(crate) found: Option<f64>,
}

impl BenchTarget {
    fn verdict(&self) -> &'static str {
        match self.found {
            None => "not measured",
            Some(found) if self.wanted.is_met(found) => "met",
            Some(_) => "missed",
        }
    }

    pub(crate) fn to_text(&self) -> String {
        let wanted = self.wanted.to_text();
        let found = self
            .found
            .map(|found| format!(", found {} {}", number_text(found), self.unit))
            .unwrap_or_default();
        format!("{}, wanted {wanted} {}: {}{found}", self.what, self.unit, self.verdict())
    }

    fn to_json(&self) -> Json {
        json!({
            "what": self.what,
            "wanted": self.wanted.to_text(),
            "unit": self.unit,
            "found": self.found,
            "verdict": self.verdict(),
        })
    }
}

/// Everything that a run reports.
#[derive(Default)]
pub(crate) struct BenchReport {
    blocks: Vec<Json>,
    notes: Vec<String>,
    targets: Vec<Json>,
}

impl BenchReport {
    /// Prints a sentence.
    pub(crate) fn say(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        println!("{sentence}");
        self.notes.push(sentence);
    }

    /// Prints a block.
    pub(crate) fn add(&mut self, block: &ReportBlock) {
        block.print();
        self.blocks.push(block.to_json());
    }

    /// Prints which targets were met.
    pub(crate) fn judge(&mut self, targets: &[BenchTarget]) {
        println!("\nTargets in this run");
        for target in targets {
            println!("  {}", target.to_text());
            self.targets.push(target.to_json());
        }
    }

    pub(crate) fn to_json(&self) -> Json {
        json!({ "blocks": self.blocks, "notes": self.notes, "targets": self.targets })
    }
}
