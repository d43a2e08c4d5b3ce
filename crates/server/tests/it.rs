//! A real server on a port of its own, seen from outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "it/provider.rs"]
mod provider;
#[path = "it/scene.rs"]
mod scene;
#[path = "it/support.rs"]
mod support;

#[path = "it/two_servers.rs"]
mod two_servers;

#[path = "it/accounts.rs"]
mod accounts;
#[path = "it/activity.rs"]
mod activity;
#[path = "it/archive.rs"]
mod archive;
#[path = "it/authorisation.rs"]
mod authorisation;
#[path = "it/backup.rs"]
mod backup;
#[path = "it/bases.rs"]
mod bases;
#[path = "it/commits.rs"]
mod commits;
#[path = "it/conflicts.rs"]
mod conflicts;
#[path = "it/conformance.rs"]
mod conformance;
#[path = "it/dav.rs"]
mod dav;
#[path = "it/deleted.rs"]
mod deleted;
#[path = "it/delta.rs"]
mod delta;
#[path = "it/exchange.rs"]
mod exchange;
#[path = "it/files.rs"]
mod files;
#[path = "it/join.rs"]
mod join;
#[path = "it/link_limits.rs"]
mod link_limits;
#[path = "it/links.rs"]
mod links;
#[path = "it/live.rs"]
mod live;
#[path = "it/members.rs"]
mod members;
#[path = "it/oidc.rs"]
mod oidc;
#[path = "it/openapi.rs"]
mod openapi;
#[path = "it/packaging.rs"]
mod packaging;
#[path = "it/packs.rs"]
mod packs;
#[path = "it/page.rs"]
mod page;
#[path = "it/passwords.rs"]
mod passwords;
#[path = "it/restart.rs"]
mod restart;
#[path = "it/sealed.rs"]
mod sealed;
#[path = "it/search.rs"]
mod search;
#[path = "it/second_factor.rs"]
mod second_factor;
#[path = "it/shared.rs"]
mod shared;
#[path = "it/tls.rs"]
mod tls;
#[path = "it/tokens.rs"]
mod tokens;
#[path = "it/uploads.rs"]
mod uploads;
#[path = "it/usage.rs"]
mod usage;
#[path = "it/watched.rs"]
mod watched;
