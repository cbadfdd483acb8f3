//! Room that is reserved for emergencies: a file of eight megabytes, which is deleted when the disk is full.
//!
//! Deleting data needs a little room first, and so does reopening a database that a full disk has shut. The
//! file is never given up for anything else: ordinary commits wait until there is room.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use crate::store::folder::create_file;
use crate::store::journal;

const SPARE: &str = "spare";

/// How much room is reserved: together with a deletion, the database writes everything that only the journal
/// has, and its pages are not full.
pub(super) const SPARE_BYTES: u64 = 2 * journal::MAX_BYTES;

/// How many bytes are written at a time.
const PART_BYTES: u64 = 16 << 10;

/// Reserves the room, or as much as there is.
pub(super) fn keep(folder: &Path) {
    let path = folder.join(SPARE);
    if fs::metadata(&path).is_ok_and(|it| it.len() == SPARE_BYTES) {
        return;
    }
    let Ok(mut file) = create_file(&path) else { return };
    // Bytes that a file system cannot compress.
    let mut state: u64 = 0x2545_f491_4f6c_dd1d;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    for _ in 0..SPARE_BYTES / PART_BYTES {
        let part: Vec<u8> = (0..PART_BYTES / 8).flat_map(|_| next()).collect();
        if file.write_all(&part).is_err() {
            break;
        }
    }
    // If this fails, there is less room in an emergency, and nothing else.
    let _ = file.sync_all();
}

/// Releases the room. Returns whether there was any.
pub(super) fn release(folder: &Path) -> bool {
    fs::remove_file(folder.join(SPARE)).is_ok()
}
