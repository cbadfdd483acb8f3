//! Reads the journal of the previous format, which began at the first byte and overwrote earlier records.
//!
//! In that format a torn record cannot be told from a damaged one. It is read once, when a store is opened
//! after a crash of that version, and never written.

use super::{JournalContents, JournalEnd, StoreId, checksum};

const MARK: [u8; 8] = *b"AAEP rec";
const HEAD_BYTES: usize = 32;

pub(super) fn scan(id: &StoreId, bytes: &[u8], after: u64) -> JournalContents {
    let mut records = Vec::new();
    let (mut last, mut rest) = (after, bytes);
    while let Some((number, content, next)) = first_record(id, rest) {
        if number == last + 1 {
            records.push((number, content.to_vec()));
            last = number;
        } else if number > last {
            break;
        }
        rest = next;
    }
    let at = (bytes.len() - rest.len()) as u64;
    let mut end = JournalEnd::Cut;
    while let Some(found) = rest.windows(MARK.len()).position(|it| it == MARK) {
        let later = first_record(id, rest.get(found..).unwrap_or_default());
        if later.is_some_and(|(number, ..)| number > last) {
            end = JournalEnd::Damaged { at };
        }
        rest = rest.get(found + MARK.len()..).unwrap_or_default();
    }
    JournalContents { records, end }
}

/// The number and the content of the record at the beginning of the bytes, and the bytes after it.
fn first_record<'a>(id: &StoreId, bytes: &'a [u8]) -> Option<(u64, &'a [u8], &'a [u8])> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
    let number = |at: usize| head.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    let (content, next) = rest.split_at_checked(usize::try_from(number(16)?).ok()?)?;
    let is_whole = head.starts_with(&MARK) && head[24..] == checksum(id, &head[..24], content);
    is_whole.then_some((number(8)?, content, next))
}
