//! What the devices of an encrypted workspace keep at the server for each other, which cannot read it: its locked keys, the boxes
//! of pairings, and the envelopes for members (`docs/design/keys.md`, "On a server").
//!
//! *Goals*: of two devices that change the keys at the same moment one succeeds, and the other hears of it; who may keep these
//! bytes may not fill the database with them. *Non-goals*: judging what is in them, which only devices can. *Invariants*: a
//! generation of keys follows the one before, also where several servers write; the newest is never deleted; a box is never
//! changed, and is gone a while after an hour at the latest; an envelope is for one member, and gone with the membership.

use model::WorkspaceId;
use storage::ObjectKey;

use crate::auth::Caller;
use crate::error::{Result, ServerError};
use crate::limits::{KEPT_LENGTH_MAX, PAIRING_BOXES_MAX};
use crate::metadata::{LockedKeys, Metadata};
use crate::services::authorisation::Right;
use crate::services::{accounts, members, workspaces};

/// After how many seconds a box is of no use: whoever waits for one does so for ten minutes.
const PAIRING_BOX_SECONDS: i64 = 60 * 60;

/// How long an envelope is at most in a workspace whose keys were never changed, in bytes: 1,024 and some more (`docs/design/keys.md`, "Envelope").
const ENVELOPE_LENGTH: u64 = 2048;

/// How much longer each change of the keys may make it, in bytes: by 32, and lengths are powers of two.
const ENVELOPE_LENGTH_PER_GENERATION: u64 = 64;

/// What is kept under a key.
enum Kept {
    /// The locked keys of this generation.
    Keys(u64),
    /// A box of a pairing.
    Box,
    /// The keys for the member of this name.
    Envelope(String),
}

impl Kept {
    fn of(key: &ObjectKey) -> Option<Self> {
        if let Some(generation) = key.as_keys() {
            return Some(Self::Keys(generation));
        }
        match key.as_envelope() {
            Some(name) => Some(Self::Envelope(name)),
            None => key.is_pairing().then_some(Self::Box),
        }
    }
}

/// Tells whether what is kept under a key is put in the place of what was there.
pub fn is_replaced(key: &ObjectKey) -> bool {
    key.as_envelope().is_some()
}

/// Tells whether a key is that of something which is kept here, and not in the store.
pub fn is_kept(key: &ObjectKey) -> bool {
    Kept::of(key).is_some()
}

/// Tells whether all keys that begin so are kept here.
pub fn is_kept_below(prefix: &str) -> bool {
    prefix.starts_with(ObjectKey::KEYS) || prefix.starts_with(ObjectKey::PAIRING)
}

/// Puts something where nothing is, and an envelope also where one is. Returns false, and changes nothing, where something is
/// there, or newer keys are.
///
/// # Errors
/// [`ServerError::Conflict`] for keys that do not follow those that are there; [`ServerError::Forbidden`] where there are too many
/// boxes; [`ServerError::NotFound`] for the envelope of who is no member; [`ServerError::TooLarge`] for one that holds more than the
/// keys of the workspace; as [`workspaces::open`] for who manages.
pub fn put(
    metadata: &mut dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    (key, bytes): (&ObjectKey, &[u8]),
    now: i64,
) -> Result<bool> {
    let found = workspaces::open(metadata, caller, workspace, Right::Manage)?.number;
    let generation = match Kept::of(key) {
        Some(Kept::Keys(generation)) => generation,
        Some(Kept::Envelope(name)) => {
            let member = members::find(metadata, found, &name)?;
            let keys = metadata.locked_keys(found)?;
            check_envelope(bytes, keys.map_or(0, |keys| keys.generation))?;
            return Ok(metadata.set_envelope(found, member.account, bytes).map(|()| true)?);
        }
        _ => {
            metadata.delete_old_pairing_boxes(found, now - PAIRING_BOX_SECONDS)?;
            if metadata.pairing_boxes(found)?.len() >= PAIRING_BOXES_MAX {
                let what = format!("more than {PAIRING_BOXES_MAX} boxes of pairings");
                return Err(ServerError::Forbidden { what });
            }
            return Ok(metadata.insert_pairing_box(found, key.as_str(), bytes, now)?);
        }
    };
    let newest = metadata.locked_keys(found)?.map_or(0, |keys| keys.generation);
    if generation == 0 || generation > newest + 1 {
        let what = format!("generation {generation} of the locked keys");
        return Err(ServerError::Conflict {
            what,
            reason: "does not follow the one that is there",
        });
    }
    // The row itself says whether another server was faster.
    Ok(metadata.replace_locked_keys(found, &LockedKeys { generation, bytes: bytes.to_vec() })?)
}

/// Refuses an envelope that is longer than one with all keys of a workspace, of which each generation has one more at most.
fn check_envelope(bytes: &[u8], generation: u64) -> Result<()> {
    let more = generation.saturating_mul(ENVELOPE_LENGTH_PER_GENERATION);
    let length_max = ENVELOPE_LENGTH.saturating_add(more).min(KEPT_LENGTH_MAX);
    match bytes.len() as u64 > length_max {
        true => Err(ServerError::TooLarge { what: "envelope", length_max }),
        false => Ok(()),
    }
}

/// Returns what is kept under a key. Envelopes are for the owner, and each for its member.
///
/// # Errors
/// [`ServerError::NotFound`]; as [`workspaces::open`] for who manages.
pub fn get(
    metadata: &dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    key: &ObjectKey,
) -> Result<Vec<u8>> {
    let kept = Kept::of(key);
    let right = match &kept {
        Some(Kept::Envelope(name)) if accounts::own_account(metadata, caller)?.name == *name => {
            Right::Read
        }
        _ => Right::Manage,
    };
    let found = workspaces::open(metadata, caller, workspace, right)?.number;
    accounts::check_is_device(metadata, caller)?;
    let bytes = match kept {
        Some(Kept::Keys(generation)) => {
            let keys = metadata.locked_keys(found)?;
            keys.filter(|keys| keys.generation == generation).map(|keys| keys.bytes)
        }
        Some(Kept::Envelope(name)) => {
            let member = members::find(metadata, found, &name)?;
            metadata.envelope(found, member.account)?
        }
        _ => metadata.pairing_box(found, key.as_str())?,
    };
    bytes.ok_or_else(|| ServerError::NotFound { what: format!("object '{key}'") })
}

/// Returns keys and lengths of what is kept, in the order of the keys.
///
/// # Errors
/// As [`workspaces::open`] for who manages.
pub fn list(
    metadata: &dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    prefix: &str,
    start_after: &str,
    limit: usize,
) -> Result<Vec<(String, u64)>> {
    let found = workspaces::open(metadata, caller, workspace, Right::Manage)?.number;
    let keys = metadata.locked_keys(found)?;
    let keys = keys.map(|keys| (ObjectKey::keys(keys.generation), keys.bytes.len() as u64));
    let mut all: Vec<_> = keys.map(|(key, length)| (key.to_string(), length)).into_iter().collect();
    all.extend(metadata.pairing_boxes(found)?);
    all.retain(|(key, _)| key.starts_with(prefix) && key.as_str() > start_after);
    all.truncate(limit);
    Ok(all)
}

/// Removes a box.
///
/// # Errors
/// [`ServerError::Forbidden`] for the locked keys, without which nobody new opens the workspace, and for envelopes, which go with
/// the membership; as [`workspaces::open`] for who manages.
pub fn delete(
    metadata: &mut dyn Metadata,
    caller: &Caller,
    workspace: WorkspaceId,
    key: &ObjectKey,
) -> Result<()> {
    let found = workspaces::open(metadata, caller, workspace, Right::Manage)?.number;
    match Kept::of(key) {
        Some(Kept::Box) => Ok(metadata.delete_pairing_box(found, key.as_str())?),
        _ => Err(ServerError::Forbidden { what: format!("deleting {key}") }),
    }
}
