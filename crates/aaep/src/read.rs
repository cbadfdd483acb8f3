//! Reading values into types while noting everything that is wrong (§3.9).
//!
//! A [`Field`] knows how to read itself from JSON and what its JSON Schema is, so the two cannot
//! drift apart. The [`Reader`] carries the mode, the place and the violations. Nothing here knows a
//! field by name.

use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::json::{Kind, Value, push_key};
use crate::violation::{Code, Severity, Violation};

/// As whom a message is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// As a producer must write it, and as a producer reads what subscribers send: every rule holds.
    #[default]
    Strict,
    /// As a subscriber reads a producer: what a newer or sloppier producer adds is kept and noted,
    /// and the message stands as long as all that it must have can be understood (§3.11, §12.6.1).
    Tolerant,
}

/// The most violations that are listed for one message; then [`Code::More`] says so.
pub const MAX_VIOLATIONS: usize = 64;

/// The bounds that a field of a message sets to its value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Least and greatest length of a string in characters, or size of a number.
    pub(crate) min: u64,
    pub(crate) max: u64,
    /// The same for the items of an array.
    pub(crate) min_items: usize,
    pub(crate) max_items: usize,
    pub(crate) unique: bool,
}

/// No bound at all.
pub(crate) const ANY: Bounds =
    Bounds { min: 0, max: u64::MAX, min_items: 0, max_items: usize::MAX, unique: false };

impl Bounds {
    /// How many items an array may have.
    pub(crate) const fn items(mut self, min: usize, max: usize) -> Self {
        self.min_items = min;
        self.max_items = max;
        self
    }

    /// No item twice.
    pub(crate) const fn unique(mut self) -> Self {
        self.unique = true;
        self
    }
}

/// From the least to the greatest length or number.
pub(crate) const fn between(min: u64, max: u64) -> Bounds {
    Bounds { min, max, ..ANY }
}

/// A type that a field of a message can have.
pub(crate) trait Field: Sized + Serialize {
    /// Reads the value, noting what is wrong; `None` when no value of this type is there.
    fn read<'t>(value: Value<'t, '_>, bounds: &Bounds, reader: &mut Reader<'t>) -> Option<Self>;

    /// The JSON Schema of the type under these bounds, without a description.
    fn schema(bounds: &Bounds) -> Json;
}

/// One step on the way to the place that is being read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step<'t> {
    Key(&'t str),
    Index(usize),
}

/// The state of a reading.
#[derive(Debug)]
pub(crate) struct Reader<'t> {
    mode: Mode,
    path: Vec<Step<'t>>,
    /// The section that defines what is being read.
    section: &'static str,
    /// How many of the things being read could be done without.
    dispensable: usize,
    violations: Vec<Violation>,
}

impl<'t> Reader<'t> {
    pub(crate) fn new(mode: Mode) -> Self {
        Reader {
            mode,
            path: Vec::with_capacity(4),
            section: "",
            dispensable: 0,
            violations: Vec::new(),
        }
    }

    pub(crate) fn is_tolerant(&self) -> bool {
        self.mode == Mode::Tolerant
    }

    pub(crate) fn violations(&self) -> &[Violation] {
        &self.violations
    }

    pub(crate) fn into_violations(self) -> Vec<Violation> {
        self.violations
    }

    /// Runs `read` one step deeper, with the section that defines what is there.
    pub(crate) fn within<T>(
        &mut self,
        step: Step<'t>,
        section: Option<&'static str>,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let outer = self.section;
        self.section = section.unwrap_or(outer);
        self.path.push(step);
        let result = read(self);
        self.path.pop();
        self.section = outer;
        result
    }

    /// Runs `read` for an object that `section` defines.
    pub(crate) fn defined_in<T>(
        &mut self,
        section: &'static str,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let outer = std::mem::replace(&mut self.section, section);
        let result = read(self);
        self.section = outer;
        result
    }

    /// Reads a field. In tolerant mode, what is wrong inside an optional field is only noted:
    /// the caller keeps the raw value and the message stands without it.
    pub(crate) fn field<T: Field>(
        &mut self,
        (key, section): (&'t str, Option<&'static str>),
        value: Value<'t, '_>,
        bounds: &Bounds,
        required: bool,
    ) -> Option<T> {
        let step = Step::Key(key);
        if required {
            self.within(step, section, |reader| T::read(value, bounds, reader))
        } else {
            self.optional(|reader| {
                reader.within(step, section, |reader| T::read(value, bounds, reader))
            })
        }
    }

    /// Reads something that the message can do without: a tolerant reader only notes what is wrong.
    pub(crate) fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.dispensable += 1;
        let result = read(self);
        self.dispensable -= 1;
        result
    }

    /// Something is wrong here, whoever reads.
    pub(crate) fn error(&mut self, code: Code, problem: String) {
        self.push(code, Severity::Error, None, self.section, problem);
    }

    /// Something is wrong here that a subscriber bears with.
    pub(crate) fn tolerable(&mut self, code: Code, problem: String) {
        let severity = self.tolerable_severity();
        self.push(code, severity, None, self.section, problem);
    }

    /// Like [`Self::tolerable`], for a rule that the code's own section states, at a field below.
    pub(crate) fn tolerable_at(&mut self, code: Code, field: Option<&str>, problem: String) {
        let severity = self.tolerable_severity();
        self.push(code, severity, field, code.section(), problem);
    }

    /// Something should be better, whoever reads.
    pub(crate) fn note_at(&mut self, code: Code, field: Option<&str>, problem: String) {
        self.push(code, Severity::Note, field, code.section(), problem);
    }

    /// A field that must be here is not.
    pub(crate) fn missing(&mut self, field: &str, section: Option<&'static str>) {
        let section = section.unwrap_or(self.section);
        let problem = format!("The field \"{field}\" is missing.");
        self.push(Code::MissingField, Severity::Error, Some(field), section, problem);
    }

    /// Another kind of value was expected.
    pub(crate) fn wrong_type<T>(&mut self, expected: &str, found: Kind) -> Option<T> {
        self.error(Code::WrongType, format!("Expected {expected}, found {found}."));
        None
    }

    fn tolerable_severity(&self) -> Severity {
        if self.is_tolerant() { Severity::Note } else { Severity::Error }
    }

    fn push(
        &mut self,
        code: Code,
        severity: Severity,
        field: Option<&str>,
        section: &'static str,
        problem: String,
    ) {
        let pointer = self.pointer(field);
        self.add(Violation { code, severity, pointer, section, problem });
    }

    /// Adds a violation, as long as there is room.
    pub(crate) fn add(&mut self, mut violation: Violation) {
        if self.dispensable > 0 && self.is_tolerant() {
            violation.severity = Severity::Note;
        }
        let listed = self.violations.len();
        if listed < MAX_VIOLATIONS {
            self.violations.push(violation);
        } else if listed == MAX_VIOLATIONS {
            let mut more =
                Violation::of_text(Code::More, "More is wrong than is listed here.".to_owned());
            more.severity = violation.severity;
            self.violations.push(more);
        } else if violation.severity == Severity::Error {
            // The list is full, but an error must not hide behind notes.
            self.violations[MAX_VIOLATIONS].severity = Severity::Error;
        }
    }

    fn pointer(&self, field: Option<&str>) -> String {
        let mut pointer = String::new();
        for step in &self.path {
            match step {
                Step::Key(key) => push_key(&mut pointer, key),
                Step::Index(index) => push_key(&mut pointer, &index.to_string()),
            }
        }
        if let Some(field) = field {
            push_key(&mut pointer, field);
        }
        pointer
    }
}

/// JSON that is kept as it came: extension data, and what only a newer version understands.
pub type Object = Map<String, Json>;
