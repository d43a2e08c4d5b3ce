//! Who somebody is at a provider of OpenID Connect.

use crate::error::{Result, ServerError};

/// The longest issuer and the longest subject, in bytes; OpenID Connect Core 1.0, section 2, bounds the latter.
const ISSUER_LENGTH_MAX: usize = 1024;
const ID_LENGTH_MAX: usize = 255;

/// A person at a provider: the pair that never changes, unlike name and address of mail.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    issuer: String,
    id: String,
}

impl Subject {
    /// Puts the pair together.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] for what no provider calls itself or anybody.
    pub fn new(issuer: &str, id: &str) -> Result<Self> {
        check_issuer(issuer)?;
        check("subject", id, ID_LENGTH_MAX)?;
        Ok(Self { issuer: issuer.to_owned(), id: id.to_owned() })
    }

    /// Returns the provider, as it calls itself.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns what the provider calls the person.
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// Checks that a provider may call itself so.
///
/// # Errors
/// [`ServerError::Invalid`].
pub(crate) fn check_issuer(issuer: &str) -> Result<()> {
    check("issuer", issuer, ISSUER_LENGTH_MAX)
}

fn check(what: &'static str, text: &str, length_max: usize) -> Result<()> {
    let invalid = |reason: String| Err(ServerError::Invalid { what, reason });
    if text.is_empty() || text.len() > length_max {
        return invalid(format!("it has 1 to {length_max} bytes"));
    }
    if text.chars().any(char::is_control) {
        return invalid("a control character is in it".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_provider_may_say_is_a_subject() {
        let subject = Subject::new("https://id.example.org", &"x".repeat(255)).unwrap();
        assert_eq!((subject.issuer(), subject.id().len()), ("https://id.example.org", 255));
        let long = "x".repeat(256);
        for id in ["", "a\0b", "a\nb", &long] {
            assert!(Subject::new("https://id.example.org", id).is_err(), "{id:?}");
        }
        assert!(Subject::new("", "ada").is_err());
    }
}
