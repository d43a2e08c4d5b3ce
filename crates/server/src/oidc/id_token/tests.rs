//! Tokens that a provider signs, and those that others make up.

use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RsaKeyPair, RsaPublicKeyComponents,
};
use serde_json::{Value, json};

use super::*;

/// A key for these tests alone, since ring makes none of this kind.
const RSA: &str = include_str!("rsa.pkcs1.b64");

const NOW: i64 = 1_700_000_000;
const EXPECTED: Expected<'_> = Expected {
    issuer: "https://id.example.org",
    client_id: "syncline",
    nonce: "the nonce of this sign-in",
    now: NOW,
};

/// Who signs, by which algorithm.
enum Signer {
    Rsa(Box<RsaKeyPair>),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    fn rsa() -> Self {
        use base64::engine::general_purpose::STANDARD;
        let bytes = STANDARD.decode(RSA.replace('\n', "")).unwrap();
        Self::Rsa(Box::new(RsaKeyPair::from_der(&bytes).unwrap()))
    }

    fn p256() -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let bytes = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self::P256(EcdsaKeyPair::from_pkcs8(algorithm, bytes.as_ref(), &random).unwrap())
    }

    fn ed25519() -> Self {
        let bytes = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(bytes.as_ref()).unwrap())
    }

    fn all() -> [Self; 3] {
        [Self::rsa(), Self::p256(), Self::ed25519()]
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "RS256",
            Self::P256(_) => "ES256",
            Self::Ed25519(_) => "EdDSA",
        }
    }

    fn jwk(&self, id: &str) -> Value {
        match self {
            Self::Rsa(pair) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
                let (n, e) = (encode(&public.n), encode(&public.e));
                json!({ "kty": "RSA", "kid": id, "use": "sig", "n": n, "e": e })
            }
            Self::P256(pair) => {
                let point = pair.public_key().as_ref();
                let (x, y) = (encode(&point[1..33]), encode(&point[33..]));
                json!({ "kty": "EC", "crv": "P-256", "kid": id, "alg": "ES256", "x": x, "y": y })
            }
            Self::Ed25519(pair) => {
                let x = encode(pair.public_key().as_ref());
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": x })
            }
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                signature
            }
            Self::P256(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    /// A token of a provider that has this key under the id "1".
    fn token(&self, claims: &Value) -> String {
        let header = json!({ "alg": self.algorithm(), "kid": "1", "typ": "JWT" });
        signed(&header, claims, |message| self.sign(message))
    }
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn signed(header: &Value, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let part = |value: &Value| encode(value.to_string().as_bytes());
    let message = format!("{}.{}", part(header), part(claims));
    let signature = encode(&sign(message.as_bytes()));
    format!("{message}.{signature}")
}

fn keys(keys: &[Value]) -> KeySet {
    KeySet::read(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}

fn claims() -> Value {
    json!({
        "iss": EXPECTED.issuer, "sub": "ada/1", "aud": EXPECTED.client_id, "exp": NOW + 300,
        "iat": NOW, "nonce": EXPECTED.nonce, "preferred_username": "ada", "more": [1, {}],
    })
}

fn verify(token: &str, keys: &KeySet) -> Result<Claims, Fault> {
    SignedToken::read(token)?.verify(keys, &EXPECTED)
}

#[test]
fn tokens_by_each_algorithm_are_verified() {
    for signer in Signer::all() {
        let keys = keys(&[signer.jwk("1")]);
        let found = verify(&signer.token(&claims()), &keys).unwrap();
        let (subject, preferred_username) = ("ada/1".to_owned(), Some("ada".to_owned()));
        assert_eq!(found, Claims { subject, preferred_username });
    }
}

#[test]
fn a_token_by_a_foreign_key_or_with_anything_changed_is_refused() {
    let others = [Signer::p256(), Signer::ed25519()];
    for signer in Signer::all() {
        let keys = keys(&[signer.jwk("1")]);
        let token = signer.token(&claims());
        for other in &others {
            let foreign = other.token(&claims());
            let wanted = match other.algorithm() == signer.algorithm() {
                true => Fault::Signature,
                false => Fault::UnknownKey,
            };
            assert_eq!(verify(&foreign, &keys), Err(wanted));
        }
        // The claims of another, under the signature of these.
        let mut changed = claims();
        changed["sub"] = json!("eve");
        let changed = encode(changed.to_string().as_bytes());
        let parts: Vec<&str> = token.split('.').collect();
        let swapped = format!("{}.{changed}.{}", parts[0], parts[2]);
        assert_eq!(verify(&swapped, &keys), Err(Fault::Signature));
        let unsigned = format!("{}.{}.", parts[0], parts[1]);
        assert_eq!(verify(&unsigned, &keys), Err(Fault::Signature));
    }
}

#[test]
fn no_public_key_is_taken_for_that_of_a_mac_and_nothing_goes_unsigned() {
    let signer = Signer::rsa();
    let keys = keys(&[signer.jwk("1")]);
    let Signer::Rsa(pair) = &signer else { panic!("it is one") };
    let public = pair.public_key().as_ref().to_vec();
    for (name, algorithm) in
        [("HS256", hmac::HMAC_SHA256), ("HS384", hmac::HMAC_SHA384), ("HS512", hmac::HMAC_SHA512)]
    {
        let key = hmac::Key::new(algorithm, &public);
        let header = json!({ "alg": name, "kid": "1" });
        let token =
            signed(&header, &claims(), |message| hmac::sign(&key, message).as_ref().to_vec());
        assert_eq!(verify(&token, &keys), Err(Fault::Algorithm), "{name}");
        // The name of an algorithm that counts does not help.
        let header = json!({ "alg": "RS256", "kid": "1" });
        let token =
            signed(&header, &claims(), |message| hmac::sign(&key, message).as_ref().to_vec());
        assert_eq!(verify(&token, &keys), Err(Fault::Signature), "{name}");
    }
    for name in ["none", "None", "NONE", "nOnE", "", "RS1", "PS256", "ES256K"] {
        let header = json!({ "alg": name, "kid": "1" });
        assert_eq!(
            verify(&signed(&header, &claims(), |_| Vec::new()), &keys),
            Err(Fault::Algorithm)
        );
    }
    // A key that says it is for something else, and one that is too short for anything.
    for (field, value) in [("use", "enc"), ("alg", "RS512"), ("alg", "HS256"), ("n", "AQAB")] {
        let mut other = signer.jwk("1");
        other[field] = json!(value);
        let refused = verify(&signer.token(&claims()), &self::keys(&[other])).unwrap_err();
        assert!([Fault::UnknownKey, Fault::Signature].contains(&refused), "{field}: {refused}");
    }
}

#[test]
fn a_token_for_others_or_of_another_time_is_refused() {
    let signer = Signer::p256();
    let keys = keys(&[signer.jwk("1")]);
    let other = json!("https://other.example.org");
    let cases = [
        ("iss", other.clone(), Fault::Issuer),
        ("iss", json!("https://id.example.org/"), Fault::Issuer),
        ("aud", json!("other"), Fault::Audience),
        ("aud", json!([]), Fault::Audience),
        ("aud", json!(["syncline", "other"]), Fault::Audience),
        ("azp", json!("other"), Fault::Audience),
        ("exp", json!(NOW - 60), Fault::Expired),
        ("iat", json!(NOW + 61), Fault::NotYet),
        ("nbf", json!(NOW + 61), Fault::NotYet),
        ("iat", json!(NOW - 601), Fault::Old),
        ("nonce", json!("another"), Fault::Nonce),
        ("nonce", Value::Null, Fault::Nonce),
        ("exp", json!("tomorrow"), Fault::Shape),
        ("aud", json!({ "syncline": 1 }), Fault::Shape),
        ("sub", json!(7), Fault::Shape),
    ];
    for (name, value, wanted) in cases {
        let mut changed = claims();
        changed[name] = value.clone();
        assert_eq!(verify(&signer.token(&changed), &keys), Err(wanted), "{name}: {value}");
    }
    for name in ["iss", "sub", "aud", "exp", "iat"] {
        let mut changed = claims();
        changed.as_object_mut().unwrap().remove(name);
        assert_eq!(verify(&signer.token(&changed), &keys), Err(Fault::Shape), "without {name}");
    }
    // What is on the right side of each border.
    for (name, value) in [
        ("aud", json!(["syncline"])),
        ("azp", json!("syncline")),
        ("exp", json!(NOW - 59)),
        ("iat", json!(NOW + 60)),
        ("iat", json!(NOW - 600)),
        ("nbf", json!(NOW as f64 + 0.5)),
    ] {
        let mut changed = claims();
        changed[name] = value.clone();
        assert!(verify(&signer.token(&changed), &keys).is_ok(), "{name}: {value}");
    }
}

#[test]
fn what_is_no_token_is_refused() {
    let signer = Signer::ed25519();
    let keys = keys(&[signer.jwk("1")]);
    let token = signer.token(&claims());
    let parts: Vec<&str> = token.split('.').collect();
    let [header, payload, signature] = parts[..] else { panic!("it has three") };
    for text in [
        String::new(),
        "..".to_owned(),
        format!("{header}.{payload}"),
        format!("{token}.{signature}"),
        format!("{header}..{payload}.{signature}"),
        format!("{token}="),
        format!("{header}.{payload}.{signature}!"),
        "a".repeat(LENGTH_MAX + 1),
    ] {
        assert_eq!(verify(&text, &keys), Err(Fault::Shape), "{text:.80}");
    }
    let critical = json!({ "alg": "EdDSA", "kid": "1", "crit": ["exp"] });
    let critical = signed(&critical, &claims(), |message| signer.sign(message));
    assert_eq!(verify(&critical, &keys), Err(Fault::Shape));
    // One claim twice: two readers could read two persons.
    let doubled = claims().to_string().replacen('{', "{\"sub\":\"eve\",", 1);
    let message = format!("{header}.{}", encode(doubled.as_bytes()));
    let doubled = format!("{message}.{}", encode(&signer.sign(message.as_bytes())));
    assert_eq!(verify(&doubled, &keys), Err(Fault::Shape));
}

#[test]
fn a_token_names_its_key_unless_there_is_one_only() {
    let (one, two) = (Signer::p256(), Signer::p256());
    let both = keys(&[one.jwk("1"), two.jwk("2"), json!({ "kty": "oct", "k": "AAAA" }), json!(7)]);
    let nameless = json!({ "alg": "ES256" });
    let token = |id: &Value, signer: &Signer| {
        let mut header = nameless.clone();
        header["kid"] = id.clone();
        signed(&header, &claims(), |message| signer.sign(message))
    };
    assert!(verify(&token(&json!("2"), &two), &both).is_ok());
    assert_eq!(verify(&token(&json!("1"), &two), &both), Err(Fault::Signature));
    assert_eq!(verify(&token(&json!("3"), &two), &both), Err(Fault::UnknownKey));
    assert_eq!(verify(&token(&Value::Null, &two), &both), Err(Fault::Signature));
    assert!(verify(&token(&Value::Null, &two), &keys(&[two.jwk("2")])).is_ok());
    assert!(KeySet::read(b"[]").is_none());
    assert_eq!(verify(&token(&json!("1"), &one), &keys(&[])), Err(Fault::UnknownKey));
}
