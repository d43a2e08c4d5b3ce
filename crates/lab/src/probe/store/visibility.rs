//! How soon somebody else sees what the store has acknowledged.

use std::time::Duration;

use super::room::{Room, Tally, rest};
use super::{CallError, SMALL};
use crate::stopwatch::Stopwatch;

/// How often is looked again whether what was seen stays so: several servers may know different things.
const LOOKS_AGAIN: usize = 3;

/// What is done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It comes.
    New,
    /// It is written over.
    Overwritten,
    /// It goes.
    Removed,
}

impl Change {
    /// As it stands in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Overwritten => "overwritten",
            Self::Removed => "removed",
        }
    }
}

/// How soon a kind of change was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visibility {
    /// Which kind.
    pub change: Change,
    /// How many changes were acknowledged, and looked for.
    pub tried: u64,
    /// By reading.
    pub read: Sight,
    /// By listing, with its size.
    pub listed: Sight,
    /// Calls that failed meanwhile.
    pub tally: Tally,
}

/// What was seen in one way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sight {
    /// How long after it was acknowledged a change was seen; nothing where it was at the first look.
    pub after: Vec<Duration>,
    /// How many never were.
    pub never: u64,
    /// How many looks showed something else.
    pub stale: u64,
    /// Of them, those after one that had shown the change.
    pub back: u64,
}

impl Sight {
    /// Takes what one look has found, right or not, or why there was none; returns whether the change was seen.
    fn take(&mut self, found: Result<bool, CallError>, was_seen: bool, tally: &mut Tally) -> bool {
        match found {
            Ok(is_right) => {
                self.stale += u64::from(!is_right);
                self.back += u64::from(!is_right && was_seen);
                is_right
            }
            Err(error) => {
                tally.fail(&error);
                false
            }
        }
    }
}

pub(super) fn wait(room: &Room<'_>, change: Change) -> Visibility {
    let mut found = Visibility::new(change);
    for number in 0..room.subject.sizes.awaited {
        // Where a change is never seen, patience for one is enough.
        if !room.goes_on() || found.read.never + found.listed.never > 0 {
            break;
        }
        one(room, &mut found, number);
    }
    found
}

fn one(room: &Room<'_>, found: &mut Visibility, number: u64) {
    let name = format!("{}/{number:03}", found.change.name());
    let old = room.bytes("old", SMALL);
    let new = room.bytes(&name, SMALL + SMALL / 2);
    if found.change != Change::New {
        if let Err(error) = room.put(&name, &old) {
            return found.tally.fail(&error);
        }
        // How soon it comes is another question: here it only has to be there.
        Visibility::new(Change::New).look_for(room, &name, Some(&old));
    } else if number % 2 == 1 {
        // What somebody has looked for in vain may be remembered as absent.
        let _ = room.get_elsewhere(&name);
    }
    let (done, wanted) = match found.change {
        Change::Removed => (room.delete(&name), None),
        Change::New | Change::Overwritten => (room.put(&name, &new), Some(&new[..])),
    };
    match done {
        Ok(()) => found.look_for(room, &name, wanted),
        Err(error) => found.tally.fail(&error),
    }
}

impl Visibility {
    fn new(change: Change) -> Self {
        let (read, listed) = (Sight::default(), Sight::default());
        Self { change, tried: 0, read, listed, tally: Tally::default() }
    }

    /// Looks until an object is what it should be, by reading and by listing.
    fn look_for(&mut self, room: &Room<'_>, name: &str, wanted: Option<&[u8]>) {
        let watch = Stopwatch::start();
        let (mut read, mut listed) = (None, None);
        let mut is_first = true;
        while (read.is_none() || listed.is_none()) && room.goes_on() {
            let now = |watch: &Stopwatch| if is_first { Duration::ZERO } else { watch.wall() };
            if read.is_none() && self.read_once(room, name, wanted, false) {
                read = Some(now(&watch));
            }
            if listed.is_none() && self.list_once(room, name, wanted, false) {
                listed = Some(now(&watch));
            }
            if watch.wall() >= room.subject.patience {
                break;
            }
            if read.is_none() || listed.is_none() {
                rest(watch.wall());
            }
            is_first = false;
        }
        for _ in 0..LOOKS_AGAIN {
            let _ = read.is_none() || self.read_once(room, name, wanted, true);
            let _ = listed.is_none() || self.list_once(room, name, wanted, true);
        }
        if !room.goes_on() {
            return;
        }
        self.tried += 1;
        for (sight, after) in [(&mut self.read, read), (&mut self.listed, listed)] {
            sight.never += u64::from(after.is_none());
            sight.after.extend(after);
        }
    }

    fn read_once(
        &mut self,
        room: &Room<'_>,
        name: &str,
        wanted: Option<&[u8]>,
        seen: bool,
    ) -> bool {
        let found = room.get_elsewhere(name).map(|found| found.as_deref() == wanted);
        self.read.take(found, seen, &mut self.tally)
    }

    fn list_once(
        &mut self,
        room: &Room<'_>,
        name: &str,
        wanted: Option<&[u8]>,
        seen: bool,
    ) -> bool {
        let found = room.list_elsewhere(name, None, 1).map(|listed| {
            let size = listed.iter().find(|it| it.path == name).map(|it| it.size);
            size == wanted.map(|wanted| wanted.len() as u64)
        });
        self.listed.take(found, seen, &mut self.tally)
    }
}
