//! Takes up what an earlier run had put into the folder and had not yet written into the merge base.
//!
//! Between the two there is a moment in which the process may be killed. Then the files would look like new ones of this
//! device, and if the log has gone on meanwhile, like edits of their own: conflicts that nobody made. So before files are
//! put in place the state is told which ones, and in which version.

use model::codec::{Decoder, Encoder, decode_message, encode_message};
use model::{NodeId, NodeKind, NodeRecord};

use super::Engine;
use super::download::Target;
use crate::error::Result;
use crate::file_system::{FileError, FileKind, Stat};
use crate::overlay::OverlayNode;
use crate::plan::{Local, LocalMatter, Place, split};
use crate::prepare::{ToRead, read_matter};
use crate::state::SyncedNode;
use crate::state::synced::kind_of;

/// The fact that holds what is being put in place.
const INSTALLING: &str = "installing";

/// The fact that holds what is being moved, until the rows say so.
const MOVING: &str = "moving";

/// The fact that holds what is getting other attributes.
const SETTING: &str = "setting";

/// How often it is tried to read what may have been put in place: one error of a disk must make no conflict that nobody made.
const READS_MAX: usize = 3;

/// A record is shorter than this.
const RECORD_LENGTH_MAX: usize = 16 * 1024 * 1024;

impl Engine {
    /// Notes what is about to be put in place, together with the directories that were made for it.
    pub(super) fn note_installing(&mut self, targets: &[Target]) -> Result<()> {
        self.identify(&targets.iter().map(|target| target.node).collect::<Vec<_>>())?;
        let mut encoder = Encoder::default();
        self.encode_remote(&self.upload.new_directories, &mut encoder)?;
        for target in targets {
            encode_note(&target.node, target.version, &target.record, &mut encoder);
        }
        self.state.set_fact(INSTALLING, &encoder.into_bytes())
    }

    /// Notes which nodes are about to be moved to where they are remotely.
    pub(super) fn note_moving(&mut self, nodes: &[NodeId]) -> Result<()> {
        self.note_remote(MOVING, nodes)
    }

    /// Forgets which nodes were moved: the rows say so.
    pub(super) fn forget_moving(&mut self) -> Result<()> {
        if self.state.fact(MOVING)?.is_some() { self.state.forget_fact(MOVING) } else { Ok(()) }
    }

    /// Notes which nodes are about to get their remote attributes.
    pub(super) fn note_setting(&mut self, nodes: &[NodeId]) -> Result<()> {
        self.note_remote(SETTING, nodes)
    }

    /// Forgets which nodes got attributes: the rows say so.
    pub(super) fn forget_setting(&mut self) -> Result<()> {
        if self.state.fact(SETTING)?.is_some() { self.state.forget_fact(SETTING) } else { Ok(()) }
    }

    /// Adds the remote versions of nodes to a fact.
    fn note_remote(&mut self, fact: &str, nodes: &[NodeId]) -> Result<()> {
        if nodes.is_empty() {
            return Ok(());
        }
        self.identify(nodes)?;
        let mut encoder = Encoder::default();
        encoder.raw(&self.state.fact(fact)?.unwrap_or_default());
        self.encode_remote(nodes, &mut encoder)?;
        self.state.set_fact(fact, &encoder.into_bytes())
    }

    fn encode_remote(&self, nodes: &[NodeId], encoder: &mut Encoder) -> Result<()> {
        for node in nodes {
            if let Some(remote) = model::TreeStore::node(&self.state, node)? {
                encode_note(node, remote.version, &remote.record, encoder);
            }
        }
        Ok(())
    }

    /// Lets rows that say nothing of their files say which files they are, so that these are known again in their new
    /// places. With such a change time a scan reads them all the same.
    fn identify(&mut self, nodes: &[NodeId]) -> Result<()> {
        for node in nodes {
            let Some(found) = self.overlay.get(node) else { continue };
            let stat = found.stat.unproven();
            if let Some(row) = self.state.synced(node)?
                && row.stat.is_none()
                && row.pending.is_none()
            {
                self.state.set_synced(&SyncedNode { stat: Some(stat), ..row })?;
            }
        }
        Ok(())
    }

    /// Forgets what was noted: it is in the merge base.
    pub(super) fn forget_installing(&mut self) -> Result<()> {
        self.state.forget_fact(INSTALLING)
    }

    /// Writes into the merge base what an earlier run has done in the folder.
    pub(super) fn take_up_interrupted(&mut self) -> Result<()> {
        // What was moved comes first: it may be what something else was put into.
        for fact in [MOVING, SETTING, INSTALLING] {
            let Some(bytes) = self.state.fact(fact)? else { continue };
            // What is found in its place may not be durable there.
            self.environment.file_system.make_durable()?;
            self.in_transaction(|engine| {
                let mut decoder = Decoder::new(&bytes);
                while decoder.remaining() > 0 {
                    let node = NodeId::from_bytes(decoder.array()?);
                    let version = decoder.unsigned()?;
                    let record = decode_message(decoder.byte_string(RECORD_LENGTH_MAX)?)?;
                    engine.take_up(node, version, record)?;
                }
                engine.state.forget_fact(fact)
            })?;
        }
        self.in_transaction(Self::forget_trashed_suspects)
    }

    fn take_up(&mut self, node: NodeId, version: u64, record: NodeRecord) -> Result<()> {
        let row = self.state.synced(&node)?;
        if row.as_ref().is_some_and(|row| row.version >= version || row.pending.is_some()) {
            return Ok(());
        }
        let Some(stat) = self.found_at(&split(&record).0)? else {
            // Its directory may have been moved by a user; the scan will tell.
            self.put_by_us.push((node, version, record));
            return Ok(());
        };
        let mut is_same_file = false;
        if let Some(row) = row {
            let Some(old) = row.stat else { return Ok(()) };
            is_same_file = old.is_same_file(&stat);
            // What was to be replaced may look like what replaces it; but it is the file that it was.
            if is_same_file && (row.record.kind != record.kind || !is_of(&stat, &record)) {
                return self.take_up_move(row, &stat, record);
            }
            // Something else of this kind stands where it was to go.
            if !is_same_file && stat.kind == FileKind::Directory {
                return Ok(());
            }
        }
        // What was here before has the same content in both versions: whatever a user has made of it is an edit of this one, too.
        if !is_same_file && !self.is_what_was_put(node, &stat, &record)? {
            return Ok(());
        }
        // A directory may still have the mode that let files be put into it; then it has no base yet.
        let version = if stat.mode == record.mode { version } else { 0 };
        // A file is read again: it may be that of a user, which only looks the same.
        let stat = Some(stat).filter(|stat| stat.kind == FileKind::Directory);
        self.state.set_synced(&SyncedNode { node, version, record, stat, pending: None })?;
        self.state.remove_merged(&node)
    }

    /// Writes into the rows what an earlier run had put in place, and only a scan could find.
    pub(super) fn take_up_found(&mut self) -> Result<()> {
        for (node, version, record) in std::mem::take(&mut self.put_by_us) {
            let Some(row) = self.state.synced(&node)? else {
                self.take_up_as(node, version, record)?;
                continue;
            };
            let place = split(&record).0;
            let found = self.overlay.get(&node).filter(|found| found.local.place == place);
            if let Some(stat) = found.map(|found| found.stat)
                && row.pending.is_none()
            {
                self.take_up_move(row, &stat, record)?;
            }
        }
        Ok(())
    }

    /// Writes into a row where its file was moved to, if it is that file; whatever else differs is still to be done.
    fn take_up_move(&mut self, row: SyncedNode, stat: &Stat, record: NodeRecord) -> Result<()> {
        let is_it = row.stat.is_some_and(|old| is_renamed(&old, stat));
        if !is_it || row.record.is_same_place(&record) {
            return Ok(());
        }
        let mut row = SyncedNode { stat: None, ..row };
        row.record.parent = record.parent;
        row.record.name = record.name;
        self.state.set_synced(&row)
    }

    /// What a scan took for new, and is what an earlier run had put there, gets the id of that.
    fn take_up_as(&mut self, node: NodeId, version: u64, record: NodeRecord) -> Result<()> {
        let place = split(&record).0;
        let Some((other, stat)) = self.overlay.at(&place) else { return Ok(()) };
        let is_new = self.state.synced(&other)?.is_none()
            && model::TreeStore::node(&self.state, &other)?.is_none();
        if !is_new || stat.kind == FileKind::Directory {
            return Ok(());
        }
        if !self.is_what_was_put(node, &stat, &record)? {
            return Ok(());
        }
        self.overlay.forget(&other);
        let local = Local { place, kind: stat.kind, matter: LocalMatter::Touched };
        self.overlay.set(node, OverlayNode { local, stat });
        self.state.set_synced(&SyncedNode { node, version, record, stat: None, pending: None })?;
        self.state.remove_merged(&node)
    }

    /// Tells whether what stands at the place of a record is what would have been put there. A file is read for that, or one of a user
    /// that has the same size and time would count as an edit of it, and replace it everywhere.
    ///
    /// What cannot be read, or goes on changing, may be a user's as well and is not taken up: so it stays a file of its own or is kept as a
    /// copy, and what was put there comes anew. The scan reads the file once more. Both happen only after a run that was cut off, with what
    /// that had noted.
    fn is_what_was_put(&self, node: NodeId, stat: &Stat, record: &NodeRecord) -> Result<bool> {
        if !is_of(stat, record) {
            return Ok(false);
        }
        let chunk_size = match &record.kind {
            NodeKind::Directory => return Ok(true),
            NodeKind::File(content) => Some(content.chunk_size),
            NodeKind::Symlink(_) => None,
        };
        let Some(path) = self.trees().path_of_place(&split(record).0)? else { return Ok(false) };
        let file = ToRead { node, path, stat: *stat, chunk_size };
        for _ in 0..READS_MAX {
            let file_system = self.environment.file_system.clone();
            if let Some(found) = read_matter(file_system, &self.keys, file.clone())? {
                return Ok(found.kind == record.kind);
            }
        }
        Ok(false)
    }

    pub(super) fn found_at(&self, place: &Place) -> Result<Option<Stat>> {
        let Some(path) = self.trees().path_of_place(place)? else { return Ok(None) };
        match self.environment.file_system.stat(&path) {
            Ok(stat) => Ok(stat),
            // Not to know it is not to know that it is absent: what was put there would be taken for new.
            Err(error @ FileError::Other { .. }) => Err(error.into()),
            Err(_) => Ok(None),
        }
    }
}

/// Adds a node, in the version that it is about to have here.
fn encode_note(node: &NodeId, version: u64, record: &NodeRecord, encoder: &mut Encoder) {
    encoder.raw(node.as_bytes());
    encoder.unsigned(version);
    encoder.byte_string(&encode_message(record));
}

/// Tells whether this is the same file or directory, in another place.
fn is_renamed(old: &Stat, new: &Stat) -> bool {
    match new.kind {
        FileKind::Directory => old.is_same_file(new),
        _ => old.is_same_but_renamed(new),
    }
}

/// Tells whether this looks like what would have been put there for a record.
fn is_of(stat: &Stat, record: &NodeRecord) -> bool {
    stat.kind == kind_of(&record.kind)
        && match &record.kind {
            NodeKind::Directory => stat.mode & record.mode == record.mode,
            NodeKind::File(content) => {
                (stat.size, stat.mode, stat.modified)
                    == (content.size, record.mode, record.modified)
            }
            NodeKind::Symlink(_) => {
                stat.kind == FileKind::Symlink && stat.modified == record.modified
            }
        }
}

#[cfg(test)]
mod tests;
