//! The server over a real PostgreSQL and real brokers, which are killed, stopped and started again under its hands.
//!
//! `cargo xtask services test` starts it and runs this; the variable `SYNCLINE_SERVICES` names the file with their addresses.
//! Nothing is skipped: without the variable, or without one of the servers, these tests fail.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "written for the other tests of the room; some of it serves here")]
#[path = "it/support.rs"]
mod support;

#[path = "services/bad_days.rs"]
mod bad_days;
#[path = "services/cluster.rs"]
mod cluster;
#[path = "services/deltas.rs"]
mod deltas;
#[path = "services/disorder.rs"]
mod disorder;
#[path = "services/place.rs"]
mod place;
#[path = "services/stories.rs"]
mod stories;
#[path = "it/two_servers.rs"]
mod two_servers;
