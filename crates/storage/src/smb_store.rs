//! The driver `smb:`: a folder of a Windows or Samba share.
//!
//! *Participants*: this tree, the server, other devices. *Goals*: the promises of [`crate::object_store`]; every file is
//! flushed by the server before it becomes an object. *Non-goals*: DFS, which could lead a password to another server.
//! *Invariants*: an object is created by renaming a folder. `FILE_CREATE` would show the object before its bytes are
//! there, and renaming a file without replacing may be a look and a step, because `rename(2)` replaces; but no file
//! system puts a folder over one that holds something. An object is replaced by renaming a file with `ReplaceIfExists`.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use smb2::{ClientConfig, Error, ErrorKind, RenameOptions, SmbClient, Tree};

use crate::credentials::{Credentials, DOMAIN, PASSWORD, USER};
use crate::error::{Result, StorageError};
use crate::object_store::clamp;
use crate::open::address::Address;
use crate::sessions::{Session, Sessions};
use crate::tree_store::{Exclusive, RemoteTree, TreeEntry};

/// Connections at once.
const SESSIONS_MAX: usize = 4;
const CONNECT_MAX: Duration = Duration::from_secs(10);
const RESPONSE_MAX: Duration = Duration::from_secs(60);

/// A folder of a share.
pub(crate) struct SmbTree {
    address: String,
    share: String,
    /// The root inside the share, without slashes at its ends.
    root: String,
    user: String,
    password: String,
    domain: String,
    sessions: Sessions<Connection>,
}

/// One connection, signed in.
struct Connection {
    client: SmbClient,
    tree: Tree,
}

impl SmbTree {
    /// Takes address and credentials apart; the server is reached at the first call.
    pub(crate) fn new(address: &Address, credentials: &Credentials) -> Result<Self> {
        credentials.allow_only("smb", &[USER, PASSWORD, DOMAIN])?;
        address.allow_only(&[])?;
        let Some((share, folders)) = address.segments.split_first() else {
            return Err(address.refused("it names no share"));
        };
        let user = match address.user.as_deref() {
            Some(user) => user,
            None => credentials.required(USER, "smb")?,
        };
        Ok(Self {
            address: address.host_and_port(445),
            share: share.clone(),
            root: folders.join("/"),
            user: user.to_owned(),
            password: credentials.required(PASSWORD, "smb")?.to_owned(),
            domain: credentials.get(DOMAIN).unwrap_or_default().to_owned(),
            sessions: Sessions::new(SESSIONS_MAX),
        })
    }

    async fn session(&self) -> Result<Session<'_, Connection>> {
        self.sessions.take(|| self.connect()).await
    }

    async fn connect(&self) -> Result<Connection> {
        let config = ClientConfig {
            addr: self.address.clone(),
            timeout: CONNECT_MAX,
            username: self.user.clone(),
            password: self.password.clone(),
            domain: self.domain.clone(),
            // What a call did before its connection broke is for the layer above to find out.
            auto_reconnect: false,
            dfs_enabled: false,
            response_timeout: Some(RESPONSE_MAX),
            ..ClientConfig::default()
        };
        let mut client =
            SmbClient::connect(config).await.map_err(|error| self.failure("sign in", error))?;
        let tree = client
            .connect_share(&self.share)
            .await
            .map_err(|error| self.failure("open the share", error))?;
        Ok(Connection { client, tree })
    }

    fn full(&self, path: &str) -> String {
        match (self.root.as_str(), path) {
            ("", path) => path.to_owned(),
            (root, "") => root.to_owned(),
            (root, path) => format!("{root}/{path}"),
        }
    }

    fn failure(&self, operation: &str, error: Error) -> StorageError {
        let (store, operation) = (self.describe(), operation.to_owned());
        let detail = format!("cannot {operation}: {error}");
        match error.kind() {
            ErrorKind::ConnectionLost
            | ErrorKind::TimedOut
            | ErrorKind::Cancelled
            | ErrorKind::SessionExpired
            | ErrorKind::Io => StorageError::NotReachable { store, detail },
            ErrorKind::SharingViolation => StorageError::Busy { store, detail },
            ErrorKind::DiskFull => StorageError::NoSpace { store },
            ErrorKind::AuthRequired
            | ErrorKind::SigningRequired
            | ErrorKind::AccessDenied
            | ErrorKind::GuestSessionRefused => StorageError::PermissionDenied { store, detail },
            ErrorKind::InvalidData | ErrorKind::SignatureInvalid => {
                StorageError::InvalidAnswer { store, detail }
            }
            _ => StorageError::Failed { store, operation, source: Box::new(error) },
        }
    }

    /// Returns what a look found, or nothing when nothing of the kind is there.
    fn found<A>(
        &self,
        session: Session<'_, Connection>,
        operation: &str,
        result: Result<A, Error>,
    ) -> Result<Option<A>> {
        match result {
            Ok(value) => {
                session.keep();
                Ok(Some(value))
            }
            Err(error) if is_absence(&error) => {
                session.keep();
                Ok(None)
            }
            Err(error) => Err(self.failure(operation, error)),
        }
    }

    /// Tells "done" from "no" from failure.
    fn answered(
        &self,
        session: Session<'_, Connection>,
        operation: &str,
        result: Result<(), Error>,
    ) -> Result<bool> {
        match result {
            Ok(()) => {
                session.keep();
                Ok(true)
            }
            // The server understood: it exists, it is not empty, it is in use, it is not allowed. A look tells more.
            Err(Error::Protocol { status, command })
                if !matches!(
                    Error::Protocol { status, command }.kind(),
                    ErrorKind::SessionExpired | ErrorKind::DiskFull | ErrorKind::ConnectionLost
                ) =>
            {
                session.keep();
                Ok(false)
            }
            Err(error) => Err(self.failure(operation, error)),
        }
    }
}

/// Whether the server says that there is no such thing.
fn is_absence(error: &Error) -> bool {
    let kind = error.kind();
    matches!(error, Error::Protocol { .. })
        && matches!(kind, ErrorKind::NotFound | ErrorKind::IsADirectory | ErrorKind::NotADirectory)
}

impl std::fmt::Debug for SmbTree {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("SmbTree").field(&self.describe()).finish()
    }
}

#[async_trait]
impl RemoteTree for SmbTree {
    fn describe(&self) -> String {
        format!("SMB share {} of {} at /{}", self.share, self.address, self.root)
    }

    fn exclusive(&self) -> Exclusive {
        Exclusive::Folder
    }

    async fn make_root(&self) -> Result<()> {
        let ends = self.root.match_indices('/').map(|(at, _)| at).chain([self.root.len()]);
        for end in ends.filter(|end| *end > 0) {
            let mut session = self.session().await?;
            let Connection { client, tree } = &mut *session;
            let result = client.create_directory(tree, &self.root[..end]).await;
            // Those that exist are refused, and whether the last one does shows at once.
            self.answered(session, "make a folder", result)?;
        }
        Ok(())
    }

    async fn entries(&self, folder: &str) -> Result<Option<Vec<TreeEntry>>> {
        let mut session = self.session().await?;
        let Connection { client, tree } = &mut *session;
        let result = client.list_directory(tree, &self.full(folder)).await;
        let Some(found) = self.found(session, "list a folder", result)? else { return Ok(None) };
        let entries = found.into_iter().filter(|entry| !matches!(entry.name.as_str(), "." | ".."));
        let entries = entries.map(|entry| TreeEntry {
            size: (!entry.is_directory).then_some(entry.size),
            name: entry.name,
        });
        Ok(Some(entries.collect()))
    }

    async fn size(&self, path: &str) -> Result<Option<u64>> {
        let mut session = self.session().await?;
        let Connection { client, tree } = &mut *session;
        let result = client.stat(tree, &self.full(path)).await;
        let found = self.found(session, "look at an object", result)?;
        Ok(found.filter(|found| !found.is_directory).map(|found| found.size))
    }

    async fn read(&self, path: &str, range: Range<u64>) -> Result<Option<Bytes>> {
        let mut session = self.session().await?;
        let Connection { client, tree } = &mut *session;
        let reader = match client.open_file_reader(tree, &self.full(path)).await {
            Ok(reader) => reader,
            Err(error) => return self.found(session, "open an object", Err(error)),
        };
        let fail = |error| self.failure("read an object", error);
        // Folders can be opened too.
        if reader.info().is_directory {
            reader.close().await.map_err(fail)?;
            session.keep();
            return Ok(None);
        }
        let range = clamp(&range, reader.size());
        let wanted = range.end - range.start;
        let bytes = match wanted {
            0 => Vec::new(),
            wanted => reader.read_at(range.start, wanted).await.map_err(fail)?,
        };
        reader.close().await.map_err(fail)?;
        if bytes.len() as u64 != wanted {
            let detail = "fewer bytes than the object has".to_owned();
            return Err(StorageError::InvalidAnswer { store: self.describe(), detail });
        }
        session.keep();
        Ok(Some(bytes.into()))
    }

    async fn write(&self, path: &str, bytes: Bytes) -> Result<()> {
        let mut session = self.session().await?;
        let Connection { client, tree } = &mut *session;
        let fail = |error| self.failure("write an object", error);
        let mut writer =
            client.create_file_writer_exclusive(tree, &self.full(path)).await.map_err(fail)?;
        writer.write_chunk(&bytes).await.map_err(fail)?;
        // Waits for every answer, and flushes.
        let written = writer.finish().await.map_err(fail)?;
        if written != bytes.len() as u64 {
            let detail = format!("{written} bytes arrived of {}", bytes.len());
            return Err(StorageError::NotReachable { store: self.describe(), detail });
        }
        session.keep();
        Ok(())
    }

    async fn rename(&self, source: &str, target: &str) -> Result<bool> {
        let mut session = self.session().await?;
        let Connection { client, tree } = &mut *session;
        let options = RenameOptions::new().replace_if_exists(true);
        let (source, target) = (self.full(source), self.full(target));
        let result = client.rename_with(tree, &source, &target, options).await;
        self.answered(session, "rename an object", result)
    }

    async fn move_folder(&self, source: &str, target: &str) -> Result<bool> {
        let mut session = self.session().await?;
        let Connection { client, tree } = &mut *session;
        let (source, target) = (self.full(source), self.full(target));
        let result = client.rename(tree, &source, &target).await;
        self.answered(session, "rename a folder", result)
    }

    async fn make_folder(&self, path: &str) -> Result<bool> {
        let mut session = self.session().await?;
        let Connection { client, tree } = &mut *session;
        let result = client.create_directory(tree, &self.full(path)).await;
        self.answered(session, "make a folder", result)
    }

    async fn remove_file(&self, path: &str) -> Result<bool> {
        let mut session = self.session().await?;
        let Connection { client, tree } = &mut *session;
        let result = client.delete_file(tree, &self.full(path)).await;
        self.answered(session, "delete an object", result)
    }

    async fn remove_folder(&self, path: &str) -> Result<bool> {
        let mut session = self.session().await?;
        let Connection { client, tree } = &mut *session;
        let result = client.delete_directory(tree, &self.full(path)).await;
        self.answered(session, "remove a folder", result)
    }
}
