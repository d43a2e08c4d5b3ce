//! Puts load on a server as thousands of devices do, measures what they see, and judges whether what they were told is true.
//!
//! It knows the server from outside only: its doors, and what the kernel counts for its process. It does not know how the server
//! works. Read in this order: [`mix`] and [`schedule`] (what is sent, and when), [`run`] (a run), `device` (one of
//! thousands), [`history`] (the judge), [`figures`],
//! [`cases`]. Beside it stand [`web`], the figures of the browser, over a line that [`proxy`] makes long and narrow, and [`clients`], how many
//! browsers a core of a server bears.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod cases;
pub mod clients;
pub mod cluster;
pub mod figures;
pub mod history;
pub mod line;
pub mod machine;
pub mod mix;
pub mod notes;
pub mod population;
pub mod proxy;
pub mod report;
pub mod run;
pub mod schedule;
pub mod server_process;
pub mod traffic;
pub mod web;

mod device;
