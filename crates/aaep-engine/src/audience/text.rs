//! Streamed text, cut at the boundaries of an audience (§5.6.3, ruling 10).
//!
//! The joined pieces of an output are the output: no character is lost or repeated. Each piece
//! takes the place of its last character in the order of the session. A change of language or
//! content type is a boundary under every setting (ruling 32), and so is an ask (ruling 7).

use std::collections::BTreeMap;
use std::sync::Arc;

use aaep::event::action::{CoalesceBoundary, OutputStreaming};
use aaep::extension::{Delivery, Merged, PREFIX};
use aaep::{CognitiveLoad, Event, EventId, LanguageTag, Object, Payload};

use super::{HistoryEntry, SessionKey, TextKey, Unit, UnitKind, text_key};
use crate::boundary::{Boundaries, Cutter};
use crate::clock::date_not_before;
use crate::ids::derived_event_id;
use crate::terms::Terms;

/// The incomplete outputs of all sessions.
#[derive(Debug)]
pub(super) struct HeldOutputs {
    boundaries: Boundaries,
    /// Whether merged events may be marked as such.
    extension: bool,
    open: BTreeMap<TextKey, HeldOutput>,
    /// How many bytes all outputs take.
    bytes: usize,
}

/// What an output takes besides its characters.
const OUTPUT_BYTES: usize = 1024;

/// One output and its held text.
#[derive(Debug)]
struct HeldOutput {
    cutter: Cutter,
    boundaries: Boundaries,
    /// The position of the first held character.
    position: u64,
    /// How many events the held text comes from, the newest of them, and how many pieces it gave so far.
    held_events: u64,
    newest: HistoryEntry,
    parts: u64,
    /// The latest timestamp of its session so far.
    latest_us: i64,
    /// Whether the rest is cut because of an event that is not part of it.
    is_cut: bool,
}

impl HeldOutputs {
    pub(super) fn new(terms: &Terms) -> Self {
        // With a low cognitive load, an answer is delivered when it is complete (§5.3.1.10).
        let boundaries = if terms.cognitive_load == CognitiveLoad::Low {
            Boundaries::from_list(&[CoalesceBoundary::Completion])
        } else {
            Boundaries::from_list(&terms.boundaries)
        };
        let extension = terms.understands_our_extension();
        HeldOutputs { boundaries, extension, open: BTreeMap::new(), bytes: 0 }
    }

    /// Takes a chunk and returns the pieces whose ends are now certain.
    pub(super) fn take(
        &mut self,
        entry: &HistoryEntry,
        audience: u64,
        sequence_number: Option<u64>,
    ) -> Vec<Unit> {
        let Payload::OutputStreaming(chunk) = &entry.event.payload else { return Vec::new() };
        let key = text_key(entry.session, chunk);
        let is_alike = |output: &HeldOutput| is_text_alike(&output.newest.event, &entry.event);
        let mut units = match self.open.get(&key) {
            Some(output) if !is_alike(output) => self.cut(&key, audience),
            _ => Vec::new(),
        };
        let language = text_language(&entry.event);
        let boundaries = self.boundaries;
        let bytes_before = self.open.get(&key).map_or(0, HeldOutput::bytes);
        let output = self.open.entry(key.clone()).or_insert_with(|| HeldOutput {
            cutter: Cutter::new(boundaries, language),
            boundaries,
            position: chunk.position,
            held_events: 0,
            newest: entry.clone(),
            parts: 0,
            latest_us: entry.latest_us,
            is_cut: false,
        });
        output.newest = entry.clone();
        output.held_events += 1;
        output.parts = 0;
        let mut pieces = Vec::new();
        output.cutter.push(&chunk.chunk, &mut |piece| {
            pieces.push((piece.text.to_owned(), piece.boundary, piece.chars as u64));
        });
        let mut is_complete = false;
        if chunk.complete {
            output.cutter.finish(&mut |piece| {
                pieces.push((piece.text.to_owned(), piece.boundary, piece.chars as u64));
            });
            is_complete = true;
            match pieces.last_mut() {
                Some((_, boundary, _)) => *boundary = boundaries.at_completion(),
                None => pieces.push((String::new(), boundaries.at_completion(), 0)),
            }
        }
        let extension = self.extension;
        let how = (is_complete, extension);
        units.extend(output.units(pieces, how, audience, sequence_number));
        let bytes = if is_complete { 0 } else { output.bytes() };
        if is_complete {
            self.open.remove(&key);
        }
        self.bytes = self.bytes.saturating_sub(bytes_before) + bytes;
        units
    }

    /// Notes the time of an event, for the text of its session that is still held: when that text is cut,
    /// later events may have been sent.
    pub(super) fn note_time(&mut self, entry: &HistoryEntry) {
        let texts = self.open.range_mut((entry.session, None)..);
        for (_, output) in texts.take_while(|((session, _), _)| *session == entry.session) {
            output.latest_us = output.latest_us.max(entry.latest_us);
        }
    }

    /// How many bytes the incomplete outputs take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Cuts the output that has waited longest and returns its text so far.
    pub(super) fn cut_oldest(&mut self, audience: u64) -> Option<(TextKey, Vec<Unit>)> {
        let oldest = self.open.iter().min_by_key(|(_, output)| output.newest.order);
        let key = oldest.map(|(key, _)| key.clone())?;
        let units = self.cut(&key, audience);
        Some((key, units))
    }

    /// The incomplete outputs.
    pub(super) fn open(&self) -> impl Iterator<Item = &TextKey> {
        self.open.keys()
    }

    /// Returns the held text of an output, and forgets the output.
    fn cut(&mut self, key: &TextKey, audience: u64) -> Vec<Unit> {
        let Some(mut output) = self.open.remove(key) else { return Vec::new() };
        self.bytes = self.bytes.saturating_sub(output.bytes());
        let mut pieces = Vec::new();
        output.cutter.finish(&mut |piece| {
            pieces.push((piece.text.to_owned(), piece.boundary, piece.chars as u64));
        });
        // Its events came earlier, so none of them can be sent as it is.
        output.is_cut = true;
        output.units(pieces, (false, self.extension), audience, None)
    }

    /// Where the held text of each output begins and ends.
    pub(super) fn held(&self) -> impl Iterator<Item = (TextKey, u64, u64)> + '_ {
        self.open.iter().map(|(key, output)| {
            let end = output.position + output.cutter.held_chars() as u64;
            (key.clone(), output.position, end)
        })
    }

    /// Returns the held text of all outputs of a session, because the session ends or asks something.
    pub(super) fn cut_session(&mut self, session: SessionKey, audience: u64) -> Vec<Unit> {
        let keys: Vec<_> = self.open.keys().filter(|(of, _)| *of == session).cloned().collect();
        keys.iter().flat_map(|key| self.cut(key, audience)).collect()
    }
}

impl HeldOutput {
    fn bytes(&self) -> usize {
        size_of::<HeldOutput>() + OUTPUT_BYTES + self.cutter.held_chars() * 4 + self.newest.weight
    }

    fn units(
        &mut self,
        pieces: Vec<(String, CoalesceBoundary, u64)>,
        (is_complete, extension): (bool, bool),
        audience: u64,
        sequence_number: Option<u64>,
    ) -> Vec<Unit> {
        let count = pieces.len();
        let mut units = Vec::with_capacity(count);
        for (index, (text, boundary, chars)) in pieces.into_iter().enumerate() {
            let is_last = index + 1 == count;
            let mut unit =
                self.unit(text, boundary, is_complete && is_last, audience, sequence_number);
            if extension && unit.stands_for > 1 {
                mark_merged(&mut unit, &self.newest.event.envelope.event_id);
            }
            units.push(unit);
            self.position += chars;
            self.parts += 1;
            // The remaining text still comes from the newest event.
            self.held_events = 1;
        }
        if count > 0 && self.cutter.held_chars() == 0 {
            self.held_events = 0;
        }
        units
    }

    /// A piece as an event. If the piece is exactly the agent's event, that event itself.
    fn unit(
        &self,
        text: String,
        boundary: CoalesceBoundary,
        is_complete: bool,
        audience: u64,
        sequence_number: Option<u64>,
    ) -> Unit {
        let source = &self.newest.event;
        let Payload::OutputStreaming(chunk) = &source.payload else {
            return Unit::new(&self.newest, Arc::clone(source), UnitKind::Other, sequence_number);
        };
        let is_whole = chunk.position == self.position
            && chunk.chunk == text
            && chunk.complete == is_complete
            && self.held_events <= 1
            && !self.is_cut;
        let own_bytes = if is_whole { 0 } else { text.len() };
        let event = if is_whole {
            with_hint(source, chunk, self.boundaries, boundary)
        } else {
            let mut piece = piece_of(
                source,
                chunk,
                text,
                self.position,
                is_complete,
                boundary,
                (self.parts, audience),
            );
            date_not_before(&mut piece.envelope, self.latest_us);
            Arc::new(piece)
        };
        let mut unit = Unit::new(&self.newest, event, UnitKind::Text, sequence_number);
        unit.latest_us = unit.latest_us.max(self.latest_us);
        unit.stands_for = self.held_events.max(1);
        unit.weight += own_bytes;
        unit
    }
}

fn piece_of(
    source: &Event,
    chunk: &OutputStreaming,
    text: String,
    position: u64,
    is_complete: bool,
    boundary: CoalesceBoundary,
    (part, audience): (u64, u64),
) -> Event {
    let mut envelope = source.envelope.clone();
    envelope.event_id = derived_event_id(&source.envelope.event_id, part, audience);
    let payload = OutputStreaming {
        chunk: text,
        position,
        complete: is_complete,
        coalesce_hint: Some(boundary),
        output_id: chunk.output_id.clone(),
        content_type: chunk.content_type.clone(),
        language: chunk.language.clone(),
        other: Object::new(),
    };
    let mut event = Event::new(envelope, payload);
    event.extensions = extensions_of_text(source);
    event
}

/// The extension data of an event, for another piece of its text. The agent's count is true only of its own
/// event and is left out.
pub(crate) fn extensions_of_text(source: &Event) -> Option<aaep::Extensions> {
    let mut extensions = source.extensions.clone()?;
    for (_, data) in extensions.0.iter_mut().filter(|(prefix, _)| prefix.as_str() == PREFIX) {
        data.remove("counted_to");
    }
    extensions.0.retain(|prefix, data| prefix.as_str() != PREFIX || !data.is_empty());
    (!extensions.0.is_empty()).then_some(extensions)
}

/// The agent's own event. A `coalesce_hint` that was not negotiated is replaced by the boundary at which the
/// text really ends (§4.3.3).
pub(super) fn with_hint(
    event: &Arc<Event>,
    chunk: &OutputStreaming,
    boundaries: Boundaries,
    boundary: CoalesceBoundary,
) -> Arc<Event> {
    if chunk.coalesce_hint.as_ref().is_none_or(|hint| boundaries.contains(hint)) {
        return Arc::clone(event);
    }
    let chunk = OutputStreaming { coalesce_hint: Some(boundary), ..chunk.clone() };
    Arc::new(Event { payload: chunk.into(), ..(**event).clone() })
}

/// The language of the text of an event: that of the chunk, or else that of the whole event.
fn text_language(event: &Event) -> Option<&LanguageTag> {
    let Payload::OutputStreaming(chunk) = &event.payload else { return None };
    let hints = event.envelope.localization_hints.as_ref();
    chunk.language.as_ref().or_else(|| hints?.primary_language.as_ref())
}

/// Whether two events have text of the same language and content type, so that it may be merged (ruling 32).
pub(crate) fn is_text_alike(one: &Event, other: &Event) -> bool {
    let (Payload::OutputStreaming(a), Payload::OutputStreaming(b)) = (&one.payload, &other.payload)
    else {
        return false;
    };
    a.content_type == b.content_type && text_language(one) == text_language(other)
}

/// Marks a unit as standing for several events.
fn mark_merged(unit: &mut Unit, last: &EventId) {
    let mut event = (*unit.event).clone();
    let merged =
        Merged { count: unit.stands_for, last_event_id: last.clone(), other: Object::new() };
    let delivery = Delivery { merged: Some(merged), ..Delivery::new() };
    delivery.put_on(&mut event);
    unit.event = Arc::new(event);
}
