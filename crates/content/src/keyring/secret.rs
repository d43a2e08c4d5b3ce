//! What a person types to open a workspace.

use model::Genesis;
use zeroize::Zeroizing;

use super::{KeyObject, Passphrase, RecoveryKey, Unlocked};
use crate::error::ContentError;

/// What opens a workspace.
#[derive(Debug)]
pub enum Secret {
    /// What a person remembers.
    Passphrase(Passphrase),
    /// What a person has written down.
    Recovery(RecoveryKey),
}

impl Secret {
    /// Takes what was typed: the recovery key, where it is one, which nobody takes for a passphrase.
    pub fn from_text(text: Zeroizing<String>) -> Self {
        match RecoveryKey::from_text(&text) {
            Ok(recovery) => Self::Recovery(recovery),
            Err(_) => Self::Passphrase(Passphrase::new(text)),
        }
    }

    /// Opens the locked keys of a workspace.
    ///
    /// # Errors
    /// [`ContentError::WrongKey`], whatever does not fit; [`ContentError::KeyCost`] where the lock is weaker than it may be.
    pub fn unlock(&self, keys: &KeyObject, genesis: &Genesis) -> Result<Unlocked, ContentError> {
        match self {
            Self::Passphrase(passphrase) => keys.unlock(genesis, passphrase),
            Self::Recovery(recovery) => keys.recover(genesis, recovery),
        }
    }
}
