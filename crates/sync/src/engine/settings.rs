//! Settings that all devices of a workspace share and the log orders: which stores it has, and which old versions it keeps.

use std::sync::Arc;

use commit_log::CommitLog;
use content::MemberList;
use model::codec::{decode_message, encode_message};
use model::environment::random_bytes;
use model::fold::members_of;
use model::{
    Action, Change, Commit, Entry, Head, NodeId, NodeState, OpId, PoolConfig, TreeStore, Turn,
    VersionPolicy,
};
use parking_lot::Mutex;

use super::Engine;
use super::upload::CommitPacks;
use crate::error::{Result, SyncError};

/// The fact by which version of the settings the packs of the outbox were stored.
const POOL_OF_OUTBOX: &str = "pool of outbox";

/// How many bytes of entries are looked at once.
const ENTRIES_LENGTH: u64 = 1024 * 1024;

impl Engine {
    /// Returns the stores of the workspace and the version of that setting, as far as the log is folded; nothing where the
    /// log says nothing about them, or nothing that can be read: then those that the device knows stay in force.
    ///
    /// # Errors
    /// [`SyncError::Database`].
    pub fn pool(&self) -> Result<Option<(u64, PoolConfig)>> {
        let Some(node) = self.state.node(&NodeId::POOL)? else { return Ok(None) };
        let NodeState::Settings(payload) = &node.state else { return Ok(None) };
        Ok(decode_message(payload).ok().map(|pool| (node.version, pool)))
    }

    /// Says by which version of the settings the stores were opened. Where the log has a newer one the engine stops, since
    /// it would write to stores that are left.
    ///
    /// Packs that an earlier opening has stored are stored again, before the commit that names them is proposed: they may lie
    /// in a store that is being emptied, by somebody who has looked into it already.
    pub fn set_pool_version(&mut self, version: u64) {
        self.pool_version = Some(version);
    }

    /// Stops where the log has other stores than those that were opened.
    pub(super) fn check_pool(&self) -> Result<()> {
        let Some(opened) = self.pool_version else { return Ok(()) };
        match self.pool()? {
            Some((version, _)) if version > opened => Err(SyncError::StoresChanged { version }),
            _ => Ok(()),
        }
    }

    /// Remembers by which version of the settings the packs of the outbox are stored, as long as there are none.
    pub(super) fn note_pool(&mut self) -> Result<()> {
        match self.pool_version {
            Some(version) if self.state.outbox()?.is_empty() => {
                self.state.set_fact(POOL_OF_OUTBOX, &version.to_le_bytes())
            }
            _ => Ok(()),
        }
    }

    /// Tells whether packs that wait to be announced may have been stored by another version of the settings.
    pub(super) fn are_packs_of_another_pool(&self, outbox: &[Commit]) -> Result<bool> {
        let Some(version) = self.pool_version else { return Ok(false) };
        let stored = self.state.fact(POOL_OF_OUTBOX)?.and_then(|bytes| bytes.try_into().ok());
        let stored = stored.map_or(0, u64::from_le_bytes);
        Ok(stored != version && outbox.iter().any(|commit| !commit.packs.is_empty()))
    }

    /// Proposes other stores in place of those of version `base`, and returns their version.
    ///
    /// # Errors
    /// [`SyncError::SettingsChanged`] where another device was faster; as [`Self::push`], after which the proposal waits
    /// in the outbox.
    pub async fn propose_pool(&mut self, base: u64, pool: &PoolConfig) -> Result<u64> {
        self.propose_settings(NodeId::POOL, base, encode_message(pool)).await
    }

    /// Returns which old versions are kept, and the version of that setting: 0 and the default where nobody has set it.
    ///
    /// # Errors
    /// [`SyncError::NotWhole`] where somebody has set what this program cannot read: to take the default for it would remove
    /// what they want to keep. [`SyncError::Database`].
    pub fn version_policy(&self) -> Result<(u64, VersionPolicy)> {
        let Some(node) = self.state.node(&NodeId::VERSION_POLICY)? else {
            return Ok((0, VersionPolicy::default()));
        };
        let payload = match &node.state {
            NodeState::Settings(payload) => payload.as_slice(),
            _ => &[],
        };
        match decode_message(payload) {
            Ok(policy) => Ok((node.version, policy)),
            Err(error) => Err(SyncError::NotWhole(format!("which versions to keep: {error}"))),
        }
    }

    /// Proposes which old versions are kept, in place of the setting of version `base`, and returns its version.
    ///
    /// # Errors
    /// As [`Self::propose_pool`].
    pub async fn propose_version_policy(
        &mut self,
        base: u64,
        policy: &VersionPolicy,
    ) -> Result<u64> {
        self.propose_settings(NodeId::VERSION_POLICY, base, encode_message(policy)).await
    }

    /// Returns who else may write in a sealed workspace as the log has it, for whoever has the keys to read.
    pub(super) fn members_payload(&self) -> Result<Option<Vec<u8>>> {
        match self.keys.is_sealed() {
            true => members_of(&self.state),
            false => Ok(None),
        }
    }

    /// Returns who else may write in a sealed workspace, and the version of that setting: 0 and nothing where nobody has ever been
    /// let in.
    ///
    /// # Errors
    /// [`SyncError::NotWhole`] where the setting cannot be read; [`SyncError::Database`].
    pub fn members(&self) -> Result<(u64, Option<MemberList>)> {
        let version = self.state.node(&NodeId::MEMBERS)?.map_or(0, |node| node.version);
        let list = self.members_payload()?.map(|payload| MemberList::from_bytes(&payload));
        let list = list.transpose();
        let list = list.map_err(|error| SyncError::NotWhole(format!("the members: {error}")))?;
        Ok((version, list))
    }

    /// Proposes who else may write, in place of the setting of version `base`, and returns its version.
    ///
    /// # Errors
    /// As [`Self::propose_pool`].
    pub async fn propose_members(&mut self, base: u64, list: &MemberList) -> Result<u64> {
        self.propose_settings(NodeId::MEMBERS, base, list.to_bytes()).await
    }

    /// Proposes what a run of this device that was cut off has left in the outbox, and fetches. Settings are read after that
    /// and then proposed: otherwise the older proposal would come first, and be taken for that of another device.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub async fn settle_proposals(&mut self) -> Result<()> {
        self.push().await?;
        self.fetch().await.map(drop)
    }

    async fn propose_settings(&mut self, node: NodeId, base: u64, payload: Vec<u8>) -> Result<u64> {
        self.fetch().await?;
        self.put_into_outbox(node, base, payload.clone())?;
        self.push().await?;
        let there = self.state.node(&node)?;
        match there {
            Some(node) if node.state == NodeState::Settings(payload) => Ok(node.version),
            _ => Err(SyncError::SettingsChanged),
        }
    }

    pub(super) fn put_into_outbox(
        &mut self,
        node: NodeId,
        base: u64,
        payload: Vec<u8>,
    ) -> Result<()> {
        let change = Change { node, base, action: Action::Put(payload) };
        let op_id = OpId::from_bytes(random_bytes(&*self.environment.random));
        let commit = self.commit_of(op_id, vec![change], CommitPacks::default())?;
        self.in_transaction(|engine| engine.state.add_to_outbox(&commit))
    }

    /// Begins this device's turn to remove pieces from stores, while the pool of version `pool` is in force. One that an
    /// interrupted run of this device has left is gone on with; that of another device ends by `takes_over` alone, which is safe
    /// only if that device never goes on.
    ///
    /// # Errors
    /// [`SyncError::NotOurTurn`]; [`SyncError::SettingsChanged`]; as [`Self::push`].
    pub async fn begin_turn(&mut self, pool: u64, takes_over: bool) -> Result<TurnGuard> {
        self.settle_proposals().await?;
        let device = self.options.device;
        let known = self.state.node(&NodeId::TURN)?;
        let base = known.as_ref().map_or(0, |node| node.version);
        match known.map(|node| node.state) {
            None => {}
            Some(NodeState::Settings(payload)) => match decode_message::<Turn>(&payload) {
                Ok(turn) if turn.is_over || turn.device == device || takes_over => {}
                Ok(turn) => return Err(SyncError::NotOurTurn { device: Some(turn.device) }),
                Err(_) if takes_over => {}
                Err(_) => return Err(SyncError::NotOurTurn { device: None }),
            },
            Some(_) if takes_over => {}
            Some(_) => return Err(SyncError::NotOurTurn { device: None }),
        }
        let turn = Turn { device, is_over: false };
        self.propose_settings(NodeId::TURN, base, encode_message(&turn)).await?;
        if self.pool()?.map_or(0, |(version, _)| version) != pool {
            self.end_turn().await?;
            return Err(SyncError::SettingsChanged);
        }
        let seen = Arc::new(Mutex::new(self.head()?));
        Ok(TurnGuard { log: self.environment.log.clone(), seen })
    }

    /// Ends this device's turn; nothing that it has begun to remove is under way any more.
    ///
    /// # Errors
    /// As [`Self::begin_turn`].
    pub async fn end_turn(&mut self) -> Result<()> {
        self.settle_proposals().await?;
        let base = self.state.node(&NodeId::TURN)?.map_or(0, |node| node.version);
        let turn = Turn { device: self.options.device, is_over: true };
        self.propose_settings(NodeId::TURN, base, encode_message(&turn)).await.map(drop)
    }
}

/// Tells whether a turn still holds.
#[derive(Debug, Clone)]
pub struct TurnGuard {
    log: Arc<dyn CommitLog>,
    /// The newest entry that was looked at.
    seen: Arc<Mutex<Head>>,
}

impl TurnGuard {
    /// Returns whether the log has changed neither the pool nor whose turn it is. Where it cannot be asked, it may have.
    pub async fn holds(&self) -> bool {
        loop {
            let seen = *self.seen.lock();
            let entries = match self.entries(seen.seq).await {
                Ok(entries) if entries.is_empty() => return true,
                Ok(entries) => entries,
                Err(_) => return false,
            };
            let mut head = seen;
            for entry in &entries {
                let is_of_settings = |change: &Change| change.node.is_settings();
                if !entry.follows(&head) || entry.commit.changes.iter().any(is_of_settings) {
                    return false;
                }
                head = entry.head();
            }
            *self.seen.lock() = head;
        }
    }

    async fn entries(&self, since: u64) -> Result<Vec<Entry>> {
        Ok(self.log.entries(since, ENTRIES_LENGTH).await?)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "the test plays the user")]

    use std::sync::Arc;

    use futures_util::FutureExt;
    use model::{Redundancy, StoreId, StoreRecord, Versions};

    use storage::{ObjectKey, PutMode};

    use super::*;
    use crate::engine::fixture::{Counting, engine};
    use crate::scan::Scope;
    use crate::state::State;

    const DEVICE: model::DeviceId = model::DeviceId::from_bytes([9; 16]);

    fn pool(name: &str) -> PoolConfig {
        let id = StoreId::from_bytes([4; 16]);
        let store = StoreRecord::new(id, name.to_owned(), "memory:one".to_owned(), 1);
        PoolConfig::new(Redundancy::Replicas(1), vec![store]).expect("a pool")
    }

    fn now<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
        work.now_or_never().expect("nothing to wait for")
    }

    #[test]
    fn packs_of_an_older_pool_are_stored_again_and_the_engine_stops_at_a_newer_one() {
        let rooms = tempfile::tempdir().expect("a folder");
        let store = rooms.path().join("store");
        let folder = rooms.path().join("one");
        std::fs::create_dir(&folder).expect("made");
        let mut one = engine(&folder, &store, State::in_memory());
        one.environment.random = Arc::new(Counting::default());
        let environment = &one.environment;
        let genesis = encode_message(environment.log.genesis()).into();
        let key = ObjectKey::genesis();
        let put = environment.store.object_store().put(&key, genesis, PutMode::IfAbsent);
        put.now_or_never().expect("nothing to wait for").expect("put");
        one.set_pool_version(0);
        now(one.sync(Scope::Everything)).expect("syncs");
        let bytes: Vec<u8> =
            (0..200_000_u32).flat_map(|n| n.wrapping_mul(n).to_le_bytes()).collect();
        std::fs::write(folder.join("large"), bytes).expect("written");
        now(one.checkin()).expect("recorded");
        let outbox = one.state.outbox().expect("read");
        assert!(outbox.iter().any(|commit| !commit.packs.is_empty()), "a pack of its own");
        assert!(!one.are_packs_of_another_pool(&outbox).expect("read"));
        // The same folder, opened after the stores have changed.
        one.set_pool_version(1);
        assert!(one.are_packs_of_another_pool(&outbox).expect("read"));
        now(one.sync(Scope::Everything)).expect("syncs");
        let ids =
            |commits: &[Commit]| commits.iter().map(|commit| commit.op_id).collect::<Vec<_>>();
        assert_eq!(one.state.outbox().expect("read").len(), 0);
        let entries =
            now(async { Ok(one.environment.log.entries(0, 1 << 20).await?) }).expect("read");
        let stood = entries.iter().any(|entry| ids(&outbox).contains(&entry.commit.op_id));
        assert!(
            !entries.is_empty() && !stood,
            "what was stored by the older pool was proposed anew"
        );
        one.set_pool_version(0);
        now(one.propose_pool(0, &pool("first"))).expect("accepted");
        let stopped = now(one.sync(Scope::Everything));
        assert!(matches!(stopped, Err(SyncError::StoresChanged { version: 1 })), "{stopped:?}");
        one.set_pool_version(1);
        now(one.sync(Scope::Everything)).expect("goes on");
    }

    /// Two devices of one workspace.
    fn two_engines(rooms: &std::path::Path) -> [Engine; 2] {
        let store = rooms.join("store");
        let mut number = 1;
        let mut engines = ["one", "other"].map(|name| {
            let folder = rooms.join(name);
            std::fs::create_dir(&folder).expect("made");
            let mut engine = engine(&folder, &store, State::in_memory());
            number += 1;
            engine.options.device = model::DeviceId::from_bytes([number; 16]);
            engine
        });
        let dice = Arc::new(Counting::default());
        for engine in &mut engines {
            engine.environment.random = dice.clone();
        }
        let environment = &engines[0].environment;
        let genesis = encode_message(environment.log.genesis()).into();
        let key = ObjectKey::genesis();
        let put = environment.store.object_store().put(&key, genesis, PutMode::IfAbsent);
        put.now_or_never().expect("nothing to wait for").expect("put");
        engines
    }

    #[test]
    fn one_device_at_a_time_removes_what_is_stored_twice() {
        let rooms = tempfile::tempdir().expect("a folder");
        let [mut one, mut other] = two_engines(rooms.path());
        let turn = now(one.begin_turn(0, false)).expect("begun");
        let holds = |turn: &TurnGuard| turn.holds().now_or_never().expect("nothing to wait for");
        assert!(holds(&turn));
        let refused = now(other.begin_turn(0, false));
        let device = Some(one.options.device);
        assert!(matches!(refused, Err(SyncError::NotOurTurn { device: d }) if d == device));
        // Files may change meanwhile.
        std::os::unix::fs::symlink("nowhere", rooms.path().join("other/link")).expect("made");
        now(other.sync(Scope::Everything)).expect("syncs");
        assert!(holds(&turn));
        now(one.end_turn()).expect("ended");
        let turn = now(other.begin_turn(0, false)).expect("begun");
        // Cut off, the same device goes on; another one only if somebody says so, and then the first one stops.
        let again = now(other.begin_turn(0, false)).expect("gone on with");
        assert!(!holds(&turn) && holds(&again));
        let taken = now(one.begin_turn(0, true)).expect("taken over");
        assert!(!holds(&again) && holds(&taken));
    }

    #[test]
    fn what_was_proposed_before_a_crash_is_not_taken_for_the_word_of_another_device() {
        let rooms = tempfile::tempdir().expect("a folder");
        let [mut one, _] = two_engines(rooms.path());
        let turn = |is_over| encode_message(&Turn { device: DEVICE, is_over });
        one.options.device = DEVICE;
        for is_over in [false, true] {
            now(one.begin_turn(0, false)).expect("begun");
            let base = one.state.version(&NodeId::TURN).expect("read");
            one.put_into_outbox(NodeId::TURN, base, turn(is_over)).expect("waits");
            now(one.begin_turn(0, false)).expect("begun again");
            let base = one.state.version(&NodeId::TURN).expect("read");
            one.put_into_outbox(NodeId::TURN, base, turn(is_over)).expect("waits");
            now(one.end_turn()).expect("ended");
        }
        one.put_into_outbox(NodeId::POOL, 0, encode_message(&pool("first"))).expect("waits");
        now(one.settle_proposals()).expect("accepted");
        let (version, current) = one.pool().expect("read").expect("a pool");
        assert_eq!((version, current), (1, pool("first")));
        now(one.propose_pool(version, &pool("second"))).expect("accepted");
    }

    #[test]
    fn nothing_is_removed_by_the_word_of_an_older_pool() {
        let rooms = tempfile::tempdir().expect("a folder");
        let [mut one, mut other] = two_engines(rooms.path());
        now(other.propose_pool(0, &pool("first"))).expect("accepted");
        assert!(matches!(now(one.begin_turn(0, false)), Err(SyncError::SettingsChanged)));
        let turn = now(one.begin_turn(1, false)).expect("begun");
        now(other.propose_pool(1, &pool("second"))).expect("accepted");
        assert_eq!(turn.holds().now_or_never(), Some(false));
        // Whoever was refused has left no turn behind.
        now(one.end_turn()).expect("ended");
        now(other.begin_turn(2, false)).expect("begun");
    }

    #[test]
    fn of_two_pools_at_once_one_is_in_force_and_the_other_device_is_told() {
        let rooms = tempfile::tempdir().expect("a folder");
        let mut engines = two_engines(rooms.path());
        assert_eq!(engines[0].pool().expect("read"), None);
        assert_eq!(now(engines[0].propose_pool(0, &pool("first"))).expect("accepted"), 1);
        let late = now(engines[1].propose_pool(0, &pool("second")));
        assert!(matches!(late, Err(SyncError::SettingsChanged)), "{late:?}");
        for engine in &mut engines {
            now(engine.sync(Scope::Everything)).expect("syncs");
            assert_eq!(engine.pool().expect("read"), Some((1, pool("first"))));
            assert_eq!(engine.state.outbox().expect("read").len(), 0);
        }
        assert_eq!(now(engines[1].propose_pool(1, &pool("second"))).expect("accepted"), 2);
        let report = now(engines[0].sync(Scope::Everything)).expect("syncs");
        assert_eq!(engines[0].pool().expect("read"), Some((2, pool("second"))));
        assert!(report.problems.is_empty(), "{report:?}");
        assert_eq!(engines[0].state.unsynced().expect("read").len(), 0, "there is nothing to do");
    }
}
