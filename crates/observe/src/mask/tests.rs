use serde_json::json;

use super::*;

fn masked(masker: &Masker, message: &Value, schema: &Value) -> Value {
    let masked = masker.apply(1, &message.to_string().into(), |_| Some(schema.clone()));
    serde_json::from_str(&masked.json.unwrap()).unwrap()
}

#[test]
fn secrets_are_masked_by_the_schema_and_wherever_they_come_up_again() {
    let schema = json!({
        "properties": {
            "user": { "type": "string" },
            "password": { "type": "string", "format": "password" },
            "pin": { "type": "number", "writeOnly": true },
            "more": { "items": { "$ref": "#/$defs/key" } },
            "either": { "oneOf": [{ "type": "null" }, { "$ref": "#/$defs/key" }] },
        },
        "$defs": { "key": { "properties": { "key": { "writeOnly": true } } } },
    });
    let masker = Masker::default();
    let call = json!({ "method": "tools/call", "params": { "name": "t", "arguments": {
        "user": "ann", "password": "open sesame", "pin": 1234,
        "more": [{ "key": "a", "id": 1 }], "either": { "key": "b" },
    } } });
    let arguments = masked(&masker, &call, &schema)["params"]["arguments"].take();
    let expected = json!({
        "user": "ann", "password": MASK, "pin": MASK,
        "more": [{ "key": MASK, "id": 1 }], "either": { "key": MASK },
    });
    assert_eq!(arguments, expected);
    let echo = json!({ "result": { "content": [{ "text": "got open sesame from a" }] } });
    let echo = masked(&masker, &echo, &schema);
    assert_eq!(echo["result"]["content"][0]["text"], format!("got {MASK} from a"));
}

#[test]
fn secrets_are_found_beside_what_cannot_be_read() {
    let schema = json!({ "properties": { "s": { "writeOnly": true } } });
    let masker = Masker::default();
    let rest = r#""half":"a\ud83d","pair":"\ud83d\ude00 \\ud83d \"","n":[1e999,-1E+999,-2.5]"#;
    let call = format!(
        r#"{{"method":"tools/call","params":{{"name":"t","arguments":{{"s":"hunter22",{rest}}}}}}}"#
    );
    let masked = masker.apply(1, &call.into(), |_| Some(schema.clone()));
    let json = masked.json.unwrap();
    assert!(!json.contains("hunter22"), "{json}");
    let shown: Value = serde_json::from_str(&json).unwrap();
    let expected = json!({
        "s": MASK, "half": "a?", "pair": "\u{1f600} \\ud83d \"", "n": [0, 0, -2.5],
    });
    assert_eq!(shown["params"]["arguments"], expected);
    let echo = masker.apply(1, &Bytes::from_static(br#"{"n":1e999,"x":"hunter22"}"#), |_| None);
    assert!(!echo.json.unwrap().contains("hunter22"));
    // Where nothing is masked, every byte stays.
    let odd = Bytes::from_static(br#"{"x":"\ud83d","n":1e999}"#);
    assert_eq!(masker.apply(1, &odd, |_| None).json.unwrap().as_bytes(), odd);
    for broken in ["{\"a\":\"\\", "\\", "-", "{\"a\":\"\\ud8"] {
        let broken = Bytes::from_static(broken.as_bytes());
        assert!(masker.apply(1, &broken, |_| None).json.is_none());
    }
}

#[test]
fn what_has_no_secrets_is_kept_as_it_was_written() {
    let text = r#"{"id":  12345678901234567890123, "x":1.0}"#;
    let masked = Masker::default().apply(1, &Bytes::from_static(text.as_bytes()), |_| None);
    assert_eq!((masked.json.as_deref(), masked.count), (Some(text), 0));
    let broken = Masker::default().apply(1, &Bytes::from_static(b"{"), |_| None);
    assert!(broken.json.is_none());
}

#[test]
fn the_number_of_remembered_secrets_is_bounded() {
    let (masker, schema) =
        (Masker::default(), json!({ "properties": { "s": { "writeOnly": true } } }));
    for nth in 0..MAX_SECRETS + 10 {
        let secret = format!("secret-{nth}");
        let call = json!({ "method": "tools/call", "params": { "name": "t", "arguments": { "s": secret } } });
        masked(&masker, &call, &schema);
    }
    assert_eq!(masker.lock().secrets.len(), MAX_SECRETS);
}

#[test]
fn the_bytes_of_remembered_secrets_are_bounded() {
    let (masker, schema) =
        (Masker::default(), json!({ "properties": { "s": { "writeOnly": true } } }));
    let send = |secret: &str| {
        let call = json!({ "method": "tools/call", "params": { "name": "t", "arguments": { "s": secret } } });
        let shown = masked(&masker, &call, &schema);
        assert_eq!(shown["params"]["arguments"]["s"], MASK);
    };
    send("the first");
    // One that is too long is not remembered, and no other is forgotten for it.
    send(&"x".repeat(MAX_BYTES + 1));
    assert_eq!(masker.lock().secrets, ["the first"]);
    for nth in 0..5 {
        send(&nth.to_string().repeat(MAX_BYTES / 4));
    }
    let secrets = masker.lock().secrets.clone();
    let starts: String = secrets.iter().map(|secret| &secret[..1]).collect();
    assert_eq!(starts, "1234");
}

#[test]
fn headers_are_masked_by_their_names() {
    let headers = json!({ "authorization": "Bearer x", "mcp-session-id": "y", "accept": "z", "mcp-param-a": "w", "x-jwt": "j", "cf-access-jwt-assertion": "j", "x-credentials": "c", "x-passwd": "p", "x-amzn-oidc-data": "o" });
    let Value::Object(mut headers) = headers else { unreachable!() };
    Masker::default().apply_to_headers(&mut headers, true);
    let expected = json!({ "authorization": MASK, "mcp-session-id": MASK, "accept": "z", "mcp-param-a": MASK, "x-jwt": MASK, "cf-access-jwt-assertion": MASK, "x-credentials": MASK, "x-passwd": MASK, "x-amzn-oidc-data": MASK });
    assert_eq!(Value::Object(headers), expected);
}

#[test]
fn a_secret_in_json_inside_a_text_is_masked() {
    let schema = json!({ "properties": { "s": { "writeOnly": true } } });
    let masker = Masker::default();
    let secret = "SECRET\"x\\y\u{e9}\u{1f600}";
    let call =
        json!({ "method": "tools/call", "params": { "name": "t", "arguments": { "s": secret } } });
    masked(&masker, &call, &schema);
    let inner = json!({ "password": secret }).to_string();
    let ascii = inner.replace('\u{e9}', "\\u00e9").replace('\u{1f600}', "\\ud83d\\ude00");
    for text in [&inner, &ascii] {
        let expected = format!(r#"{{"password":"{MASK}"}}"#);
        assert_eq!(masker.apply_to_text(text), expected);
        assert_eq!(masked(&masker, &json!({ "text": text }), &schema)["text"], expected);
    }
}

#[test]
fn answers_are_masked_by_the_schemas_of_their_questions() {
    let secret = json!({ "properties": { "pin": { "format": "password" }, "user": {} } });
    let question =
        json!({ "method": "elicitation/create", "params": { "requestedSchema": secret } });
    let content = json!({ "action": "accept", "content": { "pin": "open sesame", "user": "ann" } });
    let shown = json!({ "action": "accept", "content": { "pin": MASK, "user": "ann" } });
    let masker = Masker::default();
    let masked = |link, message: Value| {
        let masked = masker.apply(link, &message.to_string().into(), |_| None);
        serde_json::from_str::<Value>(&masked.json.unwrap()).unwrap()
    };
    let mut asked = question.clone();
    asked["id"] = 5.into();
    masked(7, asked);
    let short = json!({ "action": "accept", "content": { "pin": "1234" } });
    assert_eq!(masked(8, json!({ "id": 5, "result": short }))["result"], short);
    assert_eq!(masked(7, json!({ "id": 5, "result": content }))["result"], shown);
    assert_eq!(masked(9, json!({ "text": "open sesame" }))["text"], MASK);
    // In the modern era.
    masked(1, json!({ "id": 1, "result": { "inputRequests": { "who": question } } }));
    let again = json!({ "method": "tools/call", "params": { "inputResponses": { "who": short } } });
    let again = masked(2, again);
    assert_eq!(again["params"]["inputResponses"]["who"]["content"]["pin"], MASK);
    // The results of tools are no answers.
    let result = json!({ "content": [{ "pin": 1 }] });
    assert_eq!(masked(7, json!({ "id": 5, "result": result }))["result"], result);
}

#[test]
fn the_questions_that_are_remembered_are_bounded() {
    let masker = Masker::default();
    let long = "x".repeat(MAX_SCHEMA);
    for id in 0..MAX_QUESTIONS + 10 {
        let schema = json!({ "description": long, "properties": { "a": { "writeOnly": true } } });
        let params = json!({ "requestedSchema": schema });
        let question = json!({ "id": id, "method": "elicitation/create", "params": params });
        masker.apply(1, &question.to_string().into(), |_| None);
    }
    assert_eq!(masker.lock().questions.len(), MAX_QUESTIONS);
    assert!(masker.lock().questions.iter().all(|(_, schema)| schema.is_none()));
    let answer = json!({ "id": 20, "result": { "content": { "a": 1, "b": 2 } } });
    let masked = masker.apply(1, &answer.to_string().into(), |_| None);
    assert_eq!(masked.count, 2);
}

#[test]
fn every_keyword_that_applies_a_schema_is_followed() {
    let secret = json!({ "writeOnly": true });
    let inner = json!({ "properties": { "s": secret } });
    for schema in [
        json!({ "dependentSchemas": { "user": inner } }),
        json!({ "dependencies": { "user": inner } }),
        json!({ "properties": { "user": {} }, "unevaluatedProperties": secret }),
        json!({ "properties": { "user": {} }, "additionalProperties": secret }),
        json!({ "if": inner, "then": {} }),
        json!({ "properties": { "s": { "items": [secret], "additionalItems": secret } } }),
        json!({ "properties": { "s": { "prefixItems": [secret], "unevaluatedItems": secret } } }),
    ] {
        let masker = Masker::default();
        let arguments = json!({ "user": "ann", "s": ["open sesame", { "a": "hunter22" }] });
        let call =
            json!({ "method": "tools/call", "params": { "name": "t", "arguments": arguments } });
        let shown = masked(&masker, &call, &schema)["params"]["arguments"].take();
        assert_eq!(shown["user"], "ann");
        assert!(!shown.to_string().contains("sesame"), "{schema}");
        assert_eq!(masker.apply_to_text("hunter22"), MASK, "{schema}");
    }
}
