//! A simulated server: the real sync service and its database in memory, behind a network that loses, repeats and delays.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use bytes::Bytes;
use commit_log::CommitLogError;
use commit_log::served::Connection;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use model::wire::{Reply, Request, RequestFrame};
use model::{Entry, Genesis, PackId, Random, WorkspaceId};
use parking_lot::Mutex;
use server::metadata::Metadata;
use server::services::condemned::CondemnedPacks;
use server::services::{accounts, batch, objects, workspaces};
use server::{Caller, ServerError, Sqlite, SyncService};
use storage::{ObjectEntry, ObjectKey, ObjectStore, PutMode, PutOutcome, StorageError};

use crate::coverage::Fault;
use crate::store::{MemoryStore, Network};

/// A server; clones share it.
#[derive(Debug, Clone)]
pub struct SimulatedServer(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    service: SyncService,
    subscribers: Vec<(WorkspaceId, Network, Mailbox)>,
    workspace: WorkspaceId,
    /// What its log condemns.
    condemned: CondemnedPacks,
    /// While this is above 0 the server is down; every attempt to reach it brings it nearer.
    down_for: u32,
}

impl SimulatedServer {
    /// Starts a server with one account, its devices and one workspace.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn start(
        genesis: &Genesis,
        random: &dyn Random,
        devices: usize,
    ) -> Result<(Self, Vec<Caller>), ServerError> {
        let mut database = Sqlite::open_in_memory()?;
        let account = accounts::create_account(&mut database, "ada", server::auth::NO_PASSWORD, 0)?;
        let mut callers = Vec::new();
        for number in 0..devices {
            let name = format!("device {number}");
            callers.push(accounts::enrol_device(&mut database, random, account, &name, 0)?.0);
        }
        if let Some(caller) = callers.first() {
            workspaces::create(&mut database, caller, genesis)?;
        }
        let inner = Inner {
            service: SyncService::new(database),
            subscribers: Vec::new(),
            workspace: genesis.workspace(),
            condemned: CondemnedPacks::default(),
            down_for: 0,
        };
        Ok((Self(Arc::new(Mutex::new(inner))), callers))
    }

    /// Returns a copy of the database.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn snapshot(&self) -> Result<Vec<u8>, ServerError> {
        Ok(self.0.lock().service.metadata_mut().snapshot()?)
    }

    /// Goes back to an older copy of the database.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn restore(&self, snapshot: &[u8]) -> Result<(), ServerError> {
        let service = SyncService::new(Sqlite::from_snapshot(snapshot)?);
        self.0.lock().service = service;
        Ok(())
    }

    /// Tells whether the server can be reached, and lets it crash now and then.
    fn is_up(&self, network: &Network) -> bool {
        let mut inner = self.0.lock();
        if inner.down_for > 0 {
            inner.down_for -= 1;
            return inner.down_for == 0;
        }
        if network.happens(network.faults().down, Fault::ServerDown) {
            // Whoever was subscribed has to come again.
            inner.subscribers.clear();
            inner.down_for = 4;
            return false;
        }
        true
    }

    fn answer(&self, caller: &Caller, frame: RequestFrame) -> Reply {
        let mut inner = self.0.lock();
        let answer = inner.service.answer(caller, frame);
        if let Some((workspace, entry)) = answer.event {
            inner.subscribers.retain(|(.., mailbox)| Arc::strong_count(&mailbox.0) > 1);
            for (of, network, mailbox) in &inner.subscribers {
                if *of != workspace || network.happens(network.faults().event, Fault::EventLost) {
                    continue;
                }
                let is_twice = network.happens(network.faults().event, Fault::EventTwice);
                (0..=u32::from(is_twice)).for_each(|_| mailbox.put((*entry).clone()));
            }
        }
        answer.reply
    }

    /// Tells whether the log condemns a pack.
    fn condemns(&self, caller: &Caller, pack: &PackId) -> Result<bool, ServerError> {
        let mut inner = self.0.lock();
        let Inner { service, condemned, workspace, .. } = &mut *inner;
        condemned.catch_up(service.metadata(), caller, *workspace)?;
        Ok(condemned.contains(pack))
    }

    fn write<T: Send>(
        &self,
        work: impl FnMut(&mut dyn Metadata) -> Result<T, ServerError> + Send,
    ) -> Result<T, ServerError> {
        let mut inner = self.0.lock();
        let answers = batch::run(inner.service.metadata_mut(), vec![Box::new(work)]);
        answers.into_iter().next().unwrap_or(Err(ServerError::NotSignedIn))
    }
}

/// Events on their way to one subscriber.
#[derive(Debug, Clone, Default)]
struct Mailbox(Arc<Mutex<(VecDeque<Entry>, Option<Waker>)>>);

impl Mailbox {
    fn put(&self, entry: Entry) {
        let mut inner = self.0.lock();
        inner.0.push_back(entry);
        if let Some(waker) = inner.1.take() {
            waker.wake();
        }
    }

    fn take(&self, context: &Context<'_>) -> Poll<Entry> {
        let mut inner = self.0.lock();
        match inner.0.pop_front() {
            Some(entry) => Poll::Ready(entry),
            None => {
                inner.1 = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// The connection of one device.
#[derive(Debug, Clone)]
pub struct SimulatedConnection {
    server: SimulatedServer,
    caller: Caller,
    network: Network,
}

impl SimulatedConnection {
    /// Connects a device.
    pub fn new(server: SimulatedServer, caller: Caller, network: Network) -> Self {
        Self { server, caller, network }
    }

    fn unreachable(&self, reason: &str) -> CommitLogError {
        CommitLogError::Unreachable { place: self.describe(), reason: reason.to_owned() }
    }
}

#[async_trait]
impl Connection for SimulatedConnection {
    fn describe(&self) -> String {
        "the simulated server".to_owned()
    }

    async fn call(
        &self,
        workspace: WorkspaceId,
        request: Request,
    ) -> Result<Reply, CommitLogError> {
        self.network.delay().await;
        let faults = self.network.faults();
        if !self.server.is_up(&self.network) {
            return Err(self.unreachable("it is down"));
        }
        if self.network.happens(faults.error_before, Fault::RequestLost) {
            return Err(self.unreachable("the request was lost"));
        }
        let frame = RequestFrame { number: 1, workspace, request };
        self.network
            .note("call", format_args!("{} {:?}", name_of(&frame.request), self.caller.device));
        if self.network.happens(faults.duplicate, Fault::RequestTwice) {
            self.server.answer(&self.caller, frame.clone());
            self.network.delay().await;
        }
        let reply = self.server.answer(&self.caller, frame);
        self.network.delay().await;
        if self.network.happens(faults.error_after, Fault::ReplyLost) {
            return Err(self.unreachable("the reply was lost"));
        }
        Ok(reply)
    }

    fn events(&self, workspace: WorkspaceId) -> BoxStream<'static, Entry> {
        let mailbox = Mailbox::default();
        self.server.0.lock().subscribers.push((workspace, self.network.clone(), mailbox.clone()));
        // A connection whose server has crashed is silent, and the cursor heals it.
        futures_util::stream::poll_fn(move |context| mailbox.take(context).map(Some)).boxed()
    }
}

fn name_of(request: &Request) -> &'static str {
    match request {
        Request::Commit(_) => "commit",
        Request::Head => "head",
        Request::Entries { .. } => "entries",
        Request::Subscribe { .. } => "subscribe",
        Request::Checkpoint => "checkpoint",
        Request::PublishCheckpoint(_) => "publish checkpoint",
        Request::Genesis => "genesis",
        Request::InSync => "in sync",
    }
}

/// The pack door of the server, without HTTP: an object is stored, then noted in the database.
#[derive(Debug)]
pub struct PackDoor {
    server: SimulatedServer,
    caller: Caller,
    store: MemoryStore,
}

impl PackDoor {
    /// Opens the door for a device.
    pub fn new(server: SimulatedServer, caller: Caller, store: MemoryStore) -> Self {
        Self { server, caller, store }
    }

    fn workspace(&self) -> WorkspaceId {
        self.server.0.lock().workspace
    }

    fn failed(&self, operation: &str, error: ServerError) -> StorageError {
        StorageError::Failed {
            store: self.describe(),
            operation: operation.to_owned(),
            source: Box::new(error),
        }
    }
}

#[async_trait]
impl ObjectStore for PackDoor {
    fn describe(&self) -> String {
        "the simulated server".to_owned()
    }

    async fn put(
        &self,
        key: &ObjectKey,
        bytes: Bytes,
        mode: PutMode,
    ) -> Result<PutOutcome, StorageError> {
        objects::check_key(key.as_str()).map_err(|error| self.failed("check", error))?;
        let length = bytes.len() as u64;
        self.store.put(key, bytes, mode).await?;
        let (caller, workspace, key) = (self.caller, self.workspace(), key.clone());
        let noted = self
            .server
            .write(move |metadata| objects::record(metadata, &caller, workspace, &key, length));
        match noted.map_err(|error| self.failed("note", error))? {
            true => Ok(PutOutcome::Written),
            false => Ok(PutOutcome::Exists),
        }
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>, StorageError> {
        self.store.get(key).await
    }

    async fn get_range(
        &self,
        key: &ObjectKey,
        range: Range<u64>,
    ) -> Result<Option<Bytes>, StorageError> {
        self.store.get_range(key, range).await
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>, StorageError> {
        self.store.size(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>, StorageError> {
        self.store.list(prefix, start_after, limit).await
    }

    async fn delete(&self, key: &ObjectKey) -> Result<(), StorageError> {
        let is_condemned = match key.as_pack() {
            Some(pack) => self.server.condemns(&self.caller, &pack),
            None => Ok(false),
        };
        let is_condemned = is_condemned.map_err(|error| self.failed("read", error))?;
        let (caller, workspace, forgotten) = (self.caller, self.workspace(), key.clone());
        let done = self.server.write(move |metadata| {
            objects::forget(metadata, &caller, workspace, &forgotten, is_condemned)
        });
        done.map_err(|error| self.failed("forget", error))?;
        self.store.delete(key).await
    }
}
