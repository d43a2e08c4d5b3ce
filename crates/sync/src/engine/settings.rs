//! Settings that all devices of a workspace share and the log orders: which stores it has.

use model::codec::{decode_message, encode_message};
use model::environment::random_bytes;
use model::{Action, Change, NodeId, NodeState, OpId, PoolConfig, TreeStore};

use super::Engine;
use crate::error::{Result, SyncError};

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

    /// Proposes other stores in place of those of version `base`, and returns their version.
    ///
    /// # Errors
    /// [`SyncError::SettingsChanged`] where another device was faster; as [`Self::push`], after which the proposal waits
    /// in the outbox.
    pub async fn propose_pool(&mut self, base: u64, pool: &PoolConfig) -> Result<u64> {
        self.fetch().await?;
        let payload = encode_message(pool);
        let change = Change { node: NodeId::POOL, base, action: Action::Put(payload.clone()) };
        let op_id = OpId::from_bytes(random_bytes(&*self.environment.random));
        let commit = self.commit_of(op_id, vec![change], Vec::new(), Vec::new())?;
        self.in_transaction(|engine| engine.state.add_to_outbox(&commit))?;
        self.push().await?;
        let there = self.state.node(&NodeId::POOL)?;
        match there {
            Some(node) if node.state == NodeState::Settings(payload) => Ok(node.version),
            _ => Err(SyncError::SettingsChanged),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU8, Ordering};

    use futures_util::FutureExt;
    use model::{Random, Redundancy, StoreId, StoreRecord, StoreState};

    use storage::{ObjectKey, PutMode};

    use super::*;
    use crate::engine::fixture::engine;
    use crate::scan::Scope;
    use crate::state::State;

    /// Dice that never fall the same twice, so that every proposal has an operation id of its own.
    #[derive(Debug, Default)]
    struct Counting(AtomicU8);

    impl Random for Counting {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0.fetch_add(1, Ordering::Relaxed));
        }
    }

    fn pool(name: &str) -> PoolConfig {
        let store = StoreRecord {
            id: StoreId::from_bytes([4; 16]),
            name: name.to_owned(),
            url: "memory:one".to_owned(),
            capacity: 1,
            state: StoreState::Active,
            agrees: true,
        };
        PoolConfig::new(Redundancy::Replicas(1), vec![store]).expect("a pool")
    }

    fn now<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
        work.now_or_never().expect("nothing to wait for")
    }

    #[test]
    fn of_two_pools_at_once_one_is_in_force_and_the_other_device_is_told() {
        let rooms = tempfile::tempdir().expect("a folder");
        let store = rooms.path().join("store");
        let mut engines = ["one", "other"].map(|name| {
            let folder = rooms.path().join(name);
            std::fs::create_dir(&folder).expect("made");
            engine(&folder, &store, State::in_memory())
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
