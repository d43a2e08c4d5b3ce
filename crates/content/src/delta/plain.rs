//! Who may show bytes to a server: the witness of a plain workspace, and the name of a session.

use std::fmt;

use model::environment::{Random, random_bytes};
use model::{Genesis, Mode, WorkspaceId};

use crate::error::ContentError;

/// The proof that the server of one workspace may read it.
///
/// Sums of blocks and literals tell what is in a file, so everything that sends them wants this value, and only the genesis
/// of a plain workspace gives one. Genesis and workspace id cannot be told apart from each other's: the id is a hash.
///
/// Nobody can make one up for a sealed workspace:
///
/// ```compile_fail
/// use content::delta::Plain;
/// let forged = Plain { workspace: model::WorkspaceId::from_bytes([1; 16]) };
/// ```
///
/// and no method of the rsync family begins without one:
///
/// ```compile_fail
/// use content::delta::{RsyncClient, SessionId, Tuning};
/// fn leak(sealed: model::WorkspaceId, session: SessionId) {
///     let _ = RsyncClient::begin(sealed, session, Tuning::Classic);
/// }
/// ```
///
/// With the witness the same lines are fine:
///
/// ```
/// use content::delta::{Plain, RsyncClient, SessionId, Tuning};
/// fn allowed(plain: Plain, session: SessionId) {
///     let _ = RsyncClient::begin(plain, session, Tuning::Classic);
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain {
    workspace: WorkspaceId,
}

impl Plain {
    /// Returns the witness of a plain workspace.
    ///
    /// # Errors
    /// [`ContentError::IsSealed`] for a sealed one.
    pub fn of(genesis: &Genesis) -> Result<Self, ContentError> {
        match genesis.mode {
            Mode::Plain => Ok(Self { workspace: genesis.workspace() }),
            Mode::Sealed(_) => Err(ContentError::IsSealed { what: "workspace" }),
        }
    }

    /// Returns the workspace.
    pub fn workspace(&self) -> WorkspaceId {
        self.workspace
    }
}

/// The random name of one exchange about one file. Everything that a side remembers of an exchange belongs to it, never to a
/// name of a file: two people who send the same file at the same time do not meet.
///
/// It is also the secret from which the keys of the sums follow, so that nobody can prepare a file whose blocks collide.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SessionId([u8; 16]);

impl SessionId {
    /// Length in bytes.
    pub const LENGTH: usize = 16;

    /// Draws a new one.
    pub fn new(random: &dyn Random) -> Self {
        Self(random_bytes(random))
    }

    /// Wraps the bytes of one.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns its bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Derives the key of a purpose in a workspace.
    pub(super) fn derive(&self, purpose: &str, workspace: WorkspaceId) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key(purpose);
        hasher.update(workspace.as_bytes());
        hasher.update(&self.0);
        *hasher.finalize().as_bytes()
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SessionId(secret)")
    }
}
