//! Manifests as a producer makes them and as a stranger receives them: made, signed, forged, pinned.

#[path = "manifest/building.rs"]
mod building;
#[path = "manifest/forging.rs"]
mod forging;
#[path = "manifest/pinning.rs"]
mod pinning;
#[path = "manifest/support.rs"]
mod support;
#[path = "manifest/verifying.rs"]
mod verifying;
