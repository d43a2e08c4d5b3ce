//! What the probe finds out, and that it cleans up.

use std::sync::Arc;

use storage::faulty::{Call, Fault, Faulty, Operation};
use storage::object_store::list_all;
use storage::probe::{ProbeOptions, probe};

use crate::support::{all_files, file_store, memory};

fn options() -> ProbeOptions {
    ProbeOptions { token: "t0ken".to_owned(), object_size_max: 8 << 20 }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_and_file_stores_can_everything_and_are_left_clean() {
    let folder = tempfile::tempdir().unwrap();
    for store in [memory(), file_store(folder.path())] {
        let report = probe(Arc::clone(&store), &options()).await.unwrap();
        assert!(report.may_hold_data() && report.may_take_part_in_agreement(), "{report:?}");
        assert!(report.lists_after_write && report.lists_in_order && report.deletes, "{report:?}");
        assert_eq!(report.object_size, 8 << 20);
        assert_eq!(report.words()[..2], ["may hold data", "may take part in agreement"]);
        assert!(list_all(store.as_ref(), "").await.unwrap().is_empty());
    }
    assert_eq!(all_files(folder.path()), [std::path::Path::new(".format")]);
    assert!(!folder.path().join("probe").exists());
}

#[tokio::test]
async fn lies_are_found_out() {
    let stale = |call: &Call<'_>| match call.operation {
        Operation::List => Fault::StaleList,
        _ => Fault::None,
    };
    let report = probe(Arc::new(Faulty::new(memory(), stale)), &options()).await.unwrap();
    assert!(!report.lists_after_write && !report.lists_in_order && report.may_hold_data());

    let flipping = |call: &Call<'_>| match call.operation {
        Operation::Get => Fault::FlippedByte { offset: 3 },
        _ => Fault::None,
    };
    let report = probe(Arc::new(Faulty::new(memory(), flipping)), &options()).await.unwrap();
    assert!(!report.may_hold_data() && !report.may_take_part_in_agreement(), "{report:?}");
    assert!(report.words()[0].contains("may not hold data"));
}

#[tokio::test]
async fn a_store_that_overwrites_what_it_should_not_may_not_agree() {
    /// Tells every put if absent that it wrote.
    #[derive(Debug)]
    struct Careless(Arc<dyn storage::ObjectStore>);

    #[async_trait::async_trait]
    impl storage::ObjectStore for Careless {
        fn describe(&self) -> String {
            self.0.describe()
        }
        async fn put(
            &self,
            key: &storage::ObjectKey,
            bytes: bytes::Bytes,
            _mode: storage::PutMode,
        ) -> storage::Result<storage::PutOutcome> {
            self.0.put(key, bytes, storage::PutMode::Overwrite).await
        }
        async fn get(&self, key: &storage::ObjectKey) -> storage::Result<Option<bytes::Bytes>> {
            self.0.get(key).await
        }
        async fn get_range(
            &self,
            key: &storage::ObjectKey,
            range: std::ops::Range<u64>,
        ) -> storage::Result<Option<bytes::Bytes>> {
            self.0.get_range(key, range).await
        }
        async fn size(&self, key: &storage::ObjectKey) -> storage::Result<Option<u64>> {
            self.0.size(key).await
        }
        async fn list(
            &self,
            prefix: &str,
            start_after: Option<&str>,
            limit: usize,
        ) -> storage::Result<Vec<storage::ObjectEntry>> {
            self.0.list(prefix, start_after, limit).await
        }
        async fn delete(&self, key: &storage::ObjectKey) -> storage::Result<()> {
            self.0.delete(key).await
        }
    }

    let report = probe(Arc::new(Careless(memory())), &options()).await.unwrap();
    assert!(!report.creates_if_absent && !report.may_take_part_in_agreement());
    assert!(report.may_hold_data());
}

#[tokio::test]
async fn a_store_that_is_down_or_read_only_is_an_error_and_a_bad_token_too() {
    let down = Faulty::new(memory(), |_: &Call<'_>| Fault::ErrorBefore);
    assert!(probe(Arc::new(down), &options()).await.unwrap_err().is_retryable());
    let read_only = Faulty::new(memory(), |_: &Call<'_>| Fault::ReadOnly);
    assert!(probe(Arc::new(read_only), &options()).await.is_err());
    let options = ProbeOptions { token: "../up".to_owned(), object_size_max: 1 };
    assert!(probe(memory(), &options).await.is_err());
}
