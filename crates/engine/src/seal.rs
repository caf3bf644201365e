//! State that a client keeps for us between two attempts of a call, and can neither read nor change.
//!
//! A seal is bound to the caller, the method, the name and the arguments, and it expires; returned
//! with any other request it does not open. Replicas share the key, so that any of them can go on
//! with a call that another began.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use sabir_wire::{Caller, Raw};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A key that seals: 32 bytes.
#[derive(Clone)]
pub struct SealKey([u8; 32]);

impl SealKey {
    /// Reads a key from its Base64.
    pub fn parse(base64: &str) -> Option<Self> {
        STANDARD.decode(base64.trim()).ok()?.try_into().ok().map(Self)
    }

    /// The key itself, to derive others from.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn random() -> Self {
        let mut bytes = [0; 32];
        fill_random(&mut bytes);
        Self(bytes)
    }
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealKey(…)")
    }
}

/// Seals and opens.
pub(crate) struct Seal {
    cipher: XChaCha20Poly1305,
    lifetime: Duration,
}

/// The state that is saved between two attempts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SavedState {
    /// How often the client was asked.
    pub(crate) asked: usize,
    /// The client's answers so far.
    pub(crate) answers: Vec<(String, Raw)>,
    /// The source's own state.
    pub(crate) state: Option<Raw>,
}

/// The request that a seal is bound to.
pub(crate) struct Binding<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) method: &'a str,
    /// The tool, the prompt or the URI.
    pub(crate) name: &'a str,
    pub(crate) arguments: Option<Value>,
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    expires: u64,
    saved: SavedState,
}

const NONCE: usize = 24;

impl Seal {
    pub(crate) fn new(key: Option<SealKey>, lifetime: Duration) -> Self {
        let SealKey(key) = key.unwrap_or_else(SealKey::random);
        Self { cipher: XChaCha20Poly1305::new(&Key::from(key)), lifetime }
    }

    pub(crate) fn seal(&self, saved: &SavedState, binding: &Binding<'_>) -> Option<String> {
        let expires = unix_time() + self.lifetime.as_secs();
        let text = serde_json::to_vec(&Sealed { expires, saved: saved.clone() }).ok()?;
        let mut nonce = [0; NONCE];
        fill_random(&mut nonce);
        let payload = Payload { msg: &text, aad: &binding.bytes() };
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), payload).ok()?;
        Some(URL_SAFE_NO_PAD.encode([nonce.as_slice(), &sealed].concat()))
    }

    /// The sealed state; `None` if the seal is invalid, belongs to another request, or has expired.
    pub(crate) fn open(&self, sealed: &str, binding: &Binding<'_>) -> Option<SavedState> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE>()?;
        let payload = Payload { msg: sealed, aad: &binding.bytes() };
        let text = self.cipher.decrypt(&XNonce::from(*nonce), payload).ok()?;
        let Sealed { expires, saved } = serde_json::from_slice(&text).ok()?;
        (unix_time() < expires).then_some(saved)
    }
}

impl Binding<'_> {
    /// All parts, each with its length, so that no two bindings can look the same.
    fn bytes(&self) -> Vec<u8> {
        let arguments = self.arguments.clone().map(sorted).unwrap_or_default().to_string();
        let mut bytes = Vec::new();
        let (issuer, subject) = (self.caller.issuer(), self.caller.subject());
        for part in [issuer, subject, self.method, self.name, &arguments] {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        bytes
    }
}

/// The value with sorted keys, so that their order does not matter.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.into_iter().collect();
            members.sort_by(|(a, _), (b, _)| a.cmp(b));
            members.into_iter().map(|(key, value)| (key, sorted(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}

fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A name that no other server has.
pub(crate) fn random_name() -> String {
    random_text::<12>()
}

/// A name that cannot be guessed.
pub(crate) fn random_secret() -> String {
    random_text::<24>()
}

fn random_text<const BYTES: usize>() -> String {
    let mut bytes = [0; BYTES];
    fill_random(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

fn fill_random(bytes: &mut [u8]) {
    // Without randomness no secret can be kept: there is nothing sensible to go on with.
    #[expect(clippy::expect_used, reason = "the system has no random numbers")]
    getrandom::fill(bytes).expect("the system's random number generator");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn binding(
        caller: Option<&'static str>,
        name: &'static str,
        arguments: Value,
    ) -> Binding<'static> {
        let caller = caller.map_or_else(Caller::anonymous, |subject| Caller::new("token", subject));
        let caller = Box::leak(Box::new(caller));
        Binding { caller, method: "tools/call", name, arguments: Some(arguments) }
    }

    fn saved() -> SavedState {
        SavedState {
            asked: 2,
            state: Some(Raw::parse("[1e400]").unwrap()),
            ..SavedState::default()
        }
    }

    #[test]
    fn what_was_sealed_opens_again() {
        let seal = Seal::new(None, Duration::from_secs(60));
        let sealed = seal.seal(&saved(), &binding(None, "t", json!({ "a": 1, "b": 2 }))).unwrap();
        let opened = seal.open(&sealed, &binding(None, "t", json!({ "b": 2, "a": 1 }))).unwrap();
        assert_eq!(opened.asked, 2);
        assert_eq!(opened.state.unwrap().text(), "[1e400]");
    }

    #[test]
    fn it_opens_for_nobody_else_and_for_nothing_else() {
        let seal = Seal::new(None, Duration::from_secs(60));
        let sealed = seal.seal(&saved(), &binding(Some("ann"), "t", json!({ "a": 1 }))).unwrap();
        assert!(seal.open(&sealed, &binding(Some("ann"), "t", json!({ "a": 1 }))).is_some());
        for other in [
            binding(Some("bob"), "t", json!({ "a": 1 })),
            binding(None, "t", json!({ "a": 1 })),
            binding(Some("ann"), "u", json!({ "a": 1 })),
            binding(Some("ann"), "t", json!({ "a": 2 })),
            Binding { method: "prompts/get", ..binding(Some("ann"), "t", json!({ "a": 1 })) },
        ] {
            assert!(seal.open(&sealed, &other).is_none());
        }
        let stranger = Seal::new(None, Duration::from_secs(60));
        assert!(stranger.open(&sealed, &binding(Some("ann"), "t", json!({ "a": 1 }))).is_none());
    }

    #[test]
    fn a_changed_or_expired_seal_does_not_open() {
        let bound = || binding(None, "t", json!({}));
        let seal = Seal::new(None, Duration::from_secs(60));
        let sealed = seal.seal(&saved(), &bound()).unwrap();
        for changed in
            [format!("{sealed}-TAMPERED"), sealed[1..].to_owned(), String::new(), "é".into()]
        {
            assert!(seal.open(&changed, &bound()).is_none(), "{changed}");
        }
        let brief = Seal::new(None, Duration::ZERO);
        let sealed = brief.seal(&saved(), &bound()).unwrap();
        assert!(brief.open(&sealed, &bound()).is_none());
    }

    #[test]
    fn replicas_open_each_others_seals() {
        let key = SealKey::parse(&STANDARD.encode([7; 32])).unwrap();
        let [one, other] = [0, 1].map(|_| Seal::new(Some(key.clone()), Duration::from_secs(60)));
        let sealed = one.seal(&saved(), &binding(None, "t", json!({}))).unwrap();
        assert!(other.open(&sealed, &binding(None, "t", json!({}))).is_some());
        assert!(SealKey::parse("short").is_none());
    }
}
