//! One field of a form: how it is asked, and which value an answer stands for.

use serde_json::{Value, json};

/// The most choices of one field.
const MAX_CHOICES: usize = 28;

/// What a person types to leave out what can be left out, or to take what is suggested.
const LEAVE_OUT: &str = "-";

/// What can be given.
#[derive(Debug, Clone, PartialEq)]
enum FieldForm {
    Text {
        shortest: u64,
        longest: u64,
        format: String,
    },
    Number {
        is_whole: bool,
        least: Option<f64>,
        most: Option<f64>,
    },
    Boolean,
    /// The value and the name of each.
    OneOf(Vec<(String, String)>),
    /// The same, and how many can be chosen.
    SeveralOf(Vec<(String, String)>, u64, u64),
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FormField {
    name: String,
    label: String,
    description: String,
    form: FieldForm,
    suggestion: Option<Value>,
    is_required: bool,
}

impl FormField {
    /// Reads a field of a schema. `None` if it is not one that the protocol allows.
    pub(super) fn read(name: &str, schema: &Value, is_required: bool) -> Option<Self> {
        let text = |field: &str| schema[field].as_str().unwrap_or_default().trim().to_owned();
        let whole = |field: &str, other: u64| schema[field].as_u64().unwrap_or(other);
        let form = match schema["type"].as_str()? {
            "string" => match choices_in(schema)? {
                choices if !choices.is_empty() => FieldForm::OneOf(choices),
                _ => FieldForm::Text {
                    shortest: whole("minLength", 0),
                    longest: whole("maxLength", u64::MAX),
                    format: text("format"),
                },
            },
            kind @ ("number" | "integer") => FieldForm::Number {
                is_whole: kind == "integer",
                least: schema["minimum"].as_f64(),
                most: schema["maximum"].as_f64(),
            },
            "boolean" => FieldForm::Boolean,
            "array" => FieldForm::SeveralOf(
                choices_in(&schema["items"]).filter(|it| !it.is_empty())?,
                whole("minItems", 0),
                whole("maxItems", u64::MAX),
            ),
            _ => return None,
        };
        let label = Some(text("title")).filter(|it| !it.is_empty());
        let mut field = FormField {
            name: name.to_owned(),
            label: label.unwrap_or_else(|| name.to_owned()),
            description: text("description"),
            form,
            suggestion: None,
            is_required,
        };
        let suggestion = schema.get("default").filter(|it| !it.is_null());
        field.suggestion = suggestion.filter(|it| field.takes(it)).cloned();
        Some(field)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// Whether it is answered by a choice.
    pub(super) fn is_choice(&self) -> bool {
        matches!(self.form, FieldForm::OneOf(_) | FieldForm::Boolean)
    }

    /// The choices, each with the word that stands for it.
    pub(super) fn choices(&self) -> Vec<(String, String)> {
        let mut choices = match &self.form {
            FieldForm::OneOf(list) => {
                let numbered = list.iter().enumerate();
                numbered
                    .map(|(at, (_, name))| (format!("choice-{}", at + 1), name.clone()))
                    .collect()
            }
            FieldForm::Boolean => {
                vec![("yes".to_owned(), "Yes".to_owned()), ("no".to_owned(), "No".to_owned())]
            }
            _ => return Vec::new(),
        };
        if !self.is_required {
            choices.push((LEAVE_OUT.to_owned(), "Leave it out".to_owned()));
        }
        choices
    }

    /// What is asked.
    pub(super) fn words(&self) -> String {
        let mut parts = vec![format!("{}.", self.label.trim_end_matches('.'))];
        if !self.description.is_empty() {
            parts.push(self.description.clone());
        }
        match &self.form {
            FieldForm::Text { shortest, longest, format } => {
                parts.push(match format.as_str() {
                    "email" => "An e-mail address.".to_owned(),
                    "uri" => "An address, such as https://example.org.".to_owned(),
                    "date" => "A date, such as 2030-12-31.".to_owned(),
                    "date-time" => "A date and time, such as 2030-12-31T12:00:00Z.".to_owned(),
                    _ => "In your own words.".to_owned(),
                });
                if *shortest > 1 {
                    parts.push(format!("At least {shortest} characters."));
                }
                if *longest < u64::MAX {
                    parts.push(format!("At most {longest} characters."));
                }
            }
            FieldForm::Number { is_whole, least, most } => {
                parts.push(if *is_whole { "A whole number." } else { "A number." }.to_owned());
                parts.extend(least.map(|it| format!("At least {it}.")));
                parts.extend(most.map(|it| format!("At most {it}.")));
            }
            FieldForm::SeveralOf(list, least, most) => {
                let names: Vec<&str> = list.iter().map(|(_, name)| name.as_str()).collect();
                let names = names.join(", ");
                parts.push(format!("Any of these, with commas between them: {names}."));
                if *least > 0 {
                    parts.push(format!("At least {least}."));
                }
                if *most < u64::MAX {
                    parts.push(format!("At most {most}."));
                }
            }
            FieldForm::Boolean | FieldForm::OneOf(_) => {}
        }
        match &self.suggestion {
            Some(it) if self.is_choice() => {
                parts.push(format!("It suggests: {}.", self.told(it)));
            }
            Some(it) => parts.push(format!("For {}, type a single dash.", self.told(it))),
            None if !self.is_required && !self.is_choice() => {
                parts.push("To leave it out, type a single dash.".to_owned());
            }
            None => {}
        }
        parts.join(" ")
    }

    /// A value, as the person is told it.
    pub(super) fn told(&self, value: &Value) -> String {
        let name_of = |list: &[(String, String)], value: &Value| {
            let known = list.iter().find(|(it, _)| value == it.as_str());
            known.map_or_else(|| value.to_string(), |(_, name)| name.clone())
        };
        match (&self.form, value) {
            (FieldForm::OneOf(list), value) => name_of(list, value),
            (FieldForm::SeveralOf(list, ..), Value::Array(values)) => {
                let names: Vec<String> = values.iter().map(|it| name_of(list, it)).collect();
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            }
            (_, Value::Bool(is)) => if *is { "yes" } else { "no" }.to_owned(),
            (_, Value::String(text)) => format!("“{text}”"),
            (_, other) => other.to_string(),
        }
    }

    /// The value that an answer stands for, and nothing if the field is left out. Otherwise it says what does not fit.
    pub(super) fn value_of(&self, words: &str) -> Result<Option<Value>, String> {
        let words = words.trim();
        if words == LEAVE_OUT {
            return match (&self.suggestion, self.is_required) {
                (Some(it), _) if !self.is_choice() => Ok(Some(it.clone())),
                (_, false) => Ok(None),
                _ => Err("it cannot be left out.".to_owned()),
            };
        }
        let value = match &self.form {
            FieldForm::Text { .. } => json!(words),
            FieldForm::Number { is_whole, .. } => number(words, *is_whole)?,
            FieldForm::Boolean => match words {
                "yes" => json!(true),
                "no" => json!(false),
                _ => return Err("it is yes or no.".to_owned()),
            },
            FieldForm::OneOf(list) => {
                let chosen = self.choices().iter().position(|(it, _)| it == words);
                let chosen = chosen.and_then(|at| list.get(at));
                json!(chosen.ok_or("it is not one of the choices.")?.0)
            }
            FieldForm::SeveralOf(list, ..) => {
                let mut chosen: Vec<&str> = Vec::new();
                for part in words.split(',').map(str::trim).filter(|it| !it.is_empty()) {
                    let is_it = |(value, name): &&(String, String)| {
                        name.eq_ignore_ascii_case(part) || value == part
                    };
                    let mut found = list.iter().filter(is_it);
                    let one = found.next().filter(|_| found.next().is_none());
                    let one = one.ok_or_else(|| format!("“{part}” is not one of the choices."))?;
                    if !chosen.contains(&one.0.as_str()) {
                        chosen.push(&one.0);
                    }
                }
                json!(chosen)
            }
        };
        if self.takes(&value) {
            Ok(Some(value))
        } else {
            Err("it is not within what is asked for.".to_owned())
        }
    }

    /// Whether the schema allows a value.
    fn takes(&self, value: &Value) -> bool {
        match &self.form {
            FieldForm::Text { shortest, longest, format } => value.as_str().is_some_and(|text| {
                let length = text.chars().count() as u64;
                (*shortest..=*longest).contains(&length) && has_format(text, format)
            }),
            FieldForm::Number { is_whole, least, most } => value.as_f64().is_some_and(|it| {
                (!is_whole || it.fract() == 0.0)
                    && least.is_none_or(|least| it >= least)
                    && most.is_none_or(|most| it <= most)
            }),
            FieldForm::Boolean => value.is_boolean(),
            FieldForm::OneOf(list) => list.iter().any(|(it, _)| value == it.as_str()),
            FieldForm::SeveralOf(list, least, most) => value.as_array().is_some_and(|values| {
                let is_listed = |value: &Value| list.iter().any(|(it, _)| value == it.as_str());
                (*least..=*most).contains(&(values.len() as u64)) && values.iter().all(is_listed)
            }),
        }
    }
}

/// The choices of a schema, with their names; it may have none. `None` if they cannot be put.
fn choices_in(schema: &Value) -> Option<Vec<(String, String)>> {
    let titled = schema.get("oneOf").or_else(|| schema.get("anyOf"));
    let Some(listed) = titled.or_else(|| schema.get("enum")) else { return Some(Vec::new()) };
    let listed = listed.as_array()?;
    let legacy = schema["enumNames"].as_array();
    let read = |(at, choice): (usize, &Value)| {
        let value = choice.as_str().or(choice["const"].as_str())?;
        let title = choice["title"].as_str().or_else(|| legacy?.get(at)?.as_str());
        Some((value.to_owned(), title.unwrap_or(value).trim().to_owned()))
    };
    let mut choices: Vec<(String, String)> =
        listed.iter().enumerate().map(read).collect::<Option<_>>()?;
    if choices.is_empty() || choices.len() > MAX_CHOICES {
        return None;
    }
    let names: Vec<String> = choices.iter().map(|(_, name)| name.to_lowercase()).collect();
    for (at, (value, name)) in choices.iter_mut().enumerate() {
        let is_repeated = names.iter().filter(|it| **it == names[at]).count() > 1;
        if is_repeated || name.is_empty() {
            format!("{name} ({value})").trim().clone_into(name);
        }
    }
    Some(choices)
}

fn number(words: &str, is_whole: bool) -> Result<Value, String> {
    if let Ok(number) = words.parse::<i64>() {
        return Ok(json!(number));
    }
    if is_whole {
        return Err("it is a whole number.".to_owned());
    }
    let number = words.parse::<f64>().ok().filter(|it| it.is_finite());
    number.map(|it| json!(it)).ok_or_else(|| "it is a number.".to_owned())
}

/// Whether a text has the form that a schema names. A form that is not known fits everything.
fn has_format(text: &str, format: &str) -> bool {
    match format {
        "email" => text.split_once('@').is_some_and(|(name, host)| {
            !name.is_empty() && !host.is_empty() && !host.contains('@') && !text.contains(' ')
        }),
        "uri" => text.split_once(':').is_some_and(|(scheme, rest)| {
            let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '+' | '-' | '.');
            !rest.is_empty()
                && scheme.starts_with(|it: char| it.is_ascii_alphabetic())
                && scheme.chars().all(is_plain)
                && !text.contains(char::is_whitespace)
        }),
        "date" => is_date(text),
        "date-time" => {
            let (date, time) = text.split_at_checked(10).unwrap_or((text, ""));
            is_date(date) && time.starts_with(['T', 't']) && time.len() >= 9
        }
        _ => true,
    }
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let within = |part: &str, length: usize, range: std::ops::RangeInclusive<u32>| {
        part.len() == length
            && part.bytes().all(|it| it.is_ascii_digit())
            && part.parse().is_ok_and(|it| range.contains(&it))
    };
    within(year, 4, 0..=9999) && within(month, 2, 1..=12) && within(day, 2, 1..=31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(schema: &Value) -> FormField {
        FormField::read("f", schema, true).expect("a field")
    }

    #[test]
    fn an_answer_becomes_a_value_only_if_the_schema_allows_it() {
        let several = json!({ "type": "array", "minItems": 1, "maxItems": 2,
            "items": { "type": "string", "enum": ["Red", "Green", "Blue"] } });
        let date = json!({ "type": "string", "format": "date" });
        let email = json!({ "type": "string", "format": "email" });
        let rate = json!({ "type": "number", "minimum": 0, "maximum": 1 });
        for (schema, words, value) in [
            (&several, "green, Red", Some(json!(["Green", "Red"]))),
            (&several, "Red, Green, Blue", None),
            (&several, "", None),
            (&several, "Yellow", None),
            (&date, "2030-02-28", Some(json!("2030-02-28"))),
            (&date, "2030-13-01", None),
            (&date, "tomorrow", None),
            (&email, "ada@example.org", Some(json!("ada@example.org"))),
            (&email, "ada at example", None),
            (&rate, "0.5", Some(json!(0.5))),
            (&rate, "1", Some(json!(1))),
            (&rate, "1.5", None),
            (&rate, "inf", None),
            (&rate, "-", None),
        ] {
            let given = field(schema).value_of(words).ok().flatten();
            assert_eq!(given, value, "{words} for {schema}");
        }
    }

    #[test]
    fn a_suggestion_is_taken_by_a_dash_and_only_if_it_fits() {
        let suggested = field(&json!({ "type": "integer", "default": 5 }));
        assert_eq!(suggested.value_of("-"), Ok(Some(json!(5))));
        assert!(suggested.words().ends_with("For 5, type a single dash."), "{}", suggested.words());
        let wrong = field(&json!({ "type": "integer", "default": "five" }));
        assert!(wrong.value_of("-").is_err());
        let optional = FormField::read("f", &json!({ "type": "string" }), false).expect("a field");
        assert_eq!(optional.value_of("-"), Ok(None));
    }

    #[test]
    fn choices_of_one_name_are_told_apart() {
        let alike = field(&json!({ "type": "string", "oneOf": [
            { "const": "a", "title": "Same" }, { "const": "b", "title": "same" }] }));
        let labels: Vec<String> = alike.choices().into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["Same (a)", "same (b)"]);
        assert_eq!(alike.value_of("choice-2"), Ok(Some(json!("b"))));
        assert!(alike.value_of("b").is_err());
    }
}
