//! Reads values into types and notes everything that is wrong (§3.9).
//!
//! A [`FieldType`] knows how to read itself from JSON and what its JSON Schema is, so the two
//! cannot drift apart. The [`MessageReader`] carries the mode, the path and the violations. Nothing
//! here knows a field by name.

use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::json::{JsonKind, JsonValue, push_key};
use crate::violation::{Code, Severity, Violation};

/// How strictly a message is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Every rule holds: as a producer must write messages, and as a producer reads those of
    /// subscribers.
    #[default]
    Strict,
    /// As a subscriber reads a producer: what a newer or sloppier producer adds is kept and noted,
    /// and the message is valid as long as all required fields can be understood (§3.11, §12.6.1).
    Tolerant,
}

/// The most violations that are listed for one message. [`Code::More`] follows if there are more.
pub const MAX_VIOLATIONS: usize = 64;

/// The bounds that a field sets for its value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValueBounds {
    /// The minimum and maximum length of a string in characters, or value of a number.
    pub(crate) min: u64,
    pub(crate) max: u64,
    /// The minimum and maximum number of items of an array.
    pub(crate) min_items: usize,
    pub(crate) max_items: usize,
    pub(crate) unique: bool,
}

/// No bounds.
pub(crate) const ANY: ValueBounds =
    ValueBounds { min: 0, max: u64::MAX, min_items: 0, max_items: usize::MAX, unique: false };

impl ValueBounds {
    /// Sets how many items an array may have.
    pub(crate) const fn items(mut self, min: usize, max: usize) -> Self {
        self.min_items = min;
        self.max_items = max;
        self
    }

    /// Forbids repeated items.
    pub(crate) const fn unique(mut self) -> Self {
        self.unique = true;
        self
    }
}

/// Bounds for a length or a number.
pub(crate) const fn between(min: u64, max: u64) -> ValueBounds {
    ValueBounds { min, max, ..ANY }
}

/// A type that a field of a message can have.
pub(crate) trait FieldType: Sized + Serialize {
    /// Reads the value and notes what is wrong; `None` if it is not a value of this type.
    fn read<'t>(
        value: JsonValue<'t, '_>,
        bounds: &ValueBounds,
        reader: &mut MessageReader<'t>,
    ) -> Option<Self>;

    /// The JSON Schema of the type under these bounds, without a description.
    fn schema(bounds: &ValueBounds) -> Json;
}

/// One step on the path to the value that is being read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PathStep<'t> {
    Key(&'t str),
    Index(usize),
}

/// The state while reading a message.
#[derive(Debug)]
pub(crate) struct MessageReader<'t> {
    mode: Mode,
    path: Vec<PathStep<'t>>,
    /// The section that defines what is being read.
    section: &'static str,
    /// How many of the enclosing values are optional.
    optional_depth: usize,
    violations: Vec<Violation>,
}

impl<'t> MessageReader<'t> {
    pub(crate) fn new(mode: Mode) -> Self {
        MessageReader {
            mode,
            path: Vec::with_capacity(4),
            section: "",
            optional_depth: 0,
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

    /// Runs `read` one step deeper in the path, with the section that defines that value.
    pub(crate) fn within<T>(
        &mut self,
        step: PathStep<'t>,
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

    /// Reads a field. In tolerant mode, violations inside an optional field are only noted: the
    /// caller keeps the raw value, and the message is valid without it.
    pub(crate) fn field<T: FieldType>(
        &mut self,
        (key, section): (&'t str, Option<&'static str>),
        value: JsonValue<'t, '_>,
        bounds: &ValueBounds,
        required: bool,
    ) -> Option<T> {
        let step = PathStep::Key(key);
        if required {
            self.within(step, section, |reader| T::read(value, bounds, reader))
        } else {
            self.optional(|reader| {
                reader.within(step, section, |reader| T::read(value, bounds, reader))
            })
        }
    }

    /// Reads something optional: a tolerant reader only notes what is wrong.
    pub(crate) fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.optional_depth += 1;
        let result = read(self);
        self.optional_depth -= 1;
        result
    }

    /// Reports a violation that is an error in either mode.
    pub(crate) fn error(&mut self, code: Code, problem: String) {
        self.push(code, Severity::Error, None, self.section, problem);
    }

    /// Reports a violation that a subscriber tolerates.
    pub(crate) fn tolerable(&mut self, code: Code, problem: String) {
        let severity = self.tolerable_severity();
        self.push(code, severity, None, self.section, problem);
    }

    /// Like [`Self::tolerable`], for a rule that the code's own section states, at a field of the
    /// current object.
    pub(crate) fn tolerable_at(&mut self, code: Code, field: Option<&str>, problem: String) {
        let severity = self.tolerable_severity();
        self.push(code, severity, field, code.section(), problem);
    }

    /// Notes something that could be better, in either mode.
    pub(crate) fn note_at(&mut self, code: Code, field: Option<&str>, problem: String) {
        self.push(code, Severity::Note, field, code.section(), problem);
    }

    /// Reports a required field that is missing.
    pub(crate) fn missing(&mut self, field: &str, section: Option<&'static str>) {
        let section = section.unwrap_or(self.section);
        let problem = format!("The field \"{field}\" is missing.");
        self.push(Code::MissingField, Severity::Error, Some(field), section, problem);
    }

    /// Reports a value of the wrong kind.
    pub(crate) fn wrong_type<T>(&mut self, expected: &str, found: JsonKind) -> Option<T> {
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
        if self.optional_depth > 0 && self.is_tolerant() {
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
            // The list is full, but notes must not hide an error.
            self.violations[MAX_VIOLATIONS].severity = Severity::Error;
        }
    }

    fn pointer(&self, field: Option<&str>) -> String {
        let mut pointer = String::new();
        for step in &self.path {
            match step {
                PathStep::Key(key) => push_key(&mut pointer, key),
                PathStep::Index(index) => push_key(&mut pointer, &index.to_string()),
            }
        }
        if let Some(field) = field {
            push_key(&mut pointer, field);
        }
        pointer
    }
}

/// JSON that is kept as received: extension data, and fields that only a newer version understands.
pub type Object = Map<String, Json>;
