//! How long a call takes by itself, and how many go on at once before more of them do not do more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::room::{Room, Tally, at_once, rest, timed};
use super::{CallError, SMALL};
use crate::error::LabError;
use crate::stopwatch::Stopwatch;

/// How often a large object goes up and down.
const LARGE_TIMES: usize = 3;

/// How many objects a list may have.
const LIST_MAX: usize = 1000;

/// What calls take, one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calls {
    /// Of an object of 1 KiB that is new.
    pub put: Tally,
    /// Of the same; one that is not what was put has failed.
    pub get: Tally,
    /// Of all of them.
    pub list: Tally,
    /// Of each of them.
    pub delete: Tally,
    /// Of a large object.
    pub up: Tally,
    /// Of the same.
    pub down: Tally,
    /// Of an empty object, put and read; it fails where something else comes back.
    pub empty: Tally,
    /// Of the largest object, put and read.
    pub largest: Tally,
}

/// What came of so many calls at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Level {
    /// How many.
    pub calls: usize,
    /// Puts of 1 KiB.
    pub tally: Tally,
    /// From the first to the end of the last.
    pub took: Duration,
}

impl Level {
    /// Returns how many objects were put in a second.
    pub fn rate(&self) -> f64 {
        self.tally.times.len() as f64 / self.took.as_secs_f64().max(1e-9)
    }
}

pub(super) fn measure(room: &Room<'_>) -> Calls {
    let sizes = room.subject.sizes;
    let mut calls = Calls::default();
    let mut patience = room.subject.patience;
    let name = |number| format!("call/{number}");
    let numbers = || (0..sizes.calls).take_while(|_| room.goes_on());
    for number in numbers() {
        let bytes = room.bytes(&name(number), SMALL);
        timed(&mut calls.put, || room.put(&name(number), &bytes));
    }
    for number in numbers() {
        get_same(room, &mut calls.get, &name(number), SMALL, &mut patience);
    }
    for _ in numbers() {
        timed(&mut calls.list, || room.list("call/", LIST_MAX));
    }
    for number in numbers() {
        timed(&mut calls.delete, || room.delete(&name(number)));
    }
    for number in (0..LARGE_TIMES).take_while(|_| room.goes_on()) {
        let name = format!("large-{number}");
        let bytes = room.bytes(&name, sizes.large);
        if timed(&mut calls.up, || room.put(&name, &bytes)).is_some() {
            get_same(room, &mut calls.down, &name, sizes.large, &mut patience);
        }
    }
    for (name, size, tally) in
        [("empty", 0, &mut calls.empty), ("largest", sizes.largest, &mut calls.largest)]
    {
        let bytes = room.bytes(name, size);
        if room.goes_on() && timed(tally, || room.put(name, &bytes)).is_some() {
            get_same(room, tally, name, size, &mut patience);
        }
    }
    calls
}

/// Reads an object, which fails where it is not what was put. How soon it is there is another question: it is waited for while there is patience.
fn get_same(room: &Room<'_>, tally: &mut Tally, name: &str, size: usize, patience: &mut Duration) {
    let watch = Stopwatch::start();
    let (read, took) = loop {
        let call = Stopwatch::start();
        let read = room.get(name);
        let took = call.wall();
        if !matches!(read, Ok(None)) || watch.wall() >= *patience || !room.goes_on() {
            break (read, took);
        }
        rest(watch.wall());
    };
    *patience = patience.saturating_sub(watch.wall().saturating_sub(took));
    let same = read.and_then(|found| match found {
        Some(bytes) if bytes == room.bytes(name, size) => Ok(()),
        // It has an answer, but not the one whose time is to be known.
        Some(_) => Err(CallError::Failed { what: format!("{name} is not what was put") }),
        None => Err(CallError::Failed { what: format!("{name} was put and is not there") }),
    });
    tally.add(took, &same);
}

pub(super) fn burst(room: &Room<'_>, calls: usize) -> Result<Level, LabError> {
    let sizes = room.subject.sizes;
    let bytes = room.bytes("burst", SMALL);
    // Connections that are made now are none of what a call takes; what fails here fails again.
    at_once(calls, &|number| drop(room.put(&format!("burst/{calls}-first-{number}"), &bytes)))?;
    let next = AtomicU64::new(0);
    let watch = Stopwatch::start();
    let (tallies, took) = at_once(calls, &|_| {
        let mut tally = Tally::default();
        while watch.wall() < sizes.burst && room.goes_on() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= sizes.burst_max {
                break;
            }
            timed(&mut tally, || room.put(&format!("burst/{calls}-{number}"), &bytes));
        }
        tally
    })?;
    let mut level = Level { calls, took, ..Level::default() };
    for tally in tallies {
        level.tally.merge(tally);
    }
    Ok(level)
}
