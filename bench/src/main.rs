//! The benchmark program. Every measurement is compared with something else in the same run, so
//! that a slow machine or a noisy neighbour slows both.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod ask;
mod bridges;
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
struct BenchArguments {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand)]
enum BenchCommand {
    /// How fast messages are read and validated.
    Validate(validate::ValidateBenchOptions),
    /// What shaping events costs, by audiences and subscribers.
    Engine(engine::EngineBenchOptions),
    /// What it costs a running hub to tell many subscribers something.
    Fanout(fanout::FanoutBenchOptions),
    /// How many events agents can publish durably, next to what the disk allows.
    Publish(publish::PublishBenchOptions),
    /// How fast questions are asked, answered and settled.
    Ask(ask::AskBenchOptions),
    /// How long a person's answer takes beside programs that take all they can.
    Hogs(hogs::HogsBenchOptions),
    /// How long starting a hub takes, and what `aaep emit` and `aaep ask` add.
    Startup(startup::StartupBenchOptions),
    /// What it costs an agent that it is heard: a hook, and a turn through `aaep acp`.
    Bridges(bridges::BridgesBenchOptions),
    /// An agent that answers at once.
    #[command(hide = true)]
    Agent,
    /// A hub with a mixed crowd of subscribers for a long time: what is lost, and how memory grows.
    Soak(soak::SoakBenchOptions),
    /// What a process of this program does for another one.
    #[command(hide = true, subcommand)]
    Part(fanout::part::HelperPart),
}

fn main() -> ExitCode {
    match BenchArguments::parse().command {
        BenchCommand::Validate(options) => validate::run(&options),
        BenchCommand::Engine(options) => engine::run(&options),
        BenchCommand::Fanout(options) => fanout::run(&options),
        BenchCommand::Publish(options) => publish::run(&options),
        BenchCommand::Ask(options) => ask::run(&options),
        BenchCommand::Hogs(options) => hogs::run(&options),
        BenchCommand::Startup(options) => startup::run(&options),
        BenchCommand::Bridges(options) => bridges::run(&options),
        BenchCommand::Agent => bridges::agent(),
        BenchCommand::Soak(options) => soak::run(&options),
        BenchCommand::Part(part) => fanout::part::run(&part),
    }
}
