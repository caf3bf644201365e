//! Tokens that are bound to a key, with a proof of the key in each request. Spec: RFC 9449.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{HeaderName, HeaderValue};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Map, Value, json};
use url::Url;

use super::tokens::now;
use super::{AuthError, pkce};

/// The header with the proof.
pub(crate) const PROOF: HeaderName = HeaderName::from_static("dpop");
/// The header with the nonce for the next proof.
pub(crate) const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");
/// The error of a server that demands a nonce.
pub(crate) const WANTS_NONCE: &str = "use_dpop_nonce";
/// The only algorithm that we sign with.
pub(crate) const ALGORITHM: &str = "ES256";

/// A key that a token is bound to.
#[derive(Clone)]
pub(crate) struct ProofKey {
    pkcs8: Vec<u8>,
    /// The public key, as JSON of a JWK.
    jwk: Value,
}

impl ProofKey {
    pub(crate) fn generate() -> Result<Self, AuthError> {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new());
        Self::new(document.map_err(|_| failed())?.as_ref().to_vec())
    }

    /// Reads the text of [`Self::write`].
    pub(crate) fn read(text: &str) -> Result<Self, AuthError> {
        Self::new(STANDARD.decode(text).map_err(|_| failed())?)
    }

    pub(crate) fn write(&self) -> String {
        STANDARD.encode(&self.pkcs8)
    }

    fn new(pkcs8: Vec<u8>) -> Result<Self, AuthError> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8);
        let pair = pair.map_err(|_| failed())?;
        // An uncompressed point: 4, x, y.
        let [4, point @ ..] = pair.public_key().as_ref() else { return Err(failed()) };
        let (x, y) = point.split_at_checked(32).ok_or_else(failed)?;
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let jwk = json!({ "kty": "EC", "crv": "P-256", "x": text(x), "y": text(y) });
        Ok(Self { pkcs8, jwk })
    }

    /// A proof for one request.
    pub(crate) fn prove(
        &self,
        method: &str,
        url: &str,
        nonce: Option<&str>,
        token: Option<&str>,
    ) -> Result<HeaderValue, AuthError> {
        let mut claims = Map::new();
        let mut plain = Url::parse(url).map_err(|_| failed())?;
        plain.set_query(None);
        plain.set_fragment(None);
        claims.insert("jti".into(), pkce::random()?.into());
        claims.insert("htm".into(), method.into());
        claims.insert("htu".into(), plain.as_str().into());
        claims.insert("iat".into(), (now() / 1000).into());
        claims.extend(nonce.map(|nonce| ("nonce".into(), nonce.into())));
        claims.extend(token.map(|token| ("ath".into(), pkce::hash(token).into())));
        let mut header = Header::new(Algorithm::ES256);
        header.typ = Some("dpop+jwt".to_owned());
        header.jwk = Some(serde_json::from_value(self.jwk.clone()).map_err(|_| failed())?);
        let key = EncodingKey::from_ec_der(&self.pkcs8);
        let proof = jsonwebtoken::encode(&header, &claims, &key).map_err(|_| failed())?;
        HeaderValue::try_from(proof).map_err(|_| failed())
    }
}

impl std::fmt::Debug for ProofKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProofKey(…)")
    }
}

fn failed() -> AuthError {
    AuthError::Login("cannot make the key that the token is bound to".to_owned())
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::{DecodingKey, Validation, decode};

    use super::*;

    #[test]
    fn a_proof_verifies_with_the_key_in_its_header() {
        let key = ProofKey::read(&ProofKey::generate().unwrap().write()).unwrap();
        let url = "https://as.example/token?x=1#y";
        let proof = key.prove("POST", url, Some("n"), Some("token")).unwrap();
        let proof = proof.to_str().unwrap();
        let header = jsonwebtoken::decode_header(proof).unwrap();
        assert_eq!(header.typ.as_deref(), Some("dpop+jwt"));
        let jwk = header.jwk.unwrap();
        let mut validation = Validation::new(Algorithm::ES256);
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        let claims = decode::<Value>(proof, &DecodingKey::from_jwk(&jwk).unwrap(), &validation);
        let claims = claims.unwrap().claims;
        assert_eq!(claims["htu"], "https://as.example/token");
        assert_eq!((&claims["htm"], &claims["nonce"]), (&json!("POST"), &json!("n")));
        assert_eq!(claims["ath"], pkce::hash("token"));
        let again = key.prove("POST", url, None, None).unwrap();
        assert_ne!(again.to_str().unwrap(), proof);
    }
}
