//! The benchmark program: what is measured is compared with something else in the same run, so that
//! a slow machine or a noisy neighbour slows both.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod ask;
mod capture;
mod engine;
mod fanout;
mod group;
mod hogs;
mod plot;
mod process;
mod publish;
mod random;
mod rounds;
mod sample;
mod serve;
mod soak;
mod startup;
mod table;
mod timing;
mod validate;
mod wire;

#[derive(Parser)]
#[command(about = "Measures, and compares with others in the same run.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// How fast messages are read and validated.
    Validate(validate::Options),
    /// What shaping events costs, by audiences and subscribers.
    Engine(engine::Options),
    /// What it costs a running hub to tell many subscribers something.
    Fanout(fanout::Options),
    /// How many events agents can publish durably, next to what the disk allows.
    Publish(publish::Options),
    /// How fast questions are asked, answered and settled.
    Ask(ask::Options),
    /// How long a person's answer takes beside programs that take all they can.
    Hogs(hogs::Options),
    /// How long starting a hub takes, and what `aaep emit` and `aaep ask` add.
    Startup(startup::Options),
    /// A hub with a mixed crowd of subscribers for a long time: what is lost, and how memory grows.
    Soak(soak::Options),
    /// What a process of this program does for another one.
    #[command(hide = true, subcommand)]
    Part(fanout::part::Part),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Validate(options) => validate::run(&options),
        Command::Engine(options) => engine::run(&options),
        Command::Fanout(options) => fanout::run(&options),
        Command::Publish(options) => publish::run(&options),
        Command::Ask(options) => ask::run(&options),
        Command::Hogs(options) => hogs::run(&options),
        Command::Startup(options) => startup::run(&options),
        Command::Soak(options) => soak::run(&options),
        Command::Part(part) => fanout::part::run(&part),
    }
}
