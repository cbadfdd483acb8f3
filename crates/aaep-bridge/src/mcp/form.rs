//! A form of a server, put to the person question by question. Nothing is sent that the person did not see whole.

use serde_json::{Map, Value, json};

use super::field::FormField;

/// The longest question, in characters, and the most fields. A form that does not fit is not put here.
const MAX_QUESTION_CHARS: usize = 15_000;
const MAX_FIELDS: usize = 32;

/// How often a field is asked again after an answer that does not fit.
const MAX_TRIES: u32 = 3;

/// One question of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FormQuestion {
    pub(super) text: String,
    /// The value and the label of each choice. Without choices, the person answers in their own words.
    pub(super) choices: Vec<(String, String)>,
}

/// Where a form goes after an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FormOutcome {
    /// This is asked next.
    Ask(FormQuestion),
    /// This is the answer for the server.
    Done(Value),
    /// The person does not answer it here.
    Leave,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormStep {
    /// Whether to answer at all.
    Opening,
    /// One field, and how often it was asked again.
    Field(usize, u32),
    /// Whether to send it.
    Review,
}

/// A form, and how far the person is with it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OpenForm {
    server: String,
    message: String,
    fields: Vec<FormField>,
    given: Map<String, Value>,
    step: FormStep,
}

impl OpenForm {
    /// Reads what a server asks for. `None` if it is not a form that can be put whole.
    pub(super) fn read(server: &str, params: &Value) -> Option<Self> {
        if !matches!(params["mode"].as_str(), None | Some("form")) {
            return None;
        }
        let message = params["message"].as_str()?.trim();
        let schema = &params["requestedSchema"];
        let none = Map::new();
        let listed = match schema.get("properties") {
            Some(listed) => listed.as_object()?,
            None => &none,
        };
        let required = schema["required"].as_array().into_iter().flatten();
        let required: Vec<&str> = required.filter_map(Value::as_str).collect();
        let read = |(name, field): (&String, &Value)| {
            FormField::read(name, field, required.contains(&name.as_str()))
        };
        let fields: Option<Vec<FormField>> = listed.iter().map(read).collect();
        let form = OpenForm {
            server: server.to_owned(),
            message: message.to_owned(),
            fields: fields.filter(|it| it.len() <= MAX_FIELDS)?,
            given: Map::new(),
            step: FormStep::Opening,
        };
        let longest = form.fields.iter().map(|it| form.question_of(it, "").text.chars().count());
        let opening = form.opening().text.chars().count();
        (longest.chain([opening]).all(|it| it <= MAX_QUESTION_CHARS)).then_some(form)
    }

    /// The first question.
    pub(super) fn opening(&self) -> FormQuestion {
        let asks = format!("{} asks you: {}", self.server, self.message);
        let text = match self.fields.as_slice() {
            [] => asks,
            [only] if only.is_choice() => format!("{asks} {}", only.words()),
            fields => {
                let names: Vec<&str> = fields.iter().map(FormField::label).collect();
                format!("{asks} It wants to know: {}.", names.join(", "))
            }
        };
        let mut choices = match self.fields.as_slice() {
            [] => pairs(&[("accept", "Accept")]),
            [only] if only.is_choice() => only.choices(),
            _ => pairs(&[("answer", "Answer here")]),
        };
        choices
            .extend(pairs(&[("decline", "Decline"), ("leave", "Answer in the program instead")]));
        FormQuestion { text, choices }
    }

    /// Takes an answer.
    pub(super) fn answer(&mut self, words: &str) -> FormOutcome {
        match (words, self.step) {
            ("decline", FormStep::Opening | FormStep::Review) => {
                return FormOutcome::Done(json!({ "action": "decline" }));
            }
            ("leave", FormStep::Opening | FormStep::Review) => return FormOutcome::Leave,
            _ => {}
        }
        match self.step {
            FormStep::Opening => self.open(words),
            FormStep::Field(at, tries) => self.fill(at, tries, words),
            FormStep::Review => match words {
                "send" => self.done(),
                "again" => {
                    self.given.clear();
                    self.ask_field(0)
                }
                _ => FormOutcome::Leave,
            },
        }
    }

    fn open(&mut self, words: &str) -> FormOutcome {
        match self.fields.as_slice() {
            [] if words == "accept" => self.done(),
            [only] if only.is_choice() => {
                let Ok(value) = only.value_of(words) else { return FormOutcome::Leave };
                if let Some(value) = value {
                    self.given.insert(only.name().to_owned(), value);
                }
                self.done()
            }
            [_, ..] if words == "answer" => self.ask_field(0),
            _ => FormOutcome::Leave,
        }
    }

    fn fill(&mut self, at: usize, tries: u32, words: &str) -> FormOutcome {
        let Some(field) = self.fields.get(at) else { return FormOutcome::Leave };
        match field.value_of(words) {
            Ok(value) => {
                if let Some(value) = value {
                    self.given.insert(field.name().to_owned(), value);
                }
                self.ask_field(at + 1)
            }
            Err(why) if tries < MAX_TRIES => {
                let question = self.question_of(field, &format!("That does not fit: {why} "));
                self.step = FormStep::Field(at, tries + 1);
                FormOutcome::Ask(question)
            }
            Err(_) => FormOutcome::Leave,
        }
    }

    fn ask_field(&mut self, at: usize) -> FormOutcome {
        let Some(field) = self.fields.get(at) else {
            self.step = FormStep::Review;
            return FormOutcome::Ask(self.review());
        };
        let question = self.question_of(field, "");
        self.step = FormStep::Field(at, 0);
        FormOutcome::Ask(question)
    }

    fn question_of(&self, field: &FormField, before: &str) -> FormQuestion {
        let text = format!("{before}For {}: {}", self.server, field.words());
        FormQuestion { text, choices: field.choices() }
    }

    fn review(&self) -> FormQuestion {
        let told = self.fields.iter().map(|field| match self.given.get(field.name()) {
            Some(value) => format!("{}: {}.", field.label(), field.told(value)),
            None => format!("{}: left out.", field.label()),
        });
        let told = told.collect::<Vec<_>>().join(" ");
        FormQuestion {
            text: format!("Send this to {}? {told}", self.server),
            choices: pairs(&[
                ("send", "Send"),
                ("again", "Answer again from the beginning"),
                ("decline", "Decline"),
                ("leave", "Answer in the program instead"),
            ]),
        }
    }

    fn done(&self) -> FormOutcome {
        FormOutcome::Done(json!({ "action": "accept", "content": self.given }))
    }
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(value, label)| ((*value).to_owned(), (*label).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(properties: &Value, required: &[&str]) -> OpenForm {
        let params = json!({ "message": "Who are you?",
            "requestedSchema": { "type": "object", "properties": properties, "required": required } });
        OpenForm::read("shop", &params).expect("a form")
    }

    fn asked(outcome: FormOutcome) -> FormQuestion {
        match outcome {
            FormOutcome::Ask(question) => question,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn several_fields_are_asked_one_by_one_and_shown_before_they_are_sent() {
        let mut form = form(
            &json!({
                "age": { "type": "integer", "minimum": 18 },
                "name": { "type": "string", "title": "Your name", "minLength": 2 },
                "news": { "type": "boolean" },
            }),
            &["age", "name"],
        );
        assert_eq!(
            form.opening().text,
            "shop asks you: Who are you? It wants to know: age, Your name, news."
        );
        assert!(asked(form.answer("answer")).text.starts_with("For shop: age"));
        for wrong in ["seventeen", "17"] {
            assert!(asked(form.answer(wrong)).text.starts_with("That does not fit: "), "{wrong}");
        }
        assert!(asked(form.answer("40")).text.contains("Your name"));
        assert_eq!(asked(form.answer("Ada")).choices[0].1, "Yes");
        let review = asked(form.answer("no"));
        assert_eq!(review.text, "Send this to shop? age: 40. Your name: “Ada”. news: no.");
        assert_eq!(
            form.answer("send"),
            FormOutcome::Done(json!({ "action": "accept",
                "content": { "age": 40, "name": "Ada", "news": false } }))
        );
    }

    #[test]
    fn one_choice_is_one_question() {
        let mut form = form(
            &json!({ "colour": { "type": "string", "oneOf": [
                { "const": "#f00", "title": "Red" }, { "const": "decline", "title": "Blue" }] } }),
            &["colour"],
        );
        let opening = form.opening();
        let labels: Vec<&str> = opening.choices.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels, ["Red", "Blue", "Decline", "Answer in the program instead"]);
        // A value of the server that has the name of a choice of ours is not taken for it.
        let blue = opening.choices[1].0.clone();
        assert_eq!(
            form.answer(&blue),
            FormOutcome::Done(json!({ "action": "accept", "content": { "colour": "decline" } }))
        );
    }

    #[test]
    fn no_answer_sends_something_that_the_person_did_not_choose() {
        let fields = json!({ "a": { "type": "string" }, "b": { "type": "string" } });
        for words in ["", "yes", "send", "accept", "ANSWER"] {
            assert_eq!(form(&fields, &[]).answer(words), FormOutcome::Leave, "{words}");
        }
        let mut declined = form(&fields, &[]);
        assert_eq!(declined.answer("decline"), FormOutcome::Done(json!({ "action": "decline" })));
        let mut empty = form(&json!({}), &[]);
        assert_eq!(empty.answer("yes"), FormOutcome::Leave);
        assert_eq!(
            empty.answer("accept"),
            FormOutcome::Done(json!({ "action": "accept", "content": {} }))
        );
        // Where the person writes freely, the words of our choices are words like others.
        let mut written = form(&fields, &[]);
        asked(written.answer("answer"));
        asked(written.answer("decline"));
        let review = asked(written.answer("-"));
        assert_eq!(review.text, "Send this to shop? a: “decline”. b: left out.");
    }

    #[test]
    fn what_cannot_be_put_whole_is_not_put() {
        let read = |params: Value| OpenForm::read("shop", &params);
        assert_eq!(
            read(json!({ "mode": "url", "message": "x", "url": "https://example.org" })),
            None
        );
        assert_eq!(read(json!({ "requestedSchema": {} })), None);
        assert_eq!(read(json!({ "message": "x".repeat(20_000) })), None);
        let nested = json!({ "message": "x",
            "requestedSchema": { "properties": { "a": { "type": "object" } } } });
        assert_eq!(read(nested), None);
    }
}
