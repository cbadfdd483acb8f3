//! The next event for a subscriber that is behind: one unit, or several merged (ruling 10).
//!
//! Text is joined without losing or repeating a character. Of progress, the newest is delivered.
//! States are folded, from the first one left to the last one entered. Tools become a digest only
//! when too many wait. Nothing irreversible, failed or denied is ever merged away, and within a
//! session events are delivered in the order in which they happened.

use std::sync::Arc;

use aaep::event::action::OutputStreaming;
use aaep::event::reasoning::{Progress, ProgressUpdated, StateChanged, state};
use aaep::extension::{Delivery, Merged};
use aaep::{CoreType, Event, EventType, LanguageTag, Object, Payload, Timestamp, Urgency};

use super::{Cursor, DeliveryPass, MAX_WAITING_TOOLS};
use crate::audience::{
    Audience, SessionKey, SupersededBy, Unit, UnitKind, cut, extensions_of_text, is_text_alike,
    merged_id, text_key,
};
use crate::counted::counted;
use crate::frame::{Frame, encode};

/// The most characters of a joined chunk: the limit of the protocol.
const MAX_JOINED_CHARS: usize = 16_384;

/// The most bytes of a joined chunk: the limit of a message, less room for everything else in the message.
const MAX_JOINED_BYTES: usize = 48 * 1024;

/// An event that is ready to send.
#[derive(Debug, Clone)]
pub(crate) struct FramedEvent {
    pub(super) frame: Arc<Frame>,
    pub(super) event: Arc<Event>,
    pub(super) session: SessionKey,
    /// The latest timestamp of the session up to the last unit that it stands for.
    pub(super) latest_us: i64,
}

/// The text that was joined last. Subscribers with equal terms are mostly at the same position, so the next
/// one can reuse it.
#[derive(Debug, Clone)]
pub(crate) struct JoinedText {
    key: JoinedTextKey,
    as_one: FramedEvent,
}

/// What determines a joined text.
#[derive(Debug, Clone, PartialEq)]
struct JoinedTextKey {
    units: Vec<u64>,
    /// How many characters of the first unit are left out, because they were delivered before.
    told: usize,
    time: Timestamp,
    urgency: Option<Urgency>,
}

/// The next event, starting with the unit at this position and ending before `until`. None if there is
/// nothing to send.
pub(super) fn next<F>(
    cursor: &mut Cursor,
    pass: &DeliveryPass<'_, F>,
    (at, until): (u64, u64),
) -> Option<FramedEvent> {
    let audience = pass.audience;
    let unit = audience.unit(at)?;
    // Without limits, nothing is merged across another session. Any event id then says how far the subscriber
    // is, which may lose many events at once.
    let mixes = pass.limits.is_some();
    match unit.kind {
        UnitKind::Text => join(cursor, pass, (at, until, mixes)),
        UnitKind::State => tell_state(cursor, pass, at),
        UnitKind::PlainTool => {
            let following = following(cursor, audience, (at, until, mixes), unit);
            let tools = following.take_while(|(_, next)| next.kind == UnitKind::PlainTool);
            let mut waiting = vec![at];
            waiting.extend(tools.map(|(at, _)| at));
            // A subscriber without limits that was only away or slow receives each of them (ruling 20).
            let too_many = mixes && waiting.len() > MAX_WAITING_TOOLS;
            match digest_type(audience).filter(|_| too_many) {
                Some(digest) => sum_up(cursor, pass, &waiting, digest, None),
                None => Some(tell(cursor, pass, at, unit)),
            }
        }
        UnitKind::Deleted => {
            cursor.owe_gap();
            cursor.take(at);
            None
        }
        UnitKind::Progress | UnitKind::Other => Some(tell(cursor, pass, at, unit)),
    }
}

/// One unit, unchanged.
fn tell<F>(cursor: &mut Cursor, pass: &DeliveryPass<'_, F>, at: u64, unit: &Unit) -> FramedEvent {
    cursor.take(at);
    cursor.framed(pass, unit)
}

/// A state change from the first of the folded states. None if it would end where it began.
fn tell_state<F>(cursor: &mut Cursor, pass: &DeliveryPass<'_, F>, at: u64) -> Option<FramedEvent> {
    let (audience, primary) = (pass.audience, pass.primary);
    let unit = audience.unit(at)?;
    let folded = cursor.take_folded(unit);
    let (Some((from, count)), Payload::StateChanged(change)) = (folded, &unit.event.payload) else {
        return Some(tell(cursor, pass, at, unit));
    };
    cursor.take(at);
    let time = cursor.time_of_merged(pass, unit);
    if *from == *change.to_state {
        return None;
    }
    let change = StateChanged { from_state: from.into(), ..change.clone() };
    Some(tell_merged(audience, unit, change.into(), (count, time, None), primary))
}

/// The text of this unit and of the units of the same output that follow it, as long as nothing else of the
/// session comes between.
fn join<F>(
    cursor: &mut Cursor,
    pass: &DeliveryPass<'_, F>,
    span: (u64, u64, bool),
) -> Option<FramedEvent> {
    let unit = pass.audience.unit(span.0)?;
    let joinable = joinable(cursor, pass.audience, span, unit);
    let is_late = unit.event.envelope.timestamp.unix_us() < cursor.told_us(unit.session);
    if joinable.len() == 1 && told_chars(cursor, unit) == 0 && !is_late {
        cursor.note_text_told(pass, unit);
        return Some(tell(cursor, pass, span.0, unit));
    }
    tell_joined(cursor, pass, joinable, None)
}

/// The text of these units as one event, without the part of the first that was delivered before. Reuses the
/// last joined text if it is the same.
pub(super) fn tell_joined<F>(
    cursor: &mut Cursor,
    pass: &DeliveryPass<'_, F>,
    units: Vec<u64>,
    urgency: Option<Urgency>,
) -> Option<FramedEvent> {
    let (audience, primary) = (pass.audience, pass.primary);
    let (first, last_at) = (audience.unit(*units.first()?)?, *units.last()?);
    let last = audience.unit(last_at)?;
    let told = told_chars(cursor, first);
    for at in &units {
        cursor.take(*at);
    }
    let time = cursor.time_of_merged(pass, last);
    let key = JoinedTextKey { units, told, time, urgency };
    let known = audience.joined.borrow().as_ref().filter(|it| it.key == key).cloned();
    let as_one = match known {
        Some(it) => it.as_one,
        None => joined(audience, (first.text()?, last), &key, primary)?,
    };
    cursor.note_text_told(pass, last);
    audience.joined.replace(Some(JoinedText { key, as_one: as_one.clone() }));
    Some(as_one)
}

/// Joins the text that `key` describes into one event.
fn joined(
    audience: &Audience,
    (from, last): (&OutputStreaming, &Unit),
    key: &JoinedTextKey,
    primary: &LanguageTag,
) -> Option<FramedEvent> {
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

/// Whether the beginning of a chunk was delivered under other terms.
pub(super) fn is_partly_told(cursor: &Cursor, unit: &Unit) -> bool {
    told_chars(cursor, unit) > 0
}

/// How many characters of a chunk were delivered under other terms.
fn told_chars(cursor: &Cursor, unit: &Unit) -> usize {
    let Some(chunk) = unit.text() else { return 0 };
    let told = cursor.told_up_to(&text_key(unit.session, chunk)).unwrap_or(0);
    let told = usize::try_from(told.saturating_sub(chunk.position)).unwrap_or(0);
    told.min(chunk.chunk.chars().count())
}

/// The length of a text in JSON, with escapes.
fn json_bytes(text: &str) -> usize {
    let byte_length = |byte: u8| match byte {
        b'"' | b'\\' => 2,
        0..=0x1f => 6,
        _ => 1,
    };
    text.bytes().map(byte_length).sum()
}

/// The held units after this one in its session that could be delivered with it, with their positions. Skips
/// units that are critical, delivered or superfluous. Without `mixes`, stops at the first unit of another
/// session.
fn following<'a>(
    cursor: &'a Cursor,
    audience: &'a Audience,
    (at, until, mixes): (u64, u64, bool),
    unit: &'a Unit,
) -> impl Iterator<Item = (u64, &'a Unit)> {
    let is_held = |(at, next): &(u64, &Unit)| {
        next.session == unit.session
            && !next.is_critical
            && !cursor.is_ahead(*at)
            && audience.superseded(*at, next) == SupersededBy::Nothing
    };
    (at + 1..until)
        .map_while(|at| audience.unit(at).map(|next| (at, next)))
        .take_while(move |(_, next)| mixes || next.session == unit.session)
        .filter(is_held)
}

/// The positions of the units that can be delivered as one chunk.
fn joinable(cursor: &Cursor, audience: &Audience, span: (u64, u64, bool), unit: &Unit) -> Vec<u64> {
    let mut joining = TextJoiner::with(span.0, unit);
    for (at, next) in following(cursor, audience, span, unit) {
        if !joining.add(at, next) {
            break;
        }
    }
    joining.units
}

/// Collects units of one output that fit into one event.
pub(super) struct TextJoiner<'a> {
    first: &'a Unit,
    pub(super) units: Vec<u64>,
    chars: usize,
    bytes: usize,
}

impl<'a> TextJoiner<'a> {
    pub(super) fn with(at: u64, first: &'a Unit) -> Self {
        let text = first.text().map_or("", |chunk| &chunk.chunk);
        let (chars, bytes) = (text.chars().count(), json_bytes(text));
        TextJoiner { first, units: vec![at], chars, bytes }
    }

    /// Adds a unit if it is of the same output and language and there is room for it. Returns whether it was
    /// added.
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

/// The event type of a digest: the first of two that the audience did not filter out. If it filtered out
/// both, it receives each tool event.
pub(super) fn digest_type(audience: &Audience) -> Option<CoreType> {
    let wanted = |core: &CoreType| audience.terms.wants(&EventType::Core(*core));
    [CoreType::ProgressUpdated, CoreType::StateChanged].into_iter().find(wanted)
}

/// Merges many events into a digest: how many tools ran, which ones, and how many other updates there were.
pub(super) fn sum_up<F>(
    cursor: &mut Cursor,
    pass: &DeliveryPass<'_, F>,
    waiting: &[u64],
    digest: CoreType,
    urgency: Option<Urgency>,
) -> Option<FramedEvent> {
    let (audience, primary) = (pass.audience, pass.primary);
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
    let last = *units.last()?;
    for at in waiting {
        cursor.take(*at);
    }
    let time = cursor.time_of_merged(pass, last);
    let stands_for = units.iter().map(|unit| unit.stands_for).sum();
    Some(tell_merged(audience, last, summary, (stands_for, time, urgency), primary))
}

/// The normal and the terse words of a digest.
fn digest_words(mut started: Vec<&str>, finished: usize, updates: usize) -> (String, String) {
    let count = started.len();
    started.sort_unstable();
    started.dedup();
    let mut parts = Vec::new();
    match (count, finished) {
        (0, 0) => {}
        (0, _) => parts.push(format!("{} finished well.", counted(finished, "tool"))),
        _ => {
            let names = started.join(", ");
            let tools = counted(count, "tool");
            parts.push(format!("{tools} started and {finished} finished well: {names}."));
        }
    }
    if updates > 0 {
        parts.push(format!("{}.", counted(updates, "other update")));
    }
    let terse = match count.max(finished) {
        0 => format!("{}.", counted(updates, "update")),
        tools => format!("{}.", counted(tools, "tool")),
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
) -> FramedEvent {
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
    let (session, latest_us) = (last.session, last.latest_us);
    FramedEvent { frame, event: Arc::new(event), session, latest_us }
}
