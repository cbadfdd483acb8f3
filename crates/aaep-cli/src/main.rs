//! `aaep`: one binary, one file per command. It speaks to people; the rules live in the crates below.
//!
//! Every command works without colour, redraw or terminal, and says what to do next when it fails.
//! Exit codes are the same everywhere: 0 all is well, 1 the answer is no, 2 it could not be done.

mod agent;
mod allow;
mod answer;
mod archive;
mod ask;
mod attention;
mod audit;
mod backup;
mod cancel;
mod capture;
mod completions;
mod config;
mod console;
mod demo;
mod doctor;
mod emit;
mod english;
mod http;
mod hubs;
mod instruct;
mod kept;
mod keyboard;
mod keys;
mod listen;
mod log;
mod man;
mod manifest;
mod order;
mod person;
mod problem;
mod progress;
mod replay;
mod report;
mod schema;
mod serve;
mod sessions;
mod settings;
mod split;
mod stop;
mod store;
mod tell;
mod tokens;
mod validate;

use std::process::ExitCode;

use clap::{FromArgMatches as _, Parser, Subcommand};
use order::ordered;

/// Messages are made on one thread and dropped on another, which the system's allocator is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Hear what AI agents do, and answer them, without seeing the screen.
///
/// AAEP, the Agent Accessibility Event Protocol, lets an agent tell assistive technology what it
/// is doing, and ask before it does something that cannot be undone.
#[derive(Debug, Parser)]
#[command(name = "aaep", version, propagate_version = true, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show how it works: a hub, two scripted agents, and you, in this terminal.
    Demo(demo::Arguments),
    /// Hear what agents do, in lines, speech and braille, and answer them.
    Listen(listen::Arguments),
    /// Hear again what agents did: since you left, the last thing, a reply, a decision.
    Replay(replay::Arguments),
    /// Run a hub, which takes events from agents and serves the people who listen.
    Serve(serve::Arguments),
    /// Check messages: what is wrong, where, and how to fix it.
    Validate(validate::Arguments),
    /// Write the JSON Schemas of all messages into a folder.
    Schema(schema::Arguments),
    /// Publish events to a hub: what an agent does, from a script or a hook.
    Emit(emit::Arguments),
    /// Ask a person and wait: exits with 0 only if the person accepts.
    Ask(ask::Arguments),
    /// List the questions waiting for you, from all agents, the riskiest first.
    Attention(attention::Arguments),
    /// Answer a question by its number, with a short word.
    Answer(answer::Arguments),
    /// Tell an agent what to do, or list the agents that take instructions.
    Tell(tell::Arguments),
    /// Ask an agent to stop what it is doing.
    Cancel(cancel::Arguments),
    /// Show, edit and check your settings.
    Config(config::Arguments),
    /// Check which ways of listening work on this machine: the hub, speech, braille, sounds.
    Doctor(doctor::Arguments),
    /// Record the events of a producer, over any wire, one event to a line.
    Capture(capture::Arguments),
    /// Report how recorded sessions would sound to a listener, in figures and as a page.
    Report(report::Arguments),
    /// Make, list and retire the keys that manifests are signed with.
    Keys(keys::Arguments),
    /// Make, list and revoke the tokens with which programs identify themselves to a hub.
    Tokens(tokens::Arguments),
    /// Let a program on this machine answer your agents, or revoke that.
    Allow(allow::Arguments),
    /// List, show and delete the sessions that a hub has stored.
    Sessions(sessions::Arguments),
    /// Show, verify and export the log of what was asked and answered.
    Audit(audit::Arguments),
    /// Copy everything that a hub has stored into a new folder, even while the hub runs.
    Backup(backup::Arguments),
    /// Show a manifest, or verify the manifest of a producer.
    Manifest(manifest::Arguments),
    /// Let your shell complete commands and flags.
    Completions(completions::Arguments),
    /// Print the manual, or write its pages into a folder.
    Man(man::Arguments),
}

fn main() -> ExitCode {
    let matches = ordered::<Arguments>().get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let result = match arguments.command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Listen(arguments) => listen::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Validate(arguments) => validate::run(&arguments),
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Emit(arguments) => emit::run(&arguments),
        Command::Ask(arguments) => ask::run(&arguments),
        Command::Attention(arguments) => attention::run(&arguments),
        Command::Answer(arguments) => answer::run(&arguments),
        Command::Tell(arguments) => tell::run(&arguments),
        Command::Cancel(arguments) => cancel::run(&arguments),
        Command::Config(arguments) => config::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Capture(arguments) => capture::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Keys(arguments) => keys::run(&arguments),
        Command::Tokens(arguments) => tokens::run(&arguments),
        Command::Allow(arguments) => allow::run(&arguments),
        Command::Sessions(arguments) => sessions::run(&arguments),
        Command::Audit(arguments) => audit::run(&arguments),
        Command::Backup(arguments) => backup::run(&arguments),
        Command::Manifest(arguments) => manifest::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments, ordered::<Arguments>()),
        Command::Man(arguments) => man::run(&arguments, ordered::<Arguments>()),
    };
    match result {
        Ok(code) => code,
        Err(failure) => {
            console::complain(&failure);
            ExitCode::from(console::COULD_NOT)
        }
    }
}
