//! What a decorator does that treats all calls alike: count them, delay them, let only some in.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::direct::{Direct, SignedRequest};
use crate::error::Result;
use crate::key::ObjectKey;
use crate::object_store::{ObjectEntry, ObjectStore, PutMode, PutOutcome, Waited};

/// Which method of a store is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// [`ObjectStore::put`].
    Put,
    /// [`ObjectStore::put_deferred`].
    PutDeferred,
    /// [`ObjectStore::sync`].
    Sync,
    /// [`ObjectStore::get`].
    Get,
    /// [`ObjectStore::get_range`] and [`ObjectStore::get_tail`].
    GetRange,
    /// [`ObjectStore::size`].
    Size,
    /// [`ObjectStore::list`].
    List,
    /// [`ObjectStore::delete`].
    Delete,
    /// [`ObjectStore::wait_for`] with no patience, or the moment before the waiting.
    Look,
    /// [`ObjectStore::mend`].
    Mend,
}

/// What a store answers to one call, once somebody awaits it.
pub trait Answer<A>: Future<Output = Result<A>> + Send {}

impl<A, F: Future<Output = Result<A>> + Send> Answer<A> for F {}

/// A way into a store through which every call goes; whoever has one is an [`ObjectStore`].
///
/// It sees which method is called, and may do something before and after, wait, drop the call or fail in its place. It does
/// not see what is asked and answered: a decorator that changes that implements the store itself.
pub trait Gate: Send + Sync + fmt::Debug {
    /// Returns the store behind.
    fn store(&self) -> &dyn ObjectStore;

    /// Lets a call through, which happens when `answer` is awaited; `sent` is how many bytes it brings along.
    fn pass<A: Send>(
        &self,
        operation: Operation,
        sent: usize,
        answer: impl Answer<A>,
    ) -> impl Answer<A>;
}

#[async_trait]
impl<G: Gate> ObjectStore for G {
    fn describe(&self) -> String {
        self.store().describe()
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        let sent = bytes.len();
        self.pass(Operation::Put, sent, self.store().put(key, bytes, mode)).await
    }

    async fn put_deferred(&self, key: &ObjectKey, bytes: Bytes) -> Result<()> {
        let sent = bytes.len();
        self.pass(Operation::PutDeferred, sent, self.store().put_deferred(key, bytes)).await
    }

    async fn sync(&self) -> Result<()> {
        self.pass(Operation::Sync, 0, self.store().sync()).await
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        self.pass(Operation::Get, 0, self.store().get(key)).await
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        self.pass(Operation::GetRange, 0, self.store().get_range(key, range)).await
    }

    async fn get_tail(&self, key: &ObjectKey, length: u64) -> Result<Option<Bytes>> {
        self.pass(Operation::GetRange, 0, self.store().get_tail(key, length)).await
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        self.pass(Operation::Size, 0, self.store().size(key)).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        self.pass(Operation::List, 0, self.store().list(prefix, start_after, limit)).await
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        self.pass(Operation::Delete, 0, self.store().delete(key)).await
    }

    async fn wait_for(&self, key: &ObjectKey, patience: Duration) -> Result<Waited> {
        if patience.is_zero() {
            let look = self.store().wait_for(key, patience);
            return self.pass(Operation::Look, 0, look).await;
        }
        // Who waits goes through, too, but stands behind the gate, so that nobody is kept out meanwhile.
        self.pass(Operation::Look, 0, std::future::ready(Ok(()))).await?;
        self.store().wait_for(key, patience).await
    }

    // Nobody is asked for it.
    async fn sign_request(
        &self,
        key: &ObjectKey,
        direct: Direct,
        lifetime: Duration,
    ) -> Result<Option<SignedRequest>> {
        self.store().sign_request(key, direct, lifetime).await
    }

    fn parts(&self) -> usize {
        self.store().parts()
    }

    async fn mend(&self, key: &ObjectKey) -> Result<bool> {
        self.pass(Operation::Mend, 0, self.store().mend(key)).await
    }
}
