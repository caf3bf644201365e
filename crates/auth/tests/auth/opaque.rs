//! Tokens that the issuer is asked about.

use std::time::Duration;

use sabir_auth::Introspection;
use serde_json::json;

use crate::issuer::{Issuer, ec, now};
use crate::server::{start_with, who};

fn introspection() -> Option<Introspection> {
    let (client_id, client_secret) = ("sabir".to_owned(), "s:ecret".to_owned());
    Some(Introspection { url: None, client_id, client_secret })
}

#[tokio::test]
async fn the_issuer_is_asked_once_per_token() {
    let issuer = Issuer::start(&[ec()]).await;
    let address = start_with(&[&issuer], |settings| settings.introspection = introspection()).await;
    issuer.know("good", issuer.claims_with(json!({ "active": true })));
    for (token, claims) in [
        ("inactive", json!({ "active": false })),
        ("foreign", json!({ "active": true, "aud": "https://other.example" })),
        ("unbound", json!({ "active": true, "aud": null })),
        ("ended", json!({ "active": true, "exp": now() - 120 })),
        ("mixedup", json!({ "active": true, "iss": "https://other.example" })),
    ] {
        issuer.know(token, issuer.claims_with(claims));
        for _ in 0..2 {
            let answer = who(address, token).await;
            assert_eq!(answer.status, 401, "{token}");
            assert!(answer.challenge().contains("invalid_token"));
        }
    }
    assert_eq!(issuer.asked("/introspect"), 5);
    for _ in 0..5 {
        assert_eq!(who(address, "good").await.text(), "ann notes");
    }
    assert_eq!(issuer.asked("/introspect"), 6);
}

#[tokio::test]
async fn a_verdict_is_asked_for_again_when_it_is_old() {
    let issuer = Issuer::start(&[ec()]).await;
    let address = start_with(&[&issuer], |settings| {
        settings.introspection = introspection();
        settings.cache_time = Duration::ZERO;
    })
    .await;
    issuer.know("good", issuer.claims_with(json!({ "active": true })));
    assert_eq!(who(address, "good").await.status, 200);
    issuer.know("good", json!({ "active": false }));
    assert_eq!(who(address, "good").await.status, 401, "it was revoked");
}

#[tokio::test]
async fn an_issuer_of_opaque_tokens_needs_no_keys() {
    let issuer = Issuer::start(&[]).await;
    let url = issuer.url();
    let metadata = json!({ "issuer": url, "introspection_endpoint": format!("{url}/introspect") });
    issuer.publish("/.well-known/oauth-authorization-server", metadata);
    let address = start_with(&[&issuer], |settings| settings.introspection = introspection()).await;
    issuer.know("good", issuer.claims_with(json!({ "active": true })));
    assert_eq!(who(address, "good").await.status, 200);
    assert_eq!(who(address, &ec().sign(&issuer.claims())).await.status, 401);
}
