//! The requests that are sent, and how often.

use std::time::Duration;

use sabir_openapi::KeyPlace;
use sabir_sources::http::{Auth, Credential, ReplyLimits, Secret};
use sabir_wire::types::ContentKind;
use serde_json::json;

use crate::server::{Answer, Server, json as answer, status};
use crate::shop::{Shop, text};

#[tokio::test]
async fn an_operation_is_a_tool_and_its_answer_a_result() {
    let server = Server::start(|request, _| match request.target() {
        "/pets/a%2Fb?tag=x&tag=y" => answer("{\"name\":\"Bo\",\"age\":1.10}"),
        "/picture" => {
            Answer::Plain(200, vec![("content-type", "image/png".into())], b"\x89PNG".into())
        }
        "/pages" => {
            Answer::Plain(200, vec![("link", "</pages?page=2>; rel=next".into())], b"[1]".into())
        }
        _ => Answer::Plain(
            404,
            vec![("content-type", "application/problem+json".into())],
            br#"{"title":"Gone","detail":"no such pet"}"#.into(),
        ),
    })
    .await;
    let paths = json!({
        "/pets/{id}": { "get": { "operationId": "pet", "parameters": [
            { "name": "tag", "in": "query", "schema": { "type": "array", "items": { "type": "string" } } } ] } },
        "/picture": { "get": { "operationId": "picture" } },
        "/pages": { "get": { "operationId": "pages" } },
    });
    let shop = Shop::of(&server.url, paths, |_| {}).await;
    assert_eq!(shop.tools(), ["pet", "picture", "pages"]);
    let reply = shop.call("pet", json!({ "id": "a/b", "tag": ["x", "y"] })).await.unwrap();
    assert_eq!((text(&reply), reply.is_error), ("{\"name\":\"Bo\",\"age\":1.10}", false));
    let reply = shop.call("pet", json!({ "id": "z" })).await.unwrap();
    assert!(
        reply.is_error && text(&reply).starts_with("HTTP 404 Not Found: no such pet"),
        "{reply:?}"
    );
    let reply = shop.call("picture", json!({})).await.unwrap();
    assert!(
        matches!(&reply.content[0].kind, ContentKind::Image { mime_type, .. } if mime_type == "image/png")
    );
    let reply = shop.call("pages", json!({})).await.unwrap();
    assert!(
        matches!(&reply.content[1].kind, ContentKind::Text(text) if text.ends_with("call again with page = 2"))
    );
    // Arguments are checked before anything is sent.
    let sent = server.received().len();
    assert!(shop.call("pet", json!({})).await.is_err());
    assert!(shop.call("pet", json!({ "id": "." })).await.is_err());
    assert_eq!(server.received().len(), sent);
}

#[tokio::test]
async fn a_header_of_the_caller_replaces_ours() {
    let server = Server::start(|_, _| answer("1")).await;
    let agent = json!([{ "name": "User-Agent", "in": "header", "schema": { "type": "string" } }]);
    let paths = json!({ "/": { "get": { "operationId": "one", "parameters": agent } } });
    let shop = Shop::of(&server.url, paths, |_| {}).await;
    shop.call("one", json!({ "User-Agent": "mine" })).await.unwrap();
    shop.call("one", json!({})).await.unwrap();
    let sent = server.received();
    let agents = sent.iter().map(|request| {
        let mine = request.headers.iter().filter(|(name, _)| name == "user-agent");
        mine.map(|(_, value)| value.as_str()).collect::<Vec<_>>()
    });
    let ours = concat!("sabir/", env!("CARGO_PKG_VERSION"));
    assert_eq!(agents.collect::<Vec<_>>(), [["mine"], [ours]]);
}

#[tokio::test]
async fn a_long_answer_is_cut_and_whole_as_a_resource() {
    let long = format!("\"{}\"", "x".repeat(5000));
    let server = Server::start({
        let long = long.clone();
        move |_, _| answer(&long)
    })
    .await;
    let limits = ReplyLimits { text: 100, bytes: 10 };
    let paths = json!({ "/": { "get": { "operationId": "long" } } });
    let shop = Shop::of(&server.url, paths, |api| api.limits = limits).await;
    let reply = shop.call("long", json!({})).await.unwrap();
    assert_eq!(text(&reply).len(), 100);
    let ContentKind::Link(link) = &reply.content[2].kind else { panic!("{reply:?}") };
    assert_eq!(shop.read(&link.uri).await, long);
}

#[tokio::test]
async fn only_what_may_happen_twice_is_sent_twice() {
    let server = Server::start(|_, _| status(503)).await;
    let key = json!([{ "name": "Idempotency-Key", "in": "header" }]);
    let paths = json!({
        "/get": { "get": { "operationId": "get" } },
        "/post": { "post": { "operationId": "post" } },
        "/keyed": { "post": { "operationId": "keyed", "parameters": key } },
    });
    let shop = Shop::of(&server.url, paths, |_| {}).await;
    for (tool, times) in [("get", 3), ("post", 1), ("keyed", 3)] {
        let before = server.received().len();
        let reply = shop.call(tool, json!({})).await.unwrap();
        assert!(reply.is_error);
        let sent = &server.received()[before..];
        assert_eq!(sent.len(), times, "{tool}");
        let keys: Vec<_> = sent.iter().map(|request| request.header("idempotency-key")).collect();
        assert!(keys.iter().all(|key| *key == keys[0] && key.is_some() == (tool == "keyed")));
    }
    // A request on a lost connection may have arrived.
    let server = Server::start(|_, _| Answer::Close).await;
    let paths =
        json!({ "/": { "post": { "operationId": "post" }, "get": { "operationId": "get" } } });
    let shop = Shop::of(&server.url, paths, |_| {}).await;
    assert!(shop.call("post", json!({})).await.is_err());
    assert_eq!(server.received().len(), 1);
    assert!(shop.call("get", json!({})).await.is_err());
    assert_eq!(server.received().len(), 4);
}

#[tokio::test]
async fn the_api_is_given_the_time_that_it_asks_for() {
    let server = Server::start(|_, number| match number {
        0 => Answer::Plain(429, vec![("retry-after", "1".into())], Vec::new()),
        1 => answer("1"),
        _ => Answer::Plain(429, vec![("retry-after", "100".into())], Vec::new()),
    })
    .await;
    let paths = json!({ "/": { "post": { "operationId": "post" } } });
    let shop =
        Shop::of(&server.url, paths, |api| api.sender.timeout = Duration::from_secs(20)).await;
    let start = std::time::Instant::now();
    assert_eq!(shop.text("post", json!({})).await, "1");
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert!(shop.text("post", json!({})).await.starts_with("HTTP 429 Too Many Requests"));
    let wait = shop.text("post", json!({})).await;
    assert!(wait.contains("the API asked to wait for"), "{wait}");
    assert_eq!(server.received().len(), 3);
}

fn auth(scheme: Option<&str>, credential: Credential) -> Auth {
    Auth { scheme: scheme.map(Into::into), credential }
}

#[tokio::test]
async fn credentials_are_sent_to_the_operations_that_need_them() {
    let server = Server::start(|_, _| answer("1")).await;
    let paths = json!({
        "/both": { "get": { "operationId": "both", "security": [{ "key": [] }] } },
        "/plain": { "get": { "operationId": "plain", "security": [{ "other": [] }] } },
    });
    let key = |place, name: &str, prefix: &str| Credential::Key {
        place,
        name: name.into(),
        prefix: prefix.into(),
        secret: Secret::new("s&s\n"),
    };
    let shop = Shop::of(&server.url, paths, |api| {
        api.sender.auth = vec![
            auth(Some("key"), key(KeyPlace::Header, "X-Key", "Token ")),
            auth(Some("key"), key(KeyPlace::Query, "k", "")),
            auth(None, key(KeyPlace::Cookie, "c", "")),
            auth(None, Credential::Basic { user: "u".into(), password: Secret::new("p") }),
        ];
    })
    .await;
    shop.call("both", json!({})).await.unwrap();
    shop.call("plain", json!({})).await.unwrap();
    let [both, plain] = &server.received()[..] else { panic!() };
    assert_eq!(both.header("x-key"), Some("Token s&s"));
    assert_eq!(both.target(), "/both?k=s%26s");
    assert_eq!((plain.header("x-key"), plain.target()), (None, "/plain"));
    assert_eq!(plain.header("cookie"), Some("c=s%26s"));
    assert_eq!(plain.header("authorization"), Some("Basic dTpw"));
    assert!(!format!("{:?}", Secret::new("hidden")).contains("hidden"));
}

#[tokio::test]
async fn tokens_are_issued_once_and_again_when_the_api_refuses_them() {
    let server = Server::start(|request, _| match request.target() {
        "/token" if request.body == "grant_type=client_credentials&scope=a%20b" => {
            answer(r#"{"access_token":"new","expires_in":3600}"#)
        }
        "/token" => status(400),
        "/refusing" if request.header("x-count").is_none() => status(401),
        _ => answer("1"),
    })
    .await;
    let paths = json!({ "/": { "get": { "operationId": "get" } }, "/refusing": { "get": { "operationId": "refusing" } } });
    let url = server.url.clone();
    let shop = Shop::of(&url.clone(), paths, |api| {
        let scopes = vec!["a".into(), "b".into()];
        let credential =
            Credential::client(format!("{url}/token"), "id", Secret::new("secret"), scopes);
        api.sender.auth = vec![auth(None, credential)];
    })
    .await;
    shop.call("get", json!({})).await.unwrap();
    shop.call("get", json!({})).await.unwrap();
    let targets = || -> Vec<String> {
        server.received().iter().map(|request| request.target().to_owned()).collect()
    };
    assert_eq!(targets(), ["/token", "/", "/"]);
    assert_eq!(server.received()[0].header("authorization"), Some("Basic aWQ6c2VjcmV0"));
    assert_eq!(server.received()[1].header("authorization"), Some("Bearer new"));
    // Once more with a new token, and not forever.
    assert!(shop.call("refusing", json!({})).await.unwrap().is_error);
    assert_eq!(targets()[3..], ["/refusing", "/token", "/refusing"]);
}

#[tokio::test]
async fn calls_whose_token_expired_share_the_next_one() {
    let server = Server::start(|request, number| match request.target() {
        "/token" if number == 0 => answer(r#"{"access_token":"old"}"#),
        "/token" => answer(r#"{"access_token":"new"}"#),
        _ if request.header("authorization") == Some("Bearer new") => answer("1"),
        _ => status(401),
    })
    .await;
    let paths = json!({ "/": { "get": { "operationId": "get" } } });
    let url = server.url.clone();
    let shop = Shop::of(&url.clone(), paths, |api| {
        let credential = Credential::client(format!("{url}/token"), "id", Secret::new("s"), vec![]);
        api.sender.auth = vec![auth(None, credential)];
    })
    .await;
    let call = || shop.text("get", json!({}));
    let (a, b, c, d) = tokio::join!(call(), call(), call(), call());
    assert_eq!([a, b, c, d], ["1"; 4]);
    let issued = server.received().iter().filter(|request| request.target() == "/token").count();
    assert_eq!(issued, 2);
}

#[tokio::test]
async fn the_first_alternative_with_all_its_credentials_is_used() {
    let server = Server::start(|_, _| answer("1")).await;
    let paths = json!({
        "/one": { "get": { "operationId": "one", "security": [
            {}, { "absent": [], "a": [] }, { "b": [], "c": [] }, { "a": [] } ] } },
        "/none": { "get": { "operationId": "none", "security": [{ "absent": [], "a": [] }] } },
    });
    let shop = Shop::of(&server.url, paths, |api| {
        let key = |name: &str| Credential::Key {
            place: KeyPlace::Header,
            name: name.into(),
            prefix: String::new(),
            secret: Secret::new("s"),
        };
        api.sender.auth = ["a", "b", "c"].map(|name| auth(Some(name), key(name))).into();
    })
    .await;
    let sent = async |tool: &str| {
        shop.call(tool, json!({})).await.unwrap();
        let request = server.received().pop().unwrap();
        ["a", "b", "c"].map(|name| request.header(name).is_some())
    };
    assert_eq!(sent("one").await, [false, true, true]);
    // The API says what is missing.
    assert_eq!(sent("none").await, [true, false, false]);
}

#[tokio::test]
async fn many_operations_are_searched_described_and_called() {
    let server = Server::start(|request, _| answer(&format!("{:?}", request.target()))).await;
    let mut paths = json!({});
    for n in 0..300 {
        paths[format!("/things{n}/{{id}}")] =
            json!({ "get": { "operationId": format!("things/get{n}"), "summary": "Get a thing" } });
    }
    paths["/pets"] = json!({ "get": { "operationId": "listPets", "summary": "List all animals", "parameters": [
        { "name": "limit", "in": "query", "required": true, "schema": { "type": "integer" } }] } });
    let shop = Shop::of(&server.url, paths, |api| api.choice.prefix = "t_".into()).await;
    assert_eq!(shop.tools(), ["t_search_operations", "t_describe_operation", "t_call_operation"]);
    let found =
        shop.text("t_search_operations", json!({ "query": "listing an animal", "limit": 3 })).await;
    assert_eq!(found, "t_listPets: GET /pets List all animals");
    let described = shop.text("t_describe_operation", json!({ "operation": "t_listPets" })).await;
    assert!(described.contains(r#""limit":{"type":"integer"}"#), "{described}");
    let call =
        |operation: &str, arguments| json!({ "operation": operation, "arguments": arguments });
    for name in ["t_listPets", "listPets", "GET /pets"] {
        let answered = shop.text("t_call_operation", call(name, json!({ "limit": 3 }))).await;
        assert_eq!(answered, "\"/pets?limit=3\"", "{name}");
    }
    let wrong = shop.text("t_call_operation", call("listPets", json!({ "limit": "x" }))).await;
    assert!(wrong.contains("is not of type \"integer\""), "{wrong}");
    let unknown = shop.text("t_call_operation", call("nothing", json!({}))).await;
    assert!(unknown.contains("unknown operation `nothing`"), "{unknown}");
    assert_eq!(server.received().len(), 3);
}
