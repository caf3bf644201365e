//! Callers: sessions belong to them, and sources see them. Also a Unix socket and a custom
//! authenticator.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sabir_engine::{Engine, Settings as EngineSettings};
use sabir_registry::{Offer, Outcome, Pending, Source, ToolCall};
use sabir_transports::http::{Authenticate, Authenticating, Denied, HttpService, NamedToken};
use sabir_transports::http::{Server, Settings, Token, serve};
use sabir_wire::types::{Content, Tool, ToolReply};
use sabir_wire::{Caller, Raw};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::oneshot;

use crate::client::{Client, Request};
use crate::legacy::{call, get};
use crate::server::{Wish, in_time};

pub(crate) fn named(name: &str, secret: &str) -> NamedToken {
    NamedToken::new(name, Token::new(secret).unwrap())
}

pub(crate) fn of(request: Request, token: &str) -> Request {
    request.header("authorization", &format!("Bearer {token}"))
}

#[tokio::test]
async fn a_session_does_not_exist_for_another_caller() {
    let tokens = vec![named("ann", "a1"), named("ann", "a2"), named("bob", "b")];
    let server = Wish::default().http(|http| http.tokens = tokens).start().await;
    let mut client = server.connect().await;
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    let opened = client.send(&of(Request::legacy(0, "initialize", hello), "a1")).await;
    let id = opened.header("mcp-session-id").unwrap().to_owned();
    let note = Request::note("notifications/initialized", json!({}));
    let note = of(note.header("mcp-session-id", &id), "a1");
    assert_eq!(client.send(&note).await.status, 202);

    let echo = |token| of(call(&id, 1, "echo", json!({ "text": "x" })), token);
    let delete = || Request::new("DELETE", "/mcp").header("mcp-session-id", &id);
    for foreign in [echo("b"), of(get(&id), "b"), of(delete(), "b")] {
        let response = client.send(&foreign).await;
        assert_eq!(response.status, 404, "{foreign:?}");
    }
    assert_eq!(client.send(&echo("a1")).await.text(), "x");
    assert_eq!(client.send(&echo("a2")).await.text(), "x", "another token of the same caller");
    assert_eq!(client.send(&of(delete(), "a2")).await.status, 204);
    assert_eq!(client.send(&echo("a1")).await.status, 404);
    server.stop().await;
}

/// Records who calls.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) callers: Mutex<Vec<Caller>>,
}

impl Source for Recorder {
    fn offer(&self) -> Offer {
        let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
        Offer { tools: vec![Tool::new("who", "d", schema)], ..Offer::default() }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        self.callers.lock().unwrap().push(call.context.caller.clone());
        let content = vec![Content::text(call.context.caller.to_string())];
        Box::pin(async { Ok(Outcome::Done(ToolReply { content, ..ToolReply::default() })) })
    }
}

pub(crate) async fn record(settings: Settings) -> (Arc<Recorder>, Server) {
    let source = Arc::new(Recorder::default());
    let engine = Engine::new(EngineSettings::default());
    engine.registry().add(source.clone()).unwrap();
    let mut settings = settings;
    settings.address.set_port(0);
    (source, Server::bind(engine, settings).await.unwrap())
}

/// Knows `known` at once, and `slow` after a moment.
struct Directory;

impl Authenticate for Directory {
    fn known(&self, authorization: Option<&[u8]>) -> Option<Result<Caller, Denied>> {
        match authorization {
            None => Some(Err(Denied::Missing)),
            Some(b"Bearer known") => Some(Ok(Caller::new("https://i", "known"))),
            Some(_) => None,
        }
    }

    fn authenticate(&self, authorization: Option<&[u8]>) -> Authenticating {
        let is_slow = authorization == Some(b"Bearer slow");
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            if is_slow {
                Ok(Caller::new("https://i", "slow"))
            } else {
                Err(Denied::Invalid("unknown"))
            }
        })
    }
}

#[tokio::test]
async fn an_authenticator_may_take_its_time() {
    let authenticate: Arc<dyn Authenticate> = Arc::new(Directory);
    let mut settings = Settings::default();
    settings.authenticate = Some(authenticate);
    let (source, server) = record(settings).await;
    let address = server.address();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.run(async { drop(stopped.await) }));
    let mut client = Client::connect(address).await;
    let who = |token| of(Request::call(1, "who", json!({})), token);
    assert_eq!(client.send(&who("known")).await.text(), "known@https://i");
    assert_eq!(client.send(&who("slow")).await.text(), "slow@https://i");
    assert_eq!(client.send(&who("other")).await.status, 401);
    assert_eq!(client.send(&Request::call(1, "who", json!({}))).await.status, 401);
    assert_eq!(source.callers.lock().unwrap().len(), 2, "no call runs without a valid token");
    drop((stop, client));
    in_time(serving).await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_serves_as_tcp_does() {
    let engine = Engine::new(EngineSettings::default());
    engine.registry().add(Arc::new(Recorder::default())).unwrap();
    let path = std::env::temp_dir().join(format!("sabir-test-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let service = HttpService::new(engine, Settings::default());
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(serve(service, listener, async { drop(stopped.await) }));
    let mut stream = tokio::net::UnixStream::connect(&path).await.unwrap();
    std::fs::remove_file(&path).unwrap();
    stream.write_all(&Request::call(1, "who", json!({})).bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let length = in_time(stream.read(&mut answer)).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("anonymous"), "{answer}");
    drop((stop, stream));
    in_time(serving).await.unwrap();
}
