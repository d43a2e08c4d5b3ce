//! Finds out by experiment what a store of objects does: how long a call takes, how many it bears at once, how soon what it has acknowledged
//! can be read and is listed, whether its listings can be believed, and whether it loses something under load.
//!
//! *Knows*: a [`Store`] that puts, reads, lists and deletes objects by name, and a second connection to the same one, through which is looked
//! what somebody else sees. *Does not know*: which kind of store it is. Everything lies in one folder of it, which is removed in the end.
//!
//! Read in this order: this file (what is asked of a store), `room` (the folder, which counts every call), the experiments `calls`,
//! `visibility`, `listings`, `load` and `races`, [`answers`] (what follows from them), [`report`].

pub mod answers;
pub mod report;

mod calls;
mod listings;
mod load;
mod races;
mod room;
mod visibility;

#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

pub use calls::{Calls, Level};
pub use listings::Listings;
pub use load::Load;
pub use races::Races;
pub use room::Tally;
pub use visibility::{Change, Visibility};

use crate::bench::driver::Listed;
use crate::error::LabError;
use room::Room;

/// Why a call to a store failed. It is counted, and never taken for a fast one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The store wants fewer calls.
    #[error("refused: {what}")]
    Refused {
        /// What it said.
        what: String,
    },
    /// The store has no way to do it.
    #[error("{what}")]
    Unsupported {
        /// What it cannot do.
        what: String,
    },
    /// Anything else; whether it was done or not is not known.
    #[error("{what}")]
    Failed {
        /// What was seen.
        what: String,
    },
}

/// A store of objects, which many threads use at once. A put that returns has been done as well as the store ever does it.
pub trait Store: fmt::Debug + Send + Sync {
    /// Names the store, without secrets.
    fn describe(&self) -> String;

    /// Writes an object, or writes it over.
    ///
    /// # Errors
    /// [`CallError`], as of all others.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), CallError>;

    /// Writes an object where none is, and returns whether it did; the store has to decide that at one moment.
    ///
    /// # Errors
    /// [`CallError::Unsupported`] of a store that cannot.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, CallError>;

    /// Reads an object; nothing where there is none.
    ///
    /// # Errors
    /// [`CallError`].
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, CallError>;

    /// Lists the first objects whose names begin with `prefix` and come after `after`, in the order of their bytes; fewer than `limit` are all.
    ///
    /// # Errors
    /// [`CallError`].
    fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Listed>, CallError>;

    /// Removes an object, also where there is none.
    ///
    /// # Errors
    /// [`CallError`].
    fn delete(&self, name: &str) -> Result<(), CallError>;
}

/// What is probed.
#[derive(Debug)]
pub struct Subject<'a> {
    /// As tables name it.
    pub name: String,
    /// What is written to.
    pub store: &'a dyn Store,
    /// A second connection to the same store: what it sees is what another device sees.
    pub witness: &'a dyn Store,
    /// How long something may take to be seen, or to come back.
    pub patience: Duration,
    /// How much is moved.
    pub sizes: Sizes,
}

/// How much a probe moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// How often each call is made, one after the other.
    pub calls: u64,
    /// Of the object by which bandwidth is measured, in bytes; it goes up and down three times.
    pub large: usize,
    /// Of the largest object that is tried, in bytes.
    pub largest: usize,
    /// How long small objects come with each number of calls at once.
    pub burst: Duration,
    /// After how many of them it ends before.
    pub burst_max: u64,
    /// How many objects are waited for until they are seen, of each kind of change.
    pub awaited: u64,
    /// How many objects are listed.
    pub listed: u64,
    /// How many of them a page has.
    pub page: usize,
    /// How many objects come as fast as they can.
    pub load: u64,
    /// How often several want to make the same object.
    pub races: u64,
}

impl Sizes {
    /// As many as it takes to say something of one call among a hundred, and of lists of more than a thousand.
    pub const FULL: Self = Self {
        calls: 100,
        large: 16 << 20,
        largest: 64 << 20,
        burst: Duration::from_secs(2),
        burst_max: 2000,
        awaited: 12,
        listed: 1200,
        page: 1000,
        load: 1000,
        races: 10,
    };
    /// For a first look.
    pub const QUICK: Self = Self {
        calls: 20,
        large: 1 << 20,
        largest: 8 << 20,
        burst: Duration::from_millis(300),
        burst_max: 200,
        awaited: 4,
        listed: 120,
        page: 50,
        load: 100,
        races: 4,
    };
}

/// Of a small object, in bytes.
pub const SMALL: usize = 1024;

/// How many calls go on at once, one number after the other.
pub const LEVELS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

/// All that a probe has found. What was not done, because somebody wanted it to end, is not there.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// Each call by itself, and the large objects.
    pub calls: Option<Calls>,
    /// One for each number of calls at once.
    pub levels: Vec<Level>,
    /// One for each kind of change.
    pub visibility: Vec<Visibility>,
    /// Of lists.
    pub listings: Option<Listings>,
    /// Of many objects at once.
    pub load: Option<Load>,
    /// Of several that want to make the same object.
    pub races: Option<Races>,
    /// All calls together.
    pub all: Tally,
    /// Names of objects that may still be there, because the store did not remove them.
    pub left: Vec<String>,
    /// Whether somebody wanted it to end before all was done.
    pub ended_early: bool,
}

/// Probes a store, in the folder `folder` of it, which nobody else uses and which is empty in the end. `tell` hears what is done next;
/// `goes_on` is asked all the time.
///
/// # Errors
/// [`LabError::Store`] where the store cannot be used at all, [`LabError::Threads`]. A store that does not do what it should is no error but a finding.
pub fn run(
    subject: &Subject<'_>,
    folder: &str,
    seed: u64,
    tell: &mut dyn FnMut(&str),
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Result<Findings, LabError> {
    let room = Room::new(subject, folder, seed, goes_on);
    let mut findings = Findings::default();
    let ended = experiments(&room, &mut findings, tell);
    // Also after an error: nothing stays that somebody else would find.
    tell("removing what was written");
    findings.left = room.clean_up()?;
    ended?;
    findings.all = room.into_tally();
    findings.ended_early = !goes_on();
    Ok(findings)
}

fn experiments(
    room: &Room<'_>,
    findings: &mut Findings,
    tell: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    demand_use(room)?;
    let mut begins = |what: &str| {
        let goes_on = room.goes_on();
        if goes_on {
            tell(what);
        }
        goes_on
    };
    if begins("each call by itself") {
        findings.calls = Some(calls::measure(room));
    }
    for calls in LEVELS {
        if begins(&format!("{calls} at once")) {
            findings.levels.push(calls::burst(room, calls)?);
        }
    }
    for change in [Change::New, Change::Overwritten, Change::Removed] {
        if begins(&format!("how soon others see what is {}", change.name())) {
            findings.visibility.push(visibility::wait(room, change));
        }
    }
    if begins("lists, while objects come and go") {
        findings.listings = Some(listings::watch(room)?);
    }
    if begins("many objects at once") {
        findings.load = Some(load::put(room)?);
    }
    if begins("several that want to make the same object") {
        findings.races = Some(races::run(room)?);
    }
    Ok(())
}

/// Makes sure that an object can be put and read at all: else every answer would be that something failed.
fn demand_use(room: &Room<'_>) -> Result<(), LabError> {
    let failed = |what: String| LabError::Store { store: room.subject.store.describe(), what };
    let bytes = room.bytes("first", SMALL);
    let put = room.put("first", &bytes);
    put.map_err(|error| failed(format!("the first object was not written: {error}")))?;
    let found = room.get("first");
    found.map_err(|error| failed(format!("the first object was not read: {error}")))?;
    Ok(())
}
