//! The program over stores on several real servers at once, which are killed, stopped, emptied, filled and set back under
//! its hands, and its servers over a real database and real brokers.
//!
//! `cargo xtask services test` starts the servers and runs this; the variable `SYNCLINE_SERVICES` names the file with their
//! addresses. Nothing is skipped: without the variable, or without one of the servers, these tests fail.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "tests play the user, who changes files in any way")]

#[expect(dead_code, reason = "written for the other tests of the program; some of it serves here")]
#[path = "it/support.rs"]
mod support;

#[path = "services/stage.rs"]
mod stage;

#[path = "services/damaged.rs"]
mod damaged;
#[path = "services/direct.rs"]
mod direct;
#[path = "services/gone.rs"]
mod gone;
#[path = "services/loaded.rs"]
mod loaded;
#[path = "services/oidc.rs"]
mod oidc;
#[path = "services/package.rs"]
mod package;
#[path = "services/probed.rs"]
mod probed;
#[path = "services/scaled.rs"]
mod scaled;
#[path = "services/served.rs"]
mod served;
#[path = "services/supervised.rs"]
mod supervised;
