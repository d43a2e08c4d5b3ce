//! The genesis of a sealed workspace: what everybody may see of it, and its name, which nobody else may.

use model::codec::{Decode, Decoder, Encode, Encoder};
use model::entry::WORKSPACE_NAME_LENGTH_MAX;
use model::environment::{Random, random_bytes};
use model::{Genesis, Mode, SealedGenesis, Timestamp};

use crate::cipher::{SMALL_NONCE_LENGTH, open_small, seal_small};
use crate::error::ContentError;
use crate::keyring::{AccountKey, KeyObject, Keyring, Passphrase, SecretKey, Unlocked};
use crate::padding::{pad, unpad};

/// What is said with the header, before account and salt.
const ASSOCIATED: &[u8] = b"syncline sealed v1: genesis\0";

/// Length to which a header is padded, in bytes: the longest name, a time and their lengths.
const HEADER_LENGTH: usize = 192;

/// A sealed workspace that is about to be made.
#[derive(Debug)]
pub struct NewWorkspace {
    /// Its genesis, with the name entered.
    pub genesis: Genesis,
    /// Its locked keys.
    pub keys: KeyObject,
    /// Its keys.
    pub unlocked: Unlocked,
}

impl NewWorkspace {
    /// Makes the keys of a workspace and locks them.
    ///
    /// # Errors
    /// [`ContentError::UnsupportedSeal`].
    ///
    /// # Panics
    /// Where the name is longer than a workspace's may be.
    pub fn create(
        name: &str,
        created: Timestamp,
        passphrase: &Passphrase,
        random: &dyn Random,
    ) -> Result<Self, ContentError> {
        assert!(name.len() <= WORKSPACE_NAME_LENGTH_MAX, "the name of a workspace has its limit");
        let (genesis, unlocked) = unlocked(name, created, random)?;
        let keys =
            KeyObject::new(&genesis, &unlocked.account, &unlocked.keyring, passphrase, random)?;
        Ok(Self { genesis, keys, unlocked })
    }

    /// Makes a workspace whose keys are locked nowhere, for tests that need no person.
    ///
    /// # Errors
    /// [`ContentError::UnsupportedSeal`].
    #[cfg(feature = "testing")]
    pub fn unlocked(
        name: &str,
        created: Timestamp,
        random: &dyn Random,
    ) -> Result<(Genesis, Unlocked), ContentError> {
        unlocked(name, created, random)
    }
}

/// Makes genesis and keys of a workspace.
pub(crate) fn unlocked(
    name: &str,
    created: Timestamp,
    random: &dyn Random,
) -> Result<(Genesis, Unlocked), ContentError> {
    let account = AccountKey::new(SecretKey::random(random));
    let keyring = Keyring::new(random);
    let public = *account.signing()?.public();
    let salt = random_bytes(random);
    let header = seal_header(name, created, &account, (&public, &salt), random);
    let genesis = Genesis {
        name: name.to_owned(),
        mode: Mode::Sealed(SealedGenesis { account: public, salt, header }),
        created,
        content_key: [0; 32],
    };
    Ok((genesis, Unlocked { account, keyring, generation: 1 }))
}

fn seal_header(
    name: &str,
    created: Timestamp,
    account: &AccountKey,
    (public, salt): (&[u8; 32], &[u8; 32]),
    random: &dyn Random,
) -> Vec<u8> {
    let mut encoder = Encoder::default();
    encoder.byte_string(name.as_bytes());
    created.encode(&mut encoder);
    let padded = pad(&encoder.into_bytes(), |_| HEADER_LENGTH);
    let nonce: [u8; SMALL_NONCE_LENGTH] = random_bytes(random);
    let associated = [ASSOCIATED, public, salt].concat();
    [&nonce[..], &seal_small(&account.genesis_key(), nonce, &associated, &padded)].concat()
}

/// Returns the name of a workspace and when it was made.
pub(crate) fn open_header(
    genesis: &Genesis,
    account: &AccountKey,
) -> Result<(String, Timestamp), ContentError> {
    let sealed = genesis.mode.sealed().ok_or(ContentError::NotSealed { what: "workspace" })?;
    let associated = [ASSOCIATED, &sealed.account, &sealed.salt].concat();
    let (nonce, header) =
        sealed.header.split_first_chunk::<SMALL_NONCE_LENGTH>().ok_or(ContentError::WrongKey)?;
    let padded = open_small(&account.genesis_key(), *nonce, &associated, header);
    let padded = padded.ok_or(ContentError::WrongKey)?;
    let plain = unpad(&padded, |_| HEADER_LENGTH).ok_or(ContentError::WrongKey)?;
    let mut decoder = Decoder::new(plain);
    let mut read = || {
        let name = decoder.byte_string(WORKSPACE_NAME_LENGTH_MAX)?.to_vec();
        let name = String::from_utf8(name).map_err(|error| decoder.invalid("name", error))?;
        Ok((name, Timestamp::decode(&mut decoder)?))
    };
    read().map_err(|source| ContentError::KeyObject { source })
}
