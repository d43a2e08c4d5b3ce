//! Which stores of several have answered in a run: one that is away keeps nobody from working, and should be known all the same.
//!
//! Two ways lead to a store: that of the log, where it must also be the store that it was, and that of the data. Of each the
//! last answer counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use storage::layers::{Answer, Gate, Operation};
use storage::{ObjectStore, Result, StorageError};

/// What stores have said last, by their names; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attendance(Arc<Mutex<Answers>>);

/// What was last said to whoever went a way to a store: nothing is wrong, or why it is away.
type Answers = BTreeMap<(String, Way), Option<Absence>>;

/// A way to a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// To what the devices agree on.
    Log,
    /// To packs and pages.
    Data,
}

/// Why a store is away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Absence {
    /// In words.
    pub(crate) reason: String,
    /// Whether it answers, and is not the store any more that it was.
    pub(crate) is_replaced: bool,
}

impl Attendance {
    /// Notes what a store says to whoever goes this way.
    pub(crate) fn attend(
        &self,
        name: &str,
        way: Way,
        store: Arc<dyn ObjectStore>,
    ) -> Arc<dyn ObjectStore> {
        Arc::new(Attended { store, key: (name.to_owned(), way), attendance: self.clone() })
    }

    /// Returns the stores that were asked, each with why it is away, if it is.
    pub(crate) fn stores(&self) -> BTreeMap<String, Option<Absence>> {
        let mut stores: BTreeMap<String, Option<Absence>> = BTreeMap::new();
        for ((name, _), absence) in &*self.0.lock() {
            let known = stores.entry(name.clone()).or_default();
            // What the log says comes first: it knows whether the store is another one.
            *known = known.take().or_else(|| absence.clone());
        }
        stores
    }
}

/// A store of which it is noted whether it answers.
#[derive(Debug)]
struct Attended {
    store: Arc<dyn ObjectStore>,
    key: (String, Way),
    attendance: Attendance,
}

impl Gate for Attended {
    fn store(&self) -> &dyn ObjectStore {
        &*self.store
    }

    async fn pass<A: Send>(
        &self,
        operation: Operation,
        _: usize,
        answer: impl Answer<A>,
    ) -> Result<A> {
        let answer = answer.await;
        let absence = match &answer {
            Ok(_) => None,
            Err(error) => match absence(error) {
                Some(absence) => Some(absence),
                // It answers, and the question was wrong.
                None => return answer,
            },
        };
        // A look may be answered by what remembers an answer, and what was deferred is not sent yet.
        if !matches!(operation, Operation::Look | Operation::PutDeferred) || absence.is_some() {
            self.attendance.0.lock().insert(self.key.clone(), absence);
        }
        answer
    }
}

fn absence(error: &StorageError) -> Option<Absence> {
    let is_away = match error {
        StorageError::NotReachable { .. }
        | StorageError::NoStore { .. }
        | StorageError::NoSpace { .. }
        | StorageError::ReadOnly { .. }
        | StorageError::PermissionDenied { .. }
        | StorageError::Replaced { .. } => true,
        error => error.is_retryable(),
    };
    let is_replaced = matches!(error, StorageError::Replaced { .. });
    is_away.then(|| Absence { reason: error.to_string(), is_replaced })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use storage::{ObjectKey, PutMode};

    use super::*;

    /// A store that is there, or not.
    #[derive(Debug)]
    struct Fickle(Arc<dyn ObjectStore>, AtomicBool);

    impl Gate for Fickle {
        fn store(&self) -> &dyn ObjectStore {
            &*self.0
        }

        async fn pass<A: Send>(&self, _: Operation, _: usize, answer: impl Answer<A>) -> Result<A> {
            match self.1.load(Ordering::Relaxed) {
                true => Err(StorageError::NoSpace { store: "disk".to_owned() }),
                false => answer.await,
            }
        }
    }

    #[tokio::test]
    async fn last_answer_of_each_way_counts() {
        let attendance = Attendance::default();
        let memory = storage::open("memory:attendance").expect("opens");
        let store = Arc::new(Fickle(memory, AtomicBool::new(false)));
        let key = ObjectKey::genesis();
        let data = attendance.attend("disk", Way::Data, store.clone());
        let log = attendance.attend("disk", Way::Log, store.clone());
        assert!(attendance.stores().is_empty(), "nobody has asked it");
        data.put(&key, "x".into(), PutMode::IfAbsent).await.expect("puts");
        log.get(&key).await.expect("reads");
        assert_eq!(attendance.stores(), BTreeMap::from([("disk".to_owned(), None)]));
        store.1.store(true, Ordering::Relaxed);
        log.get(&key).await.expect_err("it fails");
        let absence = attendance.stores().remove("disk").flatten().expect("it is away");
        assert!(!absence.is_replaced && absence.reason.contains("no space"), "{absence:?}");
        store.1.store(false, Ordering::Relaxed);
        data.get(&key).await.expect("reads");
        assert!(attendance.stores()["disk"].is_some(), "the other way says so");
        log.get(&key).await.expect("reads");
        assert_eq!(attendance.stores().remove("disk"), Some(None));
    }
}
