//! Whether everything is as it should be: the rows of a database, and the objects that they name.
//!
//! *Goals*: every finding names what is wrong, and nothing is changed. *Non-goals*: mending. *Invariants*: what is looked at
//! is a copy of one moment ([`crate::metadata::copy`]); what could not be looked at is an error, not a finding.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;

use futures_util::{StreamExt, TryStreamExt, stream};
use model::codec::decode_message;
use model::decide::{Outcome, Versions, decide};
use model::fence::Condemned;
use model::{Entry, Head, NodeId, PackId, PlainOpener, WorkspaceId};
use storage::ObjectKey;

use super::scratch::Scratch;
use super::shelf::{Looked, Shelf, look};
use crate::Sqlite;
use crate::error::Result;
use crate::limits::ENTRIES_LENGTH_MAX;
use crate::metadata::commits::Wanted;
use crate::metadata::copy::copy_to_file;
use crate::metadata::{Metadata, MetadataError, WorkspaceRecord};
use crate::services::{sync_service, workspaces};

/// How many findings are listed; more are counted.
const DAMAGE_MAX: usize = 10_000;

/// How many rows are asked for at once.
const PAGE: usize = 1000;

/// How many objects are read at once.
const AT_ONCE: usize = 8;

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// What.
    pub what: String,
    /// What is wrong with it.
    pub reason: String,
    /// Which object, where it is one that the database knows.
    pub(super) object: Option<ObjectKey>,
}

/// What was looked at, and found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// How many workspaces there are.
    pub workspaces: u64,
    /// How many entries their logs have.
    pub entries: u64,
    /// How many objects the database knows.
    pub objects: u64,
    /// Their bytes.
    pub object_bytes: u64,
    /// How many bytes of objects were read and compared with their names.
    pub read_bytes: u64,
    /// How many objects are in the store and unknown to the database: uploads under way, and what a crash has left.
    pub strangers: u64,
    /// Their bytes.
    pub stranger_bytes: u64,
    /// What is wrong.
    pub damage: Vec<Damage>,
    /// How many more such lines there would be.
    pub damage_not_listed: u64,
}

impl Report {
    /// Tells whether nothing is wrong.
    pub fn is_well(&self) -> bool {
        self.damage.is_empty()
    }

    /// Tells whether anything that is missing is not named any more either: a cleanup went on meanwhile.
    pub(super) fn has_lost_what_is_not_needed(&self, live: &dyn Metadata) -> Result<bool> {
        for damage in &self.damage {
            if !damage.is_named_by(live)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Leaves out what is missing and not named any more either.
    pub(super) fn leave_out_what_is_not_needed(&mut self, live: &dyn Metadata) -> Result<()> {
        let mut damage = Vec::with_capacity(self.damage.len());
        for one in self.damage.drain(..) {
            if one.is_named_by(live)? {
                damage.push(one);
            }
        }
        self.damage = damage;
        Ok(())
    }

    fn add(&mut self, damage: Damage) {
        match self.damage.len() < DAMAGE_MAX {
            true => self.damage.push(damage),
            false => self.damage_not_listed += 1,
        }
    }
}

impl Damage {
    /// Tells whether the database still has what this is about. What is no object, it has.
    fn is_named_by(&self, live: &dyn Metadata) -> Result<bool> {
        let Some(key) = &self.object else { return Ok(true) };
        let Some(workspace) = live.workspace(self.workspace)? else { return Ok(false) };
        Ok(live.object_length(workspace.number, key.as_str())?.is_some())
    }
}

/// Looks at a server as it is now, whether it runs or not.
///
/// # Errors
/// As [`verify`].
pub fn verify_live(
    live: &mut dyn Metadata,
    shelf: &Shelf,
    scratch: &Scratch,
    read_data: bool,
) -> Result<Report> {
    let file = scratch.file("copy.sqlite")?;
    copy_to_file(live, &file)?;
    let mut report = verify(&Sqlite::open_reader(&file)?, shelf, read_data)?;
    report.leave_out_what_is_not_needed(live)?;
    Ok(report)
}

/// Looks at everything that a copy of a database has, and whether the store has what it names; with `read_data` also at its bytes.
///
/// # Errors
/// Where database or store cannot be read at all.
pub fn verify(metadata: &dyn Metadata, shelf: &Shelf, read_data: bool) -> Result<Report> {
    let mut report = Report::default();
    for account in metadata.accounts()? {
        for workspace in metadata.workspaces(account.id)? {
            report.workspaces += 1;
            Look { metadata, shelf, read_data, workspace: &workspace, report: &mut report }
                .everything()?;
        }
    }
    Ok(report)
}

/// A look at one workspace.
struct Look<'a> {
    metadata: &'a dyn Metadata,
    shelf: &'a Shelf,
    read_data: bool,
    workspace: &'a WorkspaceRecord,
    report: &'a mut Report,
}

/// What a log says.
#[derive(Default)]
struct Told {
    condemned: Condemned,
    packs: BTreeMap<PackId, u64>,
    versions: Known,
    length: u64,
}

#[derive(Default)]
struct Known(HashMap<NodeId, u64>);

impl Versions for Known {
    type Error = Infallible;

    fn version(&self, node: &NodeId) -> Result<u64, Infallible> {
        Ok(self.0.get(node).copied().unwrap_or(0))
    }
}

impl Look<'_> {
    fn damage(&mut self, what: impl Into<String>, reason: impl Into<String>) {
        let (what, reason) = (what.into(), reason.into());
        self.report.add(Damage { workspace: self.workspace.id, what, reason, object: None });
    }

    fn damaged_object(&mut self, key: ObjectKey, reason: String) {
        let (workspace, what) = (self.workspace.id, key.to_string());
        self.report.add(Damage { workspace, what, reason, object: Some(key) });
    }

    /// Notes damage of a row, and returns the value of one that is whole.
    fn row<T>(&mut self, what: &str, read: Result<T>) -> Result<Option<T>> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(crate::ServerError::Metadata(MetadataError::Damaged { detail, .. })) => {
                self.damage(what, detail);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn everything(&mut self) -> Result<()> {
        let Some(told) = self.log()? else { return Ok(()) };
        self.versions(&told)?;
        self.checkpoint()?;
        let stored = self.objects(&told)?;
        let number = self.workspace.number;
        for (pack, length) in &told.packs {
            let key = ObjectKey::pack(*pack);
            let is_condemned = told.condemned.contains(pack);
            if !is_condemned && self.metadata.object_length(number, key.as_str())? != Some(*length)
            {
                self.damage(key.to_string(), "the log names it, and the database does not know it");
            }
        }
        let held = told.length + stored + self.metadata.reserved_bytes(number)?;
        let counted = self.workspace.used_bytes;
        if held != counted {
            self.damage("used bytes", format!("the database counts {counted} and holds {held}"));
        }
        Ok(())
    }

    /// Reads the log from its genesis to its end; nothing where it breaks off, since nothing more can be said then.
    fn log(&mut self) -> Result<Option<Told>> {
        let genesis = workspaces::genesis(self.metadata, self.workspace);
        let Some(genesis) = self.row("genesis", genesis)? else { return Ok(None) };
        let (mut told, mut head) = (Told::default(), genesis.head());
        loop {
            let number = self.workspace.number;
            let page = self.metadata.entries(number, head.seq, ENTRIES_LENGTH_MAX)?;
            if page.is_empty() {
                break;
            }
            for bytes in page {
                let what = format!("entry {}", head.seq + 1);
                let entry = sync_service::stored_entry(&bytes, self.workspace);
                let Some(entry) = self.row(&what, entry)? else { return Ok(None) };
                if !entry.follows(&head) {
                    self.damage(what, "it does not follow the entry before it");
                    return Ok(None);
                }
                let row = self.metadata.entry_hash(number, entry.seq).map_err(Into::into);
                let hash = entry.hash();
                if let Some(row) = self.row(&what, row)?
                    && row != Some(hash)
                {
                    self.damage(what, "its row holds another hash");
                }
                told.length += bytes.len() as u64;
                told.note(&entry, &head);
                head = Head { seq: entry.seq, hash };
                self.report.entries += 1;
            }
        }
        if head != self.workspace.head {
            let reason =
                format!("its row says {}, and it ends at {}", self.workspace.head.seq, head.seq);
            self.damage("end of the log", reason);
        }
        Ok(Some(told))
    }

    /// Compares the versions that decide about the next commits with those that the log leads to.
    fn versions(&mut self, told: &Told) -> Result<()> {
        let number = self.workspace.number;
        let mut wanted: Vec<_> = told.versions.0.keys().map(|node| (number, *node)).collect();
        wanted.sort_unstable_by_key(|(_, node)| *node.as_bytes());
        for page in wanted.chunks(PAGE) {
            let found = self
                .metadata
                .find(&Wanted { versions: page.to_vec(), ..Wanted::default() })?
                .versions;
            for key in page {
                let (row, log) = (found.get(key).copied().unwrap_or(0), told.versions.0[&key.1]);
                if row != log {
                    let reason = format!("its row says {row}, and the log leads to {log}");
                    self.damage(format!("version of node {}", key.1), reason);
                }
            }
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<()> {
        let number = self.workspace.number;
        let Some((_, bytes)) = self.metadata.checkpoint(number)? else { return Ok(()) };
        let checkpoint: model::checkpoint::Checkpoint = match decode_message(&bytes) {
            Ok(checkpoint) => checkpoint,
            Err(error) => {
                self.damage("checkpoint", error.to_string());
                return Ok(());
            }
        };
        let head = checkpoint.head;
        if head.seq > 0 && self.metadata.entry_hash(number, head.seq)? != Some(head.hash) {
            self.damage("checkpoint", format!("entry {} is not in the log", head.seq));
        }
        Ok(())
    }

    /// Compares the objects of the database with the store; returns how many bytes they have.
    fn objects(&mut self, told: &Told) -> Result<u64> {
        let (shelf, number) = (self.shelf, self.workspace.number);
        let scope = format!("workspaces/{}/", self.workspace.id);
        let mut walk = shelf.walk(scope.clone());
        let (mut after, mut length_all) = (String::new(), 0);
        loop {
            let page = self.metadata.objects(number, "", &after, PAGE)?;
            let mut there = Vec::new();
            for (text, length) in &page {
                self.report.objects += 1;
                length_all += length;
                let Ok(key) = ObjectKey::new(text) else {
                    self.damage(text, "it is no name of an object");
                    continue;
                };
                let inside = ObjectKey::new(&format!("{scope}{text}"))?;
                let size = walk.find(&inside, |stranger| self.report.stranger(stranger.size))?;
                match size {
                    Some(size) if size == *length => there.push((key, size)),
                    // A cleanup removes the object first, and its row then.
                    None if key.as_pack().is_some_and(|pack| told.condemned.contains(&pack)) => {}
                    None => self.damaged_object(key, "it is not in the store".to_owned()),
                    Some(size) => {
                        let reason = format!("it has {size} bytes in the store, and not {length}");
                        self.damaged_object(key, reason);
                    }
                }
            }
            if self.read_data {
                self.read(there)?;
            }
            match page.into_iter().next_back() {
                Some((last, _)) => after = last,
                None => break,
            }
        }
        while let Some(stranger) = walk.take()? {
            self.report.stranger(stranger.size);
        }
        self.report.object_bytes += length_all;
        Ok(length_all)
    }

    fn read(&mut self, objects: Vec<(ObjectKey, u64)>) -> Result<()> {
        let store = self.shelf.of(self.workspace.id);
        let store = &store;
        let read = stream::iter(objects)
            .map(|(key, length)| async move {
                look(store, &key, length).await.map(|looked| (key, length, looked))
            })
            .buffered(AT_ONCE)
            .map_ok(|(key, length, looked)| match looked {
                // Bytes that are right need not be kept.
                Looked::Whole(_) => (key, length, None),
                Looked::Unusable(reason) => (key, length, Some(reason)),
            })
            .try_collect::<Vec<_>>();
        for (key, length, reason) in self.shelf.wait(read)? {
            self.report.read_bytes += length;
            if let Some(reason) = reason {
                self.damaged_object(key, reason);
            }
        }
        Ok(())
    }
}

impl Report {
    fn stranger(&mut self, size: u64) {
        self.strangers += 1;
        self.stranger_bytes += size;
    }
}

impl Told {
    fn note(&mut self, entry: &Entry, previous: &Head) {
        self.condemned.note(entry, &PlainOpener);
        let Ok(outcomes) = decide(&self.versions, previous, &entry.commit);
        for (change, outcome) in entry.commit.changes.iter().zip(outcomes) {
            if let Outcome::Accepted { version } = outcome {
                self.versions.0.insert(change.node, version);
            }
        }
        self.packs.extend(entry.commit.packs.iter().map(|pack| (pack.id, pack.length)));
    }
}
