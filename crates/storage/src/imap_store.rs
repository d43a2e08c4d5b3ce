//! The driver `imap:` and `imaps:`: the messages of a mailbox.
//!
//! *Participants*: this store, the server, other devices, and nobody who files mail into the same mailbox.
//! *Goals*: the promises of [`crate::object_store`] out of what every IMAP server has: `APPEND` adds whole messages, and
//! gives each a higher number (UID) than all before it. *Non-goals*: searching, which servers do each in its own way.
//! *Invariants*:
//!
//! * An object is the message with the lowest UID among those of its key. Whoever creates one appends, looks, and has
//!   won when no lower UID has the key; no later message can get a lower one. A loser removes its own message, and
//!   until it does, or if it dies before, that message means nothing.
//! * Whoever overwrites appends, and removes all lower UIDs of the key.
//! * What is there is known from an index that is brought up to date by `SELECT` before every answer: new messages by
//!   their UIDs, removed ones when the count does not fit. So nothing is missing from a list that was there before it
//!   was asked for.
//! * A message is known by its `Message-ID`, which is random, so that its writer finds it again.

mod index;
mod message;
mod waiting;

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use async_imap::Client;
use async_imap::error::Error;
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt;
use model::hex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, OnceCell};

use crate::credentials::{CERTIFICATE_FILE, Credentials, PASSWORD, USER};
use crate::error::{Result, StorageError};
use crate::file_store::Opening;
use crate::key::{ObjectKey, check_prefix};
use crate::object_store::{
    OBJECT_SIZE_MAX, ObjectEntry, ObjectStore, PutMode, PutOutcome, Waited, check_size, clamp,
};
use crate::open::address::Address;
use crate::open::tls;
use crate::sessions::{Session, Sessions};

use index::{Index, Known};

/// Connections at once: servers allow few for one account.
const SESSIONS_MAX: usize = 3;
/// How often a message is read that somebody removes before it is.
const ATTEMPTS_MAX: usize = 5;

/// What is asked of every message to know it.
const QUESTION: &str = "(UID BODY.PEEK[HEADER.FIELDS (SUBJECT MESSAGE-ID X-SYNCLINE-SIZE)])";

/// A mailbox.
pub(crate) struct ImapStore {
    host: String,
    address: String,
    mailbox: String,
    user: String,
    password: String,
    tls: Option<tokio_rustls::TlsConnector>,
    opening: Opening,
    sessions: Sessions<Connection>,
    /// The one that waited last.
    idle: parking_lot::Mutex<Option<Connection>>,
    index: Mutex<Index>,
    is_ready: OnceCell<()>,
}

/// A stream of bytes, with TLS or without.
trait Wire: AsyncRead + AsyncWrite + Unpin + fmt::Debug + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + fmt::Debug + Send> Wire for T {}

/// One connection, signed in.
struct Connection {
    imap: async_imap::Session<Box<dyn Wire>>,
    has_uidplus: bool,
    has_idle: bool,
}

impl ImapStore {
    /// Takes address and credentials apart; the server is reached at the first call.
    pub(crate) fn new(
        scheme: &str,
        address: &Address,
        credentials: &Credentials,
        opening: Opening,
    ) -> Result<Self> {
        credentials.allow_only(scheme, &[USER, PASSWORD, CERTIFICATE_FILE])?;
        address.allow_only(&[])?;
        let mailbox = address.path();
        if mailbox.is_empty() || !mailbox.is_ascii() {
            return Err(address.refused("it names no mailbox in plain ASCII"));
        }
        let (tls, port) = match scheme {
            "imaps" => (Some(tls::connector(credentials.get(CERTIFICATE_FILE))?), 993),
            _ => (None, 143),
        };
        let user = match address.user.as_deref() {
            Some(user) => user,
            None => credentials.required(USER, scheme)?,
        };
        Ok(Self {
            host: address.host.clone(),
            address: address.host_and_port(port),
            mailbox,
            user: user.to_owned(),
            password: credentials.required(PASSWORD, scheme)?.to_owned(),
            tls,
            opening,
            sessions: Sessions::new(SESSIONS_MAX),
            idle: parking_lot::Mutex::default(),
            index: Mutex::default(),
            is_ready: OnceCell::new(),
        })
    }

    async fn connect(&self) -> Result<Connection> {
        let lost = |error: &dyn fmt::Display| StorageError::NotReachable {
            store: self.describe(),
            detail: error.to_string(),
        };
        let stream = TcpStream::connect(&self.address).await.map_err(|error| lost(&error))?;
        stream.set_nodelay(true).map_err(|error| lost(&error))?;
        let wire: Box<dyn Wire> = match &self.tls {
            None => Box::new(stream),
            Some(tls) => {
                let name = rustls::pki_types::ServerName::try_from(self.host.clone())
                    .map_err(|error| lost(&error))?;
                Box::new(tls.connect(name, stream).await.map_err(|error| lost(&error))?)
            }
        };
        let mut client = Client::new(wire);
        let greeting = client.read_response().await.map_err(|error| lost(&error))?;
        if greeting.is_none() {
            return Err(lost(&"the server says nothing"));
        }
        let mut imap = match client.login(&self.user, &self.password).await {
            Ok(imap) => imap,
            Err((Error::No(_), _)) => {
                // What the server says may repeat what it was told.
                let detail = format!("the server does not let '{}' in", self.user);
                return Err(StorageError::PermissionDenied { store: self.describe(), detail });
            }
            Err((error, _)) => return Err(self.failure("sign in", error)),
        };
        let capabilities =
            imap.capabilities().await.map_err(|error| self.failure("sign in", error))?;
        let has_uidplus = capabilities.has_str("UIDPLUS");
        let has_idle = capabilities.has_str("IDLE");
        Ok(Connection { imap, has_uidplus, has_idle })
    }

    fn failure(&self, operation: &str, error: Error) -> StorageError {
        let (store, operation) = (self.describe(), operation.to_owned());
        let detail = format!("cannot {operation}: {error}");
        match &error {
            Error::Io(_) | Error::ConnectionLost => StorageError::NotReachable { store, detail },
            Error::No(text) if text.contains("OVERQUOTA") => StorageError::NoSpace { store },
            Error::No(_) => StorageError::Failed { store, operation, source: Box::new(error) },
            _ => StorageError::InvalidAnswer { store, detail },
        }
    }

    /// Makes the mailbox where it may be made, before the first call.
    async fn ready(&self) -> Result<()> {
        self.is_ready.get_or_try_init(|| self.prepare()).await.map(|_| ())
    }

    async fn prepare(&self) -> Result<()> {
        let mut session = self.sessions.take(|| self.connect()).await?;
        let selected = session.imap.select(&self.mailbox).await;
        match (selected, self.opening) {
            (Ok(_), _) => {}
            (Err(Error::No(detail)), Opening::Existing) => {
                let detail = format!("it has no such mailbox: {detail}");
                return Err(StorageError::NoStore { store: self.describe(), detail });
            }
            (Err(Error::No(_)), Opening::CreateIfMissing) => {
                // Another device may make it at the same time; whether it is there shows at once.
                let created = session.imap.create(&self.mailbox).await;
                let selected = session.imap.select(&self.mailbox).await;
                selected.map_err(|error| {
                    self.failure("make the mailbox", created.err().unwrap_or(error))
                })?;
            }
            (Err(error), _) => return Err(self.failure("open the mailbox", error)),
        }
        session.keep();
        Ok(())
    }

    /// Returns a connection that has the mailbox open, after the index was brought up to date through it.
    async fn current(
        &self,
    ) -> Result<(Session<'_, Connection>, tokio::sync::MutexGuard<'_, Index>)> {
        self.ready().await?;
        let mut session = self.sessions.take(|| self.connect()).await?;
        // Before SELECT, so that what one connection sees is never older than what another one saw.
        let mut index = self.index.lock().await;
        self.refresh(&mut session.imap, &mut index).await?;
        Ok((session, index))
    }

    async fn refresh(
        &self,
        imap: &mut async_imap::Session<Box<dyn Wire>>,
        index: &mut Index,
    ) -> Result<()> {
        let fail = |error| self.failure("look at the mailbox", error);
        let mailbox = imap.select(&self.mailbox).await.map_err(fail)?;
        index.begin(mailbox.uid_validity);
        if mailbox.uid_next.is_none_or(|next| next > index.next_uid()) && mailbox.exists > 0 {
            let new = format!("{}:*", index.next_uid());
            let mut messages = imap.uid_fetch(new, QUESTION).await.map_err(fail)?;
            while let Some(message) = messages.try_next().await.map_err(fail)? {
                let Some(uid) = message.uid else { continue };
                index.add(uid, message.header().and_then(message::parse_header));
            }
        }
        if index.count() != mailbox.exists as usize {
            let there = imap.uid_search("ALL").await.map_err(fail)?;
            index.retain(&there);
        }
        Ok(())
    }

    /// Removes messages for good.
    async fn remove(&self, connection: &mut Connection, uids: &[u32]) -> Result<()> {
        if uids.is_empty() {
            return Ok(());
        }
        let fail = |error| self.failure("remove a message", error);
        let set = uids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let flagged = connection.imap.uid_store(&set, "+FLAGS.SILENT (\\Deleted)").await;
        let flagged: Vec<_> = flagged.map_err(fail)?.try_collect().await.map_err(fail)?;
        drop(flagged);
        let removed: Vec<u32> = match connection.has_uidplus {
            true => {
                let removed = connection.imap.uid_expunge(&set).await.map_err(fail)?;
                removed.try_collect().await.map_err(fail)?
            }
            // In this mailbox nobody marks what is not to go.
            false => {
                let removed = connection.imap.expunge().await.map_err(fail)?;
                removed.try_collect().await.map_err(fail)?
            }
        };
        drop(removed);
        Ok(())
    }

    async fn append(&self, key: &ObjectKey, bytes: &Bytes) -> Result<String> {
        let mut token = [0; 16];
        getrandom::fill(&mut token).map_err(|error| StorageError::Failed {
            store: self.describe(),
            operation: "find a random name".to_owned(),
            source: Box::new(error),
        })?;
        let token = hex::encode(&token);
        let text = message::encode(key, &token, bytes);
        let mut session = self.sessions.take(|| self.connect()).await?;
        match session.imap.append(&self.mailbox, Some("(\\Seen)"), None, text).await {
            Ok(()) => {
                session.keep();
                Ok(token)
            }
            Err(Error::No(text)) if text.contains("TOOBIG") || text.contains("LIMIT") => {
                Err(StorageError::TooLarge { key: key.clone(), detail: text })
            }
            Err(error) => Err(self.failure("append a message", error)),
        }
    }

    async fn create(&self, key: &ObjectKey, bytes: &Bytes) -> Result<PutOutcome> {
        let (session, index) = self.current().await?;
        let exists = index.object(key).is_some();
        drop(index);
        session.keep();
        if exists {
            return Ok(PutOutcome::Exists);
        }
        let token = self.append(key, bytes).await?;
        let (mut session, index) = self.current().await?;
        let own = index.messages(key).find(|(_, known)| known.token == token).map(|(uid, _)| uid);
        let first = index.messages(key).next().map(|(uid, _)| uid);
        drop(index);
        let outcome = match (own, first) {
            (Some(own), Some(first)) if own == first => PutOutcome::Written,
            (Some(own), _) => {
                self.remove(&mut session, &[own]).await?;
                PutOutcome::Exists
            }
            (None, Some(_)) => PutOutcome::Exists,
            (None, None) => {
                let detail = "what was just written is not there; somebody may have removed it";
                let detail = detail.to_owned();
                return Err(StorageError::NotReachable { store: self.describe(), detail });
            }
        };
        session.keep();
        Ok(outcome)
    }

    async fn overwrite(&self, key: &ObjectKey, bytes: &Bytes) -> Result<PutOutcome> {
        self.ready().await?;
        let token = self.append(key, bytes).await?;
        let (mut session, index) = self.current().await?;
        let own = index.messages(key).find(|(_, known)| known.token == token).map(|(uid, _)| uid);
        // When it is not there, somebody overwrote it or deleted it: that came after.
        let lower: Vec<u32> =
            index.messages(key).map(|(uid, _)| uid).filter(|uid| Some(*uid) < own).collect();
        drop(index);
        self.remove(&mut session, &lower).await?;
        session.keep();
        Ok(PutOutcome::Written)
    }

    /// Returns what of an object lies in `range`, as it was when it was looked for.
    async fn read(&self, key: &ObjectKey, range: &Range<u64>) -> Result<Option<Bytes>> {
        for _ in 0..ATTEMPTS_MAX {
            let (mut session, index) = self.current().await?;
            let found: Option<(u32, Known)> = index.object(key);
            drop(index);
            let Some((uid, known)) = found else {
                session.keep();
                return Ok(None);
            };
            check_size(key, known.size)?;
            let range = clamp(range, known.size);
            if range.is_empty() {
                session.keep();
                return Ok(Some(Bytes::new()));
            }
            let bytes = self.fetch(&mut session, uid, &range, known.size).await?;
            session.keep();
            if bytes.is_some() {
                return Ok(bytes);
            }
        }
        let detail = format!("{key} is removed and written again all the time");
        Err(StorageError::Busy { store: self.describe(), detail })
    }

    /// Reads a part of a message, or nothing when it is gone.
    async fn fetch(
        &self,
        connection: &mut Connection,
        uid: u32,
        range: &Range<u64>,
        size: u64,
    ) -> Result<Option<Bytes>> {
        let fail = |error| self.failure("read a message", error);
        let text = message::text_range(range);
        let query = format!("(UID BODY.PEEK[TEXT]<{}.{}>)", text.start, text.end - text.start);
        let fetched = connection.imap.uid_fetch(uid.to_string(), query).await.map_err(fail)?;
        let fetched: Vec<_> = fetched.try_collect().await.map_err(fail)?;
        let ours = fetched.iter().find(|message| message.uid == Some(uid));
        let Some(text) = ours.and_then(|message| message.text()) else { return Ok(None) };
        match message::decode(text, range, size) {
            Some(bytes) => Ok(Some(bytes)),
            None => Err(StorageError::InvalidAnswer {
                store: self.describe(),
                detail: format!("the text of message {uid} was changed or cut off"),
            }),
        }
    }
}

impl fmt::Debug for ImapStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ImapStore").field(&self.describe()).finish()
    }
}

#[async_trait]
impl ObjectStore for ImapStore {
    fn describe(&self) -> String {
        format!("IMAP mailbox {} of {} at {}", self.mailbox, self.user, self.address)
    }

    async fn put(&self, key: &ObjectKey, bytes: Bytes, mode: PutMode) -> Result<PutOutcome> {
        check_size(key, bytes.len() as u64)?;
        match mode {
            PutMode::IfAbsent => self.create(key, &bytes).await,
            PutMode::Overwrite => self.overwrite(key, &bytes).await,
        }
    }

    async fn get(&self, key: &ObjectKey) -> Result<Option<Bytes>> {
        self.read(key, &(0..OBJECT_SIZE_MAX)).await
    }

    async fn get_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<Bytes>> {
        self.read(key, &range).await
    }

    async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        let (session, index) = self.current().await?;
        let size = index.object(key).map(|(_, known)| known.size);
        drop(index);
        session.keep();
        Ok(size)
    }

    async fn list(
        &self,
        prefix: &str,
        start_after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectEntry>> {
        check_prefix(prefix)?;
        let (session, index) = self.current().await?;
        let entries = index.list(prefix, start_after.unwrap_or(""), limit);
        drop(index);
        session.keep();
        Ok(entries)
    }

    async fn delete(&self, key: &ObjectKey) -> Result<()> {
        let (mut session, index) = self.current().await?;
        let uids: Vec<u32> = index.messages(key).map(|(uid, _)| uid).collect();
        drop(index);
        self.remove(&mut session, &uids).await?;
        session.keep();
        Ok(())
    }

    async fn wait_for(&self, key: &ObjectKey, patience: Duration) -> Result<Waited> {
        self.wait_in_mailbox(key, patience).await
    }
}
