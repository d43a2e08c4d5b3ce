//! A sealed workspace that is made in a browser: [`NewWorkspace`] makes its keys, as the program does.
//!
//! *Goals*: keys leave the module locked, but for the recovery key, which a person keeps; the account key is here until the workspace
//! is opened, and overwritten then. *Non-goals*: to store anything, which the page does.

use std::sync::Arc;

use content::keyring::Passphrase;
use content::{KeyObject, NewWorkspace, Unlocked};
use model::codec::encode_message;
use model::entry::check_workspace_name;
use model::{Genesis, Random};
use wasm_bindgen::prelude::wasm_bindgen;
use zeroize::Zeroizing;

use crate::chunk_delta::out_of_turn;
use crate::failure::Failure;
use crate::sealed_workspace::{CONTEXT, SealedWorkspace};
use crate::sealed_writing::time_of;
use crate::seeded::Seeded;

/// What the random bytes of a new workspace are for.
const MAKING: &str = "syncline 2026 new sealed workspace in a browser";

/// A sealed workspace that no server has yet.
#[wasm_bindgen]
pub struct SealedMaking {
    genesis: Genesis,
    keys: KeyObject,
    /// Until it is opened.
    unlocked: Option<Unlocked>,
}

#[wasm_bindgen]
impl SealedMaking {
    /// Makes the keys of a workspace and locks them. `created_ms` is the time of now, `seed` are 32 random bytes that nobody else knows, for
    /// this workspace alone. Takes as long as one Argon2id of 64 MiB.
    ///
    /// # Errors
    /// `name` for what cannot be the name of a workspace, `passphrase` for a short one, `length` for another length of the seed.
    #[wasm_bindgen(constructor)]
    pub fn new(
        name: &str,
        created_ms: f64,
        passphrase: String,
        seed: &[u8],
    ) -> Result<Self, Failure> {
        let passphrase = Passphrase::new(Zeroizing::new(passphrase));
        check_workspace_name(name).map_err(|reason| Failure::of("name", reason))?;
        if passphrase.length() < Passphrase::LENGTH_MIN {
            return Err(Failure::of("passphrase", "the passphrase is short"));
        }
        let random = Seeded::new(MAKING, seed)?;
        let made = NewWorkspace::create(name, time_of(created_ms), &passphrase, &random)?;
        let NewWorkspace { genesis, keys, unlocked } = made;
        Ok(Self { genesis, keys, unlocked: Some(unlocked) })
    }

    /// Returns the id of the workspace.
    pub fn id(&self) -> String {
        self.genesis.workspace().to_string()
    }

    /// Returns the encoded genesis, by which a server makes the workspace.
    pub fn genesis(&self) -> Vec<u8> {
        encode_message(&self.genesis)
    }

    /// Returns the locked keys, which the server keeps for the other devices.
    pub fn keys(&self) -> Vec<u8> {
        self.keys.to_bytes()
    }

    /// Returns of which generation these are.
    pub fn generation(&self) -> f64 {
        self.keys.generation() as f64
    }

    /// Returns the recovery key, to be written down; nothing once the workspace is open.
    #[wasm_bindgen(js_name = "recoveryKey")]
    pub fn recovery_key(&self) -> Option<String> {
        self.unlocked.as_ref().map(|unlocked| unlocked.keyring.recovery.to_text())
    }

    /// Opens the workspace, once: as [`SealedWorkspace::new`], without typing anything.
    ///
    /// # Errors
    /// `length`; `no_such` where it was opened before.
    pub fn open(
        &mut self,
        device: &str,
        device_name: &str,
        seed: &[u8],
    ) -> Result<SealedWorkspace, Failure> {
        let random: Arc<dyn Random> = Arc::new(Seeded::new(CONTEXT, seed)?);
        let unlocked = self.unlocked.as_ref().ok_or_else(out_of_turn)?;
        let opened =
            SealedWorkspace::enroll(&self.genesis, unlocked, (device, device_name), random)?;
        self.unlocked = None;
        Ok(opened)
    }
}

#[cfg(test)]
mod tests {
    use content::{Secret, Unlocked};
    use model::codec::decode_message;

    use super::*;

    const DEVICE: &str = "0000000000000000000000000000000a";
    const SEED: [u8; 32] = [3; 32];

    fn make(name: &str, passphrase: &str, seed: &[u8]) -> Result<SealedMaking, Failure> {
        SealedMaking::new(name, 1_700_000_000_250.0, passphrase.to_owned(), seed)
    }

    /// Opens it as another device does, from what the server has.
    fn unlock(made: &SealedMaking, secret: &str) -> Result<(Genesis, Unlocked), Failure> {
        let genesis: Genesis = decode_message(&made.genesis()).expect("it is a genesis");
        let keys = KeyObject::from_bytes(&made.keys())?;
        assert_eq!(keys.generation() as f64, made.generation());
        let unlocked =
            Secret::from_text(Zeroizing::new(secret.to_owned())).unlock(&keys, &genesis)?;
        Ok((genesis, unlocked))
    }

    #[test]
    fn workspace_is_opened_here_and_elsewhere_by_its_passphrase_and_by_its_recovery_key() {
        let mut made = make("Diary", "correct horse", &SEED).unwrap();
        let recovery_key = made.recovery_key().unwrap();
        for secret in ["correct horse", &recovery_key] {
            let (genesis, unlocked) = unlock(&made, secret).unwrap();
            assert_eq!(genesis.workspace().to_string(), made.id());
            assert_eq!(content::DeviceKeys::name_of(&genesis, &unlocked).unwrap(), "Diary");
            assert_eq!(unlocked.keyring.recovery.to_text(), recovery_key);
        }
        assert_eq!(unlock(&made, "correct house").err().unwrap().code, "wrong_key");
        assert!(!made.genesis().windows(5).any(|bytes| bytes == b"Diary"));

        assert_eq!(made.open(DEVICE, "page", &SEED[1..]).err().unwrap().code, "length");
        let opened = made.open(DEVICE, "page", &SEED).unwrap();
        assert_eq!((opened.name().as_str(), opened.head()), ("Diary", 0.0));
        assert_eq!(made.recovery_key(), None);
        assert_eq!(made.open(DEVICE, "page", &SEED).err().unwrap().code, "no_such");
    }

    #[test]
    fn names_passphrases_and_seeds_that_cannot_be_are_refused() {
        let code = |name: &str, passphrase: &str, seed: &[u8]| {
            make(name, passphrase, seed).err().map(|failure| failure.code)
        };
        let long = "n".repeat(129);
        for name in ["", " ", "a/b", "a\nb", &long, DEVICE] {
            assert_eq!(code(name, "correct horse", &SEED), Some("name"), "{name}");
        }
        assert_eq!(code("Diary", "1234567", &SEED), Some("passphrase"));
        assert_eq!(code("Diary", "12345678", &SEED[1..]), Some("length"));
        assert_eq!(code(&"n".repeat(128), "ÄÖÜäöüßß", &SEED), None);
    }

    #[test]
    fn two_workspaces_have_no_key_in_common() {
        let [one, other] = [[3; 32], [4; 32]].map(|seed| make("Diary", "12345678", &seed).unwrap());
        assert_ne!(one.id(), other.id());
        assert_ne!(one.recovery_key(), other.recovery_key());
        let (one, other) = (unlock(&one, "12345678").unwrap(), unlock(&other, "12345678").unwrap());
        assert_ne!(one.1.account, other.1.account);
        assert_ne!(one.1.keyring.content, other.1.keyring.content);
        assert_ne!(one.1.keyring.epochs, other.1.keyring.epochs);
    }
}
