//! The keys of a workspace as a device uses them, plain or sealed: the one place where that is decided.
//!
//! *Participants*: the engine, which asks for keys once and then neither knows nor chooses whether anything is sealed.
//! *Goals*: what a workspace's mode demands cannot be forgotten: whatever writes a pack, commit, page or checkpoint
//! gets from here how, and whatever reads one refuses the other mode. *Non-goals*: storing keys; the program does.
//! *Invariants*: [`WorkspaceKeys::open`] alone makes keys, and it compares them with the genesis; keys of a sealed
//! workspace cannot be asked for plain packs, nor those of a plain one for sealed ones.
//!
//! The formats in words: `docs/design/keys.md`.

mod commit;
mod device;
mod envelope;
mod genesis;
mod hint;
mod members;
mod note;
mod packs;
mod page;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex};

use model::{Genesis, Mode, Random, WorkspaceId};

pub use device::DeviceKeys;
pub use envelope::{ENVELOPE_LENGTH_MAX, Envelope};
pub use genesis::NewWorkspace;
pub(crate) use genesis::open_header;
#[cfg(test)]
pub(crate) use genesis::unlocked;
pub use hint::check_hint;
pub use members::{MEMBER_NAME_LENGTH_MAX, MEMBERS_MAX, Member, MemberList, MemberRole};
pub use packs::PackGuard;
pub(crate) use packs::{PackBox, PackBoxes, PackSeal};

use crate::error::ContentError;
use crate::keyring::SecretKey;
use crate::naming::WorkspaceContentKeys;

/// What is derived from the key of an epoch.
pub(crate) struct Epoch {
    pub(crate) packs: SecretKey,
    pub(crate) commits: SecretKey,
    pub(crate) pages: SecretKey,
    pub(crate) checkpoints: SecretKey,
    /// What makes salts, so that no two things ever have one by accident.
    pub(crate) salts: SecretKey,
}

impl Epoch {
    pub(crate) fn derive(key: &SecretKey) -> Self {
        Self {
            packs: key.derive("syncline sealed v1: packs"),
            commits: key.derive("syncline sealed v1: commits"),
            pages: key.derive("syncline sealed v1: pages"),
            checkpoints: key.derive("syncline sealed v1: checkpoints"),
            salts: key.derive("syncline sealed v1: salts"),
        }
    }
}

/// What seals and opens everything of one workspace on one device.
pub(crate) struct Sealer {
    pub(crate) workspace: WorkspaceId,
    pub(crate) device: DeviceKeys,
    epochs: Vec<Epoch>,
    random: Arc<dyn Random>,
    /// Hashes of certificates and lists that were verified already, with whose they are.
    verified: Mutex<HashSet<[u8; 32]>>,
}

impl Sealer {
    /// Returns what belongs to an epoch; they count from 1.
    pub(crate) fn epoch(&self, number: u32) -> Result<&Epoch, ContentError> {
        let index = (number as usize).checked_sub(1);
        let epoch = index.and_then(|index| self.epochs.get(index));
        epoch.ok_or(ContentError::UnknownEpoch { epoch: number })
    }

    /// Returns the epoch that seals, with its number.
    pub(crate) fn newest(&self) -> (u32, &Epoch) {
        let newest = self.epochs.last().expect("unlocked keys have an epoch");
        (self.epochs.len() as u32, newest)
    }

    /// Makes a salt from randomness and from what is to be sealed: should the randomness ever repeat itself, only equal things
    /// get equal keys.
    pub(crate) fn salt(&self, purpose: &[u8], parts: &[&[u8]]) -> [u8; 32] {
        let fresh: [u8; 32] = model::environment::random_bytes(&*self.random);
        let mut all = vec![purpose, &fresh];
        all.extend(parts);
        self.newest().1.salts.hash(&all)
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Sealer({})", self.workspace)
    }
}

/// The keys of a workspace.
#[derive(Debug, Clone)]
pub struct WorkspaceKeys {
    content: WorkspaceContentKeys,
    sealer: Option<Arc<Sealer>>,
}

impl WorkspaceKeys {
    /// Returns the keys of a workspace: of a plain one those that its genesis tells, of a sealed one those that the
    /// device keeps.
    ///
    /// # Errors
    /// [`ContentError::NoKeys`] for a sealed workspace without keys, or with those of another workspace;
    /// [`ContentError::NotSealed`] for a plain workspace that was taken for a sealed one.
    pub fn open(
        genesis: &Genesis,
        device: Option<DeviceKeys>,
        random: Arc<dyn Random>,
    ) -> Result<Self, ContentError> {
        let sealed = match (&genesis.mode, device) {
            (Mode::Plain, None) => {
                let content = WorkspaceContentKeys::derive(&genesis.content_key);
                return Ok(Self { content, sealer: None });
            }
            (Mode::Plain, Some(_)) => return Err(ContentError::NotSealed { what: "workspace" }),
            (Mode::Sealed(_), None) => None,
            (Mode::Sealed(sealed), Some(device)) => Some((sealed, device)),
        };
        let ours = sealed.filter(|(sealed, device)| {
            device.workspace == genesis.workspace() && device.account == sealed.account
        });
        let (_, device) = ours.ok_or(ContentError::NoKeys)?;
        let content = WorkspaceContentKeys::derive(device.content.as_bytes());
        let sealer = Sealer {
            workspace: device.workspace,
            epochs: device.epochs.iter().map(Epoch::derive).collect(),
            device,
            random,
            verified: Mutex::default(),
        };
        Ok(Self { content, sealer: Some(Arc::new(sealer)) })
    }

    /// Returns the keys that name and cut chunks.
    pub fn content(&self) -> &WorkspaceContentKeys {
        &self.content
    }

    /// Returns the seed of the key by which the devices of the workspace sign what they say in an agreement among stores that may
    /// lie. All have the same, and have it for ever: a device that was away can check what was said since. Nothing in a plain
    /// workspace, where a store could sign for itself.
    pub fn agreement_seed(&self) -> Option<SecretKey> {
        let device = &self.sealer.as_ref()?.device;
        Some(device.content.derive("syncline sealed v1: agreement"))
    }

    /// Returns how many epochs the keys have; 0 in a plain workspace.
    pub(crate) fn epoch_count(&self) -> usize {
        self.sealer.as_ref().map_or(0, |sealer| sealer.epochs.len())
    }

    /// Returns what guards the workspace's packs.
    pub fn packs(&self) -> PackGuard {
        PackGuard::of(self.sealer.clone())
    }

    /// Tells whether these are keys of the same workspace as others, and of a later generation.
    pub(crate) fn is_newer_than(&self, others: &Self) -> bool {
        let (Some(ours), Some(theirs)) = (&self.sealer, &others.sealer) else { return false };
        let (ours, theirs) = (&ours.device, &theirs.device);
        let is_same = ours.workspace == theirs.workspace && ours.content == theirs.content;
        is_same && ours.generation > theirs.generation
    }

    /// Tells whether nobody but members can read the workspace.
    pub fn is_sealed(&self) -> bool {
        self.sealer.is_some()
    }
}

#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod vectors;
