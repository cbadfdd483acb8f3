//! braille
