//! The text that agents wrote, chunk by chunk (§4.3.3, ruling 11), for a transcript.
//!
//! Chunks are kept as they were heard. A chunk that does not follow is a violation of the order
//! that is reported elsewhere, and its text is kept nevertheless. Beyond a bound the text stops
//! growing and is marked as cut.

use std::collections::BTreeMap;

use aaep::event::action::OutputStreaming;
use aaep::{OutputId, SessionId};

/// The most bytes of one output's text.
pub const MAX_TEXT_BYTES: usize = 256 * 1024;
/// The most bytes of all texts together. Beyond that the oldest is forgotten.
pub const MAX_TEXTS_BYTES: usize = 8 * 1024 * 1024;
/// How many texts are kept. Beyond that the oldest is forgotten.
pub const MAX_TEXTS: usize = 1024;

/// The text of one output so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text {
    /// The text, as far as it was kept.
    pub text: String,
    /// Whether the last chunk has arrived.
    pub is_complete: bool,
    /// Whether more was heard than was kept.
    pub is_cut: bool,
    /// The sequence number of the text, in the order in which texts began.
    began: u64,
}

/// All texts that are kept.
#[derive(Debug, Default)]
pub(super) struct SubscriberTexts {
    known: BTreeMap<(SessionId, Option<OutputId>), Text>,
    bytes: usize,
    begun: u64,
}

impl SubscriberTexts {
    pub(super) fn get(&self, session: &SessionId, output: Option<&OutputId>) -> Option<&Text> {
        self.known.get(&(session.clone(), output.cloned()))
    }

    pub(super) fn of<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> impl Iterator<Item = (Option<&'a OutputId>, &'a Text)> {
        let of_session = self.known.range((session.clone(), None)..);
        of_session
            .take_while(move |((id, _), _)| id == session)
            .map(|((_, output), text)| (output.as_ref(), text))
    }

    /// Adds a chunk.
    pub(super) fn take(&mut self, session: &SessionId, chunk: &OutputStreaming) {
        let key = (session.clone(), chunk.output_id.clone());
        if !self.known.contains_key(&key) {
            self.begun += 1;
        }
        let fresh = || Text { began: self.begun, ..Text::default() };
        let text = self.known.entry(key).or_insert_with(fresh);
        let room = MAX_TEXT_BYTES.saturating_sub(text.text.len());
        let end = chunk.chunk.floor_char_boundary(room);
        // After a gap in the text, nothing may be appended as if it followed.
        let piece = if text.is_cut { "" } else { &chunk.chunk[..end] };
        text.text.push_str(piece);
        text.is_cut |= piece.len() < chunk.chunk.len();
        text.is_complete |= chunk.complete;
        self.bytes += piece.len();
        while self.bytes > MAX_TEXTS_BYTES || self.known.len() > MAX_TEXTS {
            self.forget_one();
        }
    }

    pub(super) fn forget(&mut self, session: &SessionId) {
        let keys: Vec<_> = self.known.keys().filter(|(id, _)| id == session).cloned().collect();
        for key in keys {
            self.remove(&key);
        }
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize) {
        (self.known.len(), self.known.values().map(|text| text.text.len()).sum())
    }

    /// Forgets the oldest text, complete ones first.
    fn forget_one(&mut self) {
        let oldest = self.known.iter().min_by_key(|(_, text)| (!text.is_complete, text.began));
        match oldest.map(|(key, _)| key.clone()) {
            Some(key) => self.remove(&key),
            None => self.bytes = 0,
        }
    }

    fn remove(&mut self, key: &(SessionId, Option<OutputId>)) {
        if let Some(text) = self.known.remove(key) {
            self.bytes = self.bytes.saturating_sub(text.text.len());
        }
    }
}
