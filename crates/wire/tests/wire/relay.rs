//! Results of another server are passed on unparsed.

use sabir_wire::types::{Relayed, ServerResult};
use sabir_wire::{Id, Method, Raw, Revision, render};

use crate::values::raw;

fn relayed(method: Method, json: &str, revision: Revision) -> String {
    let result = ServerResult::Relayed(Relayed { method, json: raw(json) });
    let server = raw(r#"{"name":"s","version":"1"}"#);
    let frame = render::response(&Id::from(1), &result, revision, &server);
    Raw::parse(frame).unwrap().member("result").unwrap().text().to_owned()
}

#[test]
fn only_members_at_the_top_differ_since_2025_11_25() {
    let json = r#"{"x":1.0,"resultType":"complete", "content":[ {"text":"\u0061","type":"text"} ],"structuredContent":[1e400],"_meta":{"a":-0,"io.modelcontextprotocol/serverInfo":{"name":"up","version":"2"}}}"#;
    assert_eq!(
        relayed(Method::CallTool, json, Revision::NEWEST),
        r#"{"x":1.0,"resultType":"complete","content":[ {"text":"\u0061","type":"text"} ],"structuredContent":[1e400],"_meta":{"a":-0,"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#
    );
    assert_eq!(
        relayed(Method::CallTool, json, Revision::V2025_11_25),
        r#"{"x":1.0,"content":[ {"text":"\u0061","type":"text"} ],"_meta":{"a":-0}}"#
    );
}

#[test]
fn an_older_client_gets_what_its_revision_has() {
    let json = r#"{"resultType":"complete","content":[{"type":"resource_link","name":"a","uri":"a:b"}],"y":1.0}"#;
    assert_eq!(
        relayed(Method::CallTool, json, Revision::V2025_03_26),
        r#"{"content":[{"type":"text","text":"a: a:b"}],"y":1.0}"#
    );
    let read =
        r#"{"contents":[{"uri":"a:b","text":"t","_meta":{}}],"ttlMs":5,"cacheScope":"public"}"#;
    assert_eq!(
        relayed(Method::ReadResource, read, Revision::V2024_11_05),
        r#"{"contents":[{"uri":"a:b","text":"t"}]}"#
    );
    assert_eq!(
        relayed(Method::ReadResource, read, Revision::V2025_11_25),
        r#"{"contents":[{"uri":"a:b","text":"t","_meta":{}}]}"#
    );
    let wrong = r#"{"content":"no list","resultType":"complete"}"#;
    assert_eq!(relayed(Method::CallTool, wrong, Revision::V2024_11_05), r#"{"content":"no list"}"#);
}
