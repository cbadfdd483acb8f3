//! `aaep attention`: lists the questions waiting for the person, from all agents, riskiest first.
//!
//! Its numbers are the same as those of `aaep answer` and of every other subscriber of this person.

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

use crate::console::{self, COULD_NOT, CommandFailure, ascii_json};
use crate::english::asks;
use crate::hubs::{HubFlags, HubTarget, OldForms, hubs};
use crate::keys::{now_unix_ms, tell};
use crate::settings::ListenSettings;
use danger::{risk_word, undo_word};
use file::NumbersFile;
use look::{AttentionEntries, AttentionEntry};

const EXIT_CODES: &str = "\
For example, for the hub of your team: aaep attention --hub https://hub.example.org
Exit codes:
  0  no question waits for you
  1  at least one question waits for you
  2  a hub could not be asked, so more questions may wait";

/// Where to look.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct AttentionOptions {
    #[command(flatten)]
    old: OldForms,
    /// Print one JSON object, for programs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    hub: HubFlags,
}

impl HubFlags {
    /// The hub at this address, with its token, even if the settings do not name it. Unusable settings must not keep
    /// anyone from saying no.
    pub(crate) fn hub_at(&self, address: &str) -> HubTarget {
        let known = self.listen().and_then(|listen| self.hubs(&listen));
        let known = known.unwrap_or_else(|failure| {
            console::complain(&failure);
            Vec::new()
        });
        let found = known.into_iter().find(|it| it.address == address);
        found.unwrap_or_else(|| {
            // If there are several tokens, nothing says which one belongs to this hub.
            let token = self.token().filter(|it| !it.contains(',')).map(str::to_owned);
            let token = token.or_else(|| crate::person::key_for(address));
            HubTarget { address: address.to_owned(), name: String::new(), token }
        })
    }
}

/// The attention list: pending questions with their numbers, in the order in which they are told.
#[derive(Debug, Default)]
pub(crate) struct AttentionList {
    pub(crate) questions: Vec<(Option<u16>, AttentionEntry)>,
    /// How many more questions there are.
    pub(crate) more: u64,
    /// Whether some hub could not be queried.
    pub(crate) is_incomplete: bool,
    /// Whether any hub could be queried.
    pub(crate) is_known: bool,
}

pub(crate) fn run(arguments: &AttentionOptions) -> Result<ExitCode, CommandFailure> {
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

/// Queries this person's hubs.
pub(crate) fn gather_own(
    listen: &ListenSettings,
    token: Option<&str>,
) -> Result<AttentionList, CommandFailure> {
    gather(&hubs(listen, token)?, &listen.language_tags().unwrap_or_default())
}

/// Queries all these hubs and numbers their pending questions. Reports a hub that cannot be queried and continues
/// with the others.
pub(crate) fn gather(
    hubs: &[HubTarget],
    languages: &[LanguageTag],
) -> Result<AttentionList, CommandFailure> {
    let file = NumbersFile::own()?;
    let mut queue = AttentionList::default();
    for HubTarget { address, token, .. } in hubs {
        let looked_unix_s = now_unix_ms() / 1000;
        match look::look(address, token.as_deref()) {
            Ok(looked) => {
                queue.is_known = true;
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

/// Numbers the pending questions at one address, and notes which earlier ones are over.
fn number(
    file: &NumbersFile,
    looked_unix_s: i64,
    address: &str,
    looked: AttentionEntries,
) -> Result<Vec<(Option<u16>, AttentionEntry)>, CommandFailure> {
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
            // Untrusted text again: it comes from the disk.
            let label = known.and_then(|it| it.agent_label.clone());
            (number, AttentionEntry { agent_label: label, ..waiting })
        });
        numbered.collect()
    })
}

/// Records that the person was told these questions completely, so that they can answer them by number. JSON output
/// does not count as telling.
pub(crate) fn told_whole<'a>(
    told: impl Iterator<Item = &'a AttentionEntry>,
) -> Result<(), CommandFailure> {
    let told: Vec<_> = told.filter_map(|it| it.asked.as_ref()).collect();
    let now_unix_ms = now_unix_ms();
    NumbersFile::own()?.change(|numbers| {
        for asked in &told {
            numbers.presented(now_unix_ms, asked);
        }
    })
}

impl AttentionList {
    pub(crate) fn exit_code(&self) -> ExitCode {
        match (self.is_incomplete, self.count()) {
            (true, _) => ExitCode::from(COULD_NOT),
            (false, 0) => ExitCode::SUCCESS,
            (false, _) => ExitCode::from(1),
        }
    }

    fn count(&self) -> u64 {
        self.more + self.questions.len() as u64
    }

    /// Prints the list as lines.
    pub(crate) fn tell(&self) -> Result<(), CommandFailure> {
        match self.count() {
            0 if !self.is_known => return tell(asks::NOT_KNOWN),
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
            [(Some(number), waiting)] => tell(&words::what_can_be_said(*number, &waiting.event)),
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

fn question_json((number, waiting): &(Option<u16>, AttentionEntry)) -> Value {
    let (kind, stakes) = match &waiting.event.payload {
        Payload::AwaitingConfirmation(asked) => ("confirmation", Some(asked.stakes())),
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
        "risk": stakes.map(|it| risk_word(it.risk)),
        "can_be_undone": stakes.map(|it| undo_word(it.undo)),
        "asked_at": waiting.asked_at,
        "left_ms": u64::try_from(waiting.left.as_millis()).unwrap_or(u64::MAX),
        "paused": waiting.is_paused,
        "event": waiting.json,
    })
}
