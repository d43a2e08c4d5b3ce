//! Codes that change with the time (TOTP, RFC 6238): an app and the server compute them from a secret that both have.
//!
//! SHA-1, six digits and steps of 30 seconds, since that is what every app can. What is known against SHA-1 does not touch HMAC with it.
//! A code says little (three of a million fit at any time), so whoever lets one in counts attempts, and takes each step once.

use std::fmt;

use model::Random;
use model::environment::random_bytes;
use ring::hmac;
use subtle::ConstantTimeEq;

use super::base32;

/// How long a code counts.
pub const STEP_SECONDS: i64 = 30;

/// How many steps the clock of the app may be off, each way.
const DRIFT: i64 = 1;

/// How many codes there are.
const CODES: u32 = 1_000_000;

/// What app and server have in common: as many bits as the hash has.
#[derive(Clone, PartialEq, Eq)]
pub struct TotpSecret([u8; 20]);

/// Six digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TotpCode(u32);

impl TotpSecret {
    /// Makes a new secret.
    pub fn generate(random: &dyn Random) -> Self {
        Self(random_bytes(random))
    }

    /// Returns the secret of these bytes.
    pub const fn from_bytes(bytes: [u8; 20]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes, for the database alone.
    pub fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }

    /// Reads the text form; nothing where it is not one.
    pub fn from_text(text: &str) -> Option<Self> {
        base32::decode(text).map(Self)
    }

    /// Returns the text form, for the app alone.
    pub fn to_text(&self) -> String {
        base32::encode(&self.0)
    }

    /// Returns the code of a step.
    pub fn code(&self, step: i64) -> TotpCode {
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &self.0);
        let tag = hmac::sign(&key, &step.to_be_bytes());
        // The last half byte says where the four bytes of the code begin.
        let begin = usize::from(tag.as_ref()[19] & 0xf);
        let number = tag.as_ref()[begin..begin + 4].iter();
        let number = number.fold(0_u32, |number, byte| (number << 8) | u32::from(*byte));
        TotpCode((number & 0x7fff_ffff) % CODES)
    }

    /// Returns the step whose code this is, of those around a time (in seconds since 1970) that come after `used`; the earliest, so that later
    /// ones are left.
    pub fn step_of(&self, code: TotpCode, now: i64, used: i64) -> Option<i64> {
        let step = step_at(now);
        (step - DRIFT..=step + DRIFT).fold(None, |found, step| {
            // Every step is compared in the same time, whether one was found or not.
            let fits = bool::from(self.code(step).0.ct_eq(&code.0));
            found.or((fits && step > used).then_some(step))
        })
    }
}

/// Returns the step of a time in seconds since 1970.
pub fn step_at(now: i64) -> i64 {
    now.div_euclid(STEP_SECONDS)
}

impl TotpCode {
    /// Reads six digits.
    pub fn from_text(text: &str) -> Option<Self> {
        let is_code = text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_digit());
        is_code.then(|| text.parse().ok().map(Self)).flatten()
    }

    /// Returns six digits.
    pub fn to_text(self) -> String {
        format!("{:06}", self.0)
    }
}

impl fmt::Debug for TotpSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TotpSecret(..)")
    }
}

impl fmt::Debug for TotpCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TotpCode(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: TotpSecret = TotpSecret(*b"12345678901234567890");

    #[test]
    fn codes_are_those_of_the_standard() {
        // RFC 6238, appendix B, of whose eight digits these are the last six.
        for (time, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(SECRET.code(step_at(time)).to_text(), code, "{time}");
        }
    }

    #[test]
    fn a_code_counts_from_a_step_before_until_a_step_after_its_own() {
        let step = step_at(1_234_567_890);
        let (begin, code) = (step * STEP_SECONDS, SECRET.code(step));
        let found = |now| SECRET.step_of(code, now, 0);
        for (now, expected) in [
            (begin - 31, None),
            (begin - 30, Some(step)),
            (begin, Some(step)),
            (begin + 29, Some(step)),
            (begin + 59, Some(step)),
            (begin + 60, None),
        ] {
            assert_eq!(found(now), expected, "{}", now - begin);
        }
        assert_eq!(SECRET.step_of(code, begin, step - 1), Some(step));
        assert_eq!(SECRET.step_of(code, begin, step), None);
    }

    #[test]
    fn of_two_steps_with_one_code_each_counts_once() {
        // Searched for: the first number whose bytes, five times, are a secret with the same code at two steps around one.
        let secret = TotpSecret(std::array::from_fn(|i| 3_009_818_u32.to_le_bytes()[i % 4]));
        let code = secret.code(100);
        assert_eq!(code, secret.code(102));
        let now = 101 * STEP_SECONDS;
        assert_eq!(secret.step_of(code, now, 0), Some(100));
        assert_eq!(secret.step_of(code, now, 100), Some(102));
        assert_eq!(secret.step_of(code, now, 102), None);
    }

    #[test]
    fn code_is_six_digits_and_never_shows_in_debug_output() {
        assert_eq!(TotpCode::from_text("005924").map(TotpCode::to_text).as_deref(), Some("005924"));
        for text in ["", "5924", "0059240", "+05924", "00592a", "００５９"] {
            assert!(TotpCode::from_text(text).is_none(), "{text}");
        }
        assert_eq!(format!("{:?} {SECRET:?}", TotpCode(5924)), "TotpCode(..) TotpSecret(..)");
        assert_eq!(TotpSecret::from_text(&SECRET.to_text()), Some(SECRET));
    }
}
