//! The audit log: who was let in, who was refused, what was revoked; for whoever answers for a server.
//!
//! *Goals*: a line of JSON for each event, in the order in which they were answered; no secret, and nothing that a stranger has
//! typed, since passwords are typed in the place of names. *Non-goals*: what is in folders, and requests that change nothing.
//! *Invariants*: the file is opened for each line, so that it may be moved away at any time; a line that cannot be
//! written is said in the server's own log, and the request goes on.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use model::{DeviceId, Timestamp, WorkspaceId};
use parking_lot::Mutex;
use serde::Serialize;

/// What has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Happened {
    /// A device signed in.
    SignedIn,
    /// A sign-in was refused: a wrong password, or no such account. Attempts that are too many are not noted.
    SignInRefused,
    /// A password was right, and a code was wanted beside it.
    CodeWanted,
    /// The code beside a right password, or at a device, was wrong. Attempts that are too many are not noted.
    CodeRefused,
    /// A recovery code let in, and is used up.
    RecoveryCodeUsed,
    /// A device that is signed in did not know the password of its account. Attempts that are too many are not noted.
    PasswordRefused,
    /// A device gave its account another password.
    PasswordChanged,
    /// The second factor of an account was turned on by a device.
    SecondFactorOn,
    /// It was turned off by a device.
    SecondFactorOff,
    /// It was turned off by who runs the server.
    SecondFactorRemoved,
    /// A device signed in by a provider of OpenID Connect.
    OidcSignedIn,
    /// A sign-in by it was refused, or the wish to bind a person there: the answer proves nothing or is for another server, nobody is bound to
    /// it, or the account is shut out or another one's. Attempts that are too many are not noted.
    OidcRefused,
    /// A device bound a person there to its account.
    OidcBound,
    /// It ended that.
    OidcUnbound,
    /// A person there who was unknown got an account, or somebody who was invited made one.
    AccountMade,
    /// Somebody came by an invitation that does not count, any more or ever. Who comes too often is not noted.
    InvitationRefused,
    /// A device signed itself out.
    SignedOut,
    /// A device was revoked by another one, or made room for one that signed in.
    DeviceRevoked,
    /// A token for an application was made.
    TokenMade,
    /// It was taken back.
    TokenRevoked,
    /// A workspace was made.
    WorkspaceMade,
    /// An account may read a workspace, or may do more or less in it than before.
    MemberSet,
    /// A membership ended: the owner ended it, or the member left.
    MemberRemoved,
    /// The locked keys of an encrypted workspace were changed.
    KeysChanged,
    /// An account said who it is to others in encrypted workspaces.
    IdentitySet,
    /// A link for people without an account was made.
    LinkMade,
    /// A link was taken back.
    LinkRevoked,
    /// A download was let in by a link.
    LinkDownload,
    /// The password of a link was wrong. Attempts that are too many are not noted, or strangers would fill the disk.
    LinkPasswordRefused,
    /// A pack or page was deleted.
    ObjectDeleted,
}

/// A line.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// Seconds since 1970.
    pub time: i64,
    /// What.
    pub event: Happened,
    /// The account, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The device that did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// From where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// To what: a device, a token, a workspace, an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What the account may do from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
}

impl Line {
    /// Begins a line.
    pub fn new(now: Timestamp, event: Happened) -> Self {
        let (account, device, address, subject) = (None, None, None, None);
        Self { time: now.seconds, event, account, device, address, subject, role: None }
    }

    /// Names the account.
    #[must_use]
    pub fn of_account(self, name: Option<String>) -> Self {
        Self { account: name, ..self }
    }

    /// Names the device that did it.
    #[must_use]
    pub fn by(self, device: DeviceId) -> Self {
        Self { device: Some(device.to_string()), ..self }
    }

    /// Names the address.
    #[must_use]
    pub fn from(self, address: IpAddr) -> Self {
        Self { address: Some(address), ..self }
    }

    /// Names what it was done to.
    #[must_use]
    pub fn to(self, subject: impl ToString) -> Self {
        Self { subject: Some(subject.to_string()), ..self }
    }

    /// Names the role that the account has got.
    #[must_use]
    pub fn with_role(self, role: &'static str) -> Self {
        Self { role: Some(role), ..self }
    }

    /// Names an object of a workspace.
    #[must_use]
    pub fn to_object(self, workspace: WorkspaceId, key: impl std::fmt::Display) -> Self {
        self.to(format!("{workspace}/{key}"))
    }
}

/// Where lines go; nowhere unless a file is named. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Audit {
    file: Option<Arc<Mutex<PathBuf>>>,
}

impl Audit {
    /// Writes to a file, which only its owner can read.
    ///
    /// # Errors
    /// Those of the file, which is made here so that a wrong path is found at once.
    pub fn to(path: PathBuf) -> std::io::Result<Self> {
        append(&path, b"")?;
        Ok(Self { file: Some(Arc::new(Mutex::new(path))) })
    }

    /// Tells whether anybody reads it.
    pub fn is_on(&self) -> bool {
        self.file.is_some()
    }

    /// Writes a line. It is there when this returns.
    pub async fn note(&self, line: Line) {
        let Some(file) = self.file.clone() else { return };
        let write = move || {
            let mut text = serde_json::to_vec(&line).unwrap_or_default();
            text.push(b'\n');
            // One after the other, so that lines stay whole and in order.
            let path = file.lock();
            if let Err(error) = append(&path, &text) {
                tracing::error!(%error, event = ?line.event, "a line of the audit log is lost");
            }
        };
        // Where the server stops at this moment there is no thread any more, and nobody hears the answer either.
        let _ = tokio::task::spawn_blocking(write).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "the audit log has no other home")]
fn append(path: &std::path::Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(bytes)
}
