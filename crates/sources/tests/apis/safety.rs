//! Hostile descriptions and servers: bounded, reported, harmless.

use std::io::Write as _;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use sabir_outbound::{Addresses, HostPattern, HttpClient, Policy};
use sabir_sources::http::{Api, Location};
use serde_json::{Value, json};

use crate::server::{Answer, Server, json as answer};
use crate::shop::{Shop, api, local};

fn one_get() -> Value {
    json!({ "/": { "get": { "operationId": "get" } } })
}

#[tokio::test]
async fn only_allowed_hosts_and_addresses_are_reached() {
    let server = Server::start(|_, _| answer("1")).await;
    let reason = |change: fn(&mut Api)| {
        let url = server.url.clone();
        async move {
            let shop = Shop::of(&url, one_get(), change).await;
            (shop.text("get", json!({})).await, shop.problems())
        }
    };
    // The servers of a description are not trusted by default: then no host is reached.
    for hosts in [
        |_: &mut Api| {},
        |api: &mut Api| api.sender.policy.hosts = vec![HostPattern::parse("x.test").unwrap()],
    ] {
        let url = server.url.clone();
        let shop = Shop::of(&url, one_get(), |api| {
            api.trusts_servers = false;
            hosts(api);
        })
        .await;
        let text = shop.text("get", json!({})).await;
        assert!(text.contains("host `127.0.0.1` is not allowed"), "{text}");
        assert!(shop.problems()[0].contains("set `base_url` or `hosts`"), "{:?}", shop.problems());
    }
    // Servers of single operations are not trusted at all.
    let paths = json!({ "/": { "servers": [{ "url": server.url.replace("127.0.0.1", "localhost") }], "get": { "operationId": "get" } } });
    let shop = Shop::of(&server.url, paths, |_| {}).await;
    let text = shop.text("get", json!({})).await;
    assert!(text.contains("host `localhost` is not allowed"), "{text}");
    let (text, _) = reason(|api| api.sender.policy.addresses = Addresses::Public).await;
    assert!(text.contains("is not a public address"), "{text}");
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn a_redirect_is_checked_again() {
    let hidden = Server::start(|_, _| answer("\"secret\"")).await;
    let to = hidden.url.replace("127.0.0.1", "localhost");
    let server = Server::start(move |_, _| {
        Answer::Plain(302, vec![("location", format!("{to}/secret"))], Vec::new())
    })
    .await;
    let shop = Shop::of(&server.url, one_get(), |api| {
        api.sender.policy.hosts = vec![HostPattern::parse("127.0.0.1").unwrap()];
    })
    .await;
    let text = shop.text("get", json!({})).await;
    assert!(text.contains("host `localhost` is not allowed"), "{text}");
    assert!(hidden.received().is_empty());
}

#[tokio::test]
async fn answers_are_bounded_in_size_also_after_decompression() {
    let server = Server::start(|_, _| Answer::Endless).await;
    let shop = Shop::of(&server.url, one_get(), |api| api.sender.max_response = 1 << 20).await;
    let text = shop.text("get", json!({})).await;
    assert!(text.contains("response body is too long (limit 1048576 bytes)"), "{text}");
    // 10 MB of zeros in 10 KB.
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    bomb.write_all(&vec![0; 10_000_000]).unwrap();
    let bomb = bomb.finish().unwrap();
    let server = Server::start(move |_, _| {
        Answer::Plain(200, vec![("content-encoding", "gzip".into())], bomb.clone())
    })
    .await;
    let shop = Shop::of(&server.url, one_get(), |api| api.sender.max_response = 1 << 20).await;
    let text = shop.text("get", json!({})).await;
    assert!(text.contains("response body is too long (limit 1048576 bytes)"), "{text}");
}

#[tokio::test]
async fn a_silent_server_costs_the_timeout() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let shop =
        Shop::of(&url, one_get(), |api| api.sender.timeout = Duration::from_millis(300)).await;
    let start = Instant::now();
    let text = shop.text("get", json!({})).await;
    assert!(text.contains("within"), "{text}");
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn references_to_private_addresses_are_not_followed() {
    let hidden = Server::start(|_, _| answer(r#"{"get":{"operationId":"stolen"}}"#)).await;
    let text = json!({ "openapi": "3.0.0", "paths": {
        "/a": { "$ref": format!("{}/item", hidden.url) },
        "/b": { "$ref": "file:///etc/passwd" },
        "/c": { "get": { "operationId": "c" } } } });
    let server = Server::start(move |_, _| answer(&text.to_string())).await;
    let mut api = api(Location::Url(server.url.replace("127.0.0.1", "localhost")));
    let policy = Policy { hosts: vec![HostPattern::parse("localhost").unwrap()], ..local() };
    api.loader.client = HttpClient::new(policy).ok();
    api.base_url = Some("https://x.test".into());
    let shop = Shop::new(api).await;
    assert_eq!(shop.tools(), ["c"]);
    let problems = shop.problems().join("\n");
    assert!(problems.contains("host `127.0.0.1` is not allowed"), "{problems}");
    assert!(problems.contains("a file of this machine is not read for a URL"), "{problems}");
    assert!(hidden.received().is_empty());
}

#[tokio::test]
async fn a_description_that_is_an_attack_is_offered_within_bounds() {
    // Many operations, each with a schema that refers to itself and doubles at every level.
    let mut schemas = json!({});
    for level in 0..40 {
        let next = json!({ "$ref": format!("#/components/schemas/S{}", (level + 1) % 40) });
        schemas[format!("S{level}")] = json!({ "type": "object", "properties": { "a": next, "b": next }, "allOf": [next, next] });
    }
    let mut paths = json!({});
    for n in 0..50_001 {
        paths[format!("/{n}")] = json!({ "post": { "requestBody": { "content": { "application/json": {
            "schema": { "type": "array", "items": { "$ref": "#/components/schemas/S0" } } } } } } });
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("api.json");
    let text = json!({ "openapi": "3.0.0", "servers": [{ "url": "https://x.test" }], "paths": paths, "components": { "schemas": schemas } });
    std::fs::write(&path, text.to_string()).unwrap();
    let shop = Shop::new(api(Location::File(path))).await;
    assert_eq!(shop.tools().len(), 3);
    assert!(
        shop.problems()[0].contains("too many operations (limit 50000)"),
        "{:?}",
        shop.problems()
    );
    let described = shop.text("describe_operation", json!({ "operation": "POST /1" })).await;
    assert!(described.contains("$defs") && described.len() < 100_000, "{}", described.len());
    let refused = shop
        .text("call_operation", json!({ "operation": "POST /1", "arguments": { "body": 1 } }))
        .await;
    assert!(refused.contains("is not of type"), "{refused}");
}
