use proptest::prelude::*;

use super::*;

const DEPTH: usize = 16;

fn read(text: &str) -> Result<Message, Malformed> {
    match decode(&Bytes::copy_from_slice(text.as_bytes()), DEPTH)? {
        Incoming::One(message) => Ok(message),
        Incoming::Batch(_) => panic!("a batch"),
    }
}

fn refusal(text: &str) -> Malformed {
    read(text).expect_err(text)
}

#[test]
fn the_kind_is_told_by_what_is_there() {
    assert!(matches!(
        read(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
        Ok(Message::Request { method: Method::Ping, params: None, .. })
    ));
    assert!(matches!(
        read(r#"{"method":"notifications/initialized","jsonrpc":"2.0"}"#),
        Ok(Message::Notification { method: Method::Initialized, .. })
    ));
    assert!(matches!(
        read(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
        Ok(Message::Response { result: Ok(_), .. })
    ));
    assert!(matches!(
        read(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}"#),
        Ok(Message::Response { result: Err(_), .. })
    ));
}

#[test]
fn params_are_not_copied() {
    let frame = Bytes::from_static(
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"n":123456789012345678901}}"#,
    );
    let Ok(Incoming::One(Message::Request { params: Some(params), .. })) = decode(&frame, DEPTH)
    else {
        panic!("not a request")
    };
    assert_eq!(params.text(), r#"{"n":123456789012345678901}"#);
    assert!(frame.as_ptr_range().contains(&params.as_bytes().as_ptr()));
}

#[test]
fn a_message_of_several_lines_is_read_as_if_it_were_one() {
    let text = "{\r\n\"jsonrpc\":\"2.0\",\n\"id\":1,\"method\":\"ping\",\"params\":{\n\"a\":1}}\n";
    let Message::Request { params: Some(params), .. } = read(text).unwrap() else { panic!("none") };
    assert_eq!(params.text(), r#"{ "a":1}"#);
    let broken = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\nng\"}";
    assert!(matches!(refusal(broken).kind, MalformedKind::Syntax(_)));
}

#[test]
fn a_null_id_is_a_request_and_null_params_are_none() {
    let message = read(r#"{"jsonrpc":"2.0","id":null,"method":"ping","params":null}"#).unwrap();
    assert_eq!(message, Message::Request { id: Id::NULL, method: Method::Ping, params: None });
}

#[test]
fn what_is_not_json_is_a_syntax_error() {
    for text in ["", "{", r#"{"jsonrpc":"2.0","id":1,"#, "[1,", "nope", "{} {}", r#"{"a":01}"#] {
        assert!(matches!(refusal(text).kind, MalformedKind::Syntax(_)), "{text}");
    }
    let frame = Bytes::from_static(b"{\"a\":\"\xff\"}");
    assert!(matches!(decode(&frame, DEPTH).unwrap_err().kind, MalformedKind::Syntax(_)));
}

#[test]
fn what_is_json_but_no_message_says_why() {
    use MalformedKind::{Id as BadId, NoMethod, NotAnObject, Shape, Version};
    for (text, kind) in [
        ("1", NotAnObject),
        (r#""text""#, NotAnObject),
        (r#"{"id":1,"method":"ping"}"#, Version),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, Version),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, BadId),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, BadId),
        (r#"{"jsonrpc":"2.0","id":1}"#, NoMethod),
        (r#"{"jsonrpc":"2.0"}"#, NoMethod),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, Shape("`method` must be a string")),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, Shape("a member appears twice")),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
            Shape("neither a request nor a response"),
        ),
    ] {
        assert_eq!(refusal(text).kind, kind, "{text}");
        assert!(refusal(text).answerable, "{text}");
    }
}

#[test]
fn a_wrong_request_keeps_its_id() {
    assert_eq!(refusal(r#"{"jsonrpc":"1.0","id":"x","method":"ping"}"#).id, Some("x".into()));
    assert_eq!(refusal(r#"{"jsonrpc":"2.0","id":7}"#).id, Some(7.into()));
    let twice = r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{},"params":{}}"#;
    assert_eq!(refusal(twice).id, Some(7.into()));
    assert_eq!(refusal(r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}"#).id, None);
}

#[test]
fn wrong_responses_and_notifications_are_not_answered() {
    let deep = |head: &str| format!("{head}{}{}}}", "[".repeat(DEPTH), "]".repeat(DEPTH));
    let deep = [
        deep(r#"{"jsonrpc":"2.0","id":1,"result":"#),
        deep(r#"{"jsonrpc":"2.0","method":"notifications/x","params":"#),
    ];
    for text in deep.iter().map(String::as_str).chain([
        r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":{},"params":{}}"#,
        r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":"text"}"#,
        r#"{"jsonrpc":"2.0","id":[],"result":{}}"#,
        r#"{"method":"notifications/initialized"}"#,
    ]) {
        assert!(!refusal(text).answerable, "{text}");
    }
}

#[test]
fn depth_is_bounded_at_its_edge_and_strings_do_not_count() {
    let nested = |depth: usize| {
        let inner = depth - 1;
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{}{}}}"#,
            "[".repeat(inner),
            "]".repeat(inner)
        )
    };
    assert!(read(&nested(DEPTH)).is_ok());
    let too_deep = refusal(&nested(DEPTH + 1));
    assert_eq!((too_deep.kind, too_deep.id), (MalformedKind::TooDeep, Some(1.into())));
    let text =
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"[[[[[[[[[[[[[[[[[[[\"[[[[[[["}}"#;
    assert!(read(text).is_ok());
}

#[test]
fn a_batch_is_read_part_by_part() {
    let frame = Bytes::from_static(br#" [{"jsonrpc":"2.0","id":1,"method":"ping"}, 1, {}]"#);
    let Ok(Incoming::Batch(parts)) = decode(&frame, DEPTH) else { panic!("not a batch") };
    assert!(parts[0].is_ok());
    assert_eq!(parts[1].as_ref().unwrap_err().kind, MalformedKind::NotAnObject);
    assert_eq!(parts[2].as_ref().unwrap_err().kind, MalformedKind::NoMethod);
}

#[test]
fn a_batch_may_have_so_many_messages_and_no_more() {
    let batch = |count: usize| format!("[{}]", vec!["{}"; count].join(",")).into();
    let Ok(Incoming::Batch(parts)) = decode(&batch(MAX_BATCH), DEPTH) else { panic!("no batch") };
    assert_eq!(parts.len(), MAX_BATCH);
    for count in [MAX_BATCH + 1, 100 * MAX_BATCH] {
        assert_eq!(decode(&batch(count), DEPTH).unwrap_err().kind, MalformedKind::TooMany);
    }
    let broken = format!("[{}", vec!["{}"; MAX_BATCH + 9].join(",")).into();
    assert!(matches!(decode(&broken, DEPTH).unwrap_err().kind, MalformedKind::Syntax(_)));
}

#[test]
fn only_the_part_of_a_batch_that_is_too_deep_is_refused() {
    let deep = format!("{}{}", "[".repeat(DEPTH - 1), "]".repeat(DEPTH - 1));
    let part = |id: u8, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping","params":{params}}}"#)
    };
    let frame = format!("[{},{}]", part(1, &deep), part(2, &deep[1..deep.len() - 1]));
    let Ok(Incoming::Batch(parts)) = decode(&frame.into(), DEPTH) else { panic!("not a batch") };
    assert_eq!(parts[0].as_ref().unwrap_err().kind, MalformedKind::TooDeep);
    assert_eq!(parts[0].as_ref().unwrap_err().id, Some(1.into()));
    assert!(parts[1].is_ok());
}

#[test]
fn written_messages_read_back() {
    let raw = Raw::parse(r#"{"a":1}"#).unwrap();
    let request = write_request(&7.into(), "ping", Some(&raw));
    assert_eq!(
        decode(&request, DEPTH).unwrap(),
        Incoming::One(Message::Request { id: 7.into(), method: Method::Ping, params: Some(raw) })
    );
    let error = ErrorObject::new(-1, "no");
    assert_eq!(
        decode(&write_error(None, &error), DEPTH).unwrap(),
        Incoming::One(Message::Response { id: None, result: Err(error) })
    );
    assert_eq!(write_batch(&[b"1", b"2"]).as_ref(), b"[1,2]");
}

/// JSON values of every kind, among them the names that envelopes use.
fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        "[a-z\\\\\"\u{e9}]{0,6}".prop_map(Into::into),
        Just("2.0".into()),
    ];
    let key = prop_oneof![
        Just("jsonrpc".to_owned()),
        Just("id".to_owned()),
        Just("method".to_owned()),
        Just("params".to_owned()),
        Just("result".to_owned()),
        Just("error".to_owned()),
        "[a-z]{0,3}",
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            proptest::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|pairs| serde_json::Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes.into(), DEPTH);
    }

    #[test]
    fn arbitrary_json_is_a_message_or_says_why(value in json()) {
        let text = value.to_string();
        if let Err(malformed) = decode(&Bytes::from(text), DEPTH) {
            let is_response = value.get("method").is_none()
                && (value.get("result").is_some() || value.get("error").is_some());
            prop_assert!(!(is_response && malformed.answerable));
            let is_syntax = matches!(malformed.kind, MalformedKind::Syntax(_));
            prop_assert!(!is_syntax, "valid JSON was called invalid");
        }
    }
}
