//! A sealed workspace of somebody else: its keys come in an envelope, which the identity of this account opens. Neither the owner's
//! passphrase nor the account key has any part in it.
//!
//! *Goals*: what a member's device refuses is refused here, by the same functions; keys that the owner has given anew need nobody to type
//! anything again. *Non-goals*: to know whose workspace it is: its id, which covers the owner's key, is what two people compare.

use std::sync::Arc;

use content::keyring::{Passphrase, SecretKey};
use content::{
    ContentError, DeviceKeys, Envelope, Identity, LockedIdentity, Member, MemberRole,
    PublicIdentity, WorkspaceKeys,
};
use model::{Genesis, Random};
use wasm_bindgen::prelude::wasm_bindgen;
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::sealed_workspace::{CONTEXT, SealedWorkspace, device_of, genesis_of};
use crate::seeded::Seeded;

/// Who has opened a workspace of somebody else.
pub(crate) struct Membership {
    genesis: Genesis,
    identity: Identity,
    generation: u64,
}

#[wasm_bindgen]
impl SealedWorkspace {
    /// Opens a workspace of somebody else: `id` is that which is to be opened, `genesis` and `envelope` are what the server gave of it,
    /// `public` and `locked` what it gave of the identity of this account; `secret` is the passphrase of that identity, and the rest as of
    /// one's own workspace. `seen` is the generation of the newest keys that were seen here, or 0. Takes as long as one Argon2id of 64 MiB or more.
    ///
    /// # Errors
    /// `wrong_workspace`, `message`, `not_sealed`, `wrong_key`, `key_cost`, `length`; `identity_changed` where the server tells others of
    /// another identity; `not_for_us` where the owner has not sealed the envelope to it; `older_history` for older keys than were seen.
    #[wasm_bindgen(js_name = "openOfOther")]
    #[expect(clippy::too_many_arguments, reason = "JavaScript gives them one by one")]
    pub fn open_of_other(
        id: &str,
        genesis: &[u8],
        envelope: &[u8],
        public: &[u8],
        locked: &[u8],
        secret: String,
        seen: f64,
        device: &str,
        device_name: &str,
        seed: &[u8],
    ) -> Result<Self, Failure> {
        let secret = Passphrase::new(Zeroizing::new(secret));
        let random: Arc<dyn Random> = Arc::new(Seeded::new(CONTEXT, seed)?);
        let genesis = genesis_of(id, genesis)?;
        let envelope = Envelope::from_bytes(envelope)?;
        let locked = LockedIdentity::from_bytes(locked)?;
        if PublicIdentity::from_bytes(public).as_ref() != Some(locked.public()) {
            let message = "the server tells others of another identity than it gives this account";
            return Err(Failure::of("identity_changed", message));
        }
        let own = (device_of(device)?, SecretKey::random(&*random));
        let identity = locked.unlock(&secret)?;
        let keys = DeviceKeys::enroll_member(&genesis, &identity, &envelope, own);
        let keys = keys.map_err(not_for_us)?;
        let generation = keys.generation;
        if (generation as f64) < seen {
            return Err(Failure::of("older_history", "newer keys were seen here before"));
        }
        let member = Membership { genesis: genesis.clone(), identity, generation };
        Self::open(&genesis, keys, device_name, random, Some(member))
    }

    /// Takes newer keys of a workspace of somebody else, which the owner has sealed to this account anew; tells whether they are newer. Nobody
    /// types anything.
    ///
    /// # Errors
    /// `not_for_us`, `tampered`; `not_sealed` in a workspace of one's own.
    pub fn renew(&mut self, envelope: &[u8]) -> Result<bool, Failure> {
        let Some(member) = &self.member else {
            return Err(Failure::of("not_sealed", "it is a workspace of one's own"));
        };
        let envelope = Envelope::from_bytes(envelope)?;
        let own = (self.device, SecretKey::random(&*self.random));
        let keys = DeviceKeys::enroll_member(&member.genesis, &member.identity, &envelope, own);
        let keys = keys.map_err(not_for_us)?;
        if keys.generation <= member.generation {
            return Ok(false);
        }
        let generation = keys.generation;
        let keys = WorkspaceKeys::open(&member.genesis, Some(keys), Arc::clone(&self.random))?;
        self.replay.renew(keys)?;
        if let Some(member) = &mut self.member {
            member.generation = generation;
        }
        Ok(true)
    }

    /// Returns the generation of the keys of a workspace of somebody else, and 0 in one of one's own.
    pub fn generation(&self) -> f64 {
        self.member.as_ref().map_or(0.0, |member| member.generation as f64)
    }

    /// Tells whether what is written here counts, by the list of members that the owner has signed, as far as the log was folded.
    #[wasm_bindgen(js_name = "mayWrite")]
    pub fn may_write(&self) -> bool {
        let Some(membership) = &self.member else { return true };
        let signing = membership.identity.public().signing;
        let may =
            |member: &Member| member.identity.signing == signing && member.role == MemberRole::Edit;
        self.replay.members().is_some_and(|list| list.members().iter().any(may))
    }
}

fn not_for_us(error: ContentError) -> Failure {
    match error {
        ContentError::WrongKey => {
            Failure::of("not_for_us", "the owner has not sealed the envelope to this identity")
        }
        error => error.into(),
    }
}

#[cfg(test)]
mod tests;
