//! Entry points of fuzzers and property tests: the header rules, and our reader of plain requests
//! beside hyper.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use sabir_engine::{Engine, Settings as EngineSettings};
use sabir_registry::{Catalog, Offer, Outcome, Pending, Registry, Source, ToolCall};
use sabir_wire::types::{Content, Tool, ToolReply};
use sabir_wire::{Incoming, Message, ParsedRequest, Raw, Request, decode};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::accept::{check, named_revision};
use super::listener::Peer;
use super::server::{Hyper, serve_connection, serve_with_hyper};
use super::service::HttpService;
use super::settings::Settings;
use super::socket::Socket;

/// Lines of `name: value`, an empty line, and a body. Requests that pass the rules have headers
/// that repeat the body; no input makes the rules panic.
pub fn header_rules(bytes: &[u8]) {
    let (head, body) = split(bytes);
    let Ok(Incoming::One(Message::Request { id, method, params })) =
        decode(&Bytes::copy_from_slice(body), 64)
    else {
        return;
    };
    let headers = read_headers(head);
    let asked = ParsedRequest::read(id, method, params);
    if check(&headers, named_revision(&headers), &asked, &catalog()).is_err() {
        return;
    }
    let says = |name: &str, body: &str| {
        let values = headers.get_all(name);
        assert!(values.iter().next().is_some(), "{name} is missing, and that passed");
        values.iter().all(|value| value.as_bytes() == body.as_bytes())
    };
    assert!(says("mcp-method", asked.method.name()), "another method passed");
    if let Some(version) = asked.meta.as_ref().ok().and_then(|meta| meta.version.as_deref()) {
        assert!(says("mcp-protocol-version", version), "another revision passed");
    }
    if let Ok(Request::CallTool(call)) = &asked.request {
        let encoded =
            headers.get("mcp-name").is_some_and(|name| name.as_bytes().starts_with(b"=?"));
        assert!(encoded || says("mcp-name", &call.name), "another name passed");
    }
}

fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.windows(2).position(|pair| pair == b"\n\n") {
        Some(at) => (&bytes[..at], &bytes[at + 2..]),
        None => (b"", bytes),
    }
}

fn read_headers(head: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in head.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
        {
            headers.append(name, value);
        }
    }
    headers
}

/// Requests of one connection, in pieces that arrive one after the other: the server that begins
/// with the plain reader gives the same answers as hyper alone, except for dates and session ids.
///
/// In memory and on one thread, so that the same bytes always give the same answers.
pub fn plain_as_hyper(pieces: &[&[u8]]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return };
    let [plain, hyper] = [true, false].map(|is_plain| runtime.block_on(ask(pieces, is_plain)));
    let sent = || String::from_utf8_lossy(&pieces.concat()).into_owned();
    assert_eq!(plain, hyper, "the readers disagree about:\n{}", sent());
}

/// Arbitrary bytes as requests, split at the first NUL byte.
pub fn plain_requests(bytes: &[u8]) {
    let cut = bytes.iter().position(|byte| *byte == 0);
    match cut {
        None => plain_as_hyper(&[bytes]),
        Some(cut) => plain_as_hyper(&[&bytes[..cut], &bytes[cut + 1..]]),
    }
}

/// After this many polls without an answer, no answer is expected.
const QUIET: usize = 64;

async fn ask(pieces: &[&[u8]], is_plain: bool) -> String {
    let engine = Engine::new(EngineSettings::default());
    let added = engine.registry().add(Arc::new(Mirror));
    assert!(added.is_ok(), "{added:?}");
    let state = HttpService::new(engine, Settings::default()).state;
    let (mut client, server) = tokio::io::duplex(1 << 20);
    let serving = tokio::spawn(async move {
        let hyper = Hyper::new(&state.settings.limits);
        if is_plain {
            return serve_connection(&state, &hyper, server, None, Peer::default()).await;
        }
        let connection = state.connect(None, Peer::default());
        let Some(activity) = connection.activity.clone() else { return };
        let socket = Socket::new(server, activity.clone());
        serve_with_hyper(connection, &activity, &hyper, socket, None).await;
    });
    let mut answers = Vec::new();
    // hyper refuses a broken head at its start or at its end, depending on the sizes of the reads.
    // So every head is ended.
    for piece in pieces.iter().chain([&b"\r\n\r\n".as_slice()]) {
        // A server that has closed does not read the rest.
        let _ = client.write_all(piece).await;
        let mut quiet = 0;
        while quiet < QUIET {
            tokio::task::yield_now().await;
            let mut reading = pin!(client.read_buf(&mut answers));
            let read = poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await;
            quiet = if matches!(read, Poll::Ready(Ok(1..))) { 0 } else { quiet + 1 };
        }
    }
    serving.abort();
    without_times(&String::from_utf8_lossy(&answers))
}

/// The answers, without the values that differ each time.
fn without_times(answers: &str) -> String {
    let lines = answers.split_inclusive('\n').map(|line| {
        let varies = line.starts_with("date: ") || line.starts_with("mcp-session-id: ");
        if varies { line.split_at(line.find(':').unwrap_or(0)).0 } else { line }
    });
    // hyper may choose another order of the headers.
    let mut lines: Vec<_> = lines.collect();
    lines.sort_unstable();
    lines.concat()
}

/// One tool whose arguments are repeated in headers, one that echoes and one that waits.
struct Mirror;

impl Source for Mirror {
    fn offer(&self) -> Offer {
        let schema = r#"{"type":"object","properties":{
            "text":{"type":"string","x-mcp-header":"Text"},
            "count":{"type":"integer","x-mcp-header":"Count"},
            "where":{"type":"object","properties":{"dry":{"type":"boolean","x-mcp-header":"Dry"}}}}}"#;
        let schema = Raw::parse(schema).unwrap_or_else(|_| Raw::empty_object());
        let any = Raw::parse(r#"{"type":"object"}"#).unwrap_or_else(|_| Raw::empty_object());
        let tools = vec![
            Tool::new("mirror", "Repeats", schema),
            Tool::new("echo", "Echoes", any.clone()),
            Tool::new("wait", "Echoes, a moment later", any),
        ];
        Offer { tools, ..Offer::default() }
    }

    fn call_tool(&self, call: ToolCall) -> Pending<ToolReply> {
        Box::pin(async move {
            if &*call.name == "wait" {
                tokio::task::yield_now().await;
            }
            let content = vec![Content::text(call.arguments.text())];
            Ok(Outcome::Done(ToolReply { content, ..ToolReply::default() }))
        })
    }
}

/// A catalog with a tool whose arguments are repeated in headers.
fn catalog() -> Arc<Catalog> {
    static CATALOG: OnceLock<Arc<Catalog>> = OnceLock::new();
    let build = || {
        let registry = Registry::new(Raw::empty_object(), 10);
        let added = registry.add(Arc::new(Mirror));
        assert!(added.is_ok(), "{added:?}");
        registry.snapshot()
    };
    CATALOG.get_or_init(build).clone()
}
