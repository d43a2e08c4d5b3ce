//! The program as its users meet it: a real binary, real folders, a real server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "tests play the user, who changes files in any way")]

#[path = "it/shared_folders.rs"]
mod shared_folders;
#[path = "it/sharing.rs"]
mod sharing;
#[path = "it/support.rs"]
mod support;

// The test servers of the storage room, of which these tests need a part.
#[path = "../../storage/tests/clouds/disk.rs"]
#[expect(dead_code, reason = "the room itself uses the rest")]
mod disk;
#[path = "../../storage/tests/clouds/dropbox.rs"]
mod dropbox;
#[path = "../../storage/tests/clouds/onedrive.rs"]
mod onedrive;
#[path = "../../storage/tests/clouds/server.rs"]
#[expect(dead_code, reason = "the room itself uses the rest")]
mod server;

#[path = "it/account.rs"]
mod account;
#[path = "it/admin.rs"]
mod admin;
#[path = "it/backends.rs"]
mod backends;
#[path = "it/background.rs"]
mod background;
#[path = "it/bad_days.rs"]
mod bad_days;
#[path = "it/cleanup.rs"]
mod cleanup;
#[path = "it/clouds.rs"]
mod clouds;
#[path = "it/conflicts.rs"]
mod conflicts;
#[path = "it/crashes.rs"]
mod crashes;
#[path = "it/damage.rs"]
mod damage;
#[path = "it/demo.rs"]
mod demo;
#[path = "it/emptied.rs"]
mod emptied;
#[path = "it/exchange.rs"]
mod exchange;
#[path = "it/exchanged.rs"]
mod exchanged;
#[path = "it/experiments.rs"]
mod experiments;
#[path = "it/files.rs"]
mod files;
#[path = "it/flipped.rs"]
mod flipped;
#[path = "it/gateway.rs"]
mod gateway;
#[path = "it/half_open.rs"]
mod half_open;
#[path = "it/history.rs"]
mod history;
#[path = "it/history_damage.rs"]
mod history_damage;
#[path = "it/lost.rs"]
mod lost;
#[path = "it/lying.rs"]
mod lying;
#[path = "it/lying_server.rs"]
mod lying_server;
#[path = "it/packaging.rs"]
mod packaging;
#[path = "it/people.rs"]
mod people;
#[path = "it/sealed.rs"]
mod sealed;
#[path = "it/sealed_on_server.rs"]
mod sealed_on_server;
#[path = "it/sealed_sharing.rs"]
mod sealed_sharing;
#[path = "it/second_factor.rs"]
mod second_factor;
#[path = "it/secure.rs"]
mod secure;
#[path = "it/several.rs"]
mod several;
#[path = "it/words.rs"]
mod words;
