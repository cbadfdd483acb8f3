//! `aaep`: one binary, one file per command. It speaks to people; the rules live in the crates below.
//!
//! Every command works without colour, redraw or terminal, and says what to do next when it fails.
//! Exit codes are the same everywhere: 0 all is well, 1 the answer is no, 2 it could not be done.

mod acp;
mod agent;
mod agents;
mod allow;
mod answer;
mod archive;
mod ask;
mod attention;
mod audit;
mod backup;
mod cancel;
mod capture;
mod chat;
mod completions;
mod config;
mod console;
mod demo;
mod doctor;
mod emit;
mod english;
mod folders;
mod follow;
mod hook;
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
mod mcp;
mod order;
mod person;
mod problem;
mod progress;
mod proxied;
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
struct AaepOptions {
    #[command(subcommand)]
    command: AaepCommand,
}

#[derive(Debug, Subcommand)]
enum AaepCommand {
    /// Show how it works: a hub, two scripted agents, and you, in this terminal.
    Demo(demo::DemoOptions),
    /// Hear what agents do, in lines, speech and braille, and answer them.
    Listen(listen::ListenOptions),
    /// Hear again what agents did: since you left, the last thing, a reply, a decision.
    Replay(replay::ReplayOptions),
    /// Run a hub, which takes events from agents and serves the people who listen.
    Serve(serve::ServeOptions),
    /// Check messages: what is wrong, where, and how to fix it.
    Validate(validate::ValidateOptions),
    /// Write the JSON Schemas of all messages into a folder.
    Schema(schema::SchemaOptions),
    /// Publish events to a hub: what an agent does, from a script or a hook.
    Emit(emit::EmitOptions),
    /// Set up agents that you already use, so that you hear them and they ask you here.
    Agents(agents::AgentsOptions),
    /// Stand between your editor and an agent that it starts, so that you hear and answer the agent here.
    Acp(acp::AcpOptions),
    /// Use an agent in this terminal, in plain lines: prompt it, hear it, answer it. No editor is needed.
    Chat(chat::ChatOptions),
    /// Stand between a program and a server of tools that it starts, so that you hear what the tools do and decide here.
    Mcp(mcp::McpOptions),
    /// Hear and answer agents that have a server of their own: Codex in a terminal, and OpenCode.
    Follow(follow::FollowOptions),
    /// Run by agents before and after their tools; `aaep agents add` sets it up.
    Hook(hook::HookOptions),
    /// Ask a person and wait: exits with 0 only if the person accepts.
    Ask(ask::AskOptions),
    /// List the questions waiting for you, from all agents, the riskiest first.
    Attention(attention::AttentionOptions),
    /// Answer a question by its number, with a short word.
    Answer(answer::AnswerOptions),
    /// Tell an agent what to do, or list the agents that take instructions.
    Tell(tell::TellOptions),
    /// Ask an agent to stop what it is doing.
    Cancel(cancel::CancelOptions),
    /// Show, edit and check your settings.
    Config(config::ConfigOptions),
    /// Check which ways of listening work on this machine: the hub, speech, braille, sounds.
    Doctor(doctor::DoctorOptions),
    /// Record the events of a producer, over any wire, one event on each line.
    Capture(capture::CaptureOptions),
    /// Report how recorded sessions would sound to a listener, in figures and as a page.
    Report(report::ReportOptions),
    /// Make, list and retire the keys that manifests are signed with.
    Keys(keys::KeysOptions),
    /// Make, list and revoke the tokens with which programs identify themselves to a hub.
    Tokens(tokens::TokensOptions),
    /// Let a program on this machine answer your agents, or revoke that.
    Allow(allow::AllowOptions),
    /// List, show and delete the sessions that a hub has stored.
    Sessions(sessions::SessionsOptions),
    /// Show, verify and export the log of what was asked and answered.
    Audit(audit::AuditOptions),
    /// Copy everything that a hub has stored into a new folder, even while the hub runs.
    Backup(backup::BackupOptions),
    /// Show a manifest, or verify the manifest of a producer.
    Manifest(manifest::ManifestOptions),
    /// Let your shell complete commands and flags.
    Completions(completions::CompletionsOptions),
    /// Print the manual, or write its pages into a folder.
    Man(man::ManOptions),
}

fn main() -> ExitCode {
    let matches = ordered::<AaepOptions>().get_matches();
    let arguments = AaepOptions::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let result = match arguments.command {
        AaepCommand::Demo(arguments) => demo::run(&arguments),
        AaepCommand::Listen(arguments) => listen::run(&arguments),
        AaepCommand::Replay(arguments) => replay::run(&arguments),
        AaepCommand::Serve(arguments) => serve::run(&arguments),
        AaepCommand::Validate(arguments) => validate::run(&arguments),
        AaepCommand::Schema(arguments) => schema::run(&arguments),
        AaepCommand::Emit(arguments) => emit::run(&arguments),
        AaepCommand::Agents(arguments) => agents::run(&arguments),
        AaepCommand::Acp(arguments) => acp::run(&arguments),
        AaepCommand::Chat(arguments) => chat::run(&arguments),
        AaepCommand::Mcp(arguments) => mcp::run(&arguments),
        AaepCommand::Follow(arguments) => follow::run(&arguments),
        AaepCommand::Hook(arguments) => hook::run(&arguments),
        AaepCommand::Ask(arguments) => ask::run(&arguments),
        AaepCommand::Attention(arguments) => attention::run(&arguments),
        AaepCommand::Answer(arguments) => answer::run(&arguments),
        AaepCommand::Tell(arguments) => tell::run(&arguments),
        AaepCommand::Cancel(arguments) => cancel::run(&arguments),
        AaepCommand::Config(arguments) => config::run(&arguments),
        AaepCommand::Doctor(arguments) => doctor::run(&arguments),
        AaepCommand::Capture(arguments) => capture::run(&arguments),
        AaepCommand::Report(arguments) => report::run(&arguments),
        AaepCommand::Keys(arguments) => keys::run(&arguments),
        AaepCommand::Tokens(arguments) => tokens::run(&arguments),
        AaepCommand::Allow(arguments) => allow::run(&arguments),
        AaepCommand::Sessions(arguments) => sessions::run(&arguments),
        AaepCommand::Audit(arguments) => audit::run(&arguments),
        AaepCommand::Backup(arguments) => backup::run(&arguments),
        AaepCommand::Manifest(arguments) => manifest::run(&arguments),
        AaepCommand::Completions(arguments) => {
            completions::run(&arguments, ordered::<AaepOptions>())
        }
        AaepCommand::Man(arguments) => man::run(&arguments, ordered::<AaepOptions>()),
    };
    match result {
        Ok(code) => code,
        Err(failure) => {
            console::complain(&failure);
            ExitCode::from(console::COULD_NOT)
        }
    }
}
