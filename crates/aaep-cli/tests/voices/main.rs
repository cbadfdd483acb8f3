//! `aaep listen` with the real servers of a Debian machine: speech-dispatcher, whose only voice writes down what
//! it is given, BRLTTY, whose display is virtual, and AT-SPI in a session without a screen.

#![cfg(unix)]

#[expect(dead_code, reason = "the tests of the devices use the rest")]
#[path = "../../../aaep-announce/tests/devices/braille_server.rs"]
mod braille_server;
mod demo;
mod desk;
#[cfg(all(feature = "desktop", target_os = "linux"))]
mod desktop;
#[cfg(all(feature = "desktop", target_os = "linux"))]
#[expect(dead_code, reason = "the tests of the devices use the rest")]
#[path = "../../../aaep-announce/tests/devices/desktop_session.rs"]
mod desktop_session;
mod doctor;
mod hostile;
mod pace;
#[expect(dead_code, reason = "the tests of the devices use the rest")]
#[path = "../../../aaep-announce/tests/devices/patience.rs"]
mod patience;
mod present;
mod questions;
mod session;
#[expect(dead_code, reason = "the tests of the devices use the rest")]
#[path = "../../../aaep-announce/tests/devices/speech_server.rs"]
mod speech_server;
mod stalled;
#[expect(dead_code, reason = "the tests of the agents use the rest")]
#[path = "../agent/support.rs"]
mod support;
