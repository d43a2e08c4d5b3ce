//! Objects on shelves: folders of one level.
//!
//! The folder of a key, with `~` for each slash, is the name of its shelf; no key has a `~`. What lies in no folder is on
//! the shelf [`TOP`]. A folder that is a number (a slot of the log) is no shelf of its own but stands before the name of the
//! file: else each slot would cost a request. Names that would be longer than services allow are cut: then the file's name
//! begins with [`CUT`] and goes on where that of the shelf ends.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;

use crate::error::{Result, StorageError};
use crate::key::{ObjectKey, check_prefix};
use crate::object_store::{
    ObjectEntry, ObjectStore, PutMode, PutOutcome, WHOLE, Waited, askable, check_size, whole,
};

/// The shelf of keys without a folder.
const TOP: &str = "+top";
/// What the name of a file begins with that goes on where the name of its shelf ends.
const CUT: char = '+';
/// How long a name may be that was not cut, and at most.
const NAME_LENGTH: usize = 200;
const NAME_LENGTH_MAX: usize = 250;
/// How many shelves are looked at at once.
const SHELVES_AT_ONCE: usize = 4;
/// How many of the newest changes of this handle are remembered against lists that follow later.
const RECENT_MAX: usize = 1000;

/// Where an object lies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) shelf: String,
    pub(crate) name: String,
}

/// A file on a shelf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DriveFile {
    pub(crate) name: String,
    pub(crate) size: u64,
}

/// A folder of a service, in which shelves are.
#[async_trait]
pub(crate) trait Drive: fmt::Debug + Send + Sync {
    /// Names the store in error texts.
    fn describe(&self) -> String;

    /// Returns the names of all shelves, in any order; none where the folder itself is not there.
    async fn shelves(&self) -> Result<Vec<String>>;

    /// Returns all files of a shelf, in any order; none where there is no such shelf.
    async fn files(&self, shelf: &str) -> Result<Vec<DriveFile>>;

    /// Stores a file in one step, and makes its shelf where it is missing.
    async fn put(&self, place: &Place, bytes: Bytes, mode: PutMode) -> Result<PutOutcome>;

    /// Reads what of a file lies in `range`, which is not empty, or nothing when there is no such file.
    async fn read(&self, place: &Place, range: Range<u64>) -> Result<Option<Bytes>>;

    /// Returns the size of a file as it is now, or nothing when there is no such file.
    async fn size(&self, place: &Place) -> Result<Option<u64>>;

    /// Waits for a file, as [`ObjectStore::wait_for`] does.
    async fn wait_for(&self, place: &Place, _patience: Duration) -> Result<Waited> {
        Ok(if self.size(place).await?.is_some() { Waited::Come } else { Waited::Unable })
    }

    /// Removes a file; succeeds when there is none.
    async fn remove(&self, place: &Place) -> Result<()>;
}

impl Place {
    /// Returns where the object of a key lies.
    pub(crate) fn of(key: &ObjectKey) -> Result<Self> {
        let text = key.as_str();
        let encoded = text.replace('/', "~");
        let Some(slash) = split_of(text) else {
            return Ok(Self { shelf: TOP.to_owned(), name: encoded });
        };
        let (shelf, name) = (&encoded[..slash], &encoded[slash + 1..]);
        if shelf.len() <= NAME_LENGTH && name.len() <= NAME_LENGTH {
            return Ok(Self { shelf: shelf.to_owned(), name: name.to_owned() });
        }
        // No service likes a dot at the end of a name.
        let cut = (1..=NAME_LENGTH_MAX.min(encoded.len() - 1))
            .rev()
            .find(|cut| !encoded[..*cut].ends_with(['.', '~']))
            .unwrap_or(1);
        let (shelf, name) = encoded.split_at(cut);
        if name.len() >= NAME_LENGTH_MAX {
            let detail = "it is longer than the names of this service may be";
            return Err(StorageError::InvalidKey { key: text.to_owned(), detail });
        }
        Ok(Self { shelf: shelf.to_owned(), name: format!("{CUT}{name}") })
    }

    /// Returns the key of the object that lies here; nothing where it is nobody's of ours.
    fn key(&self) -> Option<ObjectKey> {
        let text = match (self.shelf.as_str(), self.name.strip_prefix(CUT)) {
            (TOP, _) => self.name.clone(),
            (shelf, Some(rest)) => format!("{shelf}{rest}"),
            (shelf, None) => format!("{shelf}~{}", self.name),
        };
        let key = ObjectKey::new(&text.replace('~', "/")).ok()?;
        (Self::of(&key).ok()? == *self).then_some(key)
    }
}

/// Returns the slash of a key that ends the name of its shelf.
fn split_of(text: &str) -> Option<usize> {
    let last = text.rfind('/')?;
    let before = text[..last].rfind('/').unwrap_or(0);
    let folder = text[before..last].trim_start_matches('/');
    let is_number = folder.len() == 20 && folder.bytes().all(|byte| byte.is_ascii_digit());
    Some(if is_number && before > 0 { before } else { last })
}

/// Returns what all keys of a shelf begin with.
fn beginning(shelf: &str) -> String {
    if shelf == TOP { String::new() } else { shelf.replace('~', "/") }
}

/// What this handle did last, for lists that do not know of it yet.
#[derive(Debug, Default)]
struct Recent {
    is_there: HashMap<ObjectKey, bool>,
    order: VecDeque<ObjectKey>,
}

impl Recent {
    fn note(&mut self, key: &ObjectKey, is_there: bool) {
        if self.is_there.insert(key.clone(), is_there).is_none() {
            self.order.push_back(key.clone());
        }
        if self.order.len() > RECENT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.is_there.remove(&oldest);
        }
    }
}

/// A store on the shelves of a service.
#[derive(Debug)]
pub(crate) struct ShelfStore<D> {
    drive: D,
    recent: Mutex<Recent>,
}

/// What a list wants.
struct Wanted<'a> {
    prefix: &'a str,
    start_after: &'a str,
}

impl Wanted<'_> {
    fn includes(&self, key: &ObjectKey) -> bool {
        key.as_str().starts_with(self.prefix) && key.as_str() > self.start_after
    }

    /// Returns whether a shelf whose keys begin so may hold a key that is wanted.
    fn may_include(&self, beginning: &str) -> bool {
        let fits = beginning.starts_with(self.prefix) || self.prefix.starts_with(beginning);
        let end = self.start_after.get(..beginning.len()).unwrap_or(self.start_after);
        fits && end <= beginning
    }
}

impl<D: Drive> ShelfStore<D> {
    pub(crate) fn new(drive: D) -> Self {
        Self { drive, recent: Mutex::default() }
    }

    /// Reads one shelf, and sets right what its list does not know yet.
    async fn shelf(&self, shelf: &str, wanted: &Wanted<'_>) -> Result<BTreeMap<ObjectKey, u64>> {
        let mut found = BTreeMap::new();
        for file in self.drive.files(shelf).await? {
            let place = Place { shelf: shelf.to_owned(), name: file.name };
            if let Some(key) = place.key().filter(|key| wanted.includes(key)) {
                found.insert(key, file.size);
            }
        }
        let doubtful: Vec<(ObjectKey, Place)> = {
            let recent = self.recent.lock();
            let differs = |(key, is_there): (&ObjectKey, &bool)| {
                let place = Place::of(key).ok().filter(|place| place.shelf == shelf)?;
                let is_doubtful = wanted.includes(key) && found.contains_key(key) != *is_there;
                is_doubtful.then(|| (key.clone(), place))
            };
            recent.is_there.iter().filter_map(differs).collect()
        };
        for (key, place) in doubtful {
            match self.drive.size(&place).await? {
                Some(size) => found.insert(key, size),
                None => found.remove(&key),
            };
        }
        Ok(found)
    }

    /// Returns the shelves that may hold what is wanted, in the order of their keys.
    async fn shelves(&self, wanted: &Wanted<'_>) -> Result<Vec<(String, String)>> {
        let mut names: BTreeSet<String> = self.drive.shelves().await?.into_iter().collect();
        let recent = self.recent.lock();
        let written = recent.is_there.iter().filter(|(_, is_there)| **is_there);
        names.extend(written.filter_map(|(key, _)| Some(Place::of(key).ok()?.shelf)));
        let shelves = names.into_iter().map(|shelf| (beginning(&shelf), shelf));
        let mut shelves: Vec<_> =
            shelves.filter(|(beginning, _)| wanted.may_include(beginning)).collect();
        shelves.sort_unstable();
        Ok(shelves)
    }
}

#[async_trait]
impl<D: Drive> ObjectStore for ShelfStore<D> {
    fn describe(&self) -> String {
        self.drive.describe()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        check_size(key, bytes.len() as u64)?;
        let outcome = self.drive.put(&Place::of(key)?, bytes, mode).await?;
        self.recent.lock().note(key, true);
        Ok(outcome)
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        whole(key, self.drive.read(&Place::of(key)?, WHOLE).await?)
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        match askable(&range) {
            Some(range) => self.drive.read(&Place::of(key)?, range).await,
            None => Ok(self.size(key).await?.map(|_| Bytes::new())),
        }
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        self.drive.size(&Place::of(key)?).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        check_prefix(prefix)?;
        let wanted = Wanted { prefix, start_after: start_after.unwrap_or("") };
        let shelves = self.shelves(&wanted).await?;
        let mut found: BTreeMap<ObjectKey, u64> = BTreeMap::new();
        let read = |(_, shelf): &(String, String)| {
            let (shelf, wanted) = (shelf.clone(), &wanted);
            async move { self.shelf(&shelf, wanted).await }
        };
        let mut pages = stream::iter(shelves.iter().map(read)).buffered(SHELVES_AT_ONCE);
        let mut next = shelves.iter().skip(1);
        while let Some(page) = pages.next().await {
            found.extend(page?);
            // All keys of the shelves that follow come later than what the next one begins with.
            let is_enough = next.next().is_some_and(|(beginning, _)| {
                found.keys().take_while(|key| key.as_str() < beginning.as_str()).count() >= limit
            });
            if is_enough {
                break;
            }
        }
        let entries = found.into_iter().map(|(key, size)| ObjectEntry { key, size });
        Ok(entries.take(limit).collect())
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        self.drive.remove(&Place::of(key)?).await?;
        self.recent.lock().note(key, false);
        Ok(())
    }

    async fn wait_for(&self, key: &ObjectKey, patience: Duration) -> Result<Waited> {
        self.drive.wait_for(&Place::of(key)?, patience).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(key: &str) -> (String, String) {
        let key = ObjectKey::new(key).unwrap();
        let place = Place::of(&key).unwrap();
        assert_eq!(place.key(), Some(key));
        (place.shelf, place.name)
    }

    #[test]
    fn every_key_has_one_place_and_every_place_one_key() {
        let slot = "0".repeat(20);
        let of = |shelf: &str, name: &str| (shelf.to_owned(), name.to_owned());
        assert_eq!(place("genesis"), of(TOP, "genesis"));
        assert_eq!(place("packs/ab/abcd"), of("packs~ab", "abcd"));
        assert_eq!(place(&format!("w/log/{slot}/r0")), of("w~log", &format!("{slot}~r0")));
        assert_eq!(place(&format!("{slot}/r0")), of(&slot, "r0"));
        for (count, last) in [(3, 1), (3, 90), (3, 120), (2, 40)] {
            let long = format!("{}/{}", vec!["x".repeat(120); count].join("/"), "y".repeat(last));
            let (shelf, name) = place(&long);
            assert!(shelf.len() <= NAME_LENGTH_MAX && name.len() <= NAME_LENGTH_MAX, "{long}");
        }
        let longest = format!("{0}/{0}/{0}/{1}", "x".repeat(127), "y".repeat(128));
        assert!(Place::of(&ObjectKey::new(&longest).unwrap()).is_err());
        for (shelf, name) in [(TOP, "+x"), ("a", "+b"), ("a", "b~c"), ("a~b", "C"), ("", "x")] {
            assert_eq!(Place { shelf: shelf.into(), name: name.into() }.key(), None, "{shelf}");
        }
    }

    #[test]
    fn shelves_that_cannot_hold_what_is_wanted_are_not_asked() {
        let wanted = Wanted { prefix: "packs/a", start_after: "packs/ab/x" };
        for (beginning, may) in [
            ("packs/ab", true),
            ("packs/ac", true),
            ("packs", true),
            ("", true),
            ("packs/aa", false),
            ("packs/b", false),
            ("pages", false),
        ] {
            assert_eq!(wanted.may_include(beginning), may, "{beginning}");
        }
    }
}
