//! Hears both sides about a document, the schemas and the types, and compares. Never takes a side.

use std::collections::HashMap;
use std::fmt;

use aaep::{BEYOND_SCHEMA, Code, Mode, SchemaFile, Severity, Violation, extension};
use jsonschema::{Registry, RegistryBuilder, Validator};
use serde_json::Value as Json;

use crate::generator::{Case, Generator};
use crate::mutation::{Place, places};

/// The schemas, ready to judge.
pub(crate) struct Judge {
    validators: HashMap<String, Option<Validator>>,
}

/// How the two sides differ.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Difference {
    /// The schemas refuse what the types take.
    SchemasAreStricter,
    /// The types refuse what the schemas take, with a code that is not listed as beyond a schema.
    NotListed(Code),
    /// The code is listed, but not for such a reason.
    NotTheStatedReason(Code),
}

/// What both sides say about one document.
#[derive(Debug)]
pub(crate) struct Verdicts {
    /// The schema that was asked.
    pub(crate) path: String,
    pub(crate) schemas_accept: bool,
    /// The violations that make the document invalid to the types.
    pub(crate) errors: Vec<Violation>,
}

impl Verdicts {
    pub(crate) fn types_accept(&self) -> bool {
        self.errors.is_empty()
    }
}

impl Judge {
    /// Compiles the schemas; all references stay within them, and formats count.
    pub(crate) fn new(files: &[SchemaFile]) -> Self {
        Self::compile(files, |_| true)
    }

    /// Compiles only what is needed to judge the documents that the schema at `path` is about.
    pub(crate) fn of_one(files: &[SchemaFile], path: &str) -> Self {
        let is_shared = path == ENVELOPE || path.starts_with(OWN);
        Self::compile(files, |other| other == path || other.starts_with(OWN) || is_shared)
    }

    fn compile(files: &[SchemaFile], is_needed: impl Fn(&str) -> bool) -> Self {
        let pairs = files.iter().map(|file| {
            (file.schema["$id"].as_str().expect("a schema has an id"), file.schema.clone())
        });
        let registry = Registry::new()
            .extend(pairs)
            .and_then(RegistryBuilder::prepare)
            .expect("the schemas refer to each other only");
        let compile = |file: &SchemaFile| {
            jsonschema::options()
                .with_registry(&registry)
                .should_validate_formats(true)
                .should_ignore_unknown_formats(false)
                .build(&file.schema)
                .unwrap_or_else(|error| panic!("{}: {error}", file.path))
        };
        let validators = files
            .iter()
            .map(|file| (file.path.clone(), is_needed(&file.path).then(|| compile(file))))
            .collect();
        Judge { validators }
    }

    fn accepts(&self, path: &str, value: &Json) -> bool {
        self.validators[path].as_ref().expect("it was compiled").is_valid(value)
    }

    /// What both sides say.
    pub(crate) fn hear(&self, case: &Case) -> Verdicts {
        self.hear_with(case, errors_by_types(&case.text()))
    }

    /// The same, where it is known already what the types say.
    pub(crate) fn hear_with(&self, case: &Case, errors: Vec<Violation>) -> Verdicts {
        let path = self.path_for(case);
        let schemas_accept = self.accepts(&path, &case.document)
            && own_extension(&path, &case.document)
                .is_none_or(|(path, data)| self.accepts(&path, data));
        Verdicts { path, schemas_accept, errors }
    }

    /// Whether the schema at this path has a say about the document.
    pub(crate) fn asks(&self, case: &Case, path: &str) -> bool {
        let first = self.path_for(case);
        let is_core = first.starts_with("core/");
        first == path
            || (is_core && path == ENVELOPE)
            || own_extension(&first, &case.document).is_some_and(|(own, _)| own == path)
    }

    /// What the schemas have to say against a document, for people.
    pub(crate) fn complaints(&self, case: &Case) -> Vec<String> {
        let path = self.path_for(case);
        let extension = own_extension(&path, &case.document);
        std::iter::once((path, &case.document))
            .chain(extension)
            .flat_map(|(path, value)| {
                let complaints: Vec<String> = self.validators[&path]
                    .iter()
                    .flat_map(|validator| validator.iter_errors(value))
                    .map(|error| {
                        let text: String = error.to_string().chars().take(200).collect();
                        format!("{}: {text}", error.instance_path())
                    })
                    .collect();
                complaints
            })
            .collect()
    }

    /// The name of the field over which the sides differ, so that each is reported once.
    pub(crate) fn place_of(&self, what: &Difference, case: &Case, verdicts: &Verdicts) -> String {
        let place = match what {
            Difference::SchemasAreStricter => {
                let complaint = self.complaints(case).into_iter().next().unwrap_or_default();
                complaint.split(": ").next().unwrap_or_default().to_owned()
            }
            Difference::NotListed(code) | Difference::NotTheStatedReason(code) => {
                let error = verdicts.errors.iter().find(|error| error.code == *code);
                error.map(|error| error.pointer.clone()).unwrap_or_default()
            }
        };
        place.rsplit('/').next().unwrap_or_default().to_owned()
    }

    /// The schema that a reader would take for the document: by its type, as far as it names one.
    fn path_for(&self, case: &Case) -> String {
        let Some(name) = case.document.get("type").and_then(Json::as_str) else {
            return case.path.clone();
        };
        let local = name.strip_prefix("aaep:").or_else(|| name.strip_prefix(aaep::CORE_TYPES));
        let by_name = match local {
            Some("producer.manifest") => "producer.manifest.schema.json".to_owned(),
            Some(local) => format!("core/{local}.schema.json"),
            None => match name.split_once(':') {
                Some((extension::PREFIX, local)) => {
                    format!("{}/{local}.schema.json", extension::PREFIX)
                }
                _ => format!("handshake/{name}.schema.json"),
            },
        };
        if self.validators.contains_key(&by_name) {
            by_name
        } else if name.contains(':') {
            ENVELOPE.to_owned()
        } else {
            case.path.clone()
        }
    }
}

const ENVELOPE: &str = "envelope.schema.json";
const OWN: &str = "extensions/";

/// The data of our own extension on an event, and its schema.
fn own_extension<'d>(path: &str, document: &'d Json) -> Option<(String, &'d Json)> {
    let is_event = path.starts_with("core/") || path == ENVELOPE;
    let data = document.get("extensions")?.get(extension::PREFIX).filter(|_| is_event)?;
    Some((format!("{OWN}{}.schema.json", extension::PREFIX), data))
}

/// What makes a text invalid to a strict reader.
pub(crate) fn errors_by_types(text: &str) -> Vec<Violation> {
    let mut violations = aaep::read(text.as_bytes(), Mode::Strict).violations;
    violations.retain(|violation| violation.severity == Severity::Error);
    violations
}

/// How the verdicts differ, if they do; the generator knows where schemas have bounds.
pub(crate) fn difference(
    verdicts: &Verdicts,
    document: &Json,
    generator: &Generator,
) -> Option<Difference> {
    if !verdicts.schemas_accept {
        return verdicts.types_accept().then_some(Difference::SchemasAreStricter);
    }
    verdicts.errors.iter().find_map(|error| {
        if !BEYOND_SCHEMA.iter().any(|(code, _)| *code == error.code) {
            Some(Difference::NotListed(error.code))
        } else if !has_stated_reason(error, verdicts, document, generator) {
            Some(Difference::NotTheStatedReason(error.code))
        } else {
            None
        }
    })
}

/// Whether an error is beyond a schema for the reason that `BEYOND_SCHEMA` gives for its code.
/// Without this, a bound that the schemas forget would hide behind a code that is listed for
/// something else.
fn has_stated_reason(
    error: &Violation,
    verdicts: &Verdicts,
    document: &Json,
    generator: &Generator,
) -> bool {
    let bounded_by = |keyword: &str| {
        places(document, generator.whole(&verdicts.path))
            .iter()
            .find(|place| place.pointer() == error.pointer)
            .and_then(|place| place.schema)
            .is_some_and(|schema| schema.get(keyword).is_some())
    };
    let text = document.pointer(&error.pointer).and_then(Json::as_str);
    match error.code {
        Code::TooLong => {
            text.is_some_and(|text| text.chars().count() > 16384) && !bounded_by("maxLength")
        }
        Code::TooShort => {
            let is_asked =
                ["/action", "/consequence", "/question", "/choices"].contains(&&*error.pointer);
            is_asked && text.is_none_or(|text| !text.is_empty())
        }
        Code::NumberTooBig => !bounded_by("maximum"),
        Code::UnknownType => {
            let is_beyond = |name: &str| name.starts_with("aaep:") || name.contains("://");
            verdicts.path == ENVELOPE && error.pointer == "/type" && text.is_some_and(is_beyond)
        }
        Code::ReservedPrefix => verdicts.path == ENVELOPE && error.pointer == "/type",
        Code::ReservedField => verdicts.path == ENVELOPE && !error.pointer[1..].contains('/'),
        Code::UnpublishedVersion => error.pointer == "/aaep_version",
        Code::WrongFormat => text.is_some_and(has_endless_number),
        Code::TooLarge
        | Code::TooDeep
        | Code::DuplicateKey
        | Code::TooManyFields
        | Code::UndeclaredPrefix
        | Code::More => true,
        // A code that is listed anew needs its reason here too. `WrongType` is none: the schema of
        // our own extension is asked as well.
        _ => false,
    }
}

fn has_endless_number(version: &str) -> bool {
    let numbers = version.split(['.', '-']);
    numbers
        .take(3)
        .any(|number| number.bytes().all(|byte| byte.is_ascii_digit()) && number.len() > 19)
}

/// A document on which the sides differ, made as small as possible.
#[derive(Debug)]
pub(crate) struct Disagreement {
    pub(crate) difference: Difference,
    case: Case,
    complaints: Vec<String>,
    verdicts: Verdicts,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accept = |yes: bool| if yes { "accept" } else { "refuse" };
        writeln!(f, "{:?} for {}", self.difference, self.case.target)?;
        let text: String = self.case.text().chars().take(1500).collect();
        writeln!(f, "  document: {text}")?;
        writeln!(
            f,
            "  {}: the schemas {}",
            self.verdicts.path,
            accept(self.verdicts.schemas_accept)
        )?;
        for complaint in &self.complaints {
            writeln!(f, "    {complaint}")?;
        }
        writeln!(f, "  the types {}", accept(self.verdicts.types_accept()))?;
        for error in self.verdicts.errors.iter().take(5) {
            writeln!(f, "    {error}")?;
        }
        Ok(())
    }
}

/// Makes a document smaller as long as the sides differ over it in the same way.
pub(crate) fn shrink(
    mut case: Case,
    difference_seen: &Difference,
    judge: &Judge,
    generator: &Generator,
) -> Disagreement {
    let still_differs = |case: &Case| {
        difference(&judge.hear(case), &case.document, generator).as_ref() == Some(difference_seen)
    };
    let mut tries = 2000;
    loop {
        let size = case.document.to_string().len();
        // From the last place to the first, so that those still to come stay where they are.
        for place in places(&case.document, &Json::Null).iter().rev() {
            for smaller in [without(&case.document, place), halved(&case.document, place)] {
                tries -= 1;
                let Some(document) = smaller.filter(|_| tries > 0) else { continue };
                let candidate = Case { document, ..case.clone() };
                if still_differs(&candidate) {
                    case = candidate;
                }
            }
        }
        if tries <= 0 || case.document.to_string().len() == size {
            break;
        }
    }
    let verdicts = judge.hear(&case);
    let complaints = judge.complaints(&case);
    Disagreement { difference: difference_seen.clone(), case, complaints, verdicts }
}

/// The document without the value at a place.
fn without(document: &Json, place: &Place<'_>) -> Option<Json> {
    let (last, parent) = place.steps.split_last()?;
    let mut document = document.clone();
    let parent = Place { steps: parent.to_vec(), schema: None };
    match document.pointer_mut(&parent.pointer())? {
        Json::Object(fields) => drop(fields.remove(last)?),
        Json::Array(items) => {
            let index = last.parse().ok().filter(|index| *index < items.len())?;
            items.remove(index);
        }
        _ => return None,
    }
    Some(document)
}

/// The document with half of the string at a place.
fn halved(document: &Json, place: &Place<'_>) -> Option<Json> {
    let mut document = document.clone();
    let value = document.pointer_mut(&place.pointer())?;
    let half = value.as_str()?.chars().count() / 2;
    let text: String = value.as_str()?.chars().take(half).collect();
    *value = Some(text).filter(|text| !text.is_empty())?.into();
    Some(document)
}
