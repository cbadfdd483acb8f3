//! `aaep replay` at a real hub: the past is told again, after restarts and kills, to people who may hear it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Hub, err, out, post};

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_mins(1);

/// Every reply has an id of its own.
static OUTPUTS: AtomicU64 = AtomicU64::new(1);

/// A person at a machine with a hub.
struct Desk {
    hub: Option<Hub>,
    folder: TempDir,
}

impl Desk {
    fn new() -> Self {
        Desk::with(&[])
    }

    fn with(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let hub = Hub::serve_with(folder.path(), "127.0.0.1:0", arguments);
        Desk { hub: Some(hub), folder }
    }

    fn hub(&self) -> &Hub {
        self.hub.as_ref().expect("it runs")
    }

    /// Kills the hub and starts it again at the same address.
    fn restart(&mut self) {
        let origin = self.hub().origin.clone();
        self.hub = None;
        let address = origin.strip_prefix("http://").expect("an address");
        self.hub = Some(Hub::serve(self.folder.path(), address));
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.hub().aaep(arguments);
        at_home(&mut command, self.folder.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("aaep runs")
    }

    /// Runs `aaep replay`. Returns what it says.
    fn hears(&self, arguments: &[&str]) -> String {
        let output = self.run(&[&["replay"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", err(&output));
        out(&output)
    }

    /// Runs `aaep replay`, which fails. Returns why.
    fn fails(&self, arguments: &[&str]) -> String {
        let output = self.run(&[&["replay"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", out(&output));
        assert_eq!(out(&output), "", "nothing is told");
        err(&output)
    }

    /// The same as JSON.
    fn objects(&self, arguments: &[&str]) -> Vec<Value> {
        let text = self.hears(&[arguments, &["--json"]].concat());
        text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    fn publish(&self, event: &Value) {
        let (status, body) = post(&self.hub().origin, "/aaep/v1/publish", event);
        assert_eq!(status, 200, "{body}");
    }

    fn emit(&self, agent: &str, session: &str, kind: &str, fields: &Value) {
        let mut event = json!({
            "type": format!("aaep:agent.{kind}"), "session_id": session,
            "producer": { "agent_id": agent },
        });
        for (key, value) in fields.as_object().expect("fields") {
            event[key] = value.clone();
        }
        self.publish(&event);
    }

    fn begins(&self, agent: &str, session: &str, summary: &str) {
        self.emit(agent, session, "session.started", &json!({ "summary_normal": summary }));
    }

    fn says(&self, agent: &str, session: &str, text: &str) {
        let output_id = format!("out_{}", OUTPUTS.fetch_add(1, Ordering::Relaxed));
        let fields =
            json!({ "output_id": output_id, "chunk": text, "position": 0, "complete": true });
        self.emit(agent, session, "output.streaming", &fields);
    }

    fn tool(&self, agent: &str, session: &str, summary: &str) {
        let fields = json!({ "tool": "look", "summary_normal": summary });
        self.emit(agent, session, "tool.invoked", &fields);
        let fields = json!({ "tool": "look", "status": "success" });
        self.emit(agent, session, "tool.completed", &fields);
    }

    fn ends(&self, agent: &str, session: &str, summary: &str) {
        self.emit(agent, session, "session.completed", &json!({ "summary_normal": summary }));
    }

    fn ask(&self, agent: &str, session: &str, question: &str) -> Child {
        let arguments = ["ask", question, "--irreversible", "--risk", "high"];
        let whose = ["--agent", agent, "--session", session];
        let mut command = self.command(&[&arguments[..], &whose].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("aaep runs")
    }

    /// Two turns: the first counts photos, and in the second deleting them is not accepted.
    fn two_turns(&self) {
        let person = self.hub().person();
        let (agent, session) = ("photos", "sess_photos");
        self.begins(agent, session, "Tidying the photos.");
        self.tool(agent, session, "Listing the photos.");
        self.says(agent, session, "There are **240** photos.\n\n```sh\nrm -r photos\n```\n");
        self.tool(agent, session, "Looking at them.");
        let asking = self.ask(agent, session, "Delete 240 photos?");
        let question = person.hears("awaiting.confirmation");
        assert!(person.decides(&question, "reject"));
        assert_eq!(asking.wait_with_output().expect("it ends").status.code(), Some(1));
        self.says(agent, session, "I left all photos where they are.");
        self.ends(agent, session, "Nothing was deleted.");
    }

    fn left_file(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("aaep/left.json")).unwrap_or_default()
    }
}

fn at_home(command: &mut Command, folder: &Path) {
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
        command.env(name, folder);
    }
    command.env("TZ", "UTC");
}

/// Words in this order, each after the one before.
fn assert_in_order(text: &str, all: &[&str]) {
    let mut rest = text;
    for words in all {
        let Some(at) = rest.find(words) else { panic!("{words:?} is not next in {text}") };
        rest = &rest[at + words.len()..];
    }
}

/// `aaep listen`, which is killed at the end.
struct Ear {
    process: Child,
    typing: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Ear {
    fn new(desk: &Desk) -> Self {
        let mut command = desk.command(&["listen", "--profile", "debug"]);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("aaep runs");
        let typing = process.stdin.take().expect("its input");
        let lines = BufReader::new(process.stdout.take().expect("its output"));
        let mut ear = Ear { process, typing, lines };
        ear.hears("Listening.");
        ear
    }

    /// Waits for a line with these words.
    fn hears(&mut self, words: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).expect("a line") > 0, "{words:?} not heard");
            if line.contains(words) {
                return line;
            }
        }
    }

    fn types(&mut self, line: &str) {
        writeln!(self.typing, "{line}").expect("typed");
        self.typing.flush().expect("typed");
    }

    fn quit(mut self) {
        self.types("quit");
        assert_eq!(self.process.wait().expect("it ends").code(), Some(0));
    }

    /// Kills it, so that it cannot say goodbye.
    fn killed(mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("dead");
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until the file says that the person was told more than it said before.
fn wait_for_place(desk: &Desk, before: &str) -> String {
    let until = Instant::now() + PATIENCE;
    loop {
        let now = desk.left_file();
        if now != before {
            return now;
        }
        assert!(Instant::now() < until, "it was never written: {now}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_session_is_told_again_whole_after_the_hub_was_killed() {
    let mut desk = Desk::new();
    desk.two_turns();
    let before = desk.hears(&["session", "photos"]);
    assert_in_order(
        &before,
        &[
            "notice: Session of photos, began at ",
            ", ended at ",
            "doing: At ",
            ", photos: Started. Tidying the photos.\n",
            "doing: Listing the photos.\n",
            "agent: There are 240 photos. shell code: rm -r photos.\n",
            "doing: Looking at them.\n",
            "Question: At ",
            ", photos asked: Delete 240 photos?",
            "High risk.",
            "settled: You refused it.\n",
            "agent: I left all photos where they are.\n",
            "done: Finished. Nothing was deleted.\n",
        ],
    );
    assert!(!before.contains("Answer 1") && !before.contains("Yes or no"), "{before}");
    desk.restart();
    assert_eq!(desk.hears(&["session", "photos"]), before);
    for which in ["1", "sess_photos", "PHOTOS"] {
        assert_eq!(desk.hears(&["session", which]), before, "{which}");
    }
}

#[test]
fn one_turn_or_the_list_of_them_can_be_heard() {
    let desk = Desk::new();
    desk.two_turns();
    let first = desk.hears(&["session", "1", "--turn", "1"]);
    assert!(first.contains("Listing the photos."), "{first}");
    assert!(!first.contains("Looking at them.") && !first.contains("asked"), "{first}");
    let second = desk.hears(&["session", "1", "--turn", "2"]);
    assert_in_order(&second, &["Looking at them.", "You refused it.", "I left all photos"]);
    assert!(!second.contains("Listing the photos."), "{second}");
    let turns = desk.hears(&["session", "1", "--turns"]);
    assert_in_order(&turns, &["Turn 1, at ", "There are 240 photos.", "Turn 2, at "]);
    assert!(!turns.contains("Turn 3"), "{turns}");
    let why = desk.fails(&["session", "1", "--turn", "3"]);
    assert!(why.contains("no turn 3") && why.contains("--turns"), "{why}");
}

#[test]
fn the_last_thing_and_the_last_reply_are_told_with_whose_they_are() {
    let desk = Desk::new();
    assert_eq!(desk.hears(&["last"]), "notice: There is nothing to hear here yet.\n");
    desk.two_turns();
    desk.begins("mail", "sess_mail", "Reading the mail.");
    let last = desk.hears(&["last"]);
    assert!(
        last.starts_with("doing: At ") && last.ends_with(", mail: Started. Reading the mail.\n")
    );
    assert_eq!(desk.hears(&["repeat"]), last);
    let of_photos = desk.hears(&["last", "photos"]);
    assert!(of_photos.ends_with(", photos: Finished. Nothing was deleted.\n"), "{of_photos}");
    let reply = desk.hears(&["reply"]);
    assert!(reply.ends_with(", photos: I left all photos where they are.\n"), "{reply}");
    assert_eq!(desk.hears(&["reply", "--exact"]), "I left all photos where they are.\n");
    desk.says("mail", "sess_mail", "One letter:\n\n```\nDear *Ada*\n```\n");
    assert_eq!(desk.hears(&["reply", "--exact"]), "One letter:\n\n```\nDear *Ada*\n```\n");
    let objects = desk.objects(&["reply", "--exact"]);
    assert_eq!(objects[0]["text"], "One letter:\n\n```\nDear *Ada*\n```\n");
    assert_eq!(desk.hears(&["reply", "mail"]).matches("Dear").count(), 1, "one line is read");
}

#[test]
fn only_decisions_says_what_was_asked_and_who_decided() {
    let mut desk = Desk::new();
    assert_eq!(desk.hears(&["decisions"]), "notice: Nothing was asked.\n");
    desk.two_turns();
    // Nobody listens now, so this one is settled at once.
    desk.begins("mail", "sess_mail", "Reading the mail.");
    let asking = desk.ask("mail", "sess_mail", "Send all mail?");
    assert_eq!(asking.wait_with_output().expect("it ends").status.code(), Some(1));
    desk.restart();
    let told = desk.hears(&["decisions"]);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 2, "{told}");
    assert_in_order(
        lines[0],
        &["Question: At ", "photos asked: Delete 240 photos?", "You refused it."],
    );
    let nobody = "Nobody was there to answer, so it was refused.";
    assert_in_order(lines[1], &["mail asked: Send all mail?", nobody]);
    let objects = desk.objects(&["decisions"]);
    assert_eq!(
        (&objects[0]["outcome"], &objects[0]["decided_by"]),
        (&json!("reject"), &json!("reply"))
    );
    assert_eq!((&objects[0]["by_you"], &objects[0]["automatic"]), (&json!(true), &json!(false)));
    assert_eq!(objects[1]["decided_by"], "no_listener");
    assert_eq!(objects[1].get("by_you"), None);
    assert_eq!(desk.hears(&["decisions", "mail"]).lines().count(), 1);
}

#[test]
fn what_a_rule_decided_is_not_called_a_decision_of_a_person() {
    let desk = Desk::new();
    let rules = "[[rules]]\nname = \"no photos\"\nagent = \"photos\"\nanswer = \"reject\"\n";
    std::fs::write(desk.folder.path().join("aaep/aaep.toml"), rules).expect("settings");
    let ear = Ear::new(&desk);
    desk.begins("photos", "sess_photos", "Tidying the photos.");
    let asking = desk.ask("photos", "sess_photos", "Delete 240 photos?");
    assert_eq!(asking.wait_with_output().expect("it ends").status.code(), Some(1));
    ear.quit();
    let told = desk.hears(&["decisions"]);
    assert!(told.ends_with("A rule refused it, not a person.\n"), "{told}");
    let objects = desk.objects(&["decisions"]);
    assert_eq!((&objects[0]["by_you"], &objects[0]["automatic"]), (&json!(true), &json!(true)));
}

#[test]
fn a_question_that_is_open_is_said_to_be_open_and_nothing_here_answers_it() {
    let desk = Desk::new();
    let person = desk.hub().person();
    desk.begins("photos", "sess_photos", "Tidying the photos.");
    let mut asking = desk.ask("photos", "sess_photos", "Delete 240 photos?");
    let question = person.hears("awaiting.confirmation");
    for arguments in [&["session", "photos"][..], &["decisions"], &["last"]] {
        let mut command = desk.command(&[&["replay"], arguments].concat());
        let mut replay =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("aaep runs");
        // Typed text has no effect, and the program may end before it is typed.
        let _ = replay.stdin.take().expect("its input").write_all(b"yes\n1 yes\n2\n");
        let told = out(&replay.wait_with_output().expect("it ends"));
        assert_in_order(
            &told,
            &["Delete 240 photos?", "It is still open. To answer it: aaep attention"],
        );
    }
    assert!(asking.try_wait().expect("its state").is_none(), "it waits as before");
    assert!(person.decides(&question, "reject"));
    assert_eq!(asking.wait().expect("it ends").code(), Some(1));
}

#[test]
fn sessions_are_listed_the_newest_first_by_number() {
    let desk = Desk::new();
    assert_eq!(desk.hears(&["list"]), "notice: There is nothing to hear here yet.\n");
    desk.two_turns();
    desk.begins("mail", "sess_mail", "Reading the mail.");
    let listed = desk.hears(&["list"]);
    // What each is about tells two sessions of one agent apart.
    let (mail, photos) = ("1 turn. Reading the mail.\n", "2 turns. Tidying the photos.\n");
    assert_in_order(&listed, &["1: Session of mail", mail, "2: Session of photos", photos]);
    let objects = desk.objects(&["list"]);
    assert_eq!(
        (&objects[0]["number"], &objects[0]["session_id"]),
        (&json!(1), &json!("sess_mail"))
    );
    assert!(desk.hears(&["session", "2"]).contains("Tidying the photos."));
    let why = desk.fails(&["session", "nobody\u{1b}[2J"]);
    assert!(why.contains("aaep replay list") && !why.contains('\u{1b}'), "{why}");
    let deleted = desk.run(&["sessions", "delete", "sess_photos", "--yes"]);
    assert_eq!(deleted.status.code(), Some(0), "{}", err(&deleted));
    assert!(!desk.hears(&["list"]).contains("photos"), "what is deleted never comes back");
    desk.fails(&["session", "sess_photos"]);
    assert_eq!(desk.hears(&["decisions"]), "notice: Nothing was asked.\n");
}

#[test]
fn since_i_left_is_what_came_after_the_last_thing_told() {
    let mut desk = Desk::new();
    let why = desk.fails(&[]);
    assert!(why.contains("it is not known when you left") && why.contains("--since"), "{why}");
    let mut ear = Ear::new(&desk);
    assert!(desk.fails(&[]).contains("you have not left"));
    desk.begins("photos", "sess_photos", "Tidying the photos.");
    ear.hears("Tidying the photos.");
    ear.quit();
    let nothing = desk.hears(&[]);
    assert_in_order(&nothing, &["notice: Nothing happened since you left at "]);
    desk.tool("photos", "sess_photos", "Listing the photos.");
    desk.restart();
    desk.begins("mail", "sess_mail", "Reading the mail.");
    let told = desk.hears(&[]);
    assert_in_order(&told, &["Since you left at ", "Session of photos", "Listing the photos."]);
    assert_in_order(&told, &["Session of mail", "Started. Reading the mail."]);
    assert!(!told.contains("Tidying the photos."), "it was told before: {told}");

    // A person who listens again still hears what they missed, there and in another terminal.
    let mut ear = Ear::new(&desk);
    desk.tool("mail", "sess_mail", "Opening a letter.");
    ear.hears("Opening a letter.");
    ear.types("left");
    ear.hears("Listing the photos.");
    assert!(desk.hears(&[]).contains("Listing the photos."));
    ear.types("away");
    ear.hears("Remembered.");
    let until = Instant::now() + PATIENCE;
    while desk.hears(&[]).contains("Listing the photos.") {
        assert!(Instant::now() < until, "it was not remembered");
    }
    desk.tool("mail", "sess_mail", "Closing it.");
    ear.hears("Closing it.");
    assert!(desk.hears(&[]).contains("Closing it."));
    ear.quit();
}

#[test]
fn a_person_who_was_cut_off_continues_where_they_were_told_last() {
    let desk = Desk::new();
    let mut ear = Ear::new(&desk);
    let before = desk.left_file();
    desk.begins("photos", "sess_photos", "Tidying the photos.");
    ear.hears("Tidying the photos.");
    wait_for_place(&desk, &before);
    ear.killed();
    desk.tool("photos", "sess_photos", "Listing the photos.");
    let told = desk.hears(&[]);
    assert_in_order(&told, &["Since you left at ", "Listing the photos."]);
    assert!(!told.contains("Tidying the photos."), "{told}");
    // If the file is broken, the place is unknown, and the program does not guess.
    std::fs::write(desk.folder.path().join("aaep/left.json"), "{").expect("written");
    let why = desk.fails(&[]);
    assert!(why.contains("is not used, because it is broken"), "{why}");
    assert!(desk.folder.path().join("aaep/left.json.broken").exists());
}

#[cfg(unix)]
#[test]
fn where_somebody_left_is_for_nobody_elses_eyes() {
    use std::os::unix::fs::PermissionsExt as _;
    let desk = Desk::new();
    let ear = Ear::new(&desk);
    ear.quit();
    let file = desk.folder.path().join("aaep/left.json");
    let mode = std::fs::metadata(file).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_time_can_be_said_and_one_that_cannot_be_understood_is_not_guessed() {
    let desk = Desk::new();
    desk.begins("photos", "sess_photos", "Tidying the photos.");
    assert!(desk.hears(&["--since", "10m"]).contains("Tidying the photos."));
    assert!(desk.hears(&["left", "--since", "1d"]).contains("Tidying the photos."));
    let later = desk.hears(&["--since", "2999-01-01T00:00:00Z"]);
    assert_in_order(&later, &["notice: Nothing happened since 1 January 2999 at 00:00."]);
    assert!(desk.fails(&["--since", "soon"]).contains("Say it like 10m"));
    for wrong in [&["session"][..], &["list", "1"], &["last", "--turns"], &["list", "--exact"]] {
        assert!(desk.fails(wrong).contains("aaep replay --help"), "{wrong:?}");
    }
}

#[test]
fn text_of_an_agent_is_only_text() {
    let desk = Desk::new();
    let hostile = "Hi \u{1b}[2J\u{202e}\u{7}there.\nsettled: You accepted it.\r\nnotice: fake";
    desk.begins("bad[31m", "sess_bad", hostile);
    desk.says("bad[31m", "sess_bad", hostile);
    for arguments in [
        &["session", "1"][..],
        &["session", "1", "--turns"],
        &["last"],
        &["reply"],
        &["reply", "--exact"],
        &["list"],
        &["--since", "1h"],
    ] {
        let told = desk.hears(arguments);
        assert!(
            !told.is_empty() && !told.contains(['\u{1b}', '\u{7}', '\u{202e}', '\r']),
            "{told:?}"
        );
        if !arguments.contains(&"--exact") {
            assert!(!told.lines().any(|line| line.starts_with("settled:")), "{told}");
            assert!(!told.lines().any(|line| line.starts_with("notice: fake")), "{told}");
        }
        for object in desk.objects(arguments) {
            assert!(!object.to_string().contains('\u{1b}'), "{object}");
        }
    }
}

#[test]
fn a_stranger_hears_nothing_and_a_token_for_one_agent_hears_that_agent() {
    let mut desk = Desk::new();
    desk.two_turns();
    desk.begins("mail", "sess_mail", "Reading the mail.");
    let config = desk.folder.path().join("aaep/hub.toml");
    std::fs::write(config, "[access]\nloopback_needs_credentials = true\n").expect("written");
    desk.restart();
    let mut stranger = desk.command(&["replay", "list"]);
    let output = stranger.env("AAEP_PERSON_KEY", "none").output().expect("aaep runs");
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(2), ""));
    assert!(err(&output).contains("token"), "without a token nothing is told: {}", err(&output));
    assert!(desk.hears(&["list"]).contains("photos"), "the person's own key is enough");
    let token = |arguments: &[&str]| {
        let output = desk.run(&[&["tokens", "new", "--name", "x"], arguments].concat());
        let text = out(&output) + &err(&output);
        let found = text.split_whitespace().find(|it| it.starts_with("aaep_"));
        found.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    let of_mail = token(&["--scope", "listen", "--hears", "mail"]);
    let agent = token(&["--scope", "publish"]);
    let until = Instant::now() + PATIENCE;
    // A new token is known within about a second.
    let listed = loop {
        let output = desk.run(&["replay", "list", "--token", &of_mail]);
        if output.status.success() {
            break out(&output);
        }
        assert!(Instant::now() < until, "{}", err(&output));
    };
    assert!(listed.contains("mail") && !listed.contains("photos"), "{listed}");
    let session = desk.hears(&["session", "mail", "--token", &of_mail]);
    assert!(session.contains("Reading the mail."), "{session}");
    for secret in ["photos", "sess_photos", "2"] {
        desk.fails(&["session", secret, "--token", &of_mail]);
    }
    let decisions = desk.hears(&["decisions", "--token", &of_mail]);
    assert_eq!(decisions, "notice: Nothing was asked.\n");
    desk.fails(&["last", "--token", &agent]);
    desk.fails(&["last", "--token", "aaep_nobody"]);
}

#[test]
fn a_device_that_is_not_there_keeps_nothing_from_the_person() {
    let desk = Desk::new();
    desk.begins("photos", "sess_photos", "Tidying the photos.");
    let speak = |more: &[&str]| {
        let mut command = desk.command(&[&["replay", "last", "--speech"], more].concat());
        command.env("SPEECHD_ADDRESS", "unix_socket:/nonexistent/speechd.sock");
        command.output().expect("aaep runs")
    };
    let output = speak(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(out(&output).contains("Tidying the photos."));
    let output = speak(&["--no-lines"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("aaep doctor"), "{}", err(&output));
}

#[test]
fn of_a_very_long_session_the_end_is_told_and_how_much_was_left_out() {
    let desk = Desk::new();
    desk.begins("photos", "sess_photos", "Tidying the photos.");
    let sentence = |at: usize| format!("Sentence {at} says that all is as it was before. ");
    for from in (0..16_000).step_by(250) {
        let text: String = (from..from + 250).map(sentence).collect();
        desk.says("photos", "sess_photos", &text);
    }
    let told = desk.hears(&["session", "photos"]);
    assert_in_order(
        &told,
        &["Session of photos", "Left out before this: ", "Sentence 15,999 says"],
    );
    assert_eq!(told.lines().count(), 1002, "the session, what was left out, and the last thousand");
    assert!(!told.contains("Sentence 100 says") && !told.contains("Tidying"));
    let reply = desk.hears(&["reply"]);
    assert_in_order(&reply, &["Sentence 15,750 says", "Sentence 15,999 says"]);
    assert_eq!(reply.matches("Sentence ").count(), 250, "a reply is told whole");
}
