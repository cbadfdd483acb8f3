//! `aaep ask`: asks a person through the hub, waits, and says by its exit code whether they accept (§6).
//!
//! Only an accept of exactly this question is exit code 0, and only if a person or their rule gave it, or if silence
//! may consent to what is asked (ruling 35). A reject, a withdrawn question, a hub that is gone and an answer that
//! cannot be read are all something else.

mod question;
mod race;
mod waiting;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use aaep::printable;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::agent::{Refusal, SPEAKER_FLAGS, Speaker, fresh_id, publish_within};
use crate::console::{self, Failure, ascii_json_line, count};
use crate::http::Client;
use crate::hubs::HubFlags;
use crate::keys::tell;
use question::Question;
use waiting::Outcome;

const EXIT_CODES: &str = "\
In a script: aaep ask \"Delete the old photos?\" --irreversible && rm -r old-photos
Exit codes:
  0  the person or a rule of theirs accepts; or with --choices or --freetext, there is an answer, on standard output
  0  also if nobody answers, but only with --default accept --risk low --reversible
  1  anything else that was decided: rejected, no answer in time, nobody there, stopped with Control-C
  2  it could not be asked, or the outcome could not be learned. That is no consent either";

/// What to ask.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXIT_CODES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own for people")]
pub(crate) struct Arguments {
    /// The question, or the action that needs consent, in words for people.
    question: String,
    /// What happens if the person accepts.
    #[arg(long, value_name = "WORDS")]
    consequence: Option<String>,
    /// How much can go wrong.
    #[arg(long, value_enum)]
    risk: Option<Risk>,
    /// It cannot be undone. Silence then means no.
    #[arg(long)]
    irreversible: bool,
    /// It can be undone.
    #[arg(long, conflicts_with = "irreversible")]
    reversible: bool,
    /// How many seconds the person has to answer. A hub that does not answer is tried for a few seconds longer.
    #[arg(long, value_name = "SECONDS", default_value_t = 120,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// How many seconds at most, if the person asks for more time.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    max_timeout: Option<u64>,
    /// What silence means: reject unless you say accept, which counts only with --risk low and --reversible. With
    /// --choices or --freetext, the answer that silence stands for; none unless you say one.
    #[arg(long, value_name = "DECISION")]
    default: Option<String>,
    /// Let the person choose one of these, separated by commas, and print it.
    #[arg(long, value_name = "A,B", value_delimiter = ',', conflicts_with = "freetext")]
    choices: Vec<String>,
    /// Let the person answer in their own words, and print them.
    #[arg(long)]
    freetext: bool,
    /// Print the outcome as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    speaker: Speaker,
    #[command(flatten)]
    hub: HubFlags,
}

/// How much can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Risk {
    /// Little.
    Low,
    /// Something.
    Medium,
    /// A lot.
    High,
}

/// A question on its way, with all that is needed to find it again or to take it back.
#[derive(Debug)]
struct Asked {
    client: Client,
    speaker: Speaker,
    /// The session is ours to end.
    owns_session: bool,
    question: Question,
}

/// Asks, waits, and tells the outcome.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let client = arguments.hub.agent_client()?;
    let mut speaker = arguments.speaker.without_empty();
    let owns_session = speaker.session.is_none();
    if owns_session {
        speaker.session = Some(fresh_id("sess_")?);
    }
    let question = Question::new(arguments, &speaker)?;
    let asked = Arc::new(Asked { client, speaker, owns_session, question });
    let race = race::withdraw_when_stopped(&asked)?;
    asked.begin()?;
    say_what_is_waited_for(arguments);
    let outcome = waiting::wait(&asked.client, &asked.question);
    // From here on it is settled; a Control-C that came first withdraws and never comes back here.
    race.finish();
    let outcome = outcome.inspect_err(|_| asked.abandon())?;
    asked.end(&outcome);
    report(&outcome, arguments.json)
}

impl Asked {
    /// Begins a session where there is none.
    fn begin(&self) -> Result<(), Failure> {
        if !self.owns_session {
            return Ok(());
        }
        let summary =
            json!({ "summary_normal": format!("{} has a question.", self.speaker.name()) });
        let started = self.speaker.event("session.started", summary);
        let time = Duration::from_secs(self.question.timeout_seconds) + waiting::GRACE;
        for answer in publish_within(&self.client, &[started], time)? {
            let next = "Fix it and ask again.";
            let refused = |refusal: Refusal| {
                Failure::of_sentences(&refusal.in_terms_of(&SPEAKER_FLAGS).message, next)
            };
            answer.map_err(refused)?;
        }
        Ok(())
    }

    /// Ends our session. The outcome stands whether or not that succeeds.
    fn end(&self, outcome: &Outcome) {
        let summary = json!({ "summary_normal": outcome.sentence() });
        self.publish_end("session.completed", summary);
    }

    /// Takes the question back if it is open, and ends our session, without an outcome.
    fn abandon(&self) {
        waiting::withdraw(&self.client, &self.question);
        let summary = "Nobody learned how the question ended. It counts as no.";
        self.publish_end(
            "session.cancelled",
            json!({ "cancelled_by": "producer", "summary_normal": summary }),
        );
    }

    /// Takes the question back, and ends our session.
    fn withdraw(&self) {
        let is_withdrawn = waiting::withdraw(&self.client, &self.question);
        self.publish_end(
            "session.cancelled",
            json!({ "cancelled_by": "user", "summary_normal": "The question was withdrawn." }),
        );
        console::say(if is_withdrawn {
            "The question is withdrawn. That is no consent."
        } else {
            "The question could not be withdrawn, but its answer counts for nothing here."
        });
    }

    fn publish_end(&self, name: &str, fields: Value) {
        if self.owns_session {
            let _ =
                publish_within(&self.client, &[self.speaker.event(name, fields)], waiting::GRACE);
        }
    }
}

fn say_what_is_waited_for(arguments: &Arguments) {
    console::say(&format!(
        "Asking: {} Waiting up to {} for an answer; Control-C withdraws the question.",
        printable(&question::as_sentence(&arguments.question)),
        count(arguments.timeout, "second"),
    ));
}

fn report(outcome: &Outcome, as_json: bool) -> Result<ExitCode, Failure> {
    if as_json {
        tell(&ascii_json_line(&outcome.answer))?;
    } else if let Some(response) = outcome.response() {
        // A script gets the answer as it is; a terminal gets nothing that steers it.
        let is_terminal = io::stdout().is_terminal();
        tell(&if is_terminal { printable(&response).into_owned() } else { response })?;
    } else {
        tell(outcome.printed())?;
    }
    console::say(&outcome.sentence());
    Ok(if outcome.is_yes() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
