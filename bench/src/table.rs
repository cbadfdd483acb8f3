//! What was measured, as lines of "label: value" that read well aloud, and the same as JSON.
//!
//! Each block is printed once, when it is complete; nothing is drawn twice and nothing has a colour.

use serde_json::{Value as Json, json};

/// One number and what it counts.
pub(crate) struct Amount {
    /// What it is among the values of its line; empty if there is only one.
    name: &'static str,
    number: f64,
    unit: &'static str,
}

impl Amount {
    pub(crate) fn new(name: &'static str, number: f64, unit: &'static str) -> Self {
        Amount { name, number, unit }
    }

    /// A number that needs no name beside its line's label.
    pub(crate) fn only(number: f64, unit: &'static str) -> Self {
        Amount::new("", number, unit)
    }

    /// How many times as fast the one that takes `one` is as the one that takes `other`.
    pub(crate) fn times(other: f64, one: f64) -> Self {
        Amount::only(other / one, "times as fast")
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

/// A number with as many digits as are worth hearing.
pub(crate) fn number_text(number: f64) -> String {
    let is_whole = number.fract() == 0.0;
    if number >= 100.0 || is_whole { format!("{number:.0}") } else { format!("{number:.2}") }
}

/// Lines that belong together under one title.
pub(crate) struct Block {
    title: String,
    lines: Vec<(String, Vec<Amount>)>,
}

impl Block {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Block { title: title.into(), lines: Vec::new() }
    }

    pub(crate) fn line(&mut self, label: impl Into<String>, amounts: Vec<Amount>) {
        self.lines.push((label.into(), amounts));
    }

    fn print(&self) {
        println!("\n{}", self.title);
        let width = self.lines.iter().map(|(label, _)| label.len() + 1).max().unwrap_or(0);
        for (label, amounts) in &self.lines {
            let texts: Vec<String> = amounts.iter().map(Amount::to_text).collect();
            println!("  {:width$} {}", format!("{label}:"), texts.join(", "));
        }
    }

    fn to_json(&self) -> Json {
        let line = |(label, amounts): &(String, Vec<Amount>)| {
            let amounts: Vec<Json> = amounts.iter().map(Amount::to_json).collect();
            json!({ "label": label, "amounts": amounts })
        };
        let lines: Vec<Json> = self.lines.iter().map(line).collect();
        json!({ "title": self.title, "lines": lines })
    }
}

/// What a number should be.
#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    AtMost(f64),
    Below(f64),
    AtLeast(f64),
}

impl Wanted {
    fn is_met(self, found: f64) -> bool {
        match self {
            Wanted::AtMost(limit) => found <= limit,
            Wanted::Below(limit) => found < limit,
            Wanted::AtLeast(limit) => found >= limit,
        }
    }

    fn to_text(self) -> String {
        match self {
            Wanted::AtMost(limit) => format!("at most {limit}"),
            Wanted::Below(limit) => format!("below {limit}"),
            Wanted::AtLeast(limit) => format!("at least {limit}"),
        }
    }
}

/// A number that this project wants to reach.
pub(crate) struct Target {
    pub(crate) what: &'static str,
    pub(crate) wanted: Wanted,
    pub(crate) unit: &'static str,
    /// The number of this run, if it was measured.
    pub(crate) found: Option<f64>,
}

impl Target {
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

/// Everything that a run says.
#[derive(Default)]
pub(crate) struct Report {
    blocks: Vec<Json>,
    notes: Vec<String>,
    targets: Vec<Json>,
}

impl Report {
    /// Prints a sentence.
    pub(crate) fn say(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        println!("{sentence}");
        self.notes.push(sentence);
    }

    /// Prints a block.
    pub(crate) fn add(&mut self, block: &Block) {
        block.print();
        self.blocks.push(block.to_json());
    }

    /// Prints which targets were met.
    pub(crate) fn judge(&mut self, targets: &[Target]) {
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
