//! sounds
