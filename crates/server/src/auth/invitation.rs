//! What stands in the address of an invitation.

use std::fmt;

use model::Random;
use model::environment::random_bytes;

use super::{secret_of_address, secret_to_address};

/// The secret of an invitation: who has it may make one account.
#[derive(Clone, PartialEq, Eq)]
pub struct InvitationSecret([u8; 32]);

impl InvitationSecret {
    /// Makes a new secret.
    pub fn generate(random: &dyn Random) -> Self {
        Self(random_bytes(random))
    }

    /// Reads the text form; nothing where it is not one. Each secret has one spelling.
    pub fn from_text(text: &str) -> Option<Self> {
        secret_of_address(text).map(Self)
    }

    /// Returns the text form, for an address.
    pub fn to_text(&self) -> String {
        secret_to_address(&self.0)
    }

    /// Returns what the server keeps of it. No token and no link has such a hash.
    pub fn hash(&self) -> [u8; 32] {
        blake3::derive_key("syncline 2026 invitation secret", &self.0)
    }
}

impl fmt::Debug for InvitationSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("InvitationSecret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::LinkSecret;

    #[test]
    fn a_secret_has_one_text_and_a_hash_that_no_link_has() {
        let text = "_".repeat(42) + "8";
        let secret = InvitationSecret::from_text(&text).unwrap();
        assert_eq!(secret, InvitationSecret([0xff; 32]));
        assert_eq!(secret.to_text(), text);
        assert_ne!(secret.hash(), LinkSecret::from_text(&text).unwrap().hash());
        assert_eq!(format!("{secret:?}"), "InvitationSecret(..)");
        for wrong in [String::new(), "_".repeat(43), format!("{text}="), "A".repeat(44)] {
            assert_eq!(InvitationSecret::from_text(&wrong), None, "{wrong}");
        }
    }
}
