//! What lies beside the slots: the genesis, and the heads of checkpoints.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::future::join_all;
use model::checkpoint::Checkpoint;
use model::codec::encode_message;
use storage::ObjectKey;
use storage::object_store::list_all;

use super::mending::fate;
use super::{Fate, Finding, Flaw, Work, finding};
use crate::envelope;
use crate::serverless::group::NamedStore;
use crate::serverless::slot_log::checkpoints::CHECKPOINT_LENGTH_MAX;

/// The checkpoints of one store, each with its bytes, or with what is wrong with it.
type Checkpoints = BTreeMap<u64, Result<Bytes, Flaw>>;

impl Work<'_> {
    /// Looks at the genesis in every store. Everybody knows it, since the id of the workspace is its hash.
    pub(super) async fn genesis(&self) -> Vec<Finding> {
        let key = ObjectKey::genesis();
        let right = Bytes::from(encode_message(&self.slots.genesis));
        let look = async |store: &NamedStore| {
            let flaw = match self.get(store, &key).await? {
                Some(bytes) if bytes == right => return None,
                Some(_) => Flaw::Damaged,
                None => Flaw::Missing,
            };
            let fate = match self.inspector.mends {
                true => self.replace(store, &key, flaw, right.clone()).await,
                false => Fate::Mendable,
            };
            Some(finding(store, key.clone(), flaw, fate))
        };
        join_all(self.stores().into_iter().map(look)).await.into_iter().flatten().collect()
    }

    /// Looks at the heads of checkpoints in the stores that agree now. One that no store has whole is removed: the log says
    /// all that it says.
    pub(super) async fn checkpoints(&self) -> Vec<Finding> {
        let stores = self.groups[0].stores();
        let all = join_all(stores.iter().map(|store| self.checkpoints_of(store))).await;
        let mut whole: BTreeMap<u64, &Bytes> = BTreeMap::new();
        for (seq, bytes) in all.iter().flatten().flatten() {
            whole.extend(bytes.as_ref().map(|bytes| (*seq, bytes)).ok());
        }
        let newest = whole.keys().next_back().copied();
        let mut findings = Vec::new();
        for (store, checkpoints) in stores.iter().zip(&all) {
            let Some(checkpoints) = checkpoints else { continue };
            let wrong =
                checkpoints.iter().filter_map(|(seq, found)| Some((*seq, *found.as_ref().err()?)));
            let missing = newest.filter(|newest| !checkpoints.contains_key(newest));
            for (seq, flaw) in wrong.chain(missing.map(|seq| (seq, Flaw::Missing))) {
                let key = ObjectKey::checkpoint(seq);
                let fate = match (self.inspector.mends, whole.get(&seq)) {
                    _ if flaw == Flaw::Contradicts => Fate::Left,
                    (false, _) => Fate::Mendable,
                    (true, Some(bytes)) => self.replace(store, &key, flaw, (*bytes).clone()).await,
                    (true, None) => fate(store.store.delete(&key).await),
                };
                findings.push(finding(store, key, flaw, fate));
            }
        }
        findings
    }

    async fn checkpoints_of(&self, store: &NamedStore) -> Option<Checkpoints> {
        let list = self.limited(store, list_all(&*store.store, ObjectKey::CHECKPOINT)).await?;
        let mut found = Checkpoints::new();
        for entry in list {
            let Some(seq) = entry.key.as_checkpoint() else { continue };
            let Some(bytes) = self.get(store, &entry.key).await? else { continue };
            let decoded = envelope::unwrap_at_rest::<Checkpoint>(&bytes, CHECKPOINT_LENGTH_MAX);
            let is_it = decoded.is_ok_and(|checkpoint| checkpoint.head.seq == seq);
            let checked = match envelope::is_whole_at_rest(&bytes) {
                true if is_it => Ok(bytes),
                // A newer program may have written it.
                true => Err(Flaw::Contradicts),
                false => Err(Flaw::Damaged),
            };
            found.insert(seq, checked);
        }
        Some(found)
    }
}
