//! Why the engine did not do what was asked.

use model::codec::DecodeError;
use model::path::InvalidPath;
use model::wire::RefusalKind;
use model::{ChunkId, DeviceId, PackId, RelativePath, Timestamp};

use crate::file_system::FileError;

/// Short form of the room's results.
pub type Result<T, E = SyncError> = std::result::Result<T, E>;

/// The errors of this room.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The local database failed.
    #[error("the local database {place} failed: {source}")]
    Database {
        /// Which file.
        place: String,
        /// Why.
        source: rusqlite::Error,
    },
    /// The local database was made by a newer version.
    #[error("the local database {place} has version {version}; the newest known here is {newest}")]
    NewerDatabase {
        /// Which file.
        place: String,
        /// Its version.
        version: i64,
        /// The newest version that this program reads.
        newest: i64,
    },
    /// Something in the local database cannot be decoded.
    #[error("the local database holds something that cannot be read: {0}")]
    Decode(#[from] DecodeError),
    /// The folder failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// A path may not be.
    #[error(transparent)]
    Path(#[from] InvalidPath),
    /// The log failed.
    #[error(transparent)]
    Log(#[from] commit_log::CommitLogError),
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] storage::StorageError),
    /// Chunks, packs or manifests failed.
    #[error(transparent)]
    Content(#[from] content::ContentError),
    /// The log forgot or changed entries that this device has seen, or lies.
    #[error("entry {seq} of the log does not continue what this device has seen")]
    HistoryDiverged {
        /// The entry that does not fit.
        seq: u64,
    },
    /// The log has an entry whose author had seen another history: the server shows different ones to different devices.
    #[error("the device that made entry {seq} had seen another history than this one")]
    HistoryForked {
        /// The entry.
        seq: u64,
    },
    /// The root folder is not the one that was synced.
    #[error("the folder is not the one that was synced: {0}")]
    RootMismatch(String),
    /// More was deleted at once than a person would.
    #[error("{deleted} of {total} files vanished")]
    MassDelete {
        /// How many.
        deleted: u64,
        /// Of how many.
        total: u64,
    },
    /// A chunk is in no pack that this device knows of.
    #[error("block {0} is not stored anywhere")]
    ChunkMissing(ChunkId),
    /// A chunk is made from others, which are made from others again, and so on beyond what anybody reads.
    #[error(
        "block {0} is made from too many others; nothing was changed, and a device that has the file can write it anew"
    )]
    MadeFromTooMany(ChunkId),
    /// A pack that the log names is not stored.
    #[error("pack {0} is not stored any more")]
    PackMissing(PackId),
    /// There is no such path in the workspace.
    #[error("'{0}' is not in this workspace")]
    NoSuchPath(RelativePath),
    /// There is no such version.
    #[error("'{path}' has no version v{seq}")]
    NoSuchVersion {
        /// Which path.
        path: RelativePath,
        /// Which version.
        seq: u64,
    },
    /// What should be restored would replace something.
    #[error("'{0}' exists already")]
    WouldOverwrite(RelativePath),
    /// The node is no conflict.
    #[error("'{0}' is not in conflict")]
    NoConflict(RelativePath),
    /// A conflict cannot be decided by merging; nothing was changed.
    #[error("'{path}' cannot be merged: {trouble}")]
    NotMerged {
        /// The kept copy.
        path: RelativePath,
        /// Why.
        trouble: MergeTrouble,
    },
    /// Another device changed the settings of the workspace first; the proposal has no effect.
    #[error("another device has changed the settings of the workspace meanwhile")]
    SettingsChanged,
    /// As many folders as may be are workspaces of their own already.
    #[error("{max} folders of the workspace are workspaces of their own already")]
    TooManyMounts {
        /// How many there may be.
        max: usize,
    },
    /// The workspace has other stores than those with which the engine was opened. What was done is in order; the engine is to
    /// be opened anew, with them.
    #[error("the workspace has other stores since version {version} of its settings")]
    StoresChanged {
        /// The version of the settings that is in force now.
        version: u64,
    },
    /// Another device removes pieces from stores, or was cut off while it did.
    #[error(
        "another device has begun to remove what is stored twice, and has not said that it is done"
    )]
    NotOurTurn {
        /// Which one, where that can be read.
        device: Option<DeviceId>,
    },
    /// A cleanup has removed the content of a version.
    #[error("version v{seq} of '{path}' was removed by a cleanup (v{fence})")]
    VersionDropped {
        /// Which path.
        path: RelativePath,
        /// Which version.
        seq: u64,
        /// The entry that says so.
        fence: u64,
        /// When that was, by the clock of the device that cleaned up.
        time: Timestamp,
    },
    /// What is needed cannot be told, because something of it cannot be read; nothing was removed.
    #[error("what is stored is not whole: {0}")]
    NotWhole(String),
    /// The clock of this device is far ahead of everything that was ever written; nothing was removed.
    #[error("the clock of this device is {days} days ahead of the newest change of the workspace")]
    ClockAhead {
        /// How far.
        days: u64,
    },
    /// Other devices wrote each time when this one was about to remove something; nothing was removed.
    #[error("other devices have changed the workspace each of {0} times")]
    CleanupOvertaken(u32),
    /// The planner does not come to an end; this is a defect.
    #[error("no plan leads to agreement after {0} rounds")]
    NotSettling(u32),
}

/// Why two versions of a file need a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MergeTrouble {
    /// The file that it conflicts with is gone.
    #[error("the file that it conflicts with is not there any more")]
    NoOriginal,
    /// Two files that were made apart under one name.
    #[error("both sides made it, so there is no version from which both started")]
    NoBase,
    /// Only lines can be merged.
    #[error("it is no text")]
    NotText,
    /// Too large to be merged in memory.
    #[error("it has more than {} MiB", crate::text_merge::TEXT_SIZE_MAX >> 20)]
    TooLarge,
    /// Both sides changed the same lines in different ways.
    #[error("both sides changed the same lines, in {places} places")]
    SameLines {
        /// In how many places.
        places: usize,
    },
}

/// Why the local database failed, as far as the way out differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseTrouble {
    /// It is no database any more, or holds what cannot be read: it can be made anew.
    Damaged,
    /// The disk is full.
    NoSpace,
    /// Another process works on it.
    Busy,
    /// Anything else.
    Other,
}

impl SyncError {
    /// Tells why the local database failed, if it did.
    pub fn database_trouble(&self) -> Option<DatabaseTrouble> {
        use rusqlite::ErrorCode;
        match self {
            Self::Database { source, .. } => Some(match source.sqlite_error_code() {
                Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                    DatabaseTrouble::Damaged
                }
                Some(ErrorCode::DiskFull) => DatabaseTrouble::NoSpace,
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => DatabaseTrouble::Busy,
                _ => DatabaseTrouble::Other,
            }),
            Self::Decode(_) => Some(DatabaseTrouble::Damaged),
            _ => None,
        }
    }

    /// Tells whether something that was stored is damaged or gone. That concerns the files which are made of it, and no
    /// others.
    pub fn is_of_stored_data(&self) -> bool {
        match self {
            Self::ChunkMissing(_)
            | Self::MadeFromTooMany(_)
            | Self::PackMissing(_)
            | Self::Content(_) => true,
            Self::Storage(error) => error.is_damage(),
            _ => false,
        }
    }

    /// Tells whether the workspace has other stores now, and what opened this must open it anew.
    pub fn wants_other_stores(&self) -> bool {
        let is_of_log = matches!(self, Self::Log(commit_log::CommitLogError::GroupChanged { .. }));
        is_of_log || matches!(self, Self::StoresChanged { .. })
    }

    /// Tells whether a server has refused to write, to an account that may read.
    pub fn says_read_only(&self) -> bool {
        match self {
            Self::Log(error) => error.is_refusal(RefusalKind::NotAllowed),
            Self::Storage(error) => matches!(error, storage::StorageError::MayOnlyRead { .. }),
            _ => false,
        }
    }

    /// Tells whether trying again may help.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Log(error) => error.is_retryable(),
            Self::Storage(error) => error.is_retryable(),
            Self::File(error) => matches!(error, FileError::NoSpace(_) | FileError::Changed(_)),
            _ => false,
        }
    }
}
