//! The public keys of a provider (JWK, RFC 7517), and whether one of them has signed something.
//!
//! *Invariant*: which algorithm is used, the kind of the key says; a token only chooses among the keys that fit to what it names. So
//! no public key is ever taken for the key of a MAC, and "none" is no algorithm.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;

/// How many keys of a provider are looked at.
const KEYS_MAX: usize = 100;

/// By what a token may be signed (RFC 7518, RFC 8037).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256, and a key of 2,048 bits or more.
    Rs256,
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// Returns the algorithm of that name, if it is one that counts here.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            "EdDSA" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

/// A public key.
#[derive(Debug)]
struct Key {
    id: Option<String>,
    material: Material,
}

#[derive(Debug)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// The keys of a provider that may sign tokens by an algorithm that counts here.
#[derive(Debug, Default)]
pub(super) struct KeySet(Vec<Key>);

#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Reads a JWK set; nothing where it is none. Keys for other things are passed over.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let set: JwkSet = serde_json::from_slice(bytes).ok()?;
        let keys = set.keys.into_iter().take(KEYS_MAX);
        let keys = keys.filter_map(|key| Key::of_jwk(serde_json::from_value(key).ok()?));
        Some(Self(keys.collect()))
    }

    /// Tells whether there is a key of this id for this algorithm.
    pub(super) fn knows(&self, algorithm: Algorithm, id: Option<&str>) -> bool {
        !self.fitting(algorithm, id).is_empty()
    }

    /// Tells whether a key of this id has signed a message. Who names no key has one only to choose from.
    pub(super) fn verify(
        &self,
        algorithm: Algorithm,
        id: Option<&str>,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        let keys = self.fitting(algorithm, id);
        (id.is_some() || keys.len() == 1)
            && keys.iter().any(|key| key.material.verify(message, signature))
    }

    fn fitting(&self, algorithm: Algorithm, id: Option<&str>) -> Vec<&Key> {
        let fits = |key: &&Key| {
            key.material.algorithm() == algorithm && (id.is_none() || key.id.as_deref() == id)
        };
        self.0.iter().filter(fits).collect()
    }
}

impl Key {
    fn of_jwk(jwk: Jwk) -> Option<Self> {
        let is_for_signatures = jwk.purpose.as_deref().is_none_or(|purpose| purpose == "sig");
        let decode = |text: Option<String>| URL_SAFE_NO_PAD.decode(text?).ok();
        let material = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => Material::Rsa { n: decode(jwk.n)?, e: decode(jwk.e)? },
            ("EC", Some("P-256")) => {
                let (x, y) = (decode(jwk.x)?, decode(jwk.y)?);
                // Uncompressed, as SEC 1 writes points.
                Material::P256([&[4][..], &x[..], &y[..]].concat())
            }
            ("OKP", Some("Ed25519")) => Material::Ed25519(decode(jwk.x)?),
            _ => return None,
        };
        let is_for_this =
            jwk.alg.is_none_or(|name| Algorithm::of_name(&name) == Some(material.algorithm()));
        (is_for_signatures && is_for_this).then_some(Self { id: jwk.kid, material })
    }
}

impl Material {
    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Rsa { .. } => Algorithm::Rs256,
            Self::P256(_) => Algorithm::Es256,
            Self::Ed25519(_) => Algorithm::EdDsa,
        }
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match self {
            Self::Rsa { n, e } => {
                let key = RsaPublicKeyComponents { n, e };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            Self::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            Self::Ed25519(point) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature)
            }
        };
        verified.is_ok()
    }
}
