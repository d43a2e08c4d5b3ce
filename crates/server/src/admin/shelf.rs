//! A store as the commands of an administrator use it: they wait for it, where a server would go on with something else.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use model::WorkspaceId;
use storage::layers::Scoped;
use storage::{Credentials, ObjectEntry, ObjectKey, ObjectStore, Opening};
use tokio::runtime::Runtime;

use crate::error::{Result, ServerError};

/// How many lines of a list are asked for at once.
const PAGE: usize = 1000;

/// A store, and what waits for it. Not to be used inside a task of a runtime.
#[derive(Debug)]
pub struct Shelf {
    store: Arc<dyn ObjectStore>,
    runtime: Runtime,
}

/// What stands under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Looked {
    /// The right bytes.
    Whole(Bytes),
    /// Why they are of no use.
    Unusable(String),
}

impl Shelf {
    /// Opens the store that a URL names.
    ///
    /// # Errors
    /// [`ServerError::Storage`].
    pub fn open(url: &str, credentials: &Credentials, opening: Opening) -> Result<Self> {
        Self::over(storage::open_with(url, credentials, opening)?)
    }

    /// Waits for a store that is open.
    ///
    /// # Errors
    /// [`ServerError::Unavailable`] where the system gives no threads.
    pub fn over(store: Arc<dyn ObjectStore>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime =
            runtime.map_err(|_| ServerError::Unavailable { reason: "has no threads left" })?;
        Ok(Self { store, runtime })
    }

    pub(super) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    pub(super) fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// Returns the part of the store that belongs to a workspace.
    pub(super) fn of(&self, workspace: WorkspaceId) -> Scoped {
        crate::app::scope_of(&self.store, workspace)
    }

    /// Walks over the objects whose keys begin so, in the order of keys.
    pub(super) fn walk(&self, prefix: String) -> Walk<'_> {
        Walk { shelf: self, prefix, page: VecDeque::new(), last: None, is_at_end: false }
    }
}

/// A list, page by page.
pub(super) struct Walk<'a> {
    shelf: &'a Shelf,
    prefix: String,
    page: VecDeque<ObjectEntry>,
    last: Option<ObjectKey>,
    is_at_end: bool,
}

impl Walk<'_> {
    /// Returns the next line, if there is one.
    pub(super) fn peek(&mut self) -> Result<Option<&ObjectEntry>> {
        if self.page.is_empty() && !self.is_at_end {
            let after = self.last.as_ref().map(ObjectKey::as_str);
            let page = self.shelf.wait(self.shelf.store.list(&self.prefix, after, PAGE))?;
            self.is_at_end = page.len() < PAGE;
            self.last = page.last().map(|line| line.key.clone());
            self.page = page.into();
        }
        Ok(self.page.front())
    }

    /// Takes the next line, if there is one.
    pub(super) fn take(&mut self) -> Result<Option<ObjectEntry>> {
        self.peek()?;
        Ok(self.page.pop_front())
    }

    /// Goes on to a key, and returns the size of what stands there, if anything does; what lies before it is shown.
    pub(super) fn find(
        &mut self,
        key: &ObjectKey,
        mut skip: impl FnMut(&ObjectEntry),
    ) -> Result<Option<u64>> {
        while let Some(line) = self.peek()? {
            if line.key > *key {
                break;
            }
            let (is_it, size) = (line.key == *key, line.size);
            if is_it {
                self.take()?;
                return Ok(Some(size));
            }
            skip(line);
            self.take()?;
        }
        Ok(None)
    }
}

/// Reads an object that is named after its content. An error says that nobody could look.
pub(super) async fn look(store: &dyn ObjectStore, key: &ObjectKey, length: u64) -> Result<Looked> {
    let unusable = |reason: &str| Ok(Looked::Unusable(reason.to_owned()));
    let bytes = match store.get(key).await {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return unusable("it is not in the store"),
        Err(error) if error.is_damage() => return Ok(Looked::Unusable(error.to_string())),
        Err(error) => return Err(error.into()),
    };
    if bytes.len() as u64 != length {
        return unusable("it has another length in the store");
    }
    if key.content_hash().is_some_and(|hash| hash != *blake3::hash(&bytes).as_bytes()) {
        return unusable("it has other bytes in the store than its name says");
    }
    Ok(Looked::Whole(bytes))
}
