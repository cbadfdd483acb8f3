//! Parts of this program that run in their own processes, and the pipes to them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

use clap::Subcommand;

use super::wire::FanoutWire;
use super::{by_hand, listen, raw};
use crate::process::ProcessUsage;

/// What a process of this program does for another one.
#[derive(Subcommand)]
pub(crate) enum HelperPart {
    /// Be a server that only writes.
    OnlyWrite { wire: FanoutWire },
    /// Be a server as one would write it by hand.
    ByHand,
    /// Be many subscribers.
    Listen(listen::ListenBenchOptions),
}

/// Runs the part.
#[expect(clippy::print_stderr, reason = "it is a program that says why it failed")]
pub(crate) fn run(part: &HelperPart) -> ExitCode {
    let done = match part {
        HelperPart::OnlyWrite { wire } => raw::serve(*wire),
        HelperPart::ByHand => by_hand::serve(),
        HelperPart::Listen(options) => listen::run(options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}

/// A helper process that is controlled by lines of text. Dropping it ends the process.
pub(super) struct HelperProcess {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl HelperProcess {
    pub(super) fn start(arguments: &[&str]) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("a process of this program: {error}");
        let program = std::env::current_exe().map_err(failed)?;
        let mut child = Command::new(program)
            .arg("part")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let to = child.stdin.take().ok_or("no pipe")?;
        let from = BufReader::new(child.stdout.take().ok_or("no pipe")?);
        Ok(HelperProcess { child, to, from })
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.to.write_all(bytes).and_then(|()| self.to.flush()).map_err(|error| error.to_string())
    }

    /// Reads the next line of the process.
    pub(super) fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.from.read_line(&mut line) {
            Ok(1..) => Ok(line.trim_end().to_owned()),
            _ => Err("a process of this program is gone".to_owned()),
        }
    }

    /// Sends a line and returns the answer.
    pub(super) fn ask(&mut self, line: &str) -> Result<String, String> {
        self.send(format!("{line}\n").as_bytes())?;
        self.line()
    }

    pub(super) fn usage(&self) -> Result<ProcessUsage, String> {
        ProcessUsage::of(self.child.id())
    }
}

impl Drop for HelperProcess {
    fn drop(&mut self) {
        // If the process has already ended, nothing is left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
