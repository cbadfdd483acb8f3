//! The log of commands that run for long: lines on standard error, for people or for machines.
//!
//! Our own lines say themselves how many they may be. Those of libraries, which a peer can cause without end, are
//! limited here; the hub logs how many were left out.

use std::time::Instant;

use aaep_hub::lines::LIBRARY_LINES;
use clap::{Args, ValueEnum};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level as EventLevel, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// What the log has, and in which form.
#[derive(Debug, Args)]
pub(crate) struct Log {
    /// How much to log.
    #[arg(long = "log", value_name = "LEVEL", value_enum, default_value_t = Level::Info, env = "AAEP_LOG")]
    level: Level,
    /// The form of the log: text for people, json for machines.
    #[arg(long = "log-format", value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Level {
    /// What keeps the hub from working.
    Error,
    /// What should be looked at.
    Warn,
    /// What happens to the hub itself.
    Info,
    /// Every request, without its words.
    Debug,
    /// Everything.
    Trace,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Starts the log. A second start changes nothing.
pub(crate) fn start_log(log: &Log) {
    let level = match log.level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    };
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false);
    let started = match log.format {
        Format::Text => builder.finish().with(FewLibraryLines).try_init(),
        Format::Json => {
            builder.json().flatten_event(true).finish().with(FewLibraryLines).try_init()
        }
    };
    // There is a log already, and that one counts.
    drop(started);
}

/// Leaves out lines of libraries beyond a few a minute. Whoever looks for a fault gets all of them.
struct FewLibraryLines;

impl<S: Subscriber> Layer<S> for FewLibraryLines {
    fn event_enabled(&self, event: &Event<'_>, _context: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        let is_ours = metadata.target().starts_with("aaep");
        // More is better here: the levels below are for finding a fault.
        let is_usual = *metadata.level() <= EventLevel::INFO;
        is_ours || !is_usual || LIBRARY_LINES.may_write(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A log that is kept.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("a log").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_library_cannot_fill_the_log_and_is_counted() {
        let kept = Kept::default();
        let writer = kept.clone();
        let log = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::INFO)
            .with_writer(move || writer.clone())
            .finish()
            .with(FewLibraryLines);
        tracing::subscriber::with_default(log, || {
            for _ in 0..1000 {
                tracing::warn!(target: "h2::proto", "A stream was reset.");
                tracing::warn!("One of ours.");
            }
        });
        let text = String::from_utf8(kept.0.lock().expect("a log").clone()).expect("text");
        let lines = |what: &str| text.lines().filter(|line| line.contains(what)).count() as u64;
        assert_eq!(lines("One of ours."), 1000);
        let written = lines("A stream was reset.");
        assert!(written < 100, "{written}");
        let left_out = LIBRARY_LINES.take_left_out(Instant::now(), true).expect("some");
        assert_eq!(written + left_out, 1000);
    }
}
