//! Benchmarks of anything that keeps files, as BenchCloud (Wang 2014, chapters 3 and 4) does them: what is done stands in a file, and what it
//! is done with is a driver.
//!
//! What its program did wrongly is other here, and tested: an operation that fails is counted and has no time, and the run ends; unknown keys
//! are errors; everything that was acknowledged is read again in the end.
//!
//! Read in this order: [`plan`] (what a file says), `ini` (the same in BenchCloud's own files), `generator` (what is in files), [`driver`],
//! [`work`] (the threads), [`live`] (what is seen of them meanwhile), `judge` (what is there in the end), [`wire`] (what goes over it), [`outcome`], [`report`], [`results`] (those of earlier runs).

pub mod driver;
pub mod live;
pub mod outcome;
pub mod plan;
pub mod report;
pub mod results;
pub mod wire;
pub mod work;

mod generator;
mod ini;
mod judge;
mod processes;

#[cfg(test)]
mod tests;
