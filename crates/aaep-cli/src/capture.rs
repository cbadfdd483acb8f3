//! `aaep capture`: records what a producer sends, over any wire, one event per line.
//!
//! It only listens: unless the questions themselves are wanted, the producer does not count it as someone who could
//! answer. A line is written completely or not at all.

mod lines;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use aaep::event::action::CoalesceBoundary;
use aaep::{Event, SessionId, TypePattern, Urgency, printable};
use aaep_subscriber::{Ended, News, Subscriber, Wishes, connect};
use clap::{Args, ValueEnum};
use tokio::time::{Instant, sleep_until, timeout};

use crate::console::{COULD_NOT, CommandFailure, ascii_json_line, count};
use crate::english::failures;
use crate::hubs::{HubFlags, OldForms};
use crate::stop::StopSignals;
use lines::CaptureLines;

const EXIT_CODES: &str = "\
For example: aaep capture --limit 100 --output session.jsonl
You name a producer as you name a hub. stdio:PROGRAM starts one here.
A recording cannot answer, so a hub tells it that something is asked, but not what. With --questions the hub also tells
the question, and then waits for an answer even if nobody else listens.
Exit codes:
  0  everything that you wanted is recorded, or you stopped it
  2  it could not be done: no connection, a refusal, or no space for the lines";

/// How long closing the subscription may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// What to record, and for how long.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct CaptureOptions {
    #[command(flatten)]
    old: OldForms,
    #[command(flatten)]
    hub: HubFlags,
    /// Record only this type of event, such as tool.invoked, tool.* or aaep:agent.tool.invoked. Can be given several
    /// times.
    #[arg(long = "type", value_name = "PATTERN", value_parser = pattern)]
    types: Vec<TypePattern>,
    /// Record only events of this urgency.
    #[arg(long, value_name = "URGENCY")]
    urgency: Option<CaptureUrgency>,
    /// Record only this session.
    #[arg(long, value_name = "ID", value_parser = session)]
    session: Option<SessionId>,
    /// Stop after this many events.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Stop after this many seconds.
    #[arg(long = "for", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    for_seconds: Option<u64>,
    /// Record the questions themselves, too. The hub then counts this program as somebody who could answer, and waits
    /// until the time of the question is over.
    #[arg(long)]
    questions: bool,
    /// Write the lines into this new file instead of standard output.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// For a producer of level 1, which has no handshake and only sends events.
    #[arg(long)]
    without_handshake: bool,
    /// Connect to other machines over plain HTTP, too. Anyone on the way can then read everything.
    #[arg(long)]
    insecure_allow_plain_http: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CaptureUrgency {
    Background,
    Normal,
    Critical,
}

fn pattern(text: &str) -> Result<TypePattern, String> {
    let is_short = !text.contains(':') && text != "*";
    let text = if is_short { format!("aaep:agent.{text}") } else { text.to_owned() };
    TypePattern::parse(&text).map_err(|error| error.to_string())
}

fn session(text: &str) -> Result<SessionId, String> {
    SessionId::parse(text).map_err(|error| error.to_string())
}

/// Records until a limit, a signal or the end of the subscription.
pub(crate) fn run(arguments: &CaptureOptions) -> Result<ExitCode, CommandFailure> {
    arguments.old.refuse("capture")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| CommandFailure::new(failures::no_threads(&error), failures::TRY_LATER))?;
    let result = runtime.block_on(capture(arguments));
    // A name lookup that never ends must not delay the exit.
    runtime.shutdown_background();
    result
}

async fn capture(arguments: &CaptureOptions) -> Result<ExitCode, CommandFailure> {
    // Before anything else runs, so that no signal is missed.
    let stopped = StopSignals::new()
        .map_err(|error| CommandFailure::new(failures::no_signals(&error), failures::TRY_LATER))?;
    let mut stopped = std::pin::pin!(stopped.wait());
    let address = arguments.hub.address()?;
    let mut lines = CaptureLines::start(arguments.output.clone())?;
    let subscriber = tokio::select! {
        subscriber = connect(&address, wishes(arguments, &address)) => subscriber,
        () = &mut stopped => return finish(lines, 0, None).await,
    };
    let mut subscriber = subscriber.map_err(|error| {
        CommandFailure::of_sentences(
            &error.to_string(),
            "See whether it runs, and check the address.",
        )
    })?;
    tell_people(&format!("Recording what {} says. Stop with Control-C.", printable(&address)));
    let until = arguments.for_seconds.map(|it| Instant::now() + Duration::from_secs(it));
    let for_people = arguments.output.is_none() && std::io::stdout().is_terminal();
    let mut recorded = 0;
    let ended = loop {
        let news = tokio::select! {
            news = next(&mut subscriber) => news,
            () = &mut stopped => break None,
            () = at(until) => break None,
            () = lines.failed() => break None,
        };
        let event = match news {
            News::Event(event) => *event,
            News::Ask(ask) => ask.event().clone(),
            News::Ended(ended) => break Some(ended),
            other => {
                explain(&other);
                continue;
            }
        };
        if !is_wanted(arguments, &event) {
            continue;
        }
        let Some(line) = line(&event, for_people) else { continue };
        let is_written = tokio::select! {
            is_written = lines.write(line) => is_written,
            () = &mut stopped => break None,
        };
        if !is_written {
            lines.failed().await;
            break None;
        }
        recorded += 1;
        if arguments.limit.is_some_and(|limit| recorded >= limit) {
            break None;
        }
    };
    // If the goodbye takes too long, leave without it.
    let _ = timeout(GOODBYE, subscriber.close(None)).await;
    finish(lines, recorded, ended).await
}

fn wishes(arguments: &CaptureOptions, address: &str) -> Wishes {
    let mut wishes = Wishes::new("aaep-capture").name("aaep capture");
    if !arguments.questions {
        wishes = wishes.only_listening();
    }
    // Text is recorded in the chunks in which it arrives.
    wishes.capabilities.coalesce_boundaries = Some(vec![CoalesceBoundary::None]);
    // Only the person receives the questions themselves.
    let key = || arguments.questions.then(|| crate::person::key_for(address)).flatten();
    wishes.bearer = arguments.hub.token().map(str::to_owned).or_else(key);
    wishes.without_handshake = arguments.without_handshake;
    wishes.insecure_allow_plain_http = arguments.insecure_allow_plain_http;
    wishes
}

/// An event as one line. On a terminal, untrusted text must not contain control characters.
fn line(event: &Event, for_people: bool) -> Option<String> {
    let mut line = if for_people {
        ascii_json_line(&serde_json::to_value(event).ok()?)
    } else {
        serde_json::to_string(event).ok()?
    };
    line.push('\n');
    Some(line)
}

async fn next(subscriber: &mut Subscriber) -> News {
    subscriber.next().await.unwrap_or(News::Ended(Ended::Closed))
}

async fn at(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

fn is_wanted(arguments: &CaptureOptions, event: &Event) -> bool {
    let event_type = event.event_type();
    let is_type = |pattern: &TypePattern| pattern.matches(&event_type);
    let urgency = match &event.envelope.urgency {
        _ if event.is_critical() => CaptureUrgency::Critical,
        Some(Urgency::Background) => CaptureUrgency::Background,
        _ => CaptureUrgency::Normal,
    };
    (arguments.types.is_empty() || arguments.types.iter().any(is_type))
        && arguments.urgency.is_none_or(|wanted| wanted == urgency)
        && arguments.session.as_ref().is_none_or(|wanted| *wanted == event.envelope.session_id)
}

/// Reports on standard error what is worth knowing besides the events.
fn explain(news: &News) {
    match news {
        News::Gap { session_id, .. } => {
            tell_people(&format!("Something of {} was not heard.", printable(session_id.as_str())));
        }
        News::Reconnecting { why, .. } => tell_people(&format!("{why} Trying again.")),
        News::Reconnected => tell_people("The connection is back."),
        News::Violation(violation) => tell_people(&violation.to_string()),
        News::Refused { message, .. } => tell_people(&printable(message)),
        _ => {}
    }
}

fn tell_people(text: &str) {
    use std::io::Write as _;
    // Nothing depends on this being read.
    let _ = writeln!(std::io::stderr(), "{}", printable(text));
}

async fn finish(
    lines: CaptureLines,
    recorded: u64,
    ended: Option<Ended>,
) -> Result<ExitCode, CommandFailure> {
    lines.finish().await?;
    tell_people(&format!("Recorded {}.", count(recorded, "event")));
    match ended {
        None | Some(Ended::Closed | Ended::ClosedByProducer(_)) => Ok(ExitCode::SUCCESS),
        Some(other) => {
            tell_people(&other.to_string());
            Ok(ExitCode::from(COULD_NOT))
        }
    }
}
