//! A request with parsed params.

use bytes::Bytes;
use bytestring::ByteString;

use crate::error::Problem;
use crate::id::Id;
use crate::meta::Meta;
use crate::method::Method;
use crate::raw::Raw;
use crate::request::{Fields, Request};
use crate::scan::{Scanner, plain_string};

/// A request with parsed params. Parse errors are kept for the session to answer.
#[derive(Debug)]
pub struct ParsedRequest {
    /// The id that the response repeats.
    pub id: Id,
    /// The requested method.
    pub method: Method,
    /// The metadata of the request.
    pub meta: Result<Meta, Problem>,
    /// The request with its params.
    pub request: Result<Request, Problem>,
    /// The params as they were sent.
    pub params: Option<Raw>,
}

impl ParsedRequest {
    /// Reads the params of a request.
    pub fn read(id: Id, method: Method, params: Option<Raw>) -> Self {
        let (meta, request) = Request::parse(&method, params.as_ref());
        Self { id, method, meta, request, params }
    }

    /// Reads a plain request in one pass. `None` if the frame is anything else or needs a full JSON
    /// parser (escapes in keys, duplicate fields, a batch, a mistake): then [`crate::decode`] reads
    /// it.
    pub fn decode(frame: &Bytes, max_depth: usize) -> Option<Self> {
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
                    fields.scan(scanner)?;
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
        let (meta, request) = fields.parse(&method, &params);
        Some(Self { id, method, meta, request, params: Some(params) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::{Incoming, Message, decode};

    /// A request whose fields come in any order, some of them wrong, missing, or duplicated.
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
            r#""params":{"name":"t","x-a":1.0,"task":{},"\u00e9":[],"uri":"a:b"}"#,
            r#""params":{"x-b":{"z":1,"a":2},"name":"t","x-b":null,"level":7}"#,
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

        /// The one-pass reader agrees with the full parser.
        #[test]
        fn both_readers_agree(text in nearly_a_request(), depth in 0..8usize) {
            let frame = Bytes::from(text);
            if let Some(quick) = ParsedRequest::decode(&frame, depth) {
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
    fn a_usual_request_is_read_in_one_pass() {
        let frame = Bytes::from_static(
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#,
        );
        let decode = |depth| ParsedRequest::decode(&frame, depth);
        let asked = decode(2).unwrap();
        assert!(matches!(asked.request, Ok(Request::CallTool(call)) if &*call.name == "t"));
        assert!(decode(1).is_none(), "one deeper than allowed");
    }
}
