//! Which old versions are kept: the setting that all devices of a workspace share, and the pure rule that follows from it.
//!
//! *Participants*: whoever cleans up. *Goals*: of the last minutes everything, then fewer and fewer (Syncany's ladder). *Non-goals*:
//! removing anything. *Invariants*: the newest version of what is there is always kept, and so is what stands in a conflict;
//! a version with the content of a kept one is kept; cleaning up twice is the same as once.
//!
//! Ages come from the clocks of the devices, which may be wrong. They choose among old versions, and nothing else hangs on them:
//! see [`SteadyTime`] for what keeps a wrong clock from making things look older than they are.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::codec::{Decode, DecodeError, Decoder, Encode, Encoder, Message};
use crate::content::Content;

/// An age that nothing reaches, in seconds.
pub const FOREVER_S: u64 = u64::MAX;

/// How many rungs a ladder has at most.
const RUNGS_MAX: usize = 16;

const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 60 * MINUTE_S;
const DAY_S: u64 = 24 * HOUR_S;

/// How many versions are kept up to an age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rung {
    /// Of each stretch of so many seconds the last version is kept; 0 for all versions.
    pub interval_s: u64,
    /// Up to which age, in seconds.
    pub age_max_s: u64,
}

/// Which old versions are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionPolicy {
    /// From the youngest versions to the oldest; what is older than all goes.
    pub rungs: Vec<Rung>,
    /// How long the last version of something deleted is kept, in seconds.
    pub deleted_s: u64,
}

impl Default for VersionPolicy {
    /// Syncany's ladder: for an hour one version a minute, for three days one an hour, for thirty days one a day; and all of
    /// the last ten minutes, which are ours.
    fn default() -> Self {
        let rung = |interval_s, age_max_s| Rung { interval_s, age_max_s };
        Self {
            rungs: vec![
                rung(0, 10 * MINUTE_S),
                rung(MINUTE_S, HOUR_S),
                rung(HOUR_S, 3 * DAY_S),
                rung(DAY_S, 30 * DAY_S),
            ],
            deleted_s: 30 * DAY_S,
        }
    }
}

impl VersionPolicy {
    /// Keeps every version for ever.
    pub fn everything() -> Self {
        let all = Rung { interval_s: 0, age_max_s: FOREVER_S };
        Self { rungs: vec![all], deleted_s: FOREVER_S }
    }
}

/// A version of a node that has a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptVersion {
    /// Its number.
    pub version: u64,
    /// When it came to be, in seconds since 1970, from [`SteadyTime`].
    pub time_s: i64,
    /// What it was.
    pub content: Content,
}

/// The versions of one node whose contents are still kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeHistory {
    /// In the order of their numbers.
    pub versions: Vec<KeptVersion>,
    /// When it was deleted, if it is.
    pub deleted_s: Option<i64>,
    /// Versions that something else needs: the base of a conflict that nobody has decided yet.
    pub pinned: BTreeSet<u64>,
}

/// Returns the versions of a node whose contents need not be kept any more, ascending.
pub fn versions_to_drop(history: &NodeHistory, policy: &VersionPolicy, now_s: i64) -> Vec<u64> {
    let age = |time: i64| u64::try_from(now_s.saturating_sub(time)).unwrap_or(0);
    let is_gone = history.deleted_s.is_some_and(|time| age(time) > policy.deleted_s);
    let mut kept: BTreeSet<u64> = history.pinned.clone();
    if !is_gone {
        kept.extend(history.versions.last().map(|version| version.version));
        let mut stretches = BTreeSet::new();
        // From the newest on, so that the last version of a stretch is the first that is met.
        for version in history.versions.iter().rev() {
            let mut rungs = policy.rungs.iter().zip(0_usize..);
            let rung = rungs.find(|(rung, _)| age(version.time_s) <= rung.age_max_s);
            let Some((rung, number)) = rung else { continue };
            let stretch = match rung.interval_s {
                0 => None,
                length => {
                    Some(version.time_s.div_euclid(i64::try_from(length).unwrap_or(i64::MAX)))
                }
            };
            if stretch.is_none_or(|stretch| stretches.insert((number, stretch))) {
                kept.insert(version.version);
            }
        }
    }
    let is_kept = |version: &&KeptVersion| kept.contains(&version.version);
    let contents: Vec<&Content> =
        history.versions.iter().filter(is_kept).map(|version| &version.content).collect();
    let dropped = history.versions.iter().filter(|version| !is_kept(version));
    dropped.filter(|it| !contents.contains(&&it.content)).map(|it| it.version).collect()
}

/// Makes times out of what the clocks of the devices said, entry by entry: none is before one before it, so a clock that is
/// behind makes nothing look old; what is after now counts as now, and moves nothing else.
#[derive(Debug, Clone, Copy)]
pub struct SteadyTime {
    now_s: i64,
    latest_s: i64,
}

impl SteadyTime {
    /// Begins before the first entry.
    pub fn new(now_s: i64) -> Self {
        Self { now_s, latest_s: i64::MIN }
    }

    /// Returns the time of the next entry, whose device's clock said this.
    pub fn next(&mut self, clock_s: i64) -> i64 {
        if clock_s > self.now_s {
            return self.now_s;
        }
        self.latest_s = self.latest_s.max(clock_s);
        self.latest_s
    }

    /// Returns the time of the newest entry that was not after now.
    pub fn latest_s(&self) -> i64 {
        self.latest_s
    }
}

/// Text that is no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' says not which versions to keep: {reason}")]
pub struct InvalidPolicy {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl VersionPolicy {
    /// Tells whether the ladder makes sense.
    fn check(&self) -> Result<(), &'static str> {
        if self.rungs.len() > RUNGS_MAX {
            return Err("it has too many parts");
        }
        let is_ladder = |one: &Rung, other: &Rung| {
            one.age_max_s < other.age_max_s && one.interval_s <= other.interval_s
        };
        match self.rungs.is_sorted_by(is_ladder) {
            true => Ok(()),
            false => Err("each part must reach further back than the one before, and keep no more"),
        }
    }
}

impl fmt::Display for VersionPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Rung { interval_s, age_max_s } in &self.rungs {
            match interval_s {
                0 => write!(formatter, "all:{},", Span(*age_max_s))?,
                length => write!(formatter, "{}:{},", Span(*length), Span(*age_max_s))?,
            }
        }
        write!(formatter, "deleted:{}", Span(self.deleted_s))
    }
}

impl FromStr for VersionPolicy {
    type Err = InvalidPolicy;

    /// Reads what [`fmt::Display`] writes: `all:10m,1m:1h,1h:3d,1d:30d,deleted:30d`.
    fn from_str(text: &str) -> Result<Self, InvalidPolicy> {
        let invalid = |reason| InvalidPolicy { text: text.to_owned(), reason };
        let no_span = || invalid("a time is a number and one of s, m, h, d, w, y; or 'forever'");
        let mut policy = Self { rungs: Vec::new(), deleted_s: FOREVER_S };
        for part in text.split(',') {
            let (what, age) = part
                .trim()
                .split_once(':')
                .ok_or_else(|| invalid("its parts look like 1h:3d, all:10m or deleted:30d"))?;
            let age_max_s = parse_span(age).ok_or_else(no_span)?;
            match what {
                "deleted" => policy.deleted_s = age_max_s,
                "all" => policy.rungs.push(Rung { interval_s: 0, age_max_s }),
                every => {
                    let interval_s = parse_span(every).ok_or_else(no_span)?;
                    policy.rungs.push(Rung { interval_s, age_max_s });
                }
            }
        }
        policy.check().map_err(invalid)?;
        Ok(policy)
    }
}

/// The units of time in which policies are written, the longest first.
const UNITS: [(&str, u64); 6] =
    [("y", 365 * DAY_S), ("w", 7 * DAY_S), ("d", DAY_S), ("h", HOUR_S), ("m", MINUTE_S), ("s", 1)];

/// A length of time as people write it.
struct Span(u64);

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(length) = self;
        if *length == FOREVER_S {
            return formatter.write_str("forever");
        }
        let unit = UNITS.iter().find(|(_, unit)| *length > 0 && length % unit == 0);
        let (name, unit) = unit.unwrap_or(&("s", 1));
        write!(formatter, "{}{name}", length / unit)
    }
}

fn parse_span(text: &str) -> Option<u64> {
    if text == "forever" {
        return Some(FOREVER_S);
    }
    let (name, unit) = UNITS.iter().find(|(name, _)| text.ends_with(name))?;
    let digits = text.strip_suffix(name)?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|_| is_number)?;
    number.checked_mul(*unit).filter(|&span| span != FOREVER_S)
}

impl Encode for Rung {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.unsigned(self.interval_s);
        encoder.unsigned(self.age_max_s);
    }
}

impl Decode for Rung {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self { interval_s: decoder.unsigned()?, age_max_s: decoder.unsigned()? })
    }
}

impl Encode for VersionPolicy {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.list(&self.rungs);
        encoder.unsigned(self.deleted_s);
    }
}

impl Decode for VersionPolicy {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let policy = Self { rungs: decoder.list()?, deleted_s: decoder.unsigned()? };
        policy.check().map_err(|reason| decoder.invalid("version policy", reason))?;
        Ok(policy)
    }
}

impl Message for VersionPolicy {
    const MAGIC: u8 = b'W';
    const KIND: &'static str = "version policy";
}

#[cfg(test)]
mod tests;
