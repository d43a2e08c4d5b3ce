//! Keeps a folder and a log equal.
//!
//! It knows the folder, the merge base and the log's fold, plans over the three, and carries plans out. It does not know who
//! orders the log, where packs rest, or who looks: log, store, file system, clock, randomness and threads enter as
//! arguments ([`engine::Environment`]), so that the whole of it runs in the seeded world of `testkit`.
//!
//! Reading order: [`plan`] (what is to be done), [`engine`] (doing it), [`scan`] (what differs here), [`prepare`] (files
//! to chunks), [`chunk_reader`] (chunks to files), [`state`] (what is remembered), then [`overlay`], [`file_system`],
//! [`watch`], [`scrub`], [`ignore_rules`], [`workers`] and [`error`].

pub mod chunk_reader;
pub mod engine;
pub mod error;
pub mod file_system;
pub mod ignore_rules;
pub mod overlay;
mod pace;
pub mod plan;
pub mod prepare;
pub mod scan;
pub mod scrub;
pub mod state;
mod text_merge;
pub mod watch;
pub mod workers;

pub use engine::{Engine, EngineOptions, Environment};
pub use error::{DatabaseTrouble, MergeTrouble, SyncError};
pub use prepare::DeltaBudget;
