//! Room that is kept for bad times: a file that takes eight megabytes, and is given up when the disk is full.
//!
//! To delete something takes a little room first, and so does opening a database again that a full disk has shut. Never
//! given up for anything else: what is stored as usual waits until there is room.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use crate::store::folder::create_file;
use crate::store::journal;

/// The name of the file.
const SPARE: &str = "spare";

/// How much room it keeps: with what is deleted, the database writes all that only the journal has, and pages are not
/// full.
pub(super) const SPARE_BYTES: u64 = 2 * journal::MAX_BYTES;

/// How much of it is written at a time.
const PART_BYTES: u64 = 16 << 10;

/// Keeps the room, or as much of it as there is.
pub(super) fn keep(folder: &Path) {
    let path = folder.join(SPARE);
    if fs::metadata(&path).is_ok_and(|it| it.len() == SPARE_BYTES) {
        return;
    }
    let Ok(mut file) = create_file(&path) else { return };
    // Bytes that no file system makes smaller.
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
    // If it is not on the disk, there is less room in bad times, and nothing else.
    let _ = file.sync_all();
}

/// Gives the room up. Says whether there was some.
pub(super) fn release(folder: &Path) -> bool {
    fs::remove_file(folder.join(SPARE)).is_ok()
}
