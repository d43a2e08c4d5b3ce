//! What a benchmark has written, and whether it is there in the end.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::driver::Driver;
use super::outcome::Outcome;
use super::work::lock;
use crate::digest::sha256;

/// How many threads read everything again in the end, which nobody measures: as many as there were, from and to these.
const JUDGES_MIN: usize = 8;
const JUDGES_MAX: usize = 16;

/// A write of a file, as the thread saw it that did it.
#[derive(Debug, Clone)]
pub(super) struct Write {
    pub(super) digest: [u8; 32],
    pub(super) began: Duration,
    /// None: it failed, and may have happened, at any time.
    pub(super) ended: Option<Duration>,
}

/// Reads everything that was acknowledged again, by some threads, and notes what is lost and what cannot be read.
pub(super) fn judge(
    driver: &dyn Driver,
    written: &BTreeMap<String, Vec<Write>>,
    threads: usize,
    outcome: &mut Outcome,
) {
    let all: Vec<_> = written.iter().filter(|(_, writes)| is_acknowledged(writes)).collect();
    let (next, found) = (AtomicU64::new(0), Mutex::new(outcome));
    thread::scope(|scope| {
        for _ in 0..threads.clamp(JUDGES_MIN, JUDGES_MAX) {
            scope.spawn(|| {
                while let Some((path, writes)) =
                    all.get(next.fetch_add(1, Ordering::Relaxed) as usize)
                {
                    let reread = driver.reread(path);
                    let mut found = lock(&found);
                    match reread {
                        Err(_) => found.unread += 1,
                        Ok(bytes) => {
                            found.acknowledged += 1;
                            let why = fault(writes, bytes.as_deref());
                            found.lost.extend(why.map(|why| format!("{path}: {why}")));
                        }
                    }
                }
            });
        }
    });
}

/// Returns what is wrong with a file that was found in the end.
fn fault(writes: &[Write], found: Option<&[u8]>) -> Option<String> {
    let ended = writes.iter().filter(|write| write.ended.is_some());
    let latest = ended.map(|write| write.began).max()?;
    // What ended before another one that is acknowledged began was written over by that one.
    let may_be_there = |write: &&Write| write.ended.is_none_or(|ended| ended > latest);
    let Some(bytes) = found else { return Some("not there".to_owned()) };
    let digest = sha256(bytes);
    let is_it = writes.iter().filter(may_be_there).any(|write| write.digest == digest);
    (!is_it).then(|| format!("{} bytes that nobody wrote last", bytes.len()))
}

pub(super) fn is_acknowledged(writes: &[Write]) -> bool {
    writes.iter().any(|write| write.ended.is_some())
}

pub(super) fn has_digest(writes: &[Write], digest: &[u8; 32]) -> bool {
    writes.iter().any(|write| write.digest == *digest)
}
