//! An issuer under the control of a test.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::server::RESOURCE;

/// A key that signs.
#[derive(Clone)]
pub(crate) struct SigningKey {
    pub(crate) key: EncodingKey,
    pub(crate) algorithm: Algorithm,
    pub(crate) id: &'static str,
}

/// Generated once: that takes a while.
static RSA: LazyLock<[SigningKey; 2]> = LazyLock::new(|| {
    ["rsa", "rsa2"].map(|id| {
        let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
        let pkcs8 = pair.as_der().unwrap();
        // Behind 26 bytes of PKCS #8 there is the PKCS #1 that is wanted.
        let key = EncodingKey::from_rsa_der(&pkcs8.as_ref()[26..]);
        SigningKey { key, algorithm: Algorithm::RS256, id }
    })
});

pub(crate) fn rsa() -> SigningKey {
    RSA[0].clone()
}

pub(crate) fn other_rsa() -> SigningKey {
    RSA[1].clone()
}

pub(crate) fn ec() -> SigningKey {
    let rng = aws_lc_rs::rand::SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &rng).unwrap();
    let key = EncodingKey::from_ec_der(pkcs8.as_ref());
    SigningKey { key, algorithm: Algorithm::ES256, id: "ec" }
}

pub(crate) fn ed() -> SigningKey {
    let rng = aws_lc_rs::rand::SystemRandom::new();
    let pkcs8 = Ed25519KeyPair::generate_pkcs8v1(&rng).unwrap();
    let key = EncodingKey::from_ed_der(pkcs8.as_ref());
    SigningKey { key, algorithm: Algorithm::EdDSA, id: "ed" }
}

impl SigningKey {
    pub(crate) fn header(&self) -> Header {
        let (typ, kid) = (Some("at+jwt".to_owned()), Some(self.id.to_owned()));
        Header { typ, kid, ..Header::new(self.algorithm) }
    }

    pub(crate) fn sign(&self, claims: &Value) -> String {
        encode(&self.header(), claims, &self.key).unwrap()
    }

    pub(crate) fn jwk(&self) -> Value {
        let mut jwk = Jwk::from_encoding_key(&self.key, self.algorithm).unwrap();
        jwk.common.key_id = Some(self.id.to_owned());
        serde_json::to_value(jwk).unwrap()
    }
}

/// An issuer that listens.
#[derive(Clone)]
pub(crate) struct Issuer {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The documents, by path.
    documents: HashMap<String, Value>,
    /// The opaque tokens, and their claims.
    tokens: HashMap<String, Value>,
    /// The requested paths, and the bodies of introspection requests.
    asked: Vec<String>,
    is_broken: bool,
}

impl Issuer {
    /// An issuer with these keys.
    pub(crate) async fn start(keys: &[SigningKey]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = Self { address: listener.local_addr().unwrap(), state: Arc::default() };
        let url = issuer.url();
        issuer.publish(
            "/.well-known/oauth-authorization-server",
            json!({
                "issuer": url,
                "authorization_endpoint": format!("{url}/authorize"),
                "jwks_uri": format!("{url}/jwks"),
                "introspection_endpoint": format!("{url}/introspect"),
            }),
        );
        issuer.rotate(keys);
        let serving = issuer.clone();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let issuer = serving.clone();
                tokio::spawn(async move {
                    let mut read = Vec::new();
                    let mut piece = [0; 4096];
                    while !is_whole(&read) {
                        match socket.read(&mut piece).await {
                            Ok(0) | Err(_) => return,
                            Ok(length) => read.extend_from_slice(&piece[..length]),
                        }
                    }
                    let answer = issuer.answer(&String::from_utf8_lossy(&read));
                    let _ = socket.write_all(answer.as_bytes()).await;
                });
            }
        });
        issuer
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn publish(&self, path: &str, document: Value) {
        self.state.lock().unwrap().documents.insert(path.to_owned(), document);
    }

    pub(crate) fn rotate(&self, keys: &[SigningKey]) {
        let keys: Vec<_> = keys.iter().map(SigningKey::jwk).collect();
        self.publish("/jwks", json!({ "keys": keys }));
    }

    /// Adds an opaque token.
    pub(crate) fn know(&self, token: &str, claims: Value) {
        self.state.lock().unwrap().tokens.insert(token.to_owned(), claims);
    }

    /// Answers nothing but 500.
    pub(crate) fn set_broken(&self, is_broken: bool) {
        self.state.lock().unwrap().is_broken = is_broken;
    }

    /// How often a path was requested.
    pub(crate) fn asked(&self, path: &str) -> usize {
        let state = self.state.lock().unwrap();
        state.asked.iter().filter(|asked| asked.as_str() == path).count()
    }

    /// Claims of a token that is good for an hour.
    pub(crate) fn claims(&self) -> Value {
        let exp = now() + 3600;
        json!({ "iss": self.url(), "sub": "ann", "aud": RESOURCE, "exp": exp, "scope": "notes" })
    }

    /// The same claims with changes; those that are `null` are left out.
    pub(crate) fn claims_with(&self, change: Value) -> Value {
        let mut claims = self.claims();
        let all = claims.as_object_mut().unwrap();
        for (name, value) in change.as_object().unwrap() {
            match value {
                Value::Null => all.remove(name),
                value => all.insert(name.clone(), value.clone()),
            };
        }
        claims
    }

    fn answer(&self, request: &str) -> String {
        let mut state = self.state.lock().unwrap();
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        state.asked.push(path.clone());
        if state.is_broken {
            return "HTTP/1.1 500 x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned();
        }
        let found = match path.as_str() {
            "/introspect" => {
                let token = request.split("token=").nth(1).unwrap_or_default();
                let token = token.split('&').next().unwrap_or_default();
                // "sabir" and "s:ecret", both percent-encoded.
                let is_known = request.contains("Basic c2FiaXI6cyUzQWVjcmV0");
                let told = state.tokens.get(token).cloned();
                is_known.then(|| told.unwrap_or_else(|| json!({ "active": false })))
            }
            path => state.documents.get(path).cloned(),
        };
        let (status, body) = match found {
            Some(document) => (200, document.to_string()),
            None => (404, String::new()),
        };
        let length = body.len();
        format!(
            "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let length = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    length.is_none_or(|(_, length)| body.len() >= length.trim().parse().unwrap_or(0))
}

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}
