use std::time::Duration;

use sabir_client::PipeTransport;
use sabir_registry::Registry;
use sabir_testkit::local_context;
use sabir_wire::types::ContentKind;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

/// An editor whose one tool answers after an hour. The method of every message is kept.
async fn editor(pipe: DuplexStream, heard: Arc<Mutex<Vec<String>>>) {
    let (reader, mut writer) = tokio::io::split(pipe);
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let method = message["method"].as_str().unwrap_or_default();
        heard.lock().unwrap().push(method.to_owned());
        let result = match method {
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} }, "serverInfo": { "name": "e", "version": "1" },
            }),
            "tools/list" => {
                json!({ "tools": [{ "name": "openDiff", "inputSchema": { "type": "object" } }] })
            }
            "tools/call" => {
                tokio::time::sleep(HOUR).await;
                json!({ "content": [{ "type": "text", "text": "FILE_SAVED" }] })
            }
            _ => continue,
        };
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        writer.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    }
}

/// The paused clock advances whenever the runtime is idle.
#[tokio::test(start_paused = true)]
async fn a_call_stays_open_for_an_hour() {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let heard = Arc::default();
    tokio::spawn(editor(theirs, Arc::clone(&heard)));
    let (reader, writer) = tokio::io::split(ours);
    let source = HostSource(Host::new(Arc::new(PipeTransport::new(reader, writer))));
    let registry = Registry::new(Raw::empty_object(), 100);
    registry.add(Arc::new(source.clone())).unwrap();
    for starting in registry.start() {
        starting.await.unwrap();
    }
    let begin = tokio::time::Instant::now();
    let context = local_context();
    let call = ToolCall { name: "openDiff".into(), arguments: Raw::empty_object(), context };
    let Outcome::Done(reply) = source.call_tool(call).await.unwrap() else { panic!("a result") };
    assert!(begin.elapsed() >= HOUR);
    assert_eq!(reply.content[0].kind, ContentKind::Text("FILE_SAVED".into()));
    let heard = heard.lock().unwrap();
    assert!(!heard.iter().any(|method| method == "notifications/cancelled"), "{heard:?}");
}

/// An editor that sends many notifications during its second `tools/list`, and then exits.
async fn dying_editor(pipe: DuplexStream) {
    let (reader, mut writer) = tokio::io::split(pipe);
    let mut lines = BufReader::new(reader).lines();
    let mut lists = 0;
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} }, "serverInfo": { "name": "e", "version": "1" },
            }),
            "tools/list" if lists == 0 => json!({ "tools": [] }),
            "tools/list" => {
                for _ in 0..3_000 {
                    let moved = json!({ "jsonrpc": "2.0", "method": "selection_changed" });
                    writer.write_all(format!("{moved}\n").as_bytes()).await.unwrap();
                }
                return;
            }
            _ => continue,
        };
        lists += usize::from(message["method"] == "tools/list");
        let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        writer.write_all(format!("{answer}\n{changed}\n").as_bytes()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_host_is_noticed_however_much_it_said_before() {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    tokio::spawn(dying_editor(theirs));
    let (reader, writer) = tokio::io::split(ours);
    let source = HostSource(Host::new(Arc::new(PipeTransport::new(reader, writer))));
    let registry = Registry::new(Raw::empty_object(), 100);
    registry.add(Arc::new(source.clone())).unwrap();
    for starting in registry.start() {
        starting.await.unwrap();
    }
    tokio::time::timeout(HOUR, source.0.ended()).await.unwrap();
}
