//! The next event for a subscriber that is behind: one unit, or several merged (ruling 10).
//!
//! Text is joined, never losing or repeating a character. Of progress the newest is told. States are
//! folded from the first one left to the last one entered. Tools are summed up only when too many
//! wait. Nothing irreversible, failed or denied is ever merged away, and within a session the order
//! of what is told is that of what happened.

use std::sync::Arc;

use aaep::event::action::OutputStreaming;
use aaep::event::reasoning::{Progress, ProgressUpdated, StateChanged, state};
use aaep::extension::{Delivery, Merged};
use aaep::{CoreType, Event, EventType, LanguageTag, Object, Payload, Timestamp, Urgency};

use super::{Cursor, MAX_WAITING_TOOLS, Telling};
use crate::audience::{
    Audience, Kind, Superseded, Unit, cut, extensions_of_text, is_text_alike, merged_id, text_key,
};
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

/// Text that was joined for a subscriber, in case the next one is at the same place: those with the same terms mostly
/// are, and then it is made once.
#[derive(Debug, Clone)]
pub(crate) struct Joined {
    key: JoinedKey,
    as_one: Told,
}

/// What decides how joined text is told.
#[derive(Debug, Clone, PartialEq)]
struct JoinedKey {
    units: Vec<u64>,
    /// How many characters of the first were left out.
    told: usize,
    time: Timestamp,
    urgency: Option<Urgency>,
}

/// The next event, starting with the unit at this position and going no further than `until`; `None`
/// if there is nothing to say of it.
pub(super) fn next<F>(
    cursor: &mut Cursor,
    telling: &Telling<'_, F>,
    (at, until): (u64, u64),
) -> Option<Told> {
    let (audience, primary) = (telling.audience, telling.primary);
    let unit = audience.unit(at)?;
    // Without limits, nothing is merged past something of another session: then any event tells how
    // far the subscriber is, who may lose many events at once.
    let mixes = telling.limits.is_some();
    match unit.kind {
        Kind::Text => join(cursor, telling, (at, until, mixes)),
        Kind::State => tell_state(cursor, telling, at),
        Kind::PlainTool => {
            let following = following(cursor, audience, (at, until, mixes), unit);
            let tools = following.take_while(|(_, next)| next.kind == Kind::PlainTool);
            let mut waiting = vec![at];
            waiting.extend(tools.map(|(at, _)| at));
            // Who has no limits and was only away or slow gets every one of them (ruling 20).
            let too_many = mixes && waiting.len() > MAX_WAITING_TOOLS;
            match digest_type(audience).filter(|_| too_many) {
                Some(digest) => sum_up(cursor, telling, &waiting, digest, None),
                None => Some(tell(cursor, audience, (at, unit), primary)),
            }
        }
        Kind::Deleted => {
            cursor.owe_gap();
            cursor.take(at);
            None
        }
        Kind::Progress | Kind::Other => Some(tell(cursor, audience, (at, unit), primary)),
    }
}

/// One unit as it is.
fn tell(
    cursor: &mut Cursor,
    audience: &Audience,
    (at, unit): (u64, &Unit),
    primary: &LanguageTag,
) -> Told {
    cursor.take(at);
    Told { frame: audience.frame(unit, primary), event: Arc::clone(&unit.event) }
}

/// A state, from the first one left of those folded into it; nothing if that is where it ends.
fn tell_state<F>(cursor: &mut Cursor, telling: &Telling<'_, F>, at: u64) -> Option<Told> {
    let (audience, primary) = (telling.audience, telling.primary);
    let unit = audience.unit(at)?;
    let folded = cursor.take_folded(unit);
    let (Some((from, count)), Payload::StateChanged(change)) = (folded, &unit.event.payload) else {
        return Some(tell(cursor, audience, (at, unit), primary));
    };
    let time = time_of_merged(cursor, telling, (at, unit));
    cursor.take(at);
    if *from == *change.to_state {
        return None;
    }
    let change = StateChanged { from_state: from.into(), ..change.clone() };
    Some(tell_merged(audience, unit, change.into(), (count, time, None), primary))
}

/// The text of the unit at the cursor and of what follows of the same output, as long as nothing
/// else of the session comes between.
fn join<F>(cursor: &mut Cursor, telling: &Telling<'_, F>, span: (u64, u64, bool)) -> Option<Told> {
    let unit = telling.audience.unit(span.0)?;
    let joinable = joinable(cursor, telling.audience, span, unit);
    if joinable.len() == 1 && told_chars(cursor, unit) == 0 {
        cursor.note_text_told(telling, unit);
        return Some(tell(cursor, telling.audience, (span.0, unit), telling.primary));
    }
    tell_joined(cursor, telling, joinable, None)
}

/// The text of these units as one event, without what was told of the first.
pub(super) fn tell_joined<F>(
    cursor: &mut Cursor,
    telling: &Telling<'_, F>,
    units: Vec<u64>,
    urgency: Option<Urgency>,
) -> Option<Told> {
    let (audience, primary) = (telling.audience, telling.primary);
    let (first, last_at) = (audience.unit(*units.first()?)?, *units.last()?);
    let last = audience.unit(last_at)?;
    let told = told_chars(cursor, first);
    let time = time_of_merged(cursor, telling, (last_at, last));
    let key = JoinedKey { units, told, time, urgency };
    let known = audience.joined.borrow().as_ref().filter(|it| it.key == key).cloned();
    let as_one = match known {
        Some(it) => it.as_one,
        None => joined(audience, (first.text()?, last), &key, primary)?,
    };
    for at in &key.units {
        cursor.take(*at);
    }
    cursor.note_text_told(telling, last);
    audience.joined.replace(Some(Joined { key, as_one: as_one.clone() }));
    Some(as_one)
}

/// The text of several units in one event, without what was told of the first.
fn joined(
    audience: &Audience,
    (from, last): (&OutputStreaming, &Unit),
    key: &JoinedKey,
    primary: &LanguageTag,
) -> Option<Told> {
    let told = key.told;
    let mut text = String::new();
    let mut stands_for = 0;
    for unit in key.units.iter().filter_map(|at| audience.unit(*at)) {
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
    let urgency = key.urgency.clone();
    Some(tell_merged(
        audience,
        last,
        chunk.into(),
        (stands_for, key.time.clone(), urgency),
        primary,
    ))
}

/// When a merged event was emitted: now (§3.2.5). Where more of its session is held, the time of the last event that it
/// stands for, so that timestamps do not go back with the next one (ruling 7).
fn time_of_merged<F>(
    cursor: &Cursor,
    telling: &Telling<'_, F>,
    (at, last): (u64, &Unit),
) -> Timestamp {
    let own = last.event.envelope.timestamp.clone();
    let audience = telling.audience;
    let mut later = (at + 1..audience.end()).filter_map(|at| audience.unit(at).map(|it| (at, it)));
    let is_held = |(at, unit): (u64, &Unit)| {
        unit.session == last.session && !unit.is_urgent && !cursor.is_ahead(at)
    };
    if later.any(is_held) {
        return own;
    }
    let is_later = |now: &Timestamp| now.unix_us() > own.unix_us();
    Timestamp::from_unix_us(telling.now.unix_us).filter(is_later).unwrap_or(own)
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
    (at, until, mixes): (u64, u64, bool),
    unit: &'a Unit,
) -> impl Iterator<Item = (u64, &'a Unit)> {
    let is_held = |(at, next): &(u64, &Unit)| {
        next.session == unit.session
            && !next.is_urgent
            && !cursor.is_ahead(*at)
            && audience.superseded(*at, next) == Superseded::No
    };
    (at + 1..until)
        .map_while(|at| audience.unit(at).map(|next| (at, next)))
        .take_while(move |(_, next)| mixes || next.session == unit.session)
        .filter(is_held)
}

/// The positions of the units that can be told as one chunk.
fn joinable(cursor: &Cursor, audience: &Audience, span: (u64, u64, bool), unit: &Unit) -> Vec<u64> {
    let mut joining = Joining::with(span.0, unit);
    for (at, next) in following(cursor, audience, span, unit) {
        if !joining.add(at, next) {
            break;
        }
    }
    joining.units
}

/// Units of one output that can be told as one event.
pub(super) struct Joining<'a> {
    first: &'a Unit,
    pub(super) units: Vec<u64>,
    chars: usize,
    bytes: usize,
}

impl<'a> Joining<'a> {
    pub(super) fn with(at: u64, first: &'a Unit) -> Self {
        let text = first.text().map_or("", |chunk| &chunk.chunk);
        let (chars, bytes) = (text.chars().count(), json_bytes(text));
        Joining { first, units: vec![at], chars, bytes }
    }

    /// Whether the unit is of the same output, in the same language, and there is room for it.
    pub(super) fn add(&mut self, at: u64, next: &Unit) -> bool {
        let (Some(first), Some(text)) = (self.first.text(), next.text()) else { return false };
        self.chars += text.chunk.chars().count();
        self.bytes += json_bytes(&text.chunk);
        let fits = text.output_id == first.output_id
            && is_text_alike(&self.first.event, &next.event)
            && self.chars <= MAX_JOINED_CHARS
            && self.bytes <= MAX_JOINED_BYTES;
        if fits {
            self.units.push(at);
        }
        fits
    }
}

/// As what many tools are summed up: a type that the audience did not shut out; none if it shut
/// out both, and then hears each tool.
pub(super) fn digest_type(audience: &Audience) -> Option<CoreType> {
    let wanted = |core: &CoreType| audience.terms.wants(&EventType::Core(*core));
    [CoreType::ProgressUpdated, CoreType::StateChanged].into_iter().find(wanted)
}

/// Many events in one: how many tools ran, and which, and how many other things there were.
pub(super) fn sum_up<F>(
    cursor: &mut Cursor,
    telling: &Telling<'_, F>,
    waiting: &[u64],
    digest: CoreType,
    urgency: Option<Urgency>,
) -> Option<Told> {
    let (audience, primary) = (telling.audience, telling.primary);
    let units: Vec<&Unit> = waiting.iter().filter_map(|at| audience.unit(*at)).collect();
    let mut started: Vec<&str> = Vec::new();
    let (mut finished, mut updates) = (0, 0);
    for unit in &units {
        match &unit.event.payload {
            Payload::ToolInvoked(tool) => started.push(tool.tool.as_str()),
            Payload::ToolCompleted(_) => finished += 1,
            _ => updates += 1,
        }
    }
    let (text, terse) = digest_words(started, finished, updates);
    let terse = Some(terse);
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
    let (last_at, last) = (*waiting.last()?, *units.last()?);
    let time = time_of_merged(cursor, telling, (last_at, last));
    for at in waiting {
        cursor.take(*at);
    }
    let stands_for = units.iter().map(|unit| unit.stands_for).sum();
    Some(tell_merged(audience, last, summary, (stands_for, time, urgency), primary))
}

/// The words of a digest, normal and terse.
fn digest_words(mut started: Vec<&str>, finished: usize, updates: usize) -> (String, String) {
    let count = started.len();
    started.sort_unstable();
    started.dedup();
    let mut parts = Vec::new();
    match (count, finished) {
        (0, 0) => {}
        (0, _) => parts.push(format!("{finished} tools finished well.")),
        _ => {
            let names = started.join(", ");
            parts.push(format!("{count} tools started and {finished} finished well: {names}."));
        }
    }
    match updates {
        0 => {}
        1 => parts.push("1 other update.".to_owned()),
        _ => parts.push(format!("{updates} other updates.")),
    }
    let terse = match count.max(finished) {
        0 => format!("{updates} updates."),
        tools => format!("{tools} tools."),
    };
    (cut(parts.join(" ")), terse)
}

/// An event that stands for several units, in the place of the last one.
fn tell_merged(
    audience: &Audience,
    last: &Unit,
    payload: Payload,
    (stands_for, timestamp, urgency): (u64, Timestamp, Option<Urgency>),
    primary: &LanguageTag,
) -> Told {
    let mut envelope = last.event.envelope.clone();
    envelope.event_id = merged_id(&last.event.envelope.event_id, audience.number);
    envelope.timestamp = timestamp;
    let is_critical = urgency.is_some();
    if is_critical {
        envelope.urgency = urgency;
    }
    let mut event = Event::new(envelope, payload);
    event.extensions = extensions_of_text(&last.event);
    if audience.terms.understands_our_extension() {
        let merged = Merged {
            count: stands_for.max(2),
            last_event_id: last.event.envelope.event_id.clone(),
            other: Object::new(),
        };
        Delivery { merged: Some(merged), ..Delivery::new() }.put_on(&mut event);
    }
    let frame = encode(&event, is_critical, None, &audience.terms, primary);
    Told { frame, event: Arc::new(event) }
}
