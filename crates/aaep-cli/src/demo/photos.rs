//! The task that `aaep demo` shows: an agent looks for old photos to free space, asks which year, and asks again
//! before it deletes them for good. All of it is made up.

use serde_json::json;

use super::script::{
    SceneAnswer, SceneStep, SceneTool, completed, merged, pause, progress, say, started, thinking,
};

const LIST: SceneTool = SceneTool {
    name: "list_photos",
    call_id: "call_list",
    summary: "Looking through the folder Pictures.",
    result: "Found 1,204 photos from 2018 and 2019.",
};

const COMPARE: SceneTool = SceneTool {
    name: "compare_photos",
    call_id: "call_compare",
    summary: "Looking for blurred photos and doubles.",
    result: "240 photos are blurred or there twice. They take 1.8 gigabytes.",
};

const DELETE: SceneTool = SceneTool {
    name: "delete_photos",
    call_id: "call_delete",
    summary: "Deleting 240 photos.",
    result: "240 photos are deleted.",
};

pub(super) fn steps() -> Vec<SceneStep> {
    let mut steps = vec![
        started("Freeing space by finding photos that nobody needs."),
        thinking(),
        pause(600),
        LIST.invoked(json!({ "risk_level": "low" })),
        pause(700),
        progress(50, "Half of the folder is listed"),
        pause(700),
        LIST.completed(),
    ];
    let question = json!({
        "question": "Which year shall I look at?",
        "accepted_response_kinds": ["multiple_choice"],
        "choices": [
            { "value": "2018", "label": "The photos of 2018" },
            { "value": "2019", "label": "The photos of 2019" },
        ],
        "timeout_seconds": 300,
    });
    steps.push(SceneStep::Ask("awaiting.clarification", question, after_the_year));
    steps
}

fn after_the_year(answer: &SceneAnswer) -> Vec<SceneStep> {
    let year = match answer.response.as_deref() {
        Some("2018") => "2018",
        Some("2019") => "2019",
        _ => {
            let mut steps =
                say("out_answer", &["You chose no year.", "I leave everything as it is."]);
            steps.push(completed("Nothing was deleted."));
            return steps;
        }
    };
    let mut steps = COMPARE.run();
    let found = format!("Of the photos of {year}, 240 are blurred or there twice.");
    steps.extend(say("out_found", &[&found, "They take 1.8 gigabytes.", "I can delete them."]));
    let question = json!({
        "action": format!("Delete 240 photos of {year}."),
        "consequence": "They are gone for good. There is no copy.",
        "summary_normal": "May I delete 240 photos for good?",
        "risk_level": "high",
        "irreversible": true,
        "timeout_seconds": 120,
        "default_decision": "reject",
    });
    let question = merged(question, DELETE.bound(&arguments(), true));
    steps.push(SceneStep::Ask("awaiting.confirmation", question, after_the_consent));
    steps
}

fn after_the_consent(answer: &SceneAnswer) -> Vec<SceneStep> {
    let mut steps = Vec::new();
    if answer.is_accepted {
        let irreversible = json!({ "risk_level": "high", "irreversible": true });
        steps.push(DELETE.invoked(merged(irreversible, DELETE.bound(&arguments(), false))));
        steps.push(pause(600));
        steps.push(progress(50, "120 of 240 photos are deleted"));
        steps.push(pause(600));
        steps.push(DELETE.completed());
        steps.extend(say("out_answer", &["I deleted 240 photos.", "1.8 gigabytes are free now."]));
        steps.push(completed("240 photos are deleted."));
    } else {
        steps.extend(say("out_answer", &["I deleted nothing.", "All photos are where they were."]));
        steps.push(completed("Nothing was deleted."));
    }
    steps
}

/// The arguments of the tool that deletes.
fn arguments() -> serde_json::Value {
    json!({ "folder": "Pictures", "marked": 240 })
}
