//! The header rules, for fuzzers: arbitrary bytes as a request with headers.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use sabir_registry::{Catalog, Offer, Registry, Source};
use sabir_wire::types::Tool;
use sabir_wire::{Incoming, Message, ParsedRequest, Raw, Request, decode};

use super::accept::{check, named_revision};

/// Lines of `name: value`, an empty line, and a body. Whatever passes the rules has headers that
/// say what the body says; nothing makes them fail.
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

/// A catalog with one tool whose arguments are repeated in headers.
fn catalog() -> Arc<Catalog> {
    struct Mirror;
    impl Source for Mirror {
        fn offer(&self) -> Offer {
            let schema = r#"{"type":"object","properties":{
                "text":{"type":"string","x-mcp-header":"Text"},
                "count":{"type":"integer","x-mcp-header":"Count"},
                "where":{"type":"object","properties":{"dry":{"type":"boolean","x-mcp-header":"Dry"}}}}}"#;
            let schema = Raw::parse(schema).unwrap_or_else(|_| Raw::empty_object());
            Offer { tools: vec![Tool::new("mirror", "Repeats", schema)], ..Offer::default() }
        }
    }
    static CATALOG: OnceLock<Arc<Catalog>> = OnceLock::new();
    let build = || {
        let registry = Registry::new(Raw::empty_object(), 10);
        let added = registry.add(Arc::new(Mirror));
        assert!(added.is_ok(), "{added:?}");
        registry.snapshot()
    };
    CATALOG.get_or_init(build).clone()
}
