//! Names and contents of records that only the nodes can read.
//!
//! A record's name is a keyed digest of its subject, so that only the subject and the key together
//! give the name. Its content is encrypted and bound to the name. The first byte is the form, so
//! that nodes of different versions can run side by side.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};

/// The form that this version writes, and the newest that it reads.
const FORM: u8 = 1;

const NONCE: usize = 24;

/// Names records and seals their contents.
pub struct Seal {
    cipher: XChaCha20Poly1305,
    names: hmac::Key,
}

/// Why a record cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A newer version has written it.
    #[error("a newer version of this program has written the record (form {0})")]
    Newer(u8),
    /// It was sealed with another key, belongs to another name, or was changed.
    #[error("the record does not open with this key")]
    Closed,
}

impl Seal {
    /// Seals with keys that are derived from a secret, which all nodes share.
    pub fn new(secret: &[u8; 32]) -> Self {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let derived = |purpose: &str| {
            let mut key = [0; 32];
            key.copy_from_slice(hmac::sign(&secret, purpose.as_bytes()).as_ref());
            key
        };
        Self {
            cipher: XChaCha20Poly1305::new(&Key::from(derived("cluster: contents"))),
            names: hmac::Key::new(hmac::HMAC_SHA256, &derived("cluster: names")),
        }
    }

    /// The name of the record whose subject is these parts.
    pub fn name(&self, parts: &[&[u8]]) -> String {
        let mut digest = hmac::Context::with_key(&self.names);
        for part in parts {
            // Each with its length, so that no two lists of parts look the same.
            digest.update(&(part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        URL_SAFE_NO_PAD.encode(digest.sign())
    }

    /// Seals a content under a name.
    pub fn seal(&self, name: &str, content: &[u8]) -> Vec<u8> {
        let mut nonce = [0; NONCE];
        fill_random(&mut nonce);
        let payload = Payload { msg: content, aad: name.as_bytes() };
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), payload);
        // It fails only for contents of more than 256 GB.
        [&[FORM], nonce.as_slice(), &sealed.unwrap_or_default()].concat()
    }

    /// The content that was sealed under a name.
    pub fn open(&self, name: &str, sealed: &[u8]) -> Result<Vec<u8>, Unreadable> {
        let (form, sealed) = sealed.split_first().ok_or(Unreadable::Closed)?;
        if *form > FORM {
            return Err(Unreadable::Newer(*form));
        }
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE>().ok_or(Unreadable::Closed)?;
        let payload = Payload { msg: sealed, aad: name.as_bytes() };
        self.cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| Unreadable::Closed)
    }
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal(…)")
    }
}

pub(crate) fn fill_random(bytes: &mut [u8]) {
    // Without randomness no secret can be kept: there is nothing sensible to go on with.
    #[expect(clippy::expect_used, reason = "the system has no random numbers")]
    getrandom::fill(bytes).expect("the system's random number generator");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_key_and_name_open_a_record() {
        let (ours, others) = (Seal::new(&[1; 32]), Seal::new(&[2; 32]));
        let sealed = ours.seal("a", b"content");
        assert_eq!(Seal::new(&[1; 32]).open("a", &sealed).unwrap(), b"content");
        assert_eq!(ours.open("b", &sealed), Err(Unreadable::Closed));
        assert_eq!(others.open("a", &sealed), Err(Unreadable::Closed));
        let mut changed = sealed.clone();
        changed[40] ^= 1;
        assert_eq!(ours.open("a", &changed), Err(Unreadable::Closed));
        for short in [&sealed[..20], &[]] {
            assert_eq!(ours.open("a", short), Err(Unreadable::Closed));
        }
        assert!(!sealed.windows(7).any(|bytes| bytes == b"content"));
    }

    #[test]
    fn a_record_of_a_newer_version_is_told_from_a_broken_one() {
        let seal = Seal::new(&[1; 32]);
        let mut sealed = seal.seal("a", b"content");
        sealed[0] = FORM + 1;
        assert_eq!(seal.open("a", &sealed), Err(Unreadable::Newer(FORM + 1)));
    }

    #[test]
    fn names_depend_on_the_key_and_on_each_part() {
        let seal = Seal::new(&[1; 32]);
        let name = seal.name(&[b"ann", b"1"]);
        assert_eq!(name, Seal::new(&[1; 32]).name(&[b"ann", b"1"]));
        for other in [&[b"ann".as_slice(), b"2"], &[b"an".as_slice(), b"n1"], &[b"ann1", b""]] {
            assert_ne!(seal.name(other), name);
        }
        assert_ne!(Seal::new(&[2; 32]).name(&[b"ann", b"1"]), name);
    }
}
