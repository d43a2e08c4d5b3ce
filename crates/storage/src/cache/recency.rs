//! What the cache holds, in the order of use. Pure books: the files are the disk's business.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::entry_file::EntryName;

/// Names, sizes and order of the entries.
#[derive(Debug, Default)]
pub(super) struct Recency {
    entries: BTreeMap<EntryName, Use>,
    order: BTreeMap<u64, EntryName>,
    size: u64,
    next: u64,
}

#[derive(Debug, Clone, Copy)]
struct Use {
    size: u64,
    number: u64,
}

impl Recency {
    /// Returns the sum of all sizes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn contains(&self, name: &EntryName) -> bool {
        self.entries.contains_key(name)
    }

    /// Books an entry as the most recently used one.
    pub(super) fn insert(&mut self, name: EntryName, size: u64) {
        self.remove(&name);
        self.entries.insert(name, Use { size, number: self.next });
        self.order.insert(self.next, name);
        self.size += size;
        self.next += 1;
    }

    /// Books a use of an entry.
    pub(super) fn touch(&mut self, name: &EntryName) {
        if let Some(size) = self.entries.get(name).map(|entry| entry.size) {
            self.insert(*name, size);
        }
    }

    pub(super) fn remove(&mut self, name: &EntryName) {
        if let Some(entry) = self.entries.remove(name) {
            self.order.remove(&entry.number);
            self.size -= entry.size;
        }
    }

    /// Takes out the least recently used entries until the rest fits into `size_max`.
    pub(super) fn take_surplus(&mut self, size_max: u64) -> Vec<EntryName> {
        let mut taken = Vec::new();
        while self.size > size_max
            && let Some((_, name)) = self.order.first_key_value()
        {
            let name = *name;
            self.remove(&name);
            taken.push(name);
        }
        taken
    }

    /// Takes out all entries in a range of names.
    pub(super) fn take(&mut self, names: RangeInclusive<EntryName>) -> Vec<EntryName> {
        let taken: Vec<_> = self.entries.range(names).map(|(name, _)| *name).collect();
        for name in &taken {
            self.remove(name);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::entry_file::Part;
    use crate::key::ObjectKey;

    fn name(number: u64) -> EntryName {
        EntryName::new(&ObjectKey::checkpoint(number), &Part::Whole)
    }

    #[test]
    fn least_recently_used_goes_first() {
        let mut recency = Recency::default();
        for number in 0..4 {
            recency.insert(name(number), 10);
        }
        recency.touch(&name(0));
        assert_eq!(recency.take_surplus(20), [name(1), name(2)]);
        assert_eq!(recency.size(), 20);
        assert!(recency.contains(&name(0)));
    }

    #[test]
    fn a_replaced_entry_counts_once() {
        let mut recency = Recency::default();
        recency.insert(name(1), 10);
        recency.insert(name(1), 3);
        assert_eq!(recency.size(), 3);
        assert_eq!(recency.take_surplus(0), [name(1)]);
        assert_eq!(recency.size(), 0);
    }

    #[test]
    fn parts_of_one_object_are_taken_together() {
        let mut recency = Recency::default();
        let key = ObjectKey::checkpoint(1);
        for part in [Part::Whole, Part::Range(0..5), Part::Tail(9)] {
            recency.insert(EntryName::new(&key, &part), 1);
        }
        recency.insert(name(2), 1);
        assert_eq!(recency.take(EntryName::all_of(&key)).len(), 3);
        assert_eq!(recency.size(), 1);
    }
}
