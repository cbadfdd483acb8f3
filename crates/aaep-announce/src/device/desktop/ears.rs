//! Asks the accessibility bus whether a program would receive an announcement.
//!
//! `AccessKit` reports whether the bus is turned on, but not whether a screen reader is running. Programs that want
//! announcements register on the bus, and leave its list when they end.

use std::time::Duration;

use zbus::blocking::Connection;
use zbus::blocking::connection::Builder;
use zbus::zvariant::OwnedValue;

use crate::device::plain::quoted;
use crate::english::devices;

/// The event for which a program registers to receive announcements. A prefix of it works too.
const ANNOUNCEMENT: &str = "object:announcement";

/// The connection to the accessibility bus.
#[derive(Debug)]
pub(super) struct AccessibilityBus {
    patience: Duration,
    bus: Option<Connection>,
}

impl AccessibilityBus {
    pub(super) fn new(patience: Duration) -> Self {
        AccessibilityBus { patience, bus: None }
    }

    /// Checks that a program listens. The error says why none does, and what to do, in words for people.
    pub(super) fn check_listener(&mut self) -> Result<(), String> {
        let bus = if let Some(bus) = &self.bus {
            bus
        } else {
            let bus = accessibility_bus(self.patience)?;
            self.bus.insert(bus)
        };
        match registered(bus) {
            Ok(events) if events.iter().any(|it| is_announcement(it)) => Ok(()),
            Ok(_) => Err(nobody(self.patience)),
            Err(error) => {
                self.bus = None;
                Err(devices::desktop::no_answer(&reason(&error)))
            }
        }
    }
}

/// Connects to the bus on which programs and screen readers of this desktop meet.
fn accessibility_bus(patience: Duration) -> Result<Connection, String> {
    let session = session(patience)?;
    let address = || -> zbus::Result<String> {
        session
            .call_method(
                Some("org.a11y.Bus"),
                "/org/a11y/bus",
                Some("org.a11y.Bus"),
                "GetAddress",
                &(),
            )?
            .body()
            .deserialize()
    };
    let given = std::env::var("AT_SPI_BUS_ADDRESS").ok().filter(|it| !it.is_empty());
    let address = given
        .map_or_else(address, Ok)
        .map_err(|error| devices::desktop::no_bus(&reason(&error)))?;
    // Without this, neither a screen reader nor AccessKit gets anything.
    if !status(&session, "IsEnabled").unwrap_or(false) {
        return Err(devices::desktop::nothing_turned_on());
    }
    let bus = Builder::address(address.as_str()).and_then(|it| it.method_timeout(patience).build());
    bus.map_err(|error| devices::desktop::not_let_in(&reason(&error)))
}

fn session(patience: Duration) -> Result<Connection, String> {
    let session = Builder::session().and_then(|it| it.method_timeout(patience).build());
    session.map_err(|error| devices::desktop::no_session(&reason(&error)))
}

/// A property of the accessibility bus that the desktop keeps.
fn status(session: &Connection, name: &str) -> zbus::Result<bool> {
    let answer = session.call_method(
        Some("org.a11y.Bus"),
        "/org/a11y/bus",
        Some("org.freedesktop.DBus.Properties"),
        "Get",
        &("org.a11y.Status", name),
    )?;
    let value: OwnedValue = answer.body().deserialize()?;
    Ok(value.try_into()?)
}

/// The events for which programs on the bus are registered.
fn registered(bus: &Connection) -> zbus::Result<Vec<String>> {
    let answer = bus.call_method(
        Some("org.a11y.atspi.Registry"),
        "/org/a11y/atspi/registry",
        Some("org.a11y.atspi.Registry"),
        "GetRegisteredEvents",
        &(),
    )?;
    let events: Vec<(String, String)> = answer.body().deserialize()?;
    Ok(events.into_iter().map(|(_, event)| event).collect())
}

/// Whether a program that is registered for this event gets announcements. Registering for `object:` includes all
/// events that begin with it.
fn is_announcement(event: &str) -> bool {
    let event = event.to_ascii_lowercase();
    let event = event.trim_end_matches(':');
    ANNOUNCEMENT.strip_prefix(event).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        || event.is_empty()
}

/// Why nobody gets announcements, as far as the desktop knows.
fn nobody(patience: Duration) -> String {
    let is_there = session(patience)
        .and_then(|it| status(&it, "ScreenReaderEnabled").map_err(|error| error.to_string()));
    if is_there.unwrap_or(false) {
        devices::desktop::NO_ANNOUNCEMENTS.to_owned()
    } else {
        devices::desktop::nobody_listens()
    }
}

fn reason(error: &zbus::Error) -> String {
    format!("{}.", quoted(error.to_string().trim_end_matches('.')))
}

#[cfg(test)]
mod tests {
    use super::is_announcement;

    #[test]
    fn a_program_that_hears_announcements_is_known_by_what_it_registered_for() {
        for event in
            ["object:announcement", "Object:Announcement", "object:announcement:", "object", ""]
        {
            assert!(is_announcement(event), "{event}");
        }
        for event in
            ["object:state-changed", "object:announcements", "obj", "window:activate", "focus:"]
        {
            assert!(!is_announcement(event), "{event}");
        }
    }
}
