//! Parts of this program that run as processes of their own, and the pipes to them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

use clap::Subcommand;

use super::wire::Wire;
use super::{by_hand, listen, raw};
use crate::process::Usage;

/// What a process of this program does for another one.
#[derive(Subcommand)]
pub(crate) enum Part {
    /// Be a server that only writes.
    OnlyWrite { wire: Wire },
    /// Be a server as one would write it by hand.
    ByHand,
    /// Be many subscribers.
    Listen(listen::Options),
}

/// Does it.
#[expect(clippy::print_stderr, reason = "it is a program that says why it failed")]
pub(crate) fn run(part: &Part) -> ExitCode {
    let done = match part {
        Part::OnlyWrite { wire } => raw::serve(*wire),
        Part::ByHand => by_hand::serve(),
        Part::Listen(options) => listen::run(options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}

/// Such a process, spoken with in lines. It ends with this.
pub(super) struct Helper {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Helper {
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
        Ok(Helper { child, to, from })
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.to.write_all(bytes).and_then(|()| self.to.flush()).map_err(|error| error.to_string())
    }

    /// The next line that it says.
    pub(super) fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.from.read_line(&mut line) {
            Ok(1..) => Ok(line.trim_end().to_owned()),
            _ => Err("a process of this program is gone".to_owned()),
        }
    }

    /// Says a line and gives the answer.
    pub(super) fn ask(&mut self, line: &str) -> Result<String, String> {
        self.send(format!("{line}\n").as_bytes())?;
        self.line()
    }

    pub(super) fn usage(&self) -> Result<Usage, String> {
        Usage::of(self.child.id())
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // One that is gone already is as wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
