//! Random values, and their hashes. Spec: RFC 7636.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::AuthError;

/// 32 random bytes as 43 characters: a verifier, a `state`, the id of an assertion.
pub(crate) fn random() -> Result<String, AuthError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| AuthError::Login(format!("no random numbers: {error}")))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// The SHA-256 of a text in Base64, the form of a code challenge.
pub(crate) fn hash(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_7636() {
        assert_eq!(
            hash("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
        let (one, other) = (random().unwrap(), random().unwrap());
        assert_eq!((one.len(), one != other), (43, true));
    }
}
