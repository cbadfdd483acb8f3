//! The log of commands that run for long: lines on standard error, for people or for machines.

use clap::{Args, ValueEnum};
use tracing::level_filters::LevelFilter;

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
        Format::Text => builder.try_init(),
        Format::Json => builder.json().flatten_event(true).try_init(),
    };
    // There is a log already, and that one counts.
    drop(started);
}
