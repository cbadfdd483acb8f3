//! The log of long-running commands: lines on standard error, for people or for machines.
//!
//! Our own lines have their own limits. Lines of libraries, which a peer can cause endlessly, are limited here; the
//! hub logs how many were left out.

use std::time::Instant;

use aaep_hub::lines::LIBRARY_LINES;
use clap::{Args, ValueEnum};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// What the log has, and in which form.
#[derive(Debug, Args)]
pub(crate) struct LogFlags {
    /// How much to log.
    #[arg(long = "log", value_name = "LEVEL", value_enum, default_value_t = LogLevel::Info, env = "AAEP_LOG")]
    level: LogLevel,
    /// The form of the log: text for people, json for machines.
    #[arg(long = "log-format", value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    format: LogFormat,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogLevel {
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
enum LogFormat {
    Text,
    Json,
}

/// Starts the log. A second call changes nothing.
pub(crate) fn start_log(log: &LogFlags) {
    let level = match log.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false);
    let started = match log.format {
        LogFormat::Text => builder.finish().with(FewLibraryLines).try_init(),
        LogFormat::Json => {
            builder.json().flatten_event(true).finish().with(FewLibraryLines).try_init()
        }
    };
    // If there is already a log, it stays.
    drop(started);
}

/// Drops lines of libraries beyond a few per minute, except at the debug levels.
struct FewLibraryLines;

impl<S: Subscriber> Layer<S> for FewLibraryLines {
    fn event_enabled(&self, event: &Event<'_>, _context: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        let is_ours = metadata.target().starts_with("aaep");
        // The levels below are for debugging, where more is better.
        let is_usual = *metadata.level() <= Level::INFO;
        is_ours || !is_usual || LIBRARY_LINES.may_write(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A writer that keeps the log in memory.
    #[derive(Clone, Default)]
    struct LogBuffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for LogBuffer {
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
        let kept = LogBuffer::default();
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
