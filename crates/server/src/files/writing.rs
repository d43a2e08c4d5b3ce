//! Carries out plans: packs first, then the commit, by the same writer as those of devices.
//!
//! *Invariants*: nobody else changes the view of the workspace from the plan to the fold of its commit, so that of two requests of one
//! server the second sees the first; of others, devices above all, whoever was first wins, and the request is planned anew
//! on what is there then, conditions included; what has stood of it before that is taken back, so that nothing is replaced by what did not
//! come. Packs that a fence condemns meanwhile are made anew.

use std::collections::HashSet;
use std::iter::zip;
use std::mem::take;
use std::sync::{Arc, Weak};
use std::time::Duration;

use content::changing::groups;
use content::pack::{Ancestry, PACK_STORED_TARGET};
use content::{
    ChunkPlaces, ContentError, FilePacker, FinishedPack, PackIndex, PackSettings, PackSink,
    Transform, WorkspaceContentKeys,
};
use model::commit::INLINE_PACKS_LENGTH_MAX;
use model::environment::random_bytes;
use model::fold::FoldNote;
use model::{
    Action, Change, ChunkId, ChunkRef, Commit, Content, Entry, Head, NodeId, OpId, Outcome, PackId,
    PackRef, RelativePath, Timestamp, WorkspaceId,
};
use parking_lot::Mutex;
use storage::ObjectKey;
use tokio::runtime::Handle;
use tokio::sync::{RwLock, mpsc, oneshot};
use tokio::task::JoinSet;

use super::content_key;
use super::spool::{Source, Spooled, SpooledFile};
use super::views::{Author, Done, Reading, Turn, ViewGuard, Wanted, too_large};
use crate::app::App;
use crate::auth::Caller;
use crate::blocking;
use crate::error::{Result, ServerError};
use crate::metadata::Metadata;
use crate::services::authorisation::Right;
use crate::services::files::changes::{self, NewFile, Stood};
use crate::services::files::{Condition, FileNode, Plan, View};
use crate::services::sync_service::{CommitRequest, Committed};
use crate::services::workspaces;

/// How many bytes the records of a file have that a server packs. An edit that comes as a delta is made from one chunk of it, and so is what
/// people see of a part of it: the smaller the record, the less is unpacked for that. With a quarter of what devices take, source code
/// takes 5 % more, tables 1 %.
const RECORD_LENGTH_MAX: usize = 256 * 1024;

/// How often something is planned anew because somebody else was first.
pub(super) const TRIES: usize = 5;

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The node that it was about, as this has left it: others may have changed it since. Nothing where it was deleted.
    pub node: Option<FileNode>,
    /// Where that is then.
    pub path: Option<RelativePath>,
    /// Whether there was nothing at the path before.
    pub is_new: bool,
}

/// How often it is tried to read what a commit has done, which waits for a connection for ten seconds each time.
const READ_TRIES: usize = 3;

/// How long it is waited before that is tried again.
const READ_PAUSE: Duration = Duration::from_secs(1);

/// Why nothing is known of what a commit has done.
struct Failure {
    error: ServerError,
    /// The entry that it is, where it stands all the same.
    standing: Option<Wanted>,
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        Self { error, standing: None }
    }
}

/// What has stood of a plan.
#[derive(Default)]
struct Part {
    stood: Vec<Stood>,
    /// An entry that stands, of which nobody knows yet what it has done, and what its nodes were before it.
    unknown: Option<(Wanted, Vec<Stood>)>,
    /// Whether it is to be taken back, because the rest does not stand.
    goes_back: bool,
}

/// Packs that a commit is to name, and what they rest on.
#[derive(Debug, Default)]
pub(super) struct Packs {
    named: Vec<PackRef>,
    inline: Vec<Vec<u8>>,
    /// What is in them.
    indexes: Vec<(PackId, PackIndex)>,
    /// What the writer had seen when it began to leave out chunks.
    seen: Option<Head>,
    /// Up to where the log was known when it learned that chunks need not be packed.
    rests_on: Vec<Head>,
}

impl Packs {
    /// None, for what rests on those that the log names up to these entries.
    pub(super) fn resting_on(heads: Vec<Head>) -> Self {
        Self { rests_on: heads, ..Self::default() }
    }

    /// Names them in a commit, the first of those that rest on them.
    fn go_with(&mut self, commit: Commit) -> Commit {
        let (packs, inline_packs) = (take(&mut self.named), take(&mut self.inline));
        let has_packs = !packs.is_empty() || !inline_packs.is_empty();
        let has_deltas = has_packs && self.indexes.iter().any(|(_, index)| index.has_deltas());
        Commit { packs, inline_packs, has_deltas, ..commit }
    }
}

/// How an attempt ended.
#[expect(clippy::large_enum_variant, reason = "there is one of each request, and mostly this one")]
pub(super) enum Attempt {
    Done(Applied),
    /// Somebody else was first.
    Lost,
    /// The packs may rest on others that a cleanup removes.
    Fenced,
}

/// A file that is to be put.
#[derive(Debug, Clone)]
pub struct Put {
    /// Where.
    pub path: RelativePath,
    /// What must be so.
    pub condition: Condition,
    /// When it was modified.
    pub modified: Timestamp,
    /// The upload that brings it: what is given up while it is cut and stored is not put.
    pub upload: Option<OpId>,
}

impl App {
    /// Returns an id that nobody has.
    pub fn new_node(&self) -> NodeId {
        NodeId::from_bytes(random_bytes(&*self.random))
    }

    /// Tells whether a file may be put, before it is received; [`Self::put_file`] decides.
    ///
    /// # Errors
    /// As [`Self::put_file`].
    pub async fn check_put(&self, caller: Caller, workspace: WorkspaceId, put: &Put) -> Result<()> {
        // What nobody goes on with keeps a place that this may want.
        self.files.uploads.forget_old(self.clock.elapsed());
        self.let_put(caller, workspace, put).await.map(drop)
    }

    /// Lets somebody in who may put a file.
    async fn let_put(&self, caller: Caller, workspace: WorkspaceId, put: &Put) -> Result<Author> {
        let author = self.let_write(caller, workspace).await?;
        let view = self.view_of(author.reading).await?;
        let empty = NewFile { content: Content::default(), modified: put.modified };
        changes::put_file(&view, &put.path, &put.condition, &empty, NodeId::POOL)?;
        Ok(author)
    }

    /// Puts a file.
    ///
    /// # Errors
    /// As [`changes::put_file`]; [`ServerError::OverQuota`]; those of [`App::view`].
    pub async fn put_file(
        self: &Arc<Self>,
        caller: Caller,
        workspace: WorkspaceId,
        put: &Put,
        body: &Spooled,
    ) -> Result<Applied> {
        for _ in 0..TRIES {
            // Nothing is stored for who is refused anyway.
            let author = self.let_put(caller, workspace, put).await?;
            let reading = author.reading;
            let view = self.view_of(reading).await?;
            let is_indexed = view.places().unindexed().is_empty();
            drop(view);
            if !is_indexed {
                self.index_packs(reading).await?;
            }
            let (content, packs) = self.pack(reading, &put.path, &body.source, body.length).await?;
            if let Some(checksums) = &body.checksums {
                self.files.checksums.note(content_key(&content), checksums.clone());
            }
            let plan = |view: &View| self.plan_of_put(view, put, &content);
            let turn = self.turn_of(reading).await?;
            match self.apply_with(&author, turn, packs, plan).await? {
                Attempt::Done(applied) => return Ok(applied),
                Attempt::Lost | Attempt::Fenced => {}
            }
        }
        Err(busy(&put.path.to_string()))
    }

    /// Plans to put a file whose content is stored.
    ///
    /// # Errors
    /// As [`changes::put_file`]; [`ServerError::NotFound`] where its upload was given up.
    pub(super) fn plan_of_put(&self, view: &View, put: &Put, content: &Content) -> Result<Plan> {
        if let Some(upload) = &put.upload {
            self.files.uploads.check_wanted(upload)?;
        }
        let file = NewFile { content: content.clone(), modified: put.modified };
        changes::put_file(view, &put.path, &put.condition, &file, self.new_node())
    }

    /// Carries out a plan that needs no new packs.
    ///
    /// # Errors
    /// Those of `plan`, of the commit, and of [`App::view`]; [`ServerError::Conflict`] where others are faster every time.
    pub async fn apply(
        self: &Arc<Self>,
        caller: Caller,
        workspace: WorkspaceId,
        mut plan: impl FnMut(&View) -> Result<Plan>,
    ) -> Result<Applied> {
        // A plan that changes nothing makes no commit, which would ask.
        let author = self.let_write(caller, workspace).await?;
        for _ in 0..TRIES {
            let turn = self.newest_turn(author.reading).await?;
            match self.apply_with(&author, turn, Packs::default(), &mut plan).await? {
                Attempt::Done(applied) => return Ok(applied),
                Attempt::Lost | Attempt::Fenced => {}
            }
        }
        Err(busy("the workspace"))
    }

    pub(super) async fn apply_with(
        self: &Arc<Self>,
        author: &Author,
        turn: Turn,
        mut packs: Packs,
        plan: impl FnOnce(&View) -> Result<Plan>,
    ) -> Result<Attempt> {
        let reading = author.reading;
        if !self.has_entries(reading, take(&mut packs.rests_on)).await? {
            // The log went back to an older state, and packs that it named are nobody's.
            return Ok(Attempt::Lost);
        }
        let plan = plan(&*turn.view().await)?;
        if plan.changes.len() < 2 {
            return self.carry_out(author, &turn, packs, plan).await;
        }
        // Whoever asked may go in the midst of it.
        let (app, author) = (Arc::clone(self), author.clone());
        let carry_out = async move { app.carry_out(&author, &turn, packs, plan).await };
        blocking::to_the_end(carry_out).await
    }

    /// Commits the changes of a plan. Where some of them do not stand the others do not either, if something was to come with them.
    async fn carry_out(
        &self,
        author: &Author,
        turn: &Turn,
        mut packs: Packs,
        plan: Plan,
    ) -> Result<Attempt> {
        let mut part = Part::default();
        let attempt = self.commit_groups((author, turn), &mut packs, plan, &mut part).await;
        if part.goes_back {
            self.take_back(author, turn, part).await;
        } else if let Ok(Attempt::Done(_)) = attempt {
            let learn = |view: &mut View| {
                for (pack, index) in &packs.indexes {
                    view.places_mut().learn(pack, index);
                }
            };
            turn.change(learn).await;
        }
        attempt
    }

    /// Commits the changes of a plan as far as they stand, and tells of those.
    async fn commit_groups(
        &self,
        (author, turn): (&Author, &Turn),
        packs: &mut Packs,
        plan: Plan,
        part: &mut Part,
    ) -> Result<Attempt> {
        let Plan { changes, mut subject, is_new } = plan;
        let view = turn.view().await;
        // Where its name is taken, what comes back comes beside what has it.
        let comes_back = view.tree().get(&subject).is_some_and(|node| !node.is_alive());
        // What it rests on was looked for on what it was planned on: a fence that comes between two of its commits is for all of them.
        let seen = packs.seen.take().unwrap_or(view.head());
        let (mut left, mut has_subject) = (view.follow(subject), false);
        drop(view);
        // What only deletes is planned again, and goes on from there: unless what was to be deleted has become another one.
        let is_whole = changes.iter().any(|change| matches!(change.action, Action::Put(_)));
        let weight_max = self.files.views.weight_max;
        for changes in groups(changes) {
            let view = turn.view().await;
            if view.weight() > weight_max {
                part.goes_back = is_whole;
                return Err(too_large(weight_max));
            }
            let at_subject = changes.iter().position(|change| change.node == subject);
            let before = match is_whole || at_subject.is_some() {
                true => changes::before(&view, &changes),
                false => Vec::new(),
            };
            drop(view);
            let commit = packs.go_with(self.commit_of(author, seen, changes));
            let done = match self.commit(author.reading, turn, (commit, subject)).await {
                Ok(done) => done,
                Err(Failure { error, standing }) => {
                    part.unknown = standing.map(|wanted| (wanted, before));
                    part.goes_back = true;
                    return Err(error);
                }
            };
            part.stood.extend(accepted(before, &done));
            if let Some(lost) = loss(&done, (subject, comes_back)) {
                let of_subject = at_subject.and_then(|at| done.folded.outcomes.get(at));
                let is_refused = of_subject.is_some_and(|outcome| !outcome.is_accepted());
                part.goes_back = is_whole || is_refused;
                return Ok(lost);
            }
            if let Some((node, _)) = &done.left {
                subject = node.id;
            }
            // Behind the commit that changes it, it is others who do.
            if !has_subject {
                left = done.left;
            }
            has_subject |= at_subject.is_some();
        }
        let (node, path) = left.unzip();
        Ok(Attempt::Done(Applied { node, path, is_new }))
    }

    /// Tells whether the log has all these entries.
    async fn has_entries(&self, reading: Reading, heads: Vec<Head>) -> Result<bool> {
        if heads.is_empty() {
            return Ok(true);
        }
        let Reading { caller, workspace, .. } = reading;
        let look = move |metadata: &dyn Metadata| {
            let found = workspaces::open(metadata, &caller, workspace, Right::Read)?;
            for head in heads {
                if metadata.entry_hash(found.number, head.seq)? != Some(head.hash) {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        self.readers.read(look).await
    }

    /// Takes back what has stood of a plan, since the rest of it does not stand: somebody else was first, has taken the name, or has made
    /// the folder a workspace of its own. What others have changed meanwhile is as they want it. Of a commit that stands, and of which could
    /// not be read what it has done, that is read now: who has asked hears that nothing was done.
    async fn take_back(&self, author: &Author, turn: &Turn, part: Part) {
        if let Err(error) = self.try_take_back(author, turn, part).await {
            let workspace = author.reading.workspace;
            tracing::warn!(%workspace, %error, "a part of a request stands alone");
        }
    }

    async fn try_take_back(
        &self,
        author: &Author,
        turn: &Turn,
        Part { mut stood, unknown, .. }: Part,
    ) -> Result<()> {
        if let Some((wanted, before)) = unknown {
            let done = self.find_out(author.reading, turn, (wanted, None)).await?;
            stood.extend(accepted(before, &done));
        }
        // Behind a fence it is said again.
        for _ in 0..TRIES {
            let Some(view) = turn.view_left().await else { break };
            let changes = changes::take_back(&view, &stood);
            drop(view);
            if changes.is_empty() {
                break;
            }
            for changes in groups(changes) {
                let head = turn.view().await.head();
                let commit = self.commit_of(author, head, changes);
                let done = self.commit(author.reading, turn, (commit, NodeId::ROOT)).await;
                done.map_err(|failure| failure.error)?;
            }
        }
        Ok(())
    }

    /// Makes a commit that names no packs.
    fn commit_of(&self, author: &Author, seen: Head, changes: Vec<Change>) -> Commit {
        Commit {
            op_id: OpId::from_bytes(random_bytes(&*self.random)),
            device: author.reading.caller.device,
            device_name: author.device_name.clone(),
            time: self.clock.now(),
            seen,
            changes,
            packs: Vec::new(),
            inline_packs: Vec::new(),
            has_deltas: false,
            seal: None,
        }
    }

    /// Puts a commit into the log, tells everybody, and folds it. Tells what it has done, and what it has left of the node that it is about.
    async fn commit(
        &self,
        reading: Reading,
        turn: &Turn,
        (commit, subject): (Commit, NodeId),
    ) -> Result<Done, Failure> {
        let Reading { caller, workspace, .. } = reading;
        let (answer, answered) = oneshot::channel();
        // Whoever asked may have gone; the entry stands.
        let finish = move |committed| drop(answer.send(committed));
        self.committer.commit_entry(CommitRequest { caller, workspace, commit }, finish).await?;
        blocking::only_little_follows();
        let Committed { head, appended } = answered.await.unwrap_or(Err(ServerError::STOPPING))?;
        let wanted = Wanted { seq: head.seq, subject };
        let done = self.find_out(reading, turn, (wanted, appended)).await;
        done.map_err(|error| Failure { error, standing: Some(wanted) })
    }

    /// Finds out what an entry has done that stands. Where nothing can be read it tries again: whoever is told that nothing was done does
    /// it once more, or believes that what was there is still there.
    async fn find_out(
        &self,
        reading: Reading,
        turn: &Turn,
        (wanted, mut appended): (Wanted, Option<Arc<Entry>>),
    ) -> Result<Done> {
        let mut tries = 1;
        loop {
            let error = match self.fold_up_to(reading, turn, (wanted, appended.take())).await {
                Ok(Some(done)) => return Ok(done),
                Ok(None) => ServerError::Unavailable { reason: "has lost what was just written" },
                Err(error) => error,
            };
            if tries == READ_TRIES || !error.is_retryable() {
                return Err(error);
            }
            tries += 1;
            self.clock.sleep(READ_PAUSE).await;
        }
    }

    async fn fold_up_to(
        &self,
        reading: Reading,
        turn: &Turn,
        (wanted, appended): (Wanted, Option<Arc<Entry>>),
    ) -> Result<Option<Done>> {
        if turn.view_left().await.is_none() {
            return Err(too_large(self.files.views.weight_max));
        }
        if let Some(entry) = appended
            && let Some(done) = self.fold_next(reading.workspace, turn, entry, wanted).await?
        {
            return Ok(Some(done));
        }
        // Somebody else's entries are between the view and this one.
        self.catch_up(reading, turn, Some(wanted)).await
    }

    /// Cuts a file, and stores what the workspace lacks of it; a little of it travels in the commit.
    async fn pack(
        self: &Arc<Self>,
        reading: Reading,
        path: &RelativePath,
        source: &Source,
        length: u64,
    ) -> Result<(Content, Packs)> {
        let view = self.view_of(reading).await?;
        let kept = view.find(path).and_then(|node| node.content().map(|it| it.chunk_size));
        let kept = kept.filter(|average| *average > 0);
        let source = source.clone();
        let cut = move |packing: Packing| {
            let mut packer = packing.packer()?;
            let content = match &source {
                Source::Memory(bytes) => packer.pack_bytes(bytes, kept)?,
                Source::File(file) => {
                    let go_to = |file: &mut SpooledFile<'_>, place| {
                        file.go_to(place);
                        Ok(())
                    };
                    packer.pack_reader(&mut SpooledFile::new(file), length, kept, go_to)?
                }
            };
            packer.finish()?;
            Ok::<_, ContentError>(content)
        };
        let (content, packs) = self.fill_packs(reading, view, cut).await?;
        Ok((content.map_err(|error| uncut(&error))?, packs))
    }

    /// Runs a job that fills packs where it may block, and stores what it fills: beside it where that is much. It rests on `view`.
    pub(super) async fn fill_packs<T: Send + 'static>(
        self: &Arc<Self>,
        reading: Reading,
        view: ViewGuard,
        job: impl FnOnce(Packing) -> T + Send + 'static,
    ) -> Result<(T, Packs)> {
        let filled = Arc::new(Mutex::new(Filled::Held(Vec::new())));
        let rests_on = Arc::new(Mutex::new(vec![view.head()]));
        let packing = Packing {
            keys: view.content_keys().clone(),
            settings: PackSettings {
                transform: Transform::default(),
                guard: view.pack_guard(),
                target: PACK_STORED_TARGET,
            },
            sink: Sink {
                known: self.files.views.place(reading.workspace),
                seen: view.head(),
                rests_on: Arc::clone(&rests_on),
                claims: HashSet::new(),
                keeping: Keeping {
                    app: Arc::clone(self),
                    reading,
                    runtime: Handle::current(),
                    filled: Arc::downgrade(&filled),
                },
            },
        };
        let seen = view.head();
        drop(view);
        let done = blocking::piece(move || job(packing)).await?;
        let filled = Arc::into_inner(filled).expect("the job is done").into_inner();
        let mut packs = filled.into_packs().await?;
        packs.seen = Some(seen);
        packs.rests_on = take(&mut *rests_on.lock());
        // Whether the log has that one is looked at with the commit.
        packs.rests_on.retain(|head| Some(*head) != packs.seen);
        Ok((done, packs))
    }

    /// Stores packs as they come.
    async fn keep_packs(
        &self,
        reading: Reading,
        mut full: mpsc::Receiver<FinishedPack>,
    ) -> Result<Packs> {
        let mut packs = Packs::default();
        while let Some(pack) = full.recv().await {
            self.keep_pack(reading, pack, &mut packs).await?;
        }
        Ok(packs)
    }

    async fn keep_pack(
        &self,
        reading: Reading,
        pack: FinishedPack,
        packs: &mut Packs,
    ) -> Result<()> {
        let reference = PackRef { id: pack.id, length: pack.bytes.len() as u64 };
        let (whose, key) = ((reading.caller, reading.workspace), ObjectKey::pack(pack.id));
        let is_limited = self.check_room(whose, &key, reference.length).await?;
        self.keep_object(whose, &key, pack.bytes.into(), is_limited).await?;
        packs.named.push(reference);
        packs.indexes.push((pack.id, pack.index));
        Ok(())
    }
}

/// Returns what the nodes that a commit has changed were before.
fn accepted(before: Vec<Stood>, done: &Done) -> impl Iterator<Item = Stood> {
    let accepted = zip(before, &done.folded.outcomes).filter(|(_, outcome)| outcome.is_accepted());
    accepted.map(|(before, _)| before)
}

/// Tells how an attempt has ended of which something does not stand, or counts for nothing. `comes_back`: the subject may have another name.
fn loss(done: &Done, (subject, comes_back): (NodeId, bool)) -> Option<Attempt> {
    let Done { folded, is_elsewhere, .. } = done;
    let is_fenced = |outcome: &Outcome| matches!(outcome, Outcome::Fenced { .. });
    let is_refused = |outcome: &Outcome| matches!(outcome, Outcome::Rejected { .. });
    let is_void = |note: &FoldNote| match note {
        FoldNote::NameTaken { node, .. } => *node == subject && !comes_back,
        FoldNote::MoveVoid { node } => *node == subject,
        FoldNote::NotEmpty { .. } => true,
        _ => false,
    };
    if folded.outcomes.iter().any(is_fenced) {
        return Some(Attempt::Fenced);
    }
    let is_lost =
        *is_elsewhere || folded.outcomes.iter().any(is_refused) || folded.notes.iter().any(is_void);
    is_lost.then_some(Attempt::Lost)
}

/// Says that what was received cannot be cut and packed, which is nobody's fault who sent it.
pub(super) fn uncut(error: &ContentError) -> ServerError {
    ServerError::Storage {
        text: format!("a file that was received cannot be cut: {error}"),
        is_full: false,
        is_damage: false,
    }
}

pub(super) fn busy(what: &str) -> ServerError {
    let reason = "was changed by others at the same moment, again and again; try again";
    ServerError::Conflict { what: what.to_owned(), reason }
}

/// What a job that fills packs works with.
pub(super) struct Packing {
    pub(super) keys: WorkspaceContentKeys,
    pub(super) settings: PackSettings,
    pub(super) sink: Sink,
}

impl Packing {
    /// Begins to fill packs.
    pub(super) fn packer(self) -> Result<FilePacker<Sink>, ContentError> {
        let packer = FilePacker::new(&self.keys, &self.settings, self.sink)?;
        Ok(packer.with_records(RECORD_LENGTH_MAX))
    }
}

/// Knows what the workspace has, and takes full packs.
pub(super) struct Sink {
    known: Arc<RwLock<Option<View>>>,
    /// Up to here at least the log is known when something is asked: what a fence condemned before is not there.
    seen: Head,
    /// Up to where it was known when something was asked: the newest entry, and others that are not before that one.
    rests_on: Arc<Mutex<Vec<Head>>>,
    claims: HashSet<ChunkId>,
    keeping: Keeping,
}

/// What becomes of packs that are full.
struct Keeping {
    app: Arc<App>,
    reading: Reading,
    runtime: Handle,
    /// Nobody has it any more where nobody waits for the job.
    filled: Weak<Mutex<Filled>>,
}

/// Packs of a job.
enum Filled {
    /// They are so little that they travel in the commit.
    Held(Vec<FinishedPack>),
    /// They are stored while the job goes on.
    Stored { sender: mpsc::Sender<FinishedPack>, storing: JoinSet<Result<Packs>> },
}

impl Filled {
    async fn into_packs(self) -> Result<Packs> {
        let held = match self {
            Self::Held(held) => held,
            Self::Stored { sender, mut storing } => {
                drop(sender);
                let stored = storing.join_next().await;
                return stored
                    .and_then(std::result::Result::ok)
                    .unwrap_or(Err(ServerError::STOPPING));
            }
        };
        let mut packs = Packs::default();
        for pack in held {
            packs.inline.push(pack.bytes);
            packs.indexes.push((pack.id, pack.index));
        }
        Ok(packs)
    }
}

impl Keeping {
    /// Takes a pack; it blocks. Nothing where nobody waits for it any more, or what was there before could not be stored.
    fn keep(&self, pack: FinishedPack) -> Option<()> {
        let filled = self.filled.upgrade()?;
        let (sender, packs) = {
            let mut filled = filled.lock();
            let packs = match &mut *filled {
                Filled::Held(held) => {
                    held.push(pack);
                    let length: usize = held.iter().map(|pack| pack.bytes.len()).sum();
                    if length <= INLINE_PACKS_LENGTH_MAX {
                        return Some(());
                    }
                    take(held)
                }
                Filled::Stored { .. } => vec![pack],
            };
            if matches!(*filled, Filled::Held(_)) {
                *filled = self.store();
            }
            let Filled::Stored { sender, .. } = &*filled else { return None };
            (sender.clone(), packs)
        };
        // Who takes them may end meanwhile.
        drop(filled);
        packs.into_iter().try_for_each(|pack| sender.blocking_send(pack).ok())
    }

    /// Begins to store packs.
    fn store(&self) -> Filled {
        let (sender, full) = mpsc::channel(1);
        let (app, reading) = (Arc::clone(&self.app), self.reading);
        let mut storing = JoinSet::new();
        storing.spawn_on(async move { app.keep_packs(reading, full).await }, &self.runtime);
        Filled::Stored { sender, storing }
    }
}

impl Sink {
    fn ask<T>(&self, about: impl FnOnce(&ChunkPlaces) -> T) -> Option<T> {
        let known = self.known.blocking_read();
        let view = known.as_ref().filter(|view| view.head().seq >= self.seen.seq)?;
        note(&mut self.rests_on.lock(), view);
        Some(about(view.places()))
    }
}

/// Notes up to where the log is known by a view. What is known to be before that is forgotten.
pub(super) fn note(heads: &mut Vec<Head>, view: &View) {
    match heads.last_mut() {
        Some(last) if view.was_at(*last, 0) => *last = view.head(),
        _ => heads.push(view.head()),
    }
}

impl PackSink for Sink {
    type Error = ContentError;

    fn claim(&mut self, chunk: &ChunkRef) -> Result<bool, ContentError> {
        let is_known = self.claims.contains(&chunk.id)
            || self.ask(|places| places.contains(&chunk.id)).unwrap_or_default();
        Ok(!is_known && self.claims.insert(chunk.id))
    }

    fn ancestry(&mut self, chunk: &ChunkRef) -> Result<Option<Ancestry>, ContentError> {
        Ok(self.ask(|places| places.ancestry(&chunk.id)).flatten())
    }

    fn emit(&mut self, pack: FinishedPack) -> Result<(), ContentError> {
        let gone = || ContentError::Read { source: std::io::ErrorKind::BrokenPipe.into() };
        self.keeping.keep(pack).ok_or_else(gone)
    }
}

#[cfg(test)]
mod tests;
