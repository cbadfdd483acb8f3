//! The fields of a form as questions.

use aaep_bridge::acp::{AcpForm, FormFieldKind};
use serde_json::{Value, json};

use crate::english::chatting;

/// The question for the field that comes now, and how many choices it has.
pub(super) fn question(form: &AcpForm) -> Option<(Value, usize)> {
    let (field, number, of) = form.field()?;
    let message = if number == 1 { form.message.as_str() } else { "" };
    let mut question = chatting::form_field(message, &field.title, &field.description, number, of);
    let more = chatting::form_hint(&field.kind, field.bounds(), field.is_required);
    if !more.is_empty() {
        question = format!("{question} {more}");
    }
    let (kinds, choices) = match &field.kind {
        FormFieldKind::Text => ("freetext", None),
        FormFieldKind::Number(_) => ("numeric", None),
        FormFieldKind::YesNo => ("yes_no", None),
        FormFieldKind::One(choices) | FormFieldKind::Several(choices) => {
            ("multiple_choice", Some(choices))
        }
    };
    let mut fields = json!({ "question": question, "accepted_response_kinds": [kinds] });
    if let Some(choices) = choices {
        let listed = choices.iter().map(|(value, words)| json!({ "value": value, "label": words }));
        fields["choices"] = listed.collect();
    }
    Some((fields, choices.map_or(0, Vec::len)))
}
