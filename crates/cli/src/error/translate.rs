//! From the errors of the rooms to what a user reads. Nothing is re-worded twice: a room's own text becomes the cause.

use commit_log::CommitLogError;
use content::ContentError;
use model::DeviceId;
use model::wire::{Refusal, RefusalKind};
use server::ServerError;
use server::metadata::MetadataError;
use storage::StorageError;
use sync::file_system::FileError;
use sync::file_system::native::LockError;
use sync::{DatabaseTrouble, SyncError};

use super::{Code, CommandError};

const SAFE: &str =
    "nothing was lost; what was not sent is still in the folder and goes with the next sync";

impl From<SyncError> for CommandError {
    fn from(error: SyncError) -> Self {
        let text = error.to_string();
        let trouble = error.database_trouble();
        match error {
            SyncError::Database { .. } | SyncError::Decode(_) => {
                database(trouble.unwrap_or(DatabaseTrouble::Other), text)
            }
            SyncError::NewerDatabase { .. } => newer(text),
            SyncError::File(error) => error.into(),
            SyncError::Path(error) => Self::usage(error.to_string()),
            SyncError::Log(error) => error.into(),
            SyncError::Storage(error) => error.into(),
            SyncError::Content(error) => error.into(),
            SyncError::HistoryDiverged { .. } => diverged(text),
            SyncError::HistoryForked { .. } => forked(text),
            SyncError::RootMismatch(reason) => {
                Self::new(Code::OtherFolder, "this is not the folder that was synced")
                    .cause(reason)
                    .state("nothing was changed, neither here nor elsewhere")
                    .help("syncline sync", "once the disk is mounted again")
            }
            SyncError::MassDelete { deleted, total } => mass_delete(deleted, total),
            SyncError::ChunkMissing(_) | SyncError::PackMissing(_) => {
                Self::new(Code::Missing, "stored data is missing")
                    .cause(text)
                    .state("nothing wrong was written; files that are whole are untouched")
                    .help("syncline doctor", "looks for the reason")
            }
            SyncError::MadeFromTooMany(_) => Self::new(Code::Damaged, "stored data cannot be read")
                .cause(text)
                .state("nothing wrong was written; files that are whole are untouched")
                .help("syncline check --repair", "on a device that has the file writes it anew"),
            SyncError::NoSuchPath(path) => Self::new(Code::NoSuchPath, text).help(
                "syncline ls --recursive --deleted",
                format!("shows what is and was there, not '{path}'"),
            ),
            SyncError::NoSuchVersion { path, .. } => Self::new(Code::NoSuchVersion, text).help(
                format!("syncline log {}", crate::text::quoted(&path.to_string())),
                "lists its versions",
            ),
            SyncError::WouldOverwrite(_) => Self::new(Code::Exists, text)
                .state("nothing was changed")
                .help("--overwrite", "replaces it; what is there goes to the trash of the folder")
                .help("--to DEST", "restores beside it"),
            SyncError::NoConflict(_) => Self::new(Code::NoConflict, text)
                .help("syncline conflicts", "lists what waits for a decision"),
            SyncError::NotMerged { path, .. } => {
                let path = crate::text::quoted(&crate::text::path_text(&path));
                Self::new(Code::NotMerged, text)
                    .state("both versions are as they were")
                    .help(format!("syncline resolve {path} --keep both"), "makes them two files")
                    .help(format!("syncline resolve {path} --keep mine"), "or theirs, takes one")
            }
            SyncError::SettingsChanged => Self::new(Code::SettingsChanged, text)
                .state("what it has decided is in force; nothing else was changed")
                .help("syncline backend ls", "shows what is in force now"),
            SyncError::TooManyMounts { .. } => {
                Self::new(Code::NotShareable, text).state("nothing was shared")
            }
            SyncError::StoresChanged { .. } => stores_changed(text),
            SyncError::NotOurTurn { device } => not_our_turn(text, device),
            SyncError::VersionDropped { .. }
            | SyncError::NotWhole(_)
            | SyncError::ClockAhead { .. }
            | SyncError::CleanupOvertaken(_) => of_cleanup(&error),
            SyncError::NotSettling(_) => {
                Self::new(Code::Defect, "the sync came to no end; this is a defect of Syncline")
                    .cause(text)
                    .state(SAFE)
            }
        }
    }
}

fn diverged(text: String) -> CommandError {
    let headline = "the history does not continue what this device has seen";
    CommandError::new(Code::HistoryDiverged, headline)
        .cause(text)
        .state("nothing was changed in the folder")
        .help("syncline doctor", "looks for the reason")
}

fn forked(text: String) -> CommandError {
    CommandError::new(Code::HistoryForked, "the server shows your devices different histories")
        .cause(text)
        .state("nothing of that was applied; what is in the folder stays, and is not sent")
        .help("syncline doctor", "says how far this device has followed")
}

fn stores_changed(text: String) -> CommandError {
    let headline = "the stores of the workspace are being changed again and again";
    CommandError::new(Code::SettingsChanged, headline)
        .cause(text)
        .state(SAFE)
        .help("syncline sync", "goes on with those that are in force then")
}

fn not_our_turn(text: String, device: Option<DeviceId>) -> CommandError {
    let error = CommandError::new(Code::NotOurTurn, text).state("nothing was removed").help(
        "syncline backend rebalance --take-over",
        "removes it all the same; only where that device will never run again",
    );
    match device {
        Some(device) => error.cause(format!("it is the device {device}")),
        None => error,
    }
}

/// Translates what cleanups have done, or did not do.
fn of_cleanup(error: &SyncError) -> CommandError {
    let text = error.to_string();
    match error {
        SyncError::VersionDropped { path, time, .. } => {
            let path = crate::text::quoted(&crate::text::path_text(path));
            CommandError::new(Code::CleanedUp, text)
                .cause(format!("the cleanup was on {}", crate::text::rfc3339(*time)))
                .help(format!("syncline log {path}"), "lists the versions that are kept")
        }
        SyncError::ClockAhead { .. } => CommandError::new(Code::ClockAhead, text)
            .state("nothing was removed, since old and new could not be told apart")
            .help("syncline cleanup --trust-clock", "once the clock is right"),
        SyncError::CleanupOvertaken(_) => CommandError::new(Code::Overtaken, text)
            .state("nothing was removed that anybody needs")
            .help("syncline cleanup", "once the others have come to rest"),
        _ => CommandError::new(Code::Missing, text)
            .state("nothing was removed")
            .help("syncline check --repair", "says what is missing, and mends what it can"),
    }
}

impl From<ContentError> for CommandError {
    fn from(error: ContentError) -> Self {
        let text = error.to_string();
        match error {
            // Nothing says more: whoever tries keys learns only that they do not fit.
            ContentError::WrongKey => {
                Self::new(Code::WrongKey, text).state("nothing was changed").help(
                    format!("{}=FILE", crate::sealed::PASSPHRASE_FILE),
                    "names a file with the passphrase",
                )
            }
            ContentError::NoKeys | ContentError::UnknownEpoch { .. } => {
                Self::new(Code::KeysMissing, "this device needs the keys of the workspace")
                    .cause(text)
                    .state(SAFE)
                    .help("syncline key unlock", "asks for the passphrase")
            }
            ContentError::KeyCost { .. } | ContentError::KeyObject { .. } => {
                let headline = "the locked keys in the store are not what they must be";
                Self::new(Code::KeysDamaged, headline)
                    .cause(text)
                    .state("nothing was tried with them, and nothing was changed")
                    .help("syncline doctor", "looks for the reason")
            }
            _ => Self::new(Code::Damaged, "stored data is damaged")
                .cause(text)
                .state("nothing wrong was written; files that are whole are untouched")
                .help("syncline doctor", "looks for the reason"),
        }
    }
}

/// Tells whether an error says that the keys on this device are not the newest.
pub(crate) fn needs_newer_keys(error: &SyncError) -> bool {
    matches!(error, SyncError::Content(ContentError::UnknownEpoch { .. }))
}

/// Tells whether an error says that the local database is damaged. It is a cache, so it is made anew.
pub(crate) fn is_damaged_database(error: &SyncError) -> bool {
    error.database_trouble() == Some(DatabaseTrouble::Damaged)
}

fn database(trouble: DatabaseTrouble, text: String) -> CommandError {
    match trouble {
        DatabaseTrouble::NoSpace => no_space_here(text),
        DatabaseTrouble::Busy => {
            CommandError::new(Code::Locked, "another process works on this folder").cause(text)
        }
        DatabaseTrouble::Damaged | DatabaseTrouble::Other => {
            CommandError::new(Code::Database, "the local database failed")
                .cause(text)
                .state("nothing was lost: it can be made anew from the folder and the log")
                .help("syncline doctor", "looks for the reason")
        }
    }
}

fn newer(text: String) -> CommandError {
    CommandError::new(Code::Newer, "this was written by a newer version of Syncline")
        .cause(text)
        .state("nothing was changed")
        .help("syncline version", "shows the version that is installed here")
}

fn mass_delete(deleted: u64, total: u64) -> CommandError {
    let headline =
        format!("{deleted} of {total} files vanished from the folder since the last sync");
    CommandError::new(Code::MassDelete, headline)
        .state("nothing was deleted elsewhere and nothing was sent")
        .help("syncline sync --allow-mass-delete --yes", "if they were deleted on purpose")
        .help("syncline doctor", "if not: is the disk mounted?")
}

fn no_space_here(text: String) -> CommandError {
    CommandError::new(Code::NoSpaceHere, "no space is left on this computer")
        .cause(text)
        .state("no file was damaged; the sync continues when there is space")
        .help("df -h .", "shows which disk is full")
}

impl From<FileError> for CommandError {
    fn from(error: FileError) -> Self {
        let text = error.to_string();
        match error {
            FileError::NoSpace(_) => no_space_here(text),
            FileError::PermissionDenied(_) => {
                Self::new(Code::FileRefused, "a file or folder may not be accessed")
                    .cause(text)
                    .state(SAFE)
            }
            FileError::ReadOnly(_) => {
                Self::new(Code::FileRefused, "the folder is read-only").cause(text).state(SAFE)
            }
            _ => Self::new(Code::File, "a file or folder cannot be used").cause(text).state(SAFE),
        }
    }
}

impl From<LockError> for CommandError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { .. } => {
                Self::new(Code::Locked, "another process keeps this folder in sync")
                    .cause(error)
                    .help("syncline daemon status", "shows what runs in the background")
            }
            LockError::File(error) => error.into(),
        }
    }
}

impl From<CommitLogError> for CommandError {
    fn from(error: CommitLogError) -> Self {
        let text = error.to_string();
        match error {
            CommitLogError::Unreachable { place, reason } => unreachable(&place, reason),
            CommitLogError::Refused(refusal) => refused(refusal),
            CommitLogError::Storage(error) => error.into(),
            CommitLogError::Damaged { .. } => Self::new(Code::LogDamaged, "the history is damaged")
                .cause(text)
                .state("nothing wrong was written; the folder is as it was")
                .help("syncline doctor", "looks for the reason"),
            CommitLogError::Message { source, .. } => message(&source, text),
            CommitLogError::GroupChanged { .. } => Self::new(
                Code::SettingsChanged,
                "the workspace has other stores since a moment ago",
            )
            .cause(text)
            .state(SAFE)
            .help("syncline sync", "goes on with them"),
            CommitLogError::NotCarriedOver { .. } => {
                Self::new(Code::NotCarriedOver, "the stores do not have the whole history yet")
                    .cause(text)
                    .state(SAFE)
                    .help(
                        "syncline sync",
                        "on a device that reaches the stores from before, finishes it",
                    )
            }
        }
    }
}

fn message(source: &model::codec::DecodeError, text: String) -> CommandError {
    if matches!(source, model::codec::DecodeError::NewerVersion { .. }) {
        return newer(text);
    }
    CommandError::new(Code::LogDamaged, "the history cannot be read")
        .cause(text)
        .state("nothing wrong was written; the folder is as it was")
        .help("syncline doctor", "looks for the reason")
}

/// A server that does not answer.
pub(crate) fn unreachable(place: &str, reason: impl ToString) -> CommandError {
    CommandError::new(Code::ServerUnreachable, format!("cannot reach the {place}"))
        .cause(plain(&reason.to_string()))
        .state(SAFE)
        .help("syncline sync", "once the server is back")
        .help("syncline doctor", "looks for the reason")
}

fn refused(refusal: Refusal) -> CommandError {
    let Refusal { kind, message } = refusal;
    match kind {
        RefusalKind::Forbidden => not_signed_in().cause(message),
        RefusalKind::NotFound => {
            no_such_workspace("the workspace is not on the server").cause(message)
        }
        RefusalKind::Invalid => {
            CommandError::new(Code::Invalid, "the server does not take the request")
                .cause(message)
                .state(SAFE)
        }
        RefusalKind::PackMissing => {
            CommandError::new(Code::Missing, "the server lost data that was just sent")
                .cause(message)
                .state(SAFE)
                .help("syncline sync", "sends it again")
        }
        RefusalKind::HistoryLost => history_lost(message),
        RefusalKind::NoSpace => no_space_there(message),
        RefusalKind::Unavailable => busy(message),
        RefusalKind::OperationReused => CommandError::new(
            Code::Defect,
            "an operation was numbered twice; this is a defect of Syncline",
        )
        .cause(message)
        .state(SAFE),
        RefusalKind::NotAllowed => may_only_read().cause(message),
        RefusalKind::DeviceCloned => {
            CommandError::new(Code::DeviceCloned, "another computer is connected as this device")
                .cause(message)
                .state(SAFE)
                .help("syncline login URL --user NAME", "makes this computer a device of its own")
        }
    }
}

fn history_lost(message: String) -> CommandError {
    CommandError::new(Code::HistoryDiverged, "the log forgot what this device has seen")
        .cause(message)
        .state(SAFE)
        .help("syncline sync", "brings back from this folder what was forgotten")
}

fn no_space_there(message: String) -> CommandError {
    CommandError::new(Code::NoSpaceThere, "no space is left in the cloud")
        .cause(message)
        .state("what was sent is safe there; the rest is only on this device")
        .help("syncline whoami", "shows quota and use")
}

/// A server that cannot answer now.
pub(crate) fn busy(message: impl ToString) -> CommandError {
    CommandError::new(Code::ServerBusy, "the server cannot answer now")
        .cause(message)
        .state(SAFE)
        .help("syncline sync", "tries again")
}

/// Nobody is signed in.
pub(crate) fn not_signed_in() -> CommandError {
    CommandError::new(Code::NotSignedIn, "this device is not signed in to a server")
        .help("syncline login URL --user NAME", "signs in")
        .help("--backend NAME=URL", "works without a server, in a plain store")
}

/// The account is a member who may read, or not the owner.
pub(crate) fn may_only_read() -> CommandError {
    CommandError::new(
        Code::MayOnlyRead,
        "the server does not let this account change the workspace so",
    )
    .state("what was changed here is in the folder as it was, and was not sent")
    .help("syncline share ls", "says what this account may do, and who owns the workspace")
}

/// There is no such workspace.
pub(crate) fn no_such_workspace(headline: impl Into<String>) -> CommandError {
    CommandError::new(Code::NoSuchWorkspace, headline)
}

impl From<StorageError> for CommandError {
    fn from(error: StorageError) -> Self {
        let text = error.to_string();
        match error {
            StorageError::NotReachable { store, detail }
            | StorageError::NoStore { store, detail } => {
                Self::new(Code::StoreUnreachable, format!("cannot reach the {store}"))
                    .cause(plain(&detail))
                    .state(SAFE)
                    .help("syncline sync", "once the store is back")
            }
            StorageError::Busy { .. } | StorageError::Throttled { .. } => {
                Self::new(Code::StoreUnreachable, "the store cannot answer now")
                    .cause(text)
                    .state(SAFE)
            }
            StorageError::NoSpace { .. } => no_space_there(text),
            StorageError::ReadOnly { .. } => {
                Self::new(Code::Refused, "the store is read-only").cause(text).state(SAFE)
            }
            StorageError::MayOnlyRead { .. } => may_only_read().cause(text),
            StorageError::PermissionDenied { .. } => {
                Self::new(Code::Refused, "the store refuses access").cause(text).state(SAFE)
            }
            StorageError::Replaced { .. } => {
                Self::new(Code::StoreReplaced, "a store is not the one that it was")
                    .cause(text)
                    .state(SAFE)
                    .help("syncline backend renew NAME", "fills it again, if it was emptied")
                    .help("syncline backend rm NAME --dead", "does without it")
                    .help("syncline backend find URL", "if the stores were exchanged")
            }
            StorageError::Damaged { .. } => Self::new(Code::Damaged, "stored data is damaged")
                .cause(text)
                .state("nothing wrong was written; files that are whole are untouched")
                .help(
                    "syncline sync",
                    "on a device that has the files, sends them again once they change",
                ),
            StorageError::Missing { .. } => Self::new(Code::Missing, "stored data is missing")
                .cause(text)
                .state("nothing wrong was written; files that are whole are untouched")
                .help("syncline doctor", "looks for the reason"),
            StorageError::InvalidUrl { .. } => Self::usage(text),
            StorageError::InvalidCredentials { .. } => {
                Self::new(Code::Credentials, "the secrets of a store are of no use")
                    .cause(text)
                    .help("--credentials NAME=FILE", "a TOML file that only you can read")
                    .help("syncline backend login URL", "where a service wants you to sign in")
            }
            StorageError::UnknownFormat { .. } => newer(text),
            StorageError::Unsupported { .. } => {
                Self::new(Code::StoreUnfit, "the store cannot do what is needed").cause(text)
            }
            StorageError::InvalidAnswer { .. } => {
                Self::new(Code::StoreUnreachable, "the store gives answers that make no sense")
                    .cause(text)
                    .state(SAFE)
            }
            _ => Self::new(Code::File, "the store failed").cause(chain(&error)).state(SAFE),
        }
    }
}

/// Takes out of a cause what only programmers read: the number of the error and who passed it on.
fn plain(cause: &str) -> String {
    let cause = cause.split(" (os error").next().unwrap_or_default();
    cause.trim_start_matches("IO error: ").to_owned()
}

/// Joins the texts of an error and its sources.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

impl From<ServerError> for CommandError {
    fn from(error: ServerError) -> Self {
        let text = error.to_string();
        match error {
            ServerError::Taken { .. } => Self::new(Code::Taken, text),
            ServerError::NotFound { .. } => Self::new(Code::NoSuchThing, text)
                .help("syncline user ls", "lists the accounts")
                .help("syncline admin restore STORE --dry-run", "lists the backups"),
            ServerError::Invalid { .. } => Self::usage(text),
            ServerError::Locked { .. } => Self::new(Code::Locked, text),
            ServerError::Listen { .. } => Self::new(Code::File, text)
                .help("syncline serve --listen 127.0.0.1:0", "takes a free port"),
            ServerError::DataFolder { .. } => {
                Self::new(Code::File, "the data folder of the server cannot be used").cause(text)
            }
            ServerError::Metadata(MetadataError::NoSpace) => no_space_here(text),
            ServerError::Metadata(MetadataError::Unreachable { .. }) => {
                Self::new(Code::ServerUnreachable, "the database of the server cannot be reached")
                    .cause(text)
            }
            ServerError::Metadata(MetadataError::InUse { .. }) => Self::new(Code::Locked, text)
                .state("nothing was changed")
                .help("systemctl stop syncline", "on every computer that runs a server on it"),
            ServerError::Storage { is_damage: true, .. } => {
                Self::new(Code::Damaged, "a backup is damaged")
                    .cause(text)
                    .state("nothing was changed")
                    .help("syncline admin restore STORE --dry-run", "lists the other backups")
            }
            ServerError::Storage { .. } => {
                Self::new(Code::StoreUnreachable, "a store of the server cannot be used")
                    .cause(text)
                    .state("what was not finished can be repeated")
            }
            ServerError::Metadata(_) => {
                Self::new(Code::Database, "the database of the server failed").cause(text)
            }
            _ => Self::new(Code::File, "the server failed").cause(text),
        }
    }
}
