//! The driver over OpenDAL: any of its services that can create an object only where none is; `memory:` and `s3:`.
//!
//! OpenDAL differs from the trait in three ways that this adapter evens out: a range past the end is an error
//! there, some services list without sizes and in any order, and creating only if absent depends on the service.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt;
use opendal::options::WriteOptions;
use opendal::{ErrorKind, Operator};
use parking_lot::Mutex;

use crate::direct::{Direct, SignedRequest};
use crate::error::{Result, StorageError};
use crate::key::{ObjectKey, check_prefix};
use crate::object_store::{ObjectEntry, ObjectStore, PutMode, PutOutcome, check_size, clamp};

/// A store behind an OpenDAL operator.
#[derive(Debug)]
pub struct OpendalStore {
    operator: Operator,
    /// What signs requests for others, who may know the store by another address.
    signer: Option<Operator>,
    description: String,
}

impl OpendalStore {
    /// Wraps an operator; `description` names it in error texts.
    pub fn new(operator: Operator, description: String) -> Self {
        Self { operator, signer: None, description }
    }

    /// Signs requests for others by this operator.
    #[must_use]
    pub fn with_signer(self, signer: Option<Operator>) -> Self {
        Self { signer, ..self }
    }

    /// Returns a new, empty store in memory that nobody else can see.
    pub fn memory(name: &str) -> Self {
        let operator = Operator::new(opendal::services::Memory::default())
            .expect("a memory service has nothing that could be misconfigured");
        Self::new(operator, format!("memory store {name}"))
    }

    fn failure(&self, verb: &str, what: &str, error: opendal::Error) -> StorageError {
        let store = self.description.clone();
        let operation = format!("{verb} {what}");
        let detail = format!("cannot {operation}: {error}");
        match error.kind() {
            ErrorKind::PermissionDenied => StorageError::PermissionDenied { store, detail },
            ErrorKind::RateLimited => StorageError::Busy { store, detail },
            _ if error.is_temporary() => StorageError::NotReachable { store, detail },
            _ => StorageError::Failed { store, operation, source: Box::new(error) },
        }
    }

    /// Reads a range that lies inside the object.
    async fn read(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        match self.operator.read_with(key.as_str()).range(range.clone()).await {
            Ok(buffer) => Ok(Some(buffer.to_bytes())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failure("read", key.as_str(), error)),
        }
    }

    /// Returns the first keys of a list, without their sizes where the service does not tell them.
    async fn list_keys(
        &self,
        prefix: &str,
        start_after: &str,
        limit: usize,
    ) -> Result<Vec<(ObjectKey, Option<u64>)>> {
        let fail = |error| self.failure("list", prefix, error);
        let folder = prefix.rfind('/').map_or("", |slash| &prefix[..=slash]);
        let mut request = self.operator.lister_with(folder).recursive(true);
        // A service that can begin anywhere has an order, which is that of the bytes; of others everything is read.
        let has_order = self.operator.info().capability().list_with_start_after;
        if has_order && !start_after.is_empty() {
            request = request.start_after(start_after);
        }
        let mut lister = match request.await {
            Ok(lister) => lister,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(fail(error)),
        };
        let mut keys = Vec::new();
        let mut last = String::new();
        while let Some(entry) = lister.try_next().await.map_err(fail)? {
            let path = entry.path();
            if has_order {
                if path < last.as_str() {
                    let (store, detail) =
                        (self.description.clone(), "a list in no order".to_owned());
                    return Err(StorageError::InvalidAnswer { store, detail });
                }
                path.clone_into(&mut last);
                if keys.len() >= limit || path > prefix && !path.starts_with(prefix) {
                    break;
                }
            }
            if !path.starts_with(prefix) || path <= start_after {
                continue;
            }
            if let Ok(key) = ObjectKey::new(path) {
                let known = entry.metadata().is_file().then(|| entry.metadata().content_length());
                keys.push((key, known));
            }
        }
        keys.sort_unstable();
        Ok(keys)
    }
}

#[async_trait]
impl ObjectStore for OpendalStore {
    fn describe(&self) -> String {
        self.description.clone()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        check_size(key, bytes.len() as u64)?;
        let if_absent = mode == PutMode::IfAbsent;
        if if_absent && !self.operator.info().capability().write_with_if_not_exists {
            return Err(StorageError::Unsupported {
                store: self.description.clone(),
                operation: "create an object only when it is absent",
            });
        }
        match self.operator.write_with(key.as_str(), bytes).if_not_exists(if_absent).await {
            Ok(_) => Ok(PutOutcome::Written),
            Err(error) if if_absent && error.kind() == ErrorKind::ConditionNotMatch => {
                Ok(PutOutcome::Exists)
            }
            Err(error) => Err(self.failure("write", key.as_str(), error)),
        }
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        match self.size(key).await? {
            Some(size) => {
                check_size(key, size)?;
                self.read(key, 0..size).await
            }
            None => Ok(None),
        }
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        match self.size(key).await? {
            Some(size) => {
                check_size(key, size)?;
                self.read(key, clamp(&range, size)).await
            }
            None => Ok(None),
        }
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        match self.operator.stat(key.as_str()).await {
            Ok(metadata) if metadata.is_file() => Ok(Some(metadata.content_length())),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failure("look at", key.as_str(), error)),
        }
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        check_prefix(prefix)?;
        let keys = self.list_keys(prefix, start_after.unwrap_or(""), limit).await?;
        let mut entries = Vec::new();
        for (key, known_size) in keys {
            if entries.len() >= limit {
                break;
            }
            let size = match known_size {
                Some(size) => Some(size),
                None => self.size(&key).await?,
            };
            // Deleted since it was listed.
            let Some(size) = size else { continue };
            entries.push(ObjectEntry { key, size });
        }
        Ok(entries)
    }

    async fn sign_request(
        &self,
        key: &ObjectKey,
        direct: Direct,
        lifetime: Duration,
    ) -> Result<Option<SignedRequest>> {
        let Some(signer) = &self.signer else { return Ok(None) };
        let signed = match direct {
            Direct::Read => signer.presign_read(key.as_str(), lifetime).await,
            Direct::Create => {
                let options = WriteOptions { if_not_exists: true, ..WriteOptions::default() };
                signer.presign_write_options(key.as_str(), lifetime, options).await
            }
        };
        let signed =
            signed.map_err(|error| self.failure("sign a request for", key.as_str(), error))?;
        let headers = signed.header().iter().filter_map(|(name, value)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        });
        Ok(Some(SignedRequest { url: signed.uri().to_string(), headers: headers.collect() }))
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        match self.operator.delete(key.as_str()).await {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(self.failure("delete", key.as_str(), error)),
        }
    }
}

/// Returns the memory store of this process that is called `name`.
pub(crate) fn shared_memory(name: &str) -> Arc<OpendalStore> {
    static STORES: LazyLock<Mutex<HashMap<String, Arc<OpendalStore>>>> =
        LazyLock::new(Mutex::default);
    let mut stores = STORES.lock();
    let store = stores
        .entry(name.to_owned())
        .or_insert_with(|| Arc::new(OpendalStore::memory(&format!("'{name}'"))));
    Arc::clone(store)
}
