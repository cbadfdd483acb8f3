//! The benchmark program: what is measured is compared with something else in the same run, so that
//! a slow machine or a noisy neighbour slows both.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod capture;
mod engine;
mod fanout;
mod plot;
mod process;
mod sample;
mod serve;
mod table;
mod timing;
mod validate;

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
    /// What shaping events costs, by audiences and listeners.
    Engine(engine::Options),
    /// What it costs a running hub to tell many listeners something.
    Fanout(fanout::Options),
    /// What a process of this program does for another one.
    #[command(hide = true, subcommand)]
    Part(fanout::part::Part),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Validate(options) => validate::run(&options),
        Command::Engine(options) => engine::run(&options),
        Command::Fanout(options) => fanout::run(&options),
        Command::Part(part) => fanout::part::run(&part),
    }
}
