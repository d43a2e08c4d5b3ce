//! Which stores agree on the order of changes: what the settings in the log say, in stores that this device can open.

use std::collections::BTreeMap;
use std::sync::Arc;

use commit_log::serverless::certifier::{Certifier, Ed25519Certifier};
use commit_log::serverless::group::{Group, NamedStore};
use commit_log::serverless::identity::Identified;
use commit_log::serverless::membership::{Said, StoreOpener};
use content::WorkspaceKeys;
use model::codec::decode_message;
use model::pool::FaultModel;
use model::tree::SETTINGS_LENGTH_MAX;
use model::{Commit, Opener, PoolConfig, StoreId, StoreRecord, WorkspaceId};
use parking_lot::Mutex;
use storage::ObjectStore;

use crate::attendance::{Attendance, Way};
use crate::folder::StoredPlace;
use crate::home::Home;
use crate::stores;
use crate::system::SystemClock;

/// Returns who signs what the devices of a workspace say in an agreement among stores that may lie; nothing in a plain workspace.
pub(crate) fn certifier(keys: &WorkspaceKeys) -> Option<Arc<dyn Certifier>> {
    let seed = keys.agreement_seed()?;
    Some(Arc::new(Ed25519Certifier::new(seed.as_bytes(), Vec::new())))
}

/// The stores of a workspace, those before a change and those after it. Where they may lie, there are keys.
#[derive(Debug)]
pub(crate) struct WorkspaceStores {
    home: Home,
    workspace: WorkspaceId,
    stored: StoredPlace,
    clock: Arc<SystemClock>,
    /// What reads settings; nothing where the workspace is sealed and its keys are not at hand.
    keys: Option<WorkspaceKeys>,
    /// Which stores answer, and are what they were.
    attendance: Attendance,
    /// One way to each store, whoever uses it.
    ways: Mutex<BTreeMap<(StoreId, String), Arc<dyn ObjectStore>>>,
}

impl WorkspaceStores {
    /// Takes the ways to stores that are open already.
    pub(crate) fn new(
        home: &Home,
        workspace: WorkspaceId,
        stored: &StoredPlace,
        clock: Arc<SystemClock>,
        keys: Option<WorkspaceKeys>,
        open: &[(StoreRecord, Arc<dyn ObjectStore>)],
    ) -> Self {
        let way = |(record, store): &(StoreRecord, Arc<dyn ObjectStore>)| {
            ((record.id, stored.url(record).to_owned()), store.clone())
        };
        let ways = Mutex::new(open.iter().map(way).collect());
        let (home, stored, attendance) = (home.clone(), stored.clone(), Attendance::default());
        Self { home, workspace, stored, clock, keys, attendance, ways }
    }

    /// Lets it be noted elsewhere which stores answer.
    pub(crate) fn attended(self, attendance: Attendance) -> Self {
        Self { attendance, ..self }
    }

    fn way(&self, record: &StoreRecord, is_alone: bool) -> Arc<dyn ObjectStore> {
        let key = (record.id, self.stored.url(record).to_owned());
        let open = || stores::open_part(&self.home, &self.stored, record, self.workspace, is_alone);
        self.ways.lock().entry(key).or_insert_with(open).clone()
    }
}

impl StoreOpener for WorkspaceStores {
    fn read(&self, commit: &Commit, number: usize) -> Said {
        let Some(keys) = &self.keys else { return Said::Unreadable };
        // Which stores there are is for the owner, so it is no matter who else may write.
        if keys.check_epoch(commit, None).is_err() {
            return Said::Unreadable;
        }
        if keys.check(commit, None).is_err() {
            return Said::Nothing;
        }
        match keys.open(commit, number) {
            Ok(Some(payload)) if payload.len() <= SETTINGS_LENGTH_MAX => {
                let pool = decode_message::<PoolConfig>(&payload).ok();
                // What nobody can sign does not withstand liars.
                let pool = pool.filter(|pool| keys.is_sealed() || pool.faults == FaultModel::Crash);
                pool.map_or(Said::Nothing, Said::Pool)
            }
            _ => Said::Nothing,
        }
    }

    fn open(&self, pool: &PoolConfig) -> Group {
        let is_alone = pool.stores.len() == 1;
        let named = pool.group().map(|record| {
            let store = self.way(record, is_alone);
            let store = Arc::new(Identified::new(store, record.identity(), self.clock.clone()));
            let store = self.attendance.attend(&record.name, Way::Log, store);
            NamedStore { name: record.name.clone(), store }
        });
        let identities: Vec<StoreId> = pool.group().map(StoreRecord::identity).collect();
        let group = match pool.faults {
            FaultModel::Crash => Group::new(named.collect()),
            FaultModel::Byzantine => {
                let certifier = self.keys.as_ref().and_then(certifier);
                let certifier = certifier.expect("opened with the keys of a sealed workspace");
                Group::with_liars(named.collect(), certifier)
            }
        };
        group.with_identities(&identities)
    }
}
