//! Reads everything that is stored, a little at a time, and mends what is wrong, before somebody needs it; and fills up, once a
//! day, what lists show to be missing.
//!
//! *Goals*: every piece in every store is read once in a period, and no more of it in a day than its share; a store that
//! lost or never got what it should have gets it within a day; the rate has a limit; a stop loses nothing but the step
//! under way. *Non-goals*: finding what the log does not name. *Invariants*: the place up to which was read moves on only
//! after everything before it was judged; clocks that jump cost at most a day's share.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use model::codec::{Decode, DecodeError, Decoder, Encode, Encoder};
use model::{Clock, PackId, Timestamp};
use storage::ObjectKey;
use storage::pool::Pool;
use storage::pool::repair::{CarryOut, CheckOptions, Depth, Problem};

/// How much is read.
#[derive(Debug, Clone, Copy)]
pub struct ScrubOptions {
    /// In which time everything is read once.
    pub period: Duration,
    /// How often a little is read.
    pub step: Duration,
    /// How many bytes a second are read at most, meanwhile.
    pub bytes_per_second: u64,
}

impl Default for ScrubOptions {
    fn default() -> Self {
        Self {
            period: DAY * 30,
            step: Duration::from_secs(3600),
            bytes_per_second: 2 * 1024 * 1024,
        }
    }
}

const DAY: Duration = Duration::from_secs(24 * 3600);

/// How long after its start a watch first fills up what stores lack.
const FILL_FIRST: Duration = Duration::from_secs(600);

/// How often it does that.
const FILL_AGAIN: Duration = DAY;

/// How many objects are read in one step at most.
const OBJECTS_MAX: usize = 256;

/// How far a scrub has come, as a device remembers it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScrubPosition {
    /// The last pack that was read; none at the beginning of a round.
    pub after: Option<PackId>,
    /// When the round began, if one has.
    pub began: Option<Timestamp>,
    /// When a round last came to its end.
    pub ended: Option<Timestamp>,
    /// When a step was last due.
    pub stepped: Option<Timestamp>,
    /// How many bytes may be read; below zero where an object was larger than what was due.
    pub credit: i64,
    /// How many objects were read in this round.
    pub objects: u64,
    /// How many pieces were mended since the first round.
    pub mended: u64,
    /// How many packs of this round are lost, for all that this device could do.
    pub lost: u64,
}

impl Encode for ScrubPosition {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.option(self.after.as_ref());
        encoder.option(self.began.as_ref());
        encoder.option(self.ended.as_ref());
        encoder.option(self.stepped.as_ref());
        encoder.signed(self.credit);
        encoder.unsigned(self.objects);
        encoder.unsigned(self.mended);
        encoder.unsigned(self.lost);
    }
}

impl Decode for ScrubPosition {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            after: decoder.option()?,
            began: decoder.option()?,
            ended: decoder.option()?,
            stepped: decoder.option()?,
            credit: decoder.signed()?,
            objects: decoder.unsigned()?,
            mended: decoder.unsigned()?,
            lost: decoder.unsigned()?,
        })
    }
}

impl ScrubPosition {
    /// Counts what is due now of `total` bytes. What was not read for days is not made up for at once.
    pub fn earn(&mut self, now: Timestamp, total: u64, options: &ScrubOptions) {
        let passed = match self.stepped {
            Some(before) => between(before, now).min(DAY),
            None => options.step,
        };
        let share = |time: Duration| {
            let part = time.as_secs_f64() / options.period.as_secs_f64().max(1.0);
            (total as f64 * part).ceil() as i64
        };
        self.credit = self.credit.saturating_add(share(passed)).min(share(DAY));
        self.stepped = Some(now);
        if self.began.is_none() {
            (self.began, self.objects, self.lost) = (Some(now), 0, 0);
        }
    }

    /// Takes objects in their order, as long as there is credit.
    pub fn spend(&mut self, objects: impl IntoIterator<Item = (PackId, u64)>) -> Vec<PackId> {
        let mut taken = Vec::new();
        for (pack, length) in objects {
            if self.credit <= 0 || taken.len() == OBJECTS_MAX {
                break;
            }
            self.credit = self.credit.saturating_sub_unsigned(length);
            taken.push(pack);
        }
        taken
    }
}

/// Returns how much time has passed, and none where the clock was set back.
fn between(before: Timestamp, now: Timestamp) -> Duration {
    Duration::from_secs(now.seconds.saturating_sub(before.seconds).try_into().unwrap_or(0))
}

/// What a step has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// What was read.
    pub objects: BTreeSet<ObjectKey>,
    /// How many pieces were mended.
    pub mended: u64,
    /// What cannot be restored from any store.
    pub lost: BTreeSet<ObjectKey>,
    /// What could not be judged, because stores were away or did not take what they lack.
    pub unsettled: BTreeSet<ObjectKey>,
}

/// Reads objects of a pool in the background.
pub struct Scrubber {
    pool: Pool,
    options: ScrubOptions,
    running: Option<BoxFuture<'static, ScrubWake>>,
    /// When the next step is due.
    due: Duration,
    /// When what stores lack is filled up.
    fill: Fill,
}

/// When what stores lack is filled up.
#[derive(Debug, Clone, Copy)]
enum Fill {
    /// So long after the start: a scrubber that nobody has asked yet knows no time.
    After(Duration),
    /// At this time of the clock.
    At(Duration),
}

/// What a scrubber wants.
#[derive(Debug)]
pub(crate) enum ScrubWake {
    /// It is time for a step.
    Due,
    /// A step is done.
    Done(Scrubbed),
    /// So many pieces that stores lacked were written.
    Filled(u64),
}

impl std::fmt::Debug for Scrubber {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Scrubber").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Scrubber {
    /// Prepares to read what is in a pool. The first step is due at once.
    pub fn new(pool: Pool, options: ScrubOptions) -> Self {
        let fill = Fill::After(FILL_FIRST);
        Self { pool, options, running: None, due: Duration::ZERO, fill }
    }

    /// Begins with filling up what stores lack: one of them is new, or was emptied.
    #[must_use]
    pub fn filling_first(self) -> Self {
        Self { fill: Fill::After(Duration::ZERO), ..self }
    }

    /// Returns how much it reads.
    pub fn options(&self) -> &ScrubOptions {
        &self.options
    }

    /// Begins a step with these objects; with none it is only put off.
    pub(crate) fn begin(&mut self, objects: BTreeSet<ObjectKey>, clock: &dyn Clock) {
        self.due = clock.elapsed() + self.options.step;
        if !objects.is_empty() {
            let step = scrub(self.pool.clone(), self.options.bytes_per_second, objects);
            self.running = Some(step.map(ScrubWake::Done).boxed());
        }
    }

    /// Begins to fill up what stores lack, if that is due.
    pub(crate) fn begin_fill(&mut self, clock: &dyn Clock) -> bool {
        let now = clock.elapsed();
        if self.fill_due(now) > now {
            return false;
        }
        self.fill = Fill::At(now + FILL_AGAIN);
        let fill = fill(self.pool.clone(), self.options.bytes_per_second);
        self.running = Some(fill.map(ScrubWake::Filled).boxed());
        true
    }

    /// Returns when what stores lack is to be filled up. The start, from which that counts, is when this is asked first.
    fn fill_due(&mut self, now: Duration) -> Duration {
        let due = match self.fill {
            Fill::After(wait) => now + wait,
            Fill::At(due) => due,
        };
        self.fill = Fill::At(due);
        due
    }

    /// Waits until something is to be done. Dropped in between, nothing is lost.
    pub(crate) async fn wake(&mut self, clock: &dyn Clock) -> ScrubWake {
        let Some(running) = &mut self.running else {
            let now = clock.elapsed();
            let due = self.due.min(self.fill_due(now));
            clock.sleep(due.saturating_sub(now)).await;
            return ScrubWake::Due;
        };
        let done = running.await;
        self.running = None;
        done
    }
}

/// Writes what homes lack by the lists of all stores. A store that is away is taken to have what it should.
async fn fill(pool: Pool, bytes_per_second: u64) -> u64 {
    let inventory = pool.inventory().await;
    let plan = pool.plan_rebalance(&inventory).without_removals();
    let bytes_per_second = Some(bytes_per_second.max(1));
    let carry_out = CarryOut { bytes_per_second, ..CarryOut::default() };
    pool.carry_out(&plan, carry_out).await.written
}

/// Reads all pieces of some objects, and mends what is wrong or missing.
async fn scrub(pool: Pool, bytes_per_second: u64, objects: BTreeSet<ObjectKey>) -> Scrubbed {
    let bytes_per_second = Some(bytes_per_second.max(1));
    let inventory = pool.inventory_of(&objects).await;
    let options = CheckOptions { depth: Depth::Deep, bytes_per_second, ..CheckOptions::default() };
    let report = pool.check(&inventory, &objects, options).await;
    let plan = pool.plan_repair(&report);
    let repair = CarryOut { bytes_per_second, ..CarryOut::default() };
    let outcome = pool.carry_out(&plan, repair).await;
    let mut done = Scrubbed { objects, mended: outcome.written, ..Scrubbed::default() };
    for finding in report.findings {
        match finding.problem {
            Problem::Lost => drop(done.lost.insert(finding.object)),
            Problem::OutOfReach => drop(done.unsettled.insert(finding.object)),
            _ => {}
        }
    }
    done.unsettled.extend(outcome.failed.into_iter().map(|(object, _)| object));
    done
}

#[cfg(test)]
mod tests;
