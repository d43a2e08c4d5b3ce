//! Finds out by experiment what a store can do, because what its maker says and what it does may differ.
//!
//! The experiments use keys under `probe/<token>/` and delete them at the end, whatever happened. They show what the
//! store did now, not what it does under load or after a failure of its own.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;

use crate::error::{Result, StorageError};
use crate::key::ObjectKey;
use crate::object_store::{ObjectStore, PutMode, PutOutcome, list_all};

/// How a probe is made.
#[derive(Debug, Clone)]
pub struct ProbeOptions {
    /// Random text that no other probe of the store uses: letters `a-z`, digits, `-`.
    pub token: String,
    /// Largest object to try, in bytes.
    pub object_size_max: u64,
}

/// What a store did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProbeReport {
    /// Of several puts to an absent key at once, exactly one was told that it wrote, and its bytes stayed.
    pub creates_if_absent: bool,
    /// A read right after a write gave the written bytes, also after an overwrite.
    pub reads_after_write: bool,
    /// A list right after writes contained all of them.
    pub lists_after_write: bool,
    /// Lists came in the byte order of keys, and could be continued.
    pub lists_in_order: bool,
    /// A part of an object could be read.
    pub reads_ranges: bool,
    /// A deleted object was gone.
    pub deletes: bool,
    /// Size of the largest object that came back unchanged.
    pub object_size: u64,
    /// What was seen where an experiment failed.
    pub notes: Vec<String>,
}

impl ProbeReport {
    /// Returns whether packs may be kept here.
    pub fn may_hold_data(&self) -> bool {
        self.reads_after_write && self.reads_ranges && self.object_size >= PACK_SIZE_EXPECTED
    }

    /// Returns whether the store may take part in agreement on the log, with the fast put-if-absent.
    pub fn may_take_part_in_agreement(&self) -> bool {
        self.creates_if_absent && self.reads_after_write
    }

    /// Returns the result in words, one line per finding.
    pub fn words(&self) -> Vec<String> {
        let verdict =
            |may: bool, what: &str| format!("{} {what}", if may { "may" } else { "may not" });
        let mut words = vec![
            verdict(self.may_hold_data(), "hold data"),
            verdict(self.may_take_part_in_agreement(), "take part in agreement"),
        ];
        for (can, what) in [
            (self.creates_if_absent, "create only when absent"),
            (self.reads_after_write, "read what was just written"),
            (self.lists_after_write, "list what was just written"),
            (self.lists_in_order, "list in order and page by page"),
            (self.reads_ranges, "read a part of an object"),
            (self.deletes, "delete"),
        ] {
            words.push(format!("{} {what}", if can { "can" } else { "cannot" }));
        }
        words.push(format!("largest object tried and read back: {} bytes", self.object_size));
        words.extend(self.notes.iter().cloned());
        words
    }
}

/// How often, by how many, and with how many bytes it is tried to create one object at once.
const RACES: usize = 4;
const RACERS: u8 = 4;
const RACE_SIZE: usize = 64 << 10;

/// Size of a pack, with room for one more chunk.
const PACK_SIZE_EXPECTED: u64 = 8 << 20;

/// Probes `store`.
///
/// # Errors
/// [`StorageError::InvalidKey`] for a bad token, and whatever keeps the store from being reached or written at all;
/// an ability that is missing is a finding, not an error.
pub async fn probe(store: Arc<dyn ObjectStore>, options: &ProbeOptions) -> Result<ProbeReport> {
    let prefix = format!("probe/{}/", options.token);
    ObjectKey::new(&format!("{prefix}x"))?;
    let mut probe =
        Probe { store: store.as_ref(), prefix, report: ProbeReport::default(), keys: Vec::new() };
    let result = probe.run(options.object_size_max).await;
    let cleaned = probe.clean_up().await;
    result?;
    cleaned?;
    Ok(probe.report)
}

struct Probe<'a> {
    store: &'a dyn ObjectStore,
    prefix: String,
    report: ProbeReport,
    /// Everything that may have been written, because a store that cannot list must be cleaned too.
    keys: Vec<ObjectKey>,
}

impl Probe<'_> {
    async fn run(&mut self, object_size_max: u64) -> Result<()> {
        self.report.reads_after_write = self.reads_after_write().await?;
        let created = self.creates_if_absent().await;
        self.report.creates_if_absent = self.finding("create if absent", created)?;
        let ranges = self.reads_ranges().await;
        self.report.reads_ranges = self.finding("ranges", ranges)?;
        let (listed, ordered) = match self.lists().await {
            Ok(found) => found,
            Err(error) => (self.finding("list", Err(error))?, false),
        };
        self.report.lists_after_write = listed;
        self.report.lists_in_order = ordered;
        self.sizes(object_size_max).await?;
        let deleted = self.deletes().await;
        self.report.deletes = self.finding("delete", deleted)?;
        Ok(())
    }

    /// Turns a failed experiment into a note, unless the store cannot be reached: then nothing was found out.
    fn finding(&mut self, what: &str, result: Result<bool>) -> Result<bool> {
        match result {
            Ok(found) => Ok(found),
            Err(error) if error.is_retryable() => Err(error),
            Err(error) => {
                self.report.notes.push(format!("{what}: {error}"));
                Ok(false)
            }
        }
    }

    fn key(&mut self, name: &str) -> ObjectKey {
        let key = ObjectKey::new(&format!("{}{name}", self.prefix)).expect("prefix was checked");
        self.keys.push(key.clone());
        key
    }

    async fn reads_after_write(&mut self) -> Result<bool> {
        let key = self.key("read");
        for text in ["first", "second, longer"] {
            self.store.put(&key, text.into(), PutMode::Overwrite).await?;
            if self.store.get(&key).await?.as_deref() != Some(text.as_bytes()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn creates_if_absent(&mut self) -> Result<bool> {
        // A race can be won by luck; several in a row hardly.
        for round in 0..RACES {
            let key = self.key(&format!("create-{round}"));
            // Long bodies are on their way at the same time also where a store looks first and reads then.
            let bodies: Vec<Bytes> =
                (0..RACERS).map(|racer| vec![racer; RACE_SIZE].into()).collect();
            let puts =
                bodies.iter().map(|body| self.store.put(&key, body.clone(), PutMode::IfAbsent));
            let outcomes: Vec<PutOutcome> =
                join_all(puts).await.into_iter().collect::<Result<_>>()?;
            let written = |outcome: &&(&PutOutcome, &Bytes)| *outcome.0 == PutOutcome::Written;
            let told: Vec<_> = outcomes.iter().zip(&bodies).collect();
            let winners: Vec<_> = told.iter().filter(written).collect();
            let [(_, winner)] = winners[..] else {
                let count = winners.len();
                self.report.notes.push(format!(
                    "create if absent: of {RACERS} puts at once, {count} were told that they wrote"
                ));
                return Ok(false);
            };
            let late = self.store.put(&key, "late".into(), PutMode::IfAbsent).await?;
            let found = self.store.get(&key).await?;
            if late != PutOutcome::Exists || found.as_ref() != Some(*winner) {
                self.report.notes.push("create if absent: an object was replaced".to_owned());
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn reads_ranges(&mut self) -> Result<bool> {
        let key = self.key("range");
        self.store.put(&key, "0123456789".into(), PutMode::Overwrite).await?;
        let middle = self.store.get_range(&key, 3..6).await?;
        let end = self.store.get_range(&key, 8..20).await?;
        let tail = self.store.get_tail(&key, 4).await?;
        Ok((middle.as_deref(), end.as_deref(), tail.as_deref())
            == (Some(b"345"), Some(b"89"), Some(b"6789")))
    }

    /// Returns whether lists are complete, and whether they are ordered.
    async fn lists(&mut self) -> Result<(bool, bool)> {
        let mut keys: Vec<ObjectKey> =
            ["b", "a", "c-d", "c/e", "c.f"].map(|name| self.key(&format!("list/{name}"))).into();
        for key in &keys {
            self.store.put(key, "x".into(), PutMode::Overwrite).await?;
        }
        keys.sort_unstable();
        let prefix = format!("{}list/", self.prefix);
        let first = self.store.list(&prefix, None, 3).await?;
        let start_after = first.last().map(|entry| entry.key.as_str());
        let rest = self.store.list(&prefix, start_after, 3).await?;
        let mut found: Vec<ObjectKey> =
            first.into_iter().chain(rest).map(|entry| entry.key).collect();
        let is_ordered = found == keys;
        if !is_ordered {
            found =
                list_all(self.store, &prefix).await?.into_iter().map(|entry| entry.key).collect();
            found.sort_unstable();
        }
        Ok((found == keys, is_ordered))
    }

    async fn sizes(&mut self, object_size_max: u64) -> Result<()> {
        let key = self.key("size");
        let mut size = 1 << 20;
        while size <= object_size_max {
            let length = usize::try_from(size).unwrap_or(usize::MAX);
            let bytes: Bytes = (0..length).map(|index| (index / 7 % 251) as u8).collect();
            let result = async {
                self.store.put(&key, bytes.clone(), PutMode::Overwrite).await?;
                Ok(self.store.get(&key).await? == Some(bytes))
            }
            .await;
            if !self.finding(&format!("object of {size} bytes"), result)? {
                break;
            }
            self.report.object_size = size;
            size *= 2;
        }
        Ok(())
    }

    async fn deletes(&mut self) -> Result<bool> {
        let key = self.key("delete");
        self.store.put(&key, "x".into(), PutMode::Overwrite).await?;
        self.store.delete(&key).await?;
        self.store.delete(&key).await?;
        Ok(self.store.get(&key).await?.is_none())
    }

    /// Deletes every key, and reports the first that resists only after trying all.
    async fn clean_up(&mut self) -> Result<()> {
        let mut first_error: Option<StorageError> = None;
        for key in &self.keys {
            if let Err(error) = self.store.delete(key).await {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }
}
