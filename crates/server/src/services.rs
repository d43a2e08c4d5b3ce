//! What the server decides: who may do what, what becomes of a commit, what counts against a quota.
//!
//! Services are plain functions and types over [`crate::metadata::Metadata`], without threads, sockets or clocks, so
//! that a simulation runs them as they are. What makes them a program is [`writer`] (one thread that writes, in
//! groups), [`events`] (which devices are told) and [`news`] (which other servers are).

pub mod accounts;
pub mod authorisation;
pub mod batch;
pub mod commits;
pub mod condemned;
pub mod events;
pub mod files;
pub mod identities;
pub mod invitations;
pub mod keys;
pub mod links;
pub mod locks;
pub mod members;
pub mod news;
pub mod objects;
pub mod passwords;
pub mod presence;
pub mod readers;
pub mod second_factor;
pub mod subjects;
pub mod sync_service;
pub mod tokens;
pub mod workspaces;
pub mod writer;
