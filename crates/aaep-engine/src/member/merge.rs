//! The next event for a listener that is behind: one unit, or several merged (ruling 10).
//!
//! Text is joined, never losing or repeating a character. Of progress the newest is told. States are
//! folded from the first one left to the last one entered. Tools are summed up only when too many
//! wait. Nothing irreversible, failed or denied is ever merged away, and within a session the order
//! of what is told is that of what happened.

use std::sync::Arc;

use aaep::event::action::OutputStreaming;
use aaep::event::reasoning::{Progress, ProgressUpdated, StateChanged};
use aaep::extension::{Delivery, Merged};
use aaep::{Event, LanguageTag, Object, Payload};

use super::{Cursor, MAX_WAITING_TOOLS, is_plain_tool, words_of};
use crate::audience::{Audience, Kind, Unit, cut, merged_id, text_key};
use crate::frame::{Frame, encode};

/// The most characters of one joined chunk: the limit of the protocol.
const MAX_JOINED_CHARS: usize = 16_384;

/// What is told next.
pub(super) struct Told {
    pub(super) frame: Arc<Frame>,
    pub(super) units: Vec<u64>,
    pub(super) words: usize,
}

/// The next event, starting with the unit at the cursor; `None` if there is nothing to say of it.
pub(super) fn next(
    cursor: &mut Cursor,
    audience: &Audience,
    primary: &LanguageTag,
) -> Option<Told> {
    let at = cursor.at;
    let unit = audience.unit(at)?;
    match unit.kind {
        Kind::Text => Some(join(cursor, audience, primary)),
        Kind::State => tell_state(cursor, audience, unit, primary),
        Kind::PlainTool => {
            let waiting = waiting_tools(cursor, audience, unit);
            if waiting.len() > MAX_WAITING_TOOLS {
                return Some(sum_up(cursor, audience, waiting, primary));
            }
            Some(tell(cursor, audience, unit, primary))
        }
        Kind::Progress | Kind::Other => Some(tell(cursor, audience, unit, primary)),
    }
}

/// One unit as it is.
fn tell(cursor: &mut Cursor, audience: &Audience, unit: &Unit, primary: &LanguageTag) -> Told {
    let at = cursor.at;
    cursor.at += 1;
    Told {
        frame: audience.frame(unit, primary),
        units: vec![at],
        words: words_of(&unit.event.payload),
    }
}

/// A state, from the first one left of those folded into it; nothing if that is where it ends.
fn tell_state(
    cursor: &mut Cursor,
    audience: &Audience,
    unit: &Unit,
    primary: &LanguageTag,
) -> Option<Told> {
    let agent: Box<str> = unit.event.envelope.producer.agent_id.as_str().into();
    let Some(from) = cursor.memory().folded.remove(&(unit.session, agent)) else {
        return Some(tell(cursor, audience, unit, primary));
    };
    let Payload::StateChanged(change) = &unit.event.payload else {
        return Some(tell(cursor, audience, unit, primary));
    };
    let at = cursor.at;
    cursor.at += 1;
    if *from == *change.to_state {
        return None;
    }
    let folded = StateChanged { from_state: from.into(), ..change.clone() };
    Some(tell_merged(audience, unit, folded.into(), 2, vec![at], primary))
}

/// The text of the unit at the cursor and of what follows of the same output, as long as nothing
/// else of the session comes between.
fn join(cursor: &mut Cursor, audience: &Audience, primary: &LanguageTag) -> Told {
    let first = cursor.at;
    let Some(unit) = audience.unit(first) else { unreachable!("the caller has seen it") };
    let joinable = joinable(cursor, audience, unit);
    let told = told_chars(cursor, unit);
    let (1.., Some(&last)) = (joinable.len().saturating_sub(1) + told, joinable.last()) else {
        return tell(cursor, audience, unit, primary);
    };
    let Some(last) = audience.unit(last) else { unreachable!("it was just found") };
    let mut text = String::new();
    let mut stands_for = 0;
    for unit in joinable.iter().filter_map(|at| audience.unit(*at)) {
        if let Payload::OutputStreaming(chunk) = &unit.event.payload {
            text.push_str(&chunk.chunk);
        }
        stands_for += unit.stands_for;
    }
    let (Payload::OutputStreaming(from), Payload::OutputStreaming(to)) =
        (&unit.event.payload, &last.event.payload)
    else {
        return tell(cursor, audience, unit, primary);
    };
    let chunk = OutputStreaming {
        chunk: text.chars().skip(told).collect(),
        position: from.position + told as u64,
        complete: to.complete,
        coalesce_hint: to.coalesce_hint.clone(),
        ..from.clone()
    };
    cursor.at += 1;
    cursor.memory().ahead.extend(joinable[1..].iter().copied());
    tell_merged(audience, last, chunk.into(), stands_for, joinable, primary)
}

/// How many characters of a chunk were told already, under other terms.
fn told_chars(cursor: &Cursor, unit: &Unit) -> usize {
    let Payload::OutputStreaming(chunk) = &unit.event.payload else { return 0 };
    let told = cursor.told_up_to(&text_key(unit.session, chunk)).unwrap_or(0);
    usize::try_from(told.saturating_sub(chunk.position)).unwrap_or(0)
}

/// The positions of the units that can be told as one chunk.
fn joinable(cursor: &Cursor, audience: &Audience, unit: &Unit) -> Vec<u64> {
    let Payload::OutputStreaming(chunk) = &unit.event.payload else { return vec![cursor.at] };
    let mut joinable = vec![cursor.at];
    let mut chars = chunk.chunk.chars().count();
    for at in cursor.at + 1..audience.end() {
        let Some(next) = audience.unit(at) else { break };
        if next.session != unit.session || next.is_urgent || audience.is_superseded(at, next) {
            continue;
        }
        let Payload::OutputStreaming(following) = &next.event.payload else { break };
        chars += following.chunk.chars().count();
        let fits = following.output_id == chunk.output_id
            && following.language == chunk.language
            && following.content_type == chunk.content_type
            && chars <= MAX_JOINED_CHARS;
        if !fits || cursor.is_ahead(at) {
            break;
        }
        joinable.push(at);
    }
    joinable
}

/// The plain tool events of the session that wait, up to what must not be overtaken.
fn waiting_tools(cursor: &Cursor, audience: &Audience, unit: &Unit) -> Vec<u64> {
    let mut waiting = vec![cursor.at];
    for at in cursor.at + 1..audience.end() {
        let Some(next) = audience.unit(at) else { break };
        if next.session != unit.session || next.is_urgent || audience.is_superseded(at, next) {
            continue;
        }
        if !is_plain_tool(&next.kind) || cursor.is_ahead(at) {
            break;
        }
        waiting.push(at);
    }
    waiting
}

/// Many tools in one event: how many ran, and which.
fn sum_up(
    cursor: &mut Cursor,
    audience: &Audience,
    waiting: Vec<u64>,
    primary: &LanguageTag,
) -> Told {
    let units: Vec<&Unit> = waiting.iter().filter_map(|at| audience.unit(*at)).collect();
    let mut started: Vec<&str> = Vec::new();
    let mut finished = 0;
    for unit in &units {
        match &unit.event.payload {
            Payload::ToolInvoked(tool) => started.push(tool.tool.as_str()),
            Payload::ToolCompleted(_) => finished += 1,
            _ => {}
        }
    }
    let count = started.len();
    started.sort_unstable();
    started.dedup();
    let text =
        format!("{count} tools started and {finished} finished well: {}.", started.join(", "));
    let summary = ProgressUpdated {
        progress: Progress {
            percent: None,
            step: None,
            total_steps: None,
            description: Some(text.chars().take(4096).collect()),
            other: Object::new(),
        },
        summary_terse: Some(format!("{count} tools.")),
        summary_normal: Some(cut(text)),
        summary_detailed: None,
        eta_ms: None,
        other: Object::new(),
    };
    let Some(last) = units.last() else { unreachable!("the unit at the cursor is one of them") };
    cursor.at += 1;
    cursor.memory().ahead.extend(waiting[1..].iter().copied());
    let stands_for = units.iter().map(|unit| unit.stands_for).sum();
    tell_merged(audience, last, summary.into(), stands_for, waiting, primary)
}

/// An event that stands for several units, in the place of the last one.
fn tell_merged(
    audience: &Audience,
    last: &Unit,
    payload: Payload,
    stands_for: u64,
    units: Vec<u64>,
    primary: &LanguageTag,
) -> Told {
    let words = words_of(&payload);
    let mut envelope = last.event.envelope.clone();
    envelope.event_id = merged_id(&last.event.envelope.event_id, audience.number);
    let mut event = Event::new(envelope, payload);
    event.extensions.clone_from(&last.event.extensions);
    if audience.terms.understands_our_extension() {
        let merged = Merged {
            count: stands_for.max(2),
            last_event_id: last.event.envelope.event_id.clone(),
            other: Object::new(),
        };
        Delivery { merged: Some(merged), ..Delivery::new() }.put_on(&mut event);
    }
    let frame = encode(&event, false, None, &audience.terms, primary);
    Told { frame, units, words }
}
