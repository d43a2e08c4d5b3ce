//! The place of a store that could not be opened.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::{Result, StorageError};
use crate::key::ObjectKey;
use crate::object_store::{ObjectEntry, ObjectStore, PutMode, PutOutcome};

/// A store that never answers, and says so at once.
#[derive(Debug)]
pub(crate) struct AbsentStore {
    name: String,
}

impl AbsentStore {
    pub(crate) fn new(name: String) -> Self {
        Self { name }
    }

    fn fail<T>(&self) -> Result<T> {
        let detail = "it could not be opened".to_owned();
        Err(StorageError::NotReachable { store: self.describe(), detail })
    }
}

#[async_trait]
impl ObjectStore for AbsentStore {
    fn describe(&self) -> String {
        format!("store {}", self.name)
    }

    async fn put(&self, _key: &ObjectKey, _bytes: Bytes, _mode: PutMode) -> Result<PutOutcome> {
        self.fail()
    }

    async fn sync(&self) -> Result<()> {
        self.fail()
    }

    async fn get(&self, _key: &ObjectKey) -> Result<Option<Bytes>> {
        self.fail()
    }

    async fn get_range(&self, _key: &ObjectKey, _range: Range<u64>) -> Result<Option<Bytes>> {
        self.fail()
    }

    async fn size(&self, _key: &ObjectKey) -> Result<Option<u64>> {
        self.fail()
    }

    async fn list(
        &self,
        _prefix: &str,
        _start_after: Option<&str>,
        _limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        self.fail()
    }

    async fn delete(&self, _key: &ObjectKey) -> Result<()> {
        self.fail()
    }
}
