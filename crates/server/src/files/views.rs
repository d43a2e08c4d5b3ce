//! The views of the workspaces that were used last, each as new as its log.
//!
//! *Invariants*: who gets a view was let into the workspace for this very request; a view that is given out is as new as the
//! log was when it was asked for, or, where it is asked for as a [`Reading`], when that was let in; one alone changes a view, in its turn, so that
//! it learns what its own entry has done; who reads waits for that one only where the log has entries that are not folded yet; what all views take
//! together is bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::checkpoint::{Checkpoint, PageWalk, decode_entry};
use model::fold::Folded;
use model::{Entry, Genesis, Head, NodeId, RelativePath, TreeNode, WorkspaceId};
use parking_lot::Mutex;
use storage::ContentStore;
use tokio::sync::{OwnedMutexGuard, OwnedRwLockReadGuard, RwLock};

use crate::app::App;
use crate::auth::{Caller, Token};
use crate::blocking;
use crate::error::{Result, ServerError};
use crate::limits::{ENTRIES_LENGTH_MAX, VIEW_WEIGHT_MAX, VIEWS_MAX};
use crate::metadata::{Metadata, WorkspaceRecord};
use crate::services::authorisation::Right;
use crate::services::files::{FileNode, View};
use crate::services::sync_service::length_bound;
use crate::services::{accounts, sync_service, workspaces};

/// How long a view is taken as new that was so when somebody was let in: most of what people ask for is done by then.
pub(super) const LET_IN_HOLDS: Duration = Duration::from_secs(1);

/// How many bytes of entries are folded where one is: as many take less time than the way to another thread.
const FOLDED_AT_ONCE: usize = 16 * 1024;

/// A view that is as new as its log, to be read.
pub type ViewGuard = OwnedRwLockReadGuard<Option<View>, View>;

/// Who was let into which workspace, and how far its log was then. A request asks once, and gets its views by that: each question to the
/// database takes longer than most of what is done with a view.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) caller: Caller,
    pub(crate) workspace: WorkspaceId,
    head: Head,
    /// How many entries the view had folded before the log was asked, those among them that were being folded.
    folds: u64,
    /// When the log was asked, by [`model::Clock::elapsed`].
    at: Duration,
}

/// Who was let into a workspace to change it.
#[derive(Debug, Clone)]
pub(crate) struct Author {
    pub(crate) reading: Reading,
    /// What the device is called, for the log.
    pub(crate) device_name: String,
}

/// What was so before a log was asked.
struct Begun {
    workspace: WorkspaceId,
    folds: u64,
    at: Duration,
}

impl Begun {
    fn of(self, caller: Caller, head: Head) -> Reading {
        let Self { workspace, folds, at } = self;
        Reading { caller, workspace, head, folds, at }
    }
}

impl Reading {
    /// Returns the view that is at a place, if it is good for this one.
    async fn look(&self, place: &Arc<RwLock<Option<View>>>) -> Option<ViewGuard> {
        let guard = Arc::clone(place).read_owned().await;
        let is_new = |view: &&View| view.was_at(self.head, self.folds);
        OwnedRwLockReadGuard::try_map(guard, |view| view.as_ref().filter(is_new)).ok()
    }
}

/// A workspace's place for its view, which is empty before it was asked for, and after an error. Cheap to clone.
#[derive(Debug, Clone, Default)]
struct Slot {
    view: Arc<RwLock<Option<View>>>,
    turn: Arc<tokio::sync::Mutex<()>>,
    /// How many entries the view has folded, or is going to.
    folds: Arc<AtomicU64>,
}

/// The right of one alone to change a view. Others read it meanwhile, but while an entry is folded.
#[derive(Debug)]
pub(super) struct Turn {
    view: Arc<RwLock<Option<View>>>,
    folds: Arc<AtomicU64>,
    _alone: OwnedMutexGuard<()>,
}

impl Turn {
    /// Returns the view as it is. It must be given back before the next change.
    pub(super) async fn view(&self) -> ViewGuard {
        self.view_left().await.expect("it was filled")
    }

    /// Returns the view, unless a change has failed: it may have become too large.
    pub(super) async fn view_left(&self) -> Option<ViewGuard> {
        let guard = Arc::clone(&self.view).read_owned().await;
        OwnedRwLockReadGuard::try_map(guard, Option::as_ref).ok()
    }

    /// Changes the view.
    pub(super) async fn change<T>(&self, change: impl FnOnce(&mut View) -> T) -> T {
        change(self.view.write().await.as_mut().expect("it was filled"))
    }
}

/// An entry of which somebody wants to know what it has done, and the node that they ask about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) seq: u64,
    pub(super) subject: NodeId,
}

/// What an entry has done.
pub(super) struct Done {
    pub(super) folded: Folded,
    /// The node that was asked about, or the one that it has become one with, as this entry has left it, and where; nothing where it is not
    /// there. The next entries may have changed it, and whoever hears of their version would take it for the own one.
    pub(super) left: Option<(FileNode, RelativePath)>,
    /// Whether something of it that stands lay in a workspace of its own when it came, where it counts for nothing.
    pub(super) is_elsewhere: bool,
}

/// Says that a workspace does not fit into memory.
pub(super) fn too_large(weight_max: usize) -> ServerError {
    ServerError::TooLarge {
        what: "what the server must keep in memory of the workspace",
        length_max: weight_max as u64,
    }
}

/// What a log has beyond a view.
struct News {
    head: Head,
    entries: Vec<Entry>,
    /// Where the log has not the entry up to which the view was folded: the genesis to begin with again.
    genesis: Option<Genesis>,
}

/// The views that are kept.
#[derive(Debug)]
pub(super) struct Views {
    /// Those that were used last at the end.
    kept: Mutex<Vec<Kept>>,
    /// How much memory they may take together, and each of them.
    pub(super) weight_max: usize,
}

impl Default for Views {
    fn default() -> Self {
        Self { kept: Mutex::default(), weight_max: VIEW_WEIGHT_MAX }
    }
}

#[derive(Debug)]
struct Kept {
    workspace: WorkspaceId,
    slot: Slot,
    weight: usize,
}

impl Views {
    fn slot(&self, workspace: WorkspaceId) -> Slot {
        let mut kept = self.kept.lock();
        let found = kept.iter().position(|kept| kept.workspace == workspace);
        let used = match found {
            Some(position) => kept.remove(position),
            None => Kept { workspace, slot: Slot::default(), weight: 0 },
        };
        let slot = used.slot.clone();
        kept.push(used);
        if kept.len() > VIEWS_MAX {
            kept.remove(0);
        }
        slot
    }

    /// Returns where the view of a workspace is, or will be.
    pub(super) fn place(&self, workspace: WorkspaceId) -> Arc<RwLock<Option<View>>> {
        self.slot(workspace).view
    }

    /// Waits until nobody else changes a view.
    pub(super) async fn turn(&self, workspace: WorkspaceId) -> Turn {
        let Slot { view, turn, folds } = self.slot(workspace);
        Turn { view, folds, _alone: turn.lock_owned().await }
    }

    /// Returns how many entries a view has folded, those among them that are being folded.
    fn folds(&self, workspace: WorkspaceId) -> u64 {
        let kept = self.kept.lock();
        let kept = kept.iter().rfind(|kept| kept.workspace == workspace);
        kept.map_or(0, |kept| kept.slot.folds.load(Ordering::SeqCst))
    }

    /// Notes how much memory a view takes, and drops others that were not used for long where it is too much.
    fn weigh(&self, workspace: WorkspaceId, weight: usize) {
        let mut kept = self.kept.lock();
        for kept in kept.iter_mut().filter(|kept| kept.workspace == workspace) {
            kept.weight = weight;
        }
        let mut total: usize = kept.iter().map(|kept| kept.weight).sum();
        while total > self.weight_max && kept.len() > 1 {
            total -= kept.remove(0).weight;
        }
    }
}

impl App {
    /// Returns the view of a workspace.
    ///
    /// # Errors
    /// [`ServerError::NotFound`] where the workspace is not the caller's; [`ServerError::Sealed`]; [`ServerError::TooLarge`] where it
    /// does not fit into memory.
    pub async fn view(&self, caller: Caller, workspace: WorkspaceId) -> Result<ViewGuard> {
        let reading = self.let_in(caller, workspace, Right::Read).await?;
        self.view_of(reading).await
    }

    /// Lets somebody into a workspace, for as long as a request takes. Who reads for long is let in again and again.
    ///
    /// # Errors
    /// [`ServerError::NotSignedIn`], also where the day of a token or a link has come; [`ServerError::NotFound`] where the workspace is not the caller's; [`ServerError::Forbidden`] for a member without that right.
    pub(crate) async fn let_in(
        &self,
        caller: Caller,
        workspace: WorkspaceId,
        right: Right,
    ) -> Result<Reading> {
        let (begun, now) = (self.begin_reading(workspace), self.now());
        let open = move |metadata: &dyn Metadata| {
            workspaces::open_still(metadata, &caller, workspace, right, now)
                .map(|(found, _)| found.head)
        };
        let head = self.readers.read(open).await?;
        Ok(begun.of(caller, head))
    }

    /// Lets somebody into a workspace to change it.
    ///
    /// # Errors
    /// As [`Self::let_in`].
    pub(crate) async fn let_write(&self, caller: Caller, workspace: WorkspaceId) -> Result<Author> {
        let (begun, now) = (self.begin_reading(workspace), self.now());
        let open = move |metadata: &dyn Metadata| {
            workspaces::open_still(metadata, &caller, workspace, Right::Write, now)
        };
        let (found, device) = self.readers.read(open).await?;
        Ok(Author { reading: begun.of(caller, found.head), device_name: device.name })
    }

    /// Lets the device of a token into a workspace to change it, by one question to the database.
    ///
    /// # Errors
    /// [`ServerError::NotSignedIn`]; as [`Self::let_in`].
    pub(crate) async fn enter(&self, token: Token, workspace: WorkspaceId) -> Result<Author> {
        let (begun, now) = (self.begin_reading(workspace), self.now());
        let open = move |metadata: &dyn Metadata| {
            let (device, is_due) = accounts::authenticate_device(metadata, &token, now)?;
            let found = workspaces::open_as(metadata, &device, workspace, Right::Write);
            Ok((device, is_due, found.map(|found| found.head)))
        };
        let (device, is_due, head) = self.readers.read(open).await?;
        let caller = accounts::caller_of(&device);
        if is_due {
            self.note_seen(caller, now).await?;
        }
        Ok(Author { reading: begun.of(caller, head?), device_name: device.name })
    }

    /// Notes what is to be known before the log is asked.
    fn begin_reading(&self, workspace: WorkspaceId) -> Begun {
        Begun { workspace, folds: self.files.views.folds(workspace), at: self.clock.elapsed() }
    }

    /// Returns the view of a workspace for somebody who was let in: as new as the log was then, or newer.
    ///
    /// # Errors
    /// As [`Self::view`].
    pub(crate) async fn view_of(&self, reading: Reading) -> Result<ViewGuard> {
        let place = self.files.views.place(reading.workspace);
        if let Some(guard) = reading.look(&place).await {
            return Ok(guard);
        }
        let turn = self.files.views.turn(reading.workspace).await;
        // Who had the turn before has mostly folded what was lacking.
        if let Some(guard) = reading.look(&turn.view).await {
            return Ok(guard);
        }
        self.catch_up_all(reading, &turn).await?;
        Ok(turn.view().await)
    }

    /// Returns the view of a workspace for somebody who may change that, too.
    ///
    /// # Errors
    /// As [`Self::view`]; [`ServerError::Forbidden`] for who may only read.
    pub(crate) async fn view_to_write(
        &self,
        caller: Caller,
        workspace: WorkspaceId,
    ) -> Result<ViewGuard> {
        let reading = self.let_in(caller, workspace, Right::Write).await?;
        self.view_of(reading).await
    }

    /// Refuses who may not change the workspace.
    ///
    /// # Errors
    /// [`ServerError::Forbidden`] for who may only read; [`ServerError::NotFound`].
    pub(crate) async fn check_may_write(
        &self,
        caller: Caller,
        workspace: WorkspaceId,
    ) -> Result<()> {
        self.let_in(caller, workspace, Right::Write).await.map(drop)
    }

    /// Waits until nobody else changes the view of a workspace, and catches it up: to where the log was when somebody was let in, or to
    /// where it is by now where that was not just before. What others have committed meanwhile is found out by the commit.
    ///
    /// # Errors
    /// As [`Self::view`].
    pub(super) async fn turn_of(&self, reading: Reading) -> Result<Turn> {
        let turn = self.files.views.turn(reading.workspace).await;
        let is_recent = self.clock.elapsed().saturating_sub(reading.at) <= LET_IN_HOLDS;
        if !is_recent || reading.look(&turn.view).await.is_none() {
            self.catch_up_all(reading, &turn).await?;
        }
        Ok(turn)
    }

    /// Does the same, up to where the log is by now: for who changes several things at once, of which each may be refused alone.
    ///
    /// # Errors
    /// As [`Self::view`].
    pub(super) async fn newest_turn(&self, reading: Reading) -> Result<Turn> {
        let turn = self.files.views.turn(reading.workspace).await;
        self.catch_up_all(reading, &turn).await?;
        Ok(turn)
    }

    async fn catch_up_all(&self, reading: Reading, turn: &Turn) -> Result<()> {
        if turn.view.read().await.is_none() {
            let begun = self.begin_view(reading.caller, reading.workspace).await?;
            *turn.view.write().await = Some(begun);
        }
        self.catch_up(reading, turn, None).await.map(drop)
    }

    /// Folds what is new in the log, or up to an entry that is wanted. Returns what that has done, if it is among what is new.
    ///
    /// An entry is wanted by who has brought it: what it has done must be found out also where they may read nothing any more.
    pub(super) async fn catch_up(
        &self,
        Reading { caller, workspace, .. }: Reading,
        turn: &Turn,
        wanted: Option<Wanted>,
    ) -> Result<Option<Done>> {
        let whose = wanted.is_none().then_some(caller);
        loop {
            let seen = turn.view().await.head();
            let read = move |metadata: &dyn Metadata| {
                let found = match whose {
                    Some(caller) => workspaces::open(metadata, &caller, workspace, Right::Read)?,
                    None => workspaces::of_server(metadata, workspace)?,
                };
                news(metadata, &found, seen)
            };
            let News { head, entries, genesis } = self.readers.read(read).await?;
            if let Some(genesis) = genesis {
                // The server was restored from an older copy.
                let anew = View::new(&genesis, Arc::clone(&self.random))?;
                turn.change(|view| *view = anew).await;
                continue;
            }
            let is_end = entries.last().is_none_or(|last| last.seq >= head.seq);
            let mut found = None;
            if !entries.is_empty() {
                found = self.fold_all(workspace, turn, entries, wanted).await?;
            }
            if is_end || found.is_some() {
                return Ok(found);
            }
        }
    }

    /// Folds entries that follow, and tells what the entry `wanted` has done.
    async fn fold_all(
        &self,
        workspace: WorkspaceId,
        turn: &Turn,
        entries: Vec<Entry>,
        wanted: Option<Wanted>,
    ) -> Result<Option<Done>> {
        let mut guard = Arc::clone(&turn.view).write_owned().await;
        let folds = guard.as_ref().map_or(0, View::folds) + entries.len() as u64;
        turn.folds.store(folds, Ordering::SeqCst);
        let lengths = entries.iter().map(|entry| length_bound(&entry.commit));
        let is_little = lengths.sum::<usize>() <= FOLDED_AT_ONCE;
        let weight_max = self.files.views.weight_max;
        let mut fold = move || {
            let view = guard.as_mut().expect("it was filled");
            let mut found = None;
            for entry in &entries {
                let folded = view.fold(entry)?;
                if let Some(wanted) = wanted.filter(|wanted| wanted.seq == entry.seq) {
                    // A folder may be shared by one of the next entries, which takes what came before along.
                    let is_elsewhere = view.counts_elsewhere(entry, &folded);
                    let left = view.follow(wanted.subject);
                    found = Some(Done { folded, left, is_elsewhere });
                }
            }
            let weight = view.weight();
            // What an entry that stands has done is told, and perhaps taken back, by this view; whoever folds the next one gives it up.
            let is_too_large = weight > weight_max && wanted.is_none();
            if is_too_large {
                *guard = None;
            }
            Ok::<_, ServerError>((found, weight, is_too_large))
        };
        let (found, weight, is_too_large) = match is_little {
            true => fold()?,
            false => blocking::piece(fold).await??,
        };
        self.files.views.weigh(workspace, weight);
        if is_too_large { Err(too_large(weight_max)) } else { Ok(found) }
    }

    /// Folds one entry, if it is the next one. Returns what it has done.
    pub(super) async fn fold_next(
        &self,
        workspace: WorkspaceId,
        turn: &Turn,
        entry: Arc<Entry>,
        wanted: Wanted,
    ) -> Result<Option<Done>> {
        let head = turn.view().await.head();
        match entry.follows(&head) {
            true => {
                let entries = vec![Arc::unwrap_or_clone(entry)];
                self.fold_all(workspace, turn, entries, Some(wanted)).await
            }
            false => Ok(None),
        }
    }

    /// Begins a view at the newest checkpoint, or at the genesis where there is none, or none that can be read.
    async fn begin_view(&self, caller: Caller, workspace: WorkspaceId) -> Result<View> {
        let random = Arc::clone(&self.random);
        let begin = move |metadata: &dyn Metadata| {
            let found = workspaces::open(metadata, &caller, workspace, Right::Read)?;
            let genesis = workspaces::genesis(metadata, &found)?;
            let checkpoint = sync_service::checkpoint(metadata, &caller, workspace)?;
            let new = || View::new(&genesis, Arc::clone(&random));
            Ok((new()?, new()?, checkpoint))
        };
        let (empty, mut view, checkpoint) = self.readers.read(begin).await?;
        // One of nothing has nothing to tell.
        let checkpoint = checkpoint.filter(|checkpoint| checkpoint.head.seq > 0);
        let Some(checkpoint) = checkpoint else { return Ok(empty) };
        match self.take_checkpoint(workspace, &checkpoint, &mut view).await {
            Ok(()) => Ok(view),
            Err(error) => {
                // The log is still there, and says the same.
                tracing::warn!(%workspace, %error, "a checkpoint cannot be read; the whole log is");
                Ok(empty)
            }
        }
    }

    async fn take_checkpoint(
        &self,
        workspace: WorkspaceId,
        checkpoint: &Checkpoint,
        view: &mut View,
    ) -> Result<()> {
        let store = ContentStore::new(Arc::new(self.store_of(workspace)));
        let damaged = |error: model::codec::DecodeError| ServerError::Storage {
            text: format!("a page of a checkpoint of workspace {workspace}: {error}"),
            is_full: false,
            is_damage: true,
        };
        let mut nodes = PageWalk::new(checkpoint.nodes);
        while let Some(page) = nodes.wanted() {
            for (key, value) in nodes.take(&store.read_page(page).await?).map_err(damaged)? {
                let (id, node) = decode_entry::<NodeId, TreeNode>(&key, &value).map_err(damaged)?;
                view.take_node(id, node)?;
            }
        }
        let mut packs = PageWalk::new(checkpoint.packs);
        while let Some(page) = packs.wanted() {
            for (key, value) in packs.take(&store.read_page(page).await?).map_err(damaged)? {
                view.take_pack(&key, &value).map_err(damaged)?;
            }
        }
        view.begin_at(checkpoint.head)
    }
}

/// Reads what a log has beyond what was seen of it, or as much of that as one reads at once.
fn news(metadata: &dyn Metadata, found: &WorkspaceRecord, seen: Head) -> Result<News> {
    let is_known = seen == found.head
        || seen.seq == 0
        || metadata.entry_hash(found.number, seen.seq)? == Some(seen.hash);
    let genesis = match is_known {
        true => None,
        false => Some(workspaces::genesis(metadata, found)?),
    };
    let entries = match is_known && seen.seq < found.head.seq {
        true => sync_service::entries_of(metadata, found, seen.seq, ENTRIES_LENGTH_MAX)?,
        false => Vec::new(),
    };
    Ok(News { head: found.head, entries, genesis })
}
