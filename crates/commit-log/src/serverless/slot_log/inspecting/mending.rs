//! Writes into the lists of the stores what is decided, where they have lost it.

use bytes::Bytes;
use storage::{ObjectKey, PutMode, StorageError};

use super::look::{Look, context};
use super::{Fate, Finding, Flaw, Work, finding};
use crate::serverless::candidate::Candidate;
use crate::serverless::group::NamedStore;
use crate::serverless::rounds::{Message, ProposerId};
use crate::serverless::slot_log::slots::Found;

impl Work<'_> {
    /// Says what could be done about a slot.
    pub(super) fn judge(&self, look: &Look, proven: u64) -> Vec<Finding> {
        let known = look.decided.clone().or_else(|| self.remembered(look));
        let judged = look.flaws(self.inspector.folded).map(|(store, key, flaw)| {
            let is_mendable = known.is_some() && self.may_mend(look, flaw, proven);
            let fate = if is_mendable { Fate::Mendable } else { Fate::Left };
            finding(&look.group.stores()[store], key, flaw, fate)
        });
        judged.collect()
    }

    /// Writes what fills a slot wherever it is damaged or missing.
    pub(super) async fn mend(&self, slot: u64, proven: u64) -> Vec<Finding> {
        // Stores may have been told meanwhile, and what is damaged is looked at in the moment before it is replaced.
        let Some(look) = self.look(slot).await else { return Vec::new() };
        let known = self.certain(&look, proven).await;
        let mut findings = Vec::new();
        for (store, key, flaw) in look.flaws(self.inspector.folded) {
            let store = &look.group.stores()[store];
            let fate = match &known {
                Some(candidate) if self.may_mend(&look, flaw, proven) => {
                    self.write(&look, store, &key, flaw, candidate).await
                }
                _ => Fate::Left,
            };
            findings.push(finding(store, key, flaw, fate));
        }
        findings
    }

    /// What is missing behind everything that the stores prove may have been lost with all behind it: then the engine begins
    /// anew from where they stand. What can be read is left to people.
    fn may_mend(&self, look: &Look, flaw: Flaw, proven: u64) -> bool {
        match flaw {
            Flaw::Damaged => true,
            Flaw::Missing => look.decided.is_some() || look.slot < proven,
            Flaw::Contradicts => false,
        }
    }

    /// Returns what this device remembers to be decided for a slot.
    fn remembered(&self, look: &Look) -> Option<Candidate> {
        if !self.remembers || look.slot > self.inspector.folded {
            return None;
        }
        let entry = (self.inspector.known)(look.slot).filter(|entry| entry.seq == look.slot)?;
        // Who has proposed it matters only to those who still compete, and it is decided.
        let candidate = Candidate::new(entry, ProposerId(0), false);
        look.fits(&candidate).then_some(candidate)
    }

    /// Returns what fills a slot: as the stores prove it, as they agree on it once more, or as this device remembers it.
    async fn certain(&self, look: &Look, proven: u64) -> Option<Candidate> {
        if look.decided.is_some() {
            return look.decided.clone();
        }
        if look.slot <= self.inspector.folded.max(proven)
            && let Ok(Found::Filled(candidate)) = self.slots.read(look.slot, true).await
        {
            return Some(candidate);
        }
        self.remembered(look)
    }

    async fn write(
        &self,
        look: &Look,
        store: &NamedStore,
        key: &ObjectKey,
        flaw: Flaw,
        candidate: &Candidate,
    ) -> Fate {
        if key.as_log_slot().is_none() {
            // A wish for a slot that is filled: nobody asks for it any more.
            return fate(store.store.delete(key).await);
        }
        // The one object of a group of one is the entry itself.
        let message = match look.group.is_single() && !look.is_settled {
            true => Message::Vote(candidate.clone()),
            false => Message::Decided(candidate.clone()),
        };
        let bytes = context(self.slots, &look.group, look.slot).encode(&message);
        self.replace(store, key, flaw, bytes).await
    }

    /// Puts an object in the place of one that is damaged or missing.
    pub(super) async fn replace(
        &self,
        store: &NamedStore,
        key: &ObjectKey,
        flaw: Flaw,
        bytes: Bytes,
    ) -> Fate {
        let mode = match flaw {
            Flaw::Damaged => PutMode::Overwrite,
            Flaw::Missing | Flaw::Contradicts => PutMode::IfAbsent,
        };
        fate(store.store.put(key, bytes, mode).await)
    }
}

/// What became of an object that a store was asked to change.
pub(super) fn fate<T>(done: Result<T, StorageError>) -> Fate {
    done.map_or_else(|error| Fate::Refused(error.to_string()), |_| Fate::Mended)
}
