//! Measures the tables and figures of the papers again, on the machine of whoever asks.
//!
//! It knows what `content` does to bytes, and how the papers' own programs did it; it knows no server and no synced folder (what puts
//! load on a server is `load`, which draws with this). Read in this order: [`inventory`] (what there is), [`experiment`] (what is measured here), [`dataset`] (what is measured with, and what is made for that),
//! [`thesis`] (chunking, multichunks and chains of the Syncany thesis), [`trace`] (what happens to folders, made and played), [`bench`] (benchmarks of
//! anything that keeps files), [`benchcloud`] (the case study of its thesis, with [`targets`] that the program lends), [`stacksync`] (what agreeing costs, and how long it takes, by the same), [`metasync`] (how evenly objects lie), [`webr2sync`] (how local edits are), [`probe`] (what programs do, found out by experiment; with [`capture`], what goes over the wire). [`output`], [`page`] and [`plot`] are where results go,
//! [`report`] puts all of them on one page.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bench;
pub mod benchcloud;
pub mod capture;
pub mod dataset;
pub mod error;
pub mod experiment;
pub mod inventory;
pub mod metasync;
pub mod output;
pub mod page;
pub mod plot;
pub mod probe;
pub mod report;
pub mod stacksync;
pub mod targets;
pub mod thesis;
pub mod trace;
pub mod webr2sync;

mod difference;
mod digest;
mod environment;
mod files;
mod memory;
mod notes;
mod random;
mod room;
mod stopwatch;

pub use error::LabError;
