//! Who else may write in a sealed workspace: a list that the account has signed, and that the fold keeps among the settings.
//!
//! *Participants*: the owner, who changes the list, with the passphrase; members, whose devices their identities vouch for; a
//! server, which may collude with somebody who is a member no more. *Goals*: whether a commit counts follows from the log before
//! it, so all devices agree: who is not in the list at that place, or may only read, has written nothing; nobody but the owner makes
//! others wait for a key. *Invariants*: a list that the account has not signed is none; a later one has a greater number, so no device
//! brings an older one back; a key is announced in the list before anybody has it.
//!
//! The format in words, with vectors: `docs/design/keys.md`, "Members".

use model::codec::{
    Decode, DecodeError, Decoder, Encode, Encoder, Message, decode_message, encode_message,
};
use model::{Commit, CommitSeal, WorkspaceId};

use super::Sealer;
use crate::error::ContentError;
use crate::keyring::{
    AccountKey, EPOCHS_MAX, MEMBER_DEVICE_PURPOSE, PublicIdentity, certified_bytes,
};
use crate::signing::SIGNATURE_LENGTH;

/// What the account signs of a list.
const MEMBERS_PURPOSE: &str = "syncline sealed v1: members";

/// How many members a sealed workspace has at most, so that the list is no longer than settings may be.
pub const MEMBERS_MAX: usize = 128;

/// The longest name of a member, in bytes.
pub const MEMBER_NAME_LENGTH_MAX: usize = 128;

/// What a member may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberRole {
    /// Read.
    View,
    /// Read and write.
    Edit,
}

/// Somebody who has the keys of a workspace of somebody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The account at the server, for people.
    pub name: String,
    /// Who it is.
    pub identity: PublicIdentity,
    /// What it may do.
    pub role: MemberRole,
}

/// The members of a workspace, as its account has signed them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberList {
    serial: u64,
    keys: u32,
    members: Vec<Member>,
    signature: [u8; SIGNATURE_LENGTH],
}

impl MemberList {
    /// Signs the list that follows another one, or the first, in a workspace that has so many `keys` or will have them next: never
    /// fewer than the list before says. The order of the members is no matter.
    ///
    /// # Errors
    /// [`ContentError::TooManyMembers`]; [`ContentError::InvalidMember`] for a name that is too long or an identity that is there
    /// twice; [`ContentError::UnsupportedSeal`].
    pub fn sign(
        account: &AccountKey,
        workspace: WorkspaceId,
        previous: Option<&Self>,
        mut members: Vec<Member>,
        keys: u32,
    ) -> Result<Self, ContentError> {
        if members.len() > MEMBERS_MAX {
            return Err(ContentError::TooManyMembers { max: MEMBERS_MAX });
        }
        members.sort_by_key(|member| member.identity);
        let is_twice = |pair: &&[Member]| pair[0].identity.signing == pair[1].identity.signing;
        let is_long = |member: &&Member| member.name.len() > MEMBER_NAME_LENGTH_MAX;
        let wrong = members.windows(2).find(is_twice).map(|pair| &pair[1]);
        if let Some(member) = wrong.or_else(|| members.iter().find(is_long)) {
            return Err(ContentError::InvalidMember { name: member.name.clone() });
        }
        let serial = previous.map_or(0, |list| list.serial).saturating_add(1);
        let keys = previous.map_or(keys, |list| list.keys.max(keys));
        let mut list = Self { serial, keys, members, signature: [0; SIGNATURE_LENGTH] };
        list.signature = account.signing()?.sign(MEMBERS_PURPOSE, &list.signed_bytes(workspace))?;
        Ok(list)
    }

    /// Returns the members, in the order of their identities.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Returns the number of the newest key by which members may seal.
    pub fn keys(&self) -> u32 {
        self.keys
    }

    /// Returns the member of a name.
    pub fn of_name(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }

    /// Returns the bytes that become settings.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode_message(self)
    }

    /// Reads settings. Whether the account has signed them, the fold has looked.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        decode_message(bytes)
    }

    fn signed_bytes(&self, workspace: WorkspaceId) -> Vec<u8> {
        let unsigned = Self { signature: [0; SIGNATURE_LENGTH], ..self.clone() };
        let hash = blake3::hash(&unsigned.to_bytes());
        [&workspace.as_bytes()[..], hash.as_bytes()].concat()
    }
}

impl Sealer {
    /// Reads a list, if the account has signed it.
    fn members(&self, bytes: &[u8]) -> Result<MemberList, String> {
        let list = MemberList::from_bytes(bytes).map_err(|error| error.to_string())?;
        let message = list.signed_bytes(self.workspace);
        let account = &self.device.account;
        match self.is_signed(account, MEMBERS_PURPOSE, &message, &list.signature) {
            true => Ok(list),
            false => Err("the owner has not signed it".to_owned()),
        }
    }

    /// Checks that a list may come after another one.
    pub(super) fn check_members(&self, old: Option<&[u8]>, new: &[u8]) -> Result<(), String> {
        let new = self.members(new)?;
        let old = old.and_then(|bytes| self.members(bytes).ok());
        match old.is_some_and(|old| new.serial <= old.serial) {
            true => Err("a later list of members was there before".to_owned()),
            false => Ok(()),
        }
    }

    /// Checks that a commit was made by the device of a member who may write, with a key that there is: whoever names another one would
    /// make everybody wait for it.
    pub(super) fn check_member(
        &self,
        commit: &Commit,
        seal: &CommitSeal,
        members: Option<&[u8]>,
    ) -> Result<(), String> {
        let list = members.and_then(|bytes| self.members(bytes).ok());
        let message = certified_bytes(self.workspace, commit.device, &seal.device_key);
        let is_theirs = |member: &&Member| {
            let signer = &member.identity.signing;
            self.is_signed(signer, MEMBER_DEVICE_PURPOSE, &message, &seal.certificate)
        };
        let found =
            list.as_ref().and_then(|list| Some((list, list.members.iter().find(is_theirs)?)));
        let is_settings = || commit.changes.iter().any(|change| change.node.is_settings());
        match found {
            None => Err("its device is none of the owner's, and of no member's".to_owned()),
            Some((_, Member { role: MemberRole::View, name, .. })) => {
                Err(format!("{name} may only read"))
            }
            Some((_, Member { name, .. })) if is_settings() => {
                Err(format!("settings are for the owner, and not for {name}"))
            }
            Some((list, Member { name, .. })) if seal.epoch > list.keys => {
                Err(format!("{name} names a key that there is not"))
            }
            Some(_) => Ok(()),
        }
    }
}

impl Encode for Member {
    fn encode(&self, encoder: &mut Encoder) {
        self.identity.encode(encoder);
        encoder.byte_string(self.name.as_bytes());
        encoder.unsigned(match self.role {
            MemberRole::View => 0,
            MemberRole::Edit => 1,
        });
    }
}

impl Decode for Member {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let identity = PublicIdentity::decode(decoder)?;
        let name = decoder.byte_string(MEMBER_NAME_LENGTH_MAX)?.to_vec();
        let name = String::from_utf8(name).map_err(|error| decoder.invalid("name", error))?;
        let role = match decoder.unsigned_max(1)? {
            0 => MemberRole::View,
            _ => MemberRole::Edit,
        };
        Ok(Self { name, identity, role })
    }
}

impl Encode for MemberList {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.unsigned(self.serial);
        encoder.unsigned(self.keys.into());
        encoder.list(&self.members);
        encoder.raw(&self.signature);
    }
}

impl Decode for MemberList {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let serial = decoder.unsigned()?;
        let keys = decoder.unsigned_max(EPOCHS_MAX as u64)? as u32;
        let members: Vec<Member> = decoder.list()?;
        if members.len() > MEMBERS_MAX {
            return Err(decoder.invalid("members", "too many"));
        }
        let is_sorted =
            members.windows(2).all(|pair| pair[0].identity.signing < pair[1].identity.signing);
        if !is_sorted {
            return Err(decoder.invalid("members", "they are not in order"));
        }
        Ok(Self { serial, keys, members, signature: decoder.array()? })
    }
}

impl Message for MemberList {
    const MAGIC: u8 = b'M';
    const KIND: &'static str = "list of members";
}

#[cfg(test)]
mod tests;
