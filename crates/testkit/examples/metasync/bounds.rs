//! What Table 7 could be at best: lines that are never idle, and no more round trips than the agreement takes.
//!
//! * A store moves packs or blocks of one size at its rate, or at what its connections get through, each waiting for a latency.
//! * A send looks at the log once, moves at the same time as many pieces of everything as must be durable, each to another store, and then
//!   commits: as the first device of a log, at all stores but one of an even number. Copies may go to any store, as substitutes relieve slow
//!   homes; each store takes one of an object at most. Where every store is a home, there are no substitutes, and it is the same.
//! * A receive hears of the entry from the store that answers first. Then it asks a majority whether there is another, and at the same
//!   time moves every pack once, from whichever stores have it when the commit is made.

use std::error::Error;
use std::fmt::Write;
use std::time::Duration;

use model::pool::Redundancy;
use testkit::clouds::services::{Direction, Service};

use crate::folders::{Setting, settings};
use lab::output::Output;

/// The folders of Table 7, and how many bytes their packs have, as measured.
const STORED: [(&str, f64); 3] =
    [("source tree", 47.5e6), ("paper folder", 1.27e6), ("photos", 193.3e6)];

/// How long a pack is mostly that is not divided into three blocks or more.
const PACK_LENGTH: f64 = 4.2e6;

/// Writes the least times of every setting.
pub(crate) fn run(output: &Output) -> Result<(), Box<dyn Error>> {
    let mut csv = "workload,setting,least send_s,least receive_s,least both_s\n".to_owned();
    for (folder, bytes) in STORED {
        for (name, services, redundancy) in settings() {
            let setting = (name, services, redundancy);
            let (send, receive) = (least_send(&setting, bytes), least_receive(&setting, bytes));
            let both = send + receive;
            // Writing to a String cannot fail.
            let _ok = writeln!(csv, "{folder},{},{send:.1},{receive:.1},{both:.1}", setting.0);
        }
    }
    output.write_csv("metasync-table-7-bounds", &csv)?;
    Ok(())
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

/// Returns how many bytes a second all connections together get through, in pieces of one size.
fn throughput(direction: &Direction, piece: f64, connections: usize) -> f64 {
    let alone = seconds(direction.latency()) + seconds(direction.alone(piece as u64));
    direction.rate().min(connections as f64 * piece / alone)
}

/// Returns the latency of the store that answers as the last of so many.
fn answered(services: &[Service], count: usize, direction: fn(&Service) -> Direction) -> f64 {
    let mut latencies: Vec<f64> =
        services.iter().map(|service| seconds(direction(service).latency())).collect();
    latencies.sort_by(f64::total_cmp);
    latencies[count - 1]
}

/// Returns in how many parts an object lies, how many of them must be durable, and which part of it one is.
fn parts(redundancy: Redundancy) -> (usize, usize, f64) {
    match redundancy {
        Redundancy::Replicas(copies) => (copies.into(), copies.min(2).into(), 1.0),
        Redundancy::Erasure { data, total } => {
            (total.into(), (data + 1).into(), 1.0 / f64::from(data))
        }
    }
}

/// Returns how long a pack is mostly that is kept so.
fn pack_length(redundancy: Redundancy) -> f64 {
    match redundancy {
        Redundancy::Erasure { data: 3.., .. } => PACK_LENGTH * 3.0,
        Redundancy::Replicas(_) | Redundancy::Erasure { .. } => PACK_LENGTH,
    }
}

fn least_send((_, services, redundancy): &Setting, bytes: f64) -> f64 {
    let count = services.len();
    let (_, enough, part) = parts(*redundancy);
    let piece = pack_length(*redundancy).min(bytes) * part;
    let one =
        |service: &Service| seconds(service.up.latency()) + seconds(service.up.alone(piece as u64));
    let mut first: Vec<f64> = services.iter().map(one).collect();
    first.sort_by(f64::total_cmp);
    let takes = |time: f64| -> f64 {
        let taken = services.iter().map(|service| {
            let moving = (time - seconds(service.up.latency())).max(0.0);
            (moving * throughput(&service.up, piece, service.connections)).min(bytes * part)
        });
        taken.sum()
    };
    let moved = least_time(|time| takes(time) >= bytes * part * enough as f64 * 0.9999);
    let fast_quorum = if count == 1 { 1 } else { 2 * count + 1 - 2 * (count / 2 + 1) };
    let look = answered(services, count / 2 + 1, |service| service.down);
    let commit = answered(services, fast_quorum.min(count), |service| service.up);
    look.max(moved).max(first[enough - 1]) + commit
}

/// Returns the least time at which something is reached that is reached ever after.
fn least_time(is_reached: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 100_000.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if is_reached(middle) { high = middle } else { low = middle }
    }
    high
}

fn least_receive((_, services, redundancy): &Setting, bytes: f64) -> f64 {
    let count = services.len();
    let (total, enough, part) = parts(*redundancy);
    let piece = pack_length(*redundancy).min(bytes) * part;
    let mut holders: Vec<&Service> = services.iter().collect();
    if total == count {
        // Those that were not waited for may have nothing yet.
        holders.sort_by(|one, other| other.up.rate().total_cmp(&one.up.rate()));
        holders.truncate(enough);
    }
    let heard = answered(services, 1, |service| service.down);
    let looked = heard + answered(services, count / 2 + 1, |service| service.down);
    let alone = holders
        .iter()
        .map(|service| seconds(service.down.latency()) + seconds(service.down.alone(piece as u64)));
    let mut alone: Vec<f64> = alone.collect();
    alone.sort_by(f64::total_cmp);
    let first = alone[(1.0 / part).round() as usize - 1];
    if bytes <= PACK_LENGTH {
        return looked.max(heard + first);
    }
    let most = match redundancy {
        // Substitutes have what slow homes lack.
        Redundancy::Replicas(_) => bytes,
        Redundancy::Erasure { .. } => bytes * part,
    };
    let gets = |time: f64| -> f64 {
        let got = holders.iter().map(|service| {
            let moving = (time - seconds(service.down.latency())).max(0.0);
            (moving * throughput(&service.down, piece, service.connections)).min(most)
        });
        got.sum()
    };
    // All stores together give everything; nobody more than it has.
    looked.max(heard + least_time(|time| gets(time) >= bytes * 0.9999).max(first))
}
