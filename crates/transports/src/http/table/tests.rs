use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use bytes::Bytes;
use sabir_engine::{Connection, Engine, Settings};
use sabir_registry::{Offer, Outcome, Pending, Source, ToolCall};
use sabir_session::SessionKind;
use sabir_wire::types::{Tool, ToolReply};
use sabir_wire::{ParsedRequest, Raw, Revision};

use super::*;
use crate::http::streams::Bounds;

/// A tool that keeps its thread until it is released.
struct Blocking {
    begun: Sender<()>,
    release: Mutex<Receiver<()>>,
}

impl Source for Blocking {
    fn offer(&self) -> Offer {
        let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
        Offer { tools: vec![Tool::new("block", "d", schema)], ..Offer::default() }
    }

    fn call_tool(&self, _: ToolCall) -> Pending<ToolReply> {
        self.begun.send(()).unwrap();
        self.release.lock().unwrap().recv_timeout(Duration::from_secs(10)).unwrap();
        Box::pin(async { Ok(Outcome::Done(ToolReply::default())) })
    }
}

#[test]
fn a_handler_does_not_run_under_the_lock_of_its_session() {
    let ((begun, has_begun), (release, released)) = (channel(), channel());
    let engine = Engine::new(Settings::default());
    let source = Blocking { begun, release: Mutex::new(released) };
    engine.registry().add(Arc::new(source)).unwrap();
    let kind = SessionKind::LegacyHttp(Revision::NEWEST_LEGACY);
    let connection = Connection::new(&engine, kind, Caller::anonymous());
    let bounds = Arc::new(Bounds { events: 9, bytes: 9999, streams: 9, unsent: 9999 });
    let table = SessionTable::new(Arc::new(Clock::new()), &Limits::default());
    let stored = table.insert(Streams::new(connection, bounds), false).unwrap();
    let say = |stored: &StoredSession, text: &'static str| {
        let request = ParsedRequest::decode(&Bytes::from_static(text.as_bytes()), 9).unwrap();
        stored.with(|streams| {
            let receive = |connection: &mut Connection, stream| {
                connection.receive_request(stream, Caller::anonymous(), request, None);
            };
            streams.post(receive).unwrap()
        })
    };
    say(&stored, r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#);
    stored.with(|streams| streams.connection().session().revision());
    std::thread::scope(|threads| {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"block"}}"#;
        let ready = sabir_wire::decode(
            &Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
            9,
        );
        stored.with(|streams| {
            streams.post(|connection, stream| {
                connection.receive_decoded(stream, Caller::anonymous(), ready);
            })
        });
        let blocked = threads.spawn(|| say(&stored, call));
        has_begun.recv_timeout(Duration::from_secs(10)).unwrap();
        // Another request of the session is answered meanwhile.
        let ping = say(&stored, r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).unwrap();
        let answered = stored.with(|streams| streams.finish_post(ping)).unwrap();
        assert!(
            matches!(answered, crate::http::streams::Posted::Done(frames) if frames.len() == 1)
        );
        release.send(()).unwrap();
        assert!(blocked.join().unwrap().is_some());
    });
}
