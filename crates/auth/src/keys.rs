//! The public keys of an issuer. Spec: RFC 7517.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header};
use serde::Deserialize;
use serde_json::Value;

use crate::token::Token;

/// How many keys of one issuer are kept. Further ones are ignored.
const MAX_KEYS: usize = 64;

/// How many keys are tried for a token without a key id. Each costs a verification.
const MAX_TRIED: usize = 4;

/// The keys of an issuer that can sign tokens.
#[derive(Debug, Default)]
pub(crate) struct KeySet {
    keys: Vec<Key>,
}

#[derive(Debug)]
struct Key {
    id: Option<String>,
    /// The only algorithms that the key may be used with.
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

impl KeySet {
    /// Reads a set. Keys that cannot verify tokens are left out: an issuer may publish others, too.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        let Document { keys } = serde_json::from_slice(json)?;
        let keys = keys.into_iter().filter_map(|key| Key::new(serde_json::from_value(key).ok()?));
        Ok(Self { keys: keys.take(MAX_KEYS).collect() })
    }

    /// Whether there is a key that the token can have been signed with.
    pub(crate) fn fits(&self, header: &Header) -> bool {
        self.candidates(header).next().is_some()
    }

    /// Whether one of the keys has signed the token.
    pub(crate) fn verify(&self, token: &Token<'_>) -> bool {
        let Token { header, message, signature, .. } = token;
        self.candidates(header).any(|key| {
            let verified =
                jsonwebtoken::crypto::verify(signature, message.as_bytes(), key, header.alg);
            verified.unwrap_or(false)
        })
    }

    fn candidates<'k>(&'k self, header: &'k Header) -> impl Iterator<Item = &'k DecodingKey> {
        let fitting = self.keys.iter().filter(|key| {
            let is_named = header.kid.is_none() || header.kid == key.id;
            is_named && key.algorithms.contains(&header.alg)
        });
        fitting.map(|key| &key.key).take(MAX_TRIED)
    }
}

impl Key {
    fn new(jwk: Jwk) -> Option<Self> {
        if !matches!(jwk.common.public_key_use, None | Some(PublicKeyUse::Signature)) {
            return None;
        }
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        let algorithms = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => key.family().algorithms().to_vec(),
            AlgorithmParameters::EllipticCurve(key) => match key.curve {
                EllipticCurve::P256 => vec![Algorithm::ES256],
                EllipticCurve::P384 => vec![Algorithm::ES384],
                _ => return None,
            },
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                vec![Algorithm::EdDSA]
            }
            // A shared secret must not be in a public document.
            _ => return None,
        };
        let declared = jwk.common.key_algorithm.map(Algorithm::try_from);
        let algorithms = match declared {
            None => algorithms,
            Some(Ok(only)) => algorithms.into_iter().filter(|one| *one == only).collect(),
            Some(Err(_)) => return None,
        };
        Some(Self { id: jwk.common.key_id, algorithms, key })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn header(alg: Algorithm, kid: Option<&str>) -> Header {
        Header { kid: kid.map(str::to_owned), ..Header::new(alg) }
    }

    #[test]
    fn keys_of_no_use_are_left_out() {
        let point = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
        let set = json!({ "keys": [
            { "kty": "oct", "kid": "secret", "k": "AAAA" },
            { "kty": "EC", "crv": "P-256", "kid": "enc", "use": "enc", "x": point, "y": point },
            { "kty": "EC", "crv": "P-256", "kid": "ec", "x": point, "y": point },
            { "kty": "EC", "crv": "P-256", "kid": "odd", "alg": "ES384", "x": point, "y": point },
            { "kty": "EC", "crv": "secp256k1", "kid": "other", "x": point, "y": point },
            { "kty": "RSA", "kid": "oaep", "alg": "RSA-OAEP", "n": "AQAB", "e": "AQAB" },
            { "kty": "RSA", "kid": "rsa", "n": "AQAB", "e": "AQAB" },
            { "kty": "RSA", "kid": "pinned", "alg": "RS512", "n": "AQAB", "e": "AQAB" },
            { "kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": point },
            { "kty": "new", "kid": "new" },
            "no key",
        ]});
        let set = KeySet::parse(set.to_string().as_bytes()).unwrap();
        for (alg, kid, is_there) in [
            (Algorithm::ES256, Some("ec"), true),
            (Algorithm::ES256, None, true),
            (Algorithm::ES384, Some("ec"), false),
            (Algorithm::ES384, Some("odd"), false),
            (Algorithm::ES256, Some("enc"), false),
            (Algorithm::RS256, Some("ec"), false),
            (Algorithm::RS256, Some("rsa"), true),
            (Algorithm::PS384, Some("rsa"), true),
            (Algorithm::RS256, Some("oaep"), false),
            (Algorithm::RS256, Some("pinned"), false),
            (Algorithm::RS512, Some("pinned"), true),
            (Algorithm::EdDSA, Some("ed"), true),
            (Algorithm::HS256, Some("secret"), false),
            (Algorithm::HS256, Some("rsa"), false),
            (Algorithm::HS256, None, false),
        ] {
            assert_eq!(set.fits(&header(alg, kid)), is_there, "{alg:?} {kid:?}");
        }
        assert!(KeySet::parse(b"{}").is_err());
    }

    #[test]
    fn a_set_is_bounded() {
        let keys: Vec<_> = (0..=MAX_KEYS)
            .map(|nth| json!({ "kty": "RSA", "kid": nth.to_string(), "n": "AQAB", "e": "AQAB" }))
            .collect();
        let set = KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap();
        assert!(set.fits(&header(Algorithm::RS256, Some(&(MAX_KEYS - 1).to_string()))));
        assert!(!set.fits(&header(Algorithm::RS256, Some(&MAX_KEYS.to_string()))));
        assert_eq!(set.candidates(&header(Algorithm::RS256, None)).count(), MAX_TRIED);
    }
}
