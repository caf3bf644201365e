use std::cell::RefCell;
use std::io::Write;
use std::sync::Once;

use anyhow::Context as _;
use sabir::{Error, Server};
use serde_json::json;

use crate::{connect, server};

thread_local! {
    /// What was logged on this thread: a test and its handlers run on one.
    static LOG: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

struct Log;

impl Log {
    /// Logs for the whole process: a logger of one thread would race with other tests, because
    /// tracing caches which events have no subscriber.
    fn start() {
        static STARTED: Once = Once::new();
        STARTED.call_once(|| tracing_subscriber::fmt().with_writer(|| Log).init());
    }

    fn text() -> String {
        LOG.with_borrow(|log| String::from_utf8(log.clone()).unwrap())
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.with_borrow_mut(|log| log.write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn open() -> anyhow::Result<String> {
    let opened: Result<String, _> = Err(std::io::Error::other("disk on fire"));
    opened.context("the ledger cannot be opened")
}

async fn with_anyhow() -> anyhow::Result<String> {
    open()
}

async fn with_ours() -> Result<String, Error> {
    Ok(open()?)
}

async fn with_std() -> Result<String, std::num::ParseIntError> {
    "x".parse::<u8>().map(|number| number.to_string())
}

async fn with_text() -> Result<String, &'static str> {
    Err("the till is empty")
}

async fn internal() -> Result<String, Error> {
    open().map_err(Error::internal)
}

async fn failed() -> Result<String, Error> {
    Err(Error::failed("try a smaller number"))
}

fn failing() -> Server {
    server()
        .tool("with_anyhow", "", with_anyhow)
        .tool("with_ours", "", with_ours)
        .tool("with_std", "", with_std)
        .tool("with_text", "", with_text)
        .tool("internal", "", internal)
        .tool("failed", "", failed)
        .prompt("prompt", "", with_ours)
}

#[tokio::test]
async fn the_model_reads_the_message_and_the_log_the_causes() {
    Log::start();
    let mut client = connect(failing());
    let expected = [
        ("with_anyhow", "the ledger cannot be opened"),
        ("with_ours", "the ledger cannot be opened"),
        ("with_std", "invalid digit found in string"),
        ("with_text", "the till is empty"),
        ("internal", "the tool failed"),
        ("failed", "try a smaller number"),
    ];
    for (tool, message) in expected {
        let reply = client.call_tool(tool, json!({})).await.unwrap();
        assert!(reply.is_error(), "{tool}");
        assert_eq!(reply.text(), message, "{tool}");
    }
    let error = client.get_prompt("prompt", json!({})).await.unwrap_err();
    assert_eq!((error.code, &*error.message), (-32603, "the ledger cannot be opened"));

    let causes = "failed: the ledger cannot be opened: disk on fire";
    for name in ["tool `with_anyhow`", "tool `with_ours`", "tool `internal`", "prompt `prompt`"] {
        assert!(Log::text().contains(&format!("{name} {causes}")), "{name}: {}", Log::text());
    }
    // A message that the handler writes for the model is not logged as a warning.
    assert_eq!(Log::text().matches("WARN").count(), 6, "{}", Log::text());
}

#[tokio::test]
async fn masked_errors_are_only_logged() {
    // The tools were added before.
    let mut client = connect(failing().mask_errors());
    for tool in ["with_anyhow", "with_ours", "with_std", "with_text", "internal"] {
        let reply = client.call_tool(tool, json!({})).await.unwrap();
        assert!(reply.is_error(), "{tool}");
        assert_eq!(reply.text(), "the tool failed", "{tool}");
    }
    assert_eq!(client.call_tool("failed", json!({})).await.unwrap().text(), "try a smaller number");
    let error = client.get_prompt("prompt", json!({})).await.unwrap_err();
    assert_eq!(error.message, "the prompt failed");
}

#[tokio::test]
async fn an_error_of_the_protocol_is_no_result() {
    async fn refuse() -> Result<String, Error> {
        Err(Error::protocol(-31999, "not on Sundays"))
    }
    let error = connect(server().tool("refuse", "", refuse)).call_tool("refuse", json!({})).await;
    let error = error.unwrap_err();
    assert_eq!((error.code, &*error.message), (-31999, "not on Sundays"));
}

#[tokio::test]
async fn an_error_says_what_the_model_would_read() {
    assert_eq!(with_ours().await.unwrap_err().to_string(), "the ledger cannot be opened");
    assert_eq!(failed().await.unwrap_err().to_string(), "try a smaller number");
}
