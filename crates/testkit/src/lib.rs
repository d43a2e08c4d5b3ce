//! A seeded world that runs the real engine, coordinators and server logic, and hunts for what must not be.
//!
//! It knows how disks, networks, stores, servers, clocks and users behave on their worst days. It does not know how
//! anything is synced: whatever it finds is found from outside, by looking at folders and the log.
//!
//! Reading order: [`world`] (the whole), [`options`] (what a seed expands to), [`checks`] (what must be), [`device`],
//! [`trace`] (what users do), [`chronicle`] (what they may expect), [`file_system`], [`store`], [`several`] (stores), [`server`], [`audit`],
//! [`executor`], [`clock`], [`random`], [`record`], [`coverage`], [`watcher`], [`mutants`], [`batch`] (many worlds).
//!
//! Beside the worlds stand [`clouds`], stores that are as slow as known services, to measure over them in virtual time, and
//! [`interrupted`], where a device dies after each single request.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod audit;
pub mod batch;
pub mod checks;
pub mod chronicle;
pub mod clock;
pub mod clouds;
pub mod coverage;
pub mod device;
pub mod executor;
pub mod file_system;
pub mod interrupted;
pub mod mutants;
pub mod options;
pub mod random;
pub mod record;
pub mod server;
pub mod several;
pub mod store;
pub mod trace;
pub mod watcher;
pub mod world;

pub use options::WorldOptions;
pub use world::{Outcome, World, run};
