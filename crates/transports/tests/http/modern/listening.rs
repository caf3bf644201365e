//! Modern clients that listen: to changes, and to the log of a call.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::SUBSCRIPTION;
use crate::client::Request;
use crate::server::start;

fn listen(id: impl Into<Value>, filter: Value) -> Request {
    Request::modern(id, "subscriptions/listen", json!({ "notifications": filter }))
}

#[tokio::test]
async fn r22_a_listener_hears_what_it_asked_for_and_the_end() {
    let server = start().await;
    let (mut one, mut other) = (server.connect().await, server.connect().await);
    let (mut unread_one, mut unread_other) = (Vec::new(), Vec::new());
    let wish = json!({ "toolsListChanged": true, "promptsListChanged": false });
    let head = one.open(&listen("listen:0", wish)).await;
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    let wish = json!({ "resourceSubscriptions": ["test://note"] });
    other.open(&listen(7, wish)).await;
    let acknowledged = one.event(&mut unread_one).await.unwrap().json();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["_meta"][SUBSCRIPTION], "listen:0");
    assert_eq!(acknowledged["params"]["notifications"], json!({ "toolsListChanged": true }));
    let acknowledged = other.event(&mut unread_other).await.unwrap().json();
    assert_eq!(acknowledged["params"]["_meta"][SUBSCRIPTION], 7);
    // Other clients are served meanwhile.
    let mut third = server.connect().await;
    assert_eq!(third.send(&Request::call(1, "echo", json!({}))).await.status, 200);
    server.signals.has_extra.store(true, Ordering::SeqCst);
    server.signals.announce();
    server.signals.handle.lock().unwrap().as_ref().unwrap().updated("test://note");
    let changed = one.event(&mut unread_one).await.unwrap().json();
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_eq!(changed["params"]["_meta"][SUBSCRIPTION], "listen:0");
    let updated = other.event(&mut unread_other).await.unwrap().json();
    assert_eq!(updated["method"], "notifications/resources/updated");
    assert_eq!(updated["params"]["_meta"][SUBSCRIPTION], 7);
    // The end: a cancellation by the server, and the result of the request.
    let stopped = server.stopping();
    let cancelled = one.event(&mut unread_one).await.unwrap().json();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], "listen:0");
    let result = one.event(&mut unread_one).await.unwrap().json();
    assert_eq!(
        (&result["id"], &result["result"]["resultType"]),
        (&json!("listen:0"), &json!("complete"))
    );
    assert_eq!(one.event(&mut unread_one).await, None);
    drop((other, third));
    stopped.await.unwrap();
}

#[tokio::test]
async fn r22_a_listener_that_goes_away_is_forgotten() {
    let server = start().await;
    let mut client = server.connect().await;
    client.open(&listen(1, json!({ "toolsListChanged": true }))).await;
    server.until(|stats| stats.streams == 1).await;
    drop(client);
    server.until(|stats| stats.streams == 0 && stats.connections == 0).await;
    server.stop().await;
}

#[tokio::test]
async fn r23_logs_at_or_above_the_level_on_the_stream_of_their_request() {
    let server = start().await;
    let mut client = server.connect().await;
    for (level, messages) in [("debug", 2), ("info", 1), ("error", 0)] {
        let meta = json!({ "io.modelcontextprotocol/logLevel": level });
        let request = Request::modern(1, "tools/call", json!({ "name": "logs", "_meta": meta }));
        let response = client.send(&request).await;
        if messages == 0 {
            assert_eq!(response.text(), "logged");
            continue;
        }
        let events = response.events();
        assert_eq!(events.len(), messages + 1, "{level}");
        assert!(events[..messages].iter().all(|e| e.method() == "notifications/message"));
    }
    server.stop().await;
}
