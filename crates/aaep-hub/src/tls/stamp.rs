//! Notices changed files by their times and lengths, never by their contents.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// The state of the TLS files at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsStamp(Vec<Option<(Option<SystemTime>, u64)>>);

impl TlsStamp {
    pub(super) fn of<'p>(paths: impl Iterator<Item = &'p Path>) -> Self {
        let stamp = |path: &Path| {
            let metadata = fs::metadata(path).ok()?;
            Some((metadata.modified().ok(), metadata.len()))
        };
        TlsStamp(paths.map(stamp).collect())
    }
}
