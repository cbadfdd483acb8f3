//! `aaep attention`: what waits for the person, over all agents, the riskiest first.
//!
//! The numbers that it tells are those of `aaep answer` and of every other subscriber of this person.

pub(crate) mod asked;
pub(crate) mod danger;
pub(crate) mod file;
pub(crate) mod language;
pub(crate) mod look;
mod names;
pub(crate) mod numbers;
pub(crate) mod words;

use std::cmp::Reverse;
use std::process::ExitCode;

use aaep::{LanguageTag, Payload, printable};
use aaep_announce::rank;
use clap::Args;
use serde_json::{Value, json};

use crate::console::{self, COULD_NOT, Failure, ascii_json};
use crate::english::asks;
use crate::hubs::{Hub, HubFlags, OldForms, hubs};
use crate::keys::{now_unix_ms, tell};
use crate::settings::Listen;
use danger::Danger;
use file::NumbersFile;
use look::{Looked, Waiting};

const EXIT_CODES: &str = "\
Exit codes:
  0  nothing waits for you
  1  something waits for you
  2  it could not be looked everywhere, so nobody knows";

/// Where to look.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    old: OldForms,
    /// Print a JSON object, for machines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    hub: HubFlags,
}

impl HubFlags {
    /// The hub at this address, which may be one that the settings do not name, with its token. Settings that cannot
    /// be used must not keep anyone from saying no.
    pub(crate) fn hub_at(&self, address: &str) -> Hub {
        let known = self.listen().and_then(|listen| self.hubs(&listen));
        let known = known.unwrap_or_else(|failure| {
            console::complain(&failure);
            Vec::new()
        });
        let found = known.into_iter().find(|it| it.address == address);
        found.unwrap_or_else(|| {
            // Of several tokens nobody knows which one would be meant.
            let token = self.token().filter(|it| !it.contains(',')).map(str::to_owned);
            let token = token.or_else(|| crate::person::key_for(address));
            Hub { address: address.to_owned(), name: String::new(), token }
        })
    }
}

/// What waits, each with its number, in the order in which it is told.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) questions: Vec<(Option<u16>, Waiting)>,
    /// How many there are beside these.
    pub(crate) more: u64,
    /// Whether some hub could not be looked at.
    pub(crate) is_incomplete: bool,
}

/// Looks, and tells.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    arguments.old.refuse("attention")?;
    let listen = arguments.hub.listen()?;
    let queue = gather(&arguments.hub.hubs(&listen)?, &listen.language_tags().unwrap_or_default())?;
    if arguments.json {
        tell(&ascii_json(&queue.json()))?;
    } else {
        queue.tell()?;
    }
    Ok(queue.exit_code())
}

/// Looks at the hubs of this person.
pub(crate) fn gather_own(listen: &Listen, token: Option<&str>) -> Result<Queue, Failure> {
    gather(&hubs(listen, token)?, &listen.language_tags().unwrap_or_default())
}

/// Looks at all these hubs and gives what waits there its numbers. A hub that cannot be looked at is
/// complained about, and the others are told all the same.
pub(crate) fn gather(hubs: &[Hub], languages: &[LanguageTag]) -> Result<Queue, Failure> {
    let file = NumbersFile::own()?;
    let mut queue = Queue::default();
    for Hub { address, token, .. } in hubs {
        let looked_unix_s = now_unix_ms() / 1000;
        match look::look(address, token.as_deref()) {
            Ok(looked) => {
                queue.more += looked.more;
                queue.questions.extend(number(&file, looked_unix_s, address, looked)?);
            }
            Err(failure) => {
                console::complain(&failure);
                queue.is_incomplete = true;
            }
        }
    }
    names::tell_apart(queue.questions.iter_mut().map(|(_, it)| it).collect());
    queue.questions.sort_by_key(|(_, it)| (Reverse(rank(&it.event)), it.asked_at.unix_us()));
    for (_, waiting) in &mut queue.questions {
        waiting.event = language::in_language(waiting.event.clone(), languages);
    }
    Ok(queue)
}

/// Gives what waits at one address its numbers, and notices what is over there.
fn number(
    file: &NumbersFile,
    looked_unix_s: i64,
    address: &str,
    looked: Looked,
) -> Result<Vec<(Option<u16>, Waiting)>, Failure> {
    file.change(|numbers| {
        if looked.more == 0 {
            let open: Vec<_> = looked.waiting.iter().filter_map(|it| it.asked.clone()).collect();
            numbers.only_open(looked_unix_s, address, &open);
        }
        let now_unix_s = now_unix_ms() / 1000;
        let numbered = looked.waiting.into_iter().map(|waiting| {
            let asked = waiting.asked.as_ref();
            let number = asked.and_then(|asked| numbers.give(now_unix_s, address, asked));
            let known = number.and_then(|number| numbers.question(number));
            // Foreign text once more: it comes from the disk.
            let label = known.and_then(|it| it.agent_label.clone());
            (number, Waiting { agent_label: label, ..waiting })
        });
        numbered.collect()
    })
}

/// Remembers that the person was told these to their end, so that they can answer them by number. Objects for machines
/// are not told to anyone.
pub(crate) fn told_whole<'a>(told: impl Iterator<Item = &'a Waiting>) -> Result<(), Failure> {
    let told: Vec<_> = told.filter_map(|it| it.asked.as_ref()).collect();
    let now_unix_ms = now_unix_ms();
    NumbersFile::own()?.change(|numbers| {
        for asked in &told {
            numbers.presented(now_unix_ms, asked);
        }
    })
}

impl Queue {
    pub(crate) fn exit_code(&self) -> ExitCode {
        match (self.is_incomplete, self.count()) {
            (true, _) => ExitCode::from(COULD_NOT),
            (false, 0) => ExitCode::SUCCESS,
            (false, _) => ExitCode::from(1),
        }
    }

    /// How many wait.
    fn count(&self) -> u64 {
        self.more + self.questions.len() as u64
    }

    /// Tells it in lines.
    pub(crate) fn tell(&self) -> Result<(), Failure> {
        match self.count() {
            0 if self.is_incomplete => return tell(asks::NOTHING_WAITS_THERE),
            0 => return tell(asks::NOTHING_WAITS),
            count => tell(&asks::waiting(count))?,
        }
        for (number, waiting) in &self.questions {
            tell("")?;
            for line in words::block(*number, waiting) {
                tell(&line)?;
            }
        }
        told_whole(self.questions.iter().map(|(_, waiting)| waiting))?;
        tell("")?;
        if self.more > 0 {
            tell(&asks::and_more(self.more))?;
        }
        match self.questions.as_slice() {
            [(Some(number), waiting)] => {
                tell(&words::what_can_be_said(*number, &waiting.event.payload))
            }
            _ => tell(asks::TO_ANSWER),
        }
    }

    fn json(&self) -> Value {
        let questions: Vec<Value> = self.questions.iter().map(question_json).collect();
        json!({
            "waiting": self.count(),
            "complete": !self.is_incomplete,
            "questions": questions,
        })
    }
}

fn question_json((number, waiting): &(Option<u16>, Waiting)) -> Value {
    let (kind, danger) = match &waiting.event.payload {
        Payload::AwaitingConfirmation(asked) => ("confirmation", Some(Danger::of(asked))),
        _ => ("clarification", None),
    };
    json!({
        "number": number,
        "address": printable(&waiting.address),
        "agent": waiting.event.envelope.producer.agent_id,
        "agent_label": printable(&waiting.agent),
        "session_id": waiting.event.envelope.session_id,
        "reply_token": waiting.asked.as_ref().map(|it| &it.reply_token),
        "kind": kind,
        "asks": asked::what(&waiting.event),
        "risk": danger.map(|it| it.risk.word()),
        "can_be_undone": danger.map(|it| it.undo.word()),
        "asked_at": waiting.asked_at,
        "left_ms": u64::try_from(waiting.left.as_millis()).unwrap_or(u64::MAX),
        "paused": waiting.is_paused,
        "event": waiting.json,
    })
}
