//! Tests of the room from outside: every driver against the suite, and bad days.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as the tests themselves do")]
#![expect(
    clippy::disallowed_methods,
    reason = "tests damage files behind the back of the store, and talk to their own child processes"
)]

#[path = "it/cached.rs"]
mod cached;
#[path = "it/conforming.rs"]
mod conforming;
#[path = "it/content.rs"]
mod content;
#[path = "it/crashes.rs"]
mod crashes;
#[path = "it/doors.rs"]
mod doors;
#[path = "it/files.rs"]
mod files;
#[path = "it/flushes.rs"]
mod flushes;
#[path = "it/full_disk.rs"]
mod full_disk;
#[path = "it/layers.rs"]
mod layers;
#[path = "it/model.rs"]
mod model_check;
#[path = "it/paces.rs"]
mod paces;
#[path = "it/pool/all.rs"]
mod pool;
#[path = "it/probes.rs"]
mod probes;
#[path = "it/support.rs"]
mod support;
#[path = "it/waiting.rs"]
mod waiting;
