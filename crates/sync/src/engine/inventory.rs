//! What the log says is stored, and which versions of which files are made of what is not there any more.

use std::collections::HashSet;

use model::fold::fold;
use model::{ChunkId, NodeId, NodeKind, Outcome, PackId, PackRef, RelativePath, Tree};

use super::Engine;
use crate::error::Result;

/// How many packs are looked up at once.
const PACKS_PAGE: usize = 1024;

/// A version of a file that cannot be brought back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LostVersion {
    /// Where the file was after that version.
    pub path: RelativePath,
    /// The entry that brought it.
    pub seq: u64,
    /// Whether it is what the workspace has now, and not only history.
    pub is_current: bool,
}

impl Engine {
    /// Returns every pack that the log names and that rests in the store, in the order of their ids.
    ///
    /// # Errors
    /// As [`Self::fetch`].
    pub async fn stored_packs(&mut self) -> Result<Vec<PackRef>> {
        self.fetch().await?;
        let mut packs = Vec::new();
        let mut after = None;
        loop {
            let page = self.state.pack_page(after.as_ref(), PACKS_PAGE)?;
            let Some(last) = page.last() else { return Ok(packs) };
            after = Some(last.id);
            let stored = page.iter().filter(|pack| pack.place.inline_seq.is_none());
            packs.extend(stored.map(|pack| PackRef { id: pack.id, length: pack.place.length }));
        }
    }

    /// Names every version of every file that is made of chunks in `lost`, or in packs that cannot be read.
    ///
    /// # Errors
    /// [`crate::SyncError`].
    pub async fn versions_made_of(&mut self, lost: &HashSet<PackId>) -> Result<Vec<LostVersion>> {
        self.learn_whole_log().await?;
        self.fetcher.index_packs(&mut self.state).await?;
        let dropped = self.dropped()?;
        let mut tree = Tree::default();
        let mut named = Vec::new();
        for seq in 1..=self.head()?.seq {
            let Some(entry) = self.state.entry(seq)? else { continue };
            let Ok(folded) = fold(&mut tree, &entry, &self.keys);
            if folded.void.is_some() {
                continue;
            }
            for (change, outcome) in entry.commit.changes.iter().zip(&folded.outcomes) {
                let Outcome::Accepted { version } = outcome else { continue };
                // What a cleanup has removed is not lost.
                if dropped.versions.contains_key(&(change.node, *version)) {
                    continue;
                }
                let Some(node) = tree.get(&change.node).filter(|node| node.is_alive()) else {
                    continue;
                };
                let kind = node.record.kind.clone();
                let Ok(Some(path)) = model::tree::path_of(&tree, &change.node) else { continue };
                if self.is_made_of(&kind, lost).await? {
                    named.push((change.node, *version, path, seq));
                }
            }
        }
        let is_current = |node: &NodeId, version: u64| {
            tree.get(node).is_some_and(|now| now.is_alive() && now.version == version)
        };
        let mut versions: Vec<LostVersion> = named
            .into_iter()
            .map(|(node, version, path, seq)| LostVersion {
                path,
                seq,
                is_current: is_current(&node, version),
            })
            .collect();
        versions.sort();
        Ok(versions)
    }

    async fn is_made_of(&mut self, kind: &NodeKind, lost: &HashSet<PackId>) -> Result<bool> {
        let NodeKind::File(content) = kind else { return Ok(false) };
        let chunks = match self.fetcher.expand(&self.state, content).await {
            Ok(chunks) => chunks,
            Err(error) if error.is_of_stored_data() => return Ok(true),
            Err(error) => return Err(error),
        };
        // What the chunks are made from counts, too, each once.
        let mut unseen: Vec<ChunkId> = chunks.iter().map(|chunk| chunk.id).collect();
        let mut seen: HashSet<ChunkId> = unseen.iter().copied().collect();
        let has_bases = self.state.has_bases()?;
        while let Some(chunk) = unseen.pop() {
            let Some(place) = self.state.chunk(&chunk)? else { return Ok(true) };
            let pack = self.state.pack(place.pack)?;
            if pack.is_none_or(|pack| lost.contains(&pack.id)) {
                return Ok(true);
            }
            if has_bases {
                let bases = self.state.bases(place)?.into_iter().map(|base| base.id);
                unseen.extend(bases.filter(|base| seen.insert(*base)));
            }
        }
        Ok(false)
    }
}
