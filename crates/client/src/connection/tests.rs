//! The tables of a connection.

use sabir_wire::{Page, Request};

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

#[tokio::test]
async fn a_call_that_is_no_longer_wanted_leaves_nothing_behind() {
    let config = Arc::new(ClientConfig::default());
    let announce = Box::new(|_| {});
    let opened = Connection::open(&Silent, &config, Beginning::Legacy, announce).await;
    let connection = opened.unwrap();
    let greeted = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"DATE","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;
    let greeted = greeted.replace("DATE", config.legacy_revision.date());
    let frame = sabir_wire::decode(&greeted.into_bytes().into(), 9);
    connection.handle(Input::Received { exchange: None, frame });
    assert!(connection.info().is_some());
    let request = Arc::new(CallRequest::new(Request::ListTools(Page::default())));
    for _ in 0..10 {
        let begun = connection.begin(&request).await;
        connection.cancel(begun.key);
    }
    assert_eq!(connection.lock().calls.len(), 0);
}
