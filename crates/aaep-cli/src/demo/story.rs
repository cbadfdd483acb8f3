//! What happens in `aaep demo`: two agents at work, a question that interrupts, a false claim, an answer from another
//! terminal, and something that is heard again. All of it is made up.

use std::time::Duration;

use aaep::extension::AskOutcome;
use aaep::{Object, ReplyToken};
use aaep_hub::access::Principal;
use serde_json::{Value, json};

use super::show::DemoPlayers;

/// How long one query of an ask may wait.
const WAIT: Duration = Duration::from_secs(30);

struct StoryActor {
    players: DemoPlayers,
    producer: Value,
    session: &'static str,
}

/// Plays the whole story, then stops the listening.
pub(super) async fn play(players: DemoPlayers) {
    let photos = StoryActor::new(&players, "photo-keeper", "Photo keeper", "demo-photos");
    let coder = StoryActor::new(&players, "coder", "Coder", "demo-shop");
    let played = tell_story(&players, &photos, &coder).await;
    if played.is_none() {
        players.narrator.say("The demonstration had to stop.").await;
    }
    players.until_told().await;
    players.type_line("quit").await;
}

async fn tell_story(players: &DemoPlayers, photos: &StoryActor, coder: &StoryActor) -> Option<()> {
    let narrator = &players.narrator;
    narrator.say("First, two agents work at the same time.").await;
    coder.say("session.started", words("Repairing the checkout of the shop.")).await?;
    players.pause(1500).await;
    photos
        .say("session.started", words("Freeing space by finding photos that nobody needs."))
        .await?;
    players.pause(1500).await;
    photos.say("tool.invoked", tool("compare_photos", "Looking for blurred photos.")).await?;
    players.pause(800).await;
    photos.say("tool.completed", done("compare_photos", "240 photos are blurred.")).await?;
    players.until_told().await;

    narrator
        .say("One agent talks at length. A risky question of the other does not wait for that.")
        .await;
    let token = interrupted(players, photos, coder).await?;
    players.answer(&token).await;
    let is_accepted = photos.outcome(&token).await? == AskOutcome::Accept;
    if is_accepted {
        let stakes = json!({ "irreversible": true, "risk_level": "high" });
        let invoked = merged(tool("delete_photos", "Deleting 240 photos."), stakes);
        photos.say("tool.invoked", invoked).await?;
        players.pause(600).await;
        photos.say("tool.completed", done("delete_photos", "240 photos are deleted.")).await?;
        photos.say("session.completed", words("240 photos are deleted.")).await?;
    } else {
        photos.say("session.completed", words("Nothing was deleted.")).await?;
    }
    players.until_told().await;

    narrator.say("Next, an agent says what is not true. Then repeat is typed: you hear the last thing again.").await;
    coder.say("tool.invoked", tool("npm_test", "Running the 41 tests of the shop.")).await?;
    players.pause(1200).await;
    let failed = json!({
        "tool": "npm_test", "status": "error", "error_message": "2 of 41 tests failed.",
        "summary_normal": "2 of 41 tests failed.",
    });
    coder.say("tool.completed", failed).await?;
    players.pause(600).await;
    coder.say("output.streaming", piece("All 41 tests pass.", true)).await?;
    players.until_told().await;

    players.type_line("repeat").await;
    players.until_told().await;

    narrator.say("A question can be answered from anywhere.").await;
    let publish = json!({
        "action": "Publish the shop to all customers.",
        "consequence": "Customers see it at once.",
        "risk_level": "medium", "irreversible": false,
        "timeout_seconds": 60, "default_decision": "reject",
    });
    let token = coder.ask(publish).await?;
    players.answer_elsewhere(&token).await;
    let outcome = coder.outcome(&token).await?;
    let end = match outcome {
        AskOutcome::Accept => "The shop may be published.",
        _ => "The shop was not published.",
    };
    coder.say("session.completed", words(end)).await?;
    players.until_told().await;
    Some(())
}

/// One agent streams a long text, and the other asks in the middle. Returns the reply token.
async fn interrupted(
    players: &DemoPlayers,
    photos: &StoryActor,
    coder: &StoryActor,
) -> Option<ReplyToken> {
    const TEXT: [&str; 6] = [
        "I read how the shop adds up a basket. ",
        "The sum is rounded for each article, and once more at the end. ",
        "So a basket of three articles can be a cent too dear. ",
        "I round once now, where the sum is made. ",
        "The old tests expected the wrong sums, so I changed four of them. ",
        "Then I looked at the page for the address, and left it as it is.",
    ];
    let (first, rest) = TEXT.split_at(2);
    for text in first {
        coder.say("output.streaming", piece(text, false)).await?;
        players.pause(300).await;
    }
    let question = json!({
        "action": "Delete 240 photos.",
        "consequence": "They are gone for good. There is no copy.",
        "risk_level": "high", "irreversible": true,
        "timeout_seconds": 120, "default_decision": "reject",
    });
    let token = photos.ask(question).await?;
    for (at, text) in rest.iter().enumerate() {
        coder.say("output.streaming", piece(text, at + 1 == rest.len())).await?;
        players.pause(100).await;
    }
    Some(token)
}

impl StoryActor {
    fn new(players: &DemoPlayers, id: &str, name: &str, session: &'static str) -> Self {
        let producer = json!({ "agent_id": id, "agent_name": name });
        StoryActor { players: players.clone(), producer, session }
    }

    /// Publishes an event in the short form; `None` if the hub refuses it.
    async fn say(&self, name: &str, fields: Value) -> Option<Option<ReplyToken>> {
        let mut event = Object::new();
        event.insert("type".to_owned(), format!("aaep:agent.{name}").into());
        event.insert("session_id".to_owned(), self.session.into());
        event.insert("producer".to_owned(), self.producer.clone());
        event.insert("localization_hints".to_owned(), json!({ "primary_language": "en" }));
        event.extend(fields.as_object().cloned().unwrap_or_default());
        let published = self.players.hub.publish(&Principal::local(), vec![event], None).await;
        Some(published.ok()?.pop()?.ok()?.reply_token)
    }

    async fn ask(&self, question: Value) -> Option<ReplyToken> {
        self.say("awaiting.confirmation", question).await?
    }

    /// Waits for the outcome of an ask.
    async fn outcome(&self, token: &ReplyToken) -> Option<AskOutcome> {
        loop {
            let state = self.players.hub.ask_state(&Principal::local(), token, WAIT).await.ok()?;
            if let Some(settlement) = state.settlement {
                return Some(settlement.outcome);
            }
        }
    }
}

fn words(summary: &str) -> Value {
    json!({ "summary_normal": summary })
}

fn tool(name: &str, summary: &str) -> Value {
    json!({ "tool": name, "summary_normal": summary })
}

fn done(name: &str, summary: &str) -> Value {
    json!({ "tool": name, "status": "success", "summary_normal": summary })
}

fn piece(text: &str, is_last: bool) -> Value {
    json!({ "chunk": text, "complete": is_last })
}

fn merged(mut fields: Value, further: Value) -> Value {
    if let (Value::Object(fields), Value::Object(further)) = (&mut fields, further) {
        fields.extend(further);
    }
    fields
}
