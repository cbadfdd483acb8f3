//! A whole session in a real terminal: tmux is the terminal, and what stands on its screen is compared with a file.
//!
//! Nothing is drawn twice: only text and ends of lines go to the terminal.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::{Hub, aaep, out};

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_mins(1);

/// The screen at the end of the session.
const SNAPSHOT: &str = include_str!("snapshots/terminal.txt");

/// The prompt at the end of a question, where it is answered.
const PROMPT: &str = "Answer yes or no: ";

/// What runs in the terminal: it waits until all that is written is also recorded, and says how it ended.
const SCRIPT: &str =
    r#"while ! test -e "$0"; do sleep 0.02; done; "$@"; echo "Exit code $?."; exec sleep 600"#;

/// The same, but it runs in the background until it is fetched.
const BACKGROUND_SCRIPT: &str = r#"while ! test -e "$0"; do sleep 0.02; done; set -m; "$@" &
while ! test -e "$0.fetch"; do sleep 0.02; done; fg > /dev/null; echo "Exit code $?."; exec sleep 600"#;

/// A terminal of 80 by 24 characters in which a person listens.
pub(crate) struct Terminal {
    pub(crate) hub: Hub,
    folder: TempDir,
}

impl Terminal {
    /// One with this TERM, or with the one that tmux sets.
    pub(crate) fn start(term: Option<&str>, arguments: &[&str]) -> Self {
        Terminal::run(term, &[&["listen"], arguments].concat(), "notice: Listening.\n")
    }

    /// One in which this runs. Returns when it has printed these words.
    pub(crate) fn run(term: Option<&str>, arguments: &[&str], begins: &str) -> Self {
        Terminal::run_script(SCRIPT, term, arguments, begins)
    }

    /// One in which `aaep listen` runs in the background.
    pub(crate) fn start_in_background() -> Self {
        Terminal::run_script(BACKGROUND_SCRIPT, None, &["listen"], "notice: Listening.\n")
    }

    /// Fetches what runs in the background, and waits until it has taken the terminal.
    pub(crate) fn fetch(&self) {
        fs::write(self.path("go.fetch"), "").expect("written");
        let until = Instant::now() + PATIENCE;
        while !self.modes().contains("-icanon") {
            assert!(Instant::now() < until, "it does not take the terminal");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn run_script(script: &str, term: Option<&str>, arguments: &[&str], begins: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let hub = Hub::serve(folder.path(), "127.0.0.1:0");
        let terminal = Terminal { hub, folder };
        let (go, raw) = (terminal.path("go"), terminal.path("raw"));
        let mut command = terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "80"]);
        command.args(["-y", "24", "sh", "-c", script]).arg(&go);
        command.args(term.map(|term| ["env".to_owned(), format!("TERM={term}")]).iter().flatten());
        command.arg(env!("CARGO_BIN_EXE_aaep")).args(arguments);
        said(&mut command);
        let record = format!("cat > '{}'", raw.display());
        said(&mut terminal.tmux(&["pipe-pane", &record]));
        fs::write(go, "").expect("written");
        terminal.wait_for(begins);
        terminal
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command to the terminal, which only this test uses.
    fn tmux(&self, arguments: &[&str]) -> Command {
        let mut command = tmux(&self.path("tmux.sock"), arguments);
        command.env("AAEP_HUB", &self.hub.origin).env("LC_ALL", "C.UTF-8");
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
            command.env(name, self.folder.path());
        }
        command
    }

    /// What stands on the screen, without blanks at the ends of lines.
    fn screen(&self, arguments: &[&str]) -> String {
        let output = said(&mut self.tmux(&[&["capture-pane", "-p"], arguments].concat()));
        let screen = out(&output);
        let lines = screen.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
        format!("{}\n", lines.trim_end())
    }

    /// Waits until this was written.
    pub(crate) fn wait_for(&self, words: &str) {
        self.wait_until(words, |raw| raw.contains(words));
    }

    /// Waits until what was written is as it should be.
    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so(&self.raw()) {
            assert!(Instant::now() < until, "{what:?} is not in {:?}", self.raw());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// How the terminal is set.
    pub(crate) fn modes(&self) -> String {
        let name = out(&said(&mut self.tmux(&["display-message", "-p", "#{pane_tty}"])));
        let modes = Command::new("stty").args(["-a", "-F", name.trim()]).output();
        out(&modes.expect("stty runs"))
    }

    /// Everything that went to the terminal, with plain ends of lines.
    pub(crate) fn raw(&self) -> String {
        let raw = fs::read(self.path("raw")).unwrap_or_default();
        String::from_utf8_lossy(&raw).replace("\r\n", "\n")
    }

    /// Where the next character would stand on its line.
    fn column(&self) -> String {
        let output = said(&mut self.tmux(&["display-message", "-p", "#{cursor_x}"]));
        out(&output).trim().to_owned()
    }

    /// Types a line. Enter is read after the keys, so there is nothing to wait for.
    pub(crate) fn types(&self, line: &str) {
        self.sends_keys(line);
        self.presses("Enter");
    }

    /// Types without Enter, and waits until the terminal shows it. Something else may be written after it meanwhile.
    pub(crate) fn begins_to_type(&self, keys: &str) {
        let before = self.raw().matches(keys).count();
        self.sends_keys(keys);
        self.wait_until(keys, |raw| raw.matches(keys).count() > before);
    }

    fn sends_keys(&self, keys: &str) {
        said(&mut self.tmux(&["send-keys", "-l", keys]));
    }

    pub(crate) fn presses(&self, key: &str) {
        said(&mut self.tmux(&["send-keys", key]));
    }

    /// A command of the same person.
    pub(crate) fn aaep(&self, arguments: &[&str]) -> Command {
        let mut command = self.hub.aaep(arguments);
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
            command.env(name, self.folder.path());
        }
        command
    }

    /// The agent does something in its session.
    fn agent(&self, arguments: &[&str]) -> Command {
        self.hub.aaep(&[arguments, &["--agent", "photos", "--session", "sess_photos"]].concat())
    }

    fn ask(&self, arguments: &[&str]) -> Child {
        let mut asking = self.agent(&[&["ask"], arguments].concat());
        asking.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("aaep runs")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]).output();
    }
}

fn tmux(socket: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("tmux");
    command.arg("-S").arg(socket).args(arguments).env_remove("TMUX").env_remove("ACCESSIBLE");
    for (name, _) in aaep(&[]).get_envs() {
        command.env_remove(name);
    }
    command
}

/// The output of a command that must succeed.
fn said(command: &mut Command) -> Output {
    let output = command.output();
    let output = output.unwrap_or_else(|error| {
        panic!("There is no terminal to test in: {error}. To install one: apt-get install tmux")
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// A whole session: the agent says something, asks, is not understood and is refused, and ends.
fn session(term: Option<&str>, arguments: &[&str]) -> Terminal {
    let terminal = Terminal::start(term, arguments);
    said(&mut terminal.agent(&["emit", "start", "Tidying the photos."]));
    terminal.wait_for("Tidying the photos.\n");
    said(&mut terminal.agent(&["emit", "say", "I found **240** blurred photos.\u{1b}[2J"]));
    terminal.wait_for("blurred photos.");
    let question = ["Delete 240 photos?", "--irreversible", "--risk", "high", "--timeout", "630"];
    let asking = terminal.ask(&question);
    terminal.wait_for(PROMPT);
    // The prompt has not ended its line, so the answer stands behind it.
    assert!(terminal.raw().ends_with(PROMPT), "{:?}", terminal.raw());
    assert_eq!(terminal.column(), PROMPT.len().to_string());
    terminal.types("1 sure");
    terminal.wait_for("Nothing was answered.\n");
    terminal.types("1 no");
    terminal.wait_for("Refused.\n");
    let asked = asking.wait_with_output().expect("aaep ends");
    assert_eq!((asked.status.code(), out(&asked).as_str()), (Some(1), "reject\n"));
    said(&mut terminal.agent(&["emit", "end", "The photos stay."]));
    terminal.wait_for("Finished. The photos stay.\n");
    terminal.types("quit");
    terminal.wait_for("Exit code 0.\n");
    terminal
}

#[test]
fn a_session_stands_on_the_screen_as_it_was_told_and_nothing_is_drawn_twice() {
    let terminal = session(None, &[]);
    assert_eq!(terminal.screen(&[]), SNAPSHOT, "on the screen:\n{}", terminal.screen(&[]));
    let raw = terminal.raw();
    let is_strange = |it: char| it.is_control() && it != '\n';
    assert!(!raw.contains(is_strange), "only text and ends of lines: {raw:?}");
    // Long lines continue in the next row. Joined, the screen shows exactly what was written, from the first line.
    let trimmed = raw.lines().map(str::trim_end).collect::<Vec<_>>().join("\n") + "\n";
    assert_eq!(terminal.screen(&["-J", "-S", "-"]), trimmed);
}

#[test]
fn a_dumb_terminal_gets_the_same() {
    let terminal = session(Some("dumb"), &[]);
    assert_eq!(terminal.screen(&[]), SNAPSHOT, "on the screen:\n{}", terminal.screen(&[]));
    assert!(!terminal.raw().contains('\u{1b}'));
}

#[test]
fn the_bell_rings_only_on_request_and_is_all_that_differs() {
    let terminal = session(None, &["--bell"]);
    let raw = terminal.raw();
    // Once for the question, and once when the agent has finished.
    assert_eq!(raw.matches('\u{7}').count(), 2, "{raw:?}");
    assert_eq!(terminal.screen(&[]), SNAPSHOT, "on the screen:\n{}", terminal.screen(&[]));
    let is_strange = |it: char| it.is_control() && !matches!(it, '\n' | '\u{7}');
    assert!(!raw.contains(is_strange), "{raw:?}");
}
