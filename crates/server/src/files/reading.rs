//! Reads a file, or a part of it, piece by piece.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use content::{ChunkNamer, ContentStep, ContentWalk};
use futures_util::Stream;
use futures_util::stream::try_unfold;
use model::{ChunkRef, Content, WorkspaceId};
use tokio::sync::OwnedSemaphorePermit;

use super::opened::OpenRecords;
use super::packs::damaged_content;
use super::views::Reading;
use crate::app::{App, Share};
use crate::auth::Caller;
use crate::error::Result;
use crate::services::authorisation::Right;
use content::places::KnownPack;

/// How many chunks are looked for at once.
const CHUNKS_AT_ONCE: usize = 64;

/// About how many bytes of memory a reader takes: a record and a piece of it. Who reads photographs takes more.
pub(crate) const READER_MEMORY: u64 = 2 * 1024 * 1024;

/// To whom files are sent, and of whose share the memory is that they take until then.
#[derive(Debug, Clone)]
pub struct Recipient {
    app: Arc<App>,
    caller: Caller,
    workspace: WorkspaceId,
    share: Share,
}

impl Recipient {
    /// Somebody with an account.
    pub fn account(app: Arc<App>, caller: Caller, workspace: WorkspaceId) -> Self {
        let share = app.accounts.clone();
        Self { app, caller, workspace, share }
    }

    /// A stranger, who reads by the rights of a link.
    pub fn stranger(app: Arc<App>, link: Caller, workspace: WorkspaceId) -> Self {
        let share = app.strangers.clone();
        Self { app, caller: link, workspace, share }
    }

    /// Returns the share of the server that they take from.
    pub(crate) fn share(&self) -> &Share {
        &self.share
    }
}

/// Reads a part of a file.
#[derive(Debug)]
pub struct FileReader {
    app: Arc<App>,
    reading: Reading,
    namer: ChunkNamer,
    walk: ContentWalk,
    range: Range<u64>,
    /// Where the next chunk of the walk begins.
    offset: u64,
    queue: VecDeque<(ChunkRef, u64, Vec<KnownPack>)>,
    is_done: bool,
    open: OpenRecords,
    memory: OwnedSemaphorePermit,
}

impl FileReader {
    /// Begins to read the bytes of a range, which lies in the file.
    ///
    /// # Errors
    /// Those of [`App::view`]; damage, and whatever the store says.
    pub async fn open(recipient: Recipient, content: &Content, range: Range<u64>) -> Result<Self> {
        let memory = recipient.share.memory_for_body(READER_MEMORY).await?;
        Self::open_with(memory, recipient, content, range).await
    }

    /// Does the same with memory ([`READER_MEMORY`]) that was waited for before: who waits for it while holding more may wait for itself.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) async fn open_with(
        memory: OwnedSemaphorePermit,
        Recipient { app, caller, workspace, .. }: Recipient,
        content: &Content,
        range: Range<u64>,
    ) -> Result<Self> {
        let who = (app, caller, workspace);
        Self::open_on((memory, OpenRecords::default()), who, content, range).await
    }

    /// Begins to read a whole file that follows one which this has read to its end.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn follow(self, content: &Content) -> Result<Self> {
        let Reading { caller, workspace, .. } = self.reading;
        let who = (self.app, caller, workspace);
        Self::open_on((self.memory, self.open), who, content, 0..content.size).await
    }

    async fn open_on(
        (memory, open): (OwnedSemaphorePermit, OpenRecords),
        (app, caller, workspace): (Arc<App>, Caller, WorkspaceId),
        content: &Content,
        range: Range<u64>,
    ) -> Result<Self> {
        let reading = app.let_in(caller, workspace, Right::Read).await?;
        let namer = app.view_of(reading).await?.content_keys().namer();
        let walk = ContentWalk::new(content).map_err(|error| damaged_content(&error))?;
        let mut reader = Self {
            app,
            reading,
            namer,
            walk,
            is_done: range.is_empty(),
            range,
            offset: 0,
            queue: VecDeque::new(),
            open,
            memory,
        };
        reader.fill().await?;
        Ok(reader)
    }

    /// Returns the next piece; nothing at the end.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        if self.queue.is_empty() && !self.is_done {
            // A file may be read for hours, and its reader sent away meanwhile.
            let Reading { caller, workspace, .. } = self.reading;
            self.reading = self.app.let_in(caller, workspace, Right::Read).await?;
            self.fill().await?;
        }
        let Some((chunk, start, packs)) = self.queue.pop_front() else { return Ok(None) };
        let bytes =
            self.app.chunk(self.reading, (&chunk, &packs), &self.namer, &mut self.open).await?;
        let from = self.range.start.saturating_sub(start) as usize;
        let to = (self.range.end - start).min(bytes.len() as u64) as usize;
        Ok(Some(bytes.slice(from..to)))
    }

    /// Turns it into a stream of its pieces.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static {
        try_unfold(self, |mut reader| async move {
            match reader.next().await {
                Ok(Some(bytes)) => Ok(Some((bytes, reader))),
                Ok(None) => Ok(None),
                Err(error) => {
                    tracing::error!(%error, "a file that is being sent cannot be read to its end");
                    Err(std::io::Error::other(error))
                }
            }
        })
    }

    /// Looks for the next chunks that lie in the range.
    async fn fill(&mut self) -> Result<()> {
        let mut chunks = Vec::new();
        while !self.is_done && chunks.len() < CHUNKS_AT_ONCE {
            match self.walk.step().map_err(|error| damaged_content(&error))? {
                ContentStep::Chunk(chunk) => {
                    let start = self.offset;
                    self.offset += u64::from(chunk.length);
                    self.is_done = self.offset >= self.range.end;
                    if self.offset > self.range.start {
                        chunks.push((chunk, start));
                    }
                }
                ContentStep::List(list) if chunks.is_empty() => self.take_list(&list).await?,
                ContentStep::List(_) => break,
                ContentStep::End => self.is_done = true,
            }
        }
        let wanted: Vec<ChunkRef> = chunks.iter().map(|(chunk, _)| *chunk).collect();
        let found = self.app.locate(self.reading, &wanted).await?;
        let found = chunks.into_iter().zip(found);
        self.queue.extend(found.map(|((chunk, start), packs)| (chunk, start, packs)));
        Ok(())
    }

    async fn take_list(&mut self, list: &ChunkRef) -> Result<()> {
        let bytes = self.app.find_chunk(self.reading, list, &self.namer, &mut self.open).await?;
        self.walk.take_list(&bytes).map_err(|error| damaged_content(&error))
    }
}
