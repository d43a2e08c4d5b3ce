//! What a person shows beside the password: a code of the moment, or one of the recovery codes that were printed or written down.

use std::fmt;

use model::Random;
use model::environment::random_bytes;

use super::base32;
use super::totp::TotpCode;

/// A code that counts once, for whoever has lost the app. Of 80 bits, so that nobody tries them out, and a fast hash is enough.
#[derive(Clone, PartialEq, Eq)]
pub struct RecoveryCode([u8; 10]);

/// What was shown as a second factor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// A code of the moment.
    Code(TotpCode),
    /// A recovery code.
    Recovery(RecoveryCode),
    /// Something that is neither.
    Neither,
}

impl RecoveryCode {
    /// Makes a new code.
    pub fn generate(random: &dyn Random) -> Self {
        Self(random_bytes(random))
    }

    /// Returns the text form, in groups of four, for the person alone.
    pub fn to_text(&self) -> String {
        let text = base32::encode(&self.0);
        let groups: Vec<&str> = (0..4).map(|group| &text[group * 4..group * 4 + 4]).collect();
        groups.join("-")
    }

    /// Returns what the server keeps of it.
    pub fn hash(&self) -> [u8; 32] {
        blake3::derive_key("syncline 2026 recovery code", &self.0)
    }
}

impl Proof {
    /// Reads what somebody has typed, with or without blanks and hyphens.
    pub fn from_text(text: &str) -> Self {
        let is_mark = |letter: &char| letter.is_whitespace() || *letter == '-';
        let text: String = text.chars().filter(|letter| !is_mark(letter)).collect();
        if let Some(code) = TotpCode::from_text(&text) {
            return Self::Code(code);
        }
        base32::decode(&text).map_or(Self::Neither, |bytes| Self::Recovery(RecoveryCode(bytes)))
    }
}

impl fmt::Debug for RecoveryCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RecoveryCode(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Counter;

    #[test]
    fn what_is_typed_is_read_in_any_spelling() {
        let code = RecoveryCode::generate(&Counter::default());
        let text = code.to_text();
        assert_eq!(text.len(), 19);
        let small = format!(" {}\n", text.to_lowercase().replace('-', " "));
        for typed in [&text, &text.replace('-', ""), &small] {
            assert_eq!(Proof::from_text(typed), Proof::Recovery(code.clone()), "{typed}");
        }
        let six = TotpCode::from_text("123456").unwrap();
        for typed in ["123456", "123 456", " 123-456\n"] {
            assert_eq!(Proof::from_text(typed), Proof::Code(six), "{typed}");
        }
        for typed in ["", "12345", "1234567", &text[1..], &format!("{text}A"), "correct horse"] {
            assert_eq!(Proof::from_text(typed), Proof::Neither, "{typed}");
        }
        assert_eq!(format!("{code:?}"), "RecoveryCode(..)");
    }
}
