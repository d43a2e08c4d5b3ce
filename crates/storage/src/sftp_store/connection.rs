//! Makes an SSH connection: whom to trust, how to sign in, what the server can do.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use russh::client::{self, AuthResult, Handle};
use russh::keys::{
    PrivateKey, PrivateKeyWithHashAlg, PublicKey, PublicKeyOrCertificate, check_known_hosts_path,
};
use russh_sftp::client::RawSftpSession;
use russh_sftp::client::error::Error as SftpError;
use russh_sftp::protocol::Packet;
use tokio::sync::watch;

use crate::credentials::{
    Credentials, HOST_KEY, KNOWN_HOSTS_FILE, PASSPHRASE, PASSWORD, PRIVATE_KEY, PRIVATE_KEY_FILE,
    USER, invalid,
};
use crate::error::{Result, StorageError};
use crate::open::address::Address;

const PORT: u16 = 22;
/// How long one request of SFTP may take.
const REQUEST_SECONDS_MAX: u64 = 60;

/// How the server is reached and known.
pub(super) struct Access {
    host: String,
    port: u16,
    user: String,
    password: Option<String>,
    key: Option<Arc<PrivateKey>>,
    trusted: Trusted,
}

/// Whose key the server must have.
#[derive(Clone)]
enum Trusted {
    Keys(Vec<PublicKey>),
    KnownHosts(String),
}

/// A connection that is signed in.
pub(super) struct Connection {
    pub(super) sftp: RawSftpSession,
    pub(super) has_fsync: bool,
    pub(super) has_hardlink: bool,
    pub(super) has_posix_rename: bool,
    has_statvfs: bool,
    is_given_up: AtomicBool,
    ssh: Handle<Visitor>,
    /// Its other end goes with the connection.
    alive: watch::Receiver<()>,
}

impl Access {
    pub(super) fn new(address: &Address, credentials: &Credentials) -> Result<Self> {
        credentials.allow_only(
            "sftp",
            &[
                USER,
                PASSWORD,
                PRIVATE_KEY,
                PRIVATE_KEY_FILE,
                PASSPHRASE,
                HOST_KEY,
                KNOWN_HOSTS_FILE,
            ],
        )?;
        let user = match address.user.as_deref() {
            Some(user) => user,
            None => credentials.required(USER, "sftp")?,
        };
        let key = read_key(credentials)?;
        let password = credentials.get(PASSWORD).map(str::to_owned);
        if key.is_none() && password.is_none() {
            let detail = "sftp: wants 'password', 'private_key' or 'private_key_file'".to_owned();
            return Err(invalid(detail));
        }
        let host = address.host.trim_matches(['[', ']']).to_owned();
        let port = address.port.unwrap_or(PORT);
        let trusted = read_trusted(credentials)?;
        Ok(Self { host, port, user: user.to_owned(), password, key, trusted })
    }

    pub(super) fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    fn describe(&self) -> String {
        format!("SFTP server {}", self.address())
    }

    fn not_reachable(&self, error: &dyn std::fmt::Display) -> StorageError {
        StorageError::NotReachable { store: self.describe(), detail: error.to_string() }
    }

    pub(super) async fn connect(&self) -> Result<Connection> {
        let config = client::Config {
            keepalive_interval: Some(Duration::from_secs(30)),
            nodelay: true,
            ..client::Config::default()
        };
        let refused = Arc::new(parking_lot::Mutex::new(None));
        let (sender, alive) = watch::channel(());
        let visitor = Visitor {
            host: self.host.clone(),
            port: self.port,
            trusted: self.trusted.clone(),
            refused: Arc::clone(&refused),
            _alive: sender,
        };
        let address = (self.host.as_str(), self.port);
        let connected = client::connect(Arc::new(config), address, visitor).await;
        let mut ssh = match connected {
            Ok(ssh) => ssh,
            Err(error) => {
                return Err(match refused.lock().take() {
                    Some(detail) => {
                        StorageError::PermissionDenied { store: self.describe(), detail }
                    }
                    None => self.not_reachable(&error),
                });
            }
        };
        self.sign_in(&mut ssh).await?;
        let channel =
            ssh.channel_open_session().await.map_err(|error| self.not_reachable(&error))?;
        channel
            .request_subsystem(true, "sftp")
            .await
            .map_err(|error| self.not_reachable(&error))?;
        let sftp = RawSftpSession::new(channel.into_stream());
        sftp.set_timeout(REQUEST_SECONDS_MAX);
        let version =
            while_alive(&alive, sftp.init()).await.map_err(|error| self.not_reachable(&error))?;
        let has = |name: &str| version.extensions.contains_key(name);
        Ok(Connection {
            has_fsync: has("fsync@openssh.com"),
            has_hardlink: has("hardlink@openssh.com"),
            has_posix_rename: has("posix-rename@openssh.com"),
            has_statvfs: has("statvfs@openssh.com"),
            sftp,
            is_given_up: AtomicBool::new(false),
            ssh,
            alive,
        })
    }

    async fn sign_in(&self, ssh: &mut Handle<Visitor>) -> Result<()> {
        let fail = |error: russh::Error| self.not_reachable(&error);
        if let Some(key) = &self.key {
            let key = PrivateKeyWithHashAlg::new(Arc::clone(key), None);
            let answer = ssh.authenticate_publickey(&self.user, key).await.map_err(fail)?;
            if matches!(answer, AuthResult::Success) {
                return Ok(());
            }
        }
        if let Some(password) = &self.password {
            let answer = ssh.authenticate_password(&self.user, password).await.map_err(fail)?;
            if matches!(answer, AuthResult::Success) {
                return Ok(());
            }
        }
        let detail = format!("the server does not let '{}' in", self.user);
        Err(StorageError::PermissionDenied { store: self.describe(), detail })
    }
}

fn read_key(credentials: &Credentials) -> Result<Option<Arc<PrivateKey>>> {
    let passphrase = credentials.get(PASSPHRASE);
    let key = match (credentials.get(PRIVATE_KEY), credentials.get(PRIVATE_KEY_FILE)) {
        (Some(_), Some(_)) => {
            return Err(invalid("'private_key' and 'private_key_file' are both given".to_owned()));
        }
        (Some(text), None) => russh::keys::decode_secret_key(text, passphrase),
        (None, Some(path)) => russh::keys::load_secret_key(Path::new(path), passphrase),
        (None, None) => return Ok(None),
    };
    let key = key.map_err(|error| invalid(format!("the private key cannot be read: {error}")))?;
    Ok(Some(Arc::new(key)))
}

fn read_trusted(credentials: &Credentials) -> Result<Trusted> {
    if let Some(path) = credentials.get(KNOWN_HOSTS_FILE) {
        return Ok(Trusted::KnownHosts(path.to_owned()));
    }
    let Some(text) = credentials.get(HOST_KEY) else { return Ok(Trusted::Keys(Vec::new())) };
    let keys: Result<Vec<_>, _> =
        text.lines().filter(|line| !line.trim().is_empty()).map(PublicKey::from_openssh).collect();
    let keys = keys.map_err(|error| invalid(format!("'host_key' cannot be read: {error}")))?;
    Ok(Trusted::Keys(keys))
}

/// Waits for the answer to a request, but not for one that can no longer come.
async fn while_alive<A>(
    alive: &watch::Receiver<()>,
    request: impl Future<Output = Result<A, SftpError>>,
) -> Result<A, SftpError> {
    let mut alive = alive.clone();
    tokio::select! {
        biased;
        answer = request => answer,
        // Nothing is ever sent, so this ends only when the other end has gone.
        _ = alive.changed() => Err(SftpError::IO("the connection was closed".to_owned())),
    }
}

impl Connection {
    /// Waits for the answer to a request.
    pub(super) async fn ask<A>(
        &self,
        request: impl Future<Output = Result<A, SftpError>>,
    ) -> Result<A, SftpError> {
        while_alive(&self.alive, request).await
    }

    pub(super) fn is_open(&self) -> bool {
        !self.ssh.is_closed() && !self.is_given_up.load(Ordering::Relaxed)
    }

    /// Lets later calls make a connection of their own; calls on their way may still end well on this one.
    pub(super) fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Relaxed);
    }

    /// Renames, replacing what stands there.
    pub(super) async fn posix_rename(
        &self,
        source: &str,
        target: &str,
    ) -> Result<Packet, SftpError> {
        let mut data = Vec::new();
        for path in [source, target] {
            let length = u32::try_from(path.len()).unwrap_or(u32::MAX);
            data.extend_from_slice(&length.to_be_bytes());
            data.extend_from_slice(path.as_bytes());
        }
        self.ask(self.sftp.extended("posix-rename@openssh.com", data)).await
    }

    /// Says whether the disk of the server is full, as far as it tells; SFTP has no error for it.
    pub(super) async fn is_full(&self, root: &str) -> bool {
        if !self.has_statvfs {
            return false;
        }
        let status = self.ask(self.sftp.statvfs(root)).await;
        status.is_ok_and(|status| {
            status.blocks_avail == 0 || status.inodes_avail == 0 && status.inodes > 0
        })
    }
}

/// What this end of the connection says to the server's key.
pub(super) struct Visitor {
    host: String,
    port: u16,
    trusted: Trusted,
    refused: Arc<parking_lot::Mutex<Option<String>>>,
    _alive: watch::Sender<()>,
}

impl client::Handler for Visitor {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        shown: &PublicKeyOrCertificate,
    ) -> Result<bool, Self::Error> {
        let PublicKeyOrCertificate::PublicKey { key, .. } = shown else {
            *self.refused.lock() = Some("it shows a certificate instead of a key".to_owned());
            return Ok(false);
        };
        let is_trusted = match &self.trusted {
            Trusted::Keys(keys) => keys.iter().any(|trusted| trusted.key_data() == key.key_data()),
            Trusted::KnownHosts(path) => {
                check_known_hosts_path(&self.host, self.port, key, path).unwrap_or(false)
            }
        };
        if !is_trusted {
            let shown = key.to_openssh().unwrap_or_default();
            let detail =
                format!("its key is not the trusted one; if it is right, 'host_key' is {shown}");
            *self.refused.lock() = Some(detail);
        }
        Ok(is_trusted)
    }
}
