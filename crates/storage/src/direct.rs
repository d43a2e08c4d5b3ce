//! Requests that a store answers to whoever shows them: signed by who has its secrets, for one object and a while.
//!
//! *Goals*: bytes go between a device and the store without passing through the server, and without the server's secrets. *Invariants*: a
//! request reads one object, or creates it where there is none; it cannot replace what is there, so what was once found right stays so.

use std::fmt;

/// What a signed request does with its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direct {
    /// GET: reads it, or a part of it.
    Read,
    /// PUT: creates it; a store answers 412 where it is there.
    Create,
}

/// A signed request. Whoever has it may send it until its time is over.
#[derive(Clone, PartialEq, Eq)]
pub struct SignedRequest {
    /// Where to.
    pub url: String,
    /// Headers that belong to it: names and values.
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for SignedRequest {
    /// Shows where to, and never the signature.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.url.split('?').next().unwrap_or_default();
        formatter.debug_struct("SignedRequest").field("place", &place).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_not_shown() {
        let url = "https://store/cloud/packs/ab?X-Amz-Signature=secret".to_owned();
        let headers = vec![("x-amz-security-token".to_owned(), "secret".to_owned())];
        let shown = format!("{:?}", SignedRequest { url, headers });
        assert!(shown.contains("https://store/cloud/packs/ab") && !shown.contains("secret"));
    }
}
