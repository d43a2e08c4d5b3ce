//! Keys of objects, and where in a store each kind of object lies.
//!
//! *Participants*: every room that stores something, every driver. *Goals*: a key is a valid relative path on
//! every file system and a valid name at every cloud store; a driver never needs to quote or to check one.
//! *Invariants*: 1 to 8 segments joined by `/`, 512 bytes at most; a segment has 1 to 128 bytes of
//! `a-z 0-9 . _ -`, and neither begins nor ends with a dot. So names with a leading dot belong to the driver
//! (`.tmp`, `.format`), `..` cannot be written, and no two keys are equal on a store that folds case. No key may
//! be a folder of another (`a` beside `a/b`): a file system could not hold both.
//!
//! Layout of a store that holds one workspace ([`crate::layers::Scoped`] puts several into one store):
//!
//! | key | object | may change |
//! |---|---|---|
//! | `genesis` | the workspace's signed first entry | never |
//! | `store` | the id of this store in the pool of the workspace, 32 hexadecimal digits | never |
//! | `keys/<generation>` | the locked keys of a sealed workspace, 20 decimal digits; the newest counts, older ones are deleted | never |
//! | `envelopes/<name>` | at a server: the keys of a sealed workspace for a member, whose name is in hexadecimal digits | yes |
//! | `pairing/<name>/<kind>` | what two devices say to each other while one lets the other in; deleted at its end | never |
//! | `pool/<version>` | the stores of the workspace after that version of its settings, 20 decimal digits | only which device has signed it |
//! | `packs/ab/abcdef…` | a pack; `ab` are the first digits of its id, so that no folder gets huge | never |
//! | `pages/ab/abcdef…` | a page of a checkpoint | never |
//! | `blocks/ab/abcdef….p3-5-0` | a block of a pack (`p`) or page (`c`): of 3 of 5, number 0; see [`crate::pool::block`] | never |
//! | `log/<slot>/r<round>` | what was proposed for a slot of the log; 20 decimal digits, so key order is log order | never |
//! | `checkpoint/<seq>` | the root page of the checkpoint after that entry, 20 decimal digits | never |
//! | `probe/<token>/…` | experiments of [`crate::probe`], deleted at its end | yes |

use std::fmt;
use std::sync::Arc;

use model::hex;
use model::ids::{PackId, PageId};

use crate::error::{Result, StorageError};

/// Longest key in bytes.
pub const KEY_LENGTH_MAX: usize = 512;
/// Longest segment of a key in bytes.
pub const SEGMENT_LENGTH_MAX: usize = 128;
/// Most segments of a key.
pub const SEGMENT_COUNT_MAX: usize = 8;

/// A validated key of an object; cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey(Arc<str>);

impl ObjectKey {
    /// What the keys of all packs begin with.
    pub const PACKS: &'static str = "packs/";
    /// What the keys of all pages begin with.
    pub const PAGES: &'static str = "pages/";
    /// What the keys of all log slots begin with.
    pub const LOG: &'static str = "log/";
    /// What the keys of all versions of the pool begin with.
    pub const POOL: &'static str = "pool/";
    /// What the keys of all generations of locked keys begin with.
    pub const KEYS: &'static str = "keys/";
    /// What the keys of all envelopes for members begin with.
    pub const ENVELOPES: &'static str = "envelopes/";
    /// What the keys of all boxes of pairings begin with.
    pub const PAIRING: &'static str = "pairing/";
    /// What the keys of all checkpoints begin with.
    pub const CHECKPOINT: &'static str = "checkpoint/";

    /// Returns the key that `text` spells.
    ///
    /// # Errors
    /// [`StorageError::InvalidKey`] when `text` breaks a rule of this module.
    pub fn new(text: &str) -> Result<Self> {
        check_key(text).map_err(|detail| invalid(text, detail))?;
        Ok(Self(text.into()))
    }

    /// The first entry of the workspace.
    pub fn genesis() -> Self {
        Self("genesis".into())
    }

    /// The locked keys of a sealed workspace.
    pub fn keys(generation: u64) -> Self {
        Self(format!("{}{generation:020}", Self::KEYS).into())
    }

    /// The keys of a sealed workspace for the account of a name.
    ///
    /// # Errors
    /// [`StorageError::InvalidKey`] where the name is empty, or longer than 64 bytes.
    pub fn envelope(account: &str) -> Result<Self> {
        Self::new(&format!("{}{}", Self::ENVELOPES, hex::encode(account.as_bytes())))
    }

    /// What one side of a pairing says to the other.
    ///
    /// # Errors
    /// [`StorageError::InvalidKey`] where a part is no segment of a key.
    pub fn pairing(name: &str, kind: &str) -> Result<Self> {
        Self::new(&format!("{}{name}/{kind}", Self::PAIRING))
    }

    /// The id that the store has in the pool of the workspace.
    pub fn store_id() -> Self {
        Self("store".into())
    }

    /// The stores of the workspace after a version of its settings; 0 is what it began with.
    pub fn pool(version: u64) -> Self {
        Self(format!("{}{version:020}", Self::POOL).into())
    }

    /// A pack.
    pub fn pack(id: PackId) -> Self {
        let hex = id.to_string();
        Self(format!("{}{}/{hex}", Self::PACKS, &hex[..2]).into())
    }

    /// A page of a checkpoint.
    pub fn page(id: PageId) -> Self {
        let hex = id.to_string();
        Self(format!("{}{}/{hex}", Self::PAGES, &hex[..2]).into())
    }

    /// What was proposed for `slot` of the log in `round`; round 0 is the fast one.
    pub fn log_slot(slot: u64, round: u32) -> Self {
        Self(format!("{}{slot:020}/r{round}", Self::LOG).into())
    }

    /// What somebody who has lost `slot` of the log wishes for the next ones.
    pub fn log_wish(slot: u64, number: u32) -> Self {
        Self(format!("{}{slot:020}/w{number}", Self::LOG).into())
    }

    /// The checkpoint after entry `seq`.
    pub fn checkpoint(seq: u64) -> Self {
        Self(format!("{}{seq:020}", Self::CHECKPOINT).into())
    }

    /// Returns the text of the key.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the id when the key is that of a pack.
    pub fn as_pack(&self) -> Option<PackId> {
        let id: PackId = self.0.strip_prefix(Self::PACKS)?.get(3..)?.parse().ok()?;
        (Self::pack(id) == *self).then_some(id)
    }

    /// Returns the id when the key is that of a page.
    pub fn as_page(&self) -> Option<PageId> {
        let id: PageId = self.0.strip_prefix(Self::PAGES)?.get(3..)?.parse().ok()?;
        (Self::page(id) == *self).then_some(id)
    }

    /// Returns the generation when the key is that of locked keys.
    pub fn as_keys(&self) -> Option<u64> {
        let generation = self.0.strip_prefix(Self::KEYS)?.parse().ok()?;
        (Self::keys(generation) == *self).then_some(generation)
    }

    /// Returns the name of the account when the key is that of an envelope.
    pub fn as_envelope(&self) -> Option<String> {
        let digits = self.0.strip_prefix(Self::ENVELOPES)?.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let name = String::from_utf8(digits.map(byte).collect::<Option<_>>()?).ok()?;
        Self::envelope(&name).is_ok_and(|key| key == *self).then_some(name)
    }

    /// Returns whether the key is that of what one side of a pairing says to the other.
    pub fn is_pairing(&self) -> bool {
        let parts = self.0.strip_prefix(Self::PAIRING).and_then(|rest| rest.split_once('/'));
        parts.is_some_and(|(_, kind)| !kind.contains('/'))
    }

    /// Returns slot and round when the key is that of a log slot.
    pub fn as_log_slot(&self) -> Option<(u64, u32)> {
        let (slot, round) = self.0.strip_prefix(Self::LOG)?.split_once("/r")?;
        let (slot, round) = (slot.parse().ok()?, round.parse().ok()?);
        (Self::log_slot(slot, round) == *self).then_some((slot, round))
    }

    /// Returns the sequence number when the key is that of a checkpoint.
    pub fn as_checkpoint(&self) -> Option<u64> {
        let seq = self.0.strip_prefix(Self::CHECKPOINT)?.parse().ok()?;
        (Self::checkpoint(seq) == *self).then_some(seq)
    }

    /// Returns whether the key is derived from the bytes of its object, so that they can never change.
    pub fn names_its_content(&self) -> bool {
        self.content_hash().is_some()
    }

    /// Returns the BLAKE3-256 that the bytes of the object must have, when the key names it.
    pub fn content_hash(&self) -> Option<[u8; 32]> {
        let pack = self.as_pack().map(|id| *id.as_bytes());
        pack.or_else(|| self.as_page().map(|id| *id.as_bytes()))
    }

    /// Returns the key of this object inside the folder `scope`, for stores that hold several workspaces.
    ///
    /// # Errors
    /// [`StorageError::InvalidKey`] when the result is too long.
    pub fn within(&self, scope: &Self) -> Result<Self> {
        Self::new(&format!("{scope}/{self}"))
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ObjectKey({})", self.0)
    }
}

/// Refuses a prefix that could not begin any key; the empty prefix begins them all.
pub(crate) fn check_prefix(prefix: &str) -> Result<()> {
    let fits =
        prefix.len() <= KEY_LENGTH_MAX && prefix.bytes().all(|b| b == b'/' || is_key_byte(b));
    let rooted = prefix.starts_with('/') || prefix.contains("//");
    if !fits || rooted || prefix.split('/').any(|segment| segment.starts_with('.')) {
        return Err(invalid(prefix, "no key begins with it"));
    }
    Ok(())
}

/// Returns whether `segment` may stand between the slashes of a key.
pub(crate) fn is_segment(segment: &str) -> bool {
    check_segment(segment).is_ok()
}

fn invalid(text: &str, detail: &'static str) -> StorageError {
    StorageError::InvalidKey { key: text.chars().take(KEY_LENGTH_MAX).collect(), detail }
}

fn check_key(text: &str) -> Result<(), &'static str> {
    if text.len() > KEY_LENGTH_MAX {
        return Err("it is too long");
    }
    if text.split('/').count() > SEGMENT_COUNT_MAX {
        return Err("it has too many segments");
    }
    text.split('/').try_for_each(check_segment)
}

fn check_segment(segment: &str) -> Result<(), &'static str> {
    if segment.is_empty() {
        return Err("a segment is empty");
    }
    if segment.len() > SEGMENT_LENGTH_MAX {
        return Err("a segment is too long");
    }
    if segment.starts_with('.') || segment.ends_with('.') {
        return Err("a segment begins or ends with a dot");
    }
    if !segment.bytes().all(is_key_byte) {
        return Err("only a-z, 0-9, '.', '_' and '-' are allowed");
    }
    Ok(())
}

fn is_key_byte(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_key_is_valid_and_read_back() {
        let pack = PackId::from_bytes([0xab; 32]);
        let page = PageId::from_bytes([0x01; 32]);
        let keys = [
            ObjectKey::genesis(),
            ObjectKey::pack(pack),
            ObjectKey::page(page),
            ObjectKey::log_slot(u64::MAX, u32::MAX),
            ObjectKey::checkpoint(7),
            ObjectKey::log_wish(u64::MAX, u32::MAX),
            ObjectKey::keys(3),
            ObjectKey::pairing("0a", "offer").unwrap(),
            ObjectKey::envelope(&"Z".repeat(64)).unwrap(),
        ];
        for key in &keys {
            assert_eq!(ObjectKey::new(key.as_str()).unwrap(), *key);
        }
        assert_eq!(keys[1].as_pack(), Some(pack));
        assert_eq!(keys[2].as_page(), Some(page));
        assert_eq!(keys[3].as_log_slot(), Some((u64::MAX, u32::MAX)));
        assert_eq!(keys[4].as_checkpoint(), Some(7));
        assert_eq!(keys[5].as_log_slot(), None, "a wish is not in the list of its slot");
        assert_eq!((keys[6].as_keys(), keys[6].is_pairing()), (Some(3), false));
        assert_eq!((keys[7].as_keys(), keys[7].is_pairing()), (None, true));
        assert_eq!((keys[8].as_envelope(), keys[7].as_envelope()), (Some("Z".repeat(64)), None));
        assert!(keys[1].names_its_content() && keys[2].names_its_content());
        assert!(!keys[0].names_its_content() && !keys[3].names_its_content());
    }

    #[test]
    fn a_second_spelling_of_a_pack_or_slot_is_not_taken_for_it() {
        let hex = "ab".repeat(32);
        for text in [format!("packs/cd/{hex}"), format!("packs/{hex}"), "packs/ab".to_owned()] {
            assert_eq!(ObjectKey::new(&text).unwrap().as_pack(), None, "{text}");
        }
        for text in
            ["keys/3", "keys/x", "keys/00000000000000000003/x", "pairing/a", "pairing/a/b/c"]
        {
            let key = ObjectKey::new(text).unwrap();
            assert_eq!((key.as_keys(), key.is_pairing()), (None, false), "{text}");
        }
        for text in ["envelopes/a", "envelopes/6z", "envelopes/62/6f", "envelopes/ff"] {
            assert_eq!(ObjectKey::new(text).unwrap().as_envelope(), None, "{text}");
        }
        assert!(ObjectKey::envelope("").is_err() && ObjectKey::envelope(&"z".repeat(65)).is_err());
        for text in ["log/7/r0", "log/00000000000000000007/r01", "log/00000000000000000007/x"] {
            assert_eq!(ObjectKey::new(text).unwrap().as_log_slot(), None, "{text}");
        }
    }

    #[test]
    fn log_keys_sort_like_slots() {
        let keys: Vec<_> =
            [0, 9, 10, 99, 1 << 40, u64::MAX].map(|s| ObjectKey::log_slot(s, 0)).into();
        assert!(keys.is_sorted());
    }

    #[test]
    fn hostile_and_unportable_keys_are_refused() {
        let long = "a/".repeat(300);
        let deep = "a/a/a/a/a/a/a/a/a";
        let bad = [
            "", "/", "a/", "/a", "a//b", "..", "a/../b", ".tmp", "a.", "A", "é", "a b", "a\0",
            deep, &long,
        ];
        for text in bad {
            assert!(ObjectKey::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn prefixes_may_end_anywhere_in_a_key() {
        for prefix in ["", "p", "packs/", "packs/a", "log/0000"] {
            check_prefix(prefix).unwrap();
        }
        for prefix in ["/", "a//", "../", "packs/../x", ".tmp", "A"] {
            assert!(check_prefix(prefix).is_err(), "{prefix:?}");
        }
    }
}
