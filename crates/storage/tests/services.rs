//! Every driver of a store in a network against a real server on loopback.
//!
//! `cargo xtask services start` starts the servers; the variable `SYNCLINE_SERVICES` names the file with their addresses.
//! Without the variable, or without one of the servers, these tests fail; only fake-gcs-server, which takes Go to build, is left
//! out with words where it was not started.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as the tests themselves do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests are told by a variable where the servers are"
)]

#[path = "services/breaking.rs"]
mod breaking;
#[path = "services/conforming.rs"]
mod conforming;
#[path = "services/line.rs"]
mod line;
#[path = "services/place.rs"]
mod place;
#[path = "services/probing.rs"]
mod probing;
#[path = "services/refusals.rs"]
mod refusals;
#[path = "services/waiting.rs"]
mod waiting;
