//! Forged tokens of every kind are refused: rows 10 to 12 and 22 of the demands on a resource server.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use sabir_auth::{ResourceServer, Settings};
use sabir_transports::http::Authenticate as _;
use serde_json::{Value, json};

use crate::issuer::{Issuer, ec, ed, now, other_rsa, rsa};
use crate::server::{Answer, RESOURCE, start, start_with, who};

/// A refusal of a token that was sent.
#[track_caller]
fn assert_refused(answer: &Answer, kind: &str) {
    assert_eq!(answer.status, 401, "{kind}: {answer:?}");
    assert!(answer.challenge().starts_with("Bearer error=\"invalid_token\""), "{kind}: {answer:?}");
    assert!(answer.challenge().contains("resource_metadata=\""), "{kind}: {answer:?}");
    assert!(answer.json()["error"]["message"].is_string(), "{kind}");
}

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

#[tokio::test]
async fn good_tokens_of_every_algorithm_are_callers() {
    let keys = [rsa(), ec(), ed()];
    let issuer = Issuer::start(&keys).await;
    let address = start(&issuer).await;
    for key in &keys {
        let answer = who(address, &key.sign(&issuer.claims())).await;
        assert_eq!((answer.status, &*answer.text()), (200, "ann notes"), "{:?}", key.algorithm);
    }
    let pss = Header { alg: Algorithm::PS256, ..rsa().header() };
    // The set pins this key to RS256.
    assert_refused(&who(address, &encode(&pss, &issuer.claims(), &rsa().key).unwrap()).await, "PS");
    assert_eq!(who(address, "s3cret").await.text(), "static ", "a static token beside an issuer");
}

#[tokio::test]
async fn claims_that_do_not_hold_are_refused() {
    let issuer = Issuer::start(&[ec()]).await;
    let key = ec();
    issuer.rotate(std::slice::from_ref(&key));
    let address = start_with(&[&issuer], |settings| {
        settings.audiences = vec!["6f7d-guid".into()];
    })
    .await;
    for change in [
        json!({ "aud": ["https://other.example", RESOURCE] }),
        json!({ "aud": "HTTPS://MCP.Example/mcp" }),
        json!({ "aud": "https://mcp.example/mcp/" }),
        json!({ "aud": "6f7d-guid" }),
        json!({ "exp": now() - 10 }),
        json!({ "nbf": now() + 10 }),
    ] {
        let answer = who(address, &key.sign(&issuer.claims_with(change.clone()))).await;
        assert_eq!(answer.status, 200, "{change}");
    }
    for change in [
        json!({ "aud": null }),
        json!({ "aud": "https://other.example" }),
        json!({ "aud": "https://mcp.example" }),
        json!({ "aud": "https://mcp.example/mcp/other" }),
        json!({ "aud": [] }),
        json!({ "exp": now() - 120 }),
        json!({ "exp": null }),
        json!({ "nbf": now() + 120 }),
        json!({ "iss": "https://evil.example" }),
        json!({ "iss": null }),
        json!({ "iss": format!("{}/", issuer.url()) }),
        json!({ "sub": null }),
    ] {
        let answer = who(address, &key.sign(&issuer.claims_with(change.clone()))).await;
        assert_refused(&answer, &change.to_string());
    }
}

#[tokio::test]
async fn forged_signatures_are_refused() {
    let issuer = Issuer::start(&[rsa()]).await;
    let address = start(&issuer).await;
    let claims = issuer.claims();
    let good = rsa().sign(&claims);
    assert_eq!(who(address, &good).await.status, 200);
    let (message, signature) = good.rsplit_once('.').unwrap();
    let (header, payload) = message.split_once('.').unwrap();
    let stranger = encode(&rsa().header(), &claims, &other_rsa().key).unwrap();
    let unsigned = part(&json!({ "alg": "none", "typ": "at+jwt" }));
    // The public key as a shared secret, in the forms in which libraries have confused them.
    let modulus = rsa().jwk()["n"].as_str().unwrap().to_owned();
    let shared = Header { kid: Some("rsa".into()), ..Header::new(Algorithm::HS256) };
    let confused =
        |secret: &[u8]| encode(&shared, &claims, &EncodingKey::from_secret(secret)).unwrap();
    let mine = Header { jwk: serde_json::from_value(other_rsa().jwk()).ok(), ..rsa().header() };
    let critical = Header { crit: Some(vec!["exp".into()]), ..rsa().header() };
    let typed = Header { typ: Some("logout+jwt".into()), ..rsa().header() };
    let payload_of_another = part(&issuer.claims_with(json!({ "sub": "root" })));
    for (kind, forged) in [
        ("wrong key", stranger),
        ("alg none", format!("{unsigned}.{payload}.")),
        ("alg none with a signature", format!("{unsigned}.{payload}.{signature}")),
        ("HS256 with the modulus", confused(modulus.as_bytes())),
        ("HS256 with the raw modulus", confused(&URL_SAFE_NO_PAD.decode(&modulus).unwrap())),
        ("HS256 with nothing", confused(b"")),
        ("another payload", format!("{header}.{payload_of_another}.{signature}")),
        ("no signature", format!("{header}.{payload}.")),
        ("half a signature", format!("{header}.{payload}.{}", &signature[..100])),
        ("a key of its own", encode(&mine, &claims, &other_rsa().key).unwrap()),
        ("critical extensions", encode(&critical, &claims, &rsa().key).unwrap()),
        ("another type", encode(&typed, &claims, &rsa().key).unwrap()),
        (
            "unknown key",
            encode(&Header { kid: Some("x".into()), ..rsa().header() }, &claims, &rsa().key)
                .unwrap(),
        ),
        ("malformed", "eyJhbGciOiJSUzI1NiJ9.e.e".to_owned()),
        ("four parts", format!("{good}.x")),
        ("no object", format!("{header}.{}.{signature}", part(&json!([1])))),
        ("opaque", "opaque".to_owned()),
        ("long", "x".repeat(20_000)),
    ] {
        // Twice: the second verdict may come from memory.
        assert_refused(&who(address, &forged).await, kind);
        assert_refused(&who(address, &forged).await, kind);
    }
    assert_eq!(who(address, &good).await.status, 200);
}

#[tokio::test]
async fn a_token_of_one_issuer_is_not_one_of_another() {
    let (one, two) = (ec(), ec());
    let first = Issuer::start(std::slice::from_ref(&one)).await;
    let second = Issuer::start(std::slice::from_ref(&two)).await;
    let address = start_with(&[&first, &second], |_| ()).await;
    assert_eq!(who(address, &one.sign(&first.claims())).await.status, 200);
    assert_eq!(who(address, &two.sign(&second.claims())).await.status, 200);
    assert_refused(&who(address, &one.sign(&second.claims())).await, "signed by the first");
    assert_refused(&who(address, &two.sign(&first.claims())).await, "signed by the second");
}

#[tokio::test]
async fn a_token_ends_between_two_calls() {
    let key = ec();
    let issuer = Issuer::start(std::slice::from_ref(&key)).await;
    let address =
        start_with(&[&issuer], |settings| settings.leeway = std::time::Duration::ZERO).await;
    let token = key.sign(&issuer.claims_with(json!({ "exp": now() + 3 })));
    assert_eq!(who(address, &token).await.status, 200);
    for _ in 0..300 {
        let answer = who(address, &token).await;
        if answer.status == 401 {
            assert!(answer.challenge().contains("expired"), "{answer:?}");
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("the token never ended");
}

#[tokio::test]
async fn a_token_stays_with_its_caller_only_where_it_is_exchanged() {
    let key = ec();
    let issuer = Issuer::start(std::slice::from_ref(&key)).await;
    for is_lent in [false, true] {
        let mut settings = Settings::new(RESOURCE, issuer.url());
        settings.lends_tokens = is_lent;
        let server = ResourceServer::new(&settings).unwrap();
        let token = key.sign(&issuer.claims());
        let header = format!("Bearer {token}");
        let first = server.authenticate(Some(header.as_bytes())).await.unwrap();
        let again = server.known(Some(header.as_bytes())).unwrap().unwrap();
        for caller in [first, again] {
            assert_eq!(caller.token().map(|token| &**token), is_lent.then_some(&*token));
        }
    }
}
