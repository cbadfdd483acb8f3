//! The next event for a listener that is behind: one unit, or several merged (ruling 10).
//!
//! Text is joined, never losing or repeating a character. Of progress the newest is told. States are
//! folded from the first one left to the last one entered. Tools are summed up only when too many
//! wait. Nothing irreversible, failed or denied is ever merged away, and within a session the order
//! of what is told is that of what happened.

use std::sync::Arc;

use aaep::event::action::OutputStreaming;
use aaep::event::reasoning::{Progress, ProgressUpdated, StateChanged, state};
use aaep::extension::{Delivery, Merged};
use aaep::{CoreType, Event, EventType, LanguageTag, Object, Payload};

use super::{Cursor, MAX_WAITING_TOOLS, Telling};
use crate::audience::{Audience, Kind, Superseded, Unit, cut, merged_id, text_key};
use crate::frame::{Frame, encode};

/// The most characters of one joined chunk: the limit of the protocol.
const MAX_JOINED_CHARS: usize = 16_384;

/// The most bytes of one joined chunk: the limit of a message, less room for everything else in it.
const MAX_JOINED_BYTES: usize = 48 * 1024;

/// What is told next.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(super) frame: Arc<Frame>,
    pub(super) event: Arc<Event>,
}

/// Text that was joined for a listener, in case the next one is at the same place: those with the same terms mostly
/// are, and then it is made once.
#[derive(Debug)]
pub(crate) struct Joined {
    units: Vec<u64>,
    /// How many characters of the first were left out.
    told: usize,
    as_one: Told,
}

/// The next event, starting with the unit at the cursor and going no further than `until`; `None`
/// if there is nothing to say of it.
pub(super) fn next<F>(cursor: &mut Cursor, telling: &Telling<'_, F>, until: u64) -> Option<Told> {
    let (audience, primary) = (telling.audience, telling.primary);
    let unit = audience.unit(cursor.at)?;
    // Without limits, nothing is merged past something of another session: then any event tells how
    // far the listener is, who may lose many events at once.
    let mixes = telling.limits.is_some();
    match unit.kind {
        Kind::Text => join(cursor, audience, (until, mixes), primary),
        Kind::State => tell_state(cursor, audience, unit, primary),
        Kind::PlainTool => {
            let following = following(cursor, audience, (until, mixes), unit);
            let tools = following.take_while(|(_, next)| next.kind == Kind::PlainTool);
            let mut waiting = vec![cursor.at];
            waiting.extend(tools.map(|(at, _)| at));
            // Who has no limits and was only away or slow gets every one of them (ruling 20).
            let too_many = mixes && waiting.len() > MAX_WAITING_TOOLS;
            match digest_type(audience).filter(|_| too_many) {
                Some(digest) => Some(sum_up(cursor, audience, &waiting, digest, primary)),
                None => Some(tell(cursor, audience, unit, primary)),
            }
        }
        Kind::Deleted => None,
        Kind::Progress | Kind::Other => Some(tell(cursor, audience, unit, primary)),
    }
}

/// One unit as it is.
fn tell(cursor: &mut Cursor, audience: &Audience, unit: &Unit, primary: &LanguageTag) -> Told {
    cursor.at += 1;
    Told { frame: audience.frame(unit, primary), event: Arc::clone(&unit.event) }
}

/// A state, from the first one left of those folded into it; nothing if that is where it ends.
fn tell_state(
    cursor: &mut Cursor,
    audience: &Audience,
    unit: &Unit,
    primary: &LanguageTag,
) -> Option<Told> {
    let folded = cursor.take_folded(unit);
    let (Some((from, count)), Payload::StateChanged(change)) = (folded, &unit.event.payload) else {
        return Some(tell(cursor, audience, unit, primary));
    };
    cursor.at += 1;
    if *from == *change.to_state {
        return None;
    }
    let change = StateChanged { from_state: from.into(), ..change.clone() };
    Some(tell_merged(audience, unit, change.into(), count, primary))
}

/// The text of the unit at the cursor and of what follows of the same output, as long as nothing
/// else of the session comes between.
fn join(
    cursor: &mut Cursor,
    audience: &Audience,
    until: (u64, bool),
    primary: &LanguageTag,
) -> Option<Told> {
    let unit = audience.unit(cursor.at)?;
    let from = unit.text()?;
    let joinable = joinable(cursor, audience, until, unit);
    let told = told_chars(cursor, unit);
    let last = audience.unit(*joinable.last()?)?;
    if joinable.len() == 1 && told == 0 {
        return Some(tell(cursor, audience, unit, primary));
    }
    let as_one = match &*audience.joined.borrow() {
        Some(it) if it.units == joinable && it.told == told => Some(it.as_one.clone()),
        _ => None,
    };
    let as_one = match as_one {
        Some(as_one) => as_one,
        None => joined(audience, (from, last), (&joinable, told), primary)?,
    };
    cursor.at += 1;
    if joinable.len() > 1 {
        cursor.rest_mut().ahead.extend(joinable[1..].iter().copied());
    }
    audience.joined.replace(Some(Joined { units: joinable, told, as_one: as_one.clone() }));
    Some(as_one)
}

/// The text of several units in one event, without what was told of the first.
fn joined(
    audience: &Audience,
    (from, last): (&OutputStreaming, &Unit),
    (joinable, told): (&[u64], usize),
    primary: &LanguageTag,
) -> Option<Told> {
    let mut text = String::new();
    let mut stands_for = 0;
    for unit in joinable.iter().filter_map(|at| audience.unit(*at)) {
        text.push_str(&unit.text()?.chunk);
        stands_for += unit.stands_for;
    }
    let to = last.text()?;
    let chunk = OutputStreaming {
        chunk: text.chars().skip(told).collect(),
        position: from.position + told as u64,
        complete: to.complete,
        coalesce_hint: to.coalesce_hint.clone(),
        ..from.clone()
    };
    Some(tell_merged(audience, last, chunk.into(), stands_for, primary))
}

/// Whether the beginning of a chunk was told already, under other terms.
pub(super) fn is_partly_told(cursor: &Cursor, unit: &Unit) -> bool {
    told_chars(cursor, unit) > 0
}

/// How many characters of a chunk were told already, under other terms.
fn told_chars(cursor: &Cursor, unit: &Unit) -> usize {
    let Some(chunk) = unit.text() else { return 0 };
    let told = cursor.told_up_to(&text_key(unit.session, chunk)).unwrap_or(0);
    let told = usize::try_from(told.saturating_sub(chunk.position)).unwrap_or(0);
    told.min(chunk.chunk.chars().count())
}

/// How long a text is in a message, with everything that has to be escaped.
fn json_bytes(text: &str) -> usize {
    let byte_length = |byte: u8| match byte {
        b'"' | b'\\' => 2,
        0..=0x1f => 6,
        _ => 1,
    };
    text.bytes().map(byte_length).sum()
}

/// What is held of the session of a unit after it and could be told with it, with its position. What
/// is urgent, told already or superfluous is passed over; without `mixes`, nothing of another session.
fn following<'a>(
    cursor: &'a Cursor,
    audience: &'a Audience,
    (until, mixes): (u64, bool),
    unit: &'a Unit,
) -> impl Iterator<Item = (u64, &'a Unit)> {
    let is_held = |(at, next): &(u64, &Unit)| {
        next.session == unit.session
            && !next.is_urgent
            && !cursor.is_ahead(*at)
            && audience.superseded(*at, next) == Superseded::No
    };
    (cursor.at + 1..until)
        .map_while(|at| audience.unit(at).map(|next| (at, next)))
        .take_while(move |(_, next)| mixes || next.session == unit.session)
        .filter(is_held)
}

/// The positions of the units that can be told as one chunk.
fn joinable(cursor: &Cursor, audience: &Audience, until: (u64, bool), unit: &Unit) -> Vec<u64> {
    let mut joinable = vec![cursor.at];
    let Some(chunk) = unit.text() else { return joinable };
    let mut chars = chunk.chunk.chars().count();
    let mut bytes = json_bytes(&chunk.chunk);
    for (at, next) in following(cursor, audience, until, unit) {
        let Some(following) = next.text() else { break };
        chars += following.chunk.chars().count();
        bytes += json_bytes(&following.chunk);
        let fits = following.output_id == chunk.output_id
            && following.language == chunk.language
            && following.content_type == chunk.content_type
            && chars <= MAX_JOINED_CHARS
            && bytes <= MAX_JOINED_BYTES;
        if !fits {
            break;
        }
        joinable.push(at);
    }
    joinable
}

/// As what many tools are summed up: a type that the audience did not shut out; none if it shut
/// out both, and then hears each tool.
fn digest_type(audience: &Audience) -> Option<CoreType> {
    let wanted = |core: &CoreType| audience.terms.wants(&EventType::Core(*core));
    [CoreType::ProgressUpdated, CoreType::StateChanged].into_iter().find(wanted)
}

/// Many tools in one event: how many ran, and which.
fn sum_up(
    cursor: &mut Cursor,
    audience: &Audience,
    waiting: &[u64],
    digest: CoreType,
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
        cut(format!("{count} tools started and {finished} finished well: {}.", started.join(", ")));
    let terse = Some(format!("{count} tools."));
    let summary: Payload = if digest == CoreType::ProgressUpdated {
        let description = Some(text.chars().take(4096).collect());
        let progress = Progress {
            percent: None,
            step: None,
            total_steps: None,
            description,
            other: Object::new(),
        };
        ProgressUpdated {
            progress,
            summary_terse: terse,
            summary_normal: Some(text),
            summary_detailed: None,
            eta_ms: None,
            other: Object::new(),
        }
        .into()
    } else {
        StateChanged {
            from_state: state::CALLING_TOOL.to_owned(),
            to_state: state::CALLING_TOOL.to_owned(),
            summary_terse: terse,
            summary_normal: Some(text),
            summary_detailed: None,
            expected_duration_ms: None,
            other: Object::new(),
        }
        .into()
    };
    let last = units[units.len() - 1];
    cursor.at += 1;
    cursor.rest_mut().ahead.extend(waiting[1..].iter().copied());
    let stands_for = units.iter().map(|unit| unit.stands_for).sum();
    tell_merged(audience, last, summary, stands_for, primary)
}

/// An event that stands for several units, in the place of the last one.
fn tell_merged(
    audience: &Audience,
    last: &Unit,
    payload: Payload,
    stands_for: u64,
    primary: &LanguageTag,
) -> Told {
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
    Told { frame, event: Arc::new(event) }
}
