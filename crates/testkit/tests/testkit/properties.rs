//! Arbitrary bytes and operations, as the fuzzers run them, and the corpus that they begin from.

use std::path::Path;

use proptest::prelude::*;
use sabir_testkit::fuzz;

/// Runs all files of a corpus.
fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut count = 0;
    for file in files.flatten() {
        run(&std::fs::read(file.path()).unwrap());
        count += 1;
    }
    assert!(count > 4, "{} has {count} files", folder.display());
}

#[test]
fn the_corpus_of_envelopes_holds() {
    replay("envelope", fuzz::envelope);
}

#[test]
fn the_corpus_of_requests_holds() {
    replay("parsed_request", fuzz::parsed_request);
}

#[test]
fn the_corpus_of_lines_holds() {
    replay("lines", fuzz::lines);
}

#[test]
fn the_corpus_of_sessions_holds() {
    replay("session", fuzz::session);
}

#[test]
fn the_corpus_of_headers_holds() {
    replay("headers", fuzz::headers);
}

#[test]
fn the_corpus_of_schemas_holds() {
    replay("schema", fuzz::schema);
}

#[test]
fn the_corpus_of_http_heads_holds() {
    replay("http_head", fuzz::http_head);
}

#[test]
fn the_corpus_of_client_words_holds() {
    replay("client_words", fuzz::client_words);
}

/// JSON that is nearly a message: the words of the envelope, in any order, any number of times.
fn nearly_a_message() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        Just("jsonrpc"),
        Just("id"),
        Just("method"),
        Just("params"),
        Just("result"),
        Just("error"),
        Just("other"),
        Just("i\\u0064"),
    ];
    let value = prop_oneof![
        Just("\"2.0\"".to_owned()),
        Just("\"ping\"".to_owned()),
        Just("null".to_owned()),
        Just("7".to_owned()),
        Just("-0.5e9".to_owned()),
        Just("{}".to_owned()),
        Just("{\"code\":1,\"message\":\"m\"}".to_owned()),
        Just("[1,\r\n{}]".to_owned()),
        Just("[".repeat(20) + &"]".repeat(20)),
        Just("[".to_owned()),
        "[ -~é]{0,6}".prop_map(|text| serde_json::Value::from(text).to_string()),
    ];
    let object = proptest::collection::vec((key, value), 0..8).prop_map(|members| {
        let members = members.iter().map(|(key, value)| format!("\"{key}\":{value}"));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    });
    prop_oneof![
        4 => object.clone(),
        1 => proptest::collection::vec(object, 0..4).prop_map(|parts| format!("[{}]", parts.join(","))),
    ]
}

/// A text that a client may send.
fn client_word() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        Just("2025-11-25".to_owned()),
        Just("debug".to_owned()),
        Just("\u{1b}[31m\u{202e}\0".to_owned()),
        Just("x".repeat(5000)),
        Just("file:///../%2e%2e/é".to_owned()),
    ]
}

/// So many cases, unless `PROPTEST_CASES` says otherwise.
fn cases(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let is_given = std::env::var_os("PROPTEST_CASES").is_some();
    if is_given { default } else { ProptestConfig { cases, ..default } }
}

/// Bytes in which lines end often.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..200);
    bytes.prop_map(|mut bytes| {
        for byte in bytes.iter_mut().filter(|byte| **byte < 128) {
            *byte = b"\n\r a"[usize::from(*byte) % 4];
        }
        bytes
    })
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn headers_that_pass_say_what_the_body_says(
        name in "(mirror|=\\?base64\\?bWlycm9y\\?=|other|é)?",
        text in "[a-z é]{0,3}",
        header in "(=\\?base64\\?)?[a-zA-Z= é]{0,4}(\\?=)?",
        method in "(tools/call|Tools/call|tools/list)",
    ) {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        fuzz::headers(
            format!(
                "mcp-protocol-version: 2026-07-28\nmcp-method: {method}\nmcp-name: {name}\n\
                 mcp-param-text: {header}\n\n{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\
                 \"tools/call\",\"params\":{{\"name\":\"mirror\",\"arguments\":{{\"text\":\
                 \"{text}\"}},{meta}}}}}"
            )
            .as_bytes(),
        );
    }

    #[test]
    fn any_words_of_a_client_are_borne(words in prop::collection::vec(client_word(), 0..14)) {
        fuzz::client_words(words.join("\n").as_bytes());
    }

    #[test]
    fn any_bytes_are_a_message_or_say_why(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        fuzz::envelope(&bytes);
    }

    #[test]
    fn how_a_stream_is_cut_does_not_matter(
        limit in 0u8..40,
        cut in any::<u8>(),
        stream in stream(),
    ) {
        fuzz::lines(&[&[limit, cut], stream.as_slice()].concat());
    }
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn whatever_is_nearly_a_message_is_known_for_what_it_is(text in nearly_a_message()) {
        fuzz::envelope(text.as_bytes());
    }

    #[test]
    fn both_readers_of_requests_agree(depth in 0u8..24, text in nearly_a_message()) {
        fuzz::parsed_request(&[&[depth], text.as_bytes()].concat());
    }
}
