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

/// A call of `first` runs, the call of `second` is being sent, and the server asks a question. Returns the
/// question that the running call gets, and the next message that the server gets.
async fn ask(first: Caller, second: Caller) -> (Option<Routed>, Value) {
    let (client, mut server) = connected();
    let events = client.events();
    let instance = Instance::new(client, None, false, None);
    let first = Context { caller: first, ..of("") };
    let (begun, ()) = tokio::join!(instance.begin(request(), &first, None), server.shake_hands());
    let mut running = begun.unwrap();
    // Like `begin`, up to the moment before the call is in the table.
    let client = Arc::new(Whose { caller: second, conversation: None });
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
    let routed = running.routed().try_recv().ok();
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
    let ann = || Caller::new("issuer", "ann");
    // Clients without a token cannot be told apart.
    for (first, second) in
        [(ann(), Caller::new("issuer", "bob")), (Caller::anonymous(), Caller::anonymous())]
    {
        let (routed, heard) = ask(first, second).await;
        assert!(routed.is_none(), "{routed:?}");
        let reason = heard["error"]["message"].as_str().unwrap_or_default();
        assert!(reason.contains("calls of several callers"), "{heard}");
    }
    // Another call of the same client does not prevent the routing.
    for (first, second) in [(ann(), ann()), (Caller::local(), Caller::local())] {
        let (routed, heard) = ask(first, second).await;
        assert!(matches!(routed, Some(Routed::Question(_))), "{routed:?}");
        assert_eq!(heard["id"], "p", "the question waits: {heard}");
    }
}

fn log() -> Value {
    let params = json!({ "level": "error", "data": "of ann" });
    json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params })
}

/// The next log message that names no call.
async fn logged(events: &sabir_client::Events) -> Routed {
    loop {
        if let ClientEvent::Log { calls, message } = events.next().await {
            return Routed::Log { calls, message };
        }
    }
}

#[tokio::test]
async fn what_comes_before_its_call_is_in_the_table_is_kept_for_it() {
    let (client, mut server) = connected();
    let events = client.events();
    let instance = Instance::new(client, None, false, None);
    let ann = || Arc::new(Whose { caller: Caller::local(), conversation: None });
    let beginning = [Beginning::new(&instance, ann()), Beginning::new(&instance, ann())];
    let starting =
        async { [instance.client.start(request()).await, instance.client.start(request()).await] };
    let (_sent, ()) = tokio::join!(starting, server.shake_hands());
    for _ in 0..MAX_ROUTED + 9 {
        server.say(log()).await;
        instance.route(logged(&events).await);
    }
    assert_eq!(instance.lock().early.len(), MAX_ROUTED);
    drop(beginning);
    assert_eq!(instance.lock().early.len(), 0, "the calls were not sent");
}

#[tokio::test]
async fn a_log_message_is_not_taken_for_that_of_a_call_that_runs_when_its_own_has_ended() {
    for (other, is_heard) in [("bob", false), ("ann", true)] {
        let (client, mut server) = connected();
        let events = client.events();
        let instance = Instance::new(client, None, false, None);
        let (first, second) = (of("ann"), of(other));
        let begin = instance.begin(request(), &first, None);
        let (ann, ()) = tokio::join!(begin, server.shake_hands());
        let mut running = instance.begin(request(), &second, None).await.unwrap();
        for _ in 0..2 {
            server.say(log()).await;
        }
        let (late, queued) = (logged(&events).await, logged(&events).await);
        let mut ann = ann.unwrap();
        // It waits for the call when the call ends.
        let sender = instance.lock().calls[&ann.key()].sender.clone();
        sender.try_send(queued).unwrap();
        assert_eq!(ann.routed().len(), 1);
        drop(ann);
        instance.route(late);
        assert_eq!(running.routed().try_recv().is_ok(), is_heard, "{other}");
        assert!(running.routed().try_recv().is_err(), "{other}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_lists_anything_does_not_keep_others_from_being_listed() {
    let (client, mut server) = connected();
    let open = async { client.open().await.unwrap() };
    let (known, ()) = tokio::join!(open, server.shake_hands());
    let listed = super::super::catalog::list(&client, &known, None).await;
    assert!(matches!(listed, Err(CallError::Timeout(_))), "{listed:?}");
}

#[tokio::test]
async fn the_log_level_ends_with_the_link() {
    let (client, _server) = connected();
    let instance = Instance::new(client, None, false, None);
    instance.lock().level = Some(Level::Debug);
    instance.on_closed();
    assert_eq!(instance.lock().level, None);
}
