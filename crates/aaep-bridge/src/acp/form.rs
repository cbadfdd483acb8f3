//! Questions of an agent in a form (`elicitation/create`), one field after the other.
//!
//! Only what the schema of the protocol allows is understood: flat objects of texts, numbers, yes and no, and choices.
//! A form with anything else is not put.

use serde_json::{Map, Value};

use crate::event::shortened_to;

/// The most fields of a form, and the most choices of a field.
const MAX_FIELDS: usize = 64;
const MAX_CHOICES: usize = 32;
/// The longest text of an answer.
const MAX_ANSWER_CHARS: usize = 20_000;

/// A form that the agent wants to be filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct AcpForm {
    /// What the agent says about it. Foreign text.
    pub message: String,
    fields: Vec<AcpFormField>,
    content: Map<String, Value>,
    at: usize,
}

/// One field.
#[derive(Debug, Clone, PartialEq)]
pub struct AcpFormField {
    name: String,
    /// What it is called. Foreign text.
    pub title: String,
    /// What the agent says about it. Foreign text.
    pub description: String,
    /// Whether the agent needs it.
    pub is_required: bool,
    /// What can be answered.
    pub kind: FormFieldKind,
    least: Option<f64>,
    most: Option<f64>,
}

/// What can be answered to a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FormFieldKind {
    /// Any text.
    Text,
    /// A number; a whole one if this is true.
    Number(bool),
    /// Yes or no.
    YesNo,
    /// One of these: each value and its words.
    One(Vec<(String, String)>),
    /// Any of these, or none.
    Several(Vec<(String, String)>),
}

/// An answer to one field.
#[derive(Debug, Clone, PartialEq)]
pub enum AcpFormAnswer {
    /// A text, or the value of a choice.
    Text(String),
    /// A number.
    Number(serde_json::Number),
    /// Yes or no.
    YesNo(bool),
    /// The values of several choices.
    Several(Vec<String>),
    /// The field stays empty.
    Skipped,
}

impl AcpForm {
    /// Reads a form. `None` if not all of it can be put.
    pub(super) fn read(params: &Value) -> Option<Self> {
        if params["mode"].as_str().unwrap_or("form") != "form" {
            return None;
        }
        let schema = &params["requestedSchema"];
        let properties = schema["properties"].as_object()?;
        if properties.len() > MAX_FIELDS {
            return None;
        }
        let required: Vec<&str> = schema["required"]
            .as_array()
            .map_or_else(Vec::new, |it| it.iter().filter_map(Value::as_str).collect());
        let field = |(name, schema): (&String, &Value)| {
            AcpFormField::read(name, schema, required.contains(&name.as_str()))
        };
        let fields = properties.iter().map(field).collect::<Option<Vec<_>>>()?;
        let message = shortened_to(params["message"].as_str().unwrap_or_default(), 4000);
        Some(AcpForm { message, fields, content: Map::new(), at: 0 })
    }

    /// The field to be answered now, its number from 1, and how many there are. `None` when all are answered.
    pub fn field(&self) -> Option<(&AcpFormField, usize, usize)> {
        Some((self.fields.get(self.at)?, self.at + 1, self.fields.len()))
    }

    /// Answers the field, and goes on to the next one. Returns false if this is not an answer to it.
    pub fn answer(&mut self, answer: &AcpFormAnswer) -> bool {
        let Some(field) = self.fields.get(self.at) else { return false };
        let Some(value) = field.value(answer) else { return false };
        if !value.is_null() {
            self.content.insert(field.name.clone(), value);
        }
        self.at += 1;
        true
    }

    /// What the person filled in.
    pub(super) fn content(&self) -> Value {
        Value::Object(self.content.clone())
    }
}

impl AcpFormField {
    fn read(name: &str, schema: &Value, is_required: bool) -> Option<Self> {
        let listed = |schema: &Value| {
            if let Some(plain) = schema["enum"].as_array() {
                let names = schema["enumNames"].as_array();
                let pairs = plain.iter().enumerate().map(|(at, it)| {
                    let value = it.as_str()?;
                    let title = names.and_then(|it| it.get(at)).and_then(Value::as_str);
                    Some((value.to_owned(), shortened_to(title.unwrap_or(value), 500)))
                });
                return pairs.collect::<Option<Vec<_>>>();
            }
            let titled = schema["oneOf"].as_array().or(schema["anyOf"].as_array())?;
            let pairs = titled.iter().map(|it| {
                let value = it["const"].as_str()?;
                let title = it["title"].as_str().unwrap_or(value);
                let words = match it["description"].as_str().filter(|it| !it.trim().is_empty()) {
                    Some(more) => format!("{title}: {more}"),
                    None => title.to_owned(),
                };
                Some((value.to_owned(), shortened_to(&words, 500)))
            });
            pairs.collect::<Option<Vec<_>>>()
        };
        let usable = |it: &Vec<(String, String)>| {
            let values: std::collections::BTreeSet<_> = it.iter().map(|(value, _)| value).collect();
            (2..=MAX_CHOICES).contains(&it.len()) && values.len() == it.len()
        };
        let is_listed =
            |it: &Value| ["enum", "oneOf", "anyOf"].iter().any(|key| it.get(*key).is_some());
        let (kind, least, most) = match schema["type"].as_str() {
            Some("string") | None if is_listed(schema) => {
                (FormFieldKind::One(listed(schema).filter(usable)?), "", "")
            }
            Some("string") => (FormFieldKind::Text, "minLength", "maxLength"),
            Some("number") => (FormFieldKind::Number(false), "minimum", "maximum"),
            Some("integer") => (FormFieldKind::Number(true), "minimum", "maximum"),
            Some("boolean") => (FormFieldKind::YesNo, "", ""),
            Some("array") => {
                let values = listed(&schema["items"]).filter(usable)?;
                (FormFieldKind::Several(values), "minItems", "maxItems")
            }
            _ => return None,
        };
        let text = |field: &str| shortened_to(schema[field].as_str().unwrap_or_default(), 2000);
        let title = Some(text("title")).filter(|it| !it.is_empty());
        Some(AcpFormField {
            name: name.to_owned(),
            title: title.unwrap_or_else(|| shortened_to(name, 200)),
            description: text("description"),
            is_required,
            kind,
            least: schema[least].as_f64(),
            most: schema[most].as_f64(),
        })
    }

    /// The value for an answer, null for none. `None` if the answer does not fit.
    fn value(&self, answer: &AcpFormAnswer) -> Option<Value> {
        let fits = |size: f64| {
            self.least.is_none_or(|it| size >= it) && self.most.is_none_or(|it| size <= it)
        };
        #[expect(clippy::cast_precision_loss, reason = "lengths are far below that")]
        let fits_length = |length: usize| fits(length as f64);
        match (&self.kind, answer) {
            (_, AcpFormAnswer::Skipped) => (!self.is_required).then_some(Value::Null),
            (FormFieldKind::Text, AcpFormAnswer::Text(text)) => {
                let length = text.chars().count();
                let fits = length <= MAX_ANSWER_CHARS && fits_length(length);
                fits.then(|| text.as_str().into())
            }
            (FormFieldKind::Number(is_whole), AcpFormAnswer::Number(number)) => {
                let value = number.as_f64()?;
                let is_right = !*is_whole || number.is_i64() || number.is_u64();
                (is_right && fits(value)).then(|| number.clone().into())
            }
            (FormFieldKind::YesNo, AcpFormAnswer::YesNo(yes)) => Some((*yes).into()),
            (FormFieldKind::One(choices), AcpFormAnswer::Text(value)) => {
                choices.iter().any(|(it, _)| it == value).then(|| value.as_str().into())
            }
            (FormFieldKind::Several(choices), AcpFormAnswer::Several(values)) => {
                let known = |it: &String| choices.iter().any(|(value, _)| value == it);
                let is_right = values.iter().all(known) && fits_length(values.len());
                is_right.then(|| values.clone().into())
            }
            _ => None,
        }
    }

    /// The bounds of the answer, if there are any.
    pub fn bounds(&self) -> (Option<f64>, Option<f64>) {
        (self.least, self.most)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(properties: &Value, required: &Value) -> Option<AcpForm> {
        AcpForm::read(&json!({ "mode": "form", "message": "Please say.",
            "requestedSchema": { "type": "object", "properties": properties, "required": required } }))
    }

    #[test]
    fn a_form_is_filled_in_field_by_field_and_only_with_what_fits() {
        let mut form = form(
            &json!({
                "a": { "type": "string", "title": "Colour", "oneOf": [
                    { "const": "r", "title": "Red", "description": "warm" }, { "const": "b", "title": "Blue" }] },
                "b": { "type": "integer", "minimum": 1, "maximum": 3 },
                "c": { "type": "boolean" },
                "d": { "type": "array", "items": { "enum": ["x", "y"] }, "maxItems": 1 },
                "e": { "type": "string", "maxLength": 3 },
            }),
            &json!(["a", "b"]),
        )
        .expect("a form");
        let (field, number, of) = form.field().expect("a field");
        assert_eq!((field.title.as_str(), number, of), ("Colour", 1, 5));
        assert_eq!(
            field.kind,
            FormFieldKind::One(vec![
                ("r".to_owned(), "Red: warm".to_owned()),
                ("b".to_owned(), "Blue".to_owned())
            ])
        );
        for wrong in [
            AcpFormAnswer::Skipped,
            AcpFormAnswer::Text("Red".to_owned()),
            AcpFormAnswer::YesNo(true),
        ] {
            assert!(!form.answer(&wrong), "{wrong:?}");
        }
        assert!(form.answer(&AcpFormAnswer::Text("b".to_owned())));
        for wrong in ["4", "0", "1.5"] {
            let number = serde_json::from_str(wrong).expect("a number");
            assert!(!form.answer(&AcpFormAnswer::Number(number)), "{wrong}");
        }
        assert!(form.answer(&AcpFormAnswer::Number(2.into())));
        assert!(form.answer(&AcpFormAnswer::YesNo(false)));
        let several =
            |it: &[&str]| AcpFormAnswer::Several(it.iter().map(|it| (*it).to_owned()).collect());
        assert!(!form.answer(&several(&["x", "y"])) && !form.answer(&several(&["z"])));
        assert!(form.answer(&several(&["y"])));
        assert!(!form.answer(&AcpFormAnswer::Text("long".to_owned())));
        assert!(form.answer(&AcpFormAnswer::Skipped));
        assert_eq!(form.field(), None);
        assert!(!form.answer(&AcpFormAnswer::Skipped));
        assert_eq!(form.content(), json!({ "a": "b", "b": 2, "c": false, "d": ["y"] }));
    }

    #[test]
    fn what_cannot_be_put_whole_is_not_put() {
        for strange in [
            json!({ "a": { "type": "object" } }),
            json!({ "a": { "type": "string", "enum": [] } }),
            json!({ "a": { "type": "string", "enum": ["x", "x"] } }),
            json!({ "a": { "type": "string", "oneOf": [{ "title": "no value" }] } }),
            json!({ "a": { "type": "array", "items": { "type": "string" } } }),
            json!({ "a": 7 }),
        ] {
            assert_eq!(form(&strange, &json!([])), None, "{strange}");
        }
        assert_eq!(AcpForm::read(&json!({ "mode": "url", "url": "https://x" })), None);
        assert_eq!(AcpForm::read(&json!({})), None);
        assert_eq!(form(&json!({}), &json!(null)).expect("a form").field(), None);
    }
}
