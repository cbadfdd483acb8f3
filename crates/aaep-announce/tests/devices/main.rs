//! The devices with the real servers of a Debian machine: speech-dispatcher and BRLTTY, without sound or hardware.

#![cfg(unix)]

mod braille;
mod braille_server;
mod hung;
mod patience;
mod sounds;
mod speech;
mod speech_server;
