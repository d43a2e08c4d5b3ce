//! Lists of services that give names in the order of their bytes, page by page.

use crate::key::ObjectKey;
use crate::object_store::ObjectEntry;

/// What a list has found. Names that are no keys are not ours and are passed over; names that were not asked for, or are
/// not in their order, say that something could be missing.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    /// What the names of all objects of the store begin with.
    store: &'a str,
    /// What the names that are asked for begin with.
    prefix: String,
    start_after: &'a str,
    limit: usize,
    last: String,
    entries: Vec<ObjectEntry>,
}

impl<'a> Names<'a> {
    /// Begins a list of at most `limit` keys that begin with `prefix` and come after `start_after`.
    pub(crate) fn new(
        store: &'a str,
        prefix: &str,
        start_after: Option<&'a str>,
        limit: usize,
    ) -> Self {
        Self {
            store,
            prefix: format!("{store}{prefix}"),
            start_after: start_after.unwrap_or_default(),
            limit,
            last: String::new(),
            entries: Vec::new(),
        }
    }

    /// Returns what the names begin with that the service is asked for.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the name after which the list begins, or goes on.
    pub(crate) fn position(&self) -> String {
        match (self.last.as_str(), self.start_after) {
            ("", "") => String::new(),
            ("", key) => format!("{}{key}", self.store),
            (last, _) => last.to_owned(),
        }
    }

    /// Returns how many keys are still wanted.
    pub(crate) fn wanted(&self) -> usize {
        self.limit - self.entries.len()
    }

    /// Takes the next name of the list.
    pub(crate) fn take(&mut self, name: String, size: u64) -> Result<(), &'static str> {
        if !name.starts_with(&self.prefix) || name <= self.last {
            return Err("a list with wrong names or in wrong order");
        }
        if let Ok(key) = ObjectKey::new(&name[self.store.len()..])
            && key.as_str() > self.start_after
            && self.wanted() > 0
        {
            self.entries.push(ObjectEntry { key, size });
        }
        self.last = name;
        Ok(())
    }

    /// Returns the list.
    pub(crate) fn entries(self) -> Vec<ObjectEntry> {
        self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_store_are_taken_up_to_the_limit_and_other_names_passed_over() {
        let mut names = Names::new("home/", "packs/", Some("packs/b"), 2);
        assert_eq!((names.prefix(), names.position().as_str()), ("home/packs/", "home/packs/b"));
        for name in ["packs/a", "packs/b", "packs/b!", "packs/c", "packs/d", "packs/e"] {
            names.take(format!("home/{name}"), 7).unwrap();
        }
        assert_eq!(names.wanted(), 0);
        assert_eq!(names.position(), "home/packs/e");
        let keys: Vec<String> =
            names.entries().into_iter().map(|entry| entry.key.to_string()).collect();
        assert_eq!(keys, ["packs/c", "packs/d"]);
        assert_eq!(Names::new("home/", "", None, 1).position(), "");
    }

    #[test]
    fn a_list_that_may_lack_something_is_refused() {
        for wrong in ["home/packs/a", "home/packs/b", "home/pages/z", "packs/z", ""] {
            let mut names = Names::new("home/", "packs/", None, 9);
            names.take("home/packs/b".to_owned(), 7).unwrap();
            assert!(names.take(wrong.to_owned(), 7).is_err(), "{wrong}");
        }
    }
}
