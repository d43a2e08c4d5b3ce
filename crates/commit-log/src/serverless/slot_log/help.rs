//! Carries out what a [`Helper`] plans, beside the other work of a log.

use futures_util::future::{Either, join, join_all, select};
use model::Entry;
use parking_lot::Mutex;
use storage::ObjectKey;

use super::deliberation::CALL_PATIENCE;
use super::following::WISHES_MAX;
use super::slots::Slots;
use crate::serverless::candidate::{Candidate, Context};
use crate::serverless::group::NamedStore;
use crate::serverless::helper::Helper;
use crate::serverless::rounds::Message;

/// How often wishes are looked for, as long as new ones come.
const LOOKS_MAX: u32 = 3;

/// What the log owes to others who proposed beside it.
#[derive(Debug, Default)]
pub(super) struct Help(Mutex<Option<Helper>>);

impl Help {
    /// Promises to do for others what they wanted of the slot that was filled with `own`, as far as it was seen.
    pub(super) fn promise(&self, own: &Entry, seen: &[Candidate]) {
        let mut helper = Helper::new(own);
        for candidate in seen {
            helper.hear(candidate.entry());
        }
        *self.0.lock() = Some(helper);
    }
}

impl Slots {
    /// Does for others what was promised, as far as nobody was quicker. Nobody waits for it, and nothing is lost without it.
    pub(super) async fn help(&self) {
        let Some(mut helper) = self.help.0.lock().take() else { return };
        for _ in 0..LOOKS_MAX {
            // What is known already is done while the rest is read.
            let slot = helper.slot();
            let ((), wishes) = join(self.fill_for_others(&mut helper), self.wishes(slot)).await;
            for candidate in &wishes {
                helper.hear(candidate.entry());
            }
            if helper.next().is_none() {
                return;
            }
        }
        self.fill_for_others(&mut helper).await;
    }

    async fn fill_for_others(&self, helper: &mut Helper) {
        while let Some(entry) = helper.next() {
            match self.fill(entry).await {
                Ok(filled) => {
                    helper.take(filled.candidate.entry());
                    self.remember(helper.head());
                }
                // Too few stores, or others than those that this log was opened with.
                Err(_) => helper.stop(),
            }
        }
    }

    /// Reads what others wanted of a slot: their votes, and what they have written down beside them.
    async fn wishes(&self, slot: u64) -> Vec<Candidate> {
        let Ok(group) = self.group(slot) else { return Vec::new() };
        let leading = &group.stores()[group.leading_store(slot)];
        let votes = group.stores().iter().map(|store| (store, ObjectKey::log_slot(slot, 0)));
        let wishes = (0..WISHES_MAX).map(|number| (leading, ObjectKey::log_wish(slot, number)));
        let reads = votes.chain(wishes).map(|(store, key)| self.wish_at(store, slot, key));
        self.background.beside(join_all(reads)).await.into_iter().flatten().collect()
    }

    async fn wish_at(&self, store: &NamedStore, slot: u64, key: ObjectKey) -> Option<Candidate> {
        if self.silence.holds(&store.name) {
            return None;
        }
        let limit = self.means.clock.sleep(CALL_PATIENCE);
        let Either::Left((Ok(Some(bytes)), _)) = select(store.store.get(&key), limit).await else {
            return None;
        };
        let workspace = self.genesis.workspace();
        let context = Context { workspace, slot, certifier: None, is_single: false };
        match context.decode(&bytes) {
            Ok(Message::Vote(candidate)) => Some(candidate),
            _ => None,
        }
    }
}
