//! Cuts files into windows, as far as it is known where their chunks rest.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use model::{ChunkRef, Content, NodeId, NodeKind};

use super::window::{Piece, Source, Window};
use super::{Target, fatal_or};
use crate::engine::Engine;
use crate::error::{Result, SyncError};

/// How far the targets are cut.
#[derive(Default)]
pub(super) struct Cutter {
    /// Numbers of the targets that were not begun.
    waiting: VecDeque<usize>,
    /// The target that is being cut, and its chunks that are in no window.
    begun: Option<(Piece, VecDeque<ChunkRef>)>,
    window: Window,
}

/// What ended the cutting of a file.
enum Cut {
    /// Its end.
    File,
    /// The end of the window.
    Window,
    /// A chunk of which it is not known yet where it rests.
    NotYet,
}

impl Cutter {
    pub(super) fn new(targets: impl Iterator<Item = usize>) -> Self {
        Self { waiting: targets.collect(), ..Self::default() }
    }

    /// Returns whether everything is cut.
    pub(super) fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.begun.is_none() && self.window.pieces.is_empty()
    }
}

impl Engine {
    /// Cuts the next window. Writes links on the way, and notes what cannot be written. Where it is not known yet where a chunk
    /// rests, waits for that if `waits`, or returns nothing.
    pub(super) async fn cut(
        &mut self,
        cutter: &mut Cutter,
        targets: &[Target],
        failed: &mut BTreeMap<usize, (NodeId, SyncError)>,
        waits: bool,
    ) -> Result<Option<Window>> {
        loop {
            if let Some((piece, chunks)) = cutter.begun.take() {
                let (number, node) = (piece.target, targets[piece.target].node);
                match self.cut_file(cutter, piece, chunks, waits).await {
                    Ok(Cut::Window) => return Ok(Some(std::mem::take(&mut cutter.window))),
                    Ok(Cut::NotYet) => return Ok(None),
                    Ok(Cut::File) => {}
                    Err(error) if error.is_of_stored_data() => {
                        failed.insert(number, (node, error));
                    }
                    Err(error) => return Err(error),
                }
                continue;
            }
            let Some(&number) = cutter.waiting.front() else {
                let last = std::mem::take(&mut cutter.window);
                return Ok((!last.pieces.is_empty()).then_some(last));
            };
            let target = &targets[number];
            match &target.record.kind {
                NodeKind::File(content) => match self.wanted(content, waits).await {
                    Ok(None) => return Ok(None),
                    Ok(Some(chunks)) => {
                        let old = Arc::new(self.old_offsets(target).await);
                        let piece = Piece { target: number, chunks: Vec::new(), old };
                        cutter.begun = Some((piece, chunks));
                    }
                    Err(error) if error.is_of_stored_data() => {
                        failed.insert(number, (target.node, error));
                    }
                    Err(error) => return Err(error),
                },
                NodeKind::Symlink(link) => {
                    let file_system = &self.environment.file_system;
                    let staged = file_system.stage_link(target.token, link, target.record.modified);
                    if let Err(error) = staged {
                        failed.insert(number, (target.node, fatal_or(error)?));
                    }
                }
                NodeKind::Directory => {}
            }
            cutter.waiting.pop_front();
        }
    }

    /// Goes on with a file until its end, or that of the window.
    async fn cut_file(
        &mut self,
        cutter: &mut Cutter,
        mut piece: Piece,
        mut chunks: VecDeque<ChunkRef>,
        waits: bool,
    ) -> Result<Cut> {
        while let Some(chunk) = chunks.pop_front() {
            let source = match piece.old.get(&chunk) {
                Some(offset) => Source::Folder(*offset),
                None => match self.fetcher.place(&mut self.state, &chunk, waits).await? {
                    Some(place) => Source::Store(place),
                    None => {
                        chunks.push_front(chunk);
                        cutter.begun = Some((piece, chunks));
                        return Ok(Cut::NotYet);
                    }
                },
            };
            piece.chunks.push((chunk, source));
            if cutter.window.is_full_with(&chunk, source) {
                let (target, old) = (piece.target, Arc::clone(&piece.old));
                let next = Piece { target, chunks: Vec::new(), old };
                cutter.window.pieces.push((piece, false));
                cutter.begun = Some((next, chunks));
                return Ok(Cut::Window);
            }
        }
        cutter.window.pieces.push((piece, true));
        Ok(Cut::File)
    }

    /// Returns the chunks of a file; nothing where a list of chunks may be in a pack that is still to come.
    async fn wanted(
        &mut self,
        content: &Content,
        waits: bool,
    ) -> Result<Option<VecDeque<ChunkRef>>> {
        loop {
            match self.fetcher.expand(&self.state, content).await {
                Ok(chunks) => return Ok(Some(chunks.into())),
                Err(SyncError::ChunkMissing(_)) if self.fetcher.expects_packs() => {
                    if !waits {
                        return Ok(None);
                    }
                    self.fetcher.index_expected(&mut self.state).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns where chunks begin in the version in the folder, each where it is for the first time.
    async fn old_offsets(&mut self, target: &Target) -> HashMap<ChunkRef, u64> {
        let (mut offsets, mut offset) = (HashMap::new(), 0);
        let Some(base) = &target.base else { return offsets };
        // Without the old list everything is fetched; that is slower and no less right.
        for chunk in self.fetcher.expand(&self.state, base).await.unwrap_or_default() {
            offsets.entry(chunk).or_insert(offset);
            offset += u64::from(chunk.length);
        }
        offsets
    }
}
