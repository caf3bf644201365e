use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sabir::{BadOffer, Revision, Source};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::{connect, server};

/// Records the calls of its methods.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<&'static str>>>);

impl Diary {
    fn write(&self, entry: &'static str) {
        self.0.lock().unwrap().push(entry);
    }

    fn entries(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().clone()
    }
}

struct Follower(Diary);

impl Source for Follower {
    fn offer(&self) -> sabir::source::Offer {
        sabir::source::Offer::default()
    }

    fn start(&self, _: sabir::source::SourceHandle) -> sabir::source::Starting {
        let diary = self.0.clone();
        Box::pin(async move {
            diary.write("started");
            Ok(())
        })
    }

    fn close(&self, _: Duration) -> sabir::source::Closing {
        let diary = self.0.clone();
        Box::pin(async move { diary.write("closed") })
    }
}

#[tokio::test]
async fn sources_are_started_before_serving_and_closed_after_it() {
    let diary = Diary::default();
    let (mut client, service) = tokio::io::duplex(4096);
    let (reader, writer) = tokio::io::split(service);
    let serving =
        tokio::spawn(server().source(Follower(diary.clone())).serve_stream(reader, writer));
    client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await.unwrap();
    client.read_u8().await.unwrap();
    assert_eq!(diary.entries(), ["started"]);
    drop(client);
    serving.await.unwrap().unwrap();
    assert_eq!(diary.entries(), ["started", "closed"]);
}

#[tokio::test]
async fn a_server_serves_a_listener_until_its_shutdown() -> io::Result<()> {
    let diary = Diary::default();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async { drop(stopped.await) };
    let slowly = async || {
        tokio::time::sleep(Duration::from_millis(50)).await;
        "done"
    };
    let server = server()
        .source(Follower(diary.clone()))
        .tool("slow", "", slowly)
        .http(|http| http.endpoint = "/here".into())
        .limits(|limits| limits.grace = Duration::from_secs(3));
    let serving = tokio::spawn(server.serve(listener, shutdown));

    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "slow",
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": Revision::NEWEST,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        },
    } });
    let body = body.to_string();
    let mut stream = TcpStream::connect(address).await?;
    let head = format!(
        "POST /here HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {}\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: slow\r\nContent-Length: {}\r\n\r\n{body}",
        Revision::NEWEST.date(),
        body.len(),
    );
    stream.write_all(head.as_bytes()).await?;
    tokio::time::sleep(Duration::from_millis(20)).await;
    // The call is running: it may finish.
    stop.send(()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await?;
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    assert!(reply.contains("done"), "{reply}");
    serving.await?.unwrap();
    assert_eq!(diary.entries(), ["started", "closed"]);
    assert!(TcpStream::connect(address).await.is_err(), "the server still listens");
    Ok(())
}

#[tokio::test]
async fn a_handle_adds_and_removes_what_is_offered() {
    let diary = Diary::default();
    let handle = server().state(7).tool("first", "", async || "1").handle().unwrap();
    handle
        .add_tool("second", "", async |sabir::State(n): sabir::State<i32>| n.to_string())
        .unwrap();
    let taken = handle.add_tool("first", "", async || "2").unwrap_err();
    assert!(matches!(taken, BadOffer::Taken { .. }), "{taken}");
    let follower = handle.add_source(Follower(diary.clone())).unwrap();
    tokio::task::yield_now().await;
    assert_eq!(handle.engine().registry().snapshot().tools().len(), 2);
    assert!(handle.remove_tool("first"));
    assert!(!handle.remove_tool("first"));
    assert!(handle.remove_source(follower));
    assert!(!handle.remove_source(follower));
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(diary.entries(), ["started", "closed"]);
}

#[tokio::test]
async fn a_server_with_a_mistake_does_not_serve() {
    let twice = || server().tool("same", "", async || "1").tool("same", "", async || "2");
    assert!(matches!(sabir::test::connect(twice()), Err(BadOffer::Taken { .. })));
    let nowhere = tokio::io::split(tokio::io::duplex(16).0);
    let served = twice().serve_stream(nowhere.0, nowhere.1).await;
    assert_eq!(served.unwrap_err().to_string(), "there is a tool `same` already (from tool same)");
    // Arguments are always an object.
    let scalar = server().tool("scalar", "", async |text: String| text);
    assert!(matches!(sabir::test::connect(scalar), Err(BadOffer::Schema { .. })));
}

#[tokio::test]
async fn every_revision_gets_the_same_answer() {
    for revision in Revision::ALL {
        let mut client = connect(server().tool("hi", "", async || "hello")).revision(revision);
        assert_eq!(client.list_tools().await.unwrap().len(), 1, "{revision:?}");
        assert_eq!(client.call_tool("hi", json!({})).await.unwrap().text(), "hello");
        let unknown = client.call_tool("ho", json!({})).await.unwrap_err();
        assert_eq!(unknown.code, -32602, "{revision:?}");
    }
}
