//! ID tokens: what a provider says of a person, signed (OpenID Connect Core 1.0, section 3.1.3.7; RFC 7515).
//!
//! *Goals*: a token counts where the provider that was named signed it, for this server alone, a moment ago, for the sign-in that is under
//! way. *Non-goals*: tokens that are encrypted, or signed by anything but RS256, ES256 and EdDSA. *Invariants*: nothing of a token is
//! used before its signature was verified, but which key it names; a claim that is doubled, missing or of another type refuses
//! the token.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::keys::{Algorithm, KeySet};

/// The longest token, in bytes.
const LENGTH_MAX: usize = 64 * 1024;

/// How much the clocks of provider and server may differ, in seconds.
const LEEWAY_SECONDS: f64 = 60.0;

/// How old a token may be, in seconds: it comes right from the provider.
const AGE_MAX_SECONDS: f64 = 600.0;

/// Why a token does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("it brings no ID token that can be read")]
    Shape,
    #[error("the ID token is not signed by RS256, ES256 or EdDSA")]
    Algorithm,
    #[error("the ID token is signed by a key that the provider does not publish")]
    UnknownKey,
    #[error("the signature of the ID token is wrong")]
    Signature,
    #[error("the ID token is of another provider")]
    Issuer,
    #[error("the ID token is not for this server, or not for it alone")]
    Audience,
    #[error("the ID token has ended")]
    Expired,
    #[error("the ID token is of a time to come; provider and server must have the same time")]
    NotYet,
    #[error("the ID token is too old")]
    Old,
    #[error("the ID token is for another sign-in")]
    Nonce,
}

/// What a token must say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    pub(super) nonce: &'a str,
    /// Seconds since 1970.
    pub(super) now: i64,
}

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claims {
    pub(super) subject: String,
    pub(super) preferred_username: Option<String>,
}

/// A token whose signature was not verified yet.
#[derive(Debug)]
pub(super) struct SignedToken<'a> {
    pub(super) algorithm: Algorithm,
    pub(super) key_id: Option<String>,
    message: &'a str,
    payload: &'a str,
    signature: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that whoever reads the token must know.
    crit: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Payload {
    iss: String,
    sub: String,
    aud: Audience,
    azp: Option<String>,
    exp: f64,
    iat: f64,
    nbf: Option<f64>,
    nonce: Option<String>,
    preferred_username: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

impl<'a> SignedToken<'a> {
    /// Takes a token apart.
    ///
    /// # Errors
    /// [`Fault::Shape`], [`Fault::Algorithm`].
    pub(super) fn read(token: &'a str) -> Result<Self, Fault> {
        if token.len() > LENGTH_MAX {
            return Err(Fault::Shape);
        }
        let (message, signature) = token.rsplit_once('.').ok_or(Fault::Shape)?;
        let (header, payload) = message.split_once('.').ok_or(Fault::Shape)?;
        let header: Header = decode_json(header)?;
        if header.crit.is_some() || payload.contains('.') {
            return Err(Fault::Shape);
        }
        Ok(Self {
            algorithm: Algorithm::of_name(&header.alg).ok_or(Fault::Algorithm)?,
            key_id: header.kid,
            message,
            payload,
            signature: URL_SAFE_NO_PAD.decode(signature).map_err(|_| Fault::Shape)?,
        })
    }

    /// Returns what it says, if one of the keys has signed it and it says what it must.
    ///
    /// # Errors
    /// [`Fault`].
    pub(super) fn verify(&self, keys: &KeySet, expected: &Expected<'_>) -> Result<Claims, Fault> {
        let key_id = self.key_id.as_deref();
        if !keys.knows(self.algorithm, key_id) {
            return Err(Fault::UnknownKey);
        }
        if !keys.verify(self.algorithm, key_id, self.message.as_bytes(), &self.signature) {
            return Err(Fault::Signature);
        }
        decode_json::<Payload>(self.payload)?.check(expected)
    }
}

impl Payload {
    fn check(self, expected: &Expected<'_>) -> Result<Claims, Fault> {
        if self.iss != expected.issuer {
            return Err(Fault::Issuer);
        }
        // A second audience would be somebody else who has the token.
        let is_for_us = match &self.aud {
            Audience::One(one) => one == expected.client_id,
            Audience::Many(all) => matches!(&all[..], [one] if one == expected.client_id),
        };
        if !is_for_us || self.azp.is_some_and(|party| party != expected.client_id) {
            return Err(Fault::Audience);
        }
        let now = expected.now as f64;
        if now >= self.exp + LEEWAY_SECONDS {
            return Err(Fault::Expired);
        }
        if self.iat > now + LEEWAY_SECONDS || self.nbf.is_some_and(|nbf| nbf > now + LEEWAY_SECONDS)
        {
            return Err(Fault::NotYet);
        }
        if self.iat < now - AGE_MAX_SECONDS {
            return Err(Fault::Old);
        }
        if self.nonce.as_deref() != Some(expected.nonce) {
            return Err(Fault::Nonce);
        }
        Ok(Claims { subject: self.sub, preferred_username: self.preferred_username })
    }
}

fn decode_json<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| Fault::Shape)?;
    serde_json::from_slice(&bytes).map_err(|_| Fault::Shape)
}

#[cfg(test)]
mod tests;
