//! The recovery key: 256 bits as groups of letters and digits that a person can write down.
//!
//! Crockford's Base32 (no I, L, O, U) of the 32 bytes and the first 3 bytes of a checksum: 56 characters in 14 groups.

use super::SecretKey;

/// What the checksum is derived with.
const CHECKSUM_CONTEXT: &str = "syncline sealed v1: recovery checksum";

/// How the recovery key keeps the account key.
const LOCK_CONTEXT: &str = "syncline sealed v1: recovery lock";

const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

const CHECKSUM_LENGTH: usize = 3;

/// How many characters a recovery key has without its separators: five bits in each.
const CHARACTERS: usize = (32 + CHECKSUM_LENGTH) * 8 / 5;

const GROUP: usize = 4;

/// Text that is not a recovery key, or one with a slip of the pen in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not a recovery key: {CHARACTERS} letters and digits are expected")]
pub struct InvalidRecoveryKey;

/// The key that opens a workspace whose passphrase is forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryKey(SecretKey);

impl RecoveryKey {
    /// Wraps the bytes of a key.
    pub fn new(key: SecretKey) -> Self {
        Self(key)
    }

    pub(super) fn secret(&self) -> &SecretKey {
        &self.0
    }

    pub(super) fn lock_key(&self) -> SecretKey {
        self.0.derive(LOCK_CONTEXT)
    }

    /// Returns the text to write down, which is the key. There is no `Display`, so that it is never shown by accident.
    pub fn to_text(&self) -> String {
        let bytes = [&self.0.as_bytes()[..], &checksum(&self.0)].concat();
        digits_of(&bytes, CHARACTERS, GROUP)
    }

    /// Reads what was written down, whatever its case and separators, and with letters that look like digits.
    ///
    /// # Errors
    /// [`InvalidRecoveryKey`].
    pub fn from_text(text: &str) -> Result<Self, InvalidRecoveryKey> {
        let bytes: [u8; 32 + CHECKSUM_LENGTH] =
            value_of(text, CHARACTERS).ok_or(InvalidRecoveryKey)?;
        let (key, sum) = bytes.split_first_chunk::<32>().ok_or(InvalidRecoveryKey)?;
        let key = SecretKey::from_bytes(*key);
        if checksum(&key) != *sum {
            return Err(InvalidRecoveryKey);
        }
        Ok(Self(key))
    }
}

/// Returns the first bits of some bytes, five in each letter or digit, in groups.
pub(crate) fn digits_of(bytes: &[u8], characters: usize, group: usize) -> String {
    let mut text = String::with_capacity(characters + characters / group);
    for at in 0..characters {
        if at > 0 && at.is_multiple_of(group) {
            text.push('-');
        }
        let digit = (0..5).fold(0, |digit, bit| digit << 1 | bit_at(bytes, at * 5 + bit));
        text.push(char::from(DIGITS[usize::from(digit)]));
    }
    text
}

/// Reads what [`digits_of`] has written, whatever its case and separators; bits behind the last one are zeros.
pub(crate) fn value_of<const N: usize>(text: &str, characters: usize) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let mut count = 0;
    for character in text.chars().filter(|c| !c.is_whitespace() && *c != '-') {
        let character = match character.to_ascii_uppercase() {
            'O' => '0',
            'I' | 'L' => '1',
            other => other,
        };
        let digit = DIGITS.iter().position(|&digit| char::from(digit) == character);
        let digit = digit.filter(|_| count < characters)?;
        for bit in (0..5).filter(|bit| digit >> (4 - bit) & 1 == 1) {
            let at = count * 5 + bit;
            bytes[at / 8] |= 0x80 >> (at % 8);
        }
        count += 1;
    }
    (count == characters).then_some(bytes)
}

fn bit_at(bytes: &[u8], bit: usize) -> u8 {
    bytes[bit / 8] >> (7 - bit % 8) & 1
}

fn checksum(key: &SecretKey) -> [u8; CHECKSUM_LENGTH] {
    let sum = key.derive(CHECKSUM_CONTEXT);
    let [a, b, c, ..] = *sum.as_bytes();
    [a, b, c]
}
