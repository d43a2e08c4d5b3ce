//! Files that come in pieces, and long deltas, so that whoever is cut off goes on where that was.
//!
//! *Invariants*: a piece is taken in order and whole, or as far as it came; nothing of an upload is visible before it is
//! committed; how many there are is bounded, and one that nobody goes on with ends. They end with the server.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::BodyDataStream;
use model::environment::random_bytes;
use model::{DeviceId, OpId, RelativePath, WorkspaceId};
use parking_lot::Mutex;

use super::{Applied, DeltaAnswer, Put, Spool, Spooled};
use crate::app::App;
use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::metadata::AccountId;

/// How many uploads there are at most, less than bodies may be kept aside, and how many of one account.
const UPLOADS_MAX: usize = 48;
const UPLOADS_OF_ACCOUNT_MAX: usize = 16;

/// How long nobody need go on with an upload.
pub const UPLOAD_LIFE: Duration = Duration::from_secs(3600);

/// An upload.
#[derive(Debug)]
struct Upload {
    account: AccountId,
    /// Which device has begun it: it ends when that is signed out.
    device: DeviceId,
    workspace: WorkspaceId,
    path: RelativePath,
    /// Nothing once it was committed, or where a piece was lost on a full disk.
    came: tokio::sync::Mutex<Option<Came>>,
    ends: Mutex<Duration>,
}

impl Upload {
    /// Tells whether somebody may go on with it: it ends when nobody has for a while, and not under whoever does.
    fn is_alive(&self, now: Duration) -> bool {
        *self.ends.lock() > now || self.came.try_lock().is_err()
    }

    fn live_on(&self, now: Duration) {
        *self.ends.lock() = now + UPLOAD_LIFE;
    }
}

/// What has come of a file.
#[derive(Debug)]
enum Came {
    /// Pieces of it.
    Pieces(Box<Spool>),
    /// All of it: somebody has wanted to commit it. It is kept, lest it be sent again where that was refused.
    Whole(Spooled),
}

impl Came {
    fn length(&self) -> u64 {
        match self {
            Self::Pieces(spool) => spool.length(),
            Self::Whole(spooled) => spooled.length,
        }
    }
}

/// All uploads.
#[derive(Debug, Default)]
pub(crate) struct Uploads(Mutex<HashMap<OpId, Arc<Upload>>>);

impl Uploads {
    /// Ends all that a device has begun.
    pub(crate) fn end_of_device(&self, device: DeviceId) {
        self.0.lock().retain(|_, upload| upload.device != device);
    }

    /// Forgets those with which nobody has gone on for a while, and what has come of them.
    pub(crate) fn forget_old(&self, now: Duration) {
        self.0.lock().retain(|_, upload| upload.is_alive(now));
    }

    /// Tells whether nobody has given this one up.
    ///
    /// # Errors
    /// [`ServerError::NotFound`] where somebody has.
    pub(super) fn check_wanted(&self, id: &OpId) -> Result<()> {
        match self.0.lock().contains_key(id) {
            true => Ok(()),
            false => Err(unknown(id)),
        }
    }
}

/// How far an upload is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadState {
    /// Its id.
    pub id: OpId,
    /// Where the file is to go.
    pub path: RelativePath,
    /// How many bytes have come.
    pub offset: u64,
}

fn unknown(id: &OpId) -> ServerError {
    ServerError::NotFound { what: format!("upload '{id}'") }
}

impl App {
    /// Begins an upload.
    ///
    /// # Errors
    /// Those of [`App::view`]; [`ServerError::Unavailable`] where there are too many.
    pub async fn begin_upload(
        &self,
        caller: Caller,
        workspace: WorkspaceId,
        path: RelativePath,
    ) -> Result<UploadState> {
        drop(self.view_to_write(caller, workspace).await?);
        let now = self.clock.elapsed();
        let full = |uploads: &HashMap<OpId, Arc<Upload>>| {
            let of_account = |upload: &&Arc<Upload>| upload.account == caller.account;
            uploads.len() >= UPLOADS_MAX
                || uploads.values().filter(of_account).count() >= UPLOADS_OF_ACCOUNT_MAX
        };
        let busy = ServerError::Unavailable { reason: "has too many uploads under way" };
        self.files.uploads.forget_old(now);
        if full(&self.files.uploads.0.lock()) {
            return Err(busy);
        }
        let upload = Arc::new(Upload {
            account: caller.account,
            device: caller.device,
            workspace,
            path: path.clone(),
            came: tokio::sync::Mutex::new(Some(Came::Pieces(Box::new(
                Spool::begin_file(&self.files.spools).await?,
            )))),
            ends: Mutex::new(now + UPLOAD_LIFE),
        });
        let id = OpId::from_bytes(random_bytes(&*self.random));
        let mut uploads = self.files.uploads.0.lock();
        if full(&uploads) {
            return Err(busy);
        }
        uploads.insert(id, upload);
        Ok(UploadState { id, path, offset: 0 })
    }

    /// Returns an upload of the caller that has not ended, and lets it live on.
    fn upload(&self, caller: Caller, workspace: WorkspaceId, id: &OpId) -> Result<Arc<Upload>> {
        let now = self.clock.elapsed();
        let uploads = self.files.uploads.0.lock();
        let found = uploads.get(id).filter(|upload| {
            upload.account == caller.account
                && upload.workspace == workspace
                && upload.is_alive(now)
        });
        let found = Arc::clone(found.ok_or_else(|| unknown(id))?);
        found.live_on(now);
        Ok(found)
    }

    /// Returns how far an upload is.
    ///
    /// # Errors
    /// [`ServerError::NotFound`]; [`ServerError::Conflict`] while a piece of it is coming.
    pub fn upload_state(
        &self,
        caller: Caller,
        workspace: WorkspaceId,
        id: OpId,
    ) -> Result<UploadState> {
        let upload = self.upload(caller, workspace, &id)?;
        let came = upload.came.try_lock().map_err(|_| under_way(&id))?;
        let offset = came.as_ref().ok_or_else(|| unknown(&id))?.length();
        Ok(UploadState { id, path: upload.path.clone(), offset })
    }

    /// Takes the next piece of an upload, which begins at `offset`. What of it has come before it breaks off is kept, also
    /// where whoever sends it has gone.
    ///
    /// # Errors
    /// [`ServerError::Conflict`] for another place, or while another piece is coming; those of [`Spool::take`].
    pub async fn take_piece(
        self: &Arc<Self>,
        (caller, workspace): (Caller, WorkspaceId),
        id: OpId,
        offset: u64,
        mut body: BodyDataStream,
    ) -> Result<UploadState> {
        let upload = self.upload(caller, workspace, &id)?;
        let app = Arc::clone(self);
        let take = async move {
            let mut came = upload.came.try_lock().map_err(|_| under_way(&id))?;
            let refuse =
                |reason| Err(ServerError::Conflict { what: format!("upload '{id}'"), reason });
            let current = match came.as_mut().ok_or_else(|| unknown(&id))? {
                Came::Whole(_) => return refuse("is whole; commit it, or begin another one"),
                Came::Pieces(current) => current,
            };
            if current.length() != offset {
                return refuse("goes on at another place; ask for its offset");
            }
            let taken = current.take(&mut body).await;
            // A long piece may take longer than it lives.
            upload.live_on(app.clock.elapsed());
            match taken {
                Ok(()) => {
                    Ok(UploadState { id, path: upload.path.clone(), offset: current.length() })
                }
                Err(error @ ServerError::Invalid { .. }) => Err(error),
                Err(error) => {
                    // A piece may be lost between memory and a full disk.
                    app.forget_upload(&mut came, &id);
                    Err(error)
                }
            }
        };
        tokio::spawn(take).await.unwrap_or(Err(ServerError::STOPPING))
    }

    /// Ends an upload without a trace; one that there is not ends, too.
    pub fn drop_upload(&self, caller: Caller, workspace: WorkspaceId, id: OpId) {
        if self.upload(caller, workspace, &id).is_ok() {
            self.files.uploads.0.lock().remove(&id);
        }
    }

    /// Puts the file of an upload that is complete. What was refused, as for want of room, may be tried again without being sent again; what
    /// `check` refuses is forgotten.
    ///
    /// # Errors
    /// As [`App::put_file`]; those of `check`.
    pub async fn commit_upload(
        self: &Arc<Self>,
        (caller, workspace): (Caller, WorkspaceId),
        id: OpId,
        put_at: impl FnOnce(RelativePath) -> Result<Put>,
        check: impl FnOnce(&Spooled) -> Result<()>,
    ) -> Result<(RelativePath, Applied)> {
        let upload = self.upload(caller, workspace, &id)?;
        let put = Put { upload: Some(id), ..put_at(upload.path.clone())? };
        self.check_put(caller, workspace, &put).await?;
        let mut came = upload.came.try_lock().map_err(|_| under_way(&id))?;
        let spooled = self.whole_of(&mut came, &id).await?;
        check(&spooled).inspect_err(|_| self.forget_upload(&mut came, &id))?;
        let applied = self.put_file(caller, workspace, &put, &spooled).await;
        let applied = applied.inspect_err(|_| upload.live_on(self.clock.elapsed()))?;
        self.forget_upload(&mut came, &id);
        Ok((upload.path.clone(), applied))
    }

    /// Takes what came as an upload as what a client sends of a delta to its path. What was refused may be tried again without being sent
    /// again; what was answered is forgotten.
    ///
    /// # Errors
    /// As [`App::take_delta`].
    pub(crate) async fn take_uploaded_delta(
        self: &Arc<Self>,
        (caller, workspace): (Caller, WorkspaceId),
        id: OpId,
        put_at: impl FnOnce(RelativePath) -> Result<Put>,
    ) -> Result<(RelativePath, DeltaAnswer)> {
        let upload = self.upload(caller, workspace, &id)?;
        let put = Put { upload: Some(id), ..put_at(upload.path.clone())? };
        let author = self.let_write(caller, workspace).await?;
        let mut came = upload.came.try_lock().map_err(|_| under_way(&id))?;
        let spooled = self.whole_of(&mut came, &id).await?;
        let answer = self.take_delta(author, &put, &spooled).await;
        let answer = answer.inspect_err(|_| upload.live_on(self.clock.elapsed()))?;
        self.forget_upload(&mut came, &id);
        Ok((upload.path.clone(), answer))
    }

    /// Ends the pieces of an upload, and keeps the whole.
    async fn whole_of(&self, came: &mut Option<Came>, id: &OpId) -> Result<Spooled> {
        let whole = match came.take().ok_or_else(|| unknown(id))? {
            Came::Whole(spooled) => Ok(spooled),
            Came::Pieces(spool) => spool.finish().await,
        };
        let whole = whole.inspect_err(|_| self.forget_upload(came, id))?;
        *came = Some(Came::Whole(whole.clone()));
        Ok(whole)
    }

    fn forget_upload(&self, came: &mut Option<Came>, id: &OpId) {
        *came = None;
        self.files.uploads.0.lock().remove(id);
    }
}

fn under_way(id: &OpId) -> ServerError {
    ServerError::Conflict {
        what: format!("upload '{id}'"),
        reason: "is taking another piece; try again when that has ended",
    }
}

#[cfg(test)]
mod tests;
