use bytes::Bytes;
use sabir_engine::{Connection, Settings};
use sabir_session::{SessionKind, StreamId};
use sabir_wire::Caller;

use super::*;

fn say(connection: &mut Connection, text: &str) {
    connection.receive(StreamId(0), Caller::local(), &Bytes::copy_from_slice(text.as_bytes()));
}

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

#[test]
fn requests_and_sessions_are_measured_and_made_up_names_are_not() {
    let metrics = Metrics::new();
    let engine = Engine::observed(Settings::default(), vec![metrics.clone()]);
    metrics.watch(&engine);
    let mut connection = Connection::new(&engine, SessionKind::Stream, Caller::local());
    say(&mut connection, HELLO);
    for nth in 0..10 {
        let name = format!("no-such-tool-{nth}");
        say(
            &mut connection,
            &format!(
                r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"{name}"}}}}"#
            ),
        );
    }
    drop(connection);
    let text = metrics.text();
    assert!(!text.contains("no-such-tool"), "{text}");
    let has = |line: &str| assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    has("mcp_server_operation_duration_seconds_count{mcp_method_name=\"tools/call\",\
         gen_ai_operation_name=\"execute_tool\",error_type=\"-32602\",\
         mcp_protocol_version=\"2025-11-25\",network_transport=\"pipe\"} 10");
    has("mcp_server_session_duration_seconds_count 1");
    has("sabir_catalog_items{kind=\"tool\"} 0");
    assert_eq!(lock(&metrics.opened).len(), 0);
}

#[test]
fn the_number_of_series_is_bounded() {
    let metrics = Metrics::new();
    let series = |nth: usize, code| Series {
        method: Method::CallTool,
        name: Some(format!("tool-{nth}").into()),
        error: ErrorType::Code(code),
        revision: Revision::NEWEST,
        transport: TransportKind::Http,
    };
    for nth in 0..MAX_SERIES + 100 {
        metrics.add(series(nth, -32602));
        metrics.add(series(nth, -32603));
    }
    let known = metrics.operations.read().unwrap();
    assert_eq!(known.len(), MAX_SERIES + 1);
    assert!(known.keys().any(|key| key.name.as_deref() == Some(OTHER)));
}
