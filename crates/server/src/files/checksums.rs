//! Checksums of whole files, which the log does not have: those that clients name are compared, and what was computed on the
//! way in is remembered for a while, so that clients can compare what they have sent.

use std::collections::{HashMap, VecDeque};

use md_5::{Digest, Md5};
use model::hex;
use parking_lot::Mutex;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};

/// Of how many contents they are remembered, some 150 bytes each.
const REMEMBERED_MAX: usize = 64 * 1024;

/// A way to sum up a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// SHA-1: what most WebDAV clients use. Against accidents, not against anybody.
    Sha1,
    /// MD5, for the same.
    Md5,
    /// SHA-256.
    Sha256,
}

impl Algorithm {
    /// Returns its name as the header `OC-Checksum` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "SHA1",
            Self::Md5 => "MD5",
            Self::Sha256 => "SHA256",
        }
    }
}

/// A checksum that a client names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksum {
    /// How it was made.
    pub algorithm: Algorithm,
    /// Lower-case hexadecimal digits.
    pub digits: String,
}

impl Checksum {
    /// Reads the header `OC-Checksum`, for example `SHA1:da39...`; nothing for an algorithm that is not known here.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, digits) = text.trim().split_once(':')?;
        let all = [Algorithm::Sha1, Algorithm::Md5, Algorithm::Sha256];
        let algorithm = all.into_iter().find(|one| one.name().eq_ignore_ascii_case(name))?;
        Some(Self { algorithm, digits: digits.to_ascii_lowercase() })
    }
}

/// Sums up bytes as they come.
pub(super) struct Summing {
    sha1: Context,
    sha256: Context,
    md5: Md5,
}

/// The checksums of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksums {
    sha1: String,
    sha256: String,
    md5: String,
}

impl Default for Summing {
    fn default() -> Self {
        let sha1 = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
        Self { sha1, sha256: Context::new(&SHA256), md5: Md5::new() }
    }
}

impl std::fmt::Debug for Summing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Summing")
    }
}

impl Summing {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.sha1.update(bytes);
        self.sha256.update(bytes);
        self.md5.update(bytes);
    }

    pub(super) fn finish(self) -> Checksums {
        Checksums {
            sha1: hex::encode(self.sha1.finish().as_ref()),
            sha256: hex::encode(self.sha256.finish().as_ref()),
            md5: hex::encode(&self.md5.finalize()),
        }
    }
}

impl Checksums {
    /// Returns one of them.
    pub fn get(&self, algorithm: Algorithm) -> &str {
        match algorithm {
            Algorithm::Sha1 => &self.sha1,
            Algorithm::Md5 => &self.md5,
            Algorithm::Sha256 => &self.sha256,
        }
    }

    /// Tells whether a client means the same bytes.
    pub fn fits(&self, named: &Checksum) -> bool {
        self.get(named.algorithm) == named.digits
    }
}

/// What is remembered of contents that came in, by hashes that stand for them.
#[derive(Debug, Default)]
pub struct KnownChecksums(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    found: HashMap<[u8; 32], Checksums>,
    order: VecDeque<[u8; 32]>,
}

impl KnownChecksums {
    /// Remembers those of a content, and forgets the oldest where there are too many.
    pub fn note(&self, key: [u8; 32], checksums: Checksums) {
        let mut known = self.0.lock();
        if known.found.insert(key, checksums).is_none() {
            known.order.push_back(key);
        }
        if known.order.len() > REMEMBERED_MAX
            && let Some(oldest) = known.order.pop_front()
        {
            known.found.remove(&oldest);
        }
    }

    /// Returns those of a content that came in lately.
    pub fn get(&self, key: &[u8; 32]) -> Option<Checksums> {
        self.0.lock().found.get(key).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_bytes_have_their_known_sums() {
        let mut summing = Summing::default();
        summing.update(b"ab");
        summing.update(b"c");
        let sums = summing.finish();
        for text in [
            "SHA1:A9993E364706816ABA3E25717850C26C9CD0D89D",
            "md5:900150983cd24fb0d6963f7d28e17f72",
            "SHA256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ] {
            assert!(sums.fits(&Checksum::parse(text).unwrap()), "{text}");
        }
        assert!(!sums.fits(&Checksum::parse("MD5:900150983cd24fb0d6963f7d28e17f73").unwrap()));
        assert_eq!(Checksum::parse("ADLER32:11E60398"), None);
    }
}
