//! Every message that we emit, in each revision, against that revision's published schema; and every
//! method that the schemas know.
//!
//! The schemas are not ours to copy: they are read from `shared/schema` beside the repository, or
//! from the folder in `SABIR_SCHEMA_DIR`.

mod connection;
mod definitions;
mod methods;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use sabir_wire::Revision;
use serde_json::Value;

use connection::Recording;
use definitions::Definitions;

/// The folder of the schemas. Without it these tests check nothing: `None` and a warning, or a failure
/// if `SABIR_REQUIRE_SCHEMA` is set, as in `./test`.
fn folder() -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("SABIR_SCHEMA_DIR").map(PathBuf::from) {
        assert!(given.is_dir(), "SABIR_SCHEMA_DIR: no such folder: {}", given.display());
        return Some(given);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // Beside the repository, or beside the folder of its worktrees.
    let beside = ["..", "../.."].map(|up| root.join(up).join("shared/schema"));
    let found = beside.into_iter().find(|folder| folder.is_dir());
    if found.is_none() {
        let missing = "no published schemas in ../shared/schema (put them there or set \
                       SABIR_SCHEMA_DIR)";
        assert!(std::env::var_os("SABIR_REQUIRE_SCHEMA").is_none(), "{missing}");
        // Not by `eprintln!`, whose output a passing test hides.
        let _ = writeln!(std::io::stderr(), "\nwarning: messages were not validated: {missing}");
    }
    found
}

#[track_caller]
fn check(revision: Revision) {
    let Some(folder) = folder() else { return };
    let definitions = Definitions::read(&folder, revision);
    let recording = match revision {
        Revision::V2026_07_28 => Recording::modern(),
        legacy => Recording::legacy(legacy),
    };
    let mut wrong = Vec::new();
    for (asked, frame) in &recording.said {
        for reason in definitions.complaints(asked.as_deref(), frame) {
            wrong.push(format!("{reason}\n    {frame}"));
        }
    }
    let kinds: BTreeSet<String> =
        recording.said.iter().map(|(a, m)| kind(a.as_deref(), m)).collect();
    let missing: Vec<_> = expected(revision).filter(|kind| !kinds.contains(*kind)).collect();
    assert!(missing.is_empty(), "never said: {missing:?}, but: {kinds:#?}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The kind of a message, in a word.
fn kind(asked: Option<&str>, message: &Value) -> String {
    let method = message["method"].as_str();
    match (asked, message["error"]["code"].as_i64(), method) {
        (_, Some(code), _) => format!("error {code}"),
        (_, _, Some(method)) => method.to_owned(),
        (Some(asked), ..) if message["result"]["resultType"] == "input_required" => {
            format!("question of {asked}")
        }
        (Some(asked), ..) => format!("result of {asked}"),
        _ if message.is_array() => "batch".to_owned(),
        _ => "something else".to_owned(),
    }
}

/// The least content of a broad connection in a revision.
fn expected(revision: Revision) -> impl Iterator<Item = &'static str> {
    const BOTH: &[&str] = &[
        "result of tools/list",
        "result of tools/call",
        "result of prompts/list",
        "result of prompts/get",
        "result of resources/list",
        "result of resources/templates/list",
        "result of resources/read",
        "result of completion/complete",
        "notifications/progress",
        "notifications/message",
        "notifications/cancelled",
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
        "error -32700",
        "error -32600",
        "error -32601",
        "error -32602",
        "error -32603",
    ];
    const LEGACY: &[&str] = &[
        "result of initialize",
        "result of ping",
        "result of logging/setLevel",
        "result of resources/subscribe",
        "result of resources/unsubscribe",
        "sampling/createMessage",
        "roots/list",
        "error -32002",
    ];
    const MODERN: &[&str] = &[
        "result of server/discover",
        "result of subscriptions/listen",
        "notifications/subscriptions/acknowledged",
        "question of tools/call",
        "error -32021",
        "error -32022",
    ];
    let features = revision.features();
    let era = if features.stateless { MODERN } else { LEGACY };
    let elicitation = features.elicitation && !features.stateless;
    let special = [(features.batches, "batch"), (elicitation, "elicitation/create")];
    let special = special.into_iter().filter_map(|(has, kind)| has.then_some(kind));
    BOTH.iter().chain(era).copied().chain(special)
}

#[test]
fn what_we_say_in_2024_11_05_is_valid() {
    check(Revision::V2024_11_05);
}

#[test]
fn what_we_say_in_2025_03_26_is_valid() {
    check(Revision::V2025_03_26);
}

#[test]
fn what_we_say_in_2025_06_18_is_valid() {
    check(Revision::V2025_06_18);
}

#[test]
fn what_we_say_in_2025_11_25_is_valid() {
    check(Revision::V2025_11_25);
}

#[test]
fn what_we_say_in_2026_07_28_is_valid() {
    check(Revision::V2026_07_28);
}

/// The checks themselves must be able to fail.
#[test]
fn what_a_schema_does_not_allow_is_found() {
    let Some(folder) = folder() else { return };
    let old = Definitions::read(&folder, Revision::V2024_11_05);
    let new = Definitions::read(&folder, Revision::V2026_07_28);
    for (definitions, asked, frame) in [
        // A word of a later revision.
        (
            &old,
            "tools/call",
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{}}}"#,
        ),
        (
            &old,
            "tools/call",
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"audio","data":"","mimeType":"a/b"}]}}"#,
        ),
        (
            &old,
            "tools/list",
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"t","title":"T","inputSchema":{"type":"object"}}]}}"#,
        ),
        (
            &old,
            "initialize",
            r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"x","capabilities":{}}}"#,
        ),
        (&old, "ping", r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#),
        // Something that is missing.
        (
            &new,
            "tools/list",
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[]}}"#,
        ),
        (&new, "tools/call", r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#),
        (
            &new,
            "tools/call",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m"}}"#,
        ),
        (&new, "tools/call", r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"m"}}"#),
        (&new, "tools/call", r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32042,"message":"m"}}"#),
        // Messages that a modern server never sends.
        (&new, "tools/call", r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#),
        (
            &new,
            "tools/call",
            r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"1"}}"#,
        ),
    ] {
        let frame = serde_json::from_str(frame).unwrap();
        assert!(!definitions.complaints(Some(asked), &frame).is_empty(), "{frame} was let through");
    }
}
