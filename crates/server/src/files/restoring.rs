//! Brings back what was: a version that is not the newest, or what was deleted.
//!
//! *Participants*: whoever asks; cleanups of devices, which remove the content of old versions at any moment. *Goals*: what is brought back
//! can be read. *Invariants*: nothing takes the place of what is there, and nothing is there again, whose bytes no pack has
//! that stays; a fence that comes after they were looked for lets them be looked for anew, and one that comes while it is committed refuses
//! the commit ([`model::fence`]). *Non-goals*: finding out by the log which versions a fence has dropped, which would have to be read
//! as a whole; whether the store still has a pack that the log names is found out by who reads it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use content::{ContentError, ContentStep, ContentWalk};
use model::codec::decode_message;
use model::{
    Action, Change, ChunkRef, Content, Head, NodeId, NodeKind, NodeRecord, PackId, WorkspaceId,
};

use super::opened::OpenRecords;
use super::packs::{damaged, damaged_content};
use super::reading::READER_MEMORY;
use super::views::Reading;
use super::writing::{Applied, Attempt, Packs, TRIES, busy, note};
use crate::app::App;
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::services::files::{Plan, View};

/// How many chunks are looked for at once, before others have their turn.
const CHUNKS_AT_ONCE: usize = 1024;

/// What was found out about what a plan brings back.
#[derive(Debug, Default)]
struct Looked {
    /// Up to where the log was known.
    heads: Vec<Head>,
    /// Packs that nobody can look into.
    closed: HashSet<PackId>,
    /// Nodes that cannot be read any more, and why.
    gone: HashMap<NodeId, ServerError>,
}

impl Looked {
    /// Leaves out of a plan what is gone.
    ///
    /// # Errors
    /// Why it is gone, where nothing is left.
    fn left(mut self, plan: Plan) -> Result<(Plan, Vec<Head>)> {
        let Plan { mut changes, subject, is_new } = plan;
        let first = changes.first().map(|change| change.node);
        changes.retain(|change| !self.gone.contains_key(&change.node));
        // Whoever asks for a file asks for that, though it takes a folder to come back into.
        let wanted = [Some(subject), first.filter(|_| changes.is_empty())];
        match wanted.iter().flatten().find_map(|node| self.gone.remove(node)) {
            Some(error) => Err(error),
            None => Ok((Plan { changes, subject, is_new }, self.heads)),
        }
    }
}

impl App {
    /// Carries out a plan that brings back what was. What of it cannot be read any more is left out, as where devices bring back a folder.
    ///
    /// # Errors
    /// [`ServerError::VersionDropped`] where a cleanup has removed what was asked for; as [`App::apply`].
    pub async fn bring_back(
        self: &Arc<Self>,
        caller: Caller,
        workspace: WorkspaceId,
        plan: impl Fn(&View) -> Result<Plan>,
    ) -> Result<Applied> {
        let author = self.let_write(caller, workspace).await?;
        let reading = author.reading;
        for _ in 0..TRIES {
            let view = self.view_of(reading).await?;
            let (planned, fence) = (plan(&view)?, view.fence());
            drop(view);
            let looked = self.look_for(reading, &planned.changes).await?;
            let turn = self.newest_turn(reading).await?;
            let view = turn.view().await;
            // Only a fence takes chunks away, and a log that went back to an older state, which is found out by its entries.
            let holds = view.fence() == fence && plan(&view)? == planned;
            drop(view);
            if !holds {
                continue;
            }
            let (left, rests_on) = looked.left(planned)?;
            let packs = Packs::resting_on(rests_on);
            match self.apply_with(&author, turn, packs, |_| Ok(left)).await? {
                Attempt::Done(applied) => return Ok(applied),
                Attempt::Lost | Attempt::Fenced => {}
            }
        }
        Err(busy("the workspace"))
    }

    /// Looks for the contents of all files that changes put.
    async fn look_for(&self, reading: Reading, changes: &[Change]) -> Result<Looked> {
        let mut looked = Looked::default();
        let mut open = OpenRecords::default();
        // As much as whoever reads the files one after the other takes.
        let _memory = self.memory_for_body(READER_MEMORY).await?;
        for change in changes {
            let Action::Put(payload) = &change.action else { continue };
            let record: NodeRecord = decode_message(payload).expect("it was made here");
            let NodeKind::File(content) = &record.kind else { continue };
            match self.find_chunks(reading, content, (&mut looked, &mut open)).await {
                Ok(()) => {}
                Err(Missing::Chunk(chunk)) => {
                    let error = self.why_missing(reading, chunk, (&record, &looked)).await?;
                    looked.gone.insert(change.node, error);
                }
                Err(Missing::Other(
                    error @ (ServerError::Storage { is_damage: true, .. }
                    | ServerError::TooMuchWork),
                )) => drop(looked.gone.insert(change.node, error)),
                Err(Missing::Other(error)) => return Err(error),
            }
        }
        Ok(looked)
    }

    /// Finds all chunks of a content in packs that stay, those of its lists among them.
    async fn find_chunks(
        &self,
        reading: Reading,
        content: &Content,
        (looked, open): (&mut Looked, &mut OpenRecords),
    ) -> Result<(), Missing> {
        let unsound = |error: ContentError| Missing::Other(damaged_content(&error));
        let mut walk = ContentWalk::new(content).map_err(unsound)?;
        loop {
            let (mut chunks, mut list) = (Vec::new(), None);
            let mut is_end = false;
            while !is_end && list.is_none() && chunks.len() < CHUNKS_AT_ONCE {
                match walk.step().map_err(unsound)? {
                    ContentStep::Chunk(chunk) => chunks.push(chunk),
                    ContentStep::List(chunk) => list = Some(chunk),
                    ContentStep::End => is_end = true,
                }
            }
            chunks.extend(list);
            self.find_all(reading, &chunks, looked).await?;
            if let Some(list) = list {
                let namer = self.view_of(reading).await?.content_keys().namer();
                let bytes = self.find_chunk(reading, &list, &namer, open).await?;
                walk.take_list(&bytes).map_err(unsound)?;
            }
            if is_end {
                return Ok(());
            }
        }
    }

    /// Finds chunks. Packs that nobody has looked into yet are looked into first if that is needed.
    async fn find_all(
        &self,
        reading: Reading,
        chunks: &[ChunkRef],
        looked: &mut Looked,
    ) -> Result<(), Missing> {
        let missing = |view: &View, looked: &mut Looked| {
            note(&mut looked.heads, view);
            chunks.iter().find(|chunk| !view.places().is_readable(chunk)).copied()
        };
        let view = self.view_of(reading).await?;
        let Some(chunk) = missing(&view, looked) else { return Ok(()) };
        let unindexed = view.places().unindexed();
        drop(view);
        if unindexed.iter().all(|pack| looked.closed.contains(&pack.id)) {
            return Err(Missing::Chunk(chunk));
        }
        self.index_packs(reading).await?;
        let view = self.view_of(reading).await?;
        looked.closed.extend(view.places().unindexed().iter().map(|pack| pack.id));
        missing(&view, looked).map_or(Ok(()), |chunk| Err(Missing::Chunk(chunk)))
    }

    /// Says why a chunk of a file is not there.
    async fn why_missing(
        &self,
        reading: Reading,
        chunk: ChunkRef,
        (record, looked): (&NodeRecord, &Looked),
    ) -> Result<ServerError> {
        // Where a pack cannot be looked into, or nothing was ever cleaned up, nobody knows that a cleanup has done it.
        let has_fence = self.view_of(reading).await?.fence() > 0;
        Ok(match has_fence && looked.closed.is_empty() {
            true => ServerError::VersionDropped { name: record.name.to_string() },
            false => damaged(format!("chunk {} is in no pack that can be looked into", chunk.id)),
        })
    }
}

/// Why a content was not found.
enum Missing {
    /// This chunk is in no pack, or what it is made from is in none.
    Chunk(ChunkRef),
    Other(ServerError),
}

impl From<ServerError> for Missing {
    fn from(error: ServerError) -> Self {
        Self::Other(error)
    }
}
