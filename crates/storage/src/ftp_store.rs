//! The driver `ftp:` and `ftps:`: a folder behind an FTP server.
//!
//! *Participants*: this tree, the server, other devices. *Goals*: the promises of [`crate::object_store`] on a protocol
//! that has no exclusive creation, no flush, and one answer (550) for "absent", "forbidden" and "failed".
//! *Non-goals*: durability beyond what the server gives; FTP cannot ask for a flush.
//! *Invariants*: 550 is never taken for an absence: the folder above is listed to find out. A folder that cannot be
//! entered is never an empty folder. A file that arrived shorter than it was sent is never renamed to its name.
//!
//! Creation is the renaming of a folder (`RNFR`, `RNTO`), which a server carries out by one call of its file system; the
//! system refuses it where a folder stands that holds something. `MKD` alone would give a lock that outlives a crash.

mod listing;

use std::ops::Range;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use suppaftp::tokio::{AsyncRustlsConnector, AsyncRustlsFtpStream};
use suppaftp::types::FileType;
use suppaftp::{FtpError, Mode, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::credentials::{CERTIFICATE_FILE, Credentials, PASSWORD, USER};
use crate::error::{Result, StorageError};
use crate::open::address::Address;
use crate::open::tls;
use crate::sessions::{Session, Sessions};
use crate::tree_store::{Exclusive, RemoteTree, TreeEntry};

/// Connections at once: many servers allow few for one address.
const SESSIONS_MAX: usize = 4;
/// How often a folder is entered that is there and cannot be.
const ENTERING_MAX: usize = 3;

/// A folder on an FTP server.
pub(crate) struct FtpTree {
    host: String,
    address: String,
    user: String,
    password: String,
    /// How TLS is spoken, when it is.
    tls: Option<tokio_rustls::TlsConnector>,
    /// The root as an absolute path without a slash at its end, or `~` and what follows.
    root: String,
    sessions: Sessions<Connection>,
}

/// One control connection.
struct Connection {
    stream: AsyncRustlsFtpStream,
    /// What `~` means.
    home: String,
    has_mlsd: bool,
}

type Lease<'a> = Session<'a, Connection>;

impl FtpTree {
    /// Takes address and credentials apart; the server is reached at the first call.
    pub(crate) fn new(scheme: &str, address: &Address, credentials: &Credentials) -> Result<Self> {
        credentials.allow_only(scheme, &[USER, PASSWORD, CERTIFICATE_FILE])?;
        address.allow_only(&[])?;
        let user = credentials.get(USER).or(address.user.as_deref()).unwrap_or("anonymous");
        let password = credentials.get(PASSWORD).unwrap_or_default();
        let tls = match scheme {
            "ftps" => Some(tls::connector(credentials.get(CERTIFICATE_FILE))?),
            _ => None,
        };
        let path = address.path();
        let root = if path.starts_with('~') { path } else { format!("/{path}") };
        Ok(Self {
            host: address.host.clone(),
            address: address.host_and_port(21),
            user: user.to_owned(),
            password: password.to_owned(),
            tls,
            root: root.trim_end_matches('/').to_owned(),
            sessions: Sessions::new(SESSIONS_MAX),
        })
    }

    async fn session(&self) -> Result<Lease<'_>> {
        self.sessions.take(|| self.connect()).await
    }

    async fn connect(&self) -> Result<Connection> {
        let fail = |error| self.failure("sign in", error);
        let mut stream = AsyncRustlsFtpStream::connect(&self.address).await.map_err(fail)?;
        if let Some(tls) = &self.tls {
            let connector = AsyncRustlsConnector::from(tls.clone());
            stream = stream.into_secure(connector, &self.host).await.map_err(fail)?;
        }
        stream.login(self.user.as_str(), self.password.as_str()).await.map_err(fail)?;
        stream.transfer_type(FileType::Binary).await.map_err(fail)?;
        let home = stream.pwd().await.map_err(fail)?;
        // A server without FEAT is an old one, which has neither.
        let features = stream.feat().await.unwrap_or_default();
        let has = |name: &str| features.keys().any(|known| known.eq_ignore_ascii_case(name));
        // PASV names an address, which a router between us and the server may have made wrong.
        stream.set_mode(if has("EPSV") { Mode::ExtendedPassive } else { Mode::Passive });
        stream.set_passive_nat_workaround(true);
        let has_mlsd = has("MLST");
        Ok(Connection { stream, home: home.trim_end_matches('/').to_owned(), has_mlsd })
    }

    /// Returns the path as the server knows it.
    fn full(&self, connection: &Connection, path: &str) -> String {
        let root = match self.root.strip_prefix('~') {
            Some(below) => format!("{}{below}", connection.home),
            None => self.root.clone(),
        };
        match (root.as_str(), path) {
            ("", "") => "/".to_owned(),
            (root, "") => root.to_owned(),
            (root, path) => format!("{root}/{path}"),
        }
    }

    fn failure(&self, operation: &str, error: FtpError) -> StorageError {
        let (store, operation) = (self.describe(), operation.to_owned());
        let detail = format!("cannot {operation}: {error}");
        match &error {
            FtpError::UnexpectedResponse(response) => match response.status.code() {
                430 | 530 | 532 => StorageError::PermissionDenied { store, detail },
                452 | 552 => StorageError::NoSpace { store },
                400..=499 => StorageError::Busy { store, detail },
                // Good news that cannot be read, because it breaks off.
                ..=399 => StorageError::NotReachable { store, detail },
                _ => StorageError::Failed { store, operation, source: Box::new(error) },
            },
            // A reply that breaks off is all that is seen of a connection that does.
            FtpError::ConnectionError(_) | FtpError::BadResponse => {
                StorageError::NotReachable { store, detail }
            }
            _ => StorageError::InvalidAnswer { store, detail },
        }
    }

    /// Tells a "no" of the server from a failure; after a "no" the connection is as good as before.
    fn answered<A>(
        &self,
        session: Lease<'_>,
        operation: &str,
        result: Result<A, FtpError>,
    ) -> Result<Option<A>> {
        match result {
            Ok(value) => {
                session.keep();
                Ok(Some(value))
            }
            Err(error) if is_no(&error) => {
                session.keep();
                Ok(None)
            }
            Err(error) => Err(self.failure(operation, error)),
        }
    }

    /// Finds out why the server gave no file: returns whether there is one, which may have appeared since.
    async fn is_there(&self, path: &str) -> Result<bool> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let entries = self.entries(folder).await?.unwrap_or_default();
        Ok(entries.iter().any(|entry| entry.name == name && entry.size.is_some()))
    }

    fn withheld(&self, path: &str) -> StorageError {
        let detail = format!("the server does not give {path}, which is there");
        StorageError::PermissionDenied { store: self.describe(), detail }
    }

    /// Reads a file; nothing when the server says no, whatever it means.
    async fn try_read(&self, path: &str, range: &Range<u64>) -> Result<Option<Bytes>> {
        let mut session = self.session().await?;
        let full = self.full(&session, path);
        let fail = |error| self.failure("read an object", error);
        if range.start > 0 {
            // What RETR does with an offset past the end differs between servers.
            match session.stream.size(full.as_str()).await {
                Ok(size) if range.start < size as u64 => {}
                Ok(_) => {
                    session.keep();
                    return Ok(Some(Bytes::new()));
                }
                result => {
                    return self.answered(
                        session,
                        "look at an object",
                        result.map(|_| Bytes::new()),
                    );
                }
            }
        }
        let offset = usize::try_from(range.start).unwrap_or(usize::MAX);
        session.stream.resume_transfer(offset).await.map_err(fail)?;
        let mut data = match session.stream.retr_as_stream(full).await {
            Ok(data) => data,
            Err(error) => return self.answered(session, "read an object", Err(error)),
        };
        let wanted = range.end - range.start;
        let mut bytes = BytesMut::new();
        let mut part = (&mut data).take(wanted);
        while part
            .read_buf(&mut bytes)
            .await
            .map_err(|error| fail(FtpError::ConnectionError(error)))?
            > 0
        {}
        if (bytes.len() as u64) < wanted {
            // The end was reached, if the server says so; else the connection broke.
            data.finish().await.map_err(fail)?;
        } else {
            // Its answer, that the rest was not sent, is read before the next command.
            drop(data);
        }
        session.keep();
        Ok(Some(bytes.freeze()))
    }

    async fn try_size(&self, path: &str) -> Result<Option<u64>> {
        let mut session = self.session().await?;
        let full = self.full(&session, path);
        let result = session.stream.size(full).await.map(|size| size as u64);
        self.answered(session, "look at an object", result)
    }

    /// Returns the lines of the folder that the connection has entered.
    async fn lines(&self, connection: &mut Connection) -> Result<Vec<TreeEntry>> {
        let fail = |error| self.failure("list", error);
        let parse = match connection.has_mlsd {
            true => listing::parse_machine_line,
            false => listing::parse_line,
        };
        let lines = match connection.has_mlsd {
            true => connection.stream.mlsd(None).await.map_err(fail)?,
            false => connection.stream.list(None).await.map_err(fail)?,
        };
        let mut entries = Vec::with_capacity(lines.len());
        for line in lines {
            match parse(&line) {
                Ok(entry) => entries.extend(entry),
                Err(()) => {
                    let detail = "a list that cannot be read".to_owned();
                    return Err(StorageError::InvalidAnswer { store: self.describe(), detail });
                }
            }
        }
        Ok(entries)
    }
}

impl std::fmt::Debug for FtpTree {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("FtpTree").field(&self.describe()).finish()
    }
}

/// Whether the server says no to this one thing.
fn is_no(error: &FtpError) -> bool {
    matches!(error, FtpError::UnexpectedResponse(response)
        if matches!(response.status, Status::FileUnavailable | Status::BadFilename))
}

#[async_trait]
impl RemoteTree for FtpTree {
    fn describe(&self) -> String {
        format!("FTP server {} at {}", self.address, self.root)
    }

    fn exclusive(&self) -> Exclusive {
        Exclusive::Folder
    }

    async fn make_root(&self) -> Result<()> {
        let mut session = self.session().await?;
        let root = self.full(&session, "");
        let ends = root.match_indices('/').map(|(at, _)| at).skip(1).chain([root.len()]);
        for end in ends {
            // Those that exist are refused, and whether the last one does shows at once.
            match session.stream.mkdir(&root[..end]).await {
                Err(error) if !is_no(&error) => return Err(self.failure("make the folder", error)),
                _ => {}
            }
        }
        session.keep();
        Ok(())
    }

    async fn entries(&self, folder: &str) -> Result<Option<Vec<TreeEntry>>> {
        let mut refusal = None;
        // It may appear between our being refused and our looking whether it is there.
        for _ in 0..ENTERING_MAX {
            let mut session = self.session().await?;
            let path = self.full(&session, folder);
            match session.stream.cwd(path).await {
                Ok(()) => {
                    let entries = self.lines(&mut session).await?;
                    session.keep();
                    return Ok(Some(entries));
                }
                Err(error) if is_no(&error) => refusal = Some(error),
                Err(error) => return Err(self.failure("enter a folder", error)),
            }
            session.keep();
            if folder.is_empty() {
                return Ok(None);
            }
            let (above, name) = folder.rsplit_once('/').unwrap_or(("", folder));
            let entries = self.entries(above).await?.unwrap_or_default();
            if !entries.iter().any(|entry| entry.name == name && entry.size.is_none()) {
                return Ok(None);
            }
        }
        let error = refusal.expect("every round but the last ends it, or was refused");
        Err(self.failure("enter a folder", error))
    }

    async fn size(&self, path: &str) -> Result<Option<u64>> {
        for _ in 0..ENTERING_MAX {
            if let Some(size) = self.try_size(path).await? {
                return Ok(Some(size));
            }
            if !self.is_there(path).await? {
                return Ok(None);
            }
        }
        Err(self.withheld(path))
    }

    async fn read(&self, path: &str, range: Range<u64>) -> Result<Option<Bytes>> {
        for _ in 0..ENTERING_MAX {
            if let Some(bytes) = self.try_read(path, &range).await? {
                return Ok(Some(bytes));
            }
            if !self.is_there(path).await? {
                return Ok(None);
            }
        }
        Err(self.withheld(path))
    }

    async fn write(&self, path: &str, bytes: Bytes) -> Result<()> {
        let mut session = self.session().await?;
        let full = self.full(&session, path);
        let fail = |error| self.failure("write an object", error);
        let mut data = session.stream.put_with_stream(full.as_str()).await.map_err(fail)?;
        data.write_all(&bytes).await.map_err(|error| fail(FtpError::ConnectionError(error)))?;
        data.finish().await.map_err(fail)?;
        let size = session.stream.size(full).await.map_err(fail)?;
        if size != bytes.len() {
            let detail = format!("{size} bytes arrived of {}", bytes.len());
            return Err(StorageError::NotReachable { store: self.describe(), detail });
        }
        session.keep();
        Ok(())
    }

    async fn rename(&self, source: &str, target: &str) -> Result<bool> {
        let mut session = self.session().await?;
        let (source, target) = (self.full(&session, source), self.full(&session, target));
        let result = session.stream.rename(source, target).await;
        Ok(self.answered(session, "rename an object", result)?.is_some())
    }

    /// The server's file system tells the two apart.
    async fn move_folder(&self, source: &str, target: &str) -> Result<bool> {
        self.rename(source, target).await
    }

    async fn make_folder(&self, path: &str) -> Result<bool> {
        let mut session = self.session().await?;
        let path = self.full(&session, path);
        let result = session.stream.mkdir(path).await;
        Ok(self.answered(session, "make a folder", result)?.is_some())
    }

    async fn remove_file(&self, path: &str) -> Result<bool> {
        let mut session = self.session().await?;
        let path = self.full(&session, path);
        let result = session.stream.rm(path).await;
        Ok(self.answered(session, "delete an object", result)?.is_some())
    }

    async fn remove_folder(&self, path: &str) -> Result<bool> {
        let mut session = self.session().await?;
        let path = self.full(&session, path);
        let result = session.stream.rmdir(path).await;
        Ok(self.answered(session, "remove a folder", result)?.is_some())
    }
}
