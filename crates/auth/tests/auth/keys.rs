//! Issuers that rotate their keys.

use std::time::{Duration, Instant};

use jsonwebtoken::{Header, encode};
use serde_json::json;

use crate::issuer::{Issuer, ec, ed, rsa};
use crate::server::{start, start_with, who};

#[tokio::test]
async fn keys_are_fetched_once_and_again_for_a_new_one() {
    let (old, new) = (ec(), ed());
    let issuer = Issuer::start(std::slice::from_ref(&old)).await;
    let address = start(&issuer).await;
    for nth in 0..5 {
        let token = old.sign(&issuer.claims_with(json!({ "jti": nth })));
        assert_eq!(who(address, &token).await.status, 200);
    }
    assert_eq!(issuer.asked("/jwks"), 1);
    issuer.rotate(std::slice::from_ref(&new));
    assert_eq!(who(address, &new.sign(&issuer.claims())).await.status, 200);
    assert_eq!(issuer.asked("/jwks"), 2);
    let answer = who(address, &old.sign(&issuer.claims_with(json!({ "jti": "x" })))).await;
    assert_eq!(answer.status, 401, "the old key was withdrawn");
}

#[tokio::test]
async fn unknown_keys_do_not_make_us_ask_again_and_again() {
    let key = ec();
    let issuer = Issuer::start(std::slice::from_ref(&key)).await;
    let address =
        start_with(&[&issuer], |settings| settings.key_interval = Duration::from_secs(3600)).await;
    assert_eq!(who(address, &key.sign(&issuer.claims())).await.status, 200);
    // The issuer may have changed its keys just now.
    let new = ed();
    issuer.rotate(&[key.clone(), new.clone()]);
    assert_eq!(who(address, &new.sign(&issuer.claims())).await.status, 200);
    assert_eq!(issuer.asked("/jwks"), 2);
    for nth in 0..20 {
        let header = Header { kid: Some(format!("unknown {nth}")), ..key.header() };
        let token = encode(&header, &issuer.claims(), &key.key).unwrap();
        assert_eq!(who(address, &token).await.status, 401);
    }
    assert_eq!(issuer.asked("/jwks"), 2);
}

#[tokio::test]
async fn an_issuer_that_starts_late_is_found_soon() {
    let key = ec();
    let issuer = Issuer::start(std::slice::from_ref(&key)).await;
    issuer.set_broken(true);
    let address =
        start_with(&[&issuer], |settings| settings.key_interval = Duration::from_secs(3600)).await;
    let token = key.sign(&issuer.claims());
    let began = Instant::now();
    for _ in 0..20 {
        assert_eq!(who(address, &token).await.status, 503);
    }
    let asked = issuer.asked("/.well-known/oauth-authorization-server") as u64;
    assert!(asked <= 1 + began.elapsed().as_secs() / 2, "asked {asked} times");
    issuer.set_broken(false);
    for _ in 0..600 {
        if who(address, &token).await.status == 200 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the issuer was never asked again");
}

#[tokio::test]
async fn many_first_callers_cause_one_fetch() {
    let key = rsa();
    let issuer = Issuer::start(std::slice::from_ref(&key)).await;
    let address = start(&issuer).await;
    let callers = (0..20).map(|nth| {
        let token = key.sign(&issuer.claims_with(json!({ "sub": format!("user {nth}") })));
        tokio::spawn(async move { (nth, who(address, &token).await) })
    });
    for caller in callers.collect::<Vec<_>>() {
        let (nth, answer) = caller.await.unwrap();
        assert_eq!(answer.text(), format!("user {nth} notes"));
    }
    assert_eq!(issuer.asked("/jwks"), 1);
}

#[tokio::test]
async fn an_issuer_that_is_down_is_not_the_clients_fault() {
    let key = ec();
    let issuer = Issuer::start(std::slice::from_ref(&key)).await;
    issuer.set_broken(true);
    let address = start(&issuer).await;
    let token = key.sign(&issuer.claims());
    let answer = who(address, &token).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("10")));
    issuer.set_broken(false);
    assert_eq!(who(address, &token).await.status, 200);
    issuer.set_broken(true);
    let other = key.sign(&issuer.claims_with(json!({ "jti": "y" })));
    assert_eq!(who(address, &other).await.status, 200, "the keys are known");
}

#[tokio::test]
async fn an_issuer_cannot_speak_for_another() {
    let key = ec();
    let issuer = Issuer::start(std::slice::from_ref(&key)).await;
    let metadata = json!({
        "issuer": "https://other.example", "jwks_uri": format!("{}/jwks", issuer.url()),
    });
    issuer.publish("/.well-known/oauth-authorization-server", metadata);
    let address = start(&issuer).await;
    assert_eq!(who(address, &key.sign(&issuer.claims())).await.status, 503);
    assert_eq!(issuer.asked("/jwks"), 0);
}
