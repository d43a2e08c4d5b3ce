//! The transformation chain: a multichunk is compressed, then encrypted.

use content::Transform;
use content::transform::TransformEncoder;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::configuration::Compression;
use crate::error::LabError;

/// A chain is for measuring: the key is as well known as what it hides.
const KEY: [u8; 16] = [0x5c; 16];

/// AES-128, as in the thesis; in the mode of today's Syncany, which authenticates.
pub(super) struct Chain {
    encoder: TransformEncoder,
    key: LessSafeKey,
}

impl Chain {
    pub(super) fn new(compression: Compression) -> Result<Self, LabError> {
        let key =
            UnboundKey::new(&AES_128_GCM, &KEY).expect("the key has the length of its cipher");
        let encoder = TransformEncoder::new(compression.transform())?;
        Ok(Self { encoder, key: LessSafeKey::new(key) })
    }

    /// Makes of a multichunk what would be stored; `number` is never the same twice.
    pub(super) fn apply(&mut self, number: u32, plain: &[u8]) -> Result<Vec<u8>, LabError> {
        // Whoever reads it has to know how much memory it takes.
        let mut bytes = (plain.len() as u32).to_be_bytes().to_vec();
        self.encoder.compress(plain, &mut bytes)?;
        let mut nonce = [0; NONCE_LEN];
        nonce[..4].copy_from_slice(&number.to_le_bytes());
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut bytes)
            .expect("a multichunk is not as long as what a cipher can take");
        bytes.extend_from_slice(&nonce);
        Ok(bytes)
    }
}

impl Compression {
    fn transform(self) -> Transform {
        match self {
            Self::None => Transform::None,
            Self::Gzip => Transform::Gzip,
            Self::Bzip2 => Transform::Bzip2,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Makes a multichunk of what was stored; nothing where it is not what was stored.
    pub(crate) fn undo(compression: Compression, stored: &[u8]) -> Option<Vec<u8>> {
        let (sealed, nonce) = stored.split_last_chunk()?;
        let mut sealed = sealed.to_vec();
        let chain = Chain::new(compression).unwrap();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = chain.key.open_in_place(nonce, Aad::empty(), &mut sealed).ok()?;
        let (length, compressed) = opened.split_first_chunk()?;
        let length = u32::from_be_bytes(*length) as usize;
        content::transform::decode(compression.transform().tag(), compressed, length).ok()
    }

    #[test]
    fn what_went_in_comes_out_and_damage_is_found() {
        let plain = b"a line that is said again\n".repeat(500);
        for compression in [Compression::None, Compression::Gzip, Compression::Bzip2] {
            let mut chain = Chain::new(compression).unwrap();
            let stored = chain.apply(1, &plain).unwrap();
            assert_eq!(stored.len() < plain.len(), compression != Compression::None);
            assert_ne!(stored, chain.apply(2, &plain).unwrap());
            let mut damaged = stored.clone();
            damaged[10] ^= 1;
            assert_eq!(undo(compression, &damaged), None);
            assert_eq!(undo(compression, &stored[..5]), None);
            assert_eq!(undo(compression, &stored).unwrap(), plain);
        }
    }
}
