//! Many objects as fast as they can be put, and all of them read again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::SMALL;
use super::room::{Room, Tally, at_once, rest, timed};
use crate::error::LabError;
use crate::stopwatch::Stopwatch;

/// How many put at once.
const LOADERS: usize = 32;

/// How many read again.
const READERS: usize = 16;

/// How often an object is read that cannot be.
const READS: usize = 3;

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Load {
    /// How many objects were put, acknowledged or not.
    pub tried: u64,
    /// The puts.
    pub tally: Tally,
    /// How long they took together.
    pub took: Duration,
    /// Acknowledged ones that are not there.
    pub lost: u64,
    /// Acknowledged ones that are something else.
    pub damaged: u64,
    /// Acknowledged ones that could not be read, so that nothing is known.
    pub unread: u64,
    /// Acknowledged ones that were there only after a while.
    pub late: u64,
    /// Ones that are there although their put has failed.
    pub unacknowledged: u64,
    /// Ones that are something else, and whose put has failed.
    pub torn: u64,
    /// One that is lost or damaged.
    pub example: Option<String>,
}

/// What an object was when it was read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Whole,
    Late,
    Other,
    Nothing,
    Unread,
}

pub(super) fn put(room: &Room<'_>) -> Result<Load, LabError> {
    let wanted = room.subject.sizes.load;
    let next = AtomicU64::new(0);
    let (put, took) = at_once(LOADERS, &|_| {
        let (mut tally, mut done) = (Tally::default(), Vec::new());
        while room.goes_on() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= wanted {
                break;
            }
            let name = name(number);
            let bytes = room.bytes(&name, SMALL);
            done.push((number, timed(&mut tally, || room.put(&name, &bytes)).is_some()));
        }
        (tally, done)
    })?;
    let mut load = Load { took, ..Load::default() };
    let mut all = Vec::new();
    for (tally, done) in put {
        load.tally.merge(tally);
        all.extend(done);
    }
    load.tried = all.len() as u64;
    judge(room, &all, &mut load)?;
    Ok(load)
}

fn name(number: u64) -> String {
    format!("load/{number:06}")
}

/// Reads everything again.
fn judge(room: &Room<'_>, all: &[(u64, bool)], load: &mut Load) -> Result<(), LabError> {
    let (next, watch) = (AtomicU64::new(0), Stopwatch::start());
    let (found, _) = at_once(READERS, &|_| {
        let mut found = Vec::new();
        while let Some(&(number, acknowledged)) =
            all.get(next.fetch_add(1, Ordering::Relaxed) as usize)
        {
            let what = read(room, &name(number), acknowledged, &watch);
            found.push((number, acknowledged, what));
        }
        found
    })?;
    for (number, acknowledged, what) in found.into_iter().flatten() {
        let count = match (what, acknowledged) {
            (Found::Nothing, true) => &mut load.lost,
            (Found::Other, true) => &mut load.damaged,
            (Found::Unread, true) => &mut load.unread,
            (Found::Late, true) => &mut load.late,
            (Found::Whole | Found::Late, false) => &mut load.unacknowledged,
            (Found::Other, false) => &mut load.torn,
            (Found::Whole, true) | (Found::Nothing | Found::Unread, false) => continue,
        };
        *count += 1;
        if matches!((what, acknowledged), (Found::Nothing | Found::Other, true)) {
            load.example.get_or_insert_with(|| name(number));
        }
    }
    Ok(())
}

/// Reads an object. One that was acknowledged and is not there may come yet, for as long as somebody has patience with all of them.
fn read(room: &Room<'_>, name: &str, acknowledged: bool, watch: &Stopwatch) -> Found {
    let mut failures = 0;
    let mut is_first = true;
    loop {
        match room.get_elsewhere(name) {
            Ok(Some(bytes)) if bytes == room.bytes(name, SMALL) && is_first => return Found::Whole,
            Ok(Some(bytes)) if bytes == room.bytes(name, SMALL) => return Found::Late,
            Ok(Some(_)) => return Found::Other,
            Ok(None) => {
                if !acknowledged || watch.wall() >= room.subject.patience || !room.goes_on() {
                    return Found::Nothing;
                }
                is_first = false;
            }
            Err(_) => {
                failures += 1;
                if failures >= READS {
                    return Found::Unread;
                }
            }
        }
        rest(watch.wall());
    }
}
