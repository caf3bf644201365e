//! The routing of messages that name no call.

use sabir_client::{ClientConfig, ClientEvent, PipeTransport};
use sabir_testkit::local_context;
use sabir_wire::CallTool;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio::io::{ReadHalf, WriteHalf};

use super::*;

/// A legacy server on a pipe, played by the test.
struct Server {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
}

impl Server {
    async fn say(&mut self, message: Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn shake_hands(&mut self) {
        let hello = self.hear().await;
        let result = json!({
            "protocolVersion": hello["params"]["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "s", "version": "1" },
        });
        self.say(json!({ "jsonrpc": "2.0", "id": hello["id"], "result": result })).await;
        assert_eq!(self.hear().await["method"], "notifications/initialized");
    }
}

fn request() -> CallRequest {
    let arguments = Some(Raw::empty_object());
    CallRequest::new(Request::CallTool(CallTool {
        name: "t".into(),
        arguments,
        ..CallTool::default()
    }))
}

fn of(subject: &str) -> Context {
    let caller = Caller::new("issuer", subject);
    Context { caller, capabilities: ClientCapabilities::everything(), ..local_context() }
}

/// A client, and the server at the other end of its pipe.
fn connected() -> (Client, Server) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let (input, output) = tokio::io::split(theirs);
    let capabilities = ClientCapabilities::everything();
    let mut config =
        ClientConfig { capabilities, era: Some(Era::Legacy), ..ClientConfig::default() };
    (config.limits.call_time, config.limits.call_max) = (None, None);
    let client = Client::without_answers(Arc::new(PipeTransport::new(reader, writer)), config);
    (client, Server { lines: BufReader::new(input).lines(), output })
}

/// Ann's call runs, the call of `second` is being sent, and the server asks a question. Returns the
/// question that Ann's call gets, and the next message that the server gets.
async fn ask(second: &str) -> (Option<Routed>, Value) {
    let (client, mut server) = connected();
    let events = client.events();
    let instance = Instance::new(client, None, false, None);
    let first = of("ann");
    let (begun, ()) = tokio::join!(instance.begin(request(), &first, None), server.shake_hands());
    let mut ann = begun.unwrap();
    // Like `begin`, up to the moment before the call is in the table.
    let client = Arc::new(Whose { caller: Caller::new("issuer", second), conversation: None });
    let beginning = Beginning::new(&instance, client);
    let _sent = instance.client.start(request()).await.unwrap();
    let question = json!({
        "jsonrpc": "2.0", "id": "q", "method": "elicitation/create",
        "params": { "message": "?", "requestedSchema": { "type": "object", "properties": {} } },
    });
    server.say(question).await;
    let asked = loop {
        if let ClientEvent::Question(asked) = events.next().await {
            break asked;
        }
    };
    instance.route(Routed::Question(asked));
    drop(beginning);
    let routed = ann.routed().try_recv().ok();
    server.say(json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" })).await;
    let heard = loop {
        let heard = server.hear().await;
        if heard["id"] == "q" || heard["id"] == "p" {
            break heard;
        }
    };
    (routed, heard)
}

#[tokio::test]
async fn a_question_is_not_taken_for_that_of_another_client_while_its_own_call_is_being_sent() {
    let (routed, heard) = ask("bob").await;
    assert!(routed.is_none(), "{routed:?}");
    let reason = heard["error"]["message"].as_str().unwrap_or_default();
    assert!(reason.contains("calls of several callers"), "{heard}");
    // Another call of the same client does not prevent the routing.
    let (routed, heard) = ask("ann").await;
    assert!(matches!(routed, Some(Routed::Question(_))), "{routed:?}");
    assert_eq!(heard["id"], "p", "the question waits: {heard}");
}

#[tokio::test]
async fn what_comes_before_its_call_is_in_the_table_is_kept_for_it() {
    let (client, _server) = connected();
    let instance = Instance::new(client, None, false, None);
    let log = || {
        let data = Raw::empty_object();
        Routed::Notification { method: "notifications/x".to_owned(), params: Some(data) }
    };
    let ann = Arc::new(Whose { caller: Caller::local(), conversation: None });
    let beginning = Beginning::new(&instance, ann);
    for _ in 0..MAX_ROUTED + 9 {
        instance.route(log());
    }
    assert_eq!(instance.lock().early.len(), MAX_ROUTED);
    drop(beginning);
    assert_eq!(instance.lock().early.len(), 0, "the call was not sent");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_lists_anything_does_not_keep_others_from_being_listed() {
    let (client, mut server) = connected();
    let open = async { client.open().await.unwrap() };
    let (known, ()) = tokio::join!(open, server.shake_hands());
    let listed = super::super::catalog::list(&client, &known, None).await;
    assert!(matches!(listed, Err(CallError::Timeout(_))), "{listed:?}");
}
