//! A desktop session of its own for each test: a private session bus, the real accessibility bus of AT-SPI, and
//! a client on it that hears and presses what a screen reader would. The tests of `aaep listen` use it too.

use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use zbus::MatchRule;
use zbus::blocking::connection::Builder;
use zbus::blocking::{Connection, MessageIterator};
use zbus::message::Type;
use zbus::zvariant::{OwnedObjectPath, OwnedValue, Value};

use crate::patience::{PATIENCE, wait_until};

/// The variable that says that a test runs in its session.
const INSIDE: &str = "AAEP_TEST_IN_SESSION";

const REGISTRY: &str = "org.a11y.atspi.Registry";
const ACCESSIBLE: &str = "org.a11y.atspi.Accessible";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// Runs a test in a session of its own: this program again, with this test alone. `AccessKit` comes to one
/// session only, as long as a program runs.
pub(crate) fn in_session(test: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("dbus-run-session");
    command.arg("--").arg(std::env::current_exe().expect("this program"));
    command.args([test, "--exact", "--nocapture"]);
    for name in ["HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"] {
        command.env(name, folder.path());
    }
    for name in ["DISPLAY", "WAYLAND_DISPLAY", "AT_SPI_BUS_ADDRESS", "DBUS_SESSION_BUS_ADDRESS"] {
        command.env_remove(name);
    }
    command.env(INSIDE, "1").env("GSETTINGS_BACKEND", "memory");
    let output = command.output().expect("dbus-run-session runs; ./test installs it");
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complained}");
    assert!(said.contains("test result: ok. 1 passed"), "{test} was not run: {said}");
}

/// Something that was announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Announced {
    pub(crate) words: String,
    pub(crate) is_assertive: bool,
}

/// Where something is on the accessibility bus: the program, and the path within it.
pub(crate) type Place = (String, OwnedObjectPath);

/// What a screen reader is to the bus: a program that turns accessibility on and registers for announcements.
pub(crate) struct ScreenReader {
    bus: Connection,
    announced: Receiver<Announced>,
}

/// Turns accessibility on or off for this session, as the settings of a desktop do.
pub(crate) fn turn_on(is_on: bool) {
    let session = Builder::session().expect("a session").build().expect("a session bus");
    for name in ["IsEnabled", "ScreenReaderEnabled"] {
        let value = ("org.a11y.Status", name, Value::from(is_on));
        session
            .call_method(Some("org.a11y.Bus"), "/org/a11y/bus", Some(PROPERTIES), "Set", &value)
            .expect("it is turned on or off");
    }
}

impl ScreenReader {
    /// Turns accessibility on, and listens.
    pub(crate) fn start() -> Self {
        turn_on(true);
        let session = Builder::session().expect("a session").build().expect("a session bus");
        let interface = Some("org.a11y.Bus");
        let answer = session
            .call_method(Some("org.a11y.Bus"), "/org/a11y/bus", interface, "GetAddress", &())
            .expect("an accessibility bus");
        let address: String = answer.body().deserialize().expect("an address");
        let bus = Builder::address(address.as_str()).expect("an address");
        let bus = bus.method_timeout(PATIENCE).build().expect("the accessibility bus");
        let rule = MatchRule::builder()
            .msg_type(Type::Signal)
            .interface("org.a11y.atspi.Event.Object")
            .expect("an interface")
            .member("Announcement")
            .expect("a member")
            .build();
        let signals = MessageIterator::for_match_rule(rule, &bus, Some(1024)).expect("signals");
        let (sender, announced) = mpsc::channel();
        thread::spawn(move || {
            for signal in signals {
                // The bus may be gone.
                let Ok(signal) = signal else { return };
                if sender.send(read(&signal)).is_err() {
                    return;
                }
            }
        });
        let place = "/org/a11y/atspi/registry";
        bus.call_method(
            Some(REGISTRY),
            place,
            Some(REGISTRY),
            "RegisterEvent",
            &"object:announcement",
        )
        .expect("it is registered");
        ScreenReader { bus, announced }
    }

    /// Waits for the next announcement.
    pub(crate) fn next(&self) -> Announced {
        self.announced.recv_timeout(PATIENCE).expect("an announcement")
    }

    /// The next announcement, if one comes within that time.
    pub(crate) fn within(&self, time: Duration) -> Option<Announced> {
        self.announced.recv_timeout(time).ok()
    }

    /// Kills the accessibility bus, as a crash would. The desktop starts another when someone asks for it.
    pub(crate) fn kill_bus(&self) {
        let name = "org.freedesktop.DBus";
        let answer =
            self.bus.call_method(Some(name), "/", Some(name), "GetConnectionUnixProcessID", &name);
        let number: u32 = answer.expect("it runs").body().deserialize().expect("a number");
        let status = Command::new("kill").args(["-9", &number.to_string()]).status();
        assert!(status.expect("kill runs").success());
    }

    /// No longer listens for announcements.
    pub(crate) fn deregister(&self) {
        let place = "/org/a11y/atspi/registry";
        self.bus
            .call_method(
                Some(REGISTRY),
                place,
                Some(REGISTRY),
                "DeregisterEvent",
                &"object:announcement",
            )
            .expect("it is deregistered");
    }

    /// Everything below the program on the bus, with its name.
    fn all(&self) -> Vec<(Place, String)> {
        let root = (REGISTRY.to_owned(), path("/org/a11y/atspi/accessible/root"));
        let mut found = Vec::new();
        let mut waiting = self.children(&root).unwrap_or_default();
        while let Some(place) = waiting.pop() {
            waiting.extend(self.children(&place).unwrap_or_default());
            if let Some(name) = self.property(&place, "Name") {
                found.push((place, name));
            }
        }
        found
    }

    fn children(&self, place: &Place) -> Option<Vec<Place>> {
        let (program, path) = place;
        let answer = self.bus.call_method(
            Some(program.as_str()),
            path,
            Some(ACCESSIBLE),
            "GetChildren",
            &(),
        );
        answer.ok()?.body().deserialize().ok()
    }

    pub(crate) fn property(&self, place: &Place, name: &str) -> Option<String> {
        let (program, path) = place;
        let wanted = (ACCESSIBLE, name);
        let answer =
            self.bus.call_method(Some(program.as_str()), path, Some(PROPERTIES), "Get", &wanted);
        let value: OwnedValue = answer.ok()?.body().deserialize().ok()?;
        value.try_into().ok()
    }

    /// The names of the buttons that are there, each with the question to which it belongs.
    pub(crate) fn buttons(&self) -> Vec<(String, String)> {
        const BUTTON: u32 = 43;
        let role = |(program, path): &Place| {
            let answer = self.bus.call_method(
                Some(program.as_str()),
                path,
                Some(ACCESSIBLE),
                "GetRole",
                &(),
            );
            answer.ok()?.body().deserialize::<u32>().ok()
        };
        let mut buttons: Vec<_> = self
            .all()
            .into_iter()
            .filter(|(place, _)| role(place) == Some(BUTTON))
            .map(|(place, name)| (self.property(&place, "Description").unwrap_or_default(), name))
            .collect();
        buttons.sort();
        buttons
    }

    /// Waits for a button of that name for a question with these words.
    pub(crate) fn button(&self, name: &str, question: &str) -> Place {
        wait_until(&format!("there is a button {name}"), || {
            self.all().into_iter().map(|(place, it)| (it, place)).find_map(|(it, place)| {
                let description = self.property(&place, "Description").unwrap_or_default();
                (it == name && description.contains(question)).then_some(place)
            })
        })
    }

    /// Presses a button. Says whether there was one.
    pub(crate) fn press(&self, (program, path): &Place) -> bool {
        let interface = Some("org.a11y.atspi.Action");
        self.bus.call_method(Some(program.as_str()), path, interface, "DoAction", &0_i32).is_ok()
    }
}

fn path(text: &str) -> OwnedObjectPath {
    text.to_owned().try_into().expect("a path")
}

/// An event of AT-SPI: a kind, two numbers, anything, and what belongs to it.
fn read(signal: &zbus::Message) -> Announced {
    type Body = (String, i32, i32, OwnedValue, std::collections::HashMap<String, OwnedValue>);
    let (_, politeness, _, words, _): Body = signal.body().deserialize().expect("an event");
    let words = String::try_from(words).expect("words");
    Announced { words, is_assertive: politeness == 2 }
}
