//! Hints of a sealed workspace: that a device of the workspace says which stores it has, and no store.
//!
//! *Participants*: devices, which write a hint into every store; stores, which keep it and may be hostile; and a new device,
//! which has nothing but one store and a passphrase, a recovery key or a code. *Goals*: what no device of the account has said
//! is refused before any other store is asked for anything. So it is a signature and no keyed hash: the account's public key
//! stands in the genesis, and a hint can be checked against it before any secret is known, with whatever keys there were and
//! will be. Whether the genesis is that of the account is known once the secret has opened the locked keys. *Non-goals*: that a
//! store does not give an older hint; the newest of several counts, and the log knows later ones.

use model::codec::encode_message;
use model::{Genesis, HintSeal, PoolHint, WorkspaceId};

use super::DeviceKeys;
use crate::error::ContentError;
use crate::keyring::{DEVICE_PURPOSE, certified_bytes};
use crate::signing::{SIGNATURE_LENGTH, verify};

/// What the device signs of a hint.
const HINT_PURPOSE: &str = "syncline sealed v1: hint";

impl DeviceKeys {
    /// Says for this device that the workspace has these stores, at a version of its settings.
    ///
    /// # Errors
    /// [`ContentError::UnsupportedSeal`].
    pub fn sign_hint(&self, version: u64, hint: PoolHint) -> Result<PoolHint, ContentError> {
        let identity = &self.identity;
        let seal = HintSeal {
            device: identity.device,
            device_key: *identity.signing.public(),
            certificate: identity.certificate,
            signature: [0; SIGNATURE_LENGTH],
        };
        let mut hint = PoolHint { seal: Some(Box::new(seal)), ..hint };
        let signature =
            identity.signing.sign(HINT_PURPOSE, &signed_bytes(self.workspace, version, &hint))?;
        if let Some(seal) = &mut hint.seal {
            seal.signature = signature;
        }
        Ok(hint)
    }
}

/// Checks that a hint is what a workspace has: of a sealed one, that a device of the account in the genesis has signed it for
/// this workspace and version.
///
/// # Errors
/// [`ContentError::NotSealed`], [`ContentError::IsSealed`] where it is of the other mode; [`ContentError::Tampered`].
pub fn check_hint(genesis: &Genesis, version: u64, hint: &PoolHint) -> Result<(), ContentError> {
    let what = "hint at the stores";
    let (sealed, seal) = match (genesis.mode.sealed(), &hint.seal) {
        (None, None) => return Ok(()),
        (None, Some(_)) => return Err(ContentError::IsSealed { what }),
        (Some(_), None) => return Err(ContentError::NotSealed { what }),
        (Some(sealed), Some(seal)) => (sealed, seal),
    };
    let workspace = genesis.workspace();
    let certified = certified_bytes(workspace, seal.device, &seal.device_key);
    let signed = signed_bytes(workspace, version, hint);
    let is_theirs = verify(&sealed.account, DEVICE_PURPOSE, &certified, &seal.certificate)
        && verify(&seal.device_key, HINT_PURPOSE, &signed, &seal.signature);
    if is_theirs { Ok(()) } else { Err(ContentError::Tampered { what }) }
}

/// What the device signs: the workspace, the version, and the hash of the hint without the signature.
fn signed_bytes(workspace: WorkspaceId, version: u64, hint: &PoolHint) -> Vec<u8> {
    let mut unsigned = hint.clone();
    if let Some(seal) = &mut unsigned.seal {
        seal.signature = [0; SIGNATURE_LENGTH];
    }
    let hash = blake3::hash(&encode_message(&unsigned));
    [&workspace.as_bytes()[..], &version.to_le_bytes(), hash.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use model::codec::decode_message;
    use model::{DeviceId, Mode, PoolConfig, Redundancy, StoreId, StoreRecord, Timestamp};

    use super::*;
    use crate::keyring::{SecretKey, Unlocked};
    use crate::samples::SeededRandom;
    use crate::sealed::genesis::unlocked;

    fn workspace(seed: u64) -> (Genesis, Unlocked) {
        let random = SeededRandom::new(seed);
        unlocked("Letters", Timestamp::default(), &random).expect("this build can seal")
    }

    fn device((genesis, unlocked): &(Genesis, Unlocked), number: u8) -> DeviceKeys {
        let (id, seed) = (DeviceId::from_bytes([number; 16]), SecretKey::from_bytes([number; 32]));
        DeviceKeys::enroll(genesis, unlocked, id, seed).expect("enrolls")
    }

    fn plain_hint(urls: &[&str]) -> PoolHint {
        let stores = urls.iter().zip(1..).map(|(url, number)| {
            StoreRecord::new(
                StoreId::from_bytes([number; 16]),
                format!("s{number}"),
                (*url).to_owned(),
                100,
            )
        });
        let pool = PoolConfig::new(Redundancy::Replicas(1), stores.collect()).expect("a pool");
        PoolHint::plain(pool, 7)
    }

    fn is_tampered(result: Result<(), ContentError>) -> bool {
        matches!(result, Err(ContentError::Tampered { .. }))
    }

    #[test]
    fn hint_of_any_device_is_known_by_the_genesis_alone_and_after_new_keys() {
        let mut ours = workspace(1);
        for number in 1..4 {
            let hint = device(&ours, number).sign_hint(3, plain_hint(&["file:/a", "file:/b"]));
            let hint = hint.expect("signs");
            check_hint(&ours.0, 3, &hint).expect("is theirs");
            assert_eq!(hint.seal.as_ref().map(|seal| seal.device.as_bytes()[0]), Some(number));
            ours.1.keyring.rotate(&SeededRandom::new(number.into())).expect("rotates");
        }
    }

    #[test]
    fn hint_of_another_workspace_account_or_version_is_refused() {
        let (ours, other) = (workspace(1), workspace(2));
        let hint = device(&ours, 1).sign_hint(3, plain_hint(&["file:/a"])).expect("signs");
        for version in [0, 2, 4, u64::MAX] {
            assert!(is_tampered(check_hint(&ours.0, version, &hint)), "as version {version}");
        }
        assert!(is_tampered(check_hint(&other.0, 3, &hint)), "at another workspace");
        // A device that the account did not certify, and one with the certificate of another.
        let mut stranger = device(&other, 9);
        stranger.workspace = ours.0.workspace();
        let forged = stranger.sign_hint(3, plain_hint(&["file:/a"])).expect("signs");
        assert!(is_tampered(check_hint(&ours.0, 3, &forged)));
        let known = device(&ours, 1).identity;
        (stranger.identity.device, stranger.identity.certificate) =
            (known.device, known.certificate);
        let forged = stranger.sign_hint(3, plain_hint(&["file:/a"])).expect("signs");
        assert!(is_tampered(check_hint(&ours.0, 3, &forged)));
        // The same account, in another workspace of it.
        let mut twin = ours.0.clone();
        if let Mode::Sealed(sealed) = &mut twin.mode {
            sealed.salt[0] ^= 1;
        }
        assert!(is_tampered(check_hint(&twin, 3, &hint)));
    }

    #[test]
    fn signature_of_something_else_is_none_of_a_hint() {
        let ours = workspace(1);
        let device = device(&ours, 1);
        let mut hint = device.sign_hint(3, plain_hint(&["file:/a"])).expect("signs");
        let message = signed_bytes(ours.0.workspace(), 3, &hint);
        let other = device.identity.signing.sign("syncline sealed v1: commit", &message);
        hint.seal.as_mut().expect("sealed").signature = other.expect("signs");
        assert!(is_tampered(check_hint(&ours.0, 3, &hint)));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_seen() {
        let ours = workspace(1);
        let hint = device(&ours, 1).sign_hint(3, plain_hint(&["file:/a", "sftp://h/b"]));
        let bytes = encode_message(&hint.expect("signs"));
        for at in 0..bytes.len() {
            let _ = decode_message::<PoolHint>(&bytes[..at]).expect_err("cut off");
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                if let Ok(hint) = decode_message::<PoolHint>(&changed) {
                    assert!(check_hint(&ours.0, 3, &hint).is_err(), "byte {at}, bit {bit}");
                }
            }
        }
    }

    #[test]
    fn plain_and_sealed_hints_are_told_apart() {
        let ours = workspace(1);
        let unsigned = plain_hint(&["file:/a"]);
        let refused = check_hint(&ours.0, 3, &unsigned);
        assert!(matches!(refused, Err(ContentError::NotSealed { .. })), "{refused:?}");
        let plain = Genesis { mode: Mode::Plain, content_key: [1; 32], ..ours.0.clone() };
        check_hint(&plain, 3, &unsigned).expect("is as it should be");
        let signed = device(&ours, 1).sign_hint(3, unsigned).expect("signs");
        let refused = check_hint(&plain, 3, &signed);
        assert!(matches!(refused, Err(ContentError::IsSealed { .. })), "{refused:?}");
    }
}
