//! What is known of the messages of a mailbox.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::key::ObjectKey;
use crate::object_store::ObjectEntry;

/// What a message says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    /// The random part of its `Message-ID`.
    pub(super) token: String,
    /// The size of the object in bytes.
    pub(super) size: u64,
}

/// The messages by key, and within a key by UID.
#[derive(Debug, Default)]
pub(super) struct Index {
    validity: Option<u32>,
    last_uid: u32,
    messages: BTreeMap<ObjectKey, BTreeMap<u32, Known>>,
    /// The key of every message; none for those that are not ours.
    keys: HashMap<u32, Option<ObjectKey>>,
}

impl Index {
    /// Forgets everything when the UIDs mean something else than before.
    pub(super) fn begin(&mut self, validity: Option<u32>) {
        if self.validity != validity {
            *self = Self { validity, ..Self::default() };
        }
    }

    /// The lowest UID that a message has which is not known yet.
    pub(super) fn next_uid(&self) -> u32 {
        self.last_uid.saturating_add(1)
    }

    /// How many messages are known.
    pub(super) fn count(&self) -> usize {
        self.keys.len()
    }

    /// Adds a message; one that is not ours only counts.
    pub(super) fn add(&mut self, uid: u32, message: Option<(ObjectKey, Known)>) {
        // `5:*` means also the last message when that is 4.
        if uid <= self.last_uid && self.keys.contains_key(&uid) {
            return;
        }
        self.last_uid = self.last_uid.max(uid);
        self.keys.insert(uid, message.as_ref().map(|(key, _)| key.clone()));
        if let Some((key, known)) = message {
            self.messages.entry(key).or_default().insert(uid, known);
        }
    }

    /// Forgets the messages that are gone.
    pub(super) fn retain(&mut self, there: &HashSet<u32>) {
        let gone: Vec<u32> = self.keys.keys().filter(|uid| !there.contains(uid)).copied().collect();
        for uid in gone {
            let Some(Some(key)) = self.keys.remove(&uid) else { continue };
            let Some(messages) = self.messages.get_mut(&key) else { continue };
            messages.remove(&uid);
            if messages.is_empty() {
                self.messages.remove(&key);
            }
        }
    }

    /// Returns the messages of a key, the lowest UID first.
    pub(super) fn messages(&self, key: &ObjectKey) -> impl Iterator<Item = (u32, &Known)> {
        self.messages.get(key).into_iter().flatten().map(|(uid, known)| (*uid, known))
    }

    /// Returns the message that is the object.
    pub(super) fn object(&self, key: &ObjectKey) -> Option<(u32, Known)> {
        self.messages(key).next().map(|(uid, known)| (uid, known.clone()))
    }

    /// Returns the first objects with `prefix` after `start_after`.
    pub(super) fn list(&self, prefix: &str, start_after: &str, limit: usize) -> Vec<ObjectEntry> {
        self.messages
            .iter()
            .filter(|(key, _)| key.as_str().starts_with(prefix) && key.as_str() > start_after)
            .filter_map(|(key, messages)| {
                let (_, known) = messages.first_key_value()?;
                Some(ObjectEntry { key: key.clone(), size: known.size })
            })
            .take(limit)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(key: &str, size: u64) -> Option<(ObjectKey, Known)> {
        Some((ObjectKey::new(key).unwrap(), Known { token: format!("t{size}"), size }))
    }

    #[test]
    fn the_lowest_uid_is_the_object_until_it_is_gone() {
        let mut index = Index::default();
        index.begin(Some(1));
        index.add(5, message("a", 50));
        index.add(4, message("a", 40));
        index.add(6, None);
        assert_eq!((index.count(), index.next_uid()), (3, 7));
        let key = ObjectKey::new("a").unwrap();
        assert_eq!(index.object(&key).unwrap().0, 4);
        index.retain(&HashSet::from([5, 6]));
        assert_eq!(index.object(&key).unwrap().0, 5);
        assert_eq!(index.list("", "", 9), [ObjectEntry { key: key.clone(), size: 50 }]);
        index.retain(&HashSet::from([6]));
        assert_eq!((index.object(&key), index.count()), (None, 1));
        index.begin(Some(1));
        assert_eq!(index.next_uid(), 7);
        index.begin(Some(2));
        assert_eq!((index.count(), index.next_uid()), (0, 1));
    }
}
