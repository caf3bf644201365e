//! The tables of a connection.

use sabir_wire::{Page, Request, decode};

use super::*;
use crate::io::LinkKind;
use crate::link::Opening;

/// A server that sends nothing.
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

/// A transport that never takes its orders.
#[derive(Debug)]
struct Stuck(Mutex<Option<Link>>);

impl Transport for Stuck {
    fn kind(&self) -> LinkKind {
        LinkKind::Pipe
    }

    fn open(&self, link: Link) -> Opening<'_> {
        *self.0.lock().unwrap() = Some(link);
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn a_server_that_asks_for_ever_and_reads_nothing_costs_bounded_memory() {
    let (config, stuck) = (Arc::new(ClientConfig::default()), Stuck(Mutex::default()));
    let opened = Connection::open(&stuck, &config, Beginning::Legacy, Box::new(|_| {})).await;
    let connection = opened.unwrap();
    let mut link = stuck.0.lock().unwrap().take().unwrap();
    let ask = |method: &str| {
        let message = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}"}}"#);
        let frame = decode(&message.into_bytes().into(), 9);
        connection.handle(Input::Received { exchange: None, frame });
    };
    for _ in 0..MAX_REPLIES {
        ask("ping");
        ask("no/such/method");
    }
    let waiting = link.orders.len();
    assert_eq!(waiting, 1 + MAX_REPLIES, "the handshake, and answers up to the limit");
    // Once the server reads, it is answered again.
    while link.orders.try_recv().is_ok() {}
    ask("ping");
    assert_eq!(link.orders.len(), 1);
}

#[tokio::test]
async fn a_call_that_waits_for_room_ends_with_the_link() {
    let connection = open().await;
    connection.unsent.store(MAX_UNSENT + 1, Ordering::Relaxed);
    let request = request();
    let mut beginning = Box::pin(connection.begin(&request));
    let waits = std::future::poll_fn(|context| {
        std::task::Poll::Ready(beginning.as_mut().poll(context).is_pending())
    });
    assert!(waits.await);
    connection.finish(OpenError::Closed, &[]);
    let begun = tokio::time::timeout(std::time::Duration::from_secs(9), beginning).await;
    assert!(matches!(begun.unwrap().notices.recv().await, Some(Notice::Done(Err(_)))));
}
