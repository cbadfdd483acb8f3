//! `aaep ask`: asks a person through the hub, waits, and says by its exit code whether they accept (§6).
//!
//! The exit code is 0 only for an accept of exactly this question, given by a person or their rule, or by silence
//! where silence may consent (ruling 35). A reject, a withdrawn question, a lost hub and an unreadable answer all
//! give another exit code.

mod put;
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

use crate::agent::{EventRefusal, SPEAKER_FLAGS, SpeakerFlags, fresh_id, publish_within};
use crate::console::{self, CommandFailure, ascii_json_line};
use crate::english::asking;
use crate::http::HubClient;
use crate::hubs::HubFlags;
use crate::keys::tell;
pub(crate) use put::BridgeAsk;
use question::PreparedAsk;
use waiting::ReportedOutcome;

const EXIT_CODES: &str = "\
For example, in a script: aaep ask \"Delete the old photos?\" --irreversible && rm -r old-photos
Exit codes:
  0  the person or a rule of theirs accepts; or with --choices or --freetext, there is an answer, on standard output
  0  also if nobody answers, but only with --default accept --risk low --reversible
  1  no consent: rejected, no answer in time, nobody who could answer, or you stopped it with Control-C
  2  no consent either: the question could not be asked, or it is not known how it ended";

/// What to ask.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXIT_CODES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own for people")]
pub(crate) struct AskOptions {
    /// The question, or the action that needs consent, in words for people.
    question: String,
    /// What happens if the person accepts.
    #[arg(long, value_name = "WORDS")]
    consequence: Option<String>,
    /// How much can go wrong.
    #[arg(long, value_enum)]
    risk: Option<AskRisk>,
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
    /// What silence means. By default reject; accept counts only with --risk low and --reversible. With --choices or
    /// --freetext, the answer that silence stands for; by default there is none.
    #[arg(long, value_name = "DECISION")]
    default: Option<String>,
    /// Let the person choose one of these, separated by commas, and print the choice.
    #[arg(long, value_name = "A,B", value_delimiter = ',', conflicts_with = "freetext")]
    choices: Vec<String>,
    /// Let the person answer in their own words, and print them.
    #[arg(long)]
    freetext: bool,
    /// Print the outcome as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    speaker: SpeakerFlags,
    #[command(flatten)]
    hub: HubFlags,
}

/// How much can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AskRisk {
    /// Little.
    Low,
    /// Something.
    Medium,
    /// A lot.
    High,
}

/// An ask that was sent, with everything needed to find or withdraw it.
#[derive(Debug)]
struct SentAsk {
    client: HubClient,
    speaker: SpeakerFlags,
    /// Whether this command began the session and must end it.
    owns_session: bool,
    question: PreparedAsk,
}

/// Asks, waits and reports the outcome.
pub(crate) fn run(arguments: &AskOptions) -> Result<ExitCode, CommandFailure> {
    let client = arguments.hub.agent_client()?;
    let mut speaker = arguments.speaker.without_empty();
    let owns_session = speaker.session.is_none();
    if owns_session {
        speaker.session = Some(fresh_id("sess_")?);
    }
    let question = PreparedAsk::new(arguments, &speaker)?;
    let asked = Arc::new(SentAsk { client, speaker, owns_session, question });
    let race = race::withdraw_when_stopped(&asked)?;
    asked.begin()?;
    say_what_is_waited_for(arguments);
    let outcome = waiting::wait(&asked.client, &asked.question);
    // The ask is settled. If a Control-C came first, it withdraws the ask and this call never returns.
    race.finish();
    let outcome = outcome.inspect_err(|_| asked.abandon())?;
    asked.end(&outcome);
    report(&outcome, arguments.json)
}

impl SentAsk {
    /// Begins a session if there is none.
    fn begin(&self) -> Result<(), CommandFailure> {
        if !self.owns_session {
            return Ok(());
        }
        let summary = json!({ "summary_normal": asking::has_question(self.speaker.name()) });
        let started = self.speaker.event("session.started", summary);
        let time = Duration::from_secs(self.question.timeout_seconds) + waiting::GRACE;
        for answer in publish_within(&self.client, &[started], time)? {
            let refused = |refusal: EventRefusal| {
                let message = refusal.in_terms_of(&SPEAKER_FLAGS).message;
                CommandFailure::of_sentences(&message, asking::FIX_AND_ASK_AGAIN)
            };
            answer.map_err(refused)?;
        }
        Ok(())
    }

    /// Ends our session. The outcome stands even if that fails.
    fn end(&self, outcome: &ReportedOutcome) {
        let summary = json!({ "summary_normal": outcome.sentence() });
        self.publish_end("session.completed", summary);
    }

    /// Withdraws the ask if it is open, and ends our session without an outcome.
    fn abandon(&self) {
        waiting::withdraw(&self.client, &self.question);
        self.publish_end(
            "session.cancelled",
            json!({ "cancelled_by": "producer", "summary_normal": asking::NOBODY_LEARNED }),
        );
    }

    /// Withdraws the ask and ends our session.
    fn withdraw(&self) {
        let is_withdrawn = waiting::withdraw(&self.client, &self.question);
        self.publish_end(
            "session.cancelled",
            json!({ "cancelled_by": "user", "summary_normal": asking::QUESTION_WITHDRAWN }),
        );
        console::say(if is_withdrawn { asking::WITHDRAWN } else { asking::NOT_WITHDRAWN });
    }

    fn publish_end(&self, name: &str, fields: Value) {
        if self.owns_session {
            let _ =
                publish_within(&self.client, &[self.speaker.event(name, fields)], waiting::GRACE);
        }
    }
}

fn say_what_is_waited_for(arguments: &AskOptions) {
    let question = question::as_sentence(&arguments.question);
    console::say(&asking::waiting(&printable(&question), arguments.timeout));
}

fn report(outcome: &ReportedOutcome, as_json: bool) -> Result<ExitCode, CommandFailure> {
    if as_json {
        tell(&ascii_json_line(&outcome.answer))?;
    } else if let Some(response) = outcome.response() {
        // A script gets the answer unchanged; on a terminal, control characters are removed.
        let is_terminal = io::stdout().is_terminal();
        tell(&if is_terminal { printable(&response).into_owned() } else { response })?;
    } else {
        tell(outcome.printed())?;
    }
    console::say(&outcome.sentence());
    Ok(if outcome.is_yes() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
