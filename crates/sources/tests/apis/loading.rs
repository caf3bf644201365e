//! Where a description comes from.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sabir_sources::http::Location;
use serde_json::json;

use crate::server::{Server, json as answer, status};
use crate::shop::{Shop, api};

#[tokio::test]
async fn several_files_are_read_and_none_outside_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("outside.json"), r#"{"get":{"operationId":"outside"}}"#)
        .unwrap();
    let inside = folder.path().join("in side");
    std::fs::create_dir(&inside).unwrap();
    std::fs::write(inside.join("pets.yaml"), "get: {operationId: pets}").unwrap();
    let root = "openapi: 3.0.0\nservers: [{url: 'https://x.test'}]\npaths:\n  /pets: {$ref: pets.yaml}\n  /out: {$ref: ../outside.json}\n  /web: {$ref: 'https://127.0.0.1:1/x.json'}\n";
    std::fs::write(inside.join("api.yaml"), root).unwrap();
    let shop = Shop::new(api(Location::File(inside.join("api.yaml")))).await;
    assert_eq!(shop.tools(), ["pets"]);
    let problems = shop.problems();
    assert!(problems[0].contains("outside of the folder"), "{problems:?}");
    assert!(problems[1].contains("/web: cannot read"), "{problems:?}");
}

#[tokio::test]
async fn a_copy_is_used_while_the_server_is_away() {
    let is_away = Arc::new(AtomicBool::new(false));
    let version = Arc::new(AtomicBool::new(false));
    let server = Server::start({
        let (is_away, version) = (is_away.clone(), version.clone());
        move |_, _| {
            if is_away.load(Ordering::Relaxed) {
                return status(500);
            }
            let name = if version.load(Ordering::Relaxed) { "new" } else { "old" };
            let paths = json!({ "/": { "get": { "operationId": name } } });
            answer(&json!({ "openapi": "3.1.0", "paths": paths }).to_string())
        }
    })
    .await;
    let cache = tempfile::tempdir().unwrap();
    let start = || async {
        let mut api = api(Location::Url(format!("{}/api.json", server.url)));
        api.loader.cache = Some(cache.path().join("openapi"));
        api.base_url = Some(server.url.clone());
        Shop::new(api).await
    };
    is_away.store(true, Ordering::Relaxed);
    let shop = start().await;
    assert!(shop.tools().is_empty());
    assert!(shop.problems()[0].contains("/api.json: HTTP 500"), "{:?}", shop.problems());
    is_away.store(false, Ordering::Relaxed);
    assert_eq!(start().await.tools(), ["old"]);
    is_away.store(true, Ordering::Relaxed);
    assert_eq!(start().await.tools(), ["old"]);
    // The copy is served first; changes are offered once they are read.
    is_away.store(false, Ordering::Relaxed);
    version.store(true, Ordering::Relaxed);
    let shop = start().await;
    let begin = Instant::now();
    while shop.tools() != ["new"] {
        assert!(begin.elapsed() < Duration::from_secs(20), "the description was not read again");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn relative_servers_belong_to_the_host_of_the_description() {
    let server = Server::start(|request, _| match request.target() {
        "/docs/api.json" => answer(r#"{"openapi":"3.0.0","servers":[{"url":"../v1"}],"paths":{"/a":{"get":{"operationId":"a"}}}}"#),
        target => answer(&format!("{target:?}")),
    })
    .await;
    let shop = Shop::new(api(Location::Url(format!("{}/docs/api.json", server.url)))).await;
    assert_eq!(shop.text("a", json!({})).await, "\"/v1/a\"");
}
