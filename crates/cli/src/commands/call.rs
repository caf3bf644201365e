//! `sabir call`: calls a tool of any MCP server.

mod arguments; // key=value, by the schema of the tool
mod output; // the result, for people or as JSON
mod terminal; // progress, and questions to the user

use std::io::IsTerminal as _;
use std::sync::Arc;

use sabir_client::{CallOptions, Client};
use sabir_wire::types::{Level, ToolReply};

use self::terminal::Terminal;
use super::target::{Connected, Target};
use crate::args::Call;
use crate::escape::escaped_lines;
use crate::report::{Failure, print_text, say};

pub(crate) fn run(args: &Call) -> Result<(), Failure> {
    let (target, words) = match (&*args.words, &*args.command) {
        ([target, words @ ..], []) => (Target::Written(target), words),
        (words, command) => (Target::Command(command), words),
    };
    let Some((tool, pairs)) = words.split_first() else {
        return Err(Failure::usage("no tool (expected TARGET TOOL [KEY=VALUE…])"));
    };
    super::block_on(async {
        let terminal = Arc::new(Terminal::default());
        let connected = Connected::new(&target, &args.header, Some(tool), terminal.clone()).await?;
        let called = tokio::select! {
            called = call(&connected.client, args, tool, pairs) => called,
            // The call is dropped, and with that cancelled.
            _ = tokio::signal::ctrl_c() => Err(Failure::new("cancelled")),
        };
        terminal.finish();
        connected.close().await;
        show(args, tool, &called?)
    })
}

async fn call(
    client: &Client,
    args: &Call,
    tool: &str,
    pairs: &[String],
) -> Result<ToolReply, Failure> {
    let failed = |error: sabir_client::CallError| Failure::new(error.to_string());
    // The schema says which values are numbers.
    let tools = client.list_tools().await.map_err(failed)?;
    let found = tools.iter().find(|found| found.name == tool);
    let given = args.json.as_ref().and_then(Option::as_deref);
    let schema = found.map(|tool| &tool.input_schema);
    let arguments = arguments::read(pairs, given, schema).map_err(Failure::usage)?;
    let options = CallOptions {
        progress: true,
        log_level: Some(Level::Info),
        timeout: args.timeout,
        ..CallOptions::default()
    };
    let called = client.call_tool_with(tool, arguments, options).await;
    called.map_err(|error| match (found, error) {
        (None, sabir_client::CallError::Rpc(_)) => {
            let names: Vec<_> = tools.iter().map(|tool| super::list::clean(&tool.name)).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Failure::new(format!("no tool `{tool}` (the server has: {names})"))
        }
        (_, error) => failed(error),
    })
}

/// Prints the result. One that says that the tool failed is a failure.
fn show(args: &Call, tool: &str, reply: &ToolReply) -> Result<(), Failure> {
    let text = match args.json {
        Some(_) => output::json(reply),
        None => output::text(tool, reply, &std::env::current_dir()?)?,
    };
    let is_terminal = std::io::stdout().is_terminal();
    let text = if is_terminal { escaped_lines(&text) } else { text.into() };
    print_text(&format!("{text}\n"));
    if reply.is_error {
        say("the tool reported an error");
        return Err(Failure::Silent);
    }
    Ok(())
}
