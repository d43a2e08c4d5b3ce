//! The server over a real PostgreSQL, which is killed, stopped and started again under its hands.
//!
//! `cargo xtask services test` starts it and runs this; the variable `SYNCLINE_SERVICES` names the file with its address.
//! Nothing is skipped: without the variable, or without the server, these tests fail.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "services/bad_days.rs"]
mod bad_days;
#[path = "services/place.rs"]
mod place;
#[path = "services/stories.rs"]
mod stories;
#[path = "it/two_servers.rs"]
mod two_servers;
