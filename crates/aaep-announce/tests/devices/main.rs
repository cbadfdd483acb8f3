//! The devices with the real servers of a Debian machine: speech-dispatcher, BRLTTY and AT-SPI, without sound,
//! hardware or a screen.

#![cfg(unix)]

mod braille;
mod braille_server;
#[cfg(all(feature = "desktop", target_os = "linux"))]
mod desktop;
#[cfg(all(feature = "desktop", target_os = "linux"))]
mod desktop_session;
mod hung;
mod patience;
mod sounds;
mod speech;
mod speech_server;
