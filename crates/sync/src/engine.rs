//! The engine: keeps a folder and a log equal, in steps that each leave everything in order.
//!
//! *Participants*: one folder, one log, one store, and the state that one device keeps of them. *Goals*: nothing that a user
//! or the log has is ever lost; every step may be cut off anywhere and is taken up again by the next run.
//! *Invariants*: a commit is in the outbox before it is proposed, and its packs are durable before that; a row of the
//! merge base is written after its file is durable in its place; the log is folded entry by entry, each checked against
//! the one before.
//!
//! The steps, by MetaSync's names: [`Engine::checkin`] records, [`Engine::fetch`] learns, [`Engine::merge`] applies,
//! [`Engine::push`] sends; [`Engine::sync`] repeats them until nothing is left.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use commit_log::CommitLog;
use content::{DeviceKeys, Transform, WorkspaceKeys};
use model::environment::random_bytes;
use model::{Clock, DeviceId, Genesis, Head, Mounts, NodeId, NodeRecord, Random, RelativePath};
use storage::ContentStore;

use crate::chunk_reader::ChunkFetcher;
use crate::error::{Result, SyncError};
use crate::file_system::{FileError, FileSystem};
use crate::ignore_rules::IgnoreRules;
use crate::overlay::{EngineTrees, Overlay};
use crate::prepare::{DeltaBudget, Deltas};
use crate::scan::{LocalChanges, Problem, Scope, read_rules, scan};
use crate::scrub::Scrubber;
use crate::state::State;
use crate::workers::Workers;

mod apply;
mod busy;
mod checkin;
mod checkpoints;
mod cleanup;
mod conflicts;
mod download;
mod early;
mod fetch;
#[cfg(test)]
mod fixture;
mod heal;
mod history;
mod in_sync;
mod interrupted;
mod inventory;
#[cfg(test)]
mod mended;
mod mounts;
mod put_back;
mod reading;
mod receiving;
mod rumours;
mod scrubbing;
mod settings;
mod suspects;
mod upload;
mod watch_loop;

pub use cleanup::{AutomaticCleanup, CleanupOptions, CleanupReport, DroppedBy, Worth};
pub use conflicts::{Conflict, Keep};
pub use history::{At, Listed, Restored, VersionInfo};
pub use inventory::LostVersion;
pub use mounts::{MountPoint, first_missing, has_base, mount_points, take_base};
pub use put_back::PutBack;
pub use scrubbing::{ScrubStatus, scrub_status};
pub use settings::TurnGuard;
pub use watch_loop::WatchOptions;

/// Rounds of planning after which the engine gives up; none is known that needs more than a few.
const ROUNDS_MAX: u32 = 200;

/// What enters the engine from outside.
#[derive(Debug, Clone)]
pub struct Environment {
    /// The folder.
    pub file_system: Arc<dyn FileSystem>,
    /// The log.
    pub log: Arc<dyn CommitLog>,
    /// Where packs rest.
    pub store: Arc<ContentStore>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Threads.
    pub workers: Workers,
}

/// How the engine works.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// This device.
    pub device: DeviceId,
    /// How it calls itself.
    pub device_name: String,
    /// Whether a mass deletion was confirmed.
    pub allow_mass_delete: bool,
    /// How packs are compressed.
    pub transform: Transform,
    /// What is stored of chunks that were edited, and how much work that may be.
    pub deltas: DeltaBudget,
    /// The keys of the workspace, where it is sealed.
    pub keys: Option<DeviceKeys>,
}

/// What happens, for whoever shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A step has begun.
    Step(&'static str),
    /// So many files of so many are read.
    Read {
        /// Files so far.
        files: u64,
        /// Files in all.
        total: u64,
    },
    /// So many files of so many are written.
    Written {
        /// Files so far.
        files: u64,
        /// Files in all.
        total: u64,
    },
    /// A file went to the log.
    Sent(RelativePath),
    /// A file came from the log.
    Received(RelativePath),
    /// A file was removed because the log says so.
    Removed(RelativePath),
    /// Both sides changed a file; this copy is kept.
    KeptCopy(RelativePath),
    /// What is stored was read in the background, and something was wrong with it.
    Scrubbed {
        /// Pieces that were written again from others.
        mended: u64,
        /// Chunks that were put back from the folder.
        put_back: u64,
        /// Packs that are lost, and needed.
        lost: u64,
    },
    /// What stores lacked by their lists was written, as far as they took it.
    Filled,
    /// So many packs of so many are removed.
    Cleaned {
        /// Packs so far.
        packs: u64,
        /// Packs in all.
        total: u64,
    },
    /// It is time for a cleanup that nobody has asked for.
    CleanupDue,
    /// The log has new settings of the workspace; what opened the log and the stores must look at them.
    SettingsChanged,
    /// The log says anew which folders are workspaces of their own.
    MountsChanged,
}

/// Takes events; the engine waits for it, so it must be quick.
pub type Observer = Arc<dyn Fn(Event) + Send + Sync>;

/// What a run has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyncReport {
    /// The newest entry that is folded.
    pub seq: u64,
    /// Changes that were sent.
    pub sent: u64,
    /// Changes that were applied to the folder.
    pub received: u64,
    /// Bytes that were sent to log and store.
    pub sent_bytes: u64,
    /// Bytes that were received from log and store.
    pub received_bytes: u64,
    /// Copies that were kept because both sides had changed a file.
    pub kept_copies: Vec<RelativePath>,
    /// What is not synced.
    pub problems: Vec<Problem>,
    /// What differs in the folder and is not sent, because this account may only read the workspace.
    pub kept_back: Vec<RelativePath>,
    /// Entries of the folder that were looked at.
    pub scanned: u64,
    /// Bytes of the files that were read.
    pub read_bytes: u64,
    /// Entries of the log that count for nothing, because nobody who may vouches for them.
    pub void_entries: Vec<VoidEntry>,
    /// The newest entry that this device had seen, where the log had lost it: a server or store was put back to an older copy.
    /// What the folder has of it is sent again.
    pub history_lost_at: Option<u64>,
}

/// An entry of the log that counts for nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoidEntry {
    /// Which one.
    pub seq: u64,
    /// Why.
    pub reason: String,
}

/// Keeps one folder and one log equal.
pub struct Engine {
    environment: Environment,
    options: EngineOptions,
    state: State,
    overlay: Overlay,
    fetcher: ChunkFetcher,
    keys: WorkspaceKeys,
    rules: IgnoreRules,
    /// The rules of the root, as they were read.
    rules_text: Vec<u8>,
    upload: upload::Upload,
    /// Of which of the files that are being received something is kept for their next versions, and what is not in the database yet.
    kept_of_received: Deltas,
    received_sketches: Vec<(NodeId, Vec<u8>)>,
    /// The last fence that what was read and packed rests on. Another process may have folded a later one meanwhile.
    fence: u64,
    /// The folders that are workspaces of their own, as far as this engine has let go of them.
    mounts: Mounts,
    /// Whether the log goes on with an entry that mounts a folder, and what stands before it is not merged yet.
    is_before_mounts: bool,
    /// Whether that entry may be folded, since what could be merged is.
    may_pass_mounts: bool,
    /// Whether folder and log were equal at the end of the last run.
    is_in_sync: bool,
    /// When, on the clock, the log was last told so.
    told_in_sync_at: Option<Duration>,
    /// Whether the last run came to its end, so that the overlay says how the folder was then.
    is_scanned: bool,
    /// Nodes that could not be brought to agreement in this run.
    skipped: BTreeSet<NodeId>,
    /// Those that wait because they change again and again; nothing where nobody keeps watch.
    busy: Option<busy::BusyFiles>,
    /// Those of them whose stored data was not there, each with the path by which the report names it.
    missed: Vec<(NodeId, RelativePath)>,
    /// Files that were read so soon after their last change that a later one may bear the same time.
    racy: BTreeSet<NodeId>,
    /// What an earlier run has put in place and was not found there.
    put_by_us: Vec<(NodeId, u64, NodeRecord)>,
    report: SyncReport,
    observer: Observer,
    /// Whether this sync has fetched: only then a head that it learns of on the way is newer than what it has to exchange.
    has_fetched: bool,
    /// The newest head, where it became known on the way since the last fetch of this sync. Whoever must know what the log says
    /// now asks it.
    looked: Option<Head>,
    /// Whether this run may send before it has looked at the log.
    may_send_ahead: bool,
    /// For how long after a look a later run may.
    send_ahead_within: Duration,
    /// Until when, on the clock, nobody looks for a newer head than was found last: to look again is not worth it before twice the time
    /// has passed that it took.
    known_until: Duration,
    /// The version of the settings by which the stores were opened, where there are such settings.
    pool_version: Option<u64>,
    /// What reads the stores while a watch has nothing else to do.
    scrubber: Option<Scrubber>,
    /// What finds out when a cleanup is due.
    cleanup_lookout: Option<cleanup::CleanupLookout>,
    #[cfg(feature = "testing")]
    sabotage: Option<Sabotage>,
}

/// Replaces a planned operation by a wrong one, to see that tests find out.
#[cfg(feature = "testing")]
pub type Sabotage = fn(crate::plan::Operation) -> crate::plan::Operation;

impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Engine")
            .field("environment", &self.environment)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Opens the engine over a state, which is bound to the log's workspace if it is new.
    ///
    /// # Errors
    /// [`SyncError::RootMismatch`] where state and log are of different workspaces; [`SyncError::Database`];
    /// [`SyncError::Content`] where the workspace is sealed and these are not its keys.
    pub fn open(
        environment: Environment,
        mut state: State,
        mut options: EngineOptions,
    ) -> Result<Self> {
        let genesis: Genesis = environment.log.genesis().clone();
        match state.genesis()? {
            None => state.transaction(|state| state.set_genesis(&genesis))?,
            Some(known) if known == genesis => {}
            Some(known) => {
                let reason = match known.name.as_str() {
                    "" => format!("it belongs to the workspace {}", known.workspace()),
                    name => format!("it belongs to the workspace '{name}'"),
                };
                return Err(SyncError::RootMismatch(reason));
            }
        }
        let random = environment.random.clone();
        let keys = WorkspaceKeys::open(&genesis, options.keys.take(), random)?;
        let (store, log) = (environment.store.clone(), environment.log.clone());
        let fetcher = ChunkFetcher::new(store, log, &keys, environment.clock.clone());
        Ok(Self {
            environment,
            options,
            state,
            overlay: Overlay::default(),
            fetcher,
            keys,
            rules: IgnoreRules::default(),
            rules_text: Vec::new(),
            upload: upload::Upload::default(),
            kept_of_received: Deltas::Off,
            received_sketches: Vec::new(),
            fence: 0,
            mounts: Mounts::default(),
            is_before_mounts: false,
            may_pass_mounts: false,
            is_in_sync: false,
            told_in_sync_at: None,
            is_scanned: false,
            skipped: BTreeSet::new(),
            busy: None,
            missed: Vec::new(),
            racy: BTreeSet::new(),
            put_by_us: Vec::new(),
            report: SyncReport::default(),
            observer: Arc::new(|_| {}),
            has_fetched: false,
            looked: None,
            may_send_ahead: false,
            send_ahead_within: early::SEND_AHEAD_WITHIN,
            known_until: Duration::ZERO,
            pool_version: None,
            scrubber: None,
            cleanup_lookout: None,
            #[cfg(feature = "testing")]
            sabotage: None,
        })
    }

    /// Sets who is told what happens.
    pub fn observe(&mut self, observer: Observer) {
        self.observer = observer;
    }

    /// Breaks the planner on purpose.
    #[cfg(feature = "testing")]
    pub fn sabotage(&mut self, sabotage: Sabotage) {
        self.sabotage = Some(sabotage);
    }

    /// Gives the state back, for a world that outlives its engines.
    pub fn into_state(self) -> State {
        self.state
    }

    /// Returns the state, for looking.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Gives the folder an identity where neither it nor the state has one: the first sync of a folder.
    ///
    /// # Errors
    /// [`SyncError::RootMismatch`] where only one of them has one, or they differ.
    pub fn bind_root(&mut self) -> Result<()> {
        let file_system = &self.environment.file_system;
        let mismatch = |reason: &str| Err(SyncError::RootMismatch(reason.to_owned()));
        let found = match file_system.root_identity() {
            Ok(found) => found,
            Err(FileError::NotFound(_)) => return mismatch("it is not there"),
            Err(error) => return Err(error.into()),
        };
        match (self.state.fact("root")?, found) {
            (None, None) => {
                let identity = random_bytes(&*self.environment.random);
                file_system.set_root_identity(identity)?;
                self.state.set_fact("root", &identity)
            }
            // The database was lost: what is in the folder is taken in without a merge base, so nothing is deleted.
            (None, Some(identity)) => self.state.set_fact("root", &identity),
            (Some(known), Some(found)) if known == found => Ok(()),
            (Some(_), Some(_)) => mismatch("its identity is that of another folder"),
            (Some(_), None) => mismatch("its identity is missing, as on an unmounted disk"),
        }
    }

    /// Exchanges everything in both directions, and again until nothing is left to exchange.
    ///
    /// # Errors
    /// [`SyncError`]; what was done until then is in order, and the next run continues.
    pub async fn sync(&mut self, scope: Scope) -> Result<SyncReport> {
        self.begin()?;
        let was_in_sync = std::mem::take(&mut self.is_in_sync);
        let done = self.sync_rounds(&scope).await;
        if done.is_err() {
            self.upload.stop();
        }
        match done {
            Err(error) if error.says_read_only() => self.receive_only().await?,
            done => done?,
        }
        match self.publish_checkpoint_if_due().await {
            Err(error) if error.says_read_only() => self.leave_checkpoint_to_others()?,
            published => published?,
        }
        self.tell_whether_cleanup_is_due()?;
        let report = self.finish()?;
        // Whoever looks at a part of the folder sees the problems of that part only.
        let may_be = was_in_sync || matches!(scope, Scope::Everything);
        self.is_in_sync = may_be && in_sync::leaves_nothing(&report);
        self.tell_in_sync(in_sync::TELL_AFTER).await;
        Ok(report)
    }

    async fn sync_rounds(&mut self, scope: &Scope) -> Result<()> {
        self.look(scope).await?;
        // What a run that was cut off has left is brought to agreement with what it knew, before the log goes on.
        self.agree_on_directories().await?;
        if self.only_waits(scope)? {
            return Ok(());
        }
        for round in 0.. {
            if round == ROUNDS_MAX {
                return Err(SyncError::NotSettling(round));
            }
            self.push().await?;
            self.fetch_unless_known().await?;
            self.check_pool()?;
            self.pass_mounts().await?;
            let (merged, proposed) = match self.upload.end_ahead() {
                Some(ahead) => {
                    self.forget_moving()?;
                    (false, self.propose_groups(ahead).await?)
                }
                None => {
                    let merged = self.merge_round().await?;
                    (merged.any, self.checkin_round(merged.proposals).await?)
                }
            };
            // What was fetched because somebody spoke of it, and not used, is not needed.
            self.fetcher.forget_ahead();
            let is_done = !merged && !proposed && self.state.outbox()?.is_empty();
            if is_done && !self.may_find_missed().await? {
                break;
            }
        }
        Ok(())
    }

    /// Tells whether what was not stored any more may be something that a cleanup has removed because the log has gone on:
    /// then it is planned anew.
    async fn may_find_missed(&mut self) -> Result<bool> {
        if self.missed.is_empty() || self.fetch().await? == 0 {
            return Ok(false);
        }
        for (node, path) in std::mem::take(&mut self.missed) {
            self.skipped.remove(&node);
            self.report.problems.retain(|problem| problem.path != path);
        }
        Ok(true)
    }

    /// Records what differs in the folder, without the network: commits wait in the outbox, packs on this device.
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub async fn checkin(&mut self) -> Result<SyncReport> {
        self.begin()?;
        self.look(&Scope::Everything).await?;
        self.set_offline(true);
        let recorded = self.checkin_rounds().await;
        self.set_offline(false);
        recorded?;
        self.finish()
    }

    async fn checkin_rounds(&mut self) -> Result<()> {
        for _ in 0..ROUNDS_MAX {
            let read = self.read_round().await?;
            if !self.checkin_round(None).await? && !read {
                break;
            }
        }
        Ok(())
    }

    /// Applies what was fetched to the folder.
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub async fn merge(&mut self) -> Result<SyncReport> {
        self.begin()?;
        self.look(&Scope::Everything).await?;
        for round in 0.. {
            if round == ROUNDS_MAX {
                return Err(SyncError::NotSettling(round));
            }
            if !self.merge_round().await?.any {
                break;
            }
        }
        self.finish()
    }

    fn begin(&mut self) -> Result<()> {
        self.bind_root()?;
        self.note_pool()?;
        let was_cut_off = self.state.fact(RUNNING)?.is_some();
        if was_cut_off {
            self.take_up_interrupted()?;
            self.state.transaction(State::forget_orphans)?;
        } else {
            self.state.set_fact(RUNNING, &[])?;
        }
        self.leave_mounts()?;
        self.report = SyncReport::default();
        (self.has_fetched, self.looked) = (false, None);
        (self.is_before_mounts, self.may_pass_mounts) = (false, false);
        self.skipped.clear();
        self.missed.clear();
        self.racy.clear();
        // What an earlier run has read may rest in packs that it never announced: it is read again.
        self.upload = upload::Upload::default();
        // Where the log does not answer, each run would leave packs that nobody names.
        self.may_send_ahead = !was_cut_off && self.has_looked_lately()?;
        self.overlay.unread();
        self.fence = self.state.last_fence()?;
        self.fetcher.forget_packs_behind(self.fence);
        self.fetcher.forget_ahead();
        self.fetcher.fetched_bytes = 0;
        self.load_rules()
    }

    fn finish(&mut self) -> Result<SyncReport> {
        self.is_scanned = true;
        self.in_transaction(|engine| {
            if engine.has_fetched {
                engine.note_fetched()?;
            }
            engine.state.forget_fact(RUNNING)
        })?;
        let mut report = std::mem::take(&mut self.report);
        report.seq = self.head()?.seq;
        report.received_bytes += self.fetcher.fetched_bytes;
        report.problems.extend(std::mem::take(&mut self.overlay.problems));
        Ok(report)
    }

    /// Scans the folder, and stops where more has vanished than a person would delete.
    async fn look(&mut self, scope: &Scope) -> Result<()> {
        (self.observer)(Event::Step("scan"));
        // After a run that was cut off, what is known of the folder may be half of the truth.
        let scope = if std::mem::take(&mut self.is_scanned) { scope } else { &Scope::Everything };
        if matches!(scope, Scope::Everything) {
            self.overlay.clear();
        }
        let mut changes = self.scan_folder(scope)?;
        if self.has_lost_track(&changes)? {
            self.overlay.clear();
            changes = self.scan_folder(&Scope::Everything)?;
        }
        self.confirm_suspects(&mut changes).await?;
        self.report.scanned += changes.scanned;
        self.overlay.absorb(changes);
        self.take_up_found()?;
        self.let_busy_wait()?;
        let (deleted, total) = (self.count_vanished()?, self.state.synced_count()?);
        if deleted > MASS_DELETE_MIN.max(total * MASS_DELETE_PERCENT / 100)
            && !self.options.allow_mass_delete
        {
            self.overlay.clear();
            return Err(SyncError::MassDelete { deleted, total });
        }
        Ok(())
    }

    /// Returns how many nodes of the merge base are not in the folder. Those whose deletion is done are in neither: they are forgotten, or a
    /// watch would take many small deletions for a large one.
    fn count_vanished(&mut self) -> Result<u64> {
        let absent: Vec<NodeId> = self.overlay.absent().copied().collect();
        let mut count = 0;
        for node in absent {
            match self.state.synced(&node)? {
                Some(_) => count += 1,
                None => self.overlay.forget(&node),
            }
        }
        Ok(count)
    }

    fn scan_folder(&mut self, scope: &Scope) -> Result<LocalChanges> {
        let Environment { file_system, random, .. } = &self.environment;
        let rules = &mut self.rules;
        let found = || scan(&**file_system, &self.state, rules, &**random, scope, &self.overlay);
        self.state.reading(found)
    }

    /// Tells whether something that had moved is not any more where it was found, and nobody has looked whether it is back
    /// where the merge base has it: another file may have got its name.
    fn has_lost_track(&self, changes: &LocalChanges) -> Result<bool> {
        for node in self.overlay.gone(changes) {
            let row = self.state.synced(&node)?.filter(|_| !changes.absent.contains(&node));
            if row.is_some_and(|row| !changes.directories.contains(&row.record.parent)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn load_rules(&mut self) -> Result<()> {
        let text = read_rules(&*self.environment.file_system, &RelativePath::ROOT)?;
        let text = text.unwrap_or_default();
        if text != self.rules_text {
            self.rules.add(&RelativePath::ROOT, &text);
            self.rules_text = text;
            // What an earlier scan has passed over may count now.
            self.is_scanned = false;
        }
        Ok(())
    }

    fn trees(&self) -> EngineTrees<'_> {
        EngineTrees { state: &self.state, overlay: &self.overlay }
    }

    fn head(&self) -> Result<Head> {
        Ok(self.state.head()?.expect("an open engine is bound to a workspace"))
    }

    /// Returns the nodes that may differ between the trees.
    fn differing(&self) -> Result<BTreeSet<NodeId>> {
        let mut nodes: BTreeSet<_> = self.overlay.nodes().copied().collect();
        nodes.extend(self.state.unsynced()?);
        Ok(nodes.into_iter().filter(|node| !self.skipped.contains(node)).collect())
    }
}

/// The fact that a run has begun and not ended: if another one finds it, the former was cut off.
const RUNNING: &str = "running";

/// How many nodes may vanish at once without a question, whatever their part.
const MASS_DELETE_MIN: u64 = 50;

/// Which part of all nodes may vanish at once without a question, in per cent.
const MASS_DELETE_PERCENT: u64 = 30;

#[cfg(test)]
mod tests;
