//! What the scripted agent does with a prompt. It recognises a few prompts by words in them, including those of the
//! public conformance suite, and greets at all others.

use serde_json::json;

use super::photos;
use super::script::{
    SceneAnswer, SceneStep, SceneTool, completed, errored, merged, pause, say, started, thinking,
};

/// Builds the steps of a scene.
type SceneScript = fn() -> Vec<SceneStep>;

/// The words that a prompt must contain for each scene. The first match wins.
const SCENES: &[(&[&str], SceneScript)] = &[
    (&["photo"], photos::steps),
    (&["confirmation for any action"], nothing_to_do),
    (&["does not exist"], unknown_tool),
    (&["deliberate error"], deliberate_error),
    (&["with these arguments"], call_with_arguments),
    (&["api_key"], call_with_arguments),
    (&["escalate"], handoff),
    (&["human"], handoff),
    (&["delete", "record"], delete_record),
    (&["book", "room"], book_room),
    (&["email"], send_email),
    (&["weather"], weather),
    (&["rainbow"], rainbow),
    (&["tool"], fetch_data),
    (&["paragraph"], paragraph),
    (&["moon"], moon),
];

/// The steps for a prompt.
pub(crate) fn steps_for(prompt: &str) -> Vec<SceneStep> {
    let prompt = prompt.to_lowercase();
    let fits = |words: &[&str]| words.iter().all(|word| prompt.contains(word));
    let scene = SCENES.iter().find(|(words, _)| fits(words));
    scene.map_or_else(greeting, |(_, steps)| steps())
}

/// A session that begins, says something, and ends.
fn short(begin: &str, sentences: &[&str], end: &str) -> Vec<SceneStep> {
    let mut steps = vec![started(begin)];
    steps.extend(say("out_answer", sentences));
    steps.push(completed(end));
    steps
}

fn greeting() -> Vec<SceneStep> {
    short("Saying hello.", &["Hello! Ask me to free space by looking at old photos."], "Done.")
}

fn moon() -> Vec<SceneStep> {
    short(
        "Looking for a fact about the moon.",
        &["The moon moves away from the earth by about four centimetres a year."],
        "Told a fact about the moon.",
    )
}

fn paragraph() -> Vec<SceneStep> {
    short(
        "Writing a paragraph.",
        &[
            "A harbour wakes before the town does.",
            "Ropes creak, gulls argue, and an engine coughs.",
            "Then the first boat leaves and the water closes behind it.",
        ],
        "Wrote three sentences.",
    )
}

fn nothing_to_do() -> Vec<SceneStep> {
    short(
        "Looking for something to do.",
        &["There is nothing to do, so there is nothing to ask."],
        "Done. Nothing was asked.",
    )
}

fn rainbow() -> Vec<SceneStep> {
    let mut steps = vec![started("Explaining how a rainbow forms."), thinking(), pause(200)];
    steps.extend(say(
        "out_answer",
        &[
            "First, sunlight enters a drop of rain and bends.",
            "Each colour bends by another angle.",
            "Next, the light is thrown back inside the drop.",
            "Last, it bends again as it leaves.",
            "So each colour comes to you from drops at another height.",
        ],
    ));
    steps.push(completed("Explained the rainbow in five steps."));
    steps
}

fn fetch_data() -> Vec<SceneStep> {
    let tool = SceneTool {
        name: "fetch_data",
        call_id: "call_fetch",
        summary: "Fetching the newest figures.",
        result: "Fetched 12 figures.",
    };
    let mut steps = vec![started("Fetching some data.")];
    steps.extend(tool.run());
    steps.extend(say("out_answer", &["The newest of the 12 figures is 42."]));
    steps.push(completed("Fetched the data and answered."));
    steps
}

/// The prompt may contain secrets, so nothing from it is repeated.
fn call_with_arguments() -> Vec<SceneStep> {
    let tool = SceneTool {
        name: "call_service",
        call_id: "call_service1",
        summary: "Calling the service.",
        result: "The service answered.",
    };
    let quiet = json!({ "args_summary": "The address that you gave; what is secret is not told." });
    let mut steps = vec![started("Calling a service with what you gave."), tool.invoked(quiet)];
    steps.push(tool.completed());
    steps.extend(say("out_answer", &["The service answered that all is well."]));
    steps.push(completed("Called the service."));
    steps
}

fn unknown_tool() -> Vec<SceneStep> {
    vec![
        started("Calling a tool."),
        errored(
            "TOOL_NOT_FOUND",
            "There is no tool of that name, so nothing was done.",
            "Ask for one of the tools that there are.",
        ),
    ]
}

fn deliberate_error() -> Vec<SceneStep> {
    vec![
        started("Failing, as you asked."),
        errored("AS_REQUESTED", "This failed because you asked for it.", "Ask for something else."),
    ]
}

fn handoff() -> Vec<SceneStep> {
    let request = json!({
        "reason": "You asked for a person.",
        "target_kind": "human",
        "summary_normal": "Handing over to a person.",
        "urgency_for_handoff": "medium",
    });
    vec![
        started("Looking for a person who can take over."),
        SceneStep::Tell("handoff.requested", request),
        completed("A person was asked to take over."),
    ]
}

const ROOM: SceneTool = SceneTool {
    name: "book_room",
    call_id: "call_book",
    summary: "Booking the meeting room.",
    result: "The room is booked.",
};

fn book_room() -> Vec<SceneStep> {
    let question = json!({
        "action": "Book the meeting room for tomorrow at 14:00.",
        "consequence": "The room is yours for an hour. You can cancel the booking.",
        "risk_level": "low",
        "irreversible": false,
        "timeout_seconds": 120,
        "default_decision": "reject",
    });
    vec![
        started("Booking a meeting room."),
        SceneStep::Ask("awaiting.confirmation", question, |answer: &SceneAnswer| {
            let mut steps = Vec::new();
            if answer.is_accepted {
                steps.extend(ROOM.run());
                steps.push(completed("The room is booked for tomorrow at 14:00."));
            } else {
                steps.push(completed("No room was booked."));
            }
            steps
        }),
    ]
}

const EMAIL: SceneTool = SceneTool {
    name: "send_email",
    call_id: "call_send",
    summary: "Sending the email.",
    result: "The email is on its way.",
};

fn send_email() -> Vec<SceneStep> {
    let question = json!({
        "action": "Send the email.",
        "consequence": "It cannot be taken back once it is sent.",
        "risk_level": "medium",
        "irreversible": true,
        "timeout_seconds": 120,
        "default_decision": "reject",
    });
    let question = merged(question, EMAIL.bound(&json!({}), true));
    vec![
        started("Preparing an email."),
        SceneStep::Ask("awaiting.confirmation", question, |answer: &SceneAnswer| {
            if answer.is_accepted {
                irreversibly(EMAIL, "medium", &json!({}), "The email is sent.")
            } else {
                vec![completed("The email was not sent.")]
            }
        }),
    ]
}

const DELETE: SceneTool = SceneTool {
    name: "delete_record",
    call_id: "call_delete",
    summary: "Deleting the record.",
    result: "The record is deleted.",
};

fn delete_record() -> Vec<SceneStep> {
    let question = json!({
        "action": "Delete the record 12345.",
        "consequence": "It is gone for good. There is no copy.",
        "risk_level": "high",
        "irreversible": true,
        "timeout_seconds": 300,
        "default_decision": "reject",
    });
    let arguments = json!({ "record": 12345 });
    let question = merged(question, DELETE.bound(&arguments, true));
    vec![
        started("Deleting a record, if you agree."),
        SceneStep::Ask("awaiting.confirmation", question, |answer: &SceneAnswer| {
            if answer.is_accepted {
                irreversibly(DELETE, "high", &json!({ "record": 12345 }), "The record is deleted.")
            } else {
                vec![completed("The record was not deleted.")]
            }
        }),
    ]
}

/// Does what was accepted, and nothing else.
fn irreversibly(
    tool: SceneTool,
    risk: &str,
    arguments: &serde_json::Value,
    end: &str,
) -> Vec<SceneStep> {
    let stakes = json!({ "risk_level": risk, "irreversible": true });
    let fields = merged(stakes, tool.bound(arguments, false));
    vec![tool.invoked(fields), pause(300), tool.completed(), completed(end)]
}

fn weather() -> Vec<SceneStep> {
    let question = json!({
        "question": "Where are you?",
        "accepted_response_kinds": ["freetext"],
        "timeout_seconds": 300,
    });
    vec![
        started("Looking up the weather."),
        SceneStep::Ask("awaiting.clarification", question, |answer: &SceneAnswer| {
            match answer.words() {
                Some(place) => {
                    let forecast = format!(
                        "The demonstration knows no real weather, but let it be dry in {place}."
                    );
                    let mut steps = say("out_answer", &[&forecast]);
                    steps.push(completed("Told the weather."));
                    steps
                }
                None => vec![completed("Without a place there is no weather to tell.")],
            }
        }),
    ]
}

#[cfg(test)]
mod tests;
