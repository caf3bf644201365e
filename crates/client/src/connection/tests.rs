//! The tables of a connection.

use sabir_wire::{Page, Request, decode};

use super::*;
use crate::io::LinkKind;
use crate::link::Opening;

/// A server that says nothing.
#[derive(Debug)]
struct Silent;

impl Transport for Silent {
    fn kind(&self) -> LinkKind {
        LinkKind::Pipe
    }

    fn open(&self, _: Link) -> Opening<'_> {
        Box::pin(async { Ok(()) })
    }
}

/// A link to a server that has answered the handshake.
async fn open() -> Arc<Connection> {
    let config = Arc::new(ClientConfig::default());
    let announce = Box::new(|_| {});
    let opened = Connection::open(&Silent, &config, Beginning::Legacy, announce).await;
    let connection = opened.unwrap();
    let greeted = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"DATE","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;
    let greeted = greeted.replace("DATE", config.legacy_revision.date());
    let frame = decode(&greeted.into_bytes().into(), 9);
    connection.handle(Input::Received { exchange: None, frame });
    assert!(connection.info().is_some());
    connection
}

fn request() -> Arc<CallRequest> {
    Arc::new(CallRequest::new(Request::ListTools(Page::default())))
}

#[tokio::test]
async fn a_call_on_a_link_that_has_just_ended_was_not_sent() {
    let connection = open().await;
    connection.finish(OpenError::Closed, &[]);
    let mut begun = connection.begin(&request()).await;
    let unsent = begun.notices.recv().await;
    assert!(matches!(unsent, Some(Notice::Done(Err(CallError::Unsent(_))))), "{unsent:?}");
    assert_eq!(connection.lock().calls.len(), 0);
}

#[tokio::test]
async fn a_call_that_is_no_longer_wanted_leaves_nothing_behind() {
    let connection = open().await;
    for _ in 0..10 {
        let begun = connection.begin(&request()).await;
        connection.cancel(begun.key);
    }
    assert_eq!(connection.lock().calls.len(), 0);
}

#[tokio::test]
async fn a_holder_that_takes_nothing_still_gets_the_result() {
    let connection = open().await;
    let mut begun = connection.begin(&request()).await;
    let id = begun.key.id();
    let say = |message: String| {
        let frame = decode(&message.into_bytes().into(), 9);
        connection.handle(Input::Received { exchange: None, frame });
    };
    for nth in 0..100 {
        say(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":{nth}}}}}"#
        ));
    }
    say(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    let mut taken = Vec::new();
    while let Some(notice) = begun.notices.recv().await {
        taken.push(notice);
    }
    assert_eq!(taken.len(), waiter::MAX_CALL_EVENTS + 1);
    assert!(matches!(taken.last(), Some(Notice::Done(Ok(_)))));
}
