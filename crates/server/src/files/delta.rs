//! Deltas: new versions of files that come as what has changed in them, by the methods of [`content::delta`].
//!
//! *Participants*: the door of deltas; the packs of the old version; the writer, which commits as for any file. *Goals*: one request
//! for our own method, and nothing to remember between two; the old version is read in ranges, wherever it rests. *Non-goals*: sealed
//! workspaces, of which there is neither a view nor a witness. *Invariants*: a version is committed only after every new chunk has its id
//! and the list has its digest, or, of the rsync family, the whole has its hash; it takes the place of no other version than the
//! one that the sender knows; memory is reserved before it is used, in proportion to the chunk lists.
//!
//! The whole in words: `docs/design/delta.md`, "Over HTTP".

use std::sync::Arc;

use content::ChunkSizes;
use content::chunker::average_for;
use content::delta::{
    ChunkTable, DeltaError, Envelope, MessageKind, Plain, answer_sums, answer_symbols,
};
use content::{ContentError, ContentStep, ContentWalk};
use model::{ChunkRef, Content, WorkspaceId};
use tokio::sync::OwnedSemaphorePermit;

use super::Spooled;
use super::opened::OpenRecords;
use super::packs::damaged_content;
use super::views::{Author, Reading, ViewGuard};
use super::writing::{Applied, Attempt, Put, TRIES, busy, uncut};
use crate::app::App;
use crate::auth::Caller;
use crate::blocking;
use crate::error::{Result, ServerError};
use crate::limits::{BASE_CHUNKS_MAX, FILE_LENGTH_MAX};
use crate::services::authorisation::Right;
use crate::services::files::{FileNode, View};

mod assembling;
mod frames;
mod old;
mod sessions;

use assembling::Assembling;
use frames::Frames;
use old::PackedVersion;
pub(super) use sessions::Sessions;
use sessions::{Session, Side};

/// About how many bytes of memory a chunk of the old version takes: in two tables, and while its list is read.
const BASE_CHUNK_WEIGHT: u64 = 128;

/// How many bytes of memory work on a delta takes beside chunk lists and messages: records, what was agreed on in a session.
const WORK_WEIGHT: u64 = 4 * 1024 * 1024;

/// What became of a delta.
#[derive(Debug)]
pub enum DeltaAnswer {
    /// The new version was verified and committed.
    Put(Applied),
    /// Nothing was committed; the client goes on with this message.
    Message(Vec<u8>),
}

/// The version that a delta is against.
#[derive(Debug, Clone)]
struct Base {
    content: Content,
    plain: Plain,
}

impl Base {
    /// Lets a version take the place of this one only.
    fn check(&self, put: &Put, found: Option<&FileNode>) -> Result<()> {
        put.condition.check(&put.path, found)?;
        match found.and_then(FileNode::content) == Some(&self.content) {
            true => Ok(()),
            false => Err(wrong_base(put)),
        }
    }
}

fn wrong_base(put: &Put) -> ServerError {
    ServerError::WrongBase { path: put.path.to_string() }
}

/// Says what is wrong with a delta against what is at a path.
fn refused(error: DeltaError, put: &Put) -> ServerError {
    match error {
        DeltaError::WrongBase => wrong_base(put),
        DeltaError::Unverified => ServerError::Unverified { path: put.path.to_string() },
        DeltaError::TooLarge { max, .. } => {
            ServerError::TooLarge { what: "the new version", length_max: max }
        }
        DeltaError::MessageLength { max, .. } => {
            ServerError::TooLarge { what: "a message", length_max: max as u64 }
        }
        DeltaError::Write { source } => super::spool::failed(&source),
        DeltaError::Message { source } => {
            ServerError::Invalid { what: "delta", reason: source.to_string() }
        }
        DeltaError::Content { source: ContentError::TooManyChunks { max } } => too_many_chunks(max),
        DeltaError::Content { source } => uncut(&source),
        error => ServerError::Invalid { what: "delta", reason: error.to_string() },
    }
}

impl App {
    /// Returns the chunk list of a content, and the memory that is reserved for it.
    ///
    /// # Errors
    /// [`ServerError::TooLarge`] for too long a list; damage, and whatever the store says.
    pub async fn chunk_table(
        &self,
        caller: Caller,
        workspace: WorkspaceId,
        content: &Content,
    ) -> Result<(ChunkTable, OwnedSemaphorePermit)> {
        self.chunk_table_for(self.let_in(caller, workspace, Right::Read).await?, content).await
    }

    async fn chunk_table_for(
        &self,
        reading: Reading,
        content: &Content,
    ) -> Result<(ChunkTable, OwnedSemaphorePermit)> {
        let mut reserved = likely_chunks(content);
        let mut memory = self.memory_for_body(reserved * BASE_CHUNK_WEIGHT).await?;
        let namer = self.view_of(reading).await?.content_keys().namer();
        let mut walk = ContentWalk::new(content).map_err(|error| damaged_content(&error))?;
        let (mut chunks, mut open) = (Vec::new(), OpenRecords::default());
        loop {
            match walk.step().map_err(|error| damaged_content(&error))? {
                ContentStep::Chunk(_) if chunks.len() == BASE_CHUNKS_MAX => {
                    return Err(too_many_chunks(BASE_CHUNKS_MAX as u64));
                }
                ContentStep::Chunk(chunk) => {
                    // A device or a delta may name chunks that are shorter than ours are.
                    if chunks.len() as u64 == reserved {
                        let more = reserved.clamp(1, BASE_CHUNKS_MAX as u64 - reserved);
                        memory.merge(self.memory_for_body(more * BASE_CHUNK_WEIGHT).await?);
                        reserved += more;
                    }
                    chunks.push(chunk);
                }
                ContentStep::List(list) => {
                    let bytes = self.find_chunk(reading, &list, &namer, &mut open).await?;
                    walk.take_list(&bytes).map_err(|error| damaged_content(&error))?;
                }
                ContentStep::End => break,
            }
        }
        // An empty file may have been cut in no way; whoever adds to it must know one.
        let chunk_size = match ChunkSizes::around(content.chunk_size) {
            Ok(_) => content.chunk_size,
            Err(_) => average_for(content.size, false),
        };
        let table = ChunkTable::new(chunk_size, chunks).map_err(|error| damaged_content(&error))?;
        Ok((table, memory))
    }

    /// Takes what a client sends of a delta who was let in to write, and commits the new version once it is verified.
    ///
    /// # Errors
    /// Those of [`Self::put_file`]; [`ServerError::NotFound`] where no file is at the path; [`ServerError::WrongBase`];
    /// [`ServerError::Unverified`]; [`ServerError::SessionGone`]; [`ServerError::Invalid`] for messages that make no sense here.
    pub(crate) async fn take_delta(
        self: &Arc<Self>,
        author: Author,
        put: &Put,
        body: &Spooled,
    ) -> Result<DeltaAnswer> {
        let reading = author.reading;
        let first = body.clone();
        let first = blocking::piece(move || Frames::of(&first).only_first()).await??;
        let envelope = Envelope::of(&first).map_err(|error| refused(error, put))?;
        match envelope.kind {
            MessageKind::Chunks => self.make_version(author, put, body, None).await,
            MessageKind::Recipe | MessageKind::Literals => {
                let (whose, now) = ((reading.caller, reading.workspace), self.clock.elapsed());
                let session = self.files.sessions.take(whose, envelope.session, &put.path, now)?;
                self.make_version(author, put, body, Some(session)).await
            }
            MessageKind::Open
            | MessageKind::NewSums
            | MessageKind::AskSymbols
            | MessageKind::AskSums => {
                let alone = body.clone();
                blocking::piece(move || Frames::of(&alone).check_alone()).await??;
                self.answer_question(reading, put, first, envelope).await.map(DeltaAnswer::Message)
            }
        }
    }

    /// Returns the version that a delta is against: what is at the path now.
    async fn base_of(&self, reading: Reading, put: &Put) -> Result<(Base, ViewGuard)> {
        let view = self.view_of(reading).await?;
        let found = view.find(&put.path);
        put.condition.check(&put.path, found.as_ref())?;
        let node =
            found.ok_or_else(|| ServerError::NotFound { what: format!("'{}'", put.path) })?;
        let no_file =
            || ServerError::Conflict { what: format!("'{}'", put.path), reason: "is no file" };
        let content = node.content().ok_or_else(no_file)?.clone();
        let base = Base { content, plain: view.plain() };
        Ok((base, view))
    }

    /// Makes a new version of the messages of a body, which go on with a session or are a delta of our own method, and commits it.
    async fn make_version(
        self: &Arc<Self>,
        mut author: Author,
        put: &Put,
        body: &Spooled,
        session: Option<Session>,
    ) -> Result<DeltaAnswer> {
        for attempt in 0..TRIES {
            if attempt > 0 {
                let Reading { caller, workspace, .. } = author.reading;
                author = self.let_write(caller, workspace).await?;
            }
            let reading = author.reading;
            let (base, view) = self.base_of(reading, put).await?;
            if session.as_ref().is_some_and(|session| session.content != base.content) {
                return Err(wrong_base(put));
            }
            let is_indexed = view.places().unindexed().is_empty();
            drop(view);
            if !is_indexed {
                self.index_packs(reading).await?;
            }
            let (table, memory) = self.chunk_table_for(reading, &base.content).await?;
            let assembling = Assembling {
                old: PackedVersion::new(Arc::clone(self), reading, table.clone()),
                workspace: base.plain.workspace(),
                table,
                body: body.clone(),
                side: session.as_ref().map(|session| session.side.clone()),
            };
            let working = self.memory_for_body(assembling.weight()).await?;
            let view = self.view_of(reading).await?;
            let assemble = move |packing| assembling.run(packing);
            let (assembled, packs) = self.fill_packs(reading, view, assemble).await?;
            // A commit may wait for the disk, and others need the memory.
            drop((memory, working));
            let content = match assembled.map_err(|error| error.for_client(put))? {
                Ok(content) => content,
                Err(answer) => return Ok(DeltaAnswer::Message(answer)),
            };
            let plan = |view: &View| {
                base.check(put, view.find(&put.path).as_ref())?;
                self.plan_of_put(view, put, &content)
            };
            let turn = self.turn_of(reading).await?;
            match self.apply_with(&author, turn, packs, plan).await? {
                Attempt::Done(applied) => return Ok(DeltaAnswer::Put(applied)),
                Attempt::Lost | Attempt::Fenced => {}
            }
        }
        Err(busy(&put.path.to_string()))
    }

    /// Answers a message that asks for something, or begins a session.
    async fn answer_question(
        self: &Arc<Self>,
        reading: Reading,
        put: &Put,
        message: Vec<u8>,
        envelope: Envelope,
    ) -> Result<Vec<u8>> {
        let whose = (reading.caller, reading.workspace);
        let room = match envelope.kind {
            MessageKind::AskSymbols | MessageKind::AskSums => None,
            _ => {
                let sessions = &self.files.sessions;
                Some(sessions.take_room(whose, envelope.session, self.clock.elapsed())?)
            }
        };
        let (base, view) = self.base_of(reading, put).await?;
        let keys = view.content_keys().clone();
        drop(view);
        let (table, _memory) = self.chunk_table_for(reading, &base.content).await?;
        // The items of a list, or the sums of a message in order.
        let work = table.chunks().len() as u64 * BASE_CHUNK_WEIGHT + message.len() as u64 * 8;
        let _working = self.memory_for_body(WORK_WEIGHT + work).await?;
        let mut old = PackedVersion::new(Arc::clone(self), reading, table.clone());
        let plain = base.plain;
        let work = move || {
            let answer = match envelope.kind {
                MessageKind::AskSymbols => {
                    answer_symbols(plain.workspace(), &table, &message).map(|it| (it, None))
                }
                MessageKind::AskSums => {
                    answer_sums(plain, &keys, &table, &message, &mut old).map(|it| (it, None))
                }
                _ => Side::begin(plain, envelope.kind, &message, &mut old, FILE_LENGTH_MAX)
                    .map(|(side, answer)| (answer, Some(side))),
            };
            // The work goes on where the client has gone, and so does its room.
            answer.map(|answer| (answer, room)).map_err(|error| old.failure(error))
        };
        let done = blocking::piece(work).await?.map_err(|error| error.for_client(put))?;
        let ((answer, side), room) = done;
        if let (Some(side), Some(room)) = (side, room) {
            let (id, now) = (envelope.session, self.clock.elapsed());
            let session = Session::new(put.path.clone(), base.content, side);
            self.files.sessions.begin(room, whose, id, session, now);
        }
        Ok(answer)
    }
}

fn too_many_chunks(max: u64) -> ServerError {
    let length_max = max * size_of::<ChunkRef>() as u64;
    ServerError::TooLarge { what: "the chunk list of the file", length_max }
}

/// Returns how many chunks a content has, as far as one knows without its lists: a chunk that we cut has at least half of the average.
fn likely_chunks(content: &Content) -> u64 {
    let by_size = content.size / u64::from(content.chunk_size / 2).max(1) + 1;
    let known = if content.depth == 0 { content.chunks.len() as u64 } else { by_size };
    known.min(BASE_CHUNKS_MAX as u64)
}

/// What went wrong while a delta was worked on: the delta, or something here.
#[derive(Debug)]
enum Failure {
    Delta(DeltaError),
    Here(ServerError),
}

impl Failure {
    fn for_client(self, put: &Put) -> ServerError {
        match self {
            Self::Delta(error) => refused(error, put),
            Self::Here(error) => error,
        }
    }
}

impl From<DeltaError> for Failure {
    fn from(error: DeltaError) -> Self {
        Self::Delta(error)
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        Self::Here(error)
    }
}
