//! Objects on their way into the store, from a device or from a file that was received.
//!
//! *Invariant*: what was stored is never taken back, whatever is refused: another server may have noted the same object since. Where
//! the owner has a quota, room is taken before the store sees the bytes.

use bytes::Bytes;
use model::WorkspaceId;
use storage::{ObjectKey, ObjectStore, PutMode};

use super::App;
use crate::auth::Caller;
use crate::blocking;
use crate::error::{Result, ServerError};
use crate::metadata::Metadata;
use crate::services::objects;

impl App {
    /// Looks whether there is room, and returns whether it must be taken before the object is stored.
    ///
    /// # Errors
    /// As [`objects::check_room`].
    pub(crate) async fn check_room(
        &self,
        (caller, workspace): (Caller, WorkspaceId),
        key: &ObjectKey,
        length: u64,
    ) -> Result<bool> {
        let key = key.clone();
        let check = move |metadata: &dyn Metadata| {
            objects::check_room(metadata, &caller, workspace, &key, length)
        };
        self.readers.read(check).await
    }

    /// Stores an object, whose bytes were compared with its name, and notes it; returns whether it is new to the workspace.
    /// `is_limited` is what [`Self::check_room`] has said.
    ///
    /// # Errors
    /// As [`objects::reserve`] and [`objects::record`]; [`crate::ServerError::Storage`].
    pub(crate) async fn keep_object(
        &self,
        (caller, workspace): (Caller, WorkspaceId),
        key: &ObjectKey,
        bytes: Bytes,
        is_limited: bool,
    ) -> Result<bool> {
        // Here nobody deletes the object meanwhile.
        let turn = self.lock_object(workspace, key).await;
        let (store, length) = (self.store_of(workspace), bytes.len() as u64);
        if is_limited {
            self.reserve((caller, workspace), key, length).await?;
        }
        // The bytes are known to be right, so writing over what is there can only heal it.
        let put = store.put(key, bytes, PutMode::Overwrite).await;
        let brought = put.map(drop).map_err(ServerError::from);
        let recorded = self.record((caller, workspace), key, (length, is_limited), brought).await;
        if recorded.is_ok() {
            self.metrics.object_bytes_in.add(length);
        }
        drop(turn);
        recorded
    }

    /// Reads an object that somebody else has brought into the store, compares it with its name, and notes it; returns whether it is new
    /// to the workspace. `is_limited` is what [`Self::check_room`] has said.
    ///
    /// # Errors
    /// [`ServerError::NotFound`] where nothing is there, [`ServerError::WrongContent`] for other bytes, or more or fewer; as
    /// [`objects::record`].
    pub(crate) async fn keep_what_is_there(
        &self,
        (caller, workspace): (Caller, WorkspaceId),
        key: &ObjectKey,
        length: u64,
        is_limited: bool,
    ) -> Result<bool> {
        let turn = self.lock_object(workspace, key).await;
        let brought = self.is_right(workspace, key, length).await;
        let recorded = self.record((caller, workspace), key, (length, is_limited), brought).await;
        drop(turn);
        recorded
    }

    /// Checks that the store has an object of this length and with the hash that its name says.
    async fn is_right(&self, workspace: WorkspaceId, key: &ObjectKey, length: u64) -> Result<()> {
        let store = self.store_of(workspace);
        let absent = || ServerError::NotFound { what: format!("object '{key}'") };
        let wrong = || ServerError::WrongContent { key: key.to_string() };
        if store.size(key).await?.ok_or_else(absent)? != length {
            return Err(wrong());
        }
        let bytes = store.get_range(key, 0..length).await?.ok_or_else(absent)?;
        // Hashing many bytes would hold up others.
        let hash = move || (bytes.len() as u64, blake3::hash(&bytes));
        let (found, hash) = blocking::piece(hash).await?;
        let pack = key.as_pack().filter(|_| found == length);
        match pack.is_some_and(|pack| pack.as_bytes() == hash.as_bytes()) {
            true => Ok(()),
            false => Err(wrong()),
        }
    }

    /// Takes room for an object that is about to be stored.
    ///
    /// # Errors
    /// As [`objects::reserve`].
    pub(crate) async fn reserve(
        &self,
        (caller, workspace): (Caller, WorkspaceId),
        key: &ObjectKey,
        length: u64,
    ) -> Result<()> {
        let (key, now) = (key.clone(), self.now());
        let reserve = move |metadata: &mut dyn Metadata| {
            objects::reserve(metadata, &caller, workspace, (&key, length), now)
        };
        self.writer.write(reserve).await
    }

    /// Notes an object that was brought into the store, or gives the room back that was taken for one that was not.
    async fn record(
        &self,
        (caller, workspace): (Caller, WorkspaceId),
        key: &ObjectKey,
        (length, is_limited): (u64, bool),
        brought: Result<()>,
    ) -> Result<bool> {
        let key = key.clone();
        if let Err(error) = brought {
            if is_limited {
                self.release(workspace, key).await;
            }
            return Err(error);
        }
        let record = move |metadata: &mut dyn Metadata| {
            objects::record(metadata, &caller, workspace, &key, length)
        };
        self.writer.write(record).await
    }

    /// Gives the room of an object back that could not be stored. Where that fails it is free after a day.
    async fn release(&self, workspace: WorkspaceId, key: ObjectKey) {
        let release =
            move |metadata: &mut dyn Metadata| objects::release(metadata, workspace, &key);
        if let Err(error) = self.writer.write(release).await {
            tracing::warn!(%error, "room for an object that was not stored stays taken for a day");
        }
    }
}
