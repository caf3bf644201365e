//! A request, its params read.

use bytes::Bytes;
use bytestring::ByteString;

use crate::error::Problem;
use crate::id::Id;
use crate::meta::{LastMeta, Meta};
use crate::method::{Fields, Method, Request};
use crate::raw::Raw;
use crate::scan::{Scanner, plain_string};

/// A request, its params read as far as they could be.
#[derive(Debug)]
pub struct ParsedRequest {
    /// What the answer must name.
    pub id: Id,
    /// What is asked for.
    pub method: Method,
    /// What the request says about itself.
    pub meta: Result<Meta, Problem>,
    /// The same as `method`, with its params.
    pub request: Result<Request, Problem>,
    /// What was given as params, as it stands.
    pub params: Option<Raw>,
}

impl ParsedRequest {
    /// Reads the params of a request.
    pub fn read(id: Id, method: Method, params: Option<Raw>) -> Self {
        let (meta, request) = Request::parse(&method, params.as_ref());
        Self { id, method, meta, request, params }
    }

    /// Reads a frame that is a request in which nothing is unusual: all of it in one pass. `None`
    /// if it is something else; then [`crate::decode`] tells what. `last` is what came with the request
    /// before.
    pub fn decode(frame: &Bytes, max_depth: usize, last: &mut LastMeta) -> Option<Self> {
        let frame = ByteString::try_from(frame.clone()).ok()?;
        let (mut version, mut id, mut method, mut params) = (None, None, None, None);
        let mut fields = Fields::default();
        let mut scanner = Scanner::new(&frame, max_depth)?;
        scanner.object(|scanner, key| {
            let slot = match key {
                "jsonrpc" => &mut version,
                "id" => &mut id,
                "method" => &mut method,
                "params" if scanner.is_at_object() => {
                    let begin = scanner.place();
                    fields.scan(scanner, last)?;
                    return params.replace(scanner.since(begin)).is_none().then_some(());
                }
                _ => return None,
            };
            slot.replace(scanner.value()?).is_none().then_some(())
        })?;
        scanner.end()?;
        if version? != r#""2.0""# {
            return None;
        }
        let id = Id::parse(id?)?;
        let method = Method::named(plain_string(method?)?);
        let Some(params) = params else { return Some(Self::read(id, method, None)) };
        let params = Raw::part(&frame, params);
        let (meta, request) = fields.parse(&method, &params, last);
        Some(Self { id, method, meta, request, params: Some(params) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::{Incoming, Message, decode};

    /// A request whose fields come in any order, some of them wrong, missing, or there twice.
    fn nearly_a_request() -> impl Strategy<Value = String> {
        let field = prop::sample::select(vec![
            r#""jsonrpc":"2.0""#,
            r#""jsonrpc": "2.0""#,
            r#""jsonrpc":"1.0""#,
            r#""id":1"#,
            r#""id":-0"#,
            r#""id":"a\u0062""#,
            r#""id":null"#,
            r#""id":1.5"#,
            r#""method":"tools/call""#,
            r#""method" :"nope""#,
            r#""method":"a\/b""#,
            r#""method":7"#,
            r#""params":{"a":[1,{"b":"\"}"}]}"#,
            r#""params":{"_meta":{"progressToken":1},"name":"t","arguments":{}}"#,
            r#""params":{"_meta":{"progressToken":1.5}}"#,
            r#""params":{"_meta":[],"name":"t"}"#,
            r#""params":{"_meta":{},"_meta":{},"name":"t"}"#,
            r#""params":{"name":7}"#,
            r#""params":{"name":"\n"}"#,
            r#""params":{"name":"a","n\u0061me":"b"}"#,
            r#""params":{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"c"}}}"#,
            r#""params":{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}"#,
            r#""params":{"_meta":{"io.modelcontextprotocol/clientInfo":["c","1"]}}"#,
            r#""params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}},"name":"t"}"#,
            r#""params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}"#,
            r#""params":null"#,
            r#""params":[[[[[]]]]]"#,
            r#""p\u0061rams":{}"#,
            r#""result":{}"#,
            r#""extra":0"#,
            "\"x\":\n1",
        ]);
        prop::collection::vec(field, 0..6).prop_map(|fields| format!("{{{}}}", fields.join(",")))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16384))]

        /// What is read in one pass is what is read with care, whatever was said before.
        #[test]
        fn both_ways_read_the_same(
            before in nearly_a_request(),
            text in nearly_a_request(),
            depths in [0..8usize, 0..8usize],
        ) {
            let [depth_before, depth] = depths;
            let mut last = LastMeta::default();
            drop(ParsedRequest::decode(&Bytes::from(before), depth_before, &mut last));
            let frame = Bytes::from(text);
            if let Some(quick) = ParsedRequest::decode(&frame, depth, &mut last) {
                let Ok(Incoming::One(Message::Request { id, method, params })) =
                    decode(&frame, depth)
                else {
                    panic!("no request");
                };
                let careful = ParsedRequest::read(id, method, params);
                prop_assert_eq!(format!("{quick:?}"), format!("{careful:?}"));
            }
        }
    }

    #[test]
    fn what_a_client_says_of_itself_is_known_the_second_time() {
        let mut last = LastMeta::default();
        let mut version = |meta: &str, depth| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{meta}}}"#);
            let asked = ParsedRequest::decode(&Bytes::from(text), depth, &mut last)?;
            asked.meta.unwrap().version.map(|version| version.to_string())
        };
        let said = |version: &str, more: &str| {
            let meta = format!(
                r#"{{"io.modelcontextprotocol/protocolVersion":"{version}","a":{{"b":{{}}}}}}"#
            );
            format!(r#"{{"_meta":{meta}{more}}}"#)
        };
        for round in ["a", "a", "b", "b", "a"] {
            assert_eq!(version(&said(round, ""), 8).as_deref(), Some(round));
        }
        assert_eq!(version(&said("a", ""), 5).as_deref(), Some("a"));
        assert_eq!(version(&said("a", ""), 4), None, "one deeper than allowed, known or not");
        assert_eq!(version(&said("a", "x"), 8), None, "what comes behind it is read");
        assert_eq!(version(&said("a", r#","_meta":{}"#), 8), None, "twice");
        assert_eq!(version("{}", 8), None);
    }

    #[test]
    fn a_usual_request_is_read_in_one_pass() {
        let frame = Bytes::from_static(
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#,
        );
        let decode = |depth| ParsedRequest::decode(&frame, depth, &mut LastMeta::default());
        let asked = decode(2).unwrap();
        assert!(matches!(asked.request, Ok(Request::CallTool(call)) if &*call.name == "t"));
        assert!(decode(1).is_none(), "one deeper than allowed");
    }
}
