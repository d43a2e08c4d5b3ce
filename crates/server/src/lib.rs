//! The Syncline server: doors, services, metadata.
//!
//! It knows accounts, devices and workspaces, puts commits in order and keeps packs. It reads what is in
//! commits and packs only of plain workspaces, for people who come without a device ([`files`]); how folders are kept equal
//! is the engine's business on the devices.
//!
//! Reading order: [`app`] (the whole on one page), [`services::sync_service`] (what becomes of a commit),
//! [`services`], [`metadata`], [`files`], [`doors`], [`auth`], [`oidc`], [`audit`], [`metrics`], [`limits`], [`error`]; [`mod@serve`] and [`admin`] are what programs call,
//! [`listener`], [`data_folder`], [`database`] and [`broker`] are the ground they stand on, [`cluster`] is how several stand together, and
//! [`supervisor`] sees to it that they are enough.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod app;

pub mod doors;
pub mod files;
pub mod metadata;
pub mod services;

pub mod audit;
pub mod auth;
mod blocking;
pub mod error;
pub mod limits;
pub mod metrics;
pub mod oidc;

pub mod admin;
pub mod broker;
pub mod cluster;
pub mod data_folder;
pub mod database;
pub mod listener;
pub mod loopback;
pub mod serve;
pub mod supervisor;
mod tls;

#[cfg(test)]
mod testing;

pub use admin::Admin;
pub use auth::Caller;
pub use broker::Broker;
pub use cluster::Role;
pub use database::Database;
pub use doors::dav::alone::{LoneDoor, serve_tree};
pub use error::{Result, ServerError};
pub use metadata::sqlite::Sqlite;
pub use serve::{ServeOptions, serve};
pub use services::sync_service::{Answer, CommitRequest, Committed, SyncService};
