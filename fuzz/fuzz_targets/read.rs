//! Any bytes as a message: never a panic, and what is understood survives a round trip.
#![no_main]

use aaep::{Mode, Severity};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for mode in [Mode::Strict, Mode::Tolerant] {
        let reading = aaep::read(bytes, mode);
        let errors = reading.violations.iter().filter(|it| it.severity == Severity::Error).count();
        assert!(errors == 0 || reading.message.is_none());
        assert!(reading.violations.len() <= aaep::MAX_VIOLATIONS + 1);
        let Some(message) = reading.message else { continue };
        let text = message.to_json();
        let again = aaep::read(text.as_bytes(), mode);
        assert_eq!(again.message.as_ref(), Some(&message), "{text}");
    }
    // Whoever is strict is no more lenient than whoever is tolerant.
    if aaep::read(bytes, Mode::Strict).is_valid() {
        assert!(aaep::read(bytes, Mode::Tolerant).is_valid());
    }
});
