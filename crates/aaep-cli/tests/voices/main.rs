//! `aaep listen` with the real servers of a Debian machine: speech-dispatcher, whose only voice writes down what
//! it is given, and BRLTTY, whose display is virtual.

#![cfg(unix)]

#[expect(dead_code, reason = "the tests of the devices use the rest")]
#[path = "../../../aaep-announce/tests/devices/braille_server.rs"]
mod braille_server;
mod desk;
mod doctor;
mod hostile;
mod pace;
#[expect(dead_code, reason = "the tests of the devices use the rest")]
#[path = "../../../aaep-announce/tests/devices/patience.rs"]
mod patience;
mod questions;
mod session;
#[expect(dead_code, reason = "the tests of the devices use the rest")]
#[path = "../../../aaep-announce/tests/devices/speech_server.rs"]
mod speech_server;
mod stalled;
#[expect(dead_code, reason = "the tests of the agents use the rest")]
#[path = "../agent/support.rs"]
mod support;
